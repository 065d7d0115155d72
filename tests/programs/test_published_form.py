"""A template is a file of texts: read, never run, and refused where it is no form."""

from __future__ import annotations

from pathlib import Path

import pytest

from metricsmith.errors import OptionError
from metricsmith.judges import PrometheusJudge
from metricsmith.metric import MARKER, make_row
from metricsmith.programs.judges.published_form import read_template

TEMPLATE = Path(__file__).resolve().parents[1] / "support" / "graded_prompts.py"
ROW = make_row("The gate is shut.", input="The gate will be closed.", references=["Closed."])
LEVELS = ["all long", "mostly long", "mixed", "mostly short", "all short"]
GIVEN = {"criterion": "Plain words", "meaning": "Every word is short.", "task": "Rewrite notices.", "levels": LEVELS}
PLAIN = "###Instruction:\n{instruction}\n###Response:\n{response}\n###Rubric:\n{rubric}\n###Feedback: "
BOTH = f"ABSOLUTE_PROMPT_WO_REF = {PLAIN!r}\nABSOLUTE_PROMPT = {PLAIN + '{reference_answer}'!r}\n"


def judge(path, **extra):
    return PrometheusJudge(**GIVEN, template=path, **extra)


def written(folder, text):
    path = folder / "texts.py"
    path.write_text(text, "utf-8")
    return path


def test_the_texts_are_sent_as_they_stand_and_nothing_in_the_file_is_run():
    text = "\n".join(message["content"] for message in judge(TEMPLATE).messages(ROW))
    assert text.startswith("Grade with care.\n###Task Description:\nGrade it, the reference answer being a 5.\n\n")
    assert text.endswith("Score 5: all short\n\n###Feedback: ")
    assert "Explain first" not in text  # the rules in our words


def test_only_texts_under_known_names_are_kept(tmp_path):
    more = "import os\nOTHER = 'x'\nABS_SYSTEM_PROMPT = f'{os}'\nREL_SYSTEM_PROMPT = 'a' + 'b'\n"
    template = read_template(written(tmp_path, BOTH + more), [])
    assert set(template["texts"]) == {"ABSOLUTE_PROMPT", "ABSOLUTE_PROMPT_WO_REF"}
    assert [message["role"] for message in judge(tmp_path / "texts.py").messages(ROW)] == ["user"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "has no text ABSOLUTE_PROMPT and no text ABSOLUTE_PROMPT_WO_REF"),
        (BOTH.replace("{rubric}", ""), r"ABSOLUTE_PROMPT(_WO_REF)? has .*; it needs, each once and no others"),
        (BOTH.replace("{rubric}", "{rubric}{rubric}"), "each once and no others"),
        (BOTH.replace("{rubric}", "{rubric}{other}"), r"\{other\}"),
        (BOTH.replace("{rubric}", "{rubric}{{}}"), "each once and no others"),
        (BOTH + "ABS_SYSTEM_PROMPT = 'Be {kind}.'", r"ABS_SYSTEM_PROMPT has \{kind\}; it needs, .* none"),
        (BOTH.replace("###Rubric", MARKER), "DSPy would take what follows for a picture"),
        (BOTH.replace("###Rubric", "x" * 20_000), "characters is not allowed"),
        (BOTH.replace("###Rubric", "\\ud800"), "half of a surrogate pair"),
        (BOTH + "#" * 100_000, "larger than 100,000 bytes"),
        (BOTH + "A = 1", "") ,
        (BOTH + "A = (", "cannot be read"),
        (BOTH + "\0", "cannot be read"),
        (BOTH + "A = " + "(" * 5_000, "cannot be read"),
        (BOTH + "A = " + "-" * 50_000 + "1", "cannot be read"),
        (BOTH + "ABSOLUTE_PROMPT = 3", "a text|no text"),
        (BOTH + "ABSOLUTE_PROMPT = b'bytes'", "no text"),
        (BOTH + "ABSOLUTE_PROMPT = 0x" + "f" * 20_000, "ABSOLUTE_PROMPT is no text"),
    ],
)  # fmt: skip
def test_a_hostile_or_broken_template_is_refused_with_its_reason(text, why, tmp_path):
    path = written(tmp_path, text)
    if not why:
        assert judge(path)
        return
    with pytest.raises(OptionError, match=why) as raised:
        judge(path)
    assert len(str(raised.value)) < 2_000


@pytest.mark.parametrize("path", [5, ["prompts.py"], True])
def test_a_template_that_is_no_path_is_refused(path):
    with pytest.raises(OptionError, match="cannot be read"):
        judge(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(OptionError, match=r"none\.py.* cannot be read .*No such file"):
        judge(tmp_path / "none.py")


def test_a_mode_without_its_text_is_refused_before_anything_is_asked(tmp_path):
    with pytest.raises(OptionError, match="template has no text RELATIVE_PROMPT_WO_REF"):
        judge(written(tmp_path, BOTH)).compare("a", "b")
    only = written(tmp_path, BOTH.splitlines()[0])
    assert judge(only, reference=False)
    with pytest.raises(OptionError, match="has no text ABSOLUTE_PROMPT, which this judge needs"):
        judge(only)
