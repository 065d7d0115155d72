"""The cells of a grid that have ended, in a file from which the grid goes on."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from metricsmith.errors import DataError, OptionError
from metricsmith.formats import enumerated, jsonable
from metricsmith.records import Usage
from metricsmith.stats.resampling import Interval
from metricsmith.studies.ablation.runs import CellRun
from metricsmith.studies.locked_file import LockedFile

__all__ = ["JOURNAL", "CellKey", "Journal", "cell_key"]

JOURNAL = "cells.jsonl"
FORMAT, SCHEMA_VERSION = "metricsmith grid of inductions", 1
CellKey = tuple[str, int, int, str]  # data, learning rows, seed, label of the setting


def cell_key(run: CellRun) -> CellKey:
    """The place of a cell in its grid."""
    return run.data, run.rows, run.seed, run.setting


class Journal(AbstractContextManager["Journal"]):
    """A line for each cell, written as it ends, below one that says which grid they are of.

    Predictions and figures come back to the last bit. A line that was being written when a run was killed is dropped;
    its cell is run again, and so is one that failed. Other processes may not write to the file meanwhile.

    Parameters
    ----------
    path : path
        Made, with its folder, where it does not exist.
    run : mapping of str to object
        Everything on which the cells depend, by its name; JSON-ready.
    force : bool
        Begin anew whatever cells of a grid are there.

    Attributes
    ----------
    ended : dict of CellKey to CellRun
        Those found there that did not fail, and those that were added.

    Raises
    ------
    DataError
        If the file holds anything else, or a line is damaged.
    OptionError
        If its cells are of another run, or another process is writing to it.
    """

    def __init__(self, path: Path, run: Mapping[str, object], *, force: bool = False) -> None:
        told = {"format": FORMAT, "schema_version": SCHEMA_VERSION, "run": run}
        header = json.dumps(told).encode() + b"\n"
        self._path, self._file = path, LockedFile(path)
        try:
            content = self._file.content
            whole = content.rfind(b"\n") + 1
            lines = content[:whole].splitlines()
            if content and not (lines or header.startswith(content)):
                raise _foreign(path)
            if lines:
                found = _header(path, lines[0])
                if force:
                    lines, whole = [], 0
                elif found != json.loads(header):
                    raise OptionError(_another(path, found, json.loads(header)))
            cells = [_cell(path, number, line) for number, line in enumerate(lines[1:], 2)]
            self.ended = {cell_key(cell): cell for cell in cells}
            self.ended = {key: cell for key, cell in self.ended.items() if cell.status != "failed"}
            self._file.keep(whole, header)
        except BaseException:
            self._file.close()
            raise

    def add(self, run: CellRun) -> None:
        """Append a cell that has ended."""
        cell = jsonable(asdict(run))
        line = json.dumps({"cell": cell, "crc32": zlib.crc32(_packed(cell))}).encode()
        self._file.append(line + b"\n")
        self.ended[cell_key(run)] = _cell(self._path, 0, line)  # as a run that goes on from here will read it

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()


def _packed(cell: object) -> bytes:
    return json.dumps(cell, separators=(",", ":")).encode()


def _foreign(path: Path) -> DataError:
    return DataError(f"{path}:1: holds no cells of a grid: name another folder with --out, or delete the file")


def _header(path: Path, line: bytes) -> Any:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise _foreign(path)
    return told


def _another(path: Path, found: Any, wanted: Any) -> str:
    """The words on cells of another run: what differs, and what to do."""
    ours, theirs = wanted["run"], found.get("run") if isinstance(found.get("run"), dict) else {}
    other = [name for name in ours if theirs.get(name) != ours[name]] or ["schema_version"]
    return (
        f"{path.parent} holds cells of another run, which differs in {enumerated(other)}: name another folder with "
        "--out, or begin anew there with --force (force=True)"
    )


def _cell(path: Path, number: int, line: bytes) -> CellRun:
    """The cell of a line."""
    try:
        told = json.loads(line)
        cell = told["cell"]
        if zlib.crc32(_packed(cell)) != told["crc32"]:
            raise ValueError
        return CellRun(
            **{
                **{name: tuple(value) if isinstance(value, list) else value for name, value in cell.items()},
                "values": tuple(tuple(map(_number, values)) for values in cell["values"]),
                "tau": _number(cell["tau"]),
                "interval": Interval(**{name: _number(end) for name, end in cell["interval"].items()}),
                "gains": {name: _number(gain) for name, gain in cell["gains"].items()},
                "usage": Usage(**cell["usage"]),
            }
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(
            f"{path}:{number}: is damaged ({line[:40].decode(errors='replace')}...): delete this line, whose cell is "
            "then run again"
        ) from None


def _number(value: Any) -> Any:
    return math.nan if value is None else value
