from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from metricsmith.datasets.columns import SYNONYMS, Columns, Guard, guess_notes, need_column, resolve_columns
from metricsmith.datasets.sources import open_source
from metricsmith.datasets.table import read_table
from metricsmith.errors import DataError, OptionError


def table(*names):
    return open_source(pd.DataFrame({name: ["x"] for name in names}))


def test_every_role_is_guessed_from_its_name():
    names = ("ID", "prompt_id", "Question", "passage", "modelOutput", "Gold Answer", "human-rating", "Model", "raterID")
    raw = table(*names)
    assert resolve_columns(raw, Columns()) == Columns(
        target="human-rating",
        output="modelOutput",
        inputs=("Question",),
        references=("Gold Answer",),
        context="passage",
        id="ID",
        group="prompt_id",
        system="Model",
        rater="raterID",
        guessed=frozenset(SYNONYMS),
    )


def test_no_synonym_stands_for_two_roles():
    for one, other in combinations(SYNONYMS.values(), 2):
        assert not set(one) & set(other)


def test_synonyms_are_written_as_names_are_compared():
    for names in SYNONYMS.values():
        assert list(names) == list(dict.fromkeys(names))
        assert all(name == name.lower().replace(" ", "_") for name in names)


def test_the_likelier_name_wins_and_the_other_is_mentioned():
    raw = table("summary", "output")
    columns = resolve_columns(raw, Columns())
    assert columns.output == "output"
    assert guess_notes(raw, columns) == (
        "output column guessed: 'output'; 'summary' would fit too (name it with output=... (--output))",
    )


def test_what_is_named_is_not_guessed_and_not_noted():
    raw = table("output", "summary", "prompt")
    columns = resolve_columns(raw, Columns(output="summary", inputs=("prompt",)))
    assert (columns.output, columns.inputs, columns.guessed) == ("summary", ("prompt",), frozenset())
    assert guess_notes(raw, columns) == ()


def test_a_column_has_one_guessed_role_only():
    columns = resolve_columns(table("source", "context"), Columns(inputs=("source", "context")))
    assert columns.context is None


def test_a_named_group_can_be_the_guessed_input_but_not_the_guessed_id():
    columns = resolve_columns(table("original", "id"), Columns(group="original"))
    assert (columns.inputs, columns.id) == (("original",), "id")
    assert resolve_columns(table("output", "id"), Columns(group="id")).id is None


def test_candidate_columns_are_never_guessed():
    assert resolve_columns(table("output", "score"), Columns(), taken=["score"]).target is None


def test_the_target_is_only_guessed_where_one_is_wanted():
    assert resolve_columns(table("output", "score"), Columns()).target == "score"
    assert resolve_columns(table("output", "score"), Columns(), guess_target=False).target is None
    assert resolve_columns(table("output", "score"), Columns(target="score"), guess_target=False).target == "score"


@pytest.mark.parametrize(
    ("named", "option"),
    [
        (Columns(target="outputs"), "--target"),
        (Columns(output="outputs"), "--output"),
        (Columns(inputs=("outputs",)), "--input"),
        (Columns(references=("outputs",)), "--reference"),
        (Columns(context="outputs"), "--context"),
        (Columns(id="outputs"), "--id"),
        (Columns(group="outputs"), "--group"),
        (Columns(system="outputs"), "--system"),
        (Columns(rater="outputs"), "--rater"),
    ],
)
def test_a_missing_column_names_the_nearest_and_the_option(named, option):
    with pytest.raises(DataError) as caught:
        resolve_columns(table("output", "rating"), named)
    assert "no column 'outputs' (did you mean 'output'?)" in str(caught.value)
    assert option in str(caught.value)


@pytest.mark.parametrize(
    "named", [Columns("y", output="y"), Columns("y", inputs=("x", "y")), Columns("y", context="y")]
)
def test_the_target_cannot_be_a_text_as_well(named):
    with pytest.raises(OptionError, match="'y' is named both as the target and as a text"):
        resolve_columns(table("x", "y"), named)


def test_an_unguessable_role_lists_columns_and_recognised_names():
    text = str(need_column(table("a", "b"), "output"))
    assert "no output column was named and none of the columns (a, b)" in text
    assert "recognised names are output, model_output" in text
    assert "--output" in text


N = 40
RATING = [row * 3 % 5 + 1 for row in range(N)]
TEXT = [f"An answer, number {row}." for row in range(N)]
PROMPT = [f"Question {row // 4}?" for row in range(N)]


def objection(cells, role="reference", sources=("prompt",), rating=RATING):
    frame = pd.DataFrame({"prompt": PROMPT, "rating": rating, "x": cells}, dtype=object)
    return Guard.of(open_source(frame), "rating").objection(role, "x", sources)


@pytest.mark.parametrize(
    "cells",
    [
        RATING,
        [f"{rating}.0" for rating in RATING],
        [f"{rating}/5" for rating in RATING],
        [f"{rating * 20} %" for rating in RATING],
        [None, 3] * 20,
        [[str(rating), "2"] for rating in RATING],
        [f"['{rating}']" for rating in RATING],
    ],
)
def test_numbers_are_no_reference_also_as_elements_of_lists(cells):
    assert objection(cells) == "it holds numbers"


@pytest.mark.parametrize(
    "cells", [["good", "bad"] * 20, [True, False] * 20, ["👍", "👎"] * 20, ["4 stars", 3] * 20, ["Yes", None] * 20]
)
def test_rating_words_are_no_text(cells):
    assert objection(cells, "output") == "it holds rating words"


@pytest.mark.parametrize("cells", [TEXT, [None] * N, ["42"] * 39 + ["about 42"], [[1, "two"]] * N])
def test_texts_and_empty_columns_are_accepted(cells):
    assert objection(cells) == ""


LEVELS = ["poor", "fair", "fine", "great", "superb"]


def test_a_category_that_follows_the_rating_is_no_text():
    # Each level is one word, so that a level's mean in one half is the rating in the other: tau-b is 1.
    assert objection([LEVELS[rating - 1] for rating in RATING], "context") == (
        "its values go with the rating (tau-b +1.00 on rows of other groups)"
    )


def test_a_category_against_the_rating_is_found_too_and_so_is_a_rater_who_gives_one_rating_only():
    lower = [6 - rating for rating in RATING]
    assert "tau-b +1.00" in objection([LEVELS[rating - 1] for rating in RATING], rating=lower)
    assert "tau-b +1.00" in objection([f"r{rating}" for rating in RATING], "rater")
    assert objection(RATING, "group") == ""


def test_a_category_that_has_nothing_to_do_with_the_rating_is_accepted():
    assert objection([LEVELS[row % 3] for row in range(N)], "output") == ""


def test_few_values_with_fewer_than_three_rows_or_more_than_eleven_of_them_are_no_categories():
    rare = [LEVELS[rating - 1] for rating in RATING]
    rare[0] = rare[1] = "odd"
    assert objection(rare) == ""
    twelve = [f"word {row % 12}" for row in range(N)]
    assert objection(twelve, rating=[row % 12 for row in range(N)]) == ""


def test_a_category_that_only_stands_for_the_group_is_accepted():
    # Ratings differ by prompt alone: on rows of other prompts the categories say nothing.
    groups = [f"kind {row // 4}" for row in range(N)]
    assert objection(groups, "input", rating=[row // 4 for row in range(N)]) == ""


def test_without_groups_every_other_row_is_the_other_half_in_any_order():
    cells = [LEVELS[rating - 1] for rating in RATING]
    assert "tau-b +1.00" in objection(cells, sources=())


def frame(**columns):
    return pd.DataFrame({"prompt": PROMPT, "rating": RATING, **columns}, dtype=object)


def test_a_numeric_gold_column_is_no_reference_and_said_so():
    table = read_table(frame(answer=TEXT, gold=RATING, ground_truth=TEXT[::-1]), target="rating")
    assert table.columns.references == ("ground_truth",)
    assert "references" in table.rows[0]
    assert table.rows[0]["references"] == [TEXT[-1]]
    assert (
        "'gold' is not guessed as the reference: it holds numbers (if it is the reference, add reference='gold' "
        "(--reference gold))"
    ) in table.notes
    assert "reference column guessed: 'ground_truth' (name it with reference=... (--reference))" in table.notes


def test_a_numeric_target_or_prediction_is_no_output_and_another_name_serves():
    table = read_table(frame(prediction=RATING, target=RATING, text=TEXT), target="rating")
    assert table.columns.output == "text"
    assert sum("is not guessed as the output: it holds numbers" in note for note in table.notes) == 2


def test_where_nothing_else_serves_the_error_names_the_option_to_add():
    with pytest.raises(DataError) as caught:
        read_table(frame(answer=RATING), target="rating")
    assert str(caught.value) == (
        "the data frame: no output column was named, and none could be guessed: 'answer' is not guessed as the output: "
        "it holds numbers (if it is the output, add output='answer' (--output answer))"
    )


def test_a_named_column_is_taken_at_its_word():
    table = read_table(
        frame(answer=RATING, label=["good", "bad"] * 20), target="rating", output="answer", context="label"
    )
    assert table.rows[0].output == str(RATING[0])
    assert table.rows[0].context == "good"


def test_refused_columns_do_not_stop_candidate_columns():
    table = read_table(frame(prediction=RATING, score_a=np.arange(N)), target="rating", metric_columns="score_a")
    assert table.columns.output is None


def test_evidence_may_be_what_a_rater_remarked_and_is_never_guessed():
    table = read_table(frame(answer=TEXT, evidence=["Clearly a four." for _ in TEXT]), target="rating")
    assert table.columns.context is None
    assert any(note.startswith("'evidence' is not guessed as the context: it may be") for note in table.notes)
    assert read_table(frame(answer=TEXT, evidence=TEXT), target="rating", context="evidence").rows[0].context == TEXT[0]
