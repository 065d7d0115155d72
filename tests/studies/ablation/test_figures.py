"""The figures of a grid, against the statistics called by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from grids import SETTINGS, TABLE, made
from metricsmith.stats.correlation import batch_kendall_tau_b
from metricsmith.stats.resampling import (
    holm,
    mean_interval,
    paired_permutation_test,
    repeated_interval,
    repeated_permutation_test,
)
from metricsmith.studies.ablation.figures import figures
from metricsmith.studies.ablation.grid import Grid, SettingTable

LARGE, SMALL, NONE = SETTINGS[0], SETTINGS[2], SETTINGS[3]
GRID = Grid("Sizes", (SettingTable("All", (LARGE, SMALL, NONE)), SettingTable("Two", (LARGE, SMALL))), LARGE, seeds=3)
RUNS = [made(setting.label, seed) for setting in (LARGE, SMALL, NONE) for seed in range(3)]


def on_table(run):
    lines = np.full((len(run.values), len(TABLE)), np.nan)
    lines[:, list(run.test)] = run.values
    return lines


def test_a_cell_is_held_against_the_reference_of_its_seed_by_the_tests_of_two_predictions():
    cells, _ = figures(RUNS, GRID, {"notices": TABLE})
    assert [(cell.setting, cell.seed) for cell in cells] == [(run.setting, run.seed) for run in RUNS]
    run, reference = RUNS[4], RUNS[1]
    cell = cells[4]
    test = list(run.test)
    sides, labels = (run.values[0], reference.values[0]), np.array(TABLE.groups)[test]
    expected = paired_permutation_test(batch_kendall_tau_b, *sides, TABLE.ratings[test], labels, batched=True)
    assert (cell.difference, cell.p_value) == (expected.observed, expected.p_value)
    assert cell.difference == pytest.approx(run.tau - reference.tau)
    assert cell.difference_interval == repeated_interval(
        batch_kendall_tau_b, [sides[0]], TABLE.ratings[test], labels, against=[sides[1]], batched=True
    )
    block = holm([cells[4].p_value, cells[7].p_value])
    assert (cells[4].p_adjusted, cells[7].p_adjusted) == tuple(block)
    assert (cell.tau, cell.interval, cell.learned, cell.test, cell.groups) == (run.tau, run.interval, 33, 27, 9)
    assert all(math.isnan(one.difference) and math.isnan(one.p_adjusted) for one in cells[:3])


def test_a_line_is_over_the_test_sets_of_all_seeds():
    _, (part, two) = figures(RUNS, GRID, {"notices": TABLE})
    large, small, _none = part.lines
    sides = [np.vstack([on_table(run) for run in RUNS[at : at + 3]]) for at in (3, 0)]
    options = {"batched": True, "own_rows": True}
    rated = (TABLE.ratings, TABLE.groups)
    taus = tuple(run.tau for run in RUNS[3:6])
    assert (small.taus, small.tau, small.cells) == (taus, pytest.approx(np.mean(taus)), 3)
    assert small.interval == repeated_interval(batch_kendall_tau_b, sides[0], *rated, **options)
    assert small.over_seeds == mean_interval(taus, bounds=(-1.0, 1.0))
    assert small.difference_interval == repeated_interval(
        batch_kendall_tau_b, sides[0], *rated, against=sides[1], **options
    )
    test = repeated_permutation_test(batch_kendall_tau_b, *sides, *rated, **options)
    assert (small.difference, small.p_value) == (test.observed, test.p_value)
    assert small.p_adjusted == holm([small.p_value, part.lines[2].p_value])[0]
    assert large.reference
    assert math.isnan(large.difference)
    assert two.lines[1].p_adjusted == small.p_value, "one test beside the reference in this table"
    assert not part.curve


def test_cells_that_are_not_done_have_a_reason_and_leave_their_seed_out():
    lost = replace(RUNS[1], status="failed", why="the model broke off", values=(), names=(), tau=math.nan)
    few = [replace(run, status="too few", why="5 rows", values=(), tau=math.nan) for run in RUNS[6:]]
    cells, (part, _) = figures([RUNS[0], lost, *RUNS[2:6], *few], GRID, {"notices": TABLE})
    large, small, none = part.lines
    assert (large.cells, large.why) == (2, "failed: the model broke off")
    assert (none.cells, none.taus, none.why) == (0, (), "too few: 5 rows")
    assert math.isnan(none.tau)
    assert math.isnan(cells[4].difference), "its reference has no figures"
    assert small.cells == 3
    assert small.difference == pytest.approx(np.mean([RUNS[3].tau, RUNS[5].tau]) - np.mean([RUNS[0].tau, RUNS[2].tau]))


def test_a_constant_metric_has_no_tau_and_no_difference():
    flat = replace(RUNS[3], values=(tuple(1.0 for _ in RUNS[3].test),), tau=math.nan)
    cells, (part, _) = figures([*RUNS[:3], flat, *RUNS[4:]], GRID, {"notices": TABLE})
    assert math.isnan(cells[3].p_value)
    assert math.isnan(part.lines[1].taus[0])
    assert part.lines[1].cells == 2
    assert part.lines[1].tau == pytest.approx(np.mean([run.tau for run in RUNS[4:6]]))


@pytest.mark.parametrize("counts", [(4, 4), (4, 1), (2, 3)])
def test_candidates_are_averaged_in_each_seed(counts):
    own, other = counts
    runs = [made(LARGE.label, seed, lines=other) for seed in range(3)] + [
        made(SMALL.label, seed, lines=own) for seed in range(3)
    ]
    cells, (part, _) = figures(runs, replace(GRID, measure="candidates"), {"notices": TABLE})
    small = part.lines[1]
    assert small.tau == pytest.approx(np.mean([run.tau for run in runs[3:]]))
    assert small.interval.low < small.tau < small.interval.high
    assert cells[3].difference == pytest.approx(runs[3].tau - runs[0].tau)
    assert small.difference == pytest.approx(small.tau - part.lines[0].tau)


def test_learning_rows_make_a_curve_whose_comparisons_are_corrected_together():
    settings = tuple(replace(one, rows=rows) for one in (LARGE, SMALL) for rows in (10, 20))
    runs = [made(one.label, seed, rows=one.rows) for one in settings for seed in range(2)]
    _, (part,) = figures(runs, Grid("N", (SettingTable("Curve", settings),), LARGE), {"notices": TABLE})
    assert part.curve
    assert [(line.setting, line.rows, line.reference) for line in part.lines] == [
        (LARGE.label, 10, True), (LARGE.label, 20, True), (SMALL.label, 10, False), (SMALL.label, 20, False),
    ]  # fmt: skip
    assert [line.p_adjusted for line in part.lines[2:]] == holm([line.p_value for line in part.lines[2:]]).tolist()
    assert part.lines[2].p_adjusted > part.lines[2].p_value


def test_data_sets_stand_side_by_side_and_a_ranking_has_no_table():
    runs = [*RUNS, *(replace(run, data="other") for run in RUNS)]
    cells, (part, _) = figures(runs, GRID, {"notices": TABLE, "other": TABLE})
    assert [line.data for line in part.lines] == ["notices", "other"] * 3
    assert replace(part.lines[2], data="other") == part.lines[3]
    ranked = [replace(run, values=(), tau=math.nan, ranking=("bleu",)) for run in RUNS]
    cells, parts = figures(ranked, replace(GRID, measure="retrieval"), {"notices": TABLE})
    assert (len(cells), parts) == (9, ())
