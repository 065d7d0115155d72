"""The page of a distillation: the verdict in words, the figures, the rows where both metrics differ."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from metricsmith.records import Usage
from metricsmith.report.distillation.document import (
    DISTILLATION_FILES,
    DistillationDocument,
    distillation_verdict,
    write_distillation,
)
from metricsmith.report.distillation.record import Distillation, Divergence
from metricsmith.report.render import render_markdown, render_terminal
from metricsmith.stats.agreement import Agreement, Difference
from metricsmith.stats.kept_share import KeptShare

RECORD = Distillation(
    paid="clarity", fingerprint="0123456789abcdef", width=4.0, evaluation="holdout", learned=200, components=(),
    imitation=Agreement(60, 20, 0.6, 0.5, 0.7, 0.001, 0.8, 0.75), target="stars",
    free_people=Agreement(60, 20, 0.4, 0.25, 0.52, 0.001, 0.5, 0.5),
    paid_people=Agreement(60, 20, 0.5, 0.4, 0.6, 0.001, 0.6, 0.6), difference=Difference(60, 20, -0.1, -0.2, 0.01),
    share=KeptShare(60, 20, 0.8, 0.62, 1.02),
    apart=(Divergence("r7", "An <b>output</b>.", "The question?", 4.2, 1.5, 2.6, 2.0),),
    judgements={"requested": 263, "ok": 260},
    usage=Usage(263, 1000, 100, 0.5), signature="metricsmith 0 | seed 0",
)  # fmt: skip


def said(**changes):
    verdict = distillation_verdict(replace(RECORD, **changes))
    return verdict.tone, verdict.sentence.replace("\xa0", " ")


def test_the_verdict_is_the_share_in_words():
    assert said() == (
        "unsure",
        "The free metric keeps 80 % of the paid metric's agreement with people (95 % interval 62 % to 102 %): tau-b "
        ".40 in place of .50, −.10 (95 % interval −.20 to +.01) on 60 held-out rows in 20 groups.".replace(
            "+.01", ".01"
        ),
    )


@pytest.mark.parametrize(
    ("changes", "tone", "begins"),
    [
        ({"share": KeptShare(60, 20, 0.95, 0.85, 1.05)}, "good", "The free metric keeps 95 %"),
        ({"free_people": Agreement(60, 20, 0.1, -0.1, 0.3)}, "bad", "The free metric keeps"),
        ({"share": KeptShare(60, 20, -0.2, -0.6, 0.1)}, "unsure", "The free metric keeps −20 %"),
        (
            {"share": KeptShare(60, 20, why_not="it ranks against people")},
            "unsure",
            "No share can be given, since it ranks against people; it follows the paid metric with tau-b .60",
        ),
        (
            {"free_people": Agreement(0, 0), "target": "", "share": KeptShare(0, 0)},
            "unsure",
            "Nothing is known of people here: it follows the paid metric with tau-b .60 (95 % interval .50 to .70)",
        ),
    ],
)
def test_the_tone_goes_with_what_is_known(changes, tone, begins):
    found, sentence = said(**changes)
    assert found == tone
    assert sentence.startswith(begins)


def test_markdown_holds_figures_and_rows():
    text = render_markdown(DistillationDocument(RECORD)).replace("\xa0", " ")
    assert "| share kept | 80 % | 62 % to 102 % |" in text
    assert "| free − paid | −.100 | −.200 to .010 |" in text
    assert "r7: free 4.20, paid 1.50, people 2 (gap +2.60 standard deviations)" in text
    assert "It imitates the paid metric, mistakes and all" in text


def test_without_people_the_table_has_the_imitation_alone():
    none = Agreement(0, 0)
    text = render_terminal(
        DistillationDocument(replace(RECORD, free_people=none, paid_people=none, target="", share=KeptShare(0, 0))),
        None,
    )
    assert "free with paid" in text
    assert "share kept" not in text


def test_an_undefined_share_is_a_dash():
    text = render_markdown(DistillationDocument(replace(RECORD, share=KeptShare(60, 20, math.nan, why_not="x"))))
    assert "| share kept | – | – |" in text


def test_files_are_written_with_texts_escaped(tmp_path):
    write_distillation(RECORD, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(DISTILLATION_FILES)
    page = (tmp_path / "distillation.html").read_text("utf-8")
    assert "An &lt;b&gt;output&lt;/b&gt;." in page
    assert "<b>output" not in page


def test_the_notebook_shows_the_verdict_first():
    shown = RECORD._repr_html_()
    assert "keeps 80" in shown
    assert "metricsmith 0 | seed 0" in shown
