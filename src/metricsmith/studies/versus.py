"""Two versions of outputs to the same inputs under one metric, and the difference that it finds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dspy
import numpy as np

from metricsmith.bank.catalogue import default_bank
from metricsmith.datasets.sources import RawTable, filter_rows, open_source
from metricsmith.datasets.splits import connected_parts
from metricsmith.datasets.table import Table, read_table
from metricsmith.errors import DataError, ModelFailure, OptionError
from metricsmith.metric import Explanation, Metric, content_hash
from metricsmith.model_calls.models import using
from metricsmith.records import Status
from metricsmith.report.scored.record import ScoredRow
from metricsmith.report.versus.record import MovedPair, Versus
from metricsmith.scoring import score
from metricsmith.scoring.explanations import explanations, scored_metrics
from metricsmith.scoring.plan import as_metric, model_of
from metricsmith.stats.correlation import FloatArray, IntArray
from metricsmith.stats.mean_difference import MeanDifference, mean_difference
from metricsmith.stats.resampling import holm
from metricsmith.version import __version__

__all__ = ["PairedVersions", "paired_versions", "versus"]

Read = tuple[Table, RawTable]  # rows as a metric reads them, and the same rows with all columns
MOST_MOVED = 5  # pairs shown each way
MOST_SLICES = 30
MANY_FAILED = 0.05  # of the pairs without a value: worth a warning


def versus(
    metric: Any,
    first: Any,
    second: Any,
    *,
    by: str | None = None,
    id: str | None = None,
    reading: Mapping[str, Any] | None = None,
    seed: int = 0,
    **options: Any,
) -> Versus:
    """Holds a second version of outputs against a first: the mean difference on pairs of rows, and a verdict.

    Parameters
    ----------
    metric : metric, callable or str
        Anything that `score` takes and that gives one number a row, or the name of a bank metric.
    first, second : path, pandas.DataFrame, datasets.Dataset or hub id
        The tables A and B, which are read as the metric's training rows were. Ratings in them are not read.
    by : str, optional
        A column of either table: the difference is measured for each of its values, too.
    id : str, optional
        The column of both tables that pairs rows. Without it an id column does that both have, as long as it pairs
        half of the smaller table or no fewer rows than the input does; else the input's text, exactly, with context and
        system where that loses no pair, the k-th row with one and the k-th with the same. An id that a table has twice
        pairs nothing, nor does a guessed one that stands with two inputs.
    reading : mapping, optional
        Columns and conditions as `read_table` takes them.
    seed : int
        Of the test.
    **options
        ``lm``, ``store``, ``budget``, ``concurrency``, ``max_failure_rate`` and ``progress`` of `score`. A failed
        judgement is no number: the pair is left out and counted.

    Returns
    -------
    Versus

    Raises
    ------
    DataError
        If a table cannot be read, no row pairs with another, or no pair has a value on both sides.
    OptionError
        If the metric gives several numbers a row or none that is better one way, or an option has no meaning.
    ModelFailure
        As `score` raises it, and if no pair has a value because judgements failed.
    """
    one = as_metric(default_bank().get(metric) if isinstance(metric, str) else metric)
    return paired_versions(one, first, second, by=by, id=id, reading=reading).judged(one, seed=seed, **options)


def paired_versions(
    metric: Metric,
    first: Any,
    second: Any,
    *,
    by: str | None = None,
    id: str | None = None,
    reading: Mapping[str, Any] | None = None,
) -> PairedVersions:
    """Pairs the rows of two tables; parameters and errors as for `versus`."""
    named = {**getattr(metric, "reading", {}), **(reading or {}), "target": None, "require_target": False}
    sources = open_source(first), open_source(second)
    tables = read_table(sources[0], **named), read_table(sources[1], **named)
    both = [(table, filter_rows(source, table.where)) for table, source in zip(tables, sources, strict=True)]
    places, names, how, left_out = _paired(both, id)
    if not places:
        raise DataError(
            f"no row of {tables[0].name} pairs with one of {tables[1].name} by {how}: name a column of both that says "
            "which rows belong together with id=... (--id)"
        )
    for side, letter in enumerate("AB"):
        known = {pair[side] for pair in places}
        alone = [name for place, name in enumerate(names[side]) if place not in known]
        left_out[f"rows of {letter} pair with none"] = alone
    return PairedVersions(
        tables, [(tables[0].rows[i], tables[1].rows[j]) for i, j in places], [names[0][i] for i, _ in places],
        connected_parts(*([tables[side].rows[pair[side]]["group"] for pair in places] for side in (0, 1))),
        by or "", _values(by, both, places), how, {why: tuple(left) for why, left in left_out.items() if left},
    )  # fmt: skip


@dataclass(frozen=True)
class PairedVersions:
    """Two tables of outputs, A and B, paired row by row.

    `rows` and `ids` are those of the n pairs, A's row first. Pairs share a number in `groups` where their rows share a
    group in either table. `values` are the cells of the column `by`, None where A and B differ in it. `left_out` has
    the names of what pairs with nothing, by reason.
    """

    tables: tuple[Table, Table]
    rows: list[tuple[dspy.Example, dspy.Example]]
    ids: list[str]
    groups: IntArray
    by: str
    values: list[str | None]
    paired_by: str
    left_out: Mapping[str, tuple[str, ...]]

    @property
    def every(self) -> list[dspy.Example]:
        """All rows, pair by pair, so that a run that is cut short leaves whole pairs."""
        return [row for pair in self.rows for row in pair]

    def judged(self, metric: Metric, *, seed: int = 0, lm: Any = None, **options: Any) -> Versus:
        """Judges both versions; see `versus`."""
        with using(lm):
            return self._judged(metric, seed, options)

    def _judged(self, metric: Metric, seed: int, options: Mapping[str, Any]) -> Versus:
        output, sign = metric.output, metric.output.sign
        table = score(scored_metrics(metric), self.every, **options)
        explained = explanations(metric, table)
        raw = np.array([one.prediction.raw for one in explained], dtype=float).reshape(-1, 2)
        known = ~np.isnan(raw).any(axis=1)
        if not known.any():
            failed = next(one.prediction for one in explained if not one.prediction.ok)
            kind = DataError if failed.status is Status.SKIPPED else ModelFailure
            raise kind(f"none of {len(raw)} pairs has a value on both sides; the first without: {failed.error}")
        width = math.inf if output.low is None or output.high is None else output.high - output.low

        def compared(name: str, values: FloatArray, rows: Any = known, width: float = math.inf) -> MeanDifference:
            a, b = values[rows].T
            codes = self.groups[rows]
            return mean_difference(a, b, codes, name=name, higher_is_better=sign > 0, width=width, seed=seed)

        labels = np.array(self.values, dtype=object)
        told = Counter(value for value, there in zip(self.values, known, strict=True) if there and value is not None)
        added = np.nan_to_num([[part.contribution for part in one.parts] for one in explained])
        parts = [compared(part.name, added[:, j].reshape(-1, 2)) for j, part in enumerate(explained[0].parts)]
        slices = [compared(value, raw, known & (labels == value), width) for value, _ in told.most_common()]
        without = {"pairs have no value on a side": tuple(np.array(self.ids)[~known].tolist())}
        model = str(getattr(model_of(metric), "model", "")) if "model" in metric.card.needs else ""
        return Versus(
            target=getattr(getattr(metric, "task", None), "target", "") or metric.name, metric=metric.name,
            versions=(self.tables[0].name, self.tables[1].name),
            width=width if math.isfinite(width) else float(np.nanmax(raw) - np.nanmin(raw)),
            whole=compared("all pairs", raw, width=width), components=_adjusted(parts),
            by=self.by, slices=_adjusted(slices), moved=_moved(self, explained, raw[:, 1] - raw[:, 0], sign),
            paired_by=self.paired_by, left_out={**self.left_out, **({} if known.all() else without)},
            signature=self._signature(metric, model, seed), model=model, usage=table.usage, notes=self._notes(),
            warnings=tuple(self._cautions(raw, explained)),
        )  # fmt: skip

    def _notes(self) -> tuple[str, ...]:
        first, second = (table.notes for table in self.tables)
        own = [*(note if note in second else f"A: {note}" for note in first)]
        own += [f"B: {note}" for note in second if note not in first]
        apart = self.values.count(None) if self.by else 0
        return (*own, *([f"{apart} pairs stand in no slice: A and B differ in {self.by!r}"] if apart else ()))

    def _cautions(self, raw: FloatArray, explained: Sequence[Explanation]) -> list[str]:
        """Warnings of one table given twice, of pairs without a value, and of components that one side lacks."""
        known = [[part.judgement.ok for part in one.parts] for one in explained]
        uneven = sum(a != b for a, b in zip(known[::2], known[1::2], strict=True))
        a, b = np.isnan(raw).sum(axis=0)
        lost = int(np.isnan(raw).any(axis=1).sum())
        cautions = {
            "A and B are the same table": len({(table.checksum, table.where) for table in self.tables}) == 1,
            f"{lost} of {len(raw)} pairs have no value ({a} of A, {b} of B): if they are harder than the others, the "
            "difference on all rows is another": lost > MANY_FAILED * len(raw),
            f"in {uneven} pairs a component has a value on one side alone and counts as average on the other": uneven,
        }  # fmt: skip
        return [said for said, holds in cautions.items() if holds]

    def _signature(self, metric: Metric, model: str, seed: int) -> str:
        """Everything on which the numbers depend."""
        roles = content_hash([str(table.columns) for table in self.tables])[:8]
        slices = f", sliced by {self.by}" if self.by else ""
        return (
            f"metricsmith {__version__} | versus by {metric.name} {metric.fingerprint()[:12]} | "
            f"A {self.tables[0].source} | B {self.tables[1].source} | {len(self.rows)} pairs by {self.paired_by} in "
            f"{len({*self.groups.tolist()})} groups{slices}, columns {roles} | model {model or 'none'}, seed {seed}"
        )


def _paired(
    both: Sequence[Read], column: str | None
) -> tuple[list[tuple[int, int]], Sequence[Sequence[str]], str, dict[str, list[str]]]:
    """Places of the paired rows, the rows' names in each table, the way of pairing, and what pairs nothing, and why."""
    texts = [[row.get("input", "") for row in table.rows] for table, _ in both]
    by_text, how = _by_text(both, texts)
    columns = [column or table.columns.id for table, _ in both]
    if None in columns:
        return by_text, [table.ids for table, _ in both], how, {}
    keys = [raw.texts(raw.require(str(name), "id=... (--id)")) for (_, raw), name in zip(both, columns, strict=True)]
    names = [
        [key or f"row {n}" for key, n in zip(own, raw.numbers, strict=True)]
        for own, (_, raw) in zip(keys, both, strict=True)
    ]
    by_id = _matched(*keys)
    apart = {(i, j) for i, j in by_id if column is None and texts[0][i].split() != texts[1][j].split()}
    places = [pair for pair in by_id if pair not in apart]
    if column is None and 2 * len(places) < min(map(len, keys)) and len(by_text) > len(places):
        return by_text, [table.ids for table, _ in both], how, {}
    counts = [Counter(own) for own in keys]
    twice = [key for key in dict.fromkeys((*keys[0], *keys[1])) if key and max(own[key] for own in counts) > 1]
    return places, names, " and ".join(dict.fromkeys(f"the column {name!r}" for name in columns)), {
        "ids stand several times in a table and pair nothing": twice,
        "ids stand with different inputs and pair nothing (name the column with --id to pair them)":
            [keys[0][i] for i, _ in sorted(apart)],
    }  # fmt: skip


def _by_text(both: Sequence[Read], texts: Sequence[Sequence[str]]) -> tuple[list[tuple[int, int]], str]:
    """Places of rows with equal inputs, and the way of pairing: by context and system, too, if no pair is lost by it.

    An instruction that stands with every row pairs nothing by itself, and a table may hold several systems; but two
    versions may also be called two systems, or have looked up other contexts.
    """
    keys, places, told = texts, _matched(*texts, several=True), ["the input's text"]
    for role in ("context", "system"):
        if not all(getattr(table.columns, role) for table, _ in both):
            continue
        finer = [
            [key and f"{key}\0{row.get(role, '')}" for key, row in zip(own, table.rows, strict=True)]
            for own, (table, _) in zip(keys, both, strict=True)
        ]
        found = _matched(*finer, several=True)
        if len(found) == len(places):
            keys, places, told = finer, found, [*told, role]
    again = sum(count > 1 for count in Counter(keys[0][i] for i, _ in places).values())
    return places, ", ".join(told) + (f" (of {again} that repeat, the k-th with the k-th)" if again else "")


def _matched(first: Sequence[str], second: Sequence[str], *, several: bool = False) -> list[tuple[int, int]]:
    """Places of equal keys that are not empty; of a key that repeats none, or with `several` the k-th and the k-th."""
    places: list[dict[str, list[int]]] = [{}, {}]
    for own, keys in zip(places, (first, second), strict=True):
        for place, key in enumerate(keys):
            own.setdefault(key, []).append(place)
    found = [(own, places[1][key]) for key, own in places[0].items() if key and key in places[1]]
    return sorted(pair for a, b in found if several or len(a) == len(b) == 1 for pair in zip(a, b, strict=False))


def _values(by: str | None, both: Sequence[Read], places: Sequence[tuple[int, int]]) -> list[str | None]:
    """The cell of the column `by` for each pair; None where A and B differ."""
    if by is None:
        return [None] * len(places)
    if not any(by in raw.columns for _, raw in both):
        both[0][1].require(by, "by=... (--by)")
    columns = {side: raw.texts(by) for side, (_, raw) in enumerate(both) if by in raw.columns}
    cells = [{own[pair[side]] for side, own in columns.items()} for pair in places]
    values = [cell.pop() or "(blank)" if len(cell) == 1 else None for cell in cells]
    if len(set(values)) > MOST_SLICES:
        raise OptionError(
            f"by={by!r} (--by) has {len(set(values))} values over {len(values)} pairs, at most {MOST_SLICES} are "
            "compared: name a column with fewer"
        )
    return values


def _adjusted(found: Sequence[MeanDifference]) -> tuple[MeanDifference, ...]:
    """Differences with Holm's correction over all of them."""
    p_values = holm([one.p_value for one in found])
    return tuple(replace(one, p_adjusted=float(p)) for one, p in zip(found, p_values, strict=True))


def _moved(
    pairs: PairedVersions, explained: Sequence[Explanation], gaps: FloatArray, sign: int
) -> tuple[MovedPair, ...]:
    """The pairs that gained most, then those that lost most; one without a value never counts."""
    order = np.argsort(-sign * gaps, kind="stable")
    best = [place for place in order[:MOST_MOVED] if sign * gaps[place] > 0]
    worst = [place for place in order[~np.isnan(gaps[order])][::-1][:MOST_MOVED] if sign * gaps[place] < 0]

    def row(place: int, side: int) -> ScoredRow:
        own = pairs.rows[place][side]
        texts = {name: own.get(name, "") for name in ("input", "output")}
        return ScoredRow.of(pairs.ids[place], texts, explained[2 * place + side])

    return tuple(MovedPair(row(place, 0), row(place, 1), float(gaps[place])) for place in (*best, *worst))
