"""Metric files and stores of before the package was rebuilt: no request is sent again, and every number is the same."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from metricsmith.metric import make_row
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.loading import load
from metricsmith.scoring import score
from metricsmith.testing import GivenModel
from saved import answer, words

FOLDER = Path(__file__).parent / "golden" / "before_one_house"
THEN = json.loads((FOLDER / "scores.json").read_text("utf-8"))
KINDS = sorted(set(THEN) - {"induced by a model"})
ROWS = [
    make_row(
        f"Gate {n} is shut now.",
        input=f"Gate {n} will be closed at present.",
        references=[f"Gate {n} is closed."],
        id=f"r{n}",
        columns={"length": float(n + 2)},
    )
    for n in range(3)
]


def scored(metric, rows, store, tmp_path, **settings):
    """Scores from a copy of a committed store, and the number of requests that they took."""
    copy = shutil.copy(FOLDER / store, tmp_path / store)
    with GivenModel(answer) as server:
        table = score(
            metric.members() if isinstance(metric, Panel) else [metric], rows,
            lm=server.lm(**settings), store=copy, progress=False,
        )  # fmt: skip
        return table, server.requests


@pytest.mark.parametrize("name", KINDS)
def test_a_metric_of_every_kind_finds_its_judgements_in_the_store_again(name, tmp_path):
    functions = {"words": words} if name == "callable" else None
    metric = load(FOLDER / "kinds" / f"{name.replace(' ', '_')}.json", functions=functions)
    table, requests = scored(metric, ROWS, "kinds.sqlite", tmp_path, temperature=1.0, engine="lm15")
    assert requests == 0
    if name != "callable":  # a function without a version is known as this very object
        assert metric.fingerprint() == THEN[name]["fingerprint"]
    assert list(table.names) == THEN[name]["names"]
    assert table.values.tolist() == THEN[name]["raw"]


def test_an_induced_metric_answers_from_its_store_with_equal_scores(tmp_path):
    then = THEN["induced by a model"]
    metric = load(FOLDER / "metric.json")
    with (FOLDER / "rows.csv").open(encoding="utf-8", newline="") as file:
        rows = [
            make_row(
                record["output"],
                input=record["input"],
                references=[record["reference"]],
                id=record["id"],
                group=record["group"],
            )
            for record in csv.DictReader(file)
        ]
    table, requests = scored(metric, rows, "induced.sqlite", tmp_path)
    assert requests == 0
    assert [component.name for component in metric.components] == then["components"]
    assert metric.fingerprint() == then["fingerprint"]
    assert np.array_equal(table.values, np.array(then["raw"]))
