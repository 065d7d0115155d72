"""Ctrl-C and SIGTERM end a command with what was done in the store, and the same command goes on from there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from loopback import scripted, serve
from metricsmith.cli import app
from metricsmith.cli.app import main
from metricsmith.errors import StoreError
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.state import write_state
from metricsmith.store import info
from planted import planted_rows

SOURCE = Path(app.__file__).parents[2]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.jsonl"
    fields = ("output", "input", "references", "group", "rating")
    path.write_text("\n".join(json.dumps({key: row[key] for key in fields}) for row in planted_rows(20, 2)), "utf-8")
    return path


@pytest.fixture
def commands(table, tmp_path):
    """The arguments of each command that asks a model, with a store."""
    judge = CriterionJudge(criterion="Plain words", meaning="Every word is short.", task="Write notices.")
    write_state(judge.to_state(), tmp_path / "judge.json")
    columns = ("--output", "output", "--input", "input", "--reference", "references")
    rated = (*columns, "--target", "rating", "--group", "group", "--bank", "generated")
    common = ("--store", tmp_path / "s.db", "--concurrency", 4, "--out", tmp_path / "out")
    return {
        "induce": ("induce", table, *rated, *common),
        "compare": ("compare", table, *rated, "--task", "Rewrite.", "--methods", "guideline_judge", *common),
        "probe": ("probe", tmp_path / "judge.json", table, "--output", "output", "--input", "input", *common),
    }


def after(judgements, store, then):
    """Answers, and a call as soon as the store has so many judgements: what a tuner asks before is in no store."""
    waiting = [then]

    def answer(prompt):
        if waiting and kept(store) >= judgements:
            waiting.pop()()
        return scripted(prompt)

    return answer


def kept(store):
    """The number of judgements with a number in the store, if it has its tables by now."""
    with suppress(StoreError):
        return sum(metric.counts["ok"] for metric in info(store).metrics)
    return 0


def model(server):
    return ("--lm", "openai/m", "--api-base", f"http://127.0.0.1:{server.port}/v1")


@pytest.mark.parametrize("command", ["induce", "compare", "probe"])
def test_ctrl_c_ends_with_130_and_what_was_judged_is_in_the_store(run, commands, tmp_path, monkeypatch, command):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with serve(after(16, tmp_path / "s.db", lambda: os.kill(os.getpid(), signal.SIGINT)), delay=0.01) as server:
        code, out, err = run(*commands[command], *model(server))
    assert code == 130
    assert re.search(r"^error: interrupted with \d+ of (at most )?\d+ model judgements finished; ", err, re.MULTILINE)
    assert f"what was judged stands in {tmp_path / 's.db'}, from which the same command goes on" in err
    assert "Traceback" not in out + err
    assert list((tmp_path / "out").glob("*.html")) == []
    assert 16 <= kept(tmp_path / "s.db") < 100


def test_a_probe_goes_on_from_where_it_was_interrupted(run, commands, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    options = (*commands["probe"], "--n", 5)
    with serve(after(16, tmp_path / "s.db", lambda: os.kill(os.getpid(), signal.SIGINT)), delay=0.01) as server:
        assert run(*options, *model(server))[0] == 130
    done = kept(tmp_path / "s.db")
    with serve(scripted) as rest:
        assert run(*options, *model(rest))[0] == 0
    (tmp_path / "s.db").unlink()
    with serve(scripted) as whole:
        assert run(*options, *model(whole))[0] == 0
    assert done >= 16
    assert rest.requests == whole.requests - done


def test_sigterm_does_the_same_and_has_a_code_of_its_own(commands, tmp_path):
    process = None
    settings = {"OPENAI_API_KEY": "none", "PYTHONPATH": str(SOURCE), "DSPY_CACHEDIR": str(tmp_path / "cache")}
    with serve(after(16, tmp_path / "s.db", lambda: process.send_signal(signal.SIGTERM)), delay=0.05) as server:
        command = [sys.executable, "-m", "metricsmith", *map(str, (*commands["probe"], *model(server)))]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=os.environ | settings)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 143 == 128 + signal.SIGTERM
    assert re.search(r"^error: interrupted with \d+ of \d+ model judgements finished; ", err, re.MULTILINE)
    assert f"what was judged stands in {tmp_path / 's.db'}" in err
    assert "Traceback" not in out + err
    assert 16 <= kept(tmp_path / "s.db") <= server.requests < 100


def test_the_callers_own_signal_handler_is_put_back(run):
    before = signal.getsignal(signal.SIGTERM)
    assert run("bank", "list")[0] == 0
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_command_runs_in_a_thread_as_well(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["metricsmith", "--version"])
    codes = []

    def call():
        try:
            main()
        except SystemExit as end:
            codes.append(end.code)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert codes == [0]
    assert "metricsmith" in capsys.readouterr().out


# A progress bar, and another library that says something while it is shown.
NOISY = """
import logging, sys, warnings
from metricsmith.cli import app
from tqdm import tqdm

def noisy():
    with tqdm(total=3, desc="scoring", mininterval=0) as bar:
        bar.update()
        library = logging.getLogger("imported late")
        library.addHandler(logging.StreamHandler())
        library.warning("a line of a handler of its own")
        bar.update()
        logging.getLogger("without a handler").warning("a line of no handler")
        bar.update()
        warnings.warn("a warning")

app.command_line = lambda asked: lambda *_, **__: noisy()
app.main()
"""


def test_warnings_and_log_lines_of_others_stand_on_lines_of_their_own():
    done = subprocess.run(
        [sys.executable, "-c", NOISY], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(SOURCE)}
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split("\r")[-1] for line in done.stderr.split("\n")]  # what the terminal shows of each line
    assert "a line of a handler of its own" in lines
    assert "a line of no handler" in lines
    assert any(re.fullmatch(r"<string>:\d+: UserWarning: a warning", line) for line in lines)
    assert lines[-2].startswith("scoring: 100%")
