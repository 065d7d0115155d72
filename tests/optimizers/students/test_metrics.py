"""Recommender and generators as students: Evaluate and DSPy's optimisers run them, and a better prompt pays."""

from __future__ import annotations

import copy
import json
import math

import dspy
import pytest

from loopback import serve
from metricsmith.errors import DataError, JudgementFailed, ModelFailure, OptionError
from metricsmith.optimizers.students.episodes import (
    Episode,
    Gains,
    axes_episodes,
    recommendation_episodes,
    rubric_episodes,
)
from metricsmith.optimizers.students.metrics import RankingMetric, YieldMetric
from metricsmith.optimizers.students.yields import JudgeYield, Yield
from metricsmith.programs.generators.axes import AxesGenerator
from metricsmith.programs.generators.rubrics import RubricGenerator
from metricsmith.programs.recommenders.language_model import LMRecommender, PipelineRecommender
from metricsmith.signatures.generation import Axis
from students import GOOD, HINT, LEVELS, WEAK, answer, rated_table

TABLE = rated_table()
GAINS = Gains({"a": 0.5, "b": 0.4, "c": 0.2, "d": 0.1, "e": math.nan}, "by hand")
EPISODE = Episode(task="t", target="r", cards=[], k=3, label=GAINS)
AXES = [Axis(name=name, meaning=meaning) for name, meaning in (GOOD | WEAK).items()]
STUDENTS = {
    "recommender": (
        lambda: LMRecommender(max_prompt_tokens=20_000),
        lambda: recommendation_episodes(TABLE, k=5, splits=4),
        RankingMetric,
    ),
    "axes": (AxesGenerator, lambda: axes_episodes(TABLE, count=2, splits=4), YieldMetric),
    "rubric": (RubricGenerator, lambda: rubric_episodes(TABLE, AXES[2:4], splits=2), YieldMetric),
}


@pytest.fixture(params=STUDENTS)
def case(request):
    student, episodes, metric = STUDENTS[request.param]
    return student(), episodes(), metric()


def ranked(*names, unknown=()):
    return dspy.Prediction(names=list(names), unknown=list(unknown))


def predictor_fields(student):
    return [name for _, predictor in student.named_predictors() for name in predictor.signature.fields]


def evaluate(student, episodes, metric):
    return dspy.Evaluate(devset=episodes, metric=metric, num_threads=2, display_progress=False)(student).score


def hinted(student):
    better = student.deepcopy()
    for _, predictor in better.named_predictors():
        predictor.signature = predictor.signature.with_instructions(f"{predictor.signature.instructions} {HINT}")
    return better


def test_a_better_instruction_has_a_higher_score(case, server):
    student, episodes, metric = case
    before, after = evaluate(student, episodes, metric), evaluate(hinted(student), episodes, metric)
    assert 0 <= before < after - 5 <= 100


def test_gepa_finds_the_better_instruction(case, server):
    student, episodes, metric = case
    optimiser = dspy.GEPA(
        metric=metric, max_metric_calls=16, reflection_lm=server.lm(), reflection_minibatch_size=2, num_threads=2
    )
    tuned = optimiser.compile(student, trainset=episodes[:2], valset=episodes[2:])
    assert all(HINT in predictor.signature.instructions for _, predictor in tuned.named_predictors())
    assert evaluate(tuned, episodes[2:], metric) > evaluate(student, episodes[2:], metric)
    reflected = [prompt for prompt in server.prompts if "new_instruction" in prompt]
    assert "Missed: " in reflected[0] or "can be compared with the raters" in reflected[0]
    assert getattr(metric, "failures", 0) == 0


def test_bootstrapped_demonstrations_are_saved_and_loaded(case, server, tmp_path):
    student, episodes, metric = case
    metric.success_at = 0.0
    # Two more demonstrations are episodes as they are; without an answer no prompt shows them.
    optimiser = dspy.BootstrapFewShot(metric=metric, max_bootstrapped_demos=1, max_labeled_demos=3)
    tuned = optimiser.compile(student, trainset=episodes)
    assert [len(predictor.demos) for _, predictor in tuned.named_predictors()] == [3]
    tuned.save(tmp_path / "student.json")
    (saved,) = [part for part in json.loads((tmp_path / "student.json").read_text("utf-8")).values() if "demos" in part]
    for demo in saved["demos"]:
        assert set(demo) - {"augmented"} <= set(predictor_fields(tuned))
    loaded = type(student)()
    loaded.load(tmp_path / "student.json")
    server.prompts.clear()
    inputs = episodes[0].inputs()
    assert loaded(**inputs).toDict() == tuned(**inputs).toDict() == tuned.deepcopy()(**inputs).toDict()
    assert len(set(server.prompts)) == 1


def test_a_pipeline_is_tuned_through_its_second_stage(server):
    episodes = recommendation_episodes(TABLE, k=3, splits=2)
    pipeline = PipelineRecommender(second=LMRecommender(), first_k=20)
    assert [name for name, _ in pipeline.named_predictors()] == ["second.rank"]
    metric = RankingMetric()
    assert evaluate(hinted(pipeline), episodes, metric) > evaluate(pipeline, episodes, metric)


def test_a_demonstration_must_reach_the_bar(case, server):
    student, episodes, metric = case
    metric.success_at = 1.01
    tuned = dspy.BootstrapFewShot(metric=metric, max_bootstrapped_demos=1, max_labeled_demos=0).compile(
        student, trainset=episodes
    )
    assert [predictor.demos for _, predictor in tuned.named_predictors()] == [[]]


def test_mipro_runs_a_recommender(server):
    episodes = recommendation_episodes(TABLE, k=5, splits=4)
    optimiser = dspy.MIPROv2(
        metric=RankingMetric(), auto=None, num_candidates=2, max_bootstrapped_demos=1, max_labeled_demos=0,
        prompt_model=server.lm(),
    )  # fmt: skip
    server.answer = lambda prompt: (
        {"proposed_instruction": HINT}
        if "## proposed_instruction ##" in prompt
        else dict.fromkeys(("observations", "summary", "program_description", "module_description"), "COMPLETE")
        if "## names ##" not in prompt.rsplit("Respond with", 1)[-1]
        else answer(prompt)
    )
    tuned = optimiser.compile(
        LMRecommender(), trainset=episodes[:2], valset=episodes[2:], num_trials=4, minibatch=False
    )
    assert tuned.rank.signature.instructions == HINT


@pytest.mark.parametrize(("measure", "score"), [("recall", 2 / 3), ("ndcg", 0.5 / (0.5 + 0.4 / math.log2(3) + 0.1))])
def test_the_score_is_the_measure_at_the_examples_k(measure, score):
    # Ideal at 3: .5 + .4 / log2(3) + .2 / 2; named are a, nothing worth anything, and (for recall) c in place four.
    names = ("a", "e", "c") if measure == "recall" else ("a", "e")
    assert RankingMetric(measure)(EPISODE, ranked(*names)).score == pytest.approx(score)


def test_the_feedback_says_what_was_named_and_what_was_missed():
    feedback = RankingMetric()(EPISODE, ranked("e", "d", "a", "b", unknown=["BLEURT"])).feedback
    assert "recall@3 is 0.33: of the 3 metrics that follow the rating best, 1 stand there" in feedback
    assert "Best first they are a (0.50), b (0.40), c (0.20)" in feedback
    assert "Missed: b (0.40), c (0.20)." in feedback
    assert "Named although they follow it less: e (no number to go by), d (0.10)." in feedback
    assert "Not in the pool: 'BLEURT'." in feedback
    short = RankingMetric()(EPISODE, ranked("a", "b")).feedback
    assert "Only 2 of 3 names were given" in short
    assert "Named although" not in short
    perfect = RankingMetric()(EPISODE, ranked("a", "b", "c"))
    assert perfect.score == 1
    assert "Missed" not in perfect.feedback


def test_while_dspy_bootstraps_the_answer_is_a_truth_value(server):
    metric, good = RankingMetric(success_at=0.9), ranked("a", "b", "c")
    assert metric(EPISODE, good, []) is True
    assert metric(EPISODE, ranked("d"), []) is False
    assert metric(EPISODE, good, [], "rank", []).score == 1
    episode = axes_episodes(TABLE, splits=1, count=2)[0]
    answered = dspy.Prediction(axes=AXES[:2])
    assert YieldMetric(success_at=0.6)(episode, answered, []) is True
    assert YieldMetric(success_at=0.99)(episode, answered, []) is False
    assert YieldMetric()(episode, answered, [], "propose", []).score > 0.6


def test_a_yield_of_tau_scores_half_of_one_plus_tau(server):
    episode = axes_episodes(TABLE, splits=1, count=2)[0]
    measured = YieldMetric()(episode, dspy.Prediction(axes=AXES[:2]))
    found = float(measured.feedback.split("tau-b of ")[1].split()[0])
    assert measured.score == pytest.approx((1 + found) / 2, abs=0.003)
    assert f"'No padding' ({found:+.2f}, {len(episode.label.rows)} outputs)" in measured.feedback
    assert measured.feedback.startswith("2 of the 2 judges")


def test_the_feedback_tells_criteria_apart_by_number():
    levels = {"Flat": lambda level: 3, "Against": lambda level: 6 - level, "With": lambda level: level}

    def respond(prompt):
        name = prompt.rsplit("[[ ## criterion ## ]]", 1)[-1].split(":")[0].strip()
        able = prompt.replace(f"{name}: x", f"{next(iter(GOOD))}: x")
        return {"reasoning": "r", "score": levels[name](answer(able)["score"])}

    episode = axes_episodes(TABLE, splits=1, count=3)[0]
    prediction = dspy.Prediction(axes=[Axis(name=name, meaning="x") for name in levels])
    with serve(respond) as server:
        feedback = YieldMetric(server.lm())(episode, prediction).feedback
    assert feedback.startswith("2 of the 3 judges that were asked for can be compared with the raters")
    assert "Agree with the raters: 'With' (+0." in feedback
    assert "Point against the raters: 'Against' (-0." in feedback
    assert "Tell outputs apart too little to be compared with the raters: 'Flat'." in feedback
    assert "Say nothing" not in feedback


def test_equal_answers_are_judged_once(server):
    metric, episodes = YieldMetric(), axes_episodes(TABLE, splits=2, count=2)
    rows = len(episodes[0].label.rows)
    for axes in (AXES[:1], AXES[:1], AXES[2:3]):
        metric(episodes[0], dspy.Prediction(axes=axes))
    assert server.requests == 2 * rows
    metric(episodes[1], dspy.Prediction(axes=AXES[:1]))
    assert server.requests > 2 * rows
    with pytest.raises(JudgementFailed, match="1 of the 5 judges"):
        metric(axes_episodes(TABLE, splits=1, count=5)[0], dspy.Prediction(axes=AXES[:1]))


@pytest.mark.parametrize(
    ("tau", "head"),
    [(0.1, "Agree with"), (0.09, "Say nothing"), (-0.09, "Say nothing"), (-0.1, "Point against")],
)
def test_a_tau_below_a_tenth_is_described_as_saying_nothing(tau, head, monkeypatch):
    found = Yield(tau, (JudgeYield("Tone", tau, 12),), 1)
    monkeypatch.setattr("metricsmith.optimizers.students.metrics.yield_of", lambda *args, **options: found)
    feedback = YieldMetric()(axes_episodes(TABLE, splits=1)[0], dspy.Prediction(axes=AXES[:1])).feedback
    assert [part for part in ("Agree with", "Say nothing", "Point against") if part in feedback] == [head]
    assert f"'Tone' ({tau:+.2f}, 12 outputs)" in feedback


def test_what_has_no_value_raises_and_is_counted():
    episode = axes_episodes(TABLE, splits=1, count=5)[0]
    prediction = dspy.Prediction(axes=AXES[:2])
    with serve(answer) as server:
        metric = YieldMetric(server.lm())
        with pytest.raises(JudgementFailed, match=r"2 of the 5 judges .* no mean to go by"):
            metric(episode, prediction)
    with serve(answer, always=500) as server:
        metric.lm = server.lm()
        with pytest.raises(ModelFailure):
            metric(episode, dspy.Prediction(axes=AXES[2:]))
    assert metric.failures == 2


def test_a_copy_starts_anew_with_the_same_options():
    metric = YieldMetric("model", success_at=0.8, concurrency=3)
    metric.failures = 4
    twin = copy.deepcopy(metric)
    assert (twin.lm, twin.success_at, twin.scoring, twin.failures) == ("model", 0.8, {"concurrency": 3}, 0)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(OptionError, match="measure='mrr' must be one of ndcg, recall"):
        RankingMetric("mrr")
    with pytest.raises(DataError, match="no gains: make episodes with recommendation_episodes"):
        RankingMetric()(dspy.Example(k=2), ranked("a"))
    with pytest.raises(DataError, match="no order is better than another"):
        RankingMetric()(EPISODE.copy(label=Gains({"a": 0.0, "b": math.nan}, "by hand")), ranked("a"))
    with pytest.raises(DataError, match="no held-out rows"):
        YieldMetric()(EPISODE, dspy.Prediction(axes=AXES))


def test_rubrics_that_name_the_planted_quality_yield_more(server):
    episode = rubric_episodes(TABLE, AXES[2:3])[0]
    metric = YieldMetric()
    good, weak = (metric(episode, dspy.Prediction(levels=levels)).score for levels in (LEVELS, list("abcde")))
    assert good > 0.75 > weak


@pytest.mark.parametrize("kind", [RankingMetric, YieldMetric])
def test_without_an_answer_nothing_is_measured(kind):
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'pred'"):
        kind()(dspy.Example(task="t"))
