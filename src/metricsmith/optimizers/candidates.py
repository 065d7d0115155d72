"""The pool of candidate predictors: bank metrics, generated judges, columns of the table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from textwrap import shorten

import dspy

from metricsmith.bank.base import BankMetric
from metricsmith.bank.catalogue import default_bank
from metricsmith.bank.column import ColumnMetric
from metricsmith.errors import MetricsmithError, ModelFailure, OptionError
from metricsmith.metric import Metric
from metricsmith.optimizers.generation import (
    Generated,
    Lack,
    attempt,
    complete,
    ends_all,
    generate,
)
from metricsmith.optimizers.learning_judges import learn
from metricsmith.optimizers.own import hidden_fields, named_apart
from metricsmith.optimizers.sources import Plan, Sources, learned_counts, sparse_note
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

__all__ = ["Candidates", "card_key", "gather", "pool_cards"]

WHY = 160  # characters of a reason in the line on judges that could not be made


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
    made = complete(attempt(written, partial(generate, rows, task, written, seed=seed)), strict)
    made += learn(rows, task, learned, seed=seed, strict=strict)
    if made.lacks and not made.judges and all(lack.status == Status.TRANSPORT for lack in made.lacks):
        raise ModelFailure(f"no request for judges was answered: {made.lacks[0].why}", Status.TRANSPORT, made.usage)
    return made


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
