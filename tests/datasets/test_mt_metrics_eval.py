"""Test sets in the layout of mt-metrics-eval."""

from __future__ import annotations

import math

import numpy as np
import pytest

from eval_sets import OUTPUTS, SOURCES, write_eval_set
from metricsmith.datasets.mqm_tsv import parse_mqm_tsv
from metricsmith.datasets.mt_metrics_eval import read_eval_set
from metricsmith.datasets.score_files import by_system, write_scores
from metricsmith.datasets.wmt_mqm import read_wmt_mqm
from metricsmith.errors import DataError, OptionError
from mqm_files import OLD, tsv


@pytest.fixture
def data(tmp_path):
    return read_eval_set(write_eval_set(tmp_path), "en-de")


def test_the_texts_are_read_as_the_tool_reads_them(data):
    assert len(data) == 4
    assert data.sources == SOURCES
    assert list(data.outputs) == ["A", "B", "refA"]
    assert data.outputs["A"] == ("Eins.", "Zwo.", "", "Vier.")
    assert list(data.references) == ["refA", "refB"]
    assert data.documents[2:] == (("talk", "d2"), ("talk", "d2"))
    assert data.segments == ("d1:1", "d1:2", "d2:1", "d2:2")


def test_a_line_separator_inside_a_text_does_not_end_the_line(tmp_path):
    folder = write_eval_set(tmp_path)
    (folder / "sources" / "en-de.txt").write_text("One\u2028One.\nTwo.\r\nThree.\nFour.", encoding="utf-8")
    assert read_eval_set(folder, "en-de").sources == ("One\u2028One.", "Two.", "Three.", "Four.")
    (folder / "sources" / "en-de.txt").write_bytes(b"One.\rTwo.\rThree.\rFour.\r")
    assert read_eval_set(folder, "en-de").sources == SOURCES


def test_rows_are_systems_by_segments(data):
    rows = data.rows(["refA"])
    assert [(row.system, row.segment) for row in rows] == [
        (name, str(place)) for name in "AB" for place in (1, 2, 3, 4)
    ]
    assert rows[6].toDict() == {
        "id": "B|3", "group": "d2:1", "system": "B", "doc": "d2", "domain": "talk", "segment": "3",
        "language_pair": "en-de", "input": "Three.", "output": "Drei", "references": ["3"],
    }  # fmt: skip
    assert sorted(rows[6].inputs().keys()) == ["input", "output", "references"]
    assert [row.references for row in data.rows(["refB", "refA"])[:1]] == [["I", "1"]]
    assert len(data.rows()) == 12
    assert data.rows()[0].get("references") is None


def test_segments_are_called_as_in_mqm_files(data):
    lines = [("A", "d2", "1", "3", "r", "Three.", "<v>Drie</v>", "Fluency/Spelling", "Minor")]
    (rating,), _ = parse_mqm_tsv("a.tsv", tsv(OLD, lines))
    assert rating.item == data.rows()[2].group == "d2:1"


def test_raters_scores_become_people_s_score_file(data, tmp_path):
    place = ("A", "d2", "1", "3")
    path = tmp_path / "a.tsv"
    lines = [
        (*place, "r1", "Three.", "<v>Drie</v>", "Fluency/Spelling", "Minor"),
        (*place, "r2", "Three.", "<v>Drie</v>", "Fluency/Spelling", "Major"),
        ("B", "d1", "1", "1", "r1", "One.", "Eins", "No-error", "No-error"),
    ]
    path.write_text(tsv(OLD, lines))
    table = read_wmt_mqm(path)
    write_scores(data.human_file("mqm"), by_system(table.rows, table.ratings, data.segments))
    found = data.read_human("mqm")
    np.testing.assert_array_equal(found["A"], [math.nan, math.nan, -3, math.nan])  # the mean of -1 and -5
    np.testing.assert_array_equal(found["B"], [0, math.nan, math.nan, math.nan])


def test_our_scores_go_out_and_come_back(data):
    rows = data.rows(["refA"])
    scores = by_system(rows, [len(row.output) / 7 for row in rows], data.segments)
    by_segment, by_all = data.write_metric("our-metric", scores, ["refA"])
    assert by_segment == data.folder / "metric-scores" / "en-de" / "our-metric-refA.seg.score"
    assert by_all.name == "our-metric-refA.sys.score"
    back = data.read_metric("our-metric", ["refA"])
    assert back.keys() == {"A", "B"}
    for system, values in scores.items():
        np.testing.assert_array_equal(back[system], values)
    (mean,) = data.read_metric("our-metric", ["refA"], level="sys")["B"]
    assert mean == math.fsum(len(text) / 7 for text in OUTPUTS["B"]) / 4


def test_names_of_files(data):
    assert data.metric_file("m").name == "m-src.seg.score"
    assert data.metric_file("m", ["refA", "refB"], "doc").name == "m-refA.refB.doc.score"
    assert data.human_file("mqm.v1", "sys") == data.folder / "human-scores" / "en-de.mqm.v1.sys.score"


def test_people_s_scores_may_have_gaps(data):
    path = data.human_file("mqm")
    write_scores(path, {"A": [-1, math.nan, 0, -5], "refA": [math.nan] * 4})
    found = data.read_human("mqm")
    np.testing.assert_array_equal(found["A"], [-1, math.nan, 0, -5])
    assert found.keys() == {"A", "refA"}
    write_scores(data.human_file("mqm", "doc"), {"A": [-0.5, -2.5]})
    assert data.read_human("mqm", "doc")["A"].tolist() == [-0.5, -2.5]


FULL = {"A": [1.0, 2, 3, 4], "B": [1.0, 2, 3, 4], "refA": [0.0] * 4}


@pytest.mark.parametrize(
    ("scores", "references", "words"),
    [
        ({"A": FULL["A"]}, ["refA"], "1 of 3 systems have no scores, the first is 'B'"),
        ({"A": FULL["A"], "B": FULL["B"]}, [], "the first is 'refA'"),
        (FULL | {"C": [0.0] * 4}, [], "no system 'C'; the test set has A, B, refA"),
        (FULL | {"refa": [0.0] * 4}, [], "no system 'refa' (did you mean 'refA'?)"),
        (FULL | {"A": [1.0]}, [], "system 'A' has 1 scores, 4 are needed"),
        (
            FULL | {"B": [1, math.nan, 2, math.nan]},
            [],
            "'B': 2 of 4 segments have no finite score, the first is segment 2",
        ),
        (FULL | {"B": [1, 2, 3, math.inf]}, [], "the first is segment 4"),
    ],
)
def test_a_metric_must_be_complete(data, scores, references, words):
    with pytest.raises(DataError) as caught:
        data.write_metric("m", scores, references)
    assert words in str(caught.value)
    assert not (data.folder / "metric-scores").exists()


def test_either_file_in_the_way_stops_both(data):
    write_scores(data.metric_file("m", level="sys"), {"A": [1]})
    with pytest.raises(DataError, match=r"m-src\.sys\.score exists"):
        data.write_metric("m", FULL)
    assert not data.metric_file("m").exists()
    data.write_metric("m", FULL, overwrite=True)
    assert data.read_metric("m", level="sys")["A"].tolist() == [2.5]


def test_a_metric_that_is_read_is_checked_too(data):
    write_scores(data.metric_file("m"), {"A": FULL["A"]})
    with pytest.raises(DataError, match="the first is 'B'"):
        data.read_metric("m")
    write_scores(data.metric_file("n"), {"A": [1.0] * 3})
    with pytest.raises(DataError, match="has 3 scores, 4 are needed"):
        data.read_metric("n")
    write_scores(data.human_file("mqm"), {"D": [1.0] * 4})
    with pytest.raises(DataError, match="no system 'D'"):
        data.read_human("mqm")


def test_wrong_options_are_refused(data):
    with pytest.raises(
        OptionError, match=r"no reference 'refC' \(did you mean 'ref[AB]'\?\); the test set has refA, refB"
    ):
        data.rows(["refC"])
    with pytest.raises(OptionError, match="no reference 'refD'"):
        data.metric_file("m", ["refD"])
    with pytest.raises(OptionError, match="'my metric' cannot stand"):
        data.metric_file("my metric")
    with pytest.raises(OptionError, match=r"the name '\.\./m' cannot"):
        data.human_file("../m")
    with pytest.raises(OptionError, match=r"the level 'segm' is unknown \(did you mean 'seg'"):
        data.metric_file("m", level="segm")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("sources/en-de.txt", None, "no such file"),
        ("documents/en-de.docs", "news d1\n" * 3, "has 3 lines, the source has 4"),
        ("documents/en-de.docs", "d1\n" * 4, "line 1: 'd1'; a domain and a document are needed"),
        ("documents/en-de.docs", "n d1\nn d2\nn d1\nn d1\n", "line 3: 'd1' goes on after another document"),
        ("system-outputs/en-de/B.txt", "Eins\nZwei\nDrei\nVier\nFünf\n", "has 5 lines, the source has 4"),
        ("references/en-de.refB.txt", "I\n", "has 1 lines, the source has 4"),
        ("references/en-de.ref-C.txt", "1\n2\n3\n4\n", "a reference cannot be called 'ref-C'"),
        ("references/en-de.all.txt", "1\n2\n3\n4\n", "a reference cannot be called 'all'"),
        ("sources/en-de.txt", b"One\nTw\xf6\nThree\nFour\n", "not UTF-8 text: byte 0xf6"),
    ],
)
def test_a_folder_that_does_not_fit_is_one_clear_error(tmp_path, name, text, words):
    folder = write_eval_set(tmp_path)
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(DataError) as caught:
        read_eval_set(folder, "en-de")
    assert words in str(caught.value)
    assert str(folder / name) in str(caught.value)


def test_a_pair_without_systems_says_so(tmp_path):
    folder = write_eval_set(tmp_path)
    for path in (folder / "system-outputs" / "en-de").iterdir():
        path.unlink()
    with pytest.raises(DataError, match="one file by system is needed"):
        read_eval_set(folder, "en-de")
