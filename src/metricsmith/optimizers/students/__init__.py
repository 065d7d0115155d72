"""Programs other than judges as students of optimisers: their examples (episodes) and the metrics that grade them."""
