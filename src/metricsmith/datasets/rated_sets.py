"""The AutoMetrics paper's data sets by name (its Table 1 and appendix): a file of yours, or the hub."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from metricsmith.datasets.cogym import COGYM
from metricsmith.datasets.evalgen import EVALGEN
from metricsmith.datasets.helpsteer2 import HELPSTEER2
from metricsmith.datasets.primock57 import PRIMOCK57
from metricsmith.datasets.rated_set import RatedSet
from metricsmith.datasets.realhumaneval import REALHUMANEVAL
from metricsmith.datasets.simpeval import SIMPEVAL
from metricsmith.datasets.sources import RawTable, filter_rows, load_hub, open_source
from metricsmith.datasets.summeval import SUMMEVAL
from metricsmith.datasets.table import Table, as_names, read_table
from metricsmith.errors import OptionError, nearest

if TYPE_CHECKING:
    import pandas

__all__ = ["RATED_SETS", "known_set", "rated_set", "rated_sets", "read_rated_set", "read_rated_split"]

ENTRIES = (SIMPEVAL, HELPSTEER2, EVALGEN, REALHUMANEVAL, COGYM, SUMMEVAL, PRIMOCK57)
RATED_SETS: Mapping[str, RatedSet] = {entry.name: entry for entry in ENTRIES}
TEXTS = ("output", "inputs", "reference", "group", "system", "rater")


def rated_sets() -> tuple[RatedSet, ...]:
    """Returns the data sets that `read_rated_set` knows, in the order of the paper's Table 1, then its appendix."""
    return ENTRIES


def known_set(name: str) -> RatedSet | None:
    """Returns the data set of a name, in any case, with or without hyphens; None where there is none."""
    return RATED_SETS.get(name.strip().lower().replace("-", ""))


def rated_set(name: str) -> RatedSet:
    """Returns the same; `OptionError` where there is none."""
    if (entry := known_set(name)) is None:
        raise OptionError(
            f"no data set {name!r}{nearest(name.lower(), RATED_SETS)}; known are {', '.join(RATED_SETS)}: name one of "
            "them, or read a table of your own with read_table"
        )
    return entry


def read_rated_set(
    name: str,
    source: str | os.PathLike[str] | pandas.DataFrame | Any | None = None,
    dimension: str | None = None,
    *,
    download: bool = False,
    **reading: Any,
) -> Table:
    """Read a data set of the AutoMetrics paper in the form in which it is published.

    Parameters
    ----------
    name : str
        One of `rated_sets`.
    source : path, pandas.DataFrame, datasets.Dataset or list of dicts, optional
        Anything that `read_table` reads; without it the data set is loaded from the hub.
    dimension : str, optional
        The rating; by default that of the paper's main tables. ``target=...`` is the same.
    download : bool
        Without a source, True allows the download; nothing is loaded from anywhere without it.
    **reading
        Options of `read_table`, which go before the data set's own; None, ``""`` and ``()`` change nothing.
        Conditions of ``where`` hold beside its own.

    Returns
    -------
    Table
        With notes on what of the format could not be verified, and where it has another number of rows than known.

    Raises
    ------
    OptionError
        If the data set or the dimension is unknown, or there is no source and no download.
    DataError
        If a column is missing or a rating is off the scale, or as `read_table` raises it.
    ModelFailure
        If the hub cannot be reached.
    """
    entry = rated_set(name)
    return _read(entry, _opened(entry, source, download), dimension, reading)


def read_rated_split(
    name: str, source: Any = None, dimension: str | None = None, *, download: bool = False, **reading: Any
) -> tuple[Table, Table | None]:
    """Read a data set with the paper's own test rows apart; the arguments are those of `read_rated_set`.

    Returns
    -------
    tuple of Table and Table or None
        The rows to learn from and to validate on, and the test rows; all rows and None where the paper draws the test
        rows, or the source does not say which they are.
    """
    entry = rated_set(name)
    raw = _opened(entry, source, download)
    marks = dict.fromkeys(raw.texts(entry.held[0])) if entry.held and entry.held[0] in raw.columns else {}
    if len(marks) < 2 or entry.held[1] not in marks:
        return _read(entry, raw, dimension, reading), None
    column, value = entry.held
    given = as_names(reading.pop("where", ()))
    learned, test = (
        _read(entry, raw, dimension, {**reading, "where": (*given, f"{column}{sign}{value}")}) for sign in ("!=", "=")
    )
    return learned, test


def _opened(entry: RatedSet, source: Any, download: bool) -> RawTable:
    """The table, or what is downloaded, in the columns of its entry."""
    if source is None and not entry.hub:
        raise OptionError(
            f"{entry.title} is not on the hub in a form that is read here: get it from {entry.page} (licence: "
            f"{entry.licence}) and give the file: {entry.name}=FILE"
        )
    if source is None and not download:
        raise OptionError(
            f"{entry.title} has no file, and nothing is downloaded without being asked for: allow it with --download "
            f"(download=True), which loads {entry.hub} from the Hugging Face hub (licence: {entry.licence}), or give "
            f"a file: {entry.name}=FILE"
        )
    raw = load_hub(entry.hub, entry.load) if source is None else open_source(source)
    return raw if entry.form is None else entry.form(raw)


def _read(entry: RatedSet, raw: RawTable, dimension: str | None, reading: Mapping[str, Any]) -> Table:
    given = {role: value for role, value in reading.items() if value is not None and value != "" and value != ()}
    named = given.pop("target", None)
    target = dimension or named or next(iter(entry.dimensions))
    if target not in entry.dimensions:
        raise OptionError(
            f"{entry.title} has no dimension {target!r}{nearest(str(target), entry.dimensions)}; it has "
            f"{', '.join(entry.dimensions)}: name one of them"
        )
    own = entry.columns.get("where", ())
    where = (*own, *as_names(given.pop("where", ())))
    options = {"task": entry.task, "scale": entry.dimensions[target], **entry.columns, **given, "where": where}
    needed = [column for role in TEXTS for column in as_names(options.get(role))]
    raw.require_all(
        [target, *needed],
        f"rows of {entry.title}",
        "name yours by option (output=..., inputs=..., --output, --input, in a grid [data.NAME])",
    )
    table = read_table(raw, target=target, **options)
    notes = [entry.verified] if entry.unverified else []
    if entry.rows and (rows := len(filter_rows(raw, own))) not in entry.rows:
        notes.append(f"{rows:,} rows, where Table 1 of the paper has {entry.rows[0]:,} for {entry.title}")
    return replace(table, notes=(*table.notes, *notes))
