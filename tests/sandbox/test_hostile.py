"""Programs that attack the host: each ends in time, learns nothing, changes nothing and takes no other row with it."""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hostile_programs import PROGRAMS

pytest.importorskip("pydantic_monty")

SUPPORT = Path(__file__).resolve().parents[1] / "support"
CANARY = "a secret of the host 4711"
# Programs that end well: nothing they do is worth an error.
HARMLESS = {
    "sleep": None, "nested groups": False, "print": None, "keys that change the list": list(range(98, -1, -1)),
    "half a character": "\ufffd" * 3,
}  # fmt: skip
# Programs that spoil their own good rows, before or while the function is defined.
SPOILT = {
    "socket", "web", "subprocess", "importlib", "module builtins", "class with a metaclass", "class with __del__",
    "rebound json", "shadowed names", "threads", "signals", "ctypes", "loop at import", "huge message at import",
    "deep source", "long chain", "brackets", "host modules", "installing",
}  # fmt: skip


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("host")
    (folder / "secret.txt").write_text(CANARY)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        done = subprocess.run(
            [sys.executable, str(SUPPORT / "hostile_runs.py"), str(folder), str(listener.getsockname()[1])],
            env={**os.environ, "SANDBOX_CANARY": CANARY}, capture_output=True, text=True, check=True, timeout=400,
        )  # fmt: skip
        with pytest.raises(BlockingIOError):
            listener.accept()
    return {**json.loads(done.stdout), "stdout": done.stdout, "stderr": done.stderr, "folder": folder}


def test_there_are_40_or_more():
    assert len(PROGRAMS) >= 40


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_hostile_program_ends_in_time_and_alone(told, name):
    run = told["programs"][name]
    assert run["seconds"] < told["limit"] + 0.5
    assert run["together"] == run["others"]
    if name in SPOILT:
        assert run["others"] in ([None, None], [0, 0])
    else:
        assert run["others"] == [2, 3]
    if name in HARMLESS:
        assert (run["value"], run["error"]) == (HARMLESS[name], "")
    else:
        assert run["value"] is None
        assert 0 < len(run["error"]) <= 300
        assert run["error"].isprintable()


def test_no_program_reached_the_host(told):
    assert CANARY not in told["stdout"] + told["stderr"]
    assert "on the host" not in told["stdout"] + told["stderr"]
    assert [path.name for path in told["folder"].iterdir()] == ["secret.txt"]
    assert (told["folder"] / "secret.txt").read_text() == CANARY


def test_the_parent_grew_by_less_than_20_megabytes(told):
    if math.isnan(told["grown"]):
        pytest.skip("the peak of a process is read from /proc")
    assert told["grown"] < 20


@pytest.mark.parametrize(
    "name",
    ["read a file", "environment", "socket", "subprocess", "__import__", "builtins", "open by eval", "walk by getattr",
     "classes of a tuple", "wide letters", "sleep", "threads", "signals", "brackets", "deep source"],
)  # fmt: skip
def test_the_check_refuses_before_the_engine_has_to(told, name):
    assert told["programs"][name]["refused"]
