"""Ratings that may rightly differ: their model, agreement with judges, the choice of a judge, and planning."""
