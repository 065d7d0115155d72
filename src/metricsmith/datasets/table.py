"""Rated outputs in any common table -> a `Task` and rows that every part of the package understands."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import dspy
import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.cells import cell_text, is_blank, reference_list
from metricsmith.datasets.columns import Columns, guess_notes, need_column, normal_name, resolve_columns
from metricsmith.datasets.conversations import ends_with_output, is_messages, render_conversations, split_messages
from metricsmith.datasets.labels import Labels, label_rows
from metricsmith.datasets.raters import People, RaterEffects, average_raters, check_averaging
from metricsmith.datasets.rating_forms import RatingForm, as_levels
from metricsmith.datasets.ratings import as_scale, check_rated, infer_scale, read_ratings, seen_scale
from metricsmith.datasets.score_columns import ScoreColumns, match_columns, read_numbers
from metricsmith.datasets.sources import RawTable, filter_rows, open_source
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import make_row
from metricsmith.records import Scale, Task
from metricsmith.stats.ceiling import Averaging, RaterCeiling

if TYPE_CHECKING:
    import pandas

__all__ = ["Table", "as_names", "check_outputs", "closed_inputs", "read_table", "table_rows", "without_replies"]

# Names that a row already gives to something else, so that no rating can stand under them.
_RESERVED = frozenset(
    {"input", "output", "references", "context", "id", "group", "own_group", "system", "rater", "columns"}
    | {"base", "self"}
)


@dataclass(frozen=True)
class Table:
    """Rows of rated (and unrated) outputs.

    Parameters
    ----------
    task : Task
        Description, name of the rating (empty if the table has none) and its scale.
    rows : list of dspy.Example, length n
        With ``output``, ``input``, ``references``, ``context`` where present, the labels ``id`` and
        ``group``, ``own_group`` where that was another before groups were joined (`labels.label_rows`), where the
        table has such columns ``system`` and, without ratings, ``rater`` (a text, empty where the cell is blank), the
        rating as float under the target's name where the row has one, and the score columns' numbers under
        ``columns``.
    ratings : float array, shape (n,)
        NaN where a row has no rating.
    columns : Columns
        The role of each column, and the roles that were guessed.
    notes : tuple of str
        One line for everything that was guessed, refused, counted or left out.
    metric_values : dict of str to float array, shape (n,)
        The score columns: NaN is missing, infinities are kept.
    prior : tuple of str
        Names of the score columns declared to measure the target.
    checksum : str
        16 hex digits of the sha256 of the file's bytes (or the frame's content), before filtering.
    name : str
        Where the rows came from.
    people : People, optional
        The ratings by output and rater, where the table says who rated: then a row is an output, not a rating.
    where : tuple of str
        The conditions that chose the rows among those of the file.
    """

    task: Task
    rows: list[dspy.Example] = field(repr=False)
    ratings: NDArray[np.float64] = field(repr=False)
    columns: Columns
    notes: tuple[str, ...]
    metric_values: dict[str, NDArray[np.float64]] = field(repr=False)
    prior: tuple[str, ...]
    checksum: str
    name: str
    people: People | None = field(default=None, repr=False)
    where: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def source(self) -> str:
        """The file and the conditions that chose rows of it, in the words of a signature line."""
        chosen = f" where {' and '.join(sorted(self.where))}" if self.where else ""
        return f"{PurePath(self.name).name} sha256:{self.checksum}{chosen}"

    @property
    def ids(self) -> list[str]:
        """Every row's id."""
        return [row["id"] for row in self.rows]

    @property
    def groups(self) -> list[str]:
        """Every row's group."""
        return [row["group"] for row in self.rows]

    @property
    def systems(self) -> list[str]:
        """The system that wrote each row's output, ``""`` where that is blank; an empty list without such a column."""
        return [] if self.columns.system is None else [row["system"] for row in self.rows]

    @property
    def raters(self) -> list[str]:
        """Everyone who rated, in the order of their first ratings; an empty list where that is not known."""
        return [] if self.people is None else self.people.names

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Every row's input and output, empty where it has none: what `splits` compares."""
        return [(row.get("input", ""), row.get("output", "")) for row in self.rows]

    def rated(self) -> NDArray[np.intp]:
        """Indices of the rows with a rating, in order."""
        return np.flatnonzero(~np.isnan(self.ratings))

    def rater_ceiling(self) -> RaterCeiling | None:
        """The agreement of people, and the ceiling that follows for a metric; None where it is not known who rated."""
        return None if self.people is None else self.people.ceiling(self.groups)

    def subset(self, indices: Sequence[int] | NDArray[np.intp]) -> Table:
        """The rows at `indices`, in that order; task, notes and checksum stay those of the whole."""
        chosen = np.asarray(indices, dtype=np.intp)
        return replace(
            self,
            rows=[self.rows[index] for index in chosen],
            ratings=self.ratings[chosen],
            metric_values={name: values[chosen] for name, values in self.metric_values.items()},
            people=None if self.people is None else self.people.take(chosen),
        )


def read_table(
    source: str | os.PathLike[str] | pandas.DataFrame | Any,
    *,
    target: str | None = None,
    task: str = "",
    output: str | None = None,
    inputs: str | Sequence[str] = (),
    reference: str | Sequence[str] | None = None,
    id: str | None = None,
    group: str | None = None,
    context: str | None = None,
    system: str | None = None,
    rater: str | None = None,
    where: str | Sequence[str] = (),
    metric_columns: str | Sequence[str] = (),
    prior_columns: str | Sequence[str] = (),
    raters: Averaging = "mean",
    rater_effects: RaterEffects = "none",
    levels: str | Sequence[str] = (),
    scale: Scale | str | None = None,
    higher_is_better: bool | None = None,
    min_rated: int = 8,
    require_target: bool = True,
    usual: Mapping[str, str] | None = None,
) -> Table:
    """Read rated outputs.

    Columns that are not named are guessed from their names (`columns.SYNONYMS`); every guess stands in the notes.
    Bad input ends in one error that names file, row and column.
    A text column of chat messages, or of lists of them, is written out turn by turn (`conversations`); where an input
    is called ``messages`` or ends with the output, its closing assistant message is no part of the input.

    Parameters
    ----------
    source : path, pandas.DataFrame, datasets.Dataset or hub id
        CSV, TSV, JSONL or JSON (also ``.gz``), XLSX or Parquet; ``owner/name`` that is no path is a hub id.
    target : str, optional
        Column of the human rating: numbers, shares (``2/5``, ``40%``), booleans, stars, thumbs words; blank cells and
        ``n/a`` are rows without a rating, which are kept.
    task : str
        What the system does and what a good output is, in plain words.
    output : str, optional
        Column of the text to judge. May be absent if `metric_columns` are given.
    inputs : str or sequence of str
        Columns of what the output answers; several are joined as labelled blocks.
    reference : str or sequence of str, optional
        Columns of gold outputs: a text, a list, or a list in JSON or Python text form.
    id, group, context : str, optional
        Further columns: see `labels.label_rows` for what happens without id or group.
    system, rater : str, optional
        Columns of what wrote the output and of who rated it. A guessed one is used where it has several values of
        which one repeats. Where it is known who gave the ratings, the table has one row for each output, with the
        average over its raters (`raters.average_raters`).
    where : str or sequence of str
        ``COL=VALUE`` or ``COL!=VALUE``; all must hold.
    metric_columns, prior_columns : str or sequence of str
        Case-sensitive glob patterns of columns that are scores already; prior columns are those that
        are declared to measure the target, and are score columns too.
    raters : str
        ``mean`` or ``median``: the average of an output's ratings.
    rater_effects : str
        ``none``, or ``centre``: before, each rater's mean is taken off, and the mean of all ratings put back.
    levels : str or sequence of str
        Words of the target, worst first (``"poor,okay,good"``), for 1, 2, ...; case and blanks do not matter.
    scale : Scale or str, optional
        The rating scale, as text ``LOW:HIGH[:STEP]``; inferred by default (`ratings.infer_scale`).
    higher_is_better : bool, optional
        The rating's direction; None keeps that of `scale`, which is up unless a `Scale` says otherwise.
    min_rated : int
        How many rated rows there must be, at least 1; with several raters, outputs.
    require_target : bool
        False for new data: then a target that the table lacks is no error, nor are too few or constant ratings.
    usual : mapping of str to str, optional
        For id, group and system the column that is guessed before all others, where the table has it.

    Returns
    -------
    Table

    Raises
    ------
    DataError
        If the source, a column, a row or a cell cannot be used.
    OptionError
        If a condition, pattern, scale or target name has no meaning for this table, or `raters` or `rater_effects` is
        unknown.
    """
    check_averaging(raters, rater_effects)
    conditions = as_names(where)
    whole = open_source(source)
    raw = filter_rows(whole, conditions)
    notes = list(raw.notes)
    if conditions:
        notes.append(f"{len(raw)} of {len(whole)} rows fulfil {' and '.join(conditions)}")
    if target is not None and target not in raw.columns and not require_target:
        notes.append(f"no column {target!r}: no row has a rating")
        target = None
    chosen = match_columns(raw, as_names(metric_columns), as_names(prior_columns), target)
    named = Columns(
        target, output, as_names(inputs), as_names(reference), context, id, group, system, rater,
        levels=as_levels(levels),
    )  # fmt: skip
    columns = resolve_columns(raw, named, taken=chosen.names, guess_target=require_target, usual=usual or {})
    empty = [] if columns.output is None else [is_blank(cell) for cell in raw.columns[columns.output]]
    place = raw.place(empty.index(True), columns.output) if any(empty) else ""
    columns, refused = check_outputs(raw, columns, chosen, place, sum(empty), len(raw))
    raw, columns, split = without_replies(raw, columns, closed_inputs(raw, columns))
    raw, rendered = render_conversations(raw, columns.texts())
    inputs = raw.blocks(columns.inputs)
    labels = label_rows(raw, columns, inputs)
    ratings, rating_scale, scale_notes = _ratings(raw, labels.columns, scale, require_target)
    outputs = average_raters(
        raw, labels, inputs, ratings, read_numbers(raw, chosen.names), rating_scale, average=raters,
        effects=rater_effects,
    )  # fmt: skip
    rating_scale = outputs.scale
    if higher_is_better is not None:
        rating_scale = replace(rating_scale, higher_is_better=higher_is_better)
    unrated = check_rated(outputs.raw, columns.target, outputs.ratings, max(min_rated, 1) if require_target else 0)
    own = outputs.labels.columns
    if own.output is not None and own.output not in whole.columns:
        own = replace(own, output=own.inputs[0])
    return Table(
        task=Task(task, columns.target or "", rating_scale),
        rows=table_rows(outputs.raw, outputs.labels, outputs.ratings, outputs.scores),
        ratings=outputs.ratings,
        columns=own,
        notes=(
            *notes, *guess_notes(whole, own), *refused, *split, *rendered, *outputs.labels.notes,
            *chosen.notes, *scale_notes, *outputs.notes, *unrated,
        ),
        metric_values=outputs.scores,
        prior=chosen.prior,
        checksum=raw.checksum,
        name=raw.name,
        people=outputs.people,
        where=conditions,
    )  # fmt: skip


def as_names(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """One name or several as a tuple."""
    return (value,) if isinstance(value, str) else tuple(value or ())


def check_outputs(
    raw: RawTable, columns: Columns, chosen: ScoreColumns, place: str, empty: int, rows: int
) -> tuple[Columns, tuple[str, ...]]:
    """Check the output texts; without score columns they are what there is to judge.

    Of `rows` in the whole table so many are `empty`, and `place` is that of the first.
    """
    if columns.output is None:
        if not chosen.names:
            raise need_column(raw, "output", columns.refused)
        return columns, ("no output column: only the candidate columns are read",)
    if not empty:
        return columns, ()
    if chosen.names and "output" in columns.guessed:
        note = f"the guessed output column {columns.output!r} has {empty} empty cells and is not used"
        return columns.without("output"), (note,)
    raise DataError(
        f"{place}: the output is empty ({empty} such rows of {rows}); every "
        f"row needs a text to judge: fill it in, or leave such rows out with "
        f"where={columns.output + '!='!r} (--where)"
    )


def _ratings(
    raw: RawTable, columns: Columns, scale: Scale | str | None, require: bool
) -> tuple[NDArray[np.float64], Scale, tuple[str, ...]]:
    """The ratings row by row, their scale, and a line on a scale that was inferred."""
    given = None if scale is None else as_scale(scale)
    if columns.target is None:
        if require:
            raise need_column(raw, "target")
        unrated = np.full(len(raw), math.nan)
        return unrated, given or infer_scale(unrated), ()
    if columns.target in _RESERVED:
        raise OptionError(
            f"{raw.name}: the target column is called {columns.target!r}, a name that rows need for something else "
            f"({', '.join(sorted(_RESERVED))}); any other name is allowed: rename the column, say to 'rating'"
        )
    form = RatingForm.of(raw, columns.target, columns.levels)
    ratings, notes = read_ratings(raw, columns.target, given, form), form.notes(columns.target)
    if given is not None or np.isnan(ratings).all():
        return ratings, given or infer_scale(ratings), notes
    inferred, lines = seen_scale(raw, columns.target, form, ratings)
    return ratings, inferred, (*notes, *lines)


def closed_inputs(raw: RawTable, columns: Columns) -> dict[str, str]:
    """Inputs that hold the output, end with it or are called ``messages``: each with a name for what closes it.

    The name is that of a new column for the closing assistant messages; empty where another column has the outputs.
    """
    return {
        name: f"closing message of {name!r}" if name == columns.output else ""
        for name in columns.inputs
        if is_messages(raw, name) and (normal_name(name) == "messages" or ends_with_output(raw, name, columns.output))
    }


def without_replies(
    raw: RawTable, columns: Columns, closed: Mapping[str, str]
) -> tuple[RawTable, Columns, tuple[str, ...]]:
    """The table without the closing assistant messages of `closed_inputs`, its columns, and notes.

    Of the columns only that of the output may change, to a new one with these messages.
    """
    notes = []
    for name, reply in closed.items():
        raw, note = split_messages(raw, name, reply)
        notes.append(note)
        columns = replace(columns, output=reply or columns.output)
    return raw, columns, tuple(notes)


def table_rows(
    raw: RawTable, labels: Labels, ratings: NDArray[np.float64], scores: Mapping[str, NDArray[np.float64]]
) -> list[dspy.Example]:
    """The rows of a table whose labels, ratings and numbers are known."""
    columns = labels.columns
    inputs = raw.blocks(columns.inputs)
    rows = []
    for index in range(len(raw)):
        cells = {name: raw.columns[name][index] for name in columns.used()}
        row_labels: dict[str, Any] = {"id": labels.ids[index], "group": labels.groups[index]}
        if labels.sources[index] != labels.groups[index]:
            row_labels["own_group"] = labels.sources[index]
        for role, name in (("system", columns.system), ("rater", None if columns.target else columns.rater)):
            if name is not None:
                row_labels[role] = cell_text(cells[name]).strip()
        if columns.target is not None and not math.isnan(ratings[index]):
            row_labels[columns.target] = float(ratings[index])
        if scores:
            row_labels["columns"] = {name: float(values[index]) for name, values in scores.items()}
        rows.append(
            make_row(
                cell_text(cells[columns.output]) if columns.output else "",
                input=inputs[index],
                references=[text for name in columns.references for text in reference_list(cells[name])],
                context=cell_text(cells[columns.context]) if columns.context else "",
                **row_labels,
            )
        )
    return rows
