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
from metricsmith.studies.ablation.runs import CellKey, CellRun
from metricsmith.studies.locked_file import LockedFile, damaged

__all__ = ["JOURNAL", "Journal"]

JOURNAL = "cells.jsonl"
FORMAT, SCHEMA_VERSION = "metricsmith grid of inductions", 1


class Journal(LockedFile, AbstractContextManager["Journal"]):
    """A line for each cell, written as it ends, below one that says which grid they are of.

    Predictions and figures come back to the last bit. A line that was being written when a run was killed is dropped;
    its cell is run again, and so is one that is not `CellRun.final`. Other processes may not write to it meanwhile.

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
        Those found there that are final, and those that were added.
    spent : Usage
        Of all lines: attempts at a cell that was run again count too.

    Raises
    ------
    DataError
        If the file holds anything else, or a line is damaged.
    OptionError
        If its cells are of another run, or another process is writing to it.
    """

    def __init__(self, path: Path, run: Mapping[str, object], *, force: bool = False) -> None:
        told = jsonable({"format": FORMAT, "schema_version": SCHEMA_VERSION, "run": run})
        header = json.dumps(told).encode() + b"\n"
        self.ended, self.spent, self._path = dict[CellKey, CellRun](), Usage(), path

        def read(content: bytes) -> int:
            whole = content.rfind(b"\n") + 1
            if not whole and header.startswith(content):
                return 0
            first, *lines = content[:whole].splitlines() or [b""]
            found = _header(path, first)
            if force:
                return 0
            if found != told:
                theirs: Any = found["run"] if isinstance(found.get("run"), dict) else {}
                other = [name for name in run if theirs.get(name) != told["run"][name]] or ["schema_version"]
                raise OptionError(
                    f"{path.parent} holds cells of another run, which differs in {enumerated(other)}: name another "
                    "folder with --out, or begin anew there with --force (force=True)"
                )
            cells = [_cell(path, *numbered) for numbered in enumerate(lines, 2)]
            self.ended = {cell.key: cell for cell in cells if cell.final}
            self.spent = sum((cell.usage for cell in cells), Usage())
            return whole

        super().__init__(path, header, read)

    def add(self, run: CellRun) -> None:
        """Append a cell that has ended."""
        cell = jsonable(asdict(run))
        line = json.dumps({"cell": cell, "crc32": _checksum(cell)}).encode() + b"\n"
        self.append(line)
        self.spent += run.usage
        self.ended[run.key] = _cell(self._path, 0, line)  # as a run that goes on from here will read it


def _checksum(cell: object) -> int:
    return zlib.crc32(json.dumps(cell, separators=(",", ":")).encode())


def _header(path: Path, line: bytes) -> dict[str, Any]:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise DataError(f"{path}:1: holds no cells of a grid: name another folder with --out, or delete the file")
    return told


def _cell(path: Path, number: int, line: bytes) -> CellRun:
    """The cell of a line."""
    try:
        told = json.loads(line)
        cell = told["cell"]
        if _checksum(cell) != told["crc32"]:
            raise ValueError
        usage = Usage(**cell.pop("usage"))  # whose None is an unknown price
        found = {name: _revived(value) for name, value in cell.items()}
        return CellRun(**{**found, "interval": Interval(**found["interval"]), "usage": usage})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise damaged(path, number, line, "cell is then run again") from None


def _revived(value: Any) -> Any:
    """A value as a record has it: lists as tuples, null as NaN."""
    if isinstance(value, list):
        return tuple(map(_revived, value))
    if isinstance(value, dict):
        return {name: _revived(one) for name, one in value.items()}
    return math.nan if value is None else value
