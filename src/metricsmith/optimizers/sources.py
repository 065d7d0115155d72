"""The sources of candidates, and the candidates that may stay."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import dspy

from metricsmith.bank.catalogue import MetricBank
from metricsmith.bank.column import column_numbers
from metricsmith.datasets.target_copies import check_copies
from metricsmith.errors import DataError, NeedsError, OptionError, nearest
from metricsmith.metric import Metric
from metricsmith.optimizers.generation import DEFAULT_COUNTS, GENERATORS
from metricsmith.optimizers.learning_judges import LEARNED
from metricsmith.records import Status
from metricsmith.scoring import ScoreTable
from metricsmith.scoring.results import CODES

__all__ = [
    "BANKS", "DEFAULT_POOL", "FAMILIES", "MOST_MISSING", "Plan", "Sources", "learned_counts", "sparse_note",
]  # fmt: skip

BANKS = ("auto", "all", "existing", "generated", "none")
FAMILIES = (*GENERATORS, *LEARNED)
DEFAULT_POOL: Mapping[str, int] = {**DEFAULT_COUNTS, "examples": 1, "tuned": 1}  # AutoMetrics, section 3.1
MOST_MISSING = 0.1  # share of the training rows on which a candidate may have nothing to go by
GENERATED_ONLY_BELOW = 80  # rated training rows; AutoMetrics, section 4.6


@dataclass(frozen=True)
class Sources:
    """The sources of candidates.

    Parameters
    ----------
    bank : str
        ``existing`` (bank metrics), ``generated`` (judges), ``all`` (both), ``none`` (columns only) or
        ``auto``: without a language model as ``existing``; with one as ``generated`` below
        `generated_only_below` rated training rows and as ``all`` from there on.
    columns : sequence of str
        Columns of numbers that the rows bring along.
    prior_columns : collection of str
        Those among `columns` that are declared to measure the target, more being better.
    allow_columns : collection of str
        Those among `columns` and own functions that are taken although they order the rows just as the ratings do.
    generators : mapping of str to int
        Judge family to number of judges.
    metrics : MetricBank, optional
        The bank; None takes the whole default one.
    own : sequence of Metric
        The caller's own (`metricsmith.optimizers.own`): always candidates, and not counted in `k`.
    k : int
        How many metrics (cards) retrieval keeps.
    generated_only_below : int
    panel : bool
        Whether the generated judges that retrieval keeps are asked together, in one request a row.
    allow_missing : bool
        Whether candidates stay that lack what they need, or are undefined, on more than `MOST_MISSING` of the training
        rows.
    """

    bank: str = "auto"
    columns: Sequence[str] = ()
    prior_columns: Collection[str] = ()
    allow_columns: Collection[str] = ()
    generators: Mapping[str, int] = field(default_factory=lambda: dict(DEFAULT_POOL))
    metrics: MetricBank | None = None
    own: Sequence[Metric] = ()
    k: int = 30
    generated_only_below: int = GENERATED_ONLY_BELOW
    panel: bool = False
    allow_missing: bool = False

    def __post_init__(self) -> None:
        if self.bank not in BANKS:
            raise OptionError(f"bank={self.bank!r}{nearest(self.bank, BANKS)} must be one of {', '.join(BANKS)}")
        for family in self.generators:
            if family not in FAMILIES:
                known = ", ".join(FAMILIES)
                raise OptionError(f"no judge family {family!r}{nearest(family, FAMILIES)}; there are {known}")
        if self.k < 1:
            raise OptionError(f"k={self.k} must be at least 1")
        stray = set(self.prior_columns) - set(self.columns)
        if stray:
            raise OptionError(f"prior column {sorted(stray)[0]!r} is not among the metric columns; add it there")

    def check_columns(self, rows: Sequence[dspy.Example], target: str) -> tuple[str, ...]:
        """Warnings about columns that agree with the ratings as copies do (`target_copies.check_copies`).

        Raises
        ------
        OptionError
            If a column is allowed that is no candidate.
        DataError
            If a column, or several together, are the target under another name, and not allowed.
        """
        for name in self.allow_columns:
            known = [*self.columns, *(metric.name for metric in self.own if metric.card.kind == "callable")]
            if name not in known:
                raise OptionError(
                    f"allow_columns (--allow-column) names {name!r}{nearest(name, known)}, which is no "
                    f"candidate column; there are {', '.join(known) or 'none'}: name one of them"
                )
        numbers = column_numbers([row.get("columns") or {} for row in rows], self.columns)
        values = dict(zip(self.columns, numbers, strict=True))
        ratings = [float(row[target]) for row in rows]
        return check_copies(values, ratings, target=target, allowed=self.allow_columns, prior=self.prior_columns)

    @property
    def coverage(self) -> float:
        """Share of the training rows that must have what a bank metric needs."""
        return 0.5 if self.allow_missing else 1 - MOST_MISSING

    def sparse(self, table: ScoreTable, rows: int) -> dict[str, str]:
        """The candidates to leave out because they were skipped too often, and on which share of the rows.

        A failed judgement is no missing need: failures have a gate of their own.

        Parameters
        ----------
        table : ScoreTable
            The training rows first.
        rows : int
            How many of them there are.

        Raises
        ------
        DataError
            If no candidate would be left.
        """
        if self.allow_missing or not rows:
            return {}
        shares = (table.statuses[:rows] == CODES[Status.SKIPPED]).mean(axis=(0, 2))
        found = {
            name: f"{share:.0%}" for name, share in zip(table.names, shares, strict=True) if share > MOST_MISSING + 1e-9
        }
        if found and len(found) == len(table.names):
            raise DataError(
                f"every candidate lacks a value on more than {MOST_MISSING:.0%} of the {rows} training rows: "
                f"{_listed(found)}; fill in what they need, or let them stay with allow_missing=True (--allow-missing)"
            )
        return found

    def resolve(self, rated: int, has_lm: bool, has_text: bool) -> Plan:
        """Decide what is used for `rated` training rows.

        Raises
        ------
        NeedsError
            If judges are asked for without a language model, or texts without output text.
        """
        if self.bank in {"generated", "all"} and not has_lm:
            raise NeedsError(
                f"bank={self.bank!r} needs a language model: pass --lm MODEL (lm=dspy.LM(...)), or use bank='existing'"
            )
        if not has_text:
            if self.bank in {"generated", "existing", "all"}:
                raise NeedsError(f"bank={self.bank!r} needs output text, which the rows do not have")
            if reader := next((metric.name for metric in self.own if metric.card.kind != "column"), ""):
                raise NeedsError(
                    f"your metric {reader!r} needs output text, which the rows do not have: name its column"
                )
            return Plan(False, False, ())
        if self.bank != "auto":
            return Plan(self.bank in {"existing", "all"}, self.bank in {"generated", "all"}, ())
        if not has_lm:
            return Plan(True, False, ("no language model given: nothing is generated",))
        if rated < self.generated_only_below:
            note = (
                f"{rated} rated training rows are fewer than {self.generated_only_below}: "
                "generated judges only, no bank metrics (--bank all changes that)"
            )
            return Plan(False, True, (note,))
        return Plan(True, True, ())


@dataclass(frozen=True)
class Plan:
    """The sources that are used, and why in words."""

    existing: bool
    generated: bool
    notes: tuple[str, ...]


def learned_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """Those families whose judges learn from the ratings themselves."""
    return {name: count for name, count in counts.items() if name in LEARNED}


def sparse_note(sparse: Mapping[str, str]) -> list[str]:
    """One line on the candidates that `Sources.sparse` found; none if it found nothing."""
    if not sparse:
        return []
    return [
        f"no value on more than {MOST_MISSING:.0%} of the training rows, and so left out (--allow-missing keeps "
        f"them): {_listed(sparse)}"
    ]


def _listed(sparse: Mapping[str, str]) -> str:
    return ", ".join(f"{name} (none on {share})" for name, share in sparse.items())
