"""Numbers kept in a file: to the last bit, whatever ended the run that wrote them."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation.evaluation import evaluate_task
from metricsmith.meta_evaluation.measures import MEASURES
from metricsmith.studies.kept_file import KeptFile

ODD = np.array([0.1 + 0.2, -0.0, np.nan, np.inf, 5e-324, 1 / 3])


def keys_in(path):
    return [json.loads(line)["key"] for line in path.read_text().splitlines()[1:]]


def filled(path, **numbers):
    with KeptFile(path) as kept:
        for key, value in numbers.items():
            kept[key] = np.array(value, dtype=float)
    return path


def test_numbers_come_back_to_the_last_bit(tmp_path):
    path = tmp_path / "folder" / "kept.jsonl"
    with KeptFile(path) as kept:
        kept["odd"] = ODD
        assert kept["odd"].tobytes() == ODD.tobytes()
        # A line is on the disk as soon as it is made.
        assert json.loads(path.read_text().splitlines()[1])["key"] == "odd"
    with KeptFile(path) as kept:
        assert kept["odd"].tobytes() == ODD.tobytes()
        assert ("odd" in kept, "even" in kept) == (True, False)
        with pytest.raises(KeyError):
            kept["even"]
    assert keys_in(path) == ["odd"]


@pytest.mark.parametrize("lost", [1, 5, 60])
def test_a_torn_last_line_is_dropped_and_the_next_begins_where_it_did(tmp_path, lost):
    path = filled(tmp_path / "kept.jsonl", first=[1, 2], second=[3])
    content = path.read_bytes()
    path.write_bytes(content[:-lost])
    with KeptFile(path) as kept:
        assert keys_in(path) == ["first"]
        assert "second" not in kept
        kept["second"] = np.array([3.0])
    assert path.read_bytes() == content


def test_a_torn_header_is_written_anew(tmp_path):
    path = filled(tmp_path / "kept.jsonl", one=[1])
    whole = path.read_bytes()
    path.write_bytes(whole[:20])
    assert filled(path, one=[1]).read_bytes() == whole


@pytest.mark.parametrize("content", ["hello", "system score\n", '{"key": "a"}\n', '{"format": "another"}\n{}\n'])
def test_a_foreign_file_is_refused_and_stays_as_it_is(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_text(content)
    for also in ([], [path]):
        with pytest.raises(DataError, match=r"notes\.txt:1: holds no kept numbers"):
            KeptFile(tmp_path / "new.jsonl" if also else path, also)
    assert path.read_text() == content


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line.replace(b'"float64": "AA', b'"float64": "BA'),  # another number
        lambda line: line.replace(b"crc32", b"crc33"),
        lambda line: b"{}\n",
        lambda line: b"\xff" + line,
        lambda line: b"[1]\n",
        lambda line: b"[" * 200_000 + b"\n",
        lambda line: line[:20] + b"\n",
    ],
)
def test_a_damaged_line_is_named(tmp_path, damage):
    path = filled(tmp_path / "kept.jsonl", first=[1], second=[2])
    header, first, second = path.read_bytes().splitlines(keepends=True)
    assert damage(first) != first
    path.write_bytes(header + damage(first) + second)
    with pytest.raises(DataError, match=r"kept\.jsonl:2: is damaged .*delete this line"):
        KeptFile(path)


def test_numbers_of_other_files_are_found_and_copied_when_they_are_used(tmp_path):
    other = filled(tmp_path / "other.jsonl", used=[1], unused=[2])
    before = other.read_bytes()
    with KeptFile(tmp_path / "own.jsonl", also=[other]) as kept:
        assert ("used" in kept, "unused" in kept, "neither" in kept) == (True, True, False)
        assert kept["used"].tolist() == kept["used"].tolist() == [1]
    assert other.read_bytes() == before
    assert keys_in(tmp_path / "own.jsonl") == ["used"]


def test_threads_write_whole_lines(tmp_path):
    with KeptFile(tmp_path / "kept.jsonl") as kept, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: kept.__setitem__(str(number), np.full(500, float(number))), range(200)))
    with KeptFile(tmp_path / "kept.jsonl") as kept:
        assert sorted(map(int, keys_in(tmp_path / "kept.jsonl"))) == list(range(200))
        assert all((kept[str(number)] == number).all() for number in range(200))


def test_a_second_writer_is_refused(tmp_path):
    with KeptFile(tmp_path / "kept.jsonl"), pytest.raises(OptionError, match="written by another run"):
        KeptFile(tmp_path / "kept.jsonl")
    filled(tmp_path / "kept.jsonl", one=[1])


@pytest.mark.parametrize(
    "foreign",
    [
        lambda numbers: numbers[:0], lambda numbers: numbers[:1], lambda numbers: np.resize(numbers, 10_000),
        lambda numbers: numbers * math.nan if numbers.size == 9 else numbers[:1], lambda numbers: numbers + 1e308,
        lambda numbers: numbers + math.inf, lambda numbers: numbers + 0.5 if numbers.size == 9 else numbers,
    ],
    ids=["none", "one", "many", "not a number", "huge", "infinite", "half a count"],
)  # fmt: skip
def test_numbers_that_no_run_has_written_are_refused(foreign):
    kept = {}
    gold = np.arange(24.0).reshape(3, 8) % 7
    metrics = {"one": gold + np.arange(8) % 3, "other": -gold}
    settings = {"resamples": 20, "kept": kept}
    evaluate_task("task", MEASURES["pearson"], metrics, gold, **settings)
    assert {numbers.size for numbers in kept.values()} == {9, 7, 21}
    for key, numbers in list(kept.items()):
        kept[key] = foreign(numbers)
    with pytest.raises(DataError, match=r"kept numbers are not what was computed .*delete their file"):
        evaluate_task("task", MEASURES["pearson"], metrics, gold, **settings)
