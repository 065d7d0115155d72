"""Numbers that took long to compute, by a key of everything that decides them."""

from __future__ import annotations

import hashlib
from typing import Protocol

import numpy as np

from metricsmith.stats.correlation import FloatArray

__all__ = ["Kept", "key_of"]


class Kept(Protocol):
    """Arrays of shape (m,) by the `key_of` what they were computed from: a dict, or a file that outlives the run."""

    def __contains__(self, key: str, /) -> bool: ...

    def __getitem__(self, key: str, /) -> FloatArray: ...

    def __setitem__(self, key: str, numbers: FloatArray, /) -> None: ...


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
