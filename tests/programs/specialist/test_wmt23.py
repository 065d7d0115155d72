"""Parrots on real ratings: English into German, WMT23 side by side, three raters by segment, two of ten systems equal.

The figures come from a separate program of fifty lines that reads the file itself, holds out and chooses by loops over
its records, and shares the measure alone with this package (character F1, which has golden values of its own).
"""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from metricsmith.datasets.history import History, joined_systems
from metricsmith.datasets.wmt_mqm import read_wmt_mqm
from metricsmith.errors import LeakedExample
from metricsmith.meta_evaluation.spans import character_f1, locate_spans
from metricsmith.optimizers.specialist import Specialist
from metricsmith.programs.judges.parrot import Parrot
from metricsmith.programs.specialist.choosing import Chooser, ExamplePolicy, Judged
from metricsmith.programs.specialist.leaks import check_examples
from metricsmith.records import ErrorSpan

TWINS = ("GPT4-5shot_with_ONLINE-W", "GPT4-5shot_with_refA")


@pytest.fixture(scope="module")
def past(shared_data):
    return History.from_table(read_wmt_mqm(shared_data / "wmt23_sxs_ende.jsonl.gz"))


@pytest.fixture(scope="module")
def joined(past):
    return joined_systems(past)


def judged(one):
    return Judged(one.source, one.output, one.system, one.rater)


def copied(past, policy, joined, occurrences="all", filtered=False):
    """Mean examples and errors a row, and character F1, precision and recall in percent, of copying the examples.

    Without the `Parrot`: equal marks are looked for once, since a character is marked or is not.
    """
    chooser, examples, errors, spans = Chooser(past, policy, joined), 0, 0, []
    for one in past.ratings:
        shown = [past.ratings[place] for place in chooser.choose(judged(one)).places]
        gold = {span.text for span in one.spans if span.side == "target"} if filtered else set()
        marked = [span for other in shown for span in other.spans if span.side == "source" or span.text not in gold]
        examples, errors = examples + len(shown), errors + len(marked)
        texts = {(span.severity, span.text) for span in marked if span.side == "target" and span.text}
        spans.append(
            locate_spans([ErrorSpan(severity, text=text) for severity, text in texts], one.output, policy=occurrences)
            .spans
        )  # fmt: skip
    found = character_f1(spans, [one.spans for one in past.ratings], [one.output for one in past.ratings])
    n = len(past)
    return (round(examples / n, 2), round(errors / n, 2),
            *(round(100 * value, 2) for value in (found.f1, found.precision, found.recall)))  # fmt: skip


def test_two_systems_are_one(past, joined):
    assert joined == dict.fromkeys(TWINS, TWINS[0])
    assert (len(past), len(past.of_source), len(past.systems), len(past.raters)) == (3120, 104, 10, 10)


# The table: examples and errors a row, character F1 of all occurrences (precision, recall), of the first.
KEEP, BOTH = {"same_output": "keep"}, {"twins": "both"}
TABLE = [
    ("clean", {**KEEP}, False, (8.0, 25.73, 34.45, 31.02, 38.74)),
    ("equal outputs dropped", {}, False, (7.88, 25.68, 34.34)),
    ("other rater", {"rater": "other", **KEEP}, False, (8.0, None, 14.66)),
    ("merged", {"rater": "merged", **KEEP}, False, (16.0, None, 16.33, 12.16, 24.87)),
    ("filtered", {}, True, (7.88, None, 11.13)),
    ("both twins", {**KEEP, **BOTH}, False, (8.8, None, 34.29)),
    ("both twins, dropped", BOTH, False, (None, None, 34.18)),
    ("both twins, other rater", {"rater": "other", **KEEP, **BOTH}, False, (8.8, None, 14.79)),
    ("both twins, merged", {"rater": "merged", **KEEP, **BOTH}, False, (None, None, 16.41)),
    ("both twins, filtered", BOTH, True, (None, None, 11.26)),
]


@pytest.mark.parametrize(("name", "policy", "filtered", "figures"), TABLE, ids=[row[0] for row in TABLE])
def test_the_table_of_parrots(past, joined, name, policy, filtered, figures):
    found = copied(past, ExamplePolicy(**policy), joined, filtered=filtered)
    assert [one for one, known in zip(found, figures, strict=False) if known is not None] == [
        known for known in figures if known is not None
    ]


def test_holding_out_by_name_alone_would_look_better(past):
    """The twin gives the answers away: 37.77 for 34.45, and 44.82 for 40.54 with first occurrences."""
    naive = ExamplePolicy(**KEEP)
    assert copied(past, naive, {})[:3] == (9.0, 28.78, 37.77)
    assert copied(past, naive, {}, "first")[2] == 44.82
    row = next(judged(one) for one in past.ratings if one.system == TWINS[0])
    shown = [past.ratings[place] for place in Chooser(past, naive, {}).choose(row).places]
    with pytest.raises(LeakedExample, match="which is the row's system or equals it"):
        check_examples(
            [(one.source, one.output, one.spans) for one in shown], row, naive, past,
            lambda place: past.ratings[place].spans, {},
        )  # fmt: skip


@pytest.mark.parametrize(("source", "rater"), [*product(("shuffled", "fixed"), ("same", "any"))])
def test_examples_of_other_sources_are_worth_little(past, joined, source, rater):
    examples, _, f1, *_ = copied(past, ExamplePolicy(source, rater, **KEEP), joined)
    assert examples == 8.0
    assert f1 < 8


def test_the_parrot_gives_the_figures_of_copying(past):
    made = Specialist(ExamplePolicy(**KEEP)).compile(Parrot(occurrences="first"), past)  # with the second look
    judgements = made.judge_batch(past.rows())
    assert all(judgement.ok for judgement in judgements)
    found = character_f1(
        [judgement.spans for judgement in judgements],
        [one.spans for one in past.ratings],
        [one.output for one in past.ratings],
    )
    assert round(100 * found.f1, 2) == 40.54


def test_every_row_is_accounted_for(past, joined):
    chooser = Chooser(past, ExamplePolicy(), joined)
    total: Counter[str] = Counter()
    for one in past.ratings:
        found = chooser.choose(judged(one))
        assert found.candidates == 30 == len(found.places) + sum(found.excluded.values())
        assert found.fallbacks == ()
        total.update(found.excluded)
    # Of 30 ratings of a source: 3 of the own system, for the two twins 3 of the other one.
    assert total["of the row's own system"] == 3120 * 3
    assert total["of a system that equals the row's"] == 2 * 312 * 3
