"""The public tool's numbers on WMT23's side-by-side ratings come out of a suite of one language pair."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.datasets.score_files import write_scores
from metricsmith.datasets.suite_files import named_suite
from metricsmith.datasets.suite_roots import read_suite
from metricsmith.studies.suite import evaluate_suite
from score_matrices import en_de

SYSTEMS = [f"System-{number}" for number in range(9)] + ["refA"]
GOLDEN = {  # our measures, the level of their scores, and the tool's names
    "acc-t": ("seg", "acc-t/item"), "acc": ("seg", "acc23_eps0/item"), "pearson": ("seg", "pearson/none"),
    "pearson-item": ("seg", "pearson/item"), "spearman": ("seg", "spearman/none"), "tau-b": ("seg", "kendall_b/none"),
    "tau-b-item": ("seg", "kendall_b/item"), "system-pearson": ("sys", "sys_pearson"),
    "system-accuracy": ("sys", "sys_pairwise_accuracy"), "spa": ("seg", "pce"),
}  # fmt: skip
METRICS = {"slot1": "metric1", "slot2": "metric2", "noise.of-2": "syn2", "noise.of-4": "syn4"}


@pytest.fixture(scope="module")
def found(shared_golden, tmp_path_factory):
    """The suite's columns by measure, and the tool's values by metric."""
    folder = tmp_path_factory.mktemp("golden")
    cases = {name: en_de(shared_golden)[f"ende/wmt/gold0_{case}"] for name, case in METRICS.items()}
    gold = cases["slot1"][1]
    files = {"human-scores/en-de.mqm": gold}
    files |= {f"metric-scores/en-de/{name}-src": metric for name, (metric, _, _) in cases.items()}
    for name, scores in files.items():
        for level, rows in (("seg", scores), ("sys", scores.mean(axis=1, keepdims=True))):
            write_scores(folder / "wmt23" / f"{name}.{level}.score", dict(zip(SYSTEMS, rows, strict=True)))
    lines = {f"system-outputs/en-de/{name}.txt": name for name in SYSTEMS} | {"sources/en-de.txt": "source"}
    lines |= {"documents/en-de.docs": "news doc"}
    lines |= {f"references/en-de.{name}.txt": name for name in ("refA", "refB")}
    for name, line in lines.items():
        path = folder / "wmt23" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{line}\n" * gold.shape[1], "utf-8")
    measures = [f'[[measures]]\nmeasure = "{name}"\nlevel = "{level}"\n' for name, (level, _) in GOLDEN.items()]
    text = 'name = "golden"\ntest_set = "wmt23"\nreference = "refB"\nhuman = true\npairs = ["en-de"]\n'
    (folder / "golden.toml").write_text(text + "\n".join(measures), "utf-8")
    suite = named_suite(folder / "golden.toml")
    record = evaluate_suite(suite, read_suite(folder, suite), resamples=100)
    return {column.measure: column for column in record.columns}, {name: case[2] for name, case in cases.items()}


@pytest.mark.parametrize("measure", [name for name in GOLDEN if name != "spa"])
def test_values_are_those_of_the_public_tool(found, measure):
    columns, expected = found
    assert columns[measure].systems == tuple(SYSTEMS)  # the reference that is not the standard one is a system
    assert {one.name.removesuffix("[noref]") for one in columns[measure].result.metrics} == set(METRICS)
    for one in columns[measure].result.metrics:
        golden = expected[one.name.removesuffix("[noref]")][GOLDEN[measure][1]]
        assert one.value == pytest.approx(np.ravel(golden)[0], abs=1e-12), one.name
        if measure == "acc-t":
            assert one.epsilon == golden[1]


def test_soft_accuracies_are_those_of_the_public_tool_up_to_the_draws_of_both(found):
    """The tool's sign vectors are others, and its ties count full: both add what another seed would."""
    columns, expected = found
    for one in columns["spa"].result.metrics:
        golden = expected[one.name.removesuffix("[noref]")]["pce"]
        assert abs(one.value - golden) < 4 * math.hypot(one.error, one.error), one.name
