"""A repeated judge that stops early: when it does, what it says, what it rests on, and its saved state."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter

import dspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import JudgementFailed, OptionError, StateError
from metricsmith.metric import Sequential, make_row
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.loading import from_state, load
from metricsmith.programs.state import write_state
from metricsmith.records import Output, Status, Usage
from metricsmith.scoring import score
from metricsmith.stats.aggregation import AGGREGATES, OutlierRule, half_width, mean, rrwa
from metricsmith.testing import GivenModel
from repeating import ERRORS, MQM, Scripted, criterion, runs_of

NAN = math.nan
NUMBERS = st.sampled_from([-9.0, -6.0, -5.0, -1.0, NAN])


def stopping(numbers, stop_when=0.5, least=3, **options):
    return Repeated(Scripted(numbers), len(numbers), min_runs=least, stop_when=stop_when, **options)


def asked_one_by_one(repeated, numbers):
    """The number of runs asked where each is judged as soon as it is wanted."""
    known = np.zeros((1, len(numbers)), dtype=bool)
    while True:
        values = np.where(known, [numbers], NAN)
        more = repeated.wanted(values, known) & ~known
        if not more.any():
            return int(known.sum())
        known[0, more.argmax()] = True


# When it stops


def test_equal_first_runs_stop_at_once_and_nothing_else_does_with_a_bound_of_zero():
    judgement = Scripted([-6, -6, -6, -50, -50])
    (found,) = Repeated(judgement, 5, min_runs=3, stop_when=0).judge_batch([make_row("a")])
    assert judgement.runs == Counter(dict.fromkeys(range(3), 1))
    assert found.raw == -6
    unequal = Scripted([-6, -6, -6.1, -6, -6])
    Repeated(unequal, 5, min_runs=3, stop_when=0).judge_batch([make_row("a")])
    assert len(unequal.runs) == 5


def test_it_stops_at_the_first_run_after_which_the_half_width_is_within_the_bound():
    # Means of resamples of {-1, -5, ...}: the first three runs are far apart, and each -1 more brings the ends nearer.
    numbers = [-1, -5, -1, -1, -1, -1, -1, -1, -1, -1]
    widths = [half_width(numbers[:runs], mean, outliers=None) for runs in range(3, 11)]
    assert widths[0] > widths[2] > widths[-1]
    for place, bound in enumerate(widths):
        first = next(runs for runs, width in zip(range(3, 11), widths, strict=True) if width <= bound)
        assert first <= 3 + place
        repeated = stopping(numbers, bound, aggregate=mean, outliers=None)
        assert asked_one_by_one(repeated, numbers) == first
        judge = repeated.judge
        repeated.judge_batch([make_row("a")])
        assert judge.runs == Counter(dict.fromkeys(range(first), 1))


def test_the_bound_is_in_the_units_of_the_judge_also_where_lower_is_better():
    numbers = [2, 4, 12, 9, 50]  # of the negated runs the lowest weighs most
    width = half_width([-number for number in numbers[:4]])
    assert width < half_width(numbers[:4]) - 0.2
    for bound, runs in ((width + 0.1, 4), (width - 0.1, 5)):
        repeated = Repeated(Scripted(numbers, ERRORS), 5, min_runs=4, stop_when=bound)
        assert asked_one_by_one(repeated, numbers) == runs


def test_the_rule_for_outliers_is_the_judges_own():
    numbers = [-6, -6, -6, -6, -9, -6]
    narrow, wide = half_width(numbers[:5]), half_width(numbers[:5], outliers=OutlierRule(1))
    assert narrow < wide  # the clean runs go where all others of a resample are alike
    for rule, runs in ((OutlierRule(), 5), (OutlierRule(1), 6)):
        assert asked_one_by_one(stopping(numbers, narrow, 5, outliers=rule), numbers) == runs


def test_as_many_as_are_lacking_are_asked_at_once_and_then_one_by_one():
    repeated = stopping([-1.0, -9.0] * 5, 0.1, least=4)
    values, known = np.full((1, 10), NAN), np.zeros((1, 10), dtype=bool)
    expected = {0: 4, 4: 5, 5: 6}  # known without a gap: wanted by then
    for done, until in expected.items():
        known[0, :done], values[0, :done] = True, ([-1.0, -9.0] * 5)[:done]
        assert repeated.wanted(values, known)[0].tolist() == [True] * until + [False] * (10 - until)


def test_what_is_known_behind_a_gap_decides_nothing():
    repeated = stopping([-6.0] * 6)
    values, known = np.full((1, 6), -6.0), np.ones((1, 6), dtype=bool)
    known[0, 1], values[0, 1] = False, NAN
    assert repeated.wanted(values, known)[0].tolist() == [True] * 3 + [False] * 3


def test_a_failed_run_is_made_up_for_while_runs_are_left():
    judge = Scripted([None, -6, -6, None, -6, -6])
    (found,) = Repeated(judge, 6, min_runs=3, stop_when=1).judge_batch([make_row("a")])
    assert sorted(judge.runs) == [0, 1, 2, 3, 4]
    assert found.feedback.startswith("-6 is the rrwa of 3 of 5 runs (2 without a number, 1 more was not needed); run 1")


def test_with_too_few_numbers_all_runs_are_asked_and_the_judgement_fails():
    judge = Scripted([None, -6, None, None, -6])
    (found,) = Repeated(judge, 5, min_runs=3, stop_when=1).judge_batch([make_row("a")])
    assert len(judge.runs) == 5
    assert found.status is Status.UNPARSABLE
    assert found.error.startswith("2 of 5 runs gave a number and 3 are needed")


@settings(max_examples=60, deadline=None)
@given(
    numbers=st.lists(NUMBERS, min_size=2, max_size=8),
    bound=st.sampled_from([0.0, 0.8, 2.0]),
    least=st.integers(2, 8),
    order=st.randoms(use_true_random=False),
)
def test_neither_the_order_of_the_answers_nor_what_else_is_known_changes_what_is_wanted(numbers, bound, least, order):
    repeated = stopping(numbers, bound, min(least, len(numbers)))
    runs = asked_one_by_one(repeated, numbers)
    known = np.zeros((1, len(numbers)), dtype=bool)
    known[0, [place for place in range(len(numbers)) if order.random() < 0.3]] = True  # another metric asked
    wanted = np.zeros_like(known)
    while True:
        now = repeated.wanted(np.where(known, [numbers], NAN), known)
        assert (now | ~wanted).all()  # what is wanted stays wanted
        wanted = now
        open_places = np.flatnonzero(wanted & ~known)
        if not open_places.size:
            break
        known[0, order.choice(open_places.tolist())] = True
    assert wanted[0].tolist() == [True] * runs + [False] * (len(numbers) - runs)
    everything, prefix = np.array([numbers]), np.array([numbers[:runs] + [NAN] * (len(numbers) - runs)])
    np.testing.assert_array_equal(repeated.combined(everything), repeated.combined(prefix))
    present = sum(not math.isnan(number) for number in numbers[:runs])
    assert present >= repeated.min_runs or runs == len(numbers)


def test_rows_decide_for_themselves():
    table = np.array([[-6, -6, -6, NAN, NAN], [-1, -9, -5, -2, -7], [-1, -9, NAN, NAN, NAN]])
    repeated = stopping([0] * 5, 0.1)
    known = np.isfinite(table)
    together = repeated.wanted(table, known)
    for row in range(3):
        np.testing.assert_array_equal(together[row], repeated.wanted(table[[row]], known[[row]])[0])
    assert together.sum(axis=1).tolist() == [3, 5, 3]


def test_without_a_bound_all_runs_are_wanted():
    values, known = np.full((2, 4), -6.0), np.ones((2, 4), dtype=bool)
    assert Repeated(Scripted([0]), 4).wanted(values, known).all()
    assert isinstance(Repeated(Scripted([0]), 4), Sequential)


# What it rests on and says


def test_runs_beyond_the_one_that_was_enough_count_nowhere_though_they_are_known():
    judge = Scripted([-6, -6, -6, -50, -50])
    early = Repeated(judge, 5, min_runs=3, stop_when=0.1)
    table = score([early, Repeated(judge, 5)], [make_row("a")], progress=False)
    assert judge.runs == Counter(dict.fromkeys(range(5), 1))
    assert table.run()[0, 0] == -6
    assert table.run()[0, 1] == pytest.approx(rrwa([-6, -6, -6, -50, -50]))
    judgement = table.judgement(0, 0)
    assert judgement.raw == -6
    assert judgement.usage == Usage(3, 30, 3, 1.5, 0.75)
    assert judgement.feedback == (
        "-6 is the rrwa of 3 of 3 runs (2 more were not needed); run 0, the nearest, gave -6: because of run 0"
    )


def test_the_table_of_numbers_and_the_judgements_agree_to_the_last_bit():
    generator = np.random.default_rng(4)
    numbers = np.round(generator.normal(-8, 2, (60, 7)))
    numbers[generator.random(numbers.shape) < 0.2] = np.nan
    repeated = stopping([0] * 7, 1.0)
    verdicts = [repeated.verdict(runs_of([None if math.isnan(x) else x for x in row]), 0) for row in numbers]
    raws = [NAN if verdict.raw is None else verdict.raw for verdict in verdicts]
    np.testing.assert_array_equal(repeated.combined(numbers), raws)
    assert 10 < sum("not needed" in verdict.feedback for verdict in verdicts) < 60


def test_card_name_and_repr_say_that_it_may_stop():
    repeated = Repeated(criterion(), 10, mean, min_runs=4, stop_when=0.25)
    assert repeated.name == "plain_words_mean_10_within_0.25"
    assert "mean of at most 10 runs" in repr(repeated)
    card = repeated.card
    assert "Judged 4 to 10 times" in card.summary
    assert "until half the width of its bootstrap interval is at most 0.25" in card.formula
    assert any(limit.startswith("Costs 4 to 10 runs a row") for limit in card.limits)
    assert any("Stops where the first runs agree" in limit for limit in card.limits)
    assert not any("Stops where" in limit for limit in Repeated(criterion()).card.limits)


def test_called_as_a_module_it_asks_no_more_than_it_needs():
    for call in (lambda repeated: repeated(output="a"), lambda repeated: asyncio.run(repeated.acall(output="a"))):
        judge = Scripted([-6] * 8)
        answer = call(Repeated(judge, 8, stop_when=0.5))
        assert answer.raw == -6
        assert "4 of 4 runs (4 more were not needed)" in answer.feedback
        assert judge.runs == Counter(dict.fromkeys(range(4), 1))
    with pytest.raises(JudgementFailed, match="0 of 8 runs gave a number and 4 are needed") as caught:
        Repeated(Scripted([None]), 8, stop_when=0.5)(output="a")
    assert caught.value.usage.requests == 8


def test_a_model_judge_is_asked_no_further_run_once_it_agrees_with_itself():
    with GivenModel(lambda prompt: {"reasoning": "as it is", "score": "4"}) as server:
        with dspy.context(lm=server.lm(temperature=1.0)):
            answer = Repeated(criterion(), 10, min_runs=3, stop_when=0.5)(output="a")
    assert server.requests == 3
    assert answer.score == 0.75


def test_repetitions_stop_each_for_itself():
    judge = Scripted([-6, -6, -6, -6, -1, -9, -5, -2])
    table = score([Repeated(judge, 4, min_runs=2, stop_when=0.1)], [make_row("a")], runs=2, progress=False)
    assert sorted(judge.runs) == [0, 1, 4, 5, 6, 7]
    np.testing.assert_allclose(table.values[0, 0], [-6, rrwa([-1, -9, -5, -2])])


def test_a_repeated_judge_that_stops_can_be_repeated_by_one_that_stops():
    judge = Scripted([-6])
    inner = Repeated(judge, 4, min_runs=2, stop_when=0.1)
    (found,) = Repeated(inner, 4, mean, min_runs=2, stop_when=0.1).judge_batch([make_row("a")])
    assert found.raw == -6
    assert sorted(judge.runs) == [0, 1, 4, 5]


# Options and state


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop_when": -1}, "stop_when=-1 must be a number from 0, in the units of the judge, or None"),
        ({"stop_when": NAN}, "stop_when=nan"),
        ({"stop_when": math.inf}, "stop_when=inf"),
        ({"stop_when": "1"}, "stop_when='1'"),
        ({"stop_when": True}, "stop_when=True"),
        ({"stop_when": 1, "runs": 1}, "stop_when=1 needs at least 2 runs"),
        ({"stop_when": 1, "min_runs": 1}, "min_runs=1 must be a whole number from 2 to runs, here 10"),
    ],
)
def test_bounds_without_meaning_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        Repeated(**{"judge": criterion(), **options})


@pytest.mark.parametrize(
    "output", [Output("x", -1, 1), Output("x", None, 1, half=1.0), Output("x", -1, None, half=1.0)]
)
def test_a_geometric_mean_of_a_scale_that_crosses_zero_is_refused_beforehand(output):
    with pytest.raises(OptionError, match=r"x goes from (-1|-inf) to (1|inf); take another aggregate, say 'mean'"):
        Repeated(Scripted([0], output), aggregate="geometric")
    Repeated(Scripted([0], output), aggregate="mean")


@pytest.mark.parametrize("output", [MQM, ERRORS, Output("x", 0, 1), Output("x", 1, 5)])
def test_a_geometric_mean_of_a_scale_on_one_side_of_zero_is_taken(output):
    assert Repeated(Scripted([0], output), aggregate="geometric").settings.aggregate == "geometric"


def test_two_runs_are_the_least_by_default():
    assert Repeated(criterion(), 2, stop_when=1).min_runs == 2
    assert Repeated(criterion(), 9, stop_when=1).min_runs == 5


def test_one_file_holds_the_bound(tmp_path):
    repeated = Repeated(criterion(), 4, stop_when=0.25)
    write_state(repeated.to_state(), tmp_path / "metric.json")
    again = load(tmp_path / "metric.json")
    assert again.stop_when == 0.25
    assert again.to_state() == repeated.to_state()
    assert again.fingerprint() == repeated.fingerprint()
    repeated.save(str(tmp_path / "state.json"))
    other = Repeated(criterion())
    other.load(str(tmp_path / "state.json"))
    assert other.fingerprint() == repeated.fingerprint()


def test_files_from_before_there_was_a_bound_load_and_keep_their_fingerprint():
    repeated = Repeated(criterion(), 4)
    state = json.loads(json.dumps(repeated.to_state()))
    del state["settings"]["stop_when"]
    old = from_state(state)
    assert old.stop_when is None
    assert old.fingerprint() == repeated.fingerprint()
    inside = Repeated(criterion(), 4, stop_when=1)
    inside.load_state({**inside.dump_state(), "settings": state["settings"]})
    assert inside.stop_when is None
    assert inside.fingerprint() == repeated.fingerprint()
    assert len({repeated.fingerprint(), *(Repeated(criterion(), 4, stop_when=x).fingerprint() for x in (0, 1))}) == 3


def test_a_saved_bound_without_meaning_is_named():
    state = Repeated(criterion(), 4, stop_when=1).to_state()
    state["settings"]["stop_when"] = -1
    with pytest.raises(StateError, match=r"settings\.stop_when: -1 is not allowed; a number from 0"):
        from_state(state)


@pytest.mark.parametrize("aggregate", list(AGGREGATES))
def test_every_aggregate_can_stop(aggregate):
    judge = Scripted([-6])
    (found,) = Repeated(judge, 6, aggregate, min_runs=2, stop_when=0.5).judge_batch([make_row("a")])
    assert found.raw == pytest.approx(-6)
    assert len(judge.runs) == 2
