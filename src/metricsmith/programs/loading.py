"""From one JSON file to a metric: built from a fixed table of kinds, never executed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

from metricsmith.bank.catalogue import default_bank
from metricsmith.bank.column import ColumnMetric
from metricsmith.errors import StateError, nearest
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
from metricsmith.programs.judges.panel import PanelMember, join_panels
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.judges.rubric import RubricJudge
from metricsmith.programs.state import read_state
from metricsmith.records import Scale, Task
from metricsmith.regression import LinearCombination

__all__ = ["from_state", "load"]


def load(path: str | PathLike[str]) -> Any:
    """Build the metric that `InducedMetric.save` or ``metricsmith induce`` wrote; its scores are identical.

    Parameters
    ----------
    path : path
        A JSON file.

    Returns
    -------
    InducedMetric, Judge, BankMetric or ColumnMetric
        Judges come without a language model: pass ``lm=`` to `score`, or have one in force.

    Raises
    ------
    StateError
        If the file cannot be read, was changed by hand, or is of another schema version.
    """
    content = read_state(path)
    try:
        return from_state(content)
    except (KeyError, TypeError) as problem:
        raise StateError(f"{path} lacks what its kind, {content['kind']!r}, needs: {problem}") from problem


def from_state(state: Mapping[str, Any]) -> Metric:
    """Build a metric from its `to_state`."""
    kind = state["kind"]
    if kind not in _READERS:
        raise StateError(f"unknown kind {kind!r}{nearest(kind, _READERS)}; known are {', '.join(_READERS)}")
    return _READERS[kind](state)


def _induced(state: Mapping[str, Any]) -> Metric:
    task = state["task"]
    components = [from_state(component) for component in state["components"]]
    join_panels(components)
    return InducedMetric(
        components=components,
        combination=LinearCombination.from_dict(state["combination"]),
        task=Task(task["description"], task["target"], Scale(**task["scale"])),
        best=state["best"],
        signature=state["signature"],
        reading=state["reading"],
        adapter=state.get("adapter", "chat"),
    )


def _bank(state: Mapping[str, Any]) -> Metric:
    return replace(default_bank().get(state["name"]), statistics=state["statistics"])


_READERS: dict[str, Callable[[Mapping[str, Any]], Metric]] = {
    "induced": _induced,
    "bank": _bank,
    "column": lambda state: ColumnMetric(state["name"]),
    "criterion_judge": CriterionJudge.from_state,
    "direct_assessment": DirectAssessment.from_state,
    "dna_eval": DnAEval.from_state,
    "esa_judge": ESAJudge.from_state,
    "example_judge": ExampleJudge.from_state,
    "geval_judge": GEval.from_state,
    "guideline_judge": GuidelineJudge.from_state,
    "mqm_annotator": MQMAnnotator.from_state,
    "mqm_judge": lambda state: MQMJudge.from_state(state, from_state(state["judge"])),
    "panel_member": PanelMember.from_state,
    "repeated": lambda state: Repeated.from_state(state, from_state(state["judge"])),
    "rubric_judge": RubricJudge.from_state,
}
