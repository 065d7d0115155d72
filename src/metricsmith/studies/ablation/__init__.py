"""Grids of inductions: what each option is worth, on data with ratings."""
