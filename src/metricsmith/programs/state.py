"""State as data: settings that DSPy's own save carries along, and the one file that a metric becomes.

`dspy.Module.save` keeps only what `named_parameters` finds, so a module's configuration is lost and a
loaded judge would keep the loader's criterion. Holding the configuration in a parameter mends that,
also for a judge deep inside somebody else's program.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import dspy
from dspy.predict.parameter import Parameter

from metricsmith.errors import StateError
from metricsmith.metric import content_hash
from metricsmith.programs.texts import marked_anew
from metricsmith.scoring.plan import as_before
from metricsmith.version import __version__

__all__ = ["SCHEMA_VERSION", "Settings", "module_fingerprint", "read_state", "write_state"]

SCHEMA_VERSION = 1


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
        """The values; `json_mode` is DSPy's and changes nothing here."""
        return dict(self.values)

    def load_state(self, state: dict[str, Any]) -> None:
        """Replace the values by saved ones."""
        self.values = dict(state)

    def reset(self) -> None:
        """Settings are not learned: DSPy's reset leaves them alone."""


def module_fingerprint(module: dspy.Module, *parts: Any) -> str:
    """A hash of all that changes what a module of ours asks: state, predictors' settings, and a class of the user's.

    The language model is not in it: who asks puts it beside.
    """
    state: Any = {
        name: {**values, "lm": None} if isinstance(values, Mapping) and "lm" in values else values
        for name, values in module.dump_state().items()
    }
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


def write_state(state: Mapping[str, Any], path: str | PathLike[str]) -> None:
    """Write a state with schema version and hash as one JSON file, whole or not at all."""
    content = {"schema_version": SCHEMA_VERSION, "versions": {"metricsmith": __version__}, **state}
    content["hash"] = _hash(content)
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.write_text(json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False), "utf-8")
    temporary.replace(target)


def read_state(path: str | PathLike[str]) -> dict[str, Any]:
    """Read what `write_state` wrote.

    Raises
    ------
    StateError
        If the file cannot be read, is of another schema version, or does not match its hash.
    """
    source = Path(path)
    try:
        content = json.loads(source.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as problem:
        raise StateError(
            f"{source} is not a readable metric file ({problem}); name the metric.json that `metricsmith induce` wrote"
        ) from problem
    if not isinstance(content, dict) or "kind" not in content:
        raise StateError(f"{source} is not a metric file: it has no 'kind'; `metricsmith induce` writes one")
    if content.get("schema_version") != SCHEMA_VERSION:
        raise StateError(
            f"{source} has schema version {content.get('schema_version')!r}; this version reads {SCHEMA_VERSION}"
        )
    if content.get("hash") != _hash(content):
        raise StateError(f"{source} does not match its own hash: it was cut off or changed; induce the metric again")
    return content


def _hash(content: Mapping[str, Any]) -> str:
    return content_hash({key: value for key, value in content.items() if key != "hash"})
