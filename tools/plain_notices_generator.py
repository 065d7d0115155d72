"""Makes the plain-notices data set: authored sentences and a seed in, rated rewrites out.

``python tools/plain_notices_generator.py`` writes the data set's CSV file again, byte for
byte. Nobody rated these texts. Quality is planted: each rewrite carries a known number of each of six
defects, and three simulated raters see nothing but those numbers::

    quality = 5 - sum over defects of weight * count
    rating  = quality + the rater's leniency + the rater's noise, rounded half up, cut to 1..5

The column ``rating`` is the mean of the three raters. Weights, leniency and noise are the constants below.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.plain_notices import DEFECTS, HIGH, LENIENCY, LOW, path
from metricsmith.errors import OptionError
from plain_notices_writer import Source, load_material, write_version

__all__ = [
    "COLUMNS",
    "COUNT_SHARES",
    "NOISE_LIMIT",
    "NOISE_SD",
    "PADDING_SENTENCES",
    "SEED",
    "VERSIONS",
    "design",
    "generate",
    "main",
    "planted_quality",
    "rate",
    "to_csv",
]

SEED = 5
VERSIONS = 5
COUNT_SHARES = (0.58, 0.28, 0.14)
"""Share of all versions that have 0, 1 and 2 occurrences of a defect; the same for each defect."""
PADDING_SENTENCES = 2
"""Idle sentences added per occurrence of ``padding``."""

NOISE_SD = 0.8
"""Standard deviation of the normal noise of one rating, before it is cut at `NOISE_LIMIT`."""
NOISE_LIMIT = 1.6
_DESIGN_TRIES = 300

COLUMNS: tuple[str, ...] = (
    "id", "source_id", "topic", "notice", "rewrite", "reference",
    *(f"rater_{number}" for number in range(1, len(LENIENCY) + 1)), "rating",
    *(defect.column for defect in DEFECTS.values()),
)  # fmt: skip

Counts = Mapping[str, int]


# The planted design and the raters


def design(n: int, rng: np.random.Generator) -> list[dict[str, int]]:
    """Defect counts for `n` versions: equal shares for each defect, nearly uncorrelated between defects.

    Each column is a random order of the same counts; of `_DESIGN_TRIES` such tables the one whose largest
    absolute correlation between two columns is smallest is taken.

    Parameters
    ----------
    n : int
        Number of versions, at least 10.

    Returns
    -------
    list of dict
        Per version, defect name to 0, 1 or 2.
    """
    if n < 10:
        raise OptionError(f"a design for {n} versions: at least 10 are needed to balance six defects; ask for more")
    ones, twos = (round(share * n) for share in COUNT_SHARES[1:])
    column = np.repeat([0, 1, 2], [n - ones - twos, ones, twos])
    best, least = np.empty((0, 0), dtype=int), math.inf
    for _ in range(_DESIGN_TRIES):
        table = np.column_stack([rng.permutation(column) for _ in DEFECTS])
        largest = _largest_correlation(table)
        if largest < least:
            best, least = table, largest
    return [dict(zip(DEFECTS, map(int, row), strict=True)) for row in best]


def _largest_correlation(table: NDArray[np.int_]) -> float:
    correlation = np.abs(np.corrcoef(table, rowvar=False) - np.eye(table.shape[1]))
    return round(float(correlation.max()), 9)


def planted_quality(counts: Counts) -> float:
    """``5 - sum(weight * count)``: what a rater without leniency or noise would say, not cut to the scale."""
    return HIGH - sum(defect.weight * counts[name] for name, defect in DEFECTS.items())


def rate(counts: Counts, rng: np.random.Generator) -> list[int]:
    """Ratings of the simulated raters, in the order of `LENIENCY`, each an integer from 1 to 5."""
    noise = np.clip(rng.normal(0.0, NOISE_SD, len(LENIENCY)), -NOISE_LIMIT, NOISE_LIMIT)
    heard = planted_quality(counts) + np.array(LENIENCY) + noise
    return [int(value) for value in np.clip(np.floor(heard + 0.5), LOW, HIGH)]


# The whole set


def generate(seed: int = SEED) -> list[dict[str, Any]]:
    """Make all rows, `VERSIONS` per source, with the keys in `COLUMNS`.

    No two rewrites of a source are equal, and no idle sentence stands twice in the rewrites of a source.
    """
    material = load_material()
    plan = iter(design(len(material.sources) * VERSIONS, np.random.default_rng(seed)))
    rows = []
    for number, source in enumerate(material.sources):
        rng = np.random.default_rng([seed, number])
        idle = rng.permutation(np.array(material.idle_sentences(source.topic), dtype=object)).tolist()
        written: set[str] = set()
        for version, counts in zip(range(1, VERSIONS + 1), plan, strict=False):
            padding = [idle.pop() for _ in range(PADDING_SENTENCES * counts["padding"])]
            text = write_version(source, counts, padding, rng)
            while text in written:
                text = write_version(source, counts, padding, rng)
            written.add(text)
            rows.append(_row(source, version, text, counts, rate(counts, rng)))
    return rows


def _row(source: Source, version: int, text: str, counts: Counts, ratings: Sequence[int]) -> dict[str, Any]:
    return {
        "id": f"{source.id}-{version}",
        "source_id": source.id,
        "topic": source.topic,
        "notice": source.notice,
        "rewrite": text,
        "reference": source.reference,
        **{f"rater_{number}": rating for number, rating in enumerate(ratings, start=1)},
        "rating": f"{sum(ratings) / len(ratings):.4f}",
        **{defect.column: counts[name] for name, defect in DEFECTS.items()},
    }


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as CSV text with a header and Unix line ends."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the CSV file."""
    parser = argparse.ArgumentParser(description="Write the plain-notices data set.")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=path())
    options = parser.parse_args(arguments)
    options.out.write_bytes(to_csv(generate(options.seed)).encode("utf-8"))


if __name__ == "__main__":
    main()
