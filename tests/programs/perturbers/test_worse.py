"""Perturbers that make a text worse as a whole do what they say."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from metricsmith.programs.perturbers.builtin.segments import sentence_places
from metricsmith.programs.perturbers.builtin.worse import FOREIGN, UNRELATED
from perturbing import ARTICLE, change, prose

SEEDS = st.integers(0, 99)


def told(text: str) -> list[str]:
    return [text[place.start : place.end] for place in sentence_places(text)]


@given(SEEDS)
def test_one_sentence_is_dropped_and_the_others_stay_as_they_are(seed):
    before, after = told(ARTICLE), told(change("drop_sentence", ARTICLE, "subtle", seed))
    (dropped,) = [place for place in range(len(before)) if before[:place] + before[place + 1 :] == after]
    assert 0 <= dropped < len(before)


@given(SEEDS)
def test_half_of_the_sentences_are_dropped_if_obvious(seed):
    # by hand: 7 sentences, of which 4 go
    assert len(told(ARTICLE)) == 7
    after = told(change("drop_sentence", ARTICLE, seed=seed))
    assert len(after) == 3
    assert [sentence for sentence in told(ARTICLE) if sentence in after] == after


@pytest.mark.parametrize("name", ["drop_sentence", "shuffle_sentences"])
def test_a_single_sentence_is_neither_dropped_nor_moved(name):
    assert change(name, "Only this one.") == "Only this one."


def test_a_dropped_item_takes_its_bullet_along():
    assert change("drop_sentence", "- One.\n- Two.\n") in ("- One.\n", "- Two.\n")


def test_the_first_sentence_moves_to_the_end_if_subtle():
    assert change("shuffle_sentences", "One is. Two is.\n\nThree is.", "subtle") == "Two is. Three is.\n\nOne is."
    assert change("shuffle_sentences", "One is. Two is.", "subtle") == "One is. Two is."


@given(SEEDS)
def test_shuffled_sentences_are_the_same_and_hardly_any_follows_its_old_neighbour(seed):
    before, after = told(ARTICLE), told(change("shuffle_sentences", ARTICLE, seed=seed))
    kept = sum(before.index(two) == before.index(one) + 1 for one, two in pairwise(after))
    assert sorted(before) == sorted(after)
    assert kept <= 1


def test_items_of_a_bullet_list_are_not_shuffled_but_steps_are():
    assert change("shuffle_sentences", "- One.\n- Two.\n- Three.") == "- One.\n- Two.\n- Three."
    assert change("shuffle_sentences", "1. One.\n2. Two.") == "1. Two.\n2. One."


@given(SEEDS, st.sampled_from([("subtle", 0.74, 0.91), ("obvious", 0.29, 0.51)]))
def test_a_cut_text_is_the_beginning_up_to_the_end_of_a_word(seed, case):
    strength, low, high = case
    after = change("truncate", ARTICLE, strength, seed)
    assert ARTICLE.startswith(after)
    assert low <= len(after.split()) / len(ARTICLE.split()) <= high
    assert after[-1].isalnum() or after[-1] in "$%"


def test_a_text_without_spaces_is_cut_by_characters():
    text = "东京" * 20
    assert 12 <= len(change("truncate", text)) <= 20
    assert text.startswith(change("truncate", text))
    assert change("truncate", "Paris") == "Paris"


@given(prose(), SEEDS)
def test_a_cut_text_never_loses_everything(text, seed):
    assume(text.strip())
    assert change("truncate", text, seed=seed).strip()


@given(SEEDS)
def test_one_sentence_is_said_twice_in_a_row(seed):
    before, after = told(ARTICLE), told(change("repeat", ARTICLE, "subtle", seed))
    (twice,) = [place for place, (one, two) in enumerate(pairwise(after)) if one == two]
    assert after[:twice] + after[twice + 1 :] == before


def test_everything_is_said_three_times_if_obvious():
    assert change("repeat", "It rains. Bring a coat.") == " ".join(["It rains. Bring a coat."] * 3)
    assert change("repeat", "Paris") == "Paris\n\nParis\n\nParis"


@given(SEEDS)
def test_an_unrelated_sentence_comes_from_the_list_where_there_are_no_others(seed):
    after = told(change("insert_unrelated", ARTICLE, "subtle", seed))
    (added,) = [sentence for sentence in after if sentence not in told(ARTICLE)]
    assert added in UNRELATED
    assert [sentence for sentence in after if sentence != added] == told(ARTICLE)


@given(SEEDS)
def test_as_many_as_there_are_if_obvious_and_three_at_least(seed):
    assert len(told(change("insert_unrelated", ARTICLE, seed=seed))) == 14
    assert len(told(change("insert_unrelated", "It rains.", seed=seed))) == 4


def test_whole_sentences_of_other_outputs_go_first():
    others = (
        "Short one. The new pool has four lanes and a slide. it rains in the hills today",
        "It rains a lot here now.",
    )
    added = {
        change("insert_unrelated", "It rains a lot here now.", "subtle", seed, others=others) for seed in range(20)
    }
    assert added == {"It rains a lot here now. The new pool has four lanes and a slide."}


@given(SEEDS)
def test_a_foreign_sentence_is_added_if_subtle_and_replaces_half_if_obvious(seed):
    foreign = {sentence: language for language, known in FOREIGN.items() for sentence in known}
    subtle = told(change("wrong_language", ARTICLE, "subtle", seed))
    assert [sentence for sentence in subtle if sentence not in foreign] == told(ARTICLE)
    assert len(subtle) == 8
    obvious = told(change("wrong_language", ARTICLE, seed=seed))
    assert len(obvious) == 7
    assert sum(sentence in foreign for sentence in obvious) == 4
    assert len({foreign[sentence] for sentence in obvious if sentence in foreign}) == 1


@pytest.mark.parametrize("text", ["Der Zug hält heute an jedem Bahnhof.", "今日は雨です。", "Paris.", "x = f(y)"])
def test_no_language_is_wrong_for_a_text_that_is_not_english(text):
    assert change("wrong_language", text) == text


def test_what_is_put_into_a_text_in_small_letters_has_small_letters():
    text = "the bridge is shut today. it will open again in the spring."
    for name in ("insert_unrelated", "wrong_language"):
        after = change(name, text)
        assert after != text
        assert after == after.lower()
