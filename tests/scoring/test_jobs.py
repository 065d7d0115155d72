"""Metrics that are computed here: every row, and of a family what is not known yet."""

from __future__ import annotations

import dspy
import numpy as np

from metricsmith.bank.catalogue import default_bank
from metricsmith.metric import make_row
from metricsmith.records import Judgement, Usage
from metricsmith.scoring import jobs, score
from metricsmith.scoring.coordinator import _placed
from metricsmith.scoring.jobs import Done, Job

ROWS = [make_row(f"{n} words stand here", references=[f"{n + n % 2} words stood here"], id=str(n)) for n in range(11)]
RECALL, PRECISION = (default_bank().get(name) for name in ("rouge1_r", "rouge1_p"))


def test_no_row_is_lost_between_two_batches(monkeypatch):
    whole = score([RECALL], ROWS, progress=False).run()
    monkeypatch.setattr(jobs, "ROWS_AT_A_TIME", 4)
    np.testing.assert_array_equal(score([RECALL], ROWS, progress=False).run(), whole)
    assert np.isfinite(whole).all()
    assert len(np.unique(whole)) > 1


def test_a_metric_is_computed_where_another_of_its_family_is_known(tmp_path):
    score([RECALL], ROWS[:6], store=tmp_path / "s.db", progress=False)
    table = score([RECALL, PRECISION], ROWS, store=tmp_path / "s.db", progress=False)
    assert [line.reused for line in table.coverage()] == [6, 0]
    np.testing.assert_array_equal(table.run(), score([RECALL, PRECISION], ROWS, progress=False).run())
    assert np.isfinite(table.run()).all()


def test_what_an_unwanted_part_cost_goes_to_the_first_that_was_wanted():
    judged = [[Judgement("a", 1.0, 1.0, usage=Usage(1, 10))], [Judgement("b", 2.0, 1.0, usage=Usage(0, 0))]]
    wanted = Job(object(), (), dspy.Example(output="text"), (0,), 7, ((None,), (3,)))
    ((place, row, judgement),) = _placed(Done(wanted, judged))
    assert (place, row, judgement.metric) == (3, 7, "b")
    assert judgement.usage == Usage(1, 10)
