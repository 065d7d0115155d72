"""Two versions side by side as sentences, tables and files: pure functions of the record."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from metricsmith.metric import Explanation, Part
from metricsmith.records import Judgement, Status, Usage
from metricsmith.report.render import render_html, render_markdown, render_terminal
from metricsmith.report.scored.record import ScoredRow
from metricsmith.report.versus.document import VERSUS_FILES, VersusDocument, versus_verdict, write_versus
from metricsmith.report.versus.record import MovedPair, Versus
from metricsmith.stats.mean_difference import mean_difference

GAPS = np.tile([0.2, 0.6, 1.0], 10)  # mean .6


def scored(output, value, *contributions, said="", row_id="r1"):
    parts = tuple(
        Part(name, "", 1.0, True, one, 0.0, Judgement(name, one, 0.5, feedback=f"{said} {name}."))
        if math.isfinite(one) else
        Part(name, "", 1.0, True, math.nan, math.nan, Judgement(name, status=Status.REFUSED, error="refused"))
        for name, one in zip(("Tone", "Facts", "Order", "Length"), contributions, strict=False)
    )  # fmt: skip
    prediction = Judgement("m", value, 0.5, feedback=said)
    return ScoredRow.of(row_id, {"input": "Why?", "output": output}, Explanation(prediction, 3.0, parts))


def record(gaps=GAPS, groups=None, **changes):
    first = np.full(len(gaps), 2.5)
    settings = {
        "target": "clarity", "metric": "induced", "versions": ("a.csv", "b.csv"), "width": 4.0,
        "whole": mean_difference(first, first + gaps, groups, name="all pairs", width=4.0), "components": (), "by": "",
        "slices": (), "moved": (), "paired_by": "the column 'id'", "left_out": {}, "signature": "s | t",
    }  # fmt: skip
    return Versus(**{**settings, **changes})


def sliced():
    first = np.full(30, 2.5)
    parts = [
        mean_difference(first, first + GAPS * share, name=name) for name, share in (("Tone", 0.75), ("Facts", 0.25))
    ]
    slices = [mean_difference(first[:9], first[:9] + GAPS[:9], name="<b>de</b>|")]
    before = scored("It is\nso.", 2.0, 0.1, 0.2, 0.0, 0.3, said="poor")
    after = scored("It is <i>so</i>.", 4.0, 1.1, 0.5, math.nan, 0.9, said="rich")
    return record(
        components=tuple(parts), by="language", slices=tuple(slices), moved=(MovedPair(before, after, 2.0),),
        left_out={"rows of A pair with none": tuple("abcdefg")}, warnings=("Look.",), notes=("Noted.",),
        usage=Usage(3, 10, 5),
    )  # fmt: skip


def details(found):
    return [block.text for block in versus_verdict(found).details]


@pytest.mark.parametrize(
    ("gaps", "tone", "words"),
    [
        (
            GAPS,
            "good",
            "B is better: mean clarity 3.10 after 2.50, +0.60 (95 % interval +0.48 to +0.72, p < .001) on 30 pairs",
        ),
        (
            -GAPS,
            "bad",
            "B is worse: mean clarity 1.90 after 2.50, −0.60 (95 % interval −0.72 to −0.48, p < .001) on 30 pairs",
        ),
        (
            GAPS - 0.55,
            "unsure",
            "Not decided (about 350 pairs would decide): mean clarity 2.55 after 2.50, +0.05 (95 % interval",
        ),
    ],
)
def test_the_verdict_comes_with_its_figures(gaps, tone, words):
    verdict = versus_verdict(record(gaps))
    assert verdict.tone == tone
    assert verdict.sentence.startswith(words)
    assert verdict.sentence.endswith("in 30 groups.")
    assert "not in people's ratings" in details(record(gaps))[-1]


def test_the_verdict_says_where_lower_is_better():
    found = record(GAPS)
    falls = replace(found, whole=replace(found.whole, sign=-1))
    assert versus_verdict(falls).sentence.startswith(
        "B is worse: mean clarity (lower is better) 3.10 after 2.50, +0.60"
    )
    assert "lower is better" not in versus_verdict(found).sentence


def test_the_share_of_pairs_won_has_its_interval():
    (wins,) = [line for line in details(record()) if line.startswith("B wins")]
    assert wins == "B wins 100\xa0% of the pairs (95\xa0% interval 89\xa0% to 100\xa0%), loses 0\xa0% and ties 0\xa0%."


def test_an_open_verdict_says_how_many_pairs_would_decide():
    # Spread .332, (1.96 + .84) * .332 / .05 squared = 346 pairs.
    assert details(record(GAPS - 0.55))[0] == (
        "About 350 pairs in 350 groups would decide in four of five cases, if difference and spread stay as they are."
    )
    assert not any("would decide" in line for line in details(record()))


def test_no_number_of_pairs_stands_beside_a_difference_of_0():
    found = details(record(GAPS - 0.6))[0]
    assert found.startswith("The difference is so near 0 that no number of rows of this kind is likely to decide.")
    # (2.05 + .84) * .332 / sqrt(30) = .175
    assert found.endswith("One of 0.18 would have shown here in four of five cases; half of it takes about 120 pairs.")


@pytest.mark.parametrize(
    ("gaps", "groups", "words"),
    [
        (GAPS, np.zeros(30), "All pairs are of one group, which says nothing of how others vary."),
        (GAPS, np.arange(30) % 4, "Fewer than 6 groups never decide. About 45 pairs in 6 groups would decide in four"),
        (np.zeros(30), None, "No pair differs."),
        (np.full(8, 1.0), None, "Every pair differs by the same amount, which says nothing of how others vary."),
    ],
)
def test_what_cannot_be_decided_says_why(gaps, groups, words):
    assert details(record(gaps, groups))[0].startswith(words)


def test_the_terminal_begins_with_the_verdict():
    lines = render_terminal(VersusDocument(sliced())).splitlines()
    assert lines[0].startswith("B is better: ")
    assert next(line for line in lines if line.startswith("  all pairs")).split()[2:] == [
        "+0.60", "+0.48", "to", "+0.72", "<", ".001", "better", "2.50", "3.10", "30", "30",
    ]  # fmt: skip
    assert "  r1: +2.00, from 2.00 to 4.00. Tone +1.00. A: poor Tone. B: rich Tone. Length +0.60" in "\n".join(lines)
    assert "7 rows of A pair with none: a, b, c, d, e, …" in lines
    assert {"warning: Look.", "note: Noted.", "s | t"} < set(lines)
    assert any(line.startswith("actual:    3 requests") for line in lines)


def test_components_and_slices_stand_below_the_whole():
    text = render_markdown(VersusDocument(sliced()))
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    assert rows == ["", "---", "all pairs", "Tone", "Facts", "language", "---", "all pairs", "&lt;b&gt;de&lt;/b&gt;\\"]
    assert "All pairs, and what each component adds" in text
    assert "what each component adds" not in render_markdown(VersusDocument(record()))


def test_the_components_that_moved_most_give_their_reasons():
    text = render_markdown(VersusDocument(sliced()))
    assert [line for line in text.splitlines() if line.startswith("- ")][:3] == [
        "- Tone +1.00. A: poor Tone. B: rich Tone",
        "- Length +0.60. A: poor Length. B: rich Length",
        "- Facts +0.30. A: poor Facts. B: rich Facts",
    ]


def test_a_metric_without_components_gives_its_own_reasons():
    pair = MovedPair(scored("x", 2.0, said="It is vague."), scored("y", 4.0, said="It is plain."), 2.0)
    assert "A: It is vague. B: It is plain" in render_markdown(VersusDocument(record(moved=(pair,))))
    silent = MovedPair(scored("x", 2.0), scored("y", 4.0), 2.0)
    assert "A: x" in render_markdown(VersusDocument(record(moved=(silent,))))


def test_texts_of_the_data_are_escaped_and_cut_on_the_page():
    pair = sliced().moved[0]
    long = replace(pair, second=replace(pair.second, cells={"input": "", "output": "<script>" + "x" * 5000}))
    page = render_html(VersusDocument(replace(sliced(), moved=(long,))))
    assert "<script>" not in page
    assert "x […]" in page
    assert page.count("x" * 900) == 1
    assert "x" * 1001 not in page
    assert "&lt;b&gt;de" in page


def test_three_files_are_written(tmp_path):
    write_versus(sliced(), tmp_path / "new")
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(VERSUS_FILES)
    content = json.loads((tmp_path / "new" / "versus.json").read_text("utf-8"))
    assert (content["schema_version"], content["verdict"], content["by"]) == (1, "better", "language")
    assert content["moved"][0]["second"]["parts"][2]["contribution"] is None
