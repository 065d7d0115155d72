"""The requests, tokens and cost of a run: estimated before anything is asked, and kept within one budget."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

import dspy

from metricsmith.errors import Interrupted, MetricsmithError, ModelFailure, OptionError
from metricsmith.formats import money
from metricsmith.metric import Metric, content_key
from metricsmith.model_calls.limits import Budget, Concurrency, estimate_tokens, price, total_usage
from metricsmith.model_calls.rate_limiter import RateLimiter, in_force, span, spanning
from metricsmith.optimizers.fitting import PAPER_N
from metricsmith.optimizers.generation import FREE, GENERATORS
from metricsmith.optimizers.learning_judges import learned_counts, startable
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.splits import RatedRows, Splits
from metricsmith.programs.generators.axes import contrast
from metricsmith.programs.judges.base import Judge
from metricsmith.programs.judges.criterion import CriterionJudge, RubricJudge
from metricsmith.programs.judges.geval import GEval
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.judges.prometheus import PrometheusJudge
from metricsmith.records import Status, Task, Usage
from metricsmith.scoring import estimate as estimate_scoring
from metricsmith.signatures.generation import ProposeAxes
from metricsmith.store import Store

__all__ = ["PassRows", "budget_lines", "estimate_passes", "estimate_run", "spending", "times"]

FRAME_TOKENS = 350  # what DSPy's chat adapter writes around the fields of a signature
WRITTEN_TOKENS = 250  # a rubric, or evaluation steps
CARD_TOKENS = 600
SAMPLE = 12  # rows whose prompts are written out
MOST_CARDS = 60  # that a model ranks: as many as the first stage of retrieval keeps
ITEM_TOKENS = 70  # a panel's answer on one criterion: its name, one or two sentences, a number
MEANING = "One sentence on what it means that an output is strong on this criterion, of the usual length."
LEVEL = "One sentence on what outputs look like that stand on this level, or on what to look at. " * 2


@dataclass(frozen=True)
class PassRows:
    """The rows of one pass of generate, retrieve, score and fit.

    Parameters
    ----------
    train : RatedRows
        The rows that are learned from.
    others : sequence of dspy.Example
        Further rows that every judge reads.
    held_out : sequence of dspy.Example
        Rows of a fold, which only those judges read that its fit needs.
    unrated : sequence of dspy.Example
        Rows that only the metric's components read.
    """

    train: RatedRows
    others: Sequence[dspy.Example] = ()
    held_out: Sequence[dspy.Example] = ()
    unrated: Sequence[dspy.Example] = ()


def estimate_run(splits: Splits, task: Task, options: Options, *, most: bool = False) -> Usage:
    """The requests that a run is likely to make, or with `most` the most that it can, faults aside."""
    rated = splits.train
    folds = [PassRows(rated.take(fold.train), held_out=rated.take(fold.test).rows) for fold in splits.folds]
    last = PassRows(rated, others=splits.test.rows, unrated=splits.unrated)
    return estimate_passes([*folds, last], task, options, most=most)


def estimate_passes(passes: Sequence[PassRows], task: Task, options: Options, *, most: bool = False) -> Usage:
    """Estimate requests, tokens and cost of a run; retries and repairs are not in it.

    Rows with equal texts count once, and judges for which there are too few rows to learn from do not count. What the
    store of `options` holds of the caller's own judges is taken off. It may hold a part of the generated ones too,
    which only shows when they are written.

    Parameters
    ----------
    passes : sequence of PassRows
        The last one makes the metric.
    task : Task
    options : Options
        Where judges come from, the model and the store.
    most : bool
        Give a bound in place of what is to be expected: judges that learn take all that they may, and every judge
        reads every row.
    """
    sources = options.chosen_sources(passes[-1].train)
    counts: Mapping[str, int] = options.judge_counts if sources.generated else {}
    with options.asking():
        own = _own(passes, options, sum(count for name, count in counts.items() if name not in FREE), most)
        made = sum((_made(one, task, options, counts, sources.existing, most) for one in passes), Usage())
    made = replace(made, cost=price(getattr(options.model, "model", ""), made.prompt_tokens, made.completion_tokens))
    return total_usage([own, made])


def _own(passes: Sequence[PassRows], options: Options, others: int, most: bool) -> Usage:
    """The requests of the caller's own judges: once a row, for all folds have the same judges and share a store."""
    judges = [metric for metric in options.own if "model" in metric.card.needs]
    if not judges:
        return Usage()
    shared = options.store is not None or options.model is not None
    read = [[*one.train.rows, *one.others, *one.held_out] for one in (passes[-1:] if shared else passes)]
    places: dict[str, Any] = {"store": options.store, "first_run": options.repetition}
    unrated = estimate_scoring(judges, passes[-1].unrated, **places)
    share = 1.0 if most else _kept_share(len(judges) + others, options)
    return total_usage([times(unrated, share), *(estimate_scoring(judges, rows, **places) for rows in read)])


def _made(one: PassRows, task: Task, options: Options, counts: Mapping[str, int], existing: bool, most: bool) -> Usage:
    """The requests of one pass: to make its generated judges, for these to read rows, and to rank all cards."""
    rows = one.train.rows
    starts = startable(rows, task, learned_counts(counts), seed=options.seed)
    generated = {name: count for name, count in counts.items() if name in GENERATORS and count}
    families = {name: count for name, count in generated.items() if name not in FREE}
    judges = sum(families.values()) + len(starts)
    bank = options.whole_bank.usable(rows, coverage=options.coverage)[0] if existing else []
    cards = sum(generated.values()) + len(starts) + len({metric.card.name for metric in bank})
    ranked = options.model is not None and options.recommender is None and cards > options.k
    shown = min(cards, max(MOST_CARDS, options.k)) if ranked else 0
    usage = _written(rows, task, generated, most) + Usage(int(ranked), shown * CARD_TOKENS, shown * 8)
    kept = min(1.0, options.k / judges) if judges else 0.0
    asked = [(_request([_sample(name, task)], rows), kept * count) for name, count in families.items()]
    total = judges + len(options.own)
    read: float = _contents([*rows, *one.others])
    # A fold's fits need on held-out rows at least the best judge and the five of the paper's regression, where judges
    # agree, and at most all of them, nearly reached where they do not (docs/performance.md): halfway between.
    needed = (min(total, PAPER_N + 1) / total + 1) / 2 if total else 0.0
    read += (1.0 if most else needed) * _contents(one.held_out)
    read += (1.0 if most else _kept_share(total, options)) * _contents(one.unrated)
    if options.panel and (seated := {name: count for name, count in families.items() if GENERATORS[name].on_panels}):
        asked = [part for part, name in zip(asked, families, strict=True) if name not in seated]
        panel = Panel([_sample(name, task, number) for name in seated for number in range(seated[name])])
        together = replace(_request(panel.members(), rows), completion_tokens=ITEM_TOKENS * panel.numbers)
        usage += times(together, _contents([*rows, *one.others, *one.held_out, *one.unrated]))
    for start in starts:
        request = _request([start.judge], rows)  # whose length tuning is taken to keep
        usage += times(request, start.bound if most else start.expected)
        asked.append((request, kept))
    return sum((times(request, count * read) for request, count in asked), usage)


def _request(metrics: Sequence[Metric], rows: Sequence[dspy.Example]) -> Usage:
    """One request of the metrics' asker, averaged over a sample of rows of all lengths."""
    by_length = sorted(rows, key=lambda row: len(str(row.get("output"))))
    step = max(1, len(rows) // SAMPLE)
    several = estimate_scoring(metrics, by_length[step // 2 :: step])
    return times(several, 1 / max(1, several.requests))


def _contents(rows: Sequence[dspy.Example]) -> int:
    """The number of rows, those with equal texts counted once, as `score` asks them once."""
    return len({content_key(row) for row in rows})


def _written(rows: Sequence[dspy.Example], task: Task, families: Mapping[str, int], most: bool) -> Usage:
    """One request for all criteria, and those that write rubrics, steps or functions, with `most` repairs too."""
    if not families:
        return Usage()
    made = [(count, GENERATORS[name]) for name, count in families.items()]
    by_examples = [(count * (one.requests_each + most * one.repairs_each), one.examples) for count, one in made]
    written = sum(count for count, _ in by_examples)
    prompt = estimate_tokens(ProposeAxes.instructions) + _shown_tokens(rows, task) + FRAME_TOKENS
    prompt += written * WRITTEN_TOKENS
    prompt += sum(count * _shown_tokens(rows, task, each=each) for count, each in by_examples if each)
    return Usage(1 + written, prompt, sum(families.values()) * 40 + written * WRITTEN_TOKENS)


def _shown_tokens(rows: Sequence[dspy.Example], task: Task, **each: int) -> int:
    examples = contrast(rows, task, **each)
    return estimate_tokens(examples.liked + examples.disliked)


def _kept_share(judges: int, options: Options) -> float:
    """The share of the judges that become components, halfway between its bounds."""
    largest = judges if options.fit.full else min(judges, options.fit.n or judges)
    least = largest if options.fit.full else min(judges, 1)
    return (least + largest) / 2 / judges if judges else 0.0


def _sample(family: str, task: Task, number: int = 0) -> Judge:
    """A judge of a family with texts of the usual length, in place of one that the model is still to write."""
    name = f"{family}_{number}"
    criterion: dict[str, Any] = {"criterion": name, "meaning": MEANING, "task": task.description, "name": name}
    if family == "criterion":
        return CriterionJudge(**criterion)
    if family in ("rubric", "rubric_examples"):
        return RubricJudge(**criterion, levels=[LEVEL] * 5)
    if family == "prometheus":
        return PrometheusJudge(**criterion, levels=[LEVEL] * 5)
    return GEval(**criterion, steps=[LEVEL] * 5, mode="logprob")


def times(usage: Usage, count: float) -> Usage:
    """The usage multiplied by a count or a share; tokens and requests are rounded."""
    return Usage(
        round(count * usage.requests), round(count * usage.prompt_tokens), round(count * usage.completion_tokens),
        None if usage.cost is None else count * usage.cost,
    )  # fmt: skip


notes = logging.getLogger("metricsmith.notes")  # shown on the terminal, each once


@contextmanager
def spending(
    budget: Budget | None,
    concurrency: Literal["auto"] | int | Concurrency,
    *,
    expected: Usage,
    store: str | PathLike[str] | Store | None = None,
    model: Any = None,
) -> Iterator[None]:
    """Let all requests of a block count towards one budget, and keep them under the same ceilings.

    Inside another such block the same budget, or none, means that of the outer block. Where the budget runs out the
    block ends with an error: a metric fitted to half of the judgements would look like a whole one.

    Parameters
    ----------
    budget : Budget, optional
    concurrency : "auto", int or Concurrency
        Of it the most that may be in flight and the ceilings hold for all requests together; every scoring run adapts
        its own number below, so that slow answers or refusals of one part are not held against the next.
    expected : Usage
        The estimate, of which a note is logged before the first request where the budget does not reach.
    store : path or Store, optional
        Where judgements are kept, for the error.
    model : dspy.LM, optional
        The model that is going to be asked.

    Raises
    ------
    OptionError
        If the budget is in dollars and the model has no known price, or the block stands in a run whose limits all its
        requests pass (`metricsmith.model_calls.rate_limiter.use`) and has a budget of its own.
    ModelFailure
        With status ``budget`` if a request was wanted for which nothing was left, with status ``skipped`` if what the
        answers cost cannot be counted.
    """
    if budget is not None and in_force.get() is not None:
        raise OptionError("a run inside another one shares its budget: give budget= to the outer one alone")
    limiter = spanning.get()
    if limiter is None or budget not in (None, limiter.budget):
        name = getattr(model, "model", None)
        dollars = budget is not None and budget.usd is not None and expected.requests > 0
        if dollars and name is not None and price(name, 1, 1) is None:
            raise OptionError(
                f"the price of {name} is unknown, so that a budget in dollars cannot be kept; give one in tokens or "
                "requests (tokens=..., --max-tokens, --max-requests)"
            )
        bounds = Concurrency.of(concurrency)
        limiter = RateLimiter(replace(bounds, low=bounds.high), budget, hopeless_in_a_row=sys.maxsize)
        for line in budget_lines(budget, expected, short=True):
            notes.warning("%s; the run stops when that is spent", line)
    try:
        with span(limiter):
            yield
    except Interrupted:
        raise
    except MetricsmithError as problem:
        if stop := _ended(limiter, expected, store, str(problem)):
            raise stop from problem
        raise
    else:
        if stop := _ended(limiter, expected, store):
            raise stop
    finally:
        if limiter is not spanning.get():
            limiter.stop("the run has ended")  # for threads that it may have left behind


def budget_lines(budget: Budget | None, usage: Usage, *, short: bool = False) -> list[str]:
    """One line for each limit with the estimate beside it; with `short` only where the budget does not reach."""
    return [] if budget is None else [words for over, words in budget.beside(usage) if over or not short]


def _ended(
    limiter: RateLimiter, expected: Usage, store: str | PathLike[str] | Store | None, reached: str = ""
) -> ModelFailure | None:
    """The error of a run that was refused a request, once for each refusal; None if it was not."""
    if not limiter.refused:
        return None
    spent, why, status = limiter.spent, limiter.refused, Status.SKIPPED if limiter.stopped else Status.BUDGET
    around: RateLimiter | None = limiter
    while around is not None:
        around.refused, around = "", around.outer
    dollars = "" if spent.cost is None else f", {money(spent.cost)}"
    tokens = spent.prompt_tokens + spent.completion_tokens
    kept = (
        "run the same again with a store (--store FILE), which keeps what is paid for, or with a larger budget"
        if store is None
        else f"what was judged stands in {getattr(store, 'path', store)}, and what made judges in DSPy's cache: run "
        "the same again, which asks only the rest, or give a larger budget"
    )
    return ModelFailure(
        f"{why} before the run was complete{f' ({reached})' if reached else ''}: {spent.requests:,} requests and "
        f"{tokens:,} tokens{dollars} went out, and the estimate for all was {expected.requests:,} requests; nothing is "
        f"made of a part; {kept}",
        status,
        spent,
    )
