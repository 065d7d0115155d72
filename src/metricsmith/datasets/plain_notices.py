"""Plain notices: 48 public notices, five rewrites of each in plain language, with planted quality.

Synthetic and written for this package: it shows what metric induction finds when the truth is known.
``tools/plain_notices_generator.py`` makes it, ``data/plain_notices.md`` is its card.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import DataError
from metricsmith.metric import make_row
from metricsmith.records import Scale, Task

__all__ = [
    "DEFECTS",
    "HIGH",
    "LENIENCY",
    "LOW",
    "SYNTHETIC",
    "TASK",
    "Defect",
    "defect_effects",
    "expected_sign",
    "load",
    "path",
]


@dataclass(frozen=True, slots=True)
class Defect:
    """A way in which a rewrite is planted to be bad.

    Parameters
    ----------
    name : str
        The defect; its count is the column ``n_<name>``.
    weight : float
        What each occurrence costs on the scale from 1 to 5; above 0.
    meaning : str
        What was done to the text.
    seen_by : str or None
        The property of the text by which a lexical metric can notice it (``length``, ``readability_grade`` or
        ``reference_recall``), None if no lexical metric can.
    """

    name: str
    weight: float
    meaning: str
    seen_by: str | None = None

    @property
    def visible(self) -> bool:
        """True if a metric that counts and compares words can see the defect at all."""
        return self.seen_by is not None

    @property
    def column(self) -> str:
        """Name of the column that holds how often it occurs."""
        return f"n_{self.name}"


DEFECTS: Mapping[str, Defect] = {
    defect.name: defect
    for defect in (
        Defect("dropped_fact", 0.65, "a fact of the notice is missing", "reference_recall"),
        Defect("contradiction", 0.65, "a time, place, amount or duty is wrong"),
        Defect("padding", 0.70, "true but idle sentences were added", "length"),
        Defect("jargon", 0.60, "a fact is told in long words and nouns", "readability_grade"),
        Defect("broken_sentence", 0.60, "sentences run together, one out of joint", "readability_grade"),
        Defect("wrong_tone", 0.50, "the first or last sentence is rude, flippant or patronising"),
    )
}

LOW, HIGH = 1, 5
LENIENCY = (0.25, 0.0, -0.25)
"""The number that each rater adds to every rating."""

SYNTHETIC = (
    "Synthetic data: the notices and rewrites were written for metricsmith, their defects were planted, and "
    "the ratings come from three simulated raters. No person rated them."
)
"""The sentence that stands wherever a result on these data is shown."""

TASK = Task(
    description=(
        "Rewrite a formal public notice (from a council, a water company, a school, a clinic ...) in plain "
        "language. A good rewrite keeps every fact and gets each one right, says nothing idle, uses short "
        "everyday words in whole sentences, and is polite."
    ),
    target="rating",
    scale=Scale(LOW, HIGH),
)


def path() -> Path:
    """The path of the CSV file, for the table reader and the command line."""
    return Path(__file__).parent / "data" / "plain_notices.csv"


def load() -> tuple[Task, list[dspy.Example]]:
    """Read the data set.

    Returns
    -------
    Task
        Target ``rating``: the mean of three integer ratings, 1 to 5.
    list of dspy.Example
        240 rows in the order of the file. Texts: ``input`` (the notice), ``output`` (the rewrite) and
        ``references`` (one, the same for all rewrites of a notice). Labels: ``id``, ``group`` (the notice),
        ``topic``, ``rating``, ``rater_1`` to ``rater_3``, and ``n_<defect>`` for each of `DEFECTS`.
    """
    with path().open(encoding="utf-8", newline="") as file:
        return TASK, [_row(record) for record in csv.DictReader(file)]


def _row(record: Mapping[str, str]) -> dspy.Example:
    raters = [f"rater_{number}" for number in range(1, len(LENIENCY) + 1)]
    defects = [defect.column for defect in DEFECTS.values()]
    whole: dict[str, Any] = {name: int(record[name]) for name in raters + defects}
    return make_row(
        record["rewrite"],
        input=record["notice"],
        references=[record["reference"]],
        id=record["id"],
        group=record["source_id"],
        topic=record["topic"],
        rating=float(record["rating"]),
        **whole,
    )


def defect_effects(rows: Sequence[dspy.Example], values: Sequence[float]) -> dict[str, float]:
    """The distance by which each planted defect moves a number: mean with the defect minus mean without it.

    Parameters
    ----------
    rows : sequence of dspy.Example, length n
        Rows of this data set.
    values : sequence of float, length n
        A number for each row, for example a metric's raw scores. Rows where it is NaN are left out.

    Returns
    -------
    dict of str to float
        Defect name to effect, in standard deviations of `values`. NaN where every row or no row has the
        defect, and for constant `values`.

    Raises
    ------
    DataError
        If the lengths differ.
    """
    kept, numbers = _known(rows, values)
    spread = float(np.std(numbers)) if len(kept) else 0.0
    effects = dict.fromkeys(DEFECTS, math.nan)
    for name, defect in DEFECTS.items():
        has = np.array([row[defect.column] > 0 for row in kept], dtype=bool)
        if spread > 0 and has.any() and not has.all():
            effects[name] = float(numbers[has].mean() - numbers[~has].mean()) / spread
    return effects


def expected_sign(rows: Sequence[dspy.Example], values: Sequence[float]) -> int:
    """The sign that the relation of `values` with the rating must have, from the planted weights alone.

    A defect with weight w that a share p of the rows has, and that moves the number by e, adds
    ``-w e p (1 - p)`` to the covariance of the number with the planted quality. Ratings are not looked at.

    Parameters
    ----------
    rows, values
        As for `defect_effects`.

    Returns
    -------
    int
        1 (higher means rated higher), -1, or 0 if no defect has an effect on the number.
    """
    kept, _ = _known(rows, values)
    covariance = 0.0
    for name, effect in defect_effects(rows, values).items():
        share = sum(row[DEFECTS[name].column] > 0 for row in kept) / max(len(kept), 1)
        covariance -= 0.0 if math.isnan(effect) else DEFECTS[name].weight * effect * share * (1 - share)
    return (covariance > 0) - (covariance < 0)


def _known(rows: Sequence[dspy.Example], values: Sequence[float]) -> tuple[list[dspy.Example], NDArray[np.float64]]:
    if len(rows) != len(values):
        raise DataError(f"{len(values)} values for {len(rows)} rows: give one value per row, NaN where there is none")
    known = [i for i, value in enumerate(values) if not math.isnan(value)]
    return [rows[i] for i in known], np.array([values[i] for i in known], dtype=float)
