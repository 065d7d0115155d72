"""A grid of settings: what differs between its cells, which tables they form, and what all are held against."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import chain, product
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from metricsmith.datasets.table import read_table
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.optimizers.fitting import REGRESSIONS
from metricsmith.optimizers.options import FAMILIES
from metricsmith.programs.recommenders.named import RETRIEVALS

__all__ = ["MEASURES", "PRESETS", "Grid", "SettingTable", "Setting", "preset", "read_grid"]

MEASURES = ("metric", "candidates", "retrieval")
PRESETS = ("table3", "table6", "table8", "figure4")
"""Grids of the AutoMetrics paper, by the number of the table or figure that they remake."""


@dataclass(frozen=True)
class Setting:
    """The options of an induction that a grid may vary; None leaves what the optimizer has.

    Parameters
    ----------
    label : str
        By default what differs from the grid's base, such as ``k=5, cards=brief``; `rows` is no part of it. In a grid
        that was read, settings that are equal but for `rows` have one label, and others another.
    bank : str, optional
        ``existing``, ``generated``, ``full`` (both; ``all`` for an induction) or ``none``.
    k, n : int, optional
    regression : str, optional
        ``auto`` or ``pls``.
    cards : str, optional
        What retrieval sees of a metric: ``whole``, or ``brief``, its name and one sentence.
    retrieval : str, optional
        The ways to rank cards, first to last: ``bm25``, ``colbert``, ``model``, ``bm25 model``, ``colbert model``.
    generators : mapping of str to int, optional
    panel : bool, optional
    rows : int
        Learning rows; 0 for all that the test set leaves.
    """

    label: str = ""
    bank: str | None = None
    k: int | None = None
    n: int | None = None
    regression: str | None = None
    cards: str | None = None
    retrieval: str | None = None
    generators: Mapping[str, int] | None = None
    panel: bool | None = None
    rows: int = 0


@dataclass(frozen=True)
class SettingTable:
    """One table of a grid."""

    title: str
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class Grid:
    """Settings in tables, repeated with several seeds on every data set.

    Parameters
    ----------
    title : str
    parts : tuple of SettingTable
        The same setting may stand in several; it is run once.
    reference : Setting
        Each cell is held against the cell of this setting with the same data, number of learning rows and seed.
    measure : str
        One of `MEASURES`.
    seeds : int
    test : float
        Share of the rated rows in each test set, by group.
    data : mapping of str to mapping
        By the name of a data set: the options of `read_table` for its columns, which go before those of the caller.
    """

    title: str
    parts: tuple[SettingTable, ...]
    reference: Setting
    measure: str = "metric"
    seeds: int = 5
    test: float = 0.3
    data: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


def read_grid(path: str | PathLike[str]) -> Grid:
    """Read a grid from a TOML file, or one of the paper's by its name.

    ::

        title = "How many metrics"       # any text
        measure = "metric"               # or candidates, retrieval
        seeds = 5
        test = 0.3
        reference = {k = 30}             # on top of the base; by default the base itself
        [base]                           # a setting that all others start from
        bank = "full"
        [[parts]]                        # a table each: a list of settings,
        title = "Cards"
        cells = [{k = 20}, {k = 20, cards = "brief", label = "without cards"}]
        [[parts]]
        title = "Sizes"
        [parts.vary]                     # or all combinations of lists of values
        k = [5, 30]
        n = [1, 5]
        [data.notices]                   # options of `read_table`, for the data set of this name
        target = "rating"

    Parameters
    ----------
    path : path
        Or one of `PRESETS`, such as ``"table3"``, which goes before a file of that name.

    Raises
    ------
    DataError
        If the file cannot be read, or a key or value has no meaning; its place is named (``parts[2].cells[1].k``).
    """
    if path in PRESETS:
        return preset(str(path))
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise DataError(
            f"the grid {path} cannot be read: {why}; name a TOML file in UTF-8, or a grid of the paper: "
            f"{', '.join(PRESETS)}"
        ) from problem
    return _Source(str(path)).grid(text)


def preset(name: str) -> Grid:
    """One of `PRESETS`; `OptionError` for another name."""
    if name not in PRESETS:
        raise OptionError(
            f"no preset {name!r}{nearest(name, PRESETS)}; there are {', '.join(PRESETS)}: name one, or a file GRID.toml"
        )
    return _Source(f"preset {name}").grid((files(__package__) / "presets" / f"{name}.toml").read_text("utf-8"))


@dataclass(frozen=True)
class _Allowed:
    """The values that a key may have: a test, what it lets through in words, and names to be near to."""

    holds: Callable[[Any], bool]
    words: str
    names: Sequence[str] = ()

    @classmethod
    def of(cls, *names: str) -> _Allowed:
        return cls(lambda value: value in names, f"one of {', '.join(names)}", names)

    @classmethod
    def whole(cls, least: int) -> _Allowed:
        return cls(lambda value: type(value) is int and value >= least, f"a whole number from {least}")


_TEXT = _Allowed(lambda value: isinstance(value, str) and bool(value.strip()), "a text that is not blank")
_TABLE = _Allowed(lambda value: isinstance(value, dict), "a table of keys")
_TABLES = _Allowed(
    lambda value: isinstance(value, list) and bool(value) and all(map(_TABLE.holds, value)),
    "a list of one table of keys or more",
)
_LIST = _Allowed(lambda value: isinstance(value, list) and bool(value), "a list of one value or more")
_SETTING: Mapping[str, _Allowed] = {
    "label": _TEXT,
    "bank": _Allowed.of("existing", "generated", "full", "none"),
    "k": _Allowed.whole(1),
    "n": _Allowed.whole(1),
    "regression": _Allowed.of(*REGRESSIONS),
    "cards": _Allowed.of("whole", "brief"),
    "retrieval": _Allowed.of(*RETRIEVALS),
    "generators": _TABLE,
    "panel": _Allowed(lambda value: isinstance(value, bool), "true or false"),
    "rows": _Allowed.whole(0),
}
_APART = ("label", "rows")  # of a setting: its name, and what goes before all that it says
_GRID: Mapping[str, _Allowed] = {
    "title": _TEXT,
    "measure": _Allowed.of(*MEASURES),
    "seeds": _Allowed.whole(1),
    "test": _Allowed(lambda value: isinstance(value, float) and 0 < value < 1, "a share above 0 and below 1"),
    "reference": _TABLE,
    "base": _TABLE,
    "parts": _TABLES,
    "data": _TABLE,
}
_PART: Mapping[str, _Allowed] = {"title": _TEXT, "cells": _TABLES, "vary": _TABLE}
_COLUMNS: Mapping[str, _Allowed] = {
    name: _Allowed(
        lambda value: isinstance(value, str | bool) or (isinstance(value, list) and all(map(_TEXT.holds, value))),
        "a text, a list of texts, true or false",
    )
    for name in set(inspect.signature(read_table).parameters) - {"source", "min_rated", "require_target", "usual"}
}


@dataclass(frozen=True)
class _Source:
    """The text of a grid, known by a name for its errors."""

    name: str

    def grid(self, text: str) -> Grid:
        """The grid that stands there."""
        try:
            given = tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            raise DataError(f"{self.name} is no TOML: {problem}; correct the file") from problem
        self.check("", given, _GRID, needed=("title", "parts"))
        base, reference = given.get("base", {}), given.get("reference", {})
        for place, own in (("base", base), ("reference", reference)):
            self.check_setting(place, own, without="rows")
        for name, columns in given.get("data", {}).items():
            self.check("data", {name: columns}, {name: _TABLE})
            self.check(f"data.{name}", columns, _COLUMNS)
        tables = [self.cells(f"parts[{number}]", part) for number, part in enumerate(given["parts"], 1)]
        first = {key: value for key, value in base.items() if key == "label"}
        labels = self.labels(base, [("base", first), ("reference", reference), *chain.from_iterable(tables)])

        def setting(cell: Mapping[str, Any]) -> Setting:
            return Setting(**{**base, **cell, "label": labels[_identity(base, cell)]})

        parts = tuple(
            SettingTable(part["title"], tuple(setting(cell) for _, cell in table))
            for part, table in zip(given["parts"], tables, strict=True)
        )
        against, settings = setting(reference), [one for part in parts for one in part.settings]
        if all(one.label != against.label for one in settings):
            told = "is" if "reference" in given else "is not given, and by default the base itself,"
            self.fail("reference", f"{told} {against.label!r}, which stands in no part; add it, or name one that does")
        if given.get("measure") == "retrieval" and not all(one.retrieval for one in settings):
            self.fail("parts", f"hold a setting without its retrieval, which must be {_SETTING['retrieval'].words}")
        options = {key: given[key] for key in ("measure", "seeds", "test", "data") if key in given}
        return Grid(given["title"], parts, against, **options)

    def cells(self, place: str, part: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """The settings of a part as what differs from the base, each with its place."""
        self.check(place, part, _PART, needed=("title",))
        if ("cells" in part) == ("vary" in part):
            self.fail(place, "has both cells and vary, or neither; one of the two says which settings it holds")
        if "cells" in part:
            cells = [(f"{place}.cells[{number}]", cell) for number, cell in enumerate(part["cells"], 1)]
        else:
            self.check(f"{place}.vary", part["vary"], dict.fromkeys((key for key in _SETTING if key != "label"), _LIST))
            combined = product(*([(key, value) for value in part["vary"][key]] for key in part["vary"]))
            cells = [(f"{place}.vary", dict(cell)) for cell in combined]
        for own, cell in cells:
            self.check_setting(own, cell)
        return cells

    def labels(self, base: Mapping[str, Any], cells: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, str]:
        """One label for each setting, by its identity: the one that is given, or what differs from the base."""
        given, found = dict[str, str](), dict[str, str]()
        for place, cell in cells:
            label = cell.get("label")
            if label and label != (other := given.setdefault(_identity(base, cell), label)):
                self.fail(f"{place}.label", f"is {label!r}, but this setting is called {other!r} before; call it that")
        for place, cell in cells:
            identity = _identity(base, cell)
            apart = {key: value for key, value in cell.items() if value != base.get(key)}
            found[identity] = given.get(identity) or _told(apart) or _told(base) or "defaults"
            if any(other != identity and label == found[identity] for other, label in found.items()):
                self.fail(place, f"is called {found[identity]!r}, as another setting is; give it a label of its own")
        return found

    def check_setting(self, place: str, given: Mapping[str, Any], without: str = "") -> None:
        """Check a setting, and the numbers of judges in it."""
        self.check(place, given, {key: allowed for key, allowed in _SETTING.items() if key != without})
        self.check(f"{place}.generators", given.get("generators", {}), dict.fromkeys(FAMILIES, _Allowed.whole(0)))

    def check(
        self, place: str, given: Mapping[str, Any], allowed: Mapping[str, _Allowed], needed: Sequence[str] = ()
    ) -> None:
        """Refuse keys and values that are not allowed, and a table that lacks a key."""
        before, known = f"{place}." if place else "", ", ".join(sorted(allowed))
        for key, value in given.items():
            if key not in allowed:
                self.fail(f"{before}{key}", f"is no key here{nearest(key, allowed)}; there are {known}")
            if not allowed[key].holds(value):
                near = nearest(value, allowed[key].names) if isinstance(value, str) else ""
                self.fail(f"{before}{key}", f"is {value!r:.80}{near}; it must be {allowed[key].words}")
        for key in needed:
            if key not in given:
                self.fail(f"{before}{key}", f"is missing; give {allowed[key].words}")

    def fail(self, place: str, problem: str) -> NoReturn:
        """Say what is wrong, and where."""
        raise DataError(f"{self.name}: {place} {problem}")


def _identity(base: Mapping[str, Any], cell: Mapping[str, Any]) -> str:
    """A setting without its label and its number of rows, as a text that is equal for equal settings."""
    whole = {**base, **cell}
    return repr([(key, whole[key]) for key in _SETTING if key in whole and key not in _APART])


def _told(setting: Mapping[str, Any]) -> str:
    """The options of a setting in words, without its label and its number of rows."""
    told = {key: setting[key] for key in _SETTING if key in setting and key not in _APART}
    for key, value in told.items():
        if isinstance(value, dict):
            told[key] = " + ".join(f"{count} {family}" for family, count in value.items())
    return ", ".join(f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in told.items())
