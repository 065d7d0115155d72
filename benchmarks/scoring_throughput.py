"""Throughput and processor time of scoring with a store, beside bare DSPy and the reference package's judge.

::

    python benchmarks/scoring_throughput.py [--reference-python OTHER/bin/python]

A loopback server in a process of its own answers after 50 ms. Three ways to make the same 2,000
single-criterion judgements, 64 in flight, take turns: `dspy.Parallel` over the bare `dspy.Predict` of our
judge's signature (no store, no accounting, no bounds); `metricsmith.score` with a store; and the judge metric of
autometrics-ai 0.1.0 with 64 workers, in an environment of its own (its result cache is off). The first round
warms up and is not counted; ratios are taken within rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

# This file also runs in the child's interpreter, where metricsmith is absent: it is imported where needed.
import dspy

SERVER = Path(__file__).resolve().parents[1] / "tests" / "support" / "loopback.py"
TASK = "Rewrite official notices in plain language."
AXIS = ("Plain words", "The output uses words that everybody knows.")
SENTENCE = "the council will close this road for works until further notice and buses stop at the town hall"
WORDS = SENTENCE.split()


def texts(count: int, salt: str) -> list[tuple[str, str]]:
    """`count` pairs of input and output of some 60 words, no two alike."""
    return [
        (" ".join(WORDS * 3) + f" {salt} {number}", " ".join(WORDS[number % 9 :] * 3) + f" {salt} {number}")
        for number in range(count)
    ]


def model(port: int) -> Any:
    """The server as DSPy sees it, under a name that DSPy has a price for: looking up an unknown one takes longer."""
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
    return dspy.LM("openai/gpt-4o-mini", api_base=f"http://127.0.0.1:{port}/v1", api_key="none", cache=False)


def timed(work: Any) -> tuple[Any, float, float]:
    """The result of a call, its wall-clock seconds and its processor seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - processor


def bare(lm: Any, pairs: list[tuple[str, str]], threads: int) -> tuple[float, float]:
    """`dspy.Parallel` over `dspy.Predict`."""
    from metricsmith.signatures.judgement import JudgeCriterion

    predict = dspy.Predict(JudgeCriterion)
    constant = {"task": TASK, "criterion": ": ".join(AXIS), "references": "(none)", "context": "(none)"}
    work = [
        (predict, dspy.Example(**constant, input=source, output=output).with_inputs(*constant, "input", "output"))
        for source, output in pairs
    ]
    with dspy.context(lm=lm):
        parallel = dspy.Parallel(num_threads=threads, disable_progress_bar=True, timeout=0)
        answers, *seconds = timed(partial(parallel, work))
    assert all(1 <= answer.score <= 5 for answer in answers)
    return seconds[0], seconds[1]


def ours(lm: Any, pairs: list[tuple[str, str]], threads: int, folder: str) -> tuple[float, float]:
    """`metricsmith.score` with a store."""
    from metricsmith.metric import make_row
    from metricsmith.programs.judges.criterion import CriterionJudge
    from metricsmith.scoring import score

    judge = CriterionJudge(criterion=AXIS[0], meaning=AXIS[1], task=TASK)
    rows = [make_row(output, input=source, id=str(number)) for number, (source, output) in enumerate(pairs)]
    store = Path(folder) / f"{time.monotonic_ns()}.db"
    table, *seconds = timed(partial(score, [judge], rows, lm=lm, concurrency=threads, store=store, progress=False))
    assert table.counts()["ok"] == len(rows)
    return seconds[0], seconds[1]


def reference(port: int, count: int, threads: int) -> None:
    """In the child: read a salt a line, judge as many rows, answer with the seconds."""
    from autometrics.metrics.generated.GeneratedLLMJudgeMetric import GeneratedRefFreeLLMJudgeMetric

    metric = GeneratedRefFreeLLMJudgeMetric(
        name="plain_words", description=AXIS[1], axis=": ".join(AXIS), model=model(port), task_description=TASK,
        metric_card="none", max_workers=threads, use_cache=False,
    )  # fmt: skip
    for line in sys.stdin:
        inputs, outputs = zip(*texts(count, line.strip()), strict=True)
        _, wall, processor = timed(partial(metric.calculate_batched, list(inputs), list(outputs)))
        print(json.dumps([wall, processor]), flush=True)


class Reference:
    """The child with the reference package."""

    def __init__(self, python: str, port: int, count: int, threads: int) -> None:
        command = [python, __file__, "--child", str(port), "--count", str(count), "--threads", str(threads)]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, salt: str) -> tuple[float, float]:
        """Wall-clock and processor seconds of one round."""
        assert self.child.stdin
        assert self.child.stdout
        self.child.stdin.write(salt + "\n")
        self.child.stdin.flush()
        wall, processor = json.loads(self.child.stdout.readline())
        return wall, processor


def main() -> None:
    """Take turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference-python", help="interpreter of an environment with autometrics-ai==0.1.0")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--delay", type=float, default=0.05)
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        reference(options.child, options.count, options.threads)
        return
    server = subprocess.Popen(
        [sys.executable, str(SERVER), "--delay", str(options.delay), "--follow"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout
    port = json.loads(server.stdout.readline())["port"]
    lm = model(port)
    peer = (
        Reference(options.reference_python, port, options.count, options.threads) if options.reference_python else None
    )
    rounds: list[dict[str, tuple[float, float]]] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds + 1):
            bare_pairs, our_pairs = texts(options.count, f"bare{number}"), texts(options.count, f"ours{number}")
            done = {
                "dspy.Parallel over dspy.Predict": bare(lm, bare_pairs, options.threads),
                "metricsmith.score with a store": ours(lm, our_pairs, options.threads, folder),
            }
            if peer is not None:
                done["autometrics-ai 0.1.0 judge"] = peer.run(f"reference{number}")
            if number:
                rounds.append(done)
    _print(rounds, options.count)
    server.kill()


def _print(rounds: list[dict[str, tuple[float, float]]], count: int) -> None:
    base = next(iter(rounds[0]))
    print(f"{count} judgements, median of {len(rounds)} rounds, {os.cpu_count()} cores\n")
    print("| | judgements/s | throughput beside bare | CPU ms a judgement | CPU beside bare |")
    print("|---|---|---|---|---|")
    for name in rounds[0]:
        rate = median(count / done[name][0] for done in rounds)
        throughput = median(done[base][0] / done[name][0] for done in rounds)
        processor = median(1000 * done[name][1] / count for done in rounds)
        ratio = median(done[name][1] / done[base][1] for done in rounds)
        print(f"| {name} | {rate:.0f} | {throughput:.2f} | {processor:.2f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
