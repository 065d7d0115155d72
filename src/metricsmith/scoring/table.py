"""The table of judgements: numbers at hand, whole records on demand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import OptionError, nearest
from metricsmith.formats import count, points
from metricsmith.metric import Metric
from metricsmith.records import Judgement, Status, Usage
from metricsmith.report.blocks import Heading, Paragraph, TextTable, Warnings
from metricsmith.report.notebook import SHORT
from metricsmith.report.render import cost_line, render_brief
from metricsmith.scoring.plan import Expression, Term
from metricsmith.scoring.results import CODES, STATUSES, Results

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Coverage", "ScoreTable", "tally"]

FloatArray = NDArray[np.float64]
LINES_AT_A_TIME = 10_000


def tally(judgements: Iterable[Judgement]) -> dict[str, int]:
    """Count judgements by status; ``requested`` is the sum of all others."""
    return _counts(Counter(judgement.status for judgement in judgements))


def _counts(counts: Counter[Status]) -> dict[str, int]:
    return {"requested": counts.total(), **{status.value: counts[status] for status in Status}}


@dataclass(frozen=True)
class Coverage:
    """The coverage of one metric: how many of its judgements were made.

    Parameters
    ----------
    metric : str
    counts : dict of str to int
        ``requested``, and as many by each status; they add up.
    reused : int
        The number of judgements that came from the store, of those that the metric rests on.
    usage : Usage
        The cost of the metric in this run. Costs that several metrics share stand with the first of them.
    """

    metric: str
    counts: dict[str, int]
    reused: int
    usage: Usage

    @property
    def share(self) -> float:
        """Share of the requested judgements that have a number, in [0, 1]; NaN if none was requested."""
        return self.counts["ok"] / self.counts["requested"] if self.counts["requested"] else float("nan")


class ScoreTable:
    """Judgements of m metrics on n rows in r repetitions.

    Numbers and statuses are arrays; a whole judgement is read when it is asked for, from the store if there
    is one. A table with a store needs its file as long as judgements are read.

    Parameters
    ----------
    metrics : tuple of Metric
    terms : tuple of tuple of Term
        ``terms[j][r]`` says of which metric runs metric j in repetition r is made.
    results : Results
        The judgements of the metric runs.
    """

    def __init__(self, metrics: Sequence[Metric], terms: Sequence[Sequence[Term]], results: Results) -> None:
        self.metrics = tuple(metrics)
        self._columns = tuple(map(tuple, terms))
        self._results = results

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics' names, in column order."""
        return tuple(metric.name for metric in self.metrics)

    @property
    def rows(self) -> Sequence[dspy.Example]:
        """The rows that were judged."""
        return self._results.rows

    @property
    def runs(self) -> int:
        """Number of repetitions r; 0 where there are no metrics."""
        return len(self._columns[0]) if self._columns else 0

    @cached_property
    def values(self) -> FloatArray:
        """Raw numbers, shape (n, m, r); NaN where there is none."""
        values = np.empty((len(self.rows), len(self.metrics), self.runs))
        for j, terms in enumerate(self._columns):
            for run, term in enumerate(terms):
                values[:, j, run] = self._numbers(term)
        return values

    @cached_property
    def statuses(self) -> NDArray[np.int8]:
        """The status of each judgement, shape (n, m, r), by place in `records.Status`."""
        codes = np.empty((len(self.rows), len(self.metrics), self.runs), dtype=np.int8)
        for j, terms in enumerate(self._columns):
            for run, term in enumerate(terms):
                codes[:, j, run] = self._status_codes(term)
        return codes

    @property
    def complete(self) -> int:
        """The number of rows before the first of which a judgement was left undone when the run was cut short."""
        left = self._results.left.any(axis=0)
        return int(left.argmax()) if left.any() else len(self.rows)

    def run(self, run: int = 0) -> FloatArray:
        """Raw numbers of one repetition, shape (n, m)."""
        return self.values[:, :, run] if self.metrics else np.empty((len(self.rows), 0))

    @property
    def usage(self) -> Usage:
        """The cost of this run, over all metrics; judgements from a store cost nothing again."""
        places = dict.fromkeys(place for terms in self._columns for term in terms for place in _places(term))
        return sum((self._results.spent[place] for place in places), Usage())

    def judgement(self, row: int, metric: int, run: int = 0) -> Judgement:
        """One whole judgement.

        Parameters
        ----------
        row, metric, run : int
            Places, counted from 0.

        Raises
        ------
        StoreError
            If the store that holds it was changed since.
        """
        return self._judge(self._columns[metric][run], row)

    def parts(self, row: int, metric: int, run: int = 0) -> list[Judgement]:
        """The judgements that a composite's judgement rests on, in the order of its parts; empty for other metrics.

        Raises
        ------
        StoreError
            If the store that holds them was changed since.
        """
        term = self._columns[metric][run]
        return [] if isinstance(term, int) else [self._judge(part, row) for part in term.parts]

    def column(self, metric: int, run: int = 0) -> list[Judgement]:
        """All n judgements of one metric in one repetition."""
        return [self.judgement(row, metric, run) for row in range(len(self.rows))]

    def flat(self) -> list[Judgement]:
        """Every judgement, metric by metric, repetition by repetition, row by row."""
        return [
            self.judgement(row, metric, run)
            for metric in range(len(self.metrics))
            for run in range(self.runs)
            for row in range(len(self.rows))
        ]

    def failed(self) -> list[Judgement]:
        """Every judgement without a number, in the order of `flat`."""
        lacking = np.argwhere(self.statuses.transpose(1, 2, 0) != CODES[Status.OK])
        return [self.judgement(row, metric, run) for metric, run, row in lacking.tolist()]

    def counts(self) -> dict[str, int]:
        """Judgements by status, over the whole table; ``requested`` is the sum of all others."""
        return _tally(self.statuses)

    def coverage(self) -> list[Coverage]:
        """The coverage of each metric, in column order."""
        seen: set[int] = set()
        lines = []
        for j, terms in enumerate(self._columns):
            places = dict.fromkeys(place for term in terms for place in _places(term))
            usage = sum((self._results.spent[place] for place in places if place not in seen), Usage())
            seen |= set(places)
            reused = int(sum(self._results.reused[place] for place in places))
            lines.append(Coverage(self.names[j], _tally(self.statuses[:, j]), reused, usage))
        return lines

    @property
    def dropped(self) -> dict[str, str]:
        """Names of metrics that lost all numbers because too many of their judgements failed, and why (`PerJudge`)."""
        reasons = self._results.dropped
        return {
            name: reasons[place]
            for name, terms in zip(self.names, self._columns, strict=True)
            for term in terms
            for place in _places(term)
            if place in reasons
        }

    def select(self, names: Iterable[str]) -> ScoreTable:
        """The table of the named metrics, in the order given.

        Raises
        ------
        OptionError
            If a name is not in the table, or stands there twice.
        """
        index = {name: position for position, name in enumerate(self.names)}
        if len(index) < len(self.metrics):
            raise OptionError("two metrics share a name, so that columns cannot be told apart by it; rename one")
        if isinstance(names, str):
            raise OptionError(f"names must be a list, not one text: write [{names!r}]")
        chosen = []
        for name in names:
            if name not in index:
                raise OptionError(f"no column {name!r}{nearest(name, index)} in the table; it has {', '.join(index)}")
            chosen.append(index[name])
        return ScoreTable(
            [self.metrics[place] for place in chosen], [self._columns[place] for place in chosen], self._results
        )

    def records(self) -> Iterator[dict[str, Any]]:
        """Yields one plain record a judgement, row by row, as `to_pandas` and `to_parquet` hold them."""
        for i, row in enumerate(self.rows):
            row_id = str(row.get("id", i))
            for j, name in enumerate(self.names):
                for run, number in enumerate(self._results.plan.runs):
                    yield _record(i, row_id, name, number, self.judgement(i, j, run))

    def to_pandas(self, each: Literal["judgement", "row"] = "judgement") -> pd.DataFrame:
        """A frame with one line for each judgement, or for each row.

        Parameters
        ----------
        each : str
            ``judgement``: row, id, metric, run, status, raw, score, feedback, error and what it cost; ``cost`` is US
            dollars and missing where the price is unknown, and a judgement from a store brings what it cost when it was
            made. ``row``: the id and each metric's raw number, NaN where there is none; of several repetitions each has
            its column, ``NAME.run0`` and so on by its number.

        Raises
        ------
        OptionError
            For anything else.
        """
        import pandas as pd

        if each == "row":
            runs = [f".run{run}" for run in self._results.plan.runs] if self.runs > 1 else [""]
            columns = [name + run for name in self.names for run in runs]
            wide = pd.DataFrame(self.values.reshape(len(self.rows), len(columns)), columns=columns)
            wide.insert(0, "id", [str(row.get("id", place)) for place, row in enumerate(self.rows)], True)
            return wide
        if each != "judgement":
            raise OptionError(
                f"each={each!r}{nearest(str(each), ('judgement', 'row'))} must be judgement or row: write each='row' "
                "for one line a row"
            )
        frame = pd.DataFrame(list(self.records()), columns=[*_record(0, "", "", 0, Judgement("", 0.0))])
        return frame.astype({"raw": float, "score": float, "cost": float})

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write the frame of `to_pandas`, a piece at a time, so that memory stays bounded.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        text, whole, real = pa.string(), pa.int64(), pa.float64()
        types = {"row": whole, "run": whole, "requests": whole, "prompt_tokens": whole, "completion_tokens": whole,
                 "raw": real, "score": real, "cost": real, "seconds": real}  # fmt: skip
        schema = pa.schema([(name, types.get(name, text)) for name in _record(0, "", "", 0, Judgement("", 0.0))])
        lines = self.records()
        with pq.ParquetWriter(path, schema) as writer:
            while piece := list(islice(lines, LINES_AT_A_TIME)):
                writer.write_table(pa.Table.from_pylist(piece, schema))

    def _repr_html_(self) -> str:
        """Each metric's numbers in short, and the first rows."""
        figures, widths = [], []
        for j, one in enumerate(self.coverage()):
            known = self.values[:, j][np.isfinite(self.values[:, j])]
            spread = (known.mean(), known.min(), known.max()) if known.size else (None,) * 3
            counts = count(one.counts["ok"]), count(one.counts["requested"] - one.counts["ok"])
            widths.append(float(np.ptp(known)) if known.size else 0.0)
            figures.append((one.metric, *counts, *(points(number, widths[j]) for number in spread)))
        wide = self.to_pandas("row").head(SHORT)
        each = [width for width in widths for _ in range(self.runs)]
        rows = [(str(name), *map(points, numbers, each)) for name, *numbers in wide.itertuples(index=False)]
        return render_brief(
            [
                Heading(
                    f"{count(len(self.rows), 'row')}, {count(len(self.metrics), 'metric')}, {count(self.runs, 'run')}"
                ),
                Warnings([f"{name}: {why}" for name, why in self.dropped.items()]),
                TextTable(("metric", "numbers", "without", "mean", "least", "greatest"), figures),
                TextTable(list(wide.columns), rows, "The first rows", "The first rows"),
                Paragraph(cost_line("actual", self.usage), "muted"),
            ]
        )

    def __repr__(self) -> str:
        return f"ScoreTable({len(self.rows)} rows, {len(self.metrics)} metrics, {self.runs} runs)"

    def _numbers(self, term: Term) -> FloatArray:
        if isinstance(term, int):
            known: FloatArray = self._results.values[term]
            return known
        parts = [self._numbers(part) for part in term.parts]
        matrix = np.stack(parts, axis=1) if parts else np.empty((len(self.rows), 0))
        numbers: FloatArray = term.metric.combined(matrix)
        return numbers

    def _status_codes(self, term: Term) -> NDArray[np.int8]:
        """Status codes of a term; a composite is asked for its verdict only where it has no number."""
        if isinstance(term, int):
            known: NDArray[np.int8] = self._results.codes[term]
            return known
        codes = np.full(len(self.rows), CODES[Status.OK], dtype=np.int8)
        for row in np.flatnonzero(~np.isfinite(self._numbers(term))):
            codes[row] = CODES[self._judge(term, int(row)).status]
        return codes

    def _judge(self, term: Term, row: int) -> Judgement:
        if isinstance(term, int):
            return self._results.judgement(term, row)
        verdict: Judgement = term.metric.verdict([self._judge(part, row) for part in term.parts], term.run)
        return verdict


def _places(term: Term) -> Iterator[int]:
    if isinstance(term, Expression):
        for part in term.parts:
            yield from _places(part)
    else:
        yield term


def _tally(codes: NDArray[np.int8]) -> dict[str, int]:
    numbers = np.bincount(codes.ravel(), minlength=len(STATUSES))
    return _counts(Counter({status: int(count) for status, count in zip(STATUSES, numbers, strict=True)}))


def _record(place: int, row_id: str, metric: str, run: int, judgement: Judgement) -> dict[str, Any]:
    usage = judgement.usage
    return {
        "row": place, "id": row_id, "metric": metric, "run": run, "status": judgement.status.value,
        "raw": judgement.raw, "score": judgement.score, "feedback": judgement.feedback, "error": judgement.error,
        "requests": usage.requests, "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens, "cost": usage.cost, "seconds": usage.seconds,
    }  # fmt: skip
