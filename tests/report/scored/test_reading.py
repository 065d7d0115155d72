"""Tables of scores read back."""

from __future__ import annotations

import csv
import io
import json

import pytest

from metricsmith.datasets.formats import parse_file
from metricsmith.errors import DataError
from metricsmith.records import Judgement, Status
from metricsmith.report.scored.reading import rows_of_scores
from metricsmith.report.scored.record import ScoredRow, ScoredRows
from metricsmith.spreadsheets import write_table
from scored_tables import beside, lost, part, row, scored

AWKWARD = scored(
    row("1", part("score", 0.5, 4.0, "=kind"), lost("text", error="a; b: c"), lost("id", error="d"), status="-x",
        text="a"),
    row("2", part("score", 0.1, 4.0), part("text", 0.25, 0.1), part("id", 0.25, 1e-9, "so"), status="", text="b\nc"),
    row("3", lost("score"), lost("text"), lost("id"), status="0", text="7"),
)  # fmt: skip


def written(table: ScoredRows, path, details: bool):
    lines = [row.line(details=details) for row in table.rows]
    if path.suffix == ".csv":
        text = io.StringIO()
        write_table(text, list(lines[0]), lambda: [list(line.values()) for line in lines])
        path.write_text(text.getvalue(), "utf-8")
    else:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def read_back(path) -> ScoredRows:
    return rows_of_scores(parse_file(path, path.read_bytes()).columns, path.name)


@pytest.mark.parametrize("name", ["s.csv", "s.jsonl"])
@pytest.mark.parametrize("details", [True, False])
@pytest.mark.parametrize("table", [AWKWARD, scored(), beside(("a", 0.5, 0.25), ("b", None, 0.5)), scored(row("x"))])
def test_a_table_of_scores_comes_back_as_it_was_written(tmp_path, name, details, table):
    found = read_back(written(table, tmp_path / name, details))
    assert [row.line(details=details) for row in found.rows] == [row.line(details=details) for row in table.rows]
    for one, two in zip(found.rows, table.rows, strict=True):
        assert [part.name for part in one.parts] == [part.name for part in two.parts]
        assert one.cells == two.cells


def test_each_missing_component_gets_its_own_error(tmp_path):
    first, _, third = read_back(written(AWKWARD, tmp_path / "s.csv", True)).rows
    assert [part.judgement.error for part in first.missing] == ["a; b: c", "d"]
    assert {part.judgement.status for part in first.missing} == {lost("a").judgement.status} != {Status.SKIPPED}
    plain, _, _ = read_back(written(AWKWARD, tmp_path / "plain.csv", False)).rows
    assert {part.judgement.status for part in plain.missing} == {Status.SKIPPED}
    assert third.prediction.error.startswith("too little to go by")


def test_notes_say_what_such_a_table_lacks(tmp_path):
    plain = read_back(written(scored(), tmp_path / "s.csv", False))
    assert any("`metricsmith score --details`" in note for note in plain.notes)
    detailed = read_back(written(AWKWARD, tmp_path / "d.csv", True))
    assert [note for note in detailed.notes if "--details" in note] == []
    assert not any("shown as skipped" in note for note in detailed.notes)
    assert any("shown as skipped" in note for note in read_back(written(AWKWARD, tmp_path / "e.csv", False)).notes)
    assert read_back(written(scored(row("x", part("a", 0.1, 1.0))), tmp_path / "w.csv", True)).notes == ()


def test_names_that_were_marked_for_another_column_lose_the_mark(tmp_path):
    found = read_back(written(AWKWARD, tmp_path / "s.csv", False)).rows[0]
    assert list(found.cells) == ["status", "text"]
    assert [part.name for part in found.parts] == ["score", "text", "id"]
    table = scored(row("1", part("a (component)", 0.5, 1.0), **{"b (data)": "x"}))
    plain = read_back(written(table, tmp_path / "t.csv", False)).rows[0]
    assert (list(plain.cells), plain.parts[0].name) == (["b (data)"], "a (component)")


def test_the_line_of_a_corrected_mean_is_no_row(tmp_path):
    path = written(scored(row("x")), tmp_path / "s.jsonl", False)
    path.write_text(path.read_text("utf-8") + '{"corrected_mean": {"mean": 3}}\n', "utf-8")
    (found,) = read_back(path).rows
    assert (found.id, found.parts) == ("x", ())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda line: line.pop("missing"), "it has no column 'missing', seen id, output"),
        (lambda line: line.update(tone="high"), "row 1: tone is 'high', not a number"),
        (lambda line: line.update(prediction=""), "row 1: status 'ok' with the prediction ''"),
        (lambda line: line.update(status="done"), "row 1: status 'done'"),
        (lambda line: line.update(prediction="nan"), "row 1: prediction is 'nan', not a number"),
    ],
)
def test_what_is_no_table_of_scores_is_refused_with_its_place(change, told):
    line = {name: "" if cell is None else str(cell) for name, cell in scored().rows[0].line().items()}
    change(line)
    with pytest.raises(DataError) as refusal:
        rows_of_scores({name: [cell] for name, cell in line.items()}, "s.csv")
    assert told in str(refusal.value)
    assert "s.csv" in str(refusal.value)
    assert ":" in str(refusal.value).split(told)[1] or ";" in str(refusal.value).split(told)[1]


def test_a_table_of_scores_gives_a_frame():
    frame = scored().to_pandas()
    assert list(frame["id"]) == ["r1", "r2", "r10"]
    assert frame["tone.contribution"].tolist()[:2] == [0.5, -1.0]
    assert list(csv.reader([",".join(frame.columns[:3])])) == [["id", "output", "prediction"]]


def test_details_of_which_columns_were_taken_out_are_unknown(tmp_path):
    path = written(AWKWARD, tmp_path / "s.jsonl", True)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    kept = [{name: cell for name, cell in line.items() if name[:9] != "score (co" or "." not in name} for line in lines]
    path.write_text("".join(json.dumps(line) + "\n" for line in kept), "utf-8")
    found = read_back(path).rows[0].parts
    assert [(part.name, part.judgement.raw) for part in found] == [("score", 4.0), ("text", None), ("id", None)]
    assert [str(part.contribution) for part in found[:1]] == ["nan"]


def test_a_value_without_components_keeps_its_reason(tmp_path):
    table = scored(ScoredRow("a", {}, Judgement("judge", 4.0, 0.75, "because"), 0.0, ()))
    (found,) = read_back(written(table, tmp_path / "s.csv", True)).rows
    assert (found.prediction.raw, found.prediction.feedback, found.intercept) == (4.0, "because", 0.0)
