"""Judges that learn from ratings, side by side, as they are made one after the other."""

from __future__ import annotations

import io
import os
import signal
import threading
import time
from dataclasses import replace

import dspy
import pytest
from tqdm import tqdm

from loopback import scripted, serve
from metricsmith.errors import HopelessModel, ModelFailure
from metricsmith.optimizers import learning_judges
from metricsmith.optimizers.generation import Generated
from metricsmith.optimizers.learning_judges import LEARNED, learn
from planted import TASK, planted_rows

ROWS = planted_rows(sources=12)
BOTH = {"examples": 1, "tuned": 1}


@pytest.fixture(autouse=True)
def few_trials(monkeypatch):
    monkeypatch.setattr(learning_judges, "TRIALS", 6)


def is_of(kind, prompt):
    """True if a prompt is for a judge of that kind: ``tuned`` (or what its search asks besides) or ``examples``."""
    asked = prompt.rsplit("Respond with the corresponding output fields", 1)[-1]
    shows = "## score ##" in asked and "[[ ## guideline ## ]]" not in prompt
    return shows == (kind == "examples")


def learned(counts, slow="", delay=0.03, rows=ROWS, answer=scripted, **options):
    """The judges made on a server that lets the requests of one kind wait, and the server."""

    def waiting(prompt):
        server.wait += delay * (slow != "" and is_of(slow, prompt))
        return answer(prompt)

    with serve(waiting) as server, dspy.context(lm=server.lm()):
        return learn(rows, TASK, counts, **options), server


def seen(made):
    """Everything about judges, notes and costs but seconds, as text, in which NaN equals NaN."""
    judges = [
        (judge.name, judge.to_state(), replace(judge.tuning, usage=untimed(judge.tuning.usage)))
        for judge in made.metrics
    ]
    return repr(judges), untimed(made.usage), list(dict.fromkeys(made.notes)), made.lacks


def untimed(usage):
    return replace(usage, seconds=0.0)


@pytest.fixture(scope="module")
def in_turn():
    """The two families one after the other: judges and notes, and the prompts that were sent."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning_judges, "TRIALS", 6)
        parts = [learned({name: count}) for name, count in BOTH.items()]
    made = sum((part for part, _ in parts), Generated())
    return seen(made), sorted(prompt for _, server in parts for prompt in server.prompts)


@pytest.mark.parametrize("slow", ["", "examples", "tuned"])
def test_side_by_side_makes_the_same_whichever_is_late(in_turn, slow):
    made, server = learned(BOTH, slow)
    assert (seen(made), sorted(server.prompts)) == in_turn
    assert [judge.name for judge in made.metrics] == ["rating_by_examples", "rating_tuned"]


def test_families_are_asked_at_the_same_time():
    made, server = learned(BOTH, "examples", delay=0.03)
    kinds = [is_of("examples", prompt) for prompt in server.prompts]
    assert True in kinds[kinds.index(False) :]  # not all of one family before the other
    assert False in kinds[kinds.index(True) : len(kinds) - kinds[::-1].index(True)]
    assert made.usage.requests == server.requests


def test_families_share_the_eight_places_of_one_search(monkeypatch):
    monkeypatch.setitem(LEARNED, "tuned", lambda rows, task, seed: LEARNED["examples"](rows, task, seed + 1))
    _, server = learned(BOTH, "examples")  # eight at once either way
    assert 4 < server.most_in_flight <= 8


def test_judges_of_one_family_are_made_in_turn_each_with_its_own_seed(monkeypatch):
    under_way, made = [], []

    def made_of(name, rows, task, seed, limiter):
        assert name not in under_way
        under_way.append(name)
        time.sleep(0.01)
        made.append((name, seed))
        under_way.remove(name)
        return Generated(notes=(f"{name} {seed}",))

    monkeypatch.setattr(learning_judges, "_learned", made_of)
    notes = learn(ROWS, TASK, {"examples": 2, "tuned": 2}, seed=3).notes
    assert [note for note in notes if note[-1] in "34"] == ["examples 3", "examples 4", "tuned 3", "tuned 4"]
    assert sorted(made) == [("examples", 3), ("examples", 4), ("tuned", 3), ("tuned", 4)]


def test_ctrl_c_ends_both_and_leaves_nothing_running():
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    with serve(scripted, delay=0.05) as server, dspy.context(lm=server.lm()):
        running = threading.active_count()  # the server's own thread
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            learn(ROWS, TASK, BOTH)
        sent = len(server.prompts)
        assert sent < 120  # of 270
        assert any(is_of("examples", prompt) for prompt in server.prompts)
        assert any(is_of("tuned", prompt) for prompt in server.prompts)
        time.sleep(0.2)
        assert len(server.prompts) == sent
        assert [one.name for one in threading.enumerate() if one.name.startswith("metricsmith")] == []
        assert threading.active_count() <= running + 1  # tqdm's watch over its bars


def test_a_model_that_refuses_to_work_ends_both():
    with serve(scripted, always=401) as server, dspy.context(lm=server.lm()):
        with pytest.raises(HopelessModel, match="refuses to work"):
            learn(ROWS, TASK, BOTH)


def test_what_is_raised_is_of_the_first_family_though_another_fails_sooner(monkeypatch):
    def late(*_):
        time.sleep(0.1)
        raise HopelessModel("first")

    def soon(*_):
        raise HopelessModel("second")

    monkeypatch.setitem(LEARNED, "examples", late)
    monkeypatch.setitem(LEARNED, "tuned", soon)
    with pytest.raises(HopelessModel, match="first"):
        learn(ROWS, TASK, BOTH)


def test_strict_ends_the_family_behind_the_one_that_lacks_a_judge():
    def answer(prompt):
        return {"reasoning": "Beyond words.", "score": 99} if is_of("examples", prompt) else scripted(prompt)

    made, plain = learned(BOTH, "tuned", answer=answer)
    assert [judge.name for judge in made.metrics] == ["rating_tuned"]
    with pytest.raises(ModelFailure, match="which strict does not allow: 100% of the judge's own"):
        learned(BOTH, "tuned", answer=answer, strict=True)
    assert plain.requests > 24


def test_too_few_rows_are_a_note_for_each_family():
    made, server = learned(BOTH, rows=ROWS[:6])
    assert server.requests == 0
    assert [lack.family for lack in made.lacks] == ["examples", "tuned"]
    assert [note.partition(":")[0] for note in made.notes[-2:]] == [
        "no judge of the family 'examples'",
        "no judge of the family 'tuned'",
    ]


def test_rows_are_judged_without_a_hand_on_other_peoples_progress_bars():
    with tqdm(total=1, file=io.StringIO()) as bar:
        learned({"examples": 1})
        assert bar in tqdm._instances  # `dspy.Evaluate` empties the list, in which another search may have its bar
