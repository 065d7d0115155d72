"""``metricsmith demo``: the main job on the embedded data, whose truth is planted and therefore known."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metricsmith.cli.model import ApiBase, Model, language_model

if TYPE_CHECKING:
    from metricsmith.optimizers.runs import Induced

__all__ = ["demo", "planted_truth"]


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where metric and report go.")] = Path("metricsmith-demo"),
    lm: Model = None,
    api_base: ApiBase = None,
) -> None:
    """Induce a metric from embedded synthetic ratings and compare it with the planted truth."""
    from metricsmith.cli.induce import summary
    from metricsmith.datasets import plain_notices
    from metricsmith.datasets.table import read_table
    from metricsmith.optimizers.auto_metrics import AutoMetrics
    from metricsmith.optimizers.induce import induce

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
    done = induce(table, AutoMetrics(lm=language_model(lm, api_base), progress=True))
    truth = planted_truth(done)
    record = replace(
        done.record,
        synthetic=plain_notices.SYNTHETIC,
        notes=(*done.record.notes, *truth),
        title="Plain-language notices (synthetic)",
    )
    done = replace(done, record=record)
    done.write(out)
    typer.echo(summary(done, out))
    for line in truth:
        typer.echo(line)


def planted_truth(done: Induced) -> list[str]:
    """What the planted defects say about the components: their due signs, and what none of them can see."""
    from metricsmith.correlation import spearman
    from metricsmith.datasets import plain_notices

    rows = {row["id"]: row for row in plain_notices.load()[1]}
    scored = [row for row in done.record.data if row.prediction is not None]
    lines = []
    for component in done.record.components:
        values = [math.nan if (value := row.values[component.name]) is None else value for row in scored]
        sign = plain_notices.expected_sign([rows[row.id] for row in scored], values)
        due = {1: "+", -1: "-", 0: "either sign"}[sign]
        verdict = "as planted" if due in (component.direction, "either sign") else "NOT as planted"
        lines.append(f"planted truth: {component.name} should count {due}, it counts {component.direction}: {verdict}")
    test = [row for row in scored if row.split == "test"]
    predictions = [math.nan if row.prediction is None else row.prediction for row in test]
    for name, defect in plain_notices.DEFECTS.items():
        rho = spearman(predictions, [rows[row.id][defect.column] for row in test])
        seen = "lexical metrics can see it" if defect.visible else "no lexical metric can see it: a judge must"
        lines.append(
            f"planted truth: {name.replace('_', ' ')} costs raters {abs(defect.weight):g} points each; its Spearman "
            f"correlation with the metric on held-out rows is {rho:+.2f} ({seen})"
        )
    return lines
