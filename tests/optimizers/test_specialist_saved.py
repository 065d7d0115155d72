"""Specialists as files and as DSPy's states: the history travels as data, and a file is checked as a whole."""

from __future__ import annotations

import gc
import json
import weakref
from dataclasses import replace

import dspy
import pytest
from dspy.utils import DummyLM

import metricsmith
from histories import OUTPUTS, SMALL, annotator, assessment, history, specialist
from metricsmith.errors import LeakedExample, StateError
from metricsmith.metric import make_row
from metricsmith.optimizers.specialist import examples_of, specialised
from metricsmith.programs import kinds
from metricsmith.programs.judges.mqm import MQMJudge
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.kinds import check_file
from metricsmith.programs.loading import from_state
from metricsmith.programs.specialist.choosing import ExamplePolicy
from metricsmith.programs.state import write_state
from metricsmith.records import Status

ROW = make_row("das Haus da", input="s1", system="B", rater="r1")


@pytest.mark.parametrize(
    "judge", [annotator(), assessment(), MQMJudge.of(annotator(), runs=3), Repeated(assessment(), 2, "mean")]
)
def test_it_is_one_file(tmp_path, judge):
    made = specialist(judge, rater="other", max_examples=2, seed=3)
    made.save(tmp_path / "judge.json")
    again = metricsmith.load(tmp_path / "judge.json")
    assert type(again) is type(judge)
    assert again.fingerprint() == made.fingerprint()
    assert examples_of(again).policy == ExamplePolicy(rater="other", max_examples=2, seed=3)
    inner = [one.judge if isinstance(one, Repeated) else one for one in (made, again)]
    assert inner[1].messages(ROW) == inner[0].messages(ROW)
    assert again.to_state() == made.to_state()


def test_copies_share_the_history(tmp_path):
    made = specialist()
    copy = made.deepcopy()
    assert copy.row_examples.history is made.row_examples.history is SMALL
    assert copy.messages(ROW) == made.messages(ROW)
    assert made.reset_copy().messages(ROW) == made.messages(ROW)


class Program(dspy.Module):
    """A program of somebody who uses a judge inside."""

    def __init__(self, judge):
        super().__init__()
        self.inner = judge
        self.answer = dspy.Predict("question -> answer")


def test_dspy_s_own_state_keeps_the_history(tmp_path):
    made = Program(specialist(seed=5))
    made.save(tmp_path / "program.json")
    for state in (made.dump_state(), json.loads(json.dumps(made.dump_state()))):
        other = Program(annotator())
        other.load_state(state)
        assert other.inner.messages(ROW) == made.inner.messages(ROW)
        assert other.inner.fingerprint() == made.inner.fingerprint()
    read = Program(annotator())
    read.load(tmp_path / "program.json")
    assert read.inner.messages(ROW) == made.inner.messages(ROW)


def test_another_state_brings_another_history():
    """Demonstrations that were made for the history before must not be found again."""
    one, two = specialist(of=history()), specialist(of=history(OUTPUTS | {"s1": {"A": "ein Haus", "B": "das Haus da"}}))
    before = weakref.ref(one.row_examples.history)
    one.messages(ROW)
    one.load_state(two.dump_state())
    assert one.messages(ROW) == two.messages(ROW)
    one.load_state(specialist(seed=1).dump_state())
    assert one.messages(ROW) == specialist(seed=1).messages(ROW)
    gc.collect()
    assert before() is None


def damaged(change):
    state = json.loads(json.dumps(specialist().to_state()))
    change(state["state"]["settings"]["row_examples"])
    return state


SPAN = {"severity": "major", "category": "c", "start": 0, "end": 99, "text": "x", "side": "target", "description": ""}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda e: e["history"]["ratings"].clear(), r"history\.ratings: a list of 0 is not allowed"),
        (lambda e: e["history"]["ratings"][0].update(output=99), "rests on a text that the history does not hold"),
        (lambda e: e["history"]["ratings"][0].update(output=-1), r"ratings\[0\]\.output: -1 is not allowed"),
        (lambda e: e["history"]["ratings"][0].update(rating=-99), "is not on the scale -25 to 0"),
        (lambda e: e["history"]["ratings"][0].update(rating=True), r"ratings\[0\]\.rating: True is not allowed"),
        (lambda e: e["history"]["ratings"][0].update(spans=[SPAN]), "marks 0:99 in a target of 8 characters"),
        (lambda e: e["history"]["ratings"][0].update(spans=[SPAN | {"side": "left"}]), "not allowed is 'left'"),
        (lambda e: e["history"]["ratings"][0].update(model="m"), r"ratings\[0\]\.model: not allowed"),
        (lambda e: e["history"]["ratings"][0].pop("rater"), r"ratings\[0\]\.rater: is missing"),
        (lambda e: e["history"].update(scale={"low": 1, "high": 0, "step": None, "higher_is_better": True}), "scale"),
        (lambda e: e["history"].update(kind="bank"), r"history\.kind: not allowed is 'bank'"),
        (lambda e: e.update(history=5), "an object with name, scale, texts, ratings is"),
        (lambda e: e["history"]["texts"].__setitem__(0, "<<CUSTOM-TYPE-x"), "not allowed is <<CUSTOM-TYPE-"),
        (lambda e: e["policy"].update(source="sam"), r"policy\.source: not allowed is 'sam' \(did you mean 'same'"),
        (lambda e: e["policy"].update(max_examples=0), r"policy\.max_examples: 0 is not allowed"),
        (lambda e: e["policy"].update(lm="m"), r"policy\.lm: not allowed"),
        (lambda e: e.update(joined={"A": 3}), r"joined\.A: 3 is no text"),
        (lambda e: e.update(filtered=True), "filtered: not allowed; known are policy, joined, history"),
    ],
)
def test_a_damaged_file_is_refused_with_the_place(tmp_path, change, words):
    write_state(damaged(change), tmp_path / "judge.json")
    with pytest.raises(StateError, match=words) as caught:
        metricsmith.load(tmp_path / "judge.json")
    assert "row_examples" in str(caught.value)


def test_a_file_that_hides_a_twin_does_not_get_it_shown(tmp_path):
    write_state(damaged(lambda e: (e.update(joined={}), e["policy"].update(same_output="keep"))), tmp_path / "j.json")
    judge = metricsmith.load(tmp_path / "j.json")
    with pytest.raises(LeakedExample, match="it rates 'A', which is the row's system or equals it"):
        judge.messages(make_row("zwei Hunde", input="s2", system="A", rater="r1"))


def test_a_rating_in_a_file_that_cannot_be_shown_is_no_crash(tmp_path):
    """Compiling would have refused it; a file is checked by its form alone."""
    state = damaged(lambda e: [one.update(spans=None) for one in e["history"]["ratings"]])
    with dspy.context(lm=DummyLM([])):
        (judgement,) = from_state(state).judge_batch([ROW])
    assert judgement.status is Status.SKIPPED
    assert "no marked errors under 'spans'" in judgement.error


def test_histories_beyond_the_limits_are_refused(tmp_path, monkeypatch):
    made = specialist()
    content = {"schema_version": 1, "versions": {}, "hash": "", **json.loads(json.dumps(made.to_state()))}
    check_file(content, 309_000_000)  # 10 MB of a judge and 300 MB of a history
    with pytest.raises(StateError, match="311,000,000 bytes are not allowed for the kind 'mqm_annotator'; 310 MB are"):
        check_file(content, 311_000_000)
    plain = {"schema_version": 1, "versions": {}, "hash": "", **json.loads(json.dumps(annotator().to_state()))}
    with pytest.raises(StateError, match="11,000,000 bytes are not allowed for the kind 'mqm_annotator'; 10 MB are"):
        check_file(plain, 11_000_000)
    monkeypatch.setattr(kinds, "MARKED", 10)
    made.save(tmp_path / "judge.json")
    with pytest.raises(StateError, match=r"history\.ratings: 24 marked errors are not allowed; 10 are"):
        metricsmith.load(tmp_path / "judge.json")


def test_the_limits_are_ten_times_the_largest_collection():
    # WMT20 to WMT23: below 60,000 ratings, 150,000 errors and 30 MB.
    assert (kinds.RATINGS, kinds.MARKED, kinds.HISTORY_MEGABYTES) >= (600_000, 1_500_000, 300)


def test_a_history_is_no_metric(tmp_path):
    write_state(SMALL.to_state(), tmp_path / "history.json")
    with pytest.raises(StateError, match="a 'history' is no metric"):
        metricsmith.load(tmp_path / "history.json")


def test_examples_that_read_the_gold_cannot_be_loaded(tmp_path):
    made = specialised(annotator(), replace(examples_of(specialist()), filtered=True))
    made.save(tmp_path / "judge.json")
    with pytest.raises(StateError, match="filtered: not allowed"):
        metricsmith.load(tmp_path / "judge.json")
