"""Scores that could come to lie beside the ratings of another output: refused, with the place and what to do."""

from __future__ import annotations

import json

import numpy as np
import pytest

from metricsmith.datasets.score_matrices import read_score_matrices
from metricsmith.errors import DataError
from score_tables import DOCUMENTS, LENGTH, SYSTEMS, matrix, numbered, outputs, write, write_scores

ROWS = outputs()
LABELS = ("system", "doc", "segment")


@pytest.fixture
def scores(tmp_path):
    return write(tmp_path / "s.csv", ROWS, *LABELS, "near")


def test_an_order_that_gaps_have_changed_is_no_order(tmp_path):
    # The first system lacks the second segment, so that the file has it last: ant1 ant3 ... bee2.
    path = write_scores(tmp_path / "near.seg.score", "near")
    named = [{**row, "segment": f"s{row['segment']}"} for row in numbered(ROWS)]
    gapped = write(tmp_path / "gapped.csv", named[:1] + named[2:], "system", "segment", "mark")
    with pytest.raises(DataError, match=r"row 20 .*segments stand in different orders.*number the segments"):
        read_score_matrices(path, gapped, target="mark")
    later = write(tmp_path / "later.csv", named[:-2] + named[-1:], "system", "segment", "mark")
    read = read_score_matrices(path, later, target="mark")
    np.testing.assert_array_equal(read.gold, np.where(np.arange(72).reshape(4, 18) == 70, np.nan, matrix("mark")))
    by_number = write(tmp_path / "number.csv", numbered(ROWS)[:1] + numbered(ROWS)[2:], "system", "segment", "mark")
    read = read_score_matrices(path, by_number, target="mark")
    np.testing.assert_array_equal(read.gold[1:, np.argsort([int(name) for name in read.segments])], matrix("mark")[1:])


@pytest.mark.parametrize("together", [True, False], ids=["raters of an output together", "one rater after the other"])
def test_every_rater_passes_in_one_order(tmp_path, together):
    path = write_scores(tmp_path / "near.seg.score", "near")
    named = [{**row, "segment": f"s{row['segment']}"} for row in numbered(ROWS)]
    twice = [row for row in named for _ in "ab"] if together else named * 2
    read = read_score_matrices(path, write(tmp_path / "g.csv", twice, "system", "segment", "mark"), target="mark")
    np.testing.assert_array_equal(read.gold, matrix("mark"))
    by_passes = [row for row in named if row["segment"] != "s2"] + named
    with pytest.raises(DataError, match="different orders"):
        read_score_matrices(path, write(tmp_path / "p.csv", by_passes, "system", "segment", "mark"), target="mark")


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("documents", [False, True])
def test_numbers_from_0_are_not_laid_beside_numbers_from_1(tmp_path, documents, swap):
    rows = ROWS if documents else numbered(ROWS)
    lower = [{**row, "segment": row["segment"] - 1} for row in rows]
    labels = LABELS if documents else ("system", "segment")
    sides = (lower, rows) if swap else (rows, lower)
    paths = write(tmp_path / "s.csv", sides[0], *labels, "near"), write(tmp_path / "g.csv", sides[1], *labels, "mark")
    first = "s" if swap else "g"
    with pytest.raises(DataError, match=rf"{first}\.csv numbers segments from 0, .* from 1"):
        read_score_matrices(*paths, target="mark")
    part = [row for row in sides[0] if row["segment"] > 1]
    assert read_score_matrices(write(tmp_path / "p.csv", part, *labels, "near"), paths[1], target="mark").segments


def test_one_document_that_seems_shifted_may_have_gaps(tmp_path, scores):
    # The zoo's segments are 0 to 2 in the ratings, 1 to 3 in the scores; all other documents agree.
    rows = [{**row, "segment": row["segment"] % 3} if row["doc"] == "zoo" else row for row in ROWS]
    read = read_score_matrices(scores, write(tmp_path / "g.csv", rows, *LABELS, "mark"), target="mark")
    assert "segments left out, without scores: 1" in read.notes
    assert "zoo:0" not in read.segments


def test_a_blank_document_does_not_merge_the_segments_of_all(tmp_path):
    scores = write(tmp_path / "s.csv", [row for row in ROWS if row["doc"] == "zoo"], *LABELS, "near")
    blank = [{**row, "doc": "" if place == 4 else row["doc"]} for place, row in enumerate(ROWS)]
    gold = write(tmp_path / "g.csv", blank, *LABELS, "mark")
    with pytest.raises(DataError, match=r"row 5 .*column 'doc': the document is blank.*fill it in"):
        read_score_matrices(scores, gold, target="mark")
    whole = [{**row, "doc": "zoo" if row["segment"] < 4 else ""} for row in numbered(ROWS)]
    paths = [write(tmp_path / f"{name}.csv", whole, *LABELS, name) for name in ("near", "mark")]
    read = read_score_matrices(*paths, target="mark")
    np.testing.assert_array_equal(read.gold, matrix("mark"))
    assert read.documents == ()


def test_numbers_of_mqm_ratings_that_begin_anew_are_no_labels_alone(tmp_path):
    lines = [
        {"system": system, "doc": doc, "doc_seg_id": str(number), "rater": f"r {doc}", "segment_id": str(number),
         "source": "a", "target": "b", "errors": []}
        for system in SYSTEMS for doc in DOCUMENTS[:2] for number in range(1, LENGTH + 1)
    ]  # fmt: skip
    path = tmp_path / "mqm.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    plain = [{"system": s, "segment": n, "m": n} for s in SYSTEMS for n in range(1, LENGTH + 1)]
    with pytest.raises(DataError, match="no segment in common"):
        read_score_matrices(write(tmp_path / "m.csv", plain), path)


def test_one_rater_rates_an_output_once(tmp_path, scores):
    rows = [{**row, "rater": "Ada"} for row in ROWS]
    again = write(tmp_path / "g.csv", [*rows, rows[3]], *LABELS, "rater", "mark")
    with pytest.raises(DataError, match=r"row 73 .*'Ada' rated 'ant' on segment 'farm:1' already .*row 4 "):
        read_score_matrices(scores, again, target="mark")
    blank = write(tmp_path / "b.csv", [*rows, {**rows[3], "mark": ""}], *LABELS, "rater", "mark")
    np.testing.assert_array_equal(read_score_matrices(scores, blank, target="mark").gold, matrix("mark"))
    other = write(tmp_path / "o.csv", [*rows, {**rows[3], "rater": "Bo"}], *LABELS, "rater", "mark")
    assert list(read_score_matrices(scores, other, target="mark").raters) == ["slot 0", "slot 1"]


def test_raters_keep_their_slot_within_a_segment_whatever_their_order(tmp_path, scores):
    marks = {"Ada": 0, "Bo": -20}
    rows = [
        {**row, "rater": name, "mark": row["mark"] + marks[name]}
        for row in ROWS
        for name in (("Ada", "Bo") if row["system"] == "ant" else ("Bo", "Ada"))
    ]
    read = read_score_matrices(scores, write(tmp_path / "g.csv", rows, *LABELS, "rater", "mark"), target="mark")
    np.testing.assert_array_equal(read.raters["slot 0"], matrix("mark"))
    np.testing.assert_array_equal(read.raters["slot 1"], matrix("mark") - 20)


def test_ratings_of_which_one_has_no_rater_are_told_apart_by_their_order(tmp_path, scores):
    rows = [{**row, "rater": name} for row in ROWS for name in ("", "")]
    rows[0]["rater"] = "Ada"
    read = read_score_matrices(scores, write(tmp_path / "g.csv", rows, *LABELS, "rater", "mark"), target="mark")
    assert list(read.raters) == ["slot 0", "slot 1"]
    for ratings in read.raters.values():
        np.testing.assert_array_equal(ratings, matrix("mark"))


def test_a_system_that_one_score_file_lacks_has_no_scores_there(tmp_path):
    folder = tmp_path / "en-de"
    write_scores(folder / "far.seg.score", "far", SYSTEMS[1:])
    write_scores(folder / "near.seg.score", "near")
    read = read_score_matrices(folder, write_scores(tmp_path / "gold.seg.score", "mark"))
    assert np.isnan(read.metrics["far"][read.systems.index("ant")]).all()
    np.testing.assert_array_equal(read.metrics["far"][1:], matrix("far")[1:])
    assert "far: no score for 18 of 72 rated outputs" in read.notes


def test_a_table_of_ratings_in_json_lines_is_no_file_of_mqm_ratings(tmp_path, scores):
    gold = tmp_path / "gold.jsonl"
    rows = [{**{name: row[name] for name in (*LABELS, "mark")}, "source": "text", "rater": "Ada"} for row in ROWS]
    gold.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    read = read_score_matrices(scores, gold, target="mark")
    np.testing.assert_array_equal(read.gold, matrix("mark"))


def test_what_is_left_out_may_have_two_rows_by_output(tmp_path):
    twice = [*ROWS, next(row for row in ROWS if row["system"] == "bee")]
    scores = write(tmp_path / "s.csv", twice, *LABELS, "near")
    gold = write(tmp_path / "g.csv", ROWS, *LABELS, "mark")
    with pytest.raises(DataError, match="'bee' has scores of segment 'zoo:1' already"):
        read_score_matrices(scores, gold, target="mark")
    read = read_score_matrices(scores, gold, target="mark", without=["bee"])
    np.testing.assert_array_equal(read.metrics["near"], matrix("near")[[0, 2, 3]])


def test_ratings_named_raw_beside_metrics_in_one_table_hide_none(tmp_path):
    path = write(tmp_path / "t.csv", [{**row, "raw": row["mark"]} for row in ROWS], *LABELS, "near", "far", "raw")
    assert list(read_score_matrices(path, path, target="raw").metrics) == ["near", "far"]
