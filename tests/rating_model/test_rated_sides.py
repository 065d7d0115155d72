"""People and judges on the items that all of them rated, under one beta."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.rated_sides import RatedSides, beta_of
from metricsmith.rating_model.ratings import Ratings
from metricsmith.rating_model.response_sets import ResponseSets
from metricsmith.rating_model.vectors import Decision, RatingVectors

OPTIONS = ("yes", "no", "unsure")
SETS = ResponseSets.of(OPTIONS, [["yes"], ["no"], ["unsure"], ["yes", "no"], ["yes", "unsure"]])
DECISION = Decision(("yes",), 0.5)


def rated(answers, sets=False, rater=0, **settings):
    """Ratings of items by one rater each; a string of first letters, one per item."""
    full = {option[0]: option for option in OPTIONS}
    rows = [(f"i{item}", rater, full.get(letter)) for item, letter in enumerate(answers)]
    return Ratings.from_rows(rows, OPTIONS, sets=sets, **settings)


def sides_of(human, judges, **settings):
    given = {"response_sets": SETS, "decision": DECISION, "added": None, "target": None, "beta": 0.0, "groups": None,
             "ties": "split", "seed": 0} | settings  # fmt: skip
    return RatedSides.of(human, judges, **given)


def test_items_are_those_that_people_and_every_compared_judge_rated():
    human = rated("yn.uyy")
    data = sides_of(human, {"a": rated("yyyy.y"), "b": rated("nnnnnn"), "rare": rated("yn....")})
    assert (data.names, list(data.items)) == (["a", "b"], ["i0", "i1", "i3", "i5"])
    assert data.kept.tolist() == [True, True, False, True, False, True]
    assert data.left_out == {"rare": "valid ratings of 2 of people's 5 items"}
    notes = list(data.notes())
    assert notes[0] == "2 of 6 items are left out, for want of a valid rating: people 1, judge a 1"
    assert "people: 1 of 6 ratings have no valid answer" in notes
    assert "judge a: 1 of 6 ratings have no valid answer" in notes
    assert any(note.startswith("4 of 4 items have one human rating") for note in notes)


def test_a_judge_needs_more_than_half_of_peoples_items():
    human = rated("ynyn")
    assert sides_of(human, {"a": rated("ynyn"), "b": rated("yny."), "half": rated("yn..")}).names == ["a", "b"]


def test_items_of_judges_are_brought_into_peoples_order():
    human = rated("yynn")
    turned = Ratings.from_rows([(f"i{item}", 0, "no") for item in (7, 3, 2, 1, 0)], OPTIONS)
    answers = [("i3", 0, "no"), ("i2", 0, "no"), ("i1", 0, "yes"), ("i0", 0, "yes")]
    data = sides_of(human, {"same": Ratings.from_rows(answers, OPTIONS), "no": turned})
    sides = data.sides(0.0)
    np.testing.assert_array_equal(sides.judges.choices[0], sides.human.choices)
    assert (sides.judges.choices[1] == [0, 1, 0]).all()


def test_one_beta_means_the_same_on_both_sides_and_leaves_given_sets_alone():
    # One rater each; .4 of those who chose no or unsure would have endorsed yes as well.
    human = rated("ynu")
    both = (rated("ynu"), Ratings.from_rows([(f"i{i}", 0, ["no"]) for i in range(3)], OPTIONS, sets=True))
    data = sides_of(human, {"alike": rated("ynu"), "sets": both}, beta=0.4)
    sides = data.sides(0.4)
    assert sides.human.endorsements == pytest.approx(np.array([[1, 0, 0], [0.4, 1, 0], [0.4, 0, 1]]))
    np.testing.assert_array_equal(sides.judges.endorsements[0], sides.human.endorsements)
    assert (sides.judges.endorsements[1] == [0, 1, 0]).all()
    assert [data.knows_sets(one) for one in (human, both, both[1], sides.human)] == [False, True, True, True]


def test_beta_adds_the_first_positive_option_to_choices_that_are_not_positive():
    assert beta_of(DECISION, OPTIONS, 0.3) == {("no", "yes"): 0.3, ("unsure", "yes"): 0.3}
    several = Decision(("yes", "unsure"))
    assert beta_of(several, OPTIONS, 0.3, "unsure") == {("no", "unsure"): 0.3}
    with pytest.raises(OptionError, match="'maybe' is no option"):
        beta_of(DECISION, OPTIONS, 0.3, "maybe")


def test_a_beta_without_a_decision_or_a_set_for_it_is_an_error():
    human, judges = rated("yn"), {"a": rated("yn"), "b": rated("ny")}
    with pytest.raises(OptionError, match="needs a decision"):
        sides_of(human, judges, decision=None, beta=0.1)
    with pytest.raises(OptionError, match=r"beta needs the response set \['no', 'unsure'\]"):
        sides_of(human, judges, decision=Decision(("unsure",)), beta=0.1)
    with pytest.raises(OptionError, match=r"beta 1.5 is no share"):
        sides_of(human, judges, beta=1.5)


def test_items_without_response_sets_or_without_a_target_are_left_out():
    given = [("i0", 0, ["yes"]), ("i1", 0, None), ("i2", 0, ["no"]), ("i3", 0, ["no"])]
    lacking = Ratings.from_rows(given, OPTIONS, sets=True)
    target = RatingVectors.of_population(SETS, [[1, 0, 0], [0, 1, 0], [math.nan] * 3, [0, 1, 0]])
    data = sides_of((rated("yynn"), lacking), {"a": rated("yynn"), "b": rated("nnnn")}, target=target)
    assert list(data.items) == ["i0", "i3"]
    assert data.sides(0.0).people.choices.tolist() == [[1, 0, 0], [0, 1, 0]]
    with pytest.raises(DataError, match=r"target \(4, 3\) does not fit 2 items"):
        sides_of(rated("yn"), {"a": rated("yn"), "b": rated("ny")}, target=target)


def test_groups_come_from_the_ratings_or_the_argument():
    human = rated("yn.n", groups={"i0": "x", "i1": "x", "i2": "y", "i3": "z"})
    judges = {"a": rated("ynyn"), "b": rated("ynyn")}
    assert list(sides_of(human, judges).labels) == ["x", "x", "z"]
    assert list(sides_of(human, judges, groups=[1, 2, 3, 4]).labels) == [1, 2, 4]
    assert list(sides_of(rated("yn.n"), judges).labels) == [0, 1, 3]
    with pytest.raises(DataError, match="3 groups for 4 items"):
        sides_of(human, judges, groups=[1, 2, 3])


def test_too_few_judges_or_items_are_errors_that_say_why():
    human = rated("ynyn")
    with pytest.raises(OptionError, match="number of judges: 1; give at least two"):
        sides_of(human, {"a": rated("ynyn")})
    with pytest.raises(
        DataError, match=r"compared: 1, items that .* with people: 4.*b: valid ratings of 0 of people's 4"
    ):
        sides_of(human, {"a": rated("ynyn"), "b": rated("....")})
    with pytest.raises(DataError, match="compared: 2, items that they share with people: 1"):
        sides_of(rated("y"), {"a": rated("y"), "b": rated("n")})


def test_arguments_of_another_type_are_named():
    one, rows = rated("ynyn"), [("i0", 0, "yes")]
    with pytest.raises(OptionError, match="judges are a list: give a mapping"):
        sides_of(one, [one, one])
    with pytest.raises(OptionError, match="ratings of judge 'b' are a list: give Ratings"):
        sides_of(one, {"a": one, "b": rows})
    with pytest.raises(OptionError, match="ratings of people are a tuple: give Ratings"):
        sides_of((one, rows), {"a": one, "b": one})
    with pytest.raises(OptionError, match="beta 'x' is neither a number nor a mapping"):
        sides_of(one, {"a": one, "b": one}, beta="x")


def test_an_option_that_beta_cannot_add_is_told_from_a_positive_one():
    with pytest.raises(OptionError, match="the added option: 'ye' is no option"):
        beta_of(DECISION, OPTIONS, 0.1, "ye")
    with pytest.raises(OptionError, match="positive options: 'ye' is no option"):
        beta_of(Decision(("ye",)), OPTIONS, 0.1, "yes")


def test_judges_of_unnamed_items_have_to_agree_on_their_order():
    people = RatingVectors.of_population(SETS, [[1, 0, 0], [0, 1, 0]])
    turned = Ratings.from_rows([("i1", 0, "no"), ("i0", 0, "yes")], OPTIONS)
    assert sides_of(people, {"a": rated("yn"), "b": people}).items == ["0", "1"]
    with pytest.raises(DataError, match="one order by of_items"):
        sides_of(people, {"a": rated("yn"), "b": turned})
    with pytest.raises(DataError, match="judge 'b' has 3 items, people 2"):
        sides_of(people, {"a": people, "b": RatingVectors.of_population(SETS, np.eye(3))})


def test_ratings_are_drawn_within_items_and_choices_with_their_sets():
    rng = np.random.default_rng(0)
    letters = rng.choice(list("yn"), size=(30, 4))
    names = {"y": "yes", "n": "no"}
    rows = [(f"i{item}", rater, names[letters[item, rater]]) for item in range(30) for rater in range(4)]
    choices = Ratings.from_rows(rows, OPTIONS)
    sets = Ratings.from_rows([(item, rater, [answer]) for item, rater, answer in rows], OPTIONS, sets=True)
    judges = {"a": choices, "b": choices}
    data = sides_of((choices, sets), judges)
    draws = [data.redrawn(np.random.default_rng(seed), 0.0) for seed in range(400)]
    for draw in draws[:20]:
        np.testing.assert_allclose(draw.sets[:, :2], draw.choices[:, :2])
    shares = np.stack([draw.choices[:, 0] for draw in draws])
    truth = data.sides(0.0).human.choices[:, 0]
    assert np.abs(shares.mean(axis=0) - truth).max() < 0.08
    np.testing.assert_allclose(shares.var(axis=0), truth * (1 - truth) / 4, atol=0.015)
    with pytest.raises(OptionError, match="vectors have no raters"):
        sides_of(draws[0], {"a": draws[0], "b": draws[1]}).redrawn(rng, 0.0)
