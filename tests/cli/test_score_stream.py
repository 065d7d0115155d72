"""`metricsmith score` row by row: bytes that do not depend on pieces, runs that go on where they were stopped."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loopback import scripted, serve
from metricsmith.cli import app, score, scores_file
from metricsmith.cli.scores_file import ScoresFile
from metricsmith.datasets.formats import parse_file
from metricsmith.errors import OptionError
from metricsmith.spreadsheets import MARK
from saved import criterion

SOURCE = Path(app.__file__).parents[2]
NAMES = "cider,bleu,output_words"


def table(path, rows, first=None):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "question", "answer", "reference", "note"])
        for i in range(rows):
            texts = f"Why {i % 9},\nplease?", f"Word {i % 31} and text {i % 7}", f"Word {i % 5} and a text {i % 3}"
            writer.writerow([f"r{i}", *texts, first if first and not i else f"n{i % 4}"])
    return path


@pytest.fixture
def data(tmp_path):
    return table(tmp_path / "new.csv", 300)


@pytest.fixture
def judge(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    criterion().save(tmp_path / "judge.json")
    return tmp_path / "judge.json"


def lines_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def model(server):
    return ("--lm", "openai/m", "--api-base", f"http://127.0.0.1:{server.port}/v1")


def pieces_of(monkeypatch, size):
    monkeypatch.setattr(score, "ROWS_AT_A_TIME", size)


def stopping(monkeypatch, rows, problem=KeyboardInterrupt):
    """Let the file of scores end with an error in the middle of the line after so many rows."""
    write, left = ScoresFile.write, [rows]

    def cut(self, text):
        if not left[0]:
            write(self, text[: len(text) // 2])
            raise problem
        left[0] -= 1
        write(self, text)

    monkeypatch.setattr(scores_file.ScoresFile, "write", cut)


def test_names_of_metrics_give_a_column_each_and_cells_that_are_kept(run, data, tmp_path):
    code, out, err = run("score", NAMES, data, "--out", tmp_path / "s.csv", "--keep", "note", "--keep", "question")
    assert (code, out) == (0, "")
    assert f"300 rows scored, 0 without a prediction: {tmp_path / 's.csv'}" in err
    lines = lines_of(tmp_path / "s.csv")
    assert list(lines[0]) == ["id", "note", "question", "missing", "error", "cider", "bleu", "output_words"]
    assert [line["id"] for line in lines] == [f"r{i}" for i in range(300)]
    assert lines[3]["question"] == "Why 3,\nplease?"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "s.csv"]


def test_one_name_is_the_prediction_and_a_family_stands_for_its_outputs(run, data, tmp_path):
    _, out, _ = run("score", "BLEU", data)
    assert out.splitlines()[0] == "id,prediction,score,status,missing,error"
    _, out, _ = run("score", "rouge", data, "--json")
    assert [name for name in json.loads(out.splitlines()[0]) if name.startswith("rouge1")] == [
        "rouge1_p", "rouge1_r", "rouge1_f",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("belu", "no metric 'belu' in the bank (did you mean 'bleu'?); `metricsmith bank list`"),
        ("none.json", "none.json"), (",", "METRIC ',' is empty"),
    ],
)  # fmt: skip
def test_a_name_that_is_none_is_refused_with_the_nearest(run, data, name, said):
    code, _, err = run("score", name, data)
    assert code == 2
    assert said in err


def test_a_file_goes_before_a_name(run, data, judge, tmp_path, monkeypatch):
    judge.rename(tmp_path / "bleu")
    monkeypatch.chdir(tmp_path)
    code, _, err = run("score", "bleu", data)
    assert code == 2
    assert "needs a language model" in err or "need a language model" in err


def test_explain_takes_one_metric_of_any_kind(run, data):
    code, out, _ = run("explain", "output_words", data, "--row", "r3")
    assert (code, out) == (0, "row r3: 5 by output_words\n")
    code, _, err = run("explain", "rouge", data, "--row", "r3")
    assert code == 2
    assert "one metric is needed here, and rouge names 12" in err


def test_a_metric_of_the_bank_is_probed_by_its_name(run, data, tmp_path):
    code, out, _ = run("probe", "bleu", table(data, 40), "--n", 12, "--out", tmp_path / "probe")
    assert code == 0
    assert "probe of bleu" in out


@pytest.mark.parametrize("options", [[], ["--json"], ["--details"]])
def test_the_bytes_do_not_depend_on_the_pieces(run, data, tmp_path, monkeypatch, options):
    found = []
    for size in (1, 7, 1_000):
        pieces_of(monkeypatch, size)
        assert run("score", NAMES, data, "--out", tmp_path / "s.csv", "--keep", "note", *options)[0] == 0
        found.append((tmp_path / "s.csv").read_bytes())
        _, out, _ = run("score", NAMES, data, "--keep", "note", *options)
        assert out.encode() == found[-1]
    assert len(set(found)) == 1


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("rows", [0, 5, 100, 299])
def test_a_run_that_is_interrupted_in_the_middle_of_a_line_goes_on_without_a_gap(
    run, data, tmp_path, monkeypatch, size, rows
):
    pieces_of(monkeypatch, size)
    assert run("score", NAMES, data, "--out", tmp_path / "whole.csv")[0] == 0
    with monkeypatch.context() as patch:
        stopping(patch, rows)
        code, _, err = run("score", NAMES, data, "--out", tmp_path / "s.csv")
    assert code == 130
    sure = rows // size * size
    assert not (tmp_path / "s.csv").exists()
    assert (f"{sure} rows stand in {tmp_path / 's.csv.part'}, from which the same command goes on" in err) == bool(sure)
    code, _, err = run("score", NAMES, data, "--out", tmp_path / "s.csv")
    assert code == 0
    assert "300 rows scored, 0 without a prediction" in err
    assert (tmp_path / "s.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "s.csv", "whole.csv"]


def test_what_another_run_began_is_refused_with_the_difference(run, data, tmp_path, monkeypatch):
    pieces_of(monkeypatch, 10)
    with monkeypatch.context() as patch:
        stopping(patch, 50)
        run("score", NAMES, data, "--out", tmp_path / "s.csv")
    before = (tmp_path / "s.csv.part").read_bytes()
    for arguments, what in (
        (["bleu", data], "another metric"), ([NAMES, data, "--keep", "note"], "another option"),
        ([NAMES, table(tmp_path / "other.csv", 301)], "another table"),
    ):  # fmt: skip
        code, _, err = run("score", *arguments, "--out", tmp_path / "s.csv")
        assert code == 2
        assert f"{tmp_path / 's.csv.part'} is an unfinished file of {what}: delete it to begin anew" in err
        assert (tmp_path / "s.csv.part").read_bytes() == before
    with monkeypatch.context() as patch:
        patch.setattr(score, "__version__", "9.0")
        assert "an unfinished file of another version" in run("score", NAMES, data, "--out", tmp_path / "s.csv")[2]
    (tmp_path / "s.csv.part").write_bytes(before[:100])
    code, _, err = run("score", NAMES, data, "--out", tmp_path / "s.csv")
    assert code == 2
    assert "shorter than it was" in err


def test_a_file_of_somebody_else_is_not_written_over(run, data, tmp_path):
    (tmp_path / "s.csv.part").write_text("mine", "utf-8")
    code, _, err = run("score", NAMES, data, "--out", tmp_path / "s.csv")
    assert code == 2
    assert "is in the way" in err
    assert (tmp_path / "s.csv.part").read_text("utf-8") == "mine"


@pytest.mark.parametrize("name", ["s.csv", "s.csv.part", "s.csv.part.json"])
def test_a_page_is_not_written_over_the_scores_or_what_a_run_goes_on_from(run, data, tmp_path, name):
    code, _, err = run("score", "bleu", data, "--out", tmp_path / "s.csv", "--html", tmp_path / name)
    assert code == 2
    assert "which would be lost" in err
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_two_runs_do_not_write_one_file(tmp_path):
    with ScoresFile(tmp_path / "s.csv", {"metric": "m"}) as first:
        first.write("begun")
        first.sure({"rows": 1})
        place = (tmp_path / "s.csv.part.json").read_bytes()
        with pytest.raises(OptionError, match="is being written by another run"):
            ScoresFile(tmp_path / "s.csv", {"metric": "m"})
        assert (tmp_path / "s.csv.part.json").read_bytes() == place
        assert (tmp_path / "s.csv.part").read_bytes() == b"begun"


def test_a_budget_leaves_the_table_with_statuses_and_beside_it_the_rows_to_go_on_from(
    run, data, judge, tmp_path, monkeypatch
):
    pieces_of(monkeypatch, 10)
    with serve(scripted) as server:
        options = (*model(server), "--out", tmp_path / "s.csv", "--concurrency", 1)
        code, _, err = run("score", judge, table(data, 50), *options, "--max-requests", 24)
        assert server.requests == 24
        assert code == 0
        assert "26 judgements were left undone; run the command again with a larger budget" in err
        assert f"24 rows stand in {tmp_path / 's.csv.part'}, from which the same command goes on" in err
        lines = lines_of(tmp_path / "s.csv")
        assert [line["status"] for line in lines] == ["ok"] * 24 + ["budget"] * 26
        code, _, err = run("score", judge, data, *options)
        assert server.requests == 50
    assert code == 0
    assert "estimated: 26 requests" in err
    lines = lines_of(tmp_path / "s.csv")
    assert [(line["id"], line["status"]) for line in lines] == [(f"r{i}", "ok") for i in range(50)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["judge.json", "new.csv", "s.csv"]


def test_failures_are_counted_over_all_pieces(run, data, judge, tmp_path, monkeypatch):
    pieces_of(monkeypatch, 10)
    with serve(scripted, malformed=1.0) as server:
        code, _, err = run("score", judge, table(data, 30), *model(server), "--out", tmp_path / "s.csv")
    assert code == 3
    assert "30 of 30 model judgements failed (30 unparsable)" in err
    assert len((tmp_path / "s.csv").read_text("utf-8").splitlines()) == 31


def test_cells_that_a_spreadsheet_would_run_are_marked_in_every_piece(run, tmp_path, monkeypatch):
    data, found = table(tmp_path / "new.csv", 30, first="=cmd"), []
    for size in (1, 1_000):
        pieces_of(monkeypatch, size)
        _, _, err = run("score", "bleu", data, "--out", tmp_path / "s.csv", "--keep", "note")
        found.append((tmp_path / "s.csv").read_bytes())
        assert err.count("apostrophe") == 1
    assert found[0] == found[1]
    assert found[0].splitlines()[0].decode().endswith(MARK)
    assert parse_file(tmp_path / "s.csv", found[0]).columns["note"][:2] == ["=cmd", "n1"]
    run("score", "bleu", data, "--out", tmp_path / "s.csv")
    assert MARK.encode() not in (tmp_path / "s.csv").read_bytes()


def started(*arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-m", "metricsmith", *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, **options)


def test_a_run_that_is_killed_at_any_place_goes_on_without_a_gap_or_a_double(run, tmp_path):
    data, out, chance = table(tmp_path / "new.csv", 8_000), tmp_path / "s.csv", random.Random(18)
    assert run("score", NAMES, data, "--out", tmp_path / "whole.csv")[0] == 0
    seen = []
    for _ in range(4):
        process = started("score", NAMES, data, "--out", out)
        place, rows = tmp_path / "s.csv.part.json", seen[-1] if seen else 0
        while process.poll() is None:
            if place.exists() and json.loads(place.read_text("utf-8"))["told"].get("rows", 0) > rows:
                break
            time.sleep(0.002)
        time.sleep(chance.random() * 0.05)
        process.kill()
        process.wait()
        if out.exists():
            break
        seen.append(json.loads(place.read_text("utf-8"))["told"]["rows"])
    assert seen
    assert run("score", NAMES, data, "--out", out)[0] == 0
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_reader_that_closes_the_pipe_ends_the_command_quietly(tmp_path):
    process = started("score", "output_words", table(tmp_path / "new.csv", 20_000), stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"id,prediction,score,status,missing,error\n"
    process.stdout.close()
    assert process.wait(60) == 0


def test_ctrl_c_of_a_process_ends_with_130_and_what_is_left_goes_on(run, tmp_path):
    data, place = table(tmp_path / "new.csv", 20_000), tmp_path / "s.csv.part.json"
    process = started("score", NAMES, data, "--out", tmp_path / "s.csv")
    while not (place.exists() and json.loads(place.read_text("utf-8"))["told"]):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert run("score", NAMES, data, "--out", tmp_path / "s.csv")[0] == 0
    assert [line["id"] for line in lines_of(tmp_path / "s.csv")] == [f"r{i}" for i in range(20_000)]


@pytest.mark.slow
def test_memory_grows_by_less_than_a_hundred_bytes_a_row(tmp_path):
    peaks = {}
    for rows in (2_000, 100_000):
        data = table(tmp_path / "new.csv", rows)
        process = started("score", "bleu,rouge_l_f,chrf", data, "--out", tmp_path / "s.csv")
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        peaks[rows] = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    assert peaks[100_000] - peaks[2_000] < 98_000 * 100 + 20e6  # 8 bytes for an id, and what the allocator keeps
