"""Rows: each starts from nothing, keeps to its limits, and gives a value of JSON or an error in one line."""

from __future__ import annotations

import contextlib
import math
import os
import random
import subprocess
import threading
import time

import pytest

from metricsmith.sandbox.contract import LIMITS, Limits, RefusedSource, RowResult
from metricsmith.sandbox.monty import sandbox

pytest.importorskip("pydantic_monty")

# Waiting is never part of a test's meaning: limits that a test does not reach are wide.
WIDE = Limits(row_seconds=60, seconds=300)
KEEPING = """
count = 0
seen = []
def score(output, kept=[]):
    global count
    count += 1
    seen.append(output)
    kept.append(output)
    return [count, len(seen), len(kept), len(output.split())]
"""


def values(source, rows, limits=WIDE):
    outcomes = sandbox().run(source, "score", rows, limits)
    assert [one.error for one in outcomes] == [""] * len(rows)
    return [one.value for one in outcomes]


def only(body, limits=WIDE, **row):
    source = "import re, math, json, collections, itertools, unicodedata\n" + body
    (outcome,) = sandbox().run(source, "score", [row or {"output": "x"}], limits)
    return outcome


def error(body, limits=WIDE, **row):
    outcome = only(body, limits, **row)
    assert outcome.value is None
    assert outcome.error
    return outcome.error


def test_every_row_starts_from_nothing():
    """A counter, a default argument and a list of the module: batch = one by one = shuffled."""
    rows = [{"output": "word " * number} for number in range(20)]
    batch = values(KEEPING, rows)
    assert batch == [[1, 1, 1, number] for number in range(20)]
    assert [values(KEEPING, [row])[0] for row in rows] == batch
    order = random.Random(7).sample(range(20), 20)
    assert values(KEEPING, [rows[number] for number in order]) == [batch[number] for number in order]


def test_threads_get_their_own_rows_back():
    got = {}

    def work(start):
        rows = [{"output": "a" * (start + number)} for number in range(30)]
        got[start] = [one.value for one in sandbox().run("def score(output): return len(output)", "score", rows, WIDE)]

    threads = [threading.Thread(target=work, args=(100 * number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {100 * number: list(range(100 * number, 100 * number + 30)) for number in range(6)}


def test_clock_sleep_and_chance_are_fixed():
    """The check refuses these modules; where an engine lets one through, its answers are the policy's."""
    source = (
        "import time, datetime, random\n"
        "def score(output):\n    begin = time.time()\n    time.sleep(500)\n"
        "    return [begin, time.time(), time.monotonic(), str(datetime.date.today()), random.random()]"
    )
    with pytest.raises(RefusedSource, match="line 1: import of datetime is not allowed"):
        sandbox().run(source, "score", [{"output": "x"}])
    first, second = (one.value for one in sandbox().run_texts(source, "score", ['{"output": "x"}'] * 2, WIDE))
    assert first == second
    # 946,684,800 seconds lie between 1970 and 2000 (by hand: 30 years, 7 of them leap years); CPython 3.11.7 gives the
    # same number after random.seed(0).
    assert first[:2] == [946684800.0] * 2
    assert first[3:] == ["2000-01-01", random.Random(0).random()]


def test_prints_are_dropped_and_bounded(capfd):
    assert only("def score(output):\n    print('seen')\n    return 1") == RowResult(1)
    assert "MemoryError" in error("def score(output):\n    print('seen' * 100000)\n    return 1")
    assert "MemoryError" in error("def score(output):\n    print(1)", Limits(row_seconds=60, printed_bytes=0))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "value",
    [1, -1.5, 0.1 + 0.2, 5e-324, 1.7976931348623157e308, True, None, "é\x00😀\u2028", [1, [2]], {"a": {"b": None}},
     10**4000],
    ids=range(11),
)  # fmt: skip
def test_values_of_json_come_back_as_they_are(value):
    outcome = only("def score(output): return output", output=value)
    assert outcome == RowResult(value)
    assert type(outcome.value) is type(value)


def test_tuples_become_lists_and_keys_texts():
    assert only("def score(output): return (1, {2: 3})").value == [1, {"2": 3}]


def test_what_is_no_number_stays_none():
    assert math.isnan(only("def score(output): return float('nan')").value)
    assert only("def score(output): return float('-inf')").value == -math.inf


@pytest.mark.parametrize("value", ["{1, 2}", "b'x'", "1j", "score", "re.compile('a')", "{(1, 2): 3}", "re", "len"])
def test_other_values_are_errors(value):
    assert error(f"def score(output): return {value}").startswith("TypeError: ")


def test_the_value_is_bounded():
    small = Limits(row_seconds=60, output_bytes=10)
    assert only("def score(output): return 'x' * 8", small).value == "x" * 8
    said = "ValueError: the value takes 11 bytes as JSON; 10 are allowed"
    assert error("def score(output): return 'x' * 9", small) == said
    assert "the value takes 20000002 bytes" in error("def score(output): return 'x' * 20_000_000")
    assert "the value takes 20 bytes" in error("def score(output): return 'ééé'", small)


def test_errors_are_one_short_printable_line():
    assert error("def score(output): return 1 / 0") == "ZeroDivisionError: division by zero"
    assert error("def score(output): raise ValueError('a\\n\\x1b[2Jb\\u202e')") == "ValueError: a �[2Jb�"
    said = error("def score(output): raise ValueError('a' * 10_000_000)", Limits(60, 300, 512))
    assert said == ("RuntimeError: ValueError: " + "a" * 300)[:300]  # cut over there, so that no long text comes here
    assert error("def score(output): raise SystemExit('bye')") == "SystemExit: bye"
    assert error("def score(output): return 1", other=1).startswith("TypeError: score() got an unexpected keyword")


def test_names_of_fields_are_data():
    row = {"a b": 1, "": 2, "output": 3, "__class__": 4, "x=1); import os; f(": 5, "class": 6, "é": 7}
    assert values("def score(**fields): return fields", [row]) == [row]


@pytest.mark.parametrize(
    ("value", "words"),
    [("a\ud800", "surrogates not allowed"), (object(), "object is not JSON"), (b"x", "bytes is not JSON"),
     (len, "is not JSON"), ({(1, 2): 3}, "keys must be str"), (10**5000, "4300 digits"), ({1}, "set is not JSON")],
    ids=range(7),
)  # fmt: skip
def test_a_row_that_is_no_json_is_an_error_of_its_own(value, words):
    first, second, third = sandbox().run(
        "def score(output): return 1", "score", [{"output": 1}, {"output": value}, {"output": 3}], WIDE
    )
    assert (first.value, third.value) == (1, 1)
    assert second.value is None
    assert second.error.startswith("the row is no JSON: ")
    assert words in second.error


def test_a_deep_or_circular_row_is_an_error_of_its_own():
    circle, deep = [], []
    circle.append(circle)
    for _ in range(100_000):
        deep = [deep]
    for value in (circle, deep):
        assert error("def score(output): return 1", output=value).startswith("the row is no JSON: ")


def test_a_row_of_many_megabytes_runs_or_says_so():
    assert only("def score(output): return len(output)", output="é" * 5_000_000).value == 5_000_000
    said = error("def score(output): return 1", output="x" * 16_000_000)
    assert said == "the row takes 16,000,014 bytes; a quarter of 64 megabytes is allowed"
    assert "a quarter of 0.001 megabytes" in error(
        "def score(output): return 1", Limits(megabytes=0.001), output="x" * 300
    )


def test_time_of_a_row_is_limited():
    begin = time.monotonic()
    said = error("def score(output):\n    while True: pass", Limits(row_seconds=0.05))
    assert said == "TimeoutError: stopped after 0.05 seconds"
    assert time.monotonic() - begin < 30


def test_a_sandbox_still_answers_after_a_row_out_of_time():
    source = "def score(output):\n    while output == 'b': pass\n    return output"
    got = sandbox().run(
        source, "score", [{"output": letter} for letter in "abcbd"], Limits(row_seconds=0.5, seconds=300)
    )
    assert [got[1].error, got[3].error] == ["TimeoutError: stopped after 0.5 seconds"] * 2
    assert [got[1].value, got[3].value] == [None, None]


def test_time_of_all_rows_is_limited_and_the_rest_say_so():
    rows = [{"output": "x"}] * 50
    begin = time.monotonic()
    got = sandbox().run("def score(output):\n    while True: pass", "score", rows, Limits(row_seconds=0.3, seconds=0.5))
    assert time.monotonic() - begin < 30
    unrun = "not run: the rows before took the call's 0.5 seconds"
    assert got[-1] == RowResult(error=unrun)
    assert got[0].error == "TimeoutError: stopped after 0.3 seconds"
    first = next(place for place, one in enumerate(got) if one.error == unrun)
    assert first <= 3
    assert {one.error for one in got[first:]} == {unrun}


def test_memory_is_limited():
    body = "def score(output): return len('a' * {0})"
    assert only(body.format(10_000_000)).value == 10_000_000
    assert "MemoryError: memory limit exceeded" in error(body.format(10_000_000), Limits(row_seconds=60, megabytes=5))
    assert "MemoryError" in error("def score(output):\n    x = [0]\n    while True: x += x")


def test_recursion_is_limited():
    assert error("def score(output): return score(output)").startswith("RecursionError")
    depth = "def score(output):\n    def down(n): return 0 if n == 0 else 1 + down(n - 1)\n    return down({0})"
    assert only(depth.format(100)).value == 100
    assert error(depth.format(300)).startswith("RecursionError")


def test_patterns_are_limited():
    """The first takes CPython's engine longer than the world has; the second needs steps back, which are counted."""
    assert only("def score(output): return bool(re.match('(a+)+$', 'a' * 50000 + 'b'))").value is False
    assert "Max limit for backtracking" in error(
        "def score(output): return bool(re.match(r'(a*)*\\1\\1b', 'a' * 5000 + 'c'))"
    )
    assert "PatternError" in error("def score(output): return bool(re.match('((a{999}){999}){999}', 'a'))")


def test_no_rows_no_outcomes_but_the_check():
    assert sandbox().run("def score(output): return 1", "score", []) == []
    with pytest.raises(RefusedSource):
        sandbox().run("import os", "score", [], LIMITS)


def workers():
    """Process ids of the engine's processes that this process started."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    table = [line.split(None, 2) for line in listed.splitlines()]
    return [int(pid) for pid, parent, args in table if int(parent) == os.getpid() and "monty" in args]


def signalled(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # it has ended since it was listed
            os.kill(pid, number)


@pytest.mark.skipif(os.name != "posix", reason="signals and ps")
class TestKilledWorkers:
    BUSY = "def score(output):\n    total = 0\n    for i in range({0}): total += 1\n    return [output, total]"

    def killed(self, source, limits, times):
        """The outcomes of a call during which the workers are killed so many times."""
        got = []
        rows = [{"output": number} for number in range(4)]
        thread = threading.Thread(target=lambda: got.extend(sandbox().run(source, "score", rows, limits)))
        thread.start()
        dead = set()
        for _ in range(times):
            while not (alive := set(workers()) - dead) and thread.is_alive():
                time.sleep(0.01)
            time.sleep(0.2)
            signalled(alive, 9)
            dead |= alive
        thread.join()
        return dead, got

    def test_a_killed_worker_loses_no_row(self):
        dead, got = self.killed(self.BUSY.format(1_000_000), WIDE, 1)
        assert dead
        assert got == [RowResult([number, 1_000_000]) for number in range(4)]

    def test_a_row_whose_workers_die_each_time_is_an_error_of_its_own(self, monkeypatch):
        box, started, got = sandbox(), [], []
        run_row = box._row
        monkeypatch.setattr(box, "_row", lambda *args: started.append(args[2]) or run_row(*args))
        source = "def score(output):\n    while output == 2: pass\n    return output"
        rows = [{"output": number} for number in range(4)]
        thread = threading.Thread(target=lambda: got.extend(box.run(source, "score", rows, WIDE)))
        thread.start()
        while thread.is_alive():
            signalled(workers() if started[-1:] == ['{"output": 2}'] else (), 9)
            time.sleep(0.02)
        assert [one.value for one in got] == [0, 1, None, 3]
        assert "crashed" in got[2].error
        assert "SIGKILL" in got[2].error

    def test_a_worker_that_stops_is_killed_at_its_limit(self):
        got = []
        source, limits = self.BUSY.format(10**9), Limits(row_seconds=1, seconds=300)
        thread = threading.Thread(target=lambda: got.extend(sandbox().run(source, "score", [{"output": 1}], limits)))
        thread.start()
        while thread.is_alive():
            signalled(workers(), 19)
            time.sleep(0.05)
        assert got == [RowResult(error="TimeoutError: stopped after 1 seconds")]
        sandbox()._workers.close()
        assert values("def score(output): return 1", [{"output": 1}]) == [1]
