from __future__ import annotations

from itertools import permutations

import dspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.datasets.splits import content_order, effective_groups, folds, holdout
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import content_hash, make_row

GROUPS = st.lists(st.integers(0, 12).map(str), min_size=4, max_size=60).filter(lambda groups: len(set(groups)) > 3)


def sides_of(groups, split):
    return {groups[index] for index in split.train}, {groups[index] for index in split.test}


def test_groups_are_numbered_in_order_of_appearance():
    assert effective_groups(["b", "a", "b"]).tolist() == [0, 1, 0]


def test_rows_with_the_same_texts_merge_their_groups():
    texts = [("q", "x"), ("q", "y"), ("r", "x"), ("q", "x")]
    assert effective_groups(["1", "2", "3", "4"], texts).tolist() == [0, 1, 2, 0]


def test_merging_chains_through_groups():
    # Rows 2 and 3 share a text and rows 4 and 5 another: groups a-b and b-c merge, d stays.
    assert effective_groups(["a", "a", "b", "b", "c", "d"], ["1", "2", "2", "3", "3", "4"]).tolist() == [0] * 5 + [1]


def test_groups_that_share_two_texts_merge_once():
    # Each group is the first to show one of the two texts, so the second merge meets merged groups.
    assert effective_groups(["a", "b", "b", "a"], ["1", "1", "2", "2"]).tolist() == [0, 0, 0, 0]


EIGHT = "one two three four five six seven eight"


def test_equal_outputs_of_eight_words_join_groups_under_different_inputs():
    texts = [("q", EIGHT), ("r", EIGHT.replace(" ", "  ")), ("s", EIGHT[:-6]), ("t", EIGHT[:-6])]
    assert effective_groups(["a", "b", "c", "d"], texts).tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize("empty", ["", None, ("", "")])
def test_rows_without_text_are_never_identical(empty):
    assert effective_groups(["a", "b"], [empty, empty]).tolist() == [0, 1]


def test_groups_and_texts_must_be_of_one_length():
    with pytest.raises(OptionError, match="2 groups and 1 texts"):
        effective_groups(["a", "b"], ["x"])


@settings(deadline=None, max_examples=50)
@given(GROUPS, st.integers(0, 5), st.floats(0.05, 0.95))
def test_holdout_parts_all_rows_and_no_group(groups, seed, fraction):
    split = holdout(groups, fraction=fraction, seed=seed)
    assert sorted([*split.train, *split.test]) == list(range(len(groups)))
    train, test = sides_of(groups, split)
    assert train
    assert test
    assert not train & test


@settings(deadline=None, max_examples=50)
@given(GROUPS, st.integers(0, 5), st.integers(2, 4))
def test_folds_part_all_rows_and_no_group(groups, seed, k):
    splits = folds(groups, k, seed)
    assert len(splits) == k
    assert sorted(index for split in splits for index in split.test) == list(range(len(groups)))
    for split in splits:
        assert sorted([*split.train, *split.test]) == list(range(len(groups)))
        train, test = sides_of(groups, split)
        assert test
        assert not train & test


def test_holdout_of_equal_groups_is_exact():
    # 60 groups of 6 rows: 30 % of 360 rows are 108, 18 whole groups.
    split = holdout([str(row // 6) for row in range(360)])
    assert (len(split.train), len(split.test)) == (252, 108)


def test_holdout_of_unequal_groups_comes_near_the_wanted_share():
    groups = [str(group) for group in range(30) for _ in range(group % 5 + 1)]
    for seed in range(10):
        assert abs(len(holdout(groups, seed=seed).test) - 0.3 * len(groups)) <= 1


def test_one_huge_group_leaves_a_small_one_for_the_test():
    split = holdout(["big"] * 20 + ["small"])
    assert split.test.tolist() == [20]


def test_identical_texts_stay_on_one_side_where_each_row_is_its_own_group():
    texts = [("q", f"answer {row // 2}") for row in range(20)]
    rows = [str(row) for row in range(20)]
    for split in [holdout(rows, texts), *folds(rows, 4, texts=texts)]:
        train, test = sides_of(texts, split)
        assert not train & test


def test_the_seed_decides():
    groups = [str(row) for row in range(30)]
    same = [holdout(groups, seed=3).test.tolist() for _ in range(2)]
    assert same[0] == same[1]
    assert holdout(groups, seed=4).test.tolist() != same[0]
    assert folds(groups, 3, 1)[0].test.tolist() == folds(groups, 3, 1)[0].test.tolist()
    assert folds(groups, 3, 2)[0].test.tolist() != folds(groups, 3, 1)[0].test.tolist()


def test_folds_are_balanced_in_rows():
    # One group of 10 rows and ten of 1: two folds of whole groups can have 10 rows each, and do.
    splits = folds(["big"] * 10 + [str(row) for row in range(10)], 2)
    assert [len(split.test) for split in splits] == [10, 10]


def test_ratings_vary_on_both_sides_where_that_is_possible():
    groups = [str(row) for row in range(20)]
    ratings = [1.0] * 17 + [0.0] * 3
    for seed in range(30):
        split = holdout(groups, seed=seed, ratings=ratings)
        assert len(set(np.take(ratings, split.test))) == len(set(np.take(ratings, split.train))) == 2
        for fold in folds(groups, 3, seed, ratings=ratings):
            assert len(set(np.take(ratings, fold.test))) == 2


def test_ratings_that_cannot_vary_on_both_sides_do_not_stop_the_split():
    assert len(holdout(["a", "b", "c"], ratings=[1, 1, 0]).test) == 1


@pytest.mark.parametrize("fraction", [0, 1, -0.2, 1.5, float("nan")])
def test_an_impossible_fraction_is_refused(fraction):
    with pytest.raises(OptionError, match="must be above 0 and below 1"):
        holdout(["a", "b"], fraction=fraction)


def test_one_group_cannot_be_split():
    with pytest.raises(DataError, match="form 1 group, too few for a held-out test; at least 2 groups"):
        holdout(["a", "a", "a"])


def test_merged_rows_count_as_one_group():
    with pytest.raises(DataError, match="form 1 group"):
        holdout(["a", "b"], [("q", "x"), ("q", "x")])


def test_fewer_groups_than_folds_are_refused():
    with pytest.raises(DataError, match="form 2 groups, too few for 3 folds; at least 3 groups"):
        folds(["a", "b", "a"], 3)


def test_one_fold_is_no_cross_validation():
    with pytest.raises(OptionError, match="1 folds are not possible"):
        folds(["a", "b"], 1)


def shuffled(order, *columns):
    return [[column[place] for place in order] for column in columns]


@pytest.mark.parametrize("order_seed", range(8))
def test_the_same_rows_in_any_order_give_the_same_sides(order_seed):
    # Groups are row numbers, as where nothing is known of the rows: they are others in every order.
    texts = [(f"q{row % 17}", f"answer {row}") for row in range(60)]
    ratings = [row * 7 % 5 for row in range(60)]
    order = np.random.default_rng(order_seed).permutation(60)
    texts_then, ratings_then = shuffled(order, texts, ratings)
    numbers = [str(row) for row in range(60)]
    split, then = holdout(numbers, texts, ratings=ratings), holdout(numbers, texts_then, ratings=ratings_then)
    assert {texts[row] for row in split.test} == {texts_then[row] for row in then.test}
    parts, parts_then = folds(numbers, 4, 1, texts), folds(numbers, 4, 1, texts_then)
    for part, part_then in zip(parts, parts_then, strict=True):
        assert {texts[row] for row in part.test} == {texts_then[row] for row in part_then.test}


def test_without_texts_the_names_of_the_groups_decide():
    groups = [f"g{row % 9}" for row in range(30)]
    split, then = holdout(groups), holdout(groups[::-1])
    assert {groups[row] for row in split.test} == {groups[::-1][row] for row in then.test}


def test_rows_of_equal_content_are_ordered_by_the_company_of_their_groups():
    # "x" stands in one group with "y" and in another with "z"; names and places of both change with the order.
    texts, company = ["x", "y", "x", "z", "w"], ["y", "y", "z", "z", "w"]
    seen = set()
    for order in permutations(range(5)):
        outputs, groups = shuffled(order, texts, company)
        names = {group: str(number) for number, group in enumerate(dict.fromkeys(groups))}
        pairs = enumerate(zip(outputs, groups, strict=True))
        rows = [make_row(output, id=str(number), group=names[group]) for number, (output, group) in pairs]
        seen.add(tuple((outputs[place], groups[place]) for place in content_order(rows)))
    assert len(seen) == 1


def test_ratings_order_only_rows_that_are_otherwise_equal():
    rows = [make_row(text, rating=rating) for text, rating in (("x", 1.0), ("y", 2.0), ("z", 3.0), ("x", 4.0))]
    turned = [row.copy(rating=5 - row.rating) for row in rows]
    order, then = content_order(rows, "rating"), content_order(turned, "rating")
    assert [rows[place].output for place in order] == [turned[place].output for place in then]
    back = content_order(rows[::-1], "rating")
    assert [(rows[place].output, rows[place].rating) for place in order] == [
        (rows[3 - place].output, rows[3 - place].rating) for place in back
    ]


def test_contents_are_what_a_row_says_as_a_dictionary():
    """Nested examples and lists of them as well as plain numbers; the order is that of the hashes of all this."""
    nested = [dspy.Example(a=1), {"deep": dspy.Example(b=[dspy.Example(c=2)])}, {"x": 1.5, "y": None, "z": "w"}]
    nested += [{"x": np.float64(2)}, [dspy.Example(d=3)], {"x": True}, {}, None]
    rows = [
        make_row(f"text {number % 3}", id=str(number), columns=value, rating=1.0) for number, value in enumerate(nested)
    ]
    hashes = [
        content_hash({name: value for name, value in row.toDict().items() if name not in ("id", "rating")})
        for row in rows
    ]
    assert content_order(rows, "rating").tolist() == sorted(range(len(rows)), key=hashes.__getitem__)
