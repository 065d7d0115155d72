"""Every figure of a small grid again, slowly: from the predictions of its cells by loops."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from metricsmith.bank.catalogue import MetricBank, family
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.report.ablation.document import write_ablation
from metricsmith.studies.ablation.grid import Grid, Setting, SettingTable
from metricsmith.studies.ablation.run import ablate
from rated import rated_table

BASE = Setting("n=2", bank="existing", n=2, regression="pls")
OTHERS = (Setting("n=1", bank="existing", n=1, regression="pls"), Setting("columns", bank="none", n=2))
FEW = tuple(Setting(one.label, one.bank, n=one.n, regression=one.regression, rows=12) for one in (BASE, *OTHERS))
GRID = Grid("Sizes", (SettingTable("All", (*OTHERS, BASE)), SettingTable("Few", FEW)), BASE, seeds=3)
DRAWS = 600


def tau_b(predicted, ratings):
    """From the signs of all pairs of rows."""
    here = ~np.isnan(predicted)
    one, two = (np.sign(side[here, None] - side[here]) for side in (predicted, ratings))
    return float((one * two).sum() / math.sqrt((one * one).sum() * (two * two).sum()))


def mean_difference(sides, ratings):
    """The mean tau-b over the lines of one side, or the difference of two, and what each line contributes."""
    found = np.array([[tau_b(line, ratings) for line in side] for side in sides])
    each = found[0] - (found[1] if len(sides) == 2 else 0.0)
    return sum(each) / len(each), each


def interval(sides, ratings, labels, *, between=True):
    """By leaving out each group of all lines at once, with the variance over lines; Student's t on Fisher's scale.

    A side holds a line for each seed: predictions of all rows of the table, NaN outside the test set.
    """
    tested = ~np.all(np.isnan(np.vstack(sides)), axis=0)
    estimate, each = mean_difference(sides, ratings)
    present = sorted(set(labels[tested]))
    without = [
        mean_difference([side[:, labels != one] for side in sides], ratings[labels != one])[0] for one in present
    ]
    groups, middle = len(present), sum(without) / len(without)
    terms = [((groups - 1) / groups * sum((one - middle) ** 2 for one in without), groups - 1)]
    if between:
        terms.append((sum((each - estimate) ** 2) / (len(each) - 1) / len(each), len(each) - 1))
    variance = sum(term for term, _ in terms)
    freedom = variance**2 / sum(term**2 / degrees for term, degrees in terms)
    reach, place = len(sides), estimate / len(sides)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(variance) / (reach * (1 - place**2))
    return [reach * math.tanh(math.atanh(place) + side * half) for side in (-1, 1)]


def p_value(first, second, ratings, labels, seed):
    """Both sides at mean 0 and sd 1 in each line; groups swap sides in all lines at once."""
    sides = [[(line - np.nanmean(line)) / np.nanstd(line) for line in side] for side in (first, second)]
    random, names = np.random.default_rng(seed), sorted(set(labels))
    observed = abs(mean_difference(sides, ratings)[0])
    reached = 0
    for _ in range(DRAWS):
        swap = np.isin(labels, [name for name in names if random.random() < 0.5])
        mixed = [[np.where(swap, *order) for order in ((b, a), (a, b))] for a, b in zip(*sides, strict=True)]
        drawn = mean_difference(list(zip(*mixed, strict=True)), ratings)[0]
        reached += abs(drawn) >= observed - 1e-12
    return (reached + 1) / (DRAWS + 1)


def holm(p_values):
    ordered, adjusted, least = sorted(p_values), [], 0.0
    for rank, p in enumerate(ordered):
        least = max(least, min(1.0, p * (len(ordered) - rank)))
        adjusted.append(least)
    return [adjusted[ordered.index(p)] for p in p_values]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The report and the cells of a finished grid, as they stand in its files, and its tables."""
    folder = tmp_path_factory.mktemp("grid")
    tables = {"notices": rated_table(), "others": rated_table(sources=14)}
    bank = MetricBank((family("levenshtein"), family("rouge"), family("bleu")))
    write_ablation(ablate(tables, GRID, AutoMetrics(metrics=bank, progress=False), folder=folder), folder)
    cells = [json.loads(line)["cell"] for line in (folder / "cells.jsonl").read_text("utf-8").splitlines()[1:]]
    lines = {}
    for cell in cells:
        lines[cell["setting"], cell["data"], cell["rows"], cell["seed"]] = line = np.full(
            len(tables[cell["data"]]), np.nan
        )
        line[cell["test"]] = cell["values"][0]
    return json.loads((folder / "ablation.json").read_text("utf-8")), lines, tables


def ends(told):
    return [told["low"], told["high"]]


def held(told, sides, table, *, between):
    """Hold the difference of a cell or of a line against its predictions and those of the reference."""
    ratings, labels = table.ratings, np.array(table.groups)
    assert told["difference"] == pytest.approx(mean_difference(sides, ratings)[0], abs=1e-12)
    assert ends(told["difference_interval"]) == pytest.approx(
        interval(sides, ratings, labels, between=between), abs=1e-9
    )
    p = p_value(*sides, ratings, labels, 5)
    assert abs(told["p_value"] - p) <= 4 * math.sqrt(max(p * (1 - p), 0.002) * (1 / 1000 + 1 / DRAWS))


def test_every_cell(study):
    report, lines, tables = study
    assert len(report["cells"]) == len(lines) == 3 * 2 * 2 * 3
    blocks = {}
    for cell in report["cells"]:
        table, where = tables[cell["data"]], (cell["data"], cell["rows"], cell["seed"])
        line, reference = (lines[setting, *where][None] for setting in (cell["setting"], "n=2"))
        test = ~np.isnan(line[0])
        scipys = stats.kendalltau(line[0][test], table.ratings[test], variant="b").statistic
        assert (
            cell["tau"] == pytest.approx(tau_b(line[0], table.ratings), abs=1e-12) == pytest.approx(scipys, abs=1e-12)
        )
        assert ends(cell["interval"]) == pytest.approx(
            interval([line], table.ratings, np.array(table.groups), between=False), abs=1e-9
        )
        if cell["setting"] == "n=2":
            assert (cell["difference"], cell["p_value"], cell["p_adjusted"]) == (None, None, None)
            continue
        held(cell, [line, reference], table, between=False)
        blocks.setdefault(where, []).append(cell)
    for block in blocks.values():
        assert len(block) == 2
        assert [one["p_adjusted"] for one in block] == pytest.approx(holm([one["p_value"] for one in block]), abs=1e-12)


def test_every_line_of_the_tables(study):
    report, lines, tables = study
    for part in report["parts"]:
        blocks = {}
        for told in part["lines"]:
            table = tables[told["data"]]
            side, reference = (
                np.array([lines[setting, told["data"], told["rows"], seed] for seed in range(3)])
                for setting in (told["setting"], "n=2")
            )
            ratings, labels = table.ratings, np.array(table.groups)
            taus = [tau_b(line, ratings) for line in side]
            assert told["taus"] == pytest.approx(taus, abs=1e-12)
            assert told["tau"] == pytest.approx(sum(taus) / 3, abs=1e-12)
            half = stats.t.ppf(0.975, 2) * np.std(taus, ddof=1) / math.sqrt(3)
            spread = [max(-1.0, told["tau"] - half), min(1.0, told["tau"] + half)]
            assert ends(told["over_seeds"]) == pytest.approx(spread, abs=1e-9)
            assert ends(told["interval"]) == pytest.approx(interval([side], ratings, labels), abs=1e-9)
            assert told["reference"] == (told["setting"] == "n=2")
            if not told["reference"]:
                held(told, [side, reference], table, between=True)
                blocks.setdefault(told["data"], []).append(told)
        for block in blocks.values():
            expected = holm([one["p_value"] for one in block])
            assert [one["p_adjusted"] for one in block] == pytest.approx(expected, abs=1e-12)
