"""Judged translations as text, Markdown, JSON and HTML with the errors marked."""
