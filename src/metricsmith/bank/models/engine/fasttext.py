"""Classifiers in fastText's own format: the expected value of a text's label."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Reasoned, TextBatch, where_filled
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.errors import NeedsError

__all__ = ["expected_values", "forget_files"]


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
            f"{spec.name}: {file} cannot be read as fastText's; is it cut short or damaged? {problem}"
        ) from problem


@lru_cache(maxsize=3)
def _read(path: str, *_: int) -> Any:  # size and time of change belong to the key alone
    import fasttext

    return fasttext.load_model(path)
