"""A repeated judge saved and loaded, and what its fingerprint covers."""

from __future__ import annotations

import json

import dspy
import pytest

from metricsmith.bank.catalogue import default_bank
from metricsmith.errors import StateError
from metricsmith.metric import make_row
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.loading import from_state, load
from metricsmith.programs.state import write_state
from metricsmith.stats.aggregation import OutlierRule, mean
from repeating import criterion


@pytest.mark.parametrize("outliers", [None, OutlierRule(1.5, "low", 1)])
def test_one_file_holds_it_all(tmp_path, outliers):
    repeated = Repeated(criterion(), 4, "mean", "own", outliers=outliers, min_runs=1)
    repeated.judge.judge.demos = [dspy.Example(output="x", reasoning="y", score=2)]
    write_state(repeated.to_state(), tmp_path / "metric.json")
    again = load(tmp_path / "metric.json")
    assert again.to_state() == repeated.to_state()
    assert again.fingerprint() == repeated.fingerprint()
    assert (again.name, again.runs, again.min_runs, again.outliers) == ("own", 4, 1, outliers)
    assert len(again.judge.judge.demos) == 1


def test_a_repeated_bank_metric_and_a_repeated_repetition_are_saved_too():
    for judge in (default_bank().get("rouge1_r"), Repeated(criterion(), 2, mean)):
        repeated = Repeated(judge, 3)
        assert from_state(json.loads(json.dumps(repeated.to_state()))).fingerprint() == repeated.fingerprint()


def test_dspys_save_and_load_carry_settings_and_judge_inside_any_program(tmp_path):
    class Program(dspy.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

    saved = Repeated(criterion(criterion="Kept facts"), 4, mean, outliers=OutlierRule(sided="low"))
    saved.judge.judge.signature = saved.judge.judge.signature.with_instructions("New words.")
    Program(saved).save(str(tmp_path / "program.json"))
    loaded = Program(Repeated(criterion()))
    loaded.load(str(tmp_path / "program.json"))
    assert loaded.inner.to_state() == saved.to_state()
    assert loaded.inner.fingerprint() == saved.fingerprint()
    assert len(loaded.inner.parts(0)) == 4


def test_dspys_load_onto_another_judge_is_noticed(tmp_path):
    bank = default_bank()
    saved, other = Repeated(bank.get("rouge1_r")), Repeated(bank.get("bleu"))
    saved.save(str(tmp_path / "state.json"))
    with pytest.raises(StateError, match="was built in another way"):
        other.load(str(tmp_path / "state.json"))
    other.load_state(saved.dump_state())
    with pytest.raises(StateError, match="repeats the judge 'rouge1_r', but this is 'bleu'"):
        other.judge_batch([make_row("a", references=["a"])])


def test_an_aggregate_that_this_version_does_not_know_is_refused():
    repeated = Repeated(criterion())
    state = repeated.to_state()
    state["settings"]["aggregate"] = "mode"
    with pytest.raises(StateError, match=r"settings\.aggregate: .*'mode'; this version knows rrwa, mean"):
        from_state(state)
    repeated.load_state({**repeated.dump_state(), "settings": state["settings"]})
    with pytest.raises(StateError, match="names the aggregate 'mode'; this version knows rrwa, mean"):
        repeated.parts(0)


def test_the_fingerprint_covers_whatever_changes_the_number_and_not_the_name():
    variants = [
        Repeated(criterion()),
        Repeated(criterion(meaning="Long.")),
        Repeated(criterion(), 9),
        Repeated(criterion(), aggregate=mean),
        Repeated(criterion(), outliers=None),
        *(Repeated(criterion(), outliers=OutlierRule(*rule)) for rule in ((3,), (2, "low"), (2, "both", 1))),
        Repeated(criterion(), min_runs=1),
    ]
    assert len({variant.fingerprint() for variant in variants}) == len(variants)
    assert Repeated(criterion(), name="own").fingerprint() == variants[0].fingerprint()
