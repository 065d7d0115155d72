"""What scoring will ask of the language model, before it asks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import dspy
import numpy as np

from metricsmith.model_calls.models import using
from metricsmith.model_calls.prices import price
from metricsmith.model_calls.tokens import estimate_tokens
from metricsmith.records import Usage
from metricsmith.scoring.plan import Group, checked_rows, model_of, plan
from metricsmith.scoring.results import PENDING, Results
from metricsmith.scoring.rounds import Rounds
from metricsmith.store import Store

__all__ = ["ANSWER_TOKENS", "estimate"]

ANSWER_TOKENS = 120  # two to four sentences of reasons and a number
SAMPLE = 50  # rows whose prompts are written out for each asker; their mean stands for all


def estimate(
    metrics: Sequence[Any],
    rows: Sequence[dspy.Example],
    *,
    lm: Any = None,
    runs: int = 1,
    first_run: int = 0,
    store: str | PathLike[str] | Store | None = None,
    batch_n: bool = False,
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
    metrics, rows, lm, runs, first_run, store, batch_n
        As for `score`. What `store` holds already is not counted; it is not written to.

    Returns
    -------
    Usage
        ``cost`` is None where the price of a model is unknown.

    Raises
    ------
    OptionError, NeedsError, StoreError
        As `score` raises them before it starts.
    """
    with using(lm):
        chart = plan(metrics, runs, first_run)
        with nullcontext(store) if isinstance(store, Store) or store is None else _reading(store) as opened:
            results = Results(chart, checked_rows(rows), opened)
            results.recall()
        first = results.first()
        rounds = Rounds(results, first)
        rounds.start()
        parts = [_estimate(group, rounds, batch_n) for group in chart.groups]
        total = sum(parts, Usage(cost=0.0))
        return replace(total, cost=None) if any(part.cost is None for part in parts) else total


def _reading(path: str | PathLike[str]) -> AbstractContextManager[Store | None]:
    """The store without a trace left in it; a file that is not there yet holds nothing."""
    return Store(path, read_only=True) if Path(path).exists() else nullcontext()


def _estimate(group: Group, rounds: Rounds, batch_n: bool) -> Usage:
    """Requests and tokens that are left for one asker: rows of which nothing is known, once for each content."""
    results, possible = rounds.results, rounds.possible()
    here = np.arange(len(results.rows))
    unknown = {
        run: possible[places] & (results.codes[places] == PENDING) & (rounds.first[places[0]] == here)
        for run, places in group.by_run.items()
    }  # each (members, n)
    asked = np.array([cells.any(axis=0) for cells in unknown.values()])  # (r, n)
    at_once = asked & np.array([rounds.wanted[places].any(axis=0) for places in group.by_run.values()])
    rows = np.flatnonzero(asked.any(axis=0))
    requests = int(at_once.any(axis=0).sum() + (asked & ~at_once).sum() if batch_n else asked.sum())
    sample = rows[np.linspace(0, len(rows) - 1, min(SAMPLE, len(rows))).astype(int)] if len(rows) else rows
    lengths = [_prompt_tokens(group, results.rows[int(row)]) for row in sample]
    if not requests or not any(lengths):
        return Usage(requests if any(lengths) else 0, cost=0.0)
    prompt = round(requests * float(np.mean(lengths)))
    completion = ANSWER_TOKENS * group.asker.numbers * int(asked.sum())
    metric = results.plan.slots[next(iter(group.by_run.values()))[0]].metric
    return Usage(requests, prompt, completion, price(getattr(model_of(metric), "model", ""), prompt, completion))


def _prompt_tokens(group: Group, row: dspy.Example) -> int:
    return sum(estimate_tokens(str(message["content"])) for message in group.asker.messages(row))
