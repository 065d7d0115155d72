"""Sentences simplified by people and systems, rated from 0 to 100 (SimpEval)."""

from __future__ import annotations

from metricsmith.datasets.rated_set import RatedSet
from metricsmith.records import Scale

__all__ = ["SIMPEVAL"]

# Columns and groups: autometrics/dataset/datasets/simplification/simplification.py of SALT-NLP/autometrics, and its
# simpeval.csv: ratings are averaged over raters already.
SIMPEVAL = RatedSet(
    name="simpeval",
    title="SimpEval",
    citation='Maddela et al. (2023), "LENS: A Learnable Evaluation Metric for Text Simplification", ACL',
    page="https://github.com/SALT-NLP/autometrics (autometrics/dataset/datasets/simplification/simpeval.csv)",
    task="A sentence is rewritten in plainer English. A good one is easy to read, fluent, and says the same.",
    dimensions={"score": Scale(0, 100)},
    columns={"output": "simple", "inputs": "original", "reference": "references", "group": "id", "system": "system"},
    rows=(360,),
)
