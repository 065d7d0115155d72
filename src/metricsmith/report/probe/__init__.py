"""The report of a probe: what metrics make of outputs that were changed on purpose."""
