"""Plain `metricsmith induce FILE --target rating` on the cells and files that people bring."""

from __future__ import annotations

import csv
import json
import re

import pytest

from brought_cells import CELLS, ERRORS, own_rows, write_cells
from metricsmith import load, read_table


@pytest.fixture(scope="module")
def told(exit_code, tmp_path_factory):
    """Induce from a table once: its rows, the folder of the report, what was printed and the notes."""
    done = {}

    def call(name, capsys):
        if name not in done:
            suffix, make, options, _, _ = CELLS[name]
            folder, rows = tmp_path_factory.mktemp(name), make(own_rows())
            path = write_cells(folder / f"{name}{suffix}", rows)
            code = exit_code("induce", path, "--target", "rating", *options, "--out", folder / "out")
            printed = capsys.readouterr()
            assert code == 0, printed.err
            done[name] = rows, folder / "out", printed.out, printed.err
        return done[name]

    return call


@pytest.mark.parametrize("name", CELLS)
def test_every_table_ends_in_a_metric_with_the_right_scale_and_a_line_on_what_was_read(name, told, capsys):
    rows, folder, out, err = told(name, capsys)
    _, _, _, scale, said = CELLS[name]
    assert said in err
    report = json.loads((folder / "report.json").read_text("utf-8"))
    found = report["task"]["scale"]
    assert f"{found['low']:g} to {found['high']:g}" == scale
    assert report["rows"]["rated"] == (32 if name == "gaps" else len(rows))
    assert out.startswith("Ranks outputs like the raters do more often than chance: tau-b ")
    # Ratings follow how much of the source is kept, so that a right reading finds it.
    assert report["test"]["kendall_tau_b"] > (0.3 if name in ("outlier", "words") else 0.5)


def test_no_input_holds_its_output_and_the_metric_reads_such_a_table_again(told, run, capsys, tmp_path):
    rows, folder, _, _ = told("messages", capsys)
    path = write_cells(tmp_path / "new.jsonl", rows)
    code, _, err = run("score", folder / "metric.json", path, "--out", tmp_path / "scores.csv")
    assert code == 0
    assert "the closing assistant message is the output" in err
    learned = list(csv.DictReader((folder / "scores.csv").read_text("utf-8").splitlines()))
    again = list(csv.DictReader((tmp_path / "scores.csv").read_text("utf-8").splitlines()))
    assert [line["id"] for line in again] == [line["id"] for line in learned]
    page = (folder / "report.html").read_text("utf-8")
    assert "user: Hello." in page


def test_a_metric_that_looks_at_outputs_alone_keeps_what_parts_them_from_the_input(run, tmp_path):
    path = write_cells(tmp_path / "chats.jsonl", CELLS["messages"][1](own_rows()))
    assert run("induce", path, "--target", "rating", "--n", 1, "--out", tmp_path / "out")[0] == 0
    reading = load(tmp_path / "out" / "metric.json").reading
    assert reading == {"metric_columns": [], "output": "messages", "inputs": ["messages"]}


def test_a_length_without_word_breaks_is_one_in_characters(told, capsys):
    _, _, out, _ = told("japanese", capsys)
    line = next(line for line in out.splitlines() if line.strip().startswith("output length in characters"))
    assert re.search(r"\.\d", line), line
    assert "output length in words" not in out


def test_ids_are_written_as_they_stand_in_the_file(told, capsys):
    rows, folder, _, _ = told("duplicate_id", capsys)
    written = list(csv.DictReader((folder / "scores.csv").read_text("utf-8").splitlines()))
    assert [line["id"] for line in written] == [str(row["id"]) for row in rows]
    assert written[3]["group"] != written[20]["group"]


def test_words_are_probed_in_the_order_that_the_metric_learned(told, run, capsys, tmp_path):
    rows, folder, _, _ = told("words", capsys)
    path = write_cells(tmp_path / "words.csv", rows)
    code, _, err = run("probe", folder / "metric.json", path, "--n", 8, "--out", tmp_path / "probed")
    assert code == 0, err
    assert "the words of 'rating' count as 1 poor, 2 okay, 3 good" in err


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_read_is_one_error_that_names_the_row(name, run, tmp_path):
    make, said = ERRORS[name]
    path = write_cells(tmp_path / "odd.csv", make(own_rows()))
    code, out, err = run("induce", path, "--target", "rating", "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_an_unknown_word_names_its_row_and_the_nearest_level(run, tmp_path):
    rows = CELLS["words"][1](own_rows())
    rows[5]["rating"] = "godo"
    path = write_cells(tmp_path / "words.csv", rows)
    code, _, err = run("induce", path, "--target", "rating", "--levels", "poor,okay,good", "--out", tmp_path / "out")
    assert code == 2
    assert "row 6 (line 7), column 'rating': 'godo' is not a rating: it is none of the levels" in err
    assert "did you mean 'good'?" in err


def test_an_id_column_that_was_named_is_found_again_where_new_rows_have_it(run, tmp_path):
    rows = [{"Nr": f"K-{row['id']}", **{key: row[key] for key in row if key != "id"}} for row in own_rows()]
    path = write_cells(tmp_path / "rated.csv", rows)
    assert run("induce", path, "--target", "rating", "--id", "Nr", "--n", 1, "--out", tmp_path / "out")[0] == 0
    metric = tmp_path / "out" / "metric.json"
    assert load(metric).reading["usual"] == {"id": "Nr"}

    def ids(rows, *options):
        scores = tmp_path / "scores.csv"
        code, _, err = run("score", metric, write_cells(tmp_path / "new.csv", rows), "--out", scores, *options)
        assert code == 0, err
        return [line["id"] for line in csv.DictReader(scores.read_text("utf-8").splitlines())]

    assert ids(rows) == [row["Nr"] for row in rows]
    again = read_table(path, target="rating", **load(metric).reading)
    assert again.ids == ids(rows)
    assert ids([{key: row[key] for key in row if key != "Nr"} for row in rows])[:2] == ["1", "2"]
    assert ids([row | {"other": row["Nr"].lower()} for row in rows], "--id", "other")[:2] == ["k-0", "k-1"]
