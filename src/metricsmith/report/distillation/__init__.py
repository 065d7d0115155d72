"""A distillation as text, Markdown, JSON and HTML: how much of a paid metric a free one keeps."""
