"""Stories by people and by systems, each rated by three people on six criteria (HANNA).

Chhun et al. (2022), "Of Human Criteria and Automatic Metrics: A Benchmark of the Evaluation of Story Generation",
arXiv 2208.11646. The data are not part of this package.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from metricsmith.datasets.ratings import read_ratings
from metricsmith.datasets.sources import open_source
from metricsmith.datasets.table import Table, read_table
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.records import Scale

if TYPE_CHECKING:
    import pandas

__all__ = ["CRITERIA", "DESCRIPTION", "MEAN", "read_hanna"]

CRITERIA = ("Relevance", "Coherence", "Empathy", "Surprise", "Engagement", "Complexity")
"""The six criteria, each rated from 1 to 5."""

MEAN = "mean of criteria"
COLUMNS = ("Story ID", "Prompt", "Story", "Model", *CRITERIA, "Worker ID")
HUMAN = "Human"  # the system of stories by people
SCALE = Scale(1, 5, 1)

DESCRIPTION = (
    "A story is written for a prompt. A good one fits its prompt, makes sense, lets the reader understand the "
    "characters' feelings, surprises, engages and is elaborate."
)


def read_hanna(
    source: str | os.PathLike[str] | pandas.DataFrame | Any,
    criterion: str = MEAN,
    *,
    human: bool = True,
    task: str = DESCRIPTION,
) -> Table:
    """Read the benchmark's file of annotations, the ratings of each story averaged over its raters.

    Parameters
    ----------
    source : path, pandas.DataFrame, datasets.Dataset or hub id
        Anything that `read_table` reads, with the columns ``Story ID``, ``Prompt``, ``Story``, ``Model``, the six of
        `CRITERIA` and ``Worker ID``; one row by story and rater.
    criterion : str
        One of `CRITERIA`, or ``mean of criteria``, the mean of a rater's six.
    human : bool
        Whether stories by people stay.
    task : str
        What a good story is, in plain words.

    Returns
    -------
    Table
        One row by story: ``output`` is the story, ``input`` the prompt and ``system`` its author; prompts are the
        groups. `Table.people` has the single ratings.

    Raises
    ------
    DataError
        If a column is missing or a rating is no number from 1 to 5. It names the row.
    OptionError
        If the criterion is unknown.
    """
    known = (*CRITERIA, MEAN)
    if criterion not in known:
        raise OptionError(
            f"unknown criterion {criterion!r}{nearest(str(criterion), known)}; known are {', '.join(known)}"
        )
    raw = open_source(source)
    missing = [column for column in COLUMNS if column not in raw.columns]
    if missing:
        raise DataError(
            f"{raw.name}: no column {missing[0]!r}{nearest(missing[0], raw.columns)}; the benchmark's annotations have "
            f"{', '.join(COLUMNS)}: rename yours, or read the file with read_table, which takes any names"
        )
    if criterion == MEAN:
        ratings = np.mean([read_ratings(raw, name, SCALE) for name in CRITERIA], axis=0)
        raw = replace(raw, columns={**raw.columns, MEAN: ratings.tolist()})
    return read_table(
        raw, target=criterion, task=task, output="Story", inputs="Prompt", group="Prompt", id="Story ID",
        system="Model", rater="Worker ID", raters="mean", where=() if human else f"Model!={HUMAN}",
        scale=replace(SCALE, step=None),
    )  # fmt: skip
