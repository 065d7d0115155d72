"""Numbers that took long to compute, by a key of everything that decides them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from metricsmith.errors import DataError
from metricsmith.stats.correlation import FloatArray

__all__ = ["Kept", "key_of", "taken"]


class Kept(Protocol):
    """Arrays of shape (m,) by the `key_of` what they were computed from: a dict, or a file that outlives the run."""

    def __contains__(self, key: str, /) -> bool: ...

    def __getitem__(self, key: str, /) -> FloatArray: ...

    def __setitem__(self, key: str, numbers: FloatArray, /) -> None: ...


MOST = 1e100  # squares of numbers are added up


def key_of(*parts: object) -> str:
    """A checksum of arrays, by shape and every bit, and of other things by their `repr`."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            found.update(f"{part.dtype} {part.shape} ".encode())
            found.update(np.ascontiguousarray(part).tobytes())
        else:
            found.update(repr(part).encode())
        found.update(b"\n")
    return found.hexdigest()


def taken(kept: Kept, key: str, least: int, most: int, counts: Sequence[int] = ()) -> FloatArray:
    """The numbers of a key, from `least` to `most` of them: a file may hold what no run has written.

    Raises
    ------
    DataError
        If there are fewer or more, one is too great for a sum, or those at the places `counts` count nothing.
    """
    found = kept[key]
    whole = found[list(counts)] if least <= found.size <= most else np.array([np.nan])
    if not ((whole >= 0) & (whole % 1 == 0)).all() or (np.abs(found) > MOST).any():
        raise DataError(
            f"kept numbers are not what was computed (key {key[:16]}...): delete their file, suite_kept.jsonl of this "
            f"run or of the one that was joined, and let them be computed anew"
        )
    return found
