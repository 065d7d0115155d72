"""Request adapters show a repair, read choices one by one and write DSPy's own form; DSPy sees each request once."""

from __future__ import annotations

import dspy
import pytest
from dspy.utils.callback import BaseCallback
from pydantic import BaseModel

from loopback import message_text, serve
from metricsmith.errors import JudgementFailed
from metricsmith.model_calls.adapters import Chat
from metricsmith.model_calls.calls import model_call
from metricsmith.records import Status
from metricsmith.signatures.generation import ProposeAxes, WriteRubric
from metricsmith.signatures.judgement import JudgeCriterion, JudgeRubric


class Rate(dspy.Module):
    """A number from 1 to 5 with a reason."""

    def __init__(self):
        super().__init__()
        self.rate = dspy.Predict("text -> reason: str, score: int")

    def forward(self, text):
        answer = self.rate(text=text)
        if not 1 <= answer.score <= 5:
            raise JudgementFailed(f"score {answer.score} is not on the scale 1 to 5", Status.OUT_OF_RANGE)
        return answer


def bodies_of(server):
    """Keep the messages of every request that `server` gets."""
    seen, respond = [], server.respond

    def record(body):
        seen.append(body["messages"])
        return respond(body)

    server.respond = record
    return seen


def rated(*answers):
    """Rate on a server that gives `answers` (fields, or text) in turn; the call, and the messages of each request."""
    queue = list(answers)
    with serve(lambda prompt: {}) as server, dspy.context(lm=server.lm()):
        respond = server.respond

        def answer(body):
            status, content = respond(body)
            given = queue.pop(0)
            text = given if isinstance(given, str) else "".join(f"[[ ## {k} ## ]]\n{v}\n" for k, v in given.items())
            content["choices"][0]["message"]["content"] = text
            return status, content

        server.respond = answer
        seen = bodies_of(server)
        return model_call(Rate(), text="a text"), seen


GOOD = {"reason": "clear", "score": 4}


@pytest.mark.parametrize(
    ("bad", "wrong"),
    [
        ({"reason": "clear"}, "it lacks score"),
        ("so nice", "it lacks reason, score"),
        ({"reason": "clear", "score": "four"}, "the field score does not hold what it must hold (int)"),
        ({"reason": "clear", "score": 9}, "score 9 is not on the scale 1 to 5"),
    ],
)
def test_a_repair_shows_the_answer_and_what_was_wrong_with_it(bad, wrong):
    call, (first, second) = rated(bad, GOOD)
    assert (call.status, call.prediction.score, call.usage.requests) == (Status.OK, 4, 2)
    assert second[: len(first)] == first
    answer, correction = second[len(first) :]
    assert (answer["role"], correction["role"]) == ("assistant", "user")
    said = bad if isinstance(bad, str) else "".join(f"[[ ## {k} ## ]]\n{v}\n" for k, v in bad.items())
    assert message_text(answer) == said
    asked = message_text(correction)
    assert wrong in asked
    assert "[[ ## reason ## ]]" in asked
    assert "[[ ## score ## ]]" in asked
    assert "int" in asked.split("[[ ## score ## ]]")[1]


@pytest.mark.parametrize("score", [4, 9, "four"])
def test_what_the_server_filtered_is_refused_whatever_came_with_it(score):
    with serve(lambda prompt: {"reason": "clear", "score": score}) as server, dspy.context(lm=server.lm()):
        respond = server.respond

        def answer(body):
            status, content = respond(body)
            content["choices"][0]["finish_reason"] = "content_filter"
            return status, content

        server.respond = answer
        call = model_call(Rate(), text="a text")
    assert (call.status, call.usage.requests) == (Status.REFUSED, 1)


def test_an_empty_answer_is_not_shown_and_a_long_one_is_cut():
    _, (first, second) = rated("", GOOD)
    assert [message["role"] for message in second[len(first) :]] == ["user"]
    assert "it is empty" in message_text(second[-1])
    _, (first, second) = rated("word " * 5_000, GOOD)
    assert len(message_text(second[len(first)])) == len("word ") * 800 + len(" [...]")


def test_every_repair_shows_the_latest_answer():
    answers = ["one", "two", "three", GOOD]
    with serve(lambda prompt: {}) as server, dspy.context(lm=server.lm()):
        respond = server.respond

        def answer(body):
            status, content = respond(body)
            given = answers.pop(0)
            if isinstance(given, dict):
                given = "".join(f"[[ ## {k} ## ]]\n{v}\n" for k, v in given.items())
            content["choices"][0]["message"]["content"] = given
            return status, content

        server.respond = answer
        seen = bodies_of(server)
        call = model_call(Rate(), parse_tries=4, text="a text")
    assert (call.status, call.usage.requests) == (Status.OK, 4)
    assert [message_text(messages[-2]) for messages in seen[1:]] == ["one", "two", "three"]


class TwoSteps(dspy.Module):
    def __init__(self):
        super().__init__()
        self.sum_up = dspy.Predict("text -> summary: str")
        self.rate = dspy.Predict("summary -> score: int")

    def forward(self, text):
        return self.rate(summary=self.sum_up(text=text).summary)


def test_only_the_request_whose_answer_was_unusable_gets_the_repair():
    scores = iter(["many", "4"])

    def answer(prompt):
        return {"summary": "s"} if "produce the fields `summary`" in prompt else {"score": next(scores)}

    with serve(answer) as server:
        seen = bodies_of(server)
        with dspy.context(lm=server.lm()):
            call = model_call(TwoSteps(), text="a text")
    assert (call.status, call.prediction.score, call.usage.requests) == (Status.OK, 4, 4)
    assert [len(messages) for messages in seen] == [2, 2, 2, 4]


def test_half_characters_neither_stop_a_request_nor_come_back():
    with serve(lambda prompt: {"reason": "\ud800 fine", "score": 4}) as server, dspy.context(lm=server.lm()):
        call = model_call(Rate(), text="a \udfff text")
    assert call.prediction.reason == "? fine"
    assert "a ? text" in server.prompts[0]


class Witness(BaseCallback):
    """Writes down what DSPy tells it."""

    def __init__(self):
        self.told = []


def told(name):
    return lambda self, *args, **kwargs: self.told.append(name)


for moment in ("module", "lm", "adapter_format", "adapter_parse"):
    for edge in ("start", "end"):
        setattr(Witness, f"on_{moment}_{edge}", told(f"{moment} {edge}"))


def test_callbacks_fire_for_every_request_once():
    witness = Witness()
    answers = iter([500, "nine", GOOD])
    with serve(lambda prompt: {}) as server, dspy.context(lm=server.lm(callbacks=[]), callbacks=[witness]):
        respond = server.respond

        def answer(body):
            status, content = respond(body)
            given = next(answers)
            if given == 500:
                return 500, {"error": {"message": "down", "type": "server_error", "code": "x"}}
            text = given if isinstance(given, str) else "".join(f"[[ ## {k} ## ]]\n{v}\n" for k, v in given.items())
            content["choices"][0]["message"]["content"] = text
            return status, content

        server.respond = answer
        call = model_call(Rate(), text="a text")
    assert (call.status, server.requests) == (Status.OK, 3)
    # Three times the module and the predictor in it, three requests, of which two were answered and parsed.
    counts = {name: witness.told.count(name) for name in set(witness.told)}
    assert counts == {
        "module start": 6, "module end": 6, "lm start": 3, "lm end": 3, "adapter_format start": 3,
        "adapter_format end": 3, "adapter_parse start": 2, "adapter_parse end": 2,
    }  # fmt: skip


def test_callbacks_of_the_model_itself_fire_too():
    witness = Witness()
    with serve(lambda prompt: GOOD) as server, dspy.context(lm=server.lm(callbacks=[witness])):
        model_call(Rate(), text="a text")
    assert witness.told == ["lm start", "lm end"]


class Odd(dspy.ChatAdapter):
    """Reads in its own way."""

    def parse(self, signature, completion):
        raise dspy.AdapterParseError("Odd", signature, completion, "I want more of it.")


def test_an_answer_that_another_adapter_does_not_read_is_repaired_in_its_words():
    pass


class Item(BaseModel):
    name: str
    parts: list[int]


class Mixed(dspy.Signature):
    """Do a little of everything.

    In two paragraphs.
    """

    text: str = dspy.InputField(desc="a text")
    number: float = dspy.InputField()
    items: list[Item] = dspy.InputField()
    lines: str = dspy.InputField(desc="given as a list")
    answer: list[Item] = dspy.OutputField()
    verdict: bool = dspy.OutputField()


ODD = 'quotes " and \\ and [[ ## text ## ]]\nünïcode – 漢字 \U0001f600\t{"json": [1]}  '
VALUES = {
    "text": ODD, "number": 1.5, "items": [Item(name="ä", parts=[1])], "lines": ["one", "two"],
    "answer": [Item(name="b", parts=[])], "verdict": True,
}  # fmt: skip


def both(signature, demos, inputs):
    plain = dspy.ChatAdapter(use_json_adapter_fallback=False).format(signature, demos, dict(inputs))
    return Chat().format(signature, demos, dict(inputs)), plain


@pytest.mark.parametrize("signature", [JudgeCriterion, JudgeRubric, ProposeAxes, WriteRubric, Mixed])
@pytest.mark.parametrize("with_demos", [False, True])
def test_the_messages_are_those_of_dspy_to_the_letter(signature, with_demos):
    inputs = {name: VALUES.get(name, f"{ODD} {name}") for name in signature.input_fields}
    outputs = {name: VALUES.get(name, "some value") for name in signature.output_fields}
    demos = [{**inputs, **outputs}, {**inputs, "augmented": True}] if with_demos else []
    for _ in range(2):  # the second time from memory
        ours, plain = both(signature, demos, inputs)
        assert ours == plain


def test_a_missing_input_is_left_out_as_dspy_leaves_it_out():
    ours, plain = both(Mixed, [], {"text": "only this"})
    assert ours == plain


def test_a_changed_instruction_or_description_is_written_anew():
    inputs = {"text": "t"}
    before, _ = both(Mixed, [], inputs)
    changed = Mixed.with_instructions("Do nothing.")
    described = Mixed.with_updated_fields("text", desc="another text")
    for signature in (changed, described):
        ours, plain = both(signature, [], inputs)
        assert ours == plain
        assert ours[0] != before[0]


def test_a_signature_that_is_changed_in_place_is_written_anew():
    signature = Mixed.with_instructions("First.")
    both(signature, [], {"text": "t"})
    signature.instructions = "Second."
    ours, plain = both(signature, [], {"text": "t"})
    assert ours == plain
    assert "Second." in ours[0]["content"]
