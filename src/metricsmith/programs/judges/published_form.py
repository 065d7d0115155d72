"""A template: the published texts of a trained form, read from the caller's file and kept as data with their hash."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from metricsmith.errors import OptionError, StateError
from metricsmith.metric import content_hash
from metricsmith.model_calls.trained_form import GAP
from metricsmith.programs import schema
from metricsmith.signatures.prometheus import FORMS

__all__ = ["TEMPLATE", "read_template"]

LARGEST_FILE = 100_000  # bytes
LONGEST = 20_000  # characters of one text


def read_template(path: str | PathLike[str], needed: Collection[str]) -> dict[str, Any]:
    """The texts of a Python file that assigns them to the names of `FORMS`; nothing in the file is run.

    Parameters
    ----------
    path : path
        Such as ``prompts.py`` of prometheus-eval. Anything but texts under known names is left out.
    needed : collection of str
        The names that must be there. Without a system sentence none is sent.

    Returns
    -------
    dict
        ``texts``, by name, and their ``hash``.

    Raises
    ------
    OptionError
        If the file cannot be read, lacks a text, or has one with other gaps than it must have.
    """
    try:
        with Path(path).open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
        if len(raw) > LARGEST_FILE:
            raise ValueError(f"it is larger than {LARGEST_FILE:,} bytes")
        found = [
            (target.id, line.value.value)
            for line in ast.parse(raw).body
            if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant)
            for target in line.targets
            if isinstance(target, ast.Name) and target.id in FORMS
        ]
        if strange := [name for name, text in found if not isinstance(text, str)]:
            raise ValueError(f"{strange[0]} is no text")
    except (OSError, SyntaxError, TypeError, ValueError, RecursionError, MemoryError) as problem:
        raise OptionError(
            f"template={str(path)!r:.200} cannot be read ({str(problem) or type(problem).__name__:.200}); name a "
            f"Python file that assigns texts to {', '.join(FORMS)}, such as prompts.py of prometheus-eval"
        ) from problem
    lacking = [name for name in needed if name not in dict(found)]
    if lacking:
        raise OptionError(
            f"template={str(path)!r:.200} has no text {' and no text '.join(lacking)}, which this judge needs"
        )
    template = {"texts": dict(found), "hash": content_hash(dict(found))}
    try:
        TEMPLATE(template, "template")
    except StateError as problem:
        raise OptionError(f"template={str(path)!r:.200} cannot be used: {problem}") from problem
    return template


def _whole(template: Mapping[str, Any]) -> None:
    """Raise unless every text has its gaps, each once and no others, and the hash is theirs."""
    for name, text in template["texts"].items():
        gaps, wanted = GAP.findall(text), set(GAP.findall(FORMS[name])) - {"rules"}
        if sorted(gaps) != sorted(wanted):
            shown = ", ".join(f"{{{gap:.40}}}" for gap in gaps[:10]) or "no gap"
            needed = ", ".join(f"{{{gap}}}" for gap in sorted(wanted)) or "none"
            raise OptionError(f"{name} has {shown}; it needs, each once and no others, {needed}")
    if template["hash"] != content_hash(template["texts"]):
        raise OptionError("the texts do not match their hash; make the judge again from the template's file")


TEMPLATE = schema.made(
    schema.keys(texts=schema.keys(dict.fromkeys(FORMS, schema.text(LONGEST, 1))), hash=schema.text(schema.NAME)),
    _whole,
)
