"""Bank metrics: a card each, and a function from a batch of texts to arrays.

A family (one file, one card) may yield several named outputs; each output is a metric of its own.
Families that need statistics of a corpus (CIDEr) compute them with `Family.statistics` and carry them
along, so that one row scored alone gets the number that it gets in a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import dspy
import numpy as np

from metricsmith.metric import RowText, content_hash, row_text
from metricsmith.records import Judgement, MetricCard, Output, Status
from metricsmith.reward import DSPyCallable
from metricsmith.stats.correlation import FloatArray, IntArray

__all__ = [
    "BankMetric", "Compute", "Family", "FloatArray", "Names", "Pairs", "Scores", "TextBatch", "computed",
    "numbers_kept", "pair_up",
]  # fmt: skip

Names = Sequence[str]  # of outputs
Scores = Mapping[str, FloatArray]  # by output, shape (n,) each
Statistics = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TextBatch:
    """n rows of text. `references[i]` holds the references of row i, in the order given.

    `statistics` is the result of `Family.statistics` for the corpus in force, None if none was given.
    """

    outputs: Sequence[str]
    inputs: Sequence[str]
    references: Sequence[Sequence[str]]
    statistics: Statistics | None = None

    def __len__(self) -> int:
        return len(self.outputs)

    @classmethod
    def of(cls, texts: Sequence[RowText], statistics: Statistics | None = None) -> TextBatch:
        """Gather row texts into columns."""
        return cls(
            [text.output for text in texts],
            [text.input for text in texts],
            [text.references for text in texts],
            statistics,
        )


Compute = Callable[[TextBatch, Names], Scores]


@dataclass(frozen=True)
class Family:
    """A bank entry.

    Parameters
    ----------
    card : MetricCard
        The document; its outputs and needs are the contract.
    compute : callable
        ``compute(batch, outputs) -> {output name: float array (n,)}`` for at least the outputs asked for.
        Sees only rows that meet the card's needs. NaN where the number is undefined.
    statistics : callable, optional
        ``statistics(batch) -> JSON-ready mapping`` for families that need a corpus.
    """

    card: MetricCard
    compute: Compute
    statistics: Callable[[TextBatch], Statistics] | None = None

    def metrics(self) -> list[BankMetric]:
        """One metric per output, in the card's order."""
        return [BankMetric(self, output.name) for output in self.card.outputs]


@dataclass(frozen=True)
class BankMetric(DSPyCallable):
    """One output of a bank family, as a metric."""

    family: Family = field(repr=False)
    name: str
    statistics: Statistics | None = field(default=None, repr=False)

    @property
    def card(self) -> MetricCard:
        """The family's card."""
        return self.family.card

    @property
    def output(self) -> Output:
        """Range and direction of this output."""
        return self.card.output(self.name)

    def fingerprint(self) -> str:
        """A hash of name, formula, backend and corpus statistics."""
        return content_hash(self.name, self.card.formula, self.card.backend, self.statistics)

    def fit(self, rows: Sequence[dspy.Example]) -> BankMetric:
        """Bind the corpus statistics of `rows`; a family without statistics returns itself."""
        if self.family.statistics is None:
            return self
        complete = [text for text in map(row_text, rows) if not missing_needs(self.card, text)]
        return replace(self, statistics=self.family.statistics(TextBatch.of(complete)))

    def score(self, output: str, *, input: str = "", references: Sequence[str] | str = ()) -> float:
        """The raw number for one text; NaN if it is undefined or something it needs is missing."""
        references = (references,) if isinstance(references, str) else tuple(references)
        raw = self.judge_batch([dspy.Example(output=output, input=input, references=list(references))])[0].raw
        return math.nan if raw is None else raw

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """Score rows; rows that do not meet the card's needs are ``skipped``, with the reason."""
        return judge_family([self], rows, run=run)[0]

    def to_state(self) -> dict[str, Any]:
        """Name and corpus statistics."""
        return {"kind": "bank", "name": self.name, "statistics": self.statistics}


def missing_needs(card: MetricCard, text: RowText) -> list[str]:
    """The card's text needs that the row does not meet."""
    there = {"input": bool(text.input), "references": any(text.references)}
    return [name for name, given in there.items() if name in card.needs and not given]


def judge_family(metrics: Sequence[BankMetric], rows: Sequence[dspy.Example], *, run: int = 0) -> list[list[Judgement]]:
    """Judge rows by several outputs of one family and one set of statistics, computing shared work once.

    Returns
    -------
    list of list of Judgement
        ``result[j][i]`` is metric j on row i.
    """
    family, statistics = metrics[0].family, metrics[0].statistics
    texts = [row_text(row) for row in rows]
    missing = [missing_needs(family.card, text) for text in texts]
    complete = [text for text, gaps in zip(texts, missing, strict=True) if not gaps]
    names = [metric.name for metric in metrics]
    values = (
        computed(family, TextBatch.of(complete, statistics), names) if complete else dict.fromkeys(names, np.empty(0))
    )
    results = []
    for metric in metrics:
        numbers = iter(np.asarray(values[metric.name], dtype=float).tolist())
        judgements = []
        for gaps in missing:
            raw = math.nan if gaps else next(numbers)
            error = f"row has no {' and no '.join(gaps)}" if gaps else "undefined for this text"
            judgements.append(
                Judgement(metric.name, raw=raw, score=metric.output.score(raw), run=run)
                if math.isfinite(raw)
                else Judgement(metric.name, status=Status.SKIPPED, error=error, run=run)
            )
        results.append(judgements)
    return results


@dataclass(frozen=True, slots=True)
class Pairs:
    """m pairs of output and reference out of n rows, row by row, references in the order given.

    `counts[i]` is the number of pairs of row i; blank references make none.
    """

    outputs: Sequence[str]
    references: Sequence[str]
    counts: IntArray

    def best(self, values: FloatArray, *, highest: bool = True) -> FloatArray:
        """Returns the best of each row's values: (m,) to (n,); NaN for a row without pairs."""
        result = np.full(len(self.counts), np.nan)
        filled = self.counts > 0
        if filled.any():
            choose = np.maximum if highest else np.minimum
            result[filled] = choose.reduceat(values, self._starts[filled])
        return result

    def best_index(self, values: FloatArray) -> IntArray:
        """Returns the place of each row's best pair: (m,) to (n,); the first of ties, -1 for a row without pairs."""
        starts = self._starts
        return np.array(
            [
                start + int(np.argmax(values[start : start + count])) if count else -1
                for start, count in zip(starts.tolist(), self.counts.tolist(), strict=True)
            ],
            dtype=np.int64,
        )

    def compared(self, scorer: Any) -> FloatArray:
        """Applies a scorer of `rapidfuzz.distance`, say ``Levenshtein.distance``, to all pairs in one call: (m,)."""
        from rapidfuzz.process import cpdist

        return np.asarray(cpdist(self.outputs, self.references, scorer=scorer, dtype=np.float64), dtype=float)

    @property
    def _starts(self) -> IntArray:
        return np.cumsum(self.counts) - self.counts


def pair_up(batch: TextBatch) -> Pairs:
    """Pairs each output with each of its references that is not blank."""
    kept = [[text for text in references if text.strip()] for references in batch.references]
    counts = np.array([len(references) for references in kept], dtype=np.int64)
    outputs = [output for output, references in zip(batch.outputs, kept, strict=True) for _ in references]
    return Pairs(outputs, [text for references in kept for text in references], counts)


Row = tuple[str, str, tuple[str, ...]]
_KEPT: ContextVar[dict[tuple[int, str], tuple[Any, dict[str, dict[Row, float]]]] | None] = ContextVar(
    "metricsmith_bank_numbers", default=None
)


@contextmanager
def numbers_kept() -> Iterator[None]:
    """Compute each bank metric once for every text that occurs inside, also in threads that copy the context.

    A row has the same number alone and in a batch, since a family sees other rows only through its statistics; other
    statistics are another number. All is forgotten at the end.
    """
    token = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(token)


def computed(family: Family, batch: TextBatch, names: Names) -> Scores:
    """The outputs of a `Family` for a `TextBatch`, ``{name: float array (n,)}``; `numbers_kept` keeps them.

    A family that would make its statistics out of the batch itself is always computed.
    """
    kept = _KEPT.get()
    if kept is None or (family.statistics is not None and batch.statistics is None):
        return family.compute(batch, names)
    statistics = "" if batch.statistics is None else content_hash(batch.statistics)
    known = kept.setdefault((id(family), statistics), (family, {}))[1]  # with the family: its number stays its own
    rows = list(zip(batch.outputs, batch.inputs, map(tuple, batch.references), strict=True))
    columns = [known.setdefault(name, {}) for name in names]
    new = list(dict.fromkeys(row for row in rows if any(row not in column for column in columns)))
    if new:
        outputs, inputs, references = zip(*new, strict=True)
        values = family.compute(replace(batch, outputs=outputs, inputs=inputs, references=references), names)
        for name, column in zip(names, columns, strict=True):
            column.update(zip(new, np.asarray(values[name], dtype=float).tolist(), strict=True))
    return {name: np.array([column[row] for row in rows]) for name, column in zip(names, columns, strict=True)}
