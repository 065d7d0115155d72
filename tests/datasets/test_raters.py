"""Ratings of several people in rows of their own."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from metricsmith.datasets.raters import People
from metricsmith.datasets.table import read_table
from metricsmith.errors import DataError, OptionError
from metricsmith.records import Scale

# Four outputs; ann and bob rated three of them each, cem one.
RATINGS = [
    ("q1", "m1", "It rains.", "ann", 4), ("q1", "m1", "It rains.", "bob", 5), ("q1", "m2", "It snows.", "ann", 2),
    ("q1", "m2", "It snows.", "bob", 2), ("q2", "m1", "Yes.", "ann", 1), ("q2", "m2", "Yes.", "bob", 5),
    ("q1", "m1", "It rains.", "cem", 3),
]  # fmt: skip


def frame(rows=RATINGS, **columns):
    data = pd.DataFrame(rows, columns=["prompt", "system", "answer", "rater", "rating"])
    return data.assign(**columns)


def read(data=None, **options):
    return read_table(frame() if data is None else data, target="rating", min_rated=1, **options)


def test_the_ratings_of_an_output_become_one_row():
    table = read()
    assert len(table) == 4
    assert table.ratings.tolist() == [4, 2, 1, 5]
    assert [row["output"] for row in table.rows] == ["It rains.", "It snows.", "Yes.", "Yes."]
    assert [row["rating"] for row in table.rows] == [4, 2, 1, 5]
    assert table.people == People(
        ({"ann": 4, "bob": 5, "cem": 3}, {"ann": 2, "bob": 2}, {"ann": 1}, {"bob": 5}), "mean", "none"
    )
    assert table.raters == ["ann", "bob", "cem"]
    assert "7 ratings by 3 raters of 4 outputs: an output counts once, with the mean of its ratings" in table.notes


def test_what_two_systems_wrote_is_never_one_output_though_it_is_the_same():
    assert read().systems == ["m1", "m2", "m1", "m2"]
    without = read(frame().drop(columns="system"))
    # "Yes." of q2 has no system now: one output of two raters.
    assert without.ratings.tolist() == [4, 2, 3]


def test_the_same_text_for_another_input_is_another_output():
    rows = [("q1", "m", "Yes.", "ann", 1), ("q2", "m", "Yes.", "bob", 5), ("q1", "m", "No.", "ann", 2)]
    assert read(frame(rows)).ratings.tolist() == [1, 5, 2]


def test_an_id_that_repeats_by_rater_tells_outputs_apart_and_becomes_theirs():
    given = [("Yes.", "ann", 1), ("Yes.", "bob", 2), ("Yes.", "ann", 4), ("Yes.", "bob", 5), ("No.", "ann", 1)]
    rows = [("q", "m", *one) for one in given]
    assert read(frame(rows)).ratings.tolist() == [3, 1]
    table = read(frame(rows, id=["a", "a", "b", "b", "c"]))
    assert table.ratings.tolist() == [1.5, 4.5, 1]
    assert table.ids == ["a", "b", "c"]
    assert "the ids of 'id' are those of the outputs" in table.notes
    assert not any("row numbers" in note for note in table.notes)


def test_an_id_of_two_inputs_averages_nothing_and_the_others_do():
    given = [("q", "Yes.", "ann", 1), ("q", "Yes.", "bob", 2), ("q", "Yes.", "ann", 4), ("r", "Yes.", "bob", 5)]
    rows = [(prompt, "m", *rest) for prompt, *rest in given]
    table = read(frame(rows, id=["a", "a", "b", "b"]))
    assert table.ratings.tolist() == [1.5, 4, 5]
    assert table.ids == ["a", "b", "b"]
    # Without texts nothing but the id tells outputs apart, and b tells nothing: each of its rows is an output.
    rows = [(prompt, "m", *rest) for prompt, *rest in [*given, ("q", "Yes.", "cem", 3)]]
    blind = frame(rows, id=["a", "a", "b", "b", "b"]).assign(score=1.0).drop(columns="answer")
    assert read(blind, metric_columns="score").ratings.tolist() == [1.5, 4, 5, 3]


def test_an_id_that_every_rater_counts_anew_joins_and_parts_nothing():
    rows = [(f"q{n}", "m", f"text {n}", rater, n) for rater in ("ann", "bob") for n in (1, 2, 3)]
    # Bob saw the outputs in another order.
    table = read(frame(rows, id=[1, 2, 3, 3, 1, 2]), group="prompt")
    assert table.ratings.tolist() == [1, 2, 3]


def test_the_median_is_taken_on_request():
    assert read(raters="median").ratings.tolist() == [4, 2, 1, 5]
    rows = [("q", "m", "a", "ann", 1), ("q", "m", "a", "bob", 1), ("q", "m", "a", "cem", 5), ("q", "m", "b", "ann", 2)]
    assert read(frame(rows), raters="median").ratings.tolist() == [1, 2]
    assert read(frame(rows)).ratings.tolist() == [round(7 / 3, 12), 2]


def test_a_rater_who_came_back_to_an_output_counts_once():
    rows = [*RATINGS[:4], ("q1", "m1", "It rains.", "ann", 2)]
    table = read(frame(rows))
    assert table.ratings.tolist() == [4, 2]  # ann: the mean of 4 and 2; then bob's 5
    assert table.people.ratings[0] == {"ann": 3, "bob": 5}
    assert "1 times someone rated an output again: the mean of theirs counts as one rating" in table.notes


def test_unrated_rows_are_no_ratings_and_an_output_that_nobody_rated_stays():
    rows = [*RATINGS, ("q3", "m1", "Unseen.", None, None), ("q3", "m1", "Unseen.", "ann", None)]
    table = read(frame(rows))
    assert math.isnan(table.ratings[4])
    assert len(table) == 5
    assert table.people.ratings[4] == {}
    assert "1 of 5 rows have no rating: they are kept for scoring and left out of fitting" in table.notes


def test_averages_lie_between_the_steps_of_the_scale():
    assert read(frame(RATINGS[:4])).task.scale == Scale(1, 5)
    assert read(frame(RATINGS[2:6])).task.scale == Scale(1, 5, 1)
    assert read(frame(RATINGS[:4]), scale="1:5:.5").task.scale == Scale(1, 5, 0.5)


def test_centring_takes_each_raters_mean_off_and_puts_everybodys_back():
    rows = [("q1", "m", "a", "ann", 1), ("q1", "m", "b", "ann", 3), ("q1", "m", "b", "bob", 5),
            ("q1", "m", "c", "bob", 3), ("q2", "m", "d", "bob", 4)]  # fmt: skip
    table = read(frame(rows), rater_effects="centre")
    # ann's mean is 2, bob's 4, everybody's 3.2.
    assert table.people.ratings == ({"ann": 2.2}, {"ann": 4.2, "bob": 4.2}, {"bob": 2.2}, {"bob": 3.2})
    assert table.ratings.tolist() == [2.2, 4.2, 2.2, 3.2]
    assert table.task.scale == Scale(1, 5)
    said = "raters' means run from 2 ('ann') to 4 ('bob'): each is taken off and 3.2 put back"
    assert any(note.startswith(said) for note in table.notes)


def test_centred_ratings_that_leave_the_scale_widen_it():
    rows = [("q", "m", "a", "ann", 5), ("q", "m", "b", "ann", 1), ("q", "m", "c", "bob", 5), ("q", "m", "d", "bob", 5)]
    table = read(frame(rows), rater_effects="centre", scale="1:5:1")
    assert table.ratings.tolist() == [6, 2, 4, 4]  # means 3 and 5, everybody's 4
    assert table.task.scale == Scale(1, 6)
    assert "centred ratings leave the scale 1 to 5: it runs from 1 to 6 here" in table.notes


def test_raters_whose_means_lie_far_apart_are_named():
    far = [("q1", "m", f"t{n}", rater, n + shift) for rater, shift in (("ann", 0), ("bob", 2)) for n in (1, 2, 3)]
    said = [note for note in read(frame(far)).notes if note.startswith("raters' means")]
    assert len(said) == 1
    assert said[0].startswith("raters' means run from 2 ('ann') to 4 ('bob'): rater_effects='centre'")
    near = [("q1", "m", f"t{n}", rater, n) for rater in ("ann", "bob") for n in (1, 2, 3, 4, 5)]
    assert not [note for note in read(frame(near)).notes if note.startswith("raters' means")]


def test_columns_of_scores_are_averaged_where_they_differ_and_that_is_said():
    table = read(frame(bleu=[1, 3, 7, 7, None, 4, 5], ter=[1, 1, 2, 2, 3, 4, 1]), metric_columns=["bleu", "ter"])
    assert table.metric_values["bleu"].tolist()[:2] == [3, 7]
    assert math.isnan(table.metric_values["bleu"][2])
    assert table.metric_values["ter"].tolist() == [1, 2, 3, 4]
    assert "column 'bleu' differs between the rows of 1 outputs: their mean is used" in table.notes
    assert not any("'ter' differs" in note for note in table.notes)


def test_texts_that_differ_between_the_rows_of_an_output_are_counted():
    table = read(frame(context=["a", "b", "c", "c", "d", "e", "a"]))
    assert table.rows[0]["context"] == "a"
    assert "column 'context' differs between the rows of 1 outputs: the first row's text is used" in table.notes


def test_conditions_choose_raters():
    assert read(where="rater!=bob").ratings.tolist() == [3.5, 2, 1]


def test_rules_on_row_counts_count_outputs():
    with pytest.raises(DataError, match="4 of 4 rows have a rating; at least 5 are needed"):
        read_table(frame(), target="rating", min_rated=5)
    opposite = [("q", "m", text, rater, rating) for text in "ab" for rater, rating in (("ann", 1), ("bob", 5))]
    with pytest.raises(DataError, match="all 2 ratings are 3"):
        read(frame(opposite))


def test_a_rating_without_a_rater_is_refused_where_the_column_was_named_and_else_the_column_is_not_used():
    nameless = frame(rater=[*"abcdef", None])
    with pytest.raises(DataError, match=r"row 7 \(counted from 1\), column 'rater': the rating has no rater"):
        read(nameless, rater="rater")
    table = read(frame(rater=["ann", "bob", "ann", "bob", "ann", "bob", None]))
    assert (len(table), table.people, table.raters, table.columns.rater) == (7, None, [], None)
    assert "the guessed rater column 'rater' is blank where 1 ratings are and is not used" in table.notes


def test_without_a_rater_column_equal_outputs_stay_rows():
    table = read(frame().drop(columns="rater"))
    assert (len(table), table.people, table.rater_ceiling()) == (7, None, None)


def test_without_a_target_every_row_is_scored():
    table = read_table(frame().drop(columns="rating"), require_target=False)
    assert len(table) == 7
    assert table.people is None
    assert table.rows[1]["rater"] == "bob"


def test_a_part_of_the_table_keeps_its_raters():
    part = read().subset([3, 0])
    assert part.people.ratings == ({"bob": 5}, {"ann": 4, "bob": 5, "cem": 3})
    assert part.ratings.tolist() == [5, 4]


def test_the_ceiling_is_that_of_the_tables_own_raters_groups_and_average():
    rows = [(f"q{n // 3}", "m", f"text {n}", rater, (n * 7 + shift * n % 3) % 5)
            for n in range(60) for rater, shift in (("ann", 0), ("bob", 1), ("cem", 2))]  # fmt: skip
    mean, median = read(frame(rows)), read(frame(rows), raters="median")
    found = mean.rater_ceiling()
    assert (found.twice, found.ratings, found.groups) == (60, 180, 20)
    assert median.rater_ceiling().ceiling != found.ceiling


@pytest.mark.parametrize("option", [{"raters": "mode"}, {"rater_effects": "center"}])
def test_unknown_ways_to_average_are_refused(option):
    with pytest.raises(OptionError, match="is unknown; allowed are"):
        read(**option)


def test_people_say_what_was_averaged():
    assert str(read().people) == "mean of 7 ratings by 3 raters"
    assert str(read(raters="median", rater_effects="centre").people) == (
        "median of 7 ratings by 3 raters, each rater's mean taken off"
    )
