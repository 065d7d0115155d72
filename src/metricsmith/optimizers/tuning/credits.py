"""Credits: the worth of one judged row to the objective, with the feedback that explains it in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import dspy
import numpy as np

from metricsmith.errors import JudgementFailed, ModelFailure
from metricsmith.metric import content_hash, fence
from metricsmith.model_calls.rate_limiter import RateLimiter, use
from metricsmith.optimizers.examples import rating_strata
from metricsmith.optimizers.objectives import REPORTED, Case, Measure, Objective
from metricsmith.optimizers.splits import RatedRows
from metricsmith.optimizers.tuning.readers import LONGEST_REASON, OptionReader, PredictionReader, cut
from metricsmith.optimizers.tuning.selection import answered
from metricsmith.optimizers.tuning.splits import row_inputs
from metricsmith.optimizers.tuning.student import CandidateJudgement, JudgementTable
from metricsmith.stats.correlation import FloatArray

__all__ = [
    "PEERS",
    "CreditMetric",
    "Credits",
    "JudgedRow",
    "MeasureReader",
    "Peer",
    "feedback_on",
    "pick_peers",
]

PEERS = 8  # rows that a row is compared with; more cost requests with every candidate, fewer make credits coarse
LONGEST_TEXT = 600  # characters of each text of the other row
Peer = tuple[dspy.Example, float, float]  # row, rating, the candidate's number


class MeasureReader:
    """Reads a prediction by a DSPy metric that knows the row's label, as `RankingMetric` and `YieldMetric` do.

    Parameters
    ----------
    metric : Measure
    limiter : RateLimiter
        Admits the requests of the metric.
    """

    span = 1.0
    sign = 1.0
    shown = ""

    def __init__(self, metric: Measure, limiter: RateLimiter) -> None:
        self.metric, self.limiter = metric, limiter
        self._known: dict[tuple[str, int, int], tuple[float, str]] = {}  # labels and predictions outlive it

    def value(self, row: dspy.Example, prediction: Any) -> float:
        """The metric's score; NaN where a judgement that it needs has failed."""
        return self.measured(row, prediction)[0]

    def measured(self, row: dspy.Example, prediction: Any) -> tuple[float, str]:
        """Score and feedback, measured once for each row and prediction."""
        key = _key(row), id(getattr(row, "label", None)), id(prediction)  # episodes may ask the same of other rows
        if key not in self._known:
            try:
                with use(self.limiter):
                    found = self.metric(row, prediction)
                self._known[key] = float(found.score), str(found.feedback)
            except (JudgementFailed, ModelFailure) as problem:
                self._known[key] = math.nan, str(problem)
        return self._known[key]


@dataclass
class Credits:
    """The credits of candidates on two splits: rows to learn from and rows to select by, with the peers of each.

    Parameters
    ----------
    table : JudgementTable
    objective : Objective
    reader : PredictionReader, OptionReader or MeasureReader
    learn, select : RatedRows
        Disjoint by group. Texts and ratings of `learn` may be shown to a model that writes instructions; of
        `select` it sees nothing.
    seed : int
        Draws the peers.
    start : float
        The objective's statistic before tuning.
    """

    table: JudgementTable
    objective: Objective
    reader: PredictionReader | OptionReader | MeasureReader
    learn: RatedRows
    select: RatedRows
    seed: int = 0
    start: float = math.nan

    @cached_property
    def _selects(self) -> dict[str, bool]:
        """True for the inputs of selection rows, False for those of learning rows, by their hash."""
        learned = dict.fromkeys(map(_key, self.learn.rows), False)
        return learned | dict.fromkeys(map(_key, self.select.rows), True)

    def __deepcopy__(self, memo: dict[int, Any]) -> Credits:
        return self  # DSPy copies a student for every candidate, and the student holds `beside`

    @cached_property
    def _peers(self) -> tuple[list[tuple[dspy.Example, float, str, dict[str, Any]]], ...]:
        """At most `PEERS` rows with rating, key and inputs: of the learning rows, then of the selection rows."""
        found = []
        for split in (self.learn, self.select):
            places = pick_peers(split, PEERS, self.seed) if self.objective.peers else []
            rows, ratings = [split.rows[place] for place in places], split.ratings[places].tolist()
            found.append([(row, rating, _key(row), row_inputs(row)) for row, rating in zip(rows, ratings, strict=True)])
        return tuple(found)

    @property
    def most_peers(self) -> int:
        """The most requests that a candidate costs for its peers."""
        return max(map(len, self._peers))

    def beside(self, inputs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The inputs of a row's peers, from another place on for every row, so that threads share the work."""
        key = content_hash(inputs)
        peers = self._peers[self._selects.get(key, False)]
        turn = int(key, 16) % len(peers) if peers else 0
        return [inputs for *_, inputs in (*peers[turn:], *peers[:turn])]

    @property
    def sent(self) -> int:
        """Requests sent so far."""
        return self.table.limiter.spent.requests

    def value(self, row: dspy.Example, judgement: CandidateJudgement | None) -> Any:
        """The number, or the K options, of a judgement; NaN if there is none."""
        if judgement is None or judgement.prediction is None:
            return np.full(self.select.ratings.shape[1:], math.nan)
        return self.reader.value(row, judgement.prediction)

    def judgements(self, candidate: str) -> list[CandidateJudgement | None]:
        """A candidate's judgements of the selection rows, in order; None where it was not asked."""
        return [self.table.known(candidate, row_inputs(row)) for row in self.select.rows]

    def values(self, candidate: str) -> FloatArray:
        """A candidate's numbers, or options, on the selection rows; NaN where it has none."""
        return np.array([self.value(*pair) for pair in zip(self.select.rows, self.judgements(candidate), strict=True)])

    def reported(self, before: str, after: str) -> dict[str, tuple[float, float]]:
        """The measures of options that are not searched by, of two candidates on the rows that both have answered."""
        pair = [self.values(name) for name in (before, after)]
        kept = answered(pair[0]) & answered(pair[1])
        measures = REPORTED.get(self.objective.answers, {})
        found = {name: [one(each[kept], self.select.ratings[kept]) for each in pair] for name, one in measures.items()}
        return {name: (was, now) for name, (was, now) in found.items() if name != self.objective.name}

    def complete(self, candidate: str) -> bool:
        """True if a candidate was asked for every selection row."""
        return all(judgement is not None for judgement in self.judgements(candidate))

    def credit(self, example: dspy.Example, prediction: dspy.Prediction) -> tuple[float, str, bool]:
        """Return the credit of a student's prediction, the feedback, and whether it may become a demonstration."""
        judgement: CandidateJudgement = prediction.judgement
        value = self.value(example, judgement)
        if np.isnan(value).any():
            why = judgement.error or "the answer holds no number"
            return 0.0, f"The judge gave no usable answer: {why}. It must answer in the form asked for.", False
        if isinstance(self.reader, MeasureReader):
            return value, self.reader.measured(example, judgement.prediction)[1], value >= self.reader.metric.success_at
        rating, key = self._ratings[content_hash(example.toDict())], _key(example)
        peers = [
            (row, peer_rating, number)
            for row, peer_rating, peer_key, inputs in self._peers[self._selects.get(key, False)]
            if peer_key != key
            and not math.isnan(number := self.value(row, self.table.known(prediction.candidate, inputs)))
        ]
        case = Case(
            value,
            rating,
            np.array([number for _, _, number in peers]),
            np.array([peer_rating for _, peer_rating, _ in peers]),
            self.learn.ratings,
            self.reader.span,
            self.start,
        )
        credit = self.objective.credit(case)
        good = value == rating if self.objective.labels else credit >= self.objective.success_at
        if isinstance(self.reader, OptionReader):
            feedback = self.reader.feedback(example, rating, value, judgement.prediction)
            return credit, feedback, credit >= self.objective.success_at
        judged = JudgedRow(example, rating, value, judgement.prediction, self.reader.sign)
        if self.reader.shown:  # the rows hold the ratings in the judge's own numbers and direction
            name, sign = self.reader.shown, self.reader.sign
            judged = replace(judged, rating=float(example[name]), value=sign * value, sign=1.0)
            peers = [(row, float(row[name]), sign * number) for row, _, number in peers]
        return credit, feedback_on(judged, peers, self.objective), good

    @cached_property
    def _ratings(self) -> dict[str, Any]:
        return {
            content_hash(row.toDict()): rating if split.ratings.ndim > 1 else float(rating)
            for split in (self.learn, self.select)
            for row, rating in zip(split.rows, split.ratings, strict=True)
        }


class CreditMetric:
    """The objective's credit in the five-argument form of DSPy's optimisers.

    While DSPy bootstraps demonstrations it gives a bool, for a prediction is always true. It never raises: a
    failed call is worth 0 here, and its candidate is discarded later.

    Parameters
    ----------
    credits : Credits
    """

    def __init__(self, credits: Credits) -> None:
        self.credits = credits

    def __call__(
        self, example: Any, pred: Any = None, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> Any:
        """The row's credit with feedback."""
        credit, feedback, good = self.credits.credit(example, pred)
        if trace is not None and pred_name is None:
            return good
        return dspy.Prediction(score=credit, feedback=feedback)


def pick_peers(rated: RatedRows, count: int, seed: int) -> list[int]:
    """Places of at most `count` rows, balanced over the ratings, of different groups as far as these go."""
    random = np.random.default_rng(seed)
    strata = rating_strata(rated.ratings, min(count, len(rated)))
    waiting = [random.permutation(np.flatnonzero(strata == part)).tolist() for part in range(int(strata.max()) + 1)]
    chosen: list[int] = []
    while len(chosen) < count and any(waiting):
        for part in waiting:
            if part and len(chosen) < count:
                seen = {rated.groups[place] for place in chosen}
                place = next((place for place in part if rated.groups[place] not in seen), part[0])
                part.remove(place)
                chosen.append(place)
    return chosen


@dataclass(frozen=True)
class JudgedRow:
    """A row with its rating and a candidate's number; `sign` is -1 where the judge counts the other way round."""

    row: dspy.Example
    rating: float
    value: float
    prediction: Any
    sign: float = 1.0


def feedback_on(judged: JudgedRow, peers: Sequence[Peer], objective: Objective) -> str:
    """Write feedback for a model that writes instructions: both numbers, both reasons, and where they part.

    Parameters
    ----------
    judged : JudgedRow
    peers : sequence of (row, rating, number)
        Other rows as the same candidate rates them. Of those in the wrong order the one with the most different
        rating is shown.
    objective : Objective
    """
    rating, value = judged.rating, judged.value
    reason = str(judged.row.get("reason") or "")
    lines = [f"The raters gave {rating:g}{f' and said: {cut(reason, LONGEST_REASON)}' if reason else ''}."]
    why = str(judged.prediction.get("feedback") or judged.prediction.get("reasoning") or "")
    lines.append(f"The judge gave {judged.sign * value:g}{f', because: {cut(why, LONGEST_REASON)}' if why else '.'}")
    if objective.labels and value == rating:
        lines.append("That is the raters' number.")
    elif objective.labels:
        lines.append(f"That is {abs(value - rating):g} too {'high' if value > rating else 'low'}.")
    ordered = [peer for peer in peers if peer[1] != rating]
    wrong = [peer for peer in ordered if np.sign(value - peer[2]) != np.sign(rating - peer[1])]
    if ordered:
        lines.append(f"Of {len(ordered)} other works with another rating, {len(wrong)} stand on the wrong side of it.")
    if wrong:
        lines.append(_contrast(judged, max(wrong, key=lambda peer: abs(peer[1] - rating))))
    return "\n".join(lines)


def _contrast(judged: JudgedRow, peer: Peer) -> str:
    """A peer in the wrong order, with its texts."""
    row, rating, value = peer
    place = (
        "the same number"
        if value == judged.value
        else f"{'more' if value > judged.value else 'less'} ({judged.sign * value:g})"
    )
    texts = "\n".join(f"{name}: {fence(cut(str(text), LONGEST_TEXT))}" for name, text in row.inputs().items())
    better = "higher" if rating > judged.rating else "lower"
    return f"The raters gave the following work {rating:g}, which is {better}; the judge gave it {place}.\n{texts}"


def _key(row: dspy.Example) -> str:
    return content_hash(row_inputs(row))
