"""A suite's record: its values are those of each task by itself, and no number is made twice."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from metricsmith.errors import DataError, OptionError
from metricsmith.meta_evaluation import evaluate_tasks, system_pairwise_accuracy, tasks_by_name
from metricsmith.meta_evaluation.suites import MetricScores, PairScores, SuiteTask
from metricsmith.studies.kept_file import KeptFile
from metricsmith.studies.suite import evaluate_suite
from suite_roots import write_root

FEW = {"resamples": 100}


def pairs_of(planted):
    """The scores of a root without reading it."""
    found = []
    for pair, rules in planted.suite.pairs.items():
        metrics = {
            name: MetricScores(
                name, name.removesuffix("[noref]"), name.endswith("]"), scores, planted.system_metrics[pair].get(name)
            )
            for name, scores in sorted(planted.metrics[pair].items())
        }
        found.append(
            PairScores(
                pair, rules.gold, planted.systems[pair], planted.documents[pair], planted.gold[pair],
                planted.system_gold[pair], metrics, (("system", "noise", "an outlier"),), {f"{pair}.txt": "c0ffee"},
            )
        )  # fmt: skip
    return found


def changed(pairs, pair, name, **changes):
    """The pairs with another metric in one of them; the name of a metric that is not there makes a new one."""
    found = []
    for scores in pairs:
        if pair in ("all", scores.pair):
            old = scores.metrics.get(name, next(iter(scores.metrics.values())))
            new = dataclasses.replace(old, name=name, base=name, **changes)
            scores = dataclasses.replace(scores, metrics=dict(sorted({**scores.metrics, name: new}.items())))
        found.append(scores)
    return found


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return write_root(tmp_path_factory.mktemp("root"), segments=20)


@pytest.fixture(scope="module")
def of_2023(tmp_path_factory):
    return write_root(tmp_path_factory.mktemp("root23"), kind="wmt23", segments=20)


@pytest.fixture(scope="module")
def record(planted):
    return evaluate_suite(planted.suite, pairs_of(planted), notes=["first"], **FEW)


def test_values_and_intervals_are_those_of_the_task_by_itself(planted, record):
    for pair in pairs_of(planted):
        metrics = {name: one.segments for name, one in pair.metrics.items()}
        plain = evaluate_tasks(tasks_by_name(["spa", "acc-t"]), metrics, pair.segments, groups=pair.documents, **FEW)
        for result in plain:
            (column,) = (one for one in record.columns if one.name == f"{pair.pair} {result.task}")
            pick = [(one.name, one.value, one.interval, one.epsilon, one.used) for one in column.result.metrics]
            assert repr(pick) == repr(
                [(one.name, one.value, one.interval, one.epsilon, one.used) for one in result.metrics]
            )
            assert (column.measure, column.level, column.bounds) == (result.task, "seg", (0.0, 1.0))
            together = np.array([pair.segments, *metrics.values()])
            assert column.outputs == (~np.isnan(together)).all(axis=0).sum() < pair.segments.size
            assert (column.segments, column.documents, column.systems) == (20, 4, pair.systems)


def test_the_planted_order_is_found_and_a_metric_that_one_pair_lacks_is_in_its_tasks_alone(planted, record):
    whole = [name for name in planted.order if name != "Dahlia"]
    assert [one.name for one in record.averages] == whole
    assert [one.name for one in record.metrics] == [*whole, "Dahlia"]
    for column in record.columns:
        assert ("Dahlia" in {one.name for one in column.result.metrics}) == ("ja-zh" not in column.pairs)
    mean = math.fsum(one.value for column in record.columns for one in column.result.metrics if one.name == whole[0])
    assert record.averages[0].value == pytest.approx(mean / 6, abs=1e-15)
    assert sum(column.weight for column in record.columns) == pytest.approx(1)


def test_the_record_says_all_that_decides_its_numbers(planted, record):
    assert record.gold == {"en-de": "mqm", "en-sr_Cyrl_RS": "esa-human1", "ja-zh": "mqm"}
    assert {one.role for one in record.metrics} == {"unknown"}
    assert {(one.name, one.reference_free) for one in record.metrics if one.reference_free} == {
        ("x.seg.s[noref]", True)
    }
    assert ("en-de", "system", "noise") in {(one.pair, one.kind, one.name) for one in record.left_out}
    assert [one.name for one in record.left_out if one.kind == "segment"] == ["3 of 20"] * 3
    assert record.notes[0] == "first"
    assert any("limit of many sign vectors" in note for note in record.notes)
    one_task, pairs = dataclasses.replace(planted.suite, tasks=planted.suite.tasks[1:2]), pairs_of(planted)[:1]
    heavier = dataclasses.replace(one_task, tasks=(dataclasses.replace(one_task.tasks[0], weight=2.0),))
    other_file = [dataclasses.replace(pairs[0], checksums={"en-de.txt": "another"})]
    signatures = [
        evaluate_suite(suite, scores, resamples=1, **options).signature
        for suite, scores, options in (
            (one_task, pairs, {}), (heavier, pairs, {}), (one_task, other_file, {}), (one_task, pairs, {"seed": 1}),
            (one_task, pairs, {"decimals": 6}), (one_task, pairs, {"swap": "scores"}),
        )
    ]  # fmt: skip
    assert len(set(signatures)) == 6
    assert all("en-de mqm 7 systems" in line and " resamples" in line for line in signatures)
    json.dumps(record.as_dict(), allow_nan=False)


def test_roles_follow_the_suite_and_an_added_judge_is_told_apart(planted):
    suite = dataclasses.replace(planted.suite, primary=("Aster",), baselines=("x.seg.s",))
    random = np.random.default_rng(0)
    pairs = [
        changed([one], "all", "mine", segments=random.normal(size=one.segments.shape), added=True)[0]
        for one in pairs_of(planted)
    ]
    roles = {one.name: one.role for one in evaluate_suite(suite, pairs, resamples=1).metrics}
    assert (roles["Aster"], roles["x.seg.s[noref]"]) == ("primary", "baseline")
    assert (roles["Elder"], roles["mine"]) == ("contrastive", "added")


def test_pooled_accuracy_counts_pairs_of_systems_over_language_pairs(of_2023):
    pairs = pairs_of(of_2023)
    found = evaluate_suite(of_2023.suite, pairs, **FEW)
    column = found.columns[0]
    assert (column.name, column.pairs, column.weight, column.segments) == (
        "all system-accuracy", tuple(of_2023.suite.pairs), 0.25, 1,
    )  # fmt: skip
    assert column.systems[0] == f"en-de:{pairs[0].systems[0]}"
    assert len(column.systems) == sum(len(pair.systems) for pair in pairs)
    for one in column.result.metrics:
        parts = [system_pairwise_accuracy(pair.metrics[one.name].systems, pair.system_scores) for pair in pairs]
        assert one.value == sum(part.agreeing for part in parts) / sum(part.pairs for part in parts)
    assert "Dahlia" not in {one.name for one in column.result.metrics}
    values = {column.name: {one.name: one.value for one in column.result.metrics} for column in found.columns}
    for one in found.averages:
        mapped = [3 * values["all system-accuracy"][one.name]]
        for name, value in values.items():
            if not name.startswith("all"):
                mapped.append(value[one.name] if "acc-t" in name else (value[one.name] + 1) / 2)
        assert len(mapped) == 10
        assert one.value == pytest.approx(math.fsum(mapped) / 12, abs=1e-12)


def test_a_metric_without_system_scores_and_a_system_without_gold_are_not_in_tasks_on_systems(of_2023):
    pairs = changed(pairs_of(of_2023), "ja-zh", "Elder", systems=None)
    gold = pairs[0].system_scores.copy()
    gold[1] = math.nan
    pairs[0] = dataclasses.replace(pairs[0], system_scores=gold)
    gappy = pairs[1].metrics["Aster"].systems.copy()
    gappy[2] = math.nan
    pairs = changed(pairs, "en-sr_Cyrl_RS", "Aster", systems=gappy)
    found = evaluate_suite(of_2023.suite, pairs, **FEW)
    names = {column.name: {one.name for one in column.result.metrics} for column in found.columns}
    assert not {"Elder", "Aster"} & names["all system-accuracy"]
    assert "Elder" not in names["ja-zh system-pearson"]
    assert "Elder" in names["ja-zh pearson"]
    assert "Aster" not in names["en-sr_Cyrl_RS system-pearson"]
    assert not {"Elder", "Aster"} & {one.name for one in found.averages}
    assert len(found.columns[1].systems) == len(pairs[0].systems) - 1
    reasons = {(one.pair, one.name): one.reason for one in found.left_out}
    assert reasons["en-de", pairs[0].systems[1]] == "no gold score by system: not in tasks on these"
    assert pairs[1].systems[2] in reasons["en-sr_Cyrl_RS", "Aster"]


def test_gaps_undefined_values_and_chance_are_warned_of(planted):
    pairs = pairs_of(planted)
    gappy = pairs[0].metrics["Elder"].segments.copy()
    gappy[0, ::2] = math.nan
    flat = np.where(np.isnan(pairs[1].metrics["Aster"].segments), math.nan, 1.0)
    wrong = -pairs[2].metrics["Aster"].segments
    pairs = changed(pairs, "en-de", "Elder", segments=gappy)
    pairs = changed(pairs, "en-sr_Cyrl_RS", "Aster", segments=flat)
    pairs = changed(pairs, "ja-zh", "Elder", segments=wrong)
    rules = dataclasses.replace(
        planted.suite, tasks=tuple(SuiteTask("pearson", (pair,)) for pair in planted.suite.pairs)
    )
    found = evaluate_suite(rules, pairs, **FEW)
    assert any(line.startswith("en-de pearson rests on ") and "Elder lacks some" in line for line in found.warnings)
    assert any(line.startswith("en-sr_Cyrl_RS pearson is undefined for Aster") for line in found.warnings)
    assert any(line.startswith("Elder agrees less than chance on ja-zh pearson") for line in found.warnings)
    assert "Aster" not in {one.name for one in found.averages}


def drawn_in(names, p_values):
    """Each two metrics, of those in the order given, that were tested."""
    return {
        frozenset((one, other))
        for one, row in zip(names, p_values, strict=False)
        for other, p in zip(names, row, strict=False)
        if not math.isnan(p)
    }


def numbers_of(record):
    """The number of arrays that a table rests on: two for each metric and one for each two metrics drawn, by task."""
    average = drawn_in([one.name for one in record.averages], record.p_values)
    return sum(
        2 * len(column.result.metrics)
        + len(average | drawn_in([one.name for one in column.result.metrics], column.result.p_values))
        for column in record.columns
    )


class Counted(dict):
    """Kept numbers, with the keys that were set."""

    def __init__(self, *known):
        super().__init__(*known)
        self.made = []

    def __setitem__(self, key, numbers):
        self.made.append(key)
        super().__setitem__(key, numbers)


def test_nothing_is_computed_twice_and_another_metric_computes_nothing_old_again(planted):
    pairs, kept = pairs_of(planted), Counted()
    first = evaluate_suite(planted.suite, pairs, kept=kept, workers=2, **FEW)
    assert len(kept.made) == len(set(kept.made)) == numbers_of(first)
    again = Counted(kept)
    assert repr(evaluate_suite(planted.suite, pairs, kept=again, workers=1, **FEW)) == repr(first)
    assert again.made == []
    # The new one is worse than all others: every test of two old ones is there, and only its own are made.
    random = np.random.default_rng(0)
    more = [changed([one], "all", "new", segments=random.normal(size=one.segments.shape))[0] for one in pairs]
    joined = evaluate_suite(planted.suite, more, kept=again, **FEW)
    assert len(joined.averages) == len(first.averages) + 1
    assert len(again.made) == len(set(again.made)) == numbers_of(joined) - numbers_of(first)
    for column, before in zip(joined.columns, first.columns, strict=True):
        old = {one.name: (one.value, one.interval, one.chance) for one in before.result.metrics}
        new = {one.name: (one.value, one.interval, one.chance) for one in column.result.metrics}
        assert {name: new[name] for name in old} == old
    fresh = evaluate_suite(planted.suite, more, **FEW)
    assert repr(fresh) == repr(joined)


def test_progress_is_told_by_task_and_at_last_of_the_average(planted):
    told = []
    evaluate_suite(planted.suite, pairs_of(planted), tested=lambda *line: told.append(line), workers=2, **FEW)
    assert {task for task, _, _ in told} == {*(task.name for task in planted.suite.tasks), "average"}
    assert told[-1][0] == "average"
    assert all(done <= total for _, done, total in told)


def test_what_cannot_be_evaluated_is_refused(planted, of_2023):
    pairs = pairs_of(planted)
    with pytest.raises(DataError, match=r"own-wmt24 needs ja-zh, whose scores are not given: en-de, en-sr_Cyrl_RS are"):
        evaluate_suite(planted.suite, pairs[:2])
    tasks = (SuiteTask("spa", tuple(planted.suite.pairs)),)
    with pytest.raises(OptionError, match="spa by seg cannot be pooled"):
        evaluate_suite(dataclasses.replace(planted.suite, tasks=tasks), pairs)
    without = [dataclasses.replace(one, system_scores=None) for one in pairs_of(of_2023)]
    with pytest.raises(DataError, match=r"en-de has no gold scores by system.*human-scores/en-de\.mqm\.sys\.score"):
        evaluate_suite(of_2023.suite, without)
    empty = [dataclasses.replace(one, metrics={}) for one in pairs]
    with pytest.raises(DataError, match="en-de spa: no metric has scores by seg in en-de"):
        evaluate_suite(planted.suite, empty)
    with pytest.raises(OptionError, match="unknown swap"):
        evaluate_suite(planted.suite, pairs, swap="decisions")
    with pytest.raises(OptionError, match="workers=0"):
        evaluate_suite(planted.suite, pairs, workers=0)


RUN = """
import sys
from pathlib import Path
from suite_roots import write_root
from test_suite import FEW, pairs_of
from metricsmith.studies.kept_file import KeptFile
from metricsmith.studies.suite import evaluate_suite
planted = write_root(Path(sys.argv[1]), segments=20)
with KeptFile(Path(sys.argv[2])) as kept:
    evaluate_suite(planted.suite, pairs_of(planted), kept=kept, notes=["first"], **FEW)
"""


def test_a_run_that_is_killed_goes_on_to_the_same_table(planted, record, tmp_path):
    path = tmp_path / "suite_kept.jsonl"
    here = Path(__file__).parent
    search = os.pathsep.join([str(here), str(here.parent / "support"), *sys.path])
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(tmp_path), str(path)], env={**os.environ, "PYTHONPATH": search}
    ) as run:
        until = time.monotonic() + 60
        while (not path.exists() or path.read_bytes().count(b"\n") < 12) and time.monotonic() < until:
            time.sleep(0.005)
        run.send_signal(signal.SIGKILL)
    assert run.returncode == -signal.SIGKILL
    before = path.read_bytes()
    with KeptFile(path) as kept:
        found = evaluate_suite(planted.suite, pairs_of(planted), kept=kept, notes=["first"], **FEW)
    whole = before[: before.rfind(b"\n") + 1]
    assert path.read_bytes().startswith(whole)
    assert 11 <= whole.count(b"\n") < path.read_bytes().count(b"\n")
    assert json.dumps(found.as_dict()) == json.dumps(record.as_dict())
