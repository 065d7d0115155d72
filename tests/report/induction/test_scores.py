"""``report.json`` and ``scores.csv`` as other programs read them."""

from __future__ import annotations

import csv
import io
import json
import math

import pandas as pd

from metricsmith.report.induction.record import RowRecord
from metricsmith.report.induction.rows import render_scores
from metricsmith.report.render import render_json


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_the_json_is_the_record_and_holds_no_nan(make_record):
    record = make_record()
    text = render_json(record)
    assert json.loads(text) == record.as_dict()
    assert "NaN" not in text
    assert "Infinity" not in text


def test_the_json_keeps_other_scripts_readable(make_record):
    assert "東京 שלום" in render_json(make_record(title="東京 שלום"))


def test_the_scores_have_one_line_per_row_and_one_column_per_component(make_record):
    record = make_record()
    lines = read_csv(render_scores(record))
    assert len(lines) == len(record.data)
    names = [component.name for component in record.components]
    assert list(lines[0]) == ["id", "group", "split", "rating", "prediction", *names]
    assert float(lines[7]["prediction"]) == record.data[7].prediction
    assert float(lines[7]["fkgl"]) == record.data[7].values["fkgl"]
    assert lines[-1]["rating"] == ""
    assert lines[-1]["split"] == "unrated"


def test_a_missing_value_is_an_empty_cell_never_zero(make_record):
    data = (RowRecord("a", "g", "test", 3.0, math.nan, values={"fkgl": None, "output_words": 0.0}),)
    line = read_csv(render_scores(make_record(data=data)))[0]
    assert (line["rating"], line["prediction"], line["fkgl"], line["rouge1_recall"]) == ("3", "", "", "")
    assert line["output_words"] == "0"


def test_awkward_texts_survive(make_record):
    name = 'a "quoted", name\nwith a line break, 東京'
    data = (RowRecord(name, "g,1", "test", 0.1 + 0.2, -1e-9),)
    line = read_csv(render_scores(make_record(data=data)))[0]
    assert (line["id"], line["group"], float(line["rating"])) == (name, "g,1", 0.1 + 0.2)
    assert float(line["prediction"]) == -1e-9


def test_a_component_named_like_a_leading_column_stays_apart(make_record):
    from dataclasses import replace

    part = replace(make_record().components[0], name="rating")
    data = (RowRecord("a", "g", "test", 3.0, 2.0, values={"rating": 0.5}),)
    line = read_csv(render_scores(make_record(components=(part,), data=data)))[0]
    assert (line["rating"], line["rating (component)"]) == ("3", "0.5")


def test_no_rows_leave_the_header(make_record):
    assert render_scores(make_record(data=(), components=())) == "id,group,split,rating,prediction\n"


def test_the_frame_is_what_the_file_holds(make_record):
    record = make_record()
    frame, text = record.to_pandas(), pd.read_csv(io.StringIO(render_scores(record)))
    pd.testing.assert_frame_equal(frame, text, check_dtype=False)
