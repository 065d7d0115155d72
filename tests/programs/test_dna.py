"""DnA-Eval: dimensions with weights, from a task to one number."""

from __future__ import annotations

import asyncio
import json

import dspy
import numpy as np
import pytest
from dspy.utils import DummyLM
from hypothesis import given
from hypothesis import strategies as st

from loopback import scripted
from metricsmith.errors import JudgementFailed, OptionError, StateError
from metricsmith.metric import Composite, Metric, make_row
from metricsmith.model_calls.calls import model_call
from metricsmith.programs.generators.axes import DimensionsGenerator, weighted
from metricsmith.programs.judges.dna import DnAEval
from metricsmith.programs.loading import from_state, load
from metricsmith.programs.state import write_state
from metricsmith.records import Status
from metricsmith.scoring import estimate, score
from metricsmith.signatures.generation import Dimension
from metricsmith.testing import GivenModel


def dimensions(*weights):
    names = ("Facts", "Words", "Tone", "Order")
    return [Dimension(name=name, meaning=f"Good {name}.", weight=w) for name, w in zip(names, weights, strict=False)]


def dna(*weights):
    return DnAEval(dimensions(*(weights or (50, 30, 20))), task="Rewrite notices.")


def by_criterion(**scores):
    """Answers with the score planned for the criterion that is asked about."""

    def answer(prompt):
        asked = prompt.rsplit("[[ ## criterion ## ]]", 1)[-1].split("[[ ## ", 1)[0]
        name = next(name for name in scores if name in asked)
        return {"reasoning": f"{name} is so.", "score": str(scores[name])}

    return answer


def judged(judge, **scores):
    with GivenModel(by_criterion(**scores)) as server, dspy.context(lm=server.lm()):
        return judge.judge_batch([make_row("text")])[0], server.requests


def test_it_is_a_metric_whose_parts_the_engine_judges():
    assert isinstance(dna(), Metric)
    assert isinstance(dna(), Composite)


def test_the_number_is_the_weighted_mean():
    judgement, requests = judged(dna(), Facts=5, Words=2, Tone=1)
    assert judgement.raw == 3.3  # .5 * 5 + .3 * 2 + .2 * 1
    assert judgement.score == pytest.approx(0.575)  # (3.3 - 1) / 4
    assert (requests, judgement.usage.requests) == (3, 3)
    # what costs most stands first: .3 * 3 = .9 for Words, .2 * 4 = .8 for Tone, nothing for Facts
    assert [line.split(" ")[0] for line in judgement.feedback.splitlines()] == ["Words", "Tone", "Facts"]
    assert "Words (30%) = 2: Words is so." in judgement.feedback


def test_a_dimension_without_a_number_fails_the_judgement_and_is_named():
    judgement, _ = judged(dna(), Facts=5, Words=9, Tone=1)
    assert (judgement.raw, judgement.score, judgement.status) == (None, None, Status.OUT_OF_RANGE)
    assert "words has no number" in judgement.error
    with GivenModel(by_criterion(Facts=5, Words=9, Tone=1)) as server, dspy.context(lm=server.lm()):
        with pytest.raises(JudgementFailed):
            dna()(output="text")


def test_sync_async_and_batch_agree():
    with GivenModel(by_criterion(Facts=5, Words=2, Tone=1)) as server, dspy.context(lm=server.lm()):
        assert dna()(output="text").raw == asyncio.run(dna().acall(output="text")).raw == 3.3
        assert dna().as_metric()(dspy.Example(output="text")).score == pytest.approx(0.575)


@given(st.lists(st.tuples(st.integers(1, 5), st.floats(0.01, 100)), min_size=1, max_size=4))
def test_the_mean_stays_between_the_dimensions_whatever_the_weights(parts):
    scores = [score for score, _ in parts]
    (value,) = dna(*(weight for _, weight in parts)).combined(np.array([scores], dtype=float))
    assert min(scores) - 1e-9 <= value <= max(scores) + 1e-9


def test_equal_means_tie_and_missing_numbers_are_missing():
    judge = dna(40, 30, 30)
    values = judge.combined(np.array([[4.0, 1, 2], [4, 2, 1], [1, 5, 2], [np.nan, 2, 2], [np.inf, 2, 2]]))
    assert values[0] == values[1] == values[2] == 2.5
    assert np.isnan(values[3:]).all()


def test_the_estimate_is_what_the_server_sees():
    rows = [make_row(f"text {number}") for number in range(4)]
    with GivenModel(scripted) as server:
        expected = estimate([dna()], rows, lm=server.lm())
        table = score([dna()], rows, lm=server.lm(), progress=False)
        assert expected.requests == server.requests == table.usage.requests == 12
    assert np.isfinite(table.run()).all()


def test_state_round_trips_through_one_file_with_tuned_judges(tmp_path):
    judge = dna()
    judge.judges[1].judge.demos = [dspy.Example(output="x", reasoning="y", score=2)]
    judge.judges[0].judge.signature = judge.judges[0].judge.signature.with_instructions("New words.")
    judge.set_lm(dspy.LM("openai/x", api_key="secret-key"))
    write_state(judge.to_state(), tmp_path / "dna.json")
    again = load(tmp_path / "dna.json")
    assert again.to_state() == judge.to_state() == judge.deepcopy().to_state()
    assert again.fingerprint() == judge.fingerprint() != dna().fingerprint()
    assert "secret-key" not in json.dumps(judge.to_state())
    assert from_state(judge.to_state()).weights == (0.5, 0.3, 0.2)


def test_weights_and_dimensions_are_in_the_fingerprint():
    assert dna(50, 50).fingerprint() != dna(60, 40).fingerprint()
    assert dna(50, 50).fingerprint() == dna(1, 1).fingerprint()


def test_dspy_loads_weights_only_where_they_fit():
    judge = dna(50, 50)
    judge.settings.load_state(dna().settings.dump_state())
    with pytest.raises(StateError, match="weights for 3 dimensions, but there are 2"):
        judge.parts(0)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ([], "at least one dimension"),
        (dimensions(1, 0), "weight of 'Words' is 0; it must be above 0"),
        (dimensions(1, float("nan")), "is nan"),
        ([*dimensions(1), *dimensions(1)], "2 dimensions are called 'Facts'"),
    ],
)
def test_unusable_dimensions_are_refused(wrong, says):
    with pytest.raises(OptionError, match=says):
        DnAEval(wrong, task="Write.")


def proposed(*answers):
    lm = DummyLM([{"dimensions": json.dumps(answer)} for answer in answers])
    with dspy.context(lm=lm):
        return model_call(DimensionsGenerator(), task="Write.", rating="quality", count=2)


def plain(*pairs):
    return [{"name": name, "meaning": "m", "weight": weight} for name, weight in pairs]


def test_the_generator_keeps_as_many_as_asked_and_renormalises():
    call = proposed(plain(("Facts", 60), ("facts", 20), ("Tone", 20), ("Order", 20)))
    assert [(item.name, item.weight) for item in call.result().dimensions] == [("Facts", 0.75), ("Tone", 0.25)]


@pytest.mark.parametrize("wrong", [plain(("Facts", -5), ("Tone", 105)), plain(("Facts", 0)), []])
def test_an_unusable_proposal_is_shown_to_the_model_once_and_then_fails(wrong):
    call = proposed(wrong, wrong)
    assert (call.status, call.prediction) == (Status.UNPARSABLE, None)
    assert call.usage.requests == 2
    call = proposed(wrong, plain(("Facts", 10)))
    assert call.result().dimensions[0].weight == 1.0


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=4))
def test_weights_add_up_to_one(weights):
    assert sum(item.weight for item in weighted(dimensions(*weights), 4)) == pytest.approx(1)
