"""Examples for one row: historical ratings of other outputs of the same source, and never what would give it away."""
