"""The sentence above judged translations: it claims no more than both pairings support, and says which one decides."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from metricsmith.records import Usage
from metricsmith.report.render import render_html, render_markdown, render_terminal
from metricsmith.report.translations.document import TranslationDocument
from metricsmith.report.translations.record import MeanScore, SystemDifference, TranslationRecord
from metricsmith.report.translations.verdict import difference_table, translations_verdict
from metricsmith.stats.resampling import Interval


def difference(other="b", documents=8, by_document=0.01, by_segment=0.01, low=0.5):
    """System a ahead of another by 2 points; the interval by document is the wider one."""
    ends = Interval(low, 4.5) if documents > 1 else Interval(math.nan, math.nan)
    p = by_document if documents > 1 else math.nan
    return SystemDifference("a", other, 2.0, 40, documents, Interval(1.0, 3.0), ends, by_segment, p)


def judged(*differences, systems="ab", segments=40):
    means = tuple(MeanScore(name, "", -1.0, -2.0, -0.5, segments, 0, 8) for name in systems)
    return TranslationRecord(
        "t", "English-German", "m", (), (), means, {"requested": 0, "ok": 0}, 0, Usage(), Usage(), "s",
        differences=differences,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("differences", "tone", "says", "reasons"),
    [
        ([difference()], "good",
         "a is better than b by 2.00 points (95 % interval 0.50 to 4.50, p = .010); that is more than luck.",
         ["Paired by segment and by document."]),
        ([difference(by_document=0.2)], "unsure",
         "Not decided: a has the best mean, ahead of b by 2.00 points (95 % interval 0.50 to 4.50, p = .200); that may "
         "be luck.",
         ["Against b pairing by segment says that it is more than luck, pairing by document does not, and the more "
          "careful one decides."]),
        ([difference(by_segment=0.2)], "unsure", "p = .200", ["Against b pairing by document says"]),
        ([difference(low=-0.1)], "unsure", "(95 % interval −0.10 to 4.50, p = .010); that may be luck.", ["Against b"]),
        ([difference(by_document=0.2, by_segment=0.2)], "unsure", "Not decided", ["Paired by segment and"]),
        ([difference(documents=5, by_document=0.07, by_segment=0.2)], "unsure", "Not decided",
         ["With 5 documents nothing is decided: it takes 6 at least."]),
        ([difference(documents=6, by_document=0.07, by_segment=0.2)], "unsure", "Not decided", ["Paired by"]),
        ([difference(documents=1)], "good", "a is better than b by 2.00 points (95 % interval 1.00 to 3.00, p = .010)",
         ["Paired by segment alone, since all are of one document"]),
        ([difference(), difference("c", by_document=0.3, by_segment=0.3)], "unsure",
         "a is better than b by 2.00 points (95 % interval 0.50 to 4.50, p = .010); that is more than luck. Not "
         "decided against",
         ["Paired by"]),
        ([difference(name) for name in "bcdef"], "good", "a is better than b, c, d and 2 more; that is", ["Paired by"]),
        ([], "unsure", "Not decided: no segment has a score of every system.", []),
    ],
)  # fmt: skip
def test_the_verdict_claims_no_more_than_both_pairings_support(differences, tone, says, reasons):
    verdict = translations_verdict(judged(*differences))
    assert verdict.tone == tone
    assert says in verdict.sentence
    texts = [block.text for block in verdict.details]
    assert len(texts) == len(reasons)
    assert all(text.startswith(reason) for text, reason in zip(texts, reasons, strict=True))


def test_seven_documents_are_the_fewest_for_three_systems():
    undecided = [difference(name, documents=6, by_document=0.1, by_segment=0.1) for name in "bc"]
    (reason,) = translations_verdict(judged(*undecided)).details
    assert reason.text == "With 6 documents nothing is decided: it takes 7 at least."


def test_fewer_than_thirty_segments_decide_nothing():
    few = replace(difference(documents=1), segments=29)
    verdict = translations_verdict(judged(few))
    assert (few.better, replace(few, segments=30).better, verdict.tone) == (False, True, "unsure")
    assert verdict.details[-1].text.startswith("With 29 segments nothing is decided: it takes 30, or grave errors")


def test_one_system_has_its_score_and_none_has_no_claim():
    alone = translations_verdict(judged(systems="a"))
    assert (
        alone.sentence
        == "a has a mean of −1.00 MQM points (95 % interval −2.00 to −0.50); with one system nothing is compared."
    )
    assert alone.tone == "unsure"
    assert translations_verdict(judged(segments=0)).sentence == "No system has a score, so that nothing can be said."


def test_the_table_has_both_pairings():
    table = difference_table(judged(difference(), difference("c", documents=1)))
    assert table.head == ("a ahead of", "by", "95 %, 8 documents", "p", "95 %, 40 segments", "p", "better")
    assert table.rows[0] == ("b", "2.00", "0.50 to 4.50", ".010", "1.00 to 3.00", ".010", "yes")
    assert table.rows[1][2:4] == ("–", "–")


def test_the_verdict_comes_first_in_every_form():
    document = TranslationDocument(judged(difference()))
    said = "a is better than b by 2.00 points"
    assert render_terminal(document).startswith(said)
    assert render_markdown(document).splitlines()[2].startswith(f"**{said}")
    page = render_html(document)
    assert page.index(said) < page.index("Systems and documents")
    assert "The best system beside the others" in page
