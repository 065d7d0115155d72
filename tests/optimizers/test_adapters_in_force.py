"""Induction and tuning ask in the form that the user has in force, and a metric says under which it was fitted."""

from __future__ import annotations

import json
import logging

import dspy
import pytest

from loopback import scripted, serve
from metricsmith.errors import OptionError
from metricsmith.metric import make_row
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.tuner import JudgeTuner
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.loading import load
from metricsmith.records import Scale, Task
from metricsmith.scoring import score

TASK = Task("Rewrite notices.", "rating", Scale(1, 5, 1))
RATED = [make_row("word " * (n % 7 + 1) + f"{n}", input=f"q{n}", id=str(n), rating=n % 5 + 1) for n in range(24)]
POOL = {"criterion": 2, "rubric": 1, "examples": 1}
MARKS = {"json": "Respond with a JSON object", "xml": "wrapped in XML tags"}


def judge():
    return CriterionJudge(criterion="Clear", meaning="It is clear.", task="Rewrite notices.")


def answers(prompt):
    """The scripted model, in the form that the prompt asks for."""
    fields = scripted(prompt.replace(MARKS["json"], "Respond with the corresponding output fields"))
    if MARKS["json"] in prompt:
        return json.dumps({name: int(value) if name == "score" else value for name, value in fields.items()})
    if MARKS["xml"] in prompt:
        return "".join(f"<{name}>{value}</{name}>" for name, value in fields.items())
    return fields


def induced(server, adapter):
    with dspy.context(adapter=adapter):
        made = AutoMetrics(TASK, bank="generated", generators=POOL, k=4, n=2, lm=server.lm(temperature=1.0))
        return made.compile(RATED)


def test_an_induction_asks_in_the_form_in_force_and_its_metric_says_so_once(tmp_path, caplog):
    with serve(answers) as server:
        metric = induced(server, dspy.JSONAdapter())
        assert all(MARKS["json"] in prompt for prompt in server.prompts)
        assert len(server.prompts) > 24
        metric.save(tmp_path / "metric.json")
        state = json.loads((tmp_path / "metric.json").read_text())
        assert state["adapter"] == "json"
        loaded = load(tmp_path / "metric.json")
        assert loaded.fingerprint() == metric.fingerprint()
        said = "fitted under DSPy's adapter 'json' and is used under 'chat'"
        with dspy.context(adapter=dspy.JSONAdapter(), lm=server.lm()):
            score([loaded], RATED[:2], progress=False)
            assert said not in caplog.text
        with dspy.context(lm=server.lm()):
            before = len(server.prompts)
            score([loaded], RATED[:2], progress=False)
            loaded(output="text")
            assert not any(MARKS["json"] in prompt for prompt in server.prompts[before:])  # the one in force counts
    assert [record.levelno for record in caplog.records if said in record.message] == [logging.WARNING]


def test_a_metric_of_the_plain_chat_adapter_is_written_as_before():
    with serve(answers) as server:
        plain, chosen = induced(server, None), induced(server, dspy.ChatAdapter())
    assert "adapter" not in plain.to_state()
    assert plain.to_state() == chosen.to_state()


@pytest.mark.parametrize("form", ["json", "xml"])
def test_tuning_asks_in_the_form_in_force(form):
    adapter = dspy.JSONAdapter() if form == "json" else dspy.XMLAdapter()
    with serve(answers) as server, dspy.context(adapter=adapter, lm=server.lm(temperature=1.0)):
        tuned = JudgeTuner(method="labeled", task=TASK).compile(judge(), RATED)
    assert tuned.tuning is not None
    assert len(server.prompts) > 24
    assert all(MARKS[form] in prompt for prompt in server.prompts)


@pytest.mark.parametrize("own", [lambda lm: dspy.TwoStepAdapter(lm), lambda lm: "json"], ids=["two-step", "no adapter"])
def test_an_adapter_with_a_model_of_its_own_is_refused_before_the_first_request(own):
    with serve(answers) as server, dspy.context(adapter=own(server.lm()), lm=server.lm(temperature=1.0)):
        for run in (
            lambda: AutoMetrics(TASK, bank="generated", generators=POOL).compile(RATED),
            lambda: JudgeTuner(method="labeled", task=TASK).compile(judge(), RATED),
        ):
            with pytest.raises(OptionError, match=r"asks a model of its own|is no dspy\.Adapter"):
                run()
    assert server.requests == 0
