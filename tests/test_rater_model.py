"""The simulated judge model does what its table says, through the server as directly."""

from __future__ import annotations

import dspy
import numpy as np
import pytest

from loopback import serve
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.stats.correlation import kendall_tau_b
from rater_model import PHRASES, Features, RaterModel, features, qualities, rated_rows

ROWS = rated_rows(200, 0)
RATINGS = np.array([row.rating for row in ROWS])
GOOD = "Be concrete, courteous and brief. Weigh. Use the whole scale."


def ratings_of(model, instruction):
    return np.array([model.rate(instruction, row.output)[0] for row in ROWS], dtype=float)


def test_the_seed_instruction_has_no_feature():
    assert features(CriterionJudge.signature.instructions) == Features()


@pytest.mark.parametrize(
    ("phrase", "found"),
    [
        (PHRASES[0], Features(qualities=("concrete",))),
        (PHRASES[2], Features(qualities=("brief",))),
        (PHRASES[3], Features(noise=0.5)),
        (PHRASES[4], Features(spread=1.3)),
        (PHRASES[5], Features(centre=2.4)),
        (PHRASES[6], Features(qualities=("concrete", "courteous"))),
        (PHRASES[8], Features(noise=1.6)),
        (PHRASES[9], Features()),
    ],
)
def test_phrases_bring_the_features_of_the_table(phrase, found):
    assert features(phrase) == found


def test_counted_qualities_are_standardised_on_the_works_that_are_drawn():
    counted = np.array([list(qualities(row.output).values()) for row in ROWS])
    assert np.abs(counted.mean(axis=0)).max() < 0.2
    assert np.abs(counted.std(axis=0) - 1).max() < 0.15


def test_a_good_instruction_agrees_with_the_raters_and_the_seed_hardly_does():
    model = RaterModel(3)
    assert kendall_tau_b(ratings_of(model, "Rate."), RATINGS) < 0.3
    assert kendall_tau_b(ratings_of(model, GOOD), RATINGS) > 0.5


def test_the_untunable_model_gains_nothing():
    model = RaterModel(3, tunable=False)
    assert kendall_tau_b(ratings_of(model, GOOD), RATINGS) < 0.3


def test_noise_follows_seed_and_instruction():
    first = ratings_of(RaterModel(0), "Rate.")
    assert (first == ratings_of(RaterModel(0), "Rate.")).all()
    assert (first != ratings_of(RaterModel(1), "Rate.")).any()
    assert (first != ratings_of(RaterModel(0), "Please rate.")).any()


def test_raters_use_the_part_of_the_scale_that_is_asked_for():
    assert {row.rating for row in rated_rows(100, 1, low=2, high=4)} == {2.0, 3.0, 4.0}
    assert len({row.group for row in rated_rows(100, 1)} | {row.group for row in rated_rows(100, 1, offset=50)}) == 100


def test_the_server_gives_the_ratings_of_the_model():
    judge = CriterionJudge(criterion="Quality", meaning="Good.", task="Write notices.")
    judge.judge.signature = judge.judge.signature.with_instructions(GOOD)
    model = RaterModel(5)
    with serve(model) as server, dspy.context(lm=server.lm()):
        answers = [judge(output=row.output, input=row.input) for row in ROWS[:20]]
    assert not server.wrong
    assert {answer.feedback for answer in answers} == {"It is judged by: concrete, courteous, brief."}
    system = judge.messages(ROWS[0])[0]["content"]
    instruction = system.split("your objective is:")[1] + "\n"  # as the model reads it, white space included
    assert [answer.raw for answer in answers] == [model.rate(instruction, f"\n{row.output}\n")[0] for row in ROWS[:20]]
