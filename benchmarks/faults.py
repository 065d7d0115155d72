"""Faults tried on the scoring engine, and what became of every judgement.

::

    python benchmarks/faults.py [--rows 200]

A loopback server plays each fault on four requests in ten, by a seeded script of (request content, attempt); a
store is on and 16 requests are in flight. For each fault the table gives how many judgements were requested,
how they ended, how many have no status at all (lost), how many requests the server saw beyond those that the
script and the stated policy call for (duplicated), and how many numbers differ from what the model said or
stand where the policy says that there is none (wrong).
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

import dspy

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from faults import Fault, Faults
from loopback import message_text, serve
from metricsmith.errors import ModelFailure
from metricsmith.metric import make_row
from metricsmith.model_calls import metering
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import Status
from metricsmith.scoring import score
from oracle import expected, plan_of

RATE, SEED, PATIENCE = 0.4, 7, 1.0
OF_CHOICES = (Fault.FEWER_CHOICES, Fault.ONE_MALFORMED, Fault.NO_CHOICE_OF_N)
HOPELESS = (Fault.BAD_REQUEST, Fault.WRONG_KEY, Fault.FORBIDDEN, Fault.UNKNOWN)
ROW = re.compile(r"row-\d+")
JUDGE = CriterionJudge(criterion="Clear", meaning="It is clear.", task="Rewrite notices.")
COLUMNS = ("requested", "ok", "unparsable", "out_of_range", "refused", "transport", "skipped")


def truth(name: str) -> int:
    """The number that the model means to give."""
    return 2 + int(name[4:]) % 4


def answer(prompt: str) -> dict[str, object]:
    """The model's answer to a prompt."""
    name = ROW.findall(prompt)[0]
    return {"reasoning": f"Reasons for {name}.", "score": truth(name)}


def play(number: int, label: str, script: Faults, rows: list[dspy.Example], folder: str) -> str:
    """One line of the table."""
    with serve(answer, script=script, seed=SEED) as server:
        table = score(
            [JUDGE], rows, lm=server.lm(timeout=PATIENCE), concurrency=16, max_failure_rate=1.0, progress=False,
            store=Path(folder) / f"{number}.db",
        )  # fmt: skip
    ends = {}
    for row in rows:
        prompt = "\n".join(message_text(message) for message in JUDGE.messages(row))
        ends[row.id] = expected(plan_of(script, prompt, SEED))
    counts = table.counts()
    lost = counts["requested"] - sum(counts[status.value] for status in Status)
    wrong = sum(
        (line.raw is not None) != (ends[row.id].status is Status.OK) or (line.ok and line.raw != truth(row.id))
        for row, line in zip(rows, table.column(0), strict=True)
    )
    duplicated = server.requests - sum(end.requests for end in ends.values())
    cells = [label, *(str(counts[name]) for name in COLUMNS), str(server.requests)]
    return f"| {' | '.join([*cells, str(lost), str(duplicated), str(wrong)])} |"


def refused_from_the_start(fault: Fault, rows: list[dspy.Example]) -> str:
    """A server that answers every request like this."""
    with serve(answer, script=Faults({fault: 1.0})) as server:
        try:
            score([JUDGE], rows, lm=server.lm(), concurrency=16, progress=False)
        except ModelFailure as stop:
            return f"| {fault.value} | {len(rows)} | {server.requests} | {stop} |"
    raise AssertionError("the run should have stopped")


def main() -> None:
    """Play every fault and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200)
    options = parser.parse_args()
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
    metering.FIRST_PAUSE = 0.01
    rows = [make_row(f"row-{n:04d} says enough.", input="Say it.", id=f"row-{n:04d}") for n in range(options.rows)]
    alone = [fault for fault in Fault if fault not in (*OF_CHOICES, *HOPELESS)]
    print(f"| fault on 40 % of requests | {' | '.join(COLUMNS)} | requests seen | lost | duplicated | wrong |")
    print("|---" * (len(COLUMNS) + 5) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for number, fault in enumerate(alone):
            print(play(number, fault.value, Faults({fault: RATE}), rows, folder), flush=True)
        mixture = Faults({fault: 0.6 / len(alone) for fault in alone})
        print(play(len(alone), "all of them, 60 % together", mixture, rows, folder))
    print("\n| always | rows | requests seen | what the run says |\n|---|---|---|---|")
    for fault in HOPELESS:
        print(refused_from_the_start(fault, rows))


if __name__ == "__main__":
    main()
