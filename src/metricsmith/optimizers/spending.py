"""One budget and one rate limiter for all requests of a run, and the error with which a run out of budget ends."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from typing import Any, Literal

from metricsmith.errors import Interrupted, MetricsmithError, ModelFailure, OptionError
from metricsmith.model_calls.limits import Budget, Concurrency, price
from metricsmith.model_calls.rate_limiter import RateLimiter, in_force, span, spanning
from metricsmith.records import Status, Usage
from metricsmith.store import Store

__all__ = ["budget_lines", "check_budget", "spending"]

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


def check_budget(budget: object) -> None:
    """Refuse anything but a `Budget` or None, with an `OptionError`."""
    if budget is not None and not isinstance(budget, Budget):
        raise OptionError(f"budget={budget!r} must be a Budget, say Budget(requests=1000), or None for no limit")


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
    dollars = "" if spent.cost is None else f", ${spent.cost:.4f}"
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
