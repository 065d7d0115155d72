"""Classifiers in fastText's own format: the expected value of a text's label."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Reasoned, TextBatch, where_filled
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.errors import NeedsError

__all__ = ["expected_values", "forget_files"]

MAGIC, VERSION, SUPERVISED, CENTROIDS = 793712314, 12, 3, 256


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


def _loaded(spec: ModelSpec) -> Any:
    spec.check()
    (file,) = spec.files()
    stat = file.stat()
    try:
        return _read(str(file), stat.st_size, stat.st_mtime_ns)
    except (ValueError, RuntimeError, MemoryError) as problem:
        raise NeedsError(
            f"{spec.name}: {file} cannot be read as fastText's; is it cut short or damaged? {problem}; fetch it again"
        ) from problem


@lru_cache(maxsize=3)
def _read(path: str, *_: int) -> Any:  # size and time of change belong to the key alone
    import fasttext

    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        _File(content).check()
    return fasttext.load_model(path)


class _File:
    """A file of fastText's, whose own reader believes every size that it finds, and takes memory for it.

    Source of the layout: loadModel in fasttext.cc, args.cc, dictionary.cc, densematrix.cc, quantmatrix.cc and
    productquantizer.cc of fastText 0.9.2.
    """

    def __init__(self, content: mmap.mmap) -> None:
        self.content, self.at = content, 0

    def check(self) -> None:
        """Refuse what no reader should be given: ValueError with what was expected and found."""
        _expect("its first number", self.take("i"), MAGIC)
        if (version := self.take("i")) > VERSION:
            raise ValueError(f"its format is version {version}, known are those up to {VERSION}")
        width, _, _, _, _, words_in_ngram, _, kind, buckets, _, letters, _, _ = self.take("12id")
        _expect("its kind of model", kind, SUPERVISED)
        if width < 1 or buckets < (words_in_ngram > 1 or letters > 0):
            raise ValueError(f"its vectors have {width} numbers, and its n-grams {buckets} places")
        words, labels, kept = self.dictionary()
        quantised = self.take("?")
        self.matrix(quantised, words + (buckets if kept < 0 else kept), width)
        self.matrix(self.take("?") and quantised, labels, width)
        _expect("its length in bytes", len(self.content), self.at)

    def take(self, layout: str) -> Any:
        """The next values, or the one value."""
        start = self.at
        self.skip(struct.calcsize(f"<{layout}"))
        values = struct.unpack_from(f"<{layout}", self.content, start)
        return values if len(values) > 1 else values[0]

    def skip(self, size: int) -> None:
        """Pass over bytes, which must be there."""
        if not 0 <= size <= len(self.content) - self.at:
            raise ValueError(
                f"it ends before its words or numbers do: byte {self.at} begins {size}, and it has {len(self.content)}"
            )
        self.at += size

    def dictionary(self) -> tuple[int, int, int]:
        """The numbers of words and labels, and of n-grams that were kept: -1 for all."""
        size, words, labels, _, kept = self.take("3i2q")
        _expect("its number of entries", size, words + labels)
        if min(words, labels) < 1 or kept < -1:
            raise ValueError(f"it tells of {words} words, {labels} labels and {kept} n-grams")
        for _ in range(size):
            end = self.content.find(b"\0", self.at)
            self.skip((end if end >= 0 else len(self.content)) - self.at + 10)  # 0, count, kind
        pairs = self.at
        self.skip(8 * max(kept, 0))
        rows = np.frombuffer(self.content[pairs : self.at], "<i4")[1::2]  # of the n-grams among those that were kept
        if ((rows < 0) | (rows >= kept)).any():
            raise ValueError(f"its {kept} n-grams have rows from {rows.min()} to {rows.max()}")
        return words, labels, kept

    def matrix(self, quantised: bool, rows: int, width: int) -> None:
        """Pass over a matrix, which must have so many rows and columns."""
        norms = quantised and self.take("?")
        _expect("the shape of a matrix", self.take("2q"), (rows, width))
        if not quantised:
            self.skip(4 * rows * width)
            return
        size = self.take("i")
        self.skip(size)
        _expect("the bytes of a quantised matrix", size, rows * self.centroids(width))
        if norms:
            self.skip(rows)
            self.centroids(1)

    def centroids(self, width: int) -> int:
        """Pass over the centroids of a product quantiser, and tell its parts of a row."""
        found, parts, part, last = self.take("4i")
        if found != width or not 0 < last <= part or (parts - 1) * part + last != width:
            raise ValueError(f"it cuts rows of {found} into {parts} times {part}, and has rows of {width}")
        self.skip(4 * CENTROIDS * width)
        return int(parts)


def _expect(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise ValueError(f"{what} is {found}, expected is {expected}")
