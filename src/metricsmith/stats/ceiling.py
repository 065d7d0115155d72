"""The most that a metric can be expected to agree with the mean of several raters, from how they agree themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from metricsmith.stats.correlation import FloatArray, IntArray, batch_kendall_tau_b, kendall_tau_b
from metricsmith.stats.resampling import MOST_REPLICATES, Groups, aligned_rows, chunks, jackknife_interval

__all__ = ["MINIMUM_OUTPUTS", "Averaging", "RaterCeiling", "average_ratings", "rater_ceiling"]

Averaging = Literal["mean", "median"]
Withheld = Literal["", "single", "few", "alike", "groups", "chance"]
Pairs = list[tuple[IntArray, IntArray]]

MINIMUM_OUTPUTS = 20  # rated by two people or more; with fewer no ceiling is given
SHARED = 10  # outputs that two raters must have in common to be compared as these two
CELLS = 1 << 15  # simulated ratings for each correlation that is tried
PARTS, PART_CELLS = 60, 1 << 13  # how many parts are left out in turn for the ceiling, each on so many ratings
# Of two raters' normal numbers; dense at both ends, where the ceiling is steep in the agreement.
CORRELATIONS = np.sin(np.linspace(0.0, np.pi / 2, 16)[1:]) ** 2


@dataclass(frozen=True, slots=True)
class RaterCeiling:
    """Agreement between two people, and the ceiling that follows for a metric beside the average of all ratings.

    Parameters
    ----------
    agreement : float
        Kendall's tau-b of two raters over the outputs that both rated, averaged over pairs of raters with their common
        outputs as weights; NaN if undefined.
    agreement_low, agreement_high : float
        Its interval; NaN if undefined.
    ceiling : float
        The tau-b that the raters' common part, a continuous number, would reach with their average; NaN if withheld.
    low, high : float
        The ceiling's interval.
    tied : float
        The same where the common part is given in as many levels, with the same shares, as their average has: a metric
        with few levels ties where people tie and can come this far. Equal to `ceiling` without ties.
    outputs, twice : int
        Outputs with a rating, and those with ratings of two people or more.
    raters, ratings : int
        Their numbers.
    groups : int
        Groups that the interval rests on.
    interchangeable : bool
        True where too few outputs are shared by the same two people, so that any two ratings of an output were compared
        without regard to their raters.
    withheld : str
        The reason for which there is no ceiling: ``single`` (no output has two ratings), ``few`` (below
        `MINIMUM_OUTPUTS` that have), ``alike`` (agreement is undefined: one side's ratings are all equal), ``groups``
        (there is no interval), or ``chance`` (the interval of the agreement is not wholly above 0). Empty if there is
        one.
    """

    agreement: float = math.nan
    agreement_low: float = math.nan
    agreement_high: float = math.nan
    ceiling: float = math.nan
    low: float = math.nan
    high: float = math.nan
    tied: float = math.nan
    outputs: int = 0
    twice: int = 0
    raters: int = 0
    ratings: int = 0
    groups: int = 0
    interchangeable: bool = False
    withheld: Withheld = ""


def rater_ceiling(
    ratings: Sequence[Mapping[str, float]],
    groups: Groups | None = None,
    *,
    average: Averaging = "mean",
    level: float = 0.95,
    seed: int = 0,
) -> RaterCeiling:
    """Agreement of two people, and the tau-b with the average rating that no metric can be expected to exceed.

    Each rating is taken for a normal number cut at the thresholds that give this rater's own level frequencies (of all
    raters together, for one with fewer than ten ratings). The number is a part common to all raters of an output and a
    rest of its own; one correlation of two raters' numbers is fitted, by simulation of these very outputs with these
    raters, so that two people agree as observed. The ceiling is the tau-b of the common part with the average. Both
    have an interval from leaving out each group in turn (with more than 60 groups several at a time for the ceiling),
    which changes the agreement and the level frequencies.

    Agreement is tau-b over all outputs and not within items, because the headline that it stands beside is tau-b over
    all rows. With the level frequencies held fixed, the interval for thumbs of one sort (20/80, five raters) held the
    truth in .66 of runs; with them left out too, in .94.

    Parameters
    ----------
    ratings : sequence of mapping, length n
        The ratings of each output by rater; NaN are left out, outputs may have none.
    groups : sequence of hashable, length n, optional
        Outputs that share a source; by default each is on its own.
    average : str
        ``mean`` or ``median``: the average that the metric is held against.
    level : float
        Nominal coverage in (0, 1).
    seed : int
        Decides the simulated numbers.

    Raises
    ------
    DataError
        If there is not one group label for each output.
    OptionError
        If `level` is out of range.

    Examples
    --------
    >>> found = rater_ceiling([{"ann": i % 5, "bob": (i + i // 5 % 2) % 5} for i in range(60)])
    >>> f"{found.agreement:.2f} {found.ceiling:.2f} {found.tied:.2f}"
    '0.53 0.72 0.75'

    References
    ----------
    Lord and Novick (1968), Statistical Theories of Mental Test Scores, section 3.9 (correction for attenuation), here
    for ranks and for ratings in levels.
    """
    cells = _Cells.of(ratings)
    found = cells.counts()
    if found.twice == 0:
        return replace(found, withheld="single")
    pairs, interchangeable = cells.pairs(), False
    known = {int(place) for first, _ in pairs for place in cells.output[first]}
    if 2 * len(known) < found.twice:
        cells, interchangeable = cells.shuffled(seed), True
        pairs = cells.pairs(least=2)
    if not pairs:  # a single output has two ratings
        return replace(found, withheld="few")
    labels = aligned_rows([np.zeros(cells.size)], groups)[1]
    present = np.unique(labels[np.concatenate([cells.output[first] for first, _ in pairs])])
    # Numbered from 0 among the outputs in which two raters are compared, -1 for all others.
    labels = np.where(np.isin(labels, present), np.searchsorted(present, labels), -1)
    agreed, replicates = _observed(cells, pairs, labels, MOST_REPLICATES)
    interval = jackknife_interval(agreed, replicates, level=level, bounds=(-1.0, 1.0))
    found = replace(
        found,
        agreement=agreed,
        agreement_low=interval.low,
        agreement_high=interval.high,
        groups=len(replicates),
        interchangeable=interchangeable,
    )
    withheld = _withheld(found)
    if withheld:
        return replace(found, withheld=withheld)
    ceiling, tied, others = _ceilings(cells, pairs, labels, agreed, average, seed)
    interval = jackknife_interval(ceiling, others, level=level, bounds=(-1.0, 1.0))
    return replace(found, ceiling=ceiling, low=interval.low, high=interval.high, tied=tied)


def average_ratings(values: FloatArray, average: Averaging) -> FloatArray:
    """Mean or median along the last axis, rounded to twelve digits: equal averages must be equal numbers.

    Parameters
    ----------
    values : float array, shape (..., k)
        k at least 1, no NaN.
    average : str
    """
    return np.asarray(np.round((np.mean if average == "mean" else np.median)(values, axis=-1), 12))


def _withheld(found: RaterCeiling) -> Withheld:
    """Returns the reason for which no ceiling is given, empty if there is none."""
    if found.twice < MINIMUM_OUTPUTS:
        return "few"
    if math.isnan(found.agreement):
        return "alike"
    if math.isnan(found.agreement_low):
        return "groups" if found.agreement > 0 else "chance"
    return "" if found.agreement_low > 0 else "chance"


@dataclass(frozen=True)
class _Cells:
    """All ratings as c cells, in the order of their outputs.

    `output`, `rater` and `value` have shape (c,); `names` is how many raters there are, `size` how many outputs.
    """

    output: IntArray
    rater: IntArray
    value: FloatArray
    names: int
    size: int
    pooled: bool = False

    @classmethod
    def of(cls, ratings: Sequence[Mapping[str, float]]) -> _Cells:
        codes: dict[Any, int] = {}
        given = [
            (place, codes.setdefault(name, len(codes)), float(value))
            for place, by_rater in enumerate(ratings)
            for name, value in by_rater.items()
            if value == value
        ]
        output, rater = (np.array([cell[part] for cell in given], dtype=np.int64) for part in (0, 1))
        return cls(output, rater, np.array([cell[2] for cell in given], dtype=float), len(codes), len(ratings))

    def counts(self) -> RaterCeiling:
        """Returns the record with the numbers that can be counted."""
        by_output = np.bincount(self.output, minlength=self.size)
        return RaterCeiling(
            outputs=int((by_output > 0).sum()),
            twice=int((by_output > 1).sum()),
            raters=self.names,
            ratings=self.value.size,
        )

    def pairs(self, least: int = SHARED) -> Pairs:
        """Returns for every two raters with at least `least` outputs in common the cells of either."""
        rows: dict[tuple[int, int], list[tuple[int, int]]] = {}
        starts = np.flatnonzero(np.diff(self.output, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], self.output.size], strict=True):
            for a, b in combinations(sorted(range(start, end), key=lambda cell: int(self.rater[cell])), 2):
                rows.setdefault((int(self.rater[a]), int(self.rater[b])), []).append((a, b))
        found = [np.array(cells, dtype=np.int64).T for cells in rows.values() if len(cells) >= least]
        return [(first, second) for first, second in found]

    def shuffled(self, seed: int) -> _Cells:
        """Returns the cells with raters named by a random place among those of the output."""
        order = np.lexsort((np.random.default_rng(seed).random(self.output.size), self.output))
        places = np.arange(order.size) - np.searchsorted(self.output, self.output)
        return replace(self, value=self.value[order], rater=places, pooled=True)

    def levels(self, kept: NDArray[np.bool_]) -> list[tuple[FloatArray, FloatArray]]:
        """Returns by rater the ratings of the cells that are `kept` and the normal thresholds between them."""
        from scipy.special import ndtri

        found = []
        for rater in range(int(self.rater.max()) + 1):
            values = self.value[kept & (self.rater == rater)]
            values = self.value[kept] if self.pooled or values.size < SHARED else values
            levels, counts = np.unique(values, return_counts=True)
            found.append((levels, np.asarray(ndtri(np.cumsum(counts)[:-1] / values.size))))
        return found


def _pooled_tau(columns: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Returns tau-b of two raters along the last axis, averaged over pairs of raters by their number of outputs."""
    taus = np.array([batch_kendall_tau_b(x, y) for x, y in columns])
    sizes = np.array([(~np.isnan(x)).sum(axis=-1) for x, _ in columns], dtype=float)
    weights = np.where(np.isnan(taus), 0.0, sizes)
    total = weights.sum(axis=0)
    with np.errstate(invalid="ignore"):
        return np.asarray((weights * np.nan_to_num(taus)).sum(axis=0) / np.where(total > 0, total, math.nan))


def _observed(cells: _Cells, pairs: Pairs, labels: IntArray, most: int) -> tuple[float, list[float]]:
    """Returns the agreement of two people, and that without each group in turn; beyond `most`, several at a time."""
    columns = [(cells.value[first], cells.value[second]) for first, second in pairs]
    places = [labels[cells.output[first]] for first, _ in pairs]
    parts, replicates = min(int(labels.max()) + 1, most), list[float]()
    for count in chunks(parts, max(place.size for place in places)):
        left = np.arange(len(replicates), len(replicates) + count)[:, None]
        gaps = [np.where(place % parts == left, math.nan, 0.0) for place in places]
        replicates += _pooled_tau([(x + gap, y + gap) for gap, (x, y) in zip(gaps, columns, strict=True)]).tolist()
    return float(_pooled_tau(columns)), replicates


def _ceilings(
    cells: _Cells, pairs: Pairs, labels: IntArray, agreed: float, average: Averaging, seed: int
) -> tuple[float, float, list[float]]:
    """Returns the ceiling, the ceiling with ties, and the ceiling without each part in turn.

    Agreement is turned into a ceiling along a curve for the level frequencies of all ratings. Those of the ratings
    that are left move both ends of it, which is found at the fitted correlation alone.
    """
    everything = np.ones(cells.value.size, dtype=bool)
    levels, simulation = cells.levels(everything), _Simulation.of(cells, pairs, average, seed, CELLS)
    # Without correlation there is no agreement. All correlations are tried on the same random numbers, so that the
    # values lie on smooth lines.
    points = np.array([(0.0, 0.0, 0.0), *(simulation.at(correlation, levels) for correlation in CORRELATIONS)])
    roots = np.sqrt(np.maximum.accumulate(points[:, 0]))  # the ceiling starts as a root of the agreement
    ceiling, tied = (float(np.interp(math.sqrt(agreed), roots, points[:, column])) for column in (1, 2))
    fitted = float(np.interp(math.sqrt(agreed), roots, [0.0, *CORRELATIONS]))
    _, replicates = _observed(cells, pairs, labels, PARTS)
    small = _Simulation.of(cells, pairs, average, seed, PART_CELLS)
    base = small.at(fitted, levels)
    others = []
    for part, replicate in enumerate(replicates):
        moved = small.at(fitted, cells.levels(labels[cells.output] % len(replicates) != part))
        root = math.sqrt(max(replicate - (moved[0] - base[0]), 0.0))
        others.append(float(np.interp(root, roots, points[:, 1])) + moved[1] - base[1])
    return ceiling, tied, others


@dataclass(frozen=True)
class _Simulation:
    """The outputs many times over with normal numbers: a part common to all raters of an output and a rest of its own.

    `common` has shape (repeats, rated outputs), `rest` (repeats, c); `place` says of each cell which output it is of.
    """

    cells: _Cells
    pairs: Pairs
    average: Averaging
    common: FloatArray
    rest: FloatArray
    place: IntArray

    @classmethod
    def of(cls, cells: _Cells, pairs: Pairs, average: Averaging, seed: int, size: int) -> _Simulation:
        from scipy.special import ndtri

        random = np.random.default_rng(seed)
        rated, place = np.unique(cells.output, return_inverse=True)
        repeats = -(-size // cells.value.size)
        # Evenly spread rather than drawn: the common part is known exactly, only the rests are a sample.
        common = ndtri((random.permutation(repeats * rated.size) + 0.5) / (repeats * rated.size))
        rest = random.standard_normal((repeats, cells.value.size))
        return cls(cells, pairs, average, common.reshape(repeats, -1), rest, place)

    def at(self, correlation: float, levels: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[float, float, float]:
        """Returns the agreement of two people, the ceiling and the ceiling with ties at a correlation."""
        latent = math.sqrt(correlation) * self.common[:, self.place] + math.sqrt(1 - correlation) * self.rest
        drawn, averages = np.empty_like(latent), np.empty_like(self.common)
        for rater, (values, cuts) in enumerate(levels):
            own = self.cells.rater == rater
            drawn[:, own] = values[np.searchsorted(cuts, latent[:, own])]
        sizes = np.bincount(self.place)
        for size in np.unique(sizes):
            whose = np.flatnonzero(sizes == size)
            first = np.searchsorted(self.place, whose)
            averages[:, whose] = average_ratings(drawn[:, first[:, None] + np.arange(size)], self.average)
        columns = [(drawn[:, first].ravel(), drawn[:, second].ravel()) for first, second in self.pairs]
        z, mean = self.common.ravel(), averages.ravel()
        in_levels = np.empty_like(z)  # the common part, cut into as many levels with the same shares as the average has
        in_levels[np.argsort(z)] = np.sort(mean)
        reached, tied = kendall_tau_b(z, mean), kendall_tau_b(in_levels, mean)
        return float(_pooled_tau(columns)), reached, max(reached, tied)
