"""`JudgeTuner` against the simulated judge model: what it finds, what it spends, what it refuses."""

from __future__ import annotations

import dspy
import numpy as np
import pytest

from faults import Fault, Faults
from loopback import serve
from metricsmith.errors import DataError, ModelFailure, NeedsError, OptionError
from metricsmith.metric import make_row
from metricsmith.optimizers.tuner import JudgeTuner
from metricsmith.optimizers.tuning.methods import METHODS
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.raters import ExampleJudge
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.learned import learned_from
from metricsmith.programs.loading import from_state
from metricsmith.records import Scale, Task
from metricsmith.saving import row_hash
from rater_model import RaterModel, rated_rows

JUDGE = CriterionJudge(criterion="Quality", meaning="The work serves its readers.", task="Write notices.")
ROWS = rated_rows(60, 101)


def tune(judge=JUDGE, rows=ROWS, valset=None, model=None, faults=None, **options):
    """The tuned judge and the server."""
    with serve(model or RaterModel(101), script=faults or Faults(), seed=3) as server:
        settings = {"method": "gepa", "budget": 400, "seed": 101, **options}
        return JudgeTuner(lm=server.lm(), **settings).compile(judge, rows, valset), server


@pytest.fixture(scope="module")
def gepa():
    return tune(rows=rated_rows(80, 101), budget=600)


def test_a_tunable_judge_agrees_better_and_says_by_how_much(gepa):
    tuned, server = gepa
    tuning = tuned.tuning
    assert not server.wrong
    assert tuning.replaced
    assert tuning.chosen.statistic > tuning.selection.before.statistic + 0.2
    assert tuning.before["judge"] == JUDGE.judge.signature.instructions
    assert tuning.after["judge"] == tuned.judge.signature.instructions != tuning.before["judge"]
    assert f"{server.requests} requests of" in str(tuning)
    assert JUDGE.judge.signature.instructions == CriterionJudge.signature.instructions


def test_the_card_of_a_tuned_judge_shows_its_instruction_before_and_after(gepa):
    card = gepa[0].card
    assert card.instruction_before == CriterionJudge.signature.instructions
    assert card.instruction == gepa[0].judge.signature.instructions
    assert "Instruction after tuning" in card.to_markdown()
    assert JUDGE.card.instruction == ""


def test_a_tuned_judge_is_saved_and_loaded_with_what_it_learned(gepa):
    tuned = gepa[0]
    assert from_state(tuned.to_state()).fingerprint() == tuned.fingerprint() != JUDGE.fingerprint()


def test_a_tuned_judge_says_what_it_was_shown_and_what_chose_it():
    first = ROWS[:2]
    tuned, _ = tune(JUDGE.with_examples(first, [1, 5]), ROWS[:40], method="labeled", budget=200)
    assert learned_from(from_state(tuned.to_state())) == learned_from(tuned) == {row_hash(row) for row in ROWS[:40]}
    assert learned_from(JUDGE) == frozenset()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "faults", [Faults(), Faults({Fault.ERROR_500: 0.04, Fault.CHATTER: 0.02})], ids=["calm", "faults"]
)
def test_what_is_sent_is_within_the_bound_and_the_bound_within_the_budget(method, faults):
    with serve(RaterModel(4), script=faults, seed=3) as server:
        tuner = JudgeTuner(method=method, budget=210, lm=server.lm(), seed=4)
        bound = tuner.bound(JUDGE, ROWS[:30])
        assert server.requests == 0
        tuning = tuner.compile(JUDGE, ROWS[:30]).tuning
    assert tuning.usage.requests == server.requests <= tuning.bound == bound <= 210


@pytest.mark.parametrize("method", METHODS)
def test_a_budget_below_the_floor_is_refused_before_any_call_and_the_floor_is_named(method):
    with serve(RaterModel(4)) as server:
        with pytest.raises(OptionError, match="at least") as refused:
            JudgeTuner(method=method, budget=20, lm=server.lm()).compile(JUDGE, ROWS)
        floor = int(str(refused.value).split("at least ")[1].split()[0])
        assert server.requests == 0
        assert JudgeTuner(method=method, budget=floor, lm=server.lm()).bound(JUDGE, ROWS) <= floor
        with pytest.raises(OptionError):
            JudgeTuner(method=method, budget=floor - 3, lm=server.lm()).bound(JUDGE, ROWS)


@pytest.mark.parametrize("method", METHODS)
def test_one_seed_repeats_and_two_differ(method):
    def run(seed):
        with serve(RaterModel(0)) as server:
            tuning = JudgeTuner(method=method, budget=210, lm=server.lm(), seed=seed).compile(JUDGE, ROWS[:30]).tuning
            return tuning.selection, sorted(server.attempts)

    first = run(1)
    assert first == run(1)
    assert first[1] != run(2)[1]


def test_an_untunable_judge_comes_back_unchanged():
    tuned, _ = tune(model=RaterModel(7, tunable=False), seed=7)
    assert not tuned.tuning.replaced
    assert tuned.fingerprint() == JUDGE.fingerprint()
    assert "unchanged" in tuned.tuning.selection.verdict


def test_no_row_that_selects_is_ever_shown_to_the_writer_or_as_a_demonstration():
    """The writer sees texts of learning rows alone; so do demonstrations."""
    with serve(RaterModel(3)) as server:
        tuned = JudgeTuner(method="auto", budget=300, lm=server.lm(), seed=3).compile(JUDGE, ROWS)
        seen = [prompt for prompt in server.prompts if "new_instruction" in prompt]
        demonstrated = [prompt for prompt in server.prompts if prompt.count("[[ ## completed ## ]]\n") > 1]
    texts = {row.output: row.group for row in ROWS}
    shown = {group for prompt in seen for text, group in texts.items() if text in prompt}
    learned = {
        group
        for prompt in demonstrated
        for text, group in texts.items()
        if text in prompt.rsplit("[[ ## output ## ]]", 1)[0]
    }
    judged = {
        group
        for prompt in demonstrated
        for text, group in texts.items()
        if text in prompt.rsplit("[[ ## output ## ]]", 1)[1]
    }
    assert shown
    assert learned
    assert shown | learned <= {row.group for row in ROWS}
    assert not learned & judged
    assert not shown & judged
    assert len(shown | learned) <= tuned.tuning.learned


def test_feedback_names_what_both_gave_and_a_work_in_the_wrong_order():
    _, server = tune(rows=[row.copy(reason=f"Rated for {row.id}.") for row in ROWS])
    feedback = next(prompt for prompt in server.prompts if "new_instruction" in prompt)
    assert "The raters gave" in feedback
    assert "and said: Rated for 101-" in feedback
    assert "because: It is judged by: length" in feedback
    assert "stand on the wrong side of it." in feedback
    assert "The raters gave the following work" in feedback


def test_labels_are_tuned_by_their_own_feedback():
    _, server = tune(objective="quadratic_kappa")
    feedback = next(prompt for prompt in server.prompts if "new_instruction" in prompt)
    assert "too high." in feedback
    assert "wrong side" not in feedback


def test_a_candidate_with_failed_calls_is_discarded():
    model = RaterModel(101)

    def answer(prompt):
        said = model(prompt)
        spoilt = "Be strict." in prompt or "concrete and give" in prompt or "polite" in prompt or "Weigh" in prompt
        return {"reasoning": "No number today.", "score": "none"} if "score" in said and spoilt else said

    tuned, _ = tune(model=answer, method="mipro", budget=600)
    assert tuned.tuning.discarded > 0
    assert "discarded for failed calls" in str(tuned.tuning)
    for phrase in ("Be strict.", "concrete and give", "polite", "Weigh"):
        assert phrase not in tuned.judge.signature.instructions


def test_failed_calls_discard_even_the_best_candidate_and_on_rows_that_do_not_select_too():
    """The candidate judges selection rows as the raters do, and some learning rows not at all."""
    ratings = {row.output: row.rating for row in ROWS}
    learned = {row.output for row in ROWS[:4]}
    model = RaterModel(101)

    def answer(prompt):
        said = model(prompt)
        output = prompt.rsplit("[[ ## output ## ]]", 1)[-1].split("»\n", 1)[-1].split("\n«end")[0]
        if "score" not in said or not any(word in prompt for word in ("concrete", "specific")):
            return said
        if output in learned:
            return {"reasoning": "No number today.", "score": "none"}
        return {"reasoning": "As the raters.", "score": str(round(ratings[output]))}

    tuned, _ = tune(rows=ROWS[:30], valset=ROWS[30:], model=answer, budget=600)
    assert tuned.tuning.discarded > 0
    assert not any(word in tuned.judge.signature.instructions for word in ("concrete", "specific"))
    assert max((one.statistic for one in tuned.tuning.selection.candidates), default=0) < 0.9


def test_an_example_judge_keeps_its_examples_whatever_the_optimiser_resets():
    judge = ExampleJudge(measure="Quality", task="Write notices.", scale=Scale(1, 5, 1))
    judge = judge.with_examples(ROWS[:2], [1, 5])
    for method in ("mipro", "bootstrap", "gepa"):
        tuned, server = tune(judge, ROWS[2:40], method=method, budget=250)
        assert tuned.judge.demos[:2] == judge.judge.demos
        judged = [prompt for prompt in server.prompts if "the number that the raters would give" not in prompt]
        assert judged
    state = tuned.to_state()
    assert [demo["score"] for demo in state["state"]["judge"]["demos"][:2]] == [1, 5]


def test_any_module_with_a_score_is_tuned():
    class Scorer(dspy.Module):
        def __init__(self):
            super().__init__()
            self.rate = dspy.ChainOfThought("output -> score: float")

        def forward(self, output):
            return self.rate(output=output)

    rows = [dspy.Example(output=row.output, rating=row.rating, group=row.group).with_inputs("output") for row in ROWS]
    tuned, server = tune(Scorer(), rows, method="auto", budget=300)
    assert isinstance(tuned, Scorer)
    assert tuned.tuning.usage.requests == server.requests
    assert set(tuned.tuning.before) == {"rate.predict"}
    assert not server.wrong


def test_lower_is_better_for_raters_alone_turns_the_order_round():
    scale = Scale(1, 5, 1, higher_is_better=False)
    rows = [row.copy(rating=6 - row.rating) for row in ROWS]
    task = Task("Write notices.", "rating", scale)
    tuned, _ = tune(rows=rows, task=task, method="labeled")
    plain, _ = tune(method="labeled")
    assert tuned.tuning.selection.before == plain.tuning.selection.before
    with pytest.raises(OptionError, match="opposite directions"):
        tune(rows=rows, task=task, objective="kappa")


def test_the_rating_scale_is_mapped_for_demonstrations():
    rows = [row.copy(rating=25 * (row.rating - 1)) for row in ROWS]
    tuned, server = tune(rows=rows, task=Task("", "rating", Scale(0, 100)), method="labeled", budget=400)
    given = [prompt.count("[[ ## score ## ]]\n1\n") for prompt in server.prompts]
    assert max(given) > 0
    assert tuned.tuning.usage.requests == server.requests


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "gepe"}, OptionError, "did you mean 'gepa'"),
        ({"objective": "tau"}, OptionError, "must be one of"),
        ({"budget": 0}, OptionError, "whole number from 1"),
        ({"budget": None}, OptionError, "whole number from 1"),
        ({"budget": 300.7}, OptionError, "whole number from 1"),
        ({"seed": 2**32}, OptionError, r"below 2\*\*32"),
        ({"fraction": 1}, OptionError, "between 0 and 1"),
        ({"rows": [row.copy(rating="good") for row in ROWS]}, DataError, "'good' .* is no number"),
        ({"rows": [row.copy(rating=3.0) for row in ROWS]}, DataError, "different ratings"),
        ({"rows": [make_row("x", input=str(n), note=n) for n in range(9)]}, DataError, "under 'rating'"),
        ({"rows": ROWS[:8], "valset": ROWS[8:12]}, DataError, "at least 4 are needed"),
        ({"valset": ROWS[30:]}, OptionError, "stands in trainset and valset"),
        ({"judge": "judge"}, OptionError, "dspy.Module"),
        ({"judge": Repeated(JUDGE, runs=3)}, OptionError, "tune those judges"),
        ({"reflection_lm": "openai/x"}, OptionError, "is no model"),
        (
            {"rows": [row.copy(rating=row.rating * 20) for row in ROWS], "objective": "kappa"},
            OptionError,
            "ExampleJudge",
        ),
    ],
)
def test_wrong_input_is_refused_before_any_call(options, error, message):
    rows, valset, judge = (
        options.pop(name, usual) for name, usual in (("rows", ROWS), ("valset", None), ("judge", JUDGE))
    )
    with serve(RaterModel(0)) as server, pytest.raises(error, match=message):
        JudgeTuner(**{"lm": server.lm(), "budget": 600, **options}).compile(judge, rows, valset)
    assert server.requests == 0


def test_without_a_model_there_is_a_bound_and_no_run():
    tuner = JudgeTuner(method="gepa", budget=300)
    assert tuner.bound(JUDGE, ROWS) == 300
    with pytest.raises(NeedsError, match="no language model"):
        tuner.compile(JUDGE, ROWS)


def test_a_judge_that_cannot_judge_is_not_tuned():
    with pytest.raises(ModelFailure, match="judge's own judgements failed"):
        tune(model=lambda prompt: {"reasoning": "No.", "score": "none"})
    with serve(RaterModel(0), always=401) as server, pytest.raises(ModelFailure, match="refuses"):
        JudgeTuner(method="gepa", budget=300, lm=server.lm()).compile(JUDGE, ROWS)
    assert server.requests < 10


def test_what_is_wrong_with_the_module_is_raised():
    class Broken(dspy.Module):
        def __init__(self):
            super().__init__()
            self.rate = dspy.Predict("text -> score: float")

        def forward(self, text):
            return self.rate(text=text)

    with serve(RaterModel(0)) as server, pytest.raises(TypeError, match="output"):
        JudgeTuner(method="gepa", budget=300, lm=server.lm()).compile(Broken(), ROWS)
    assert server.requests == 0


def test_nothing_is_printed(capsys):
    tune(method="auto")
    assert capsys.readouterr().out == ""


def test_values_are_compared_on_the_selection_rows(gepa):
    tuning = gepa[0].tuning
    assert tuning.learned + tuning.selected == 80
    assert np.isfinite([one.statistic for one in tuning.selection.candidates]).all()
    gains = [one.gain for one in tuning.selection.candidates]
    assert gains == sorted(gains, reverse=True)
