"""Six tables in the shapes that people bring, with the truth about their sources beside them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["BROUGHT", "Brought", "write_brought"]

PLACES = ("library", "pool", "museum", "market", "station", "clinic", "theatre", "bakery", "garden", "school")
GOOD = ("opens", "closes", "early", "late", "monday", "friday", "staff", "train", "visitors", "ticket", "cheaper")
PADDING = ("indeed", "really", "somewhat", "perhaps", "basically")
SORRY = "I am sorry, but I cannot help you with this request today."  # eleven words, the same to every prompt
INSTRUCTION = "Write one plain sentence about the notice."

Row = Mapping[str, object]


@dataclass(frozen=True)
class Brought:
    """A table on disk.

    Parameters
    ----------
    path : Path
    target : str
        Its rating column.
    sources : dict of (input, output) to str
        The true source of each pair of texts that a report may show.
    outputs : int
        How many different outputs there are, ratings of one and the same counted once.
    """

    path: Path
    target: str
    sources: Mapping[tuple[str, str], str]
    outputs: int


@dataclass(frozen=True)
class Item:
    """One output to one prompt, and how good it really is."""

    place: str
    prompt: str
    system: str
    output: str
    reference: str
    quality: float


def items(prompts: int = 10, systems: int = 6, seed: int = 0) -> list[Item]:
    """Outputs that lose words of the reference and gain padding; two prompts get the same refusal."""
    random = np.random.default_rng(seed)
    made = []
    for place in PLACES[:prompts]:
        kept = [f"the {place}", *random.permutation(GOOD)[:11].tolist()]
        for system in range(systems):
            lost, padded = int(random.integers(0, 7)), int(random.integers(0, 4))
            words = [*kept[: len(kept) - lost], *random.choice(PADDING, padded).tolist()]
            output, quality = " ".join(words) + f" in hall {system + 1}", 5 - 0.5 * lost - 0.25 * padded
            if system == 0 and place in PLACES[:2]:
                output, quality = SORRY, 1.0
            made.append(Item(place, f"What is new at the {place}?", f"s{system}", output, " ".join(kept), quality))
    return made


def rating(item: Item, random: np.random.Generator, noise: float = 0.6) -> int:
    """One person's rating from 1 to 5."""
    return int(np.clip(round(item.quality + random.normal(0, noise)), 1, 5))


def one_rater(own: Sequence[Item], random: np.random.Generator) -> Iterable[Row]:
    for number, item in enumerate(own):
        yield {"id": number, "prompt": item.prompt, "response": item.output, "rating": rating(item, random)}


def two_raters(own: Sequence[Item], random: np.random.Generator) -> Iterable[Row]:
    for rater in ("ann", "bob"):
        for number, item in enumerate(own):
            labels = {"id": f"item {number}", "rater": rater, "question": item.prompt, "answer": item.output}
            yield {**labels, "rating": rating(item, random)}


def gold_column(own: Sequence[Item], random: np.random.Generator) -> Iterable[Row]:
    for item in own:
        stars = rating(item, random)
        yield {"question": item.prompt, "answer": item.output, "gold": stars, "rating": stars}


def missing_references(own: Sequence[Item], random: np.random.Generator) -> Iterable[Row]:
    for number, item in enumerate(own):
        reference = "" if number % 5 < 2 else item.reference
        labels = {"source": item.prompt, "summary": item.output, "reference": reference}
        yield {**labels, "score": rating(item, random)}


def constant_instruction(own: Sequence[Item], random: np.random.Generator) -> Iterable[Row]:
    for item in own:
        labels = {"instruction": INSTRUCTION, "article": item.reference, "system": item.system, "output": item.output}
        yield {**labels, "stars": rating(item, random)}


def averaged_ratings(own: Sequence[Item], random: np.random.Generator) -> Iterable[Row]:
    for item in own:
        people = [rating(item, random) for _ in range(3)]
        raters = {f"rater_{number}": stars for number, stars in enumerate(people, 1)}
        mean = round(sum(people) / 3, 2)
        yield {"prompt": item.prompt, "model": item.system, "response": item.output, **raters, "human_rating": mean}


BROUGHT: Mapping[str, tuple[Callable[[Sequence[Item], np.random.Generator], Iterable[Row]], str, str, str]] = {
    "one_rater": (one_rater, "prompt", "response", "rating"),
    "two_raters": (two_raters, "question", "answer", "rating"),
    "gold_column": (gold_column, "question", "answer", "rating"),
    "missing_references": (missing_references, "source", "summary", "score"),
    "constant_instruction": (constant_instruction, "instruction", "output", "stars"),
    "averaged_ratings": (averaged_ratings, "prompt", "response", "human_rating"),
}  # name -> rows, and the columns of input, output and rating


def write_brought(name: str, folder: Path) -> Brought:
    """Write one of the tables as CSV."""
    make, asked, answered, target = BROUGHT[name]
    own = items()
    rows = list(make(own, np.random.default_rng(1)))
    path = folder / f"{name}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    places = [item.place for item in own] * (len(rows) // len(own))
    sources = {(str(row[asked]), str(row[answered])): place for row, place in zip(rows, places, strict=True)}
    return Brought(path, target, sources, len(own))
