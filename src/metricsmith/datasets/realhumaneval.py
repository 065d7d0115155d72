"""Code completions that programmers took or left (RealHumanEval, autocomplete)."""

from __future__ import annotations

import importlib
from typing import Any

from metricsmith.datasets.rated_set import RatedSet
from metricsmith.records import Scale

__all__ = ["REALHUMANEVAL"]


def _completions(name: str) -> Any:
    return importlib.import_module("datasets").load_dataset(name, "autocomplete")


# Columns and blank suggestions: autometrics/dataset/datasets/realhumaneval/realhumaneval.py of SALT-NLP/autometrics;
# configuration: the data set's card on the hub. The paper's reader splits by suggestion (timestamp), which lets the
# programs of one programmer stand on both sides; here programmers are the groups.
REALHUMANEVAL = RatedSet(
    name="realhumaneval",
    title="RealHumanEval",
    citation='Mozannar et al. (2025), "The RealHumanEval: Evaluating Large Language Models\' Abilities to Support '
    'Programmers", TMLR',
    page="https://huggingface.co/datasets/hsseinmz/realhumaneval (autocomplete/autocomplete_data.csv)",
    task="While somebody writes Python, a completion is suggested between the code before and after the cursor. A "
    "good one is taken.",
    dimensions={"accepted": Scale(0, 1, 1)},
    columns={
        "output": "suggestion", "inputs": ("prefix_code", "suffix_code"), "group": "programmer_id", "system": "model",
        "where": ("suggestion!=",),
    },
    splits="by suggestion: .5 to train, .2 to validate, .3 to test; here by programmer",
    rows=(5_204,),
    hub="hsseinmz/realhumaneval",
    load=_completions,
)  # fmt: skip
