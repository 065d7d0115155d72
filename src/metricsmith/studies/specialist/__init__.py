"""Specialists held against their history, one system held out after the other."""
