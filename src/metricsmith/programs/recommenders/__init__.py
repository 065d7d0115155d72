"""Recommenders: which metrics of a pool are worth computing for a task."""
