"""The bound holds, and is no wild guess."""

from __future__ import annotations

import json

import dspy
import pytest

from faults import draw
from metricsmith.bank.catalogue import default_bank
from metricsmith.errors import NeedsError, OptionError
from metricsmith.optimizers.gepa_bound import gepa_bound
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.testing import GivenModel

ROWS = [dspy.Example(input=f"notice {n}").with_inputs("input") for n in range(12)]
JUDGE = CriterionJudge(criterion="Brevity", meaning="Short.", task="Write.")


class Steps(dspy.Module):
    def __init__(self):
        super().__init__()
        self.plan = dspy.Predict("input -> plan")
        self.write = dspy.Predict("input, plan -> output")

    def forward(self, input):
        return self.write(input=input, plan=self.plan(input=input).plan)


def answer(prompt):
    """A model whose luck hangs on instruction and row, so that GEPA keeps some candidates and seeds differ."""
    luck = draw(prompt, 0, 0)
    if "new_instruction" in prompt:
        return json.dumps({"new_instruction": f"better {luck:.3f}"})
    if "## score ##" in prompt.rsplit("Respond with", 1)[-1]:
        output = prompt.rsplit("[[ ## output ## ]]", 1)[-1]
        return {"reasoning": "seen", "score": str(min(5, 1 + output.count("good")))}
    if "## plan ##" in prompt.rsplit("Respond with", 1)[-1]:
        return {"plan": f"plan {luck:.3f}"}
    goods = min(4, int(4 * luck + prompt.count("better") / 8))
    return {"output": "good " * goods + prompt.rsplit("notice", 1)[-1][:3]}


def run(seed, calls, reward=None, **options):
    with GivenModel(answer) as server:
        lm = server.lm(num_retries=0)
        with dspy.context(lm=lm):
            reward = (reward or JUDGE).as_reward()
            optimizer = dspy.GEPA(
                metric=reward, max_metric_calls=calls, reflection_lm=lm, num_threads=2, seed=seed, track_stats=True,
                **options,
            )  # fmt: skip
            bound = gepa_bound(optimizer, Steps(), ROWS[:5], ROWS[5:])
            done = optimizer.compile(Steps(), trainset=ROWS[:5], valset=ROWS[5:])
        return bound, done.detailed_results, server, reward


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("calls", "options"), [(40, {}), (75, {}), (23, {"use_merge": False}), (31, {"component_selector": "all"})]
)
def test_a_run_stays_within_its_bound(seed, calls, options):
    bound, results, server, reward = run(seed, calls, **options)
    reflections = sum("examples_with_feedback" in prompt for prompt in server.prompts)
    assert calls <= results.total_metric_calls <= bound.rollouts
    assert 0 < reflections <= bound.proposals * bound.reflection
    assert server.requests <= bound.requests
    assert reward._ledger.calls <= bound.rollouts + bound.feedbacks


def test_the_budget_is_overshot_and_the_bound_knows_it():
    # v = 7, b = 3: the seed costs 7, an accepted proposal 3 + 3 + 7 = 13; with N = 8 the one iteration ends at 20.
    bound, results, _, _ = run(1, 8)
    assert (results.total_metric_calls, bound.rollouts) == (20, 20)


def test_a_budget_below_the_validation_rows_buys_the_first_pass_alone():
    bound, results, server, _ = run(0, 5)
    assert (bound.rollouts, bound.proposals, results.total_metric_calls) == (7, 0, 7)
    assert server.requests == 7 * 3


def test_figures_by_hand():
    lm = dspy.utils.DummyLM([])
    with dspy.context(lm=lm):
        optimizer = dspy.GEPA(metric=JUDGE.as_reward(), max_metric_calls=40, reflection_lm=lm)
        bound = gepa_bound(optimizer, Steps(), ROWS[:5], ROWS[5:])
        # 40 - 1 + 2 * 3 + 7 = 52 rollouts; ceil((40 - 7) / 3) = 11 proposals; 2 predictors twice; 6 tries; 2 tries
        assert (bound.rollouts, bound.proposals, bound.feedbacks) == (52, 11, 33)
        assert bound.requests == 52 * (4 + 6) + 11 * 2 == 542
        assert str(bound).startswith("at most 542 requests: 52 runs")
        assert gepa_bound(optimizer, Steps(), ROWS[:5], ROWS[5:], program_requests=9).program == 9
        itself = dspy.GEPA(metric=JUDGE, max_metric_calls=40, reflection_lm=lm)
        assert gepa_bound(itself, Steps(), ROWS[:5], ROWS[5:]) == bound
        full = dspy.GEPA(metric=JUDGE.as_reward(), max_full_evals=2, reflection_lm=lm, use_merge=False)
        assert gepa_bound(full, Steps(), ROWS[:5]).rollouts == 10 - 1 + 6 + 5
        auto = dspy.GEPA(metric=JUDGE.as_reward(), auto="light", reflection_lm=lm)
        assert gepa_bound(auto, Steps(), ROWS[:5], ROWS[5:]).rollouts == auto.auto_budget(2, 6, 7) - 1 + 6 + 7


def test_a_metric_without_a_model_costs_nothing_to_judge():
    lm = dspy.utils.DummyLM([])
    optimizer = dspy.GEPA(metric=default_bank().get("fkgl").as_reward(), max_metric_calls=40, reflection_lm=lm)
    assert gepa_bound(optimizer, Steps(), ROWS).judging == 0


def test_what_cannot_be_bounded_is_refused():
    lm = dspy.utils.DummyLM([])
    reward = default_bank().get("fkgl").as_reward()
    optimizer = dspy.GEPA(
        metric=reward, max_metric_calls=9, reflection_lm=lm, gepa_kwargs={"stop_callbacks": [lambda state: False]}
    )
    with pytest.raises(OptionError, match=r"GEPA's loop \(stop_callbacks\)"):
        gepa_bound(optimizer, Steps(), ROWS)
    optimizer = dspy.GEPA(metric=lambda a, b, c, d, e: 1.0, max_metric_calls=9, reflection_lm=lm)
    with pytest.raises(OptionError, match="only of a Reward"):
        gepa_bound(optimizer, Steps(), ROWS)
    with pytest.raises(OptionError, match="trainset is empty"):
        gepa_bound(dspy.GEPA(metric=reward, max_metric_calls=9, reflection_lm=lm), Steps(), [])
    with pytest.raises(NeedsError):
        gepa_bound(dspy.GEPA(metric=JUDGE.as_reward(), max_metric_calls=9, reflection_lm=lm), Steps(), ROWS)
