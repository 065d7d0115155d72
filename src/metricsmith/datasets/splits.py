"""Hold-outs and cross-validation folds that never part a group, and the rows that belong together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import DataError, OptionError
from metricsmith.metric import content_hash

__all__ = [
    "LONG_OUTPUT", "Split", "connected_parts", "content_order", "effective_groups", "folds", "group_of", "holdout",
    "instructions", "long_output",
]  # fmt: skip

# With two sides and a rating that few groups vary in, a handful of redraws is enough or none will do.
_REDRAWS = 100
_LABELS = frozenset({"id", "group", "own_group"})
_ATOMS = frozenset({int, float, bool, str, type(None)})  # what `Example.toDict` leaves as it is


@dataclass(frozen=True)
class Split:
    """Indices of the training and the held-out rows, ascending, disjoint, together all rows."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]


def group_of(row: dspy.Example, number: int) -> str:
    """The row's group, or else its input, or else the row itself, whose place is `number`."""
    if row.get("group") is not None:
        return str(row["group"])
    return f"input {content_hash(row['input'])}" if row.get("input") else f"row {number}"


def effective_groups(groups: Sequence[str], texts: Sequence[Hashable] | None = None) -> NDArray[np.intp]:
    """Number the groups, merging those that share a row with identical texts, or an output of eight words or more.

    Where each row is its own group, the same output to the same input would otherwise sit on both sides; and nobody
    hits upon the same eight words by chance, even to one input. Equal shorter outputs ("yes") are no leak.

    Parameters
    ----------
    groups : sequence of str, shape (n,)
        Every row's group.
    texts : sequence of hashable, shape (n,), optional
        Every row's texts, usually (input, output); of a tuple the last is the output. Rows without any text (empty,
        None, or a tuple of these) are never identical. None merges nothing.

    Returns
    -------
    int array, shape (n,)
        Group numbers from 0 in order of first appearance.

    Raises
    ------
    OptionError
        If `groups` and `texts` differ in length.

    Examples
    --------
    >>> effective_groups(["a", "b", "c"], [("q", "x"), ("q", "y"), ("q", "x")]).tolist()
    [0, 1, 0]
    """
    if texts is not None and len(texts) != len(groups):
        raise OptionError(
            f"{len(groups)} groups and {len(texts)} texts; there must be one of each per row: pass lists of one length"
        )
    if texts is None:
        return connected_parts(groups)
    known = [text if (any(text) if isinstance(text, tuple) else text) else None for text in texts]
    outputs = [text[-1] if isinstance(text, tuple) else None for text in texts]
    return connected_parts(groups, known, [long_output(text) if isinstance(text, str) else None for text in outputs])


def content_order(rows: Sequence[Any], target: str = "") -> NDArray[np.intp]:
    """The places of rows in an order that follows from their contents and not from the order in which they came.

    What depends on the order of rows (draws by a seed, examples that are shown, ties, the last digits of a sum) is
    then the same for the same rows in any order. The order has no meaning and no trend in it.

    Parameters
    ----------
    rows : sequence of dspy.Example, length n
        All fields count but ``id``, ``group`` and ``own_group``, which may be numbers of rows. Rows of equal content go
        by the contents of their groups, then by their ratings, and by their ids last of all.
    target : str
        The field of the rating, so that other ratings of test rows change no split.

    Returns
    -------
    int array, shape (n,)
        A permutation.
    """
    groups = [str(row.get("group")) for row in rows]
    apart = {*_LABELS, target}
    fields = [{name: value for name, value in _plain(row).items() if name not in apart} for row in rows]
    contents = list(map(content_hash, fields))
    rated = [content_hash(content, row.get(target)) for content, row in zip(contents, rows, strict=True)]
    ids = [str(row.get("id")) for row in rows]
    keys = [*zip(contents, _by_group(groups, contents), rated, _by_group(groups, rated), groups, ids, strict=True)]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)


def _plain(row: Any) -> dict[str, Any]:
    """``row.toDict()``, but dicts of plain values are taken whole, as they may hold thousands of numbers."""
    items = row.items(include_dspy=True)
    easy = {name: own for name, own in items if isinstance(own, dict) and set(map(type, own.values())) <= _ATOMS}
    return {**type(row)({name: value for name, value in items if name not in easy}).toDict(), **easy}


def _by_group(groups: Sequence[Hashable], contents: Sequence[str]) -> list[str]:
    """One hash of the contents of each row's group."""
    members: dict[Hashable, list[str]] = {}
    for group, content in zip(groups, contents, strict=True):
        members.setdefault(group, []).append(content)
    hashes = {group: content_hash(sorted(own)) for group, own in members.items()}
    return [hashes[group] for group in groups]


def holdout(
    groups: Sequence[str],
    texts: Sequence[Hashable] | None = None,
    *,
    fraction: float = 0.3,
    seed: int = 0,
    ratings: Sequence[float] | NDArray[np.float64] | None = None,
) -> Split:
    """Hold out whole groups for testing.

    Groups are visited in an order that their contents and the seed decide, not the order of the rows; each goes to
    the test side if that brings the number of test rows closer to ``fraction * n``. At least one group stays on
    either side.

    Parameters
    ----------
    groups, texts
        As in `effective_groups`.
    fraction : float
        Share of the rows to hold out, above 0 and below 1.
    seed : int
        Decides the order.
    ratings : sequence of float, shape (n,), optional
        If given, orders are redrawn (up to 100 times, seeded) until the ratings vary on both sides; that
        is all the stratification there is.

    Returns
    -------
    Split

    Raises
    ------
    DataError
        If there are fewer than two groups.
    OptionError
        If `fraction` is not between 0 and 1.
    """
    if not 0 < fraction < 1:
        raise OptionError(
            f"test fraction {fraction!r} is not possible; it must be above 0 and below 1: 0.3 holds out 30 "
            f"% of the rows"
        )
    numbers = _numbered(groups, texts)
    sizes = np.bincount(numbers)
    _check_groups(len(sizes), 2, "a held-out test")
    (split,) = _drawn(lambda rng: (_one_holdout(numbers, sizes, fraction, rng),), seed, ratings)
    return split


def folds(
    groups: Sequence[str],
    k: int,
    seed: int = 0,
    texts: Sequence[Hashable] | None = None,
    *,
    ratings: Sequence[float] | NDArray[np.float64] | None = None,
) -> tuple[Split, ...]:
    """Cut the rows into `k` folds of whole groups, about equal in rows; each is the test side once.

    Groups are taken from the largest to the smallest, equal ones in an order that their contents and the seed
    decide, each into the fold that has the fewest rows.

    Parameters
    ----------
    groups, texts
        As in `effective_groups`.
    k : int
        Number of folds, at least 2 and at most the number of groups.
    seed : int
        Decides the order of equal groups.
    ratings : sequence of float, shape (n,), optional
        As in `holdout`.

    Returns
    -------
    tuple of Split, length k

    Raises
    ------
    DataError
        If there are fewer groups than folds.
    OptionError
        If `k` is below 2.
    """
    if k < 2:
        raise OptionError(f"{k} folds are not possible; at least 2 are needed: 5 is usual (--cv 5)")
    numbers = _numbered(groups, texts)
    sizes = np.bincount(numbers)
    _check_groups(len(sizes), k, f"{k} folds")
    return _drawn(lambda rng: _one_folding(numbers, sizes, k, rng), seed, ratings)


def _numbered(groups: Sequence[str], texts: Sequence[Hashable] | None) -> NDArray[np.intp]:
    """Effective groups, numbered in an order that follows from the texts of their rows.

    Without texts the names of the groups stand for them. Groups of equal texts stay in order of appearance.
    """
    numbers = effective_groups(groups, texts)
    names = _by_group(numbers.tolist(), [content_hash(text) for text in (groups if texts is None else texts)])
    name_of = dict(zip(numbers.tolist(), names, strict=True))
    return np.argsort(sorted(range(len(name_of)), key=name_of.__getitem__))[numbers]


def _one_holdout(
    numbers: NDArray[np.intp], sizes: NDArray[np.intp], fraction: float, rng: np.random.Generator
) -> Split:
    wanted = fraction * len(numbers)
    order = rng.permutation(len(sizes))
    held: list[int] = []
    rows = 0
    for group in order:
        if len(held) < len(sizes) - 1 and abs(rows + sizes[group] - wanted) < abs(rows - wanted):
            held.append(int(group))
            rows += int(sizes[group])
    if not held:
        held = [int(min(order, key=lambda group: sizes[group]))]
    return _split(np.isin(numbers, held))


def _one_folding(
    numbers: NDArray[np.intp], sizes: NDArray[np.intp], k: int, rng: np.random.Generator
) -> tuple[Split, ...]:
    order = rng.permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    filled = np.zeros(k, dtype=np.intp)
    fold_of = np.empty(len(sizes), dtype=np.intp)
    for group in order:
        fold = int(np.argmin(filled))
        fold_of[group] = fold
        filled[fold] += sizes[group]
    return tuple(_split(fold_of[numbers] == fold) for fold in range(k))


def _split(test: NDArray[np.bool_]) -> Split:
    return Split(train=np.flatnonzero(~test), test=np.flatnonzero(test))


def _drawn(
    draw: Callable[[np.random.Generator], tuple[Split, ...]],
    seed: int,
    ratings: Sequence[float] | NDArray[np.float64] | None,
) -> tuple[Split, ...]:
    """The first of up to 101 draws in which the ratings vary among the training and the held-out rows of each split.

    The last draw if they vary in none.
    """
    rng = np.random.default_rng(seed)
    values = None if ratings is None else np.asarray(ratings, dtype=float)
    for _ in range(_REDRAWS + 1):
        splits = draw(rng)
        parts = [] if values is None else [values[rows] for split in splits for rows in (split.train, split.test)]
        if all(np.unique(part[~np.isnan(part)]).size > 1 for part in parts):
            break
    return splits


def _check_groups(present: int, needed: int, purpose: str) -> None:
    if present < needed:
        raise DataError(
            f"the rated rows form {present} group{'' if present == 1 else 's'}, too few for {purpose}; at least "
            f"{needed} groups are needed, since rows of one group never sit on both sides: name a finer group column "
            f"with group=... (--group), rate rows of more sources, or ask for fewer folds"
        )


LONG_OUTPUT = 8  # words; two systems rarely hit upon the same so many by themselves
_MOST_OF_A_SOURCE = 1 / 3  # share of all outputs; what more of them share says what to do, not about what


def connected_parts(*keys: Sequence[Hashable]) -> NDArray[np.intp]:
    """Number the parts into which shared keys join n rows, over any number of steps.

    Parameters
    ----------
    *keys : sequence of hashable, shape (n,)
        Rows that have an entry in common, each within one sequence, belong together. None joins nothing.

    Returns
    -------
    int array, shape (n,)
        Part numbers from 0 in order of first appearance.

    Examples
    --------
    >>> connected_parts(["a", "b", "c", "d"], ["x", None, "x", None]).tolist()
    [0, 1, 0, 2]
    """
    parent = list(range(len(keys[0])))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    for column in keys:
        first: dict[Hashable, int] = {}
        for row, key in enumerate(column):
            if key is not None:
                parent[root(row)] = root(first.setdefault(key, row))
    numbers: dict[int, int] = {}
    return np.array([numbers.setdefault(root(row), len(numbers)) for row in range(len(parent))], dtype=np.intp)


def long_output(text: str) -> str | None:
    """The words of an output of eight words or more, which is nobody else's by chance; None for a shorter one."""
    words = text.split()
    return " ".join(words) if len(words) >= LONG_OUTPUT else None


def instructions(values: Sequence[str], outputs: Sequence[Hashable]) -> dict[str, int]:
    """The values that more than a third of the outputs share, and how many do: instructions, no sources.

    Of two inputs each is an instruction by this rule: with two groups nothing could be tested. A group column that is
    named keeps them whole.

    Parameters
    ----------
    values : sequence of str, shape (n,)
        Ids or inputs; empty ones are none.
    outputs : sequence of hashable, shape (n,)
        Equal for rows that rate one output, which then counts once.
    """
    counts = Counter(value for value, _ in set(zip(values, outputs, strict=True)))
    most = len(set(outputs)) * _MOST_OF_A_SOURCE
    return {value: count for value, count in counts.items() if value and count > most}
