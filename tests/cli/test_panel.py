"""``metricsmith induce --panel``."""

from __future__ import annotations

import re

import pytest

from loopback import serve
from panels import panelled
from planted import planted_rows

ROWS = len({row.output for row in planted_rows(sources=20)})  # of 60, for equal texts are judged once


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
        return printed, int(re.search(r"requests: ([\d,]+), ", printed)[1].replace(",", ""))

    return plan


def test_the_plan_says_which_judges_are_asked_together(planned):
    assert "17 generated judges, " in planned()[0]
    assert "17 generated judges (15 of them asked together), " in planned("--panel")[0]


def test_generators_are_chosen_by_name_and_number(planned):
    printed, requests = planned("--generators", "criterion=3,rubric_examples=2")
    assert "5 generated judges, " in printed
    assert requests == 1 + 2 + 5 * ROWS


def test_a_panel_spares_fourteen_of_fifteen_requests_a_row(planned):
    assert planned()[1] - planned("--panel")[1] == 14 * ROWS


def test_the_plan_counts_axes_rubrics_judgements_and_judges_that_learn(planned):
    without_learning = 1 + 5 + 17 * ROWS
    printed, likely = planned()
    most = int(re.search(r"at most ([\d,]+) requests", printed)[1].replace(",", ""))
    # 42 training rows make 21 + 21. Four draws and a start: 5 x 21; MIPROv2: up to 12 x 21 + 21 + 40; a tenth more.
    assert likely < most <= without_learning + 1.1 * (5 * 21 + 12 * 21 + 21 + 40) + 4
    # Of the five judges by examples two are the same; MIPROv2 tries two candidates or more.
    assert likely >= without_learning + 4 * 19 + 19 + 3 * 19
