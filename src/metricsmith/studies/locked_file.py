"""A file of lines to which one process appends, and from which an interrupted run goes on."""

from __future__ import annotations

from pathlib import Path

from metricsmith.report.render import lock_for_writing

__all__ = ["LockedFile"]


class LockedFile:
    """The content of a file, and lines that are appended to it as they are made.

    Parameters
    ----------
    path : path
        Made, with its folder, where it does not exist.

    Attributes
    ----------
    content : bytes
        Of the file as it was found. What follows its last line break was being written when a run was killed.

    Raises
    ------
    OptionError
        If another process is writing to it.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = path.open("a+b")
        try:
            lock_for_writing(self._stream, path)
            self._stream.seek(0)
            self.content = self._stream.read()
        except BaseException:
            self._stream.close()
            raise

    def keep(self, size: int, header: bytes) -> None:
        """Keep so many bytes of it, whole lines; where that is nothing, begin with a header."""
        self._stream.truncate(size)
        if not size:
            self.append(header)

    def append(self, line: bytes) -> None:
        """Write a line."""
        self._stream.write(line)
        self._stream.flush()

    def close(self) -> None:
        """Close it, for another process to write."""
        self._stream.close()
