"""``metricsmith demo``: the main job on the embedded data, whose truth is planted and therefore known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from metricsmith.cli.options import ModelOptions, takes_groups
from metricsmith.cli.terminal import say
from metricsmith.formats import points

if TYPE_CHECKING:
    import dspy

    from metricsmith.optimizers.result import RunResult

__all__ = ["SINGLE_MINDED", "demo_command", "planted_truth"]

# Metrics that each look at one thing, so that a component's sign can be held against the planted truth.
SINGLE_MINDED = ("output_words", "fkgl", "rouge1_r", "rouge2_r", "rouge_l_r", "distinct_2")


@takes_groups(without=("temperature",))
def demo_command(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where metric and report go.")] = Path("metricsmith-demo"),
    model: ModelOptions = ModelOptions(),
) -> None:
    """Induce a metric from embedded synthetic ratings and compare it with the planted truth."""
    from metricsmith.bank.catalogue import default_bank
    from metricsmith.cli.running import check_replaceable
    from metricsmith.datasets import plain_notices
    from metricsmith.datasets.table import read_table
    from metricsmith.optimizers.auto_metrics import AutoMetrics
    from metricsmith.optimizers.induce import induce
    from metricsmith.report.induction.document import RunDocument
    from metricsmith.report.render import render_terminal

    check_replaceable(
        out, lambda line: f"data {plain_notices.path().name} sha256:" in line, "name another folder (--out)"
    )
    table = read_table(
        plain_notices.path(),
        target="rating",
        task=plain_notices.TASK.description,
        output="rewrite",
        inputs="notice",
        reference="reference",
        id="id",
        group="source_id",
        scale=plain_notices.TASK.scale,
    )
    bank = default_bank().only(*SINGLE_MINDED)
    done = induce(table, AutoMetrics(metrics=bank, lm=model.language_model(), progress=True))
    truth = planted_truth(done)
    record = replace(
        done.record,
        synthetic=plain_notices.SYNTHETIC,
        notes=(*done.record.notes, *truth),
        title="Plain-language notices (synthetic)",
    )
    done = replace(done, record=record)
    done.write(out)
    say(render_terminal(RunDocument(record), out))
    for line in truth:
        say(line)


def planted_truth(done: RunResult) -> list[str]:
    """Lines that hold the components against the planted defects: their due signs, and what none of them can see."""
    from metricsmith.datasets import plain_notices

    rows = {row["id"]: row for row in plain_notices.load()[1]}
    scored = [row for row in done.record.data if row.prediction is not None]
    lines = []
    for component in done.record.components:
        values = [math.nan if (value := row.values[component.name]) is None else value for row in scored]
        due = {1: "+", -1: "-", 0: "either sign"}[plain_notices.expected_sign([rows[row.id] for row in scored], values)]
        verdict = "as planted" if due in (component.direction, "either sign") else "NOT as planted"
        lines.append(f"planted truth: {component.name} should count {due}, it counts {component.direction}: {verdict}")
    return [*lines, *_recovered([rows[row.id] for row in scored], [row.prediction or 0.0 for row in scored])]


def _recovered(rows: Sequence[dspy.Example], predictions: Sequence[float]) -> list[str]:
    """Lines with the points that one case of each defect takes off the prediction and took off the ratings."""
    from metricsmith.datasets import plain_notices

    defects = plain_notices.DEFECTS
    counts = np.array([[1.0, *(row[defect.column] for defect in defects.values())] for row in rows])
    effects = np.linalg.lstsq(counts, np.array(predictions), rcond=None)[0][1:]
    lines = []
    for (name, defect), effect in zip(defects.items(), effects, strict=True):
        seen = "lexical metrics see it" if defect.visible else "no lexical metric can see it: a judge must"
        lines.append(
            f"planted truth: {name.replace('_', ' ')} costs {points(abs(defect.weight), 4)} rating points a case, "
            f"the metric takes off {points(-effect, 4)} ({seen})"
        )
    return lines
