"""What makes scoring resumable: judgements in one SQLite file."""

from metricsmith.store.database import Entry, Key, Store

__all__ = ["Entry", "Key", "Store"]
