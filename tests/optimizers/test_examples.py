"""Examples for a judge: balanced over the ratings, within the tokens, by the seed."""

from __future__ import annotations

import doctest
from itertools import combinations

import dspy
import numpy as np
import pytest
from dspy.utils import DummyLM
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import DataError, OptionError
from metricsmith.metric import make_row
from metricsmith.model_calls.limits import estimate_tokens
from metricsmith.optimizers import examples
from metricsmith.optimizers.examples import draw_examples, rating_strata
from metricsmith.programs.judges.raters import ExampleJudge
from metricsmith.records import Scale

JUDGE = ExampleJudge(measure="Clarity", task="Rewrite notices.", scale=Scale(1, 5))
ROWS = [make_row(f"Text number {number}. " + "word " * (number % 7)) for number in range(60)]
RATINGS = [1 + (number * 7 % 41) / 10 for number in range(60)]
EXAMPLES = [JUDGE.example(row, rating) for row, rating in zip(ROWS, RATINGS, strict=True)]


def test_the_examples_are_right():
    assert doctest.testmod(examples).failed == 0


@settings(deadline=None, max_examples=150)
@given(st.lists(st.integers(1, 8), min_size=1, max_size=25), st.integers(1, 5))
def test_strata_are_the_best_balanced_of_all_that_keep_ties_together(ratings, strata):
    found = rating_strata(ratings, strata)
    order = np.argsort(ratings, kind="stable")
    assert (np.diff(found[order]) >= 0).all()
    levels, sizes = np.unique(ratings, return_counts=True)
    assert all(len(set(found[np.array(ratings) == level].tolist())) == 1 for level in levels)
    parts = min(strata, len(levels))
    assert sorted(set(found.tolist())) == list(range(parts))
    best = min(
        sum(int(sizes[low:high].sum()) ** 2 for low, high in zip((0, *cuts), (*cuts, len(levels)), strict=True))
        for cuts in combinations(range(1, len(levels)), parts - 1)
    )
    assert int((np.bincount(found) ** 2).sum()) == best


def test_continuous_ratings_give_quantiles_and_thumbs_two_strata():
    random = np.random.default_rng(0)
    assert np.bincount(rating_strata(random.normal(size=100), 5)).tolist() == [20] * 5
    assert np.bincount(rating_strata([0] * 90 + [1] * 10, 5)).tolist() == [90, 10]
    assert rating_strata([3.0, 3.0], 5).tolist() == [0, 0]


def tokens_of(example):
    return sum(estimate_tokens(str(text)) + 8 for text in example.values())


def test_a_draw_is_balanced_within_the_tokens_and_in_no_order():
    strata = rating_strata(RATINGS, 5)
    draws = draw_examples(EXAMPLES, RATINGS, tokens=10_000, draws=8)
    assert len(draws) == 8
    for draw in draws:
        assert len(set(draw)) == 10
        assert np.bincount(strata[draw]).tolist() == [2] * 5
    assert any((np.diff(strata[draw][:5]) < 0).any() for draw in draws)
    cost = sorted(map(tokens_of, EXAMPLES))
    few = draw_examples(EXAMPLES, RATINGS, tokens=4 * cost[-1], draws=8)
    assert all(4 <= len(draw) < 10 for draw in few)
    for draw in few:
        assert sum(tokens_of(EXAMPLES[place]) for place in draw) <= 4 * cost[-1]
        assert np.bincount(strata[draw], minlength=5).max() <= 2


def test_a_row_that_is_too_long_is_passed_over_for_another_of_its_stratum():
    rows = [make_row("word " * 5000), *(make_row("short") for _ in range(5))]
    ratings = [5, 5, 4, 3, 2, 1]
    shown = [JUDGE.example(row, rating) for row, rating in zip(rows, ratings, strict=True)]
    (draw,) = draw_examples(shown, ratings, tokens=1000, each=1, draws=1)
    assert sorted(draw) == [1, 2, 3, 4, 5]


def test_the_seed_decides():
    def drawn(seed):
        return draw_examples(EXAMPLES, RATINGS, tokens=10_000, seed=seed)

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_equal_draws_are_given_once():
    assert len(draw_examples(EXAMPLES[:2], [1, 5], tokens=10_000, draws=5)) == 1


def test_examples_stand_in_the_prompt_in_the_saved_judge_and_in_the_fingerprint():
    judge = JUDGE.with_examples(ROWS[:2], [1.0, 4.5], ["It is long.", ""])
    assert JUDGE.examples == []
    assert judge.fingerprint() != JUDGE.fingerprint()
    again = ExampleJudge.from_state(judge.to_state())
    assert again.fingerprint() == judge.fingerprint()
    text = str(again.messages(ROWS[5]))
    assert "Text number 0." in text
    assert "Text number 1." in text
    assert "It is long." in text
    # Halves are averages of stars and are shown as stars: 4.5 lies between 4 and 5, of which 5 is an even step from 1.
    assert [demo["score"] for demo in again.examples] == [1, 5]
    assert "[[ ## score ## ]]\\n5\\n" in text
    assert "4.5" not in text


def test_on_a_scale_of_errors_fewer_are_better():
    judge = ExampleJudge(measure="Errors", task="Translate.", scale=Scale(0, 10, 1, higher_is_better=False))
    with dspy.context(lm=DummyLM([{"reasoning": "r", "score": "2.5"}])):
        verdict = judge(output="text")
    assert (verdict.raw, verdict.score) == (2.5, 0.75)
    assert judge.output.score(2.5) == 0.75
    assert judge.question()["scale"] == "Errors: a number from 0 to 10 in steps of 1; 0 is best"


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: rating_strata([1, 2], 0), OptionError, "1 or more"),
        (lambda: rating_strata([]), DataError, "at least one"),
        (lambda: rating_strata([1, float("nan")]), DataError, "finite"),
        (lambda: draw_examples(EXAMPLES, RATINGS, tokens=5), OptionError, "the shortest takes"),
        (lambda: draw_examples(EXAMPLES, RATINGS, tokens=500, each=0), OptionError, "1 or more"),
        (lambda: draw_examples(EXAMPLES, [1.0], tokens=500), DataError, "as many of each"),
        (lambda: JUDGE.with_examples(ROWS[:1], [9]), DataError, "not on the scale 1 to 5"),
        (lambda: JUDGE.with_examples(ROWS[:1], [1, 2]), DataError, "as many of each"),
        (lambda: ExampleJudge(measure="m", task="t", scale=Scale(1, 5).__class__(5, 1)), OptionError, "low < high"),
    ],
)
def test_wrong_input_is_named(call, error, says):
    with pytest.raises(error, match=says):
        call()
