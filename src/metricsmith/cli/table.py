"""Options of every command that reads a table of rated outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from metricsmith.errors import DataError

__all__ = [
    "AllowColumns", "AllowMissing", "Bank", "Components", "Context", "Data", "FullModel", "Group", "Id", "Input",
    "LowerIsBetter", "MetricColumns", "MostMetrics", "Output", "OwnJudges", "PanelMode", "PriorColumns", "Rater",
    "RaterEffects", "Raters", "RawCsv", "Reference", "Regression", "ScaleText", "StrictMode", "System", "Target",
    "TaskText", "Where",
    "reading", "text_or_file",
]  # fmt: skip

Data = Annotated[str, typer.Argument(help="CSV, TSV, JSONL or Parquet file, or a Hugging Face data set id.")]
Target = Annotated[str, typer.Option(metavar="COL", help="Column with the human rating.")]
TaskText = Annotated[
    str, typer.Option(metavar="TEXT|@FILE", help="What the outputs are for and what makes a good one.")
]
Output = Annotated[str | None, typer.Option(metavar="COL", help="Column with the text to judge.")]
Input = Annotated[list[str] | None, typer.Option(metavar="COL", help="Column that the output answers.")]
Reference = Annotated[list[str] | None, typer.Option(metavar="COL", help="Column with good outputs.")]
Context = Annotated[
    str | None, typer.Option(metavar="COL", help="Column with what the output should rest on, such as a passage.")
]
System = Annotated[str | None, typer.Option(metavar="COL", help="Column that says which system wrote the output.")]
Rater = Annotated[str | None, typer.Option(metavar="COL", help="Column that says who gave the rating.")]
Raters = Annotated[str, typer.Option("--raters", metavar="mean|median", help="The average of an output's ratings.")]
RaterEffects = Annotated[
    str,
    typer.Option(
        "--rater-effects", metavar="none|centre", help="centre: take each rater's mean off, put everybody's mean back."
    ),
]
Id = Annotated[str | None, typer.Option(metavar="COL", help="Column with unique row ids.")]
Group = Annotated[
    str | None, typer.Option(metavar="COL", help="Rows of one group never stand on both sides of a split.")
]
Where = Annotated[
    list[str] | None, typer.Option(metavar="COL=VALUE", help="Keep rows with (COL!=VALUE: without) a value.")
]
MetricColumns = Annotated[
    list[str] | None, typer.Option(metavar="PATTERN", help="Columns of scores to take as candidates.")
]
PriorColumns = Annotated[
    list[str] | None, typer.Option(metavar="PATTERN", help="Those that measure the target itself.")
]
AllowColumns = Annotated[
    list[str] | None,
    typer.Option("--allow-column", metavar="NAME", help="Candidate to keep though it orders rows as the rating does."),
]
ScaleText = Annotated[
    str | None, typer.Option("--scale", metavar="LOW:HIGH[:STEP]", help="The rating scale; by default inferred.")
]
LowerIsBetter = Annotated[
    bool, typer.Option("--lower-is-better", help="The rating counts something bad, such as errors.")
]
Bank = Annotated[str, typer.Option(help="auto, all, existing, generated or none.")]
Regression = Annotated[str, typer.Option(help="auto (PriorRidge) or pls (the paper's).")]
Components = Annotated[int | None, typer.Option("--n", help="How many components; by default 12, fewer with judges.")]
MostMetrics = Annotated[int, typer.Option("--k", help="How many metrics retrieval keeps.")]
StrictMode = Annotated[
    bool, typer.Option("--strict", help="Stop where a judge cannot be made or fails too often, instead of a warning.")
]
OwnJudges = Annotated[
    list[Path] | None,
    typer.Option("--judge", metavar="FILE.json", help="A saved judge or metric as a candidate of your own."),
]
PanelMode = Annotated[
    bool, typer.Option("--panel", help="Ask all generated judges in one request a row, which is cheaper.")
]
AllowMissing = Annotated[
    bool,
    typer.Option("--allow-missing", help="Keep candidates without a value on more than 10 % of the training rows."),
]
FullModel = Annotated[bool, typer.Option("--full", help="Keep all candidates as components.")]
RawCsv = Annotated[
    bool, typer.Option("--raw-csv", help="No apostrophes in CSV before texts that a spreadsheet would run.")
]


def reading(
    *,
    target: str,
    task: str,
    output: str | None,
    input: Sequence[str] | None,
    reference: Sequence[str] | None,
    context: str | None,
    system: str | None,
    rater: str | None,
    raters: str,
    rater_effects: str,
    id: str | None,
    group: str | None,
    where: Sequence[str] | None,
    metric_columns: Sequence[str] | None,
    prior_columns: Sequence[str] | None,
    scale: str | None,
    lower_is_better: bool,
) -> dict[str, Any]:
    """The arguments of `read_table` that the options stand for."""
    return {
        "target": target, "task": text_or_file(task, "--task"), "output": output, "inputs": input or (),
        "reference": reference or (), "context": context, "system": system, "rater": rater, "raters": raters,
        "rater_effects": rater_effects, "id": id, "group": group, "where": where or (),
        "metric_columns": metric_columns or (), "prior_columns": prior_columns or (), "scale": scale,
        "higher_is_better": False if lower_is_better else None,
    }  # fmt: skip


def text_or_file(value: str, option: str) -> str:
    """The text itself, or the content of the file after an ``@``.

    Raises
    ------
    DataError
        If the file cannot be read as UTF-8.
    """
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else problem.reason
        raise DataError(
            f"{option} {value} cannot be read as UTF-8 text: {reason or problem}; name a text file"
        ) from problem
