"""Metrics x rows -> a table of judgements, or an estimate of what it will cost.

One coordinator, in the caller's thread, hands out jobs, writes finished judgements to the store in one
transaction, and only then reports progress and hands out more. Metrics that cost no model call are computed in
batches; all others are asked concurrently under one shared rate limiter. A failed judgement is counted and
never becomes a number; too many of them stop the run with everything that was paid for kept.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import dspy
import numpy as np

from metricsmith.errors import OptionError, StoreError
from metricsmith.model_calls import rate_limiter
from metricsmith.model_calls.limits import Budget, Concurrency, PerJudge, estimate_tokens, price, total_usage
from metricsmith.model_calls.models import using
from metricsmith.model_calls.rate_limiter import RateLimiter
from metricsmith.records import Usage
from metricsmith.scoring.coordinator import Coordinator
from metricsmith.scoring.plan import AskerRuns, ScoringPlan, metric_list, model_of, scoring_plan
from metricsmith.scoring.results import PENDING, Results, Rounds
from metricsmith.scoring.rows import given_rows
from metricsmith.scoring.table import ScoreTable
from metricsmith.store import Store

__all__ = [
    "ANSWER_TOKENS",
    "ascore",
    "coordinator",
    "estimate",
    "score",
]

GRACE = 2.0  # seconds that a cancelled task waits for what is being written


def score(
    metrics: Any,
    data: Any,
    *,
    lm: Any = None,
    runs: int = 1,
    first_run: int = 0,
    concurrency: Literal["auto"] | int | Concurrency = "auto",
    store: str | PathLike[str] | Store | None = None,
    budget: Budget | None = None,
    max_failure_rate: float | PerJudge = 0.2,
    progress: bool = True,
    batch_n: bool = False,
    **reading: Any,
) -> ScoreTable:
    """Judge every row by every metric.

    DSPy's callbacks fire as usual. Its history stays empty, for it would grow with the rows: ``judge.messages(row)``
    shows a prompt, and a judge that is called by itself leaves its request in the history.

    Parameters
    ----------
    metrics : metric or sequence
        m metrics, or one: bank metrics or their names (``"bleu"``), judges, table columns, induced metrics, or
        functions as DSPy's Evaluate takes them, in any mixture; a panel stands for its members. A judgement that
        several of them need is made once.
    data : sequence of dspy.Example, Table, or any source of `read_table`
        n rows as `metricsmith.metric.make_row` builds them; or a path, a data frame, a data set, dicts, which
        `read_table` reads, guesses and all: its notes go to the logger ``metricsmith.notes``. Induced metrics find
        the columns by which they were induced. Rows with equal texts are judged once; an empty list is no rows.
    lm : dspy.LM, optional
        The language model for judges; None takes the one in force. A judge with a model of its own keeps it.
    runs : int
        r repetitions, each an independent sample; more than one needs a temperature above .15.
    first_run : int
        Number of the first repetition.
    concurrency : "auto", int or Concurrency
        The number of model requests that may be in flight, over all metrics together.
    store : path or Store, optional
        The keeper of finished judgements: those that it has already are not asked again, failures are.
    budget : Budget, optional
        The most that the run may spend; judgements that are left undone have status ``budget``.
    max_failure_rate : float or PerJudge
        In [0, 1]: the share of model judgements that may fail. Rows that lack what a metric needs, and judgements
        that the budget cut off, do not count. With `PerJudge` a judge that fails too often is dropped instead. Below 1
        a run whose engine fails so that not one number comes of it ends as well.
    progress : bool
        Whether to draw a progress bar on standard error, if that is a terminal or a notebook's.
    batch_n : bool
        Let one request carry all repetitions (``n`` choices), for providers that offer it: the prompt is paid
        for once.
    **reading
        Options of `read_table` for data that are not read yet: ``output="answer"``, ``inputs="question"`` and so on.
        With rows they name the rows' own fields.

    Returns
    -------
    ScoreTable

    Raises
    ------
    OptionError
        If something else than a metric is given, or an option has no meaning.
    DataError
        If the data cannot be read.
    NeedsError
        If a language model is needed and none is set.
    StoreError
        If the store cannot be used; ``table`` holds what was done until then.
    ModelFailure
        If more model judgements fail than `max_failure_rate` allows, as soon as that is certain, the server refuses
        to work, or metrics of this machine fail and no number is there; ``table`` holds what was done.
    Interrupted
        On Ctrl-C, within two seconds; ``table`` holds what was done.
    """
    with using(lm):
        metrics = metric_list(metrics)
        rows = given_rows(data, metrics, reading, score)
        plan = scoring_plan(metrics, runs, first_run, rows)
        run = coordinator(plan, rows, concurrency, store, budget, max_failure_rate, progress, batch_n)
        return run.finish()


async def ascore(
    metrics: Any,
    data: Any,
    *,
    lm: Any = None,
    runs: int = 1,
    first_run: int = 0,
    concurrency: Literal["auto"] | int | Concurrency = "auto",
    store: str | PathLike[str] | Store | None = None,
    budget: Budget | None = None,
    max_failure_rate: float | PerJudge = 0.2,
    progress: bool = True,
    batch_n: bool = False,
    **reading: Any,
) -> ScoreTable:
    """The same as `score`, without blocking the event loop.

    Cancelling the task stops the run as Ctrl-C does: nothing more is sent, and finished judgements are in the
    store.
    """
    with using(lm):
        metrics = metric_list(metrics)
        rows = await asyncio.to_thread(given_rows, data, metrics, reading, ascore)
        plan = await asyncio.to_thread(scoring_plan, metrics, runs, first_run, rows)  # may read a tokenizer
        run = await asyncio.to_thread(
            coordinator, plan, rows, concurrency, store, budget, max_failure_rate, progress, batch_n
        )
        work = asyncio.ensure_future(asyncio.to_thread(run.finish))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        run.hurry("the task was cancelled")
        await asyncio.wait({work}, timeout=GRACE)
        if work.done() and not work.cancelled():
            work.exception()  # looked at, so that asyncio does not report it: the cancellation is what counts
        raise


def coordinator(
    plan: ScoringPlan,
    rows: list[dspy.Example],
    concurrency: Literal["auto"] | int | Concurrency,
    store: str | PathLike[str] | Store | None,
    budget: Budget | None,
    max_failure_rate: float | PerJudge,
    progress: bool,
    batch_n: bool,
    limiter: RateLimiter | None = None,
) -> Coordinator:
    """Check the options and put the run together; a run inside another one shares its limits.

    A `limiter` that is given counts for several runs one after the other.
    """
    if not isinstance(max_failure_rate, PerJudge):
        PerJudge(max_failure_rate)  # refuses what is no share
    if budget is not None and not isinstance(budget, Budget):
        raise OptionError(f"budget={budget!r} must be a Budget, say Budget(requests=100)")
    if store is not None and not isinstance(store, str | PathLike | Store):
        raise OptionError(f"store={store!r} must be a path or a Store")
    if isinstance(store, Store) and store.read_only:
        raise StoreError(f"the store {store} was opened read-only; give its path, or open it without read_only=True")
    bounds = Concurrency.of(concurrency)
    around, outer = rate_limiter.spanning.get(), rate_limiter.in_force.get()
    if (budget is not None and budget.usd is not None) or (around is not None and around.budget.usd is not None):
        _check_prices(plan)
    if outer is not None and budget is not None:
        raise OptionError("a run inside another one shares its budget: give budget= to the outer one alone")
    return Coordinator(
        plan,
        rows,
        store=store,
        limiter=outer or limiter or RateLimiter(bounds, budget),
        shared=outer is not None,
        window=bounds.high,
        max_failure_rate=max_failure_rate,
        progress=progress,
        batch_n=batch_n,
    )


def _check_prices(plan: ScoringPlan) -> None:
    """Refuse a budget in dollars where a model has no price."""
    for place in plan.asked:
        model = getattr(model_of(plan.metric_runs[place].metric), "model", None)
        if model is not None and price(model, 1, 1) is None:
            raise OptionError(
                f"the price of {model} is unknown, so that a budget in dollars cannot be kept; give one in tokens "
                "(tokens=..., --max-tokens)"
            )


ANSWER_TOKENS = 120  # two to four sentences of reasons and a number
SAMPLE = 50  # rows whose prompts are written out for each asker; their mean stands for all


def estimate(
    metrics: Any,
    data: Any,
    *,
    lm: Any = None,
    runs: int = 1,
    first_run: int = 0,
    store: str | PathLike[str] | Store | None = None,
    batch_n: bool = False,
    **reading: Any,
) -> Usage:
    """Estimate requests, tokens and dollars of `score` with the same arguments; sends nothing.

    Of a judge that stops early (`Repeated(stop_when=...)`) all runs count that may still be asked, so that the
    estimate is an upper bound there; with `batch_n`, each run that is not wanted at once is a request of its own.

    Prompt tokens are counted on the prompts themselves, by four characters a token, for up to 50 rows of each
    judge; the length of answers is assumed (120 tokens for each number that is asked for). Retries are not in it,
    nor what DSPy's cache spares. Functions of the caller's own count for nothing, since nothing is known of what
    they ask.

    Parameters
    ----------
    metrics, data, lm, runs, first_run, store, batch_n, reading
        As for `score`. What `store` holds already is not counted; it is not written to.

    Returns
    -------
    Usage
        ``cost`` is None where the price of a model is unknown.

    Raises
    ------
    OptionError, DataError, NeedsError, StoreError
        As `score` raises them before it starts.
    """
    with using(lm):
        metrics = metric_list(metrics)
        rows = given_rows(data, metrics, reading, estimate)
        plan = scoring_plan(metrics, runs, first_run)
        if store is None or isinstance(store, Store):
            opened: AbstractContextManager[Store | None] = nullcontext(store)
        else:  # without a trace left in it; a file that is not there yet holds nothing
            opened = Store(store, read_only=True) if Path(store).exists() else nullcontext()
        with opened as known:
            results = Results(plan, rows, known)
            results.recall()
        rounds = Rounds(results)
        rounds.start()
        return total_usage([Usage(cost=0.0), *(_remaining(asker, rounds, batch_n) for asker in plan.askers)])


def _remaining(asker: AskerRuns, rounds: Rounds, batch_n: bool) -> Usage:
    """Requests and tokens that are left for one asker: rows of which nothing is known, once for each content."""
    results, possible = rounds.results, rounds.possible()
    here = np.arange(len(results.rows))
    unknown = {
        run: possible[places] & (results.codes[places] == PENDING) & (rounds.first[places[0]] == here)
        for run, places in asker.by_run.items()
    }  # each (members, n)
    asked = np.array([cells.any(axis=0) for cells in unknown.values()])  # (r, n)
    at_once = asked & np.array([rounds.wanted[places].any(axis=0) for places in asker.by_run.values()])
    rows = np.flatnonzero(asked.any(axis=0))
    requests = int(at_once.any(axis=0).sum() + (asked & ~at_once).sum() if batch_n else asked.sum())
    sample = rows[np.linspace(0, len(rows) - 1, min(SAMPLE, len(rows))).astype(int)] if len(rows) else rows
    prompts = [asker.asker.messages(results.rows[int(row)]) for row in sample]
    lengths = [sum(estimate_tokens(str(message["content"])) for message in messages) for messages in prompts]
    if not requests or not any(lengths):
        return Usage(requests if any(lengths) else 0, cost=0.0)
    prompt = round(requests * float(np.mean(lengths)))
    completion = ANSWER_TOKENS * asker.asker.numbers * int(asked.sum())
    metric = results.plan.metric_runs[next(iter(asker.by_run.values()))[0]].metric
    return Usage(requests, prompt, completion, price(getattr(model_of(metric), "model", ""), prompt, completion))
