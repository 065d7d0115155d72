"""A panel's answer read criterion by criterion, without a model: a criterion that is missing or wrong fails alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from metricsmith.records import Scale, Status
from metricsmith.signatures.judgement import PanelItem

__all__ = ["Criterion", "CriterionResult", "criteria_text", "labels", "read_items"]

SHOWN = 60  # characters of a model's own words that an error repeats


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion as the model reads it: its label, unique within the panel, its meaning, its levels if any."""

    label: str
    meaning: str
    levels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """The result for one criterion: `raw` on the scale with its `reason`, or None with `status` and `error`."""

    raw: int | None = None
    reason: str = ""
    status: Status = Status.OK
    error: str = ""


def labels(names: Sequence[str]) -> list[str]:
    """One label for each name, on one line; names that read alike are numbered from the second on.

    >>> labels(["Brevity", "Plain  words", "brevity"])
    ['Brevity', 'Plain words', 'brevity (2)']
    """
    taken: set[str] = set()
    made = []
    for name in names:
        plain = " ".join(name.split())
        label, number = plain, 2
        while _key(label) in taken:
            label, number = f"{plain} ({number})", number + 1
        taken.add(_key(label))
        made.append(label)
    return made


def criteria_text(criteria: Sequence[Criterion]) -> str:
    """The criteria as one text: label, meaning, numbered levels; one paragraph each."""
    return "\n\n".join(
        "\n".join(
            [
                f"criterion: {item.label}",
                f"meaning: {item.meaning}",
                *(f"level {number}: {level}" for number, level in enumerate(item.levels, 1)),
            ]
        )
        for item in criteria
    )


def read_items(items: Iterable[PanelItem], wanted: Sequence[str], scale: Scale) -> list[CriterionResult]:
    """Find each criterion's item and check its number.

    Names are compared without regard to case and white space. Items that name no criterion of the panel are
    passed over.

    Parameters
    ----------
    items : iterable of PanelItem
        The model's answer.
    wanted : sequence of str
        The panel's labels.
    scale : Scale
        Whole numbers of this scale are allowed.

    Returns
    -------
    list of CriterionResult
        One for each label. A criterion that is absent or stands there twice, and a score that is no whole
        number, is ``unparsable``; a whole number beyond the scale is ``out_of_range``.
    """
    found: dict[str, list[PanelItem]] = {}
    for item in items:
        found.setdefault(_key(item.criterion), []).append(item)
    named = [_excerpt(group[0].criterion) for key, group in found.items() if key]
    return [_result(found.get(_key(label), []), label, named, scale) for label in wanted]


def _result(matches: Sequence[PanelItem], label: str, named: Sequence[str], scale: Scale) -> CriterionResult:
    if len(matches) != 1:
        seen = f"{len(matches)} times" if matches else f"not at all (named are: {', '.join(named[:20]) or 'none'})"
        return CriterionResult(status=Status.UNPARSABLE, error=f"the answer names {label!r} {seen}; it must do so once")
    item = matches[0]
    number = _whole_number(item.score)
    if number is None:
        score = _excerpt(str(item.score))
        return CriterionResult(status=Status.UNPARSABLE, error=f"the score {score!r} of {label!r} is no whole number")
    if not scale.contains(number):
        error = f"the score {_excerpt(str(number))} of {label!r} is not on the scale {scale}"
        return CriterionResult(status=Status.OUT_OF_RANGE, error=error)
    return CriterionResult(number, item.reason)


def _whole_number(score: int | float | str | None) -> int | None:
    """The whole number that `score` is or spells in digits, None for anything else."""
    if isinstance(score, str):
        try:
            score = float(score)
        except ValueError:
            return None
    if score is None or not math.isfinite(score) or score != int(score):
        return None
    return int(score)


def _key(name: str) -> str:
    return "".join(name.casefold().split())


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 3]}..."
