"""The contents that a saved file may have: for each kind its keys, their types, ranges and limits, in one table.

A file is checked as a whole before anything is built from it, and nothing in it is followed. To add a key, add a line
to its kind's row; to add a kind, add a row to `KINDS`, with a limit of its own where its files are larger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dspy

from metricsmith.bank.catalogue import default_bank
from metricsmith.errors import OptionError, StateError
from metricsmith.model_calls.adapters import ADAPTER_NAMES
from metricsmith.mqm import MQMWeights
from metricsmith.programs.schema import (
    ITEMS,
    LARGEST,
    NAME,
    Check,
    at,
    chosen,
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
from metricsmith.records import Scale
from metricsmith.signatures.direct_assessment import AssessTranslation, ClassifyTranslation, MarkAndAssess
from metricsmith.signatures.judgement import (
    JudgeByExamples,
    JudgeByGuideline,
    JudgeBySteps,
    JudgeCriterion,
    JudgeRubric,
)  # fmt: skip
from metricsmith.signatures.mqm import AnnotateErrors
from metricsmith.signatures.panel import JudgePanel
from metricsmith.stats.aggregation import AGGREGATES, OutlierRule
from metricsmith.stats.regression import LinearCombination

__all__ = ["DEEPEST", "KINDS", "LARGEST_FILE", "OWN_KEYS", "check_file", "check_state"]

OWN_KEYS = ("schema_version", "versions", "hash")  # of a file, besides those of its state
DEEPEST = 150  # lists and objects inside one another
NUMBERS, ENTRIES = 1_000_000, 5_000_000  # training scores of a column; counted n-grams
RUNS = 2_000  # judgements behind one number of the metric that the file holds


def _nested(*kinds: str) -> Check:
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


def _bank(value: Any, path: str) -> None:
    """A metric's name from our table, and the corpus statistics of those that have any."""
    known = {metric.name: metric for metric in default_bank().metrics()}
    corpus = keys(
        documents=number(0, NUMBERS, whole=True), frequencies=entries(number(1, NUMBERS, whole=True), ENTRIES, text())
    )
    keys({"statistics": maybe(corpus)}, name=one_of(*known))(value, path)
    if value.get("statistics") is not None and known[value["name"]].family.statistics is None:
        refuse(at(path, "statistics"), f"not allowed; {value['name']} has none")


def _output(value: Mapping[str, Any]) -> None:
    """The range of a function's number, from which its score follows."""
    low, high = value["low"], value["high"]
    if (low is None or high is None) and not value["half"]:
        raise OptionError("a range without an end needs 'half' above 0")
    if low is not None and high is not None and not low < high:
        raise OptionError(f"a range from {low:g} to {high:g} is not allowed; low must be below high")


FLAG, SHARE = one_of(True, False), number(0, 1)
LEARNED = list_of(text(NAME), NUMBERS)
MADE_WITH = keys({"model": text(NAME), "learned_from": LEARNED})  # provenance: it is compared, and changes no score
END = maybe(number())
FUNCTION = keys(  # the name of code that the file does not hold
    name=text(NAME, 1), hidden=list_of(text(NAME)),
    output=made(keys(low=END, high=END, half=maybe(number(0)), higher_is_better=FLAG), _output),
)  # fmt: skip
SCALE = made(
    keys({"step": maybe(number()), "higher_is_better": FLAG}, low=number(), high=number()),
    lambda value: Scale(**value),
)
NAMED = {"name": text(NAME, 1), "task": text()}
CRITERION = {**NAMED, "criterion": text(), "meaning": text()}
RATERS = {**NAMED, "measure": text(), "meaning": text(), "scale": SCALE}
ASKED = {  # where that is not the raters' scale
    "asked": SCALE, "points": list_of(text(NAME), 11),
    "map": same_length(keys(knots=list_of(number(), NUMBERS, 1), values=list_of(number(), NUMBERS)), "knots", "values"),
}  # fmt: skip
LANGUAGE = text(NAME, 1)
TRANSLATION = {
    "name": text(NAME, 1), "source_language": LANGUAGE, "target_language": LANGUAGE,
    "context": one_of("document", "none"), "meaning": text(),
}  # fmt: skip
WEIGHT = number(0)
WEIGHTS = made(
    keys(
        critical=WEIGHT, major=WEIGHT, minor=WEIGHT, neutral=WEIGHT, non_translation=maybe(WEIGHT), cap=maybe(WEIGHT),
        rules=list_of(keys(severity=text(NAME), category=text(NAME), weight=WEIGHT)),
        max_errors=maybe(number(1, NUMBERS, whole=True)),
    ),
    MQMWeights.from_dict,
)  # fmt: skip
OUTLIERS = made(
    keys(k=number(), sided=text(NAME), ddof=number(0, 1, whole=True)), lambda value: OutlierRule(**value)
)  # fmt: skip
COLUMN, COLUMNS = maybe(text(NAME)), list_of(text(NAME))
READING = {
    "output": COLUMN, "inputs": COLUMNS, "reference": COLUMNS, "context": COLUMN, "metric_columns": COLUMNS,
    "id": COLUMN, "group": COLUMN,
}  # fmt: skip
TRANSFORMS = {
    "z_score": keys(kind=text(), mean=number(), sd=_spread),
    "normal_score": keys(kind=text(), values=list_of(number(), NUMBERS), centre=number(), scale=_spread),
}
COMBINED = keys(
    name=text(NAME), index=number(0, NUMBERS, whole=True), weight=number(), transform=chosen("kind", TRANSFORMS)
)
INDUCED = keys(
    {"made_with": MADE_WITH, "adapter": one_of(*ADAPTER_NAMES)},
    task=keys(description=text(), target=text(NAME), scale=SCALE),
    combination=made(keys(intercept=number(), columns=list_of(COMBINED)), LinearCombination.from_dict),
    best=list_of(number()), signature=text(), reading=keys(READING), components=list_of(_nested()),
)  # fmt: skip
DIMENSIONS = keys(settings=keys(**NAMED, weights=list_of(SHARE, ITEMS, 1)), judges=list_of(_nested("criterion_judge")))
PERTURBED = {name: text(NAME) for name in ("strategy", "strength", "dimension", "origin")}
RATED_ITEM = keys(PERTURBED, row=number(0, NUMBERS, whole=True), hash=text(NAME), effect=text(NAME))


def _judge(_signature: type[dspy.Signature], _optional: Mapping[str, Check] | None = None, /, **needed: Check) -> Check:
    return keys({"made_with": MADE_WITH}, state=keys(settings=keys(_optional, **needed), judge=predictor(_signature)))


def _assessment(scale: str) -> Check:
    signature = ClassifyTranslation if scale == "classes" else AssessTranslation
    return _judge(signature, **TRANSLATION, scale=one_of(scale), reference=FLAG)


def _repeated(*kinds: str) -> Check:
    settings = keys(
        {"stop_when": maybe(number(0))},  # which files of versions that asked all runs do not have
        name=text(NAME, 1), judge=text(NAME), runs=number(1, RUNS, whole=True), min_runs=number(1, RUNS, whole=True),
        aggregate=one_of(*AGGREGATES), outliers=maybe(OUTLIERS),
    )  # fmt: skip
    return keys(settings=settings, judge=_nested(*kinds))


@dataclass(frozen=True)
class Kind:
    """A row of the table: the check of everything but ``kind``, and the largest file."""

    check: Check
    megabytes: int = 10


KINDS: Mapping[str, Kind] = {
    "induced": Kind(same_length(INDUCED, "best", "components"), 50),
    "bank": Kind(_bank, 50),
    "callable": Kind(FUNCTION),
    "column": Kind(keys(name=text(NAME))),
    "criterion_judge": Kind(_judge(JudgeCriterion, **CRITERION)),
    "direct_assessment": Kind(
        chosen("state.settings.scale", {scale: _assessment(scale) for scale in ("da", "sqm", "stars", "classes")})
    ),
    "dna_eval": Kind(same_length(DIMENSIONS, "settings.weights", "judges")),
    "esa_judge": Kind(_judge(MarkAndAssess, **TRANSLATION)),
    "example_judge": Kind(_judge(JudgeByExamples, ASKED, **RATERS)),
    "geval_judge": Kind(
        _judge(
            JudgeBySteps, **CRITERION, steps=list_of(text(least=1), ITEMS, 1), scale=SCALE,
            mode=one_of("logprob", "sampled", "stated"), n=maybe(number(2, RUNS, whole=True)),
            top_logprobs=number(1, 20, whole=True), min_mass=SHARE,
        )
    ),
    "guideline_judge": Kind(_judge(JudgeByGuideline, ASKED, **RATERS, guideline=text(least=1))),
    "mqm_annotator": Kind(
        _judge(
            AnnotateErrors, **TRANSLATION, weights=WEIGHTS, temperature=maybe(number(0, 2)), worked_example=FLAG
        )
    ),
    "mqm_judge": Kind(_repeated("mqm_annotator")),
    "panel": Kind(
        _judge(JudgePanel, task=text(), judges=list_of(_nested("criterion_judge", "rubric_judge"), ITEMS, 1))
    ),
    "panel_member": Kind(keys(name=text(NAME), panel=_nested("panel"))),
    "repeated": Kind(_repeated()),
    "rubric_judge": Kind(_judge(JudgeRubric, **CRITERION, levels=list_of(text(least=1), 5, 5))),
    "rating_sheet_key": Kind(
        keys(criterion=text(), seed=number(whole=True), items=entries(RATED_ITEM, NUMBERS, text(NAME))), 50
    ),
}  # fmt: skip
METRICS = tuple(kind for kind in KINDS if kind not in ("panel", "rating_sheet_key"))
LARGEST_FILE = max(kind.megabytes for kind in KINDS.values()) * 1_000_000


def check_state(state: Any) -> None:
    """Make sure that a state holds what its kind's row allows, and nothing else.

    Raises
    ------
    StateError
        With the path of the first value that is not allowed.
    """
    _nested(*KINDS)(state, "")
    runs = _runs(state)
    if runs > RUNS:
        refuse("runs", f"{runs:,} judgements for one number are not allowed; {RUNS:,} are: repeat less often")


def check_file(content: Mapping[str, Any], size: int) -> None:
    """`check_state` for a file's content, with its own keys and its size in bytes."""
    own = keys(schema_version=number(whole=True), versions=entries(text(NAME), ITEMS, text(NAME)), hash=text(NAME))
    own({key: content[key] for key in OWN_KEYS if key in content}, "")
    state = {key: value for key, value in content.items() if key not in OWN_KEYS}
    check_state(state)
    limit = KINDS[state["kind"]].megabytes
    if size > limit * 1_000_000:
        raise StateError(f"{size:,} bytes are not allowed for the kind {state['kind']!r}; {limit} MB are")


def _runs(state: Mapping[str, Any]) -> int:
    """The judgements that one number of a metric takes."""
    times = inside(state, "settings.runs") or inside(state, "state.settings.n") or 1
    parts = [*state.get("components", ()), *state.get("judges", ()), *filter(None, [state.get("judge")])]
    return int(times) * max(1, sum(map(_runs, parts)))
