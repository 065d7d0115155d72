"""`metricsmith plan`: from a pilot or from two numbers to items and ratings of each."""

from __future__ import annotations

import json
import re

import pytest

from judged_choices import write_tables
from metricsmith.rating_model.planning import RatingSpread, flip_probability, plan_ratings

NUMBERS = ("--mean", ".3", "--between", ".05")


def test_two_numbers_give_the_plans_of_the_library(run):
    code, out, err = run("plan", *NUMBERS, "--budget", 500, "--item-cost", 2, "--json")
    assert code == 0, err
    content, spread = json.loads(out), RatingSpread(0.3, 0.05, 0.21 - 0.05)
    best = plan_ratings(spread, budget=500, item_cost=2)
    assert content["best"] == pytest.approx(vars(best))
    assert [plan["ratings_per_item"] for plan in content["plans"]] == sorted(
        {1, 2, 3, 5, 10, 20, best.ratings_per_item}
    )
    assert content["plans"][0]["flip_probability"] == pytest.approx(flip_probability(1, 0.5, spread=spread))
    assert content["ceiling"] is None


def test_a_pilot_gives_a_table_and_the_ceiling(run, tmp_path):
    pilot, _ = write_tables(tmp_path)
    code, out, err = run("plan", pilot, "--positive", "rude", "--half-width", ".05", "--most-items", 400)
    assert code == 0, err
    assert re.search(r"ratings of an item +items +ratings +cost +95 % +decided otherwise", out)
    assert re.search(r"\d+ \(best\) +\d+ +\d+ +\d+ +± \.0", out)
    assert "one rater chooses as most others do in" in out
    assert run("plan", pilot, "--positive", "rude", "--half-width", ".05", "--json")[1].count("NaN") == 0


def test_items_that_do_not_differ_have_no_stated_share_of_wrong_decisions(run):
    code, out, _ = run("plan", "--mean", ".3", "--between", "0", "--half-width", ".1")
    assert code == 0
    assert re.search(r"1 \(best\) +\d+ +\d+ +\d+ +± \.\d+ +–", out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "give a table of ratings so far, or --mean"),
        (("--mean", ".3", "--between", ".5", "--budget", "9"), "--between, a variance"),
        (NUMBERS, "give either a half width or a budget"),
        ((*NUMBERS, "--half-width", ".001", "--most-items", "20"), "no plan of at most 20 items"),
        (("people.csv", "--half-width", ".1"), "there are fine, rude"),
        (("people.csv", "--half-width", ".1", "--positive", "rud"), "did you mean 'rude'"),
    ],
)
def test_wrong_options_end_with_2_and_a_hint(run, tmp_path, monkeypatch, options, message):
    write_tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    code, out, err = run("plan", *options)
    assert (code, out) == (2, "")
    assert message in err
