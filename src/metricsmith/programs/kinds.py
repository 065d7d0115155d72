"""The contents that a saved file may have: for each kind its keys, their types, ranges and limits, in one table.

A file is checked as a whole before anything is built from it, and nothing in it is followed. A judge says what it
`saves` in its own file, and stands in `metricsmith.programs.judges.catalogue`; everything else stands here, with a
limit of its own where its files are larger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import dspy

from metricsmith.bank.base import Family
from metricsmith.bank.catalogue import full_bank
from metricsmith.bank.code import CodeMetric
from metricsmith.bank.models.finetuned import ENCODERS, METHODS, FinetunedMetric
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.bank.models.trained import file_name
from metricsmith.bank.weighted import named_function, saved_family
from metricsmith.errors import OptionError, StateError
from metricsmith.model_calls.adapters import ADAPTER_NAMES
from metricsmith.programs.judges.catalogue import JUDGES, judge_class
from metricsmith.programs.schema import (
    FLAG,
    ITEMS,
    LARGEST,
    NAME,
    NUMBERS,
    RUNS,
    SCALE,
    Check,
    Checks,
    at,
    by_value,
    entries,
    inside,
    keys,
    list_of,
    made,
    maybe,
    number,
    one_of,
    predictor,
    refuse,
    same_length,
    text,
)  # fmt: skip
from metricsmith.programs.specialist.choosing import ALLOWED
from metricsmith.programs.specialist.examples import ROW_EXAMPLES, RowExamples
from metricsmith.records import Scale, Task
from metricsmith.sandbox.contract import LIMITS
from metricsmith.sandbox.subset import LARGEST_SOURCE
from metricsmith.stats.regression import LinearCombination

__all__ = [
    "DEEPEST", "KINDS", "LARGEST_FILE", "LARGEST_PLAIN", "METRICS", "OWN_KEYS", "asker_state", "check_file",
    "check_state", "families", "nested",
]  # fmt: skip

OWN_KEYS = ("schema_version", "versions", "hash")  # of a file, besides those of its state
DEEPEST = 150  # lists and objects inside one another
ENTRIES = 5_000_000  # counted n-grams


def nested(*kinds: str) -> Check:
    """The state of a metric of one of these kinds or, if none is named, of any."""

    def check(value: Any, path: str) -> None:
        kind = inside(value, "kind")
        one_of(*(kinds or METRICS))(kind, at(path, "kind"))
        KINDS[kind].check({key: one for key, one in value.items() if key != "kind"}, path)

    return check


def _spread(value: Any, path: str) -> None:
    """A standard deviation; 0 marks a constant column."""
    number(0)(value, path)
    if 0 < value < 1 / LARGEST:
        refuse(path, f"{value!r} is not allowed; 0 or a number from {1 / LARGEST:g} is")


@lru_cache(maxsize=1)
def families() -> Mapping[str, Family]:
    """The families of all bank metrics that a file can name, by the names of their outputs."""
    return {metric.name: metric.family for metric in full_bank("all").metrics()}


def _bank(value: Any, path: str) -> None:
    """A metric's name from our table, the corpus statistics of those that have any, and the weights of those with."""
    corpus = keys(
        documents=number(0, NUMBERS, whole=True), frequencies=entries(number(1, NUMBERS, whole=True), ENTRIES, text())
    )
    known = families()
    one_of(*known)(inside(value, "name"), at(path, "name"))
    family = known[value["name"]]
    weights = {} if family.model is None else {"model": _weights(family, family.model)}
    keys({"statistics": maybe(corpus)}, name=text(), **weights)(value, path)
    if value.get("statistics") is not None and _without_code(family, value).statistics is None:
        refuse(at(path, "statistics"), f"not allowed; {value['name']} has none")


def _without_code(family: Family, state: Mapping[str, Any]) -> Family:
    """The family of a state, with nothing in the place of the function that it names."""
    return saved_family(family, state, function=list if named_function(state) else None)


def _weights(family: Family, model: ModelSpec) -> Check:
    """All that a file says of weights: names and settings of a fixed table, nothing of which is followed."""
    settings = {name: text(NAME, 1) if name == "entities" else one_of(*values) for name, values in model.choices}
    return made(_model(settings), lambda state: _without_code(family, {"model": state}))


def _model(settings: Checks) -> Check:
    return keys(
        id=text(NAME), revision=text(NAME), layer=maybe(number(1, ITEMS, whole=True)), tokenizer=text(NAME),
        dtype=text(NAME), options=keys(settings), weights=text(64, 64),
    )  # fmt: skip


def _trained(state: Mapping[str, Any]) -> None:
    """Build all of a trained metric but its weights, of which a file has the hash alone."""
    file_name(state["weights"])
    encoder = ENCODERS[state["encoder"]].with_state(state["model"])
    FinetunedMetric(Task("", "", Scale(0, 1)), state["method"], encoder, state["settings"], state["seed"])


def _output(value: Mapping[str, Any]) -> None:
    """The range of a function's number, from which its score follows."""
    low, high = value["low"], value["high"]
    if (low is None or high is None) and not value["half"]:
        raise OptionError("a range without an end needs 'half' above 0")
    if low is not None and high is not None and not low < high:
        raise OptionError(f"a range from {low:g} to {high:g} is not allowed; low must be below high")


LEARNED = list_of(text(NAME), NUMBERS)
# Provenance: it is compared or shown, and changes no score.
MADE_WITH = keys({"model": text(NAME), "learned_from": LEARNED, "imitates": text(NAME)})
END = maybe(number())
RANGE = made(keys(low=END, high=END, half=maybe(number(0)), higher_is_better=FLAG), _output)
FUNCTION = keys(name=text(NAME, 1), hidden=list_of(text(NAME)), output=RANGE)  # of code that the file does not hold
USE = {one.name: number(0, whole=isinstance(getattr(LIMITS, one.name), int)) for one in fields(LIMITS)}
CODE = made(  # the one kind whose file holds source text: it is parsed here and run by the sandbox alone
    keys(
        name=text(NAME, 1), meaning=text(), source=text(LARGEST_SOURCE, 1), function=text(NAME, 1), limits=keys(USE),
        output=RANGE,
    ),
    CodeMetric.from_state,
)  # fmt: skip
COLUMN, COLUMNS = maybe(text(NAME)), list_of(text(NAME))
READING = {
    "output": COLUMN, "inputs": COLUMNS, "reference": COLUMNS, "context": COLUMN, "metric_columns": COLUMNS,
    "id": COLUMN, "group": COLUMN, "levels": COLUMNS, "usual": keys({"id": COLUMN, "group": COLUMN, "system": COLUMN}),
}  # fmt: skip
TRANSFORMS = {
    "z_score": keys(kind=text(), mean=number(), sd=_spread),
    "normal_score": keys(kind=text(), values=list_of(number(), NUMBERS), centre=number(), scale=_spread),
}
COMBINED = keys(
    name=text(NAME), index=number(0, NUMBERS, whole=True), weight=number(), transform=by_value("kind", TRANSFORMS)
)
TASK = keys(description=text(), target=text(NAME), scale=SCALE)
FINETUNED = made(
    keys(
        {"made_with": MADE_WITH},
        name=text(NAME, 1), task=TASK, method=one_of(*METHODS), settings=entries(number(), ITEMS, text(NAME)),
        seed=number(0, whole=True), encoder=one_of(*ENCODERS), model=_model({}), centre=number(), spread=_spread,
        rows=number(2, NUMBERS, whole=True), groups=number(2, NUMBERS, whole=True), weights=text(64, 64),
    ),
    _trained,
)  # fmt: skip
INDUCED = keys(
    {"made_with": MADE_WITH, "adapter": one_of(*ADAPTER_NAMES)},
    task=TASK,
    combination=made(keys(intercept=number(), columns=list_of(COMBINED)), LinearCombination.from_dict),
    best=list_of(number()), signature=text(), reading=keys(READING), components=list_of(nested()),
)  # fmt: skip
PERTURBED = {name: text(NAME) for name in ("strategy", "strength", "dimension", "origin")}
RATED_ITEM = keys(PERTURBED, row=number(0, NUMBERS, whole=True), hash=text(NAME), effect=text(NAME))


# A history: at least ten times the largest collection of WMT (60,000 ratings, some 150,000 errors, 30 MB).
RATINGS, MARKED, HISTORY_MEGABYTES = 1_000_000, 5_000_000, 300
LABEL = text(NAME)
OFFSET = maybe(number(0, NUMBERS, whole=True))
SPAN = keys(
    severity=LABEL, category=LABEL, start=OFFSET, end=OFFSET, text=text(), side=one_of("source", "target"),
    description=text(),
)  # fmt: skip
PLACE = number(0, 2 * RATINGS, whole=True)
PAST_RATING = keys(
    source=PLACE, output=PLACE, system=LABEL, rater=LABEL, rating=maybe(number()), segment=LABEL, document=LABEL,
    spans=maybe(list_of(SPAN, ITEMS)),
)  # fmt: skip
HISTORY = keys(
    name=text(), scale=maybe(SCALE), texts=list_of(text(), 2 * RATINGS), ratings=list_of(PAST_RATING, RATINGS, 1)
)


def _history(value: Any, path: str) -> None:
    """A history, which is built once it is known to hold nothing else."""
    HISTORY({key: one for key, one in value.items() if key != "kind"} if isinstance(value, dict) else value, path)
    one_of("history")(inside(value, "kind"), at(path, "kind"))
    marked = sum(len(one["spans"] or ()) for one in value["ratings"])
    if marked > MARKED:
        refuse(at(path, "ratings"), f"{marked:,} marked errors are not allowed; {MARKED:,} are")


POLICY = keys(
    **{name: one_of(*allowed) for name, allowed in ALLOWED.items()},
    **dict.fromkeys(("max_examples", "max_tokens"), maybe(number(1, NUMBERS, whole=True))),
    seed=number(whole=True),
)
SAVED_EXAMPLES = made(
    keys(
        {"compared": list_of(LABEL, NUMBERS)},
        policy=POLICY, joined=entries(LABEL, NUMBERS, LABEL), history=_history,
    ),
    RowExamples.from_state,
)  # fmt: skip


def asker_state(_signature: type[dspy.Signature], _optional: Checks | None = None, /, **needed: Check) -> Check:
    """The state of a judge or panel: its predictor by this signature, and these settings."""
    settings = keys({**(_optional or {}), ROW_EXAMPLES: SAVED_EXAMPLES}, **needed)
    return keys({"made_with": MADE_WITH}, state=keys(settings=settings, judge=predictor(_signature)))


@lru_cache
def _judge(kind: str) -> Check:
    check: Check = judge_class(kind).saved()
    return check


def _by_class(kind: str) -> Check:
    """The check that a judge's class has, which is imported when a file of this kind is met."""
    return lambda value, path: _judge(kind)(value, path)


@dataclass(frozen=True)
class Kind:
    """A row of the table: the check of everything but ``kind``, and the largest file."""

    check: Check
    megabytes: int = 10


KINDS: Mapping[str, Kind] = {
    "induced": Kind(same_length(INDUCED, "best", "components"), 50),
    "bank": Kind(_bank, 50),
    "callable": Kind(FUNCTION),
    "code": Kind(CODE),
    "column": Kind(keys(name=text(NAME))),
    "finetuned": Kind(FINETUNED, 50),
    "history": Kind(HISTORY, HISTORY_MEGABYTES),
    **{kind: Kind(_by_class(kind)) for kind in JUDGES},
    "rating_sheet_key": Kind(
        keys(criterion=text(), seed=number(whole=True), items=entries(RATED_ITEM, NUMBERS, text(NAME))), 50
    ),
}  # fmt: skip
METRICS = tuple(kind for kind in KINDS if kind not in ("history", "panel", "rating_sheet_key"))
LARGEST_FILE = 1_000_000 * (HISTORY_MEGABYTES + max(KINDS[kind].megabytes for kind in METRICS))
LARGEST_PLAIN = 1_000_000 * max(KINDS[kind].megabytes for kind in METRICS)  # of a file without a history


def check_state(state: Any) -> None:
    """Make sure that a state holds nothing but what its kind's row allows.

    Raises
    ------
    StateError
        With the path of the first value that is not allowed.
    """
    nested(*KINDS)(state, "")
    runs = _runs(state)
    if runs > RUNS:
        refuse("runs", f"{runs:,} judgements for one number are not allowed; {RUNS:,} are: repeat less often")


def check_file(content: Mapping[str, Any], size: int) -> None:
    """`check_state` for a file's content, with its own keys and its size in bytes."""
    own = keys(schema_version=number(whole=True), versions=entries(text(NAME), ITEMS, text(NAME)), hash=text(NAME))
    own({key: content[key] for key in OWN_KEYS if key in content}, "")
    state = {key: value for key, value in content.items() if key not in OWN_KEYS}
    check_state(state)
    limit = KINDS[state["kind"]].megabytes + (HISTORY_MEGABYTES if _has_history(state) else 0)
    if size > limit * 1_000_000:
        raise StateError(f"{size:,} bytes are not allowed for the kind {state['kind']!r}; {limit} MB are")


def _has_history(state: Any) -> bool:
    """True if a state or a part of it is a specialist's."""
    own = inside(state, "state.settings") or inside(state, "settings") or {}
    return ROW_EXAMPLES in own or (isinstance(inside(state, "judge"), dict) and _has_history(state["judge"]))


def _runs(state: Mapping[str, Any]) -> int:
    """The judgements that one number of a metric takes."""
    times = inside(state, "settings.runs") or inside(state, "state.settings.n") or 1
    parts = [*state.get("components", ()), *state.get("judges", ()), *filter(None, [state.get("judge")])]
    return int(times) * max(1, sum(map(_runs, parts)))
