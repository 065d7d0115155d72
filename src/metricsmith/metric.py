"""The common ground of all metrics: the protocol, the texts of a row, and the marks around what a model is shown.

Bank metrics, judges and induced metrics are interchangeable because they share this contract
and nothing else; there is no base class.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.errors import DataError
from metricsmith.formats import points, raw
from metricsmith.records import Judgement, MetricCard, Output
from metricsmith.rendering import render_output

__all__ = [
    "Asker", "Composite", "EMPTY", "EVERY_LABEL", "Explanation", "FieldNames", "Labels", "MARKER", "Metric",
    "NOTHING", "Part", "RowText", "Sequential", "content_hash", "content_key", "fence", "fenced_texts", "judged_row",
    "labels_of", "make_row", "marked_anew", "read_labels", "row_text", "unfenced",
]  # fmt: skip

FieldNames = str | Sequence[str]  # of one field, or of several that are shown together under their names
Labels = tuple[str, ...] | Literal["all"]
EVERY_LABEL: Literal["all"] = "all"
TEXTS = ("input", "output", "references", "context")
NOTHING = "(none)"
EMPTY = ("(the output is empty)", "(the translation is empty)")
MARKER = "<<CUSTOM-TYPE-"  # DSPy makes pictures and files, by their addresses, of what follows it in a prompt
FENCED = re.compile(r"«begin ([0-9a-f]{16}|[0-9a-f]{8})»\n(.*?)\n«end \1»", re.DOTALL)  # 8 digits: prompt version 1


@runtime_checkable
class Metric(Protocol):
    """Anything that gives one number per row."""

    @property
    def name(self) -> str:
        """The output's name, unique among the metrics of a run."""

    @property
    def card(self) -> MetricCard:
        """The card of the metric's family."""

    @property
    def output(self) -> Output:
        """Range and direction of this metric's number."""

    def fingerprint(self) -> str:
        """A hash of everything that changes the number."""

    def judge_batch(self, rows: Sequence[dspy.Example], *, run: int = 0) -> list[Judgement]:
        """One judgement per row, in order; failures are judgements too, never exceptions."""

    def as_metric(self, *, success_at: float = 0.5) -> Callable[..., Any]:
        """The five-argument callable for DSPy; ours are a `metricsmith.Reward` and take its options."""

    def to_state(self) -> dict[str, Any]:
        """JSON-ready state with its ``kind``, from which `metricsmith.load` builds an equal metric."""


@runtime_checkable
class Composite(Protocol):
    """A metric that sends no requests itself: its number follows from those of its parts.

    The scoring engine judges the parts, each once, however many metrics share it, and puts them together.
    """

    def parts(self, run: int) -> Sequence[tuple[Metric, int]]:
        """The p metrics that run `run` rests on, each with the number of its own run."""

    def combined(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Raw numbers from those of the parts, shape (n, p) -> (n,); NaN in for a missing part, NaN out for none."""

    def verdict(self, parts: Sequence[Judgement], run: int) -> Judgement:
        """The judgement of one row from those of its p parts; its usage is the sum of theirs."""


@runtime_checkable
class Sequential(Composite, Protocol):
    """A composite that may do without some of its parts: those that are known decide which to ask next.

    A part that is never wanted counts nowhere, even if it is known because another metric wanted it.
    """

    def wanted(self, values: NDArray[np.float64], known: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The parts to ask, shape (n, p) as both arguments; a part once wanted stays wanted."""


@dataclass(frozen=True, slots=True)
class Part:
    """The contribution of one component to one prediction.

    Parameters
    ----------
    name, meaning : str
        The component, and what its number means.
    weight : float
        Rating points per standard deviation of the transformed column.
    more_is_better : bool
        Whether a higher raw number goes with better ratings.
    contribution : float
        Rating points, relative to a row that is average in every component; NaN without a value.
    cost : float
        Rating points by which the row stays behind the best training row, never negative; NaN without a value.
    judgement : Judgement
        The component's own; its status says why there is no value.
    """

    name: str
    meaning: str
    weight: float
    more_is_better: bool
    contribution: float
    cost: float
    judgement: Judgement

    def __str__(self) -> str:
        if not self.judgement.ok:
            return f"{self.name}: no value ({self.judgement.error})"
        meaning = f"{self.meaning.rstrip('.')}; " if self.meaning else ""
        direction = "more is better" if self.more_is_better else "less is better"
        behind = (
            f"{points(self.cost, 4)} rating points behind the best rated example" if self.cost >= 0.005 else "no loss"
        )
        reason = f". {self.judgement.feedback}" if self.judgement.feedback else ""
        return f"{self.name} = {raw(self.judgement.raw, 4)} ({meaning}{direction}): {behind}{reason}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """One row's prediction taken apart; ``intercept + sum of contributions = prediction``."""

    prediction: Judgement
    intercept: float
    parts: tuple[Part, ...]

    @property
    def missing(self) -> float:
        """The share of the absolute weight that has no value, from 0 to 1; 0 where nothing has a weight."""
        total = sum(abs(part.weight) for part in self.parts)
        return sum(abs(part.weight) for part in self.parts if not part.judgement.ok) / total if total else 0.0

    @property
    def renormalised(self) -> float:
        """The prediction with missing parts left out and the other weights scaled up to the same total.

        ``intercept + sum of contributions / (1 - missing)``: the prediction itself where nothing is missing, NaN
        where everything is. The prediction counts a missing part as average instead.
        """
        missing = self.missing
        if not missing and self.prediction.raw is not None:
            return self.prediction.raw
        known = [part.contribution for part in self.parts if part.judgement.ok]
        return self.intercept + math.fsum(known) / (1 - missing) if known and missing < 1 else math.nan


@runtime_checkable
class Asker(Protocol):
    """The sender of requests, each of which answers for one metric or for several at once.

    A metric that costs model calls names its asker in the attribute ``asker``: a judge names itself, the
    members of a panel name their panel.
    """

    @property
    def numbers(self) -> int:
        """The count of numbers that one answer holds, wanted or not: one for each criterion that is asked for."""

    def fingerprint(self) -> str:
        """A hash of everything that changes the answer, the language model aside."""

    def ask(self, metrics: Sequence[Metric], row: dspy.Example, runs: Sequence[int]) -> list[list[Judgement]]:
        """Judge one row by the given metrics of this asker, once for each of `runs`.

        With one run this is one request (retries and repairs aside); with several, one request carries them
        all where the provider takes ``n``.

        Returns
        -------
        list of list of Judgement
            ``result[j][r]`` is metric j in ``runs[r]``; failures are judgements too, never exceptions. The
            cost of a request stands in exactly one of the judgements that it answered.
        """

    def messages(self, row: dspy.Example) -> list[dict[str, Any]]:
        """The chat messages that `ask` sends for `row`, for estimates and tests."""


@dataclass(frozen=True, slots=True)
class RowText:
    """The texts of one row. `input` and `context` are empty where the row has none."""

    output: str
    input: str = ""
    references: tuple[str, ...] = ()
    context: str = ""


def make_row(
    output: str, *, input: str = "", references: Sequence[str] | str = (), context: str = "", **labels: Any
) -> dspy.Example:
    """Build a row: a `dspy.Example` whose inputs are the texts and whose labels are everything else.

    Parameters
    ----------
    output : str
        The text to judge.
    input, context : str
        What the output answers; left out of the row when empty.
    references : sequence of str, or str
        Gold outputs, in order; or the one that there is.
    **labels
        ``id``, ``group``, ``system``, ``rater``, the rating under the task's target name, and so on.
    """
    texts: dict[str, Any] = {"output": output}
    if input:
        texts["input"] = input
    if references:
        texts["references"] = [references] if isinstance(references, str) else list(references)
    if context:
        texts["context"] = context
    return dspy.Example(**labels, **texts).with_inputs(*texts)


def labels_of(row: Any, names: Sequence[str]) -> dict[str, str]:
    """The named labels of a row as texts, empty where it has none; row is a `dspy.Example` or like one."""
    values = {name: row.get(name) for name in names}
    return {name: "" if value is None else str(value) for name, value in values.items()}


def row_text(row: Any, fields: Mapping[str, FieldNames] | None = None, pred: Any = None) -> RowText:
    """Read the texts of `row`, the output from `pred` if one is given; a value that is no text goes by `render_output`.

    Parameters
    ----------
    row : dspy.Example or Prediction
        Has the texts under our names, or under those that `fields` gives.
    fields : mapping, optional
        Ours to theirs, for example ``{"input": "question", "output": "answer"}``; several names stand for these
        fields together, each under its name; those of references for the references of each.
    pred : dspy.Prediction or any output, optional
        The new output; None means the row's own.

    Raises
    ------
    DataError
        If there is no output.
    """
    names: dict[str, FieldNames] = {name: name for name in TEXTS} | dict(fields or {})
    fields_of_references = [names["references"]] if isinstance(names["references"], str) else names["references"]
    given = [row.get(name) for name in fields_of_references]
    lists = [value if isinstance(value, (list, tuple)) else [value] if value else [] for value in given]
    return RowText(
        output=_output(row if pred is None else pred, names["output"]),
        input=_text(_field(row, names["input"])),
        references=tuple(_text(item) for items in lists for item in items),
        context=_text(_field(row, names["context"])),
    )


def _output(source: Any, names: FieldNames) -> str:
    if not isinstance(source, (dspy.Example, Mapping)):
        return render_output(source)
    wanted = [names] if isinstance(names, str) else list(names)
    absent = [name for name in wanted if source.get(name) is None]
    if absent:
        raise DataError(
            f"no field {' and no field '.join(map(repr, absent))} in {sorted(source.keys())}: name the output field "
            "with output=..."
        )
    value = _field(source, names)
    return value if isinstance(value, str) else render_output(value)


def _field(source: Any, names: FieldNames) -> Any:
    return source.get(names) if isinstance(names, str) else {name: source.get(name) for name in names}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else render_output(value) if value else ""


def judged_row(metric: Metric, example: Any, text: RowText, *, own: bool) -> dspy.Example:
    """The row that a metric gets to judge: these texts, and the fields that it needs besides.

    The columns of `example` belong to its `own` output only. A metric that holds a function of the caller's sees
    every other field of the example as well.
    """
    labels = {"columns": example.get("columns")} if own and example.get("columns") else {}
    reads = read_labels(metric)
    labels |= {
        name: value
        for name, value in example.items()
        if name not in (*TEXTS, "columns") and (reads == EVERY_LABEL or name in reads)
    }
    return make_row(text.output, input=text.input, references=text.references, context=text.context, **labels)


def read_labels(metric: Metric) -> Labels:
    """The labels of a row that a metric's number depends on besides the texts: its ``reads``, with those of its parts.

    A metric without the attribute reads none; one that holds a function of the caller's reads `EVERY_LABEL`.
    """
    own: Labels = getattr(metric, "reads", ())
    parts = [read_labels(part) for part, _ in metric.parts(0)] if isinstance(metric, Composite) else []
    if EVERY_LABEL in (own, *parts):
        return EVERY_LABEL
    return tuple(dict.fromkeys(name for names in (own, *parts) for name in names))


def fence(text: str) -> str:
    """Put `text` between marks that it cannot close itself: their code is a hash of the text between them.

    DSPy's own markers are taken apart, so that a text cannot pose as another field, nor have a picture fetched.
    Empty text becomes a plain «(none)», which an actual text never shows without marks.
    """
    return _marked(text.replace("[[ ##", "[ [##").replace(MARKER, f"< {MARKER[1:]}")) if text else NOTHING


def unfenced(text: str) -> str:
    """A model's copy of a fenced text, without the marks if it copied these too."""
    found = FENCED.fullmatch(text.strip())
    return (found[2] if found else text).replace("[ [##", "[[ ##").replace(f"< {MARKER[1:]}", MARKER)


def marked_anew(value: Any, *, as_before: bool = False) -> Any:
    """A saved prompt's field with today's marks around each of its texts; anything but fenced texts as it is.

    Parameters
    ----------
    value : object
        Texts that `fence` put between marks, in this or an earlier version, one to a line.
    as_before : bool
        Give them the marks of prompt version 1 instead, by which judgements of that time are known again.
    """
    if not isinstance(value, str) or not value.startswith("«begin "):
        return value
    texts, end = [], -1
    while found := FENCED.match(value, end + 1):
        texts.append(found[2])
        end = found.end()
        if end == len(value):
            return "\n".join(_marked(text, as_before=as_before) for text in texts)
        if value[end] != "\n":
            break
    return value


def _marked(body: str, *, as_before: bool = False) -> str:
    code = content_hash("fence", body.replace("[ [##", "[[ ##"))[:8] if as_before else content_hash("fence", body)
    return f"«begin {code}»\n{body}\n«end {code}»"


def fenced_texts(text: RowText) -> Mapping[str, str]:
    """The four text fields of a judge's signature, all references in the order given."""
    return {
        "input": fence(text.input),
        "references": "\n".join(map(fence, text.references)) if text.references else NOTHING,
        "context": fence(text.context),
        "output": fence(text.output) if text.output else "(the output is empty)",
    }


def content_hash(*parts: Any) -> str:
    """A 16-hex-digit hash of JSON-ready parts; order counts and parts never run together."""
    return hashlib.sha256(_JSON.encode(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _whole(value: Any) -> Any:
    """A value that JSON does not know: an array in full (as text it is cut short), a set in order, the rest as text."""
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return value.tolist() if hasattr(value, "tolist") else str(value)


_JSON = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=_whole)  # made once: thousands of texts are hashed


def content_key(row: dspy.Example, reads: Labels = ()) -> str:
    """A hash of everything in a row that a judgement depends on: the four texts, and the labels that the metric reads.

    32 hex digits, or 16 where it reads `EVERY_LABEL`.
    """
    if reads == EVERY_LABEL:
        return content_hash(row.toDict())
    text = row_text(row)
    labels = [labels_of(row, reads)] if reads else []
    content = json.dumps([text.input, text.output, text.references, text.context, *labels])
    return hashlib.sha256(content.encode()).hexdigest()[:32]
