"""The report of an induction."""
