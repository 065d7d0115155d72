"""The options of an induction, and the sources of candidates that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, field, replace
from os import PathLike
from typing import Any, Literal, Self

import dspy

from metricsmith.bank.catalogue import MetricBank, Unusable, default_bank, full_bank
from metricsmith.bank.column import column_numbers
from metricsmith.bank.weighted import lacking, model_name, uncomputable
from metricsmith.datasets.target_copies import check_copies
from metricsmith.errors import DataError, NeedsError, OptionError, nearest
from metricsmith.formats import percent
from metricsmith.metric import Metric
from metricsmith.model_calls.adapters import adapter_in_force
from metricsmith.model_calls.limits import Budget
from metricsmith.model_calls.models import using
from metricsmith.optimizers.cross_fitting import trained_own
from metricsmith.optimizers.fitting import FitOptions
from metricsmith.optimizers.generation import DEFAULT_COUNTS, GENERATORS, check_families
from metricsmith.optimizers.learning_judges import LEARNED
from metricsmith.optimizers.own import not_here, own_metrics
from metricsmith.optimizers.splits import RatedRows
from metricsmith.programs.recommenders.base import Recommender
from metricsmith.records import Status, Task
from metricsmith.scoring import Concurrency, PerJudge, ScoreTable
from metricsmith.scoring.results import CODES
from metricsmith.store import Store

__all__ = [
    "BANKS", "DEFAULT_POOL", "FAMILIES", "MOST_MISSING", "ChosenSources", "Options", "check_budget", "unusable_notes",
    "sparse_note",
]  # fmt: skip

BANKS = ("auto", "all", "existing", "generated", "none")
FAMILIES = (*GENERATORS, *LEARNED)
DEFAULT_POOL: Mapping[str, int] = {**DEFAULT_COUNTS, "examples": 1, "tuned": 1}  # AutoMetrics, section 3.1
MOST_MISSING = 0.1  # share of the training rows on which a candidate may have nothing to go by


@dataclass(frozen=True)
class ChosenSources:
    """The sources of candidates that a run uses, and notes on why."""

    existing: bool
    generated: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Options:
    """Everything that an induction depends on, data aside: `AutoMetrics` without its `compile`.

    `AutoMetrics` documents the parameters. Every option is checked when it is set.

    Raises
    ------
    OptionError
        For a value that an option cannot have.
    """

    task: Task | None = None
    _: KW_ONLY
    k: int = 30
    n: int | None = None
    fidelity: float | None = None
    full: bool = False
    regression: str = "auto"
    bank: str = "auto"
    generators: Mapping[str, int] | None = None
    columns: Sequence[str] = ()
    prior_columns: Sequence[str] = ()
    allow_columns: Sequence[str] = ()
    metrics: MetricBank | Sequence[Any] | None = None
    bank_models: str | Sequence[str] | None = None
    local: Mapping[str, str | PathLike[str]] | None = None
    recommender: Recommender | None = None
    first_stage: Recommender | None = None
    whole_cards: bool = True
    remarks: Sequence[str] = ()
    lm: Any = field(default=None, repr=False)
    concurrency: Literal["auto"] | int | Concurrency = "auto"
    store: str | PathLike[str] | Store | None = None
    budget: Budget | None = None
    max_failure_rate: float = 0.2
    per_judge: bool = True
    strict: bool = False
    progress: bool = True
    generated_only_below: int = 80  # AutoMetrics, section 4.6
    panel: bool = False
    allow_missing: bool = False
    seed: int = 0
    repetition: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.metrics, MetricBank) and (self.bank_models is not None or self.local):
            raise OptionError("metrics is a bank of its own: name its models and their places in full_bank(...)")
        if self.bank_models is not None and self.bank in ("none", "generated"):
            raise OptionError(
                f"bank={self.bank!r} takes no metric of the bank, and bank_models (--models) names some: leave one out"
            )
        bank, own = own_metrics(self.metrics, self.whole_bank)
        absent = [Unusable(metric.name, why) for metric in own if (why := not_here(metric))]
        here = tuple(metric for metric in own if not not_here(metric))
        settled: dict[str, Any] = {"metrics": here or bank, "generators": dict(self.judge_counts)}
        settled |= {name: tuple(getattr(self, name)) for name in ("columns", "prior_columns", "allow_columns")}
        settled["remarks"] = (*self.remarks, *unusable_notes(absent))
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        if self.bank not in BANKS:
            raise OptionError(f"bank={self.bank!r}{nearest(self.bank, BANKS)} must be one of {', '.join(BANKS)}")
        for family in self.judge_counts:
            if family not in FAMILIES:
                known = ", ".join(FAMILIES)
                raise OptionError(f"no judge family {family!r}{nearest(family, FAMILIES)}; there are {known}")
        if self.k < 1:
            raise OptionError(f"k={self.k} must be at least 1")
        stray = set(self.prior_columns) - set(self.columns)
        if stray:
            raise OptionError(f"prior column {sorted(stray)[0]!r} is not among the metric columns; add it there")
        _ = self.fit, PerJudge(self.max_failure_rate)  # both refuse what they cannot use, before anything is asked
        check_budget(self.budget)
        if self.seed < 0:
            raise OptionError(f"seed={self.seed} must be 0 or more")

    @property
    def judge_counts(self) -> Mapping[str, int]:
        """Judge family to number of generated judges."""
        return DEFAULT_POOL if self.generators is None else self.generators

    @property
    def own(self) -> tuple[Metric, ...]:
        """The caller's own metrics (`metricsmith.optimizers.own`): always candidates, and not counted in `k`."""
        return self.metrics if isinstance(self.metrics, tuple) else ()

    @property
    def whole_bank(self) -> MetricBank:
        """The bank to choose from: the caller's, else the default one and the metrics with weights that are asked for.

        Without `bank_models` these are the metrics that `local` names.
        """
        if isinstance(self.metrics, MetricBank):
            return self.metrics
        models = tuple(self.local) if self.bank_models is None and self.local else self.bank_models
        return default_bank() if models is None else full_bank(models, local=self.local)

    @property
    def _by_word(self) -> bool:
        return isinstance(self.bank_models, str)  # "small" or "all": whole_bank refuses others

    @property
    def absent_weights(self) -> list[str]:
        """One line on the metrics with weights that this machine cannot compute; none where it can compute all."""
        weighted = [family for family in self.whole_bank.families if family.model is not None]
        reasons = uncomputable(weighted)
        if not reasons:
            return []
        first = sorted(reasons, key=lambda why: -len(reasons[why]))[:3]
        said = "; ".join(f"{len(reasons[why])} since {why}" if len(reasons) > 1 else why for why in first)
        more = " and other reasons" * (len(reasons) > len(first))
        count = sum(map(len, reasons.values()))
        return [f"{count} of {len(weighted)} metrics with weights are left out: {said}{more}"]

    def with_own(self, own: Sequence[Metric]) -> Self:
        """The same with those of the caller's own metrics that are left."""
        return replace(self, metrics=tuple(own)) if self.own else self

    def trained(self, train: RatedRows, task: Task) -> Self:
        """The same with own metrics that are untrained cross-fitted on these rows; notes name those that cannot be."""
        own, notes = trained_own(self.own, train, task, seed=self.seed, progress=self.progress)
        return replace(self.with_own(own), remarks=(*self.remarks, *notes))

    @property
    def fit(self) -> FitOptions:
        """The options of the regression."""
        return FitOptions(self.regression, self.n, self.fidelity, self.full, seed=self.seed)

    @property
    def scoring(self) -> dict[str, Any]:
        """The options of `scoring.score`."""
        gate = PerJudge(self.max_failure_rate, self.strict) if self.per_judge else self.max_failure_rate
        return {
            "concurrency": self.concurrency, "store": self.store, "max_failure_rate": gate, "progress": self.progress,
            "first_run": self.repetition,
        }  # fmt: skip

    @property
    def model(self) -> Any:
        """The language model to use, or None."""
        return self.lm if self.lm is not None else dspy.settings.lm

    def asking(self) -> AbstractContextManager[Any]:
        """Put the model in force, as this repetition asks it; `OptionError` if the adapter in force cannot be used."""
        if self.model is not None:
            adapter_in_force()  # refused here, and not by every family of candidates for itself
        if self.repetition and self.model is not None:
            return dspy.context(lm=self.model.copy(rollout_id=self.repetition))  # type: ignore[no-any-return]
        return using(self.lm)

    def chosen_sources(self, train: RatedRows) -> ChosenSources:
        """The sources that are used for these training rows; `NeedsError` if they, or what is named, cannot be."""
        named = {*map(model_name, self.local or ()), *map(model_name, () if self._by_word else self.bank_models or ())}
        for family in self.whole_bank.families:
            if family.model is not None and family.model.name in named and (why := lacking(family)):
                raise NeedsError(f"{family.model.name}: {why.removeprefix(f'{family.model.name}: ')}")
        sources = self.resolve(len(train), self.model is not None, any(row.get("output") for row in train.rows))
        check_families(self.judge_counts if sources.generated else {})
        return sources

    def resolve(self, rated: int, has_lm: bool, has_text: bool) -> ChosenSources:
        """Decide on the sources for `rated` training rows.

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
            return ChosenSources(False, False, ())
        if self.bank != "auto":
            return ChosenSources(self.bank in {"existing", "all"}, self.bank in {"generated", "all"}, ())
        if not has_lm:
            return ChosenSources(True, False, ("no language model given: nothing is generated",))
        if rated < self.generated_only_below:
            note = (
                f"{rated} rated training rows are fewer than {self.generated_only_below}: "
                "generated judges only, no bank metrics (--bank all changes that)"
            )
            return ChosenSources(False, True, (note,))
        return ChosenSources(True, True, ())

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
        """Share of the training rows that must have the texts that a bank metric needs."""
        return 0.5 if self.allow_missing else 1 - MOST_MISSING

    def sparse(self, table: ScoreTable, rows: int) -> dict[str, str]:
        """The candidates to leave out because they were skipped too often, with the share of the rows.

        A failed judgement is no missing need: failures have a limit of their own. A missing value counts as average:
        such a component says nothing of many rows, and a metric most of whose weight is missing gives no number. On
        SimpEval this leaves out SelfBLEU, undefined for one sentence (35 % of the rows).

        Parameters
        ----------
        table : ScoreTable
            The training rows first.
        rows : int
            The number of training rows.

        Raises
        ------
        DataError
            If no candidate would be left.
        """
        if self.allow_missing or not rows:
            return {}
        shares = (table.statuses[:rows] == CODES[Status.SKIPPED]).mean(axis=(0, 2))
        found = {
            name: percent(share) for name, share in zip(table.names, shares, strict=True) if share > MOST_MISSING + 1e-9
        }
        if found and len(found) == len(table.names):
            raise DataError(
                f"every candidate lacks a value on more than {percent(MOST_MISSING)} of the {rows} training rows: "
                f"{_listed(found)}; fill in what they need, or let them stay with allow_missing=True (--allow-missing)"
            )
        return found


def check_budget(budget: object) -> None:
    """Refuse anything but a `Budget` or None, with an `OptionError`."""
    if budget is not None and not isinstance(budget, Budget):
        raise OptionError(f"budget={budget!r} must be a Budget, say Budget(requests=1000), or None for no limit")


def unusable_notes(unusable: Sequence[Unusable]) -> list[str]:
    """One line for each reason why metrics of the bank are no candidates, with their names."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in unusable:
        by_reason.setdefault(reason, []).append(name)
    return [f"left out because {why}: {', '.join(dict.fromkeys(names))}" for why, names in by_reason.items()]


def sparse_note(sparse: Mapping[str, str]) -> list[str]:
    """One line on the candidates that `Options.sparse` found; none if it found nothing."""
    if not sparse:
        return []
    return [
        f"no value on more than {percent(MOST_MISSING)} of the training rows, and so left out (--allow-missing keeps "
        f"them): {_listed(sparse)}"
    ]


def _listed(sparse: Mapping[str, str]) -> str:
    return ", ".join(f"{name} (none on {share})" for name, share in sparse.items())
