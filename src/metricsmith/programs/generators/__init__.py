"""Generators: from rated examples to axes, and from axes to rubrics and evaluation steps."""
