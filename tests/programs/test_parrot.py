"""The parrot: marks what was marked in other outputs, wherever the same text stands."""

from __future__ import annotations

import dspy
import pytest

import metricsmith
from histories import SCALE, annotator, error, history, past
from metricsmith.datasets.history import History
from metricsmith.errors import DataError, JudgementFailed, OptionError, StateError
from metricsmith.metric import make_row
from metricsmith.mqm import MQMWeights
from metricsmith.optimizers.specialist import Specialist
from metricsmith.programs.judges.parrot import Parrot
from metricsmith.programs.specialist.choosing import ExamplePolicy
from metricsmith.programs.specialist.examples import judged
from metricsmith.records import ErrorSpan, Status
from metricsmith.saving import write_state

OUTPUT = "das Haus und das Haus"
OTHER = "ein Haus, das steht"
MARKS = (
    error("Haus", OTHER),  # stands twice in OUTPUT, at 4 and 17, and at neither place where it stood here
    error("steht", OTHER),  # does not stand there
    error("das", OTHER, "minor"),  # at 0 and 13
    ErrorSpan("major", "accuracy/omission", 0, 1, "s", side="source"),
    ErrorSpan("minor", "accuracy/omission", 3, 3, ""),
)
PAST = History(
    (past("s1", "A", "r1", OTHER, MARKS), past("s1", "B", "r1", OUTPUT, ()), past("s1", "B", "r2", OUTPUT, ())),
    "two systems",
)
ROW = make_row(OUTPUT, input="s1", system="B", rater="r1")


def parrot(policy=None, of=PAST, **options):
    return Specialist(policy or ExamplePolicy()).compile(Parrot(**options), of)


@pytest.mark.parametrize(
    ("occurrences", "starts", "raw"),
    # all: twice a major error (5) and a minor one (1); first: each once
    [("all", [4, 17, 0, 13], -12.0), ("first", [4, 0], -6.0)],
)
def test_texts_of_the_examples_are_marked_wherever_they_stand(occurrences, starts, raw):
    (judgement,) = parrot(occurrences=occurrences).judge_batch([ROW])
    assert [span.start for span in judgement.spans] == starts
    assert {OUTPUT[span.start : span.end] for span in judgement.spans} == {"Haus", "das"}
    assert {span.category for span in judgement.spans} == {"accuracy/mistranslation"}
    assert (judgement.metric, judgement.raw, judgement.score) == (f"parrot_{occurrences}", raw, 5 / (5 - raw))
    assert judgement.feedback == f"{len(starts)} marked errors of other outputs stand in this one"


def test_it_sees_what_a_judge_with_the_same_policy_sees():
    one = history()
    for source in ("same", "shuffled", "fixed", "augmented"):
        policy = ExamplePolicy(source, "any", max_examples=2)
        both = [Specialist(policy).compile(judge, one) for judge in (Parrot(), annotator())]
        for row in one.rows():
            seen = [judge.row_examples.of(judged(row)).choice for judge in both]
            assert seen[0] == seen[1]


def test_own_errors_are_never_copied():
    errors = (error("Haus", OUTPUT),)
    one = History((past("s1", "A", "r1", OTHER, ()), past("s1", "B", "r1", OUTPUT, errors)), "own")
    (judgement,) = parrot(of=one).judge_batch([ROW])
    assert (judgement.spans, judgement.raw, judgement.score) == ((), 0.0, 1.0)


def test_weights_and_name_are_its_settings():
    made = parrot(weights=MQMWeights(7, 3, 2), name="echo")
    assert made.judge_batch([ROW])[0].raw == -(2 * 3 + 2 * 2)
    assert (made.name, made.output.name, made.output.high) == ("echo", "echo", 0.0)
    assert parrot().output.half == 5.0


def test_a_row_without_examples_is_skipped_with_the_reason():
    made = parrot()
    unknown, lone = made.judge_batch([make_row("x", input="s9"), make_row(OTHER, input="s1", system="A", rater="r1")])
    assert (unknown.status, unknown.raw, unknown.spans) == (Status.SKIPPED, None, ())
    assert "no rating of the source 's9'" in unknown.error
    assert lone.ok  # B's rating by r1
    with pytest.raises(JudgementFailed, match="no rating of the source 's9'"):
        made(output="x", input="s9")
    silent = parrot(ExamplePolicy("none")).judge_batch([ROW])[0]
    assert (silent.raw, silent.spans) == (0.0, ())


def test_what_it_cannot_repeat_is_refused():
    with pytest.raises(OptionError, match="parrot_all has no history"):
        Parrot().judge_batch([ROW])
    with pytest.raises(OptionError, match=r"unknown occurrences='al' \(did you mean 'all'\?\)"):
        Parrot(occurrences="al")
    numbers = History(tuple(past("s1", s, "r1", f"out {s}", None, -1.0) for s in "AB"), "numbers", SCALE)
    with pytest.raises(DataError, match="has ratings without marked errors, which parrot_all is to be shown"):
        parrot(of=numbers)


def test_it_is_a_metric_and_a_program():
    made = parrot()
    table = metricsmith.score([made], [ROW], progress=False)
    assert table.column(0)[0].raw == -12.0
    assert len(table.column(0)[0].spans) == 4
    prediction = made(output=OUTPUT, input="s1", system="B", rater="r1")
    assert (prediction.raw, len(prediction.spans)) == (-12.0, 4)
    assert made(ROW, dspy.Prediction(output=OUTPUT)).score == pytest.approx(5 / 17)


def test_it_becomes_one_file(tmp_path):
    made = parrot(occurrences="first", weights=MQMWeights(7, 3, 2), name="echo")
    made.save(tmp_path / "parrot.json")
    again = metricsmith.load(tmp_path / "parrot.json")
    assert isinstance(again, Parrot)
    assert again.fingerprint() == made.fingerprint() != Parrot(occurrences="first").fingerprint()
    assert again.judge_batch([ROW]) == made.judge_batch([ROW])
    bare = Parrot()
    write_state(bare.to_state(), tmp_path / "bare.json")
    assert metricsmith.load(tmp_path / "bare.json").row_examples is None
    state = made.to_state()
    write_state({**state, "settings": {**state["settings"], "occurrences": "last"}}, tmp_path / "odd.json")
    with pytest.raises(StateError, match=r"settings\.occurrences: not allowed is 'last'"):
        metricsmith.load(tmp_path / "odd.json")


def test_what_changes_it_changes_its_fingerprint():
    others = [
        parrot(), parrot(occurrences="first"), parrot(ExamplePolicy(seed=1)), parrot(ExamplePolicy(rater="any")),
        parrot(of=history()), parrot(weights=MQMWeights.gemba()), Parrot(),
    ]  # fmt: skip
    assert len({other.fingerprint() for other in others}) == len(others)
    assert parrot().fingerprint() == others[0].fingerprint()
