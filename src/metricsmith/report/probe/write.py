"""Write a finished probe into a folder, each file whole or not at all."""

from __future__ import annotations

from os import PathLike

from metricsmith.report.probe.markdown import render_probe_markdown
from metricsmith.report.probe.page import render_probe_html
from metricsmith.report.probe.record import ProbeRecord
from metricsmith.report.write import write_rendered

__all__ = ["PROBE_FILES", "write_probe"]

PROBE_FILES = ("probe.html", "probe.md", "probe.json")


def write_probe(record: ProbeRecord, folder: str | PathLike[str]) -> None:
    """Write ``probe.html``, ``probe.md`` and ``probe.json``.

    Parameters
    ----------
    record : ProbeRecord
    folder : path
        Made if it does not exist.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    write_rendered(record, folder, "probe", render_probe_html, render_probe_markdown)
