"""Historical ratings: what people said about older systems' outputs on a test set that stays the same."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import combinations
from numbers import Real
from typing import Any

import dspy

from metricsmith.datasets.table import Table
from metricsmith.errors import DataError
from metricsmith.metric import labels_of, make_row
from metricsmith.mqm import severity_name
from metricsmith.records import ErrorSpan, Scale

__all__ = ["HistoricalRating", "History", "equal_systems", "joined_systems"]

TEXTS = ("source", "system", "output", "rater", "segment", "document")
SHARED = 2  # segments that two systems have in common, at the least, to be called the same


@dataclass(frozen=True, slots=True)
class HistoricalRating:
    """One rating of one system's output on one source.

    Parameters
    ----------
    source, output : str
        The texts; neither source nor system may be blank.
    system : str
        The author of the output.
    rater : str
        Empty where nobody knows.
    rating : float, optional
        On the history's scale.
    spans : tuple of ErrorSpan, optional
        The marked errors, of severities that `metricsmith.mqm.SEVERITIES` has; empty says that there is none, None that
        nobody marked any. A rating has a number or spans.
    segment, document : str
        The place of the source in the test set, for intervals; empty where nobody knows.
    """

    source: str
    system: str
    output: str
    rater: str = ""
    rating: float | None = None
    spans: tuple[ErrorSpan, ...] | None = None
    segment: str = ""
    document: str = ""

    def __post_init__(self) -> None:
        for name in TEXTS:
            if not isinstance(getattr(self, name), str):
                raise DataError(
                    f"{name}={getattr(self, name)!r:.60} of a rating is no text: give one, empty if unknown"
                )
        what = f"the rating of {self.system!r} by {self.rater!r} on {self.source[:40]!r}"
        if not self.source.strip() or not self.system.strip():
            raise DataError(f"{what} lacks its source or its system: examples are found by them; fill them in")
        if self.rating is None and self.spans is None:
            raise DataError(f"{what} has neither a number nor marked errors: leave it out")
        if not isinstance(self.rating, Real | None):
            raise DataError(
                f"{what} is {self.rating!r:.60}, which is no number: give one, or None beside marked errors"
            )
        if not all(isinstance(span, ErrorSpan) for span in self.spans or ()):
            raise DataError(f"{what} has marks that are no ErrorSpan: ErrorSpan('major', start=0, end=4, text='Haus')")
        for span in self.spans or ():
            severity_name(span.severity)
            text = self.source if span.side == "source" else self.output
            if span.start is not None and not 0 <= span.start <= (span.end or 0) <= len(text):
                raise DataError(
                    f"{what} marks {span.start}:{span.end} in a {span.side} of {len(text)} characters: offsets count "
                    "from 0, the end is exclusive, and the text must be the one that was marked"
                )


@dataclass(frozen=True, eq=False)
class History:
    """Ratings that a specialist's examples are chosen from. It is never changed, and copies of a judge share it.

    Parameters
    ----------
    ratings : tuple of HistoricalRating, length n
        At least one. Their order is the order of a segment's raters.
    name : str
        Where they come from.
    scale : Scale, optional
        Of the numbers; None where there are none.

    Raises
    ------
    DataError
        If there is no rating, a number is not on the scale, or has none.
    """

    ratings: tuple[HistoricalRating, ...] = field(repr=False)
    name: str = "history"
    scale: Scale | None = None

    def __post_init__(self) -> None:
        if not self.ratings:
            raise DataError(f"{self.name} has no rating to learn from: give rows with a source, a system and a rating")
        for one in self.ratings:
            if one.rating is not None and (self.scale is None or not self.scale.contains(one.rating)):
                raise DataError(
                    f"rating {one.rating!r} of {one.system!r} is not on the scale {self.scale}: give its scale"
                )

    @classmethod
    def from_table(cls, table: Table, *, by_rater: bool = False) -> History:
        """The rated rows of a table that says which system wrote each output.

        Parameters
        ----------
        table : Table
            As `read_wmt_mqm` gives it (a row is a rating, with its ``spans``), or as `read_table` does.
        by_rater : bool
            Of a table whose ratings were averaged over raters, take each rater's own (`Table.people`); by default a
            row is an output with its average and without a rater.

        Raises
        ------
        DataError
            If no row is rated, or a rated one has no input or no system.
        """
        if not any(row.get("system") for row in table.rows):
            raise DataError(f"{table.name} does not say which system wrote an output: name its column with system=...")
        found = []
        for place, (row, rating) in enumerate(zip(table.rows, table.ratings.tolist(), strict=True)):
            if math.isnan(rating):
                continue
            labels = labels_of(row, ("input", "system", "rater", "group", "doc"))
            single = dict(table.people.ratings[place]) if by_rater and table.people is not None else {}
            found += [
                HistoricalRating(
                    source=labels["input"], system=labels["system"], output=str(row.output), rater=rater,
                    rating=float(number), spans=row.get("spans"), segment=labels["group"], document=labels["doc"],
                )
                for rater, number in (single or {labels["rater"]: rating}).items()
            ]  # fmt: skip
        return cls(tuple(found), table.source, table.task.scale)

    def __len__(self) -> int:
        return len(self.ratings)

    def __deepcopy__(self, memo: Any) -> History:
        return self

    @cached_property
    def checksum(self) -> str:
        """16 hex digits over everything in it but its name."""
        state = {key: value for key, value in self.to_state().items() if key != "name"}
        return hashlib.sha256(
            json.dumps(state, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
        ).hexdigest()[:16]

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """All systems, in the order in which they first appear."""
        return tuple(dict.fromkeys(one.system for one in self.ratings))

    @cached_property
    def raters(self) -> tuple[str, ...]:
        """All raters that are known, in the order in which they first appear."""
        return tuple(dict.fromkeys(one.rater for one in self.ratings if one.rater))

    @cached_property
    def of_source(self) -> Mapping[str, tuple[int, ...]]:
        """The places of the ratings of each source, in order."""
        places: dict[str, list[int]] = defaultdict(list)
        for place, one in enumerate(self.ratings):
            places[one.source].append(place)
        return {source: tuple(found) for source, found in places.items()}

    @cached_property
    def outputs(self) -> dict[str, dict[tuple[str, str], str]]:
        """The output of each system by segment and source: a segment may be a group of several sources.

        White space around an output is left out, as some readers do: it tells no two systems apart.
        """
        texts: dict[str, dict[tuple[str, str], str]] = {}
        for one in self.ratings:
            texts.setdefault(one.system, {}).setdefault((one.segment, one.source), one.output.strip())
        return texts

    def rows(self) -> list[dspy.Example]:
        """One row by rating, n in all, whose inputs are the texts, the system and the rater.

        So DSPy's evaluation and optimisers hand both on to a specialist. Labels are ``id``, ``group`` (the segment, or
        the source where it has no name), ``doc``, ``rating`` and ``spans``, those that there are.
        """
        rows = []
        for place, one in enumerate(self.ratings):
            labels: dict[str, Any] = {"doc": one.document, "rating": one.rating, "spans": one.spans}
            row = make_row(
                one.output, input=one.source, id=str(place), group=one.segment or one.source, system=one.system,
                rater=one.rater, **{name: value for name, value in labels.items() if value not in (None, "")},
            )  # fmt: skip
            rows.append(row.with_inputs("input", "output", "system", "rater"))
        return rows

    def to_state(self) -> dict[str, Any]:
        """JSON-ready state from which `from_state` builds an equal history; made once, not to be changed."""
        return self._state

    @cached_property
    def _state(self) -> dict[str, Any]:
        texts = {
            text: place
            for place, text in enumerate(dict.fromkeys(t for r in self.ratings for t in (r.source, r.output)))
        }
        ratings = [
            {
                "source": texts[one.source], "output": texts[one.output], "system": one.system, "rater": one.rater,
                "rating": None if one.rating is None else float(one.rating), "segment": one.segment,
                "document": one.document,
                "spans": None if one.spans is None else [asdict(span) for span in one.spans],
            }
            for one in self.ratings
        ]  # fmt: skip
        scale = None if self.scale is None else asdict(self.scale)
        return {"kind": "history", "name": self.name, "scale": scale, "texts": list(texts), "ratings": ratings}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> History:
        """Build a history from `to_state`'s result.

        Raises
        ------
        DataError
            If a rating is not usable, or rests on a text that is not there.
        """
        texts = state["texts"]
        ratings = []
        for one in state["ratings"]:
            if max(one["source"], one["output"]) >= len(texts):
                raise DataError(f"a rating of {one['system']!r} rests on a text that the history does not hold")
            spans = None if one["spans"] is None else tuple(ErrorSpan(**span) for span in one["spans"])
            ratings.append(
                HistoricalRating(
                    **{**one, "source": texts[one["source"]], "output": texts[one["output"]], "spans": spans}
                )
            )
        return cls(tuple(ratings), state["name"], None if state["scale"] is None else Scale(**state["scale"]))


def equal_systems(outputs: Mapping[str, Mapping[Any, str]]) -> list[tuple[str, str, int]]:
    """Pairs of systems that have equal outputs wherever both have one, in two places at the least.

    Parameters
    ----------
    outputs : mapping
        For each system its outputs, by segment.

    Returns
    -------
    list of (str, str, int)
        Both systems, in the order given, and the number of segments that they share.
    """
    pairs = []
    for one, other in combinations(outputs, 2):
        shared = outputs[one].keys() & outputs[other].keys()
        if len(shared) >= SHARED and all(outputs[one][item] == outputs[other][item] for item in shared):
            pairs.append((one, other, len(shared)))
    return pairs


def joined_systems(history: History, rows: Iterable[dspy.Example] = ()) -> dict[str, str]:
    """The systems that are one with others: each with the name of the first of them, by name.

    Parameters
    ----------
    history : History
    rows : sequence of dspy.Example
        Outputs of systems to be judged, with ``system``, ``input`` and ``output``: they may equal one of the history.
        Where a source stands in several segments, the row's ``group`` says in which; rows that do not say so are not
        compared there.

    Returns
    -------
    dict of str to str
        Only those that are joined with another. Systems that equal a third one are joined, too.
    """
    outputs = {system: dict(texts) for system, texts in history.outputs.items()}
    segments: dict[str, set[str]] = defaultdict(set)
    for one in history.ratings:
        segments[one.source].add(one.segment)
    for row in rows:
        system, source, group = labels_of(row, ("system", "input", "group")).values()
        if system and system not in history.outputs:
            known = segments.get(source, set())
            for segment in known & {group} or (known if len(known) == 1 else ()):
                outputs.setdefault(system, {}).setdefault((segment, source), str(row.output).strip())
    names: dict[str, set[str]] = {}
    for first, second, _ in equal_systems(outputs):
        joined = names.get(first, {first}) | names.get(second, {second})
        names.update(dict.fromkeys(joined, joined))
    return {system: min(joined) for system, joined in names.items()}
