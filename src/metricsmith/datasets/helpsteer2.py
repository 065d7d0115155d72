"""Answers of assistants to prompts, rated from 0 to 4 on five attributes (HelpSteer2)."""

from __future__ import annotations

import importlib
from typing import Any

from metricsmith.datasets.rated_set import RatedSet
from metricsmith.records import Scale

__all__ = ["HELPSTEER2"]

SPLITS = ("train", "validation")


def _both_splits(name: str) -> Any:
    """Both splits as one table, whose column ``split`` tells them apart."""
    library = importlib.import_module("datasets")
    data = library.load_dataset(name)
    return library.concatenate_datasets([data[one].add_column("split", [one] * len(data[one])) for one in SPLITS])


# Columns, splits and numbers of rows: the data set's card on the hub. Scale: the card of nvidia/HelpSteer, and the
# prompt for raters in appendix C of the AutoMetrics paper (its Table 1 prints 1 to 5). Table 1 counts the training
# split alone. Test rows: autometrics/dataset/datasets/helpsteer/helpsteer.py of SALT-NLP/autometrics.
HELPSTEER2 = RatedSet(
    name="helpsteer2",
    title="HelpSteer2",
    citation='Wang et al. (2024), "HelpSteer2: Open-source dataset for training top-performing reward models"',
    page="https://huggingface.co/datasets/nvidia/HelpSteer2",
    task="An assistant answers a prompt. A good answer does what was asked, and is correct and clear.",
    dimensions=dict.fromkeys(("helpfulness", "correctness", "coherence", "complexity", "verbosity"), Scale(0, 4, 1)),
    columns={"output": "response", "inputs": "prompt", "group": "prompt"},
    splits="the source's validation split to test, the others by prompt: 5/7 to train, 2/7 to validate",
    rows=(20_324, 21_362),
    held=("split", "validation"),
    hub="nvidia/HelpSteer2",
    load=_both_splits,
)
