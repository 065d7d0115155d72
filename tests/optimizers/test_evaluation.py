"""Cross-validation: no fold's judge sees its held-out rows, and the model is asked no more than a fold needs."""

from __future__ import annotations

import io
import math
import os
import re
import signal
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from loopback import own_axes, scripted, serve
from metricsmith.bank.catalogue import MetricBank, default_bank
from metricsmith.datasets.splits import folds
from metricsmith.errors import Interrupted, ModelFailure
from metricsmith.metric import content_hash
from metricsmith.optimizers import candidates
from metricsmith.optimizers.fitting import FULL
from metricsmith.optimizers.generation import Generated
from metricsmith.optimizers.induce import induce_splits
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.passes import METRIC
from metricsmith.optimizers.spending import estimate_run
from metricsmith.optimizers.splits import RatedRows, Splits
from metricsmith.programs.judges.raters import GuidelineJudge
from metricsmith.report.induction.rows import render_scores
from metricsmith.stats.correlation import kendall_tau_b
from planted import TASK, planted_rows

COLUMNS = Options(bank="none", columns=["good", "junk"])


def rated(**changes):
    return RatedRows.of(planted_rows(**changes), "rating")


def crossed(train, options=COLUMNS, k=3):
    return induce_splits(Splits("cv", train, train.take([]), folds=folds(train.groups, k)), TASK, options).record


def is_judged(prompt):
    return "[[ ## output ## ]]" in prompt and "`axes`" not in prompt


def outputs_in(prompt):
    return prompt.rsplit("[[ ## output ## ]]", 1)[-1]


def test_a_judge_that_memorises_its_ratings_is_worth_nothing_on_held_out_rows(monkeypatch):
    """Ratings are noise. A judge is handed the ratings of the rows that it learns from and repeats them."""
    random = np.random.default_rng(0)
    rows = [
        row.copy(output=f"#{number}# {row.output}", rating=float(random.integers(1, 6)))
        for number, row in enumerate(planted_rows(sources=20))
    ]
    train = RatedRows.of(rows, "rating")

    def memorise(rows, task, counts, **_):
        known = "; ".join(f"{row.output.split()[0]} is {row['rating']:.0f}" for row in rows)
        return Generated((GuidelineJudge(name="memory", measure="rating", guideline=known, task="", scale=task.scale),))

    def answer(prompt):
        if "`axes`" in prompt:
            return scripted(prompt)
        mark = re.search(r"#\d+#", outputs_in(prompt))[0]
        known = re.search(f"{mark} is ([1-5])", prompt)
        return {"reasoning": "I remember.", "score": known[1] if known else str(1 + int(content_hash(mark), 16) % 5)}

    monkeypatch.setattr(candidates, "learn", memorise)
    with serve(answer) as server:
        options = Options(bank="generated", generators={"tuned": 1}, lm=server.lm())
        record = crossed(train, options)
    assert not server.wrong
    assert record.train.kendall_tau_b > 0.999
    assert abs(record.test.kendall_tau_b) < 0.2  # 60 rows of noise


def test_held_out_rows_are_asked_only_what_the_fold_needs():
    train = rated(sources=12)
    with serve(own_axes) as server:
        sources = Options(bank="generated", generators={"criterion": 9})
        options = replace(sources, n=2, lm=server.lm())
        record = crossed(train, options)
    judged = sum(map(is_judged, server.prompts))
    # Three folds of 24 learning rows and the final pass of 36 ask all nine; 12 held-out rows a fold need the two
    # components, the five of the paper's regression and the best single candidate, which may coincide.
    everything = 9 * (3 * 24 + 36)
    assert everything + 3 * 12 * 2 <= judged <= everything + 3 * 12 * 8
    assert FULL not in record.baselines
    assert any(note.startswith("not compared, since a fold asks") and FULL in note for note in record.notes)
    assert {"PLS, n = 5 (paper)", "best single candidate"} <= set(record.baselines)


def test_what_costs_nothing_is_compared_whole():
    record = crossed(rated(sources=12))
    assert FULL in record.baselines
    assert not any("not compared" in note for note in record.notes)


def test_a_judge_that_is_the_same_in_every_fold_is_asked_once_a_row():
    with serve(scripted) as server:  # the same criteria, whatever the rows
        sources = Options(bank="generated", generators={"criterion": 2})
        crossed(rated(sources=12), replace(sources, lm=server.lm()))
    assert sum(map(is_judged, server.prompts)) == 2 * 36
    assert server.requests == 2 * 36 + 4  # and the axes, anew in each pass


def test_a_panel_is_asked_whole_on_held_out_rows():
    from panels import panelled

    train = rated(sources=12)
    with serve(panelled) as server:
        sources = Options(bank="generated", generators={"criterion": 5}, panel=True)
        record = crossed(train, replace(sources, n=1, lm=server.lm()))
    assert FULL in record.baselines


@pytest.mark.parametrize("k", [3, 5])
def test_requests_stay_within_what_was_estimated_at_most(k):
    train = rated(sources=8)
    sides = Splits("cv", train, train.take([]), folds=folds(train.groups, k))
    with serve(own_axes) as server:
        sources = Options(bank="generated", generators={"criterion": 6, "rubric": 3})
        options = replace(sources, lm=server.lm())
        estimated, most = (estimate_run(sides, TASK, options, **more).requests for more in ({}, {"most": True}))
        induce_splits(sides, TASK, options)
    assert server.requests <= most
    assert abs(estimated - server.requests) <= 0.15 * server.requests


def test_components_have_their_own_agreement_within_folds_and_a_learning_curve():
    train = rated(sources=12)
    record = crossed(train)
    assert all(math.isfinite(component.tau_test) for component in record.components)
    (good,) = (component for component in record.components if component.name == "good")
    assert good.tau_test > 0.5
    assert len(record.learning) == 4
    assert [point.rows for point in record.learning] == sorted(point.rows for point in record.learning)
    # All learning rows: the same fit as in the folds, whose mean agreement is the headline.
    assert record.learning[-1].kendall_tau_b == pytest.approx(record.test.kendall_tau_b)


def test_differences_from_baselines_stand_on_the_same_folds():
    train = rated(sources=12)
    evaluation = crossed(train)
    assert set(evaluation.differences) == set(evaluation.baselines)
    assert METRIC not in evaluation.differences
    for label, found in evaluation.differences.items():
        gap = evaluation.test.kendall_tau_b - evaluation.baselines[label].kendall_tau_b
        assert found.kendall_tau_b == pytest.approx(gap)
        assert found.ci_low <= found.kendall_tau_b <= found.ci_high


def test_folds_with_one_rating_are_counted():
    train = rated(sources=12)
    parts = folds(train.groups, 3)
    for place in parts[0].test:
        train.rows[place]["rating"] = train.ratings[place] = 3.0
    record = induce_splits(Splits("cv", train, train.take([]), folds=parts), TASK, COLUMNS).record
    assert any(re.match("1 of 3 folds have one and the same rating", note) for note in record.notes)
    assert math.isfinite(record.test.kendall_tau_b)


def test_a_bank_metric_is_computed_once_a_row():
    (family,), computed = default_bank().only("rouge1_f").families, []

    def compute(batch, names):
        computed.extend(zip(batch.outputs, map(tuple, batch.references), strict=True))
        return family.compute(batch, names)

    bank = MetricBank((replace(family, compute=compute),))
    train = rated(sources=12)
    record = crossed(train, Options(metrics=bank, bank="existing"))
    assert len(computed) == len(set(computed)) == len({row.output for row in train.rows})
    plain = crossed(train, Options(metrics=default_bank().only("rouge1_f"), bank="existing"))
    assert (record.components, record.test, record.baselines) == (plain.components, plain.test, plain.baselines)


@pytest.mark.parametrize(("way", "ends"), [("Ctrl-C", Interrupted), ("server", ModelFailure)])
def test_one_that_was_stopped_goes_on_with_its_store(tmp_path, way, ends):
    """Three judges in each of three folds: the run ends in the second, and only what was not judged is asked then."""
    train, judged, broken = rated(sources=8), [], way == "server"

    def answer(prompt):
        if is_judged(prompt):
            if stopping and broken and len(judged) == 90:
                raise ConnectionError
            judged.append(prompt)
            if stopping and not broken and len(judged) == 90:
                os.kill(os.getpid(), signal.SIGINT)
        return own_axes(prompt)

    def run(store):
        sources = Options(bank="generated", generators={"criterion": 3})
        with serve(answer) as server:
            return crossed(train, replace(sources, lm=server.lm(), store=store))

    stopping = False
    whole = run(tmp_path / "whole.sqlite")
    everything = sorted(judged)
    judged.clear()
    stopping = True
    with pytest.raises(ends):
        run(tmp_path / "store.sqlite")
    before = len(judged)
    stopping = False
    resumed = run(tmp_path / "store.sqlite")
    assert 90 <= before < len(everything) - 60
    # What was on its way at Ctrl-C was answered and may have come too late for the store: at most 64.
    asked_twice = len(judged) - len(everything)
    assert 0 <= asked_twice <= (0 if broken else 64)
    assert sorted(set(judged)) == sorted(set(everything))
    assert (resumed.components, resumed.test, resumed.baselines) == (whole.components, whole.test, whole.baselines)
    assert resumed.data == whole.data


def test_judges_that_no_fold_can_make_are_one_line():
    with serve(scripted) as server:
        sources = Options(bank="generated", generators={"criterion": 2, "examples": 1, "tuned": 1})
        record = crossed(rated(sources=8), replace(sources, lm=server.lm()))
    lines = [line for line in record.warnings if "could not be made" in line]
    assert [line.split(" (")[0] for line in lines if line.startswith("Fold")] == [
        "Folds 1, 2, 3: Judges that could not be made: 1 of the family 'examples'"
    ]
    assert "1 of the family 'tuned'" in lines[0]


def test_the_scores_file_names_each_rows_fold_so_that_the_figure_can_be_made_again():
    record = crossed(rated(sources=20))
    table = pd.read_csv(io.StringIO(render_scores(record)))
    assert sorted(set(table["split"])) == ["fold 1", "fold 2", "fold 3"]
    taus = [kendall_tau_b(own["prediction"], own["rating"]) for _, own in table.groupby("split")]
    assert np.mean(taus) == pytest.approx(record.test.kendall_tau_b, abs=1e-12)


@pytest.mark.parametrize(("k", "advised"), [(3, False), (4, True)])
def test_three_folds_are_advised_only_where_there_are_more(k, advised):
    record = crossed(rated(sources=8), k=k)
    (few,) = [warning for warning in record.warnings if "too few for an interval" in warning]
    assert ("--cv 3" in few) is advised
    assert not any("the interval is rough" in warning for warning in record.warnings)
