"""State as data: settings that DSPy's own save carries along, and the one file that a metric becomes.

`dspy.Module.save` keeps only what `named_parameters` finds, so a module's configuration is lost and a
loaded judge would keep the loader's criterion. Holding the configuration in a parameter mends that,
also for a judge deep inside another program.
"""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

import dspy
from dspy.predict.parameter import Parameter

from metricsmith.bank.models.finetuned import FinetunedMetric
from metricsmith.errors import StateError
from metricsmith.metric import content_hash, marked_anew
from metricsmith.programs.kinds import DEEPEST, LARGEST_FILE, LARGEST_PLAIN, OWN_KEYS, check_file
from metricsmith.programs.schema import predictor
from metricsmith.programs.specialist.examples import ROW_EXAMPLES, RowExamples
from metricsmith.saving import SCHEMA_VERSION, metric_file, state_hash, write_state
from metricsmith.scoring.plan import as_before

__all__ = [
    "Saved", "Settings", "module_fingerprint", "module_state", "other_model", "prompt_version",
    "read_state", "state_parts",
]  # fmt: skip

PROMPT_VERSION = 2  # raise it when the way that texts are shown changes, so that fingerprints change too
MOST_DIGITS = 400
_log = logging.getLogger(__name__)
_compared: set[tuple[str, str]] = set()  # models that were told apart already
_comparing = threading.Lock()


def prompt_version() -> int:
    """The version in fingerprints; the one before while judgements of that time are looked for."""
    return PROMPT_VERSION - as_before.get()


class Settings(Parameter):  # type: ignore[misc]
    """JSON-ready values, readable as attributes, saved and loaded with the module that holds them."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("values", {})
        if name in values:
            return values[name]
        raise AttributeError(name)

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        """The values, a specialist's history as data; `json_mode` is DSPy's and changes nothing here."""
        return {
            name: value.to_state() if isinstance(value, RowExamples) else value for name, value in self.values.items()
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Replace the values by saved ones."""
        self.values = dict(state)
        if ROW_EXAMPLES in state:
            self.values[ROW_EXAMPLES] = RowExamples.from_state(state[ROW_EXAMPLES])

    def reset(self) -> None:
        """Settings are not learned: DSPy's reset leaves them alone."""


def module_state(module: dspy.Module) -> dict[str, Any]:
    """DSPy's state of a module, with nothing of its predictors that they do not say to a model.

    No model, no trace, and of a demonstration (DSPy's optimisers take whole training rows) the signature's fields.
    """
    state: dict[str, Any] = module.dump_state()
    for name, own in module.named_predictors():
        fields = own.signature.fields
        demos = [
            {key: value for key, value in demo.items() if key in fields or (key == "augmented" and value is True)}
            for demo in state[name]["demos"]
        ]
        signature = state[name]["signature"]
        state[name] = {"traces": [], "train": [], "demos": demos, "signature": signature, "lm": None}
    return state


def module_fingerprint(module: dspy.Module, *parts: Any) -> str:
    """A hash of all that changes a module's requests: state, predictors' settings, and the class if it is the user's.

    The language model is not in it: the scoring engine puts it beside.
    """
    state: Any = module_state(module)
    for name, own in module.named_parameters():
        if isinstance(own, Settings) and ROW_EXAMPLES in own.values:  # megabytes, whose hash is known
            state[name] = {**state[name], ROW_EXAMPLES: own.values[ROW_EXAMPLES].fingerprint}
    settings = {name: predictor.config for name, predictor in module.named_predictors() if predictor.config}
    if as_before.get():
        state = _marked_as_before(state)
    own = f"{type(module).__module__}.{type(module).__qualname__}"
    return content_hash(*parts, state, settings, "" if own.startswith("metricsmith.") else own)


def _marked_as_before(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _marked_as_before(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_marked_as_before(part) for part in value]
    return marked_anew(value, as_before=True)


class Saved(dspy.Module):  # type: ignore[misc]
    """A metric that becomes one file. Inside another program DSPy keeps its state as it keeps any module's.

    Attributes
    ----------
    made_with : dict of str to Any
        Provenance: under ``model`` the name of the model that a metric was induced with, or was set to when it was
        saved; under ``learned_from`` hashes of the rated rows that it learned from (`metricsmith.programs.learned`);
        under ``imitates`` the metric whose scores stood in for ratings (`metricsmith.tuning.distil`). It is compared or
        shown, never used, and in no fingerprint.
    """

    made_with: Mapping[str, Any] = MappingProxyType({})

    def to_state(self) -> dict[str, Any]:
        """JSON-ready state with its ``kind``; no model and no key."""
        raise NotImplementedError

    def provenance(self) -> dict[str, Any]:
        """The part of a state about the model that this metric's own predictor is set to, or was when it was saved."""
        model = getattr(getattr(getattr(self, "judge", None), "lm", None), "model", None)
        known = {**self.made_with, **({} if model is None else {"model": str(model)})}
        return {"made_with": known} if known else {}

    def save(self, path: str | PathLike[str], **dspy_options: Any) -> None:
        """Write one JSON that `metricsmith.load` reads; with options, or where `path` ends in .pkl, DSPy's own save.

        The weights of trained metrics among its components lie beside it, each as ``<sha256>.safetensors``.

        Parameters
        ----------
        path : path
            A file, or a folder that is to have a ``metric.json``.
        """
        if dspy_options or Path(path).suffix == ".pkl":
            super().save(path, **dspy_options)
        else:
            for part in _trained_parts(self):
                part.write_weights(path)
            write_state(self.to_state(), path)

    def load(self, path: str | PathLike[str], **dspy_options: Any) -> None:
        """Read what `save` wrote of a metric built in the same way; with options, or a .pkl, DSPy's own load.

        Raises
        ------
        StateError
            If the file cannot be read, holds what is not allowed, or is of a metric that was built otherwise.
        """
        if dspy_options or Path(path).suffix == ".pkl":
            super().load(path, **dspy_options)
            return
        content = _parsed(metric_file(path))[0]
        if "kind" not in content and "metadata" in content:  # DSPy's own form, which versions before this one wrote
            for name, own in self.named_predictors():
                predictor(own.signature)(content.get(name), name)
            super().load(path)
            return
        saved, own = dict(state_parts(read_state(path))), dict(state_parts(self.to_state()))
        if {place: _build(part) for place, part in saved.items()} != {
            place: _build(part) for place, part in own.items()
        }:
            raise StateError(f"{path} holds a metric that was built in another way; use metricsmith.load(path)")
        self.load_state(
            {f"{place}{name}": value for place, part in saved.items() for name, value in _own(part).items()}
        )
        for name, module in self.named_sub_modules(Saved):
            part = saved[f"{name}.".removeprefix("self.")]
            module.made_with = part.get("made_with", {})


def _trained_parts(metric: Any) -> Iterator[FinetunedMetric]:
    if isinstance(metric, FinetunedMetric):
        yield metric
    for part in getattr(metric, "components", ()):
        yield from _trained_parts(part)


def state_parts(state: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A metric's state and those of its parts, each under the beginning of its parameters' names."""
    yield place, state
    inner = {"judge.": state.get("judge"), "asker.": state.get("panel")}
    for several in ("judges", "components"):
        inner |= {f"{several}[{number}].": part for number, part in enumerate(state.get(several, ()))}
    for name, part in inner.items():
        if part is not None:
            yield from state_parts(part, place + name)


def _build(state: Mapping[str, Any]) -> Any:
    """The part of a state that must be equal for one metric to take another's: the kind, and all without parameters."""
    return state if state["kind"] in ("bank", "callable", "code", "column", "finetuned") else state["kind"]


def _own(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters of a metric without those of its parts, as DSPy names them."""
    if "state" in state:
        return dict(state["state"])
    aside = ("kind", "components", "panel", "made_with", *OWN_KEYS)
    return {"settings": state.get("settings") or {key: value for key, value in state.items() if key not in aside}}


def other_model(metric: Saved, own: Any = None) -> str:
    """A sentence if a metric was made with one model and is used with another, `own` or the one in force; else none.

    It is given once in a process for two models, and logged as a warning.
    """
    made, used = metric.made_with.get("model"), getattr(own or dspy.settings.lm, "model", None)
    if not made or not used or made == used:
        return ""
    with _comparing:
        if (made, used) in _compared:
            return ""
        _compared.add((made, used))
    note = f"the metric was made with the model {made} and is used with {used}: its numbers may differ"
    _log.warning("%s", note)
    return note


def read_state(path: str | PathLike[str], kind: str = "", called: str = "") -> dict[str, Any]:
    """Read what `write_state` wrote, in a file or a folder's metric.json, and check it against its kind's row.

    Parameters
    ----------
    path : path
    kind, called : str
        The only kind that is wanted, and its name in the error about another; by default any is.

    Raises
    ------
    StateError
        If the file cannot be read, is of another schema version, does not match its hash, or holds anything that
        `metricsmith.programs.schema` does not allow, with the path of that in the file.
    """
    source = metric_file(path)
    content, size = _parsed(source)
    if "kind" not in content:
        raise StateError(
            f"{source} is not a metric file: it has no 'kind'; `metricsmith induce` writes one, and so does a judge's "
            "save. What DSPy's save wrote goes into a judge built in the same way: judge.load(path)"
        )
    if content.get("schema_version") != SCHEMA_VERSION:
        raise StateError(
            f"{source} has schema version {content.get('schema_version')!r:.60}; this version reads {SCHEMA_VERSION}"
        )
    if content.get("hash") != state_hash(content):
        raise StateError(f"{source} does not match its own hash: it was cut off or changed; induce the metric again")
    if kind and content["kind"] != kind:
        raise StateError(f"{source} holds a {content['kind']!r:.60}, not {called}")
    try:
        check_file(content, size)
    except StateError as problem:
        raise StateError(f"{source}: {problem}") from problem
    return content


def _parsed(source: Path) -> tuple[dict[str, Any], int]:
    """The object in a file, and the file's size in bytes; JSON without NaN, endless numbers, depths and double keys."""
    try:
        with source.open("rb") as file:
            raw, most = file.read(LARGEST_PLAIN + 1), LARGEST_PLAIN
            if b'"history"' in raw:
                most = LARGEST_FILE
                raw += file.read(most + 1 - len(raw))
        if len(raw) > most:
            raise ValueError(f"it is larger than {most:,} bytes")
        content = json.loads(
            raw.decode("utf-8"), parse_int=_whole, parse_float=_real, parse_constant=_real, object_pairs_hook=_unique
        )
        level, depth = [content], 0
        while level := [
            part
            for one in level
            for part in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
        ]:
            depth += 1
            if depth > DEEPEST:
                raise RecursionError
    except (OSError, ValueError, RecursionError) as problem:
        why = f"it is more than {DEEPEST} levels deep" if isinstance(problem, RecursionError) else problem
        raise StateError(
            f"{source} is not a readable metric file ({why}); name the metric.json that `metricsmith induce` wrote"
        ) from problem
    if not isinstance(content, dict):
        raise StateError(f"{source} is not a metric file: it has no 'kind'; `metricsmith induce` writes one")
    return content, len(raw)


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits")
    return int(digits)


def _real(digits: str) -> float:
    if len(digits) > MOST_DIGITS or not math.isfinite(float(digits)):
        raise ValueError(f"{digits:.20} is no finite number")
    return float(digits)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return members
