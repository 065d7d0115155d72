"""What a row is worth: its peers, and which judgements may become demonstrations."""

from __future__ import annotations

import dspy
import numpy as np
import pytest

from metricsmith.metric import content_hash, make_row
from metricsmith.optimizers.objectives import OBJECTIVES
from metricsmith.optimizers.rated import Rated
from metricsmith.optimizers.tuning.bench import Bench, Reading
from metricsmith.optimizers.tuning.student import Answers, Verdict
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import Status
from metricsmith.scoring.flow import Flow
from metricsmith.scoring.limits import Concurrency

JUDGE = CriterionJudge(criterion="Quality", meaning="Good.", task="Write.")
LEARN = [make_row(f"learn {n}", input=f"l{n}", rating=float(1 + n)) for n in range(4)]
SELECT = [make_row(f"select {n}", input=f"s{n}", rating=float(1 + n)) for n in range(4)]


def credit_of(objective, values, place):
    """The credit, feedback and goodness of a learning row when the judge gave `values`."""
    answers = Answers(Flow(Concurrency()), None)
    learn, select = Rated.of(LEARN, "rating"), Rated.of(SELECT, "rating")
    bench = Bench(answers, OBJECTIVES[objective], Reading(), learn, select)
    candidate = answers.candidate(JUDGE, {})
    said = [Verdict(dspy.Prediction(raw=value), Status.OK) for value in values]
    for row, verdict in zip(LEARN, said, strict=True):
        answers._said[candidate, content_hash(dict(row.inputs().items()))] = verdict
    return bench.credit(LEARN[place], dspy.Prediction(candidate=candidate, verdict=said[place]))


def test_a_near_miss_is_no_demonstration_where_labels_count():
    credit, _, good = credit_of("quadratic_kappa", [2, 2, 3, 4], 0)
    assert credit == pytest.approx(1 - 1 / 16)
    assert not good
    assert credit_of("quadratic_kappa", [1, 2, 3, 4], 0)[2]


def test_a_row_is_not_its_own_peer():
    # Among three others the lowest of four stands at -1/2 twice: 1/2 + 2 x 1/4. With itself it would be at -3/8.
    assert credit_of("spearman", [1, 2, 3, 4], 0)[0] == pytest.approx(1.0)
    assert np.isclose(credit_of("spearman", [4, 2, 3, 1], 0)[0], 0.0)
