"""Judges' errors come to lie beside those of each rating of the same output."""

from __future__ import annotations

import json

import pytest

from metricsmith.datasets.score_matrices import read_score_matrices
from metricsmith.errors import DataError
from mqm_files import CLEAN, OLD, tsv

TEXTS = {("A", 1): "Die Kazze sass.", ("A", 2): "Es regnet.", ("B", 1): "Der Hund sass.", ("B", 2): "Es schneit."}
GOLD = tsv(
    OLD,
    [
        ("A", "zoo", "1", "1", "r1", "s", "Die <v>Kazze</v> sass.", "Fluency/Spelling", "Minor", ""),
        ("A", "zoo", "1", "1", "r2", "s", "Die Kazze sass.", *CLEAN, ""),
        ("A", "zoo", "2", "2", "r1", "s", "Es <v>regnet</v>.", "Style/Awkward", "Neutral", ""),
        ("B", "zoo", "1", "1", "r1", "s", "Der <v>Hund</v> sass.", "Accuracy/Mistranslation", "Major", ""),
        ("B", "zoo", "2", "2", "r1", "s", "Es schneit.", *CLEAN, ""),
    ],
)


def error(start, end, text, **more):
    return {"severity": "major", "start": start, "end": end, "text": text, "side": "target", "found": 2, **more}


def judge(folder, name, marks, **changes):
    """A judge's file; `marks` holds the errors by system and segment."""
    lines = []
    for (system, number), text in TEXTS.items():
        errors = marks.get((system, number), [])
        lines.append({
            "system": system, "doc": "zoo", "segment": number, "translation": text, "raw": -float(len(errors)),
            "runs": [-1, -2], "errors": errors, "metric": name, **changes.get(f"{system}{number}", {}),
        })  # fmt: skip
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


@pytest.fixture
def gold(tmp_path):
    path = tmp_path / "gold.tsv"
    path.write_text(GOLD, "utf-8")
    return path


def starts(spans):
    return [None if one is None else [(span.start, span.severity) for span in one] for one in spans]


def test_each_rating_is_a_row_and_neutral_errors_do_not_count(tmp_path, gold):
    mine = judge(tmp_path, "mine", {("A", 1): [error(4, 9, "Kazze")], ("B", 1): [error(0, 3, "Der")]})
    marked = read_score_matrices(mine, gold).marked
    assert starts(marked.gold) == [[(4, "minor")], [], [], [(4, "major")], []]
    assert starts(marked.judges["mine"]) == [[(4, "major")], [(4, "major")], [], [(0, "major")], []]
    assert marked.documents == ("zoo",) * 5
    assert marked.left_out == ()


def test_a_failed_judgement_and_another_text_are_no_statement(tmp_path, gold):
    changes = {"A1": {"raw": None, "errors": []}, "B1": {"translation": "Der Hund saß."}}
    mine = judge(tmp_path, "mine", {("B", 1): [error(0, 3, "Der")]}, **changes)
    read = read_score_matrices(mine, gold)
    assert starts(read.marked.judges["mine"]) == [None, None, [], None, []]
    assert "mine: the text that was judged is not the one that people rated: 1 of 5 ratings" in read.notes


def test_a_judge_without_marks_is_left_out_by_name(tmp_path, gold):
    mine = judge(tmp_path, "mine", {("A", 1): [error(4, 9, "Kazze")]})
    silent = judge(tmp_path, "silent", {("A", 1): [error(None, None, "")], ("B", 1): [error(0, 1, "s", side="source")]})
    read = read_score_matrices(mine, gold, added=[silent])
    assert (list(read.metrics), list(read.marked.judges), read.marked.left_out) == (
        ["mine", "silent"], ["mine"], ("silent",),
    )  # fmt: skip


def test_without_errors_of_people_nothing_is_compared(tmp_path):
    table = tmp_path / "gold.csv"
    table.write_text("system,doc,segment,mqm\nA,zoo,1,-1\nA,zoo,2,0\nB,zoo,1,-5\nB,zoo,2,0\n", "utf-8")
    mine = judge(tmp_path, "mine", {("A", 1): [error(4, 9, "Kazze")]})
    assert read_score_matrices(mine, table).marked is None


@pytest.mark.parametrize("errors", ["none", [1], [{"start": 0}], [{"severity": "awful"}], 3])
def test_errors_in_another_form_are_refused_with_their_line(tmp_path, gold, errors):
    mine = judge(tmp_path, "mine", {}, A2={"errors": errors})
    with pytest.raises(DataError, match=r"mine\.jsonl, row 2 \(line 2\), column 'errors': errors are a list"):
        read_score_matrices(mine, gold)


def test_systems_that_a_file_lacks_are_left_out_and_gaps_stay_gaps(tmp_path, gold):
    mine = judge(tmp_path, "mine", {("A", 1): [error(4, 9, "Kazze")]})
    lines = (judge(tmp_path, "other", {})).read_text("utf-8").splitlines()
    extra = json.dumps(json.loads(lines[0]) | {"system": "C"})
    (tmp_path / "other.jsonl").write_text("\n".join([*lines[::-1][:3], extra]), "utf-8")  # without A on segment 1
    read = read_score_matrices(mine, gold, added=[tmp_path / "other.jsonl"])
    assert "systems left out, without scores in each file: C" in read.notes
    assert read.systems == ("A", "B")
    assert read.metrics["mine"].tolist() == [[-1, 0], [0, 0]]
    assert str(read.metrics["other"].tolist()) == "[[nan, 0.0], [0.0, 0.0]]"


def test_two_rows_of_an_output_in_an_added_file_are_refused(tmp_path, gold):
    mine, other = judge(tmp_path, "mine", {}), judge(tmp_path, "other", {})
    other.write_text(other.read_text("utf-8") + other.read_text("utf-8").splitlines()[0] + "\n", "utf-8")
    with pytest.raises(DataError, match=r"other\.jsonl, row 5 .*has scores of segment 'zoo:1' already"):
        read_score_matrices(mine, gold, added=[other])


def test_files_that_label_segments_differently_are_each_laid_beside_gold(tmp_path, gold):
    (tmp_path / "x.seg.score").write_text("A 1\nA 2\nB 3\nB 4\n", "utf-8")
    numbers = "".join(f"{s},{n},{v}\n" for s, n, v in (("B", 2, 8), ("B", 1, 7), ("A", 2, 6), ("A", 1, 5), ("A", 3, 0)))
    (tmp_path / "y.csv").write_text("system,segment,y\n" + numbers, "utf-8")
    mine = judge(tmp_path, "mine", {("B", 1): [error(0, 3, "Der")]})
    read = read_score_matrices(mine, gold, added=[tmp_path / "x.seg.score", tmp_path / "y.csv"])
    assert read.segments == ("zoo:1", "zoo:2")
    assert {name: values.tolist() for name, values in read.metrics.items()} == {
        "mine": [[0, 0], [-1, 0]], "x": [[1, 2], [3, 4]], "y": [[5, 6], [7, 8]],
    }  # fmt: skip
    assert [note for note in read.notes if "matched" in note] == [
        "segments were matched by document and segment", "segments were matched by position",
        "segments were matched by segment",
    ]  # fmt: skip
    assert "segments left out, without ratings: 1" in read.notes


def test_each_file_must_have_segments_in_common_with_gold(tmp_path, gold):
    (tmp_path / "y.csv").write_text("system,segment,y\nA,x1,0\nB,x1,1\n", "utf-8")
    with pytest.raises(DataError, match=r"y\.csv and .*gold\.tsv have no segment in common"):
        read_score_matrices(judge(tmp_path, "mine", {}), gold, added=[tmp_path / "y.csv"])
