"""Classifiers in fastText's own format: the expected value of a text's label."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Reasoned, TextBatch, where_filled
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.errors import NeedsError

__all__ = ["expected_values", "forget_files"]

_MAGIC, _SETTINGS_END = 793712314, 64  # a file's first number, and where its settings end


def expected_values(batch: TextBatch, outputs: Names, values: Mapping[str, float]) -> Reasoned:
    """The sum over all labels of probability times value, for each output that is not blank.

    `values` has each label of the file, fastText's prefix included. fastText adds .00001 to each probability, so the
    sum is cut to the range of the values. Line breaks become spaces, since they would end the text.

    Raises
    ------
    NeedsError
        If the file is not here, cannot be read, or has other labels.
    """

    def score(part: TextBatch) -> FloatArray:
        model = _loaded(part.spec)
        found = {text: model.predict(text.replace("\n", " "), k=-1) for text in dict.fromkeys(part.outputs)}
        labels = {label for names, _ in found.values() for label in names}
        if labels != values.keys():
            raise NeedsError(
                f"{part.spec.name}: the file tells the labels {', '.join(sorted(labels))}, and must tell "
                f"{', '.join(values)}: take {part.spec.id}"
            )
        sums = {
            text: sum(values[name] * share for name, share in zip(names, shares, strict=True))
            for text, (names, shares) in found.items()
        }
        numbers = np.array([sums[text] for text in part.outputs])
        return numbers.clip(min(values.values()), max(values.values()))

    return where_filled(batch, outputs, score)


def forget_files() -> None:
    """Drop the files that were read."""
    _read.cache_clear()


def _cut_short(file: Path) -> bool:
    """True of a file that ends before its words or numbers do, on which fastText's reader hangs or ends the process.

    The layout is that of args.cc, dictionary.cc and densematrix.cc of fastText 0.9.2; quantised ones are not counted.
    """
    with file.open("rb") as opened, mmap(opened.fileno(), 0, access=ACCESS_READ) as data:
        try:
            if struct.unpack_from("<i", data) != (_MAGIC,):
                return False  # the reader says that it is of another format
            entries, *_, pruned = struct.unpack_from("<3i2q", data, _SETTINGS_END)
            place = _SETTINGS_END + 28
            for _ in range(entries):  # a word, a zero, its count and its kind
                if (end := data.find(b"\0", place)) < 0:
                    return True
                place = end + 10
            place += 8 * max(pruned, 0)
            for _ in ("input", "output"):
                if struct.unpack_from("<?", data, place)[0]:
                    return False
                rows, width = struct.unpack_from("<2q", data, place + 1)
                place += 17 + 4 * rows * width
        except struct.error:
            return True
        return bool(place > len(data))


def _loaded(spec: ModelSpec) -> Any:
    spec.check()
    (file,) = spec.files()
    stat = file.stat()
    try:
        if _cut_short(file):
            raise ValueError("it ends before its words or numbers do")
        return _read(str(file), stat.st_size, stat.st_mtime_ns)
    except (ValueError, RuntimeError, MemoryError) as problem:
        raise NeedsError(
            f"{spec.name}: {file} cannot be read as fastText's; is it cut short or damaged? {problem}"
        ) from problem


@lru_cache(maxsize=3)
def _read(path: str, *_: int) -> Any:  # size and time of change belong to the key alone
    import fasttext

    return fasttext.load_model(path)
