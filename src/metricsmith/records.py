"""The frozen records that travel between the parts: scales, tasks, judgements, metric cards.

Nothing here computes; nothing here imports more than the standard library.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from metricsmith.errors import OptionError

__all__ = [
    "COSTS", "FAILURES", "Checkpoint", "ErrorSpan", "Judgement", "MetricCard", "Output", "Scale", "Status", "Task",
    "Usage",
]  # fmt: skip


class Status(StrEnum):
    """The end of one judgement. Only ``ok`` carries a number."""

    OK = "ok"
    UNPARSABLE = "unparsable"
    OUT_OF_RANGE = "out_of_range"
    REFUSED = "refused"
    TRANSPORT = "transport"
    BUDGET = "budget"
    SKIPPED = "skipped"


FAILURES: tuple[Status, ...] = tuple(status for status in Status if status is not Status.OK)


@dataclass(frozen=True, slots=True)
class Scale:
    """A bounded rating scale.

    Parameters
    ----------
    low, high : float
        The smallest and largest rating; ``low < high``, both finite.
    step : float, optional
        The distance between neighbouring ratings (1 for stars), None if continuous.
    higher_is_better : bool
        False for scales such as "number of errors".
    """

    low: float
    high: float
    step: float | None = None
    higher_is_better: bool = True

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise OptionError(
                f"scale {self.low:g} to {self.high:g} is not usable: both ends must be finite and low < high"
            )
        if self.step is not None and not 0 < self.step <= self.high - self.low:
            raise OptionError(f"scale step {self.step:g} must be above 0 and at most high - low")

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"

    @property
    def width(self) -> float:
        """``high - low``."""
        return self.high - self.low

    def contains(self, value: float) -> bool:
        """True if `value` is inside the scale, ends included; False for NaN."""
        return self.low <= value <= self.high

    def unit(self, raw: float) -> float:
        """Map a number on this scale to [0, 1], higher is better, clipped; NaN stays NaN."""
        share = (raw - self.low) / self.width
        return math.nan if math.isnan(share) else min(1.0, max(0.0, share if self.higher_is_better else 1.0 - share))


@dataclass(frozen=True, slots=True)
class Task:
    """The task that rows were made for.

    Parameters
    ----------
    description : str
        What the system does and what a good output is, in plain words.
    target : str
        Name of the human rating in the rows.
    scale : Scale
        The rating's scale.
    """

    description: str
    target: str
    scale: Scale

    def __post_init__(self) -> None:
        if not isinstance(self.scale, Scale):
            raise OptionError(f"a task's scale is a Scale, not {self.scale!r}: write Scale(low, high), say Scale(1, 5)")


@dataclass(frozen=True, slots=True)
class ErrorSpan:
    """One error in a translation, as a rater or a judge marked it.

    Parameters
    ----------
    severity : str
        Such as ``major``; which ones there are is `metricsmith.mqm.SEVERITIES`.
    category : str
        Such as ``fluency/punctuation``; empty if there is none.
    start, end : int or None
        Character offsets in the text of `side`, the end exclusive; None where only the text of the span is known.
        They are equal where nothing is marked but a place.
    text : str
        What is marked.
    side : str
        ``source`` or ``target``: the text that is marked.
    description : str
        What is wrong, in words.
    """

    severity: str
    category: str = ""
    start: int | None = None
    end: int | None = None
    text: str = ""
    side: str = "target"
    description: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of a piece of work. ``cost`` is US dollars, None where the price is unknown."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            sum(costs) if costs else None,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class Judgement:
    """One metric's verdict on one row.

    Parameters
    ----------
    metric : str
        Name of the metric (a card's output name).
    raw : float or None
        The metric's own number; None unless `status` is ``ok``.
    score : float or None
        `raw` mapped to [0, 1], higher is better; None unless `status` is ``ok``.
    feedback : str
        Reasons in words; empty for metrics that give none.
    status : Status
        How the judgement ended.
    error : str
        The cause of the failure; empty when `status` is ``ok``.
    run : int
        The number of this run, from 0.
    usage : Usage
        The cost of this judgement.
    spans : tuple of ErrorSpan
        The errors that the number rests on; empty where there are none, and for metrics that mark none.
    """

    metric: str
    raw: float | None = None
    score: float | None = None
    feedback: str = ""
    status: Status = Status.OK
    error: str = ""
    run: int = 0
    usage: Usage = field(default_factory=Usage)
    spans: tuple[ErrorSpan, ...] = ()

    def __post_init__(self) -> None:
        number = self.raw is not None and math.isfinite(self.raw)
        if (self.status is Status.OK) != number:
            raise ValueError(f"a judgement with status {self.status} cannot have raw={self.raw!r}")

    @property
    def ok(self) -> bool:
        """True if there is a number."""
        return self.status is Status.OK


@dataclass(frozen=True, slots=True)
class Output:
    """One number that a metric yields.

    `score` is the monotone map of `raw` to [0, 1], higher is better; it never depends on other rows. Bounded outputs
    map linearly. Outputs without an upper end use ``x / (x + half)`` with ``x = raw - low``, so that `half` above `low`
    scores .5; those without a lower end ``half / (half + high - raw)``, so that `high` scores 1 and `half` below it .5;
    those without ends ``.5 + .5 raw / (|raw| + half)``. Where lower is better the map is turned round.

    Parameters
    ----------
    name : str
        Unique in the bank, the name of a column of scores.
    low, high : float or None
        Range of the raw number; None means unbounded on that side.
    higher_is_better : bool or None
        Direction of the raw number; None for the options of a choice. False by convention for lengths.
    half : float, optional
        Required for open-ended outputs.
    description : str
        One line.
    """

    name: str
    low: float | None = 0.0
    high: float | None = 1.0
    higher_is_better: bool | None = True
    half: float | None = None
    description: str = ""

    def __post_init__(self) -> None:
        if (self.low is None or self.high is None) and not (self.half is not None and self.half > 0):
            raise ValueError(f"output {self.name!r} is open-ended and needs half > 0")

    @property
    def sign(self) -> int:
        """1 where higher is better, -1 where lower is; an `OptionError` where neither is."""
        if self.higher_is_better is None:
            raise OptionError(f"{self.name} is better neither way: take Repeated(judge, runs=1) of one with positive=")
        return 1 if self.higher_is_better else -1

    def score(self, raw: float) -> float:
        """Map a finite raw number to [0, 1], higher is better."""
        half = self.half or 1.0
        if self.low is not None and self.high is not None:
            share = min(1.0, max(0.0, (raw - self.low) / (self.high - self.low)))
        elif self.low is not None:
            distance = max(raw - self.low, 0.0)
            share = distance / (distance + half)
        elif self.high is not None:
            share = half / (half + max(self.high - raw, 0.0))
        else:
            share = 0.5 + 0.5 * raw / (abs(raw) + half)
        return 1.0 - share if self.higher_is_better is False else share


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The published weights that a metric rests on, as its card names them.

    Parameters
    ----------
    model, revision : str
        Id and revision at the hub, or the file's address.
    disk, memory : float
        GB (10^9 bytes) of the published files, and that scoring needs at least in `dtype`.
    max_tokens : int
        The longest text or pair that the model reads, the marks at its ends included; 0 without a limit.
    beyond : str
        What happens to longer texts.
    languages, licence, dtype, settings : str
    """

    model: str
    disk: float
    memory: float
    max_tokens: int
    beyond: str
    revision: str = "main"
    languages: str = "English"
    licence: str = "see the model's card"
    dtype: str = "float32"
    settings: str = ""

    def __str__(self) -> str:
        limit = f"; longest text {self.max_tokens:,} tokens, {self.beyond}" if self.max_tokens else ""
        size = f"{self.disk:.2g} GB on disk, {self.memory:.2g} GB in memory in {self.dtype}"
        used = "; ".join(filter(None, (f"{self.model}, revision {self.revision}", self.settings, size, self.languages)))
        return f"{used}; licence: {self.licence}{limit}; checked against the published weights: no"


COSTS = ("free", "cheap", "local", "model")  # of a metric, as its card has it, in rising order


@dataclass(frozen=True, slots=True)
class MetricCard:
    """The document on a metric that retrieval reads: what it measures, for whom, and where it fails.

    Parameters
    ----------
    name : str
        Display name of the metric (a family may have several outputs).
    kind : str
        ``bank``, ``column``, ``callable``, ``code``, ``finetuned``, ``induced``, or a judge's own, as
        `metricsmith.programs.judges.catalogue` has them; repeated runs keep their kind.
    summary : str
        One or two sentences: what it measures.
    formula : str
        The definition in plain text.
    outputs : tuple of Output
        Every number it yields.
    needs : tuple of str
        Out of ``input``, ``references``, ``model``, ``gpu``, ``weights`` and extras (``extra:colbert``).
    cost : str
        ``free`` (microseconds on a CPU), ``cheap`` (milliseconds), ``local`` (weights on this machine: a pass of a
        network per text), ``model`` (one model call per row).
    multi_reference : str
        The rule for several references, in the order given; empty if references are not used.
    domains, tasks, best_for, not_for, limits, failure_cases, related, papers : tuple of str
        Card sections, each a list of short sentences or names.
    backend, backend_license : str
        Which library computes it and under which licence.
    instruction_before, instruction : str
        A judge's instruction before it was tuned, and the present one; empty where it is the family's own.
    asked : str
        The scale that a judge in the raters' place is asked on, in words; empty where it is the raters' own.
    rating_map : tuple of (float, float)
        Pairs of such a judge's number and the rating that it stood for; straight between pairs, level beyond them.
    checkpoint : Checkpoint, optional
        The weights of a metric of cost ``local``.
    """

    name: str
    kind: str
    summary: str
    formula: str
    outputs: tuple[Output, ...]
    needs: tuple[str, ...] = ()
    cost: str = "free"
    multi_reference: str = ""
    domains: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    best_for: tuple[str, ...] = ()
    not_for: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    failure_cases: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    papers: tuple[str, ...] = ()
    backend: str = "metricsmith"
    backend_license: str = "MIT"
    instruction_before: str = ""
    instruction: str = ""
    asked: str = ""
    rating_map: tuple[tuple[float, float], ...] = ()
    checkpoint: Checkpoint | None = None

    @property
    def rating_map_words(self) -> str:
        """`rating_map` in one line."""
        return ", ".join(f"{number:g} is {rating:.3g}" for number, rating in self.rating_map)

    def output(self, name: str) -> Output:
        """Return the output called `name`; KeyError if there is none."""
        return {output.name: output for output in self.outputs}[name]

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON-ready data."""
        return asdict(self)

    def to_markdown(self) -> str:
        """The card as a Markdown section; of one without outputs a heading and the summary."""
        if not self.outputs:
            return f"## {self.name}\n\n{self.summary}\n"
        lines = [f"## {self.name}", "", self.summary, "", "| output | range | better | meaning |", f"|{4 * ' --- |'}"]
        for output in self.outputs:
            low = "-inf" if output.low is None else f"{output.low:g}"
            high = "inf" if output.high is None else f"{output.high:g}"
            better = {True: "higher", False: "lower", None: "neither"}[output.higher_is_better]
            lines += [f"| `{output.name}` | {low} to {high} | {better} | {output.description} |"]
        facts = [
            ("Formula", self.formula),
            ("Needs", ", ".join(self.needs) or "the output only"),
            ("Cost", self.cost),
            ("Weights", str(self.checkpoint or "")),
            ("Several references", self.multi_reference),
            ("Backend", f"{self.backend} ({self.backend_license})"),
            ("Asked on", self.asked),
            ("In the raters' numbers", self.rating_map_words),
            ("Instruction before tuning", " ".join(self.instruction_before.split())),
            ("Instruction after tuning", " ".join(self.instruction.split())),
        ]
        lines += ["", *(f"- **{label}**: {text}" for label, text in facts if text)]
        sections = [
            ("Domains", self.domains), ("Tasks", self.tasks), ("Best for", self.best_for), ("Not for", self.not_for),
            ("Known limits", self.limits), ("Failure cases", self.failure_cases), ("Related", self.related),
            ("Papers", self.papers),
        ]  # fmt: skip
        return "\n".join([*lines, *(f"- **{label}**: {'; '.join(items)}" for label, items in sections if items), ""])
