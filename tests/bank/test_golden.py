"""Every number of `tests/golden/bank.json`: the texts are ours, the values are those of the named tools."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from metricsmith.bank.catalogue import default_bank
from metricsmith.metric import make_row


@cache
def golden() -> list[dict[str, Any]]:
    path = Path(__file__).parent.parent / "golden" / "bank.json"
    return json.loads(path.read_text(encoding="utf-8"))["rows"]


@pytest.mark.parametrize("name", sorted(golden()[0]["values"]))
def test_values_equal_those_of_the_named_backend(name: str) -> None:
    rows = [
        make_row(row["output"], input=row["input"], references=row["references"], id=row["name"]) for row in golden()
    ]
    judged = default_bank().get(name).judge_batch(rows)
    expected = {row["name"]: row["values"][name] for row in golden()}
    found = {row["id"]: judgement.raw for row, judgement in zip(rows, judged, strict=True)}
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
