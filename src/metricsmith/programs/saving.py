"""One JSON per metric: written, read back, and never executed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from metricsmith import __version__
from metricsmith.bank.base import BankMetric
from metricsmith.bank.catalogue import default_bank
from metricsmith.bank.column import ColumnMetric
from metricsmith.errors import OptionError, StateError, nearest
from metricsmith.metric import Metric, content_hash
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.judges.base import Judge
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.rubric import RubricJudge
from metricsmith.records import Scale, Task
from metricsmith.regression import LinearCombination
from metricsmith.report.record import jsonable

__all__ = ["load", "save"]

SCHEMA_VERSION = 1


def save(metric: Metric, path: str | PathLike[str]) -> None:
    """Write `metric` as one JSON file, whole or not at all.

    Raises
    ------
    OptionError
        If the metric is not one of ours.
    """
    content = {"schema_version": SCHEMA_VERSION, "versions": {"metricsmith": __version__}, **to_state(metric)}
    content["hash"] = _hash(content)
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.write_text(json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False), "utf-8")
    temporary.replace(target)


def load(path: str | PathLike[str]) -> Any:
    """Build the metric that `save` wrote; its scores are identical.

    Parameters
    ----------
    path : path
        A JSON file written by `InducedMetric.save` or `metricsmith induce`.

    Returns
    -------
    InducedMetric, Judge, BankMetric or ColumnMetric
        Judges come without a language model: pass ``lm=`` to `score`, or have one in force.

    Raises
    ------
    StateError
        If the file cannot be read, was changed by hand, or is of a newer schema.
    """
    source = Path(path)
    try:
        content = json.loads(source.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as problem:
        raise StateError(f"{source} is not a readable metric file: {problem}") from problem
    if not isinstance(content, dict) or "kind" not in content:
        raise StateError(f"{source} is not a metric file: it has no 'kind'; expected one of {', '.join(_READERS)}")
    if content.get("schema_version") != SCHEMA_VERSION:
        raise StateError(
            f"{source} has schema version {content.get('schema_version')!r}; this version reads {SCHEMA_VERSION}"
        )
    if content.get("hash") != _hash(content):
        raise StateError(f"{source} does not match its own hash: it was cut off or changed; induce the metric again")
    try:
        return from_state(content)
    except (KeyError, TypeError) as problem:
        raise StateError(f"{source} lacks what a {content['kind']} needs: {problem}") from problem


def to_state(metric: Metric) -> dict[str, Any]:
    """JSON-ready state with the metric's ``kind``."""
    if isinstance(metric, InducedMetric):
        return {
            "kind": "induced",
            **metric.settings.dump_state(),
            "components": [to_state(component) for component in metric.components],
        }
    if isinstance(metric, Judge):
        return {"kind": metric.kind, "state": metric.to_state()}
    if isinstance(metric, BankMetric):
        return {"kind": "bank", "name": metric.name, "statistics": jsonable(metric.statistics)}
    if isinstance(metric, ColumnMetric):
        return {"kind": "column", "name": metric.name}
    raise OptionError(f"a {type(metric).__name__} cannot be saved; known kinds are {', '.join(_READERS)}")


def from_state(state: Mapping[str, Any]) -> Metric:
    """Build a metric from `to_state`'s result."""
    kind = state["kind"]
    if kind not in _READERS:
        raise StateError(f"unknown kind {kind!r}{nearest(kind, _READERS)}; known are {', '.join(_READERS)}")
    return _READERS[kind](state)


def _induced(state: Mapping[str, Any]) -> Metric:
    task = state["task"]
    return InducedMetric(
        components=[from_state(component) for component in state["components"]],
        combination=LinearCombination.from_dict(state["combination"]),
        task=Task(task["description"], task["target"], Scale(**task["scale"])),
        best=state["best"],
        signature=state["signature"],
        reading=state["reading"],
    )


def _bank(state: Mapping[str, Any]) -> Metric:
    metric = default_bank().get(state["name"])
    return metric if state["statistics"] is None else BankMetric(metric.family, metric.name, state["statistics"])


_READERS: dict[str, Callable[[Mapping[str, Any]], Metric]] = {
    "induced": _induced,
    "bank": _bank,
    "column": lambda state: ColumnMetric(state["name"]),
    "criterion_judge": lambda state: CriterionJudge.from_state(state["state"]),
    "rubric_judge": lambda state: RubricJudge.from_state(state["state"]),
}


def _hash(content: Mapping[str, Any]) -> str:
    return content_hash({key: value for key, value in content.items() if key != "hash"})
