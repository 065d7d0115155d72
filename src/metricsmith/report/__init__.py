"""A finished run as HTML, Markdown, JSON and CSV: pure functions of a record."""
