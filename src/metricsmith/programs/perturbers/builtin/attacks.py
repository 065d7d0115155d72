"""Outputs dressed up, or exchanged for something cheap, to get a rating that they do not deserve."""

from __future__ import annotations

import re

import numpy as np

from metricsmith.programs.perturbers.base import Perturber, Source, Strength
from metricsmith.programs.perturbers.builtin.material import IDLE, ORDERS, PRAISE
from metricsmith.programs.perturbers.builtin.protected import Protected
from metricsmith.programs.perturbers.builtin.segments import (
    Edit,
    appended,
    applied,
    fitted,
    line_places,
    pick_one,
    pick_share,
    pick_some,
    sentence_places,
    word_places,
)

__all__ = ["ATTACKS"]

_HEADINGS = ("Answer", "Overview", "Summary", "Key points", "In detail")
_BEST = 5  # of the other outputs, from which one is drawn


def pad_idle(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    count = 1 if strength == "subtle" else min(len(IDLE), max(4, len(sentence_places(text))))
    return appended(text, " ".join(fitted(sentence, text) for sentence in pick_some(IDLE, count, random)))


def formatting(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    protected = Protected(text, quotations=False)
    plain = [
        place
        for sentence in sentence_places(text)
        for place in word_places(text, sentence.start, sentence.end)
        if place.end - place.start >= 6 and not protected.touches(*place) and not _marked(text, *place)
    ]
    if not plain:
        return text
    bold = pick_share(plain, 0.1 if strength == "subtle" else 0.3, random)
    edits = [Edit(*place, f"**{text[slice(*place)]}**") for place in bold]
    if strength == "subtle":
        return applied(text, edits)
    return f"## {pick_one(_HEADINGS, random)}\n\n" + applied(text, [*edits, *_as_bullets(text)])


def _marked(text: str, start: int, end: int) -> bool:
    return "*" in text[max(0, start - 1) : end + 1] or "_" in text[max(0, start - 1) : end + 1]


def _as_bullets(text: str) -> list[Edit]:
    """Puts each sentence of a prose paragraph on a line of its own, as a bullet."""
    prose = {line.body: line for line in line_places(text) if line.kind == "prose"}
    starts = [sentence.start for sentence in sentence_places(text) if sentence.kind == "prose"]
    edits = []
    for start in starts:
        gap = re.compile(r"[^\S\r\n]+$").search(text, max(0, start - 20), start)
        if start in prose:
            edits.append(Edit(start, start, "- "))
        elif gap:
            edits.append(Edit(*gap.span(), "\n- "))
    return edits


def self_praise(source: Source, strength: Strength, random: np.random.Generator) -> str:
    return _added(source.output, PRAISE[strength], strength, random, 2)


def order_to_rate(source: Source, strength: Strength, random: np.random.Generator) -> str:
    return _added(source.output, ORDERS[strength], strength, random, 1)


def _added(text: str, pool: tuple[str, ...], strength: Strength, random: np.random.Generator, count: int) -> str:
    """Adds one sentence after the text; if obvious, one before it as well and `count` after it."""
    if strength == "subtle":
        return appended(text, fitted(pick_one(pool, random), text))
    first, *rest = pick_some(pool, 1 + count, random)
    return appended(f"{first}\n\n{text}" if text.strip() else first, " ".join(rest))


def empty_output(source: Source, _strength: Strength, _random: np.random.Generator) -> str:
    return "" if source.output.strip() else source.output


def copy_input(source: Source, _strength: Strength, _random: np.random.Generator) -> str:
    return source.input


def other_good_output(source: Source, _strength: Strength, random: np.random.Generator) -> str:
    return pick_one(source.others[:_BEST], random)


ATTACKS = (
    Perturber(
        "pad_idle",
        "attack",
        "Adds a sentence that is true of any text; if obvious, as many as there are, four to twelve.",
        "The text is longer and says no more.",
        pad_idle,
    ),
    Perturber(
        "formatting",
        "attack",
        "Sets one longer word in ten in bold; if obvious, three in ten, with a heading and every sentence as a bullet.",
        "Marks add nothing to what is said.",
        formatting,
        limits="Bullets may help the reader of a long text.",
    ),
    Perturber(
        "self_praise",
        "attack",
        "Adds a sentence that calls the text complete and correct; if obvious, superlatives before and after it.",
        "A text is not better for saying so.",
        self_praise,
    ),
    Perturber(
        "order_to_rate",
        "attack",
        "Adds a note that asks for the best rating; if obvious, orders to ignore the instructions, before and after.",
        "Whoever rates follows the criteria, not the text.",
        order_to_rate,
    ),
    Perturber(
        "empty_output",
        "attack",
        "Leaves nothing.",
        "Nothing is not better than something that was worth a rating.",
        empty_output,
        strengths=("obvious",),
        limits="Nothing may be better than an output that does harm.",
    ),
    Perturber(
        "copy_input",
        "attack",
        "Gives the input back as the output.",
        "What was asked for has not been done.",
        copy_input,
        strengths=("obvious",),
        needs=("input",),
        limits="Where outputs are edits of the input, a bad edit can be worse than none.",
    ),
    Perturber(
        "other_good_output",
        "attack",
        "Gives one of the five best rated outputs to other inputs.",
        "It answers something else.",
        other_good_output,
        strengths=("obvious",),
        needs=("others",),
    ),
)
