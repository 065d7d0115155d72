"""Data cannot steer the terminal; files and pipes get it as it is."""

from __future__ import annotations

import csv
import io
import logging
import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tqdm import tqdm

import metricsmith.cli
from metricsmith.cli.terminal import Terminal, guard_terminal

# Clears the screen, sets the title, rings, goes back to the start of the line, turns the text around (C0, C1, bidi).
EVIL = "a\x1b[2J\x1b]0;owned\x07b\x9b31mc\rd\u202ee\u2066f\x7f"
SHOWN = r"a\x1b[2J\x1b]0;owned\x07b\x9b31mc\rd\u202ee\u2066f\x7f"
STEERING = {*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)} - {9, 10}


def on_terminal(*arguments, folder):
    """Exit code and everything that the command wrote, standard output and error on one pseudo terminal."""
    mine, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, 200))
    env = {**os.environ, "TERM": "xterm"}
    command = [sys.executable, "-m", "metricsmith", *map(str, arguments)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=env)
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(mine, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        seen += part
    os.close(mine)
    return process.wait(), seen.decode("utf-8").replace("\r\n", "\n")  # the terminal's own line ends


def piped(*arguments, folder):
    command = [sys.executable, "-m", "metricsmith", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, cwd=folder, check=False)


@pytest.fixture
def files(tmp_path, own, run, monkeypatch):
    """A metric of one column and a table whose ids steer terminals."""
    monkeypatch.chdir(tmp_path)
    basics = ["--target", "rating", "--bank", "none", "--metric-columns", "good", "--output", "rewrite"]
    assert run("induce", own, *basics, "--out", tmp_path / "out")[0] == 0
    with (tmp_path / "evil.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["case", "rewrite", "good"])
        writer.writerows([[f"{EVIL}{number}", f"Text {number}.", number % 3] for number in range(3)])
    return tmp_path


def steering(text):
    return sorted({character for character in text if ord(character) in STEERING})


def test_cells_and_errors_are_shown_escaped_on_a_terminal_and_piped_as_they_are(files):
    score = ["score", "out/metric.json", "evil.csv", "--output", "rewrite", "--id", "case"]
    code, shown = on_terminal(*score, folder=files)
    assert code == 0, shown
    assert steering(shown) == []
    assert shown.count(SHOWN) == 3
    assert piped(*score, folder=files).stdout.decode("utf-8").count(EVIL) == 3
    explain = ["explain", "out/metric.json", "evil.csv", "--output", "rewrite", "--id", "case", "--row", "none"]
    code, shown = on_terminal(*explain, folder=files)
    assert (code, steering(shown)) == (2, [])
    assert "owned" in shown
    assert Path(files / "evil.csv").read_text("utf-8").count("\x1b[2J") == 3


def test_what_the_command_line_itself_refuses_is_shown_escaped(tmp_path):
    for arguments in (["bank", f"no{EVIL}"], ["store", "info", f"no{EVIL}"]):
        code, shown = on_terminal(*arguments, folder=tmp_path)
        assert (code, steering(shown)) == (2, []), shown


class Screen(io.StringIO):
    def isatty(self):
        return True


@given(st.text())
def test_nothing_but_steering_characters_is_changed(text):
    screen = Screen()
    Terminal(screen, progress=False).write(text)
    kept = "".join(c for c in text.replace("\r\n", "\n") if ord(c) not in STEERING)
    shown = screen.getvalue().replace("\r\n", "\n")
    assert steering(shown) == []
    if not steering(text.replace("\r\n", "\n")):
        assert shown == kept
    assert len(shown) >= len(kept)


def test_a_progress_bar_is_drawn_and_its_description_shown_escaped():
    screen = Screen()
    stream = Terminal(screen, progress=True)
    options = {"file": stream, "mininterval": 0}
    with tqdm(total=2, desc=f"judging {EVIL}", leave=False, **options) as bar, tqdm(total=1, **options) as inner:
        bar.update()
        inner.update()
    drawn = screen.getvalue()
    assert f"\rjudging {SHOWN}:  50%" in drawn
    assert steering(drawn.replace("\x1b[A", "").replace("\r", "")) == []


def test_notes_of_the_library_are_shown_once_and_its_warnings_not(capsys):
    for _ in range(2):
        guard_terminal()
    logging.getLogger("metricsmith.notes").warning("%d are not used", 3)
    logging.getLogger("metricsmith.scoring").warning("row 1 failed")
    assert capsys.readouterr().err == "note: 3 are not used\n"


def test_nothing_in_the_command_line_writes_past_it():
    """`typer.echo` takes what looks like colour out of a pipe, and `print` can be told to write anywhere."""
    past = re.compile(r"typer\.(?:echo|secho)\(|click\.echo|\bprint\(|std(?:out|err)\.write")
    for path in Path(metricsmith.cli.__file__).parent.glob("*.py"):
        assert not past.findall(path.read_text("utf-8")), path


def test_bytes_find_no_way_around():
    stream = Terminal(Screen(), progress=False)
    assert not hasattr(stream, "buffer")
    with pytest.raises(TypeError):
        stream.write(b"\x1b")
