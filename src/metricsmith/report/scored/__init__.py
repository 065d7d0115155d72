"""Scored rows: their record, their lines in a table, and their page."""
