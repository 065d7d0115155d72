"""The rows as an optimiser's own prompts show them."""

from __future__ import annotations

import sys
import threading

import dspy
import optuna
import pytest

from loopback import own_axes, scripted, serve
from metricsmith.metric import content_hash, fence
from metricsmith.optimizers.learning_judges import LEARNED
from metricsmith.optimizers.tuner import JudgeTuner
from metricsmith.optimizers.tuning.methods import Marked, quiet
from metricsmith.programs.judges.criterion import CriterionJudge
from planted import TASK, planted_rows
from rater_model import RaterModel, rated_rows

JUDGE = CriterionJudge(criterion="Quality", meaning="The work serves its readers.", task="Write notices.")


def test_a_row_shows_every_text_between_marks_and_its_numbers_without():
    row = Marked(output="a\nb", references=["c", "d"], rating=3.5, id=None, label={"e": "f"}).with_inputs("output")
    shown = (
        f"\noutput: {fence(chr(97) + chr(10) + 'b')}\nreferences: {fence('c')}\n{fence('d')}\nrating: 3.5\nid: None"
        f"\nlabel: {fence(str({'e': 'f'}))}\n"
    )
    assert repr(row) == shown
    assert repr(row.copy()) == shown


def test_judged_texts_stand_between_marks_in_mipros_summary_of_the_data():
    rows = rated_rows(24, 101)
    with serve(RaterModel(101), seed=3) as server:
        JudgeTuner(method="mipro", budget=160, lm=server.lm(), seed=101).compile(JUDGE, rows)
    summaries = [prompt for prompt in server.prompts if "Given several examples from a dataset" in prompt]
    texts = [text for row in rows for text in (row.output, row.input) if any(text in seen for seen in summaries)]
    assert texts
    for text in texts:
        assert all(seen.count(text) == seen.count(f"\n{text}\n«end ") for seen in summaries)


@pytest.mark.parametrize("repeated", [0, 9])
def test_draws_of_examples_ask_exactly_what_is_expected(repeated):
    rows = planted_rows(sources=12)
    rows += [row.copy(id=f"again {number}") for number, row in enumerate(rows[:repeated])]
    with serve(own_axes) as server, dspy.context(lm=server.lm()):
        start = LEARNED["examples"](rows, TASK, 0)
        # The judge shows the first of the draws already; equal rows are asked once.
        expected = 4 * len({row.output for row in start.select})
        assert start.expected == expected < start.bound
        start.tuner.compile(start.judge, start.learn, start.select)
    assert server.requests == expected


def test_an_estimate_that_is_interrupted_leaves_optunas_messages_as_they_were(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(optuna.study.Study, "optimize", interrupted)
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.INFO)
    try:
        with serve(own_axes) as server, dspy.context(lm=server.lm()), pytest.raises(KeyboardInterrupt):
            _ = LEARNED["tuned"](planted_rows(sources=12), TASK, 0).expected
        assert optuna.logging.get_verbosity() == optuna.logging.INFO
    finally:
        optuna.logging.set_verbosity(before)


def able(prompt):
    """A judge that sees the planted quality, and an instruction of its own for every prompt that asks for one."""
    found = scripted(prompt)
    if "proposed_instruction" in found:
        found["proposed_instruction"] += f" Variant {content_hash(prompt)}."
    if "score" in found:
        words = prompt.rsplit("[[ ## output ## ]]", 1)[-1].split("«end")[0].split()
        padding = words.count("indeed")
        found["score"] = str(round(5 - 0.25 * (15 - (len(words) - padding)) - 0.2 * padding))
    return found


def test_a_search_by_mipro_is_expected_between_one_that_finds_no_demonstrations_and_one_that_does():
    found = []
    optuna.logging.set_verbosity(optuna.logging.INFO)  # which MIPROv2 changes, and an estimate does not
    for answer in (own_axes, able):  # the first judges by length, and writes the same instruction every time
        with serve(answer) as server, dspy.context(lm=server.lm()):
            start = LEARNED["tuned"](planted_rows(sources=12, seed=1), TASK, 0)
            expected = start.expected
            assert server.requests == 0
            assert found or optuna.logging.get_verbosity() == optuna.logging.INFO
            start.tuner.compile(start.judge, start.learn, start.select)
        found.append((server.requests, expected, start.bound))
    (least, expected, bound), (most, same, _) = found
    assert least < expected == same < most < bound


def test_a_search_within_a_search_of_its_thread_does_not_wait_for_itself(capsys):
    def nested():
        with quiet(False), quiet(False):
            sys.stdout.write("of an optimiser's work")

    thread = threading.Thread(target=nested, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert capsys.readouterr().out == ""
