"""Equal n-grams get equal numbers, over all texts of a batch: the table below CIDEr and PARENT.

Longer n-grams are numbered by extending shorter ones, so that neither vocabulary nor length is limited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Grams", "IntArray", "number_grams"]

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Grams:
    """All n-grams of one length, in the order of the texts: m of them.

    Parameters
    ----------
    owners : int array (m,)
        Which text the n-gram stands in.
    places : int array (m,)
        Where it begins, counted through all texts.
    numbers : int array (m,)
        From 0, equal exactly where n-grams are equal.
    different : int
        How many different numbers there are.
    """

    owners: IntArray
    places: IntArray
    numbers: IntArray
    different: int


def number_grams(texts: Sequence[Sequence[str]], order: int) -> Iterator[Grams]:
    """The n-grams of tokenised texts, n = 1 to `order`.

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
