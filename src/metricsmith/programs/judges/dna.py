"""Decompose and aggregate: a few weighted dimensions, each judged on its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import OptionError, StateError
from metricsmith.metric import Metric, content_hash
from metricsmith.programs import schema
from metricsmith.programs.judges.base import LEVELS, MetricProgram
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.kinds import nested
from metricsmith.programs.state import Settings
from metricsmith.records import Judgement, MetricCard, Output, Usage
from metricsmith.signatures.generation import Dimension

__all__ = ["DnAEval"]


class DnAEval(MetricProgram):
    """The weighted mean of one judge's number for each dimension (the "DnA-Eval" baseline of AutoMetrics).

    Each dimension is asked in a request of its own, by a `CriterionJudge`, so that none colours another; ``raw``
    is the weighted mean, from 1 to 5. A dimension without a number fails the whole judgement: leaving it out
    would weigh the others differently from row to row.

    Parameters
    ----------
    dimensions : sequence of Dimension
        Names, meanings and weights; these are renormalised to a sum of 1. `DimensionsGenerator` proposes them.
    task : str
        What the outputs are made for.
    name : str
        Column name.

    Raises
    ------
    OptionError
        If there is no dimension, two have one name, or a weight is not a finite number above 0.

    Examples
    --------
    >>> facts = Dimension(name="Kept facts", meaning="Nothing is lost.", weight=75)
    >>> words = Dimension(name="Plain words", meaning="Every word is common.", weight=25)
    >>> DnAEval([facts, words], task="Rewrite notices.").weights
    (0.75, 0.25)
    """

    kind = "dna_eval"

    @classmethod
    def saved(cls) -> schema.Check:
        """The check of `to_state`'s result, its kind aside."""
        weights = schema.list_of(schema.SHARE, schema.ITEMS, 1)
        settings = schema.keys(name=schema.text(schema.NAME, 1), task=schema.text(), weights=weights)
        known = schema.keys(settings=settings, judges=schema.list_of(nested("criterion_judge")))
        return schema.same_length(known, "settings.weights", "judges")

    def __init__(self, dimensions: Sequence[Dimension], *, task: str, name: str = "dna_eval") -> None:
        super().__init__()
        if not dimensions:
            raise OptionError("DnAEval needs at least one dimension: have a DimensionsGenerator propose some")
        names = [dimension.name for dimension in dimensions]
        for item in dimensions:
            if names.count(item.name) > 1:
                raise OptionError(f"{names.count(item.name)} dimensions are called {item.name!r}; merge them")
            if not (math.isfinite(item.weight) and item.weight > 0):
                raise OptionError(f"the weight of {item.name!r} is {item.weight:g}; it must be above 0")
        total = math.fsum(dimension.weight for dimension in dimensions)
        self.judges = [CriterionJudge(criterion=item.name, meaning=item.meaning, task=task) for item in dimensions]
        self.settings = Settings(name=name, task=task, weights=[item.weight / total for item in dimensions])

    @property
    def weights(self) -> tuple[float, ...]:
        """The share of each dimension in the number; they add up to 1."""
        return tuple(self.settings.weights)

    @property
    def output(self) -> Output:
        """From 1 to 5, higher is better."""
        return Output(self.name, LEVELS.low, LEVELS.high, description=f"Weighted mean of {len(self.judges)} dimensions")

    @property
    def card(self) -> MetricCard:
        """The generated card."""
        terms = [
            f"{weight:.2f} {judge.settings.criterion}" for weight, judge in zip(self.weights, self.judges, strict=True)
        ]
        return MetricCard(
            name=f"DnA-Eval ({len(terms)} dimensions)",
            kind=self.kind,
            summary="A language model rates each dimension from 1 to 5; the number is their weighted mean.",
            formula=" + ".join(terms),
            outputs=(self.output,),
            needs=("model",),
            cost="model",
            multi_reference="All references are shown, in the order given.",
            tasks=(str(self.settings.task),),
            best_for=("A verdict that comes apart into dimensions, where nothing has been rated yet",),
            not_for=("Learning from ratings: dimensions and weights come from the task alone",),
            limits=(
                f"Costs {len(terms)} requests a row",
                "The weights are what a model thinks that matters, not what raters were found to value",
            ),
            failure_cases=("Tasks whose description does not say what counts", "Texts beyond the model's context"),
            papers=("AutoMetrics, section 4.2 (DnA-Eval)",),
            backend="the language model in force",
            backend_license="the model provider's terms",
        )

    def forward(self, **texts: Any) -> dspy.Prediction:
        """Judge one row, texts as for `CriterionJudge`: a Prediction with ``score``, ``raw`` and ``feedback``."""
        return self._together([judge(**texts) for judge in self.judges])

    async def aforward(self, **texts: Any) -> dspy.Prediction:
        """Judge one row as `forward` does, asynchronously."""
        return self._together([await judge.acall(**texts) for judge in self.judges])

    def _together(self, answers: Sequence[dspy.Prediction]) -> dspy.Prediction:
        raw, feedback = self._mean([(answer.raw, answer.feedback) for answer in answers])
        return dspy.Prediction(score=self.output.score(raw), raw=raw, feedback=feedback)

    def _mean(self, parts: Sequence[tuple[Any, str]]) -> tuple[float, str]:
        """The weighted mean of numbers with reasons, and one line for each dimension, the heaviest loss first."""
        raw = float(self.combined(np.array([[number for number, _ in parts]], dtype=float))[0])
        lines = [
            (weight * (LEVELS.high - number), f"{judge.settings.criterion} ({weight:.0%}) = {number:g}: {reason}")
            for weight, judge, (number, reason) in zip(self.weights, self.judges, parts, strict=True)
        ]
        return raw, "\n".join(line for _, line in sorted(lines, key=lambda item: -item[0]))

    def parts(self, run: int) -> list[tuple[Metric, int]]:
        """The judge of each dimension.

        Raises
        ------
        StateError
            If DSPy loaded the weights of another number of dimensions.
        """
        if len(self.weights) != len(self.judges):
            raise StateError(
                f"the loaded state has weights for {len(self.weights)} dimensions, but there are {len(self.judges)}; "
                "use metricsmith.load on a file that holds the whole"
            )
        return [(judge, run) for judge in self.judges]

    def combined(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weighted means, shape (n, dimensions) -> (n,); NaN where a dimension has no number.

        Rounded to twelve decimals, so that equal means tie in any order of the terms.
        """
        values = np.asarray(values, dtype=float)
        terms = np.where(np.isfinite(values), values, np.nan) * np.array(self.weights)
        return np.asarray(terms.sum(axis=1).round(12))

    def verdict(self, parts: Sequence[Judgement], run: int) -> Judgement:
        """One row's judgement from those of its dimensions; the first failure is the reason for having none."""
        usage = sum((part.usage for part in parts), Usage())
        failed = next((part for part in parts if not part.ok), None)
        if failed is not None:
            error = f"{failed.metric} has no number, so that there is no weighted mean: {failed.error}"
            return Judgement(self.name, status=failed.status, error=error, run=run, usage=usage)
        raw, feedback = self._mean([(part.raw, part.feedback) for part in parts])
        return Judgement(self.name, raw, self.output.score(raw), feedback, run=run, usage=usage)

    def fingerprint(self) -> str:
        """A hash of the dimensions' judges and the weights."""
        return content_hash(self.kind, [judge.fingerprint() for judge in self.judges], list(self.weights))

    def to_state(self) -> dict[str, Any]:
        """The settings, and the state of each dimension's judge; no model and no key."""
        return {
            "kind": self.kind,
            "settings": self.settings.dump_state(),
            "judges": [judge.to_state() for judge in self.judges],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Build from `to_state`'s result."""
        judges, settings = [CriterionJudge.from_state(judge) for judge in state["judges"]], state["settings"]
        dimensions = [
            Dimension(name=judge.settings.criterion, meaning=judge.settings.meaning, weight=weight)
            for judge, weight in zip(judges, settings["weights"], strict=True)
        ]
        made = cls(dimensions, task=settings["task"], name=settings["name"])
        made.judges = judges
        made.settings.load_state(settings)
        return made

    def __repr__(self) -> str:
        return f"DnAEval({', '.join(judge.name for judge in self.judges)})"
