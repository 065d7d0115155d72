from __future__ import annotations

import gzip
import json
import math

import dspy
import numpy as np
import pandas as pd
import pytest

import datasets
from metricsmith.datasets.table import read_table
from metricsmith.errors import DataError, OptionError
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import Scale
from metricsmith.scoring.results import Keys

N = 10
FRAME = pd.DataFrame({
    "id": [f"r{number}" for number in range(N)],
    "source_id": [f"s{number // 2}" for number in range(N)],
    "question": [f"Question, {number // 2}?" for number in range(N)],
    "answer": [f'Line one "{number}"\nNA, né' for number in range(N)],
    "references": [[f"ref {number}", "it's fine"] for number in range(N)],
    "score": [1.0, 2.0, 3.0, 4.0, 5.0, None, 4.0, 3.0, 2.0, 1.0],
    "length": [number * 1.5 for number in range(N)],
})  # fmt: skip


def frame(**changes) -> pd.DataFrame:
    return FRAME.assign(**{name: pd.Series(cells, dtype=object) for name, cells in changes.items()})


def message(source, error=DataError, **options) -> str:
    with pytest.raises(error) as caught:
        read_table(source, **options)
    return str(caught.value)


def write(folder, form):
    """The same table in another form; lists as JSON where a form has no lists."""
    texts = FRAME.assign(references=[json.dumps(cell) for cell in FRAME["references"]])
    records = "".join(json.dumps(record) + "\n" for record in FRAME.replace({math.nan: None}).to_dict("records"))
    if form == "data frame":
        return FRAME
    if form == "data set":
        return datasets.Dataset.from_pandas(FRAME)
    path = folder / f"table{form}"
    if form == ".csv.gz":
        path.write_bytes(gzip.compress(texts.to_csv(index=False).encode()))
    elif form == ".parquet":
        FRAME.to_parquet(path)
    else:
        content = {
            ".csv": texts.to_csv(index=False),
            ".tsv": texts.to_csv(index=False, sep="\t"),
            ".python.csv": FRAME.to_csv(index=False),
            ".jsonl": records,
            ".json": json.dumps([json.loads(line) for line in records.splitlines()]),
        }
        path.write_text(content[form])
    return path


FORMS = [".csv", ".csv.gz", ".tsv", ".python.csv", ".jsonl", ".json", ".parquet", "data frame", "data set"]


@pytest.mark.parametrize("form", FORMS)
def test_every_format_gives_the_same_rows(form, tmp_path):
    table = read_table(write(tmp_path, form), target="score", metric_columns="length")
    assert len(table) == N
    for number, row in enumerate(table.rows):
        rating = FRAME["score"][number]
        assert row.toDict() == {
            "id": f"r{number}",
            "group": f"s{number // 2}",
            "input": f"Question, {number // 2}?",
            "output": f'Line one "{number}"\nNA, né',
            "references": [f"ref {number}", "it's fine"],
            "columns": {"length": float(FRAME["length"][number])},
        } | ({} if math.isnan(rating) else {"score": rating})
        assert set(row.inputs().keys()) == {"input", "output", "references"}
    assert table.task.scale == Scale(1, 5, 1)
    np.testing.assert_array_equal(table.metric_values["length"], FRAME["length"])
    assert table.columns.guessed == {"id", "group", "output", "input", "reference"}


def test_a_local_data_set_folder_is_not_mistaken_for_a_hub_id(tmp_path, monkeypatch):
    (tmp_path / "owner" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert "owner/name: cannot be read (Is a directory)" in message("owner/name")


def test_what_was_guessed_and_left_out_stands_in_the_notes():
    notes = read_table(FRAME).notes
    assert "target column guessed: 'score' (name it with target=... (--target))" in notes
    assert "output column guessed: 'answer' (name it with output=... (--output))" in notes
    assert "rating scale inferred: 1 to 5, step 1 (ratings run from 1 to 5; give another with scale=...)" in notes
    assert "1 of 10 rows have no rating: they are kept for scoring and left out of fitting" in notes


def test_named_columns_need_no_notes_on_guesses():
    table = read_table(
        frame(score=list(range(10))), target="score", output="answer", inputs="question",
        reference="references", id="id", group="source_id", scale="0:10",
    )  # fmt: skip
    assert table.notes == ()
    assert table.columns.guessed == frozenset()
    assert table.task.scale == Scale(0, 10)


def test_task_says_what_the_rows_are():
    table = read_table(FRAME, target="score", task="Answer questions.")
    assert (table.task.description, table.task.target) == ("Answer questions.", "score")


def test_several_inputs_are_joined_as_labelled_blocks_without_blank_ones():
    source = frame(hint=["a hint"] + [None] * 9)
    rows = read_table(source, target="score", inputs=["hint", "question"]).rows
    assert rows[0].input == "hint: a hint\n\nquestion: Question, 0?"
    assert rows[1].input == "question: Question, 0?"


def test_several_reference_columns_are_read_in_the_order_given():
    rows = read_table(frame(gold=["best"] + [None] * 9), target="score", reference=["gold", "references"]).rows
    assert rows[0].references == ["best", "ref 0", "it's fine"]
    assert rows[1].references == ["ref 1", "it's fine"]


def test_rows_without_reference_or_context_have_no_such_field():
    rows = read_table(frame(references=[""] * 9 + ["x"], context=["c"] + [""] * 9), target="score").rows
    assert "references" not in rows[0]
    assert rows[9].references == ["x"]
    assert rows[0].context == "c"
    assert "context" not in rows[1]


def test_thumbs_are_zero_and_one():
    thumbs = ["👍", "down", "yes", "no", True, False, "up", "👎", "n/a", ""]
    table = read_table(frame(thumbs=thumbs), target="thumbs")
    np.testing.assert_array_equal(table.ratings, [1, 0, 1, 0, 1, 0, 1, 0, math.nan, math.nan])
    assert table.task.scale == Scale(0, 1, 1)


def test_unrated_rows_are_kept_without_a_rating_and_never_zero():
    table = read_table(FRAME, target="score")
    assert table.rated().tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert "score" not in table.rows[5]
    assert math.isnan(table.ratings[5])


def test_subset_takes_rows_ratings_and_scores_together():
    table = read_table(FRAME, target="score", metric_columns="length")
    part = table.subset([3, 5])
    assert part.ids == ["r3", "r5"]
    assert part.groups == ["s1", "s2"]
    assert part.metric_values["length"].tolist() == [4.5, 7.5]
    assert part.rated().tolist() == [0]
    assert (part.task, part.checksum) == (table.task, table.checksum)
    assert len(table.subset(np.array([], dtype=int))) == 0


def test_texts_are_what_splits_compare():
    assert read_table(FRAME, target="score").texts[0] == ("Question, 0?", 'Line one "0"\nNA, né')


def test_rows_say_which_system_wrote_them_and_the_table_who_rated_them():
    table = read_table(frame(model=["m1", 2.0] * 5, annotator=[" ann ", "bob"] * 5), target="score")
    assert (table.columns.system, table.columns.rater) == ("model", "annotator")
    assert (table.systems, table.raters) == (["m1", "2"] * 5, ["ann", "bob"])
    assert table.rows[1]["system"] == "2"
    assert "rater" not in table.rows[1]  # a row is an output, whoever rated it
    assert "rater column guessed: 'annotator' (name it with rater=... (--rater))" in table.notes
    bare = read_table(FRAME, target="score")
    assert (bare.systems, bare.raters) == ([], [])
    assert "system" not in bare.rows[0]


def test_a_system_or_rater_changes_neither_what_a_judge_is_shown_nor_where_its_answer_is_kept():
    bare = read_table(FRAME, target="score").rows[0]
    labelled = read_table(frame(system=["m1", "m2"] * 5, rater=["a", "b"] * 5), target="score").rows[0]
    judge = CriterionJudge(criterion="Clear", meaning="It is clear.", task="Answer.")
    assert judge.messages(labelled) == judge.messages(bare)
    keys = [Keys([row]).row(0, reads=()) for row in (labelled, bare)]
    assert keys[0] == keys[1]


def test_conditions_filter_rows_and_are_counted():
    table = read_table(FRAME, target="score", where=["id!=r0", "source_id!=s9"])
    assert table.ids[0] == "r1"
    assert "9 of 10 rows fulfil id!=r0 and source_id!=s9" in table.notes


def test_row_numbers_count_the_rows_of_the_source_even_after_a_condition():
    table = read_table(FRAME.drop(columns="id"), target="score", where="answer!=" + FRAME["answer"][0])
    assert table.ids[0] == "2"
    assert "row 10 (counted from 1), column 'score': 'x'" in message(
        frame(score=[1, 2, 3, 4, 5, 1, 2, 3, 4, "x"]), target="score", where="id!=r0"
    )


def test_candidate_columns_alone_need_no_text():
    table = read_table(FRAME[["score", "length"]], target="score", metric_columns=["length"])
    assert table.columns.output is None
    assert "no output column: only the candidate columns are read" in table.notes
    assert table.rows[0].output == ""


def test_a_guessed_output_with_gaps_does_not_stop_candidate_columns():
    source = frame(answer=["a"] * 9 + [""])
    table = read_table(source, target="score", metric_columns="length")
    assert table.columns.output is None
    assert "the guessed output column 'answer' has 1 empty cells and is not used" in table.notes
    assert "row 10" in message(source, target="score", metric_columns="length", output="answer")


def test_prior_columns_are_candidates():
    table = read_table(FRAME, target="score", prior_columns="len*")
    assert table.prior == ("length",)
    assert list(table.metric_values) == ["length"]


def test_without_output_or_candidates_there_is_nothing_to_do():
    assert "no output column was named" in message(FRAME[["score", "length"]], target="score")


def test_without_rating_column_there_is_nothing_to_learn():
    assert "no target column was named" in message(FRAME.drop(columns="score"))


def test_an_empty_output_names_its_place_and_the_way_out():
    text = message(frame(answer=["a", "b", " ", None, *"cdefgh"]), target="score")
    assert "row 3 (counted from 1), column 'answer': the output is empty (2 such rows of 10)" in text
    assert "where='answer!='" in text
    table = read_table(frame(answer=["a", "b", " ", None, *"cdefghi"[:6]]), where="answer!=", min_rated=7)
    assert len(table) == 8


def test_too_few_rated_rows_are_counted():
    text = message(frame(score=[1, 2, 3, 4, 5, 1, 2, None, "", "n/a"]), target="score")
    assert "the data frame, column 'score': 7 of 10 rows have a rating; at least 8 are needed" in text
    assert len(read_table(frame(score=[1, 2, 3, 4, 5, 1, 2, 3, "", "n/a"]), target="score").rated()) == 8


def test_no_rating_at_all_is_an_error_even_where_none_was_demanded():
    assert "0 of 10 rows have a rating" in message(frame(score=[None] * 10), target="score", min_rated=0)


def test_constant_ratings_show_the_value_and_the_first_row():
    text = message(frame(score=[None] + [3] * 9), target="score")
    assert "all 9 ratings are 3 (first: the data frame, row 2 (counted from 1))" in text
    assert "ratings must differ" in text


def test_a_rating_outside_the_given_scale_is_an_error():
    assert "row 5 (counted from 1), column 'score': the rating '5' is outside" in message(FRAME, scale=Scale(1, 4))


@pytest.mark.parametrize("name", ["id", "group", "input", "base"])
def test_a_target_named_like_a_row_field_is_refused(name):
    source = FRAME[["answer", "score"]].rename(columns={"score": name})
    assert f"the target column is called {name!r}" in message(source, OptionError, target=name)


def test_a_named_column_that_is_missing_suggests_the_nearest():
    assert "no column 'scores' (did you mean 'score'?)" in message(FRAME, target="scores")


def test_new_data_need_neither_ratings_nor_a_rating_column():
    table = read_table(FRAME.drop(columns="score"), target="score", require_target=False)
    assert table.task.target == ""
    assert table.rated().tolist() == []
    assert "no column 'score': no row has a rating" in table.notes
    unnamed = read_table(FRAME, require_target=False)
    assert unnamed.rated().tolist() == []
    assert "score" not in unnamed.rows[0]


@pytest.mark.parametrize("scores", [[None] * 10, [3] * 10, [1, 2] + [None] * 8])
def test_new_data_may_have_few_or_constant_ratings(scores):
    table = read_table(frame(score=scores), target="score", require_target=False)
    assert len(table.rated()) == sum(score is not None for score in scores)


def test_rows_work_as_dspy_examples():
    row = read_table(FRAME, target="score").rows[0]
    assert isinstance(row, dspy.Example)
    assert row.labels().toDict() == {"id": "r0", "group": "s0", "score": 1.0}


def test_a_target_may_have_any_other_name():
    table = read_table(FRAME.rename(columns={"score": "Human score (1-5)"}), target="Human score (1-5)")
    assert table.rows[0]["Human score (1-5)"] == 1.0


def test_simpeval_groups_by_its_id_column(shared_data):
    table = read_table(shared_data / "simpeval.csv", target="score")
    assert len(table) == 360
    assert len(set(table.ids)) == 60  # as they stand in the file, one for each source
    assert table.columns.group == "id"
    assert len(set(table.groups)) == 60
    assert (table.columns.output, table.columns.inputs) == ("simple", ("original",))
    assert all(isinstance(row.references, list) and row.references for row in table.rows)
    assert table.task.scale == Scale(0, 100)


def test_simpeval_with_named_columns(shared_data):
    table = read_table(
        shared_data / "simpeval.csv", target="score", output="simple", inputs=["original"],
        reference="references", group="original",
    )  # fmt: skip
    assert table.groups == [row.input for row in table.rows]
    assert len(set(table.groups)) == 60


def test_hanna_gives_its_judge_scores_as_candidates(shared_data):
    table = read_table(
        shared_data / "hanna_scores_dev.csv.gz", target="Relevance",
        where="system!=Human", group="prompt_index",
        metric_columns=["* Ξ*", "* ¤*", "* [RCES][EHMUGX] [1-4]"], prior_columns="* RE [1-4]",
    )  # fmt: skip
    # 72 automatic metrics, 5 judges x 4 prompts x 6 criteria (5 x 4 of them for Relevance), 10 x 48 stories.
    assert (len(table.metric_values), len(table.prior), len(table)) == (72 + 120, 20, 480)
    assert len(set(table.groups)) == 48
    assert not any("Human" in name or "AVG" in name for name in table.metric_values)
    assert table.task.scale == Scale(1, 5)


def test_taubench_rewards_are_binary(shared_data):
    table = read_table(shared_data / "taubench_train_runs.csv", target="reward")
    assert table.task.scale == Scale(0, 1, 1)
    assert (len(table), len(set(table.groups))) == (104, 25)
    assert table.rows[0].output.startswith("user: I need to cancel my flights")
    assert table.rows[0].output.splitlines()[1].startswith("assistant:")


def test_error_spans_are_read_as_new_data(shared_data):
    table = read_table(shared_data / "ted_ende.jsonl.gz", require_target=False)
    assert len(table) == 7406
    assert (table.columns.output, table.columns.inputs) == ("target", ("source",))
