"""Metrics beside gold ratings as HTML, Markdown and JSON: pure functions of the record."""
