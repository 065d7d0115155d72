"""A judge's own file becomes metrics: its score, and by wish its runs and what combines them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from metricsmith.datasets.labelled_scores import BY_DOCUMENT
from metricsmith.datasets.metric_files import read_metrics
from metricsmith.errors import DataError, OptionError

PAPER = (-50, -11, -6, -6, -11, -6, -6, -55, -6, -11)  # GEMBA-MQM V2, Table 1


def line(system="alpha", segment=1, runs=PAPER, raw=-8.4961, **more):
    return {
        "id": f"{system}|zoo:{segment}", "system": system, "doc": "zoo", "segment": segment, "raw": raw, "score": 0.5,
        "half_width": 1.0, "kept": 9, "delta": 49, "runs": list(runs), "metric": "mine", **more,
    }  # fmt: skip


def write(folder, *lines):
    path = folder / "segments.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")
    return path


def judged(path, **options):
    (table,) = read_metrics([path], **options)
    return table


def test_the_judges_own_score_is_one_metric_under_its_name(tmp_path):
    path = write(tmp_path, line(), line(segment=2, raw=None), line("beta"))
    table = judged(path)
    assert list(table.columns) == ["mine"]
    np.testing.assert_array_equal(table.columns["mine"], [-8.4961, math.nan, -8.4961])
    assert table.systems == ("alpha", "alpha", "beta")
    assert table.segments[BY_DOCUMENT] == ("zoo:1", "zoo:2", "zoo:1")


def test_runs_and_their_aggregates_are_the_rows_of_the_papers_table(tmp_path):
    """Values: GEMBA-MQM V2, Table 1, exact (the paper cuts -12.5556 off to -12.55)."""
    table = judged(write(tmp_path, line()), each_run=True)
    assert list(table.columns) == [
        "mine", *(f"mine-run-{place}" for place in range(1, 11)), "mine-rrwa", "mine-mean", "mine-max", "mine-geo",
    ]  # fmt: skip
    assert [table.columns[f"mine-run-{place}"][0] for place in range(1, 11)] == list(PAPER)
    found = [round(float(table.columns[f"mine-{label}"][0]), 4) for label in ("rrwa", "mean", "max", "geo")]
    assert found == [-8.4961, -12.5556, -6, -9.2942]


def test_a_failed_run_is_a_gap_and_a_segment_with_too_few_has_no_aggregate(tmp_path):
    path = write(
        tmp_path,
        line(runs=[-1, None, -4], raw=-2.0),
        line(segment=2, runs=[None, None, -4], raw=None),
        line(segment=3, runs=[-1], raw=-1),  # the judge was told to stop early
    )
    columns = judged(path, each_run=True).columns
    np.testing.assert_array_equal(columns["mine-run-1"], [-1, math.nan, -1])
    np.testing.assert_array_equal(columns["mine-run-2"], [math.nan] * 3)
    np.testing.assert_array_equal(columns["mine-run-3"], [-4, -4, math.nan])
    np.testing.assert_array_equal(columns["mine-rrwa"], [-2.0, math.nan, -1])
    np.testing.assert_array_equal(columns["mine-mean"], [-2.5, math.nan, -1])


def test_a_judge_with_one_run_has_its_score_alone_and_a_note(tmp_path):
    table = judged(write(tmp_path, line(runs=[-6]), line(segment=2, runs=[None])), each_run=True)
    assert list(table.columns) == ["mine"]
    assert table.notes == ("mine has one run, so there is nothing to tell apart",)


def test_a_file_without_a_name_gives_the_judge_its_own(tmp_path):
    nameless = {name: cell for name, cell in line().items() if name != "metric"}
    assert "segments-run-1" in judged(write(tmp_path, nameless), each_run=True).columns


def test_numbers_that_a_judge_writes_beside_its_score_are_no_metrics(tmp_path):
    assert list(judged(write(tmp_path, line())).columns) == ["mine"]


@pytest.mark.parametrize("cell", ["-5", ["low"], [-1, [2]], [float("inf")], -5])
def test_runs_that_are_no_numbers_are_refused_with_their_line(tmp_path, cell):
    with pytest.raises(DataError, match=r"segments\.jsonl, row 2 \(line 2\), column 'runs': .* null where one failed"):
        judged(write(tmp_path, line(), line(segment=2, runs=[]) | {"runs": cell}), each_run=True)


def test_runs_of_another_table_are_refused_with_what_to_give(tmp_path):
    other = {"system": "alpha", "segment": 1, "comet": 0.5}
    for more in ({}, {"raw": -1}):
        with pytest.raises(OptionError, match=r"segments\.jsonl is none: give segments\.jsonl of `metricsmith mqm`"):
            judged(write(tmp_path, other | more), each_run=True)


def test_other_numbers_in_a_judges_file_are_metrics_beside_its_own(tmp_path):
    assert list(judged(write(tmp_path, {"comet": 0.5} | line())).columns) == ["mine", "comet"]
    other = {"system": "alpha", "segment": 1, "comet": 0.5, "raw": -1}  # no judge's file: names are its columns
    assert list(judged(write(tmp_path, other)).columns) == ["raw", "comet"]


def test_a_judge_without_a_single_number_is_read(tmp_path):
    table = judged(write(tmp_path, line(raw=None, runs=[None, None])), each_run=True)
    assert np.isnan(table.columns["mine"]).all()
