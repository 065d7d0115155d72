"""A finished comparison of methods as HTML, Markdown and JSON: pure functions of its record."""
