"""The page on Prometheus runs as it stands, and its table of answers is true."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import dspy
import pytest

from metricsmith.judges import PrometheusJudge
from metricsmith.signatures.prometheus import FORMS
from metricsmith.testing import GivenModel

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "prometheus.md").read_text("utf-8")


def test_the_block_prints_what_the_page_says():
    block, printed = re.findall(r"```(?:python|text)\n(.*?)```", PAGE, re.DOTALL)

    def answer(prompt):
        if "###Response A:" in prompt:
            return "So. [RESULT] A" if "Response A:\nThe road" in prompt else "So. [RESULT] B"
        return "Every word is common. [RESULT] 5"

    with GivenModel(answer) as model:
        given = model.lm()
        made = f'dspy.LM("{given.model}", api_base="{given.kwargs["api_base"]}", api_key="none")'
        block, times = re.subn(r"dspy\.LM\([^\n]*\)(?=\))", made, block)
        assert times == 1
        out = io.StringIO()
        with contextlib.redirect_stdout(out), dspy.context(lm=None):
            exec(compile(block, "prometheus.md", "exec"), {})
    assert out.getvalue() == printed
    assert model.requests == 3


def test_the_page_names_every_text_of_a_template():
    assert all(f"`{name}`" in PAGE for name in FORMS)


ANSWERS = [
    answer
    for line in PAGE.split("| answer | why not |")[1].split("\n\n")[0].splitlines()[2:]
    for answer in re.findall(r"`([^`]+)`", line.split("|")[1])
]


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_answers_of_the_table_are_not_read(answer):
    judge = PrometheusJudge(criterion="c", meaning="m", levels=list("abcde"), task="t")
    with GivenModel(lambda prompt: answer.replace("...", "It is short.")) as model, dspy.context(lm=model.lm()):
        with pytest.raises(dspy.AdapterParseError):
            judge(output="text")
