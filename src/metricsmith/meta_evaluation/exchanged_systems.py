"""Measures on systems between two metrics that exchange cells: as in the module `exchange`, from complete segments."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from metricsmith.meta_evaluation.grouping import CORRELATIONS, FloatArray, without_rounding
from metricsmith.meta_evaluation.systems import Ties, order_of_pairs, random_signs, reached
from metricsmith.stats.resampling.permutation import Swapped

__all__ = ["soft_accuracies", "soft_accuracies_limit", "system_accuracies", "system_correlations"]

AT_ONCE = 8  # draws, whose matrices then lie in the cache
NOTHING = 1e-12  # of a sum of squares: what is left of it by rounding alone


def system_correlations(correlation: str, first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
    """A correlation of system means."""
    cells = _Complete(first, second, gold)
    if not cells.segments:
        return _undefined
    truth = without_rounding(cells.gold.mean(axis=1), cells.gold)

    def value(sums: FloatArray) -> FloatArray:
        return CORRELATIONS[correlation](without_rounding(sums / cells.segments, cells.scores), truth)

    return lambda swap: np.subtract(*map(value, cells.sums(swap)))


def system_accuracies(first: FloatArray, second: FloatArray, gold: FloatArray) -> Swapped:
    """`system_pairwise_accuracy`."""
    cells = _Complete(first, second, gold)
    if not cells.segments or len(gold) < 2:
        return _undefined
    truth = order_of_pairs(cells.gold.sum(axis=1), cells.gold)

    def value(sums: FloatArray) -> FloatArray:
        return np.asarray((order_of_pairs(sums, cells.scores) == truth).mean(axis=1))

    return lambda swap: np.subtract(*map(value, cells.sums(swap)))


def soft_accuracies(
    first: FloatArray, second: FloatArray, gold: FloatArray, draws: int, seed: int, ties: Ties
) -> Swapped:
    """Soft pairwise accuracy: gold's p-values once, and the products with the sign vectors of several draws at once."""
    cells = _Complete(first, second, gold)
    if not cells.segments or len(gold) < 2:
        return _undefined
    signs = random_signs(draws, cells.segments, seed)
    truth = reached(cells.gold @ signs, cells.gold, ties)
    both = cells.scores.sum(axis=0) @ signs

    def differences(swap: NDArray[np.bool_]) -> FloatArray:
        values = []
        for turn in cells.turns(swap):
            mixed, other = np.where(turn, *cells.scores[::-1]), np.where(turn, *cells.scores)
            flipped = (mixed.reshape(-1, cells.segments) @ signs).reshape(*turn.shape[:2], draws)
            for sums, *sides in zip(flipped, mixed, other, strict=True):
                pairs = zip((sums, both - sums), sides, strict=True)
                near, far = (float(np.abs(reached(found, side, ties) - truth).mean()) for found, side in pairs)
                values.append((far - near) / draws)
        return np.array(values)

    return differences


def soft_accuracies_limit(first: FloatArray, second: FloatArray, gold: FloatArray, undecided: float) -> Swapped:
    """Soft pairwise accuracy of infinitely many sign vectors, with p-values ``Phi(-T / sqrt(SS))``.

    T and SS are the sum and the sum of squares of the differences of two systems. The squares follow from the Gram
    matrix of the systems' scores. With m the mean of the two metrics, h half their difference and s = 1 for a kept and
    -1 for a swapped cell, the scores are ``m + s h`` and ``m - s h``, and the Gram matrices of both are sums of the
    same three products.
    """
    from scipy.special import ndtr

    cells = _Complete(first, second, gold)
    if not cells.segments or len(gold) < 2:
        return _undefined
    upper, lower = np.triu_indices(len(gold), 1)
    mean, half = cells.scores.mean(axis=0), (cells.scores[0] - cells.scores[1]) / 2
    floor = NOTHING * float((cells.scores**2).sum(axis=2).max())

    def p_values(sums: FloatArray, gram: FloatArray) -> FloatArray:
        squares = np.diagonal(gram, axis1=-2, axis2=-1)
        spread = squares[..., upper] + squares[..., lower] - 2 * gram[..., upper, lower]
        vary = spread > floor
        apart = (sums[..., lower] - sums[..., upper]) / np.sqrt(np.where(vary, spread, 1.0))
        return np.asarray(np.where(vary, ndtr(apart), undecided))

    truth = p_values(cells.gold.sum(axis=1), cells.gold @ cells.gold.T)
    fixed, fixed_sums = mean @ mean.T, mean.sum(axis=1)

    def differences(swap: NDArray[np.bool_]) -> FloatArray:
        values = []
        for turn in cells.turns(swap):
            moved = np.where(turn, -half, half)
            even = fixed + moved @ moved.transpose(0, 2, 1)
            odd = moved @ mean.T
            odd, odd_sums = odd + odd.transpose(0, 2, 1), moved.sum(axis=2)
            near, far = (
                np.abs(p_values(fixed_sums + sign * odd_sums, even + sign * odd) - truth).mean(axis=-1)
                for sign in (1, -1)
            )
            values.append(far - near)
        return np.concatenate(values)

    return differences


class _Complete:
    """Two metrics, shape (2, k, segments), and gold, on the segments that lack no cell."""

    def __init__(self, first: FloatArray, second: FloatArray, gold: FloatArray) -> None:
        self.present = ~np.isnan(gold)
        self.whole = self.present.all(axis=0)
        self.gold = gold[:, self.whole]
        self.scores = np.array([first[:, self.whole], second[:, self.whole]])
        self.segments = self.gold.shape[1] if self.gold.size else 0

    def turns(self, swap: NDArray[np.bool_]) -> Iterator[NDArray[np.bool_]]:
        """The swaps as matrices of shape (draws, k, segments), a few draws at a time."""
        for start in range(0, len(swap), AT_ONCE):
            rows = swap[start : start + AT_ONCE]
            if self.present.all():
                yield rows.reshape(-1, *self.present.shape)
                continue
            turn = np.zeros((len(rows), *self.present.shape), dtype=bool)
            turn[:, self.present] = rows
            yield turn[:, :, self.whole]

    def sums(self, swap: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        """Sums of both metrics by system, shape (draws, k)."""
        first, second = self.scores.sum(axis=2)
        moves = (self.scores[1] - self.scores[0])[:, :, None]
        found = [turn.transpose(1, 0, 2).astype(float) @ moves for turn in self.turns(swap)]
        moved = np.concatenate(found, axis=1)[..., 0].T
        return first + moved, second - moved


def _undefined(swap: NDArray[np.bool_]) -> FloatArray:
    return np.full(len(swap), math.nan)
