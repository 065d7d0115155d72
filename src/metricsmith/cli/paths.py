"""Whether results can be written, found out before any work."""

from __future__ import annotations

import os
from pathlib import Path

from metricsmith.errors import OptionError

__all__ = ["check_writable"]


def check_writable(path: Path, option: str, *, folder: bool) -> None:
    """Refuse a place that cannot be written to.

    Parameters
    ----------
    path : Path
        A folder (made if it is not there) or a file.
    option : str
        What the caller called it, for the error.
    folder : bool
        Whether `path` is meant to be a folder.

    Raises
    ------
    OptionError
        If it is of the wrong kind, or the nearest existing folder above it is not writable.
    """
    if path.exists() and path.is_dir() != folder:
        raise OptionError(
            f"{option} {path} is a {'file' if folder else 'folder'}; name a {'folder' if folder else 'file'}"
        )
    above = path if folder else path.parent
    while not above.exists():
        above = above.parent
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise OptionError(f"{option} {path} cannot be written: {above} is not a writable folder; name another place")
    if not folder and not path.parent.exists():
        raise OptionError(f"{option} {path} cannot be written: there is no folder {path.parent}; make it first")
