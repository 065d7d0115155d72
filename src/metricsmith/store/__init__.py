"""What makes scoring resumable: judgements in one SQLite file."""

from metricsmith.store.database import Store
from metricsmith.store.keys import Entry, Key

__all__ = ["Entry", "Key", "Store"]
