from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from metricsmith.datasets.score_columns import match_columns, read_numbers
from metricsmith.datasets.sources import open_source
from metricsmith.errors import DataError, OptionError

RAW = open_source(
    pd.DataFrame({
        "score": [1, 2],
        "BLEU Ξ§": ["0.5", ""],
        "Length ¤§": [3, None],
        "ChatGPT RE 1": [math.inf, "-inf"],
        "ChatGPT AVG 1": [True, "false"],
        "Human 1 RE": [1, 2],
        "odd [x]": [1, "abc"],
    })
)  # fmt: skip


def test_patterns_choose_columns_in_the_order_of_the_table_each_once():
    found = match_columns(RAW, ["* [RCES][EHMUGX] [1-4]", "* Ξ*", "BLEU*", "* ¤*"])
    assert found.names == ("BLEU Ξ§", "Length ¤§", "ChatGPT RE 1")
    assert found.prior == ()


def test_prior_columns_are_candidates_too():
    found = match_columns(RAW, ["BLEU*"], ["* RE [1-4]"])
    assert found.names == ("BLEU Ξ§", "ChatGPT RE 1")
    assert found.prior == ("ChatGPT RE 1",)


def test_the_matched_count_is_noted():
    assert match_columns(RAW, ["ChatGPT*"], ["*RE 1"]).notes == (
        "metric_columns pattern 'ChatGPT*' matches 2 of 7 columns",
        "prior_columns pattern '*RE 1' matches 1 of 7 columns",
    )


def test_an_exact_name_is_meant_even_where_it_holds_brackets():
    assert match_columns(RAW, ["odd [x]"]).names == ("odd [x]",)


PEOPLE = open_source(
    pd.DataFrame({"y": [1, 2], "bleu": [1, 2], "Human 1": [1, 2], "rater2_score": [1, 2], "gold": [1, 2]}
                 | {"worker_id": [1, 2], "BLANC-gold": [1, 2], "SUPERT-Golden": [1, 2], "annotator[1]": [1, 2]})
)  # fmt: skip


def test_a_pattern_passes_over_the_columns_that_people_wrote_and_says_so():
    found = match_columns(PEOPLE, ["[!y]*"])
    assert found.names == ("bleu", "BLANC-gold", "SUPERT-Golden")
    assert found.notes == (
        "metric_columns pattern '[!y]*' matches 3 of 9 columns; 'Human 1', 'rater2_score', 'gold', 'worker_id', "
        "'annotator[1]' passed over: people wrote it, and only its exact name takes it",
    )


@pytest.mark.parametrize("name", ["golden_rating", "GoldScore", "score_gold", "Overall gold 2", "rating (golden)"])
def test_gold_itself_is_told_from_a_metric_that_was_given_gold_texts(name):
    raw = open_source(pd.DataFrame({"BLANC-Golden ΞΔ": [1, 2], "golder": [1, 2], "bleu_gold": [1, 2], name: [1, 2]}))
    assert match_columns(raw, ["*"]).names == ("BLANC-Golden ΞΔ", "golder", "bleu_gold")


def test_the_exact_name_takes_a_column_that_people_wrote_also_where_it_was_escaped():
    assert match_columns(PEOPLE, ["gold"], ["annotator[[]1]"]).names == ("gold", "annotator[1]")


def test_a_pattern_that_fits_only_what_people_wrote_is_an_error():
    with pytest.raises(OptionError, match=r"matches only columns that people wrote \(Human 1\), .* exact name"):
        match_columns(PEOPLE, ["Hum*"])


def test_a_target_that_people_wrote_is_still_refused_to_a_pattern():
    with pytest.raises(OptionError, match="matches the target column 'gold'"):
        match_columns(PEOPLE, ["g*"], target="gold")


@pytest.mark.parametrize("patterns", [(["bleu*"], []), ([], ["bleu*"])])
def test_a_pattern_is_case_sensitive_and_matching_nothing_is_an_error(patterns):
    option = "metric_columns" if patterns[0] else "prior_columns"
    with pytest.raises(OptionError, match=rf"the pattern 'bleu\*' of {option} .* matches none of the 7 columns"):
        match_columns(RAW, *patterns)


@pytest.mark.parametrize("patterns", [(["*"], []), (["score"], []), ([], ["s*"])])
def test_matching_the_target_is_an_error(patterns):
    with pytest.raises(OptionError, match="matches the target column 'score'"):
        match_columns(RAW, *patterns, target="score")


def test_scores_are_numbers_with_missing_as_nan_and_infinities_kept():
    scores = read_numbers(RAW, ["BLEU Ξ§", "Length ¤§", "ChatGPT RE 1", "ChatGPT AVG 1"])
    expected = {
        "BLEU Ξ§": [0.5, math.nan],
        "Length ¤§": [3, math.nan],
        "ChatGPT RE 1": [math.inf, -math.inf],
        "ChatGPT AVG 1": [1, 0],
    }
    assert list(scores) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(scores[name], values)


def test_a_cell_that_is_no_number_is_shown_with_its_place():
    with pytest.raises(DataError, match=r"row 2 \(counted from 1\), column 'odd \[x\]': 'abc' is not a number"):
        read_numbers(RAW, ["odd [x]"])


@pytest.mark.parametrize("cells", [["1_0", "2"], [[1], [2]], [[1, 2], [3, 4]]])
def test_a_column_is_read_as_a_whole_only_where_each_cell_is_a_number(cells):
    """numpy takes 1_0 for ten, and lists for a table."""
    raw = open_source(pd.DataFrame({"rating": [1, 2], "odd": cells}))
    with pytest.raises(DataError, match="is not a number"):
        read_numbers(raw, ["odd"])
