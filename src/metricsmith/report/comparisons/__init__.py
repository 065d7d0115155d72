"""Comparisons of the same methods on several data sets as HTML, Markdown and JSON: pure functions of their record."""
