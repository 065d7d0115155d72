"""Runs the hostile programs in a process of its own and prints, as JSON, their outcomes and what they cost the process.

Called with the folder and the port that the programs aim at.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from hostile_programs import PROGRAMS, source_of
from metricsmith.sandbox.contract import Limits, RefusedSource
from metricsmith.sandbox.monty import sandbox

LIMITS = Limits(row_seconds=0.2, seconds=60)
ROWS = [{"output": "ab"}, {"output": "evil"}, {"output": "abc"}]
ATTEMPTS = 4


def peak_megabytes() -> float:
    """The most memory that this process has held."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1000


def refused(source: str) -> str:
    """The reason why the check refuses a source, or nothing."""
    try:
        sandbox().compile(source, "score")
    except RefusedSource as reason:
        return str(reason)
    return ""


def main(folder: str, port: int) -> None:
    """Past the check, so that the engine stands alone; a slow end is tried again, for the machine may be busy."""
    texts = [json.dumps(row) for row in ROWS]
    benign = "def score(output):\n    return len(output)"
    assert [one.value for one in sandbox().run(benign, "score", ROWS, LIMITS)] == [2, 4, 3]
    before = peak_megabytes()
    told = {}
    for name in PROGRAMS:
        source = source_of(name, folder, port)
        seconds = []
        while len(seconds) < ATTEMPTS and (not seconds or seconds[-1] > LIMITS.row_seconds + 0.5):
            sandbox().run(benign, "score", ROWS, LIMITS)
            begin = time.monotonic()
            evil = sandbox().run_texts(source, "score", texts[1:2], LIMITS)[0]
            seconds.append(time.monotonic() - begin)
        others = [sandbox().run_texts(source, "score", [text], LIMITS)[0].value for text in (texts[0], texts[2])]
        told[name] = {
            "seconds": min(seconds), "value": evil.value, "error": evil.error, "others": others,
            "together": [one.value for one in sandbox().run_texts(source, "score", texts, LIMITS)][::2],
            "refused": refused(source),
        }  # fmt: skip
    sys.stdout.write(json.dumps({"programs": told, "grown": peak_megabytes() - before, "limit": LIMITS.row_seconds}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
