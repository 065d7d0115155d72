"""The report of a tuning: the verdict, the paired gain, candidates, what changed, and nothing that data can break."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest

from metricsmith.metric import fence
from metricsmith.records import Usage
from metricsmith.report.render import render_html, render_markdown, render_terminal
from metricsmith.report.tuning.document import TuningDocument, tuning_verdict, write_tuning
from metricsmith.report.tuning.record import CandidateResult, Selection, Tuning

BEFORE = CandidateResult("aaaaaaaaaa", 0.2, -0.1, 0.5, 0.0, 0.0, 0.0, 0.0)
BEST = CandidateResult("bbbbbbbbbb", 0.6, 0.4, 0.7, 0.4, 0.1, 0.2, 0.6)
AFTER = replace(BEST, statistic=0.55, gain=0.35, gain_low=0.15, gain_high=0.55)
EVIL = '<script>alert("x")</script> | *bold*'


def tuned(winner=AFTER, best=BEST, **changes):
    candidates = () if best is None else (best, replace(best, name="cccccccccc", gain=-0.1, statistic=0.1))
    made = Tuning(
        method="gepa", objective="kendall_tau_b",
        selection=Selection(BEFORE, candidates, 0.12, AFTER.name if winner else BEFORE.name, winner),
        before={"judge": "Rate it from 1 to 5."}, after={"judge": f"Rate it {'kindly ' if winner else ''}from 1 to 5."},
        demos=1, learned=40, selected=38, bound=600, usage=Usage(496, 1000, 200, None, 3.0), groups=40,
        demonstrations=({"output": "A notice.", "score": "4"},), signature="metricsmith 0 | seed 1",
    )  # fmt: skip
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("record", "tone", "says"),
    [
        (tuned(), "good", "Tuning helped: on rows that no candidate has seen, the change in kendall_tau_b is about "
                          "+.35 (95\u00a0% interval .15 to .55)."),
        (tuned(replace(AFTER, gain_low=-0.01)), "unsure", "Not decided, though the judge was replaced: "),
        (tuned(replace(AFTER, gain_low=math.nan, gain_high=math.nan)), "unsure", "is about +.35 (no interval)."),
        (tuned(None), "unsure", "Not decided, and the judge is unchanged: on rows that no candidate has seen, the "
                                "change in kendall_tau_b is +.40 (95\u00a0% interval .20 to .60) for the best of 2 "
                                "candidates, which brings .12 by luck."),
        (tuned(None, replace(BEST, gain=-0.02)), "unsure", "Tuning did not help, and the judge is unchanged: "),
        (tuned(None, None), "unsure", "Tuning changed nothing: no candidate judged every selection row"),
    ],
)  # fmt: skip
def test_the_verdict_claims_no_more_than_the_interval_of_the_gain(record, tone, says):
    assert tuning_verdict(record).tone == tone
    assert says in record.verdict
    assert str(record).startswith(record.verdict)
    assert render_terminal(TuningDocument(record)).startswith(record.verdict)


def test_the_page_shows_what_was_tried_and_what_changed():
    page = render_html(TuningDocument(tuned()))
    assert re.search(r"Rate it ?<ins> ?kindly ?</ins> ?from 1 to 5\.", page)
    for text in ("bbbbbbbb", "+.400", ".200 to .600", "chosen", "1 demonstration in the judge", "output: A notice.",
                 "496 requests of 600 at most",
                 "40 rows to learn from, 38 to select by in 40 groups.", "seed 1"):  # fmt: skip
        assert text in page, text
    assert page.count('<tr class="own">') == 1
    assert "the gain is not the difference of the two values" in page
    assert page.index(">before</p>") < page.index(">after</p>") < page.index("<ins>")
    assert page.index("Tuning helped") < page.index("Agreement with the raters")


def test_a_sentence_runs_on_over_the_breaks_of_its_source_and_lists_keep_theirs():
    wrapped = "Look at nothing but the criterion, point at what in\nthe output decides.\n\n- one\n- two"
    page = render_html(TuningDocument(tuned(after={"judge": wrapped})))
    shown = re.sub("<[^>]*>", "", page)
    assert "what in the output decides.\n\n- one\n- two" in shown


def test_the_printed_record_writes_numbers_as_its_page_does():
    text = str(tuned(reported={"pearson": (-0.25, 0.5)}))
    assert re.search(r"before +\.200 +−\.100 to \.500", text)
    assert re.search(r"pearson, before, not searched by +−\.250", text)
    decision = tuned().selection.verdict
    assert "gains +.40, +.28 after .12 for being the best of so many; standard error .10" in decision
    assert not re.search(r"0\.\d|-\.?\d|\d%", text.replace("metricsmith 0", ""))


def test_an_unchanged_judge_is_shown_as_such():
    page = render_html(TuningDocument(tuned(None, demonstrations=())))
    assert "The instruction of <bdi>judge</bdi> is unchanged." in page
    assert "The judge shows no demonstrations." in page
    assert '<tr class="own">' not in page


def test_demonstrations_are_shown_by_what_tells_them_apart():
    fields = {"task": "Write notices.", "output": fence("A notice."), "score": "4"}
    text = render_markdown(TuningDocument(tuned(demonstrations=(fields, {**fields, "output": "B", "score": "2"}))))
    assert "- output: A notice.; score: 4\n- output: B; score: 2\n" in text
    assert "Write notices." not in text


def test_markdown_has_both_instructions_in_full():
    text = render_markdown(TuningDocument(tuned(reported={"choice_kappa": (0.1, 0.3)})))
    assert "- before: Rate it from 1 to 5." in text
    assert "- after: Rate it kindly from 1 to 5." in text
    assert "| after | .550 | .400 to .700 | +.350 | .150 to .550 |" in text
    assert "| choice\\_kappa, after, not searched by | .300 |" in text
    assert text.splitlines()[2].startswith("**Tuning helped: ")


def test_failures_an_early_end_and_few_groups_are_warnings_everywhere():
    record = tuned(discarded=2, ended="the budget is spent", groups=18)
    assert record.warnings == (
        "2 candidates discarded for failed calls", "ended early: the budget is spent",
        "intervals rest on 18 groups of rows: they held the truth in as few as 91\u00a0% of simulated cases",
    )  # fmt: skip
    for render in (render_html, render_markdown, render_terminal):
        assert all(
            " ".join(warning.split()) in render(TuningDocument(record)).replace("\\%", "%").replace("\u00a0", " ")
            for warning in record.warnings
        )
    assert tuned(groups=2).warnings == ("intervals rest on 2 groups of rows",)
    assert tuned(groups=30).warnings == ()


def test_no_data_can_break_the_page_or_markdown():
    record = tuned(
        before={EVIL: EVIL},
        after={EVIL: EVIL + "!"},
        demonstrations=({EVIL: EVIL},),
        asked=EVIL,
        ended=EVIL,
        objective=EVIL,
    )
    page, text = render_html(TuningDocument(record)), render_markdown(TuningDocument(record))
    assert "<script" not in page
    assert "<script" not in text


def test_files(tmp_path):
    write_tuning(tuned(None, replace(BEST, statistic=math.nan)), tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["tuning.html", "tuning.json", "tuning.md"]
    content = json.loads((tmp_path / "out" / "tuning.json").read_text("utf-8"), parse_constant=pytest.fail)
    assert (content["schema_version"], content["helped"], content["selection"]["after"]) == (1, False, None)
    assert content["selection"]["candidates"][0]["statistic"] is None
