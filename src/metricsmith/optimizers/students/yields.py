"""The yield of a generator's answer: the agreement of the judges made from it with raters whom it has not seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from metricsmith.errors import DataError
from metricsmith.metric import Metric
from metricsmith.optimizers.generation import GENERATORS, Material
from metricsmith.optimizers.students.episodes import HeldOut
from metricsmith.programs.judges.base import Judge
from metricsmith.programs.judges.criterion import RubricJudge
from metricsmith.records import Usage
from metricsmith.scoring import score
from metricsmith.stats.correlation import kendall_tau_b

__all__ = ["JudgeYield", "Yield", "held_out_of", "judges_of", "yield_of"]


@dataclass(frozen=True, slots=True)
class JudgeYield:
    """The result of one judge on the held-out rows.

    Parameters
    ----------
    criterion : str
    tau : float
        Kendall's tau-b with the ratings, positive where better rated rows are judged higher; NaN for a judge that
        gave all rows the same number, or too few rows any.
    n : int
        Rows with a number.
    """

    criterion: str
    tau: float
    n: int


@dataclass(frozen=True, slots=True)
class Yield:
    """The worth of a generator's answer.

    Parameters
    ----------
    tau : float
        The plain mean of the judges' taus, over those that have one; NaN if they are fewer than half of the judges
        that were asked for: neither one lucky criterion nor judges that say the same of everything should win.
    judges : tuple of JudgeYield
        In the order of the answer.
    wanted : int
        How many judges were asked for.
    usage : Usage
        What their judgements cost.
    """

    tau: float
    judges: tuple[JudgeYield, ...]
    wanted: int
    usage: Usage = field(default_factory=Usage)


def held_out_of(episode: Any) -> HeldOut:
    """The episode's held-out rows; `DataError` if it has none."""
    held_out = getattr(episode, "label", None)
    if not isinstance(held_out, HeldOut):
        raise DataError(
            "the example has no held-out rows: make episodes with axes_episodes, rubric_episodes or code_episodes"
        )
    return held_out


def judges_of(prediction: Any, held_out: HeldOut) -> tuple[Metric, ...]:
    """The judges that an induction would make of a generator's prediction.

    Parameters
    ----------
    prediction : dspy.Prediction
        With ``axes`` from an `AxesGenerator`, or ``levels`` from a `RubricGenerator`.
    held_out : HeldOut
        The episode's label.

    Raises
    ------
    DataError
        If the prediction has neither, or levels without an axis in the episode.
    """
    if "axes" in prediction:
        return GENERATORS["criterion"].build(prediction.axes, Material(held_out.task)).metrics
    if "levels" not in prediction or held_out.axis is None:
        raise DataError(
            f"no judge can be made of a prediction with {', '.join(prediction.keys()) or 'no fields'}: it needs axes "
            f"in an episode of axes_episodes, or levels in one of rubric_episodes"
        )
    axis = held_out.axis
    levels = list(prediction.levels)
    return (RubricJudge(criterion=axis.name, meaning=axis.meaning, levels=levels, task=held_out.task.description),)


def yield_of(prediction: Any, episode: Any, *, lm: Any = None, **scoring: Any) -> Yield:
    """Make the judges of a prediction and let them judge the episode's held-out rows.

    Parameters
    ----------
    prediction : dspy.Prediction
        What the generator answered.
    episode : Episode
        From `axes_episodes` or `rubric_episodes`.
    lm : dspy.LM, optional
        For the judges; None takes the one in force.
    **scoring
        Options of `scoring.score`, such as ``store`` and ``concurrency``.

    Returns
    -------
    Yield
        A failed judgement is left out of its judge's tau.

    Raises
    ------
    DataError
        If the prediction or the episode has no judges to make.
    NeedsError, ModelFailure
        As `scoring.score` raises them; too many failed judgements are no low yield.
    """
    held_out = held_out_of(episode)
    judges = judges_of(prediction, held_out)
    table = score(judges, held_out.rows, lm=lm, **{"progress": False, **scoring})
    ratings = [float(row[held_out.task.target]) for row in held_out.rows]
    sign = 1 if held_out.task.scale.higher_is_better else -1
    parts = tuple(
        JudgeYield(_criterion(judge), sign * kendall_tau_b(column, ratings), int((column == column).sum()))
        for judge, column in zip(judges, table.run().T, strict=True)
    )
    return Yield(_mean([part.tau for part in parts], held_out.wanted), parts, held_out.wanted, table.usage)


def _criterion(metric: Metric) -> str:
    return str(metric.settings.criterion) if isinstance(metric, Judge) else metric.name


def _mean(taus: Sequence[float], wanted: int) -> float:
    known = [tau for tau in taus if not math.isnan(tau)]
    return math.fsum(known) / len(known) if known and 2 * len(known) >= wanted else math.nan
