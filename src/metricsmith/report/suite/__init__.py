"""The result of a shared task: record, tables, page."""
