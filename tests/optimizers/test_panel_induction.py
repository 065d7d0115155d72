"""Induction with its judges on one panel: same candidates, one request a row, and what it saves is said."""

from __future__ import annotations

import json
from dataclasses import replace

import dspy
import pytest

import metricsmith
from gathered import gather
from loopback import scripted, serve
from metricsmith.bank.catalogue import MetricBank, family
from metricsmith.model_calls.limits import estimate_tokens
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.induce import induce_splits
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.spending import PassRows, estimate_passes, estimate_run
from metricsmith.optimizers.splits import RatedRows, Splits
from metricsmith.programs.judges.base import Judge
from metricsmith.programs.judges.panel import Panel, PanelMember
from metricsmith.programs.recommenders.base import Recommendation, unscored
from metricsmith.programs.recommenders.bm25 import BM25Recommender
from metricsmith.report.induction.document import RunDocument
from metricsmith.report.induction.record import PanelTokens
from metricsmith.report.render import render_html, render_markdown
from panels import asked_for, is_joint, panelled
from planted import TASK, planted_rows

BANK = MetricBank((family("levenshtein"), family("rouge")))
ROWS = planted_rows(sources=8)
COUNTS = {"criterion": 3, "rubric": 2}


class Picking:
    """A recommender that takes the cards of the names given."""

    def __init__(self, *names):
        self.names = names

    def recommend(self, task, cards, k=30):
        return Recommendation(self.names, unscored(self.names))


def gathered(panel, recommender=None, **options):
    sources = Options(metrics=BANK, bank="all", generators=COUNTS, panel=panel, **options)
    with serve(scripted) as server, dspy.context(lm=server.lm()):
        plan = sources.resolve(len(ROWS), True, True)
        return gather(ROWS, TASK, sources, plan, recommender or BM25Recommender())


def test_members_take_the_places_and_names_of_the_judges_and_are_treated_as_they_are():
    alone, together = gathered(False), gathered(True)
    assert [metric.name for metric in together.metrics] == [metric.name for metric in alone.metrics]
    assert (together.judged, together.declared) == (alone.judged, alone.declared)
    assert len(together.judged) == 5
    assert not any(isinstance(metric, Judge) for metric in together.metrics)
    assert [m.name for m in together.metrics if isinstance(m, PanelMember)] == together.panel.names
    assert {metric.asker for metric in together.metrics if isinstance(metric, PanelMember)} == {together.panel}
    assert alone.panel is None


def test_a_judge_that_takes_a_metrics_name_sits_under_its_new_one():
    def answer(prompt):
        found = scripted(prompt)
        if "axes" in found:
            found["axes"][0] = {"name": "rouge1_f", "meaning": "Takes a bank metric's name."}
        return found

    sources = Options(metrics=BANK, bank="all", generators={"criterion": 2}, panel=True)
    with serve(answer) as server, dspy.context(lm=server.lm()):
        candidates = gather(ROWS, TASK, sources, sources.resolve(len(ROWS), True, True), BM25Recommender())
    assert candidates.judged == {"rouge1_f_2", "plain_words"}
    assert candidates.panel.names == ["rouge1_f_2", "plain_words"]


def test_only_judges_that_retrieval_keeps_sit_on_the_panel():
    candidates = gathered(True, Picking("plain_words", "polite_tone_rubric"), k=2)
    assert [metric.name for metric in candidates.metrics] == candidates.panel.names
    assert candidates.panel.names == ["plain_words", "polite_tone_rubric"]


def test_without_judges_there_is_no_panel():
    sources = Options(metrics=BANK, bank="existing", panel=True)
    candidates = gather(ROWS, TASK, sources, sources.resolve(len(ROWS), False, True), BM25Recommender())
    assert candidates.panel is None


def sides(**changes):
    train = RatedRows.of(planted_rows(sources=8), "rating")
    return Splits("train_only", train, RatedRows.of([], "rating"), **changes)


def induced(n=2, **changes):
    """A run on 24 rated rows with five judges on a panel, and the server that it asked."""
    with serve(panelled) as server:
        sources = Options(bank="generated", generators=COUNTS, panel=True)
        options = replace(sources, n=n, lm=server.lm())
        estimated = estimate_run(sides(**changes), TASK, options)
        return induce_splits(sides(**changes), TASK, options), server, estimated


@pytest.fixture(scope="module")
def done():
    return induced()


def test_a_row_is_judged_in_one_request_as_was_estimated(done):
    induction, server, estimated = done
    # One request for all axes, two for rubrics, and one for each of 24 rows.
    assert server.requests == estimated.requests == induction.record.usage["requests"] == 1 + 2 + 24
    assert sum(map(is_joint, server.prompts)) == 24
    assert induction.record.judgements["ok"] == induction.record.judgements["requested"] == 24 * 5


def test_a_kept_component_is_a_member_whose_card_says_what_it_costs(done):
    metric, record = done[0].metric, done[0].record
    assert len(metric.components) == 2
    assert {component.kind for component in record.components} == {"panel_member"}
    assert all("all 5 criteria" in " ".join(component.card.limits) for component in record.components)
    assert len(metric.components[0].asker.names) == 5


def test_the_metric_loaded_again_asks_the_whole_panel_once_a_row_and_scores_the_same(done, tmp_path):
    metric = done[0].metric
    metric.save(tmp_path / "metric.json")
    loaded = metricsmith.load(tmp_path / "metric.json")
    rows = planted_rows(sources=2, seed=3, rated=False)
    with serve(panelled) as server, dspy.context(lm=server.lm()):
        before, after = metric.judge_batch(rows), loaded.judge_batch(rows)
    assert [judgement.raw for judgement in before] == [judgement.raw for judgement in after]
    assert server.requests == 2 * len(rows)
    assert {len(asked_for(prompt)) for prompt in server.prompts} == {5}


def test_the_record_holds_tokens_both_ways_and_the_reports_show_them(done, tmp_path):
    induction, server, _ = done
    tokens = induction.record.panel
    sent = [prompt for prompt in server.prompts if is_joint(prompt)]
    assert tokens.criteria == 5
    assert tokens.joint == pytest.approx(sum(map(estimate_tokens, sent)) / len(sent), abs=2)
    assert tokens.single > 2 * tokens.joint
    for page in (render_markdown(RunDocument(induction.record)), render_html(RunDocument(induction.record))):
        assert "all 5 criteria of the panel" in page
        assert f"{tokens.single / tokens.joint:.1f} times as many" in page
        assert "criterion of a panel" in page
    induction.write(tmp_path)
    assert json.loads((tmp_path / "report.json").read_text())["panel"]["joint"] == tokens.joint
    assert "panel" in induction.record.signature.split("k 30")[1]


def test_without_a_panel_nothing_is_said_of_one():
    with serve(scripted) as server:
        sources = Options(bank="generated", generators={"criterion": 1})
        record = induce_splits(sides(), TASK, replace(sources, lm=server.lm())).record
    assert record.panel is None
    assert "panel" not in record.as_dict()
    for page in (render_markdown(RunDocument(record)), render_html(RunDocument(record))):
        assert "of the panel" not in page


def test_the_estimate_of_tokens_lies_near_the_prompts(done):
    _, server, estimated = done
    sent = sum(map(estimate_tokens, server.prompts))
    assert 0.7 * sent < estimated.prompt_tokens < 1.5 * sent


def test_a_panel_is_estimated_at_one_request_a_row_and_fewer_tokens():
    alone, together = (
        estimate_passes(
            [PassRows(RatedRows.of(ROWS, "rating"))],
            TASK,
            Options(bank="generated", generators=COUNTS, panel=panel, lm=dspy.LM("unknown/model")),
        )
        for panel in (False, True)
    )
    assert (alone.requests, together.requests) == (1 + 2 + 5 * 24, 1 + 2 + 24)
    assert together.prompt_tokens < alone.prompt_tokens / 2
    assert together.completion_tokens < alone.completion_tokens


def test_compile_takes_a_panel():
    with serve(panelled) as server:
        rows = planted_rows(sources=8)
        optimizer = AutoMetrics(TASK, bank="generated", generators=COUNTS, panel=True, lm=server.lm())
        metric = optimizer.compile(rows[:18], rows[18:])
    assert all(isinstance(component, PanelMember) for component in metric.components)
    assert server.requests == 1 + 2 + 24


def test_tokens_of_no_rows_are_not_shown_as_numbers(done):
    from dataclasses import replace

    record = replace(done[0].record, panel=PanelTokens(5, float("nan"), float("nan")))
    text = render_markdown(RunDocument(record))
    assert "all 5 criteria of the panel." in text
    assert "nan" not in text.lower().split("## cost")[1].split("##")[0]


def test_a_panels_judges_are_the_generated_ones(done):
    panel = done[0].metric.components[0].asker
    assert isinstance(panel, Panel)
    assert [judge.kind for judge in panel.judges] == ["criterion_judge"] * 3 + ["rubric_judge"] * 2
