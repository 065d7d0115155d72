"""The metrics of the bank that need weights: one file, one card each, on the shared engines in `engine`."""
