"""A repeated judge: which runs it takes, how they become one number, what it says, and its saved state."""

from __future__ import annotations

import asyncio
import math
from collections import Counter

import dspy
import numpy as np
import pytest

from loopback import scripted
from metricsmith.bank.catalogue import default_bank
from metricsmith.errors import JudgementFailed, OptionError
from metricsmith.metric import Asker, Composite, Metric, make_row
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.records import Judgement, Status, Usage
from metricsmith.scoring import score
from metricsmith.stats.aggregation import OutlierRule, mean, rrwa
from metricsmith.testing import GivenModel
from repeating import ERRORS, MQM, TABLE_1, Scripted, criterion, of, runs_of, told, verdict


def test_it_is_a_metric_made_of_parts_and_asks_nothing_itself():
    repeated = Repeated(criterion())
    assert isinstance(repeated, Metric)
    assert isinstance(repeated, Composite)
    assert not isinstance(repeated, Asker)
    assert not hasattr(repeated, "asker")


@pytest.mark.parametrize("run", [0, 1, 3])
def test_every_repetition_rests_on_repetitions_of_the_judge_that_no_other_uses(run):
    judge = criterion()
    assert Repeated(judge, 4).parts(run) == [(judge, 4 * run + place) for place in range(4)]


def test_names_tell_judge_aggregate_and_runs_apart():
    assert Repeated(criterion()).name == "plain_words_rrwa_10"
    assert Repeated(criterion(), 3, mean).name == "plain_words_mean_3"
    assert Repeated(criterion(), 3, name="own").name == "own"


def test_output_and_card_are_the_judges_with_what_repeating_changes():
    judge, repeated = criterion(), Repeated(criterion(), 3, "mean", outliers=OutlierRule(1.5, "low"))
    output = repeated.output
    assert (output.low, output.high, output.name) == (1, 5, "plain_words_mean_3")
    assert "mean of 3 runs" in output.description
    card = repeated.card
    assert (card.kind, card.needs, card.cost) == (judge.card.kind, judge.card.needs, "model")
    assert card.outputs == (output,)
    assert "3 runs, without runs beyond 1.5 sd (low sided)" in card.formula
    assert "no run is left out" in Repeated(judge, outliers=None).card.formula
    assert card.to_markdown().startswith("## Plain words (mean of 3 runs)")


# From runs to a number


def test_table_1_of_the_paper():
    repeated = of(TABLE_1)
    assert repeated.combined(np.array([TABLE_1]))[0] == pytest.approx(-8.496, abs=5e-4)
    judgement = repeated.verdict(runs_of(TABLE_1), 0)
    assert judgement.raw == repeated.combined(np.array([TABLE_1]))[0]
    assert judgement.score == MQM.score(judgement.raw)
    assert judgement.metric == "mqm_rrwa_10"


def test_aggregate_and_outlier_rule_are_those_asked_for():
    # Mean of all -16.8; without -55 it is -113/9. With k=1 (bounds -34.8 and 1.2) -50 goes too: -63/8.
    assert verdict(TABLE_1, aggregate="mean", outliers=None).raw == pytest.approx(-16.8)
    assert verdict(TABLE_1, aggregate=mean).raw == pytest.approx(-113 / 9)
    assert verdict(TABLE_1, aggregate=mean, outliers=OutlierRule(1)).raw == pytest.approx(-63 / 8)
    assert verdict(TABLE_1, aggregate=mean, outliers=OutlierRule(sided="high")).raw == pytest.approx(-16.8)


def test_where_lower_is_better_the_lowest_run_weighs_most():
    # 1, 2 and 4 errors with weights 1, 1/2, 1/3: (1 + 1 + 4/3) / (11/6) = 20/11
    repeated = Repeated(Scripted([4, 1, 2], ERRORS), 3)
    assert repeated.combined(np.array([[4.0, 1.0, 2.0]]))[0] == pytest.approx(20 / 11)
    judgement = repeated.verdict(runs_of([4, 1, 2], ERRORS), 0)
    assert judgement.raw == pytest.approx(20 / 11)
    assert judgement.score == ERRORS.score(judgement.raw)


def test_where_lower_is_better_the_low_side_is_still_the_worse_one():
    # Nine runs of 6 and a clean one: the low side holds the many errors, so the clean run stays and leads.
    # 6 (1/2 + ... + 1/10) / (1 + ... + 1/10) = 3.951497. The mirror image has a lone bad run, which goes.
    rule = OutlierRule(sided="low")
    clean = Repeated(Scripted([0], ERRORS), 10, outliers=rule)
    assert clean.combined(np.array([[6.0] * 9 + [0.0]]))[0] == pytest.approx(3.951497, abs=1e-6)
    bad = clean.verdict(runs_of([6] * 9 + [60], ERRORS), 0)
    assert bad.raw == 6
    assert "1 left out as outlying" in bad.feedback


@pytest.mark.parametrize("output", [MQM, ERRORS])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_no_errors_are_zero_and_never_minus_zero(output, zero):
    assert str(Repeated(Scripted([0], output), 3).combined(np.full((1, 3), zero))[0]) == "0.0"


def test_the_table_of_numbers_and_the_judgements_agree_to_the_last_bit():
    generator = np.random.default_rng(3)
    numbers = np.round(generator.normal(-8, 6, (60, 7)), 1)
    numbers[generator.random(numbers.shape) < 0.4] = np.nan
    repeated = of([0] * 7)
    one_by_one = [
        repeated.verdict(runs_of([None if math.isnan(number) else number for number in row]), 0) for row in numbers
    ]
    raws = [math.nan if judgement.raw is None else judgement.raw for judgement in one_by_one]
    np.testing.assert_array_equal(repeated.combined(numbers), raws)
    assert 0 < sum(map(math.isnan, raws)) < 60


# What it says


def test_the_feedback_counts_its_runs_and_gives_the_reasons_of_the_nearest():
    # rrwa of 1, 3, 4 (no outlier among so few): (4 + 3/2 + 1/3) / (11/6) = 35/11 = 3.18, nearest is 3 of run 2
    judgement = verdict([1, None, 3, 4])
    assert judgement.raw == pytest.approx(35 / 11)
    assert judgement.feedback == (
        "3.182 is the rrwa of 3 of 4 runs (1 without a number); run 2, the nearest, gave 3: because of run 2"
    )


def test_later_repetitions_count_their_runs_on():
    assert "; run 6, the nearest, gave 3:" in of([1, None, 3, 4]).verdict(runs_of([1, None, 3, 4]), 1).feedback


def test_an_outlier_is_counted_and_never_speaks():
    judgement = verdict([-6, None, -6, -6, -6, -6, -6, -60])
    assert "6 of 8 runs (1 without a number, 1 left out as outlying); run 0," in judgement.feedback
    assert "run 7" not in judgement.feedback


def test_of_equally_near_runs_the_first_speaks():
    assert "run 0, the nearest, gave 2" in verdict([2, 4], aggregate=mean).feedback
    assert "run 0, the nearest, gave 4" in verdict([4, 2], aggregate=mean).feedback


def test_a_judge_without_reasons_leaves_the_count_alone():
    parts = [Judgement("mqm", -1.0, 0.5, run=run) for run in range(2)]
    assert of([0, 0]).verdict(parts, 0).feedback == "-1 is the rrwa of 2 of 2 runs."


def test_usage_is_the_sum_over_all_runs_failed_ones_included():
    for numbers in ([1, None, 3, 4], [None, None, None, 4]):
        assert verdict(numbers).usage == Usage(4, 40, 4, 2.0, 1.0)


# Too few runs


@pytest.mark.parametrize(("runs", "least"), [(1, 1), (2, 1), (3, 2), (10, 5), (11, 6)])
def test_half_of_the_runs_rounded_up_must_have_a_number(runs, least):
    repeated = of([-1] * runs)
    assert repeated.min_runs == least
    for present in (least, least - 1):
        numbers = [-1.0] * present + [np.nan] * (runs - present)
        assert math.isnan(repeated.combined(np.array([numbers]))[0]) == (present < least)


def test_outliers_count_towards_the_least_number_of_runs():
    assert verdict([-6] * 6 + [-60], min_runs=7).raw == -6


def test_below_the_least_number_there_is_no_number_but_the_commonest_status():
    parts = [told(-3), told(None, 1, status=Status.REFUSED), *[told(None, run) for run in (2, 3)]]
    judgement = of([0] * 4, min_runs=2).verdict(parts, 5)
    assert (judgement.raw, judgement.score, judgement.run) == (None, None, 5)
    assert judgement.status is Status.UNPARSABLE
    assert judgement.error == (
        "1 of 4 runs gave a number and 2 are needed; the first that is unparsable: run 2 went wrong"
    )


# Through the scoring engine


def test_scoring_asks_each_run_once_also_when_the_judge_stands_beside_it():
    judge = Scripted(TABLE_1)
    table = score([judge, Repeated(judge), Repeated(judge, 5, mean)], [make_row("a")], progress=False)
    assert judge.runs == Counter(dict.fromkeys(range(10), 1))
    # The first five: -50, -11, -6, -6, -11 add up to -84
    np.testing.assert_allclose(table.run()[0], [-50, rrwa(TABLE_1), -84 / 5])
    assert table.judgement(0, 1).raw == table.run()[0, 1]
    assert table.usage.requests == 10


def test_repetitions_of_the_repeated_judge_take_new_runs():
    judge = Scripted([-1, -2, -3, -9])
    table = score([Repeated(judge, 2, mean)], [make_row("a")], runs=2, progress=False)
    np.testing.assert_allclose(table.values[0, 0], [-1.5, -6.0])
    assert [judgement.raw for judgement in Repeated(judge, 2, mean).judge_batch([make_row("a")], run=1)] == [-6.0]


def test_failed_runs_are_missing_and_a_row_without_enough_of_them_is_a_failure():
    table = score([of([None, -2, None, -4], min_runs=2)], [make_row("a")], progress=False, max_failure_rate=1.0)
    assert table.run()[0, 0] == pytest.approx(-8 / 3)  # (-2 - 4/2) / (1 + 1/2)
    (judgement,) = of([None, None, None, -4]).judge_batch([make_row("a")])
    assert judgement.status is Status.UNPARSABLE
    assert judgement.raw is None


def test_a_repeated_judge_can_be_repeated():
    judge = Scripted([-1, -2, -3, -8])
    twice = Repeated(Repeated(judge, 2, mean), 2, mean)
    assert twice.judge_batch([make_row("a")])[0].raw == pytest.approx((-1.5 - 5.5) / 2)
    assert judge.runs == Counter(dict.fromkeys(range(4), 1))


def test_a_metric_without_a_model_keeps_its_number():
    bank = default_bank().get("levenshtein_distance")
    row = make_row("one two", input="one two three", references=["one two three"])
    judgement = Repeated(bank).judge_batch([row])[0]
    assert judgement.raw == bank.judge_batch([row])[0].raw


def test_called_as_a_module_it_gives_score_raw_and_feedback():
    repeated = of(TABLE_1)
    direct, later = repeated(output="a"), asyncio.run(repeated.acall(output="a"))
    assert direct.raw == later.raw == rrwa(TABLE_1)
    assert direct.score == later.score == MQM.score(direct.raw)
    assert direct.feedback == later.feedback
    assert "9 of 10 runs (1 left out as outlying)" in direct.feedback


def test_called_as_a_module_it_raises_where_there_is_no_number():
    repeated = of([None, None, -1])
    with pytest.raises(JudgementFailed, match="1 of 3 runs gave a number and 2 are needed") as caught:
        repeated(output="a")
    assert (caught.value.status, caught.value.usage.requests) == (Status.UNPARSABLE, 3)
    with pytest.raises(JudgementFailed, match="2 are needed"):
        asyncio.run(repeated.acall(output="a"))


def test_as_a_dspy_metric_it_gives_score_and_feedback():
    answer = of([-10, -10]).as_metric()(make_row("a"), "b")
    assert answer.score == MQM.score(-10)
    assert "2 of 2 runs" in answer.feedback


def test_a_model_judge_is_asked_once_a_run_with_all_texts():
    def answer(prompt):
        assert all(text in prompt for text in ("OUT", "IN", "REF", "CTX"))
        return {"reasoning": "as it is", "score": "4"}

    with GivenModel(answer) as server, dspy.context(lm=server.lm(temperature=1.0)):
        verdict = Repeated(criterion(), 3)(output="OUT", input="IN", references=["REF"], context="CTX")
    assert server.requests == 3
    assert (verdict.raw, verdict.score) == (4.0, 0.75)
    assert verdict.feedback == "4 is the rrwa of 3 of 3 runs; run 0, the nearest, gave 4: as it is"


# State


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"judge": "plain words"}, "'plain words' is no metric"),
        ({"judge": CriterionJudge}, "is no metric"),
        ({"runs": 0}, "runs=0 must be a whole number from 1"),
        ({"runs": 2.0}, r"runs=2\.0"),
        ({"runs": True}, "runs=True"),
        ({"min_runs": 0}, "min_runs=0 must be a whole number from 1 to runs, here 10"),
        ({"min_runs": 11}, "min_runs=11"),
        ({"aggregate": "rwra"}, "did you mean 'rrwa'"),
        ({"aggregate": max}, "unknown aggregate 'max'"),
        ({"outliers": 2}, "outliers=2 must be an OutlierRule"),
    ],
)
def test_arguments_without_meaning_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        Repeated(**{"judge": criterion(), **options})


def test_scripted_answers_differ_between_rows_and_come_back_in_order():
    rows = [make_row(text, id=text) for text in ("a b c", "considerably longer terminology", "of it")]
    with GivenModel(scripted) as server, dspy.context(lm=server.lm(temperature=1.0)):
        together = Repeated(criterion(), 2).judge_batch(rows)
        alone = [Repeated(criterion(), 2).judge_batch([row])[0] for row in rows]
    assert [judgement.raw for judgement in together] == [judgement.raw for judgement in alone]
    assert len({judgement.raw for judgement in together}) > 1
