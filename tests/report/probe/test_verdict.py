"""The words on a probe."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from metricsmith.programs.perturbers.catalogue import BUILTIN
from metricsmith.report.probe.document import ProbeDocument
from metricsmith.report.probe.verdict import WORDS, probe_coverage, probe_findings, probe_verdict
from metricsmith.report.render import render_html, render_markdown
from probes import BLIND, COLUMN, METRIC, RECORD, STILL, change, share

TRUNCATE = replace(RECORD.strategies[0], name="truncate", sensitivity=share(0.2, 0.1, 0.4))


def test_a_metric_that_falls_and_holds_still_is_good_unless_it_is_deceived():
    good = probe_verdict(replace(RECORD, attacks=()))
    assert good.tone == "good"
    assert good.sentence == (
        "It notices when outputs get worse: 82 % of worse outputs score lower (95 % interval 74 % to 88 %), by chance "
        "50 %. Where nothing is lost it moves by .05 of its range on average (stability .95; 1 is to stand still)."
    )
    deceived = probe_verdict(RECORD)
    assert deceived.tone == "unsure"
    assert deceived.sentence.startswith("It notices some of what makes outputs worse: 82 %")
    assert "Falls for: praise of itself." in probe_findings(RECORD)


@pytest.mark.parametrize(
    ("metric", "tone", "said"),
    [
        (BLIND, "bad", "It does not notice when outputs get worse: 30 %"),
        (STILL, "bad", "never moves"),
        (COLUMN, "bad", "come with the data"),
        (replace(METRIC, sensitivity=share(0.55, 0.45, 0.64)), "unsure", "It may not notice what gets worse: 55 %"),
        (replace(METRIC, sensitivity=None, stability=None), "unsure", "nothing is known"),
        (replace(METRIC, sensitivity=share(0.9, math.nan, math.nan)), "bad", "(no interval)"),
    ],
)
def test_other_verdicts(metric, tone, said):
    found = probe_verdict(replace(RECORD, subjects=(metric, STILL), attacks=()))
    assert found.tone == tone
    assert said in found.sentence


def test_a_metric_that_never_moves_has_no_findings_beside_its_verdict():
    assert probe_findings(replace(RECORD, subjects=(STILL,))) == []
    assert probe_findings(replace(RECORD, subjects=(COLUMN,))) == []


def test_changes_are_sorted_by_what_their_intervals_decide_and_named_in_words():
    """Below .5 is missed, above it noticed; one that holds .5 or was never made is neither."""
    first, *rest = RECORD.strategies
    lines = (
        first,
        TRUNCATE,
        replace(first, name="typos", strength="subtle", sensitivity=share(0.3, 0.1, 0.49)),
        replace(first, name="negate", sensitivity=share(0.4, 0.2, 0.6)),
        replace(first, name="repeat", sensitivity=share(1.0, math.nan, math.nan, tied=0.0)),
        replace(first, name="Blur the facts", sensitivity=share(0.9, 0.8, 0.95)),
        *rest,
    )
    attacks = tuple(
        replace(RECORD.attacks[0], name=name, change=change((low + high) / 2, low, high))
        for name, low, high in (("pad_idle", -0.2, -0.1), ("formatting", -0.1, 0.1), ("own_attack", 0.1, 0.2))
    )
    record = replace(RECORD, strategies=lines, attacks=attacks)
    assert probe_findings(record) == [
        "Noticed: sentences left out and Blur the facts.",
        "Missed: texts broken off and misspelt words (subtle).",
        "Not clear if noticed: claims turned into their contrary and sentences repeated.",
        "Falls for: own attack.",
        "Does not fall for: idle sentences.",
        "Not clear if it falls for: bold type and bullets.",
    ]
    assert probe_verdict(record).tone == "unsure"


def test_a_missed_change_takes_the_verdict_down():
    assert probe_verdict(replace(RECORD, strategies=(TRUNCATE, *RECORD.strategies), attacks=())).tone == "unsure"


def test_the_least_stable_change_without_loss_is_named():
    moved = replace(RECORD.strategies[-1], name="whitespace", stability=change(0.8, 0.7, 0.9))
    said = probe_verdict(replace(RECORD, strategies=(*RECORD.strategies, moved))).sentence
    assert "moves by .05 of its range on average, most by other spacing (stability .95" in said
    assert "by .05 on average" in probe_verdict(replace(RECORD, unit="scores in [0, 1]")).sentence


def test_every_document_begins_with_the_verdict_and_the_findings():
    document, sentence = ProbeDocument(RECORD), probe_verdict(RECORD).sentence
    assert document.terminal(None)[: 1 + len(probe_findings(RECORD))] == [
        sentence,
        *(f"  {line}" for line in probe_findings(RECORD)),
    ]
    for text, heading in ((render_markdown(document), "| metric |"), (render_html(document), '<section id="probe"')):
        places = [text.index(said) for said in (sentence[:40], "Noticed: sentences left out", heading)]
        assert places == sorted(places)


def test_every_built_in_change_has_words():
    assert set(WORDS) == set(BUILTIN)
    assert len(set(WORDS.values())) == len(WORDS)


@pytest.mark.parametrize(("groups", "said"), [(30, ""), (20, "at least 9"), (3, "were not tried")])
def test_intervals_of_few_groups_come_with_their_measured_coverage(groups, said):
    found = probe_coverage(replace(RECORD, counts={**RECORD.counts, "groups": groups}))
    assert said in found
    assert bool(found) == bool(said)
