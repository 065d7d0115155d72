"""The likely number of requests of a search, against what it sends."""

from __future__ import annotations

import dspy
import optuna
import pytest

from loopback import own_axes, scripted, serve
from metricsmith.metric import content_hash
from metricsmith.optimizers.learning_judges import LEARNED
from planted import TASK, planted_rows


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
