"""A finished tuning as text, Markdown, JSON and HTML, with the instructions before and after."""
