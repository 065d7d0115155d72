"""A function about one axis: its source text as a model writes it, tried on rated rows, and mended."""

from __future__ import annotations

import math
import re
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dspy
import numpy as np

from metricsmith.bank.code import CodeMetric
from metricsmith.errors import OptionError
from metricsmith.formats import count
from metricsmith.metric import NOTHING, RowText, fence, fenced_texts, row_text, unfenced
from metricsmith.model_calls.calls import model_call
from metricsmith.records import Usage
from metricsmith.sandbox.contract import Limits, RefusedSource
from metricsmith.sandbox.subset import LARGEST_SOURCE
from metricsmith.signatures.code import WriteCode
from metricsmith.stats.correlation import FloatArray

__all__ = ["LEAST_SHARE", "REPAIRS", "CodeGenerator", "CodeTrial", "WrittenCode", "tried", "unwrapped", "written_code"]

LEAST_SHARE = 0.9  # of the rows on which a function must give a number
REPAIRS = 2
TRIAL = Limits(seconds=10.0)  # a function that needs more for the training rows is of no use on others
_TRYING = threading.Lock()  # the limits are in seconds: functions side by side would take them from each other
SHOWN_ERRORS = 3
SHOWN_CHARACTERS = 600  # of a row's text beside its error
NUMBER = re.compile(r"\d+(?:\.\d+)?")  # errors that differ in numbers alone are told as one
FENCE = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL | re.IGNORECASE)


class CodeGenerator(dspy.Module):  # type: ignore[misc]
    """Writes the source text of a function ``score(output, input, references)`` for one axis.

    AutoMetrics, section 3.1 (code metrics). Nothing is run here; `metricsmith.students.code_episodes` are its examples.
    """

    def __init__(self) -> None:
        super().__init__()
        self.write = dspy.Predict(WriteCode)

    def forward(
        self,
        *,
        task: str,
        rating: str,
        criterion: str,
        liked: str,
        disliked: str,
        attempt: str = "",
        problems: str = "",
    ) -> dspy.Prediction:
        """Return a Prediction with ``source``, unchecked; `attempt` is a source text of before, with its `problems`."""
        given = {"task": task, "rating": rating, "criterion": criterion, "liked": liked, "disliked": disliked}
        answer = self.write(**given, attempt=fence(attempt), problems=problems or NOTHING)
        return dspy.Prediction(source=unwrapped(answer.source))

    async def aforward(self, *, attempt: str = "", problems: str = "", **inputs: Any) -> dspy.Prediction:
        """Write a function asynchronously; arguments and result are those of `forward`."""
        answer = await self.write.acall(**inputs, attempt=fence(attempt), problems=problems or NOTHING)
        return dspy.Prediction(source=unwrapped(answer.source))


def unwrapped(text: str) -> str:
    """The text without the marks or the one code fence that stand around the whole of it.

    With words before or behind a fence, or with two fences, it stays as it is: a sandbox refuses it, and the model is
    told so. Nobody guesses which part was meant.
    """
    text = unfenced(text).strip()
    found = FENCE.fullmatch(text)
    return text if found is None or "```" in found[1] else found[1]


@dataclass(frozen=True)
class CodeTrial:
    """A source text that was run on n rows.

    Parameters
    ----------
    metric : CodeMetric or None
        None where the sandbox refuses the text.
    values : float array, shape (n,)
        NaN where there is no number.
    problems : str
        The reasons against it in words for its writer, with texts of rows between marks; empty for a candidate.
    why : str
        The same in one line without texts of rows.
    """

    metric: CodeMetric | None
    values: FloatArray
    problems: str = ""
    why: str = ""

    @property
    def share(self) -> float:
        """The share of the rows with a number; 0 without rows."""
        return float(np.isfinite(self.values).mean()) if len(self.values) else 0.0


def tried(source: str, rows: Sequence[dspy.Example], *, name: str = "code", meaning: str = "") -> CodeTrial:
    """Run a source text on all rows.

    It is a candidate if at least `LEAST_SHARE` of the rows give a finite number, and these numbers are not all alike.
    Ratings are not looked at.
    """
    try:
        metric = CodeMetric(source, name=name, meaning=meaning)
    except (RefusedSource, OptionError) as refused:
        why = f"the source text was refused: {refused}"
        told = f"It was refused and did not run:\n{fence(str(refused)[:SHOWN_CHARACTERS])}"
        return CodeTrial(None, np.full(len(rows), math.nan), told, why)
    judgements = CodeMetric(source, limits=TRIAL, name=name).judge_batch(rows)
    values = np.array([one.raw if one.ok else math.nan for one in judgements], dtype=float)
    errors: defaultdict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(judgements):
        if not one.ok:
            errors[NUMBER.sub("#", one.error)].append(place)
    trial = CodeTrial(metric, values)
    if trial.share < LEAST_SHARE:
        often = [(judgements[places[0]].error, places) for places in sorted(errors.values(), key=len, reverse=True)]
        why = f"no finite number on {sum(map(len, errors.values()))} of {len(rows)} rows, mostly: {often[0][0]}"
        return CodeTrial(metric, values, _told(often, rows), why)
    known = values[np.isfinite(values)]
    if math.isclose(known.min(), known.max(), rel_tol=1e-12):
        why = f"the number is {known[0]:g} on all {len(known)} rows"
        return CodeTrial(metric, values, f"It tells no two outputs apart: {why}.", why)
    return trial


def _told(errors: Sequence[tuple[str, Sequence[int]]], rows: Sequence[dspy.Example]) -> str:
    """The most frequent errors, each with its number of rows and the texts of the first of these."""
    bad = sum(len(places) for _, places in errors)
    lines = [
        f"It gives no finite number on {bad} of {len(rows)} rows; at least {LEAST_SHARE:.0%} of the rows need one."
    ]
    for error, places in errors[:SHOWN_ERRORS]:
        text, most = row_text(rows[places[0]]), SHOWN_CHARACTERS
        begun = RowText(text.output[:most], text.input[:most], tuple(one[:most] for one in text.references[:1]))
        lines.append(
            f"\n{count(len(places), 'row')}:\n{fence(error[:most])}\nTexts of the first, from their beginning:"
        )
        lines += [f"{name}:\n{shown}" for name, shown in fenced_texts(begun).items() if name != "context"]
    if len(errors) > SHOWN_ERRORS:
        lines.append(f"\nNot shown: {count(len(errors) - SHOWN_ERRORS, 'more error')}.")
    return "\n".join(lines)


@dataclass(frozen=True)
class WrittenCode:
    """A function that a model wrote: its trial if it is a candidate, else the reason, and what all requests cost.

    `status` is that of a request that failed.
    """

    usage: Usage
    trial: CodeTrial | None = None
    why: str = ""
    status: str = ""


def written_code(
    generator: dspy.Module,
    inputs: Mapping[str, Any],
    rows: Sequence[dspy.Example],
    *,
    name: str,
    meaning: str,
    parse_tries: int,
) -> WrittenCode:
    """Have a function written, tried on all rows and, up to `REPAIRS` times, mended by the same generator.

    Parameters
    ----------
    generator : dspy.Module
        A `CodeGenerator`.
    inputs : mapping of str to any
        Its inputs besides ``attempt`` and ``problems``.
    rows : sequence of dspy.Example
    name, meaning : str
        Of the metric.
    parse_tries : int
        As for `model_call`.
    """
    usage, why, before = Usage(), "", dict[str, Any]()
    for _ in range(1 + REPAIRS):
        call = model_call(generator, parse_tries=parse_tries, **inputs, **before)
        usage += call.usage
        if call.prediction is None:
            return WrittenCode(usage, why=call.error, status=call.status)
        source = call.prediction.source
        with _TRYING:
            trial = tried(source, rows, name=name, meaning=meaning)
        if not trial.problems:
            return WrittenCode(usage, trial)
        why, before = trial.why, {"attempt": source[:LARGEST_SOURCE], "problems": trial.problems}
    return WrittenCode(usage, why=f"{why}, after {REPAIRS} repairs")
