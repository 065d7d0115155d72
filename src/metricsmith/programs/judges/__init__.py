"""Judges: one model call that turns a row into a score with its reasons."""
