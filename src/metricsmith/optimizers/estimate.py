"""What a run will ask of the language model, before it asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import dspy

from metricsmith.metric import row_text
from metricsmith.optimizers.generation import GENERATORS
from metricsmith.programs.generators.axes import contrast
from metricsmith.programs.texts import shown
from metricsmith.records import Task, Usage
from metricsmith.scoring.prices import price
from metricsmith.scoring.tokens import estimate_tokens
from metricsmith.signatures.axes import ProposeAxes
from metricsmith.signatures.judgement import JudgeBySteps, JudgeCriterion, JudgeRubric
from metricsmith.signatures.panel import JudgePanel

__all__ = ["Load", "estimate"]

ANSWER_TOKENS = 120  # two to four sentences of reasons and a number
FRAME_TOKENS = 350  # what DSPy's chat adapter writes around the fields of a judge's signature
WRITTEN_TOKENS = 250  # a rubric, or evaluation steps
CARD_TOKENS = 600
CRITERION_TOKENS = 30  # a criterion's name and meaning
INSTRUCTIONS = [signature.instructions for signature in (JudgeCriterion, JudgeRubric, JudgeBySteps)]
ITEM_TOKENS = 70  # a panel's answer on one criterion: its name, one or two sentences, a number


@dataclass(frozen=True)
class Load:
    """How often each kind of request is made.

    Parameters
    ----------
    passes : int
        How often candidates are generated and retrieved (K + 1 with cross-validation).
    judged_rows : int
        Rows that every judge reads, over all passes.
    ranked_cards : int
        Cards that the model ranks in each pass; 0 if it ranks none.
    panel : bool
        Whether one request a row carries all judges.
    learned : int
        The most requests that judges which learn from the ratings take until they are made, over all passes.
    """

    passes: int
    judged_rows: int
    ranked_cards: int = 0
    panel: bool = False
    learned: int = 0


def estimate(rows: Sequence[dspy.Example], task: Task, counts: Mapping[str, int], load: Load, model: str) -> Usage:
    """Estimate requests, tokens and cost of a run; retries are in it only for judges that learn (an upper bound).

    Parameters
    ----------
    rows : sequence of dspy.Example
        Rated rows; their mean length stands for all.
    task : Task
    counts : mapping of str to int
        Judge family to number of judges.
    load : Load
    model : str
        Model name, for its price.
    """
    judges, written = sum(counts.values()), _written(counts)
    examples = contrast(rows, task)
    ask = estimate_tokens(ProposeAxes.instructions + examples.liked + examples.disliked) + FRAME_TOKENS
    judging = _judging(rows, counts, load)
    asks = any(count for name, count in counts.items() if name in GENERATORS)
    per_pass = asks * ask + written * WRITTEN_TOKENS + load.ranked_cards * CARD_TOKENS
    prompt = load.passes * per_pass + judging.prompt_tokens
    completion = load.passes * (judges * 40 + written * WRITTEN_TOKENS + load.ranked_cards * 8)
    completion += judging.completion_tokens
    requests = load.passes * (asks + written + bool(load.ranked_cards)) + judging.requests
    return Usage(requests, prompt, completion, price(model, prompt, completion))


def _written(counts: Mapping[str, int]) -> int:
    """Requests that write rubrics or steps."""
    return sum(count * GENERATORS[name].requests_each for name, count in counts.items() if name in GENERATORS)


def _judging(rows: Sequence[dspy.Example], counts: Mapping[str, int], load: Load) -> Usage:
    """What all judges cost on all judged rows, each by itself or on one panel."""
    text = sum(sum(map(estimate_tokens, shown(row_text(row)).values())) for row in rows) / len(rows)
    families = {name: GENERATORS[name] for name in counts if name in GENERATORS} if load.panel else {}
    seated = {name: counts[name] for name, family in families.items() if family.on_panels and counts[name]}
    panel = Usage()
    if seated:
        members = sum(seated.values())
        criteria = members * CRITERION_TOKENS + _written(seated) * WRITTEN_TOKENS
        prompt = text + estimate_tokens(JudgePanel.instructions) + FRAME_TOKENS + criteria
        panel = Usage(load.judged_rows, int(load.judged_rows * prompt), load.judged_rows * members * ITEM_TOKENS)
    instruction = max(map(estimate_tokens, INSTRUCTIONS))
    judgements = load.judged_rows * sum(count for name, count in counts.items() if name not in seated) + load.learned
    return panel + Usage(judgements, int(judgements * (text + instruction + FRAME_TOKENS)), judgements * ANSWER_TOKENS)
