"""The sections on differences between people and the pick, and on a judge in place of a rater."""

from __future__ import annotations

import numpy as np
import pytest

from metricsmith.rating_model.ratings import Ratings
from metricsmith.rating_model.vectors import Decision
from metricsmith.report.render import render_markdown
from metricsmith.report.validation.document import ValidationDocument
from metricsmith.report.validation.record import validate_judges

OPTIONS = ("very rude", "rude", "fine")
RUDE = Decision(("very rude", "rude"))
RNG = np.random.default_rng(4)
TRUE = RNG.integers(0, 3, 40)


def rated(of_item, raters, *, sets=False):
    """Ratings by a function of an item and of a rater's number."""
    rows = [(item, f"r{rater}", of_item(item, rater)) for item in range(40) for rater in range(raters)]
    return Ratings.from_rows(rows, OPTIONS, sets=sets)


def truth(item, _rater):
    return OPTIONS[TRUE[item]]


def milder(item, _rater):
    return OPTIONS[max(TRUE[item], 1)]


def guess(item, rater):
    return OPTIONS[(TRUE[item] + (7 * item + rater) % 3) % 3]


def validated(people, *, decision=RUDE, pick=milder, **settings):
    judges = settings.pop("judges", None) or {"pick": rated(pick, 2), "guess": rated(guess, 1)}
    return validate_judges(people, judges, OPTIONS, decision=decision, draws=50, **settings)


def section(record, name):
    text = render_markdown(ValidationDocument(record))
    return text.split(f"## {name}")[1].split("\n## ")[0]


def test_options_on_one_side_of_the_decision_do_not_differ():
    people = rated(lambda item, rater: "fine" if (item, rater) in {(0, 0), (1, 0)} else truth(item, rater), 4)
    found = validated(people)
    assert found.selection.pick == "pick"
    assert found.clinic.cases == ()
    chosen = validated(people, decision=None, by="hit_rate").clinic  # without a decision the choices are compared
    assert {case.kind for case in chosen.cases} == {"judge error"}


def test_sets_are_looked_at_where_both_sides_gave_them():
    def right(item, _rater):
        return ["fine"] if item % 2 else ["rude", "fine"]

    def nearly(item, rater):  # the judge's choices differ from people's on every other item
        return ["rude"] if item == 1 else right(item, rater)

    people = rated(lambda item, _: "fine", 4), rated(right, 4, sets=True)
    own = rated(lambda item, _: right(item, 0)[0], 1), rated(nearly, 1, sets=True)
    other = rated(guess, 1), rated(lambda item, rater: [guess(item, rater)], 1, sets=True)
    found = validated(people, judges={"pick": own, "other": other}, sets="all")
    assert found.selection.pick == "pick"
    assert [(case.item, case.judge) for case in found.clinic.cases] == [(1, "very rude or rude")]
    told = section(found, "Where pick and people differ")
    assert "Compared is what each side says most often, very rude or rude, or not, whatever the threshold" in told
    without = validated(people[1], judges={"pick": own[1], "other": other[1]}, sets="all", decision=None)
    assert without.clinic is None
    assert any("differences between the judge and people are not looked into" in note for note in without.notes)


def test_counts_say_nothing_of_raters_and_the_notes_say_so():
    named = rated(lambda item, rater: guess(item, rater) if rater > 3 else truth(item, rater), 7)
    found = validated(Ratings.from_counts(named.counts, OPTIONS, named.items), pick=guess)
    assert found.replacing == {}
    assert found.clinic.split is None
    assert any(note.startswith("people's ratings are counts, which do not say who rated") for note in found.notes)
    told = section(found, f"Where {found.selection.pick} and people differ")
    assert "Raters were not tested for two policies: counts do not say who rated." in told
    assert "policy" not in {case.kind for case in found.clinic.cases}
    case = found.clinic.cases[0]
    assert f"{case.raters[0][0]}: {len(case.raters[0][1])}" in told


@pytest.mark.parametrize(
    ("raters", "headings"),
    [(1, {"one rating"}), (2, {"judge error"}), (3, {"judge error"}), (4, {"judge error"})],
)
def test_sentences_hold_for_few_raters(raters, headings):
    found = validated(rated(truth, raters), decision=None, by="hit_rate")
    told = section(found, f"Where {found.selection.pick} and people differ")
    assert {case.kind for case in found.clinic.cases} == headings
    assert "Raters were not tested for two policies: that takes four who disagree." in told
    assert "agree with each other" not in told
    assert ("1 of 1" in told, "rater noise" in told) == (False, False)
    assert "raters may find the judge's choice right all the same" in told


def test_two_to_one_is_said_as_it_is():
    people = rated(lambda item, rater: milder(item, rater) if rater == 2 else truth(item, rater), 3)
    found = validated(people, decision=None, by="hit_rate")
    told = section(found, "Where pick and people differ")
    assert {case.kind for case in found.clinic.cases} == {"rater noise"}
    assert "1 of 3 raters said 'rude', as the judge did in 2 of 2 answers" in told
    assert "raters are split: more said something else, but enough said what the judge says" in told


def test_a_split_that_was_tested_and_not_found_has_its_p_value_and_ties_are_counted():
    def torn(item, rater):  # between very rude and rude; wrong on the first item
        return OPTIONS[(TRUE[0] + 1) % 3] if item == 0 else (milder if rater else truth)(item, rater)

    people = rated(lambda item, rater: guess(item, rater) if rater == item % 4 else truth(item, rater), 4)
    found = validated(people, pick=torn, decision=None, by="hit_rate")
    assert [case.item for case in found.clinic.cases] == [0]
    told = section(found, "Where pick and people differ")
    assert "Raters were tested for two policies, which were not found (p" in told
    assert f"On {sum(TRUE[1:] == 0)} items a side is tied between answers, one of which the other gives too" in told


def test_the_annotator_test_is_shown_with_its_caveat():
    told = section(validated(rated(truth, 3)), "In place of one of the raters")
    assert "with .2 (epsilon) allowed for what people cost" in told
    assert "a weak judge passes too. So it ranks no judges." in told
