"""Reading a stated level, and the spread of probability at its place."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.errors import JudgementFailed
from metricsmith.programs.judges.levels import level_shares, number_in, stated_level
from metricsmith.records import Scale, Status
from metricsmith.testing import token_entry as entry
from metricsmith.testing import token_logprobs as logprobs

FIVE = Scale(1, 5, 1)
ANSWER = "[[ ## reasoning ## ]]\nStep 2 of 5: fine.\n\n[[ ## score ## ]]\n{}\n\n[[ ## completed ## ]]"


@pytest.mark.parametrize(
    "text",
    [
        "4", " 4", "4\n", "\n4", "'4'", '"4"', "**4**", "`4`", "(4)", "[4]", "4.", "4.0", "4/5", "4 / 5", "4 out of 5",
        "four", "Four", " FOUR.", "**four**", "4/", '4"}', "4,", "]]\n4", ": 4",
    ],
)  # fmt: skip
def test_what_says_four(text):
    assert number_in(text, FIVE) == 4


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "4.5", "4,5", "4/10", "4 5", "4-5", "4%", "40%", "four five", "fourth", "f", "good", "4 stars", "x4",
        "4 out of 10", "²", "4e0", "9" * 400, "9" * 5000,
    ],
)  # fmt: skip
def test_what_says_no_number(text):
    assert number_in(text, FIVE) is None


def test_numbers_off_the_scale_are_read_and_refused_as_such():
    assert number_in("-1", FIVE) == -1
    with pytest.raises(JudgementFailed, match="score 10 is not on the scale 1 to 5") as caught:
        stated_level("ten", FIVE)
    assert caught.value.status is Status.OUT_OF_RANGE
    with pytest.raises(JudgementFailed, match=r"score '4\.5' is no whole number from 1 to 5") as caught:
        stated_level("4.5", FIVE)
    assert caught.value.status is Status.UNPARSABLE
    assert caught.value.repairable


@given(st.integers(-99, 99), st.sampled_from(["{}", " {}\n", '"{}"', "**{}**", "{}.", "{}.0"]))
def test_a_level_is_on_the_scale_or_refused(number, form):
    text = form.format(number)
    if 1 <= number <= 5:
        assert stated_level(text, FIVE) == number
    else:
        with pytest.raises(JudgementFailed, match="not on the scale"):
            stated_level(text, FIVE)


def spread(shares, *, written=None, stated=4, min_mass=0.9, scale=FIVE, answer=ANSWER):
    text = answer.format(stated if written is None else written)
    return level_shares(logprobs(text, shares), stated, scale, min_mass)


def test_the_mean_is_taken_over_the_levels_by_their_renormalised_probability():
    # .6 of .96 on 4, .3 on 5, .06 on 3: (.6 * 4 + .3 * 5 + .06 * 3) / .96 = 4.08 / .96 = 4.25
    found = spread({"4": 0.6, "5": 0.3, "3": 0.06, "A": 0.04})
    assert found.mean == pytest.approx(4.25)
    assert found.covered == pytest.approx(0.96)
    assert found.shares == pytest.approx({1: 0, 2: 0, 3: 0.0625, 4: 0.625, 5: 0.3125})
    assert str(found) == "3: 6%, 4: 62%, 5: 31%"


def test_a_level_of_almost_no_probability_counts_but_is_not_shown():
    found = spread({"4": 0.996, "1": 0.004})
    assert found.mean == pytest.approx(4 - 0.012)
    assert str(found) == "4: 100%"


def test_a_log_probability_above_nothing_is_certainty():
    certain = {"token": "4", "logprob": 1000.0, "top_logprobs": [{"token": "4", "logprob": 1000.0}]}
    found = level_shares({"content": [entry("[[ ## score ## ]]\n", {}), certain]}, 4, FIVE, 0.9)
    assert (found.mean, found.covered) == (4, 1)


def test_candidates_that_say_the_same_level_are_added_up():
    # 4 has .3 + .2 + .1 + .1, 2 has .2 + .1: .7 * 4 + .3 * 2 = 3.4
    found = spread({"4": 0.3, " 4": 0.2, "four": 0.1, "4/": 0.1, "\n2": 0.2, " two": 0.1})
    assert found.mean == pytest.approx(3.4)


def test_numbers_that_are_no_levels_count_for_nothing():
    found = spread({"4": 0.94, "10": 0.02, "6": 0.02, "0": 0.01, "-4": 0.01})
    assert (found.mean, found.covered) == (pytest.approx(4), pytest.approx(0.94))


def test_a_token_that_is_not_among_the_listed_ones_counts_all_the_same():
    # Sampling may pick what is beyond the listed alternatives: .02 for 4 itself, .98 for 3.
    content = logprobs(ANSWER.format("4"), {"3": 0.98, "4": 0.02}, top=1)
    assert level_shares(content, 4, FIVE, 0.9).mean == pytest.approx(3.02)


@pytest.mark.parametrize("name", ["mapping", "object"])
def test_engines_hand_on_mappings_or_objects(name):
    content = logprobs(ANSWER.format("4"), {"4": 0.5, "5": 0.5})
    if name == "object":
        tokens = [
            SimpleNamespace(**{**token, "top_logprobs": [SimpleNamespace(**top) for top in token["top_logprobs"]]})
            for token in content["content"]
        ]
        content = SimpleNamespace(content=tokens)
    assert level_shares(content, 4, FIVE, 0.9).mean == pytest.approx(4.5)


@pytest.mark.parametrize(
    "pieces",
    [
        ["[[ ## score ## ]]\n", "4", "\n\n", "[[ ## completed ## ]]"],
        ["[[ ## score ## ]]", "\n4", "\n\n[["],
        ["[[ ## score ##", " ]]\n4", "\n"],
        ["[[ ## score ## ]] ", "4", "/5"],
        ["[[ ## score ## ]]\n", '"', "4", '"'],
        ["[[ ## score ## ]]\n", "**", "4.", "**"],
        ["[[ ## score ## ]]\n", " four", "\n"],
        ["[[ ## score ## ]]\n", " 4\n\n", "[["],
        ["[[Ġ##Ġscore", "Ġ##Ġ]]Ċ", "4", "Ċ"],
        ["[[▁##▁score▁##▁]]\n", "▁4"],
        ['{"reasoning": "say \\"score\\": 2", "score": ', "4", "}"],
        ['{"reasoning": "r", "score": "', '4"', "}"],
    ],
    ids=str,
)
def test_the_token_is_the_one_in_which_the_value_begins(pieces):
    reasons = [] if pieces[0].startswith("{") else ["[[ ## reasoning ## ]]\n", "2", " of ", "5", ", score: ", "3", "\n"]
    place = next(number for number, piece in enumerate(pieces) if number_in(piece.replace("▁", " "), FIVE) == 4)
    tokens = [entry(piece, {piece: 0.5, "5": 0.5} if at == place else {piece: 1.0}) for at, piece in enumerate(pieces)]
    content = {"content": [*(entry(piece, {piece: 1.0}) for piece in reasons), *tokens]}
    assert level_shares(content, 4, FIVE, 0.9).mean == pytest.approx(4.5)


def test_a_header_within_a_line_of_the_reasons_is_no_header():
    answer = "[[ ## reasoning ## ]]\nI see [[ ## score ## ]] 4 there.\n\n[[ ## score ## ]]\n{}\n\n[[ ## completed ## ]]"
    assert spread({"4": 0.5, "2": 0.5}, answer=answer).mean == pytest.approx(3)


FAILURES = {
    "none": (None, "without log-probabilities"),
    "empty": ({"content": []}, "without log-probabilities"),
    "no content": ({"content": None}, "without log-probabilities"),
    "another field": (logprobs("[[ ## rating ## ]]\n4\n\n[[ ## completed ## ]]", {"4": 1.0}), "cannot be found"),
    "another number": (logprobs(ANSWER.format("3"), {"3": 1.0}), "token that says 4 cannot be found"),
    "cut off": ({"content": [entry("[[ ## score ## ]]\n", {})]}, "cannot be found"),
    "no alternatives": (logprobs(ANSWER.format("4"), {"4": 1.0}, top=0), "name no alternatives"),
    "a word in two tokens": (
        {"content": [entry("[[ ## score ## ]]\n", {}), entry("fo", {"fo": 0.9, "4": 0.1}), entry("ur", {"ur": 1.0})]},
        "10% of the probability .* 90% are needed",
    ),
    "other tokens": (logprobs(ANSWER.format("4"), {"4": 0.5, "The": 0.5}), "50% of the probability"),
    "no numbers": (
        {"content": [entry("[[ ## score ## ]]\n", {}), {**entry("4", {"4": 1.0}), "logprob": math.nan,
         "top_logprobs": [{"token": "4", "logprob": None}]}]},
        "0% of the probability",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_without_a_usable_spread_the_judgement_fails_and_says_what_to_do(name):
    content, words = FAILURES[name]
    with pytest.raises(JudgementFailed, match=words) as caught:
        level_shares(content, 4, FIVE, 0.9)
    assert caught.value.status is Status.UNPARSABLE
    assert not caught.value.repairable
    assert "use mode='sampled' with n=..., or mode='stated'" in str(caught.value)


def test_the_least_mass_is_enough():
    assert spread({"4": 0.5, "A": 0.5}, min_mass=0.5).covered == pytest.approx(0.5)


@given(
    st.dictionaries(st.integers(0, 9), st.floats(1e-6, 1), min_size=1),
    st.floats(0, 0.09),
    st.sampled_from([(1, 5), (0, 9), (0, 1), (2, 7)]),
)
def test_the_mean_lies_between_the_levels_that_have_any_probability(weights, elsewhere, ends):
    scale = Scale(*ends, 1)
    inside = {level: weight for level, weight in weights.items() if scale.contains(level)}
    if not inside:
        return
    total = sum(inside.values()) / (1 - elsewhere)
    shares = {str(level): weight / total for level, weight in inside.items()}
    found = spread({**shares, "A": elsewhere} if elsewhere else shares, stated=max(inside), scale=scale, min_mass=0.9)
    assert min(inside) - 1e-9 <= found.mean <= max(inside) + 1e-9
    # Independent of renormalisation: the same mean from the weights themselves.
    assert found.mean == pytest.approx(sum(k * w for k, w in inside.items()) / sum(inside.values()), abs=1e-6)
    assert found.covered == pytest.approx(1 - elsewhere, abs=1e-6)
    assert sum(found.shares.values()) == pytest.approx(1)
