"""Retrieval held against the worth of metrics: what is ranked, what counts, and numbers by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loopback import scripted, serve
from metricsmith.bank.base import numbers_kept
from metricsmith.bank.catalogue import MetricBank, default_bank, family
from metricsmith.errors import HopelessModel
from metricsmith.optimizers.candidates import candidates_kept
from metricsmith.optimizers.options import Options
from metricsmith.stats.correlation import kendall_tau_b
from metricsmith.studies.ablation.grid import Grid, Setting, SettingTable
from metricsmith.studies.ablation.retrieval import rankings, run_ranking
from metricsmith.studies.ablation.runs import CellRun, GridCell
from students import rated_table

BANK = MetricBank((family("levenshtein"), family("rouge"), family("bleu"), family("self_bleu")))
TABLE = rated_table()
LEARNED = tuple(range(0, len(TABLE), 2))


def run(retrieval="bm25", learned=LEARNED, table=TABLE, seed=0, cards=None, **options):
    setting = Setting(retrieval, retrieval=retrieval, cards=cards)
    settled = Options(**{"metrics": BANK, "progress": False, **options})
    return run_ranking(GridCell("notices", table, setting, seed, np.array(learned), np.array([1])), settled)


def test_a_card_is_worth_its_best_metrics_tau_on_the_learning_rows():
    found = run()
    assert (found.status, found.data, found.learned, found.usage.requests) == ("done", "notices", LEARNED, 0)
    assert set(found.ranking) == set(found.gains) == {one.card.name for one in BANK.families}
    assert math.isnan(found.gains["SelfBLEU"])  # it needs several sentences: unknown, not 0
    rows = [TABLE.rows[place] for place in LEARNED]
    ratings = [float(row["rating"]) for row in rows]
    taus = [
        abs(kendall_tau_b([judged.raw for judged in metric.judge_batch(rows)], ratings))
        for metric in family("rouge").metrics()
    ]
    assert found.gains["ROUGE"] == pytest.approx(max(taus), abs=1e-12)


def test_ratings_of_other_rows_do_not_matter():
    table = rated_table()
    for place in set(range(len(table))) - set(LEARNED):
        table.ratings[place] = table.rows[place]["rating"] = 6 - table.ratings[place]
    assert run(table=table).gains == pytest.approx(run().gains, nan_ok=True)


def test_at_most_twenty_are_named_and_whole_cards_or_brief_ones_are_read():
    whole, brief = run(metrics=default_bank()), run(metrics=default_bank(), cards="brief")
    assert len(whole.ranking) == len(brief.ranking) == min(20, len(whole.gains)) > 4
    assert whole.ranking != brief.ranking
    assert whole.gains == pytest.approx(brief.gains, nan_ok=True)


def test_a_model_ranks_and_is_asked_once_for_equal_cards():
    with serve(scripted) as server, candidates_kept(), numbers_kept():
        first, again = run("model", lm=server.lm()), run("model", lm=server.lm(), seed=1)
        run("bm25 model", lm=server.lm())
        assert server.requests == 2
    assert first.ranking == again.ranking
    assert (first.usage.requests, again.usage.requests) == (1, 0)


def test_what_cannot_be_run_says_why():
    few = run(learned=range(7))
    assert (few.status, few.why) == ("too few", "7 learning rows; 8 are the least")
    without = run("model")
    assert without.status == "not run"
    assert "pass --lm MODEL" in without.why
    bare = run(metrics=MetricBank(()))
    assert (bare.status, bare.gains) == ("failed", {})
    with serve(lambda _: {"reasoning": "?"}) as server:
        failed = run("model", lm=server.lm())
    assert failed.status == "failed"
    assert failed.usage.requests == server.requests > 0


def test_a_model_that_refuses_to_work_ends_everything():
    with serve(scripted, always=401) as server, pytest.raises(HopelessModel):
        run("model", lm=server.lm())


# By hand, with log2(3) = 1.58496: of gains .5, .4, .25 and 0 the ideal sum is .5 + .4 / 1.58496 + .25 / 2 = .87737.
# b, a, c, d: at 1 .4 / .5 = .8; from 5 on (.4 + .5 / 1.58496 + .125) / .87737 = .84046 / .87737 = .95793; recall at 1
# is 0, for a is the best. a, c, b, d: 1 at 1, then (.5 + .25 / 1.58496 + .2) / .87737 = .85773 / .87737 = .97762.
GAINS = {"a": 0.5, "b": 0.4, "c": 0.25, "d": math.nan}


def test_lines_by_hand():
    runs = [
        CellRun("one", "x", 0, 0, ranking=tuple("bacd"), gains=GAINS),
        CellRun("one", "x", 0, 1, ranking=tuple("acbd"), gains=GAINS),
        CellRun("one", "y", 0, 0, ranking=tuple("acbd"), gains=dict.fromkeys("abcd", 0.0)),
        CellRun("two", "x", 0, 0, status="not run", why="no model"),
        CellRun("two", "x", 0, 1, ranking=("d", "b"), gains=GAINS),
    ]
    grid = Grid(
        "t", (SettingTable("p", (Setting("two"), Setting("one"))), SettingTable("q", (Setting("one"),))), Setting("one")
    )
    two, one = rankings(runs, grid)
    assert (two.setting, two.cells, two.why) == ("two", 1, "not run: no model")
    assert (one.setting, one.cells, one.why) == ("one", 3, "")
    assert one.ndcg[1] == pytest.approx((0.9, 0.2 / math.sqrt(2)))
    assert one.ndcg[20] == one.ndcg[5] == pytest.approx((0.96777, 0.01392), abs=1e-5)
    assert one.recall[1] == pytest.approx((0.5, 1 / math.sqrt(2)))
    assert one.recall[5] == pytest.approx((1.0, 0.0))
    # d, b: nothing at 1; .4 / 1.58496 / .87737 = .28764 at 5, and one of the three that are worth anything.
    assert two.ndcg[1][0] == two.recall[1][0] == 0.0
    assert two.ndcg[5] == pytest.approx((0.28764, math.nan), abs=1e-5, nan_ok=True)
    assert two.recall[5] == pytest.approx((1 / 3, math.nan), nan_ok=True)


def test_other_numbers_of_learning_rows_have_lines_of_their_own():
    settings = (Setting("one"), Setting("one", rows=20))
    runs = [CellRun("one", "x", rows, 0, ranking=tuple("acbd"), gains=GAINS) for rows in (0, 20)]
    lines = rankings(runs, Grid("t", (SettingTable("p", settings),), settings[0]))
    assert [(line.setting, line.cells) for line in lines] == [("one", 1), ("one, 20 learning rows", 1)]


def test_a_setting_of_which_nothing_is_done_has_no_numbers():
    grid = Grid("t", (SettingTable("p", (Setting("one"),)),), Setting("one"))
    (line,) = rankings([CellRun("one", "x", 0, 0, status="failed", why="w")], grid)
    assert line.cells == 0
    assert all(math.isnan(number) for pair in (*line.ndcg.values(), *line.recall.values()) for number in pair)
