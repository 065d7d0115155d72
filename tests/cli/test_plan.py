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
    first = r"Ask for \d+ ratings? of each of \d+ items, which costs \d+: a share then lies within ± \.0\d\d \(95 %\)\."
    assert re.fullmatch(first, out.splitlines()[0])
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
        (("people.csv", "--half-width", ".1", "--positive", "rude,fine"), "all ratings are alike (mean 1)"),
        (("people.csv", "--half-width", ".1", "--positive", "rude", "--mean", ".3"), "leave out one or the other"),
        ((*NUMBERS, "--half-width", ".1", "--positive", "rude"), "are about a table of ratings so far"),
        ((*NUMBERS, "--budget", "2"), "2 items leave a share open by ± "),
    ],
)
def test_wrong_options_end_with_2_and_a_hint(run, tmp_path, monkeypatch, options, message):
    write_tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    code, out, err = run("plan", *options)
    assert (code, out) == (2, "")
    assert message in err


def test_response_sets_beside_choices_are_what_is_planned_for(run, tmp_path):
    pilot = tmp_path / "sets.csv"
    rows = [f"i{i},{who},fine,{'rude|fine' if i % 3 else 'fine'}" for i in range(30) for who in ("ann", "bea", "cem")]
    pilot.write_text("\n".join(["item,rater,rating,set", *rows, "i0,dov,fine,rude|fine"]), "utf-8")
    code, out, err = run("plan", pilot, "--positive", "rude", "--options", "rude,fine", "--half-width", ".1")
    assert code == 0, err
    assert "share .670" in out  # 61 of 91 sets hold it, and no choice does
    assert "a response set counts as positive where it holds a positive option" in out
    assert "one rater chooses as most others do in 100\xa0% of cases" in out


def test_items_in_groups_count_for_less_and_the_plan_says_so(run, tmp_path):
    pilot = tmp_path / "grouped.csv"
    rows = [
        f"i{i},{who},{'rude' if (i // 20 + (i % 10 == n)) % 2 else 'fine'},g{i // 20}"
        for i in range(200)
        for n, who in enumerate(("ann", "bea", "cem"))
    ]
    pilot.write_text("\n".join(["item,rater,rating,group", *rows]), "utf-8")
    wish = ("--positive", "rude", "--half-width", ".1", "--json")
    grouped = json.loads(run("plan", pilot, *wish)[1])
    pilot.write_text("\n".join(["item,rater,rating", *(row.rpartition(",")[0] for row in rows)]), "utf-8")
    alone = json.loads(run("plan", pilot, *wish)[1])
    assert grouped["spread"]["group_size"] == 20
    assert grouped["best"]["items"] > 10 * alone["best"]["items"]
    pilot.write_text("\n".join(["item,rater,rating,group", *rows]), "utf-8")
    out = run("plan", pilot, *wish[:4])[1]
    assert re.search(r"items come in groups of 20 that are alike: .*, [\d,]+ items say as much as \d+ that stand", out)
