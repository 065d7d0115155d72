"""CharCut: the share of characters that a reader sees marked when output and reference are compared."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from metricsmith.bank.base import Names, Scores, TextBatch, pair_up
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "Block", "charcut", "compute", "matching_blocks"]

SHORTEST = 3

CARD = MetricCard(
    name="CharCut",
    kind="bank",
    summary=(
        "Character-level edit rate with moved passages: cuts the longest common substrings out of output and "
        "reference and counts the characters left over or moved. Lower is better."
    ),
    formula=(
        "(deleted + inserted + shifted characters) / (characters of the output + of the reference); the "
        "longest common substring is cut out again and again while it has 3 characters or more, then a common "
        "prefix and suffix of any length; blocks outside the heaviest chain that keeps its order are shifts"
    ),
    outputs=(Output("charcut", 0.0, 1.0, False, description="0 equal, 1 nothing in common"),),
    needs=("references",),
    cost="cheap",
    multi_reference="the lowest value over the references; blank references are ignored",
    domains=("machine translation", "general text", "morphologically rich languages"),
    tasks=("translation", "post-editing", "simplification", "grammatical error correction"),
    best_for=(
        "outputs close to the reference, in which word endings and compounds differ",
        "numbers that a reader can check against highlighted differences",
    ),
    not_for=("free-form answers, stories and dialogue", "paraphrases", "factual correctness"),
    limits=(
        "case-sensitive; three characters in a row by chance count as a match",
        "for Chinese or Japanese three characters are a long match",
        "a moved passage costs its length once, however far it moved",
        "of equally long substrings the first in the output, then in the reference, is cut out",
        "divides by both lengths, as the authors' program 1.1 does by default; dividing by twice the output's "
        "length is their other choice. That program also drops word fragments at the ends of a match: over "
        "360 simplifications its values lie .016 higher in the median, .18 at most",
        "autometrics-ai 0.1.0 counts a replaced passage once, not as a deletion and an insertion: over 60 "
        "simplifications its values lie .11 lower in the median, .29 at most",
        "time grows with the product of the lengths when a text repeats itself endlessly",
    ),
    failure_cases=(
        "a removed 'not' costs three or four characters",
        "unrelated English sentences share 20 to 30 % of their characters in short pieces: .8, not 1, is what "
        "having nothing in common looks like",
    ),
    related=("chrf", "ter", "levenshtein_distance", "indel_ratio"),
    papers=(
        "Lardilleux and Lepage 2017, CharCut: human-targeted character-based MT evaluation with loose differences",
    ),
)


@dataclass(frozen=True, slots=True, order=True)
class Block:
    """`size` equal characters, from place `output` in the output and place `reference` in the reference."""

    output: int
    reference: int
    size: int


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Score each pair; the closest reference counts."""
    pairs = pair_up(batch)
    values = [charcut(output, reference) for output, reference in zip(pairs.outputs, pairs.references, strict=True)]
    return dict.fromkeys(outputs, pairs.best(np.array(values, dtype=float), highest=False))


def charcut(output: str, reference: str) -> float:
    """Returns the share of characters deleted, inserted or shifted, in [0, 1]; `reference` must not be empty.

    Examples
    --------
    >>> charcut("new old", "old new")  # 'new' or 'old' is shifted (3), both spaces are left over (2): 5 / 14
    0.35714285714285715
    """
    if output == reference:
        return 0.0
    blocks = matching_blocks(output, reference)
    matched = sum(block.size for block in blocks)
    edits = len(output) + len(reference) - 2 * matched + (matched - _heaviest_chain(blocks))
    return edits / (len(output) + len(reference))


def matching_blocks(output: str, reference: str) -> list[Block]:
    """Returns the common substrings that are cut out, by place in `output`; they overlap in neither text.

    Every common substring of the rest after a cut lies within a longest possible run of equal
    characters of the whole texts, so runs are listed once and trimmed where cuts went through them.
    """
    runs: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for left, right, size in _maximal_runs(output, reference):
        runs[size].append((left, right))
    blocks: list[Block] = []
    cut_left = cut_right = 0  # bit k: character k is cut out
    for size in range(max(runs, default=0), SHORTEST - 1, -1):
        whole = (1 << size) - 1
        for left, right in sorted(runs.pop(size, ())):
            free = whole & ~(cut_left >> left | cut_right >> right)
            if free == whole:
                blocks.append(Block(left, right, size))
                cut_left |= whole << left
                cut_right |= whole << right
            elif free & free >> 1 & free >> 2:
                for start, rest in _pieces(free):
                    runs[rest].append((left + start, right + start))
    blocks += _ends(output, reference, cut_left, cut_right)
    return sorted(blocks)


def _maximal_runs(output: str, reference: str) -> Iterator[tuple[int, int, int]]:
    """Yields place in the output, place in the reference and size of runs of equal characters that cannot grow."""
    places: dict[str, list[int]] = defaultdict(list)
    for place in range(len(reference) - SHORTEST + 1):
        places[reference[place : place + SHORTEST]].append(place)
    begun: dict[int, int] = {}  # where the next character in the reference would stand -> start in the output
    for here in range(len(output) - SHORTEST + 2):
        going = {}
        for place in places.get(output[here : here + SHORTEST], ()):
            going[place + 1] = begun.pop(place, here)
        for place, start in begun.items():
            yield start, place - (here - start), here - start + SHORTEST - 1
        begun = going


def _pieces(free: int) -> Iterator[tuple[int, int]]:
    """Yields start and size of each run of at least `SHORTEST` one bits."""
    start = 0
    while free:
        skip = (free & -free).bit_length() - 1
        free >>= skip
        size = (~free & (free + 1)).bit_length() - 1
        if size >= SHORTEST:
            yield start + skip, size
        start += skip + size
        free >>= size


def _ends(output: str, reference: str, cut_left: int, cut_right: int) -> list[Block]:
    """Returns the common prefix and suffix, as far as they are not cut out yet."""
    blocks = []
    limit = min(len(output), len(reference))
    size = 0
    while size < limit and output[size] == reference[size] and not (cut_left | cut_right) >> size & 1:
        size += 1
    if size:
        blocks.append(Block(0, 0, size))
        cut_left |= (1 << size) - 1
        cut_right |= (1 << size) - 1
    left, right = len(output), len(reference)
    while left and right and output[left - 1] == reference[right - 1]:
        if (cut_left >> left - 1 | cut_right >> right - 1) & 1:
            break
        left, right = left - 1, right - 1
    if left < len(output):
        blocks.append(Block(left, right, len(output) - left))
    return blocks


def _heaviest_chain(blocks: Sequence[Block]) -> int:
    """The most characters in blocks that stand in the same order in both texts; `blocks` by place in the output."""
    ends: list[int] = []  # places in the reference, increasing ...
    weights: list[int] = []  # ... and the heaviest chain that ends there, increasing too
    for block in blocks:
        place = bisect_left(ends, block.reference)
        weight = block.size + (weights[place - 1] if place else 0)
        beaten = place
        while beaten < len(ends) and weights[beaten] <= weight:
            beaten += 1
        ends[place:beaten] = [block.reference]
        weights[place:beaten] = [weight]
    return weights[-1] if weights else 0
