"""The tuner's limits hold against faults, modules that ask often, models that refuse, leaks through demos."""

from __future__ import annotations

from dataclasses import replace

import dspy
import pandas as pd
import pytest

from faults import Fault, Faults
from loopback import serve
from metricsmith.errors import DataError, JudgementFailed, ModelFailure, OptionError
from metricsmith.metric import make_row
from metricsmith.optimizers import tuner as tuner_module
from metricsmith.optimizers.students.metrics import RankingMetric
from metricsmith.optimizers.tuner import JudgeTuner
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.geval import GEval
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.judges.raters import ExampleJudge
from metricsmith.records import Scale
from rater_model import RaterModel, rated_rows

JUDGE = CriterionJudge(criterion="Quality", meaning="The work serves its readers.", task="Write notices.")
ROWS = rated_rows(60, 101)


class Often(dspy.Module):
    """Asks its one predictor several times in a judgement and takes the last answer."""

    def __init__(self, times=5):
        super().__init__()
        self.rate, self.times = dspy.ChainOfThought("turn, output -> score: float"), times

    def forward(self, output):
        return [self.rate(turn=str(turn), output=output) for turn in range(self.times)][-1]


def bare(rows):
    return [dspy.Example(output=row.output, rating=row.rating, group=row.group).with_inputs("output") for row in rows]


@pytest.mark.parametrize("method", ["labeled", "bootstrap", "gepa"])
@pytest.mark.parametrize("faults", [Faults(), Faults({Fault.ERROR_500: 0.1})], ids=["calm", "faults"])
def test_a_module_that_asks_often_stays_within_the_bound(method, faults):
    with serve(RaterModel(4), script=faults, seed=3) as server:
        tuning = JudgeTuner(method, budget=900, lm=server.lm(), seed=4).compile(Often(), bare(ROWS)).tuning
    assert tuning.usage.requests == server.requests <= tuning.bound <= 900
    assert server.requests > 5 * tuning.selected
    assert tuning.ended == "" or faults.rates


def test_a_tenth_of_the_budget_is_kept_for_retries():
    # The judge and one draw of examples, 30 rows each: 60 judgements, of which 6 need a second request.
    learn, select = ROWS[:30], ROWS[30:]
    faults = Faults(script={row.output: [Fault.ERROR_500] for row in select[:3]})
    with serve(RaterModel(4), script=faults) as server:
        tuner = JudgeTuner("labeled", budget=67, lm=server.lm(), seed=4)
        tuning = tuner.compile(JUDGE, learn, select).tuning
    assert (tuning.ended, len(tuning.selection.candidates)) == ("", 1)
    assert server.requests == 66 <= tuning.bound <= 67
    with pytest.raises(OptionError, match="at least 67 are needed"):
        JudgeTuner("labeled", budget=65).bound(JUDGE, learn, select)


def test_a_budget_that_is_too_small_for_what_a_judgement_takes_ends_after_one_row():
    with serve(RaterModel(4)) as server, pytest.raises(OptionError, match="too small"):
        JudgeTuner("gepa", budget=200, lm=server.lm(), seed=4).compile(Often(), bare(ROWS))
    assert server.requests == 5


def test_a_module_that_swallows_the_end_of_the_budget_passes_no_budget():
    class Stubborn(Often):
        def forward(self, output):
            try:
                return super().forward(output)
            except JudgementFailed:
                return dspy.Prediction(score=3.0)

    faults = Faults({Fault.ERROR_500: 0.3})
    with serve(RaterModel(4), script=faults, seed=3) as server:
        try:
            bound = (
                JudgeTuner("labeled", budget=400, lm=server.lm(), seed=4).compile(Stubborn(), bare(ROWS)).tuning.bound
            )
        except ModelFailure:
            bound = 400
    assert server.requests <= bound


def test_a_refused_key_of_the_writer_ends_the_search_at_once():
    with serve(RaterModel(4)) as server, serve(RaterModel(4), always=401) as writer:
        tuner = JudgeTuner("gepa", budget=400, lm=server.lm(), reflection_lm=writer.lm(), seed=4)
        tuned = tuner.compile(JUDGE, ROWS)
    assert not tuned.tuning.replaced
    assert "writes instructions refuses" in tuned.tuning.ended
    assert writer.requests <= 4
    assert tuned.tuning.usage.requests == server.requests + writer.requests


def test_groups_that_the_judge_shows_do_not_select():
    grouped = [row.copy(group=f"g{number // 3}") for number, row in enumerate(ROWS)]
    judge = ExampleJudge(measure="Quality", task="Write notices.", scale=Scale(1, 5, 1)).with_examples(
        [grouped[0], grouped[30]], [1, 5]
    )
    kin = {row.output for row in grouped if row.group in ("g0", "g10")}
    for seed in range(4):
        with serve(RaterModel(4)) as server:
            tuned = JudgeTuner("labeled", budget=150, lm=server.lm(), seed=seed).compile(judge, grouped)
        assert tuned.tuning.learned + tuned.tuning.selected == 60
        assert not any(text in prompt.rsplit("[[ ## output ## ]]", 1)[1] for prompt in server.prompts for text in kin)
    with pytest.raises(OptionError, match="'g10', are among the judge's demonstrations"):
        JudgeTuner("labeled", budget=400).bound(judge, grouped[:30], grouped[30:])


def test_other_outputs_to_an_input_that_is_shown_do_not_select():
    rows = [make_row(row.output, input=f"Notice {number // 2}", rating=row.rating) for number, row in enumerate(ROWS)]
    judge = ExampleJudge(measure="Quality", task="Write notices.", scale=Scale(1, 5, 1))
    judge = judge.with_examples([make_row("Another text.", input="Notice 20")], [2])
    with pytest.raises(OptionError, match="1 groups of valset"):
        JudgeTuner("labeled", budget=400).bound(judge, rows[:30], rows[30:])


def test_four_groups_are_enough_to_select_by_and_three_are_not():
    tuner = JudgeTuner("labeled", budget=400)  # rows come two to a group
    assert tuner.bound(JUDGE, ROWS[:8], ROWS[8:16]) > 0
    with pytest.raises(DataError, match="form 3 groups: at least 4 are needed"):
        tuner.bound(JUDGE, ROWS[:8], ROWS[8:14])


def test_of_rows_without_an_input_those_that_are_shown_do_not_select():
    rows = [make_row(row.output, rating=row.rating, group=f"g{number}") for number, row in enumerate(ROWS)]
    judge = ExampleJudge(measure="Quality", task="Write notices.", scale=Scale(1, 5, 1))
    judge = judge.with_examples([rows[0], rows[40]], [1, 5])
    tuner = JudgeTuner("labeled", budget=400)
    assert tuner.bound(judge, rows[:30], [row for row in rows[30:] if row is not rows[40]]) > 0
    with pytest.raises(OptionError, match="1 groups of valset, such as 'g40'"):
        tuner.bound(judge, rows[:30], rows[30:])


def test_rows_that_ask_the_same_do_not_stand_on_both_sides_whatever_their_fields_are_called():
    rows = [
        dspy.Example(turn=row.output, output="", rating=row.rating, group=f"g{number}").with_inputs("turn", "output")
        for number, row in enumerate(ROWS)
    ]
    twin = rows[3].copy(group="another")
    with pytest.raises(OptionError, match=r"a row with the inputs .* stands in trainset and valset"):
        JudgeTuner("labeled", budget=400).bound(Often(), rows[:30], [*rows[30:], twin])


def test_a_judge_with_a_model_of_its_own_keeps_it():
    with serve(RaterModel(4)) as own, serve(RaterModel(4)) as given:
        judge = JUDGE.deepcopy()
        judge.set_lm(own.lm())
        JudgeTuner("gepa", budget=400, lm=given.lm(), seed=4).compile(judge, ROWS)
    assert own.prompts
    assert given.prompts
    assert all("Write notices." in prompt for prompt in own.prompts)
    assert all(
        "[[ ## criterion ## ]]" not in prompt.rsplit("[[ ## output ## ]]")[0] or "instruction" in prompt
        for prompt in given.prompts
    )


def test_sampled_answers_are_tuned_within_the_bound():
    judge = GEval(
        criterion="Quality", meaning="It serves its readers.", steps=["Look for figures."], task="Write notices.",
        mode="sampled", n=3,
    )  # fmt: skip
    with serve(RaterModel(4)) as server:
        lm = server.lm().copy(temperature=1.0)
        tuning = JudgeTuner("gepa", budget=400, lm=lm, seed=4).compile(judge, ROWS[:30]).tuning
    assert tuning.usage.requests == server.requests <= tuning.bound <= 400
    assert tuning.selection.candidates or not tuning.replaced


def test_a_panel_is_no_judge_of_one_score():
    panel = Panel([JUDGE, CriterionJudge(criterion="Tone", meaning="It is kind.", task="Write notices.")])
    with serve(RaterModel(4)) as server, pytest.raises(OptionError, match="tune those judges"):
        JudgeTuner("gepa", budget=400, lm=server.lm(), seed=4).compile(panel, ROWS)
    assert server.requests == 0


def test_rows_without_a_rating_are_left_out_whatever_stands_for_it():
    gaps = [row.copy(rating=gap) for row, gap in zip(ROWS[:3], (None, float("nan"), pd.NA), strict=True)]
    tuner = JudgeTuner("gepa", budget=400)
    assert tuner.bound(JUDGE, [*gaps, *ROWS[3:]]) == tuner.bound(JUDGE, ROWS[3:])


def test_a_copy_of_a_tuner_keeps_its_measure():
    measure = RankingMetric("recall")
    copy = replace(JudgeTuner("gepa", objective=measure), budget=77)
    assert copy.objective is measure
    assert copy.goal.name == "RankingMetric"
    assert replace(JudgeTuner("gepa", objective="spearman"), budget=77).goal.name == "spearman"


def test_the_seed_reaches_the_selection_and_the_peers(monkeypatch):
    seen = []
    for name in ("choose", "Credits"):
        real = getattr(tuner_module, name)

        def spy(*given, _name=name, _real=real, **named):
            seen.append((_name, named.get("seed", given[-1])))
            return _real(*given, **named)

        monkeypatch.setattr(tuner_module, name, spy)
    with serve(RaterModel(4)) as server:
        JudgeTuner("labeled", budget=300, lm=server.lm(), seed=7).compile(JUDGE, ROWS)
    assert set(seen) == {("choose", 7), ("Credits", 7)}
