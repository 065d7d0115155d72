"""Agreement of people with each other, where several rated the same outputs: a judge can be held against it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from metricsmith.errors import DataError, nearest
from metricsmith.stats.correlation import GroupedCorrelation, grouped_correlation, kendall_tau_b, pearson

__all__ = ["RaterAgreement", "RaterPair", "rater_agreement"]


@dataclass(frozen=True, slots=True)
class RaterPair:
    """Two raters on the outputs that both of them rated.

    Parameters
    ----------
    raters : tuple of str
        In the order in which they first appear.
    n : int
        Outputs that both rated.
    kendall_tau_b, pearson : GroupedCorrelation
        Between their ratings of the systems of one item, averaged over items.
    """

    raters: tuple[str, str]
    n: int
    kendall_tau_b: GroupedCorrelation
    pearson: GroupedCorrelation


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """All pairs of raters that have outputs in common.

    Parameters
    ----------
    n : int
        Pairs of ratings of one output, summed over `pairs`.
    items : int
        Items with at least one such pair.
    kendall_tau_b, pearson : GroupedCorrelation
        As in `RaterPair`, averaged over items and pairs of raters: every pair's every item counts once.
    pairs : tuple of RaterPair
        In the order of their raters.
    """

    n: int
    items: int
    kendall_tau_b: GroupedCorrelation
    pearson: GroupedCorrelation
    pairs: tuple[RaterPair, ...]


def rater_agreement(
    rows: Sequence[Mapping[str, Any]],
    target: str,
    *,
    item: str = "group",
    system: str = "system",
    rater: str = "rater",
) -> RaterAgreement:
    """Correlates the ratings of every two raters, item by item.

    Inside an item the systems are ranked by one rater and by the other; items in which that is undefined (fewer than
    two systems rated by both, or one of them rated all alike) are dropped and counted. A judge is compared with it by
    the same statistic against each rater. Items thrown together, differences between segments and between raters'
    strictness would be read as agreement or disagreement about systems.

    Parameters
    ----------
    rows : sequence of mapping
        One rating each. Rows without a rating are skipped.
    target : str
        The column of the rating.
    item, system, rater : str
        The columns of the text that was translated or answered, of the system that did it, and of the rater.

    Raises
    ------
    DataError
        If a row lacks one of the labels, a rater rated one output twice, or no output has two raters.
    """
    cells = _cells(rows, target, item, system, rater)
    raters = list(dict.fromkeys(name for scores in cells.values() for name in scores))
    pairs, everything, items = [], list[tuple[float, float, Hashable]](), set[str]()
    for one, other in combinations(raters, 2):
        shared = [
            (scores[one], scores[other], place)
            for (place, _), scores in cells.items()
            if one in scores and other in scores
        ]
        if shared:
            pairs.append(RaterPair((one, other), len(shared), *_correlations(shared)))
            everything += [(first, second, (one, other, place)) for first, second, place in shared]
            items |= {place for _, _, place in shared}
    if not pairs:
        raise DataError(
            f"no output was rated by two of the {len(raters)} raters; agreement needs outputs (equal {item!r} and "
            f"{system!r}) with two ratings: give the rows of every rater, unmerged"
        )
    return RaterAgreement(len(everything), len(items), *_correlations(everything), tuple(pairs))


def _correlations(pairs: Sequence[tuple[float, float, Hashable]]) -> tuple[GroupedCorrelation, GroupedCorrelation]:
    """Returns tau-b and Pearson's correlation of pairs of ratings, averaged over their groups."""
    first, second, groups = zip(*pairs, strict=True)
    return (
        grouped_correlation(kendall_tau_b, first, second, groups),
        grouped_correlation(pearson, first, second, groups),
    )


def _cells(
    rows: Sequence[Mapping[str, Any]], target: str, item: str, system: str, rater: str
) -> dict[tuple[str, str], dict[str, float]]:
    """Returns the ratings of each output by rater, keyed by item and system."""
    cells: dict[tuple[str, str], dict[str, float]] = {}
    for number, row in enumerate(rows, 1):
        for label in (item, system, rater):
            if row.get(label) is None:
                raise DataError(
                    f"row {number} has no {label!r}{nearest(label, row.keys())}; agreement between raters needs an "
                    f"item, a system and a rater in every row: name where they stand with item=, system=, rater="
                )
        if row.get(target) is None:
            continue
        scores = cells.setdefault((str(row[item]), str(row[system])), {})
        name = str(row[rater])
        if name in scores:
            raise DataError(
                f"row {number}: {name!r} rated {row[system]!r} on item {row[item]!r} before; one rating by rater and "
                f"output is allowed: leave one out, or tell the two apart by their rater"
            )
        scores[name] = float(row[target])
    return cells
