"""The file that a metric becomes, and the hashes by which it names the rated rows that it learned from."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import dspy

from metricsmith.metric import content_hash, row_text
from metricsmith.version import __version__

__all__ = ["SCHEMA_VERSION", "metric_file", "row_hash", "state_hash", "write_state"]

SCHEMA_VERSION = 1
METRIC_FILE = "metric.json"  # in a folder
LONG = 8  # words from which an output is known by itself; a shorter one may answer many inputs


def metric_file(path: str | PathLike[str]) -> Path:
    """The file itself, or ``metric.json`` of a folder."""
    source = Path(path)
    return source / METRIC_FILE if source.is_dir() else source


def write_state(state: Mapping[str, Any], path: str | PathLike[str]) -> None:
    """Write a state with schema version and hash as one JSON file, whole or not at all."""
    content = {"schema_version": SCHEMA_VERSION, "versions": {"metricsmith": __version__}, **state}
    content["hash"] = state_hash(content)
    target = metric_file(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.write_text(json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False), "utf-8")
    temporary.replace(target)


def state_hash(content: Mapping[str, Any]) -> str:
    """The hash that a file's content must have."""
    return content_hash({key: value for key, value in content.items() if key != "hash"})


def row_hash(row: dspy.Example) -> str:
    """16 hex digits by which a row is known again: of its output, of a short one with its input; blanks do not count.

    References, context and the names of columns play no part: a judge may have been tuned on another table. Empty for a
    row without output.
    """
    if not row.get("output"):
        return ""
    text = row_text(row)
    words = text.output.split()
    return content_hash("learned", words, [] if len(words) >= LONG else text.input.split())
