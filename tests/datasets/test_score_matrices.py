"""Scores and ratings from every kind of file come to lie side by side, and what does not fit is said."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from metricsmith.datasets.score_matrices import read_score_matrices
from metricsmith.errors import DataError, OptionError
from metricsmith.mqm import MQMWeights
from mqm_files import CLEAN, OLD, tsv
from score_tables import DOCUMENTS, LENGTH, SYSTEMS, matrix, numbered, outputs, write, write_scores

ROWS = outputs()
LABELS = ("system", "doc", "segment")


@pytest.fixture
def scores(tmp_path):
    return write(tmp_path / "scores.csv", ROWS, *LABELS, "near", "far")


@pytest.fixture
def gold(tmp_path):
    return write(tmp_path / "gold.csv", ROWS, *LABELS, "mark")


def notes(read):
    return "\n".join(read.notes)


def test_two_tables_become_matrices_with_names(scores, gold):
    read = read_score_matrices(scores, gold, target="mark")
    assert list(read.metrics) == ["near", "far"]
    for name, found in [("near", read.metrics["near"]), ("far", read.metrics["far"]), ("mark", read.gold)]:
        np.testing.assert_array_equal(found, matrix(name))
    assert read.systems == SYSTEMS
    assert read.segments[:4] == ("zoo:1", "zoo:2", "zoo:3", "farm:1")
    assert read.documents == tuple(doc for doc in DOCUMENTS for _ in range(3))
    assert (read.raters, read.target) == ({}, "mark")
    assert read.notes == ("segments were matched by document and segment",)
    assert [source.split(" sha256:")[0] for source in read.sources.values()] == ["scores.csv", "gold.csv"]


def test_rows_may_stand_in_any_order_and_documents_on_one_side(tmp_path, gold):
    """Numbers in the whole set on the one side, documents beside such numbers on the other."""
    whole = [{**row, "doc": old["doc"]} for row, old in zip(numbered(ROWS), ROWS, strict=True)]
    rated = write(tmp_path / "rated.csv", whole[::-1], *LABELS, "mark")
    read = read_score_matrices(
        write(tmp_path / "s.csv", numbered(ROWS), "system", "segment", "near"), rated, target="mark"
    )
    order = [read.systems.index(name) for name in SYSTEMS]
    places = [read.segments.index(str(number)) for number in range(1, 19)]
    np.testing.assert_array_equal(read.metrics["near"][np.ix_(order, places)], matrix("near"))
    np.testing.assert_array_equal(read.gold[np.ix_(order, places)], matrix("mark"))
    assert read.documents[0] == DOCUMENTS[-1]
    assert "matched by segment" in notes(read)


def test_one_table_may_hold_both(tmp_path):
    path = write(tmp_path / "all.csv", ROWS)
    assert list(read_score_matrices(path, path, target="mark").metrics) == ["near", "far"]
    assert list(read_score_matrices(path, path, target="mark", metrics=["far"]).metrics) == ["far"]


def test_the_rating_is_guessed_and_the_guess_is_said(tmp_path, scores):
    rated = write(tmp_path / "g.csv", [{**row, "Rating": row["mark"]} for row in ROWS], *LABELS, "Rating")
    read = read_score_matrices(scores, rated)
    assert read.target == "Rating"
    assert "the rating is column 'Rating' (name another" in notes(read)


def test_a_judges_own_file_has_its_numbers_under_raw(tmp_path, gold):
    lines = [
        {
            **{name: row[name] for name in LABELS},
            "id": str(place),
            "raw": None if place == 0 else row["near"],
            "score": 0.5,
        }
        for place, row in enumerate(ROWS)
    ]
    path = tmp_path / "gemba-v2.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    read = read_score_matrices(path, gold, target="mark")
    assert list(read.metrics) == ["gemba-v2"]
    assert math.isnan(read.metrics["gemba-v2"][0, 0])
    assert read.metrics["gemba-v2"][0, 1] == ROWS[1]["near"]
    assert "gemba-v2: no score for 1 of 72 rated outputs" in notes(read)
    assert list(read_score_matrices(path, gold, target="mark", metrics=["score"]).metrics) == ["score"]


def test_columns_that_are_labels_or_texts_are_no_metrics(tmp_path, gold):
    rows = [{**row, "id": place, "seed": 1, "comment": "fine", "empty": ""} for place, row in enumerate(ROWS)]
    path = write(tmp_path / "s.csv", rows, *LABELS, "id", "seed", "comment", "empty", "near")
    assert list(read_score_matrices(path, gold, target="mark").metrics) == ["near"]


def test_score_files_lie_beside_each_other_by_position(tmp_path):
    folder = tmp_path / "en-de"
    for name in ("near", "far"):
        write_scores(folder / f"{name}-src.seg.score", name)
    rated = write_scores(tmp_path / "en-de.mqm.seg.score", "mark", SYSTEMS[::-1], ant=["None"] * 17 + ["-1"])
    read = read_score_matrices(folder, rated)
    assert (list(read.metrics), read.target) == (["far-src", "near-src"], "mqm")
    assert read.systems == SYSTEMS[::-1]
    np.testing.assert_array_equal(read.metrics["near-src"], matrix("near")[::-1])
    assert np.isnan(read.gold[3, :17]).all()
    assert read.documents == ()
    assert "outputs without a rating, which take no part: 17 of 72" in notes(read)
    assert list(read_score_matrices(folder, rated, metrics=["near-src"]).metrics) == ["near-src"]
    one = read_score_matrices(folder / "near-src.seg.score", rated)
    np.testing.assert_array_equal(one.metrics["near-src"], read.metrics["near-src"])


def test_a_score_file_is_laid_beside_a_table_by_number_or_by_order(tmp_path, gold):
    path = write_scores(tmp_path / "near.seg.score", "near")
    whole = write(tmp_path / "whole.csv", numbered(ROWS)[::-1], "system", "segment", "mark")
    for rated in (gold, whole):  # in the order of the file; by number, the file being upside down
        read = read_score_matrices(path, rated, target="mark")
        order = [read.systems.index(name) for name in SYSTEMS]
        places = np.argsort([int(segment) for segment in read.segments])
        np.testing.assert_array_equal(read.gold[order][:, places], matrix("mark"))
        np.testing.assert_array_equal(read.metrics["near"][order][:, places], matrix("near"))
        assert "by position" in notes(read)


def test_several_ratings_become_their_mean_and_raters_are_kept(tmp_path, scores):
    """The raters of a segment are its slots in the order of the file; sums of tenths keep their ties."""
    rows = []
    for place, row in enumerate(ROWS):
        first, second = ("r1", "r2") if row["doc"] == "zoo" else ("r7", "r2")
        marks = (-1.1, -0.1) if place % 2 else (-1.2, 0.0)
        rows += [{**row, "rater": first, "mark": marks[0]}, {**row, "rater": second, "mark": marks[1]}]
    rated = write(tmp_path / "r.csv", rows, *LABELS, "rater", "mark")
    read = read_score_matrices(scores, rated, target="mark")
    assert set(np.unique(read.gold)) == {-0.6}
    assert list(read.raters) == ["slot 0", "slot 1"]
    assert set(np.unique(read.raters["slot 0"])) == {-1.2, -1.1}
    assert "the rating is the mean of an output's ratings, 2 at most" in notes(read)
    blank = write(tmp_path / "b.csv", rows, *LABELS, "mark")
    np.testing.assert_array_equal(
        read_score_matrices(scores, blank, target="mark").raters["slot 1"], read.raters["slot 1"]
    )


def test_single_ratings_by_many_raters_are_no_baseline(tmp_path, scores):
    rows = [{**row, "rater": row["system"]} for row in ROWS]
    read = read_score_matrices(scores, write(tmp_path / "r.csv", rows, *LABELS, "rater", "mark"), target="mark")
    assert read.raters == {}
    np.testing.assert_array_equal(read.gold, matrix("mark"))


def marked_ratings(tmp_path):
    """Two segments of one document, two systems, two raters; by hand: see the assertions."""
    punctuation, wrong = ("Fluency/Punctuation", "Minor"), ("Accuracy/Mistranslation", "Major")
    errors = {
        ("A", "1"): (CLEAN, punctuation),
        ("A", "2"): (wrong, wrong),
        ("B", "1"): (wrong, CLEAN),
        ("B", "2"): (CLEAN, CLEAN),
    }
    lines = []
    for (system, number), pair in errors.items():
        for rater, error in zip(("r1", "r2"), pair, strict=True):
            text = "Die Katze" if error == CLEAN else "Die <v>Katze</v>"
            lines.append((system, "zoo", number, str(6 + int(number)), rater, "The cat", text, *error, ""))
    path = tmp_path / "mqm.tsv"
    path.write_text(tsv(OLD, lines), "utf-8")
    return path


@pytest.mark.parametrize(("labels", "how"), [(("1", "2"), "document and segment"), (("7", "8"), "by segment")])
def test_mqm_ratings_are_gold_by_either_of_their_numbers(tmp_path, labels, how):
    rows = [
        {"system": system, "doc": "zoo", "segment": label, "m": place}
        for system in "AB"
        for place, label in enumerate(labels)
    ]
    read = read_score_matrices(write(tmp_path / "m.csv", rows), marked_ratings(tmp_path))
    np.testing.assert_array_equal(read.gold, [[-0.05, -5.0], [-2.5, 0.0]])
    np.testing.assert_array_equal(read.raters["slot 0"], [[0.0, -5.0], [-5.0, 0.0]])
    np.testing.assert_array_equal(read.metrics["m"], [[0, 1], [0, 1]])
    assert read.documents == ("zoo", "zoo")
    assert how in notes(read)
    assert "points taken off" in notes(read)
    seeds = read_score_matrices(tmp_path / "m.csv", tmp_path / "mqm.tsv", weights=MQMWeights(50, 7, 1))
    np.testing.assert_array_equal(seeds.gold, [[-0.5, -7.0], [-3.5, 0.0]])


def test_what_only_one_side_has_is_left_out_and_named(tmp_path, gold):
    extra = [{**row, "system": "elk"} for row in ROWS if row["system"] == "ant"]
    more = [{**row, "segment": 9} for row in ROWS if row["doc"] == "zoo"]
    fewer = [row for row in [*ROWS, *extra, *more] if row["system"] != "bee" and row["doc"] != "farm"]
    read = read_score_matrices(write(tmp_path / "s.csv", fewer[::-1][12:], *LABELS, "near"), gold, target="mark")
    assert read.systems == ("ant", "cat", "dog")
    assert "systems left out, without scores: bee" in notes(read)
    assert "segments left out, without scores: 3" in notes(read)
    with_elk = read_score_matrices(
        write(tmp_path / "t.csv", [*ROWS, *extra, *more[:1]], *LABELS, "near"), gold, target="mark"
    )
    assert "systems left out, without ratings: elk" in notes(with_elk)
    assert "segments left out, without ratings: 1" in notes(with_elk)


def test_directions_are_turned_round_by_name(scores, gold):
    read = read_score_matrices(scores, gold, target="mark", lower_is_better=["far", "mark"])
    np.testing.assert_array_equal(read.metrics["far"], -matrix("far"))
    np.testing.assert_array_equal(read.metrics["near"], matrix("near"))
    np.testing.assert_array_equal(read.gold, -matrix("mark"))
    assert "far: lower is better" in notes(read)


def test_systems_can_be_left_out(scores, gold):
    read = read_score_matrices(scores, gold, target="mark", without=["bee"])
    assert read.systems == ("ant", "cat", "dog")
    np.testing.assert_array_equal(read.gold, matrix("mark")[[0, 2, 3]])
    assert "systems left out, on request: bee" in notes(read)


def test_a_judges_scores_are_no_ratings_unless_they_are_named(tmp_path, scores):
    rows = [{**row, "raw": row["near"], "score": row["near"] / 10, "half_width": 0, "kept": 9} for row in ROWS]
    judged = write(tmp_path / "segments.csv", rows, *LABELS, "raw", "score", "half_width", "kept")
    with pytest.raises(DataError, match=r"holds the scores of a judge.*give it first, as SCORES"):
        read_score_matrices(scores, judged)
    assert read_score_matrices(scores, judged, target="raw").gold[0, 1] == ROWS[1]["near"]
    mine = write(tmp_path / "mine.csv", [{**row, "rating": row["mark"]} for row in rows], *LABELS, "raw", "score",
                 "half_width", "kept", "rating")  # fmt: skip
    assert read_score_matrices(mine, mine).target == "rating"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"target": "marc"}, DataError, "no column 'marc' .did you mean 'mark'"),
        ({}, DataError, r"no column of the ratings.*recognised are mqm, gold, rating.*--target"),
        ({"target": "mark", "metrics": ["nera"]}, OptionError, "no metric 'nera' .did you mean 'near'"),
        ({"target": "mark", "without": ["beee"]}, OptionError, "no such system .did you mean 'bee'"),
        ({"target": "mark", "lower_is_better": ["fare"]}, OptionError, "neither a metric.*did you mean 'far'"),
        ({"target": "mark", "weights": MQMWeights.wmt()}, OptionError, "weights .--weights. are for MQM ratings"),
        ({"target": "mark", "without": ["ant", "bee", "cat"]}, DataError, "one system has scores.*two are needed"),
    ],
)
def test_names_that_do_not_exist_are_refused_with_a_hint(scores, gold, options, error, message):
    with pytest.raises(error, match=message):
        read_score_matrices(scores, gold, **options)


def changed(place, **values):
    return [{**row, **(values if at == place else {})} for at, row in enumerate(ROWS)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (changed(1, near="good"), r"row 2 \(line 3\), column 'near': 'good' is not a number"),
        (changed(1, near="inf"), r"row 2.*column 'near': an infinite score"),
        (changed(1, system=" "), r"row 2.*column 'system': the system is blank"),
        (changed(1, segment=1), r"row 2 .*'ant' has scores of segment 'zoo:1' already .*row 1.*one row by output"),
        ([{**row, "system": row["system"] + "!"} for row in ROWS], "no system has scores.*name the systems alike"),
        ([{**row, "segment": f"s{row['segment']}"} for row in ROWS], "no segment in common: the one has zoo:s1"),
        ([{("sytem" if k == "system" else k): v for k, v in row.items()} for row in ROWS], "did you mean 'system'"),
        ([{name: row[name] for name in LABELS} for row in ROWS], "no column of numbers beside the labels"),
    ],
)  # fmt: skip
def test_tables_that_do_not_fit_are_refused_with_their_place(tmp_path, gold, rows, message):
    with pytest.raises(DataError, match=message):
        read_score_matrices(
            write(tmp_path / "s.csv", rows, *[name for name in rows[0] if name != "mark"]), gold, target="mark"
        )


def test_a_gold_cell_that_is_text_is_refused(tmp_path, scores):
    rated = write(tmp_path / "g.csv", changed(3, mark="bad"), *LABELS, "mark")
    with pytest.raises(DataError, match=r"row 4.*column 'mark': 'bad' is not a number"):
        read_score_matrices(scores, rated, target="mark")


def test_files_of_the_wrong_kind_are_refused(tmp_path, scores, gold):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "m.sys.score").write_text("ant 1\n")
    short = write_scores(tmp_path / "m.seg.score", "near", **{name: ["1", "2"] for name in SYSTEMS})
    by_system = write_scores(tmp_path / "m.sys.score", "near")
    for left, right, message in [
        (tmp_path / "scorse.csv", gold, "no such file.*did you mean 'scores.csv'"),
        (scores, tmp_path / "none.csv", "no such file"),
        (tmp_path / "empty", gold, r"no file \*.seg.score, but m.sys.score"),
        (scores, tmp_path / "empty", "is a folder; the gold ratings are one file"),
        (by_system, gold, "scores by segment are needed"),
        (short, gold, "2 segments, .* has 18; scores without labels"),
        (short, scores, "no column of the ratings"),
    ]:
        with pytest.raises(DataError, match=message):
            read_score_matrices(left, right, target=None if right == scores else "mark")
    with pytest.raises(OptionError, match=r"--target. names a column of a table, and .* is a score file"):
        read_score_matrices(scores, short, target="mark")
    with pytest.raises(OptionError, match=r"no metric 'n'; there are m; name"):
        read_score_matrices(short, gold, target="mark", metrics=["n"])


def test_score_files_of_one_folder_have_one_length(tmp_path, gold):
    write_scores(tmp_path / "f" / "a.seg.score", "near")
    write_scores(tmp_path / "f" / "b.seg.score", "near", **{name: ["1", "2"] for name in SYSTEMS})
    with pytest.raises(DataError, match=r"b.seg.score: system 'ant' has 2 scores, 18 are needed"):
        read_score_matrices(tmp_path / "f", gold, target="mark")


def test_a_name_for_metric_and_rating_cannot_be_turned_round(tmp_path, gold):
    same = write(tmp_path / "s.csv", ROWS, *LABELS, "mark")
    assert list(read_score_matrices(same, gold, target="mark").metrics) == ["mark"]
    with pytest.raises(OptionError, match="names a metric and the rating as well"):
        read_score_matrices(same, gold, target="mark", lower_is_better=["mark"])


def test_labels_of_either_form_meet_those_of_the_other(tmp_path, gold):
    """`zoo:1` in one column on the one side is document and number on the other; documents come from either."""
    rows = [{"system": row["system"], "segment": f"{row['doc']}:{row['segment']}", "near": row["near"]} for row in ROWS]
    joined = write(tmp_path / "j.csv", rows)
    read = read_score_matrices(joined, gold, target="mark")
    np.testing.assert_array_equal(read.metrics["near"], matrix("near"))
    assert "by segment in the scores and by document and segment in the gold ratings" in notes(read)
    back = read_score_matrices(gold, joined, target="near", metrics=["mark"])
    np.testing.assert_array_equal(back.gold, matrix("near"))
    assert back.documents == read.documents == tuple(doc for doc in DOCUMENTS for _ in range(3))


def test_a_segment_that_nobody_rated_is_left_out(tmp_path, scores):
    rows = [{**row, "mark": "" if (row["doc"], row["segment"]) == ("farm", 2) else row["mark"]} for row in ROWS]
    read = read_score_matrices(scores, write(tmp_path / "g.csv", rows, *LABELS, "mark"), target="mark")
    assert len(read.segments) == 17
    assert "farm:2" not in read.segments
    assert "segments left out, without ratings: 1" in notes(read)


def test_the_checksum_is_that_of_all_files(tmp_path, gold):
    seen = set()
    for number in ("1", "2"):
        write_scores(tmp_path / "f" / "a.seg.score", "near")
        write_scores(tmp_path / "f" / "b.seg.score", "near", ant=[number] * 18)
        seen.add(read_score_matrices(tmp_path / "f", gold, target="mark").sources["scores"])
    assert len(seen) == 2
    assert {len(one.rpartition(":")[2]) for one in seen} == {16}


@pytest.mark.parametrize(("names", "called"), [(("judge",), "judge"), (("judge", "other"), "m"), (("",), "m")])
def test_a_judges_own_file_keeps_the_judges_name(tmp_path, gold, names, called):
    rows = [{**row, "raw": row["near"], "metric": names[place % len(names)]} for place, row in enumerate(ROWS)]
    scores = write(tmp_path / "m.csv", rows, *LABELS, "raw", "metric")
    assert list(read_score_matrices(scores, gold, target="mark").metrics) == [called]


def test_a_column_called_raw_hides_no_other_metric(tmp_path, gold):
    rows = [{**row, "raw": row["near"], "other": row["near"] / 2} for row in ROWS]
    scores = write(tmp_path / "mine.csv", rows, *LABELS, "raw", "other")
    assert list(read_score_matrices(scores, gold, target="mark").metrics) == ["raw", "other"]


def test_lines_name_the_documents_of_score_files(tmp_path):
    path, lines = write_scores(tmp_path / "near.seg.score", "near"), tmp_path / "a.docs"
    lines.write_text("".join(f"news  {name}\n" for name in DOCUMENTS for _ in range(LENGTH)), "utf-8")
    gold = write_scores(tmp_path / "mark.seg.score", "mark")
    expected = tuple(name for name in DOCUMENTS for _ in range(LENGTH))
    assert read_score_matrices(path, gold).documents == ()
    assert read_score_matrices(path, gold, documents=lines).documents == expected
    # The table begins with the second segment, and numbers decide which line is whose.
    table = write(tmp_path / "g.csv", numbered(ROWS)[1:] + numbered(ROWS)[:1], "system", "segment", "mark")
    read = read_score_matrices(path, table, target="mark", documents=lines)
    assert read.documents == tuple(expected[int(label) - 1] for label in read.segments) != expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("d\n" * 17, "has 17 lines, the source has 18"),
        ("d\n" * 3 + "\n" + "d\n" * 14, r"line 4: the document is blank"),
    ],
)
def test_lines_that_name_no_document_are_refused(tmp_path, text, message):
    (tmp_path / "a.docs").write_text(text, "utf-8")
    paths = [write_scores(tmp_path / f"{name}.seg.score", name) for name in ("near", "mark")]
    with pytest.raises(DataError, match=message):
        read_score_matrices(*paths, documents=tmp_path / "a.docs")


def test_documents_of_tables_stand_in_a_column(tmp_path, gold):
    scores = write(tmp_path / "s.csv", ROWS, "system", "doc", "segment", "near")
    with pytest.raises(OptionError, match=r"--documents\) is for score files.*a column 'doc'"):
        read_score_matrices(scores, gold, target="mark", documents=gold)
