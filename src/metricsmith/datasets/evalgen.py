"""Product descriptions made from reviews, each graded good or bad (EvalGen)."""

from __future__ import annotations

from metricsmith.datasets.rated_set import RatedSet
from metricsmith.records import Scale

__all__ = ["EVALGEN"]

# Columns and splits: autometrics/dataset/datasets/evalgen/evalgen.py of SALT-NLP/autometrics, which lists the columns
# of product.csv and reads every grade as true or false. The split agrees with the paper's 57 training rows (4.5).
EVALGEN = RatedSet(
    name="evalgen",
    title="EvalGen",
    citation='Shankar et al. (2024), "Who Validates the Validators?", UIST',
    page="https://github.com/SALT-NLP/autometrics (autometrics/dataset/datasets/evalgen/product.csv)",
    task="A shop's description of a product is written from its details and its reviews. A good one sells the "
    "product without inventing or quoting anything, in short parts with headings.",
    dimensions={"grade": Scale(0, 1, 1)},
    columns={"output": "Response", "inputs": "Prompt", "group": "Metavar: id", "system": "LLM"},
    splits="the file's own test rows (Metavar: split), the others: 5/7 to train, 2/7 to validate",
    rows=(100,),
    held=("Metavar: split", "test"),
    unverified="the file itself, and so the words in which it writes a grade",
)
