"""Write a finished run into a folder, each file whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from metricsmith.report.induction.markdown import render_markdown
from metricsmith.report.page import render_html
from metricsmith.report.record import RunRecord
from metricsmith.report.tables import render_json, render_scores

__all__ = ["replace_file", "write_files", "write_rendered", "write_reports"]


def write_reports(record: RunRecord, folder: str | PathLike[str], *, raw_csv: bool = False) -> None:
    """Write ``report.html``, ``report.md``, ``report.json`` and ``scores.csv``.

    All four are rendered before the first is written, and each replaces its predecessor in one step, so a
    reader never meets half a file.

    Parameters
    ----------
    record : RunRecord
        The finished run.
    folder : path
        Made if it does not exist.
    raw_csv : bool
        Write texts that a spreadsheet would run as they are.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    contents = {
        "report.html": render_html(record),
        "report.md": render_markdown(record),
        "report.json": render_json(record),
        "scores.csv": render_scores(record, raw_csv=raw_csv),
    }
    write_files(contents, folder)


def write_files(contents: Mapping[str, str], folder: str | PathLike[str]) -> None:
    """Write finished texts by file name into a folder, which is made if it does not exist.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        replace_file(target / name, content)


def write_rendered(
    record: Any, folder: str | PathLike[str], stem: str, html: Callable[[Any], str], markdown: Callable[[Any], str]
) -> None:
    """Write a record that has `as_dict` as ``stem.html``, ``stem.md`` and ``stem.json``, all rendered before the first.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    content = json.dumps(record.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_files({f"{stem}.html": html(record), f"{stem}.md": markdown(record), f"{stem}.json": content}, folder)


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
