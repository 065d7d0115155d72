"""The figures of the methods that are compared: agreement with the raters on common rows, and paired differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from metricsmith.optimizers.rated import Rated
from metricsmith.records import Usage
from metricsmith.report.comparison.record import MethodResult
from metricsmith.stats.correlation import batch_kendall_tau_b, kendall_tau_b
from metricsmith.stats.resampling import mean_interval, repeated_interval, repeated_mean, repeated_permutation_test
from metricsmith.studies.comparison.methods import Predicted

__all__ = ["against", "common_rows", "measured"]

FloatArray = NDArray[np.float64]
MOST_MISSING = 0.5  # share of test rows that a method may lack and still decide on which rows all are compared


def common_rows(predicted: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Predictions of shape (s, n) by method, on the rows that all methods predict in every seed; NaN elsewhere.

    A method that lacks more than half of the rows takes none from the others: it has those of its own that are common.
    """
    missing = {key: np.isnan(values).any(axis=0) for key, values in predicted.items()}
    narrowing = [lack for lack in missing.values() if lack.mean() <= MOST_MISSING]
    nowhere = np.any(narrowing, axis=0) if narrowing else np.array(False)
    return {key: np.where(nowhere | missing[key], np.nan, values) for key, values in predicted.items()}


def measured(line: MethodResult, results: Sequence[Predicted], values: FloatArray, test: Rated) -> MethodResult:
    """Agreement of one method with the raters, over seeds and rows."""
    taus = [kendall_tau_b(prediction, test.ratings) for prediction in values]
    present = ~np.isnan(values).any(axis=0)
    intervals = [
        repeated_interval(batch_kendall_tau_b, values, test.ratings, test.groups, between=between, batched=True)
        for between in (False, True)
    ]
    counts: Counter[str] = Counter()
    for result in results:
        counts.update(result.judgements)
    return replace(
        line,
        taus=tuple(taus),
        tau=repeated_mean(kendall_tau_b, values, test.ratings),
        n=int(present.sum()),
        groups=len({test.groups[row] for row in np.flatnonzero(present)}),
        over_seeds=mean_interval(taus, bounds=(-1.0, 1.0)),
        over_rows=intervals[0],
        over_both=intervals[1],
        judgements=dict(counts),
        usage=sum((result.usage for result in results), Usage()),
        remarks=tuple(_remarks(results, taus, int(present.sum()))),
    )


def against(line: MethodResult, reference: FloatArray, values: FloatArray, test: Rated, seed: int) -> MethodResult:
    """The lead of the reference method, on the rows that have every prediction of both."""
    arguments = (reference, values, test.ratings, test.groups)
    found = repeated_permutation_test(batch_kendall_tau_b, *arguments, seed=seed, batched=True)
    interval = repeated_interval(
        batch_kendall_tau_b, reference, test.ratings, test.groups, against=values, batched=True
    )
    return replace(line, difference=found.observed, difference_interval=interval, p_value=found.p_value)


def _remarks(results: Sequence[Predicted], taus: Sequence[float], shared: int) -> list[str]:
    remarks = list(dict.fromkeys(result.remark for result in results if result.remark))
    if len(remarks) > 1:
        remarks = [f"repetition {number}: {result.remark}" for number, result in enumerate(results, 1)]
    values = np.array([result.values for result in results])
    undefined = int(np.isnan(taus).sum())
    if undefined:
        constant = sum(np.unique(row[~np.isnan(row)]).size < 2 for row in values)
        why = f"the predictions are constant in {constant}" if constant else "too few rows have a prediction"
        remarks.append(f"tau-b is undefined in {undefined} of {len(taus)} seeds, which are left out: {why}")
    n, missing = values.shape[1], int(np.isnan(values).any(axis=0).sum())
    if missing:
        remarks.append(f"{missing} of {n} test rows lack a prediction in some seed")
    if shared < n - missing:
        remarks.append(f"measured on {shared} of {n} test rows: on the others another method has no prediction")
    return remarks
