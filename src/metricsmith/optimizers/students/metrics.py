"""Metrics for DSPy's Evaluate and optimisers whose student is a recommender or a generator.

Each takes the five arguments that DSPy passes, and returns a `dspy.Prediction` with ``score`` in [0, 1] and
``feedback`` in words; while DSPy bootstraps demonstrations (``trace`` given, ``pred_name`` not) it returns the bool
``score >= success_at``, because a Prediction is always truthy.
"""

from __future__ import annotations

import copy
import math
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import dspy

from metricsmith.errors import DataError, JudgementFailed, ModelFailure, OptionError
from metricsmith.metric import content_hash
from metricsmith.optimizers.students.episodes import Gains
from metricsmith.optimizers.students.ranking_quality import ndcg_at_k, recall_at_k
from metricsmith.optimizers.students.yields import JudgeYield, Yield, held_out_of, judges_of, yield_of
from metricsmith.records import Usage

__all__ = ["RankingMetric", "YieldMetric"]

NOTABLE = 0.1  # an absolute tau below this is described as saying nothing
MEASURES = {"ndcg": ndcg_at_k, "recall": recall_at_k}


class RankingMetric:
    """Measures a recommender's order of names on the episodes of `recommendation_episodes`.

    Parameters
    ----------
    measure : str
        ``ndcg`` or ``recall``, at the episode's k. It is the score as it
        stands: 1 is the best order, or set, that the pool has.
    success_at : float
        The bar for a bootstrapped demonstration.

    Raises
    ------
    OptionError
        For another measure.
    """

    def __init__(self, measure: Literal["ndcg", "recall"] = "ndcg", *, success_at: float = 0.5) -> None:
        if measure not in MEASURES:
            raise OptionError(f"measure={measure!r} must be one of {', '.join(MEASURES)}")
        self.measure = measure
        self.success_at = success_at

    def requests(self, example: Any) -> int:
        """How many requests one measurement takes at most, retries aside: none."""
        return 0

    def __call__(
        self, example: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> Any:
        """Measure ``pred.names`` by the episode's gains.

        Raises
        ------
        DataError
            If the example has no gains, or none is positive.
        """
        label = getattr(example, "label", None)
        if not isinstance(label, Gains):
            raise DataError("the example has no gains: make episodes with recommendation_episodes")
        gains, k = label.by_card, example.k
        score = MEASURES[self.measure](pred.names, gains, k)
        if math.isnan(score):
            raise DataError("no metric of the pool follows the rating, so that no order is better than another")
        if trace is not None and pred_name is None:
            return score >= self.success_at
        return dspy.Prediction(score=score, feedback=_ranking_feedback(pred, gains, k))


class YieldMetric:
    """Measures a generator's answer on the episodes of `axes_episodes` and `rubric_episodes`.

    The score is ``(1 + tau) / 2`` for the yield's tau: 1 is perfect agreement with the held-out ratings, .5 none.
    Equal answers to one episode are judged once, since GEPA asks twice. The model's failures count in `failures`,
    because DSPy books an exception as 0: discard a candidate that has any.

    Parameters
    ----------
    lm : dspy.LM, optional
        For the judges; None takes the one in force.
    success_at : float
        The bar for a bootstrapped demonstration; .6 is a tau of .2.
    **scoring
        Options of `scoring.score`, such as ``store`` and ``concurrency``.

    Attributes
    ----------
    failures : int
        How many calls had no value.
    usage : Usage
        What all measurements have cost.
    """

    def __init__(self, lm: Any = None, *, success_at: float = 0.6, **scoring: Any) -> None:
        self.lm = lm
        self.success_at = success_at
        self.scoring = scoring
        self.failures = 0
        self.usage = Usage()
        self._known: dict[str, Yield] = {}
        self._lock = threading.Lock()
        self._asking: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def __deepcopy__(self, memo: dict[int, Any]) -> YieldMetric:
        return YieldMetric(self.lm, success_at=self.success_at, **copy.copy(self.scoring))

    def requests(self, example: Any) -> int:
        """How many requests one measurement takes at most, retries aside: every judge on every held-out row."""
        held_out = held_out_of(example)
        return held_out.wanted * len(held_out.rows)

    def __call__(
        self, example: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> Any:
        """Measure the judges made of `pred`.

        Raises
        ------
        JudgementFailed
            If fewer than half of the judges that were asked for have a tau.
        DataError, NeedsError, ModelFailure
            As `yield_of`.
        """
        try:
            found = self._yield(example, pred)
            if math.isnan(found.tau):
                raise JudgementFailed(f"{_counted(found)}; there is no mean to go by")
        except (JudgementFailed, ModelFailure):
            with self._lock:
                self.failures += 1
            raise
        score = (1 + found.tau) / 2
        if trace is not None and pred_name is None:
            return score >= self.success_at
        return dspy.Prediction(score=score, feedback=_yield_feedback(found))

    def _yield(self, example: Any, pred: Any) -> Yield:
        """Judge once per answer and episode, also when several threads ask at the same time."""
        held_out = held_out_of(example)
        made = [judge.fingerprint() for judge in judges_of(pred, held_out)]
        key = content_hash(made, [row.toDict() for row in held_out.rows], held_out.wanted)
        with self._lock:
            asking = self._asking[key]
        with asking:
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = yield_of(pred, example, lm=self.lm, **self.scoring)
                with self._lock:
                    self.usage += known.usage
        return known


def _ranking_feedback(pred: Any, gains: Mapping[str, float], k: int) -> str:
    """Which good ones were named, which were missed, and what stands in their place."""
    worth = {name: gain for name, gain in gains.items() if not math.isnan(gain)}
    best = sorted((name for name in worth if worth[name] > 0), key=lambda name: -worth[name])[:k]
    named = list(pred.names[:k])
    missed = [name for name in best if name not in named]
    weak = sorted((name for name in named if name not in best), key=lambda name: worth.get(name, 0.0))
    lines = [
        f"NDCG@{k} is {ndcg_at_k(named, gains, k):.2f}, recall@{k} is {recall_at_k(named, gains, k):.2f}: of the "
        f"{len(best)} metrics that follow the rating best, {len(best) - len(missed)} stand there.",
        f"Best first they are {_valued(best, gains)} (absolute Kendall tau-b with the ratings).",
    ]
    if missed:
        lines.append(f"Missed: {_valued(missed, gains)}.")
    if weak:
        lines.append(f"Named although they follow it less: {_valued(weak, gains)}.")
    if len(named) < min(k, len(gains)):
        lines.append(f"Only {len(named)} of {min(k, len(gains))} names were given; an empty place is worth nothing.")
    if pred.get("unknown"):
        lines.append(f"Not in the pool: {', '.join(map(repr, pred.unknown))}.")
    return " ".join(lines)


def _valued(names: Sequence[str], gains: Mapping[str, float]) -> str:
    return ", ".join(
        f"{name} (no number to go by)" if math.isnan(gains[name]) else f"{name} ({gains[name]:.2f})" for name in names
    )


def _yield_feedback(found: Yield) -> str:
    """Which criteria agree with the raters, which do not, with numbers."""
    known = sorted((judge for judge in found.judges if not math.isnan(judge.tau)), key=lambda judge: -judge.tau)
    groups = {
        "Agree with the raters": [judge for judge in known if judge.tau >= NOTABLE],
        "Say nothing about the ratings": [judge for judge in known if -NOTABLE < judge.tau < NOTABLE],
        "Point against the raters": [judge for judge in known if judge.tau <= -NOTABLE],
    }
    lines = [f"{_counted(found)}, with a mean Kendall tau-b of {found.tau:+.2f} on outputs that were not shown."]
    lines += [f"{head}: {_judged(judges)}." for head, judges in groups.items() if judges]
    flat = [judge.criterion for judge in found.judges if math.isnan(judge.tau)]
    if flat:
        lines.append(f"Tell outputs apart too little to be compared with the raters: {', '.join(map(repr, flat))}.")
    return " ".join(lines)


def _judged(judges: Sequence[JudgeYield]) -> str:
    return ", ".join(f"{judge.criterion!r} ({judge.tau:+.2f}, {judge.n} outputs)" for judge in judges)


def _counted(found: Yield) -> str:
    known = sum(not math.isnan(judge.tau) for judge in found.judges)
    return f"{known} of the {found.wanted} judges that were asked for can be compared with the raters"
