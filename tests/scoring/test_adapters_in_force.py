"""The adapter that the user has in force is the form of every request; answers are read exactly in each form."""

from __future__ import annotations

import json

import dspy
import pytest
from dspy.adapters.baml_adapter import BAMLAdapter
from dspy.utils.callback import BaseCallback

from loopback import message_text, serve
from metricsmith.errors import OptionError
from metricsmith.metric import content_hash, make_row
from metricsmith.model_calls.calls import model_call, model_calls
from metricsmith.model_calls.models import identity
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.direct_assessment import ESAJudge
from metricsmith.programs.judges.geval import GEval
from metricsmith.programs.judges.panel import Panel
from metricsmith.records import Status
from metricsmith.scoring import estimate, score
from metricsmith.scoring.plan import scoring_plan


class Shouting(dspy.ChatAdapter):
    """Somebody's own: DSPy's chat form with louder instructions."""

    def format_task_description(self, signature):
        return super().format_task_description(signature).upper()


class Lines(dspy.ChatAdapter):
    """Somebody's own, with a form and a way of reading of its own."""

    def user_message_output_requirements(self, signature):
        return f"Respond with one line for each of {', '.join(signature.output_fields)}, as name=value."

    def parse(self, signature, completion):
        fields = dict(line.split("=", 1) for line in completion.splitlines() if "=" in line)
        if fields.keys() != signature.output_fields.keys():
            raise dspy.AdapterParseError("Lines", signature, completion, "Some lines are not there.")
        return {name: json.loads(text) if name == "score" else text for name, text in fields.items()}


FORMS = {
    "none": (None, "[[ ## completed ## ]]"),
    "chat": (dspy.ChatAdapter(), "[[ ## completed ## ]]"),
    "json": (dspy.JSONAdapter(), "Respond with a JSON object in the following order of fields"),
    "xml": (dspy.XMLAdapter(), "wrapped in XML tags"),
    "baml": (BAMLAdapter(), "Output field `reasoning` should be of type: string"),
    "a subclass": (Shouting(), "RATE ONE PIECE OF WORK ON ONE CRITERION"),
    "own reading": (Lines(), "one line for each of reasoning, score"),
}
ROWS = [make_row("word " * (number + 1), input="q", id=str(number)) for number in range(6)]


def judge(name="Clear"):
    return CriterionJudge(criterion=name, meaning="It is clear.", task="Rewrite notices.")


def spoken(fields, prompt):
    """Fields in the form that the prompt asks for."""
    if "Respond with a JSON object" in prompt:
        return json.dumps(fields)
    if "wrapped in XML tags" in prompt:
        return "".join(f"<{name}>{element(value)}</{name}>" for name, value in fields.items())
    if "as name=value" in prompt:
        return "\n".join(f"{name}={value}" for name, value in fields.items())
    return fields


def element(value):
    if isinstance(value, list):
        return "".join(f"<item>{element(item)}</item>" for item in value)
    if isinstance(value, dict):
        return "".join(f"<{name}>{element(member)}</{name}>" for name, member in value.items())
    return str(value)


def answer(prompt):
    """From 1 to 5 by the number of words in the row."""
    return spoken({"reasoning": "Because.", "score": 1 + prompt.count("word ") % 5}, prompt)


@pytest.mark.parametrize("form", FORMS)
def test_a_judge_asks_in_the_form_in_force_and_gives_the_same_numbers(form):
    adapter, mark = FORMS[form]
    with serve(answer) as server, dspy.context(adapter=adapter, lm=server.lm(temperature=0.9)):
        table = score([judge()], ROWS, progress=False)
        seen = list(server.prompts)
        alone = [judge()(output=row.output, input="q").raw for row in ROWS]
        several = score([judge()], ROWS[:2], runs=3, batch_n=True, progress=False)
        shown = ["\n".join(map(message_text, judge().messages(row))) for row in ROWS]
        expected = estimate([judge()], ROWS)
    assert table.run()[:, 0].tolist() == alone == [2, 3, 4, 5, 1, 2]
    assert table.usage.requests == len(seen) == 6
    assert several.values[:, 0].tolist() == [[2, 2, 2], [3, 3, 3]]
    assert sorted(seen) == sorted(server.prompts[6:12]) == sorted(shown)
    assert all(mark in prompt for prompt in server.prompts)
    assert expected.prompt_tokens == pytest.approx(table.usage.prompt_tokens, rel=0.03)


RATINGS = [{"criterion": name, "reason": "so", "score": 3} for name in ("Clear", "Short")]


@pytest.mark.parametrize("form", ["chat", "json", "xml"])
def test_panels_lists_of_errors_and_log_probabilities_work_in_every_form(form):
    members = Panel([judge("Clear"), judge("Short")]).members()
    esa = ESAJudge(source_language="English", target_language="German")
    geval = GEval(criterion="Clear", meaning="It is clear.", steps=["Look."], task="Write.", mode="logprob")

    def answers(prompt):
        if "`ratings`" in prompt or "## ratings ##" in prompt:
            return spoken({"ratings": RATINGS}, prompt)
        if "`errors`" in prompt or "## errors ##" in prompt:
            found = {"span": "word", "type": "style/other", "description": "so"}
            return spoken({"errors": {"major": [], "minor": [found]}, "reasoning": "so", "score": 77.5}, prompt)
        return spoken({"reasoning": "so", "score": 4}, prompt)

    with serve(answers) as server, dspy.context(adapter=FORMS[form][0], lm=server.lm()):
        table = score([*members, esa], ROWS[:2], progress=False)
        assert table.counts()["ok"] == 6
        assert table.judgement(0, 2).raw == 77.5
        assert [span.text for span in table.judgement(0, 2).spans] == ["word"]
        respond = server.respond

        def told(body):
            status, content = respond(body)
            text = content["choices"][0]["message"]["content"]
            tokens = [{"token": c, "logprob": -0.1, "top_logprobs": [{"token": c, "logprob": -0.1}]} for c in text]
            content["choices"][0]["logprobs"] = {"content": tokens}
            return status, content

        server.respond = told
        assert score([geval], ROWS[:1], progress=False).values.item() == 4


def test_the_spread_of_a_draft_is_not_that_of_the_answer():
    text = "<think>\n[[ ## score ## ]]\n4\n</think>\n[[ ## reasoning ## ]]\nso\n[[ ## score ## ]]\n4\n"
    tokens = [{"token": c, "logprob": 0.0, "top_logprobs": [{"token": c, "logprob": 0.0}]} for c in text]
    tokens[text.index("4")]["top_logprobs"] = [{"token": "1", "logprob": 0.0}]
    geval = GEval(criterion="Clear", meaning="It is clear.", steps=["Look."], task="Write.", mode="logprob")
    with serve(lambda prompt: text) as server, dspy.context(lm=server.lm()):
        respond = server.respond

        def told(body):
            status, content = respond(body)
            content["choices"][0]["logprobs"] = {"content": tokens}
            return status, content

        server.respond = told
        assert geval(output="text").raw == 4


def test_a_draft_is_told_from_the_answer_in_panels_and_lists_too():
    thought = "<think>\n{}\n</think>\n{}"
    panel = Panel([judge("Clear"), judge("Short")])
    ratings = [json.dumps({"ratings": [{**item, "score": score} for item in RATINGS]}) for score in (1, 3)]
    listed = [f"<errors><major /><minor>{item}</minor></errors><reasoning>so</reasoning><score>77</score>" for item in (
        "<item><span>word</span><type>style</type><description>so</description></item>", "",
    )]  # fmt: skip
    esa = ESAJudge(source_language="English", target_language="German")
    with serve(lambda prompt: said) as server, dspy.context(lm=server.lm()):
        said = thought.format(*ratings)
        assert panel(output="text").raw == {"clear": 3, "short": 3}
        assert server.requests == 1
        with dspy.context(adapter=dspy.XMLAdapter()):
            said = thought.format(*listed)
            assert (answer := esa(output="text", input="q")).raw == 77
            assert answer.spans == ()
            said = listed[0].replace("<reasoning>", "<errors><major /><minor /></errors><reasoning>")
            with pytest.raises(dspy.AdapterParseError, match="errors is there twice"):
                esa(output="text", input="q")


JSON = '{"reasoning": "Short.", "score": 4}'
XML = "<reasoning>Short.</reasoning>\n<score>4</score>"
ANSWERS = [
    ("json", JSON, ""),
    ("json", f"```json\n{JSON}\n```", ""),
    ("json", f"<think>{JSON.replace('4', '2')}</think>\n{JSON}", ""),
    ("json", f"{JSON.replace('4', '2')[1:-1]}</think>\n{JSON}", ""),
    ("json", JSON.replace("}", ', "confidence": 5}'), ""),
    ("json", JSON.replace("4", '"**4**"'), ""),
    ("json", JSON.replace("4", "4.0"), ""),
    ("json", JSON.replace("4", "true"), "score 'true' is not a whole number"),
    ("json", JSON.replace("4", '"0x4"'), "score '0x4' is not a whole number"),
    ("json", JSON.replace("4", '"four"'), "score 'four' is not a whole number"),
    ("json", JSON.replace("}", ', "score": 4}'), "two members have the same name"),
    ("json", JSON[:-1], "the answer is not one piece of JSON"),
    ("json", f"{JSON}\n{JSON.replace('4', '2')}", "the answer is not one piece of JSON"),
    ("json", f"<think>{JSON}", "the answer ends within its reasoning block"),
    ("json", "[[ ## reasoning ## ]]\nShort.\n[[ ## score ## ]]\n4", "no reasoning, score in the answer"),
    ("xml", XML, ""),
    ("xml", f"Here it is:\n{XML}\nDone.", ""),
    ("xml", XML.replace("4", "\n**4**\n"), ""),
    ("xml", XML.replace("Short.", "It has <b>bold</b> words, R&amp;D."), ""),
    ("xml", f"<think>\n{XML.replace('4', '2')}\n</think>\n{XML}", ""),
    ("xml", f"{XML}\n<score>4</score>", ""),
    ("xml", f"{XML}\n<score>2</score>", "score is there twice: '4' and '2'"),
    ("xml", XML.replace("4", "true"), "score 'true' is not a whole number"),
    ("xml", XML.replace("4", "<value>4</value>"), "score '<value>4</value>' is not a whole number"),
    ("xml", XML.replace("4", "four"), "score 'four' is not a whole number"),
    ("xml", XML.replace("Short.", "R&D"), "the answer is not well-formed XML"),
    ("xml", XML[:-8], "the answer is not well-formed XML"),
    ("xml", f"<think>\n{XML}", "the answer ends within its reasoning block"),
    ("xml", JSON, "no reasoning, score in the answer"),
    ("own reading", "reasoning=Short.\nscore=4", ""),
    ("own reading", "<think>\nscore=2\n</think>\nreasoning=Short.\nscore=4", ""),
    ("own reading", "reasoning=Short.\nscore=true", "score 'true' is not a whole number"),
    ("own reading", "reasoning=Short.\nscore=NaN", "score 'NaN' is not a whole number"),
    ("own reading", "reasoning=Short.\nscore=four", "the answer cannot be read: Expecting value"),
    ("own reading", "score=4", "the answer cannot be read: Some lines are not there."),
]  # fmt: skip


@pytest.mark.parametrize(("form", "said", "error"), ANSWERS)
def test_answers_are_read_exactly_in_every_form(form, said, error):
    with serve(lambda prompt: said) as server, dspy.context(adapter=FORMS[form][0], lm=server.lm()):
        judgement = score([judge()], ROWS[:1], max_failure_rate=1.0, progress=False).judgement(0, 0)
        assert (judgement.status, judgement.raw) == ((Status.UNPARSABLE, None) if error else (Status.OK, 4))
        assert error in judgement.error
        assert server.requests == 1 + bool(error)  # no fallback to another form
        if not error:
            assert judge()(output="text").raw == 4
        else:
            with pytest.raises(dspy.AdapterParseError):
                judge()(output="text")
        assert server.requests == 2 + bool(error)


@pytest.mark.parametrize(
    ("form", "reminder"),
    [
        ("chat", "in exactly this form:\n\n[[ ## reasoning ## ]]"),
        ("a subclass", "in exactly this form:\n\n[[ ## reasoning ## ]]"),
        ("json", "with nothing else. Respond with a JSON object"),
        ("xml", "with nothing else. Respond with the corresponding output fields wrapped in XML tags"),
        ("own reading", "with nothing else. Respond with one line for each"),
    ],
)
def test_a_repair_asks_for_the_form_in_force(form, reminder):
    bodies = []
    with serve(lambda prompt: "so nice" if len(bodies) == 1 else answer(prompt)) as server:
        respond = server.respond
        server.respond = lambda body: bodies.append(body["messages"]) or respond(body)
        with dspy.context(adapter=FORMS[form][0], lm=server.lm()):
            assert score([judge()], ROWS[:1], progress=False).counts()["ok"] == 1
    first, second = bodies
    assert second[: len(first)] == first
    assert [message["role"] for message in second[len(first) :]] == ["assistant", "user"]
    assert reminder in message_text(second[-1])


def test_structured_outputs_are_asked_for_once():
    bodies = []
    with serve(answer) as server:
        respond = server.respond

        def refuse(body):
            bodies.append(body)
            return (400, {"error": {"message": "no response_format"}}) if len(bodies) > 2 else respond(body)

        server.respond = refuse
        lm = server.lm().copy(model="openai/gpt-4o-mini")
        with dspy.context(adapter=dspy.JSONAdapter(), lm=lm):
            table = score([judge()], ROWS[:3], concurrency=1, max_failure_rate=1.0, progress=False)
    assert (table.counts()["ok"], table.counts()["transport"]) == (2, 1)
    assert [body["response_format"]["type"] for body in bodies] == ["json_schema"] * 3
    assert table.usage.requests == len(bodies) == 3


class Witness(BaseCallback):
    def __init__(self):
        self.told = []

    def on_adapter_format_start(self, call_id, instance, inputs):
        self.told.append("format")

    def on_adapter_parse_start(self, call_id, instance, inputs):
        self.told.append("parse")


@pytest.mark.parametrize("kind", [dspy.ChatAdapter, dspy.JSONAdapter, dspy.XMLAdapter, Shouting, Lines])
def test_callbacks_of_the_adapter_fire_once_a_request(kind):
    witness = Witness()
    adapter = kind(callbacks=[witness])
    with serve(answer) as server, dspy.context(adapter=adapter, lm=server.lm()):
        score([judge()], ROWS[:1], progress=False)
        judge()(output="text")
    assert witness.told == ["format", "parse"] * 2
    assert "chosen" not in vars(adapter)


def key(adapter, metric=None):
    with dspy.context(adapter=adapter, lm=dspy.LM("openai/m")):
        return scoring_plan([metric or judge()]).metric_runs[0].fingerprint


def test_the_adapter_is_part_of_the_key_unless_it_is_the_plain_chat_adapter():
    plain, one = key(None), judge()
    assert plain == content_hash(one.name, one.fingerprint(), identity(dspy.LM("openai/m")))
    assert plain == key(dspy.ChatAdapter()) == key(dspy.ChatAdapter(callbacks=[Witness()]))
    assert plain == key(dspy.ChatAdapter(use_json_adapter_fallback=False))
    others = [
        dspy.ChatAdapter(use_native_function_calling=True), dspy.JSONAdapter(), dspy.XMLAdapter(), BAMLAdapter(),
        dspy.JSONAdapter(use_native_function_calling=False), Shouting(), Lines(),
    ]  # fmt: skip
    assert len({plain, *map(key, others)}) == 1 + len(others)
    assert key(dspy.JSONAdapter()) == key(dspy.JSONAdapter(callbacks=[Witness()]))
    louder = Shouting()
    louder.volume = 11
    assert key(louder) != key(Shouting())


def test_a_store_keeps_the_forms_apart(tmp_path):
    with serve(answer) as server:
        for form, sent in (("none", 6), ("chat", 0), ("json", 6), ("json", 0), ("xml", 6), ("none", 0)):
            with dspy.context(adapter=FORMS[form][0], lm=server.lm()):
                table = score([judge()], ROWS, store=tmp_path / "s.db", progress=False)
            assert (table.usage.requests, table.counts()["ok"]) == (sent, 6)


@pytest.mark.parametrize(
    "run",
    [
        lambda lm: score([judge()], ROWS, progress=False),
        lambda lm: estimate([judge()], ROWS),
        lambda lm: model_call(judge(), output="text"),
        lambda lm: model_calls(judge(), [0, 1], output="text"),
    ],
    ids=["score", "estimate", "call", "calls"],
)
@pytest.mark.parametrize("own", [lambda lm: dspy.TwoStepAdapter(lm), lambda lm: "json"], ids=["two-step", "no adapter"])
def test_an_adapter_that_asks_a_model_of_its_own_is_refused_before_the_first_request(run, own):
    with serve(answer) as server, dspy.context(adapter=own(server.lm()), lm=server.lm(temperature=1.0)):
        with pytest.raises(OptionError, match=r"asks a model of its own|is no dspy\.Adapter"):
            run(server.lm())
        assert server.requests == 0
        assert score([lambda example, pred: 1.0], ROWS, progress=False).counts()["ok"] == 6  # asks in no form of ours
