"""Over-optimisation seen in time: the reward of an optimiser's programs against a reference that it stands for."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import dspy
import numpy as np

from metricsmith.errors import DataError, JudgementFailed, OptionError
from metricsmith.metric import content_hash
from metricsmith.outcomes import Outcome
from metricsmith.records import Scale
from metricsmith.report.gap import Gap, gap_verdict, plot_gaps, render_gap_page
from metricsmith.report.render import replace_file, standalone
from metricsmith.reward import Reward
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.stats.resampling import group_mean_interval

__all__ = ["MonitoredStep", "RewardMonitor"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MonitoredStep:
    """A program on the held-out rows.

    Parameters
    ----------
    at : float
        The progress of the optimisation, such as metric calls spent.
    label : str
    program : callable
    outcomes : tuple of Outcome, length n
        Its predictions and rewards, by row.
    keys : tuple of str, length n
        Identify row and output, for ratings; empty where the program gave no output.
    references : tuple of float, length n
        The second metric's numbers; NaN where there is none.
    """

    at: float
    label: str
    program: Any
    outcomes: tuple[Outcome, ...]
    keys: tuple[str, ...]
    references: tuple[float, ...]


class RewardMonitor:
    """Follows a reward against a reference, on rows that no optimiser sees.

    The reference is a second metric that is kept out of the optimisation, or people. Ratings exist only for
    rated outputs, and new programs write new outputs: so people are asked again, for a sample of the outputs of the
    programs observed (`to_rate`, `rate`).

    Parameters
    ----------
    reward : Reward
        The reward that is optimised.
    rows : sequence of dspy.Example, length n
        Held out from the optimiser, inputs marked; ``group`` marks rows that belong together.
    reference : callable, optional
        A frozen second metric as DSPy calls it, ``reference(example, prediction)``, in [0, 1] or a bool; best of
        another kind than the reward's components. By default people's ratings are awaited.
    scale : Scale, optional
        Of people's ratings; needed for them.
    sample : int, optional
        Number of rows that people are shown, the same ones for every program; by default all.
    seed : int
        Draws the sample.
    level : float
        Of the intervals.
    num_threads : int, optional
        For running programs; DSPy's setting by default.

    Raises
    ------
    OptionError
        If there are no rows, or neither `reference` nor `scale` is given, or both.
    """

    def __init__(
        self,
        reward: Reward,
        rows: Sequence[dspy.Example],
        *,
        reference: Callable[..., Any] | None = None,
        scale: Scale | None = None,
        sample: int | None = None,
        seed: int = 0,
        level: float = 0.95,
        num_threads: int | None = None,
    ) -> None:
        if not rows:
            raise OptionError("there are no rows: hold some back from the optimiser")
        if (reference is None) == (scale is None):
            raise OptionError("give either reference=, a second metric, or scale=, the scale of people's ratings")
        self.reward, self.rows = reward, list(rows)
        self.reference, self.scale = reference, scale
        self.seed, self.level, self.num_threads = seed, level, num_threads
        places = random.Random(seed).sample(range(len(self.rows)), min(sample or len(self.rows), len(self.rows)))
        self.sampled = frozenset(places)
        self.steps: list[MonitoredStep] = []
        self._ratings: dict[str, float] = {}

    def observe(self, program: Any, at: float | None = None, label: str = "") -> MonitoredStep:
        """Run a program on the held-out rows and keep its outputs, rewards and references.

        Parameters
        ----------
        program : callable
        at : float, optional
            The progress of the optimisation; by default the number of programs observed before. Changes are counted
            from the step with the lowest.
        label : str
        """
        checked = self.reward.check(program, self.rows, num_threads=self.num_threads)
        step = MonitoredStep(
            float(len(self.steps) if at is None else at),
            label,
            program,
            checked.outcomes,
            tuple(map(self._key, checked.outcomes)),
            tuple(map(self._referred, checked.outcomes)),
        )
        self.steps = sorted([*self.steps, step], key=lambda step: step.at)
        return step

    def follow(self, compiled: dspy.Module, *, every: bool = False) -> None:
        """Observe the programs of a finished GEPA run, at the metric calls that were spent when each was found.

        Run after the optimiser and on rows of their own, the programs cost it no budget.

        Parameters
        ----------
        compiled : dspy.Module
            From ``dspy.GEPA(..., track_stats=True).compile(...)``.
        every : bool
            By default only the programs that led on the validation rows when they were found: those that GEPA
            would have returned had it stopped there. True takes all that it kept.

        Raises
        ------
        DataError
            If the run kept no statistics.
        """
        results = getattr(compiled, "detailed_results", None)
        if results is None:
            raise DataError("the program has no detailed_results: compile it with dspy.GEPA(..., track_stats=True)")
        best = -math.inf
        for number, (program, score, spent) in enumerate(
            zip(results.candidates, results.val_aggregate_scores, results.discovery_eval_counts, strict=True)
        ):
            if every or score > best:
                self.observe(program, at=spent, label=f"candidate {number}")
            best = max(best, score)
        verdict = gap_verdict(self.gaps())
        if any(gap.over_optimised for gap in self.gaps()):
            _log.warning("the reward rises beyond its reference: %s", verdict)

    def to_rate(self) -> list[dspy.Example]:
        """Outputs that people have not rated yet: ``id``, ``input`` and ``output`` of the sampled rows.

        Equal outputs of a row are shown once. They are sorted by their ids, which are hashes, and nothing names the
        program of an output: raters cannot favour later programs.
        """
        waiting = {
            key: outcome
            for step in self.steps
            for place, (key, outcome) in enumerate(zip(step.keys, step.outcomes, strict=True))
            if place in self.sampled and key and key not in self._ratings
        }
        texts = {key: self.reward.text(outcome.row, outcome.prediction) for key, outcome in waiting.items()}
        return [dspy.Example(id=key, input=text.input, output=text.output) for key, text in sorted(texts.items())]

    def rate(self, ratings: Mapping[str, float]) -> None:
        """Take people's ratings, by the ``id`` of `to_rate`; a later one replaces an earlier.

        Raises
        ------
        DataError
            If an id is unknown or a rating is not on the scale.
        OptionError
            If the reference is a metric.
        """
        if self.scale is None:
            raise OptionError("this monitor goes by a second metric; make another with scale= for people's ratings")
        known = {key for step in self.steps for key in step.keys if key}
        for key, rating in ratings.items():
            if key not in known:
                raise DataError(f"no output has the id {key!r}: use the ids that to_rate gives")
            if not self.scale.contains(rating):
                raise DataError(f"rating {rating!r} of {key} is not on the scale {self.scale}")
        self._ratings.update({key: float(rating) for key, rating in ratings.items()})

    def gaps(self) -> list[Gap]:
        """Each step against the first, on the rows where both have reward and reference.

        The gap is the mean over rows of ``(reward - first reward) - (reference - first reference)``: a constant
        difference in level between the two says nothing and cancels. Its interval is `group_mean_interval`, that of the
        first step is [0, 0].
        """
        if not self.steps:
            return []
        first = self._numbers(self.steps[0])
        return [self._gap(step, first) for step in self.steps]

    def best(self) -> MonitoredStep:
        """The observed step whose reference is highest, the earliest of equals: the program to keep.

        Its own reference is then chosen for being high, and flatters a little.

        Raises
        ------
        DataError
            If no step has a reference yet.
        """
        known = [(gap.reference, step) for gap, step in zip(self.gaps(), self.steps, strict=True) if gap.rows]
        if not known:
            raise DataError("no step has a reference yet: observe programs, and rate their outputs (to_rate, rate)")
        return max(known, key=lambda pair: pair[0])[1]

    def report(self) -> str:
        """The verdict on the steps, in one or two sentences."""
        return gap_verdict(self.gaps())

    def write(self, path: str | PathLike[str], title: str = "Reward and reference") -> None:
        """Write plot and table as one self-contained HTML page, or the plot alone where `path` ends in ``.svg``.

        Raises
        ------
        DataError
            If fewer than two steps have a reference: there is nothing to draw.
        """
        plot = plot_gaps(self.gaps())
        if not plot:
            raise DataError("fewer than two steps have a reference: observe programs, and rate their outputs")
        alone = Path(path).suffix == ".svg"
        replace_file(Path(path), standalone(plot) if alone else render_gap_page(title, self.gaps(), self.level))

    def _gap(self, step: MonitoredStep, first: np.ndarray[Any, np.dtype[np.float64]]) -> Gap:
        now = self._numbers(step)
        both = ~np.isnan(now + first).any(axis=0)
        tau = kendall_tau_b(*now[:, ~np.isnan(now).any(axis=0)])
        if not both.any():
            nan = math.nan
            return Gap(step.at, step.label, nan, nan, nan, nan, nan, nan, tau, 0)
        reward, reference = now[:, both].mean(axis=1)
        changes = (now - first)[:, both]
        gaps = changes[0] - changes[1]
        groups: list[Hashable] = [
            place if self.rows[place].get("group") is None else self.rows[place]["group"]
            for place in np.flatnonzero(both).tolist()
        ]
        interval = group_mean_interval(gaps, groups, level=self.level, bounds=(-2.0, 2.0))
        low, high = (0.0, 0.0) if step is self.steps[0] else (interval.low, interval.high)
        return Gap(
            step.at, step.label, float(reward), float(reference), float(changes[0].mean()), float(gaps.mean()),
            low, high, tau, int(both.sum()),
        )  # fmt: skip

    def _numbers(self, step: MonitoredStep) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Rewards and references, shape (2, n); NaN where there is none."""
        rewards = [outcome.score for outcome in step.outcomes]
        if self.scale is None:
            return np.array([rewards, step.references], dtype=float)
        return np.array([rewards, [self.scale.unit(self._ratings.get(key, math.nan)) for key in step.keys]])

    def _key(self, outcome: Outcome) -> str:
        """The key of row and output; empty where no output can be read, as the check has said already."""
        if outcome.prediction is None:
            return ""
        try:
            text = self.reward.text(outcome.row, outcome.prediction)
        except DataError:
            return ""
        return content_hash(outcome.row.inputs().toDict(), text.output)

    def _referred(self, outcome: Outcome) -> float:
        if self.reference is None or outcome.prediction is None:
            return math.nan
        try:
            answer = self.reference(outcome.row, outcome.prediction)
        except JudgementFailed as problem:
            _log.warning("the reference has no value for a row: %s", problem)
            return math.nan
        number = float(answer.score if isinstance(answer, dspy.Prediction) else answer)
        if not (math.isnan(number) or 0 <= number <= 1):
            raise DataError(f"the reference returned {number:g}: it must lie between 0 and 1, like the reward")
        return number
