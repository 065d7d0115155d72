"""Bank metrics: a card each, and a function from a batch of texts to arrays.

A family (one file, one card) may yield several named outputs; each output is a metric of its own.
Families that need statistics of a corpus (CIDEr) compute them with `Family.statistics` and carry them
along, so that one row scored alone gets the number that it gets in a batch. Families that need weights hold a
`ModelSpec`, which names them; the weights themselves stay in the process's loader.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import dspy
import numpy as np

from metricsmith.bank.models.spec import ModelSpec
from metricsmith.errors import MetricsmithError, OptionError
from metricsmith.metric import RowText, content_hash, row_text
from metricsmith.records import Judgement, MetricCard, Output, Status
from metricsmith.reward import DSPyCallable
from metricsmith.stats.correlation import FloatArray, IntArray

__all__ = [
    "BankMetric", "Compute", "Family", "FloatArray", "IntArray", "Names", "Pairs", "Reasoned", "Scores",
    "TextBatch", "blank_texts", "computed", "numbers_kept", "pair_up", "where_filled",
]  # fmt: skip

Names = Sequence[str]  # of outputs
Scores = Mapping[str, FloatArray]  # by output, shape (n,) each
Statistics = Mapping[str, Any]
UNDEFINED = "undefined for this text"
# What a network or its tokenizer raises over one text or one batch; errors of ours end more than that.
FAULTS = (RuntimeError, ValueError, TypeError, LookupError, ArithmeticError, MemoryError, OSError)


class Reasoned(NamedTuple):
    """Numbers, and for each of the n rows the reason why a number of it is NaN; empty where none is."""

    scores: Scores
    reasons: Sequence[str]


@dataclass(frozen=True, slots=True)
class TextBatch:
    """n rows of text. `references[i]` holds the references of row i, in the order given.

    `statistics` is the result of `Family.statistics` for the corpus in force, None if none was given. `model` names
    the weights in force, None for a family that needs none.
    """

    outputs: Sequence[str]
    inputs: Sequence[str]
    references: Sequence[Sequence[str]]
    statistics: Statistics | None = None
    model: ModelSpec | None = None

    def __len__(self) -> int:
        return len(self.outputs)

    @classmethod
    def of(
        cls, texts: Sequence[RowText], statistics: Statistics | None = None, model: ModelSpec | None = None
    ) -> TextBatch:
        """Gather row texts into columns."""
        return cls(
            [text.output for text in texts],
            [text.input for text in texts],
            [text.references for text in texts],
            statistics,
            model,
        )

    def part(self, rows: Sequence[int]) -> TextBatch:
        """The rows at these places, in their order."""
        return replace(
            self,
            outputs=[self.outputs[row] for row in rows],
            inputs=[self.inputs[row] for row in rows],
            references=[self.references[row] for row in rows],
        )

    @property
    def spec(self) -> ModelSpec:
        """The weights in force, in a family that needs some."""
        if self.model is None:
            raise OptionError("a family that needs weights was given no ModelSpec")
        return self.model


Compute = Callable[[TextBatch, Names], Scores | Reasoned]


@dataclass(frozen=True)
class Family:
    """A bank entry.

    Parameters
    ----------
    card : MetricCard
        The document; its outputs and needs are the contract.
    compute : callable
        ``compute(batch, outputs) -> {output name: float array (n,)}`` for at least the outputs asked for.
        Sees only rows that meet the card's needs. NaN where the number is undefined; `Reasoned` says why.
    statistics : callable, optional
        ``statistics(batch) -> JSON-ready mapping`` for families that need a corpus.
    model : ModelSpec, optional
        The weights, for families that need some.
    """

    card: MetricCard
    compute: Compute
    statistics: Callable[[TextBatch], Statistics] | None = None
    model: ModelSpec | None = None

    def __post_init__(self) -> None:
        if self.model is not None and self.card.checkpoint is not None:  # the card tells the settings in force
            card = replace(self.card, checkpoint=self.model.in_force(self.card.checkpoint))
            object.__setattr__(self, "card", card)

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

    @property
    def weights(self) -> str:
        """The id, revision and beginning of the hash of the weights in force; empty for a metric that needs none."""
        model = self.family.model
        return "" if model is None else f"{model.id}, revision {model.revision}, sha256 {model.digest()[:12]}"

    def fingerprint(self) -> str:
        """A hash of name, formula, backend, corpus statistics and weights, wherever these lie."""
        model = self.family.model
        weights = [] if model is None else [{**model.to_state(), "id": ""}]
        return content_hash(self.name, self.card.formula, self.card.backend, self.statistics, *weights)

    def fit(self, rows: Sequence[dspy.Example]) -> BankMetric:
        """Bind the corpus statistics of `rows`; a family without statistics returns itself."""
        if self.family.statistics is None:
            return self
        complete = [text for text in map(row_text, rows) if not missing_needs(self.card, text)]
        return replace(self, statistics=self.family.statistics(TextBatch.of(complete, model=self.family.model)))

    def score(self, output: str, *, input: str = "", references: Sequence[str] | str = ()) -> float:
        """The raw number for one text; NaN if it is undefined or something it needs is missing."""
        references = (references,) if isinstance(references, str) else tuple(references)
        raw = self.judge_batch([dspy.Example(output=output, input=input, references=list(references))])[0].raw
        return math.nan if raw is None else raw

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """Score rows; rows that do not meet the card's needs are ``skipped``, with the reason."""
        return judge_family([self], rows, run=run)[0]

    def to_state(self) -> dict[str, Any]:
        """Name and corpus statistics, and of the weights everything but where they lie."""
        model = {} if self.family.model is None else {"model": self.family.model.to_state()}
        return {"kind": "bank", "name": self.name, "statistics": self.statistics, **model}


def missing_needs(card: MetricCard, text: RowText) -> list[str]:
    """The card's text needs that the row does not meet."""
    there = {"input": bool(text.input), "references": any(text.references)}
    return [name for name, given in there.items() if name in card.needs and not given]


def judge_family(metrics: Sequence[BankMetric], rows: Sequence[dspy.Example], *, run: int = 0) -> list[list[Judgement]]:
    """Judge rows by several outputs of one family and one set of statistics, computing shared work once.

    A row over which `compute` fails has status ``transport`` with its words; the other rows have their numbers.

    Returns
    -------
    list of list of Judgement
        ``result[j][i]`` is metric j on row i.

    Raises
    ------
    NeedsError
        If the family needs weights that are not here or cannot be used.
    """
    family, statistics = metrics[0].family, metrics[0].statistics
    texts = [row_text(row) for row in rows]
    missing = [missing_needs(family.card, text) for text in texts]
    complete = [text for text, gaps in zip(texts, missing, strict=True) if not gaps]
    found = _judge_texts(metrics, TextBatch.of(complete, statistics, family.model), run) if complete else []
    judged = iter(found)
    table = [
        _without_number(metrics, f"row has no {' and no '.join(gaps)}", run) if gaps else next(judged)
        for gaps in missing
    ]
    return [[row[place] for row in table] for place in range(len(metrics))]


def _judge_texts(metrics: Sequence[BankMetric], batch: TextBatch, run: int) -> list[list[Judgement]]:
    """The judgements of each row; where `compute` fails on the batch, halves tell which row it is."""
    family, names = metrics[0].family, [metric.name for metric in metrics]
    try:
        scores, reasons = computed(family, batch, names)
    except FAULTS as problem:
        own = family.statistics is not None and batch.statistics is None  # a half would have others
        if own or isinstance(problem, MetricsmithError):
            raise
        if len(batch) == 1:
            error = f"{type(problem).__name__}: {problem}"
            return [_without_number(metrics, error, run, Status.TRANSPORT)]
        middle = len(batch) // 2
        halves = batch.part(range(middle)), batch.part(range(middle, len(batch)))
        return [judged for half in halves for judged in _judge_texts(metrics, half, run)]
    columns = [np.asarray(scores[name], dtype=float).tolist() for name in names]
    return [
        [
            Judgement(metric.name, raw=raw, score=metric.output.score(raw), run=run)
            if math.isfinite(raw)
            else Judgement(metric.name, status=Status.SKIPPED, error=reason or UNDEFINED, run=run)
            for metric, raw in zip(metrics, row, strict=True)
        ]
        for *row, reason in zip(*columns, reasons, strict=True)
    ]


def _without_number(
    metrics: Sequence[BankMetric], error: str, run: int, status: Status = Status.SKIPPED
) -> list[Judgement]:
    return [Judgement(metric.name, status=status, error=error, run=run) for metric in metrics]


@dataclass(frozen=True, slots=True)
class Pairs:
    """m pairs of output and reference out of n rows, row by row, references in the order given.

    `counts[i]` is the number of pairs of row i; blank references make none.
    """

    outputs: Sequence[str]
    references: Sequence[str]
    counts: IntArray

    def best(self, values: FloatArray, *, highest: bool = True) -> FloatArray:
        """Returns the best of each row's values that are not NaN: (m,) to (n,); NaN for a row without any."""
        result = np.full(len(self.counts), np.nan)
        filled = self.counts > 0
        if filled.any():
            choose = np.fmax if highest else np.fmin
            result[filled] = choose.reduceat(values, self._starts[filled])
        return result

    def mean(self, values: FloatArray) -> FloatArray:
        """Returns the mean of each row's values that are not NaN: (m,) to (n,); NaN for a row without any."""
        rows, known = np.repeat(np.arange(len(self.counts)), self.counts), ~np.isnan(values)
        sums = np.bincount(rows[known], values[known], minlength=len(self.counts))
        counts = np.bincount(rows[known], minlength=len(self.counts))
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

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
Cell = tuple[float, str]  # a number, and the reason where it is NaN
_KEPT: ContextVar[dict[tuple[Compute, ModelSpec | None, str], dict[str, dict[Row, Cell]]] | None] = ContextVar(
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


def computed(family: Family, batch: TextBatch, names: Names) -> Reasoned:
    """The outputs of a `Family` for a `TextBatch`, ``{name: float array (n,)}``; `numbers_kept` keeps them.

    A family that would make its statistics out of the batch itself is always computed.
    """
    kept = _KEPT.get()
    if kept is None or (family.statistics is not None and batch.statistics is None):
        return _reasoned(family.compute(batch, names), len(batch))
    statistics = "" if batch.statistics is None else content_hash(batch.statistics)
    known = kept.setdefault((family.compute, family.model, statistics), {})
    rows = list(zip(batch.outputs, batch.inputs, map(tuple, batch.references), strict=True))
    columns = [known.setdefault(name, {}) for name in names]
    new = list(dict.fromkeys(row for row in rows if any(row not in column for column in columns)))
    if new:
        outputs, inputs, references = zip(*new, strict=True)
        some = replace(batch, outputs=outputs, inputs=inputs, references=references)
        scores, reasons = _reasoned(family.compute(some, names), len(new))
        for name, column in zip(names, columns, strict=True):
            cells = zip(np.asarray(scores[name], dtype=float).tolist(), reasons, strict=True)
            column.update(zip(new, cells, strict=True))
    found = {name: np.array([column[row][0] for row in rows]) for name, column in zip(names, columns, strict=True)}
    return Reasoned(found, [columns[0][row][1] for row in rows])


_BLANK = {"output": "the output is empty", "input": "the input is empty", "references": "every reference is empty"}


def blank_texts(batch: TextBatch, *needs: str) -> list[str]:
    """The reason for each of n rows why a network has nothing to read: a blank text among `needs`; else empty."""
    columns = {"output": batch.outputs, "input": batch.inputs, "references": map("".join, batch.references)}
    rows = zip(*(columns[name] for name in needs), strict=True)
    return [next((_BLANK[name] for name, text in zip(needs, row, strict=True) if not text.strip()), "") for row in rows]


def where_filled(batch: TextBatch, outputs: Names, score: Callable[[TextBatch], FloatArray], *others: str) -> Reasoned:
    """One number a row: `score` of the rows whose output and `others` are not blank, else NaN with the reason."""
    reasons = blank_texts(batch, "output", *others)
    rows = [row for row, reason in enumerate(reasons) if not reason]
    numbers = np.full(len(batch), np.nan)
    if rows:
        numbers[rows] = score(batch.part(rows))
    return Reasoned(dict.fromkeys(outputs, numbers), reasons)


def _reasoned(found: Scores | Reasoned, rows: int) -> Reasoned:
    return found if isinstance(found, Reasoned) else Reasoned(found, [""] * rows)
