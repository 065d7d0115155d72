"""The requests, tokens and dollars of a model's perturbations, before it is asked."""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from metricsmith.model_calls.limits import estimate_tokens, price
from metricsmith.programs.perturbers.base import Effect, Source, Strength
from metricsmith.programs.perturbers.generated import MOST
from metricsmith.programs.perturbers.generation import (
    BOTH,
    check_request,
    groups_of,
    pick_examples,
    shown_examples,
)
from metricsmith.records import Usage
from metricsmith.signatures.generation import Axis
from metricsmith.signatures.perturbation import DamageOutput, ProposeDamage, RewriteOutput

__all__ = ["estimate_requests", "estimate_usage"]

FRAME_TOKENS = 350  # that DSPy's chat adapter writes around the fields
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
