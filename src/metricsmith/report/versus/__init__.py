"""Two versions of outputs side by side: the record, and its page."""
