"""Yes-or-no questions to a network that was trained on them: what the three UniEval metrics share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from metricsmith.bank.base import FloatArray, Names, Reasoned, TextBatch
from metricsmith.bank.models.engine.seq2seq import first_token_share
from metricsmith.bank.text import sentences

__all__ = ["FACT_CONSISTENCY", "Question", "yes_shares"]

LONGEST = 1024  # tokens; maszhongming/UniEval, metric/evaluator.py: the published numbers are cut there


@dataclass(frozen=True, slots=True)
class Question:
    """A question on one quality, and the named texts that go with it.

    Parameters
    ----------
    words : str
        The question.
    fields : tuple of (str, str)
        The names and sources of its texts: ``output``, ``sentence`` (each of the output), ``input``, ``reference``
        (each), ``fact`` (the first reference). It is asked for every combination of them.
    summed : bool
        Add the answers up; else take their mean.
    """

    words: str
    fields: tuple[tuple[str, str], ...]
    summed: bool = False

    def prompts(self, texts: Mapping[str, list[str]]) -> list[str]:
        """The texts that the network reads, one for each combination; none where a field has no text.

        The wording and the marks between fields are those that the weights were trained on: maszhongming/UniEval,
        utils.py, add_question.
        """
        return [
            f"question: {self.words}"
            + "".join(f" </s> {name}: {text}" for (name, _), text in zip(self.fields, chosen, strict=True))
            for chosen in product(*(texts[source] for _, source in self.fields))
        ]


FACT_CONSISTENCY = Question(
    "Is this claim consistent with the document?", (("claim", "sentence"), ("document", "input"))
)


def yes_shares(batch: TextBatch, outputs: Names, questions: Mapping[str, Question]) -> Reasoned:
    """The probability of Yes against No for the questions of `outputs`."""
    rows = [
        _sources(output, given, references)
        for output, given, references in zip(batch.outputs, batch.inputs, batch.references, strict=True)
    ]
    prompts = {name: [questions[name].prompts(texts) for texts in rows] for name in outputs}
    asked = [prompt for column in prompts.values() for row in column for prompt in row]
    answers = iter(first_token_share(batch.spec, asked, ("Yes", "No"), LONGEST).tolist())
    scores: dict[str, FloatArray] = {}
    for name, column in prompts.items():
        found = [[next(answers) for _ in row] for row in column]
        total = np.sum if questions[name].summed else np.mean
        scores[name] = np.array([total(row) if row else np.nan for row in found])
    needed = dict.fromkeys(source for question in questions.values() for _, source in question.fields)
    return Reasoned(scores, [_reason(texts, list(needed)) for texts in rows])


def _sources(output: str, given: str, references: Sequence[str]) -> dict[str, list[str]]:
    filled = [text for text in references if text.strip()]
    return {
        "output": [output] if output.strip() else [], "sentence": sentences(output),
        "input": [given] if given.strip() else [], "reference": filled, "fact": filled[:1],
    }  # fmt: skip


def _reason(texts: Mapping[str, list[str]], needed: list[str]) -> str:
    if not texts["output"]:
        return "the output is empty"
    words = {"fact": "reference to take as the fact"}
    lacking = [words.get(source, source) for source in needed if not texts[source]]
    return f"the row has no {' and no '.join(lacking)}" if lacking else ""
