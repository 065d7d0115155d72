from __future__ import annotations

import math

import dspy
import numpy as np
import pytest

from loopback import serve
from metricsmith.errors import DataError, ModelFailure, NeedsError
from metricsmith.optimizers.students.episodes import axes_episodes, rubric_episodes
from metricsmith.optimizers.students.yields import judges_of, yield_of
from metricsmith.signatures.generation import Axis
from metricsmith.stats.correlation import kendall_tau_b
from students import GOOD, LEVELS, answer, field, rated_table

TABLE = rated_table()
PADDING, TONE = Axis(name="No padding", meaning="Not idle."), Axis(name="Warm tone", meaning="Friendly.")
SCORES = {"up": [1, 2, 3], "down": [3, 2, 1], "flat": [2, 2, 2]}


def episode(count=2, **changes):
    return axes_episodes(rated_table(**changes), count=count, splits=1)[0]


def axes(*names):
    return dspy.Prediction(axes=[Axis(name=name, meaning="It is so.") for name in names])


def by_rank(prompt):
    """A judge called `up` follows the ratings in three levels, `down` goes against them, `flat` says 2."""
    row = next(row for row in TABLE.rows if row.output == text_of(prompt))
    third = int(np.searchsorted(np.quantile(TABLE.ratings, [1 / 3, 2 / 3]), row.rating))
    return {"reasoning": "r", "score": SCORES[field(prompt, "criterion").split(":")[0].strip()][third]}


def text_of(prompt):
    return field(prompt, "output").split("»\n", 1)[1].split("\n«end")[0]


def measured(prediction, example, respond=by_rank, **faults):
    with serve(respond, **faults) as server:
        return yield_of(prediction, example, lm=server.lm()), server


def taus(example):
    ratings = [row.rating for row in example.label.rows]
    thirds = np.searchsorted(np.quantile(TABLE.ratings, [1 / 3, 2 / 3]), ratings)
    return kendall_tau_b(thirds, ratings)


def test_the_yield_is_the_mean_held_out_tau_of_the_judges():
    example = episode()
    found, server = measured(axes("up", "down", "up again"), example, lambda p: by_rank(p.replace("up again", "up")))
    up = taus(example)
    assert 0.5 < up < 1
    assert [part.tau for part in found.judges] == pytest.approx([up, -up, up])
    assert found.tau == pytest.approx(up / 3)
    assert [part.criterion for part in found.judges] == ["up", "down", "up again"]
    assert {part.n for part in found.judges} == {len(example.label.rows)}
    assert server.requests == 3 * len(example.label.rows)


def test_where_lower_is_better_a_judge_that_falls_with_the_rating_agrees():
    example = episode(higher_is_better=False)
    found, _ = measured(axes("down"), example)
    assert found.tau == pytest.approx(taus(example))


def test_a_judge_without_variation_has_no_tau_and_is_left_out_of_the_mean():
    example = episode(count=2)
    found, _ = measured(axes("up", "flat"), example)
    assert math.isnan(found.judges[1].tau)
    assert found.tau == pytest.approx(taus(example))


@pytest.mark.parametrize(("names", "count"), [(["up", "flat", "flat two"], 3), (["up"], 3), (["flat"], 1)])
def test_with_less_than_half_of_the_judges_asked_for_there_is_no_mean(names, count):
    found, _ = measured(axes(*names), episode(count=count), lambda p: by_rank(p.replace("flat two", "flat")))
    assert math.isnan(found.tau)
    assert found.wanted == count


def test_a_failed_judgement_is_left_out_and_counted():
    example = episode()
    lost = max((row.output for row in example.label.rows), key=len)  # it stands within no other output

    found, _ = measured(axes("up"), example, lambda p: {"score": "none"} if lost in p else by_rank(p))
    rest = [row for row in example.label.rows if row.output != lost]
    assert found.judges[0].n == len(rest)
    thirds = np.searchsorted(np.quantile(TABLE.ratings, [1 / 3, 2 / 3]), [row.rating for row in rest])
    assert found.tau == pytest.approx(kendall_tau_b(thirds, [row.rating for row in rest]))


def test_a_server_that_fails_is_no_low_yield():
    with pytest.raises(ModelFailure):
        measured(axes("up"), episode(), always=500)


def test_without_a_model_nothing_is_measured():
    with pytest.raises(NeedsError, match="needs a language model"):
        yield_of(axes("up"), episode())


def test_a_rubric_becomes_one_judge_with_its_levels():
    good, weak = rubric_episodes(TABLE, [PADDING, TONE])
    (judge,) = judges_of(dspy.Prediction(levels=LEVELS), weak.label)
    assert (judge.kind, judge.settings.levels, judge.settings.task) == ("rubric_judge", LEVELS, TABLE.task.description)
    found, _ = measured(dspy.Prediction(levels=LEVELS), weak, answer)
    other, _ = measured(dspy.Prediction(levels=list("abcde")), weak, answer)
    assert (len(found.judges), found.judges[0].criterion) == (1, "Warm tone")
    assert found.tau > 0.5 > other.tau
    assert good.label.axis.name in GOOD


def test_other_examples_and_predictions_are_refused():
    with pytest.raises(DataError, match="no held-out rows: make episodes with"):
        yield_of(axes("up"), TABLE.rows[0])
    with pytest.raises(DataError, match="prediction with answer: it needs axes"):
        yield_of(dspy.Prediction(answer="x"), episode())
    with pytest.raises(DataError, match="levels in one of rubric_episodes"):
        yield_of(dspy.Prediction(levels=LEVELS), episode())
