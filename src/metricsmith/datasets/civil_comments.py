"""Ratings of the toxicity of comments on news (Civil Comments), and the sample of the case study on choosing a judge.

Borkan et al. (2019), "Nuanced Metrics for Measuring Unintended Bias with Real Data for Text Classification", arXiv
1903.04561. The data are not part of this package.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metricsmith.datasets.cells import cell_number, cell_text, value_or
from metricsmith.datasets.sources import RawTable, open_source
from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.ratings import Ratings, places_of
from metricsmith.stats.correlation import quotient

if TYPE_CHECKING:
    import pandas

__all__ = ["OPTIONS", "TOXIC", "read_civil_comments", "sample_by_disagreement"]

OPTIONS = ("Very Toxic", "Toxic", "Not Toxic or Hard to Say")
TOXIC = OPTIONS[:2]
"""The positive options."""

ANNOTATIONS = ("id", "worker", "toxic", "severe_toxic")
COUNTED = ("id", "toxicity", "severe_toxicity", "toxicity_annotator_count")
NEAR = 1e-3  # shares are published as 32-bit numbers, or rounded


def read_civil_comments(source: str | os.PathLike[str] | pandas.DataFrame | Any) -> Ratings:
    """Read one of the two published tables as forced choices among `OPTIONS`.

    Parameters
    ----------
    source : path, pandas.DataFrame, datasets.Dataset or hub id
        Anything that `read_table` reads, with one row by annotation and the columns ``id``, ``worker``, ``toxic`` and
        ``severe_toxic`` (0 or 1), as in ``toxicity_individual_annotations.csv``; or with one row by comment and
        ``id``, ``toxicity`` (``target`` in some files), ``severe_toxicity`` and ``toxicity_annotator_count``, as in
        ``all_data.csv``: the shares of raters who chose either of the toxic options, and Very Toxic, and their number.
        A table without that number, such as the one of the Hugging Face hub, has no counts and is refused.

    Returns
    -------
    Ratings
        Items are the comments' ids as text; raters are known in the first form only. A comment without raters stays,
        without ratings.

    Raises
    ------
    DataError
        If a column is missing, or a cell is no such number. It names the row.
    """
    raw = open_source(source)
    if set(ANNOTATIONS) <= set(raw.columns):
        toxic, severe = (_numbers(raw, name, 1.0, whole=True) for name in ANNOTATIONS[2:])
        choices = np.where(severe > 0, 0, np.where(toxic > 0, 1, 2))
        rows = zip(raw.texts("id"), raw.texts("worker"), (OPTIONS[place] for place in choices), strict=True)
        return Ratings.from_rows(rows, OPTIONS)
    share = "target" if "target" in raw.columns else "toxicity"
    needed = tuple(share if name == "toxicity" else name for name in COUNTED)
    raw.require_all(needed, "counts of Civil Comments", f"give single annotations: {', '.join(ANNOTATIONS)}")
    toxic, severe, raters = (
        _numbers(raw, name, most) for name, most in zip(needed[1:], (1.0, 1.0, math.inf), strict=True)
    )
    counts = np.stack([severe * raters, (toxic - severe) * raters, (1 - toxic) * raters], axis=1)
    off = (np.abs(counts - np.round(counts)) > NEAR * np.maximum(raters, 1)[:, None]) | (np.round(counts) < 0)
    if off.any():
        row = int(np.argwhere(off)[0, 0])
        raise DataError(
            f"{raw.place(row)}: {share} {toxic[row]:g} and severe_toxicity {severe[row]:g} are no shares of "
            f"{raters[row]:g} raters, the second within the first ({int(off.any(axis=1).sum())} rows are like this): "
            "correct or leave them out"
        )
    return Ratings.from_counts(np.round(counts), OPTIONS, raw.texts("id"))


def sample_by_disagreement(
    ratings: Ratings,
    size: int = 200,
    *,
    positive: Sequence[str] = TOXIC,
    shares: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5),
    seed: int = 0,
) -> Ratings:
    """Draw equally many items from each level of disagreement among raters.

    Parameters
    ----------
    ratings : Ratings
        Forced choices.
    size : int
        Items in all; a multiple of the number of levels.
    positive : sequence of str
        The level of an item is the share of its ratings that are one of these.
    shares : sequence of float
        The levels, in rising order; items belong to one if they are nearer to it than half the smallest gap.
    seed : int
        The draw depends on it and on the items, not on their order.

    Raises
    ------
    DataError
        If a level has too few items.
    OptionError
        If the size is no multiple of the levels, or there are fewer than two.

    References
    ----------
    Guerdan et al. (2025), "Validating LLM-as-a-Judge Systems in the Absence of Gold Labels", appendix E.
    """
    levels = np.asarray(shares, dtype=float)
    if len(levels) < 2 or (np.diff(levels) <= 0).any() or size < 1 or size % len(levels):
        raise OptionError(f"{size} items in levels {list(shares)}: give two levels or more, rising, and a multiple")
    counts = ratings.counts
    total = counts.sum(axis=1)
    chosen = counts[:, places_of(positive, ratings.options, "positive options")].sum(axis=1)
    found = quotient(chosen, total)
    draw = np.random.default_rng(seed)
    kept: list[int] = []
    for level in levels:
        near = np.flatnonzero(np.abs(found - level) < np.diff(levels).min() / 2 - NEAR)
        if len(near) < size // len(levels):
            raise DataError(
                f"{len(near)} items have a share of positive ratings near {level:g}, {size // len(levels)} are needed: "
                "ask for fewer, or for other levels"
            )
        ordered = sorted(near.tolist(), key=lambda place: str(ratings.items[place]))
        kept += draw.choice(ordered, size // len(levels), replace=False).tolist()
    return ratings.of_items([ratings.items[place] for place in sorted(kept)])


def _numbers(raw: RawTable, column: str, most: float, *, whole: bool = False) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A column's numbers, each from 0 to `most`."""
    values = np.array([value_or(cell_number, cell, math.nan) for cell in raw.columns[column]], dtype=float)
    wrong = np.flatnonzero(~((values >= 0) & (values <= most)) | (whole & (np.round(values) != values)))
    if wrong.size:
        row = int(wrong[0])
        raise DataError(
            f"{raw.place(row, column)}: {cell_text(raw.columns[column][row])!r} is no {'whole ' * whole}number from 0"
            f"{f' to {most:g}' if math.isfinite(most) else ''}: correct the cell or leave the row out"
        )
    return values
