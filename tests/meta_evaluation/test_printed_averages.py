"""The average of a suite, held against averages that a paper prints beside the values they were made of."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from metricsmith.meta_evaluation.averaging import AveragedTask, average_table
from metricsmith.meta_evaluation.suites import task_bounds
from metricsmith.meta_evaluation.wmt_suites import SUITES
from metricsmith.stats.resampling.permutation import PermutationDraws

PRINTED = json.loads((Path(__file__).parents[1] / "golden" / "gemba_mqm_v2_tables.json").read_text("utf-8"))
RETROFIT, ORIGINAL = PRINTED["table 3"], PRINTED["table 4"]
# Each of three decimals is off by .0005 at most, so that a mean of values and the printed mean differ by .001 at most.
WITHIN_3, WITHIN_4 = 0.0007, 0.0008


def averages(suite, columns):
    """By metric, of values by task and metric."""
    assert set(columns) == {task.name for task in suite.tasks}

    def never(better, worse):
        return PermutationDraws(0.0, np.zeros(1))

    tasks = {
        task.name: AveragedTask(columns[task.name], never, weight=task.weight, bounds=task_bounds(task))
        for task in suite.tasks
    }
    return average_table(tasks).values


def columns_of(table):
    """Values by task and metric."""
    return {name: {row[0]: row[2][place] for row in table["rows"]} for place, name in enumerate(table["columns"])}


def test_table_3_is_the_average_of_the_suite_of_2024_on_the_data_of_2023():
    found = averages(SUITES["wmt24-on-wmt23"], columns_of(RETROFIT))
    gaps = [abs(found[name] - printed) for name, printed, _ in RETROFIT["rows"]]
    assert len(gaps) == 40
    assert max(gaps) <= WITHIN_3


def test_table_4_is_the_average_of_the_suite_of_2023():
    rows = [row for row in ORIGINAL["rows"] if row[3] is not None]
    columns = columns_of({**ORIGINAL, "rows": rows})
    acc_t = {name: values for name, values in columns_of(RETROFIT).items() if name.endswith("acc-t")}
    columns |= {task: {row[0]: values[row[3]] for row in rows} for task, values in acc_t.items()}
    found = averages(SUITES["wmt23"], columns)
    gaps = [abs(found[name] - printed) for name, printed, *_ in rows]
    same = [row for row in rows if row[0].replace("gemba-v2", "gembav2") == row[3]]
    assert (len(gaps), len(same)) == (38, 36)  # two are spelt in two ways
    assert max(gaps) <= WITHIN_4
