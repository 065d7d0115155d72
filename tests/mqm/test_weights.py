"""Weights, taxonomy and score of MQM errors."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.errors import DataError, OptionError, StateError
from metricsmith.mqm import SEVERITIES, TAXONOMY, MQMWeights, WeightRule, mqm_score, span_weight
from metricsmith.records import ErrorSpan

CRITICAL = ErrorSpan("critical", "accuracy/omission")
MAJOR = ErrorSpan("Major", "Accuracy/Mistranslation")
MINOR = ErrorSpan("minor", "Style/Awkward")
COMMA = ErrorSpan("Minor", "Fluency/Punctuation")
TASTE = ErrorSpan("Neutral", "Style/Awkward")
GARBLED = ErrorSpan("Major", "Non-translation!")

errors = st.lists(st.sampled_from([CRITICAL, MAJOR, MINOR, COMMA, TASTE, GARBLED]), max_size=40)
presets = st.sampled_from([MQMWeights.gemba(), MQMWeights.wmt()])


@pytest.mark.parametrize(
    ("span", "gemba", "wmt"),
    # GEMBA-MQM V2, section 3; Freitag et al. (2021), table of weights.
    [(CRITICAL, 25, 5), (MAJOR, 5, 5), (MINOR, 1, 1), (COMMA, 0.1, 0.1), (TASTE, 0, 0), (GARBLED, 5, 25)],
)
def test_the_two_presets(span, gemba, wmt):
    assert span_weight(span, MQMWeights.gemba()) == gemba
    assert span_weight(span, MQMWeights.wmt()) == wmt


def test_only_minor_punctuation_is_cheap():
    assert span_weight(ErrorSpan("Major", "Fluency/Punctuation"), MQMWeights.wmt()) == 5
    assert span_weight(ErrorSpan("Minor", "Fluency/Grammar"), MQMWeights.wmt()) == 1


@pytest.mark.parametrize("category", ["Fluency/Punctuation", "fluency/punctuation", "PUNCTUATION", "punctuation"])
def test_spellings_of_a_category_are_one(category):
    assert span_weight(ErrorSpan("MINOR", category), MQMWeights.gemba()) == 0.1


@pytest.mark.parametrize("category", ["Non-translation!", "non-translation", "non_translation", "Non translation"])
def test_a_non_translation_weighs_the_same_whatever_its_severity(category):
    assert span_weight(ErrorSpan("minor", category), MQMWeights.wmt()) == 25


def test_part_of_a_word_is_not_its_category():
    assert span_weight(ErrorSpan("minor", "fluency/no punctuation"), MQMWeights.wmt()) == 1
    assert span_weight(ErrorSpan("minor", "punctuation/other"), MQMWeights.wmt()) == 1
    weights = MQMWeights(3, 2, 1, rules=(WeightRule("minor", "fluency/punctuation", 0.5),))
    assert span_weight(ErrorSpan("minor", "punctuation"), weights) == 1


def test_the_first_rule_that_fits_decides():
    rules = (WeightRule("minor", "style/awkward", 0.5), WeightRule("minor", "awkward", 0.7))
    weights = MQMWeights(3, 2, 1, rules=rules)
    assert span_weight(MINOR, weights) == 0.5
    assert span_weight(ErrorSpan("minor", "awkward"), weights) == 0.7


def test_the_score_is_the_negated_sum():
    # The paper's table 1, run 8: two critical, one major; run 2: two major, one minor.
    assert mqm_score([CRITICAL, CRITICAL, MAJOR], MQMWeights.gemba()) == -55
    assert mqm_score([MAJOR, MAJOR, MINOR], MQMWeights.gemba()) == -11
    assert mqm_score([MAJOR, MINOR, COMMA, GARBLED, TASTE], MQMWeights.wmt()) == -31.1


def test_errors_in_the_source_count():
    assert mqm_score([ErrorSpan("major", "Source issue", side="source")], MQMWeights.wmt()) == -5


@pytest.mark.parametrize("spans", [[], [TASTE]])
@pytest.mark.parametrize("cap", [None, 5])
def test_nothing_lost_is_a_plain_zero(spans, cap):
    score = mqm_score(spans, MQMWeights.wmt(cap=cap))
    assert score == 0
    assert math.copysign(1, score) == 1


def test_tenths_add_up_as_decimals():
    assert mqm_score(3 * [COMMA], MQMWeights.wmt()) == -0.3  # the float .1 three times is .30000000000000004
    assert mqm_score(7 * [COMMA] + [MINOR], MQMWeights.wmt()) == -1.7


def test_caps_are_off_unless_asked_for():
    many = 6 * [GARBLED]
    assert mqm_score(many, MQMWeights.wmt()) == -150
    assert mqm_score(many, MQMWeights.wmt(cap=25)) == -25
    assert mqm_score(6 * [MINOR] + [MAJOR], MQMWeights.gemba(max_errors=5)) == -9
    assert mqm_score([COMMA], MQMWeights.wmt(cap=25)) == -0.1


@given(errors, presets, st.randoms())
def test_order_does_not_matter_and_one_more_error_never_helps(spans, weights, random):
    score = mqm_score(spans, weights)
    shuffled = random.sample(spans, len(spans))
    assert mqm_score(shuffled, weights) == score
    assert mqm_score([*spans, MINOR], weights) < score <= 0
    assert score == pytest.approx(-sum(span_weight(span, weights) for span in spans))


def test_an_unknown_severity_names_the_nearest():
    with pytest.raises(DataError, match=r"'majr' is unknown \(did you mean 'major'\?\); allowed are critical, major"):
        mqm_score([MINOR, ErrorSpan("majr")], MQMWeights.wmt())
    with pytest.raises(DataError, match="'No-error'"):
        mqm_score([ErrorSpan("No-error", "No-error")], MQMWeights.wmt())
    with pytest.raises(OptionError, match="'mnor'"):
        MQMWeights(25, 5, 1, rules=(WeightRule("mnor", "punctuation", 0.1),))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"critical": -1}, "weight critical is -1"),
        ({"major": math.nan}, "weight major is nan"),
        ({"neutral": math.inf}, "weight neutral is inf"),
        ({"non_translation": -25}, "weight non_translation is -25"),
        ({"rules": (WeightRule("minor", "style", -2),)}, "weight of minor style is -2"),
        ({"cap": 0}, "cap is 0"),
        ({"cap": math.nan}, "cap is nan"),
        ({"max_errors": 0}, "max_errors is 0"),
        ({"critical": "25"}, "weight critical is '25'"),
        ({"major": True}, "weight major is True"),
        ({"minor": None}, "weight minor is None"),
        ({"rules": (WeightRule("minor", "style", "2"),)}, "weight of minor style is '2'"),  # type: ignore[arg-type]
        ({"cap": math.inf}, "cap is inf"),
        ({"cap": "25"}, "cap is '25'"),
        ({"max_errors": 2.5}, "max_errors is 2.5"),
        ({"max_errors": True}, "max_errors is True"),
    ],
)
def test_weights_that_make_no_sense_are_refused(options, words):
    with pytest.raises(OptionError, match=words):
        MQMWeights(**{"critical": 25, "major": 5, "minor": 1} | options)


@pytest.mark.parametrize(
    "weights", [MQMWeights.gemba(), MQMWeights.wmt(max_errors=5, cap=25), MQMWeights(3, 2, 1, neutral=0.5)]
)
def test_weights_travel_as_json(weights):
    assert MQMWeights.from_dict(json.loads(json.dumps(weights.to_dict()))) == weights


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"minor": None}, "TypeError"),
        ({"mayor": 5}, "unknown entry 'mayor' \\(did you mean 'major'"),
        ({"rules": [{"severity": "minor"}]}, "KeyError: 'category'"),
        ({"cap": "much"}, "much"),
        ({"major": -1}, "weight major is -1"),
    ],
)
def test_a_state_that_cannot_be_read_says_so(change, words):
    with pytest.raises(StateError, match=words):
        MQMWeights.from_dict(MQMWeights.gemba().to_dict() | change)
    with pytest.raises(StateError, match="KeyError: 'major'"):
        MQMWeights.from_dict({"critical": 1, "minor": 1})


def test_the_taxonomy_is_that_of_the_paper():
    assert SEVERITIES == ("critical", "major", "minor", "neutral")
    assert list(TAXONOMY) == ["accuracy", "fluency", "style", "terminology", "non-translation", "other"]
    # Figure 1 names 13 sub-categories.
    assert sum(map(len, TAXONOMY.values())) == 13
    with pytest.raises(TypeError):
        TAXONOMY["accuracy"] = ()


def test_equal_weights_are_saved_as_equal_text():
    """A judge's fingerprint is a hash of that text, and a store asks again where it differs."""
    whole = MQMWeights(25, 5, 1, 0, (WeightRule("minor", "style", 0),), 25, cap=30)
    broken = MQMWeights(25.0, 5.0, 1.0, 0.0, (WeightRule("minor", "style", 0.0),), 25.0, cap=30.0)
    assert json.dumps(whole.to_dict()) == json.dumps(broken.to_dict())


def test_presets_have_names():
    assert MQMWeights.named("gemba") == MQMWeights.gemba()
    assert MQMWeights.named("wmt") == MQMWeights.wmt()
    with pytest.raises(OptionError, match=r"unknown weights 'gmeba'.*'gemba'"):
        MQMWeights.named("gmeba")
