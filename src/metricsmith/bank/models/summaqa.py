"""SummaQA: questions made of the input's names and numbers, answered from the output."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache, partial
from string import punctuation
from typing import Any

import numpy as np

from metricsmith.bank.base import Compute, Names, Reasoned, TextBatch, blank_texts
from metricsmith.bank.models.engine.classifier import answers
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.bank.text import sentences
from metricsmith.errors import DataError, OptionError
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "Entities", "compute", "with_entities"]

Entities = Callable[[str], Iterable[tuple[int, int]]]  # from a sentence to the places [start, end) of its characters
SPACY = "en_core_web_sm"  # as the reference implementation finds entities
MODEL = ModelSpec(
    name="summaqa",
    id="bert-large-uncased-whole-word-masking-finetuned-squad",
    head="qa",
    needs=("spacy", SPACY),
    choices=(("entities", (SPACY,)),),
)

CARD = MetricCard(
    name="SummaQA",
    kind="bank",
    summary=(
        "How many of the input's names, dates and numbers can be recovered from the output: each is blanked out of "
        "its sentence, and a question answerer looks for it in the output."
    ),
    formula=(
        "for each entity of each sentence of the input the question is the sentence with MASKED in its place; the "
        "answer is the span of the output with the highest p(start) p(end), start not after end, shares among all "
        "tokens; summaqa_prob is the mean of that product, summaqa_f the mean F1 of the words of answer and entity, "
        "lower-cased, without punctuation and articles"
    ),
    outputs=(
        Output("summaqa_prob", 0.0, 1.0, description="the mean confidence of the answers"),
        Output("summaqa_f", 0.0, 1.0, description="the mean overlap of answers and entities"),
    ),
    needs=("input", "weights", "extra:models"),
    cost="local",
    domains=("news", "summaries"),
    tasks=("summarisation", "simplification", "headline generation"),
    best_for=("coverage of who, when and how many, without a reference",),
    not_for=("inputs without names or numbers", "fluency", "short summaries of long inputs: few entities fit in"),
    limits=(
        "undefined where the input has no entity; the reference implementation and autometrics-ai give 0",
        "entities are spaCy's en_core_web_sm where that is installed, or a function's; other entities are other "
        "numbers, also in a saved metric, which names them",
        "an entity of articles or punctuation alone makes no question: no answer could match it",
        "entities are looked for in each sentence alone, in our sentences and not in spaCy's",
        "question and output beyond 512 tokens lose the end of the longer",
        "the reference implementation may take answers from the question, and chooses start and end apart; "
        "autometrics-ai takes shares within the output alone, which are larger",
    ),
    failure_cases=("a list of all names of the input, without a sentence, scores high",),
    related=("factcc", "unieval_consistency", "rouge1_r"),
    papers=("Scialom et al. 2019, Answers unite! Unsupervised metrics for reinforced summarization models",),
    checkpoint=Checkpoint(MODEL.id, 1.34, 1.6, 512, "the end of the longer text, question or output, is cut off"),
)


def with_entities(function: Entities, name: str = "") -> tuple[Compute, ModelSpec]:
    """SummaQA's `compute` and weights with another finder of entities: no spaCy is needed.

    Parameters
    ----------
    function : callable
        From a sentence to (start, end) of each entity, in characters, the end not included.
    name : str
        Stands for the function in fingerprints and saved metrics; by default the function's own. Functions that find
        other entities need other names.

    Raises
    ------
    OptionError
        If `function` cannot be called, or its name is that of spaCy's model.
    """
    named = name or getattr(function, "__qualname__", type(function).__qualname__)
    if not callable(function) or named == SPACY:
        raise OptionError(f"entities={function!r:.60} called {named} must be a function, with a name of its own")
    model = replace(MODEL, needs=(), choices=(("entities", (SPACY, named)),), options=(("entities", named),))
    return partial(compute, entities=function), model


def compute(batch: TextBatch, outputs: Names, entities: Entities | None = None) -> Reasoned:
    """Ask every distinct question once of each output."""
    find = entities or _spacy_entities
    reasons = blank_texts(batch, "output", "input")
    asked = {text: questions(text, find) for text in dict.fromkeys(batch.inputs)}
    rows = [(row, *one) for row, reason in enumerate(reasons) if not reason for one in asked[batch.inputs[row]]]
    given = answers(batch.spec, [question for _, question, _ in rows], [batch.outputs[row] for row, *_ in rows])
    found: dict[str, Any] = {"summaqa_prob": [[] for _ in reasons], "summaqa_f": [[] for _ in reasons]}
    for (row, _, entity), answer in zip(rows, given, strict=True):
        found["summaqa_prob"][row].append(answer.probability)
        found["summaqa_f"][row].append(_word_f1(answer.text, entity) if answer.text else np.nan)
    for row, values in enumerate(found["summaqa_f"]):
        if not reasons[row] and not values:
            reasons[row] = "the input has no entity to ask for"
        elif np.isnan(values).any():
            reasons[row] = "the output has no word that the network reads"
    scores = {name: np.array([np.mean(values) if values else np.nan for values in found[name]]) for name in outputs}
    return Reasoned(scores, reasons)


def questions(text: str, entities: Entities) -> list[tuple[str, str]]:
    """The questions and their answers: each sentence with one entity masked; entities without a word make none.

    Raises
    ------
    DataError
        If a place of an entity lies outside its sentence.
    """
    result = []
    for sentence in sentences(text):
        for start, end in entities(sentence):
            if not 0 <= start < end <= len(sentence):
                raise DataError(
                    f"entities= gave ({start}, {end}) for a sentence of {len(sentence)} characters: a place is "
                    "(start, end), counted in characters from 0, the end not included"
                )
            if _answer_words(sentence[start:end]):
                result.append((f"{sentence[:start]}MASKED{sentence[end:]}", sentence[start:end]))
    return result


def _word_f1(answer: str, entity: str) -> float:
    """F1 of two bags of words, as SQuAD's evaluation has it."""
    one, other = _answer_words(answer), _answer_words(entity)
    return 2 * (one & other).total() / (one.total() + other.total())


def _answer_words(text: str) -> Counter[str]:
    letters = "".join(character for character in text.lower() if character not in punctuation)
    return Counter(re.sub(r"\b(a|an|the)\b", " ", letters).split())


def _spacy_entities(text: str) -> list[tuple[int, int]]:
    return [(found.start_char, found.end_char) for found in _pipeline()(text).ents]


@lru_cache(maxsize=1)
def _pipeline() -> Any:
    import spacy

    return spacy.load(SPACY)
