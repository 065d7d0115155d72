"""The report of a specialist's evaluation: its sentence, tables, plots and files."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from metricsmith.records import Usage
from metricsmith.report.render import render_html, render_markdown, render_terminal
from metricsmith.report.specialist.document import (
    SPECIALIST_FILES,
    SpecialistDocument,
    specialist_verdict,
    write_specialist,
)
from metricsmith.report.specialist.record import (
    BesideCopying,
    Copying,
    PolicyResult,
    SpecialistEvaluation,
    SystemResult,
)
from metricsmith.stats.resampling import Interval

COPIES = Copying(20, 1.0, 1.0, 0.5, 0.6, 0)


def line(judge, policy, value, difference=math.nan, p=math.nan, **changes):
    settings = {
        "precision": value + 0.1, "recall": value - 0.1, "candidates": 12.0,
        "by_segment": Interval(value - 0.05, value + 0.05), "by_document": Interval(value - 0.1, value + 0.1),
        "difference": difference, "p_by_segment": 2 * p, "p_by_document": p,
        "systems": {"x<b>": value, "flat": math.nan}, "raters": {"anna": value, "bert": value / 2},
        "excluded": {"of the row's own system": 20, "of an equal output": 5},
        "judgements": {"requested": 10, "ok": 8, "skipped": 2}, "copying": Copying(20, 0.4, 0.5, 0.5, 0.6, 7),
    }  # fmt: skip
    return PolicyResult(judge, policy, 7.5, 12.25, value=value, **{**settings, **changes})


def record(*results, **changes):
    settings = {
        "history": "old.tsv", "measure": "character-f1", "ratings": 10, "sources": 4, "documents": 8,
        "systems": (SystemResult("x<b>", -1.5, 6), SystemResult("flat", -7.25, 4)), "raters": ("anna", "bert"),
        "curve": {"mqm_run, same": ((1, 0.2), (3, 0.4)), "mqm_run, shuffled": ((1, 0.1), (3, math.nan))},
        "as_rater": {"anna": {"anna": 0.5, "bert": 0.3}, "bert": {"anna": 0.25, "bert": math.nan}},
        "people": {"anna": {"anna": 1.0, "bert": 0.27}, "bert": {"anna": 0.31, "bert": 1.0}},
        "signature": "metricsmith:0 specialist", "only": {"same": (9, 4), "shuffled": (3, 0)},
        "notes": ("a, b are <i>one</i>",), "warnings": ("mqm_run, same: 2 rows: no example",),
    }  # fmt: skip
    return SpecialistEvaluation(results=results, **{**settings, **changes})


def beside(judge, value, difference, p):
    ends = Interval(difference - 0.05, difference + 0.05)
    return BesideCopying(judge, value, difference, ends, 2 * p, ends, p)


SAME = line("mqm_run", "same", 0.5, usage=Usage(10, 900, 80, 0.25))
FULL = record(
    SAME,
    line("mqm_run", "shuffled", 0.3, -0.2, 0.001, spread=0.0123, difference_by_segment=Interval(-0.3, -0.1),
         difference_by_document=Interval(-0.4, 0.0)),
    line("parrot_all", "same", 0.4, copying=COPIES, baseline=True),
    line("parrot_all", "shuffled", 0.1, -0.3, 0.0004, copying=COPIES, baseline=True),
    beside=(beside("parrot_all", 0.4, 0.1, 0.002),),
)  # fmt: skip


def test_a_specialist_ahead_of_its_other_policies_and_of_the_parrot_is_good():
    verdict = specialist_verdict(FULL)
    assert verdict.tone == "good"
    assert verdict.sentence == (
        "mqm_run with the policy same reaches character F1 .50 (95 % interval .40 to .60 over documents). It is ahead "
        "of shuffled. It beats copying the same examples: parrot_all reaches .40, a lead of +.10 (95 % interval .05 to "
        ".15, p = .002)."
    )


PARROTS = tuple(line(f"parrot_{name}", "same", value, copying=COPIES, baseline=True) for name, value in
                (("all", 0.4), ("first", 0.45)))  # fmt: skip
NOWHERE = replace(SAME, by_document=Interval(math.nan, math.nan))
BEATEN = (beside("parrot_all", 0.4, 0.1, 0.002),)


@pytest.mark.parametrize(
    ("results", "beaten", "tone", "says"),
    [
        ((SAME, line("mqm_run", "other", 0.6, 0.1, 0.01)), BEATEN, "bad", "It is behind other. It beats copying"),
        ((SAME, line("mqm_run", "other", 0.4, -0.1, 0.2)), BEATEN, "unsure", "It cannot be told from other."),
        (
            (SAME, line("mqm_run", "other", 0.4, -0.1, 0.01)), (beside("parrot_all", 0.6, -0.1, 0.01),), "bad",
            "It does not show that it beats copying the same examples, which costs nothing: parrot_all does better",
        ),
        ((SAME,), (beside("parrot_all", 0.48, 0.02, 0.4),), "bad", "parrot_all could be as good with .48"),
        ((SAME,), (*BEATEN, beside("parrot_first", 0.49, 0.01, 0.6)), "bad", "parrot_first could be as good with .49"),
        ((SAME, line("mqm_run", "filtered", 0.9, 0.4, 0.01)), BEATEN, "good", "over documents). It beats copying"),
        ((SAME,), (), "unsure", "No baseline stands beside it"),
        (PARROTS, (), "unsure", "No model was asked: parrot_first, with .45, is what a specialist has to beat."),
        ((replace(SAME, value=math.nan),), (), "unsure", "has no defined agreement"),
        ((NOWHERE,), BEATEN, "good", "95 % interval .45 to .55 over segments"),
        (
            (NOWHERE, replace(line("mqm_run", "other", 0.4, -0.1, 0.01), p_by_document=0.5)), BEATEN, "good",
            "It is ahead of other.",
        ),
    ],
)  # fmt: skip
def test_the_sentence_says_what_the_tests_allow(results, beaten, tone, says):
    verdict = specialist_verdict(record(*results, beside=beaten))
    assert says in verdict.sentence
    assert verdict.tone == tone
    assert "filtered" not in verdict.sentence


def test_with_fewer_than_six_documents_the_verdict_goes_by_segments():
    assert "over segments" in specialist_verdict(record(SAME, documents=5, beside=BEATEN)).sentence


def test_the_terminal_has_the_tables_and_what_must_not_be_overlooked():
    text = render_terminal(SpecialistDocument(FULL)).replace("\xa0", " ")
    lines = [" ".join(one.split()) for one in text.splitlines()]
    assert lines[0] == " ".join(specialist_verdict(FULL).sentence.split())
    assert lines[1] == (
        "2 systems, each held out in turn: character F1 on 10 ratings by 2 raters of 4 sources in 8 documents "
        "(old.tsv)."
    )
    assert "same 7.50 12.25 .500 .600 .400 .450 to .550 .400 to .600 –" in lines
    assert "shuffled 7.50 12.25 .300 .400 .200 .250 to .350 .200 to .400 .012" in lines
    assert "shuffled −.200 −.300 to −.100 .002 −.400 to .000 .001" in lines
    assert "same – – – – –" not in lines  # the first policy has no difference
    assert "same 20 40 % 50 % 50 % 60 % 7" in lines
    assert "Raters reach .270 to .310 against one another on the same rows." in lines
    assert "mqm_run: 9 errors marked with same alone, 4 of them equal to an error in the examples of same." in lines
    assert lines[-3:] == [
        "warning: mqm_run, same: 2 rows: no example", "note: a, b are <i>one</i>", "metricsmith:0 specialist",
    ]  # fmt: skip


def test_markdown_has_every_table_and_escapes_names():
    text = render_markdown(SpecialistDocument(FULL)).replace("\xa0", " ")
    assert "| x&lt;b&gt; | −1.50 (6) | .500 | .300 | .400 | .100 |" in text
    assert "| anna |  | .500 | .300 | .400 | .100 |" in text
    assert "| mqm\\_run, shuffled | .100 | – |" in text
    assert "| bert | .250 | – |" in text  # the judge
    assert "| bert | .310 | 1.000 |" in text  # people
    assert "| not shown: of the row's own system | 2.00 | 2.00 |" in text
    assert "| candidates: ratings of its source, and drawn ones | 12.00 | 12.00 |" in text
    assert "- 10 requests, 900 tokens sent, 80 received, \\$0.25." in text
    assert "- mqm\\_run, same: judgements without a result: 2 skipped." in text
    assert "<i>" not in text


def test_the_page_holds_both_plots_and_no_markup_of_the_data():
    page = render_html(SpecialistDocument(FULL))
    assert page.count("<svg") == 2
    assert "mqm_run, same: .50 at −1.5" in page  # the description of Figure 2; an undefined system is left out
    assert "mqm_run, same: .20 at 1, .40 at 3" in page
    assert "x<b>" not in page
    for section in ("policies", "curve", "raters", "copying", "examples", "notes"):
        assert f'<section id="{section}"' in page


def test_numbers_without_marks_need_neither_raters_nor_copies():
    plain = record(
        *(replace(one, precision=math.nan, recall=math.nan, copying=Copying()) for one in FULL.results),
        measure="acc-t", raters=(), curve={}, as_rater={}, people={}, only={}, notes=(), documents=0,
    )  # fmt: skip
    page, text = render_html(SpecialistDocument(plain)), render_terminal(SpecialistDocument(plain))
    for section in ("curve", "raters", "copying", "notes"):
        assert f'<section id="{section}"' not in page
    assert "acc-t on 10 ratings of 4 sources (old.tsv)." in text
    assert "precision" not in text
    assert "errors marked" not in text


def test_the_files_are_written_and_json_holds_the_record(tmp_path):
    write_specialist(FULL, tmp_path / "new")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(SPECIALIST_FILES)
    written = json.loads((tmp_path / "new" / "specialist.json").read_text("utf-8"))
    assert written == FULL.as_dict()
    assert written["results"][0]["candidates"] == 12.0
    assert written["results"][0]["difference"] is None
