"""Write a finished comparison into a folder, each file whole or not at all."""

from __future__ import annotations

from os import PathLike

from metricsmith.report.comparison.markdown import render_comparison_markdown
from metricsmith.report.comparison.page import render_comparison_html
from metricsmith.report.comparison.record import Comparison
from metricsmith.report.write import write_rendered

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
    write_rendered(record, folder, "compare", render_comparison_html, render_comparison_markdown)
