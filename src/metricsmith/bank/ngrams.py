"""N-grams of many texts at once: clipped matches of rows, and numbers for equal n-grams of a batch.

For the matches below BLEU, chrF, GLEU and ROUGE-N a text is a string of symbols: its characters, or one character per
distinct word (`symbols`). Windows of a fixed length become integers; one sort then serves every n-gram length, because
shorter n-grams are the leading bits of longer ones. For the table below CIDEr, PARENT and SARI equal n-grams get equal
numbers (`number_grams`); longer n-grams are numbered by extending shorter ones, so that neither vocabulary nor length
is limited.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from metricsmith.stats.correlation import IntArray

__all__ = ["Grams", "IntArray", "ngram_totals", "number_grams", "shared_ngrams", "symbols"]

_CHUNK = 512
_KEY_BITS = 63


def symbols(*texts: Sequence[Hashable]) -> tuple[str, ...]:
    """Writes token sequences as strings, one character per distinct token, equal tokens alike.

    Examples
    --------
    >>> a, b = symbols(["the", "cat", "the"], ["a", "cat"])
    >>> len(a), a[0] == a[2], a[1] == b[1]
    (3, True, True)
    """
    known: dict[Hashable, str] = {}
    return tuple("".join([known.setdefault(token, chr(len(known))) for token in tokens]) for tokens in texts)


def ngram_totals(lengths: Sequence[int], order: int) -> IntArray:
    """Returns the number of n-grams of length 1 to `order` in texts of these lengths: shape (n, order)."""
    return np.asarray(np.maximum(np.asarray(lengths, dtype=np.int64)[:, None] - np.arange(order), 0), dtype=np.int64)


def shared_ngrams(rows: Sequence[Sequence[str]], order: int) -> IntArray:
    """Counts the n-grams that each row's first text shares with its other texts.

    An n-gram counts as often as it occurs in the first text, at most as often as in that one of the
    other texts where it is most frequent (Papineni et al. 2002, modified precision).

    Parameters
    ----------
    rows : sequence of sequence of str
        n rows; each holds a candidate and one or more references as strings of symbols.
    order : int
        Longest n-gram.

    Returns
    -------
    int array (n, order)
        Column k counts n-grams of length k + 1; 0 where a text is too short. A row's counts do not depend
        on the other rows.
    """
    matches = np.zeros((len(rows), order), dtype=np.int64)
    for start in range(0, len(rows), _CHUNK):
        matches[start : start + _CHUNK] = _count(rows[start : start + _CHUNK], order)
    return matches


def _count(rows: Sequence[Sequence[str]], order: int) -> IntArray:
    codes, lengths, bits = _encode([text for row in rows for text in row])
    sides = np.array([side for row in rows for side in range(len(row))], dtype=np.int64)
    owners = np.repeat(np.arange(len(rows), dtype=np.int64), [len(row) for row in rows])
    width = int(sides.max()) + 1
    side_bits = (width - 1).bit_length()
    if (len(rows) - 1).bit_length() + order * bits + side_bits > _KEY_BITS:
        if len(rows) == 1:
            return _count_wide(rows[0], order)
        half = len(rows) // 2
        return np.concatenate([_count(rows[:half], order), _count(rows[half:], order)])
    keys = np.repeat(owners, lengths)
    for window in _windows(codes, lengths, order):
        keys = keys << bits | window
    keys = np.sort(keys << side_bits | np.repeat(sides, lengths))
    return _match_sorted(keys >> side_bits, keys & ((1 << side_bits) - 1), len(rows), width, order, bits)


def _encode(texts: Sequence[str]) -> tuple[IntArray, IntArray, int]:
    """Symbols as small integers from 1, the texts' lengths, and the bits that one integer needs."""
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    if not len(points):
        return np.empty(0, dtype=np.int64), lengths, 1
    present = np.zeros(int(points.max()) + 1, dtype=np.int64)
    present[points] = 1
    ranks = np.cumsum(present)
    return ranks[points], lengths, int(ranks[-1]).bit_length()


def _windows(codes: IntArray, lengths: IntArray, order: int) -> list[IntArray]:
    """The symbols 0 to order - 1 places to the right of each symbol, 0 past the end of its text."""
    places = np.arange(len(codes)) + np.repeat(np.arange(len(lengths)) * (order - 1), lengths)
    padded = np.zeros(len(codes) + len(lengths) * (order - 1) + order, dtype=np.int64)
    padded[places] = codes
    return [padded[places + offset] for offset in range(order)]


def _match_sorted(keys: IntArray, sides: IntArray, rows: int, width: int, order: int, bits: int) -> IntArray:
    """Clipped matches from sorted keys (row, symbols of the window) and the side that each stands on."""
    matches = np.zeros((rows, order), dtype=np.int64)
    for length in range(1, order + 1):
        grams = keys >> bits * (order - length)
        whole = (grams & ((1 << bits) - 1)) != 0
        keys, sides, grams = keys[whole], sides[whole], grams[whole]
        if not len(grams):
            break
        first = np.concatenate(([True], grams[1:] != grams[:-1]))
        group = np.cumsum(first) - 1
        counts = np.bincount(group * width + sides, minlength=(int(group[-1]) + 1) * width).reshape(-1, width)
        most = counts[:, 1] if width == 2 else counts[:, 1:].max(axis=1, initial=0)
        clipped = np.minimum(counts[:, 0], most)
        matches[:, length - 1] = np.bincount(grams[first] >> bits * length, weights=clipped, minlength=rows)
    return matches


def _count_wide(row: Sequence[str], order: int) -> IntArray:
    """Counts one row whose symbols are too many to pack into 63 bits."""
    counted = []
    for length in range(1, order + 1):
        candidate, *others = (
            Counter([text[start : start + length] for start in range(len(text) - length + 1)]) for text in row
        )
        most: Counter[str] = Counter()
        for other in others:
            most |= other
        counted.append((candidate & most).total())
    return np.array([counted], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Grams:
    """All n-grams of one length, in the order of the texts: m of them.

    Parameters
    ----------
    owners : int array (m,)
        The text in which the n-gram stands.
    places : int array (m,)
        The place at which it begins, counted through all texts.
    numbers : int array (m,)
        From 0, equal exactly where n-grams are equal.
    different : int
        The number of different ones.
    """

    owners: IntArray
    places: IntArray
    numbers: IntArray
    different: int


def number_grams(texts: Sequence[Sequence[str]], order: int) -> Iterator[Grams]:
    """Yields the n-grams of tokenised texts, n = 1 to `order`.

    Examples
    --------
    >>> one, two = number_grams([["a", "b", "a"], ["b", "a"]], 2)
    >>> one.numbers.tolist(), two.numbers.tolist(), two.owners.tolist()
    ([0, 1, 0, 1, 0], [0, 1, 1], [0, 0, 1])
    """
    known: dict[str, int] = {}
    tokens = np.array([known.setdefault(token, len(known)) for text in texts for token in text], dtype=np.int64)
    owners = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    places = np.arange(len(tokens))
    numbers, different = tokens, len(known)
    for length in range(1, order + 1):
        yield Grams(owners[places], places, numbers, different)
        longer = places + length < len(tokens)
        longer[longer] = owners[places[longer] + length] == owners[places[longer]]
        places = places[longer]
        found, numbers = np.unique(numbers[longer] * len(known) + tokens[places + length], return_inverse=True)
        different = len(found)
