"""Outputs made worse as a whole: sentences lost, moved, repeated, added, or in another language."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np

from metricsmith.programs.perturbers.base import Perturber, Source, Strength
from metricsmith.programs.perturbers.builtin.segments import (
    Edit,
    appended,
    applied,
    fitted,
    looks_english,
    pick_one,
    pick_some,
    sampler,
    sentence_places,
    without,
    word_places,
)

__all__ = ["STRUCTURE"]

# Made up for this purpose.
UNRELATED = (
    "The harbour cat sleeps on whichever boat was painted last.",
    "Nobody has wound the clock above the bakery since the flood.",
    "Her grandfather kept bees behind the disused railway shed.",
    "The museum lends out its smallest globe on rainy afternoons.",
    "Two of the village fountains were built from the same quarry stone.",
    "The choir rehearses in the gym because the hall has no heating.",
    "A left-handed potter will teach the evening course this autumn.",
    "Somebody planted forty tulips along the back wall of the prison.",
    "The ferryman sells hot chestnuts once the tourists have gone.",
    "Their youngest goat learned to open the garden gate by itself.",
    "The tailor keeps a drawer full of buttons that match nothing.",
    "Snow fell on the observatory twice during the summer festival.",
)
FOREIGN = {
    "German": (
        "Der Zug hält heute an jedem Bahnhof, auch an den ganz kleinen.",
        "Im Garten steht ein alter Birnbaum, unter dem niemand mehr sitzt.",
        "Die Brücke wird am Mittwoch gesperrt und neu gestrichen.",
        "Meine Nachbarin füttert jeden Morgen die Spatzen im Hof.",
    ),
    "French": (
        "Le marché ouvre le samedi matin, même quand il pleut.",
        "La voisine du dessus joue du piano tous les soirs avant le dîner.",
        "Le pont sera repeint en vert au début du printemps.",
        "Mon oncle répare des horloges dans une petite cave.",
    ),
    "Spanish": (
        "La biblioteca cierra los domingos, pero abre temprano los lunes.",
        "El panadero de la esquina canta mientras amasa el pan.",
        "En el patio hay un limonero que nadie se atreve a podar.",
        "Mi prima colecciona mapas de ciudades que ya no existen.",
    ),
}


def drop_sentence(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    found = sentence_places(text)
    if len(found) < 2:
        return text
    count = 1 if strength == "subtle" else math.ceil(len(found) / 2)
    return without(text, found, set(pick_some(range(len(found)), count, random)))


def shuffle_sentences(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    found = [sentence for sentence in sentence_places(text) if sentence.kind != "bullet"]
    if len(found) < (3 if strength == "subtle" else 2):
        return text
    told = [text[place.start : place.end] for place in found]
    order = [*range(1, len(found)), 0]
    if strength == "obvious":  # of several orders, the one in which the fewest sentences follow the one before them
        orders = [*(random.permutation(len(found)).tolist() for _ in range(8)), list(range(len(found)))[::-1]]
        order = min(orders, key=lambda places: sum(after == before + 1 for before, after in pairwise(places)))
    return applied(text, (Edit(place.start, place.end, told[k]) for place, k in zip(found, order, strict=True)))


def truncate(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    kept = random.uniform(0.75, 0.9) if strength == "subtle" else random.uniform(0.3, 0.5)
    body = text.rstrip()
    found = word_places(body)
    if len(found) > 2:
        last = min(max(1, round(kept * len(found))), len(found) - 1)
        return body[: found[last - 1].end]
    return body[: max(1, round(kept * len(body)))] if len(body) >= 20 else text


def repeat(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    found = sentence_places(text)
    if not text.strip() or (strength == "subtle" and not found):
        return text
    if strength == "obvious":
        return appended(appended(text, text.strip()), text.strip())
    sentence = pick_one(found, random)
    return applied(text, [Edit(sentence.end, sentence.end, " " + text[sentence.start : sentence.end])])


def insert_unrelated(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    found = sentence_places(text)
    if not found:
        return text
    count = 1 if strength == "subtle" else max(3, len(found))
    # Whole sentences of six words or more from the other outputs that are not in this one.
    told = dict.fromkeys(other[place.start : place.end] for other in source.others for place in sentence_places(other))
    foreign = [
        one for one in told if len(word_places(one)) >= 6 and one[-1] in ".!?" and one.lower() not in text.lower()
    ]
    take = sampler([fitted(sentence, text) for sentence in foreign or UNRELATED], random)
    places = Counter(pick_one(found, random).end for _ in range(count))
    return applied(text, [Edit(at, at, "".join(" " + take() for _ in range(often))) for at, often in places.items()])


def wrong_language(source: Source, strength: Strength, random: np.random.Generator) -> str:
    text = source.output
    found = sentence_places(text)
    if not found or not looks_english(text):
        return text
    # Sentences about something else and no translation: a small dictionary would measure the dictionary.
    take = sampler([fitted(sentence, text) for sentence in FOREIGN[pick_one(list(FOREIGN), random)]], random)
    if strength == "subtle":
        place = pick_one(found, random).end
        return applied(text, [Edit(place, place, " " + take())])
    replaced = pick_some(found, math.ceil(len(found) / 2), random)
    return applied(text, [Edit(place.start, place.end, take()) for place in replaced])


STRUCTURE = (
    Perturber(
        "drop_sentence",
        "worse",
        "Leaves out one sentence; if obvious, half of them.",
        "What the sentence said is no longer there.",
        drop_sentence,
        limits="A sentence that said nothing is no loss.",
    ),
    Perturber(
        "shuffle_sentences",
        "worse",
        "Moves the first sentence to the end; if obvious, puts all of them in an order without order.",
        "Sentences no longer follow from those before them. Items of bullet lists stay where they are.",
        shuffle_sentences,
        limits="Sentences that stand each for itself lose little.",
    ),
    Perturber(
        "truncate",
        "worse",
        "Breaks off after 75 to 90 % of the words; if obvious, after 30 to 50 %.",
        "The rest is missing, and the last sentence has no end.",
        truncate,
    ),
    Perturber(
        "repeat",
        "worse",
        "Says one sentence twice in a row; if obvious, everything three times.",
        "The reader reads more and learns no more.",
        repeat,
    ),
    Perturber(
        "insert_unrelated",
        "worse",
        "Puts in one sentence about something else; if obvious, as many as there are, three at least. They come from "
        "outputs to other inputs, or, where there are none, from a list.",
        "The sentence does not belong there.",
        insert_unrelated,
    ),
    Perturber(
        "wrong_language",
        "worse",
        "Puts a German, French or Spanish sentence about something else into an English text; if obvious, in place of "
        "half of the sentences.",
        "Nobody asked for that language, and what was replaced is lost: this is no translation.",
        wrong_language,
    ),
)
