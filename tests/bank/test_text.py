from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.bank.text import sentences, without_spaces, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat sat.", ["The", "cat", "sat", "."]),
        ("well-known u.s. firms", ["well-known", "u.s", ".", "firms"]),
        ("It's 3,000.50, isn't it?", ["It", "'s", "3,000.50", ",", "is", "n't", "it", "?"]),
        ("at 10:30", ["at", "10:30"]),
        ("they’re “quoted” (or not)", ["they", "’re", "“", "quoted", "”", "(", "or", "not", ")"]),
        ("wait... what -- no", ["wait", "...", "what", "--", "no"]),
        ("a,b 5% $3", ["a", ",", "b", "5", "%", "$", "3"]),
        ("o'clock 2nd", ["o'clock", "2nd"]),
        ("", []),
        (" \n\t", []),
    ],
)
def test_words_split_punctuation_from_english_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我喜欢猫。", ["我", "喜", "欢", "猫", "。"]),
        ("スーパーへ", ["ス", "ー", "パ", "ー", "へ"]),
        ("GPT的猫", ["GPT", "的", "猫"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),  # vowel signs are marks, not letters: they must not split a word
        ("Привет, мир!", ["Привет", ",", "мир", "!"]),
        ("مرحبا بالعالم", ["مرحبا", "بالعالم"]),
        ("ok 👩‍👩‍👧 done", ["ok", "👩‍👩‍👧", "done"]),
    ],
)
def test_words_follow_the_script(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_words_agree_with_the_treebank_tokeniser_on_plain_prose() -> None:
    from nltk.tokenize import NLTKWordTokenizer

    text = "The board, which met in May, didn't approve Ann's well-known plan (at $3,000)."
    assert words(text) == NLTKWordTokenizer().tokenize(text)


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=60))
def test_words_lose_nothing_but_white_space(text: str) -> None:
    assert "".join("".join(words(text)).split()) == "".join(text.split())


@settings(deadline=None, max_examples=50)
@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=80))
def test_the_fast_way_for_ascii_text_splits_as_the_general_one(text: str) -> None:
    non_ascii = words("é " + text)  # one other letter sends the whole text the general way
    assert words(text) == non_ascii[1:]


@pytest.mark.parametrize("text", ["a.b,c 1,2:3 4. 5-6 x_y 'tis don't -- ... 3.x", "\x1c a\x1fb \t"])
def test_both_ways_agree_on_marks_inside_words(text: str) -> None:
    assert words(text) == words("é " + text)[1:]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one. two! three?", ["one.", "two!", "three?"]),
        ('He said "go." Then he left.', ['He said "go."', "Then he left."]),
        ("Dr. Lee met J. Smith. They spoke.", ["Dr. Lee met J. Smith.", "They spoke."]),
        ("So did I. Then rain.", ["So did I.", "Then rain."]),
        ("pi is 3.14 today", ["pi is 3.14 today"]),
        ("a title\n\nthe body", ["a title", "the body"]),
        ("我来了。你呢？好！", ["我来了。", "你呢？", "好！"]),
        ("", []),
        ("  \n ", []),
    ],
)
def test_sentences_end_at_marks_and_line_breaks(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("texts", "unspaced"),
    [
        (["今日は雨です。", "OK"], True),
        (["今天下雨。"], True),
        (["วันนี้ฝนตก"], True),
        (["오늘은 비가 온다."], False),
        (["It rains in 東京.", "It snows."], False),
        (["a" * 3, "雨" * 3], False),  # half of the letters are not most
        (["a" * 3, "雨" * 4], True),
        (["。、！", "123"], False),
        ([], False),
    ],
)
def test_scripts_without_spaces_are_told_by_most_of_the_letters(texts, unspaced):
    assert without_spaces(texts) is unspaced
