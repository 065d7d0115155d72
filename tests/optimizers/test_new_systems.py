"""Agreement on outputs of systems that no fit has seen, and inside systems."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmark import loaded
from metricsmith.datasets.table import read_table
from metricsmith.metric import make_row
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.candidates import Candidates
from metricsmith.optimizers.evaluation import new_systems
from metricsmith.optimizers.fitting import FitOptions
from metricsmith.optimizers.induce import induce, run_pass
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.passes import Trial
from metricsmith.optimizers.splits import RatedRows
from metricsmith.records import Scale, Task
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.stats.resampling.new_systems import leave_systems_out
from stubs import Scripted

TASK = Task("Rewrite.", "rating", Scale(-9, 9))


def rows(prompts, systems, seed, *, known=True, level=2.0, signal=0.0, extra=0):
    """Ratings with a level by system, twelve columns with levels of their own; `signal` is the columns' share."""
    levels = np.random.default_rng(99).normal(0, level, (systems, 13))
    random = np.random.default_rng(seed)
    made = []
    for prompt in range(prompts):
        for system in range(systems + (extra if prompt == 0 else 0)):
            named = {"system": f"s{system}"} if known and system < systems else {}
            mine = levels[min(system, systems - 1)] + random.normal(size=13)
            columns = {f"c{number}": float(value) + signal * mine[0] for number, value in enumerate(mine[1:])}
            made.append(make_row("a b", rating=float(mine[0]), group=f"{seed} {prompt}", columns=columns, **named))
    return made


def fitted(train, test, **changes):
    sources = Options(bank="none", columns=list(train[0]["columns"]))
    options = replace(sources, **changes)
    return run_pass(RatedRows.of(train, "rating"), test, TASK, options), RatedRows.of(test, "rating")


def trial(train, test):
    induction, held = fitted(train, test)
    return Trial(induction, held, induction.other_values)


def figures(train, test):
    return new_systems([trial(train, test)], FitOptions())


def test_levels_of_the_rated_systems_do_not_pass_for_agreement_on_new_ones():
    induction, test = fitted(rows(16, 8, 0), rows(10, 8, 1))
    shared = kendall_tau_b(induction.predict(induction.other_values), test.ratings)
    found = new_systems([Trial(induction, test, induction.other_values)], FitOptions())
    assert shared > 0.3
    assert found.kendall_tau_b < 0.1
    assert found.ci_low < 0 < found.ci_high
    assert abs(found.within_tau_b) < 0.15
    assert found.within_low < 0 < found.within_high
    assert (found.systems, found.rows, found.unnamed, found.judges, found.withheld) == (8, 80, 0, 0, "")


def test_a_signal_in_rows_is_seen_on_new_systems_and_inside():
    found = figures(rows(16, 6, 0, level=0.3, signal=2.0), rows(10, 6, 1, level=0.3, signal=2.0))
    assert found.ci_low > 0.5
    assert found.within_low > 0.5


def test_rows_without_a_system_are_left_out_and_counted():
    train, test = rows(16, 6, 0), rows(10, 6, 1)
    more = figures(train, rows(10, 6, 1, extra=3))
    assert more.unnamed == 3
    assert more.rows == figures(train, test).rows == 60


def test_without_systems_there_is_no_block():
    assert figures(rows(16, 6, 0), rows(10, 6, 1, known=False)) is None


def test_five_systems_are_too_few():
    found = figures(rows(16, 5, 0), rows(10, 5, 1))
    assert found.withheld == "6 systems among the held-out rows are the least, and there are 5"
    assert math.isnan(found.kendall_tau_b)
    assert math.isfinite(found.within_tau_b)


def test_systems_that_do_not_meet_are_not_compared():
    # Six prompts of one system each, and five that two systems answer.
    test = [row for row in rows(11, 6, 1) if row["system"] in _answered(int(row["group"].split()[1]))]
    assert figures(rows(16, 6, 0), test).withheld == "only 5 of 11 held-out groups have rows of two systems or more"


def _answered(prompt):
    return {f"s{prompt}"} if prompt < 6 else {f"s{prompt - 6}", f"s{prompt - 5}"}


def test_ratings_that_vary_by_few_systems_only_leave_nothing_to_learn():
    train = [row.copy(rating=row["rating"] if row["system"] in ("s0", "s1") else 0.0) for row in rows(16, 6, 0)]
    assert "training ratings are alike" in figures(train, rows(10, 6, 1)).withheld


class Judges(Candidates):
    """Candidates that are judges all of them, whatever they are."""

    @property
    def judged(self):
        return self.declared


def test_judges_that_learned_from_all_systems_are_counted():
    one = trial(rows(16, 6, 0, signal=1.0), rows(10, 6, 1, signal=1.0))
    name = one.trained.fitted.small.names[0]
    judges = Judges((Scripted(name=name),), frozenset({name}))
    assert new_systems([replace(one, trained=replace(one.trained, candidates=judges))], FitOptions()).judges == 1


def test_where_a_fold_judged_its_rows_by_what_it_kept_nothing_is_refitted():
    one = trial(rows(16, 6, 0), rows(10, 6, 1))
    halves = [replace(one, known=frozenset(one.trained.fitted.positions[:3])), one]
    assert new_systems(halves, FitOptions()).withheld.startswith("under cross-validation held-out rows are judged")
    whole = replace(one, known=frozenset(range(12)))
    assert new_systems([whole], FitOptions()) == new_systems([one], FitOptions())


@pytest.mark.parametrize("options", [{"fraction": 0.4}, {"cv": 3}])
def test_the_public_ratings_of_six_systems_have_both_figures(shared_data, options):
    import pandas as pd

    frame = pd.read_csv(shared_data / "simpeval.csv")
    frame["length"], frame["words"] = frame.simple.str.len(), frame.simple.str.split().str.len()
    table = read_table(frame, target="score", output="simple", group="id", metric_columns=["length", "words"])
    record = induce(table, AutoMetrics(bank="none"), **options).record
    assert record.new_systems.systems == 6
    assert record.new_systems.rows == record.test.n
    assert record.new_systems.ci_low < record.new_systems.kendall_tau_b < record.new_systems.ci_high
    assert record.as_dict()["new_systems"]["withheld"] == ""


def test_the_benchmark_fits_as_the_package_does(capsys):
    benchmark = loaded("new_systems")
    found = benchmark.measure(benchmark.Cell(6, 8, True, 0.3), 3, 0)
    assert np.isfinite(found).all()
    random = np.random.default_rng(0)
    world = benchmark.World(benchmark.Cell(6, 10, True, 0.3), random)
    fit, test = benchmark.Fit(world.rows(20)), world.rows(10)
    quick, exact = (leave_systems_out([fit.held_out(test, exact)]).kendall_tau_b for exact in (False, True))
    assert quick == pytest.approx(exact, abs=0.03)
