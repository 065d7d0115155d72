from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.metric import make_row
from metricsmith.optimizers.splits import twin_note


def rows(*outputs):
    return [make_row(output) for output in outputs]


def test_equal_and_nearly_equal_outputs_are_counted_with_their_share():
    train = rows("yes", "the cat sat on the mat", "no")
    test = rows("Yes", "the cat sat on the red mat", "the cat sat the mat", "a dog")
    assert twin_note([(train, test)]) == (
        "3 of 4 test rows (75\u00a0%) have a twin under another source in training: 1 with the same output, 2 with one "
        "word more or less"
    )


def test_the_rows_of_all_folds_count():
    folds = [(rows("yes", "no"), rows("yes", "perhaps")), (rows("perhaps"), rows("no"))]
    assert twin_note(folds).startswith("1 of 3 test rows (33\u00a0%) have a twin")


@pytest.mark.parametrize("output", ["the mat sat on the cat", "the cat sat on a mat", "cat", "", "the cat sat"])
def test_other_words_or_another_order_make_no_twin(output):
    assert twin_note([(rows("the cat sat on the mat"), rows(output))]) == ""


def test_one_word_is_no_twin_of_nothing_or_of_another_word():
    assert twin_note([(rows("yes", ""), rows("no", ""))]) == ""


WORDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=6)


@settings(deadline=None, max_examples=200)
@given(WORDS, WORDS)
def test_twins_are_those_that_one_word_parts_at_most(one, other):
    parts = [[*words[:place], *words[place + 1 :]] for words in (one, other) for place in range(len(words))]
    expected = one == other or one in parts[len(one) :] or other in parts[: len(one)]
    assert bool(twin_note([(rows(" ".join(one)), rows(" ".join(other)))])) == expected
