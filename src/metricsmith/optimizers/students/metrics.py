"""Metrics for DSPy's Evaluate and optimisers whose student is a recommender or a generator.

Each takes the five arguments that DSPy passes and answers as `metricsmith.reward.DSPyMetric` says: a `dspy.Prediction`
with ``score`` in [0, 1] and ``feedback`` in words, or a bool while DSPy bootstraps demonstrations.
"""

from __future__ import annotations

import copy
import math
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, Self, TypeVar

from metricsmith.errors import DataError, JudgementFailed, ModelFailure, OptionError, nearest
from metricsmith.metric import content_hash
from metricsmith.model_calls.models import using
from metricsmith.optimizers.students.episodes import Gains
from metricsmith.optimizers.students.yields import Yield, held_out_of, judges_of, yield_of
from metricsmith.records import Usage
from metricsmith.reward import DSPyMetric
from metricsmith.threads import Memo

__all__ = ["ModelMeasured", "RankingMetric", "YieldMetric", "ndcg_at_k", "recall_at_k"]

T = TypeVar("T")

NOTABLE = 0.1  # an absolute tau below this is described as saying nothing


def recall_at_k(ranking: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Share of the k best that stand among the first k of a ranking.

    With fewer than k positive gains the best are those that have one. Where several tie for the last of the k
    places, any of them may take it, but no tie takes the place of something better.

    Parameters
    ----------
    ranking : sequence of str
        Names in `gains`, best first, without repeats; it may be shorter than the pool. What it leaves out was not
        recommended.
    gains : mapping of str to float
        The pool, with what each name is worth: 0 or more. NaN, where that is unknown, counts as 0.
    k : int
        At least 1; beyond the size of the pool it counts as that size.

    Returns
    -------
    float
        In [0, 1]; NaN where no gain is positive.

    Raises
    ------
    OptionError
        If `k` is below 1.
    DataError
        If a gain is negative or infinite, or a ranked name is repeated or not in the pool.

    Examples
    --------
    >>> recall_at_k(["a", "d"], {"a": 0.5, "b": 0.4, "c": 0.4, "d": 0.1}, 2)
    0.5
    """
    known = _checked(ranking, gains, k)
    best = sorted((gain for gain in known.values() if gain > 0), reverse=True)[:k]
    if not best:
        return math.nan
    named = [known[name] for name in ranking[:k]]
    better = sum(gain > best[-1] for gain in named)
    level = min(named.count(best[-1]), best.count(best[-1]))
    return (better + level) / len(best)


def ndcg_at_k(ranking: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Normalised discounted cumulative gain of the first k places.

    ``sum_{i=1..k} g_i / log2(i + 1)`` over the same sum for the pool in falling order of gain (Järvelin and
    Kekäläinen 2002, "Cumulated gain-based evaluation of IR techniques", with the gains themselves and the logarithm
    to base 2 from the first place on). Equal gains may change places. A place that the ranking leaves empty adds
    nothing.

    Parameters, errors and unknown gains as in `recall_at_k`.

    Returns
    -------
    float
        In [0, 1]: 1 where no order of the pool has more; NaN where no gain is positive.

    Examples
    --------
    >>> round(ndcg_at_k(["b", "a"], {"a": 0.5, "b": 0.25, "c": 0.0}, 2), 3)
    0.86
    """
    known = _checked(ranking, gains, k)
    ideal = _discounted(sorted(known.values(), reverse=True)[:k])
    return _discounted([known[name] for name in ranking[:k]]) / ideal if ideal > 0 else math.nan


def _discounted(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(place + 1) for place, gain in enumerate(gains, 1))


def _checked(ranking: Sequence[str], gains: Mapping[str, float], k: int) -> dict[str, float]:
    """The gains with 0 for unknown ones."""
    if k < 1:
        raise OptionError(f"k={k} must be 1 or more: it counts places of the ranking")
    known = {name: 0.0 if math.isnan(gain) else float(gain) for name, gain in gains.items()}
    odd = [name for name, gain in known.items() if not 0 <= gain < math.inf]
    if odd:
        raise DataError(
            f"the gain of {odd[0]!r} is {gains[odd[0]]!r}: gains are finite and 0 or more; give absolute values, and "
            f"NaN where a gain is unknown"
        )
    strange = [name for name in ranking if name not in known]
    if strange:
        raise DataError(
            f"{strange[0]!r} is ranked but not in the pool{nearest(strange[0], known)}: leave it out, or give its gain"
        )
    repeated = [name for name, count in Counter(ranking).items() if count > 1]
    if repeated:
        raise DataError(f"{repeated[0]!r} is ranked more than once: name each thing once")
    return known


MEASURES = {"ndcg": ndcg_at_k, "recall": recall_at_k}


class ModelMeasured(DSPyMetric, Generic[T]):
    """Base of metrics whose measurements ask models: each is made once, paid for, and counted where it fails.

    Parameters
    ----------
    lm : dspy.LM or None
        The model to ask; None takes the one in force.
    success_at : float
        The bar for a bootstrapped demonstration.
    scoring : mapping
        Options of `scoring.score`.

    Attributes
    ----------
    failures : int
        The number of calls without a value: DSPy books those as 0.
    usage : Usage
        The cost of all measurements.
    """

    def __init__(self, lm: Any, success_at: float, scoring: Mapping[str, Any]) -> None:
        self.lm = lm
        self.success_at = success_at
        self.scoring = dict(scoring)
        self._start()

    def _start(self) -> None:
        self.failures = 0
        self.usage = Usage()
        self._lock = threading.Lock()
        self._memo: Memo[T] = Memo()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = copy.copy(self)
        twin.scoring = dict(self.scoring)
        twin._start()
        return twin

    def key(self, example: Any, pred: Any) -> str:
        """A hash of everything that a measurement depends on, the model aside."""
        raise NotImplementedError

    def measure(self, example: Any, pred: Any) -> T:
        """The measurement of one answer, on the model in force."""
        raise NotImplementedError

    def graded(self, found: T) -> tuple[float, str]:
        """Score and feedback for a measurement; `JudgementFailed` if it has no value."""
        raise NotImplementedError

    def measured(self, example: Any, pred: Any, pred_name: Any, pred_trace: Any) -> tuple[float, str]:
        """Measure one answer; equal answers to one example are measured once, also by several threads."""
        try:
            with using(self.lm):
                key = self.key(example, pred)
                return self.graded(self._memo.get(key, lambda: self.measure(example, pred), lambda _: True))
        except (JudgementFailed, ModelFailure):
            with self._lock:
                self.failures += 1
            raise

    def pay(self, usage: Usage) -> None:
        """Add the cost of requests to `usage`."""
        with self._lock:
            self.usage += usage


class RankingMetric(DSPyMetric):
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
    DataError
        When called: if the example has no gains, or none is positive.
    """

    def __init__(self, measure: Literal["ndcg", "recall"] = "ndcg", *, success_at: float = 0.5) -> None:
        if measure not in MEASURES:
            raise OptionError(f"measure={measure!r} must be one of {', '.join(MEASURES)}")
        self.measure = measure
        self.success_at = success_at

    def requests(self, example: Any) -> int:
        """The most requests that one measurement takes, retries aside: none."""
        return 0

    def measured(self, example: Any, pred: Any, pred_name: Any, pred_trace: Any) -> tuple[float, str]:
        """Measure ``pred.names`` by the episode's gains; errors as for the class."""
        label = getattr(example, "label", None)
        if not isinstance(label, Gains):
            raise DataError("the example has no gains: make episodes with recommendation_episodes")
        gains, k = label.by_card, example.k
        score = MEASURES[self.measure](pred.names, gains, k)
        if math.isnan(score):
            raise DataError("no metric of the pool follows the rating, so that no order is better than another")
        return score, _ranking_feedback(pred, gains, k)


class YieldMetric(ModelMeasured[Yield]):
    """Measures a generator's answer on the episodes of `axes_episodes` and `rubric_episodes`.

    The score is ``(1 + tau) / 2`` for the yield's tau: 1 is perfect agreement with the held-out ratings, .5 none. Below
    .5 an optimiser still sees that a generator became less wrong.
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
        The number of calls without a value.
    usage : Usage
        The cost of all measurements.

    Raises
    ------
    JudgementFailed
        When called: if fewer than half of the judges that were asked for have a tau.
    DataError, NeedsError, ModelFailure
        When called: as `yield_of`.
    """

    def __init__(self, lm: Any = None, *, success_at: float = 0.6, **scoring: Any) -> None:
        super().__init__(lm, success_at, scoring)

    def requests(self, example: Any) -> int:
        """The most requests that one measurement takes, retries aside: every judge on every held-out row."""
        held_out = held_out_of(example)
        return held_out.wanted * len(held_out.rows)

    def key(self, example: Any, pred: Any) -> str:
        """A hash of the judges made of `pred` and of the held-out rows."""
        held_out = held_out_of(example)
        made = [judge.fingerprint() for judge in judges_of(pred, held_out)]
        return content_hash(made, [row.toDict() for row in held_out.rows], held_out.wanted)

    def measure(self, example: Any, pred: Any) -> Yield:
        """The yield of the judges made of `pred`."""
        found = yield_of(pred, example, **self.scoring)
        self.pay(found.usage)
        return found

    def graded(self, found: Yield) -> tuple[float, str]:
        """The mean tau as a score, and each judge's in words; errors as for the class."""
        if math.isnan(found.tau):
            raise JudgementFailed(f"{_counted(found)}; there is no mean to go by")
        return (1 + found.tau) / 2, _yield_feedback(found)


def _ranking_feedback(pred: Any, gains: Mapping[str, float], k: int) -> str:
    """The good names that were given and missed, and those that stand in their place, in words."""
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
    """The criteria that agree with the raters and those that do not, with numbers."""
    known = sorted((judge for judge in found.judges if not math.isnan(judge.tau)), key=lambda judge: -judge.tau)
    groups = {
        "Agree with the raters": [judge for judge in known if judge.tau >= NOTABLE],
        "Say nothing about the ratings": [judge for judge in known if -NOTABLE < judge.tau < NOTABLE],
        "Point against the raters": [judge for judge in known if judge.tau <= -NOTABLE],
    }
    lines = [f"{_counted(found)}, with a mean Kendall tau-b of {found.tau:+.2f} on outputs that were not shown."]
    for head, judges in groups.items():
        listed = ", ".join(f"{judge.criterion!r} ({judge.tau:+.2f}, {judge.n} outputs)" for judge in judges)
        lines += [f"{head}: {listed}."] if judges else []
    flat = [judge.criterion for judge in found.judges if math.isnan(judge.tau)]
    if flat:
        lines.append(f"Tell outputs apart too little to be compared with the raters: {', '.join(map(repr, flat))}.")
    return " ".join(lines)


def _counted(found: Yield) -> str:
    known = sum(not math.isnan(judge.tau) for judge in found.judges)
    return f"{known} of the {found.wanted} judges that were asked for can be compared with the raters"
