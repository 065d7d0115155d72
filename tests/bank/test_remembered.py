"""Numbers that are kept for as long as a run lasts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metricsmith.bank.base import numbers_kept
from metricsmith.bank.catalogue import MetricBank, default_bank
from metricsmith.metric import make_row
from metricsmith.scoring import score
from planted import planted_rows

ROWS = [
    make_row(f"plain words {n} again", input=f"some words {n}", references=[f"plain {n}", "other words"])
    for n in (1, 2)
]


def counting(*names):
    """The named metrics, and how many rows are computed in each batch."""
    calls = []

    def counted(family):
        def compute(batch, outputs):
            calls.append(len(batch))
            return family.compute(batch, outputs)

        return replace(family, compute=compute)

    return MetricBank(tuple(map(counted, default_bank().only(*names).families))).metrics(), calls


def values(metrics, rows):
    return score(metrics, rows, progress=False).values


def test_numbers_have_the_same_bits_in_whatever_order_and_company_rows_come():
    rows = planted_rows(sources=6)
    rows += [row.copy(references=[*row.references, "one more reference of other length"]) for row in rows[:4]]
    metrics = [metric.fit(rows) for metric in default_bank().metrics()]
    plain = values(metrics, rows)
    with numbers_kept():
        values(metrics, rows[7:12])
        values(metrics[::3], rows[::2])
        np.testing.assert_array_equal(values(metrics, rows).view(np.uint64), plain.view(np.uint64))
        np.testing.assert_array_equal(values(metrics, rows[::-1]), plain[::-1])


def test_each_row_is_computed_once_and_anew_after_the_end():
    metrics, calls = counting("fkgl")
    with numbers_kept():
        values(metrics, ROWS[:1])
        values(metrics, [*ROWS, *ROWS])
        values(metrics, ROWS)
    values(metrics, ROWS)
    assert calls == [1, 1, 2]


def test_an_output_of_a_family_that_was_not_asked_for_before_is_computed():
    metrics, calls = counting("rouge1_f", "rouge2_f")
    with numbers_kept():
        first = values(metrics[:1], ROWS)
        both = values(metrics, ROWS)
    assert calls == [2, 2]
    np.testing.assert_array_equal(both, values(metrics, ROWS))
    np.testing.assert_array_equal(first[:, 0], both[:, 0])


def test_other_texts_and_other_statistics_are_computed_anew():
    (metric,), calls = counting("cider")
    changed = [ROWS[0].copy(references=["something else"]), ROWS[1]]
    one, other = metric.fit(ROWS), metric.fit(ROWS[:1])
    asked = [(one, ROWS), (other, ROWS), (one, ROWS[:1]), (metric.fit(ROWS), ROWS), (one, changed)]
    plain = [fitted.judge_batch(rows) for fitted, rows in asked]
    calls.clear()
    with numbers_kept():
        assert [fitted.judge_batch(rows) for fitted, rows in asked] == plain
    assert calls == [2, 2, 1]
    assert plain[0][0].raw != plain[1][0].raw


def test_statistics_of_the_batch_itself_are_never_kept():
    (metric,), calls = counting("cider")
    with numbers_kept():
        alone, both = metric.judge_batch(ROWS[:1]), metric.judge_batch(ROWS)
    assert calls == [1, 2]
    assert both == metric.judge_batch(ROWS)
    assert alone[0].raw != both[0].raw
