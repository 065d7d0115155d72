"""Estimates of a run: counted by hand, and held against what a run sends."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import dspy
import numpy as np
import pandas as pd
import pytest

from loopback import own_axes, serve
from metricsmith import CriterionJudge, score
from metricsmith.datasets.table import read_table
from metricsmith.model_calls.limits import price
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.induce import induce, prepare
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.spending import PassRows, estimate_passes
from metricsmith.optimizers.splits import RatedRows
from metricsmith.optimizers.splitting import Division
from planted import TASK, WORDS, planted_rows

ROWS = planted_rows(sources=4)
FURTHER = planted_rows(sources=5, seed=1, first=50)
COUNTS = {"criterion": 2, "rubric": 1}


def passing(others=0, held_out=0, unrated=0, rows=ROWS):
    taken = [FURTHER[:others], FURTHER[others : others + held_out], FURTHER[others + held_out :][:unrated]]
    return PassRows(RatedRows.of(rows, "rating"), *taken)


def estimated(*passes, counts=COUNTS, model="unknown/model", panel=False, most=False, bank="generated", n=None):
    sources = Options(bank=bank, generators=counts, panel=panel, k=30)
    options = replace(sources, lm=dspy.LM(model), n=n)
    return estimate_passes(passes, TASK, options, most=most)


@pytest.mark.parametrize(
    ("passes", "requests"),
    [
        # Every pass: one request for all axes and one per rubric. Every row that all judges read: one per judge.
        ([passing()], 1 + 1 + 12 * 3),
        ([passing(others=3)], 1 + 1 + 15 * 3),
        # A fold needs between the best judge with the paper's five and all, so that all three are needed here.
        ([passing(held_out=2), passing(held_out=4), passing()], 3 * (1 + 1 + 12 * 3) + 6 * 3),
        # Between one judge and three become components: two of three on six unrated rows.
        ([passing(unrated=6)], 1 + 1 + 12 * 3 + 6 * 2),
    ],
)
def test_requests_are_axes_rubrics_and_judgements(passes, requests):
    assert estimated(*passes).requests == requests


def test_a_fold_needs_the_middle_between_six_judges_and_all_on_its_held_out_rows():
    # Of ten judges 6 to 10, 8 in the middle; at most all ten.
    counts = {"criterion": 10}
    assert estimated(passing(held_out=5), passing(), counts=counts).requests == 2 * (1 + 120) + 5 * 8
    assert estimated(passing(held_out=5), passing(), counts=counts, most=True).requests == 2 * (1 + 120) + 5 * 10


def test_a_given_number_of_components_bounds_what_unrated_rows_cost():
    # One component of three judges, whichever; at most each of the three, for no bound rests on what the fit keeps.
    assert estimated(passing(unrated=6), n=1).requests == 1 + 1 + 36 + 6
    assert estimated(passing(unrated=6), n=1, most=True).requests == 1 + 1 + 36 + 18


def test_rows_with_equal_texts_count_once():
    again = passing(rows=[*ROWS, *ROWS[:5]])
    assert estimated(again).requests == estimated(passing()).requests


def test_a_ranking_of_more_cards_than_are_kept_is_one_request_more_a_pass():
    # 33 judges of which 30 are kept.
    many = {"criterion": 33}
    assert estimated(passing(), passing(), counts=many).requests == 2 * (1 + 1 + 12 * 30)


def test_judges_that_cannot_learn_from_so_few_rows_do_not_count():
    # Four groups in two halves are fewer than the four groups that a half needs.
    learning = {"criterion": 1, "examples": 1, "tuned": 1}
    assert estimated(passing(), counts=learning) == estimated(passing(), counts={"criterion": 1})


def test_judges_that_learn_ask_what_their_search_does():
    rows = planted_rows(sources=12, seed=3)
    assert len({row.output for row in rows}) == 36
    alone = estimated(passing(rows=rows), counts={"criterion": 1})
    # Four draws, of which the judge itself shows the first, on half of the rows, which select; then all rows.
    shown = estimated(passing(rows=rows), counts={"criterion": 1, "examples": 1})
    assert shown.requests - alone.requests == 4 * 18 + 36
    tuned = estimated(passing(rows=rows), counts={"criterion": 1, "tuned": 1})
    most = estimated(passing(rows=rows), counts={"criterion": 1, "tuned": 1}, most=True)
    # The judge itself and at least two of MIPROv2's candidates on the selection rows, and the learning rows once.
    assert 4 * 18 + 36 < tuned.requests - alone.requests < most.requests - alone.requests


def test_criterion_judges_take_no_request_of_their_own():
    assert estimated(passing(), counts={"criterion": 7}).requests == 1 + 7 * 12
    assert estimated(passing(), counts={"rubric": 7}).requests == 8 + 7 * 12


def test_geval_judges_take_one_request_each_for_their_steps_and_no_seat_on_a_panel():
    assert estimated(passing(), counts={"geval": 2}).requests == 1 + 2 + 24
    # One for the axes, one for the rubric, two for steps; twelve rows on the panel, and twelve for each G-Eval judge.
    mixed = {"criterion": 2, "rubric": 1, "geval": 2}
    assert estimated(passing(), counts=mixed, panel=True).requests == 1 + 1 + 2 + 12 + 24
    assert estimated(passing(), counts={"criterion": 2, "geval": 0}, panel=True).requests == 1 + 12
    plain, described = (estimated(passing(), counts={name: 1}, panel=True) for name in ("criterion", "rubric"))
    assert described.prompt_tokens > plain.prompt_tokens + 12 * 80  # every row's prompt holds the rubric
    alone = estimated(passing(), counts={"geval": 2})
    assert estimated(passing(), counts={"geval": 2}, panel=True) == alone


def test_tokens_grow_with_passes_rows_and_length():
    base = estimated(passing())
    double = estimated(passing(), passing())
    assert double.prompt_tokens == pytest.approx(2 * base.prompt_tokens, abs=2)
    assert double.completion_tokens == 2 * base.completion_tokens
    assert estimated(passing(others=1)).prompt_tokens > base.prompt_tokens
    long = [row.copy(output=row.output * 9) for row in ROWS]
    assert estimated(passing(rows=long)).prompt_tokens > base.prompt_tokens


def test_an_unknown_price_is_unknown_and_not_nothing():
    assert estimated(passing()).cost is None


def test_the_cost_is_that_of_the_estimated_tokens():
    usage = estimated(passing(), model="openai/gpt-4o-mini")
    assert usage.cost == price("gpt-4o-mini", usage.prompt_tokens, usage.completion_tokens)


def frame(prompts=14, raters=(), twins=0.0, seed=0):
    """Two outputs for each prompt; `twins` of all rows repeat the output before them; a row for each rater."""
    random, rows = np.random.default_rng(seed), []
    for prompt in range(prompts):
        words = [*random.permutation(WORDS)[:14], f"source{prompt}"]
        texts = [" ".join(words[random.integers(0, 5) :]), " ".join(words[random.integers(5, 10) :])]
        texts = [texts[0]] * 2 if prompt < 2 * twins * prompts else texts
        for text in texts:
            level = 1 + len(text.split()) / 4
            for rater in raters or [""]:
                rating = float(np.clip(np.round(level + random.normal(0, 0.5)), 1, 5))
                rows.append({"prompt": " ".join(words[::-1]), "answer": text, "rater": rater, "rating": rating})
    return pd.DataFrame(rows).drop(columns=[] if raters else ["rater"])


def written(prompt):
    """Answers as `own_axes`, with instructions of its own for other demonstrations and tips."""
    found = own_axes(prompt)
    if "proposed_instruction" in found:
        found["proposed_instruction"] += f" Variant {hashlib.sha256(prompt.encode()).hexdigest()[:6]}."
    return found


OWN = [CriterionJudge(criterion=f"Own {number}", meaning="It keeps all facts.", task="Rewrite.") for number in (1, 2)]


@pytest.mark.parametrize(
    ("data", "own", "half", "split", "answer"),
    [
        (frame(), [], False, "holdout", own_axes),
        (frame(), [], False, "holdout", written),
        (frame(raters=("ann", "bob")), [], False, "holdout", own_axes),
        (frame(twins=1 / 3), [], False, "holdout", own_axes),
        (frame(), OWN[:1], False, "holdout", own_axes),
        (frame(), OWN, True, "holdout", own_axes),
        (frame(prompts=8), [], False, "cv", own_axes),
    ],
    ids=[
        "one rater",
        "other instructions",
        "two raters",
        "a third repeated",
        "own judge",
        "store half full",
        "cross-validation",
    ],
)
def test_the_estimate_is_within_fifteen_per_cent_of_what_is_sent(data, own, half, split, answer, tmp_path):
    table = read_table(data, target="rating")
    with serve(answer) as server:
        store = tmp_path / "store.sqlite" if half else None
        optimizer = AutoMetrics(lm=server.lm(), metrics=own or None, store=store)
        if half:  # both own judges on every second row
            score(own, table.rows[::2], lm=server.lm(), store=store)
        before = server.requests
        said = prepare(table, optimizer, Division(split=split)).plan()
        assert server.requests == before
        record = induce(table, optimizer, split=split).record
        sent = server.requests - before
    found = record.usage["estimated"]["requests"]
    assert f"requests: {found}, " in said
    assert ("the store may hold a part of that" in said) is half
    assert abs(found - sent) <= 0.15 * sent
    assert record.evaluation == split
