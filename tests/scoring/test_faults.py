"""Whatever the server does, every judgement is accounted for, none is asked without reason, and no number is wrong.

What must come of each script of faults is worked out by `oracle.expected`, not by the client.
"""

from __future__ import annotations

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import dspy
import numpy as np
import pandas as pd
import pytest

from faults import CODES, Fault, Faults
from loopback import serve
from metricsmith.errors import ModelFailure
from metricsmith.metric import make_row
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import Status
from metricsmith.scoring import score
from oracle import HOPELESS, End, expected, expected_of_n, plan_of

PATIENCE = 60.0  # seconds after which the client gives up a request: under no load is an answer taken for a hang
LITTLE = 1.0  # the same, where the server hangs
ROW = re.compile(r"row-\d+")
# How often a row meets the fault before all goes well: never, until the repair or a retry, to the last try, for ever
TIMES = (0, 1, 2, 4, 5, 6, 9)
SLOW_TIMES = (0, 1, 4, 5)  # where each costs the whole patience
ALONE = [fault for fault in Fault if fault not in (Fault.FEWER_CHOICES, Fault.ONE_MALFORMED, Fault.NO_CHOICE_OF_N)]


def label(number):
    return f"row-{number:04d}"


def label_of(prompt):
    return ROW.findall(prompt)[0]


def truth(name):
    """The number that the model means to give: from 2 to 5, so that the stray choice of 1 is always wrong."""
    return 2 + int(name[4:]) % 4


def answer(prompt):
    name = label_of(prompt)
    return {"reasoning": f"Reasons for {name}.", "score": truth(name)}


def rows_of(count):
    return [make_row(f"{label(number)} says enough.", input="Say it.", id=label(number)) for number in range(count)]


def judge(name="Clear", meaning="It is clear."):
    return CriterionJudge(criterion=name, meaning=meaning, task="Rewrite notices.")


def scored(faults, count, *, concurrency, seed=0, metrics=None, patience=PATIENCE, **options):
    """The table and the server of one run in which failures stop nothing."""
    with serve(answer, script=faults, seed=seed) as server:
        table = score(
            metrics or [judge()], rows_of(count), lm=server.lm(timeout=patience, **options.pop("model", {})),
            concurrency=concurrency, max_failure_rate=1.0, progress=False, **options,
        )  # fmt: skip
    assert not server.wrong
    return table, server


def without_seconds(table):
    return table.to_pandas().drop(columns="seconds")


def check(table, server, ends):
    """The invariant, the ends that the oracle gives (by row), and the requests that the server saw."""
    frame = table.to_pandas()
    assert dict(zip(frame["id"], frame["status"], strict=True)) == {
        name: end.status.value for name, end in ends.items()
    }
    asked = Counter(label_of(server.texts[seen.content]) for seen in server.log)
    assert asked == {name: end.requests for name, end in ends.items()}
    assert dict(zip(frame["id"], frame["requests"], strict=True)) == asked
    check_account(table, server)


def check_account(table, server):
    """requested = ok + each failure status; no failure has a number, no number is wrong; usage as the server has it."""
    frame, counts = table.to_pandas(), table.counts()
    assert counts["requested"] == len(frame) == sum(counts[status.value] for status in Status)
    assert counts == {"requested": len(frame)} | {s.value: int((frame["status"] == s.value).sum()) for s in Status}
    good = frame["status"] == "ok"
    assert frame.loc[~good, ["raw", "score"]].isna().all(axis=None)
    assert (frame.loc[~good, "error"] != "").all()
    wanted = np.array([truth(name) for name in frame.loc[good, "id"]])
    np.testing.assert_array_equal(frame.loc[good, "raw"], wanted)
    np.testing.assert_allclose(frame.loc[good, "score"], (wanted - 1) / 4)
    assert np.isfinite(table.values).sum() == good.sum()
    assert table.usage.requests == server.requests == len(server.log) == frame["requests"].sum()


@pytest.mark.parametrize("fault", ALONE, ids=[fault.name.lower() for fault in ALONE])
def test_each_fault_ends_as_the_policy_says_and_in_the_same_way_in_every_order(fault):
    times = TIMES[:4] if fault in HOPELESS else TIMES  # a fourth refusal before any answer would end the run
    times, patience = (SLOW_TIMES, LITTLE) if fault is Fault.HANG else (times, PATIENCE)
    plans = {label(number): [fault] * count for number, count in enumerate(times)}
    ends = {name: expected(plan) for name, plan in plans.items()}
    tables = []
    with ThreadPoolExecutor() as pool:  # side by side: where the server hangs, both only wait
        runs = pool.map(
            lambda concurrency: scored(Faults(script=plans), len(plans), concurrency=concurrency, patience=patience),
            (1, 64),
        )
    for table, server in runs:
        check(table, server, ends)
        tables.append(without_seconds(table))
        assert server.faults[fault] == sum(min(len(plans[name]), end.requests) for name, end in ends.items())
    pd.testing.assert_frame_equal(*tables)


def test_faults_in_turn_share_the_tries_of_a_call():
    plans = {
        label(0): [Fault.ERROR_500, Fault.CHATTER, Fault.CUT_WITHIN, None],
        label(1): [Fault.CHATTER, *[Fault.ERROR_503] * 5],
        label(2): [*[Fault.ERROR_502] * 4, Fault.OUT_OF_RANGE, None],
        label(3): [*[Fault.ERROR_502] * 4, Fault.OUT_OF_RANGE, Fault.ERROR_500],
        label(4): [Fault.CHATTER, Fault.OUT_OF_RANGE],
        label(5): [Fault.OUT_OF_RANGE, Fault.CHATTER],
        label(6): [Fault.CHATTER, Fault.REFUSAL],
        label(7): [Fault.THROTTLED, Fault.BAD_REQUEST],
    }
    # Five requests, and one more to repair; the last word is the last answer's.
    ends = {
        label(0): End(Status.OK, 4),
        label(1): End(Status.TRANSPORT, 6),
        label(2): End(Status.OK, 6),
        label(3): End(Status.TRANSPORT, 6),
        label(4): End(Status.OUT_OF_RANGE, 2),
        label(5): End(Status.UNPARSABLE, 2),
        label(6): End(Status.REFUSED, 2),
        label(7): End(Status.TRANSPORT, 2),
    }
    assert {name: expected(plan) for name, plan in plans.items()} == ends
    table, server = scored(Faults(script=plans), len(plans), concurrency=4)
    check(table, server, ends)


MIXTURE = Faults(
    {
        Fault.ERROR_500: 0.04, Fault.ERROR_502: 0.03, Fault.ERROR_503: 0.03, Fault.THROTTLED: 0.05,
        Fault.RETRY_AFTER: 0.05, Fault.CUT_BEFORE: 0.04, Fault.CUT_WITHIN: 0.04, Fault.TRUNCATED: 0.04,
        Fault.EMPTY_BODY: 0.02, Fault.HTML: 0.02, Fault.NO_CHOICES: 0.02, Fault.HANG: 0.01, Fault.CHATTER: 0.05,
        Fault.WRONG_NAMES: 0.03, Fault.WRONG_CASE: 0.03, Fault.PROSE: 0.05, Fault.OUT_OF_RANGE: 0.05, Fault.NAN: 0.03,
        Fault.INFINITE: 0.02, Fault.EMPTY: 0.03, Fault.REFUSAL: 0.02, Fault.REFUSAL_FIELD: 0.02, Fault.FILTERED: 0.02,
        Fault.CUT_OFF: 0.03,
        Fault.GIGANTIC_NUMBER: 0.02, Fault.TWO_CHOICES: 0.04, Fault.BAD_REQUEST: 0.02, Fault.SLOW: 0.02,
    },
    slow=0.01,
    retry_after=0.005,
    hang=0.02,  # then the server closes the connection: a client's time-out would hit slow answers as well
)  # fmt: skip


def test_a_mixture_of_all_faults_is_accounted_for_and_does_not_depend_on_the_order():
    tables = []
    for concurrency in (64, 1):
        table, server = scored(MIXTURE, 200, concurrency=concurrency, seed=5)
        prompts = {label_of(text): text for text in server.texts.values()}
        ends = {name: expected(plan_of(MIXTURE, prompts[name], 5)) for name in map(label, range(200))}
        check(table, server, ends)
        tables.append(without_seconds(table))
    pd.testing.assert_frame_equal(*tables)
    counts = table.counts()
    assert all(counts[status] for status in ("ok", "unparsable", "out_of_range", "refused", "transport"))
    assert len(server.faults) == len(MIXTURE.rates)  # the test met every fault that it names


def test_two_judges_of_the_same_rows_do_not_share_their_faults():
    metrics = [judge(), judge("Brief", "It is short.")]
    faults = Faults({Fault.ERROR_500: 0.2, Fault.CHATTER: 0.2, Fault.OUT_OF_RANGE: 0.2})
    table, server = scored(faults, 60, concurrency=16, seed=2, metrics=metrics)
    ends = {
        (label_of(text), "Brief" in text): expected(plan_of(faults, text, 2)).status.value
        for text in server.texts.values()
    }
    frame = table.to_pandas()
    seen = zip(frame["id"], frame["metric"] == "brief", frame["status"], strict=True)
    assert {(name, brief): status for name, brief, status in seen} == ends
    assert [line.counts["requested"] for line in table.coverage()] == [60, 60]
    check_account(table, server)


@pytest.mark.parametrize("fault", [Fault.BAD_REQUEST, Fault.WRONG_KEY, Fault.FORBIDDEN, Fault.UNKNOWN])
@pytest.mark.parametrize("concurrency", [1, 64])
def test_a_server_that_refuses_from_the_start_ends_the_run_at_its_fourth_refusal(fault, concurrency):
    with serve(answer, script=Faults({fault: 1.0})) as server:
        with pytest.raises(ModelFailure, match=re.escape(CODES[fault][1])) as stopped:
            score([judge()], rows_of(50), lm=server.lm(), concurrency=concurrency, max_failure_rate=1.0, progress=False)
    counts = stopped.value.table.counts()
    # Four may be in flight until there is an answer: three others when the fourth refusal comes in.
    assert 4 <= server.requests <= (4 if concurrency == 1 else 7)
    assert counts == dict.fromkeys(counts, 0) | {
        "requested": 50, "transport": server.requests, "skipped": 50 - server.requests,
    }  # fmt: skip


def test_the_failure_gate_stops_the_run_and_keeps_what_was_paid_for():
    # Even rows are never answered: at most 10 of 100 may fail, so the eleventh failure ends the run.
    plans = {label(number): [Fault.REFUSAL] for number in range(0, 100, 2)}
    with serve(answer, script=Faults(script=plans)) as server:
        with pytest.raises(ModelFailure, match="refused") as stopped:
            score([judge()], rows_of(100), lm=server.lm(), concurrency=1, max_failure_rate=0.1, progress=False)
    counts = stopped.value.table.counts()
    assert counts["refused"] >= 11
    assert counts["requested"] == 100 == sum(count for name, count in counts.items() if name != "requested")
    assert server.requests == counts["ok"] + counts["refused"] <= 24


def batch(fault_plan, n=4, rows=3, **options):
    """Runs of a few rows in shared requests, each row under the same plan; the seeded number follows the row."""
    faults = Faults(script={"": fault_plan})
    options.setdefault("concurrency", 1)
    return scored(faults, rows, runs=n, batch_n=True, model={"temperature": 1.0}, **options)


@pytest.mark.parametrize(
    "plan",
    [
        [],
        [Fault.FEWER_CHOICES],
        [Fault.ONE_MALFORMED],
        [Fault.ERROR_500, Fault.CUT_WITHIN, Fault.ONE_MALFORMED],
        [Fault.THROTTLED, Fault.FEWER_CHOICES],
        [Fault.ERROR_500] * 9,
        [Fault.REFUSAL],
    ],
    ids=lambda plan: ", ".join(fault.name.lower() for fault in plan[:4]) or "none",
)
def test_one_request_for_all_runs_is_made_up_for_where_it_falls_short(plan):
    table, server = batch(plan)
    ends = expected_of_n(plan, 4)
    frame = table.to_pandas()
    for name, lines in frame.groupby("id"):
        assert list(lines["status"]) == [end.status.value for end in ends], name
        assert lines["requests"].sum() == sum(end.requests for end in ends), name
    check_account(table, server)


def test_a_server_that_takes_no_n_is_asked_once_and_then_answers_run_by_run():
    table, server = batch([Fault.NO_CHOICE_OF_N] * 9)
    assert (server.faults[Fault.NO_CHOICE_OF_N], server.requests) == (1, 1 + 3 * 4)
    assert [seen.n for seen in server.log] == [4, *[1] * 12]
    assert table.counts()["ok"] == 12
    check_account(table, server)


def test_the_prompt_of_a_shared_request_is_paid_once():
    shared, server = batch([])
    single, alone = scored(Faults(), 3, concurrency=1, runs=4, model={"temperature": 1.0})
    assert (server.requests, alone.requests) == (3, 12)
    assert [seen.n for seen in server.log] == [4, 4, 4]
    assert alone.stats()["prompt_tokens"] == 4 * server.stats()["prompt_tokens"] == 4 * shared.usage.prompt_tokens
    assert shared.usage.completion_tokens == single.usage.completion_tokens
    pd.testing.assert_frame_equal(
        shared.to_pandas()[["id", "run", "status", "raw", "feedback"]],
        single.to_pandas()[["id", "run", "status", "raw", "feedback"]],
    )


def test_nothing_of_a_fault_remains_in_the_callers_model():
    with serve(answer, script=Faults(script={"": [Fault.ERROR_500, Fault.CHATTER]})) as server:
        lm = server.lm()
        before = dict(lm.kwargs)
        with dspy.context(lm=lm):
            score([judge()], rows_of(4), progress=False)
    assert (lm.kwargs, lm.history, lm.num_retries) == (before, [], 3)
