"""Kept numbers in a file that outlives the run which made them."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock

import numpy as np

from metricsmith.errors import DataError
from metricsmith.stats.correlation import FloatArray
from metricsmith.studies.locked_file import LockedFile, damaged

__all__ = ["KeptFile"]

HEADER = b'{"format": "metricsmith kept numbers", "schema_version": 1}\n'


class KeptFile(LockedFile, AbstractContextManager["KeptFile"]):
    """Arrays by key, each appended to a file as it is made; a `metricsmith.meta_evaluation.kept.Kept`.

    Numbers come back to the last bit, so that a run that was killed gives the same table when it is started again. A
    line that was being written then is dropped. Threads may share a file, processes may not.

    Parameters
    ----------
    path : path
        Made, with its folder, where it does not exist.
    also : sequence of path
        Files of other runs, which are read alone. A number that is asked for there is written here, too: this file
        holds all that its run rests on.

    Raises
    ------
    DataError
        If a file holds anything else, or a line is damaged.
    OptionError
        If another process is writing to `path`.
    """

    def __init__(self, path: Path, also: Sequence[Path] = ()) -> None:
        self._elsewhere = {key: found for other in also for key, found in _read(other, other.read_bytes())[0].items()}
        self._lock, self._own = Lock(), dict[str, FloatArray]()

        def read(content: bytes) -> int:
            self._own, whole = _read(path, content)
            return whole

        super().__init__(path, HEADER, read)

    def __contains__(self, key: str) -> bool:
        """True where there are numbers of this key."""
        return key in self._own or key in self._elsewhere

    def __getitem__(self, key: str) -> FloatArray:
        """Returns the numbers of this key."""
        with self._lock:
            if key not in self._own:
                self._write(key, self._elsewhere[key])
            return self._own[key]

    def __setitem__(self, key: str, numbers: FloatArray) -> None:
        """Append numbers, shape (m,), under a key."""
        with self._lock:
            self._write(key, np.array(numbers, dtype="<f8"))

    def _write(self, key: str, numbers: FloatArray) -> None:
        content = numbers.tobytes()
        told = {"key": key, "float64": base64.b64encode(content).decode(), "crc32": zlib.crc32(content)}
        self.append(json.dumps(told).encode() + b"\n")
        self._own[key] = numbers


def _read(path: Path, content: bytes) -> tuple[dict[str, FloatArray], int]:
    """The numbers of a file, and how many bytes of it are whole lines."""
    whole = content.rfind(b"\n") + 1
    if not (content.startswith(HEADER) or (not whole and HEADER.startswith(content))):
        raise DataError(f"{path}:1: holds no kept numbers of this version: name another file, or delete it")
    found: dict[str, FloatArray] = {}
    for number, line in enumerate(content[:whole].splitlines()[1:], 2):
        try:
            told = json.loads(line)
            numbers = base64.b64decode(told["float64"], validate=True)
            key, sound = str(told["key"]), zlib.crc32(numbers) == told["crc32"] and len(numbers) % 8 == 0
        except (ValueError, KeyError, TypeError, RecursionError):
            sound = False
        if not sound:
            raise damaged(path, number, line, "numbers are then computed anew")
        found[key] = np.frombuffer(numbers, dtype="<f8")
    return found, whole
