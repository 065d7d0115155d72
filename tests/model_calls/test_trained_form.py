"""The one form that a trained model knows: filled in one pass, and read exactly or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import dspy
import pytest

from loopback import serve
from metricsmith.errors import OptionError
from metricsmith.model_calls.adapters import in_form, messages_of, reading_exactly
from metricsmith.model_calls.calls import model_call, model_calls
from metricsmith.model_calls.models import form_identity
from metricsmith.model_calls.reading import UnreadableAnswer
from metricsmith.model_calls.trained_form import TrainedForm
from metricsmith.records import Status
from metricsmith.signatures.prometheus import ChooseByForm, GradeByForm

GOLDEN = json.loads((Path(__file__).resolve().parents[1] / "golden" / "prometheus_answers.json").read_text("utf-8"))
SIGNATURES = {"absolute": (GradeByForm, "score"), "relative": (ChooseByForm, "choice")}
# The answers that the published parser takes a grade from, and this project does not: guesses, in the end.
STRICTER = {
    "absolute": [
        "It is short. [RESULT] [4]", "It is short. [RESULT] 4/5", "It is short. [RESULT] 4 out of 5",
        "It is short. [RESULT]: 4", "It is short. [Result] 4", "It is short. [SCORE] 4", "It is short. Score: 4",
        "It is short. I give it a score of 4", "[RESULT] 4", "It is short. [RESULT] 04",
        "First [RESULT] 2, then [RESULT] 4", "It is short. [RESULT] 4 [RESULT] 4",
    ],
    "relative": [
        "A is shorter. [RESULT] a", "A is shorter. [Response A]", "A is shorter. [RESULT: A]",
        "A is shorter.\nResult: A", "[RESULT] A", "First [RESULT] B, then [RESULT] A",
        "A is shorter. [RESULT] Response A",
    ],
}  # fmt: skip
# Whole numbers that are read, and then are on no scale of five levels.
OFF_SCALE = ["It is short. [RESULT] 6", "It is short. [RESULT] 0"]


def read(answer, mode="absolute"):
    """The result in an answer, None where it cannot be read."""
    signature, result = SIGNATURES[mode]
    with reading_exactly(TrainedForm()):
        try:
            return dspy.settings.adapter.parse(signature, answer)[result]
        except UnreadableAnswer:
            return None


def test_the_published_parser_is_on_record_with_its_origin():
    assert len(GOLDEN["absolute"]) == 25
    assert "prometheus-eval 0.1.20" in GOLDEN["origin"]


@pytest.mark.parametrize("mode", SIGNATURES)
def test_an_answer_has_the_published_result_or_none(mode):
    stricter = []
    for case in GOLDEN[mode]:
        ours = read(case["answer"], mode)
        if ours != case["published"] and case["answer"] not in OFF_SCALE:
            assert ours is None, case
            stricter.append(case["answer"])
    assert stricter == STRICTER[mode]


def test_a_number_beyond_the_levels_is_read_for_the_judge_to_refuse():
    assert [read(answer) for answer in OFF_SCALE] == [6, 0]


FAULTS = [
    ("no result", "must stand in the answer once, and stands there 0 times"),
    ("a [RESULT] 4 b [RESULT] 4", "must stand in the answer once, and stands there 2 times"),
    ("a [Result] 2 b [RESULT] 4", "must stand in the answer once"),
    ("[RESULT] 4", "no feedback before"),
    ("###Feedback: [RESULT] 4", "no feedback before"),
    ("so [RESULT] 4.5", "must stand a whole number and nothing else"),
    ("so [RESULT] 4 as said", "must stand a whole number and nothing else"),
    ("so [RESULT] ٤", "must stand a whole number and nothing else"),
    ("so [RESULT] 44444", "must stand a whole number and nothing else"),
    ("so [RESULT]", "must stand a whole number and nothing else"),
    ("[[ ## reasoning ## ]]\nso\n[[ ## score ## ]]\n4", "must stand in the answer once"),
]


@pytest.mark.parametrize(("answer", "fault"), FAULTS)
def test_the_message_names_the_fault_and_shows_the_answers_end(answer, fault):
    with pytest.raises(UnreadableAnswer, match=fault) as raised:
        TrainedForm().parse(GradeByForm, answer)
    assert answer[-20:].split()[-1] in str(raised.value)


@pytest.mark.parametrize("label", ["", "Feedback: ", "###Feedback:\n"])
def test_the_feedback_is_kept_without_the_prompts_own_label(label):
    fields = TrainedForm().parse(GradeByForm, f"{label}Short.\n\nFeedback: none. [RESULT] (4)\n")
    assert fields == {"reasoning": "Short.\n\nFeedback: none.", "score": 4}


def test_a_reasoning_block_before_the_answer_is_taken_off():
    assert read("<think>[RESULT] 2</think>\nIt is short. [RESULT] 4") == 4


FILLED = {"system": "Grade.", "rubric": "{response}", "instruction": "{rules}", "reference_answer": "", "response": "r"}
FORM = "{rules}|{instruction}|{response}|{rubric}|{other}"


def test_gaps_are_filled_in_one_pass_so_that_no_text_fills_another():
    signature = GradeByForm.with_instructions("Do it.")
    shown = messages_of(signature, [], {**FILLED, "form": FORM}, TrainedForm())
    assert [message["role"] for message in shown] == ["system", "user"]
    assert shown[1]["content"] == "Do it.|{rules}|r|{response}|{other}"
    assert len(messages_of(signature, [], {**FILLED, "form": FORM, "system": ""}, TrainedForm())) == 1


def test_examples_are_refused_and_not_silently_left_out():
    with pytest.raises(OptionError, match="no place for examples, and there are 1"):
        messages_of(GradeByForm, [dspy.Example(response="r")], {**FILLED, "form": FORM}, TrainedForm())


class Both(dspy.Module):
    """A predictor in the user's form, and one in its own, in one call that is counted."""

    def __init__(self):
        super().__init__()
        self.first, self.second = dspy.Predict("output -> draft"), dspy.Predict(GradeByForm)

    def forward(self, output):
        draft = self.first(output=output).draft
        with reading_exactly(TrainedForm()):
            return self.second(**{**FILLED, "form": FORM, "response": draft})


def answer(prompt):
    return '{"draft": "d"}' if "JSON" in prompt else "so [RESULT] 4" if "|d|" in prompt else {"draft": "d"}


@pytest.mark.parametrize("adapter", [None, dspy.JSONAdapter(), dspy.XMLAdapter()])
def test_a_form_holds_for_its_own_requests_inside_another_call(adapter):
    said = (lambda prompt: "<draft>d</draft>" if "XML" in prompt else answer(prompt)) if adapter else answer
    with serve(said) as server, dspy.context(lm=server.lm(), adapter=adapter):
        call = model_call(Both(), output="text")
    assert (call.status, call.prediction.score, call.usage.requests) == (Status.OK, 4, server.requests)
    assert server.requests == 2


def test_a_repair_inside_another_call_asks_for_the_form_and_is_counted():
    said = iter([{"draft": "d"}, "so nice", {"draft": "d"}, "so [RESULT] 4"])
    bodies = []
    with serve(lambda prompt: next(said)) as server, dspy.context(lm=server.lm()):
        respond = server.respond
        server.respond = lambda body: bodies.append(body["messages"]) or respond(body)
        call = model_call(Both(), output="text")
    assert (call.prediction.score, call.usage.requests, server.requests) == (4, 4, 4)
    assert [message["content"] for message in bodies[3][2:3]] == ["so nice"]
    correction = bodies[3][-1]["content"]
    assert '"(feedback) [RESULT] (a whole number)"' in correction
    assert "[[ ##" not in correction


def test_several_answers_to_one_request_are_each_read_in_the_form():
    said = iter(["so [RESULT] 4", "so [RESULT] 4.5", "so [RESULT] 2", "so [RESULT] 3"])
    predictor = dspy.Predict(GradeByForm)
    with serve(lambda prompt: next(said)) as server, dspy.context(lm=server.lm(temperature=1.0)):
        with in_form(TrainedForm()):
            calls = model_calls(predictor, [0, 1, 2], **{**FILLED, "form": FORM})
        assert [call.prediction.score for call in calls] == [4, 3, 2]
        assert server.requests == 2  # one for all three, and one repair


def test_the_identity_of_the_form_is_small_and_its_own():
    options = {"native_response_types": [], "parallel_tool_calls": None, "use_native_function_calling": False}
    kind = "metricsmith.model_calls.trained_form.TrainedForm"
    assert form_identity(TrainedForm()) == {"adapter": {"class": kind, "options": options}}
