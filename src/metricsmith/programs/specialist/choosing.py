"""The choice of a row's examples: pure, seeded, and the same for a row whatever stands beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.history import HistoricalRating, History
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.metric import content_hash

__all__ = ["Choice", "Chooser", "ExamplePolicy", "Judged", "NoExample"]

SourceOf = Literal["same", "shuffled", "fixed", "augmented", "none"]
RaterOf = Literal["same", "other", "any", "merged"]
ALLOWED: Mapping[str, tuple[str, ...]] = {
    "source": get_args(SourceOf),
    "rater": get_args(RaterOf),
    "same_output": ("drop", "keep"),
    "twins": ("first", "both"),
}


@dataclass(frozen=True, slots=True)
class ExamplePolicy:
    """The rule by which a row gets its examples.

    No rule shows a rating of the row's own system, or of one that is the same system under another name
    (`metricsmith.datasets.history.joined_systems`), whatever the source.

    Parameters
    ----------
    source : "same", "shuffled", "fixed", "augmented" or "none"
        ``same``: ratings of other outputs of the row's source. ``shuffled``: ratings drawn from all other sources;
        ``fixed``: those of one other source; both as many as there are other systems on the row's source.
        ``augmented``: shuffled ones, then those of the same source. ``none``: no examples.
    rater : "same", "other", "any" or "merged"
        ``same``: by the row's rater. ``other``: by the next of the segment's raters in the history's order, the first
        one after the last. ``merged``: by all but the row's rater. ``any``: by all.
    same_output : "drop" or "keep"
        Whether examples stay that equal the row in source and output, the output of another system. In the paper's
        main figures they do; where they do, a judge may copy the answer.
    twins : "first" or "both"
        Of systems that are one, whether the first by name alone is shown to the rows of others, or all of them.
    max_examples : int, optional
        At most so many. Fewer are always the first of more.
    max_tokens : int, optional
        At most so many tokens of examples, as `metricsmith.model_calls.limits.estimate_tokens` counts them; examples
        are left out from the end.
    seed : int
        Of the order, and of what is drawn.

    Raises
    ------
    OptionError
        If an option has no meaning.

    References
    ----------
    Finkelstein et al. (2025), "From Jack of All Trades to Master of One", sections 3, 4.2, 5.3 and B.2.
    """

    source: SourceOf = "same"
    rater: RaterOf = "same"
    same_output: Literal["drop", "keep"] = "drop"
    twins: Literal["first", "both"] = "first"
    max_examples: int | None = None
    max_tokens: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, allowed in ALLOWED.items():
            value = getattr(self, name)
            if value not in allowed:
                raise OptionError(
                    f"unknown {name}={value!r}{nearest(str(value), allowed)}; allowed are {', '.join(allowed)}"
                )
        for name in ("max_examples", "max_tokens"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise OptionError(f"{name}={value!r} must be a whole number from 1, or None for no bound")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise OptionError(f"seed={self.seed!r} must be a whole number")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values, which the constructor takes."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Judged:
    """The texts and labels of a row to be judged, by which its examples are chosen; unknown labels are empty.

    White space around a label does not count, as in tables: a system would not be known as the history's otherwise.
    """

    source: str
    output: str
    system: str = ""
    rater: str = ""

    def __post_init__(self) -> None:
        for name in ("system", "rater"):
            object.__setattr__(self, name, getattr(self, name).strip())


@dataclass(frozen=True, slots=True)
class Choice:
    """The examples of one row.

    Parameters
    ----------
    places : tuple of int
        In the history, in the order in which they are shown.
    candidates : int
        Ratings of the row's source, and those that were drawn from others.
    excluded : mapping of str to int
        The number of these that are not shown, by reason.
    fallbacks : tuple of str
        The rules that could not be followed.
    """

    places: tuple[int, ...] = ()
    candidates: int = 0
    excluded: Mapping[str, int] = field(default_factory=dict)
    fallbacks: tuple[str, ...] = ()


class NoExample(DataError):
    """No example may be shown for a row; the judgement is ``skipped`` with this reason."""


class Chooser:
    """Chooses examples by a policy.

    Parameters
    ----------
    history : History
    policy : ExamplePolicy
    joined : mapping of str to str
        The systems that are one with others (`metricsmith.datasets.history.joined_systems`).
    """

    def __init__(self, history: History, policy: ExamplePolicy, joined: Mapping[str, str]) -> None:
        self.history, self.policy, self.joined = history, policy, joined

    def choose(self, row: Judged) -> Choice:
        """The examples of a row, which follow from its texts and labels, the history and the policy alone.

        Raises
        ------
        NoExample
            If the history has no rating of the row's source, or none that may be shown.
        """
        if self.policy.source == "none":
            return Choice()
        own = self.history.of_source.get(row.source, ())
        if not own:
            raise NoExample(
                f"no rating of the source {row.source[:60]!r} in {self.history.name}: a specialist judges the test set "
                "of its history; leave the row out, or judge it without a specialist"
            )
        raters, fallbacks = self._raters(row, own)
        reasons = {place: self._reason(place, row, raters) for place in own}
        if raters is not None and not any(reason == "" for reason in reasons.values()):
            raters, fallbacks = None, (*fallbacks, "no rating by the wanted rater: any rater's are shown")
            reasons = {place: self._reason(place, row, None) for place in own}
        same = [place for place in self._order("same", row.source, row.rater, own) if not reasons[place]]
        excluded = Counter(filter(None, reasons.values()))
        drawn = self._drawn(row, same, raters)
        chosen = drawn + same * (self.policy.source in ("same", "augmented"))
        if self.policy.source in ("shuffled", "fixed"):
            excluded["of the row's source"] = len(same)
        if not chosen:
            why = ", ".join(f"{count} {reason}" for reason, count in excluded.items())
            raise NoExample(f"no example may be shown for {row.system!r} on the source {row.source[:60]!r}: {why}")
        most = self.policy.max_examples
        if most is not None and len(chosen) > most:
            excluded["beyond max_examples"], chosen = len(chosen) - most, chosen[:most]
        return Choice(tuple(chosen), len(own) + len(drawn), dict(excluded), fallbacks)

    def _drawn(self, row: Judged, same: Sequence[int], raters: frozenset[str] | None) -> list[int]:
        """Examples of other sources in order, as many as there are systems in `same`, those of the row's source."""
        wanted = len({self._ratings[place].system for place in same})
        if self.policy.source == "same":
            return []
        if self.policy.source == "fixed":
            return self._fixed(row, wanted, raters)
        shuffled: list[int] = []
        for place in self._order("shuffled", row.source, row.rater, range(len(self.history))):
            if len(shuffled) == wanted:
                break
            if self._ratings[place].source != row.source and not self._reason(place, row, raters):
                shuffled.append(place)
        return shuffled

    def _fixed(self, row: Judged, wanted: int, raters: frozenset[str] | None) -> list[int]:
        """Ratings of one other source: of the first in a random order that has so many, or else of that with most."""
        best: list[int] = []
        sources = [source for source in self.history.of_source if source != row.source]
        for number in self._order("fixed", row.source, row.rater, range(len(sources))):
            places = self.history.of_source[sources[number]]
            found = [place for place in places if not self._reason(place, row, raters)]
            best = max(best, found, key=len)
            if len(best) >= wanted:
                break
        return list(self._order("same", row.source, row.rater, best))[:wanted]

    def _raters(self, row: Judged, own: Sequence[int]) -> tuple[frozenset[str] | None, tuple[str, ...]]:
        """The raters whose ratings may be shown, None for all; and what could not be followed."""
        fallbacks = () if row.system else ("the row names no system: every equal output is left out",)
        if self.policy.rater == "any":
            return None, fallbacks
        if not row.rater:
            return None, (*fallbacks, "the row names no rater: any rater's are shown")
        if self.policy.rater == "same":
            return frozenset({row.rater}), fallbacks
        if self.policy.rater == "merged":
            return frozenset(self.history.raters) - {row.rater}, fallbacks
        known = list(dict.fromkeys(self._ratings[place].rater for place in own))
        if row.rater not in known:
            return frozenset(known), (*fallbacks, "the row's rater did not rate its source: any rater's are shown")
        return frozenset({known[(known.index(row.rater) + 1) % len(known)]}) - {row.rater}, fallbacks

    def _reason(self, place: int, row: Judged, raters: frozenset[str] | None) -> str:
        """The reason why a rating may not be shown for a row; empty if it may."""
        one = self._ratings[place]
        if row.system and one.system == row.system:
            return "of the row's own system"
        if row.system and self._unit(one.system) == self._unit(row.system):
            return "of a system that equals the row's"
        equal = one.output.strip() == row.output.strip() and one.source == row.source
        if equal and (not row.system or self.policy.same_output == "drop"):
            return "of an equal output"
        if raters is not None and one.rater not in raters:
            return "by another rater"
        if place in self._second:
            return "of a system that equals another one shown"
        return ""

    def _unit(self, system: str) -> str:
        return self.joined.get(system, system)

    @property
    def _ratings(self) -> tuple[HistoricalRating, ...]:
        return self.history.ratings

    @cached_property
    def _second(self) -> frozenset[int]:
        """Ratings of the same output by the same rater whose system equals one earlier by name."""
        if self.policy.twins == "both":
            return frozenset()
        keys = {
            place: (one.source, one.output, one.rater, self._unit(one.system))
            for place, one in enumerate(self._ratings)
            if one.system in self.joined
        }
        first: dict[tuple[str, str, str, str], str] = {}
        for place, key in keys.items():
            first[key] = min(first.get(key, self._ratings[place].system), self._ratings[place].system)
        return frozenset(place for place, key in keys.items() if self._ratings[place].system != first[key])

    def _order(self, what: str, source: str, rater: str, places: Sequence[int]) -> Iterator[int]:
        """The places in a random order that follows from the seed, the row's source and its rater.

        The systems of a source share it, so that their prompts begin alike and a provider's cache serves them.
        """
        for number in _permutation(self.policy.seed, what, source, rater, len(places)):
            yield places[int(number)]


@lru_cache(maxsize=512)
def _permutation(seed: int, what: str, source: str, rater: str, count: int) -> NDArray[np.int32]:
    random = np.random.default_rng(int(content_hash("examples", seed, what, source, rater), 16))
    return random.permutation(count).astype(np.int32)  # a fifth of the memory of a tuple
