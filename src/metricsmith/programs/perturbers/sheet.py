"""The rating sheet on which people judge perturbations unmarked, and its way back.

AutoMetrics, appendix F.3, has a person rate originals and perturbed outputs side by side, unmarked.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from metricsmith.datasets.formats import parse_file
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import content_hash
from metricsmith.programs.perturbers.base import Perturbation, Source
from metricsmith.programs.state import read_state
from metricsmith.records import Scale
from metricsmith.saving import write_state

__all__ = ["RatedPair", "RatedSheet", "guarded", "read_sheet", "spread", "unguarded", "write_sheet"]

KIND = "rating_sheet_key"
COLUMNS = ("item", "criterion", "input", "output", "rating")
GUARD = "'"
FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\n",
    "＝",
    "＋",
    "－",
    "＠",
    GUARD,
)  # a guard of the text's own is guarded too
CONVERTED = re.compile(r"[\d\s.,:;/%€$£-]+|true|false", re.IGNORECASE)  # that a spreadsheet turns into a number or date
DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")


@dataclass(frozen=True, slots=True)
class RatedPair:
    """An original and one perturbation of it as a person rated them; NaN where there is no rating.

    `row`, `strategy`, `effect`, `strength`, `dimension` and `origin` are the perturbation's.
    """

    row: int
    strategy: str
    effect: str
    strength: str
    dimension: str
    origin: str
    original: float
    perturbed: float

    @property
    def rated(self) -> bool:
        """True if both have a rating."""
        return not (math.isnan(self.original) or math.isnan(self.perturbed))


@dataclass(frozen=True, slots=True)
class RatedSheet:
    """A sheet that came back.

    Parameters
    ----------
    criterion : str
        The question that was rated.
    pairs : tuple of RatedPair
        Those with a missing rating too.
    """

    criterion: str
    pairs: tuple[RatedPair, ...]

    def sensitivity(self, scale: Scale | None = None) -> float:
        """The share of the rated ``worse`` pairs whose perturbed output was rated strictly worse; NaN without one.

        Worse is lower, unless `scale` says that lower is better.
        """
        sign = -1.0 if scale is not None and not scale.higher_is_better else 1.0
        pairs = self._of("worse")
        return sum(sign * (pair.perturbed - pair.original) < 0 for pair in pairs) / len(pairs) if pairs else math.nan

    def stability(self, scale: Scale | None = None) -> float:
        """One minus the mean absolute change of the rated ``same`` pairs, in widths of the scale; NaN without one.

        Without `scale` its ends are the lowest and the highest rating of the sheet, and NaN comes of a sheet on which
        all ratings are equal.

        Raises
        ------
        DataError
            If a rating is not on `scale`.
        """
        ratings = [value for pair in self.pairs for value in (pair.original, pair.perturbed) if not math.isnan(value)]
        stray = [value for value in ratings if scale is not None and not scale.contains(value)]
        if stray:
            raise DataError(
                f"the rating {stray[0]:g} is not on the scale {scale}: correct the sheet, or give another scale"
            )
        pairs = self._of("same")
        width = scale.width if scale is not None else max(ratings, default=0.0) - min(ratings, default=0.0)
        if not pairs or width == 0:
            return math.nan
        return 1 - math.fsum(abs(pair.perturbed - pair.original) for pair in pairs) / width / len(pairs)

    def _of(self, effect: str) -> list[RatedPair]:
        return [pair for pair in self.pairs if pair.effect == effect and pair.rated]


def write_sheet(
    path: str | PathLike[str],
    sources: Sequence[Source],
    perturbations: Sequence[Perturbation],
    *,
    seed: int,
    criterion: str,
    key: str | PathLike[str] | None = None,
) -> Path:
    """Writes originals and perturbed outputs as one CSV for a rater, and their identities to a file of its own.

    Items stand in random order under names that say nothing, two of one original never side by side where that can be
    avoided. Cells that a spreadsheet would read as a formula, number or date begin with an apostrophe, which raters
    see and `read_sheet` takes off.

    Parameters
    ----------
    path : path
        A name that ends in ``.csv``. The columns are ``item``, ``criterion``, ``input``, ``output`` and the empty
        ``rating``.
    sources : sequence of Source
        The originals, by row; only those with a perturbation are shown.
    perturbations : sequence of Perturbation
        Declined ones are left out.
    seed : int
        Decides the order.
    criterion : str
        The question and the way to rate, in the raters' words: it stands in every line, for lines are sorted and
        columns hidden.
    key : path, optional
        By default `path` with ``.key.json`` in the place of ``.csv``. Raters must not see it.

    Returns
    -------
    path
        Of the key.

    Raises
    ------
    OptionError
        If `path` does not end in ``.csv``, or a file is there already, which might hold ratings.
    DataError
        If no perturbation has an output, or one is of a row that is not among the sources.
    """
    target = Path(path)
    if target.suffix.lower() != ".csv":
        raise OptionError(f"{target}: a rating sheet is a CSV file; give a name that ends in .csv")
    secret = Path(key) if key is not None else target.with_suffix(".key.json")
    there = next((file for file in (target, secret) if file.exists()), None)
    if there is not None:
        raise OptionError(
            f"{there} exists already, and might hold ratings or their key; give another name, or remove it"
        )
    made = [one for one in perturbations if one.output is not None]
    stray = [one.row for one in made if not 0 <= one.row < len(sources)]
    if not made or stray:
        seen = f"row {stray[0]} is not among {len(sources)} sources" if stray else "no perturbation has an output"
        raise DataError(f"no sheet can be written: {seen}; give the sources and perturbations of one run")
    originals = [(row, None) for row in sorted({one.row for one in made})]
    items: list[tuple[int, Perturbation | None]] = [*originals, *((one.row, one) for one in made)]
    order = spread([row for row, _ in items], seed)
    lines, entries = [], {}
    for number, place in enumerate(order, 1):
        row, one = items[place]
        name, output = f"i{number:0{len(str(len(order)))}d}", str(one.output) if one else sources[row].output
        lines.append([name, *map(guarded, (criterion, sources[row].input, output)), ""])
        identity = {"effect": "original"}
        if one is not None:
            identity = {part: getattr(one, part) for part in ("strategy", "effect", "strength", "dimension", "origin")}
        entries[name] = {"row": row, "hash": _hash(output), **identity}
    write_state({"kind": KIND, "criterion": criterion, "seed": seed, "items": entries}, secret)
    with target.open("w", encoding="utf-8-sig", newline="") as file:  # Excel takes UTF-8 for what it is by its mark
        csv.writer(file).writerows([COLUMNS, *lines])
    return secret


def read_sheet(path: str | PathLike[str], key: str | PathLike[str]) -> RatedSheet:
    """Reads a sheet that a rater has filled in; its lines may have been sorted.

    Parameters
    ----------
    path : path
        UTF-8 with or without its mark, with commas, semicolons or tabs. A rating is a number, with a decimal comma or
        point, or empty.
    key : path
        From `write_sheet`.

    Raises
    ------
    DataError
        If an item is missing, doubled or unknown, a rating is no finite number, or an output is not the one that was
        written; the message names rows as a spreadsheet counts them.
    StateError
        If the key is no key, or was changed.
    """
    content = read_state(key, KIND, "the key of a rating sheet: take what write_sheet wrote")
    known: dict[str, dict[str, Any]] = content["items"]
    sheet = Path(path)
    lines = list(_lines(sheet))
    _check_items(sheet, lines, known)
    ratings: dict[str, float] = {}
    for number, line in lines:
        entry = known[line["item"]]
        if _hash(unguarded(line["output"])) != entry["hash"]:
            raise DataError(
                f"{sheet}, row {number}: the output of item {line['item']!r} is not the one that was written; only "
                "ratings may be filled in: copy the output from the sheet as it was"
            )
        ratings[line["item"]] = _rating(sheet, number, line["rating"])
    originals = {entry["row"]: ratings[item] for item, entry in known.items() if entry["effect"] == "original"}
    return RatedSheet(
        content["criterion"],
        tuple(
            RatedPair(**{name: value for name, value in entry.items() if name != "hash"},
                      original=originals[entry["row"]], perturbed=ratings[item])
            for item, entry in known.items()
            if entry["effect"] != "original"
        ),
    )  # fmt: skip


def guarded(text: str) -> str:
    """`text` for a cell that no spreadsheet reads as a formula, number or date; `unguarded` takes it back.

    Rating sheets have a guard of their own: they also keep numbers and dates from being converted, and raters would
    stumble over the column by which `metricsmith.spreadsheets` marks a table.
    """
    return GUARD + text if text.startswith(FORMULA) or CONVERTED.fullmatch(text) else text


def unguarded(cell: str) -> str:
    """Returns the text that `guarded` was given."""
    return cell.removeprefix(GUARD)


def spread(groups: Sequence[int], seed: int) -> list[int]:
    """Returns a random order of places in which no two of a group are neighbours, if there is such an order.

    A group that makes up more than half of the rest comes next; otherwise any other than the last one may.
    """
    random = np.random.default_rng(seed)
    waiting: dict[int, list[int]] = {}
    for place in random.permutation(len(groups)).tolist():
        waiting.setdefault(groups[place], []).append(place)
    order: list[int] = []
    last = None
    for left in range(len(groups), 0, -1):
        names = [name for name in waiting if waiting[name]]
        most = max(names, key=lambda name: len(waiting[name]))
        others = [name for name in names if name != last]
        if others and (2 * len(waiting[most]) <= left or most == last):
            shares = np.array([len(waiting[name]) for name in others], dtype=float)
            last = others[int(random.choice(len(others), p=shares / shares.sum()))]
        else:
            last = most
        order.append(waiting[last].pop())
    return order


def _lines(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields row numbers, the header's being 1, and cells by column; lines without any content are passed over."""
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise DataError(
            f"{path} cannot be read ({problem.strerror}): name the sheet that a rater filled in"
        ) from problem
    columns = parse_file(path, content).columns
    absent = [name for name in ("item", "output", "rating") if name not in columns]
    if absent:
        raise DataError(f"{path} has no column {absent[0]!r}, only {', '.join(columns)}: leave the header as it was")
    cells = {name: [str(cell or "") for cell in columns[name]] for name in ("item", "output", "rating")}
    for number, (item, output, rating) in enumerate(zip(*cells.values(), strict=True), 2):
        if item.strip() or output.strip() or rating.strip():
            yield number, {"item": item.strip(), "output": output, "rating": rating.strip()}


def _check_items(path: Path, lines: Sequence[tuple[int, dict[str, str]]], known: dict[str, Any]) -> None:
    for number, line in lines:
        if line["item"] not in known:
            raise DataError(
                f"{path}, row {number}: there is no item {line['item']!r} in the key: is it another sheet's?"
            )
    counts = Counter(line["item"] for _, line in lines)
    twice = next((item for item in counts if counts[item] > 1), None)
    if twice is not None:
        rows = " and ".join(str(number) for number, line in lines if line["item"] == twice)
        raise DataError(f"{path}, rows {rows}: item {twice!r} stands there {counts[twice]} times; leave it in one row")
    missing = [item for item in known if item not in counts]
    if missing:
        raise DataError(
            f"{path} lacks {len(missing)} of {len(known)} items, such as {missing[0]!r}: leave every row in the "
            "sheet; what is not rated has an empty rating"
        )


def _rating(path: Path, number: int, cell: str) -> float:
    text = unguarded(cell)
    plain = text if THOUSANDS.fullmatch(text) else text.replace(",", ".", 1)
    if text and not DECIMAL.fullmatch(plain):
        raise DataError(
            f"{path}, row {number}: the rating {cell!r} is no number; write one such as 4 or 3.5, or leave it empty"
        )
    return float(plain) if text else math.nan


def _hash(output: str) -> str:
    """Returns the hash of the parts that survive a spreadsheet: line ends do not."""
    return content_hash("output", "\n".join(output.splitlines()).strip())
