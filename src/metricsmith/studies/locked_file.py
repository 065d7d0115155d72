"""A file of lines to which one process appends, and from which an interrupted run goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from metricsmith.errors import DataError
from metricsmith.report.render import lock_for_writing

__all__ = ["LockedFile", "damaged"]


class LockedFile:
    """A file that other processes may not write to until it is closed: a header, and lines as they are made.

    Parameters
    ----------
    path : path
        Made, with its folder, where it does not exist.
    header : bytes
        Its first line; written where nothing is kept.
    read : callable
        Takes the content as it was found, and returns how many bytes of it are kept: whole lines, for one that a killed
        run was writing is not. An error of it leaves the file as it is.

    Attributes
    ----------
    anew : bool
        True where nothing was kept.

    Raises
    ------
    OptionError
        If another process is writing to it.
    """

    def __init__(self, path: Path, header: bytes, read: Callable[[bytes], int]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = path.open("a+b")
        try:
            lock_for_writing(self._stream, path)
            self._stream.seek(0)
            size = read(self._stream.read())
        except BaseException:
            self._stream.close()
            raise
        self._stream.truncate(size)
        self.anew = not size
        if self.anew:
            self.append(header)

    def append(self, line: bytes) -> None:
        """Write a line."""
        self._stream.write(line)
        self._stream.flush()

    def __exit__(self, *_: object) -> None:
        """Close it, for another process to write."""
        self._stream.close()


def damaged(path: Path, number: int, line: bytes, anew: str) -> DataError:
    """The error for a line that cannot be read; `anew` says what happens once it is gone."""
    seen = line[:40].decode(errors="replace")
    return DataError(f"{path}:{number}: is damaged ({seen}...): delete this line, whose {anew}")
