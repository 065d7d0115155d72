"""Write a finished probe into a folder, each file whole or not at all."""

from __future__ import annotations

import json
from os import PathLike

from metricsmith.report.probe.markdown import render_probe_markdown
from metricsmith.report.probe.page import render_probe_html
from metricsmith.report.probe.record import ProbeRecord
from metricsmith.report.write import write_files

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
    contents = (
        render_probe_html(record),
        render_probe_markdown(record),
        json.dumps(record.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n",
    )
    write_files(dict(zip(PROBE_FILES, contents, strict=True)), folder)
