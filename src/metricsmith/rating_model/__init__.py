"""Ratings of items by several raters, and the figures that rest on them."""
