"""``metricsmith induce --panel``."""

from __future__ import annotations

import re

import pytest

from loopback import serve
from panels import panelled

ROWS = 60


@pytest.fixture
def planned(run, own, monkeypatch):
    """The plan's text and its number of requests, for more options."""

    def plan(*options):
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        arguments = ["--target", "rating", "--output", "rewrite", "--input", "notice", "--bank", "generated"]
        arguments += ["--split", "holdout"]
        with serve(panelled) as server:
            model = ["--lm", "openai/loopback", "--api-base", f"http://127.0.0.1:{server.port}/v1"]
            code, printed, errors = run("induce", own, *arguments, "--dry-run", *model, *options)
        assert (code, server.requests) == (0, 0), errors
        return printed, int(re.search(r"requests: (\d+),", printed)[1])

    return plan


def test_the_plan_says_which_judges_are_asked_together(planned):
    assert "17 generated judges, " in planned()[0]
    assert "17 generated judges (15 of them asked together), " in planned("--panel")[0]


def test_a_panel_spares_fourteen_of_fifteen_requests_a_row(planned):
    assert planned()[1] - planned("--panel")[1] == 14 * ROWS


def test_the_plan_counts_axes_rubrics_judgements_and_the_bound_of_judges_that_learn(planned):
    without_learning = 1 + 5 + 17 * ROWS
    learning = planned()[1] - without_learning
    # 42 training rows make 21 + 21. Four draws and a start: 5 x 21; MIPROv2: up to 12 x 21 + 21 + 40; a tenth more.
    assert 0 < learning <= 1.1 * (5 * 21 + 12 * 21 + 21 + 40) + 4
