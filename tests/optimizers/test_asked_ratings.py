"""Standardised ratings from table to prompt: what a model is shown of them, read from what the server got."""

from __future__ import annotations

import re

import dspy
import numpy as np
import pandas as pd
import pytest

from loopback import scripted, serve
from metricsmith.datasets.table import read_table
from metricsmith.errors import OptionError
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.induce import induce
from metricsmith.optimizers.tuner import JudgeTuner
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.raters import ExampleJudge, GuidelineJudge
from metricsmith.records import Scale, Task
from metricsmith.studies.comparison.run import compare
from planted import TASK, planted_rows
from rater_model import RaterModel, rated_rows, standardised

ROWS = standardised(rated_rows(60, 101), 101)
RATINGS = np.array([row.rating for row in ROWS])
SCALE = Scale(float(RATINGS.min()), float(RATINGS.max()))
JUDGES = {
    "example": ExampleJudge(measure="rating", task="Write notices.", scale=SCALE),
    "guideline": GuidelineJudge(measure="rating", guideline="Be fair.", task="Write notices.", scale=SCALE),
    "criterion": CriterionJudge(criterion="Quality", meaning="It serves its readers.", task="Write notices."),
}
NUMBER = re.compile(r"(?<![\w.«])-?\d+\.\d+(?![\w.])|(?<![\w.-])-\d+\b")  # with a point or below zero, standing alone


def strays(prompts):
    """Numbers in prompts that are no points of 1 to 5; a judge's own answers stand there as 4.0.

    Sections of papers, on the cards that a model ranks, are no ratings.
    """
    texts = [re.sub(r"section \d\.\d", "", prompt) for prompt in prompts]
    return {number for text in texts for number in NUMBER.findall(text)} - {"1.0", "2.0", "3.0", "4.0", "5.0"}


def worded(prompt):
    """The scripted answers, without the decimals in their reasons."""
    said = scripted(prompt)
    return {**said, "reasoning": "By its words."} if "score" in said else said


def tune(judge, rows=ROWS, scale=SCALE, **options):
    """The tuned judge and what the server got."""
    with serve(RaterModel(101), seed=3) as server:
        settings = {"method": "gepa", "budget": 420, "seed": 101, "task": Task("Write notices.", "rating", scale)}
        tuned = JudgeTuner(lm=server.lm(), **{**settings, **options}).compile(judge, rows)
    assert not server.wrong
    return tuned, server.prompts


@pytest.mark.parametrize(
    ("name", "method"),
    [("example", method) for method in ("labeled", "bootstrap", "mipro", "gepa")]
    + [("guideline", "mipro"), ("guideline", "gepa"), ("criterion", "mipro"), ("criterion", "gepa")],
)
def test_no_prompt_of_the_tuner_holds_a_number_off_the_asked_scale(name, method):
    tuned, prompts = tune(JUDGES[name], method=method, budget=420 if method == "mipro" else 240)
    assert strays(prompts) == set()
    demos = [demo["score"] for predictor in tuned.predictors() for demo in predictor.demos]
    assert set(demos) <= {1, 2, 3, 4, 5}
    if method == "labeled":
        given = {found for prompt in prompts for found in re.findall(r"\[\[ ## score ## \]\]\n(.+)\n", prompt)}
        assert {"1", "2", "3", "4", "5"} <= given


def test_feedback_is_in_fifths_and_in_the_judges_direction_for_lower_is_better_too():
    lower = Scale(SCALE.low, SCALE.high, higher_is_better=False)
    judge = GuidelineJudge(measure="rating", guideline="Be fair.", task="Write notices.", scale=lower)
    _, prompts = tune(judge, scale=lower, budget=240)
    feedback = "".join(prompt for prompt in prompts if "new_instruction" in prompt).replace("\\n", "\n")
    assert re.search(r"The raters gave (\d)\.\nThe judge gave (\d),", feedback)
    # Both are fifths of which five is the best, though the raters' lower numbers are better.
    said = r"The raters gave (\d)\.\n.*\n.*\nThe raters gave the following work (\d), which is (higher|lower)"
    pairs = re.findall(said, feedback)
    assert pairs
    assert all((int(other) > int(own)) == (word == "higher") for own, other, word in pairs)


def test_the_tuned_judge_knows_what_its_fifths_stood_for():
    tuned, _ = tune(JUDGES["guideline"], method="mipro")
    found = tuned.as_ratings([1, 2, 3, 4, 5])
    assert (np.diff(found) >= 0).all()
    assert SCALE.low <= found[0] < found[-1] <= SCALE.high
    assert "asked for 1 to 5" in tuned.tuning.asked
    assert tuned.tuning.asked in str(tuned.tuning)
    assert JUDGES["guideline"].settings.values.get("map") is None


@pytest.mark.parametrize("objective", ["kappa", "quadratic_kappa", "balanced_accuracy", "f1"])
def test_objectives_in_labels_are_refused_on_a_made_grid(objective):
    with serve(RaterModel(0)) as server:
        tuner = JudgeTuner(objective=objective, lm=server.lm(), task=Task("", "rating", SCALE))
        with pytest.raises(OptionError, match="asked for 1 to 5, fifths by rank"):
            tuner.compile(JUDGES["example"], ROWS)
    assert server.requests == 0


def test_objectives_that_count_exact_hits_are_refused_on_averages_and_graded_ones_are_not():
    rows = [
        row.copy(rating=min(5.0, row.rating + 0.5 * (number % 2))) for number, row in enumerate(rated_rows(60, 101))
    ]
    scale = Scale(1, 5)
    judge = ExampleJudge(measure="rating", task="Write notices.", scale=scale)
    for objective in ("kappa", "balanced_accuracy", "f1"):
        with pytest.raises(OptionError, match="no labels but a continuum"):
            tune(judge, rows, scale, objective=objective)
    tuned, prompts = tune(judge, rows, scale, objective="quadratic_kappa", method="labeled")
    assert strays(prompts) == set()
    assert "in steps of 1" in tuned.tuning.asked


def standardised_table(part=slice(None), **changes):
    """The planted rows as a table whose ratings are standard scores; its scale is guessed."""
    rows = planted_rows(sources=30, **changes)
    ratings = np.array([row.rating for row in rows]) + 0.01 * np.arange(len(rows))
    scores = ((ratings - ratings.mean()) / ratings.std()).round(5)
    frame = pd.DataFrame(
        {"group": row.group, "input": row.input, "output": row.output, "rating": score}
        for row, score in zip(rows, scores.tolist(), strict=True)
    )
    return read_table(frame[part], target="rating", task=TASK.description)


def test_an_induction_and_a_comparison_hold_no_number_off_the_asked_scale_and_say_so():
    table = standardised_table(slice(0, 54))
    optimizer = AutoMetrics(generators={"criterion": 1, "examples": 1, "tuned": 1}, k=2, n=2)
    with serve(worded) as server, dspy.context(lm=server.lm(temperature=1.0)):
        done = induce(table, optimizer, split="holdout")
        made = compare(table, optimizer, methods=["guideline_judge"], seeds=1)
    assert len(server.prompts) > 200
    assert strays(server.prompts) == set()
    assert any("cards" in prompt for prompt in server.prompts)  # the ranking was among them
    (note,) = [note for note in done.record.notes if "judges in the raters' place" in note]
    assert "models do not keep to numbers that nobody uses" in note
    assert any("judges in the raters' place" in note for note in made.notes)
    assert made.methods[0].judgements["requested"] == made.methods[0].judgements["ok"]


def test_three_splits_of_one_table_ask_the_same_question():
    """Fields that come from the data set are equal in all; demonstrations and the judged work differ."""
    asked = []
    for part in (slice(0, 30), slice(30, 60), slice(60, 90)):
        table = standardised_table(part)
        judge = ExampleJudge(measure=table.task.target, task=table.task.description, scale=table.task.scale)
        with serve(scripted) as server:
            JudgeTuner("labeled", budget=300, lm=server.lm(), task=table.task).compile(judge, table.rows)
        systems = {prompt.split("[[ ## input ## ]]\n«")[0] for prompt in server.prompts}
        scales = {found for prompt in server.prompts for found in re.findall(r"## scale ## \]\]\n(.+)\n", prompt)}
        asked.append((systems, scales))
    assert asked[0] == asked[1] == asked[2]
    assert all(len(scales) <= 2 for _, scales in asked)


def test_lower_is_better_turns_fifths_round_in_a_comparison():
    table = standardised_table()
    turned = read_table(
        pd.DataFrame(
            {"group": row.group, "input": row.input, "output": row.output, "rating": -row.rating} for row in table.rows
        ),
        target="rating", task=TASK.description, higher_is_better=False,
    )  # fmt: skip
    taus = []
    for one in (table, turned):
        with serve(scripted) as server, dspy.context(lm=server.lm(temperature=1.0)):
            taus.append(compare(one, AutoMetrics(), methods=["guideline_judge"], seeds=1).methods[0].tau)
    assert taus[0] == pytest.approx(taus[1])
    assert taus[0] != 0
