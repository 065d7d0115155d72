"""Summaries of news by 16 systems, rated by three experts and five others on four criteria (SummEval)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

from metricsmith.datasets.rated_set import RatedSet
from metricsmith.datasets.sources import RawTable
from metricsmith.errors import DataError

__all__ = ["SUMMEVAL"]

CRITERIA = ("coherence", "consistency", "fluency", "relevance")
PEOPLE = ("expert_annotations", "turker_annotations")


def _with_means(raw: RawTable) -> RawTable:
    """The file of annotations with a column for each criterion: the mean over all people, as in the paper's reader."""
    raw.require_all(PEOPLE, "SummEval's annotations", "take model_annotations.aligned.paired.jsonl")
    means: dict[str, list[float]] = {name: [] for name in CRITERIA}
    for index in range(len(raw)):
        given = [one for column in PEOPLE for one in _annotations(raw, column, index)]
        for name in CRITERIA:
            means[name].append(fmean(one[name] for one in given))
    return replace(raw, columns={**raw.columns, **means})


def _annotations(raw: RawTable, column: str, index: int) -> list[Mapping[str, float]]:
    found = raw.columns[column][index]
    usable = isinstance(found, list) and found and all(
        isinstance(one, Mapping) and all(isinstance(one.get(name), int | float) for name in CRITERIA) for one in found
    )  # fmt: skip
    if not usable:
        raise DataError(
            f"{raw.place(index, column)}: {str(found)[:60]!r} is no list of ratings; each must be an object with the "
            f"numbers {', '.join(CRITERIA)}: take the file as it is published"
        )
    return list(found)


# Columns: autometrics/dataset/datasets/summeval/summeval.py of SALT-NLP/autometrics and the README of
# Yale-LILY/SummEval (1,600 summaries of 100 articles), whose data_processing/pair_data.py adds the articles (`text`).
SUMMEVAL = RatedSet(
    name="summeval",
    title="SummEval",
    citation='Fabbri et al. (2021), "SummEval: Re-evaluating Summarization Evaluation", TACL 9',
    page="https://github.com/Yale-LILY/SummEval (human annotations, paired with the articles by its script)",
    task="A news article is summarised in a few sentences. A good summary holds what matters, says nothing that the "
    "article does not, and reads well.",
    dimensions=dict.fromkeys(CRITERIA),
    columns={"output": "decoded", "inputs": "text", "reference": "references", "group": "id", "system": "model_id"},
    form=_with_means,
    unverified="the scale, which is taken from the ratings",
)
