"""Judges of options are tuned by the shares of raters who gave the same, by both searches, to the end."""

from __future__ import annotations

import json
import re
import warnings

import dspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from metricsmith.errors import DataError, OptionError
from metricsmith.judges import ChoiceJudge, ResponseSetJudge
from metricsmith.metric import make_row
from metricsmith.optimizers.objectives import OBJECTIVES, Case
from metricsmith.optimizers.tuner import JudgeTuner
from metricsmith.optimizers.tuning.readers import OptionReader
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.loading import from_state
from metricsmith.records import Scale, Task
from metricsmith.testing import GivenModel

OPTIONS = ["rude", "unclear", "polite"]
CHOICE = ChoiceJudge(OPTIONS, "How is the reply?", "Answer letters.", name="tone")
SETS = ResponseSetJudge(OPTIONS, "How is the reply?", "Answer letters.", name="tones")
BETTER = "Go by the number of the case."  # the instruction with which the model does as most raters did


def truth(number):
    return OPTIONS[number % 3], OPTIONS[(number + 1 + number // 3 % 2) % 3]


def rows(rating, count=24, **labels):
    return [make_row(f"case {n}", input=f"q{n}", group=f"g{n}", rating=rating(n), **labels) for n in range(count)]


def choices(number):
    """Of four raters, three give the one and one gives another."""
    first, second = truth(number)
    return [first, first, second, first]


def sets(number):
    """Of two raters, both hold the one possible and one of them another besides."""
    first, second = truth(number)
    return [[first], {second, first}]


def answer(prompt):
    """The most usual option without `BETTER`; with it, that of most raters."""
    if "new_instruction" in prompt or "proposed_instruction" in prompt:
        said = {"new_instruction": BETTER, "proposed_instruction": BETTER}
        return json.dumps(said) if "new_instruction" in prompt else said
    if "[[ ## reasoning ## ]]" not in prompt:
        proposals = ("observations", "summary", "program_description", "module_description")
        return dict.fromkeys(proposals, "COMPLETE")
    first, second = truth(int(re.findall(r"case (\d+)", prompt)[-1]))
    found = [first, second] if BETTER in prompt else ["unclear"]
    return {"reasoning": "read", "possible": json.dumps(found), "choice": found[0]}


def tuned(judge, data, **options):
    """The tuned judge and the prompts."""
    with GivenModel(answer) as model, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # DSPy's optimisers warn about their own defaults
        settings = {"budget": 170, "seed": 1, **options}
        return JudgeTuner(lm=model.lm(temperature=1.0), **settings).compile(judge, data), model.prompts


# Half of 24 rows select. Before, the judge says "unclear", which is the first of a third of the raters; after, the
# share is 3 of 4 and every mode is met; the set {first, second} misses a share of 1/2 by 1/2 for one of three options.
@pytest.mark.parametrize("method", ["gepa", "mipro"])
@pytest.mark.parametrize(
    ("judge", "rating", "objective", "reached"),
    [
        (CHOICE, choices, "share", 0.75),
        (CHOICE, choices, "choice_kappa", 1.0),
        (SETS, sets, "set_closeness", 1 - 0.25 / 3),
        (SETS, choices, "choice_kappa", 1.0),
    ],
)
def test_a_search_runs_to_its_end_and_finds_the_better_instruction(method, judge, rating, objective, reached):
    done, _ = tuned(judge, rows(rating), method=method, objective=objective)
    tuning = done.tuning
    assert tuning.replaced
    assert not tuning.ended
    assert tuning.after == {"judge": BETTER}
    assert tuning.selection.candidates[0].statistic == pytest.approx(reached)
    assert tuning.selection.before.statistic < reached - 0.3
    assert tuning.usage.requests <= tuning.bound <= 170
    assert from_state(done.to_state()).fingerprint() == done.fingerprint() != judge.fingerprint()


def test_other_measures_are_reported_before_and_after_and_not_searched_by():
    tuning = tuned(CHOICE, rows(choices), method="gepa", objective="share")[0].tuning
    (name, (before, after)), *others = tuning.reported.items()
    assert (name, others) == ("choice_kappa", [])
    assert (before, after) == (0.0, pytest.approx(1.0))  # one option throughout is chance
    lines = [line.split() for line in str(tuning).splitlines() if "not searched by" in line]
    assert [(line[0], line[1], line[-1]) for line in lines] == [
        ("choice_kappa,", "before,", ".000"), ("choice_kappa,", "after,", "1.000"),
    ]  # fmt: skip
    tuning = tuned(SETS, rows(sets), method="gepa", objective="set_closeness")[0].tuning
    assert tuning.reported["set_coverage"][1] == pytest.approx(1.0)
    assert tuning.reported["set_size"] == (1.0, 2.0)


def test_the_writer_reads_what_raters_and_judge_gave_and_where_they_part():
    _, prompts = tuned(CHOICE, rows(choices, reason="He shouts."), method="gepa", objective="share")
    (shown,) = [prompt for prompt in prompts if "new_instruction" in prompt][:1]
    assert re.search(r"The raters gave \w+ \((75|25)%\), \w+ \((75|25)%\) and said: He shouts\.", shown)
    assert "The judge gave unclear: read." in shown
    assert re.search(r"75% of the raters gave (rude|polite); the judge did not\.", shown)
    assert re.search(r"0% of the raters gave unclear; the judge did\.|25% of the raters gave unclear; the ", shown)


def test_a_judge_that_nothing_makes_better_comes_back_as_it_was():
    other = rows(lambda n: {"unclear": 0.75, OPTIONS[n % 2 * 2]: 0.25})
    done, _ = tuned(CHOICE, other, method="gepa", objective="share")
    assert not done.tuning.replaced
    assert done.fingerprint() == CHOICE.fingerprint()


@pytest.mark.parametrize("search", ["gepa", "mipro"])
@pytest.mark.parametrize("judge", [CHOICE, SETS], ids=["choice", "sets"])
def test_dspys_own_searches_take_the_judges_as_students(search, judge):
    data = [row.with_inputs("output", "input") for row in rows(lambda n: truth(n)[0], 12)]

    def hit(example, pred, trace=None, pred_name=None, pred_trace=None):
        return float(pred.get("forced_choice", pred.choice) == example.rating)

    with GivenModel(answer) as model, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lm = model.lm(temperature=1.0)
        with dspy.context(lm=lm):
            if search == "gepa":
                made = dspy.GEPA(metric=hit, max_metric_calls=40, reflection_lm=lm, num_threads=2).compile(
                    judge.deepcopy(), trainset=data[:6], valset=data[6:]
                )
            else:
                options = {"num_candidates": 2, "max_bootstrapped_demos": 1, "max_labeled_demos": 0}
                made = dspy.MIPROv2(metric=hit, auto=None, prompt_model=lm, **options).compile(
                    judge.deepcopy(), trainset=data[:6], valset=data[6:], num_trials=6, minibatch=False
                )
            evaluate = dspy.Evaluate(devset=data, metric=hit, num_threads=2, display_progress=False)
            assert evaluate(made).score == 100 > evaluate(judge).score
    assert made.judge.signature.instructions == BETTER
    assert from_state(made.to_state()).fingerprint() == made.fingerprint()


def test_ratings_are_shares_however_they_are_given():
    of_choices, of_sets = (
        OptionReader(tuple(OPTIONS), "choice", "choice"),
        OptionReader(tuple(OPTIONS), "set", "choice"),
    )
    for votes in (
        ["rude", "rude", "rude", "polite"],
        {"rude": 0.75, "polite": 0.25},
        ("polite", "rude") + ("rude",) * 2,
    ):
        assert of_choices.shares(votes, "row").tolist() == [0.75, 0, 0.25]
    assert of_choices.shares("polite", "row").tolist() == [0, 0, 1]
    for votes in (
        [["rude"], ["rude", "polite"]],
        [{"rude"}, frozenset({"polite", "rude"})],
        {"rude": 1, "polite": 0.5},
    ):
        assert of_sets.shares(votes, "row").tolist() == [1, 0, 0.5]
    for nothing in (None, float("nan"), [], {}, ()):
        assert of_choices.shares(nothing, "row") is None
    assert OptionReader(("nan", "[]"), "choice", "choice").shares("nan", "row").tolist() == [1, 0]  # an option's name


@pytest.mark.parametrize(
    ("answers", "rating", "message"),
    [
        ("choice", ["rude", "polit"], r"'rating' of row 'r1': 'polit' was not declared \(did you mean 'polite'\?\)"),
        ("choice", {"rude": 0.5, "polite": 0.4}, "are no shares of raters: give numbers from 0 to 1, in all 1$"),
        ("choice", {"rude": 1.5, "polite": -0.5}, "are no shares of raters"),
        ("choice", {"rude": "often"}, "are no shares of raters"),
        ("choice", [["rude", "polite"]], "are no shares of raters"),
        ("choice", 3, "must map options to shares, or be a list"),
        ("choice", [3], "is no choice: give one choice a rater"),
        ("set", ["rude"], "'rude' is no set: give one set a rater, such as"),
        ("set", [["rude"], []], r"\[\] is no set"),
        ("set", {"rude": 0.5}, "in all 1 or more$"),
    ],
)
def test_ratings_that_are_no_shares_are_refused_with_their_row(answers, rating, message):
    judge, objective = (CHOICE, "share") if answers == "choice" else (SETS, "set_closeness")
    data = [*rows(choices if answers == "choice" else sets), make_row("text", input="q", id="r1", rating=rating)]
    with GivenModel(answer) as model:
        with pytest.raises(DataError, match=message):
            JudgeTuner(objective=objective, lm=model.lm()).compile(judge, data)
        assert model.requests == 0


@pytest.mark.parametrize(
    ("judge", "objective", "message"),
    [
        (CHOICE, "kendall_tau_b", r"compares a number .* gives a choice: take share, choice_kappa$"),
        (CHOICE, "set_closeness", "compares a set"),
        (SETS, "kappa", r"gives a set and a choice: take share, choice_kappa, set_closeness$"),
        (ResponseSetJudge(OPTIONS, "?", "t", forced=False, name="s"), "share", "gives a set: take set_closeness$"),
        (CriterionJudge(criterion="c", meaning="m", task="t"), "share", "gives a number: take kendall_tau_b, "),
    ],
)
def test_an_objective_of_other_answers_is_refused(judge, objective, message):
    with pytest.raises(OptionError, match=message):
        JudgeTuner(objective=objective, budget=400).bound(judge, rows(choices))


def test_the_task_names_the_rating_and_rows_without_raters_are_left_out():
    data = [row.copy(votes=row.rating, rating=None) for row in rows(choices)]
    data += [make_row("unrated", input="q", votes=[]), make_row("unrated, too", input="q")]
    task = Task("Answer letters.", "votes", Scale(0, 1))
    tuning = tuned(CHOICE, data, method="gepa", objective="share", task=task)[0].tuning
    assert tuning.learned + tuning.selected == 24
    assert tuning.replaced


SHARES = st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3).filter(any), min_size=3, max_size=12)


@settings(deadline=None)
@given(SHARES, st.data())
def test_credits_of_options_have_the_statistics_as_their_means(votes, data):
    counts = np.array(votes, dtype=float)
    shares = counts / counts.sum(axis=1, keepdims=True)
    said = np.eye(3)[[data.draw(st.integers(0, 2)) for _ in votes]]
    omega = counts / counts.max(axis=1, keepdims=True)
    none = np.empty((0, 3))

    def credit(name, ratings):
        goal, cases = OBJECTIVES[name], zip(said, ratings, strict=True)
        found = [goal.credit(Case(x, y, none, none, ratings, 1.0, 0.0)) for x, y in cases]
        assert all(0 <= one <= 1 for one in found)
        return np.mean(found)

    assert credit("share", shares) == pytest.approx(OBJECTIVES["share"].statistic(said, shares))
    assert credit("set_closeness", omega) == pytest.approx(OBJECTIVES["set_closeness"].statistic(said, omega))
    # Each tie is split into as many rows as there are modes, weighted: the weighted kappa of another library.
    modal = shares == shares.max(axis=1, keepdims=True)
    row, mode = np.nonzero(modal)
    weights = 1 / modal.sum(axis=1)[row]
    own = OBJECTIVES["choice_kappa"].statistic(said, shares)
    if np.isfinite(own):
        assert own == pytest.approx(cohen_kappa_score(said.argmax(axis=1)[row], mode, sample_weight=weights), abs=1e-9)
    hit = np.average(said.argmax(axis=1)[row] == mode, weights=weights)
    chance = said.mean(axis=0) @ (modal / modal.sum(axis=1, keepdims=True)).mean(axis=0)
    assert credit("choice_kappa", shares) == pytest.approx((1 + hit - chance) / 2)


def test_the_objectives_by_hand():
    said = np.array([[1.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    shares = np.array([[0.6, 0.4, 0], [0.5, 0.5, 0], [0, 1, 0], [0.5, 0, 0.5]])
    assert OBJECTIVES["share"].statistic(said, shares) == pytest.approx((0.6 + 0.5 + 1 + 0.5) / 4)
    # Modes (1,0,0), (1/2,1/2,0), (0,1,0), (1/2,0,1/2): agreement (1 + 1/2 + 1 + 1/2) / 4 = .75; by chance
    # .5 * .5 + .25 * .375 + .25 * .125 = .375.
    assert OBJECTIVES["choice_kappa"].statistic(said, shares) == pytest.approx((0.75 - 0.375) / (1 - 0.375))
    held = np.array([[1.0, 1, 0], [1, 0, 0]])
    omega = np.array([[1.0, 0.5, 0], [0.5, 0, 1]])
    assert OBJECTIVES["set_closeness"].statistic(held, omega) == pytest.approx(1 - (0.25 + 0.25 + 1) / 6)
    one = np.tile([1.0, 0, 0], (4, 1))
    assert np.isnan(OBJECTIVES["choice_kappa"].statistic(one, one))
