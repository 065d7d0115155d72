"""The pool of candidate predictors: bank metrics, generated judges, columns of the table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from textwrap import shorten
from typing import Any, TypeVar

import dspy

from metricsmith.bank.base import BankMetric
from metricsmith.bank.column import ColumnMetric
from metricsmith.errors import MetricsmithError, ModelFailure, OptionError
from metricsmith.metric import Metric, content_hash
from metricsmith.model_calls.adapters import adapter_in_force
from metricsmith.model_calls.models import form_identity, identity
from metricsmith.optimizers.generation import FREE, Generated, Lack, attempt, check_complete, ends_all, generate_judges
from metricsmith.optimizers.learning_judges import LEARNED, learn, learned_counts
from metricsmith.optimizers.options import ChosenSources, Options, sparse_note, unusable_notes
from metricsmith.optimizers.own import free_name, hidden_fields, named_apart, renamed
from metricsmith.programs.judges.base import LEVELS, Judge
from metricsmith.programs.judges.criterion import CriterionJudge, RubricJudge
from metricsmith.programs.judges.dna import DnAEval
from metricsmith.programs.judges.panel import Panel, PanelMember
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.recommenders.base import Recommendation, Recommender, brief
from metricsmith.programs.recommenders.bm25 import BM25Recommender
from metricsmith.programs.recommenders.colbert import ColBERTRecommender
from metricsmith.programs.recommenders.language_model import LMRecommender, PipelineRecommender
from metricsmith.programs.state import module_fingerprint
from metricsmith.records import MetricCard, Status, Task, Usage
from metricsmith.threads import Memo

__all__ = [
    "Candidates", "Pool", "candidates_kept", "card_key", "card_ranking", "generate_candidates", "pool_cards",
    "recommender_key", "recommender_of", "retrieve_candidates",
]  # fmt: skip

Made = TypeVar("Made", Generated, Recommendation)
WHY = 160  # characters of a reason in the line on judges that could not be made
UNRANKED = "the model's ranking failed"


@dataclass(frozen=True)
class Candidates:
    """The predictors to compute.

    Parameters
    ----------
    metrics : tuple of Metric
    declared : frozenset of str
        Names of those that measure the target by declaration, more being better: judges, generated or the caller's,
        and prior columns.
    notes : tuple of str
    usage : Usage
        Of generation and retrieval.
    made : int
        The number of judges before retrieval.
    lacks : tuple of Lack
        The judges that could not be made.
    sparse : mapping of str to str
        Names of those that are left out for want of values, each with the share of the training rows.
    own : frozenset of str
        Names of the caller's metrics.
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
        """One line on the metrics that could not be made, by family with the first reason; empty if none is lacking."""
        parts = []
        for family in dict.fromkeys(lack.family for lack in self.lacks):
            own = [lack for lack in self.lacks if lack.family == family]
            why = shorten(own[0].why, WHY, placeholder="...")
            parts.append(f"{sum(lack.count for lack in own)} of the family {family!r} ({why})")
        kind = "Metrics" if any(lack.family in FREE for lack in self.lacks) else "Judges"
        return f"{kind} that could not be made: {'; '.join(parts)}." if parts else ""

    def without(self, names: Collection[str]) -> Candidates:
        """The candidates without the named ones."""
        return replace(self, metrics=tuple(metric for metric in self.metrics if metric.name not in names))

    def without_sparse(self, sparse: Mapping[str, str]) -> Candidates:
        """The candidates without those that `Options.sparse` found, and a note that says so."""
        return replace(self.without(sparse), notes=(*self.notes, *sparse_note(sparse)), sparse=sparse)

    @property
    def fell_away(self) -> tuple[str, ...]:
        """One line on the metrics that could not be made, and one if the model's ranking failed."""
        return *filter(None, [self.not_made]), *(note for note in self.notes if note.startswith(UNRANKED))

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
        """True if any candidate costs a model call, or the pass of a network, per row."""
        return any(metric.card.cost in ("local", "model") for metric in self.metrics)


@dataclass(frozen=True)
class Pool:
    """Everything that a run could take as a predictor.

    Parameters
    ----------
    listed : tuple of Metric
        Generated judges and usable bank metrics, among which retrieval chooses.
    columns : tuple of Metric
        Columns of the rows: they are already paid for, and always candidates.
    own : tuple of Metric
        The caller's own metrics: always candidates too.
    made : Generated
        The generated judges, with what they took and which could not be made.
    notes : tuple of str
    """

    listed: tuple[Metric, ...]
    columns: tuple[Metric, ...]
    own: tuple[Metric, ...]
    made: Generated
    notes: tuple[str, ...]


def generate_candidates(rows: Sequence[dspy.Example], task: Task, options: Options, sources: ChosenSources) -> Pool:
    """Generate judges, and find the bank metrics that the rows can feed.

    A judge that cannot be made is lacking, and the others go on; with ``options.strict`` it ends everything.

    Raises
    ------
    ModelFailure
        If the model refuses to work, or no request for judges reached it.
    """
    bank, own, taken, said = _existing(rows, task, options, sources)  # errors come before anything is paid for
    made = Generated()
    if sources.generated:
        given = [[row.toDict() for row in rows], asdict(task), list(options.judge_counts.items())]
        made = _asked_once(lambda: _generated(rows, task, options), *given, options.seed, options.strict, _model_key())
    apart = [renamed(metric, free_name(metric.name, taken)) for metric in made.metrics]
    notes = (*sources.notes, *options.remarks, *dict.fromkeys(made.notes), *said)
    return Pool((*apart, *bank), tuple(map(ColumnMetric, options.columns)), tuple(own), made, notes)


def retrieve_candidates(pool: Pool, task: Task, options: Options) -> Candidates:
    """Keep the `k` metrics that the recommender finds most promising, and all columns and own metrics.

    Raises
    ------
    ModelFailure
        If no candidate is left because judges could not be made.
    OptionError
        If there is no candidate at all.
    """
    recommender, whole = recommender_of(options), options.whole_cards
    chosen, notes, usage = _recommended(pool.listed, task, options.k, recommender, whole=whole)
    if options.panel:
        chosen = _seated(chosen, task)
    metrics = (*pool.columns, *pool.own, *chosen)
    if not metrics and pool.made.lacks:
        raise ModelFailure(f"no candidate metric is left; {'; '.join(pool.made.notes)}", usage=pool.made.usage)
    if not metrics:
        raise OptionError("there is no candidate metric: give output text, --metric-columns, or another --bank")
    declared = {metric.name for metric in metrics if _is_judge(metric) and metric.output.higher_is_better}
    return Candidates(
        metrics,
        frozenset(declared.union(options.prior_columns)),
        (*pool.notes, *notes),
        pool.made.usage + usage,
        sum(metric.card.cost == "model" for metric in (*pool.made.metrics, *pool.own)),
        pool.made.lacks,
        own=frozenset(metric.name for metric in pool.own),
    )


def recommender_of(options: Options) -> Recommender:
    """The recommender of an induction: the caller's, else the first stage and, where there is a model, its ranking."""
    second = LMRecommender() if options.model else None
    return options.recommender or PipelineRecommender(options.first_stage, second)


def _existing(
    rows: Sequence[dspy.Example], task: Task, options: Options, sources: ChosenSources
) -> tuple[list[BankMetric], list[Metric], set[str], list[str]]:
    """Bank metrics to choose from, the caller's own metrics, the names of both and of columns, and notes.

    A column goes before a bank metric of its name: two of one name could not be told apart in the saved metric.
    """
    whole = options.whole_bank
    given = {one.name for one in options.own if isinstance(one, BankMetric)}
    bank, own, notes = list[BankMetric](), list[Metric](), list[str]()
    if sources.existing:
        usable, unusable = whole.usable(rows, coverage=options.coverage)
        bank = [metric.fit(rows) for metric in usable if metric.name not in {*given, *options.columns}]
        notes += unusable_notes(unusable)
        notes += [
            f"the column {metric.name!r} stands in for the bank metric of that name"
            for metric in usable
            if metric.name in options.columns
        ]
    taken = {*options.columns, *(metric.name for metric in bank)}
    if options.own:
        # names of bank metrics that are no candidates now are taken too: a function has one name at any number of rows
        taken |= {metric.name for metric in whole.metrics()} - given
        own, said = named_apart(options.own, taken, rows, hidden_fields(rows, task))
        notes += said
    return bank, own, taken, notes


def _generated(rows: Sequence[dspy.Example], task: Task, options: Options) -> Generated:
    """All judges that can be made, family by family."""
    counts, seed = options.judge_counts, options.seed
    written = {name: count for name, count in counts.items() if name not in LEARNED}
    made = check_complete(attempt(written, partial(generate_judges, rows, task, written, seed=seed)), options.strict)
    made += learn(rows, task, learned_counts(counts), seed=seed, strict=options.strict)
    if made.lacks and not made.metrics and all(lack.status == Status.TRANSPORT for lack in made.lacks):
        raise ModelFailure(f"no request for judges was answered: {made.lacks[0].why}", Status.TRANSPORT, made.usage)
    return made


def _is_judge(metric: Metric) -> bool:
    repeated = isinstance(metric, Repeated) and _is_judge(metric.judge)
    return repeated or isinstance(metric, Judge | PanelMember | DnAEval)


def _seated(chosen: Sequence[Metric], task: Task) -> list[Metric]:
    """Put the judges on one panel; its members take their places under their names."""
    judges = [metric for metric in chosen if isinstance(metric, CriterionJudge | RubricJudge)]
    judges = [judge for judge in judges if judge.scale == LEVELS]  # that of a panel
    if not judges:
        return list(chosen)
    members = {member.name: member for member in Panel(judges, task.description).members()}
    return [members[metric.name] if metric in judges else metric for metric in chosen]


def _recommended(
    pool: Sequence[Metric], task: Task, k: int, recommender: Recommender, *, whole: bool
) -> tuple[list[Metric], tuple[str, ...], Usage]:
    """Keep the metrics of the k best cards; a pool that is small enough is kept as it is.

    A card counts once, however many predictors it offers; only those that the fit selects are computed later.
    """
    cards = [card if whole else brief(card) for card in pool_cards(pool)]
    if len(cards) <= k:
        return list(pool), (), Usage()
    notes, usage = [], Usage()
    try:
        choice = card_ranking(cards, task, k, recommender)
    except MetricsmithError as problem:
        if ends_all(problem):
            raise
        first = recommender.first if isinstance(recommender, PipelineRecommender) else BM25Recommender()
        choice = first.recommend(task, cards, k)
        name = "BM25" if isinstance(first, BM25Recommender) else type(first).__name__
        notes.append(f"{UNRANKED} ({problem}); {name}'s order stands")
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


_KEPT: ContextVar[Memo[Any] | None] = ContextVar("metricsmith_candidates", default=None)


@contextmanager
def candidates_kept() -> Iterator[None]:
    """Generate judges, and rank cards, once for inductions inside that would ask the same for them.

    Judges are those of the same training rows, task, counts, seed, strictness and model with its settings and
    repetition; a ranking is that of the same cards, task, k, recommender and model. The second time either costs
    nothing, also in threads that copy the context: of two at a time one asks, the other waits. Judges that could not be
    made stay lacking, so that inductions which differ in later steps choose from the same ones; a request that ended
    everything is asked again. Recommenders of the caller's own, whose state is not known, always are. All is forgotten
    at the end.
    """
    token = _KEPT.set(Memo())
    try:
        yield
    finally:
        _KEPT.reset(token)


def _asked_once(make: Callable[[], Made], *parts: Any) -> Made:
    """The result of `make`, or inside `candidates_kept` that of before for equal parts, which has no usage then."""
    memo: Memo[Made] | None = _KEPT.get()
    if memo is None or None in parts:
        return make()
    asked: list[Made] = []

    def ask() -> Made:
        asked.append(make())
        return asked[0]

    found = memo.get(content_hash(*parts), ask, lambda _: True)
    return found if asked else replace(found, usage=Usage())


def card_ranking(cards: Sequence[MetricCard], task: Task, k: int, recommender: Recommender) -> Recommendation:
    """The `k` cards that a recommender names; inside `candidates_kept` it is asked once."""
    parts = [[asdict(card) for card in cards], asdict(task), k, recommender_key(recommender)]
    return _asked_once(lambda: recommender.recommend(task, cards, k), *parts)


def _model_key(lm: Any = None) -> list[Any]:
    """A model with its settings and repetition, by default the one in force, and the adapter in force, as data."""
    lm = lm or dspy.settings.lm
    settings = getattr(lm, "kwargs", None) or {}
    return [lm and identity(lm), str(settings.get("rollout_id")), form_identity(adapter_in_force())]


def recommender_key(recommender: Any) -> list[Any] | None:
    """Everything but its arguments that decides a recommender's order, as data; None if it is not of this package."""
    kind, parts = type(recommender), list[Any]()
    if kind is PipelineRecommender:
        stages = [recommender.first, *([recommender.second] if recommender.second else [])]
        parts = [recommender_key(stage) for stage in stages]
    elif kind is LMRecommender:
        parts = [_model_key(recommender.rank.lm)]
    elif kind is ColBERTRecommender:
        parts = [str(recommender.checkpoint.folder)]
    elif kind is not BM25Recommender:
        return None
    return None if None in parts else [module_fingerprint(recommender, kind.__name__), *parts]
