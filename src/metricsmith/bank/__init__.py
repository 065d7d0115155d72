"""MetricBank: one metric family per file, its card as data. The table of contents is `catalogue`."""
