"""The name of a suite, or a TOML file that describes one -> a `Suite`."""

from __future__ import annotations

import math
import os
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from metricsmith.datasets.sources import read_bytes
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.meta_evaluation.measures import MEASURES
from metricsmith.meta_evaluation.suites import PairRules, ScoreLevel, Suite, SuiteTask
from metricsmith.meta_evaluation.wmt_suites import SUITES

__all__ = ["named_suite"]

TEXT, FILE, SWITCH, NUMBER = "a text", "a text without / that names a file", "true or false", "a number that is finite"
BOUNDS, LIST, TABLE, TABLES = "two numbers, the lower first", "a list of texts", "a table", "a list of tables"
LEVEL = " or ".join(get_args(ScoreLevel))
KINDS: Mapping[str, Callable[[Any], bool]] = {
    TEXT: lambda value: isinstance(value, str) and bool(value.strip()),
    FILE: lambda value: KINDS[TEXT](value) and "/" not in value and value not in (".", ".."),
    SWITCH: lambda value: isinstance(value, bool),
    NUMBER: lambda value: isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value),
    BOUNDS: lambda value: _all(NUMBER, value) and len(value) == 2 and value[0] < value[1],
    LIST: lambda value: _all(TEXT, value),
    TABLE: lambda value: isinstance(value, dict),
    TABLES: lambda value: isinstance(value, list),
    LEVEL: lambda value: value in get_args(ScoreLevel),
}
RULES = {"gold": FILE, "reference": FILE, "human": SWITCH, "outliers": LIST}
SUITE = {
    "name": TEXT, "test_set": FILE, **RULES, "primary": LIST, "baselines": LIST, "source": TEXT, "pairs": TABLE,
    "measures": TABLES,
}  # fmt: skip
MEASURE = {"measure": TEXT, "level": LEVEL, "weight": NUMBER, "bounds": BOUNDS, "pooled": SWITCH}
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
    raw = read_bytes(path)
    try:
        content = tomllib.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as problem:
        reason = "it is nested too deeply" if isinstance(problem, RecursionError) else problem
        raise DataError(f"{path} cannot be read as TOML in UTF-8: {reason}; correct it") from problem
    listed = content.get("pairs")
    if isinstance(listed, list) and all(isinstance(pair, str) for pair in listed):
        content["pairs"] = {pair: {} for pair in listed}
    given = _checked(str(path), content, SUITE, needed=("name", "test_set", "pairs", "measures"))
    rules = {key: given[key] for key in RULES if key in given}
    pairs = {}
    for pair, own in given.pop("pairs").items():
        _check_kind(f"{path}, a pair", pair, FILE)
        pairs[pair] = PairRules(**rules | _checked(f"{path}, [pairs.{pair}]", own, RULES))
    if not pairs or not given["measures"]:
        raise DataError(f"{path}: {'measures' if pairs else 'pairs'} is empty; a suite has one at least: add it")
    tasks = _tasks(path, given.pop("measures"), tuple(pairs))
    return Suite(pairs=pairs, tasks=tasks, **{"source": str(path)} | {k: given[k] for k in given.keys() - rules.keys()})


def _tasks(path: Path, measures: Sequence[Any], pairs: tuple[str, ...]) -> tuple[SuiteTask, ...]:
    pooled, alone = [], []
    for number, table in enumerate(measures, 1):
        where = f"{path}, [[measures]] {number}"
        told = _checked(where, table, MEASURE, needed=("measure",))
        name, over_all = told.pop("measure"), told.pop("pooled", False)
        given: dict[str, Any] = {"level": "sys" if over_all else "seg", "weight": 1} | told
        given["weight"] = float(given["weight"])
        if name not in MEASURES:
            raise DataError(
                f"{where}, measure: unknown measure {name!r}{nearest(name, MEASURES)}; known are {', '.join(MEASURES)}"
            )
        if over_all and name != "system-accuracy":
            raise _wrong(f"{where}, pooled", True, f"false for {name}; system-accuracy alone counts over all pairs")
        if given["level"] == "sys" and name not in BY_SYSTEM:
            raise _wrong(f"{where}, level", "sys", f"seg for {name}; scores by system suit {', '.join(BY_SYSTEM)}")
        if given["weight"] <= 0:
            raise _wrong(f"{where}, weight", given["weight"], "above 0")
        if over_all and given["level"] != "sys":
            raise _wrong(f"{where}, level", given["level"], "sys where language pairs are pooled")
        if over_all:
            pooled.append(SuiteTask(name, pairs, **given))
        else:
            alone.append([SuiteTask(name, (pair,), **given) for pair in pairs])
    tasks = (*pooled, *(task for of_pair in zip(*alone, strict=True) for task in of_pair))
    for name, number in Counter(task.name for task in tasks).items():
        if number > 1:
            raise DataError(f"{path}, measures: {name!r} stands there twice; a column has one measure: take one out")
    return tasks


def _checked(where: str, table: Any, kinds: Mapping[str, str], needed: Sequence[str] = ()) -> dict[str, Any]:
    """The table, its lists as tuples; unknown keys, values of another kind and a key that lacks are refused."""
    _check_kind(where, table, TABLE)
    for key, value in table.items():
        if key not in kinds:
            raise DataError(
                f"{where}: unknown key {key!r}{nearest(key, kinds)}; known are {', '.join(kinds)}: correct or remove it"
            )
        _check_kind(f"{where}, {key}", value, kinds[key])
    for key in needed:
        if key not in table:
            raise DataError(f"{where}: no key {key!r}, which is needed: add {key} = {kinds[key]}")
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


def _check_kind(where: str, value: Any, kind: str) -> None:
    if not KINDS[kind](value):
        raise _wrong(where, value, kind)


def _all(kind: str, values: Any) -> bool:
    return isinstance(values, list) and all(map(KINDS[kind], values))


def _wrong(where: str, value: Any, wanted: str) -> DataError:
    return DataError(f"{where} = {value!r:.60}, which must be {wanted}: correct it")
