"""Errors that judges marked beside people's, laid out for page, Markdown and terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator

from metricsmith.formats import count, enumerated, interval, interval_stated, p_stated, p_value, statistic
from metricsmith.meta_evaluation.marked import MarkedErrors
from metricsmith.report.blocks import Block, Paragraph, TextTable
from metricsmith.stats.resampling import Interval

__all__ = ["marked_blocks", "marked_parts"]

SIGNIFICANT = 0.05
MOST_NAMES = 3
MEANING = (
    "Character F1: a character that judge and person both mark earns 1, or a half if they differ in major and minor; "
    "critical errors count as major. Precision and recall are of the same sums over all ratings. Errors of the source "
    "side do not count. Intervals leave out whole documents, and tests swap the two judges in whole documents."
)


def marked_blocks(marked: MarkedErrors) -> list[Block]:
    """The part on marked errors, with what its figures mean."""
    return [*marked_parts(marked), Paragraph(MEANING, "small")]


def marked_parts(marked: MarkedErrors) -> Iterator[Paragraph | TextTable]:
    """A sentence, a table of the judges, and one of every two of them."""
    yield Paragraph(_said(marked))
    if not marked.judges:
        return
    rows = [
        (
            one.name, *_with_ends(one.f1, one.f1_interval), *_with_ends(one.precision, one.precision_interval),
            *_with_ends(one.recall, one.recall_interval), count(one.unlocated or None),
        )
        for one in marked.judges
    ]  # fmt: skip
    head = ("marked errors", "F1", "95 %", "precision", "95 %", "recall", "95 %", "not in the text")
    yield TextTable(head, rows, "Marked characters of each judge, beside those that people marked")
    if marked.comparisons:
        pairs = [
            (
                f"{two.best} over {two.other}", statistic(two.difference),
                interval(two.interval.low, two.interval.high), p_value(two.p_value),
            )
            for two in marked.comparisons
        ]  # fmt: skip
        yield TextTable(("F1 of", "difference", "95 %", "p"), pairs, "Character F1 of every two judges, paired")


def _said(marked: MarkedErrors) -> str:
    """The judge that marks most like people, on what that rests, and who is left out."""
    out = f" Left out, since no words are marked: {enumerated(marked.left_out, MOST_NAMES)}." if marked.left_out else ""
    if not marked.judges:
        return f"No judge has marked errors in an output that people rated.{out}"
    best = marked.judges[0]
    missing = f", {count(marked.missing)} more lack a judge" if marked.missing else ""
    documents = (
        f"in {count(marked.documents, 'document')}" if marked.documents else "(each segment taken for a document)"
    )
    basis = f"{count(marked.ratings, 'rating')} {documents}{missing}"
    if math.isnan(best.f1):
        return f"Nobody marks any words in {basis}, so that marks cannot be compared.{out}"
    ends = interval_stated(best.f1_interval.low, best.f1_interval.high)
    found = f"{best.name} has character F1 {statistic(best.f1, 2)} ({ends}) on {basis}."
    if marked.comparisons:
        two = marked.comparisons[0]
        told = "is more than chance" if two.p_value <= SIGNIFICANT else "may be chance"
        found += f" Its lead over {two.other} {told} ({p_stated(two.p_value)})."
    return found + out


def _with_ends(number: float, ends: Interval) -> tuple[str, str]:
    return "undefined" if math.isnan(number) else statistic(number), interval(ends.low, ends.high)
