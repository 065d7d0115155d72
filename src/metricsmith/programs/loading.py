"""From one JSON file to a metric: built from a fixed table of kinds, never executed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from metricsmith.bank.catalogue import default_bank
from metricsmith.bank.column import ColumnMetric
from metricsmith.errors import OptionError, StateError
from metricsmith.metric import Metric
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.direct_assessment import DirectAssessment
from metricsmith.programs.judges.dna import DnAEval
from metricsmith.programs.judges.esa import ESAJudge
from metricsmith.programs.judges.examples import ExampleJudge
from metricsmith.programs.judges.geval import GEval
from metricsmith.programs.judges.guideline import GuidelineJudge
from metricsmith.programs.judges.mqm import MQMAnnotator, MQMJudge
from metricsmith.programs.judges.panel import Panel, PanelMember, join_panels
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.judges.rubric import RubricJudge
from metricsmith.programs.kinds import check_state
from metricsmith.programs.state import read_state
from metricsmith.records import Scale, Task
from metricsmith.regression import LinearCombination

__all__ = ["from_state", "load"]


def load(path: str | PathLike[str]) -> Any:
    """Build the metric that a ``save`` of ours or ``metricsmith induce`` wrote; its scores are identical.

    The file is checked as a whole before anything is built, and can do nothing but score: it names no model, address,
    request setting or file that anybody follows. docs/reliability.md has the limits.

    Parameters
    ----------
    path : path
        A JSON file, or a folder with a ``metric.json``.

    Returns
    -------
    InducedMetric, Judge, Panel, BankMetric or ColumnMetric
        Judges come without a language model: pass ``lm=`` to `score`, or have one in force.

    Raises
    ------
    StateError
        If the file cannot be read, was changed by hand, is of another schema version, or holds anything that its kind
        does not allow; the message has the path inside the file.
    """
    content = read_state(path)
    try:
        return _built(content, "")
    except StateError as problem:
        raise StateError(f"{path}: {problem}") from problem


def from_state(state: Mapping[str, Any]) -> Metric:
    """Build a metric from its `to_state`, which is checked as a file is."""
    check_state(state)
    metric: Metric = _built(state, "")
    return metric


def _built(state: Mapping[str, Any], path: str) -> Any:
    """Build what has been checked; what only a constructor knows to be wrong is an error of the same kind."""
    kind = state["kind"]
    if kind not in (*_READERS, Panel.kind):
        raise StateError(f"a {kind!r} is no metric; known are {', '.join(_READERS)}")
    try:
        # a panel is no metric itself, but what asks for several
        return Panel.from_state(state) if kind == Panel.kind else _READERS[kind](state, path)
    except OptionError as problem:
        raise StateError(f"{path or kind}: {problem}") from problem


def _induced(state: Mapping[str, Any], path: str) -> Metric:
    task = state["task"]
    places = [f"{path}.components[{place}]".lstrip(".") for place in range(len(state["components"]))]
    components = [_built(component, place) for component, place in zip(state["components"], places, strict=True)]
    join_panels(components)
    metric = InducedMetric(
        components=components,
        combination=LinearCombination.from_dict(state["combination"]),
        task=Task(task["description"], task["target"], Scale(**task["scale"])),
        best=state["best"],
        signature=state["signature"],
        reading=state["reading"],
        adapter=state.get("adapter", "chat"),
    )
    metric.made_with = state.get("made_with", {})
    metric.predict(np.empty((0, len(components))))  # refuses a combination of other components
    return metric


def _plain(state: Mapping[str, Any], _: str) -> Any:
    return _PLAIN[state["kind"]].from_state(state)


def _inner(state: Mapping[str, Any], path: str) -> Any:
    return _built(state["judge"], f"{path}.judge".lstrip("."))


_PLAIN: dict[str, Any] = {kind.kind: kind for kind in (
    CriterionJudge, DirectAssessment, DnAEval, ESAJudge, ExampleJudge, GEval, GuidelineJudge, MQMAnnotator,
    PanelMember, RubricJudge,
)}  # fmt: skip
_READERS: dict[str, Callable[[Mapping[str, Any], str], Any]] = {
    "induced": _induced,
    "bank": lambda state, _: replace(default_bank().get(state["name"]), statistics=state.get("statistics")),
    "column": lambda state, _: ColumnMetric(state["name"]),
    "mqm_judge": lambda state, path: MQMJudge.from_state(state, _inner(state, path)),
    "repeated": lambda state, path: Repeated.from_state(state, _inner(state, path)),
    **dict.fromkeys(_PLAIN, _plain),
}  # fmt: skip
