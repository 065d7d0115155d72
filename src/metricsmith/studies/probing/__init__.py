"""Probing a metric: outputs changed on purpose, scored, and compared with their originals."""
