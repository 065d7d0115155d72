"""The examples that axes are drawn from."""

from __future__ import annotations

import asyncio

import dspy
import pytest

from loopback import scripted
from metricsmith.errors import JudgementFailed
from metricsmith.metric import make_row
from metricsmith.model_calls.limits import estimate_tokens
from metricsmith.programs.generators.axes import AxesGenerator, contrast, distinct
from metricsmith.programs.generators.rubrics import RubricGenerator, five
from metricsmith.records import Scale, Task
from metricsmith.signatures.generation import Axis
from metricsmith.testing import GivenModel
from planted import TASK, planted_rows


def rows(*ratings):
    return [make_row(f"output{number}", rating=rating) for number, rating in enumerate(ratings)]


def test_the_best_and_the_worst_are_shown():
    chosen = contrast(rows(1, 2, 3, 4, 5), TASK, each=2)
    assert all(name in chosen.liked for name in ("output3", "output4"))
    assert all(name in chosen.disliked for name in ("output0", "output1"))
    assert "output2" not in chosen.liked + chosen.disliked


def test_where_lower_is_better_the_sides_change_places():
    task = Task("Count errors.", "rating", Scale(0, 5, higher_is_better=False))
    chosen = contrast(rows(0, 1, 4, 5), task, each=1)
    assert "output0" in chosen.liked
    assert "output3" in chosen.disliked


def test_no_row_stands_on_both_sides():
    chosen = contrast(rows(1, 3, 5), TASK, each=5)
    assert chosen.shown_each == 1
    assert "output1" not in chosen.liked + chosen.disliked


def test_as_many_are_shown_as_fit_and_at_least_one():
    long = [make_row("word " * 400, rating=1 + number % 5) for number in range(20)]
    one = estimate_tokens("word " * 400)
    assert contrast(long, TASK, max_tokens=5 * one).shown_each == 2
    assert contrast(long, TASK, max_tokens=10).shown_each == 1


def test_ties_and_order_follow_the_seed():
    tied = rows(*[1] * 10, *[5] * 10)
    assert contrast(tied, TASK, seed=1) == contrast(tied, TASK, seed=1)
    assert len({contrast(tied, TASK, seed=seed).liked for seed in range(6)}) > 1


def test_examples_show_rating_scale_input_and_references():
    shown = contrast(planted_rows(sources=2), TASK, each=1).liked
    assert "(1 to 5)" in shown
    assert all(label in shown for label in ("rating", "input:", "references:", "output:", "«begin"))


def test_distinct_axes_keep_the_first_of_a_name():
    axes = [Axis(name="Plain words", meaning="a"), Axis(name="plain-words", meaning="b"), Axis(name=" ", meaning="c")]
    assert [axis.meaning for axis in distinct(axes)] == ["a"]
    with pytest.raises(JudgementFailed):
        distinct([Axis(name="", meaning="x")])


@pytest.mark.parametrize("levels", [["a"] * 4, ["a"] * 6, ["a", "b", " ", "d", "e"]])
def test_a_rubric_of_another_size_is_a_failure(levels):
    with pytest.raises(JudgementFailed, match="five are needed"):
        five(levels)


def test_token_estimates_count_four_ascii_characters_or_one_other():
    assert estimate_tokens("") == 0
    assert estimate_tokens("a" * 40) == 10
    assert estimate_tokens("漢字") == 2


@pytest.mark.parametrize(
    ("generator", "inputs"),
    [
        (AxesGenerator(), {"task": "t", "rating": "r", "liked": "l", "disliked": "d", "count": 4}),
        (RubricGenerator(), {"task": "t", "criterion": "c"}),
    ],
    ids=["axes", "rubric"],
)
def test_the_async_twin_of_a_generator_gives_the_same(generator, inputs):
    with GivenModel(scripted) as server, dspy.context(lm=server.lm()):
        plain, twin = generator(**inputs), asyncio.run(generator.acall(**inputs))
    assert twin.toDict() == plain.toDict()
    assert server.prompts[0] == server.prompts[1]
    assert len(plain.get("axes") or plain.get("levels")) == (4 if "count" in inputs else 5)
