"""From one JSON file to a metric: built from a fixed table of kinds, never executed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict
from os import PathLike
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from metricsmith.bank.base import BankMetric
from metricsmith.bank.code import CodeMetric, code_listed
from metricsmith.bank.column import ColumnMetric
from metricsmith.bank.models.finetuned import FinetunedMetric
from metricsmith.bank.models.trained import read_weights
from metricsmith.bank.weighted import named_function, place_name, saved_family
from metricsmith.errors import NeedsError, OptionError, StateError
from metricsmith.metric import Metric
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.judges.catalogue import judge_class
from metricsmith.programs.judges.members import join_askers
from metricsmith.programs.kinds import METRICS, check_state, families
from metricsmith.programs.state import read_state, state_parts
from metricsmith.records import Scale, Task
from metricsmith.saving import metric_file
from metricsmith.scoring.callables import CallableMetric
from metricsmith.stats.regression import LinearCombination

__all__ = ["from_state", "load"]

notes = logging.getLogger("metricsmith.notes")  # shown on the terminal, each once

Functions = Mapping[str, Callable[..., Any]]
Places = Mapping[str, str | PathLike[str]]


class Given(NamedTuple):
    """The parts of metrics that a state lacks: functions by name, places of published weights, learned ones by hash."""

    functions: Functions = MappingProxyType({})
    local: Mapping[str, str] = MappingProxyType({})
    learned: Mapping[str, bytes] = MappingProxyType({})


def load(path: str | PathLike[str], *, functions: Functions | None = None, local: Places | None = None) -> Any:
    """Build the metric that a ``save`` of ours or ``metricsmith induce`` wrote; its scores are identical.

    The file is checked as a whole before anything is built, and can do nothing but score: it names no model, address,
    request setting or file that anybody follows. docs/reliability.md has the limits. Code components are listed in the
    log, and not run: scoring does that, in the sandbox.

    Parameters
    ----------
    path : path
        A JSON file, or a folder with a ``metric.json``.
    functions : mapping of str to callable, optional
        The functions among the metric's components, and SummaQA's finders of entities, by the names that the file has
        for them: a file holds no code of theirs, and nothing is imported for it. Others than these are not used.
    local : mapping of str to path, optional
        Where the weights of bank metrics lie, by the metric's name, and those of trained metrics' encoders, by theirs;
        others are looked for in the hub's cache. They are not needed to load: scoring refuses weights that are not
        here, or others than those the metric was made with.

    Returns
    -------
    InducedMetric, Judge, Panel, BankMetric, FinetunedMetric, ColumnMetric, CallableMetric or CodeMetric
        Judges come without a language model: pass ``lm=`` to `score`, or have one in force.

    Raises
    ------
    StateError
        If the file cannot be read, was changed by hand, is of another schema version, or holds anything that its kind
        does not allow; the message has the path inside the file. Also if the weights that a trained metric learned do
        not lie beside the file, as ``<sha256>.safetensors``, or are not what their name says.
    NeedsError
        If the metric rests on a function that `functions` lacks; the message has the line of Python to write.
    OptionError
        If `functions` is no mapping, or has something that is no function of (example, pred), or `local` names a metric
        without weights.
    """
    content, given = read_state(path), {} if functions is None else functions
    parts = [part for _, part in state_parts(content)]
    finders = [name for part in parts if (name := named_function(part))]
    named = list(dict.fromkeys([*(part["name"] for part in parts if part["kind"] == "callable"), *finders]))
    if not isinstance(given, Mapping):
        raise OptionError(f"functions={given!r:.60} must be a mapping, such as functions={{'name': function}}")
    if any(name not in given for name in named):
        line = ", ".join(f"{name!r}: {name if name.isidentifier() else '...'}" for name in named)
        raise NeedsError(
            f"{path} rests on the Python function{'s' * (len(named) > 1)} {', '.join(named)}, of which a file keeps "
            f"the name alone: hand over the code in Python, metric = metricsmith.load({str(path)!r}, "
            f"functions={{{line}}}), and score there, metric.judge_batch(rows)"
        )
    for name, function in given.items():
        if name not in finders or not callable(function):
            CallableMetric.of(function)
    places = {place_name(name): str(place) for name, place in (local or {}).items()}
    hashes = {part["weights"] for part in parts if part["kind"] == "finetuned"}
    try:
        learned = {digest: read_weights(metric_file(path).parent, digest) for digest in sorted(hashes)}
        metric = _built(content, "", Given(given, places, learned))
    except StateError as problem:
        raise StateError(f"{path}: {problem}") from problem
    for said in code_listed(parts):
        notes.warning("%s", said)
    return metric


def from_state(
    state: Mapping[str, Any], functions: Functions | None = None, learned: Mapping[str, bytes] | None = None
) -> Metric:
    """Build a metric from its `to_state`, which is checked as a file is; `functions` as for `load`.

    `learned` has what trained metrics among its parts learned, `FinetunedMetric.trained.content` by ``.digest``.
    """
    check_state(state)
    metric: Metric = _built(state, "", Given(functions or {}, learned=learned or {}))
    return metric


def _built(state: Mapping[str, Any], path: str, given: Given) -> Any:
    """Build a checked state; a fault that only a constructor finds is an error of the same kind."""
    kind = state["kind"]
    if kind not in (*METRICS, "panel"):  # a panel is no metric itself, but what asks for several
        raise StateError(f"a {kind!r} is no metric; known are {', '.join(dict.fromkeys([*_READERS, *METRICS]))}")
    try:
        if kind in _READERS:
            return _READERS[kind](state, path, given)
        return judge_class(kind).from_state(state)
    except OptionError as problem:
        raise StateError(f"{path or kind}: {problem}") from problem


def _induced(state: Mapping[str, Any], path: str, given: Given) -> Metric:
    task = state["task"]
    components = [
        _built(component, f"{path}.components[{place}]".lstrip("."), given)
        for place, component in enumerate(state["components"])
    ]
    join_askers(components)
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


def _repeated(state: Mapping[str, Any], path: str, given: Given) -> Any:
    judge = _built(state["judge"], f"{path}.judge".lstrip("."), given)
    return judge_class(state["kind"]).from_state(state, judge)


def _function(state: Mapping[str, Any], _: str, given: Given) -> Metric:
    return CallableMetric.from_state(state, _code(state["name"], given))


def _code(name: str, given: Given) -> Callable[..., Any]:
    if name not in given.functions:
        raise NeedsError(
            f"a state holds the name of the function {name!r} alone: pass functions={{{name!r}: function}}"
        )
    return given.functions[name]


def _code_metric(state: Mapping[str, Any], _: str, __: Given) -> Metric:
    metric, given = CodeMetric.from_state(state), state["limits"]
    own = asdict(metric.limits)
    lowered = [f"{name} from {given[name]} to {own[name]}" for name in own if given.get(name, own[name]) != own[name]]
    if lowered:
        notes.warning("%s: limits of its file are lowered to ours: %s", metric.name, ", ".join(lowered))
    return metric


def _bank(state: Mapping[str, Any], _: str, given: Given) -> Metric:
    known = families()[state["name"]]
    place = given.local.get(known.model.name, "") if known.model else ""
    finder = _code(name, given) if (name := named_function(state)) else None
    return BankMetric(saved_family(known, state, place, finder), state["name"], state.get("statistics"))


def _finetuned(state: Mapping[str, Any], path: str, given: Given) -> Metric:
    if state["weights"] not in given.learned:
        raise StateError(
            f"{path or 'the state'}: a state holds the hash of learned weights alone: load the metric's file, or pass "
            "learned={metric.trained.digest: metric.trained.content}"
        )
    place = given.local.get(state["encoder"], "")
    return FinetunedMetric.from_state(state, given.learned[state["weights"]], place)


_READERS: dict[str, Callable[[Mapping[str, Any], str, Given], Any]] = {
    "induced": _induced,
    "bank": _bank,
    "callable": _function,
    "code": _code_metric,
    "column": lambda state, *_: ColumnMetric(state["name"]),
    "finetuned": _finetuned,
    "mqm_judge": _repeated,
    "repeated": _repeated,
}
