"""The pool of candidate predictors: bank metrics, generated judges, columns of the table."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from textwrap import shorten

import dspy

from metricsmith.bank.base import BankMetric
from metricsmith.bank.catalogue import MetricBank, default_bank
from metricsmith.bank.column import ColumnMetric
from metricsmith.datasets.target_copies import check_copies
from metricsmith.errors import DataError, MetricsmithError, ModelFailure, NeedsError, OptionError, nearest
from metricsmith.metric import Metric
from metricsmith.optimizers.generation import (
    DEFAULT_COUNTS,
    GENERATORS,
    Generated,
    Lack,
    attempt,
    ends_all,
    generate,
)
from metricsmith.optimizers.learning_judges import LEARNED, learn
from metricsmith.optimizers.own import hidden_fields, named_apart
from metricsmith.programs.judges.base import Judge
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.dna import DnAEval
from metricsmith.programs.judges.panel import Panel, PanelMember
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.judges.rubric import RubricJudge
from metricsmith.programs.recommenders.base import Recommender
from metricsmith.programs.recommenders.bm25 import BM25Recommender
from metricsmith.programs.recommenders.pipeline import PipelineRecommender
from metricsmith.records import MetricCard, Status, Task, Usage
from metricsmith.scoring import ScoreTable
from metricsmith.scoring.results import CODES

__all__ = [
    "BANKS", "DEFAULT_POOL", "FAMILIES", "MOST_MISSING", "Candidates", "Sources", "card_key", "gather", "pool_cards",
    "sparse_note",
]  # fmt: skip

BANKS = ("auto", "all", "existing", "generated", "none")
FAMILIES = (*GENERATORS, *LEARNED)
DEFAULT_POOL: Mapping[str, int] = {**DEFAULT_COUNTS, "examples": 1, "tuned": 1}  # AutoMetrics, section 3.1
WHY = 160  # characters of a reason in the line on judges that could not be made
MOST_MISSING = 0.1  # share of the training rows on which a candidate may have nothing to go by
GENERATED_ONLY_BELOW = 80  # rated training rows; AutoMetrics, section 4.6


@dataclass(frozen=True)
class Sources:
    """Where candidates may come from.

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
        cells = [row.get("columns") or {} for row in rows]
        values = {
            name: [value if isinstance(value := own.get(name), int | float) else math.nan for own in cells]
            for name in self.columns
        }
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
    """Which sources are used, and why in words."""

    existing: bool
    generated: bool
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Candidates:
    """The predictors to compute.

    `declared` names those that measure the target by declaration, more being better: judges, generated or the
    caller's, and prior columns. `judged` names the judges. `made` says how many there were before retrieval, and
    `lacks` which others could not be made. `own` names the caller's metrics. `sparse` names those that are left out for
    want of values, each with the share of the training rows.
    """

    metrics: tuple[Metric, ...]
    declared: frozenset[str]
    notes: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    made: int = 0
    lacks: tuple[Lack, ...] = ()
    sparse: Mapping[str, str] = field(default_factory=dict)
    own: frozenset[str] = frozenset()

    @property
    def not_made(self) -> str:
        """One line on the judges that could not be made, by family with the first reason; empty if none is lacking."""
        parts = []
        for family in dict.fromkeys(lack.family for lack in self.lacks):
            own = [lack for lack in self.lacks if lack.family == family]
            why = shorten(own[0].why, WHY, placeholder="...")
            parts.append(f"{sum(lack.count for lack in own)} of the family {family!r} ({why})")
        return f"Judges that could not be made: {'; '.join(parts)}." if parts else ""

    def without(self, names: Collection[str]) -> Candidates:
        """Those that are left without the named ones."""
        return replace(self, metrics=tuple(metric for metric in self.metrics if metric.name not in names))

    def without_sparse(self, sparse: Mapping[str, str]) -> Candidates:
        """Those that are left without what `Sources.sparse` found, and a note that says so."""
        return replace(self.without(sparse), notes=(*self.notes, *sparse_note(sparse)), sparse=sparse)

    @property
    def judged(self) -> frozenset[str]:
        """Names of the judges, alone, on a panel or repeated."""
        return frozenset(metric.name for metric in self.metrics if _is_judge(metric))

    @property
    def panel(self) -> Panel | None:
        """The panel that the generated judges sit on, if they do."""
        return next((metric.asker for metric in self.metrics if isinstance(metric, PanelMember)), None)

    @property
    def costly(self) -> bool:
        """Whether any candidate costs a model call per row."""
        return any(metric.card.cost == "model" for metric in self.metrics)


def learned_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """Those families whose judges learn from the ratings themselves."""
    return {name: count for name, count in counts.items() if name in LEARNED}


def gather(
    rows: Sequence[dspy.Example],
    task: Task,
    sources: Sources,
    plan: Plan,
    recommender: Recommender,
    *,
    seed: int = 0,
    strict: bool = False,
) -> Candidates:
    """Generate judges, find usable bank metrics, and let the recommender keep the `k` most promising.

    Columns are always kept, for they are already paid for, and so are the caller's own metrics. A judge that cannot be
    made is lacking, and the others go on; with `strict` it ends everything.

    Raises
    ------
    ModelFailure
        If the model refuses to work, no request for judges reached it, or no candidate is left.
    """
    bank, own, taken, said = _existing(rows, task, sources, plan)  # whatever is wrong with these ends it unpaid
    made = _generated(rows, task, sources.generators, seed, strict) if plan.generated else Generated()
    notes, judges = [*plan.notes, *dict.fromkeys(made.notes), *said], made.judges
    _name_apart(judges, taken)
    chosen, recommended_notes, recommended_usage = _retrieve([*judges, *bank], task, sources.k, recommender)
    if sources.panel:
        chosen = _seated(chosen, task)
    metrics = (*map(ColumnMetric, sources.columns), *own, *chosen)
    if not metrics and made.lacks:
        raise ModelFailure(f"no candidate metric is left; {'; '.join(made.notes)}", usage=made.usage)
    if not metrics:
        raise OptionError("there is no candidate metric: give output text, --metric-columns, or another --bank")
    declared = {metric.name for metric in metrics if _is_judge(metric) and metric.output.higher_is_better}
    declared |= set(sources.prior_columns)
    return Candidates(
        metrics,
        frozenset(declared),
        (*notes, *recommended_notes),
        made.usage + recommended_usage,
        len(judges) + sum(metric.card.cost == "model" for metric in own),
        made.lacks,
        own=frozenset(metric.name for metric in own),
    )


def _existing(
    rows: Sequence[dspy.Example], task: Task, sources: Sources, plan: Plan
) -> tuple[list[BankMetric], list[Metric], set[str], list[str]]:
    """Bank metrics to choose from, the caller's own metrics, the names of both and of columns, and notes."""
    whole, given = sources.metrics or default_bank(), {one.name for one in sources.own if isinstance(one, BankMetric)}
    bank, own, notes = list[BankMetric](), list[Metric](), list[str]()
    if plan.existing:
        usable, unusable = whole.usable(rows, coverage=sources.coverage)
        bank = [metric.fit(rows) for metric in usable if metric.name not in {*given, *sources.columns}]
        notes += _left_out(unusable)
        notes += [
            f"the column {m.name!r} stands in for the bank metric of that name"
            for m in usable
            if m.name in sources.columns
        ]
    taken = {*sources.columns, *(metric.name for metric in bank)}
    if sources.own:
        # names of bank metrics that are no candidates now are taken too: a function has one name at any number of rows
        taken |= {metric.name for metric in whole.metrics()} - given
        own, said = named_apart(sources.own, taken, rows, hidden_fields(rows, task))
        notes += said
    return bank, own, taken, notes


def _generated(
    rows: Sequence[dspy.Example], task: Task, counts: Mapping[str, int], seed: int, strict: bool
) -> Generated:
    """All judges that can be made, family by family."""
    learned = learned_counts(counts)
    written = {name: count for name, count in counts.items() if name not in learned}
    makers = [partial(attempt, written, partial(generate, rows, task, written, seed=seed))]
    makers += [partial(learn, rows, task, {name: count}, seed=seed) for name, count in learned.items()]
    made = Generated()
    for make in makers:
        made += make()
        if strict and made.lacks:
            raise ModelFailure(f"not all judges could be made, which strict does not allow: {made.lacks[0].why}")
    if made.lacks and not made.judges and all(lack.status == Status.TRANSPORT for lack in made.lacks):
        raise ModelFailure(f"no request for judges was answered: {made.lacks[0].why}", Status.TRANSPORT, made.usage)
    return made


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


def _is_judge(metric: Metric) -> bool:
    repeated = isinstance(metric, Repeated) and _is_judge(metric.judge)
    return repeated or isinstance(metric, Judge | PanelMember | DnAEval)


def _seated(chosen: Sequence[Metric], task: Task) -> list[Metric]:
    """Put the judges on one panel; its members take their places under their names."""
    judges = [metric for metric in chosen if isinstance(metric, CriterionJudge | RubricJudge)]
    if not judges:
        return list(chosen)
    members = {member.name: member for member in Panel(judges, task.description).members()}
    return [members[metric.name] if metric in judges else metric for metric in chosen]


def _retrieve(
    pool: Sequence[Metric], task: Task, k: int, recommender: Recommender
) -> tuple[list[Metric], tuple[str, ...], Usage]:
    """Keep the metrics of the k best cards; a pool that is small enough is kept as it is."""
    cards = pool_cards(pool)
    if len(cards) <= k:
        return list(pool), (), Usage()
    notes, usage = [], Usage()
    try:
        choice = recommender.recommend(task, cards, k)
    except MetricsmithError as problem:
        if ends_all(problem):
            raise
        first = recommender.first if isinstance(recommender, PipelineRecommender) else BM25Recommender()
        choice = first.recommend(task, cards, k)
        name = "BM25" if isinstance(first, BM25Recommender) else type(first).__name__
        notes.append(f"the model's ranking failed ({problem}); {name}'s order stands")
        usage += problem.usage or Usage()
    kept = set(choice.names)
    notes += [f"retrieval kept {len(kept)} of {len(cards)} metrics", *choice.notes]
    return [metric for metric in pool if card_key(metric) in kept], tuple(notes), usage + choice.usage


def pool_cards(pool: Sequence[Metric]) -> list[MetricCard]:
    """The cards that a recommender sees for these metrics, each once, under the names of `card_key`.

    Maps to the raters' numbers are not shown: they say nothing of a metric's use, and change with the rows.
    """
    cards: dict[str, MetricCard] = {}
    for metric in pool:
        cards.setdefault(card_key(metric), replace(metric.card, name=card_key(metric), rating_map=()))
    return list(cards.values())


def card_key(metric: Metric) -> str:
    """Outputs of one bank family share a card; a judge is known by its own name."""
    return metric.card.name if isinstance(metric, BankMetric) else metric.name


def _name_apart(judges: Sequence[Judge], taken: set[str]) -> None:
    """Number the judges whose name is taken, by others or by an earlier judge."""
    for judge in judges:
        name, number = judge.name, 2
        while name in taken:
            name, number = f"{judge.name}_{number}", number + 1
        taken.add(name)
        judge.settings.values["name"] = name


def _left_out(unusable: Sequence[tuple[str, str]]) -> list[str]:
    """One note per reason, with the families that it rules out."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in unusable:
        by_reason.setdefault(reason, []).append(name)
    return [f"left out because {reason}: {', '.join(dict.fromkeys(names))}" for reason, names in by_reason.items()]
