"""The Python of README and docs prints what they say it prints, and the README's links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import saved
from loopback import serve

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text("utf-8")


def answer(prompt):
    """A model that judges, rewrites notices, marks errors and writes instructions."""
    if "new_instruction" in prompt or "[[ ## rewrite ## ]]" not in prompt:
        return saved.answer(prompt)
    return {"rewrite": "The gate is shut."}


def test_the_five_doors_run_as_they_stand(tmp_path, monkeypatch, capsys):
    """One block after the other; the model's address is in the environment, as a user's key would be."""
    monkeypatch.chdir(tmp_path)
    names = {}
    with serve(answer) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_API_BASE", f"http://127.0.0.1:{server.port}/v1")
        for number, (block, shown) in enumerate(
            re.findall(r"```python\n(.*?)```(?:\n\n```\n(.*?)```)?", TEXT, re.DOTALL)
        ):
            exec(compile(block, "README.md", "exec"), names)
            if not number:
                assert capsys.readouterr().out == shown
        assert not server.wrong
    assert names["scores"].counts()["ok"] == 60
    assert names["better"].signature.instructions
    assert capsys.readouterr().out.splitlines()[-1] == "(1, 1, 1)"


def test_the_first_example_of_calibration_prints_what_is_shown(tmp_path, monkeypatch):
    name = "docs/calibration.md"
    text = (ROOT / name).read_text("utf-8")
    code, shown = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL).groups()
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, name, "exec"), {})
    assert printed.getvalue() == shown


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", TEXT))
def test_links_lead_to_files(link):
    assert (ROOT / link).exists()


def test_the_bank_is_as_large_as_it_says():
    from metricsmith.bank.catalogue import default_bank

    families, outputs = map(int, re.search(r"bank of (\d+) metric families \((\d+) outputs\)", TEXT).groups())
    assert (families, outputs) == (len(default_bank().families), len(default_bank().metrics()))
