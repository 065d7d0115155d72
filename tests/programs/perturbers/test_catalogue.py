from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from metricsmith.datasets import plain_notices
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import make_row
from metricsmith.programs.perturbers.base import EFFECTS, STRENGTHS, Perturber, Source
from metricsmith.programs.perturbers.catalogue import BUILTIN, perturb, sources_of
from perturbing import ARTICLE, UNTOUCHABLE, prose

FULL = Source(ARTICLE, "Describe the library.", "", (), ("The pool has four lanes and a slide.",))
FIXED = {"repeat", "empty_output", "copy_input", "other_good_output", "whitespace", "markup", "contractions"} | {
    "number_format",
    "synonyms",
    "wrong_casing",
}
ODD = (
    "",
    " \n\t",
    "Paris",
    "42",
    "...",
    "def f(x):\n    return {'a': x[0] for x in y}\n",
    '{"a": [1, 2.5], "b": "don\'t"}',
    "今日は雨です。明日は晴れます。",
    "مرحبا بالعالم. كيف حالك؟ بخير.",
    "👩‍👩‍👧‍👦 🙂. 🇫🇷!",
    "One.\r\n\r\nTwo.\r\n- three\r\n",
    "e\u0301\u0327 a\u200b b\u2028c\x85d\x00e",
    "|",
    "- ",
    "```",
    '"',
    "'",
    "1.",
    "\ud800",
    *UNTOUCHABLE,
)


def everything(source: Source, seed: int = 0) -> list:
    return perturb([source], effects=EFFECTS, strengths=STRENGTHS, seed=seed)


def test_the_order_is_that_of_the_page_and_names_are_keys():
    assert [name for name, perturber in BUILTIN.items() if name != perturber.name] == []
    effects = [perturber.effect for perturber in BUILTIN.values()]
    assert effects == sorted(effects, key=EFFECTS.index)
    assert Counter(effects) == {"worse": 12, "same": 6, "attack": 7}


@pytest.mark.parametrize("perturber", BUILTIN.values(), ids=list(BUILTIN))
def test_a_card_is_whole(perturber):
    assert perturber.name == perturber.name.lower()
    assert perturber.summary.endswith(".")
    assert perturber.because.endswith(".")
    assert not perturber.limits or perturber.limits.endswith(".")
    assert set(perturber.strengths) <= set(STRENGTHS)
    assert set(perturber.needs) <= {field.name for field in fields(Source)} - {"output"}


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_are_changed_or_declined(text):
    check(everything(Source(text, "input", "", (), ("Another output of six words here.",))), text)


@settings(max_examples=60)
@given(st.text() | prose(), st.integers(0, 2**40))
def test_any_text_is_changed_or_declined(text, seed):
    check(everything(Source(text, "input", "", (), ("other", text)), seed), text)


def check(made: list, text: str) -> None:
    assert len(made) == sum(len(perturber.strengths) for perturber in BUILTIN.values())
    for one in made:
        assert (one.output is None) == bool(one.declined)
        assert one.output != text
        assert one.origin == "builtin"


def test_an_empty_output_is_declined_as_such_by_all_that_change_it():
    reasons = {one.strategy: one.declined for one in everything(Source("")) if one.effect != "attack"}
    assert set(reasons.values()) == {"the output is empty"}


def test_a_long_text_is_no_trouble():
    for text in (ARTICLE * 200, "\"`$<|'. " * 2_000, "a\n" * 4_000):
        assert len(everything(Source(text))) == 47


@pytest.mark.parametrize("name", [name for name in BUILTIN if len(BUILTIN[name].strengths) == 2])
def test_subtle_changes_less_than_obvious(name):
    texts = [replace(FULL, output=f"{ARTICLE} Part {number}.") for number in range(12)]
    if name == "reorder":
        items = "\n".join(f"- the {word} coat" for word in ["warm", "cold", "long", "thin", "red", "blue"])
        texts = [Source(f"Bring this to the hall of the town:\n\n{items}\n")] * 12
    size = dict.fromkeys(STRENGTHS, 0.0)
    for seed, source in enumerate(texts):
        for one in perturb([source], perturbers=[name], strengths=STRENGTHS, seed=seed):
            assert one.output is not None
            size[one.strength] += Levenshtein.distance(source.output, one.output)
    assert 0 < size["subtle"] < size["obvious"]


def test_the_same_seed_gives_the_same():
    assert everything(FULL, 3) == everything(FULL, 3)


@pytest.mark.parametrize("name", sorted(set(BUILTIN) - FIXED - {"reorder"}))
def test_two_seeds_differ_where_something_is_drawn(name):
    source = replace(FULL, output="It is late. " + ARTICLE)
    first, *others = (
        [one.output for one in perturb([source], perturbers=[name], strengths=STRENGTHS, seed=seed)]
        for seed in range(6)
    )
    assert any(other != first for other in others)


def test_neither_place_nor_other_rows_nor_other_perturbers_matter():
    rows = [replace(FULL, output=f"{ARTICLE} Part {number}.") for number in range(3)]
    alone = {(one.strategy, one.strength): one.output for one in everything(rows[1])}
    for order in ([rows[1], rows[0]], [rows[2], rows[0], rows[1]]):
        place = order.index(rows[1])
        made = perturb(order, perturbers=["typos", "negate", "drop_sentence"], strengths=STRENGTHS)
        assert [one.output for one in made if one.row == place] == [
            alone[one.strategy, one.strength] for one in made if one.row == place
        ]


def test_rows_that_differ_in_their_input_alone_are_drawn_apart():
    rows = [replace(FULL, input=f"Question {number}") for number in range(6)]
    assert len({one.output for one in perturb(rows, perturbers=["typos"])}) == 6


def test_rows_are_outermost_then_perturbers_then_strengths():
    made = perturb([FULL, FULL], perturbers=["typos", "empty_output"], strengths=["obvious", "subtle"])
    assert [(one.row, one.strategy, one.strength) for one in made] == [
        (row, *cell)
        for row in (0, 1)
        for cell in (("typos", "obvious"), ("typos", "subtle"), ("empty_output", "obvious"))
    ]


def test_effects_choose_among_the_built_in_ones_only():
    assert {one.effect for one in perturb([FULL])} == {"worse", "same"}
    assert {one.strategy for one in perturb([FULL], effects=["attack"])} == set(list(BUILTIN)[-7:])
    assert [one.effect for one in perturb([FULL], perturbers=["pad_idle"])] == ["attack"]
    assert perturb([FULL], strengths=["subtle"], perturbers=["empty_output"]) == []
    assert perturb([]) == []


@pytest.mark.parametrize(("name", "reason"), [("copy_input", "no input"), ("other_good_output", "no others")])
def test_what_a_row_lacks_is_named(name, reason):
    (one,) = perturb([Source("Text.")], perturbers=[name])
    assert one.output is None
    assert reason in one.declined


def test_a_copy_that_is_no_change_is_declined():
    (one,) = perturb([Source("Text.", "Text.")], perturbers=["copy_input"])
    assert one.output is None
    assert one.declined == "nothing to change was found"


def test_a_perturber_of_your_own():
    own = Perturber("shout", "worse", "Shouts.", "Too loud.", lambda source, strength, random: source.output.upper())
    (one,) = perturb([Source("Hush.")], perturbers=[own])
    assert (one.strategy, one.effect, one.output) == ("shout", "worse", "HUSH.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"perturbers": ["typo"]}, "did you mean 'typos'"),
        ({"effects": ["worst"]}, "did you mean 'worse'"),
        ({"strengths": ["mild"]}, "subtle, obvious"),
        ({"perturbers": "typos"}, r"write \['typos'\]"),
        ({"perturbers": ["typos", "typos"]}, "two perturbers are called 'typos'"),
        ({"seed": -1}, "from 0 on"),
    ],
)
def test_options_without_meaning_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        perturb([FULL], **options)


def row(output: str, rating: object = None, **more: object):
    return make_row(output, rating=rating, **more)


def test_others_differ_in_input_and_group_and_the_best_come_first():
    rows = [
        row("a1", 1, input="a", group="g"),
        row("a2", 5, input="a", group="g"),
        row("b1", 2, input="b", group="h"),
        row("c1", 4, input="c", group="g"),
        row("d1", 3, input="d"),
        row("e1", None, input="e", group="i"),
        row("f1", float("nan"), input="f", group="j"),
        row("g1", 9),
        row(" ", 9, input="z", group="z"),
    ]
    assert [source.others for source in sources_of(rows, "rating")][:5] == [
        ("d1", "b1", "e1", "f1"),
        ("d1", "b1", "e1", "f1"),
        ("a2", "c1", "d1", "a1", "e1", "f1"),
        ("d1", "b1", "e1", "f1"),
        ("a2", "c1", "b1", "a1", "e1", "f1"),
    ]
    assert sources_of(rows, "rating")[7].others == ()
    assert sources_of(rows, "rating", higher_is_better=False)[0].others == ("b1", "d1", "e1", "f1")
    assert sources_of(rows)[2].others == ("a1", "a2", "c1", "d1", "e1", "f1")


def test_where_no_row_has_an_input_groups_tell():
    rows = [row("a", group="g"), row("b", group="g"), row("c", group="h"), row("d")]
    assert [source.others for source in sources_of(rows)] == [("c",), ("c",), ("a", "b"), ()]


def test_others_are_twenty_at_most_and_no_output_comes_twice():
    rows = [row(f"text {number // 2}", input=f"{number}") for number in range(80)]
    others = sources_of(rows)[0].others
    assert len(others) == len(set(others)) == 20
    assert "text 0" not in others


def test_all_texts_of_a_row_are_seen():
    (source,) = sources_of([make_row("o", input="i", references=["r", "s"], context="c")])
    assert source == Source("o", "i", "c", ("r", "s"))


def test_a_target_that_is_not_there_or_no_number_is_an_error():
    with pytest.raises(DataError, match="did you mean 'rating'"):
        sources_of([row("a", 1)], "ratin")
    with pytest.raises(DataError, match="'good', which is no number"):
        sources_of([row("a", "good")], "rating")
    assert sources_of([], "rating") == []


def test_on_the_demonstration_data_what_can_be_done_is_done():
    sources = sources_of(plain_notices.load()[1], "rating")[:60]
    made = perturb(sources, effects=EFFECTS)
    kept = {name for name in BUILTIN if all(one.output is None for one in made if one.strategy == name)}
    assert kept == {"reorder"}  # it has no lists
    worse = [one for one in made if one.effect == "worse"]
    assert sum(one.output is None for one in worse) < 0.02 * len(worse)
