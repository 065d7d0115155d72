"""The files of a report, each written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from metricsmith.report.blocks import Document
from metricsmith.report.html import render_html
from metricsmith.report.markdown import render_markdown

__all__ = ["render_json", "replace_file", "write_document"]


def render_json(record: Any) -> str:
    """`as_dict` of a record as indented JSON that every parser reads: no NaN, keys in the record's order."""
    return json.dumps(record.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_document(
    document: Document[Any], folder: str | PathLike[str], others: Mapping[str, str] | None = None
) -> None:
    """Write a document as HTML, Markdown and JSON, named by its `stem`, and `others`, finished texts by file name.

    All are rendered before the first is written, and each replaces its predecessor in one step, so that a reader never
    meets half a file. The folder is made if it does not exist.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    contents = {
        f"{document.stem}.html": render_html(document),
        f"{document.stem}.md": render_markdown(document),
        f"{document.stem}.json": render_json(document.record),
        **(others or {}),
    }
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        replace_file(target / name, content)


def replace_file(path: Path, content: str) -> None:
    """Write `content` whole or not at all."""
    # A lone surrogate has no UTF-8 form; an escape is valid inside JSON and visible elsewhere.
    encoded = content.encode("utf-8", "backslashreplace")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        unfinished.write_bytes(encoded)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
