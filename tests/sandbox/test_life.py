"""The pool's life: made late, ended at exit, made anew after a fork, and a clear word where the engine is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from metricsmith.sandbox.contract import MissingEngine
from metricsmith.sandbox.workers import engine_module

pytest.importorskip("pydantic_monty")
posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

START = """
import os, signal, sys, threading, time
from metricsmith.sandbox.contract import Limits
from metricsmith.sandbox.monty import sandbox
SOURCE = "def score(output):\\n    return len(output)"
WIDE = Limits(row_seconds=60, seconds=300)
def run(*texts):
    return [one.value or one.error for one in sandbox().run(SOURCE, "score", [{"output": t} for t in texts], WIDE)]
def workers(parent):
    import subprocess
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True).stdout
    table = [line.split(None, 2) for line in listed.splitlines()]
    return [int(pid) for pid, owner, args in table if int(owner) == parent and "monty" in args]
"""


def script(text, *options):
    """The printed lines of a program, which must end well and say nothing else."""
    done = subprocess.run(
        [sys.executable, *options, "-c", START + text], capture_output=True, text=True, timeout=60
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split("\n")[:-1]


def gone(pids):
    """True as soon as none of the processes runs; a dead one that nobody has fetched counts as gone."""
    for _ in range(200):
        states = subprocess.run(["ps", "-o", "stat=", "-p", ",".join(pids)], capture_output=True, text=True).stdout
        if all(state.startswith("Z") for state in states.split()):
            return True
        time.sleep(0.05)
    return False


def test_nothing_starts_before_the_first_row():
    told = script(
        "print('pydantic_monty' in sys.modules); box = sandbox(); print(workers(os.getpid()))\n"
        "box.compile(SOURCE, 'score'); box.run(SOURCE, 'score', []); print(workers(os.getpid()))\n"
        "print(run('ab'), len(workers(os.getpid())) > 0)"
    )
    assert told == ["False", "[]", "[]", "[2] True"]


def test_threads_that_are_first_together_share_one_pool():
    told = script(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "import metricsmith.sandbox.workers as w\nmade = []\nreal = w.engine_module\n"
        "w.engine_module = lambda: made.append(time.sleep(.2)) or real()\n"
        "with ThreadPoolExecutor(8) as pool:\n    print(list(pool.map(run, ['a' * n for n in range(1, 9)])))\n"
        "print(len(made))"
    )
    assert told == ["[[1], [2], [3], [4], [5], [6], [7], [8]]", "1"]


@posix
@pytest.mark.parametrize(
    "end",
    ["", "sys.exit()", "raise SystemExit(0)", "threading.Thread(target=run, args=('a' * 9,)).start()",
     "import atexit\natexit.register(lambda: run('late'))",
     "threading.Thread(target=lambda: [run('a') for _ in iter(int, 1)], daemon=True).start(); time.sleep(.1)"],
    ids=["end", "exit", "raise", "thread", "atexit", "daemon"],
)  # fmt: skip
def test_no_worker_outlives_the_process_and_its_end_is_quiet(end):
    (pids,) = script(f"run('a'); print(*workers(os.getpid()), flush=True)\n{end}", "-X", "dev")
    assert pids
    assert gone(pids.split())


@posix
def test_no_worker_outlives_a_killed_process():
    text = START + "run('a'); print(*workers(os.getpid()), flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert done.returncode == -9
    assert done.stdout.strip()
    assert gone(done.stdout.split())


@posix
def test_a_forked_child_runs_rows_and_leaves_the_parents_workers_alone():
    told = script(
        "print(run('ab'), flush=True)\nbefore = workers(os.getpid())\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    print(run('abc', 'a\\ud800')[0], sandbox().engine[:6], flush=True)\n"
        "    print(run('abcd'), flush=True)\n"
        "    import subprocess\n    real = subprocess.Popen\n"
        "    def killed(command, **options):\n"
        "        subprocess.Popen = real\n"
        "        return real([sys.executable, '-c', 'import os; os.abort()'], **options)\n"
        "    subprocess.Popen = killed\n"
        "    print(run('abcde'), flush=True)\n"
        "    sys.exit()\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        "print(workers(os.getpid()) == before, run('abcdef'))"
    )
    assert told == ["[2]", "3 monty ", "[4]", "[5]", "0", "True [6]"]


@posix
def test_an_interrupted_call_leaves_no_answer_to_the_next_one_and_says_nothing():
    told = script(
        "run('ab')\npid = os.fork()\n"
        "if pid == 0:\n"
        "    os.setpgid(0, 0)\n    run('abc')\n"
        "    threading.Timer(1, os.killpg, (os.getpgrp(), signal.SIGINT)).start()\n"
        "    try:\n        sandbox().run('def score():\\n    while 1:\\n        pass', 'score', [{}], WIDE)\n"
        "    except KeyboardInterrupt:\n        print(run('abcd', 'abcde'), flush=True)\n"
        "    sys.exit()\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), run('a'))"
    )
    assert told == ["[4, 5]", "0 [1]"]


@posix
def test_an_answer_cut_off_in_the_middle_is_asked_again():
    told = script(
        "import metricsmith.sandbox.apart as apart\n"
        "whole, apart.ANSWER = apart.ANSWER, 'import sys; print(\"[[1,\", end=str()); sys.exit(1)'\n"
        "print(apart.run_apart(SOURCE, 'score', ['{}'], WIDE)[0].error)\n"
        "apart.ANSWER = whole\nprint(apart.run_apart(SOURCE, 'score', ['{\"output\": \"a\"}'], WIDE)[0].value)"
    )
    assert told == ["the process that runs the rows ended twice", "1"]


@posix
def test_a_child_forked_before_the_first_row_has_a_pool_of_its_own():
    told = script(
        "sandbox()\npid = os.fork()\n"
        "if pid == 0:\n    print(run('ab'), sandbox()._workers.lost, flush=True)\n    sys.exit()\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), run('abc'))"
    )
    assert told == ["[2] False", "0 [3]"]


@posix
def test_a_fork_while_rows_run_in_a_thread():
    told = script(
        "run('a')\ngot = []\n"
        "thread = threading.Thread(target=lambda: got.extend(run(*['a' * 9] * 500)))\nthread.start()\n"
        "for _ in range(3):\n    time.sleep(.02)\n    pid = os.fork()\n"
        "    if pid == 0:\n        print(run('ab'), flush=True)\n        os._exit(0)\n"
        "    assert os.waitpid(pid, 0)[1] == 0\n"
        "thread.join()\nprint(got == [9] * 500)"
    )
    assert told == ["[2]", "[2]", "[2]", "True"]


@posix
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_multiprocessing(method, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        START + "import multiprocessing\nif __name__ == '__main__':\n    run('a')\n"
        f"    with multiprocessing.get_context('{method}').Pool(2) as pool:\n"
        "        print(pool.map(run, ['ab', 'abc', 'abcd'], chunksize=1), run('abcde'))\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[[2], [3], [4]] [5]\n"


def test_a_missing_engine_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    with pytest.raises(MissingEngine, match="pydantic-monty, which is not installed") as missing:
        engine_module()
    assert isinstance(missing.value, ImportError)


def test_a_missing_program_of_the_engine_is_named():
    told = script(
        "from metricsmith.sandbox.contract import MissingEngine\nimport pydantic_monty\n"
        "def lost(**options):\n    raise FileNotFoundError('no monty')\n"
        "pydantic_monty.Monty = lost\n"
        "try:\n    run('a')\nexcept MissingEngine as missing:\n    print(missing)"
    )
    assert told == ["the program of pydantic-monty is not installed: no monty"]
