"""Write a finished comparison into a folder, each file whole or not at all."""

from __future__ import annotations

import json
from os import PathLike

from metricsmith.report.comparison.markdown import render_comparison_markdown
from metricsmith.report.comparison.page import render_comparison_html
from metricsmith.report.comparison.record import Comparison
from metricsmith.report.write import write_files

__all__ = ["COMPARISON_FILES", "write_comparison"]

COMPARISON_FILES = ("compare.html", "compare.md", "compare.json")


def write_comparison(record: Comparison, folder: str | PathLike[str]) -> None:
    """Write ``compare.html``, ``compare.md`` and ``compare.json``.

    Parameters
    ----------
    record : Comparison
    folder : path
        Made if it does not exist.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    contents = (
        render_comparison_html(record),
        render_comparison_markdown(record),
        json.dumps(record.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n",
    )
    write_files(dict(zip(COMPARISON_FILES, contents, strict=True)), folder)
