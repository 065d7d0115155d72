"""Prometheus judges as a family of candidates, and with a model of their own among the caller's candidates."""

from __future__ import annotations

import dspy

import metricsmith
from loopback import QUALITIES, scripted, serve
from metricsmith.judges import PrometheusJudge
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.generation import DEFAULT_COUNTS, GENERATORS, generate_judges
from metricsmith.optimizers.spending import _sample
from metricsmith.scoring import score
from planted import TASK, planted_rows

ROWS = planted_rows(sources=12)
LEVELS = ["none", "some", "half", "most", "all"]


def on_the_form(prompt):
    """A level that rises with the words that are kept; any other prompt as the script answers it."""
    if not prompt.endswith("###Feedback: "):
        return scripted(prompt)
    words = prompt.split("###Response to evaluate:\n")[1].split("\n\n###")[0].split()
    kept = len([word for word in words if word != "indeed"])
    return f"{kept} words kept. [RESULT] {min(5, max(1, kept // 3))}"


def test_the_family_is_off_unless_asked_for_and_takes_one_request_for_the_levels_of_each():
    assert "prometheus" not in DEFAULT_COUNTS
    with serve(scripted) as server, dspy.context(lm=server.lm()):
        made = generate_judges(ROWS, TASK, {"criterion": 1, "prometheus": 2})
    assert server.requests == made.usage.requests == 1 + 2
    assert [judge.kind for judge in made.metrics] == ["criterion_judge", "prometheus_judge", "prometheus_judge"]
    assert [judge.settings.criterion for judge in made.metrics] == list(QUALITIES[:3])
    assert made.metrics[1].settings.levels == [f"Level {number} of five." for number in range(1, 6)]
    assert not GENERATORS["prometheus"].on_panels


def test_an_estimate_counts_the_form_that_is_asked():
    assert _sample("prometheus", TASK).kind == "prometheus_judge"


def test_an_axis_without_levels_is_lacking():
    def three(prompt):
        return {"levels": ["a", "b", "c"]} if "## levels ##" in prompt else scripted(prompt)

    with serve(three) as server, dspy.context(lm=server.lm()):
        made = generate_judges(ROWS, TASK, {"criterion": 1, "prometheus": 1})
    assert [(lack.family, lack.count) for lack in made.lacks] == [("prometheus", 1)]


def test_an_induction_with_the_family_is_saved_and_scores_the_same(tmp_path):
    counts = {"criterion": 1, "rubric": 1, "prometheus": 2}
    with serve(on_the_form) as server:
        lm = server.lm(temperature=1.0)
        made = AutoMetrics(TASK, bank="generated", generators=counts, full=True, lm=lm, panel=True)
        metric = made.compile(ROWS)
        kinds = sorted(part.card.kind for part in metric.components)
        assert kinds == ["panel_member", "panel_member", "prometheus_judge", "prometheus_judge"]
        assert sum(prompt.endswith("###Feedback: ") for prompt in server.prompts) == 2 * len(ROWS)
        metric.save(tmp_path / "metric.json")
        loaded = metricsmith.load(tmp_path / "metric.json")
        tables = [score([one], ROWS[:4], lm=lm, progress=False).values.tolist() for one in (metric, loaded)]
        assert tables[0] == tables[1]
    assert "rubric judge on the form of Prometheus 2" in metric.record._repr_html_()


def test_a_candidate_with_a_model_of_its_own_asks_that_and_the_induction_the_other():
    judge = PrometheusJudge(criterion="Kept", meaning="Words are kept.", levels=LEVELS, task=TASK.description)
    with serve(on_the_form) as trained, serve(scripted) as general:
        judge.set_lm(trained.lm(temperature=1.0))
        made = AutoMetrics(
            TASK,
            metrics=[judge],
            bank="generated",
            generators={"criterion": 1},
            full=True,
            lm=general.lm(temperature=1.0),
        )
        metric = made.compile(ROWS)
        sent = trained.requests, general.requests
        score([metric], ROWS[:2], lm=general.lm(), progress=False)
    assert sent == (len(ROWS), 1 + len(ROWS))
    assert (trained.requests - sent[0], general.requests - sent[1]) == (2, 2)
    assert not any(prompt.endswith("###Feedback: ") for prompt in general.prompts)
