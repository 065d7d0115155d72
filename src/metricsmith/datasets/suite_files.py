"""The name of a suite, or a TOML file that describes one -> a `Suite`.

A file holds ``name``, ``test_set``, the rules on systems for all pairs, ``[pairs.PAIR]`` with what differs, and a
``[[measures]]`` for each column by language pair, or over all where it is ``pooled``.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from metricsmith.datasets.sources import read_bytes
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.meta_evaluation.measures import MEASURES
from metricsmith.meta_evaluation.suites import PairRules, ScoreLevel, Suite, SuiteTask
from metricsmith.meta_evaluation.wmt_suites import SUITES

__all__ = ["named_suite"]

TEXT, SWITCH, NUMBER, LIST, TABLE = "a text", "true or false", "a number", "a list of texts", "a table"
RULES = {"gold": TEXT, "reference": TEXT, "human": SWITCH, "outliers": LIST}
SUITE = {
    "name": TEXT, "test_set": TEXT, **RULES, "primary": LIST, "baselines": LIST, "source": TEXT, "pairs": TABLE,
    "measures": "a list of tables",
}  # fmt: skip
MEASURE = {"measure": TEXT, "level": TEXT, "weight": NUMBER, "bounds": "two numbers, the lower first", "pooled": SWITCH}
BY_SYSTEM = tuple(name for name in MEASURES if name.startswith("system-"))


def named_suite(name: str | os.PathLike[str]) -> Suite:
    """Returns a suite of WMT by its name, or reads one from a file that ends in ``.toml``.

    Parameters
    ----------
    name : str or path
        A key of `SUITES`, or a file with the keys ``name``, ``test_set``, ``gold``, ``reference``, ``human``,
        ``outliers``, ``primary``, ``baselines``, ``source`` and the tables ``[pairs.PAIR]`` (``gold``, ``reference``,
        ``human``, ``outliers``; a plain list of pairs will do where nothing differs) and ``[[measures]]``
        (``measure``, ``level``, ``weight``, ``bounds``, ``pooled``). Pooled columns come first, then those of one
        pair after the other. What is left out is as in `PairRules` and `SuiteTask`.

    Raises
    ------
    DataError
        If the file cannot be read, is no TOML, has a key or value that is not allowed, or lacks a piece; the message
        names the file and the key.
    OptionError
        If there is no suite of this name.
    """
    path = Path(name)
    if path.suffix != ".toml":
        if str(name) not in SUITES:
            raise OptionError(
                f"unknown suite {str(name)!r}{nearest(str(name), SUITES)}; known are {', '.join(SUITES)}, and files "
                f"that end in .toml"
            )
        return SUITES[str(name)]
    try:
        content = tomllib.loads(read_bytes(path).decode("utf-8"))
    except (ValueError, RecursionError) as problem:
        reason = "it is nested too deeply" if isinstance(problem, RecursionError) else problem
        raise DataError(f"{path} cannot be read as TOML in UTF-8: {reason}; correct it") from problem
    listed = content.get("pairs")
    if isinstance(listed, list) and all(isinstance(pair, str) for pair in listed):
        content["pairs"] = {pair: {} for pair in listed}
    _check(str(path), content, SUITE, needed=("name", "test_set", "pairs", "measures"))
    rules = {key: _plain(value) for key, value in content.items() if key in RULES}
    pairs = {}
    for pair, own in content["pairs"].items():
        where = f"{path}, [pairs.{pair}]"
        if not isinstance(own, dict):
            raise _wrong(where, own, TABLE)
        _check(where, own, RULES)
        pairs[pair] = PairRules(**(rules | {key: _plain(value) for key, value in own.items()}))
    if not pairs or not content["measures"]:
        raise DataError(f"{path}: {'measures' if pairs else 'pairs'} is empty; a suite has one at least: add it")
    return Suite(
        content["name"],
        content["test_set"],
        pairs,
        _tasks(path, content["measures"], tuple(pairs)),
        tuple(content.get("primary", ())),
        tuple(content.get("baselines", ())),
        content.get("source", str(path)),
    )


def _tasks(path: Path, measures: list[Any], pairs: tuple[str, ...]) -> tuple[SuiteTask, ...]:
    pooled, alone = [], []
    for number, given in enumerate(measures, 1):
        where = f"{path}, [[measures]] {number}"
        if not isinstance(given, dict):
            raise _wrong(where, given, TABLE)
        _check(where, given, MEASURE, needed=("measure",))
        name, level, weight = given["measure"], given.get("level", "seg"), float(given.get("weight", 1))
        if name not in MEASURES:
            raise DataError(
                f"{where}, measure: unknown measure {name!r}{nearest(name, MEASURES)}; known are {', '.join(MEASURES)}"
            )
        if level not in get_args(ScoreLevel):
            raise _wrong(f"{where}, level", level, f"{' or '.join(get_args(ScoreLevel))}")
        if level == "sys" and name not in BY_SYSTEM:
            raise _wrong(f"{where}, level", level, f"seg for {name}; scores by system suit {', '.join(BY_SYSTEM)}")
        if weight <= 0:
            raise _wrong(f"{where}, weight", weight, "above 0")
        if given.get("pooled") and name != "system-accuracy":
            raise _wrong(f"{where}, pooled", True, f"false for {name}; system-accuracy alone counts over all pairs")
        settings = {"level": level, "weight": weight, "bounds": _plain(given.get("bounds"))}
        if given.get("pooled"):
            pooled.append(SuiteTask(name, pairs, **settings))
        else:
            alone.append([SuiteTask(name, (pair,), **settings) for pair in pairs])
    tasks = (*pooled, *(task for of_pair in zip(*alone, strict=True) for task in of_pair))
    names = [task.name for task in tasks]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path}, measures: {twice!r} stands there twice; a column has one measure: take one out")
    return tasks


def _check(where: str, table: Mapping[str, Any], kinds: Mapping[str, str], needed: tuple[str, ...] = ()) -> None:
    """Refuse keys that are unknown, values of another kind, and a table that lacks a key."""
    for key, value in table.items():
        if key not in kinds:
            raise DataError(
                f"{where}: unknown key {key!r}{nearest(key, kinds)}; known are {', '.join(kinds)}: correct or remove it"
            )
        if not _is(value, kinds[key]):
            raise _wrong(f"{where}, {key}", value, kinds[key])
    for key in needed:
        if key not in table:
            raise DataError(f"{where}: no key {key!r}, which is needed: add {key} = {kinds[key]}")


def _is(value: Any, kind: str) -> bool:
    if kind == TEXT:
        return isinstance(value, str) and bool(value.strip())
    if kind == SWITCH:
        return isinstance(value, bool)
    if kind == NUMBER:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if kind == LIST:
        return isinstance(value, list) and all(_is(one, TEXT) for one in value)
    if kind == TABLE:
        return isinstance(value, dict)
    if kind == SUITE["measures"]:
        return isinstance(value, list)
    return isinstance(value, list) and [_is(one, NUMBER) for one in value] == [True] * 2 and value[0] < value[1]


def _plain(value: Any) -> Any:
    """Lists as tuples."""
    return tuple(value) if isinstance(value, list) else value


def _wrong(where: str, value: Any, wanted: str) -> DataError:
    return DataError(f"{where} = {value!r:.60}, which must be {wanted}: correct it")
