"""The verdict: the word and its reasons, for each way in which a lead can hold or not."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from metricsmith.rating_model.record import JudgeFigure, JudgeSelection, MeasureResult, RivalJudge, SweepCell
from metricsmith.rating_model.verdict import verdict
from metricsmith.stats.resampling import Interval

SURE, UNSURE, NONE = Interval(0.02, 0.2), Interval(-0.02, 0.2), Interval(math.nan, math.nan)


def found(rivals, best=("a",), results=()):
    figures = (JudgeFigure("a", 0.8, SURE, 0.9), JudgeFigure("b", 0.7, SURE, 0.1))
    own = MeasureResult("decision_consistency", "srs/srs", True, figures, "a", 0.78)
    cells = tuple(SweepCell(0.1 * place, 0.5, 0.3, name, 0.8, {}) for place, name in enumerate(best))
    return JudgeSelection(
        "a", "decision_consistency", "", (), ("a", "b"), (*results, own), tuple(rivals), cells, (), 100, 100
    )


def test_a_lead_that_holds_everywhere_is_chosen():
    word, reasons = verdict(found([RivalJudge("b", 0.1, SURE)], best=("a", "a")))
    assert word == "chosen"
    assert reasons == (
        "a is the best of 2 judges by decision consistency: .800, or .780 without the luck of having been picked; it "
        "is the best in 90\u00a0% of redrawn sets of items",
        "it stays the best judge in use for all 2 pairs of beta and threshold",
    )


@pytest.mark.parametrize("interval", [UNSURE, NONE, Interval(0.0, 0.1)])
def test_a_lead_that_may_be_chance_is_undecided_whatever_else_holds(interval):
    word, reasons = verdict(found([RivalJudge("b", 0.1, interval, 0.1, 0.2), RivalJudge("c", 0.2, SURE, 0.1, 0.2)]))
    assert word == "undecided"
    assert any("its lead over b may be chance" in reason for reason in reasons)


def test_a_lead_that_flips_in_the_sweep_depends_and_says_where():
    word, reasons = verdict(found([RivalJudge("b", 0.1, SURE)], best=("a", "b", "b")))
    assert word == "depends"
    assert "it is the best judge in use for 1 of 3 pairs of beta and threshold; at beta 0.1" in reasons[1]
    word, reasons = verdict(found([RivalJudge("b", 0.1, SURE)], best=("b",)))
    assert (word, len(reasons)) == ("depends", 2)


def test_a_lead_that_response_sets_could_turn_depends_and_names_the_worst():
    rivals = [RivalJudge("b", 0.1, SURE, -0.1, 0.3), RivalJudge("c", 0.1, SURE, -0.4, 0.3), RivalJudge("d", 0.1, SURE)]
    word, reasons = verdict(found(rivals))
    assert word == "depends"
    assert "its lead over c lies anywhere from \N{MINUS SIGN}.400 to +.300" in reasons[-1]
    word, reasons = verdict(found([RivalJudge("b", 0.1, SURE, 0.01, 0.3)]))
    assert word == "chosen"
    assert reasons[-1] == "its lead keeps its sign whatever response sets lie behind the choices"


def test_bounds_that_are_one_point_are_no_reason():
    assert len(verdict(found([RivalJudge("b", 0.1, SURE, 0.1, 0.1)]))[1]) == 1
    word, reasons = verdict(found([RivalJudge("b", 0.0, UNSURE, 0.0, 0.0)]))
    assert (word, len(reasons)) == ("undecided", 2)


def test_the_costliest_measure_is_named_where_its_price_is_sure():
    def costs(name, regret, interval):
        return MeasureResult(name, "h/h", True, (), "b", regret=regret, regret_interval=interval)

    results = [costs("hit_rate", 0.1, SURE), costs("cohen_kappa", 0.2, SURE), costs("scott_pi", 0.5, UNSURE)]
    _, reasons = verdict(found([RivalJudge("b", 0.1, SURE)], results=results))
    assert reasons[-1] == "choosing by cohen kappa would have taken b, whose decision consistency is .200 lower"


def test_cells_in_which_all_judges_are_alike_are_no_evidence():
    word, reasons = verdict(found([RivalJudge("b", 0.1, SURE)], best=("a", "a", "")))
    assert (word, reasons[1]) == (
        "chosen",
        "it stays the best judge in use for all 2 pairs of beta and threshold, besides 1 in which all judges are alike",
    )
    word, reasons = verdict(found([RivalJudge("b", 0.1, SURE)], best=("", "")))
    assert (word, len(reasons)) == ("chosen", 1)


def test_choices_that_nobody_declared_to_be_whole_opinions_choose_nothing():
    undeclared = replace(found([RivalJudge("b", 0.1, SURE)]), declared=False)
    word, reasons = verdict(undeclared)
    assert word == "depends"
    assert reasons[-1].startswith("choices were taken for whole opinions, which nobody declared")
    assert verdict(replace(undeclared, sets_known=True))[0] == "chosen"
