"""Generators: axes from rated rows, weighted dimensions from a task alone, and from an axis a rubric or steps.

Each sends one request. The axes of one request serve every family of generated metrics.
"""
