"""Episodes on which perturbers can be tuned like any other DSPy program, and the metric that measures the answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from metricsmith.errors import DataError, JudgementFailed, OptionError
from metricsmith.metric import content_hash, make_row, row_text
from metricsmith.model_calls.calls import Call, model_call
from metricsmith.model_calls.models import using
from metricsmith.optimizers.students.episodes import Episode, Originals
from metricsmith.optimizers.students.metrics import ModelMeasured
from metricsmith.programs.perturbers.base import Source, Strength
from metricsmith.programs.perturbers.generated import MOST, Worsen, told_apart
from metricsmith.programs.perturbers.generation import groups_of, pick_examples, shown_examples, worded
from metricsmith.programs.state import module_fingerprint
from metricsmith.records import Usage
from metricsmith.scoring import score
from metricsmith.scoring.plan import as_metric, scoring_plan
from metricsmith.signatures.generation import Axis, Strategy
from metricsmith.threads import in_threads

__all__ = ["PerturberMetric", "perturbation_episodes", "strategy_episodes"]


def perturbation_episodes(
    sources: Sequence[Source],
    task: str,
    dimension: Axis,
    strengths: Sequence[Strength],
    strategies: Sequence[Strategy] = (),
) -> list[Episode]:
    """Examples for `Worsen`, or for `Preserve` if there are no strategies: one for each source and strength.

    Sources without an output are left out.
    """
    plans = {"strategies": list(strategies)} if strategies else {}
    return [
        Episode(
            label=Originals((source,), task, dimension, strength),
            task=task,
            dimension=worded(dimension),
            strength=strength,
            output=source.output,
            input=source.input,
            references=list(source.references),
            context=source.context,
            **plans,
        )
        for source, strength in product(sources, strengths)
        if source.output.strip()
    ]


def strategy_episodes(
    sources: Sequence[Source],
    task: str,
    dimensions: Sequence[Axis],
    *,
    strength: Strength = "obvious",
    groups: Sequence[str] | None = None,
    tried: int = 4,
    splits: int = 1,
    seed: int = 0,
) -> list[Episode]:
    """Examples for `DegradationStrategies`: one for each dimension and split.

    The strategies are drawn from the outputs of some groups, and tried on outputs of others.

    Parameters
    ----------
    sources : sequence of Source
        n rows; those without an output are left out.
    task : str
    dimensions : sequence of Axis
    strength : str
    groups : sequence of str, optional
        As for `generate`.
    tried : int
        On how many outputs the strategies are tried at most, each of another group.
    splits : int
        Seeds `seed`, `seed` + 1 ...

    Raises
    ------
    OptionError
        If `tried` or `splits` is below 1.
    DataError
        If there are fewer than three groups: two to show, one to try on.
    """
    if tried < 1 or splits < 1:
        raise OptionError(f"tried={tried} and splits={splits} must be 1 or more")
    named = [
        (source, group)
        for source, group in zip(sources, groups_of(sources) if groups is None else groups, strict=True)
        if source.output.strip()
    ]
    names = sorted({group for _, group in named})
    if len(names) < 3:
        raise DataError(f"there are outputs of {len(names)} groups; at least 3 are needed: two to show, one to try on")
    episodes = []
    for draw, axis in product(range(seed, seed + splits), dimensions):
        random = np.random.default_rng(draw)
        kept = [names[place] for place in random.permutation(len(names))[: min(tried, len(names) - 2)]]
        there = [[source for source, group in named if group == name] for name in kept]
        tested = tuple(members[int(random.integers(len(members)))] for members in there)
        rest = [(source, group) for source, group in named if group not in kept]
        places = pick_examples([source for source, _ in rest], [group for _, group in rest], draw)
        examples = shown_examples([rest[place][0] for place in places])
        label = Originals(tested, task, axis, strength)
        episodes.append(Episode(label=label, task=task, dimension=worded(axis), examples=examples))
    return episodes


THREADS = 8


@dataclass(frozen=True, slots=True)
class _Change:
    """One changed output as the metric sees it: raw numbers and scores, or why there is nothing to say."""

    strategy: str
    before: float
    after: float
    lost: bool = False
    moved: float = 0.0
    declined: str = ""


class PerturberMetric(ModelMeasured[tuple[float, str]]):
    """Measures what `Worsen`, `Preserve` or `DegradationStrategies` did, by another metric.

    Damaged outputs: the share that scores strictly below the original; one that was given back unchanged or twice is
    none of them. Preserved outputs: one minus the absolute change of the score in [0, 1]; where the output was not
    changed, or the model declined, 0, because nothing was shown: worth 1, as the definition of stability has it,
    changing nothing would be the best answer to everything. Strategies: `worsen` applies them to the outputs that the
    example keeps for it.

    Parameters
    ----------
    metric : Metric
        Or a panel's member, or a function as DSPy's Evaluate takes it. One that people agree with: a student learns
        to fool the metric that stands here.
    worsen : Worsen, optional
        Applies strategies; a tuned one, say.
    lm : dspy.LM, optional
        For `metric` and `worsen`; None takes the one in force.
    success_at : float
        The bar for a bootstrapped demonstration.
    **scoring
        Options of `scoring.score`, such as ``store`` and ``concurrency``.

    Attributes
    ----------
    failures : int
        The number of calls without a value: DSPy books those as 0.
    usage : Usage
        The cost of all measurements.

    Raises
    ------
    JudgementFailed, ModelFailure
        When called: if an output has no score, or cannot be made.
    DataError
        When called: if the prediction is none of the three, or the example has no outputs to try strategies on.
    NeedsError
        When called: if a language model is needed and none is set.
    """

    def __init__(
        self, metric: Any, *, worsen: Worsen | None = None, lm: Any = None, success_at: float = 0.5, **scoring: Any
    ) -> None:
        super().__init__(lm, success_at, scoring)
        self.metric = as_metric(metric)
        self.worsen = worsen or Worsen()

    def requests(self, example: Any) -> int:
        """The most requests that one measurement takes, retries aside."""
        with using(self.lm):
            judged = sum(len(group.by_run) for group in scoring_plan([self.metric]).askers)
        if "examples" in example:
            originals = len(_originals(example).sources)
            return originals * (1 + (1 + MOST) * judged)
        return (1 + len(example.get("strategies") or [""])) * judged

    def key(self, example: Any, pred: Any) -> str:
        """A hash of the metric, of `worsen`, and of the contents of example and answer."""
        contents = []
        for thing in (example, pred):
            label = getattr(thing, "label", None)
            contents.append([thing.toDict(), repr(label.sources) if isinstance(label, Originals) else ""])
        return content_hash(self.metric.fingerprint(), module_fingerprint(self.worsen), *contents)

    def graded(self, found: tuple[float, str]) -> tuple[float, str]:
        """The measurement as it is."""
        return found

    def measure(self, example: Any, pred: Any) -> tuple[float, str]:
        """Score and feedback for one answer; errors as for the class."""
        if "strategies" in pred:
            sources, plans = _originals(example).sources, list(pred.strategies)
            names = [one.name for one in plans]
            return _lost(self._changes(sources, [names] * len(sources), self._applied(example, plans)))
        if "outputs" in pred:
            names = [one.name for one in example.strategies]
            return _lost(self._changes([_source(example)], [names], [pred.outputs]))
        if "declined" not in pred:
            raise DataError(
                f"a prediction with {', '.join(pred.keys()) or 'no fields'} is not from Worsen, Preserve or "
                "DegradationStrategies: give one of these as the student"
            )
        if pred.declined:
            return 0.0, f"The model declined, so that nothing was shown: {pred.declined}"
        change = self._changes([_source(example)], [["preserve"]], [[pred.output]])[0]
        if change.declined:
            return 0.0, f"Nothing was shown: {change.declined}."
        return 1 - change.moved, f"The score moved by {change.moved:.2f}: {change.before:.4g} -> {change.after:.4g}."

    def _applied(self, example: Any, strategies: Sequence[Strategy]) -> list[Sequence[str]]:
        """Outputs by source, made by `worsen`."""
        label = _originals(example)

        def ask(source: Source) -> Call:
            return model_call(
                self.worsen, task=label.task, dimension=worded(label.axis), strength=label.strength,
                strategies=strategies, output=source.output, input=source.input, references=source.references,
                context=source.context,
            )  # fmt: skip

        calls = in_threads([partial(ask, source) for source in label.sources], THREADS, "metricsmith perturbing")
        self.pay(sum((call.usage for call in calls), Usage()))
        return [call.result().outputs for call in calls]

    def _changes(
        self, sources: Sequence[Source], names: Sequence[Sequence[str]], outputs: Sequence[Sequence[str]]
    ) -> list[_Change]:
        """Score originals and changed outputs in one run; `JudgementFailed` where one has no score.

        A declined change scores as the original does, and so is no loss.
        """
        told = [
            told_apart(given, named, source.output)
            for source, named, given in zip(sources, names, outputs, strict=True)
        ]
        rows = [
            make_row(text, input=source.input, references=source.references, context=source.context)
            for source, kept in zip(sources, told, strict=True)
            for text in (source.output, *(source.output if output is None else output for output, _ in kept))
        ]
        table = score([self.metric], rows, **{"progress": False, **self.scoring})
        self.pay(table.usage)
        failed = next((judgement for judgement in table.column(0) if not judgement.ok), None)
        if failed is not None:
            raise JudgementFailed(f"{self.metric.name}: {failed.error}", failed.status)
        values, output, changes = iter(table.run()[:, 0].tolist()), self.metric.output, []
        for named, kept in zip(names, told, strict=True):
            before = next(values)
            for name, (_, reason) in zip(named, kept, strict=True):
                after = next(values)
                lost = output.sign * (after - before) < 0
                moved = abs(output.score(after) - output.score(before))
                changes.append(_Change(name, before, after, lost, moved, reason))
        return changes


def _originals(example: Any) -> Originals:
    label = getattr(example, "label", None)
    if not isinstance(label, Originals):
        raise DataError("the example has no outputs to try strategies on: make episodes with strategy_episodes")
    return label


def _source(example: Any) -> Source:
    text = row_text(example)
    return Source(text.output, text.input, text.context, text.references)


def _lost(changes: Sequence[_Change]) -> tuple[float, str]:
    """The share of the outputs that score lower, and which strategies do it, in words."""
    lines = [
        f"{sum(change.lost for change in changes)} of {len(changes)} damaged outputs score worse than the original."
    ]
    for name in dict.fromkeys(change.strategy for change in changes):
        own = [change for change in changes if change.strategy == name]
        told = "; ".join(
            change.declined or f"{change.before:.4g} -> {change.after:.4g}{'' if change.lost else ', not worse'}"
            for change in own
        )
        lines.append(f"{name!r}, worse in {sum(change.lost for change in own)} of {len(own)}: {told}.")
    return math.fsum(change.lost for change in changes) / len(changes), " ".join(lines)
