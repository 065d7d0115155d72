"""Writes one rewrite of a notice: authored sentences, and the six defects done to them.

The sentences stand in ``plain_notices_sources.json``; which defects a rewrite gets is decided in
`plain_notices_generator`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = [
    "BROKEN_SPAN",
    "Fact",
    "Material",
    "Source",
    "break_sentences",
    "drop_verb",
    "load_material",
    "run_on",
    "scramble",
    "write_version",
]

SOURCES_PATH = Path(__file__).with_name("plain_notices_sources.json")

BROKEN_SPAN = 3
"""Sentences run together per occurrence of ``broken_sentence``."""

Counts = Mapping[str, int]
"""Defect name to number of occurrences, 0 to 2."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of a notice: two plain wordings, one in jargon, and the phrase that can be made wrong.

    `right` occurs exactly once in each wording; both `right` and `wrong` are empty where no single phrase
    can be replaced.
    """

    plain: str
    second: str
    jargon: str
    right: str = ""
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """One notice with everything needed to write rewrites of it. ``*_off`` are in the wrong tone."""

    id: str
    topic: str
    notice: str
    opening: str
    opening_off: str
    closing: str
    closing_off: str
    facts: tuple[Fact, ...]
    reference: str


@dataclass(frozen=True, slots=True)
class Material:
    """The authored sentences: the sources, and idle sentences by topic (``any`` fits every topic)."""

    sources: tuple[Source, ...]
    padding: Mapping[str, tuple[str, ...]]

    def idle_sentences(self, topic: str) -> tuple[str, ...]:
        """All idle sentences that fit `topic`."""
        return self.padding["any"] + self.padding[topic]


def load_material() -> Material:
    """Read the authored sentences that ship with the package."""
    data = json.loads(SOURCES_PATH.read_text(encoding="utf-8"))
    sources = tuple(
        Source(**{**entry, "facts": tuple(Fact(**fact) for fact in entry["facts"])}) for entry in data["sources"]
    )
    return Material(tuple(sources), {topic: tuple(sentences) for topic, sentences in data["padding"].items()})


def write_version(source: Source, counts: Counts, idle: Sequence[str], rng: np.random.Generator) -> str:
    """Write one rewrite of `source` with exactly the defects in `counts`.

    Parameters
    ----------
    source : Source
        The notice and its sentences.
    counts : mapping of str to int
        Defect name to number of occurrences, 0 to 2.
    idle : sequence of str
        The sentences to pad with: a set number for each occurrence of ``padding``.

    Returns
    -------
    str
        Opening, facts in the notice's order, closing. With all counts 0 every fact stands there in one of
        its two plain wordings, which of them is left to chance.
    """
    off_tone = {"opening", "closing"} if counts["wrong_tone"] > 1 else set()
    if counts["wrong_tone"] == 1:
        off_tone = {("opening", "closing")[rng.integers(2)]}
    opening = source.opening_off if "opening" in off_tone else source.opening
    closing = source.closing_off if "closing" in off_tone else source.closing
    body = break_sentences([*_tell_facts(source, counts, rng), closing], counts["broken_sentence"], rng)
    for sentence in idle:
        body.insert(int(rng.integers(len(body))), sentence)
    return " ".join([opening, *body])


def _tell_facts(source: Source, counts: Counts, rng: np.random.Generator) -> list[str]:
    """Choose which facts are wrong, missing or in jargon (a wrong one may be in jargon too); word them."""
    everything = range(len(source.facts))
    wrong = _choose([i for i in everything if source.facts[i].right], counts["contradiction"], rng)
    dropped = _choose([i for i in everything if i not in wrong], counts["dropped_fact"], rng)
    kept = [i for i in everything if i not in dropped]
    in_jargon = _choose(kept, counts["jargon"], rng)
    told = []
    for i in kept:
        fact = source.facts[i]
        wording = fact.jargon if i in in_jargon else (fact.plain, fact.second)[rng.integers(2)]
        told.append(wording.replace(fact.right, fact.wrong) if i in wrong else wording)
    return told


def _choose(items: Sequence[int], k: int, rng: np.random.Generator) -> set[int]:
    return {items[i] for i in rng.permutation(len(items))[:k]}


# Broken sentences

_VERB = re.compile(r" (?:is|are|will be|will|was|has|have|can|may|must|costs?|takes?|need|get) (?!not\b)")
_NAMES = frozenset({"Castle", "Elmtree", "Kent"})
"""First words of authored sentences that keep their capital inside a sentence."""


def break_sentences(sentences: Sequence[str], count: int, rng: np.random.Generator) -> list[str]:
    """Spoil `count` places: run `BROKEN_SPAN` neighbours together and put the middle one out of joint.

    The one out of joint loses its verb or has its beginning moved to its end. Where fewer sentences are
    left than a span takes, all of them are run together.
    """
    broken = list(sentences)
    for _ in range(count):
        span = min(BROKEN_SPAN, len(broken))
        start = int(rng.integers(len(broken) - span + 1))
        parts = broken[start : start + span]
        spoil = (drop_verb, scramble)[rng.integers(2)]
        parts[span // 2] = spoil(parts[span // 2])
        broken[start : start + span] = [run_on(parts)]
    return broken


def run_on(sentences: Sequence[str]) -> str:
    """Join sentences into one without any mark between them.

    >>> run_on(["The pool is shut.", "You can swim in the lake.", "Kent Road is open."])
    'The pool is shut you can swim in the lake Kent Road is open.'
    """
    first, *others = (sentence.rstrip(".!?") for sentence in sentences)
    return " ".join([first, *map(_lower_start, others)]) + "."


def drop_verb(sentence: str) -> str:
    """Leave out the first verb (of a short list of common ones); without one, `scramble` instead.

    >>> drop_verb("The lift will be shut until May.")
    'The lift shut until May.'
    """
    shorter = _VERB.sub(" ", sentence, count=1)
    return shorter if shorter != sentence else scramble(sentence)


def scramble(sentence: str) -> str:
    """Move the first three words to the end, or more where the cut would go through a name or number.

    >>> scramble("You can park for free on Abbey Road.")
    'For free on Abbey Road you can park.'
    >>> scramble("You can call 0555 010 720 by Friday.")
    'By Friday you can call 0555 010 720.'
    """
    words = sentence.rstrip(".!?").split()
    cut = next((i for i, word in enumerate(words) if i >= 3 and word[0].islower()), 0)
    text = " ".join([*words[cut:], _lower_start(words[0]), *words[1:cut]]) if cut else " ".join(words)
    return text[0].upper() + text[1:] + "."


def _lower_start(sentence: str) -> str:
    return sentence if sentence.split()[0] in _NAMES else sentence[0].lower() + sentence[1:]
