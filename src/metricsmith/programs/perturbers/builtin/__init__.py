"""Perturbers that need no model: small seeded functions on the text itself, each with a card."""
