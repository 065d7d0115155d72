from __future__ import annotations

import numpy as np

from metricsmith.bank.base import TextBatch, pair_up


def test_blank_references_make_no_pair_and_order_is_kept() -> None:
    pairs = pair_up(TextBatch(["a", "b", "c"], ["", "", ""], [["x", " ", "y"], ["", "\n"], ["z"]]))
    assert list(zip(pairs.outputs, pairs.references, strict=True)) == [("a", "x"), ("a", "y"), ("c", "z")]
    assert pairs.counts.tolist() == [2, 0, 1]


def test_best_is_taken_row_by_row_and_undefined_without_references() -> None:
    pairs = pair_up(TextBatch(["a", "b", "c"], ["", "", ""], [["x", "y"], [""], ["z"]]))
    values = np.array([0.2, 0.7, 0.5])
    assert np.array_equal(pairs.best(values), [0.7, np.nan, 0.5], equal_nan=True)
    assert np.array_equal(pairs.best(values, highest=False), [0.2, np.nan, 0.5], equal_nan=True)


def test_the_mean_is_taken_row_by_row_and_undefined_without_references() -> None:
    pairs = pair_up(TextBatch(["a", "b", "c"], ["", "", ""], [["x", "y"], [""], ["z"]]))
    assert np.array_equal(pairs.mean(np.array([0.25, 0.75, 0.1])), [0.5, np.nan, 0.1], equal_nan=True)


def test_the_first_of_tied_references_wins() -> None:
    pairs = pair_up(TextBatch(["a", "b"], ["", ""], [["x", "y", "z"], [""]]))
    assert pairs.best_index(np.array([0.1, 0.9, 0.9])).tolist() == [1, -1]


def test_an_empty_batch_gives_empty_results() -> None:
    pairs = pair_up(TextBatch([], [], []))
    assert pairs.best(np.empty(0)).shape == (0,)


def test_a_pair_without_a_number_leaves_best_and_mean_to_the_others():
    pairs = pair_up(TextBatch(["a", "b", "c"], ["", "", ""], [["x", "y", "z"], ["w"], [" "]]))
    values = np.array([np.nan, 1.0, 4.0, np.nan])
    np.testing.assert_array_equal(pairs.best(values), [4.0, np.nan, np.nan])
    np.testing.assert_array_equal(pairs.best(values, highest=False), [1.0, np.nan, np.nan])
    np.testing.assert_array_equal(pairs.mean(values), [2.5, np.nan, np.nan])
