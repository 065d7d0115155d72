"""The split of a comparison."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.datasets.table import read_table
from metricsmith.errors import DataError, OptionError
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.studies.comparison.data import comparison_data, three_way_split
from owned import memory, words
from planted import TASK, planted_rows
from rated import as_table


def table(groups=20, each=3, seed=0):
    random = np.random.default_rng(seed)
    lines = [
        {"text": f"text {group} {number}", "group": f"g{group}", "rating": float(random.integers(1, 6))}
        for group in range(groups)
        for number in range(each)
    ]
    return read_table(pd.DataFrame(lines), target="rating", output="text", group="group", scale="1:5")


def split(**options):
    rows = table(options.pop("groups", 20))
    return three_way_split(rows, rows.task, **{"fraction": 0.3, "validation": 0.2, "seed": 0, **options})


def test_the_shares_are_those_of_the_paper():
    parts = split()
    assert [len(side) for side in (parts.train, parts.validation, parts.test)] == [30, 12, 18]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(0.1, 0.4), st.floats(0.1, 0.4), st.integers(6, 20))
def test_no_group_stands_on_two_sides_and_no_row_is_lost(seed, fraction, validation, groups):
    parts = split(seed=seed, fraction=fraction, validation=validation, groups=groups)
    three = [set(side.groups) for side in (parts.train, parts.validation, parts.test)]
    assert all(three)
    assert sum(map(len, three)) == len(set.union(*three)) == groups
    assert sum(len(side) for side in (parts.train, parts.validation, parts.test)) == 3 * groups


def test_the_seed_decides():
    assert split(seed=1).test.groups == split(seed=1).test.groups != split(seed=2).test.groups


@pytest.mark.parametrize(("fraction", "validation"), [(0, 0.2), (0.3, 0), (0.5, 0.5), (float("nan"), 0.2)])
def test_impossible_shares_are_refused(fraction, validation):
    with pytest.raises(OptionError, match="both must be above 0"):
        split(fraction=fraction, validation=validation)


def test_three_groups_are_needed():
    with pytest.raises(DataError, match=r"2 groups.*--group"):
        three_way_split(table(2, 5), table().task, fraction=0.3, validation=0.2, seed=0)


def test_rows_that_own_metrics_learned_from_are_training_rows_and_no_existing_metric_is_own():
    rows = planted_rows(sources=30)
    shown = [row for row in rows if row.group in {"s2", "s5", "s8"}]
    options = AutoMetrics(TASK, metrics=[memory(shown), words], bank="none", columns=["good"])
    for seed in range(4):
        chosen = replace(options, seed=seed)
        data = comparison_data(as_table(rows), TASK, chosen, fraction=0.3, validation=0.2, guideline="", dimensions=3)
        parts = data.split
        assert {"s2", "s5", "s8"} <= set(parts.train.groups)
        assert {"s2", "s5", "s8"}.isdisjoint({*parts.validation.groups, *parts.test.groups})
        assert len(parts.train) + len(parts.validation) + len(parts.test) == 90
        assert "9 rated rows are learned from and never tested on" in data.warnings[-1]
        assert [metric.name for metric in data.existing_metrics] == ["good"]
    whole = AutoMetrics(TASK, metrics=[memory(rows), words], bank="none", columns=["good"])
    data = comparison_data(as_table(rows), TASK, whole, fraction=0.3, validation=0.2, guideline="", dimensions=3)
    assert [metric.name for metric in data.options.own] == ["words"]
    assert "Your metric 'memory' is left out" in data.warnings[0]


def test_chosen_test_rows_are_the_test_rows_and_what_they_share_stays_out():
    rows = table(groups=20)
    first = [place for place, group in enumerate(rows.groups) if group in ("g0", "g1", "g2")]
    held = rows.subset(first[::2])  # of each of the three groups some rows are left among the others
    data = comparison_data(
        rows, rows.task, AutoMetrics(bank="none"), fraction=0.3, validation=0.2, guideline="", dimensions=3, test=held
    )
    assert sorted(data.split.test.groups) == sorted(held.groups)
    assert not set(data.learned.groups) & {"g0", "g1", "g2"}
    # 17 groups are left, 2/7 of which (4.86, so 5) validate; three rows each.
    assert [len(data.split.train), len(data.split.validation)] == [36, 15]
    assert "9 rows to learn from shared a group or a text with a test row and stayed out" in data.warnings


def test_the_ratings_of_chosen_test_rows_decide_nothing():
    rows = table(groups=20)
    held = rows.subset(range(9))
    other = replace(held, rows=[row.copy(rating=6 - row["rating"]) for row in held.rows], ratings=6 - held.ratings)
    one, two = (
        comparison_data(
            rows,
            rows.task,
            AutoMetrics(bank="none"),
            fraction=0.3,
            validation=0.2,
            guideline="",
            dimensions=3,
            test=test,
        ).split
        for test in (held, other)
    )
    assert (one.train.rows, one.validation.rows) == (two.train.rows, two.validation.rows)


def chosen(rows, test, *own, fraction=0.3):
    options = AutoMetrics(TASK, metrics=list(own) or None, bank="none")
    shares = {"fraction": fraction, "validation": 0.2, "guideline": "", "dimensions": 3}
    return comparison_data(rows, rows.task, options, test=test, **shares)


def test_chosen_test_rows_that_an_own_metric_learned_from_are_left_out():
    new = planted_rows(sources=12, seed=5, first=50)
    judge = memory([row for row in new if row.group in {"s50", "s51"}])
    data = chosen(as_table(planted_rows(sources=30)), as_table(new), judge, words)
    assert (len(data.test), {"s50", "s51"} & set(data.test.groups)) == (30, set())
    assert "6 test rows are left out: your metrics have learned from their groups" in data.warnings
    assert [metric.name for metric in data.options.own] == ["memory", "words"]
    whole = chosen(as_table(planted_rows(sources=30)), as_table(new), memory(new), words)
    assert (len(whole.test), [metric.name for metric in whole.options.own]) == (36, ["words"])


def unnamed(count, first=0, **more):
    """A table without a group column, whose groups are numbers of rows."""
    lines = [{"text": f"an answer about ship {first + n}", "rating": n % 5 + 1, **more} for n in range(count)]
    return lines, read_table(pd.DataFrame(lines), target="rating", output="text", scale="1:5")


def test_numbers_of_rows_join_nothing_in_another_table_and_texts_do():
    (lines, rows), (held, test) = unnamed(60), unnamed(20, first=100)
    assert set(test.groups) <= set(rows.groups)  # numbers
    data = chosen(rows, test)
    assert (len(data.learned), len(data.test), data.warnings) == (60, 20, ())
    held[3]["text"] = lines[7]["text"] = "Nobody says the same nine words by mere chance."
    rows, test = (read_table(pd.DataFrame(one), target="rating", output="text", scale="1:5") for one in (lines, held))
    assert len(chosen(rows, test).learned) == 59


def test_an_input_of_test_rows_stays_out_and_an_instruction_does_not():
    def asked(count, first, question):
        lines = [
            {"question": question(n), "text": f"answer {first + n}", "rating": n % 5 + 1, "who": f"w{first + n}"}
            for n in range(count)
        ]
        return read_table(
            pd.DataFrame(lines), target="rating", output="text", inputs="question", group="who", scale="1:5"
        )

    rows = asked(30, 0, lambda n: f"Question {n // 2}?")
    assert len(chosen(rows, asked(10, 100, lambda n: f"Question {n // 2}?")).learned) == 20
    rows, test = (asked(count, first, lambda n: "Sum it up.") for count, first in ((30, 0), (10, 100)))
    assert len(chosen(rows, test).learned) == 30


def test_the_share_to_validate_of_chosen_test_rows_is_the_same_whatever_the_share_to_test():
    rows, test = unnamed(70)[1], unnamed(20, first=100)[1]
    assert {len(chosen(rows, test, fraction=fraction).split.validation) for fraction in (0.1, 0.3, 0.75)} == {20}


def test_a_metric_that_learned_from_a_group_of_test_rows_in_the_other_table_is_not_tested_there():
    table = as_table(planted_rows(sources=30))
    first, rest = [place for place in range(90) if place % 3 == 0][:12], [place for place in range(90) if place % 3]
    judge = memory([row for row in planted_rows(sources=30) if row.group == "s0"][1:])
    data = chosen(table.subset(rest), table.subset(first), judge, words)
    assert len(data.test) == 11
    assert "s0" not in data.test.groups
    assert any("1 test row left out: your metrics have learned from" in line for line in data.warnings)
    assert len(chosen(table.subset(rest), table.subset(first), words).test) == 12
