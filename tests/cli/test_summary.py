"""The terminal's text after a run."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from metricsmith.report.induction.document import RunDocument
from metricsmith.report.render import render_terminal
from metricsmith.stats.agreement import Agreement

BLOCK = Agreement(72, 14, 0.41, 0.28, 0.52, 0.0004, 0.5, 0.5)


@pytest.mark.parametrize(("groups", "evaluation", "said"), [(14, "file", True), (30, "file", False), (14, "cv", False)])
def test_few_groups_are_remarked_on_after_the_intervals(groups, evaluation, said):
    test, train = Agreement(72, groups, *list(_figures(BLOCK))), Agreement(90, 40, *list(_figures(BLOCK)))
    record = SimpleNamespace(
        title="Induced metric", components=(), tested=True, evaluation=evaluation, headline=test, test=test,
        train=train, baselines={}, usage={}, probe=None, raters=None, new_systems=None, warnings=(), synthetic="",
        signature="signature", split="",
    )  # fmt: skip
    lines = render_terminal(RunDocument(record), Path("out")).splitlines()
    assert f"({test.n} rows, {groups} groups)" in lines[1]
    assert lines[2].startswith(f"Intervals on so few groups ({groups}) covered") is said


def test_figures_without_an_interval_say_so():
    lacking = replace(BLOCK, ci_low=math.nan, ci_high=math.nan, p_value=math.nan)
    record = SimpleNamespace(
        title="Induced metric", components=(), tested=True, evaluation="cv", headline=lacking, test=lacking,
        train=BLOCK, baselines={}, usage={}, probe=None, raters=None, new_systems=None, warnings=(), synthetic="",
        signature="signature", split="",
    )  # fmt: skip
    lines = render_terminal(RunDocument(record), Path("out")).splitlines()
    assert "tau-b +0.410  no interval, no p  (72 rows, 14 groups)" in lines[1]


def _figures(block):
    return block.kendall_tau_b, block.ci_low, block.ci_high, block.p_value, block.pearson, block.spearman
