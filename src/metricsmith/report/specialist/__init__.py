"""Specialists held against their history, one system after the other."""
