"""Answers are read exactly: what DSPy reads without interpretation, and no more than that."""

from __future__ import annotations

import dspy
import pytest
from dspy.adapters.chat_adapter import field_header_pattern
from dspy.utils.exceptions import AdapterParseError
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from metricsmith.model_calls.adapters import Chat, RequestAdapter
from metricsmith.model_calls.metering import RequestMeter
from metricsmith.model_calls.reading import read, read_plain
from metricsmith.signatures.judgement import JudgeByGuideline, JudgeCriterion
from metricsmith.signatures.translation import AnnotateErrors, AssessTranslation, ClassifyTranslation


class Item(BaseModel):
    name: str
    parts: list[int]


class Mixed(dspy.Signature):
    """Do a little of everything."""

    text: str = dspy.InputField()
    answer: list[Item] = dspy.OutputField()
    verdict: bool = dspy.OutputField()


PIECES = st.sampled_from(
    [
        "[[ ## reasoning ## ]]", "[[ ## score ## ]]", "[[ ## completed ## ]]", "[[ ## other ## ]]",
        " [[ ## score ## ]]",
        "[[ ## score ## ]] ", "[[ ## SCORE ## ]]", "\n", "\n", "\n\n", " ", "\t", "\r\n", "\x85", "4", "0", "-3", "007",
        "4.0", "1e3", "+2", "12345678901234567890", "four", '"4"', "{4}", "It is good.", "ünï 漢字", "\u2028",
    ]
)  # fmt: skip
FORM = "[[ ## reasoning ## ]]\nIt is good.\n\n[[ ## score ## ]]\n4\n\n[[ ## completed ## ]]"


def unindented(answer):
    """The answer without blanks before a header: DSPy then reads from as many characters too early."""
    lines = answer.splitlines(keepends=True)
    return "".join(line.lstrip() if field_header_pattern.match(line.strip()) else line for line in lines)


@settings(deadline=None, max_examples=600)
@given(st.lists(PIECES, max_size=14).map("".join), st.booleans())
@example("", False)
@example(FORM, False)
@example(FORM.replace("\n[[ ## score", "\n [[ ## score").replace("]]\n4", "]]4"), False)
@example("before " + FORM, False)
@example(FORM.replace("\n4", " 4"), False)
@example(FORM + "\n[[ ## score ## ]]\n5", False)
def test_an_answer_that_is_read_without_dspy_is_read_as_dspy_reads_it(answer, in_form):
    if in_form:
        answer = f"[[ ## reasoning ## ]]\n{answer}\n[[ ## score ## ]]\n3\n[[ ## completed ## ]]"
    ours = read_plain(JudgeCriterion, answer)
    if ours is not None:
        plain = dspy.ChatAdapter().parse(JudgeCriterion, unindented(answer))
        assert ours == plain
        assert {name: type(value) for name, value in ours.items()} == {name: type(plain[name]) for name in plain}


def test_a_plain_answer_is_read_without_dspy_and_any_other_is_left_to_it():
    assert read_plain(JudgeCriterion, FORM) == {"reasoning": "It is good.", "score": 4}
    for other in (
        "",
        "4",
        FORM.replace("4", "four"),
        FORM.replace("reasoning", "reason"),
        FORM.replace("\n4", "\n4.0"),
    ):
        assert read_plain(JudgeCriterion, other) is None
    assert read_plain(Mixed, "[[ ## answer ## ]]\n[]\n[[ ## verdict ## ]]\nTrue") is None


@pytest.mark.parametrize("said", ["true", "False", "0x10", "0b1", "1_0", "-0o7", '"true"', "1_0.5"])
@pytest.mark.parametrize("signature", [JudgeCriterion, JudgeByGuideline, AssessTranslation])  # a whole number, a number
def test_what_is_no_number_in_digits_is_not_read_as_one(signature, said):
    answer = FORM.replace("\n4", f"\n{said}")
    channel = RequestAdapter.opened(dspy.LM("openai/m"), None, RequestMeter(None))
    with pytest.raises(AdapterParseError, match=r"score .* is not a (whole )?number") as problem:
        channel.parse(signature, answer)
    assert problem.value.complaint.startswith("the field score does not hold what it must hold")


@pytest.mark.parametrize("said", ["4", "4.0", "-3", "1e1", '"4"', "+2"])
def test_numbers_in_digits_are_read(said):
    answer = FORM.replace("\n4", f"\n{said}")
    assert RequestAdapter.opened(dspy.LM("openai/m"), None, RequestMeter(None)).parse(JudgeCriterion, answer)[
        "score"
    ] == int(float(said.strip('"')))


MAJOR = '{"span": "Katze", "type": "style", "description": "so"}'
LISTS = f'{{"critical": [], "major": [{MAJOR}], "minor": []}}'
CLEAN = '{"critical": [], "major": [], "minor": []}'


@pytest.mark.parametrize(
    "text",
    [
        LISTS, f"  {LISTS}\n", f"```json\n{LISTS}\n```", f"```\n{LISTS}\n  ```", LISTS.replace(", ", ",\n"),
    ],
)  # fmt: skip
def test_an_object_is_read_from_json_alone(text):
    errors = read(Chat(), AnnotateErrors, f"[[ ## errors ## ]]\n{text}\n\n[[ ## completed ## ]]")["errors"]
    assert [error.span for error in errors.major] == ["Katze"]


@pytest.mark.parametrize(
    "text",
    [
        '{"critical": [], "major": [], "minor": [',  # broke off: DSPy closes the list, and the text has no error
        f'{{"critical": [], "major": [], "minor": [{MAJOR[:-4]}',
        f'{{"critical": [], "major": [], "minor": [{MAJOR}, ',
        f'{{"critical": [], "major": [{MAJOR}], "minor": [], "major": []}}',  # of equal names the last would count
        f"{CLEAN}\nOne more thing: Katze is wrong.",
        f"{CLEAN}\n{LISTS}",
        f"{CLEAN}\n[[ ## errors ## ]]\n{LISTS}",
        f"Here they are: {LISTS}",
        '{"critical": [], "major": [...], "minor": []}',
        f'{{"critical": [], "major": [], "minor": [] /* {MAJOR} */}}',
        f"```json\n{CLEAN}\n```\nBut Katze is wrong.",
        "",
    ],
)
def test_an_object_that_would_have_to_be_repaired_is_not_read(text):
    with pytest.raises(AdapterParseError, match="Failed to parse field errors"):
        read(Chat(), AnnotateErrors, f"[[ ## errors ## ]]\n{text}\n\n[[ ## completed ## ]]")


@pytest.mark.parametrize("space", ["\u2028", "\x85", "\n", "\t"])
def test_texts_in_an_object_keep_their_white_space(space):
    text = LISTS.replace("Katze", f"die{space}Katze")
    errors = read(Chat(), AnnotateErrors, f"[[ ## errors ## ]]\n{text}\n\n[[ ## completed ## ]]")["errors"]
    assert errors.major[0].span == f"die{space}Katze"


def test_fields_of_other_kinds_are_read_as_dspy_reads_them():
    assert read(Chat(), ClassifyTranslation, "[[ ## reasoning ## ]]\nso\n[[ ## quality ## ]]\n'Sound'") == {
        "reasoning": "so",
        "quality": ClassifyTranslation.output_fields["quality"].annotation("sound"),
    }
    both = '[[ ## answer ## ]]\n[{"name": "b", "parts": [1]}]\n[[ ## verdict ## ]]\nTrue'
    assert read(Chat(), Mixed, both) == {"answer": [Item(name="b", parts=[1])], "verdict": True}
    with pytest.raises(AdapterParseError, match="no errors in the answer 'no field at all'"):
        read(Chat(), AnnotateErrors, "no field at all")
