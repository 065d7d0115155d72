"""Rows on which a metric with weights meets its oracle, and the largest difference between the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy
import numpy as np

import tiny_texts
from metricsmith.bank.base import Family, judge_family
from metricsmith.metric import RowText, row_text
from model_cases import CASES, tiny_family
from oracles import ORACLES, SOURCES

__all__ = ["Difference", "differences", "example", "parity_rows", "raws", "settings_in_force", "table"]

ROWS = 33
WITHOUT_ORACLE = {("bertscore", "rescale", True)}
"""Settings that a tiny checkpoint cannot have: the means of random pairs are known for roberta-large at layer 17."""


@dataclass(frozen=True)
class Difference:
    """One output beside its oracle on n rows: the largest difference, and the range of the oracle's numbers.

    A difference counts in units of the number itself where that is beyond 1.
    """

    output: str
    largest: float
    spread: float


def example(output: str, input: str = "", references: Sequence[str] = ()) -> dspy.Example:
    """Return a row as the bank reads it."""
    return dspy.Example(output=output, input=input, references=list(references))


def parity_rows(name: str) -> list[dspy.Example]:
    """Return the rows: lengths run opposite in outputs and references, and each third row has a second reference.

    The outputs of the process reward are steps, with an empty line between; SummaQA's inputs all have an entity.
    """
    pairs = tiny_texts.pairs_of_texts(ROWS)
    others = tiny_texts.sentences(ROWS)
    rows = []
    for number, (output, reference) in enumerate(pairs):
        own = output.replace(". ", ".\n\n") if name == "math_prm" else output
        given = others[(number * 7) % ROWS] + (" In 1998 the village had 312 houses." if name == "summaqa" else "")
        more = [others[-number]] if number % 3 == 0 else []
        rows.append(example(own, given, [reference, *more]))
    return rows


def raws(family: Family, rows: Sequence[dspy.Example]) -> dict[str, list[float]]:
    """Return the raw numbers of every output, each row's status demanded to be ok."""
    metrics = [metric.fit(rows) for metric in family.metrics()]
    found = {}
    for metric, judgements in zip(metrics, judge_family(metrics, rows), strict=True):
        assert [judgement.error for judgement in judgements if judgement.raw is None] == []
        found[metric.name] = [judgement.raw for judgement in judgements]
    return found


def settings_in_force(family: Family, corpus: Sequence[RowText]) -> dict[str, Any]:
    """Return every setting of a family as the oracles read them."""
    spec = family.model
    options = {name: spec.option(name) for name, _ in spec.choices}
    return {"layer": spec.layer, "tokenizer": spec.tokenizer, **options, "corpus": list(corpus)}


def variants(name: str) -> list[dict[str, Any]]:
    """Return the settings to be checked: ours, and each other value of each option."""
    from metricsmith.bank.weighted import model_family

    choices = model_family(name).model.choices
    return [{}] + [
        {option: value}
        for option, values in choices
        for value in values[1:]
        if (name, option, value) not in WITHOUT_ORACLE
    ]


def differences(name: str, tiny: Callable[[str], Path], folder: Path, **settings: Any) -> list[Difference]:
    """Return the differences of a metric of `CASES` from its oracle, one for each output."""
    family = tiny_family(name, tiny, folder, **settings)
    rows = parity_rows(name)
    texts = [row_text(row) for row in rows]
    force = {**settings_in_force(family, texts), "find": getattr(CASES[name], "entities", None)}
    path = Path(family.model.path)
    expected = [ORACLES[name](path, text, force) for text in texts]
    assert {output.name for output in family.card.outputs} == set(expected[0])
    found = raws(family, rows)
    results = []
    for output in expected[0]:
        truth = np.array([one[output] for one in expected])
        apart = np.abs(np.array(found[output]) - truth) / np.maximum(1, np.abs(truth))
        results.append(Difference(output, float(apart.max()), float(np.ptp(truth))))
    return results


def table(folder: Path) -> list[tuple[str, str, str, float]]:
    """Return (metric, engine, oracle, largest difference over outputs and settings) for each metric with an oracle.

    Parameters
    ----------
    folder : Path
        Where the tiny checkpoints are built.
    """
    import tiny_models
    from metricsmith.bank.weighted import model_family

    lines = []
    for name in (name for name in ORACLES if name in CASES):
        found = [
            difference.largest
            for settings in variants(name)
            for difference in differences(name, lambda one: tiny_models.build(one, folder), folder, **settings)
        ]
        lines.append((name, model_family(name).model.head, SOURCES[name], max(found)))
    return lines
