"""The induced metric: exact arithmetic, honest about what is missing, saved without loss."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import replace

import dspy
import numpy as np
import pytest
from dspy.utils import DummyLM

from loopback import scripted
from metricsmith.bank.catalogue import default_bank
from metricsmith.bank.column import ColumnMetric
from metricsmith.errors import JudgementFailed, StateError
from metricsmith.metric import Metric, make_row
from metricsmith.programs.induced import InducedMetric, best_contributions
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.loading import load
from metricsmith.programs.state import write_state
from metricsmith.records import Scale, Status, Task
from metricsmith.scoring import score
from metricsmith.stats.regression import LinearCombination, NormalScore, ZScore
from metricsmith.testing import GivenModel
from planted import TASK, planted_rows

ROWS = planted_rows()


def combination(names, weights, values):
    """Half of the columns as z-scores, half as normal scores, all of them fitted on `values`."""
    kinds = [(ZScore, NormalScore)[place % 2] for place in range(len(names))]
    columns = tuple(kind.fit(column) for kind, column in zip(kinds, values.T, strict=True))
    return LinearCombination(tuple(names), tuple(range(len(names))), columns, tuple(weights), 3.0)


def induced(components, weights, rows=ROWS, task=TASK):
    values = score(components, rows, progress=False).run()
    names = [component.name for component in components]
    metric = InducedMetric(
        components=components, combination=combination(names, weights, values), task=task, best=[0.0] * len(names)
    )
    metric.settings.values["best"] = best_contributions(metric.combination, values, task.scale)
    return metric


def bank_metric():
    bank = default_bank()
    return induced([bank.get("rouge1_r"), bank.get("levenshtein_distance"), bank.get("bleu")], [0.6, -0.3, 0.2])


def test_a_metric_costs_what_its_dearest_component_costs():
    metric = bank_metric()
    for costs, dearest in ((("free", "cheap", "free"), "cheap"), (("cheap", "local", "free"), "local"),
                           (("local", "model", "cheap"), "model"), (("free", "free", "free"), "free")):  # fmt: skip
        for place, cost in enumerate(costs):
            part = metric.components[place]
            family = replace(part.family, card=replace(part.card, cost=cost))
            metric.components[place] = replace(part, family=family)
        assert metric.card.cost == dearest


def judged_metric(weight=0.5):
    judge = CriterionJudge(criterion="Plain words", meaning="Short.", task="Write.")
    names, values = [judge.name, "good"], np.array([[1.0, 1.0], [3.0, 2.0], [5.0, 3.0]])
    return InducedMetric(
        components=[judge, ColumnMetric("good")],
        combination=combination(names, [weight, 0.5], values),
        task=TASK,
        best=[1.0, 1.0],
    )


def answers(*scores):
    return DummyLM([{"reasoning": f"because {value}", "score": str(value)} for value in scores])


def test_it_is_a_metric():
    assert isinstance(bank_metric(), Metric)


def test_batch_and_single_scores_agree_to_the_last_bit():
    metric = bank_metric()
    batch = [judgement.raw for judgement in metric.judge_batch(ROWS)]
    assert batch == [metric.judge_batch([row])[0].raw for row in ROWS]


def test_contributions_and_intercept_add_up_to_the_prediction():
    for explanation in bank_metric().explain(ROWS[:10]):
        total = math.fsum([explanation.intercept, *(part.contribution for part in explanation.parts)])
        assert total == explanation.prediction.raw


def test_the_score_is_the_clipped_share_of_the_scale():
    for judgement in bank_metric().judge_batch(ROWS):
        assert judgement.score == pytest.approx(min(1.0, max(0.0, (judgement.raw - 1) / 4)))


def test_where_lower_is_better_the_score_is_reversed():
    task = Task("Count errors.", "errors", Scale(0, 10, higher_is_better=False))
    metric = induced([ColumnMetric("good")], [1.0], task=task)
    low, high = sorted(metric.judge_batch(ROWS), key=lambda judgement: judgement.raw)[:: len(ROWS) - 1]
    assert low.score > high.score
    assert metric.output.higher_is_better is False


def test_costs_are_measured_from_the_best_training_row_and_never_negative():
    explanations = bank_metric().explain(ROWS)
    costs = np.array([[part.cost for part in explanation.parts] for explanation in explanations])
    assert (costs >= 0).all()
    np.testing.assert_allclose(costs.min(axis=0), 0, atol=1e-12)


def test_feedback_names_the_costliest_component_first():
    metric = bank_metric()
    for explanation in metric.explain(ROWS):
        first = explanation.prediction.feedback.splitlines()[0]
        costliest = max(explanation.parts, key=lambda part: part.cost)
        assert first.startswith(costliest.name)


def test_judges_give_their_reasons_in_the_feedback():
    with dspy.context(lm=answers(2)):
        (judgement,) = judged_metric().judge_batch([make_row("text", columns={"good": 2.0})])
    assert "plain_words = 2 (Short; more is better)" in judgement.feedback
    assert "because 2" in judgement.feedback


def test_a_failed_component_counts_as_average_and_is_named():
    row = make_row("text", columns={"good": 3.0})
    with dspy.context(lm=answers(9, 9)):
        (explanation,) = judged_metric(weight=0.4).explain([row])
    part = explanation.parts[0]
    assert math.isnan(part.contribution)
    assert part.judgement.status is Status.OUT_OF_RANGE
    assert explanation.prediction.ok
    assert explanation.prediction.raw == pytest.approx(explanation.intercept + explanation.parts[1].contribution)
    assert "plain_words: no value" in explanation.prediction.feedback


def test_without_most_of_the_weight_there_is_no_prediction():
    metric, row = judged_metric(weight=0.6), make_row("text", columns={"good": 3.0})
    with dspy.context(lm=answers(9, 9)):
        (judgement,) = metric.judge_batch([row])
    assert (judgement.raw, judgement.status) == (None, Status.OUT_OF_RANGE)
    with dspy.context(lm=answers(9, 9)), pytest.raises(JudgementFailed, match="too little to go by"):
        metric(output="text")


def test_saving_and_loading_give_identical_scores(tmp_path):
    metric = bank_metric()
    metric.save(tmp_path / "metric.json")
    again = load(tmp_path / "metric.json")
    assert [j.raw for j in again.judge_batch(ROWS)] == [j.raw for j in metric.judge_batch(ROWS)]
    assert again.fingerprint() == metric.fingerprint()
    assert again.to_state() == metric.to_state()


def test_a_judge_inside_survives_saving(tmp_path):
    metric = judged_metric()
    metric.components[0].judge.demos = [dspy.Example(output="o", reasoning="r", score=3)]
    metric.save(tmp_path / "metric.json")
    again = load(tmp_path / "metric.json")
    assert again.to_state() == metric.to_state()
    with dspy.context(lm=answers(4)):
        assert again.judge_batch([make_row("t", columns={"good": 2.0})])[0].ok


def test_a_changed_file_is_refused(tmp_path):
    path = tmp_path / "metric.json"
    bank_metric().save(path)
    content = json.loads(path.read_text())
    content["combination"]["intercept"] += 1
    path.write_text(json.dumps(content))
    with pytest.raises(StateError, match="does not match its own hash"):
        load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not a readable metric file"),
        ("[]", "not a metric file"),
        ('{"kind": "induced"}', "schema version None"),
    ],
)
def test_what_is_no_metric_file_is_refused(tmp_path, content, message):
    path = tmp_path / "metric.json"
    path.write_text(content)
    with pytest.raises(StateError, match=message):
        load(path)


def test_an_unknown_kind_is_refused_with_the_nearest(tmp_path):
    write_state({"kind": "inducd"}, tmp_path / "metric.json")
    with pytest.raises(StateError, match="did you mean 'induced'"):
        load(tmp_path / "metric.json")


def test_a_missing_file_is_a_state_error(tmp_path):
    with pytest.raises(StateError, match="not a readable metric file"):
        load(tmp_path / "none.json")


class Holder(dspy.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, **texts):
        return self.inner(**texts)


def test_dspy_save_and_load_round_trip_inside_a_program(tmp_path):
    first, second = judged_metric(weight=0.5), judged_metric(weight=-0.2)
    Holder(first).save(str(tmp_path / "program.json"))
    program = Holder(second)
    program.load(str(tmp_path / "program.json"))
    assert program.inner.combination == first.combination


def test_a_state_of_other_components_is_refused():
    metric, other = bank_metric(), induced([ColumnMetric("good"), ColumnMetric("junk")], [1.0, 0.1])
    metric.settings.load_state(other.settings.dump_state())
    with pytest.raises(StateError, match="made of good, junk"):
        metric.judge_batch(ROWS[:1])


def test_it_serves_as_a_dspy_metric_and_reward():
    metric = bank_metric().as_metric()
    result = dspy.Evaluate(devset=ROWS[:6], metric=metric, num_threads=2, display_progress=False)(
        lambda **texts: dspy.Prediction(output=texts["output"])
    )
    assert 0 < result.score < 100
    verdict = metric(ROWS[0], dspy.Prediction(output="other words"), None, "predict", [])
    assert 0 <= verdict.score <= 1
    assert verdict.feedback


def test_an_empty_combination_predicts_its_intercept():
    metric = InducedMetric(components=[], combination=LinearCombination((), (), (), (), 2.5), task=TASK, best=[])
    assert [judgement.raw for judgement in metric.judge_batch(ROWS[:2])] == [2.5, 2.5]


def columns_metric(weights, task=TASK):
    """Two columns, a and b, that both ran from 1 to 5 in training (mean 3, population sd sqrt 2)."""
    names, column = ("a", "b"), ZScore.fit(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    return InducedMetric(
        components=[ColumnMetric(name) for name in names],
        combination=LinearCombination(names, (0, 1), (column, column), tuple(weights), 3.0),
        task=task,
        best=[1.0, -1.0],
        signature="made by hand",
    )


def test_half_of_the_weight_may_be_missing_and_no_more():
    row = make_row("text", columns={"a": 5.0})
    even, uneven = columns_metric([0.5, 0.5]), columns_metric([0.5, -0.52])
    assert even.judge_batch([row])[0].ok
    assert uneven.judge_batch([row])[0].status is Status.SKIPPED


def test_costs_and_their_order_follow_a_scale_where_lower_is_better():
    # z of 5 is 2 / sqrt 2 = sqrt 2; the contributions are .5 sqrt 2 and -1 sqrt 2. Where lower is better the best
    # ones are the least: above `best` by .5 sqrt 2 - (-1) for a, by -sqrt 2 - (-1) < 0 for b.
    task = Task("Count errors.", "errors", Scale(1, 5, higher_is_better=False))
    metric = columns_metric([0.5, -1.0], task)
    metric.settings.values["best"] = [-1.0, -1.0]
    (explanation,) = metric.explain([make_row("text", columns={"a": 5.0, "b": 5.0})])
    assert [part.cost for part in explanation.parts] == pytest.approx([0.5 * math.sqrt(2) + 1, 0.0])
    assert explanation.prediction.feedback.splitlines()[0].startswith("a = 5")


def test_the_best_contribution_is_the_least_where_lower_is_better():
    values = np.array([[1.0, 3.0], [5.0, 3.0]])
    task = Task("Count errors.", "errors", Scale(1, 5, higher_is_better=False))
    # z of 1 and 5 are -+ sqrt 2 and the weight is .5; z of 3 is 0.
    weighted = columns_metric([0.5, 1.0]).combination
    assert best_contributions(weighted, values, TASK.scale) == pytest.approx([0.5 * math.sqrt(2), 0.0])
    assert best_contributions(weighted, values, task.scale) == pytest.approx([-0.5 * math.sqrt(2), 0.0])


def test_a_judgement_costs_what_its_components_cost_whether_or_not_it_has_a_value():
    row = make_row("text", columns={"good": 3.0})
    for answer, weight, ok in [({"reasoning": "r", "score": "4"}, 0.5, True), ({"reasoning": "r"}, 0.6, False)]:
        with GivenModel(lambda prompt, answer=answer: answer) as server, dspy.context(lm=server.lm()):
            (judgement,) = judged_metric(weight=weight).judge_batch([row])
        assert judgement.ok is ok
        assert judgement.usage.requests == server.requests > 0


def test_a_model_failure_is_named_before_a_row_that_lacks_a_column():
    judge = CriterionJudge(criterion="Plain words", meaning="Short.", task="Write.")
    components = [ColumnMetric("good"), judge]
    values = np.array([[1.0, 1.0], [2.0, 5.0]])
    both = combination([component.name for component in components], [0.5, 0.5], values)
    metric = InducedMetric(components=components, combination=both, task=TASK, best=[1.0, 1.0])
    with dspy.context(lm=answers(9, 9)):
        (judgement,) = metric.judge_batch([make_row("text")])
    assert judgement.status is Status.OUT_OF_RANGE
    assert "plain_words" in judgement.error


def test_a_call_without_a_value_raises_with_its_status():
    with dspy.context(lm=answers(9, 9)), pytest.raises(JudgementFailed) as caught:
        judged_metric(weight=0.6)(output="text")
    assert caught.value.status == Status.OUT_OF_RANGE


def test_the_card_needs_what_the_components_need():
    assert judged_metric().card.needs == ("model",)
    assert judged_metric().card.cost == "model"
    assert "references" in bank_metric().card.needs
    assert bank_metric().card.cost != "model"


def test_fingerprints_follow_weights_scale_and_components():
    task = Task(TASK.description, TASK.target, Scale(1, 6))
    prints = {
        metric.fingerprint()
        for metric in (
            columns_metric([0.5, 0.5]),
            columns_metric([0.5, 0.6]),
            columns_metric([0.5, 0.5], task),
            induced([ColumnMetric("good"), ColumnMetric("junk")], [0.5, 0.5]),
        )
    }
    assert len(prints) == 4


def test_the_signature_is_saved_and_loaded(tmp_path):
    columns_metric([0.5, 0.5]).save(tmp_path / "metric.json")
    assert load(tmp_path / "metric.json").settings.signature == "made by hand"


def test_a_judges_whole_state_round_trips_inside_a_program(tmp_path):
    first, second = judged_metric(), judged_metric()
    first.components[0].settings.values["meaning"] = "Other words."
    Holder(first).save(str(tmp_path / "program.json"))
    program = Holder(second)
    program.load(str(tmp_path / "program.json"))
    assert program.inner.components[0].settings.meaning == "Other words."


def test_the_async_twin_sees_the_callers_model_and_every_text():
    judge = CriterionJudge(criterion="Plain words", meaning="Short.", task="Write.")
    metric = InducedMetric(
        components=[judge], combination=combination([judge.name], [1.0], np.array([[1.0], [5.0]])), task=TASK, best=[0]
    )

    async def ask(**texts):
        return await metric.acall(**texts)

    with GivenModel(scripted) as server, dspy.context(lm=server.lm()):
        verdict = asyncio.run(ask(output="OUT", input="IN", references=["REF"], context="CTX"))
    assert verdict.raw == pytest.approx(metric.combination.predict(np.array([[verdict_level(verdict)]]))[0])
    assert all(text in server.prompts[0] for text in ("OUT", "IN", "REF", "CTX"))


def verdict_level(verdict):
    """The judge's number, read back from the feedback."""
    return float(verdict.feedback.split(" = ")[1].split()[0])


def test_corpus_statistics_are_saved_with_the_metric(tmp_path):
    cider = next(metric for metric in default_bank().metrics() if metric.card.name == "CIDEr").fit(ROWS)
    metric = induced([cider], [1.0])
    metric.save(tmp_path / "metric.json")
    again = load(tmp_path / "metric.json")
    assert again.components[0].statistics is not None
    assert [j.raw for j in again.judge_batch(ROWS[:3])] == [j.raw for j in metric.judge_batch(ROWS[:3])]


def test_load_reads_a_file_into_a_metric_built_in_the_same_way_and_refers_others_to_ours(tmp_path):
    judged_metric(weight=-0.2).save(tmp_path / "metric.json")
    metric = judged_metric(weight=0.5)
    metric.load(tmp_path / "metric.json")
    assert metric.to_state() == judged_metric(weight=-0.2).to_state()
    with pytest.raises(StateError, match=r"metricsmith\.load"):
        bank_metric().load(tmp_path / "metric.json")
