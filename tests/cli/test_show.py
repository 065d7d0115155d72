"""`metricsmith show`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from metricsmith.cli.show import read_stored
from metricsmith.records import Status
from metricsmith.report.scored import document
from metricsmith.spreadsheets import write_table
from metricsmith.store import Store
from scored_tables import scored
from stores import edit, entry, fill, judgement


@pytest.fixture
def scores(tmp_path):
    lines = [row.line(details=True) for row in scored().rows]
    with (tmp_path / "scores.csv").open("w", newline="") as stream:
        write_table(stream, list(lines[0]), lambda: [list(line.values()) for line in lines])
    return tmp_path / "scores.csv"


def test_a_table_of_scores_becomes_a_page_beside_it(run, scores):
    code, out, err = run("show", scores)
    page, other = Path(f"{scores}.html"), scores.with_suffix(".html")
    other.write_text("the page that score wrote", "utf-8")
    said = "2 rows scored, mean prediction 2.62; 1 row without a value; components missing in 2 rows."
    assert (code, out.splitlines(), err.splitlines()[-1]) == (0, [said], f"page: {page}")
    assert "note: " not in err
    assert '"transport","HTTP 500"' in page.read_text("utf-8")
    assert "the road is shut" in page.read_text("utf-8")
    assert other.read_text("utf-8") == "the page that score wrote"
    code, out, _ = run("show", scores, "--out", scores.parent / "other.html")
    assert (code, (scores.parent / "other.html").exists()) == (0, True)


def test_too_many_rows_are_said_in_the_terminal(run, scores, monkeypatch):
    monkeypatch.setattr(document, "MOST_ROWS", 2)
    _, _, err = run("show", scores)
    assert "note: The table has 2 of 3 rows, the worst" in err


def test_a_store_becomes_a_page_with_its_metrics_beside_each_other(run, tmp_path):
    path = fill(tmp_path / "judgements.db")
    with Store(path) as store:
        store.exchange([entry("r0000", 1, judgement(status=Status.TRANSPORT, run=1))])
    code, out, _ = run("show", path)
    assert (code, out.splitlines()[0]) == (0, "20 rows by 3 metrics; values missing in 20 rows.")
    table = read_stored(path)
    assert [part.name for part in table.rows[0].parts] == ["clarity", "clarity (run 2)", "brevity"]
    assert [part.judgement.status for part in table.rows[0].parts] == [Status.OK, Status.TRANSPORT, Status.OK]
    assert table.rows[1].parts[1].judgement.error == "the store has no judgement of this row"
    assert (tmp_path / "judgements.db.html").read_text("utf-8").count("as it should be") >= 40


def test_two_states_of_one_metric_are_told_apart(tmp_path):
    path = fill(tmp_path / "s.db", rows=1, metrics=("clarity",))
    with Store(path) as store:
        number = store.metric("another", "clarity")
        store.exchange([entry("r0000", number, judgement(2.0))])
    names = [part.name for part in read_stored(path).rows[0].parts]
    assert names == ["clarity [fingerpr]", "clarity [another]"]


def test_a_store_of_one_metric_has_its_judgements_as_values(tmp_path):
    table = read_stored(fill(tmp_path / "s.db", rows=3, metrics=("clarity",)))
    assert (table.target, [row.prediction.raw for row in table.rows]) == ("clarity", [1.0, 2.0, 3.0])
    assert [row.parts for row in table.rows] == [()] * 3


def test_damaged_judgements_are_left_out_and_counted(run, tmp_path):
    path = fill(tmp_path / "s.db", rows=3, metrics=("clarity",))
    edit(path, "UPDATE judgements SET raw = 4.5 WHERE row = 2")
    _, out, err = run("show", path)
    assert out.startswith("2 rows scored")
    assert "1 damaged judgements are left out" in err


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("no.csv", None, "cannot be read"),
        ("texts.csv", "a,b\n1,2\n", "is no table of scores: it has no column 'id'"),
        ("list.jsonl", json.dumps([1]), "a list, seen"),
    ],
)
def test_other_files_are_refused(run, tmp_path, name, content, told):
    if content is not None:
        (tmp_path / name).write_text(content, "utf-8")
    code, _, err = run("show", tmp_path / name)
    assert code == 2
    assert told in err
    assert not list(tmp_path.glob("*.html"))


def test_the_file_to_show_is_not_written_over(run, scores):
    code, _, err = run("show", scores, "--out", scores)
    assert code == 2
    assert "is the file to show, which would be lost" in err


def test_an_empty_store_is_refused(run, tmp_path):
    with Store(tmp_path / "s.db"):
        pass
    code, _, err = run("show", tmp_path / "s.db")
    assert code == 2
    assert "holds no judgement" in err


def page_data(path):
    text = path.read_text("utf-8").split('id="scored-data">')[1]
    return json.loads(text[: text.index("</script>")])


def test_score_writes_a_page_with_the_rows_texts(run, own, induced, tmp_path):
    induced("--n", 2)
    metric, page = tmp_path / "out" / "metric.json", tmp_path / "scores.html"
    code, _, err = run("score", metric, own, "--out", tmp_path / "scores.csv", "--html", page)
    assert (code, f"page: {page}" in err) == (0, True)
    found = page_data(page)
    lines = list(csv.DictReader((tmp_path / "scores.csv").read_text("utf-8").splitlines()))
    assert [row[2] for row in found["rows"]] == pytest.approx([float(line["prediction"]) for line in lines])
    with own.open(encoding="utf-8", newline="") as stream:
        assert [row[1][1] for row in found["rows"]] == [line["rewrite"] for line in csv.DictReader(stream)]
    assert found["cells"] == ["input", "output", "references"]
    assert found["adds"] is True
    code, _, err = run("score", metric, own, "--html", own)
    assert code == 2
    assert f"--html {own} is the table, which would be lost" in err


def test_bank_metrics_by_name_have_a_page_with_a_distribution_each(run, own, tmp_path):
    names = ("--output", "rewrite", "--input", "notice", "--reference", "gold", "--keep", "kind")
    code, _, err = run("score", "bleu,chrf", own, *names, "--out", tmp_path / "s.csv", "--html", tmp_path / "s.html")
    assert code == 0, err
    found = page_data(tmp_path / "s.html")
    assert (found["value"], found["word"], len(found["rows"])) == (None, "metric", 60)
    assert found["cells"] == ["input", "output", "references", "kind"]


@pytest.mark.parametrize("details", [("--details",), ()])
def test_a_run_that_goes_on_shows_the_rows_of_before_too(run, own, induced, tmp_path, monkeypatch, details):
    from metricsmith.cli import score

    induced("--n", 2)
    metric, out, page = tmp_path / "out" / "metric.json", tmp_path / "s.csv", tmp_path / "s.html"
    command = ("score", metric, own, *details, "--out", out, "--html", page)
    run(*command)
    whole, lines = page_data(page), out.read_bytes()
    out.unlink()
    page.unlink()
    monkeypatch.setattr(score, "ROWS_AT_A_TIME", 20)
    sure, told = score.ScoresFile.sure, []

    def stop(file, tally):
        sure(file, tally)
        told.append(tally)
        if len(told) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(score.ScoresFile, "sure", stop)
        assert run(*command)[0] == 130
    assert not page.exists()
    code, _, err = run(*command)
    assert code == 0
    assert out.read_bytes() == lines
    assert ("rows were read back from" in err) is not bool(details)  # these have numbers alone, and it is told
    if details:
        assert page_data(page)["rows"] == whole["rows"]
    assert len(page_data(page)["rows"]) == len(whole["rows"])
