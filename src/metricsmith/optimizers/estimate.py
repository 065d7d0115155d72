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
from metricsmith.scoring.models import price
from metricsmith.scoring.tokens import estimate_tokens
from metricsmith.signatures.axes import ProposeAxes
from metricsmith.signatures.judgement import JudgeCriterion, JudgeRubric

__all__ = ["Load", "estimate"]

ANSWER_TOKENS = 120  # two to four sentences of reasons and a number
FRAME_TOKENS = 350  # what DSPy's chat adapter writes around the fields of a judge's signature
RUBRIC_TOKENS = 250
CARD_TOKENS = 600


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
    """

    passes: int
    judged_rows: int
    ranked_cards: int = 0


def estimate(rows: Sequence[dspy.Example], task: Task, counts: Mapping[str, int], load: Load, model: str) -> Usage:
    """Estimate requests, tokens and cost of a run; retries are not in it.

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
    judges = sum(counts.values())
    rubrics = sum(count * GENERATORS[name].requests_each for name, count in counts.items())
    examples = contrast(rows, task)
    ask = estimate_tokens(ProposeAxes.instructions + examples.liked + examples.disliked) + FRAME_TOKENS
    text = sum(sum(map(estimate_tokens, shown(row_text(row)).values())) for row in rows) / len(rows)
    instruction = estimate_tokens(max(JudgeCriterion.instructions, JudgeRubric.instructions, key=len))
    judgements = judges * load.judged_rows
    asks = judges > 0
    per_pass = asks * ask + rubrics * RUBRIC_TOKENS + load.ranked_cards * CARD_TOKENS
    prompt = load.passes * per_pass + int(judgements * (text + instruction + FRAME_TOKENS))
    completion = load.passes * (judges * 40 + rubrics * RUBRIC_TOKENS + load.ranked_cards * 8)
    completion += judgements * ANSWER_TOKENS
    requests = load.passes * (asks + rubrics + bool(load.ranked_cards)) + judgements
    return Usage(requests, prompt, completion, price(model, prompt, completion))
