"""Write a finished meta-evaluation into a folder, each file whole or not at all."""

from __future__ import annotations

from os import PathLike

from metricsmith.report.meta_evaluation.markdown import render_meta_evaluation_markdown
from metricsmith.report.meta_evaluation.page import render_meta_evaluation_html
from metricsmith.report.meta_evaluation.record import MetaEvaluation
from metricsmith.report.write import write_rendered

__all__ = ["META_EVALUATION_FILES", "write_meta_evaluation"]

META_EVALUATION_FILES = ("meta_evaluation.html", "meta_evaluation.md", "meta_evaluation.json")


def write_meta_evaluation(record: MetaEvaluation, folder: str | PathLike[str]) -> None:
    """Write ``meta_evaluation.html``, ``meta_evaluation.md`` and ``meta_evaluation.json``.

    Parameters
    ----------
    record : MetaEvaluation
    folder : path
        Made if it does not exist.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    write_rendered(record, folder, "meta_evaluation", render_meta_evaluation_html, render_meta_evaluation_markdown)
