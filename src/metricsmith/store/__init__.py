"""The store: judgements in one SQLite file, so that a scoring that was cut off can go on."""

from metricsmith.store.database import Store
from metricsmith.store.exporting import Exported, export
from metricsmith.store.schema import Entry, Key
from metricsmith.store.upkeep import MetricInfo, StoreInfo, info, prune
from metricsmith.store.verifying import Damage, Verified, verify

__all__ = [
    "Damage", "Entry", "Exported", "Key", "MetricInfo", "Store", "StoreInfo", "Verified", "export", "info", "prune",
    "verify",
]  # fmt: skip
