"""Forms that models answer in: each is read as it was meant, or not at all; `docs/reliability.md` shows the table.

Wherever a number is read, it is `MEANT`: the draft numbers are others. Every form goes through a judge that is called
by itself and through a run of the engine, on a server that gives the same answer to the repair.
"""

from __future__ import annotations

import re
from pathlib import Path

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError

from loopback import serve
from metricsmith.errors import JudgementFailed
from metricsmith.metric import make_row
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.scoring import score

MEANT = 4
REASON, SCORE, END = "[[ ## reasoning ## ]]\nShort and clear.", "[[ ## score ## ]]\n", "[[ ## completed ## ]]"
DRAFT = f"[[ ## reasoning ## ]]\nIt may do.\n\n{SCORE}2\n\n{END}"
GOOD = f"{REASON}\n\n{SCORE}4\n\n{END}"
JSON = '{"reasoning": "Short and clear.", "score": 4}'


def said(number, reason="Short and clear."):
    return f"[[ ## reasoning ## ]]\n{reason}\n\n{SCORE}{number}\n\n{END}"


def no_number(number):
    return f"score {number!r} is not a whole number"


MISSING = "no score in the answer"
NOTHING = "no reasoning, score in the answer"
WITHIN = "the answer ends within its reasoning block"
APART = "a reasoning block and the fields cannot be told apart"
# What stands in the table, the answer, and the end: "" where 4 is read, otherwise what the error says.
FORMS = [
    ("as asked", GOOD, ""),
    ("prose around the fields", f"Sure, here it is.\n\n{GOOD}\n\nI hope that this helps.", ""),
    ("without the end mark", GOOD.removesuffix(END), ""),
    ("values beside the headers", GOOD.replace("]]\n", "]] "), ""),
    ("fields in another order", f"{SCORE}4\n\n{REASON}\n\n{END}", ""),
    ("another field besides", GOOD.replace(SCORE, f"[[ ## confidence ## ]]\n5\n\n{SCORE}"), ""),
    ("the headers without brackets", "## reasoning ##\nClear.\n## score ##\n4", NOTHING),
    ("headers in capitals", GOOD.replace("reasoning", "Reasoning").replace("score", "Score"), NOTHING),
    ("headers in bold", GOOD.replace("[[", "**[[").replace("]]", "]]**"), NOTHING),
    ("the number's field missing", REASON, MISSING),
    ("the number in prose", "I give it a 4.", NOTHING),
    ("empty", "", "the answer is empty"),
    # Reasoning blocks
    ("`<think>` before", f"<think>\nHm.\n</think>\n\n{GOOD}", ""),
    ("`<thinking>` before", f"<thinking>Hm.</thinking>{GOOD}", ""),
    ("`<reasoning>` before", f"<reasoning>\nHm.\n</reasoning>\n{GOOD}", ""),
    ("`<THINK>` before", f"<THINK>Hm.</THINK>\n{GOOD}", ""),
    ("a draft in the block", f"<think>\n{DRAFT}\n</think>\n{GOOD}", ""),
    ("a draft in a block after prose", f"Let me see.\n<think>\n{DRAFT}\n</think>\n{GOOD}", ""),
    ("two blocks with drafts", f"<think>{DRAFT}</think>\n<thinking>\n{DRAFT}\n</thinking>\n{GOOD}", ""),
    ("a block in a block", f"<think>Hm. <think>{DRAFT}</think>\n{DRAFT}\n</think>\n{GOOD}", ""),
    ("an empty block", f"<think>\n\n</think>\n\n{GOOD}", ""),
    ("only the end tag before", f"The text is short.\n</think>\n{GOOD}", ""),
    ("only the end tag, a bare draft before", f"Perhaps 2.\nscore: 2\n</think>\n\n{GOOD}", ""),
    ("a block inside a field", said(4, "<think>Hm.</think> Short."), ""),
    ("a tag named in a field", said(4, "It leaks its </think> tag, and a <think> too."), ""),
    ("a block after the answer", f"{GOOD}\n<think>Was that right?</think>", ""),
    ("a block before JSON", f"<think>\n{DRAFT}\n</think>\n{JSON}", ""),
    ("an end tag before JSON", f"Hm.\n</think>\n```json\n{JSON}\n```", ""),
    ("cut off in the block", "<think>\nThe text is short, so", WITHIN),
    ("cut off in the block, after a draft", f"<think>\n{DRAFT}\n", WITHIN),
    ("cut off in the second block", f"<think>Hm.</think>\n<think>\n{DRAFT}", WITHIN),
    ("a block and nothing after it", f"<think>\n{DRAFT}\n</think>\n", NOTHING),
    ("only the end tag, after a draft", f"{DRAFT}\n</think>\n", APART),
    ("only the end tag, between draft and answer", f"{DRAFT}\n</think>\n{GOOD}", APART),
    ("a draft in a block after a field", f"{REASON}\n<think>\n{SCORE}2\n{END}\n</think>\n{SCORE}4\n{END}", APART),
    ("a block that begins in a field and does not end", f"{REASON}\n<think>\n{SCORE}2\n{END}", APART),
    # Doubled fields
    ("the number twice, equal", GOOD.replace(END, f"{SCORE}4\n\n{END}"), ""),
    ("the number twice, written differently", GOOD.replace(END, f"{SCORE}4.0\n\n{END}"), ""),
    ("another number after the end", f"{GOOD}\n\n{SCORE}2", ""),
    ("another answer after the end", f"{GOOD}\n\n{DRAFT}", ""),
    ("the number twice, different", f"{REASON}\n\n{SCORE}2\n\n{SCORE}4\n\n{END}", "score is there twice: '2' and '4'"),
    (
        "everything twice, different",
        f"{DRAFT.removesuffix(END)}{GOOD}",
        "reasoning is there twice: 'It may do.' and 'Short and clear.'",
    ),
    ("the number twice, once in words", GOOD.replace(END, f"{SCORE}four\n\n{END}"), "twice: '4' and 'four'"),
    # JSON
    ("JSON", JSON, ""),
    ("JSON in a code fence", f"```json\n{JSON}\n```", ""),
    ("JSON in a plain code fence", f"```\n{JSON}\n```\n", ""),
    ("JSON over several lines", JSON.replace(", ", ",\n  "), ""),
    ("JSON, the number in quotes", JSON.replace("4", '"4"'), ""),
    ("JSON, the number as 4.0", JSON.replace("4", "4.0"), ""),
    ("JSON with another member", JSON.replace("}", ', "confidence": 5}'), "has other members: confidence"),
    ("JSON without the number", '{"reasoning": "Short."}', MISSING),
    ("JSON, the number twice", JSON.replace("}", ', "score": 2}'), "two members have the same name"),
    ("JSON, the reasons as a list", JSON.replace('"Short and clear."', '["Short."]'), "is not a text"),
    ("JSON, true for a number", JSON.replace("4", "true"), no_number("true")),
    ("JSON, null for a number", JSON.replace("4", "null"), no_number("null")),
    ("JSON, NaN for a number", JSON.replace("4", "NaN"), no_number("NaN")),
    ("JSON that breaks off", JSON[:-4], "the answer is not one piece of JSON"),
    ("JSON with prose after it", f"{JSON}\nDone.", "the answer is not one piece of JSON"),
    ("JSON with prose before it", f"Here it is:\n{JSON}", NOTHING),
    ("JSON in a field", said(JSON), no_number(JSON)),
    ("JSON in a list", f"[{JSON}]", NOTHING),
    ("Python's dict", "{'reasoning': 'Short.', 'score': 4}", "the answer is not one piece of JSON"),
    # XML, which nobody asked for
    ("XML", "<reasoning>Short.</reasoning>\n<score>4</score>", NOTHING),
    # Numbers
    *((f"`{number}`", said(number), "") for number in (
        "**4**", "*4*", "***4***", "__4__", "_4_", '"4"', "'4'", "4.0", "4.", "+4", "04", "0.4e1", "40e-1",
    )),
    *((f"`{number}`", said(number), no_number(number)) for number in (
        "four", "Four.", "vier", "IV", "4/5", "4 out of 5", "4 of 5", "80%", "4 %", "3.7", "4,0", "4-5", "3 to 5", "~4",
        "(4)", "4!", "4 # good", "[4]", "{4}", "Score: 4", "**Score: 4**", "**4", "`4`", "$4$", "True", "false", "yes",
        "0x4", "0b100", "4_0", "1_0.5", "NaN", "inf", "-Infinity", "1e400", "\u0664", "\uff14", "\u2463", "null",
        "None", "N/A", "-", "4 5", "4e",
    )),
    ("two lines under the header", said("4\n5"), no_number("4 5")),
    ("reasons under the number", said("4\n\nBecause it is short."), no_number("4 Because it is short.")),
    ("a fence around the number", said("```\n4\n```"), no_number("``` 4 ```")),
    ("nothing under the header", said(""), no_number("")),
    ("a number of 5,000 digits", said("7" * 5000), no_number("7" * 60 + "...")),
    ("`9`", said(9), "score 9 is not on the scale 1 to 5"),
    ("`-4`", said(-4), "score -4 is not on the scale 1 to 5"),
]  # fmt: skip
OUT_OF_RANGE = ("`9`", "`-4`")


def end(name, error):
    return "ok" if not error else "out_of_range" if name in OUT_OF_RANGE else "unparsable"


def judge():
    return CriterionJudge(criterion="Clear", meaning="It is clear.", task="Rewrite notices.")


@pytest.mark.parametrize(("name", "answer", "error"), FORMS, ids=[name for name, *_ in FORMS])
def test_an_answer_is_read_as_it_was_meant_or_not_at_all(name, answer, error):
    with serve(lambda prompt: answer) as server:
        table = score([judge()], [make_row("A text.")], lm=server.lm(), max_failure_rate=1.0, progress=False)
        judgement = table.judgement(0, 0)
        assert (str(judgement.status), judgement.raw) == (end(name, error), None if error else MEANT)
        assert error in judgement.error
        assert server.requests == (2 if error else 1)
        with dspy.context(lm=server.lm()):
            if not error:
                assert judge()(output="A text.").raw == MEANT
                return
            with pytest.raises((AdapterParseError, JudgementFailed)) as alone:
                judge()(output="A text.")
    assert isinstance(alone.value, JudgementFailed) == (name in OUT_OF_RANGE)
    assert not answer or error in str(alone.value)
    assert server.requests == (2 if error else 1) + 1  # DSPy's own fallback to another form asks once more


def test_reasoning_that_the_server_gives_apart_is_never_read():
    with serve(lambda prompt: GOOD) as server:
        respond = server.respond

        def apart(body):
            status, content = respond(body)
            content["choices"][0]["message"]["reasoning_content"] = DRAFT
            return status, content

        server.respond = apart
        table = score([judge()], [make_row("A text.")], lm=server.lm(), progress=False)
        assert table.values.item() == MEANT
        server.respond = lambda body: (apart(body)[0], {**(given := apart(body)[1]), "choices": [without(given)]})
        table = score([judge()], [make_row("A text.")], lm=server.lm(), max_failure_rate=1.0, progress=False)
    assert (table.counts()["unparsable"], table.judgement(0, 0).error) == (1, "the answer is empty")


def without(content):
    """The choice with its reasoning alone."""
    choice = content["choices"][0]
    return {**choice, "message": {**choice["message"], "content": None}}


def test_the_documented_table_is_this_one():
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (ok, 4|unparsable|out_of_range) \|$", page, re.MULTILINE)
    assert len(FORMS) == len({name for name, *_ in FORMS}) >= 60
    assert rows == [(name.replace("|", "\\|"), "ok, 4" if not error else end(name, error)) for name, _, error in FORMS]
