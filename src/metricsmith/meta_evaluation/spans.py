"""Error spans against error spans, character by character (WMT23 quality estimation, task 2)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.records import ErrorSpan
from metricsmith.stats.correlation import FloatArray
from metricsmith.stats.resampling import (
    Groups,
    Interval,
    PermutationTest,
    jackknife_interval,
    paired_permutation_test,
)
from metricsmith.stats.resampling.clusters import left_out
from metricsmith.stats.resampling.draws import check_level, complete_rows

__all__ = [
    "CharacterF1",
    "LocatedSpans",
    "Policy",
    "character_f1",
    "character_f1_difference",
    "character_f1_interval",
    "character_terms",
    "locate_spans",
    "occurrence_of",
    "occurrences",
]

Policy = Literal["successive", "first", "all", "unique"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
SEVERITIES = {"major": 1, "minor": 2, "critical": 1}
STATISTICS = ("f1", "precision", "recall")


@dataclass(frozen=True, slots=True)
class LocatedSpans:
    """Spans with offsets, and those whose text does not occur where it should."""

    spans: tuple[ErrorSpan, ...]
    unlocated: tuple[ErrorSpan, ...]


@dataclass(frozen=True, slots=True)
class CharacterF1:
    """Precision, recall and F1 of marked characters over a corpus.

    Parameters
    ----------
    precision, recall, f1 : float
        In [0, 1]. Precision is NaN if no character is predicted, recall if none is gold, F1 if neither.
    terms : ndarray, shape (n, 3)
        Credit, predicted and gold characters of each segment, NaN for a segment that is missing: what the three
        are made of, and what `character_f1_interval` rests on.
    unlocated_predicted, unlocated_gold : int
        Spans of the target side that could not be found in their text; they mark nothing.
    missing : int
        Segments without a prediction or without gold, which are left out.
    """

    precision: float
    recall: float
    f1: float
    terms: FloatArray
    unlocated_predicted: int
    unlocated_gold: int
    missing: int


def locate_spans(spans: Sequence[ErrorSpan], text: str, *, policy: Policy = "successive") -> LocatedSpans:
    """Gives offsets to target spans of which only the text is known.

    Parameters
    ----------
    spans : sequence of ErrorSpan
        Those with offsets stay as they are, those of the source side are left out.
    text : str
        The target text. Span texts are looked for letter by letter, case included.
    policy : str
        Which occurrences a span's text stands for. ``successive``: equal texts one after the other, the first span
        the first one, the second the second; where they run out, the last one again. ``first``: always the first.
        ``all``: every one, overlaps included. ``unique``: only a text that occurs once is located. Gold spans of the
        WMT23 side-by-side ratings (en-de), sent through their text and back, had character F1 .980 by ``successive``,
        .971 by ``first``, .943 by ``all`` and .964 by ``unique``; 41 % of the marked texts occur more than once.

    Returns
    -------
    LocatedSpans
        An empty text, or one that does not occur, is unlocated.

    Raises
    ------
    OptionError
        If the policy is unknown.
    """
    if policy not in POLICIES:
        raise OptionError(f"unknown policy {policy!r}{nearest(str(policy), POLICIES)}; known are {', '.join(POLICIES)}")
    located: list[ErrorSpan] = []
    unlocated: list[ErrorSpan] = []
    seen: Counter[str] = Counter()
    for span in spans:
        if span.side != "target":
            continue
        if span.start is not None and span.end is not None:
            located.append(span)
            continue
        starts = occurrences(span.text, text)
        if policy == "unique" and len(starts) > 1:
            starts = []
        elif policy != "all":
            place = seen[span.text] if policy == "successive" else 0
            seen[span.text] += 1
            starts = starts[min(place, len(starts) - 1) :][:1] if starts else []
        located += [replace(span, start=start, end=start + len(span.text)) for start in starts]
        unlocated += [span] * (not starts)
    return LocatedSpans(tuple(located), tuple(unlocated))


def character_terms(
    predicted: Sequence[ErrorSpan], gold: Sequence[ErrorSpan], length: int
) -> tuple[float, float, float]:
    """Credit, predicted and gold characters of one segment.

    A character counts once on either side, however many spans cover it. One that is marked on both sides earns 1
    if some severity is the same, .5 otherwise.

    Parameters
    ----------
    predicted, gold : sequence of ErrorSpan
        With offsets. Severities are ``major``, ``minor`` or ``critical``, which counts as major, in any case. Spans
        of the source side do not count. An end beyond the text is cut. A span without length marks one character;
        at the end of the text, the place after it.
    length : int
        Characters of the target text.

    Raises
    ------
    DataError
        If a span has no offsets, impossible ones, or another severity.
    """
    marks, truth = _marks(predicted, length), _marks(gold, length)
    both = (marks > 0) & (truth > 0)
    same = (marks & truth) > 0
    credit = np.count_nonzero(same) + 0.5 * np.count_nonzero(both & ~same)
    return float(credit), float(np.count_nonzero(marks)), float(np.count_nonzero(truth))


def character_f1(
    predicted: Sequence[Sequence[ErrorSpan] | None],
    gold: Sequence[Sequence[ErrorSpan] | None],
    texts: Sequence[str],
    *,
    policy: Policy = "successive",
) -> CharacterF1:
    """Precision, recall and F1 of marked characters, micro over the corpus: sums of terms, then the ratios.

    Parameters
    ----------
    predicted, gold : sequence of length n of sequences of ErrorSpan
        One per segment. An empty one says that there is no error; None that nobody judged, say because a judge
        failed, which is no statement: the segment is left out and counted.
    texts : sequence of str, length n
        The target texts that were marked.
    policy : str
        Which occurrence a span without offsets stands for; see `locate_spans`.

    Returns
    -------
    CharacterF1
        Exchanging predicted and gold exchanges precision and recall. For several language pairs take the plain mean
        of their values.

    Raises
    ------
    DataError
        If lengths differ, or as `character_terms`.
    OptionError
        If the policy is unknown.

    References
    ----------
    WMT23 shared task on quality estimation, task 2: the rule of its public scorer.

    Examples
    --------
    >>> marked = [[ErrorSpan("major", start=0, end=4)]], [[ErrorSpan("minor", start=2, end=6)]]
    >>> character_f1(*marked, ["mistaken"]).f1
    0.25
    """
    if not len(predicted) == len(gold) == len(texts):
        raise DataError(
            f"{len(predicted)} predictions, {len(gold)} gold annotations and {len(texts)} texts are not aligned: "
            "give one of each per segment"
        )
    terms = np.full((len(texts), 3), math.nan)
    strayed = [0, 0]
    for row, (marks, truth, text) in enumerate(zip(predicted, gold, texts, strict=True)):
        if marks is None or truth is None:
            continue
        sides = [locate_spans(spans, text, policy=policy) for spans in (marks, truth)]
        for side, found in enumerate(sides):
            strayed[side] += len(found.unlocated)
        terms[row] = character_terms(sides[0].spans, sides[1].spans, len(text))
    precision, recall, f1 = (float(_ratio(name, *terms.T)) for name in ("precision", "recall", "f1"))
    return CharacterF1(precision, recall, f1, terms, strayed[0], strayed[1], int(np.isnan(terms[:, 0]).sum()))


def character_f1_interval(
    terms: ArrayLike,
    groups: Groups | None = None,
    *,
    statistic: str = "f1",
    level: float = 0.95,
) -> Interval:
    """Interval of F1, precision or recall by leaving out each group in turn: Student's t on Fisher's z scale.

    Parameters
    ----------
    terms : array_like, shape (n, 3)
        As `CharacterF1.terms`; segments that are missing take no part.
    groups : sequence of hashable, length n, optional
        Segments of one document or source, which are left out together; with more than a thousand groups, several.
    statistic : "f1", "precision" or "recall"
    level : float

    Returns
    -------
    Interval
        As `metricsmith.stats.resampling.jackknife_interval`, within [0, 1]. NaN ends with fewer than three groups, or
        where all characters are those of one group.

    Raises
    ------
    DataError
        If the terms are no such matrix, or lengths differ.
    OptionError
        If an option has no meaning.
    """
    if statistic not in STATISTICS:
        raise OptionError(
            f"unknown statistic {statistic!r}{nearest(statistic, STATISTICS)}; known are {', '.join(STATISTICS)}"
        )
    check_level(level)
    columns, codes = complete_rows(list(_terms(terms).T), groups)

    def value(*sums: FloatArray) -> FloatArray:
        return _ratio(statistic, *sums)

    parts = left_out(value, columns, codes, batched=True)
    return jackknife_interval(float(value(*columns)), parts, level=level, bounds=(0.0, 1.0))


def character_f1_difference(
    first: ArrayLike,
    second: ArrayLike,
    groups: Groups | None = None,
    *,
    permutations: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> tuple[PermutationTest, Interval]:
    """Character F1 of a judge minus that of another on the same segments, with an interval and a paired test.

    The interval leaves out each group in turn; the test swaps the two judges in whole groups. Level and coverage were
    simulated: docs/coverage.md.

    Parameters
    ----------
    first, second : array_like, shape (n, 3)
        `CharacterF1.terms` of both; a segment that is missing in one takes no part.
    groups : sequence of hashable, length n, optional
        Segments of one document or source, which are left out and swapped together.
    permutations, seed : int
        Number of draws of the test, and their seed.
    level : float

    Returns
    -------
    PermutationTest, Interval
        The test's ``observed`` is the difference; its p-value is two-sided. NaN ends as for `character_f1_interval`.

    Raises
    ------
    DataError
        If the terms are no such matrices, or lengths differ.
    OptionError
        If an option has no meaning.
    """
    one, other = _terms(first), _terms(second)
    check_level(level)
    columns, codes = complete_rows([*one.T, *other.T], groups)

    def value(*sums: FloatArray) -> FloatArray:
        return np.asarray(_ratio("f1", *sums[:3]) - _ratio("f1", *sums[3:]))

    estimate = float(value(*columns))
    interval = jackknife_interval(
        estimate, left_out(value, columns, codes, batched=True), level=level, bounds=(-1.0, 1.0)
    )
    test = paired_permutation_test(
        partial(_ratio, "f1"), one, other, groups=groups, permutations=permutations, seed=seed, batched=True,
        standardize=False,
    )  # fmt: skip
    return test, interval


def _terms(terms: ArrayLike) -> FloatArray:
    matrix = np.asarray(terms, dtype=float)
    if matrix.ndim != 2 or matrix.shape[1] != 3:
        raise DataError(f"terms of shape {matrix.shape} are no (n, 3): give CharacterF1.terms")
    return matrix


def _ratio(statistic: str, credit: FloatArray, predicted: FloatArray, gold: FloatArray) -> FloatArray:
    """Returns one of `STATISTICS` along the last axis."""
    right, marked, true = (np.nansum(term, axis=-1) for term in (credit, predicted, gold))
    whole = {"precision": marked, "recall": true, "f1": (marked + true) / 2}[statistic]
    return np.asarray(np.where(whole > 0, right / np.where(whole > 0, whole, 1.0), math.nan))


def _marks(spans: Sequence[ErrorSpan], length: int) -> NDArray[np.uint8]:
    """Returns the severities of each character as bits, shape (length + 1,); the last is the place after the text."""
    marks = np.zeros(length + 1, dtype=np.uint8)
    for span in spans:
        if span.side != "target":
            continue
        bit = SEVERITIES.get(span.severity.lower())
        if bit is None:
            raise DataError(
                f"severity {span.severity!r} has no place in character F1: allowed are major, minor and critical; "
                "leave the span out or map it first"
            )
        if span.start is None or span.end is None:
            raise DataError(f"span {span.text!r} has no offsets: give it some with locate_spans")
        if not 0 <= span.start <= min(span.end, length):
            raise DataError(
                f"span {span.start}:{span.end} does not lie in a text of {length} characters: offsets count from 0, "
                "the end is exclusive, and the text must be the one that was marked"
            )
        marks[span.start : max(min(span.end, length), span.start + 1)] |= bit
    return marks


def occurrences(part: str, text: str) -> list[int]:
    """Returns the places at which a part begins in a text, overlaps included; none for an empty part."""
    starts: list[int] = []
    start = text.find(part) if part else -1
    while start >= 0:
        starts.append(start)
        start = text.find(part, start + 1)
    return starts


def occurrence_of(part: str, text: str, start: int) -> int:
    """Returns the number of the occurrence of a part that begins at `start`, counted from 1."""
    return 1 + sum(place < start for place in occurrences(part, text))
