"""Outputs changed on purpose: made worse, rewritten without loss, or dressed up to deceive a metric."""
