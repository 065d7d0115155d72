"""Sources x dimensions x strengths -> perturbations by a language model, with every request counted and estimated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product, zip_longest
from typing import Any, Literal

import dspy
import numpy as np

from metricsmith.errors import DataError, ModelFailure, OptionError
from metricsmith.metric import RowText, fenced_texts
from metricsmith.model_calls.calls import Call, model_call
from metricsmith.model_calls.limits import FRAME_TOKENS, Budget, Concurrency, estimate_tokens, price
from metricsmith.model_calls.models import using
from metricsmith.model_calls.rate_limiter import RateLimiter, in_force, use
from metricsmith.programs.perturbers.base import STRENGTHS, Effect, Perturbation, Source, Strength
from metricsmith.programs.perturbers.generated import MOST, DegradationStrategies, Preserve, Worsen, bare, told_apart
from metricsmith.records import Usage
from metricsmith.signatures.generation import Axis, DamageOutput, ProposeDamage, RewriteOutput, Strategy
from metricsmith.threads import in_threads

__all__ = [
    "GeneratedPerturbations", "check_request", "estimate_requests", "estimate_usage", "generate_perturbations",
    "groups_of", "pick_examples", "shown_examples", "worded",
]  # fmt: skip

PARSE_TRIES = 4  # a lost request for strategies costs a whole dimension
BOTH: tuple[Effect, ...] = ("worse", "same")


@dataclass(frozen=True)
class GeneratedPerturbations:
    """A model's perturbations of the sources, and the requests and tokens that they took.

    Parameters
    ----------
    perturbations : tuple of Perturbation
        By dimension, then source, strength and strategy; also those that were declined, with the reason.
    strategies : dict of str to tuple of Strategy
        By dimension.
    usage : Usage
    notes : tuple of str
        The omissions, in words.
    """

    perturbations: tuple[Perturbation, ...] = ()
    strategies: dict[str, tuple[Strategy, ...]] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()


def generate_perturbations(
    sources: Sequence[Source],
    task: str,
    dimensions: Sequence[Axis],
    strengths: Sequence[Strength],
    *,
    effects: Sequence[Effect] = BOTH,
    groups: Sequence[str] | None = None,
    strategist: DegradationStrategies | None = None,
    worsen: Worsen | None = None,
    preserve: Preserve | None = None,
    lm: Any = None,
    concurrency: Literal["auto"] | int | Concurrency = "auto",
    budget: Budget | None = None,
    seed: int = 0,
) -> GeneratedPerturbations:
    """Has outputs made worse in each dimension, and changed without loss.

    A run around this one (`metricsmith.model_calls.rate_limiter`) lends its limits; then `concurrency` and `budget` are
    its own.

    Parameters
    ----------
    sources : sequence of Source
        n rows; one without an output is declined without a request.
    task : str
        The purpose of the outputs.
    dimensions : sequence of Axis
        Qualities to damage or to preserve, with different names.
    strengths : sequence of str
        ``subtle``, ``obvious`` or both: those that will be scored, and no others.
    effects : sequence of str
        ``worse``, ``same`` or both.
    groups : sequence of str, optional
        The group of each source, length n; by default sources with the same input form one.
    strategist, worsen, preserve : dspy.Module, optional
        Tuned ones.
    lm : dspy.LM, optional
        None takes the one in force.
    concurrency, budget
        As for `scoring.score`; the rest that the budget cuts off is declined.
    seed : int
        Decides the examples that the strategies are drawn from.

    Raises
    ------
    OptionError
        For an unknown or repeated strength, effect or dimension, or none.
    DataError
        If there are not as many groups as sources.
    NeedsError
        If no language model is set.
    ModelFailure
        If the model refuses to work, or every request for strategies, or every other one, fails.
    """
    check_request(dimensions, strengths, effects)
    groups = groups_of(sources) if groups is None else groups
    if len(groups) != len(sources):
        raise DataError(f"there are {len(groups)} groups for {len(sources)} sources: give one for each, or none at all")
    if not any(source.output.strip() for source in sources):
        return GeneratedPerturbations(_blank(sources, dimensions, strengths, effects))
    limiter = in_force.get() or RateLimiter(Concurrency.of(concurrency), budget)
    makers: dict[str, dspy.Module] = {"worse": worsen or Worsen(), "same": preserve or Preserve()}
    with using(lm), use(limiter):
        run = _Run(sources, task, limiter, makers)
        notes = run.plan(dimensions, pick_examples(sources, groups, seed), strategist) if "worse" in effects else []
        perturbations = run.perturb(dimensions, strengths, effects)
    if len(set(groups)) == 1 and "worse" in effects:
        notes.append("all outputs are of one source, so that the strategies may be tied to it")
    return GeneratedPerturbations(perturbations, run.strategies, run.usage, (*notes, *_counted(perturbations)))


def pick_examples(
    sources: Sequence[Source], groups: Sequence[str], seed: int = 0, *, most: int = 6, max_tokens: int = 12_000
) -> list[int]:
    """Returns places of the outputs to show: whole groups in random order, at least two where there are two.

    Groups are taken as long as they fit. Where not even two fit whole, their outputs are taken in turn, and at least
    one of each is shown. Sources without an output are left out. Whole groups let a model see what outputs to
    one input have in common, and what is peculiar to that input.
    """
    members: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        if sources[place].output.strip():
            members.setdefault(group, []).append(place)
    names, sizes = list(members), [estimate_tokens(_example(source)) for source in sources]
    waiting = [members[names[place]] for place in np.random.default_rng(seed).permutation(len(names))]

    def fits(places: Sequence[int]) -> bool:
        return len(places) <= most and sum(sizes[place] for place in places) <= max_tokens

    chosen = waiting[:2]
    for places in waiting[2:]:
        if not fits([place for known in (*chosen, places) for place in known]):
            break
        chosen.append(places)
    taken: list[int] = []
    for place in (place for turn in zip_longest(*chosen) for place in turn if place is not None):
        if len(taken) >= len(chosen) and not fits([*taken, place]):
            break
        taken.append(place)
    return taken


def shown_examples(sources: Sequence[Source]) -> str:
    """Returns outputs with the inputs that they answer, fenced, as `DegradationStrategies` is shown them."""
    return "\n\n".join(map(_example, sources))


class _Run:
    """The calls of one run and their cost."""

    def __init__(
        self, sources: Sequence[Source], task: str, limiter: RateLimiter, makers: dict[str, dspy.Module]
    ) -> None:
        self.sources, self.task, self.limiter, self.makers = sources, task, limiter, makers
        self.strategies: dict[str, tuple[Strategy, ...]] = {}
        self.usage = Usage()

    def plan(
        self, dimensions: Sequence[Axis], examples: Sequence[int], strategist: DegradationStrategies | None
    ) -> list[str]:
        """Asks for strategies; returns notes on the dimensions that have none."""
        text = shown_examples([self.sources[place] for place in examples])
        module = strategist or DegradationStrategies()

        def ask(axis: Axis) -> Call:
            return model_call(module, parse_tries=PARSE_TRIES, task=self.task, dimension=worded(axis), examples=text)

        calls = self._calls([partial(ask, axis) for axis in dimensions], "the request for strategies")
        answered = list(zip(dimensions, calls, strict=True))
        self.strategies = {axis.name: tuple(call.prediction.strategies) for axis, call in answered if call.prediction}
        return [f"no strategies for {axis.name!r}: {call.error}" for axis, call in answered if not call.prediction]

    def perturb(
        self, dimensions: Sequence[Axis], strengths: Sequence[Strength], effects: Sequence[Effect]
    ) -> tuple[Perturbation, ...]:
        """Makes one call for each dimension, source, strength and effect; declined ones are returned too."""
        wanted = [
            (axis, row, strength, effect)
            for axis, row, strength, effect in product(dimensions, range(len(self.sources)), strengths, effects)
            if effect == "same" or axis.name in self.strategies
        ]
        asked = [one for one in wanted if self.sources[one[1]].output.strip()]
        calls = self._calls([partial(self._ask, *one) for one in asked], "every request for a changed output")
        made = {(axis.name, *rest): call for (axis, *rest), call in zip(asked, calls, strict=True)}
        return _settled(
            perturbation
            for axis, row, strength, effect in wanted
            for perturbation in self._read(
                axis.name, row, strength, effect, made.get((axis.name, row, strength, effect))
            )
        )

    def _ask(self, axis: Axis, row: int, strength: Strength, effect: Effect) -> Call:
        source = self.sources[row]
        asked = {name: getattr(source, name) for name in ("output", "input", "references", "context")}
        if effect == "worse":
            asked["strategies"] = list(self.strategies[axis.name])
        return model_call(self.makers[effect], task=self.task, dimension=worded(axis), strength=strength, **asked)

    def _calls(self, asks: Sequence[Callable[[], Call]], what: str) -> list[Call]:
        """Runs the calls concurrently; `ModelFailure` where not one of them has an answer."""
        calls = in_threads(asks, self.limiter.concurrency.high, "metricsmith perturbing")
        self.usage = sum((call.usage for call in calls), self.usage)
        if calls and all(call.prediction is None for call in calls):
            why = self.limiter.hopeless or calls[0].error
            raise ModelFailure(f"{what} failed ({self.usage.requests} requests were sent): {why}")
        return calls

    def _read(
        self, dimension: str, row: int, strength: Strength, effect: Effect, call: Call | None
    ) -> list[Perturbation]:
        names = [plan.name for plan in self.strategies[dimension]] if effect == "worse" else ["preserve"]
        original = self.sources[row].output
        changes: list[tuple[str | None, str]] = [(None, "there is no output to change")] * len(names)
        if call is not None and call.prediction is None:
            changes = [(None, f"the call failed ({call.status}): {call.error}")] * len(names)
        elif call is not None and effect == "worse":
            changes = told_apart(call.prediction.outputs, names, original)
        elif call is not None and call.prediction.declined:
            changes = [(None, f"the model declined: {call.prediction.declined}")]
        elif call is not None:
            changes = told_apart([call.prediction.output], names, original)
        return [
            Perturbation(row, name, effect, strength, output, why, dimension, "generated")
            for name, (output, why) in zip(names, changes, strict=True)
        ]


def _settled(found: Iterable[Perturbation]) -> tuple[Perturbation, ...]:
    """Declines a change that was to leave a quality alone and equals damage to it: one of the two must be wrong."""
    made = tuple(found)
    damage = {
        (one.dimension, one.row, bare(one.output)): f"the same output as by {one.strategy!r}"
        for one in made
        if one.effect == "worse" and one.output is not None
    }
    return tuple(
        replace(one, output=None, declined=damage[key])
        if one.effect == "same" and (key := (one.dimension, one.row, bare(one.output or ""))) in damage
        else one
        for one in made
    )


def _blank(
    sources: Sequence[Source], dimensions: Sequence[Axis], strengths: Sequence[Strength], effects: Sequence[Effect]
) -> tuple[Perturbation, ...]:
    """Declines everything: there is no output, and without strategies only the changes without loss have a name."""
    places = product(dimensions, range(len(sources)), strengths) if "same" in effects else ()
    return tuple(
        Perturbation(row, "preserve", "same", strength, None, "there is no output to change", axis.name, "generated")
        for axis, row, strength in places
    )


def _counted(perturbations: Sequence[Perturbation]) -> list[str]:
    """Returns the numbers of those that were declined by reason, most frequent first."""
    reasons = Counter(one.declined.split(":")[0] for one in perturbations if one.output is None)
    return [f"{count} of {len(perturbations)} have no output: {reason}" for reason, count in reasons.most_common()]


def groups_of(sources: Sequence[Source]) -> list[str]:
    """Returns the group of each source: those with the same input belong together, those without one stand alone."""
    return [f"input {source.input}" if source.input else f"row {row}" for row, source in enumerate(sources)]


def _example(source: Source) -> str:
    texts = fenced_texts(RowText(source.output, source.input, source.references, source.context))
    return "\n".join(f"{label}:\n{text}" for label, text in texts.items() if text != "(none)")


def worded(axis: Axis) -> str:
    """Returns a dimension as the model reads it."""
    return f"{axis.name}: {axis.meaning}"


def check_request(dimensions: Sequence[Axis], strengths: Sequence[Strength], effects: Sequence[Effect]) -> None:
    """Raises an `OptionError` unless dimensions, strengths and effects are known and none is given twice."""
    for name, given, known in (("strengths", strengths, STRENGTHS), ("effects", effects, BOTH)):
        if isinstance(given, str) or not given or len(set(given)) < len(given) or not set(given) <= set(known):
            raise OptionError(f"{name}={given!r} must be one or more of {', '.join(known)}, none of them twice")
    names = [axis.name for axis in dimensions]
    if not names or len(set(names)) < len(names):
        raise OptionError(
            f"the dimensions {names} must be one or more with different names: give Axis(name=, meaning=)"
        )


ANSWER_TOKENS = 60  # a strategy, or a reason
INSTRUCTIONS = {"worse": DamageOutput.instructions, "same": RewriteOutput.instructions}
OUTPUTS = {"worse": MOST, "same": 1}  # of one request


def estimate_requests(
    sources: Sequence[Source],
    dimensions: Sequence[Axis],
    strengths: Sequence[Strength],
    effects: Sequence[Effect] = BOTH,
) -> int:
    """Returns the number of requests that `generate_perturbations` sends if none fails, repairs aside.

    One for the strategies of each dimension, and one for each dimension, source with an output, strength and effect.
    """
    check_request(dimensions, strengths, effects)
    rows = sum(bool(source.output.strip()) for source in sources)
    return len(dimensions) * (("worse" in effects) + rows * len(strengths) * len(effects)) if rows else 0


def estimate_usage(
    sources: Sequence[Source],
    task: str,
    dimensions: Sequence[Axis],
    strengths: Sequence[Strength],
    effects: Sequence[Effect] = BOTH,
) -> Usage:
    """`estimate_requests` with tokens and dollars, as if three strategies came back and outputs kept their length.

    Parameters
    ----------
    sources, task, dimensions, strengths, effects
        As for `generate_perturbations`.

    Returns
    -------
    Usage
        Four characters count as a token; dollars are None where the price of the model in force is unknown.

    Raises
    ------
    OptionError
        As `generate_perturbations` raises it before it asks.
    """
    requests = estimate_requests(sources, dimensions, strengths, effects)
    present = [source for source in sources if source.output.strip()]
    if not requests:
        return Usage()
    shown = sum(estimate_tokens(shown_examples([source])) for source in present)
    written = sum(estimate_tokens(source.output) for source in present)
    cells, prompt, completion = len(dimensions) * len(strengths), 0, 0
    for effect in effects:
        frame = estimate_tokens(INSTRUCTIONS[effect] + task) + FRAME_TOKENS
        prompt += cells * (shown + len(present) * frame)
        completion += cells * (OUTPUTS[effect] * written + len(present) * ANSWER_TOKENS)
    if "worse" in effects:
        examples = shown_examples([sources[place] for place in pick_examples(sources, groups_of(sources))])
        prompt += len(dimensions) * (estimate_tokens(ProposeDamage.instructions + examples) + FRAME_TOKENS)
        completion += len(dimensions) * MOST * ANSWER_TOKENS
    model = getattr(dspy.settings.lm, "model", "")
    return Usage(requests, prompt, completion, price(model, prompt, completion) if model else None)
