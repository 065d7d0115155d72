"""Scored rows as a page to work with: their distribution, and a table to sort, filter, search and open row by row.

The rows stand in the page as JSON, of which a script draws 50 at a time; without a script the first 50 are shown.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from statistics import fmean, median
from typing import Any

from metricsmith.formats import MISSING, clean, count, excerpt, percent, points, raw, single_line
from metricsmith.records import Judgement, Status
from metricsmith.report.blocks import (
    Block,
    Box,
    Figure,
    Markup,
    Page,
    Section,
    TextTable,
    Tone,
    Verdict,
    Warnings,
    element,
    header,
    isolated,
    joined,
    named,
    on_page,
)
from metricsmith.report.plots.histogram import histogram
from metricsmith.report.render import render_page, replace_file
from metricsmith.report.scored.record import ScoredRow, ScoredRows

__all__ = ["MOST_ROWS", "scored_page", "scored_verdict", "shown_rows", "write_page"]

MOST_ROWS = 20_000
MOST_CELLS = 300_000  # rows times components and texts
MOST_BYTES = 14_500_000  # of the rows in the page
LENGTHS = (1_000_000, 5_000, 2_000, 1_500, 1_000, 800, 600, 400, 200, 100, 50, 20)  # of texts, the first that fits
MOST_PLOTS = 12
FIRST = 50
MUCH = 0.2  # share of rows without a value from which the page is marked bad


def write_page(rows: ScoredRows, path: str | PathLike[str]) -> None:
    """Write scored rows as one HTML page that needs no network.

    Parameters
    ----------
    rows : ScoredRows
        Of more than `MOST_ROWS`, or fewer where there are many components, the worst are in the table. Texts are cut
        where the rows would take more than 14 MB. The page says both.
    path : path
        Written whole or not at all.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    replace_file(Path(path), render_page(scored_page(rows), single_line(rows.metric)))


def shown_rows(table: ScoredRows) -> tuple[list[ScoredRow], str]:
    """The rows that a page has room for, in their order, and the sentence on those left out, empty if there are none.

    Rows without a value stay first, then those with the lowest scores; of metrics beside each other those in which one
    is missing, then the first rows.
    """
    rows = table.rows
    wide = len(rows[0].cells) + len(rows[0].parts) if rows else 0
    most = min(MOST_ROWS, MOST_CELLS // max(1, wide))
    if len(rows) <= most:
        return list(rows), ""

    def place(number: int) -> float:
        value = rows[number].prediction
        if value is None:
            return float(not rows[number].missing)
        return -1.0 if not value.ok else value.score or 0.0

    worst = "worst (rows without a value, then the lowest scores)"
    which = "first (those with a missing value before others)" if not _valued(table) else worst
    kept = sorted(sorted(range(len(rows)), key=place)[:most])
    said = (
        f"The table has {count(most)} of {count(len(rows), 'row')}, the {which}; {count(len(rows) - most)} are left out"
    )
    return [rows[number] for number in kept], f"{said}. The distribution is that of all rows."


def scored_verdict(table: ScoredRows) -> Verdict:
    """The mean value and the gaps, in one sentence."""
    rows, total = table.rows, len(table.rows)
    gaps = sum(bool(row.missing) for row in rows)
    if not _valued(table):
        none = sum(len(row.missing) == len(row.parts) for row in rows)
        lack = f"values missing in {count(gaps, 'row')}" if gaps else "no value is missing"
        sentence = f"{count(total, 'row')} by {count(len(_parts(table)), 'metric')}; {lack}."
    else:
        values = _numbers(row.prediction for row in rows)
        none = total - len(values)
        mean = f"mean {single_line(table.target)} {points(fmean(values) if values else None, _width(table))}"
        scale = f" on {table.scale}" if table.scale else ""
        lack = "; ".join(
            [f"{count(none, 'row')} without a value"] * bool(none)
            + [f"components missing in {count(gaps, 'row')}"] * bool(gaps)
        )
        sentence = f"{count(len(values), 'row')} scored, {mean}{scale}{'; ' + lack if lack else ''}."
    tone: Tone = "bad" if none > MUCH * total else "unsure" if gaps or none else "good"
    return Verdict(tone, sentence)


def scored_page(table: ScoredRows) -> Page:
    """The verdict beside the distribution, the rows, and the components one by one."""
    rows, left_out = shown_rows(table)
    content, cut = _data(table, rows)
    plots, name = _plots(table), excerpt(table.target, 60)
    script = element("script", Markup(content), type="application/json", id="scored-data")
    few = f"The first {min(FIRST, len(rows))} rows. " if len(rows) > FIRST else ""
    fallback = f"{few}Sorting, filters, search and the details of a row need a browser that runs scripts."
    return Page(
        title=f"Scored rows: {name or single_line(table.source)}",
        skip="Skip to the rows",
        header=[
            *header(
                joined("metricsmith, scored rows of ", isolated(single_line(table.source))),
                "Scored rows",
                joined(named(name), f", {table.scale}" if table.scale else "") if name else "",
            ),
            Box("hero", [Box("", [scored_verdict(table), _facts(table)]), *plots[:1]]),
            Warnings([*filter(None, (left_out, cut)), *table.notes]),
        ],
        main=[
            *([Box("pair", plots[1:MOST_PLOTS])] if plots[1:] else ()),
            Section(
                "rows",
                "Rows",
                [
                    element("noscript", element("p", fallback)),
                    _first(table, rows[:FIRST]),
                    script,
                ],
            ),
            *([Section("components", f"{_word(table).title()}s", [on_page(_summary(table))])] if _parts(table) else ()),
        ],
        script="scored",
    )


def _parts(table: ScoredRows) -> Sequence[Any]:
    return table.rows[0].parts if table.rows else ()


def _valued(table: ScoredRows) -> bool:
    """True where rows have a value of their own, False for metrics beside each other."""
    return bool(table.rows) and table.rows[0].prediction is not None


def _word(table: ScoredRows) -> str:
    return "component" if _valued(table) else "metric"


def _numbers(judgements: Any) -> list[float]:
    return [judgement.raw for judgement in judgements if judgement is not None and judgement.raw is not None]


def _width(table: ScoredRows) -> float:
    """Of the scale, which scores tell where it is not known, or else the range of the values: decides the decimals."""
    if table.scale:
        return table.scale.width
    found = [row.prediction for row in table.rows if row.prediction is not None]
    known = [(one.raw, one.score) for one in found if one.raw is not None and one.score is not None]
    inside = sorted((value, score) for value, score in known if 0 < score < 1)  # those beyond the scale are cut
    if inside and inside[-1][1] != inside[0][1]:
        (low, least), (high, most) = inside[0], inside[-1]
        width = (high - low) / (most - least)
        if all(math.isclose((value - low) / width, score - least, abs_tol=1e-9) for value, score in inside):
            return round(abs(width), 6)
    values = _numbers(found)
    return max(values) - min(values) if values else 0.0


def _plots(table: ScoredRows) -> list[Block]:
    """The distribution of the value, or of each of the metrics that stand beside each other."""
    hint = "Rows by value. Choosing a bar filters the table below."
    if _valued(table):
        drawn = {"value": (table.target or "value", _numbers(row.prediction for row in table.rows))}
    else:
        drawn = {
            f"part-{place}": (part.name, _numbers(row.parts[place].judgement for row in table.rows))
            for place, part in enumerate(_parts(table))
        }
    return [Figure(histogram(key, values, name), hint) for key, (name, values) in drawn.items() if values]


def _facts(table: ScoredRows) -> Markup:
    rows = table.rows
    values = _numbers(row.prediction for row in rows)
    facts = {"Rows": count(len(rows))}
    if values:
        facts |= {"Mean": points(fmean(values), _width(table)), "Median": points(median(values), _width(table))}
    lost = {status: number for status, number in table.counts().items() if status is not Status.OK}
    facts |= {f"No value: {status}": count(number) for status, number in lost.items()}
    if _parts(table):
        facts[f"A {_word(table)} missing"] = count(sum(bool(row.missing) for row in rows))
    return element(
        "dl",
        *(element("div", element("dt", term), element("dd", text)) for term, text in facts.items()),
        class_="facts",
    )


def _adds(rows: Sequence[ScoredRow]) -> bool:
    return any(math.isfinite(part.contribution) for row in rows for part in row.parts)


def _first(table: ScoredRows, rows: Sequence[ScoredRow]) -> TextTable:
    """The table without a script; its head is that of the table with one."""
    adds, width = _adds(table.rows), _width(table)
    head = [
        "id",
        *([named(table.target or "value")] if _valued(table) else ()),
        *map(named, rows[0].cells if rows else ()),
        *(named(part.name) for part in _parts(table)),
    ]
    lines = [
        [
            isolated(excerpt(row.id, 60)),
            *([points(row.prediction.raw, width)] if row.prediction is not None else ()),
            *(isolated(excerpt(text, 80)) for text in row.cells.values()),
            *(points(part.contribution, width, signed=True) if adds else raw(part.judgement.raw) for part in row.parts),
        ]
        for row in rows
    ]
    return TextTable(head, lines, label="Scored rows", style="scored")


def _summary(table: ScoredRows) -> TextTable:
    """Each component's own numbers, what it moves, and how often it is missing."""
    lines, width, adds = [], _width(table), _adds(table.rows)
    for place, part in enumerate(_parts(table)):
        column = [row.parts[place] for row in table.rows]
        values = _numbers(one.judgement for one in column)
        moved = [abs(one.contribution) for one in column if math.isfinite(one.contribution)]
        lost = Counter(one.judgement.status.value for one in column if not one.judgement.ok)
        spread = max(values) - min(values) if values else 0.0
        lines.append(
            [
                excerpt(part.name, 120),
                *(points(find(values), spread) if values else MISSING for find in (fmean, min, max)),
                *([points(fmean(moved) if moved else None, width)] if adds else ()),
                percent(sum(lost.values()) / len(column)),
                ", ".join(f"{number} {status}" for status, number in lost.most_common()) or MISSING,
            ]
        )
    moves, said = (
        (["moves the value by"], "Own numbers, and the mean size of what each adds") if adds else ([], "Numbers")
    )
    head = [_word(table), "mean", "least", "greatest", *moves, "missing", "of these"]
    return TextTable(head, lines, caption=said)


def _data(table: ScoredRows, rows: Sequence[ScoredRow]) -> tuple[str, str]:
    """The rows as JSON that HTML cannot break, and the sentence on texts that are cut, empty if none is."""
    for length in LENGTHS:
        cut = 0

        def kept(text: str, length: int = length) -> str:
            nonlocal cut
            cut += len(text) > length
            return clean(text if len(text) <= length else f"{text[:length]} […]")

        content = {
            "value": single_line(table.target or "value") if _valued(table) else None,
            "digits": len(points(1.0, _width(table)).partition(".")[2]),
            "cells": [single_line(name) for name in (rows[0].cells if rows else ())],
            "parts": [[single_line(part.name), single_line(part.meaning)] for part in _parts(table)],
            "word": _word(table),
            "adds": _adds(table.rows),
            "rows": [_row(row, kept) for row in rows],
        }
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
        if len(text.encode("utf-8", "backslashreplace")) <= MOST_BYTES:
            break
    said = f"{count(cut, 'text')} of more than {count(length)} characters are cut there on this page, marked […]."
    return text, said if cut else ""


def _row(row: ScoredRow, kept: Any) -> list[Any]:
    """One row for the script, in its order; reasons and failures by the places of their components.

    The reason of the value is left out where there are components: it repeats theirs.
    """
    value = row.prediction or Judgement("", 0.0)
    judgements = [part.judgement for part in row.parts]
    return [
        kept(row.id),
        [kept(text) for text in row.cells.values()],
        _short(row.prediction.raw if row.prediction else None),
        _short(row.intercept),
        value.status.value,
        kept(value.error),
        "" if row.parts else kept(value.feedback),
        [_short(judgement.raw) for judgement in judgements],
        [_short(part.contribution) for part in row.parts],
        {place: kept(judgement.feedback) for place, judgement in enumerate(judgements) if judgement.feedback},
        {
            place: [judgement.status.value, kept(judgement.error)]
            for place, judgement in enumerate(judgements)
            if not judgement.ok
        },
    ]


def _short(number: float | None) -> float | None:
    """Ten digits, by which a sum of contributions still equals its value; None for what is no number."""
    return None if number is None or not math.isfinite(number) else float(f"{number:.10g}")
