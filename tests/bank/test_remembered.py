"""A bank that keeps what it computed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metricsmith.bank.catalogue import MetricBank, default_bank
from metricsmith.bank.remembered import remembered
from metricsmith.metric import make_row
from metricsmith.scoring import score

ROWS = [
    make_row(f"plain words {n} again", input=f"some words {n}", references=[f"plain {n}", "other words"])
    for n in (1, 2)
]


def counting(bank):
    """The bank, and how many batches each of its families computes."""
    calls = []

    def counted(family):
        def compute(batch, names):
            calls.append(family.card.name)
            return family.compute(batch, names)

        return replace(family, compute=compute)

    return MetricBank(tuple(map(counted, bank.families))), calls


def test_numbers_and_fingerprints_are_those_of_the_bank():
    plain, kept = (bank.metrics() for bank in (default_bank(), remembered(default_bank())))
    assert [metric.fingerprint() for metric in kept] == [metric.fingerprint() for metric in plain]
    np.testing.assert_array_equal(
        score([metric.fit(ROWS) for metric in kept], ROWS, progress=False).values,
        score([metric.fit(ROWS) for metric in plain], ROWS, progress=False).values,
    )


def test_a_batch_is_computed_once():
    bank, calls = counting(default_bank().only("fkgl", "rouge1_f"))
    kept = remembered(bank)
    for _ in range(3):
        score(kept.metrics(), ROWS, progress=False)
    assert sorted(calls) == ["FKGL", "ROUGE"]


def test_other_texts_and_other_statistics_are_computed_anew():
    bank, calls = counting(default_bank().only("cider"))
    (metric,) = remembered(bank).metrics()
    one, other = metric.fit(ROWS), metric.fit(ROWS[:1])
    for fitted, rows in ((one, ROWS), (other, ROWS), (one, ROWS[:1]), (one, ROWS)):
        fitted.judge_batch(rows)
    changed = [ROWS[0].copy(references=["something else"]), ROWS[1]]
    assert one.judge_batch(changed)[0].raw != one.judge_batch(ROWS)[0].raw
    assert len(calls) == 4
