"""Members of a panel: their cards and fingerprints, and what a saved panel brings back."""

from __future__ import annotations

import json

import dspy
import numpy as np
import pytest
from dspy.utils import DummyLM

import metricsmith
from metricsmith.errors import StateError
from metricsmith.metric import Asker, Metric, make_row
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.panel import Panel, PanelMember
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.loading import from_state
from metricsmith.records import Scale, Task
from metricsmith.stats.regression import LinearCombination
from metricsmith.stats.regression.combination import ZScore
from metricsmith.testing import GivenModel
from panels import TASK, items, judges, panel, panelled

ROW = make_row("The road is shut.", input="Notice of closure.", references=["Shut."])
COLUMNS = ["plain_words", "complete_facts_rubric", "polite_tone"]


def rows(count):
    return [make_row(f"Words {'word ' * number}{number}.", input=f"source {number}") for number in range(count)]


def test_members_are_metrics_that_name_their_asker():
    made = panel()
    members = made.members()
    assert isinstance(made, Asker)
    assert all(isinstance(member, Metric) and member.asker is made for member in members)
    assert [member.name for member in members] == COLUMNS
    assert [(member.output.name, member.output.low, member.output.high) for member in members] == [
        (name, 1, 5) for name in COLUMNS
    ]


def test_a_members_card_says_that_the_whole_panel_is_asked():
    card = panel().members()[1].card
    assert (card.kind, card.cost, card.needs) == ("panel_member", "model", ("model",))
    assert "2 other criteria" in card.summary
    assert any("all 3 criteria" in limit for limit in card.limits)
    assert card.related == ("plain_words", "polite_tone")


def test_a_members_fingerprint_covers_the_whole_panel_and_itself():
    members = panel().members()
    prints = [member.fingerprint() for member in members]
    assert len({*prints, panel().fingerprint()}) == 4
    assert prints == [member.fingerprint() for member in panel().members()]
    smaller = Panel(judges()[:2]).members()
    assert smaller[0].fingerprint() != prints[0]
    other = Panel(judges(), "Another task.").members()
    assert other[0].fingerprint() != prints[0]
    turned = Panel(judges()[::-1]).members()
    assert turned[2].fingerprint() != prints[0]
    taught = panel()
    taught.judge.signature = taught.judge.signature.with_instructions("Look closely.")
    assert taught.members()[0].fingerprint() != prints[0]


def demonstrated():
    """A panel with an instruction and a demonstration of its own, as an optimiser leaves it."""
    rows = [dspy.Example(output="o", input="i").with_inputs("output", "input")]
    with dspy.context(lm=DummyLM([{"ratings": json.dumps(items(2, 3, 4))}] * 4)):
        teacher = dspy.BootstrapFewShot(metric=lambda *a, **k: True, max_bootstrapped_demos=1)
        made = teacher.compile(panel(), trainset=rows)
    made.judge.signature = made.judge.signature.with_instructions("Look closely.")
    assert made.judge.demos
    return made


def test_a_member_survives_its_state_as_json():
    for made in (panel(), demonstrated()):
        member = made.members()[1]
        state = json.loads(json.dumps(member.to_state()))
        again = from_state(state)
        assert isinstance(again, PanelMember)
        assert (again.name, again.fingerprint()) == (member.name, member.fingerprint())
        assert again.asker.messages(ROW) == made.messages(ROW)
        assert again.card == member.card


def test_state_holds_no_model_and_no_key():
    made = panel()
    made.set_lm(dspy.LM("openai/x", api_key="sk-secret"))
    state = made.members()[0].to_state()
    assert "secret" not in json.dumps(state)
    assert state["panel"].pop("made_with") == {"model": "openai/x"}  # provenance, which nobody follows
    assert "openai/x" not in json.dumps(state)


class Program(dspy.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, **texts):
        return self.part(**texts)


def test_dspys_own_save_carries_criteria_inside_another_program(tmp_path):
    Program(panel()).save(tmp_path / "p.json")
    loaded = Program(Panel([CriterionJudge(criterion="Other", meaning="Else.", task="Else.")]))
    loaded.load(tmp_path / "p.json")
    assert loaded.part.fingerprint() == panel().fingerprint()
    assert loaded.part.messages(ROW) == panel().messages(ROW)


def test_a_member_that_a_loaded_panel_does_not_have_is_an_error_that_names_the_members():
    made = panel()
    member = made.members()[0]
    made.load_state(Panel(judges()[1:]).dump_state())
    with pytest.raises(StateError, match="no member 'plain_words'; it has complete_facts_rubric, polite_tone"):
        member.card  # noqa: B018


def test_a_saved_panel_with_an_unknown_kind_of_judge_is_refused():
    state = panel().members()[0].to_state()
    state["panel"]["state"]["settings"]["judges"][0]["kind"] = "oracle"
    with pytest.raises(StateError, match="'oracle'; this version knows criterion_judge, rubric_judge"):
        from_state(state)


def induced(members):
    column = ZScore.fit(np.array([1.0, 3.0, 5.0]))
    names = tuple(member.name for member in members)
    count = len(names)
    return InducedMetric(
        components=members,
        combination=LinearCombination(names, tuple(range(count)), (column,) * count, (0.5,) * count, 3.0),
        task=Task(TASK, "rating", Scale(1, 5)),
        best=[0.0] * count,
    )


def test_an_induced_metric_of_members_asks_once_a_row_and_again_after_loading(tmp_path):
    made = induced([panel().members()[0], *panel().members()[2:]])
    made.save(tmp_path / "metric.json")
    loaded = metricsmith.load(tmp_path / "metric.json")
    with GivenModel(panelled) as server, dspy.context(lm=server.lm()):
        before = made.judge_batch(rows(5))
        assert server.requests == 5
        after = loaded.judge_batch(rows(5))
        assert server.requests == 10
    assert [judgement.raw for judgement in before] == [judgement.raw for judgement in after]
    assert loaded.components[0].asker is loaded.components[1].asker
    assert loaded.fingerprint() == made.fingerprint()


def test_a_member_asked_repeatedly_is_loaded_with_the_others_panel(tmp_path):
    members = panel().members()
    made = induced([Repeated(members[0], runs=2), members[1]])
    made.save(tmp_path / "metric.json")
    loaded = metricsmith.load(tmp_path / "metric.json")
    assert loaded.components[0].judge.asker is loaded.components[1].asker
