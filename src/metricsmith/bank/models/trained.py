"""The weights of a trained metric: arrays by name, and the one file that keeps them, which is called by its hash.

The file is safetensors. Loading a metric reads its bytes and checks their hash; arrays are made of them where they are
used, and there torch and transformers are installed, and safetensors with them.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import StateError
from metricsmith.stats.correlation import FloatArray

__all__ = ["RatedTexts", "TrainingOption", "Trained", "Weights", "file_name", "packed", "read_weights", "unpacked"]

Weights = Mapping[str, NDArray[Any]]  # float32 or float64, by name
MOST = 200_000_000  # bytes of a file of weights
HEADER = 1_000_000  # bytes of its first part, which names the arrays
LARGEST = 1e100  # of numbers: sums and products of a few stay finite
_SHA256 = re.compile(r"[0-9a-f]{64}")


class RatedTexts(NamedTuple):
    """n texts with a number each, shape (n,), and the group of each: what a method learns from."""

    texts: Sequence[str]
    numbers: FloatArray
    groups: Sequence[str]


class TrainingOption(NamedTuple):
    """A number that a method can be told: its default, and the range that it must lie in."""

    default: float
    low: float
    high: float
    whole: bool = True


@dataclass(frozen=True)
class Trained:
    """Everything that a method has learned; two are equal if their arrays and numbers are.

    Parameters
    ----------
    content : bytes
        The weights as `packed` has them.
    centre, spread : float
        Mean and standard deviation of the ratings, in rating points: ``centre + spread * number`` is the rating for
        a number of the method's.
    rows, groups : int
        The rated rows that were learned from, and the groups that they make.
    learned_from : tuple of str
        Hashes of these rows and of those by which the method chose (`metricsmith.saving.row_hash`).
    """

    content: bytes = field(repr=False)
    centre: float
    spread: float
    rows: int
    groups: int
    learned_from: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def weights(self) -> Weights:
        """The arrays, read-only; errors as for `unpacked`."""
        return unpacked(self.content)

    @cached_property
    def digest(self) -> str:
        """The sha256 of the content."""
        return hashlib.sha256(self.content).hexdigest()

    def write(self, folder: Path) -> Path:
        """Write the weights to ``<sha256>.safetensors`` in a folder, whole or not at all."""
        target = folder / file_name(self.digest)
        temporary = folder / f".{target.name}.{os.getpid()}"
        temporary.write_bytes(self.content)
        temporary.replace(target)
        return target


def file_name(digest: str) -> str:
    """The name of the file with these weights; StateError for what is no sha256."""
    if not _SHA256.fullmatch(digest):
        raise StateError(f"weights={digest!r:.80} must be 64 hexadecimal digits, the sha256 of a file of weights")
    return f"{digest}.safetensors"


def packed(weights: Weights) -> bytes:
    """The content of the file with these weights: equal bytes for equal arrays, in whatever order they come.

    Raises
    ------
    StateError
        If an array is not finite, or neither float32 nor float64, or all together are too large.
    """
    from safetensors.numpy import save

    content: bytes = save({name: np.ascontiguousarray(weights[name]) for name in _checked(weights)})
    if len(content) > MOST:
        raise StateError(
            f"the weights take {len(content):,} bytes; {MOST:,} can be kept: lower the rank, or take a smaller encoder"
        )
    return content


@lru_cache(maxsize=16)  # such as those of the folds of a cross-fit
def unpacked(content: bytes) -> Weights:
    """The arrays of a file's content, read-only.

    Raises
    ------
    StateError
        If it is no safetensors file, or holds anything but finite arrays of float32 and float64.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    if (length := int.from_bytes(content[:8], "little")) > HEADER:
        raise StateError(f"the learned weights begin with a header of {length:,} bytes; {HEADER:,} are allowed")
    try:
        weights: Weights = load(content)
    except (SafetensorError, AttributeError, KeyError, ValueError) as problem:
        raise StateError(f"the learned weights are no safetensors file of numbers: {problem!s:.200}") from problem
    for name in _checked(weights):
        weights[name].setflags(write=False)
    return weights


def _checked(weights: Weights) -> list[str]:
    for name, array in weights.items():
        known = array.dtype in (np.float32, np.float64)
        if not known or not np.all(np.abs(array) <= min(LARGEST, float(np.finfo(array.dtype).max))):  # False for NaN
            raise StateError(f"the weights {name!r:.60} are {array.dtype}; finite float32 or float64 can be kept")
    return sorted(weights)


def read_weights(folder: Path, digest: str) -> bytes:
    """The content of ``<sha256>.safetensors`` in a folder, a plain file whose content has this very hash.

    Raises
    ------
    StateError
        If it is missing, a link, too large, or has another hash.
    """
    place = folder / file_name(digest)
    try:
        with open(place, "rb", opener=_opened) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise StateError(f"{place} is no plain file; weights are read from nothing else")
            content = b"" if found.st_size > MOST else file.read(MOST + 1)
    except FileNotFoundError as problem:
        raise StateError(
            f"{place} is missing: a metric file holds only the hash of trained weights, which lie beside it under "
            "that name; copy both files, or save the metric again"
        ) from problem
    except OSError as problem:
        why = "it is a link, which is not followed" if place.is_symlink() else problem
        raise StateError(f"{place} cannot be read: {why}") from problem
    if max(found.st_size, len(content)) > MOST:
        raise StateError(f"{place} is larger than {MOST:,} bytes, which no trained metric is")
    if (own := hashlib.sha256(content).hexdigest()) != digest:
        raise StateError(f"{place} was cut off or changed: its hash is {own}, not its name; save the metric again")
    return content


def _opened(path: str, flags: int) -> int:
    """Open without following a link at the end of the path, and without waiting for a pipe's other end."""
    if os.path.islink(path):  # where the system has no such flags
        raise OSError("it is a link")
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
