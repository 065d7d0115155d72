"""The rows on which candidates are tried: what a row is worth to the objective, and why, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import JudgementFailed, ModelFailure
from metricsmith.metric import content_hash
from metricsmith.model_calls.flow import Flow, use
from metricsmith.optimizers.examples import rating_strata
from metricsmith.optimizers.objectives import Case, Measure, Objective
from metricsmith.optimizers.rated import Rated
from metricsmith.optimizers.tuning.student import Answers, Verdict
from metricsmith.programs.texts import fence

__all__ = ["PEERS", "Bench", "CreditMetric", "MetricReading", "Peer", "Reading", "Said", "advice", "pick_peers"]

FloatArray = NDArray[np.float64]
PEERS = 8  # rows that a row is compared with; more cost requests with every candidate, fewer make credits coarse


@dataclass(frozen=True)
class Reading:
    """How numbers are read from a judge's prediction and compared with the raters'.

    Parameters
    ----------
    sign : float
        -1 where judge and raters count in opposite directions, otherwise 1.
    span : float
        Length of the rating scale.
    shown : str
        The field that holds the rating in the judge's own numbers, which is how feedback names it; empty if there is
        none, and feedback names the raters' number.
    """

    sign: float = 1.0
    span: float = 4.0
    shown: str = ""

    def value(self, row: dspy.Example, prediction: Any) -> float:
        """The number of a prediction: ``raw`` where there is one, otherwise ``score``; NaN if it is none."""
        for name in ("raw", "score"):
            number = prediction.get(name)
            if isinstance(number, int | float | np.number) and not isinstance(number, bool):
                return self.sign * float(number) if np.isfinite(number) else float("nan")
            if isinstance(number, bool):
                return float(number)
        return float("nan")


class MetricReading:
    """Reads a prediction by a DSPy metric that knows the row's label, as `RankingMetric` and `YieldMetric` do.

    Parameters
    ----------
    metric : Measure
    flow : Flow
        Admits what the metric asks.
    """

    span = 1.0
    sign = 1.0

    def __init__(self, metric: Measure, flow: Flow) -> None:
        self.metric, self.flow = metric, flow
        self._known: dict[tuple[str, int, int], tuple[float, str]] = {}  # labels and predictions outlive it

    def value(self, row: dspy.Example, prediction: Any) -> float:
        """The metric's score; NaN where a judgement that it needs has failed."""
        return self.measured(row, prediction)[0]

    def measured(self, row: dspy.Example, prediction: Any) -> tuple[float, str]:
        """Score and feedback, measured once."""
        key = _key(row), id(getattr(row, "label", None)), id(prediction)  # episodes may ask the same of other rows
        if key not in self._known:
            try:
                with use(self.flow):
                    found = self.metric(row, prediction)
                self._known[key] = float(found.score), str(found.feedback)
            except (JudgementFailed, ModelFailure) as problem:
                self._known[key] = math.nan, str(problem)
        return self._known[key]


@dataclass
class Bench:
    """Rows to learn from and rows to select by, with the peers of each side.

    Parameters
    ----------
    answers : Answers
    objective : Objective
    reading : Reading or MetricReading
    learn, select : Rated
        Disjoint by group. Texts and ratings of `learn` may be shown to a model that writes instructions; of
        `select` it sees nothing.
    seed : int
        Decides who the peers are.
    start : float
        The objective's statistic before tuning.
    """

    answers: Answers
    objective: Objective
    reading: Reading | MetricReading
    learn: Rated
    select: Rated
    seed: int = 0
    start: float = float("nan")
    _side: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for side, rated in (("learn", self.learn), ("select", self.select)):
            self._side.update({_key(row): side for row in rated.rows})

    @cached_property
    def peers(self) -> Mapping[str, tuple[list[dspy.Example], FloatArray]]:
        """By side, at most `PEERS` rows and their ratings."""
        found = {}
        for side, rated in (("learn", self.learn), ("select", self.select)):
            places = pick_peers(rated, PEERS, self.seed) if self.objective.peers else []
            found[side] = ([rated.rows[place] for place in places], rated.ratings[places])
        return found

    @property
    def most_peers(self) -> int:
        """How many requests a candidate costs for its peers at most."""
        return max(len(rows) for rows, _ in self.peers.values())

    def beside(self, inputs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The inputs of a row's peers, from another place on for every row, so that threads share the work."""
        rows, _ = self.peers[self._side.get(content_hash(inputs), "learn")]
        turn = int(content_hash(inputs), 16) % len(rows) if rows else 0
        return [dict(row.inputs().items()) for row in (*rows[turn:], *rows[:turn])]

    @property
    def sent(self) -> int:
        """Requests so far."""
        return self.answers.flow.spent.requests

    def value(self, row: dspy.Example, verdict: Verdict | None) -> float:
        """A verdict's number, NaN if there is none."""
        known = verdict is not None and verdict.prediction is not None
        return self.reading.value(row, verdict.prediction) if known and verdict else float("nan")

    def values(self, candidate: str) -> FloatArray:
        """A candidate's numbers on the selection rows, NaN where it has none."""
        return np.array([self.value(row, self.answers.known(candidate, _inputs(row))) for row in self.select.rows])

    def complete(self, candidate: str) -> bool:
        """Whether a candidate was asked for every selection row."""
        return all(self.answers.known(candidate, _inputs(row)) is not None for row in self.select.rows)

    def credit(self, example: dspy.Example, prediction: dspy.Prediction) -> tuple[float, str, bool]:
        """What the row is worth, the feedback, and whether it may serve as a demonstration."""
        verdict: Verdict = prediction.verdict
        value = self.value(example, verdict)
        if value != value:
            why = verdict.error or "the answer holds no number"
            return 0.0, f"The judge gave no usable answer: {why}. It must answer in the form asked for.", False
        if isinstance(self.reading, MetricReading):
            return value, self.reading.measured(example, verdict.prediction)[1], value >= self.reading.metric.success_at
        rating = self._rating(example)
        rows, ratings = self.peers[self._side.get(_key(example), "learn")]
        peers = [
            (row, peer_rating, self.value(row, said))
            for row, peer_rating in zip(rows, ratings.tolist(), strict=True)
            if _key(row) != _key(example)
            and (said := self.answers.known(prediction.candidate, _inputs(row))) is not None
            and not math.isnan(self.value(row, said))
        ]
        case = Case(
            value,
            rating,
            np.array([peer[2] for peer in peers]),
            np.array([peer[1] for peer in peers]),
            self.learn.ratings,
            self.reading.span,
            self.start,
        )
        credit = self.objective.credit(case)
        good = value == rating if self.objective.labels else credit >= self.objective.success_at
        return credit, self._advice(Said(example, rating, value, verdict.prediction, self.reading.sign), peers), good

    def _advice(self, said: Said, peers: list[Peer]) -> str:
        """Feedback in the judge's own numbers and direction, where the rows hold the ratings so."""
        name, sign = getattr(self.reading, "shown", ""), said.sign
        if name:
            said = replace(said, rating=float(said.row[name]), value=sign * said.value, sign=1.0)
            peers = [(row, float(row[name]), sign * value) for row, _, value in peers]
        return advice(said, peers, self.objective)

    def _rating(self, example: dspy.Example) -> float:
        return self._ratings[content_hash(example.toDict())]

    @cached_property
    def _ratings(self) -> dict[str, float]:
        return {
            content_hash(row.toDict()): float(rating)
            for rated in (self.learn, self.select)
            for row, rating in zip(rated.rows, rated.ratings, strict=True)
        }


class CreditMetric:
    """The objective's credit in the five-argument form of DSPy's optimisers.

    While DSPy bootstraps demonstrations it gives a bool, for a prediction is always true. It never raises: a
    failed call is worth 0 here, and its candidate is discarded later.
    """

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def __call__(
        self, example: Any, pred: Any = None, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> Any:
        """The row's credit with feedback."""
        credit, feedback, good = self.bench.credit(example, pred)
        if trace is not None and pred_name is None:
            return good
        return dspy.Prediction(score=credit, feedback=feedback)


def pick_peers(rated: Rated, count: int, seed: int) -> list[int]:
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


def _inputs(row: dspy.Example) -> dict[str, Any]:
    return dict(row.inputs().items())


def _key(row: dspy.Example) -> str:
    return content_hash(_inputs(row))


LONGEST_REASON = 400  # characters of a judge's or a rater's reasons
LONGEST_TEXT = 600  # characters of each text of the other row
Peer = tuple[dspy.Example, float, float]  # row, rating, value


@dataclass(frozen=True)
class Said:
    """A row with what raters and judge said of it; `sign` is -1 where the judge counts the other way round."""

    row: dspy.Example
    rating: float
    value: float
    prediction: Any
    sign: float = 1.0


def advice(said: Said, peers: Sequence[Peer], objective: Objective) -> str:
    """Feedback on one verdict.

    Parameters
    ----------
    said : Said
    peers : sequence of (row, rating, value)
        Other rows as the same judge rates them; of those in the wrong order the one with the most different rating
        is shown.
    objective : Objective
    """
    reason = str(said.row.get("reason") or "")
    lines = [f"The raters gave {said.rating:g}{f' and said: {_cut(reason, LONGEST_REASON)}' if reason else ''}."]
    why = str(said.prediction.get("feedback") or said.prediction.get("reasoning") or "")
    lines.append(
        f"The judge gave {said.sign * said.value:g}{f', because: {_cut(why, LONGEST_REASON)}' if why else '.'}"
    )
    if objective.labels:
        lines.append(_label(said))
    ordered = [peer for peer in peers if peer[1] != said.rating]
    wrong = [peer for peer in ordered if np.sign(said.value - peer[2]) != np.sign(said.rating - peer[1])]
    if ordered:
        lines.append(f"Of {len(ordered)} other works with another rating, {len(wrong)} stand on the wrong side of it.")
    if wrong:
        lines.append(_other(said, max(wrong, key=lambda peer: abs(peer[1] - said.rating))))
    return "\n".join(lines)


def _label(said: Said) -> str:
    if said.value == said.rating:
        return "That is the raters' number."
    return f"That is {abs(said.value - said.rating):g} too {'high' if said.value > said.rating else 'low'}."


def _other(said: Said, peer: Peer) -> str:
    row, rating, value = peer
    place = (
        "the same number"
        if value == said.value
        else f"{'more' if value > said.value else 'less'} ({said.sign * value:g})"
    )
    texts = "\n".join(f"{name}: {fence(_cut(str(text), LONGEST_TEXT))}" for name, text in row.inputs().items())
    better = "higher" if rating > said.rating else "lower"
    return f"The raters gave the following work {rating:g}, which is {better}; the judge gave it {place}.\n{texts}"


def _cut(text: str, longest: int) -> str:
    text = text.strip().rstrip(".")
    return text if len(text) <= longest else text[:longest].rsplit(" ", 1)[0] + " [...]"
