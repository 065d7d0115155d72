"""The terminal's text after a run."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from metricsmith.records import Scale, Task
from metricsmith.report.induction.document import RunDocument
from metricsmith.report.render import render_terminal
from metricsmith.stats.agreement import Agreement

BLOCK = Agreement(72, 14, 0.41, 0.28, 0.52, 0.0004, 0.5, 0.5)


def printed(test, evaluation="cv", **changes):
    """The lines of a run, without its non-breaking spaces."""
    train = Agreement(90, 40, *list(_figures(BLOCK)))
    settings = {
        "title": "Induced metric", "task": Task("", "rating", Scale(1, 5)), "components": (), "tested": True,
        "evaluation": evaluation, "headline": test, "test": test, "train": train, "baselines": {}, "differences": {},
        "unabridged": "", "usage": {}, "probe": None, "raters": None, "new_systems": None, "warnings": (),
        "synthetic": "", "signature": "signature", "split": "",
    }  # fmt: skip
    record = SimpleNamespace(**{**settings, **changes})
    return render_terminal(RunDocument(record), Path("out")).replace("\u00a0", " ").splitlines()


def row(lines, name):
    """The cells of one row of the table of agreement."""
    head = next(line for line in lines if line.strip().startswith("agreement"))
    assert head.split() == ["agreement", "rows", "groups", "tau-b", "95", "%", "interval", "p"]
    return next(line for line in lines if line.strip().startswith(name)).split(maxsplit=name.count(" ") + 1)[-1].split()


def test_the_first_line_is_the_verdict_and_its_cautions_follow():
    baseline = {"Length | words": replace(BLOCK, kendall_tau_b=0.5)}
    first, second, *_ = printed(BLOCK, "file", baselines=baseline, synthetic="Made up.")
    assert first == (
        "Ranks outputs like the raters do more often than chance: tau-b .41 (95 % interval .28 to .52, p < .001) on "
        "72 unseen rows of 14 groups."
    )
    assert second.startswith("A baseline does at least as well on the same rows: Length | words, tau-b .50")


@pytest.mark.parametrize(("groups", "evaluation", "said"), [(14, "file", True), (30, "file", False), (14, "cv", False)])
def test_few_groups_are_remarked_on_below_the_verdict_after_the_intervals(groups, evaluation, said):
    lines = printed(Agreement(72, groups, *list(_figures(BLOCK))), evaluation)
    assert row(lines, "induced metric, held-out rows") == ["72", str(groups), ".410", ".280", "to", ".520", "<", ".001"]
    after = lines[1 + next(place for place, line in enumerate(lines) if "induced metric, held-out" in line)]
    assert after.startswith(f"95 % intervals of tau-b from so few groups ({groups}) held the true value in") is said
    assert "simulat" not in lines[0]


def test_figures_without_an_interval_say_so():
    lines = printed(replace(BLOCK, ci_low=math.nan, ci_high=math.nan, p_value=math.nan))
    assert row(lines, "induced metric, held-out rows") == ["72", "14", ".410", "–", "–"]
    assert lines[0].startswith("No clear evidence")
    assert "There is no interval: too few rows" in "\n".join(lines)


def test_an_undefined_tau_is_a_dash_with_its_reason():
    lines = printed(Agreement(1, 1), baselines={"Length": BLOCK})
    assert lines[0] == "No verdict: tau-b is undefined on 1 row, each predicted while held out."
    assert row(lines, "induced metric, held-out rows") == ["1", "1", "–", "–", "–"]
    assert any(line.startswith("induced metric, held-out rows: 1 row with both") for line in lines)


def _figures(block):
    return block.kendall_tau_b, block.ci_low, block.ci_high, block.p_value, block.pearson, block.spearman
