"""Translation edit rate with phrase shifts, equal to sacrebleu's and several times faster.

Words become characters, so that a shift is string slicing and rapidfuzz measures all candidate shifts of
a step in one call. sacrebleu measures inside a beam; `_needs_beam` tells when the beam can matter, and
only then is the slow banded table filled.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from metricsmith.bank.base import Names, Scores, TextBatch
from metricsmith.bank.ngrams import symbols
from metricsmith.records import MetricCard, Output

__all__ = ["CARD", "compute", "translation_edits"]

# Limits of Tercom and of sacrebleu 2.6.
_MAX_SHIFT_SIZE = 10
_MAX_SHIFT_DISTANCE = 50
_MAX_CANDIDATES = 1000
_BEAM = 25
_INFINITY = 10**9

CARD = MetricCard(
    name="TER",
    kind="bank",
    summary=(
        "Edit rate in words: how many words must be inserted, deleted, replaced or moved as a block to turn "
        "the output into the reference, per hundred reference words."
    ),
    formula=(
        "100 x (insertions + deletions + substitutions + block shifts) / reference words; shifts found "
        "greedily; lower-cased, white-space tokens, marks stay attached to words"
    ),
    outputs=(Output("ter", 0.0, None, False, half=100.0, description="edits per 100 reference words; 0 is equal"),),
    needs=("references",),
    cost="cheap",
    multi_reference=(
        "the fewest edits over the references, divided by their mean length, as in the tool that defines the "
        "number; blank references are ignored"
    ),
    domains=("machine translation", "general text"),
    tasks=("translation", "post-editing effort", "grammatical error correction", "simplification"),
    best_for=(
        "estimating the work of a human post-editor",
        "outputs whose phrases may be reordered without much harm",
    ),
    not_for=(
        "summaries and other outputs much shorter or longer than the reference",
        "Chinese, Japanese or Thai",
    ),
    limits=(
        "no upper end: an output three times as long as its reference scores about 200",
        "every word weighs the same, 'not' as much as 'the'",
        "the greedy search for shifts may miss the cheapest sequence of edits",
        "the search for shifts ends after 1,000 candidates, which long texts reach",
    ),
    failure_cases=(
        "a correct paraphrase costs as much as a wrong sentence of its length",
        "'cat' against 'cat.' is a full edit",
    ),
    related=("levenshtein_distance", "charcut", "bleu", "chrf"),
    papers=("Snover et al. 2006, A study of translation edit rate with targeted human annotation",),
    backend="rapidfuzz (search by metricsmith, equal to sacrebleu 2)",
    backend_license="MIT",
)


def compute(batch: TextBatch, outputs: Names) -> Scores:
    """Score every row against its references."""
    scores = np.full(len(batch), math.nan)
    for row, (output, texts) in enumerate(zip(batch.outputs, batch.references, strict=True)):
        references = [text.lower().split() for text in texts if text.strip()]
        if references:
            candidate, *targets = symbols(output.lower().split(), *references)
            edits = min(translation_edits(candidate, target) for target in targets)
            scores[row] = 100.0 * edits * len(targets) / sum(map(len, targets))
    return dict.fromkeys(outputs, scores)


def translation_edits(candidate: str, reference: str) -> int:
    """Returns the edits and block shifts that turn one string of symbols into another, one symbol per word.

    Equals the first number that sacrebleu 2.6's ``translation_edit_rate`` returns for the words.
    """
    from rapidfuzz.distance import Levenshtein

    shifts = tried = 0
    while candidate != reference:
        gain, shifted, tried = _best_shift(candidate, reference, tried)
        if gain <= 0 or tried >= _MAX_CANDIDATES:
            break
        shifts += 1
        candidate = shifted
    distance = int(Levenshtein.distance(candidate, reference))
    if _needs_beam(distance, len(candidate), len(reference)):
        distance = _table(candidate, reference)[-1][-1]
    return shifts + distance


@dataclass(frozen=True, slots=True)
class _Alignment:
    """One optimal alignment: for each reference place the last candidate place used so far (-1: none).

    `candidate_errors[i]` and `reference_errors[i]` count the misaligned places before place i.
    """

    distance: int
    places: list[int]
    candidate_errors: list[int]
    reference_errors: list[int]


def _best_shift(candidate: str, reference: str, tried: int) -> tuple[int, str, int]:
    """Returns the saving of the best shift, the shifted text, and the number of candidates tried by then.

    Of equal savings the longest block wins, then the earliest, then the one moved to the earliest place.
    """
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    aligned = _align(candidate, reference)
    moves: list[tuple[int, int, int]] = []
    for start, place, length in _common_blocks(candidate, reference):
        wrong_here = aligned.candidate_errors[start + length] - aligned.candidate_errors[start]
        wrong_there = aligned.reference_errors[place + length] - aligned.reference_errors[place]
        if not wrong_here or not wrong_there or start <= aligned.places[place] < start + length:
            continue  # all right already on either side, or aligned with itself: moving the block is pointless
        moves.extend((-length, start, target) for target in _targets(aligned.places, place, length))
        if tried + len(moves) >= _MAX_CANDIDATES:
            break
    if not moves:
        return 0, candidate, tried
    shifted = [_shift(candidate, start, -length, target) for length, start, target in moves]
    distances = cdist([reference], shifted, scorer=Levenshtein.distance, dtype=np.int64)[0].tolist()
    # Lowest distance first; a distance in the beam is never below the plain one, so a candidate is only
    # settled when its own exact distance comes up.
    queue = [(distance, *move, index) for index, (distance, move) in enumerate(zip(distances, moves, strict=True))]
    heapq.heapify(queue)
    settled: set[int] = set()
    while True:
        distance, length, start, target, index = queue[0]
        if index in settled or not _needs_beam(distance, len(candidate), len(reference)):
            return aligned.distance - distance, shifted[index], tried + len(moves)
        settled.add(index)
        exact = _table(shifted[index], reference)[-1][-1]
        heapq.heapreplace(queue, (exact, length, start, target, index))


def _common_blocks(candidate: str, reference: str) -> Iterator[tuple[int, int, int]]:
    """Yields equal blocks (start in candidate, start in reference, length), prefixes of a block included."""
    places = defaultdict(list)
    for place, symbol in enumerate(reference):
        places[symbol].append(place)
    for start, symbol in enumerate(candidate):
        for place in places.get(symbol, ()):
            if abs(place - start) > _MAX_SHIFT_DISTANCE:
                continue
            longest = min(_MAX_SHIFT_SIZE, len(candidate) - start, len(reference) - place)
            for length in range(1, longest + 1):
                if candidate[start + length - 1] != reference[place + length - 1]:
                    break
                yield start, place, length


def _targets(places: Sequence[int], place: int, length: int) -> Iterator[int]:
    """Yields places in the candidate before which to insert the block; equal neighbours once."""
    last = -1
    for offset in range(place - 1, place + length):
        target = 0 if offset < 0 else places[offset] + 1
        if target != last:
            yield target
        last = target


def _shift(text: str, start: int, length: int, target: int) -> str:
    """Moves ``text[start : start + length]`` to before place `target`."""
    block, end = text[start : start + length], start + length
    if target < start:
        return text[:target] + block + text[target:start] + text[end:]
    if target > end:
        return text[:start] + text[end:target] + block + text[target:]
    return text[:start] + text[end : length + target] + block + text[length + target :]


def _needs_beam(distance: int, candidate_length: int, reference_length: int) -> bool:
    """Returns True if the beam may cut off every optimal alignment.

    An alignment with `distance` edits has at most (distance + length difference) / 2 insertions (or
    deletions), so it strays at most one place further than that from the beam's middle.
    """
    return distance + abs(reference_length - candidate_length) > 2 * (_BEAM - 2)


def _table(candidate: str, reference: str) -> list[list[int]]:
    """Returns edit distances of all prefixes, filled only within sacrebleu's beam around the diagonal."""
    width = len(reference) + 1
    ratio = len(reference) / len(candidate) if candidate else 1.0
    beam = math.ceil(ratio / 2 + _BEAM) if ratio / 2 > _BEAM else _BEAM
    table = [list(range(width))]
    for row, symbol in enumerate(candidate, start=1):
        middle = math.floor(row * ratio)
        first = max(0, middle - beam)
        end = width if row == len(candidate) else min(width, middle + beam)
        above, current = table[-1], [_INFINITY] * width
        if first == 0:
            current[0] = above[0] + 1
        left = current[0] if first == 0 else _INFINITY
        for column in range(max(first, 1), end):
            best = above[column - 1] + (symbol != reference[column - 1])
            best = min(best, above[column] + 1, left + 1)
            current[column] = left = best
        table.append(current)
    return table


def _align(candidate: str, reference: str) -> _Alignment:
    """Reads one optimal alignment out of the table, from the end.

    Where several steps are optimal, keeping or replacing a word comes first, then dropping a word of the
    candidate, as in Tercom.
    """
    table = _table(candidate, reference)
    row, column = len(candidate), len(reference)
    places = [0] * column
    wrong_candidate, wrong_reference = [1] * row, [1] * column
    while row or column:
        cost = table[row][column]
        same = row > 0 and column > 0 and candidate[row - 1] == reference[column - 1]
        if row and column and table[row - 1][column - 1] + (not same) == cost:
            row, column = row - 1, column - 1
            places[column] = row
            if same:
                wrong_candidate[row] = wrong_reference[column] = 0
        elif row and table[row - 1][column] + 1 == cost:
            row -= 1
        else:
            column -= 1
            places[column] = row - 1
    return _Alignment(
        table[-1][-1],
        places,
        list(accumulate(wrong_candidate, initial=0)),
        list(accumulate(wrong_reference, initial=0)),
    )
