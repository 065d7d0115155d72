"""Score files of mt-metrics-eval: what is written is what the tool reads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metricsmith.datasets.score_files import by_system, read_scores, write_scores
from metricsmith.errors import DataError, OptionError

numbers = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.just(math.nan))


def tool_reads(path) -> dict[str, list[float | None]]:
    """The form of the tool's README: per line, blanks between, a system and a score or None."""
    scores: dict[str, list[float | None]] = {}
    for line in path.read_text("utf-8").split("\n")[:-1]:
        system, score = line.split()
        scores.setdefault(system, []).append(None if score == "None" else float(score))
    return scores


def written(path, text: str | bytes):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_a_round_trip_keeps_every_bit(tmp_path, pairs):
    path = tmp_path / "m-src.seg.score"
    scores = {"A": [one for one, _ in pairs], "sys.B-1": [other for _, other in pairs]}
    write_scores(path, scores, overwrite=True)
    back = read_scores(path)
    assert list(back) == ["A", "sys.B-1"]
    for system, values in scores.items():
        np.testing.assert_array_equal(back[system], values)
    assert tool_reads(path) == {
        system: [None if math.isnan(value) else value for value in values] for system, values in scores.items()
    }


def test_the_layout_to_the_letter(tmp_path):
    path = tmp_path / "new" / "m-src.seg.score"
    write_scores(path, {"A": [-1, math.nan], "B": np.array([0.1, 2e-9])})
    assert path.read_bytes() == b"A\t-1.0\nA\tNone\nB\t0.1\nB\t2e-09\n"


def test_any_white_space_separates_and_systems_may_alternate(tmp_path):
    path = written(tmp_path / "a", "A 1\r\nB\t\t2\nA   None\nB 4\n")
    scores = read_scores(path)
    np.testing.assert_array_equal(scores["A"], [1, math.nan])
    np.testing.assert_array_equal(scores["B"], [2, 4])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A 1\nA\n", "line 2: 1 fields, seen 'A'"),
        ("news A 1\n", "line 1: 3 fields"),
        ("A 1\n\nA 2\n", "line 2: 0 fields"),
        ("A 1\nA x\n", "line 2: the score 'x' is no finite number"),
        ("A nan\n", "'nan' is no finite number"),
        ("A inf\n", "'inf' is no finite number"),
        ("A 1\nA 2\nB 1\n", "system 'B' has 1 scores, 2 are needed"),
        ("", "is empty"),
        (b"A 1\nB\xfc 2\n", "not UTF-8 text: byte 0xfc"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_clear_error(tmp_path, text, words):
    path = written(tmp_path / "a.seg.score", text)
    with pytest.raises(DataError) as caught:
        read_scores(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)


def test_counts_and_systems_can_be_prescribed(tmp_path):
    path = written(tmp_path / "a.seg.score", "Tohoku 1\nTohoku 2\n")
    assert read_scores(path, length=2, systems=["Tohoku", "OPPO"])["Tohoku"].tolist() == [1, 2]
    with pytest.raises(DataError, match="has 2 scores, 3 are needed"):
        read_scores(path, length=3)
    with pytest.raises(DataError, match=r"no system 'Tohoku' \(did you mean 'Tohoku-AIP'"):
        read_scores(path, systems=["OPPO", "Tohoku-AIP"])
    with pytest.raises(DataError, match=r"no such file.*did you mean 'a.seg.score'"):
        read_scores(tmp_path / "b.seg.score")


def test_nothing_is_written_that_the_tool_would_misread(tmp_path):
    path = tmp_path / "a.seg.score"
    for scores, error, words in [
        ({"a b": [1]}, OptionError, "'a b' cannot stand in a score file"),
        ({"": [1]}, OptionError, "cannot stand"),
        ({"A": [1], "B": [1, 2]}, DataError, "system 'B' has 2 scores, 1 are needed"),
        ({"A": [math.inf]}, DataError, "infinite"),
        ({"A": [[1, 2]]}, DataError, "has 2 scores, 1 are needed"),
        ({"A": [[1]]}, DataError, "shape"),
        ({}, DataError, "no score to write"),
        ({"A": []}, DataError, "no score to write"),
    ]:
        with pytest.raises(error, match=words):
            write_scores(path, scores)
    assert not path.exists()


def test_a_file_that_exists_is_not_replaced_unless_asked(tmp_path):
    path = written(tmp_path / "BLEU-refA.seg.score", "A 1\n")
    with pytest.raises(DataError, match="exists; it may hold somebody's scores"):
        write_scores(path, {"A": [2]})
    assert path.read_text() == "A 1\n"
    write_scores(path, {"A": [2]}, overwrite=True)
    assert path.read_text() == "A\t2.0\n"


def test_numbers_of_rows_become_arrays_by_system():
    rows = [
        {"system": "A", "group": "d:2"}, {"system": "A", "group": "d:1"}, {"system": "B", "group": "d:1"},
        {"system": "A", "group": "d:1"}, {"system": "C", "group": "d:1"}, {"system": "A", "group": "d:2"},
    ]  # fmt: skip
    found = by_system(rows, [-1, -5, 0, -2, None, math.nan], ["d:1", "d:2", "d:3"])
    assert list(found) == ["A", "B", "C"]
    np.testing.assert_array_equal(found["A"], [-3.5, -1, math.nan])
    np.testing.assert_array_equal(found["B"], [0, math.nan, math.nan])
    assert np.isnan(found["C"]).all()
    with pytest.raises(DataError, match="5 values for 6 rows"):
        by_system(rows, [0.0] * 5, ["d:1", "d:2"])
    with pytest.raises(DataError, match="the segment 'd:2' is not in the test set"):
        by_system(rows, [0.0] * 6, ["d:1"])
