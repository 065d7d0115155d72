"""Measures of many metrics against one gold: what gold decides is done once.

All functions take gold, a matrix of shape (k, n), NaN where missing, and return a function of metrics that lack the
same cells, shape (m, k, n), that returns their values, shape (m,): those of the measure to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from metricsmith.meta_evaluation.grouping import FloatArray, Grouping, grouped
from metricsmith.meta_evaluation.pairs import GoldPairs
from metricsmith.meta_evaluation.systems import Ties, random_signs, reached

__all__ = ["Against", "accuracies", "item_kendall", "soft_accuracies"]

Against = Callable[[FloatArray], FloatArray]
AT_ONCE = 8  # metrics, whose product with the sign vectors then reads these once


def accuracies(gold: FloatArray, by: Grouping, epsilon: float | None, decimals: int | None) -> Against:
    """`pairwise_accuracy`: pairs are told apart by gold once."""
    pairs = GoldPairs(grouped(gold, gold, by)[0], decimals)

    def value(metric: FloatArray) -> float:
        own = grouped(metric, metric, by)[0]
        return pairs.calibrated(own)[0] if epsilon is None else pairs.accuracy(own, epsilon)

    return lambda metrics: np.array([value(metric) if pairs.used else math.nan for metric in metrics])


def soft_accuracies(gold: FloatArray, draws: int, seed: int, ties: Ties) -> Against:
    """`soft_pairwise_accuracy`: gold's p-values once, and the products with the sign vectors of several metrics."""
    whole = ~np.isnan(gold).any(axis=0)
    segments = int(np.count_nonzero(whole))
    if not segments or len(gold) < 2:
        return lambda metrics: np.full(len(metrics), math.nan)
    signs = random_signs(draws, segments, seed)
    truth = reached(gold[:, whole] @ signs, gold[:, whole], ties)[:, 0]

    def values(metrics: FloatArray) -> FloatArray:
        found = []
        for start in range(0, len(metrics), AT_ONCE):
            sides = metrics[start : start + AT_ONCE][:, :, whole]
            flipped = (sides.reshape(-1, segments) @ signs).reshape(*sides.shape[:2], draws)
            for sums, side in zip(flipped, sides, strict=True):
                found.append(1 - float(np.abs(reached(sums, side, ties)[:, 0] - truth).mean()) / draws)
        return np.array(found)

    return values


def item_kendall(gold: FloatArray) -> Against:
    """Kendall's tau-b by item: signs of gold's differences once, and those of a metric counted in small numbers."""
    small = np.int8 if len(gold) <= np.iinfo(np.int8).max else np.int32

    def signs(scores: FloatArray, row: int) -> FloatArray:
        below, above = scores[row] > scores[row + 1 :], scores[row] < scores[row + 1 :]
        return np.asarray(np.subtract(below, above, dtype=small))

    truth = [signs(gold, row) for row in range(len(gold) - 1)]
    wanted = sum((np.abs(order).sum(axis=0, dtype=np.int64) for order in truth), np.zeros(gold.shape[1], np.int64))

    def value(metric: FloatArray) -> float:
        surplus, untied = np.zeros((2, gold.shape[1]), dtype=np.int64)
        for row, order in enumerate(truth):
            own = signs(metric, row)
            surplus += (own * order).sum(axis=0, dtype=small)
            untied += np.abs(own).sum(axis=0, dtype=small)
        scale = np.sqrt(untied.astype(float) * wanted.astype(float))
        defined = scale > 0
        values = np.clip(surplus[defined] / scale[defined], -1.0, 1.0)
        return math.fsum(values) / values.size if values.size else math.nan

    return lambda metrics: np.array([value(metric) for metric in metrics])
