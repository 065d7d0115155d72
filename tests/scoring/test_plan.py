"""The requests of a plan: every metric and repetition once, whatever rests on it, and nothing that is known."""

from __future__ import annotations

from types import SimpleNamespace

import dspy
import numpy as np
import pytest

from metricsmith.bank.catalogue import default_bank
from metricsmith.errors import NeedsError, OptionError
from metricsmith.metric import content_key, make_row
from metricsmith.programs.judges.choice import ChoiceJudge
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.panel import Panel
from metricsmith.records import Judgement, MetricCard, Output, Status, Usage
from metricsmith.scoring import score
from metricsmith.scoring.plan import as_metric, scoring_plan
from metricsmith.scoring.results import store_key
from metricsmith.testing import GivenModel
from stubs import Scripted

ROWS = [make_row(f"text {i}", id=str(i)) for i in range(5)]
JUDGE = CriterionJudge(criterion="Clear", meaning="Good.", task="Write.")


class Total:
    """A composite: the sum of its parts, each in the repetition asked for; undefined where one is missing."""

    def __init__(self, *parts, name="total"):
        self.members, self.name = parts, name
        self.output = Output(name, low=None, high=None, half=1.0)
        self.card = MetricCard(name, "composite", "", "", (self.output,), cost="model")

    def parts(self, run):
        return [(part, run) for part in self.members]

    def combined(self, values):
        return values.sum(axis=1)

    def verdict(self, parts, run):
        usage = sum((part.usage for part in parts), Usage())
        failed = next((part for part in parts if not part.ok), None)
        if failed is not None:
            return Judgement(self.name, status=failed.status, error=failed.error, run=run, usage=usage)
        total = sum(part.raw for part in parts)
        return Judgement(self.name, total, self.output.score(total), run=run, usage=usage)

    def fingerprint(self):
        return "total"

    def judge_batch(self, rows, *, run=0):
        raise AssertionError("the parts are asked, not the whole")

    def as_metric(self, *, success_at=0.5, **fields):
        raise NotImplementedError

    def to_state(self):
        return {}


def test_a_judge_makes_its_card_once_for_a_plan():
    made = []

    class Counted(CriterionJudge):
        @property
        def card(self):
            made.append(self.name)
            return super().card

    with dspy.context(lm=dspy.LM("openai/m", temperature=1.0)):
        scoring_plan([Counted(criterion="Clear", meaning="Good.", task="Write.")], runs=1)
    assert made == ["clear"]


def test_what_several_metrics_rest_on_is_asked_once():
    one, two = Scripted(name="one"), Scripted(lambda row, run: 100.0, name="two")
    inner = Total(one, two, name="inner")
    table = score([one, inner, Total(inner, one, name="outer"), one], ROWS, progress=False)
    assert sorted(one.asked) == sorted((str(i), 0) for i in range(5))
    np.testing.assert_array_equal(table.values[3, :, 0], [3, 103, 106, 3])
    assert table.usage.requests == 10
    assert [line.usage.requests for line in table.coverage()] == [5, 5, 0, 0]  # shared work stands with the first


def test_a_composite_with_a_missing_part_has_the_parts_status():
    one = Scripted(lambda row, run: Status.REFUSED if row.id == "2" else 1.0, name="one")
    table = score([Total(one, Scripted(name="two"))], ROWS, max_failure_rate=1, progress=False)
    assert table.counts()["refused"] == 1
    assert table.judgement(2, 0).status is Status.REFUSED
    assert np.isnan(table.values[2, 0, 0])


def test_rows_of_equal_texts_are_asked_about_once_and_cost_once(tmp_path):
    rows = [*ROWS, make_row("text 1", id="again"), make_row("text 1", id="and again", group="g")]
    for store in (None, tmp_path / "s.db"):
        judge = Scripted(lambda row, run: float(row.output[-1]))
        table = score([judge], rows, store=store, progress=False)
        assert len(judge.asked) == 5
        np.testing.assert_array_equal(table.values[5:, 0, 0], [1, 1])
        assert table.usage.requests == 5 == table.to_pandas().requests.sum()
        assert table.judgement(6, 0).feedback == "said of 1"


def test_a_failed_judgement_is_shared_by_equal_rows_too():
    rows = [make_row("same", id="1"), make_row("same", id="2")]
    table = score([Scripted(lambda row, run: Status.REFUSED)], rows, max_failure_rate=1, progress=False)
    assert table.counts()["refused"] == 2


def test_repetitions_of_what_is_computed_here_are_computed_once():
    rows = [make_row("a b c", references=["a b d"], id="1")]
    table = score([default_bank().get("rouge1_r"), Scripted()], rows, runs=3, progress=False)
    assert len(set(table.values[0, 0])) == 1
    chart = scoring_plan([default_bank().get("rouge1_r"), Scripted()], 3)
    assert len(chart.metric_runs) == 4


def test_the_slots_of_a_judge_know_the_model_and_its_sampling():
    def fingerprint(**settings):
        with dspy.context(lm=dspy.LM("openai/m", **settings)):
            return scoring_plan([JUDGE]).metric_runs[0].fingerprint

    assert fingerprint(temperature=0.2) == fingerprint(temperature=0.2)
    assert fingerprint(temperature=0.2) != fingerprint(temperature=0.3)


def test_a_judges_own_model_counts_not_the_one_in_force():
    own = JUDGE.deepcopy()
    own.set_lm(dspy.LM("openai/own", temperature=0.5))
    keys = []
    for outer in (None, dspy.LM("openai/a"), dspy.LM("openai/b")):
        with dspy.context(lm=outer):
            keys.append(scoring_plan([own]).metric_runs[0].fingerprint)
    assert len(set(keys)) == 1


@pytest.mark.parametrize("temperature", [None, 0.0, 0.15])
def test_repetitions_out_of_one_frozen_sample_are_refused(temperature):
    with dspy.context(lm=dspy.LM("openai/m", temperature=temperature)):
        with pytest.raises(OptionError, match=r"temperature=1\.0"):
            scoring_plan([JUDGE], runs=2)
        scoring_plan([JUDGE], runs=1)


def test_a_judge_without_a_model_is_refused_before_any_work():
    free = Scripted()
    with dspy.context(lm=None), pytest.raises(NeedsError, match=r"clear needs a language model .* lm=dspy\.LM"):
        score([free, JUDGE], ROWS, progress=False)
    assert free.asked == []


@pytest.mark.parametrize("runs", [0, -1, 1.5, True, "2"])
def test_only_a_whole_number_of_repetitions_has_a_meaning(runs):
    with pytest.raises(OptionError, match="whole number from 1"):
        scoring_plan([Scripted()], runs)


@pytest.mark.parametrize(
    ("things", "says"),
    [
        (["rouge1_x"], r"no metric 'rouge1_x' in the bank \(did you mean 'rouge1_"),
        ([3], r"default_bank\(\)\.get"),
        ([Scripted], r"is a class; make a metric of it first: Scripted\(\.\.\.\)"),
        ("rouge1_x", r"no metric 'rouge1_x' in the bank \(did you mean 'rouge1_"),
        ("rouge", r"is a family of \d+ metrics: name one of its outputs"),
    ],
)
def test_what_cannot_judge_is_refused(things, says):
    with pytest.raises(OptionError, match=says):
        scoring_plan(things)


def test_keys_follow_texts_and_id_and_nothing_else():
    row = make_row("out", input="in", references=["r1", "r2"], context="c", id="7", rating=3, columns={"x": 1.0})
    same = make_row("out", input="in", references=["r1", "r2"], context="c", id="7", rating=5)
    assert content_key(row) == content_key(same)
    others = [
        make_row("out", input="in", references=["r2", "r1"], context="c", id="7"),
        make_row("out", input="in r1", references=["r2"], context="c", id="7"),
        make_row("in", input="out", references=["r1", "r2"], context="c", id="7"),
        make_row("out", input="in", references=["r1", "r2"], id="7"),
    ]
    assert len({content_key(other) for other in [row, *others]}) == 5
    assert store_key(row, "k") == "k 7"
    assert store_key(make_row("out"), "k") == "k"
    store_key(SimpleNamespace(get=lambda name: "\ud800"), "k").encode("utf-8")


def test_judges_that_differ_in_their_own_model_alone_are_each_asked():
    def model(number):
        return GivenModel(lambda prompt: {"reasoning": "because", "score": number})

    with model(2) as first, model(5) as second:
        here, there = JUDGE.deepcopy(), JUDGE.deepcopy()
        here.set_lm(first.lm(temperature=1.0))
        there.set_lm(second.lm(temperature=0.5))
        table = score([here, there], ROWS[:1], progress=False)
        assert (table.run().tolist(), first.requests, second.requests) == ([[2.0, 5.0]], 1, 1)


def test_what_gives_several_numbers_is_no_single_metric():
    for value in (Panel([JUDGE]), ChoiceJudge(["yes", "no"], "Is it?", "Write.", "yes").as_metric()):
        with pytest.raises(OptionError, match=r"gives several numbers at once: take one of its members\(\)"):
            as_metric(value)
