"""Judges that an induction drops are settled by their answers: not by their order, nor by a kill and a new start."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

from loopback import scripted, serve
from metricsmith.optimizers.induce import run_pass
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.splits import RatedRows
from planted import TASK, planted_rows

ROWS = planted_rows(sources=10)
SOURCES = Options(bank="generated", generators={"criterion": 6})
SHARES = {"Brevity": 0.5, "Plain words": 0.4, "Complete facts": 0.1}  # of rows on which a judge gives no number
CHILD = """
import sys

import dspy

from test_dropped_judges import pass_on

lm = dspy.LM("openai/loopback", api_base=f"http://127.0.0.1:{sys.argv[1]}/v1", api_key="none", cache=False)
pass_on(lm, store=sys.argv[2], concurrency=4)
"""


def answer(prompt):
    """Like `scripted`; some judges fail on rows that the row alone decides."""
    row = prompt.split("[[ ## output ## ]]")[-1].split("Respond with")[0]  # the same in a repair
    chance = int(hashlib.sha256(row.encode()).hexdigest()[:8], 16) / 2**32
    failing = any(f"{name}: The output" in prompt and chance < share for name, share in SHARES.items())
    judged = "[[ ## criterion ## ]]" in prompt and "`[[ ## score ## ]]`" in prompt
    return {"reasoning": "No number."} if failing and judged else scripted(prompt)


def pass_on(lm, **options):
    return run_pass(RatedRows.of(ROWS, "rating"), [], TASK, replace(SOURCES, lm=lm, **options))


def outcome(done):
    numbers = np.nan_to_num(done.table.run(), nan=-1.0).tolist()
    return sorted(done.candidates.judged), sorted(done.scored.dropped), numbers, done.fingerprint()


@pytest.fixture(scope="module")
def undisturbed():
    with serve(answer) as server:
        done = pass_on(server.lm(), concurrency=1)
    assert sorted(done.scored.dropped) == ["brevity", "plain_words"]
    assert len(done.candidates.metrics) == 4
    assert done.scored.usage.requests + done.candidates.usage.requests == server.requests
    return outcome(done)


def test_one_or_thirty_two_at_a_time_give_the_same_candidates_and_metric(undisturbed):
    with serve(answer, delay=0.002) as server:
        assert outcome(pass_on(server.lm(), concurrency=32)) == undisturbed


@pytest.mark.parametrize("answers", [30, 120])
def test_killed_and_resumed_give_the_same_candidates_and_metric(undisturbed, tmp_path, answers):
    killed, count, lock = threading.Event(), 0, threading.Lock()

    def deadly(prompt):
        nonlocal count
        with lock:
            count += 1
            if count == answers:
                child.kill()
                killed.set()
        return answer(prompt)

    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    with serve(deadly, delay=0.002) as server:
        command = [sys.executable, "-c", CHILD, str(server.port), str(tmp_path / "s.db")]
        child = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path})
        assert child.wait(120) != 0
        assert killed.is_set()
        before = server.requests
        done = pass_on(server.lm(), store=tmp_path / "s.db", concurrency=8)
        assert outcome(done) == undisturbed
        assert done.scored.usage.requests + done.candidates.usage.requests == server.requests - before
        assert sum(line.reused for line in done.scored.coverage()) > 0
