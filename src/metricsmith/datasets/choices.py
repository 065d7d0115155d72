"""Long tables of choices -> ratings: (item, rater, rating) of people, (item, judge, sample, rating) of judges.

A rating is one option, or with ``|`` between them a response set; a column of sets beside it makes pairs of both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from types import MappingProxyType
from typing import Any

from metricsmith.datasets.cells import cell_number, cell_text, mostly
from metricsmith.datasets.columns import SYNONYMS, normal_name
from metricsmith.datasets.sources import RawTable, open_source
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.rating_model.ratings import Ratings, check_options

__all__ = ["CHOICE_COLUMNS", "GivenRatings", "RatedChoices", "read_rated_choices"]

CHOICE_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "item": ("item", "item_id", "segment", "segment_id", *SYNONYMS["id"]),
    "rater": SYNONYMS["rater"],
    "judge": ("judge", "judge_id", "judge_name", *SYNONYMS["system"]),
    "sample": ("sample", "run", "repetition", "draw"),
    "rating": ("rating", "choice", "option", "label", "answer", "verdict", "vote"),
    "set": ("set", "response_set", "rating_set"),
    "group": SYNONYMS["group"],
}
"""Column names that stand for each role, the likeliest first, in lower case with underscores."""

MOST_OPTIONS = 20  # that are taken from a table without being declared
GivenRatings = Ratings | tuple[Ratings, Ratings]  # choices or response sets; both, choices first
ONE_TABLE = {"rater": "rater", "group": "rater", "judge": "judge", "sample": "judge"}  # roles of one table alone
NO_NAMES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class RatedChoices:
    """People's and judges' ratings of the same items.

    Parameters
    ----------
    options : tuple of str
        Declared, or those that people gave, in order of first appearance.
    human : Ratings or tuple of Ratings
        Choices, response sets, or (choices, sets) in pairs; with the groups of items, where there is such a column.
    judges : mapping of str to the same
    sources : mapping of str to str
        The path and the checksum of each table.
    notes : tuple of str
        What was guessed.
    """

    options: tuple[str, ...]
    human: GivenRatings
    judges: Mapping[str, GivenRatings] = field(repr=False)
    sources: Mapping[str, str]
    notes: tuple[str, ...] = ()


def read_rated_choices(
    human: str | PathLike[str],
    judges: str | PathLike[str] | None = None,
    options: Sequence[str] = (),
    columns: Mapping[str, str] = NO_NAMES,
) -> RatedChoices:
    """Read people's ratings and those of judges.

    Parameters
    ----------
    human : path
        A table with columns of items, raters and ratings, and perhaps of response sets and groups of items. A blank
        rating is missing, and counted.
    judges : path, optional
        A table with columns of items, judges and ratings, and perhaps of samples and response sets; without samples a
        judge's rows on an item are numbered. A blank rating is an invalid answer, and counted.
    options : sequence of str
        At least two; by default those that people gave.
    columns : mapping of str to str
        Names of columns by role, for whichever table has them; others are guessed from `CHOICE_COLUMNS`.

    Raises
    ------
    DataError
        If a column is not there, a label is blank, a rating is no option, someone rated an item twice, a choice is not
        in its set, an item is in two groups, ratings are numbers on a scale, or both tables are the same.
    OptionError
        If a role is unknown or of a table that was not given, or options are fewer than two.
    """
    if options:
        check_options(options)
    tables = {"rater": open_source(human)} | ({} if judges is None else {"judge": open_source(judges)})
    for role, name in columns.items():
        if role not in CHOICE_COLUMNS:
            known = ", ".join(CHOICE_COLUMNS)
            raise OptionError(f"no role {role!r} of a column{nearest(role, CHOICE_COLUMNS)}; roles are {known}")
        homes = [raw for who, raw in tables.items() if ONE_TABLE.get(role, who) == who]
        if not homes:
            raise OptionError(f"--column {role}={name}: no table of judges was given; leave this column out")
        if not any(name in raw.columns for raw in homes):
            homes[0].require(name, f"columns={{{role!r}: ...}} (--column {role}=NAME)")
    if len({raw.checksum for raw in tables.values()}) < len(tables):
        raise DataError(
            f"{tables['judge'].name} holds the same rows as people's table: people would be their own judges; give the "
            "judges' ratings"
        )
    found = {who: _roles(raw, who, columns) for who, raw in tables.items()}
    seen = tuple(options) or _options(tables["rater"], found["rater"])
    by = {who: _ratings(raw, found[who], who, seen) for who, raw in tables.items()}
    guessed = {
        who: ", ".join(f"{role} {name!r}" for role, name in roles.items() if columns.get(role) != name)
        for who, roles in found.items()
    }
    notes = [note for raw in tables.values() for note in raw.notes]
    notes += [
        f"{tables[who].name}: columns guessed: {names} (--column ROLE=NAME)" for who, names in guessed.items() if names
    ]
    notes += [] if options else [f"options are those that people gave: {', '.join(seen)} (declare them with --options)"]
    if len(set(tables["rater"].texts(found["rater"]["rater"]))) == 1:
        notes.append("one rater only: nothing tells this rater's errors from disagreement that is right")
    if judges is not None:
        rated, judged = (set(raw.texts(found[who]["item"])) for who, raw in tables.items())
        if judged - rated:
            notes.append(f"{len(judged - rated)} of {len(judged)} items that judges rated have no row of people's")
    sources = {
        name: f"{raw.name} sha256:{raw.checksum}"
        for name, raw in zip(("people", "judges"), tables.values(), strict=False)
    }
    return RatedChoices(seen, by["rater"][""], by.get("judge", {}), sources, tuple(notes))


def _roles(raw: RawTable, who: str, named: Mapping[str, str]) -> dict[str, str]:
    """The column of each role that the table has."""
    folded = {normal_name(name): name for name in reversed(raw.columns)}
    found = dict[str, str]()
    for role in ("item", who, "rating", "set", "sample" if who == "judge" else "group"):
        fitting = (folded[name] for name in CHOICE_COLUMNS[role] if name in folded)
        own = named[role] if named.get(role) in raw.columns else next(fitting, None)
        if own is not None:
            found[role] = own
        elif role in ("item", who) or (role == "set" and "rating" not in found):
            lacking = "rating" if role == "set" else role
            counts = "; for counts of choices take metricsmith.rating_model.Ratings.from_counts in Python"
            raise DataError(
                f"{raw.name}: no column of the {lacking}s; the columns are {', '.join(list(raw.columns)[:20])}; "
                f"recognised are {', '.join(CHOICE_COLUMNS[lacking][:6])}: name it with --column {lacking}=NAME"
                f"{counts * (role == 'rater')}"
            )
    return found


def _given(cell: Any) -> list[str]:
    """The options in a cell: of a list, or between ``|``."""
    parts = cell if isinstance(cell, list) else cell_text(cell).split("|")
    return [text for part in parts if (text := cell_text(part).strip())]


def _options(raw: RawTable, roles: Mapping[str, str]) -> tuple[str, ...]:
    """The options that were given, unless these are no options."""
    cells = [cell for role in ("rating", "set") if role in roles for cell in raw.columns[roles[role]]]
    seen = list(dict.fromkeys(option for cell in cells for option in _given(cell)))
    if len(seen) < 2:
        raise DataError(f"{raw.name}: people gave {seen or 'no option'} alone; declare all options with --options")
    numbers = len(seen) > 2 and mostly(cell_number, cells)
    if numbers or len(seen) > MOST_OPTIONS:
        raise DataError(
            f"{raw.name}: the ratings are {len(seen)} different {'numbers' if numbers else 'texts'}, such as "
            f"{', '.join(seen[:3])}; here a rating is a choice among options. If these are options, declare them with "
            "--options; for ratings on a scale take `metricsmith compare`, or metricsmith.stats.agreement in Python"
        )
    return tuple(seen)


def _ratings(raw: RawTable, roles: Mapping[str, str], who: str, options: Sequence[str]) -> dict[str, GivenRatings]:
    """The ratings by judge; people's under the empty name."""
    items, names = (_filled(raw, roles[role], role) for role in ("item", who))
    samples = _filled(raw, roles["sample"], "sample") if "sample" in roles else ()
    groups = _groups(raw, roles["group"], items) if "group" in roles else None
    sets_alone = "set" not in roles and any(len(_given(cell)) > 1 for cell in raw.columns[roles["rating"]])
    rows: dict[str, dict[tuple[str, str], tuple[str | None, frozenset[str] | None]]] = {}
    numbers = Counter[tuple[str, str]]()
    for index, (item, name) in enumerate(zip(items, names, strict=True)):
        own = rows.setdefault(name if who == "judge" else "", {})
        numbers[item, name] += 1
        place = item, samples[index] if samples else str(numbers[item, name]) if who == "judge" else name
        if place in own:
            again = f" as sample {place[1]!r}" * (who == "judge")
            raise DataError(f"{raw.place(index)}: {name!r} rated item {item!r}{again} before: keep one of the two")
        own[place] = _rating(raw, index, roles, sets_alone, options)
    by = dict[str, GivenRatings]()
    for judge, own in rows.items():
        kinds = [many for many in (False, True) if any(rating[many] for rating in own.values())] or [sets_alone]
        parts = [
            Ratings.from_rows(
                [(*place, rating[many]) for place, rating in own.items()], options, sets=many, groups=groups
            )
            for many in kinds
        ]
        by[judge] = parts[0] if len(parts) == 1 else (parts[0], parts[1])
    return by


def _rating(
    raw: RawTable, index: int, roles: Mapping[str, str], sets_alone: bool, options: Sequence[str]
) -> tuple[str | None, frozenset[str] | None]:
    """The choice and the response set of a row."""
    given = {role: _given(raw.columns[roles[role]][index]) for role in ("rating", "set") if role in roles}
    unknown = [(role, name) for role, own in given.items() for name in own if name not in options]
    if unknown:
        role, name = unknown[0]
        raise DataError(
            f"{raw.place(index, roles[role])}: {name!r} was not declared{nearest(name, options)}; options are "
            f"{', '.join(options)}: correct it, declare it with --options, or leave it blank if the answer is invalid"
        )
    choice, chosen = given.get("rating", []), frozenset(given.get("set", []))
    if sets_alone:
        return None, frozenset(choice) or None
    if len(choice) > 1 or (chosen and not chosen.issuperset(choice)):
        raise DataError(
            f"{raw.place(index, roles['rating'])}: {'|'.join(choice)!r} is no choice out of the set {sorted(chosen)}: "
            "give one of its options, or leave both blank where the answer is invalid"
        )
    return next(iter(choice), None), chosen or None


def _filled(raw: RawTable, column: str, role: str) -> tuple[str, ...]:
    """The texts of a column without blanks."""
    texts = raw.texts(column)
    if "" in texts:
        raise DataError(
            f"{raw.place(texts.index(''), column)}: the {role} is blank; every rating needs one: fill it in"
        )
    return texts


def _groups(raw: RawTable, column: str, items: Sequence[str]) -> dict[Hashable, Hashable]:
    """The one group of each item."""
    groups = dict[Hashable, Hashable]()
    for index, (item, group) in enumerate(zip(items, _filled(raw, column, "group"), strict=True)):
        if groups.setdefault(item, group) != group:
            raise DataError(
                f"{raw.place(index, column)}: item {item!r} is in group {group!r}, before in {groups[item]!r}; an item "
                "has one group: correct it, or name the column with --column group=NAME"
            )
    return groups
