"""Error types and severities as data, weights as a value, and the score of a set of errors.

Severities and categories are compared without regard to case; blanks, underscores and hyphens are one, and a final
exclamation mark does not count. So ``Non-translation!``, ``non_translation`` and ``non-translation`` are the same.

Judges, readers of data and meta-evaluation all turn errors into a score, and do it by this one rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from types import MappingProxyType
from typing import Any, TypeGuard

from metricsmith.errors import DataError, OptionError, StateError, nearest
from metricsmith.records import ErrorSpan

__all__ = [
    "NON_TRANSLATION", "SEVERITIES", "TAXONOMY", "MQMWeights", "WeightRule", "category_path", "mqm_score",
    "severity_name", "span_weight",
]  # fmt: skip

SEVERITIES: tuple[str, ...] = ("critical", "major", "minor", "neutral")
"""From the worst to none: critical, major and minor as in GEMBA-MQM V2, neutral (a matter of taste) as in WMT."""

NON_TRANSLATION = "non-translation"
"""The category of a text that is no translation of its source at all; any severity may stand with it."""

TAXONOMY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "accuracy": ("addition", "mistranslation", "omission", "untranslated text"),
        "fluency": ("character encoding", "grammar", "inconsistency", "punctuation", "register", "spelling"),
        "style": ("awkward",),
        "terminology": ("inappropriate for context", "inconsistent use"),
        NON_TRANSLATION: (),
        "other": (),
    }
)
"""Error categories with their sub-categories (GEMBA-MQM V2, section 3, figure 1)."""


@dataclass(frozen=True, slots=True)
class WeightRule:
    """An exception from the weight of a severity.

    Parameters
    ----------
    severity : str
        One of `SEVERITIES`.
    category : str
        Holds for errors whose category is this one or ends in it: ``punctuation`` for ``Fluency/Punctuation`` too.
    weight : float
        Finite, at least 0.
    """

    severity: str
    category: str
    weight: float


@dataclass(frozen=True, slots=True)
class MQMWeights:
    """The weights of errors.

    Parameters
    ----------
    critical, major, minor, neutral : float
        Finite, at least 0.
    rules : tuple of WeightRule
        Exceptions; the first that fits decides.
    non_translation : float or None
        Weight of an error of category `NON_TRANSLATION` of any severity, before any rule. None: it weighs
        as much as its severity.
    max_errors : int, optional
        Count only so many errors, the heaviest. None, the default, counts all: five errors at most was the rule of one
        collection, in others a rating has up to 36.
    cap : float, optional
        Finite, above 0: no text loses more. None, the default, sets no bound: 25 points was the rule of one program.

    Raises
    ------
    OptionError
        If a weight is no finite number from 0, a rule's severity is unknown, or a bound is not allowed.
    """

    critical: float
    major: float
    minor: float
    neutral: float = 0.0
    rules: tuple[WeightRule, ...] = ()
    non_translation: float | None = None
    max_errors: int | None = None
    cap: float | None = None

    def __post_init__(self) -> None:
        for name in SEVERITIES:
            object.__setattr__(self, name, _weight(name, getattr(self, name)))
        rules = tuple(replace(r, weight=_weight(f"of {r.severity} {r.category}", r.weight)) for r in self.rules)
        object.__setattr__(self, "rules", rules)
        if self.non_translation is not None:
            object.__setattr__(self, "non_translation", _weight("non_translation", self.non_translation))
        for rule in self.rules:
            if _plain(rule.severity) not in SEVERITIES:
                raise OptionError(_unknown(rule.severity))
        if self.cap is not None:
            if not (_is_number(self.cap) and 0 < self.cap < math.inf):
                raise OptionError(f"the cap is {self.cap!r}; allowed is a finite number above 0, or None for no bound")
            object.__setattr__(self, "cap", float(self.cap))
        most = self.max_errors
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise OptionError(f"max_errors is {most!r}; allowed is a whole number from 1, or None to count all errors")

    @classmethod
    def gemba(cls, *, max_errors: int | None = None, cap: float | None = None) -> MQMWeights:
        """25, 5 and 1 for critical, major and minor, .1 for minor punctuation (GEMBA-MQM V2, section 3).

        A non-translation weighs as its severity does: the paper gives weights for severities and minor punctuation
        only.
        """
        return cls(25.0, 5.0, 1.0, rules=(_MINOR_PUNCTUATION,), max_errors=max_errors, cap=cap)

    @classmethod
    def wmt(cls, *, max_errors: int | None = None, cap: float | None = None) -> MQMWeights:
        """5 and 1 for major and minor, .1 for minor punctuation, 25 for a non-translation, 0 for neutral.

        Source: Freitag et al. (2021), "Experts, Errors, and Context", arXiv 2104.14478. Critical, which is not among
        its severities, counts as major. Weight 0 would make the worst errors free.
        """
        return cls(
            5.0, 5.0, 1.0, rules=(_MINOR_PUNCTUATION,), non_translation=25.0, max_errors=max_errors, cap=cap
        )  # fmt: skip

    @classmethod
    def named(cls, name: str) -> MQMWeights:
        """`gemba` or `wmt` by its name.

        Raises
        ------
        OptionError
            If it is neither.
        """
        presets = {"gemba": cls.gemba, "wmt": cls.wmt}
        if name not in presets:
            raise OptionError(f"unknown weights {name!r}{nearest(name, presets)}; known are {', '.join(presets)}")
        return presets[name]()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready state."""
        return {**asdict(self), "rules": [asdict(rule) for rule in self.rules]}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> MQMWeights:
        """Rebuild from `to_dict`.

        Raises
        ------
        StateError
            If something is absent, unknown, of the wrong type or not allowed.
        """
        try:
            unknown = sorted(set(state) - {field.name for field in fields(cls)})
            if unknown:
                raise ValueError(f"unknown entry {unknown[0]!r}{nearest(unknown[0], [f.name for f in fields(cls)])}")
            rules = tuple(
                WeightRule(str(rule["severity"]), str(rule["category"]), float(rule["weight"]))
                for rule in state.get("rules", ())
            )
            most = state.get("max_errors")
            critical, major, minor, neutral = (float(state[name]) for name in SEVERITIES)
            return cls(
                critical,
                major,
                minor,
                neutral,
                rules=rules,
                non_translation=_optional(state.get("non_translation")),
                max_errors=None if most is None else int(most),
                cap=_optional(state.get("cap")),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise StateError(
                f"the MQM weights cannot be read ({type(problem).__name__}: {problem}); what MQMWeights.to_dict writes "
                "is needed: write it again"
            ) from problem


_MINOR_PUNCTUATION = WeightRule("minor", "punctuation", 0.1)


def severity_name(name: str) -> str:
    """Returns the one of `SEVERITIES` that a spelling means: ``Major`` is ``major``.

    Raises
    ------
    DataError
        If it is none of them; it names the nearest.
    """
    severity = _plain(name)
    if severity not in SEVERITIES:
        raise DataError(_unknown(name))
    return severity


def span_weight(span: ErrorSpan, weights: MQMWeights) -> float:
    """Returns the weight of one error, 0 or more, before any cap.

    Raises
    ------
    DataError
        If the severity is none of `SEVERITIES`.
    """
    severity = severity_name(span.severity)
    category = category_path(span.category)
    if weights.non_translation is not None and category[-1] == _plain(NON_TRANSLATION):
        return weights.non_translation
    for rule in weights.rules:
        wanted = category_path(rule.category)
        if _plain(rule.severity) == severity and category[-len(wanted) :] == wanted:
            return rule.weight
    return float(getattr(weights, severity))


def mqm_score(spans: Iterable[ErrorSpan], weights: MQMWeights) -> float:
    """Returns the negated sum of the weights of all errors, on either side.

    Weights are added as the decimal numbers they are written as, so that equal sets of weights give equal scores in any
    order, and three times .1 is .3. Statistics that count ties, acc-t above all, would otherwise split what is equal.
    Without the errors on the side of the source, scores would not be those that were published.

    Parameters
    ----------
    spans : iterable of ErrorSpan
        The errors of one text as one rater or judge marked them. An empty one means "no error", not "not judged".
    weights : MQMWeights

    Returns
    -------
    float
        0 without errors, else below 0; never below ``-weights.cap``.

    Raises
    ------
    DataError
        If a severity is none of `SEVERITIES`.

    Examples
    --------
    >>> errors = [ErrorSpan("major", "accuracy/mistranslation")] + 3 * [ErrorSpan("minor", "fluency/punctuation")]
    >>> mqm_score(errors, MQMWeights.wmt()), mqm_score(errors, MQMWeights.wmt(cap=5))
    (-5.3, -5.0)
    """
    costs = sorted((Fraction(str(span_weight(span, weights))) for span in spans), reverse=True)
    total = sum(costs[: weights.max_errors], Fraction(0))
    return float(-total if weights.cap is None else -min(total, Fraction(str(weights.cap))))


def _unknown(name: str) -> str:
    return (
        f"the severity {name!r} is unknown{nearest(_plain(name), SEVERITIES)}; allowed are {', '.join(SEVERITIES)}: "
        "correct it, or map it to one of these first"
    )


def category_path(category: str) -> tuple[str, ...]:
    """Category and sub-categories as they are compared: ``Fluency/Punctuation`` is ``("fluency", "punctuation")``."""
    return tuple(_plain(part) for part in category.split("/"))


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").rstrip("! ").split())


def _weight(name: str, value: object) -> float:
    """Returns a weight as a float, so that equal weights are saved as equal text."""
    if not (_is_number(value) and 0 <= value < math.inf):
        raise OptionError(f"the weight {name} is {value!r}; allowed is a finite number from 0 up: correct it")
    return float(value)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool)


def _optional(value: Any) -> float | None:
    return None if value is None else float(value)
