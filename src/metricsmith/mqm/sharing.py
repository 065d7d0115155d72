"""Errors that several annotations of one translation have in common."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import OptionError
from metricsmith.mqm.weights import SEVERITIES, category_path, severity_name
from metricsmith.records import ErrorSpan

__all__ = ["SharedError", "shared_errors"]

OF_ANOTHER_KIND = 1 - 1e-6  # of two markings that fit equally well, the one of the same category is the match
ALIKE = 0.5  # share of the characters of two spans that both cover, from which on they mark the same error


@dataclass(frozen=True, slots=True)
class SharedError:
    """An error that several annotations mark.

    Parameters
    ----------
    span : ErrorSpan
        As the annotation marks it that most others agree with, in the severity that most of them give it; of two
        severities that are equally frequent the lighter one.
    found : int
        The number of annotations that mark it.
    """

    span: ErrorSpan
    found: int


def shared_errors(annotations: Sequence[Sequence[ErrorSpan]], *, share: float = 0.5) -> tuple[SharedError, ...]:
    """Returns the errors that at least a share of the annotations mark, worst first.

    Two errors of different annotations are the same if they are on the same side and their characters overlap: at least
    half of those that either covers are covered by both, or they are of the same category (before the slash). Errors
    that have no place in the text are the same if their whole categories are. An error is taken once from each
    annotation. Joining all that overlap would make one error of a sentence that is marked as a whole and every word in
    it; demanding equal spans would find nothing twice.

    Parameters
    ----------
    annotations : sequence of sequence of ErrorSpan
        One for each run or rater, all of the same texts; an empty one says that there is no error.
    share : float
        In (0, 1].

    Returns
    -------
    tuple of SharedError
        By severity, then by the number of annotations that mark it, then by place. The order of the annotations does
        not decide what is shared, except between markings that are equally good.

    Raises
    ------
    OptionError
        If `share` is out of range.
    DataError
        If a severity is none of `SEVERITIES`.

    Examples
    --------
    >>> runs = [[ErrorSpan("major", "accuracy", 0, 4)], [ErrorSpan("minor", "style", 1, 4)], []]
    >>> [(error.span.severity, error.found) for error in shared_errors(runs)]
    [('minor', 2)]
    """
    if not 0 < share <= 1:
        raise OptionError(f"share={share!r} must be above 0 and at most 1")
    owners = np.array([run for run, spans in enumerate(annotations) for _ in spans], dtype=int)
    spans = [span for annotation in annotations for span in annotation]
    needed = max(1, math.ceil(share * len(annotations) - 1e-9))
    alike = _likeness(spans)
    found: list[SharedError] = []
    left = np.ones(len(spans), dtype=bool)
    while left.any():
        members = _best(alike, owners, left, spans)
        if len(members) < needed:
            break
        left[members] = False
        # The best member comes first; the span is that of the first one that has the most frequent severity.
        severities = [severity_name(spans[member].severity) for member in members]
        counts = Counter(severities)
        agreed = max(counts, key=lambda name: (counts[name], SEVERITIES.index(name)))
        found.append(SharedError(spans[members[severities.index(agreed)]], len(members)))
    return tuple(sorted(found, key=_rank))


def _best(
    alike: NDArray[np.float64], owners: NDArray[np.int_], left: NDArray[np.bool_], spans: Sequence[ErrorSpan]
) -> list[int]:
    """Returns the error that most annotations mark among those left, followed by its closest match in each of them."""
    chosen: list[tuple[tuple[float, ...], list[int]]] = []
    for place in np.flatnonzero(left).tolist():
        matches: dict[int, int] = {}
        for other in np.flatnonzero(left & (alike[place] > 0)).tolist():
            run = int(owners[other])
            if run != owners[place] and (run not in matches or alike[place, other] > alike[place, matches[run]]):
                matches[run] = other
        members = [place, *matches.values()]
        closeness = float(alike[place, members].sum())
        chosen.append(((-len(members), -closeness, _length(spans[place]), place), members))
    return min(chosen)[1]


def _likeness(spans: Sequence[ErrorSpan]) -> NDArray[np.float64]:
    """Returns the likeness of errors, shape (e, e): 0 for different ones, above 0 and at most 1 for the same."""
    ends = np.array([_place(span) for span in spans], dtype=float).reshape(-1, 2)
    start, end = ends[:, 0], ends[:, 1]
    both = np.minimum(end[:, None], end) - np.maximum(start[:, None], start)
    either = np.maximum(end[:, None], end) - np.minimum(start[:, None], start)
    overlap = np.where(both > 0, both / np.where(both > 0, either, 1.0), 0.0)
    placed = ~np.isnan(start)
    sides = _equal([span.side for span in spans])
    kinds = _equal([category_path(span.category)[0] for span in spans])
    whole = _equal([category_path(span.category) for span in spans])
    alike = np.where((overlap >= ALIKE) | kinds, overlap, 0.0) * np.where(whole, 1.0, OF_ANOTHER_KIND)
    alike = np.where(placed[:, None] & placed, alike, (~placed[:, None] & ~placed & whole).astype(float))
    return np.where(sides, alike, 0.0)


def _equal(labels: Sequence[object]) -> NDArray[np.bool_]:
    numbers: dict[object, int] = {}
    codes = np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=int)
    return np.asarray(codes[:, None] == codes)


def _place(span: ErrorSpan) -> tuple[float, float]:
    """Returns the characters of a span; a place between two of them counts as one."""
    if span.start is None or span.end is None:
        return math.nan, math.nan
    return span.start, max(span.end, span.start + 1)


def _length(span: ErrorSpan) -> float:
    start, end = _place(span)
    return 0.0 if math.isnan(start) else end - start


def _rank(error: SharedError) -> tuple[float, ...]:
    start, end = _place(error.span)
    place = (math.inf, math.inf) if math.isnan(start) else (start, end)
    return (SEVERITIES.index(severity_name(error.span.severity)), -error.found, *place)
