"""Rated rows from public MQM files."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

from metricsmith.datasets.mqm_tsv import MarkedRating
from metricsmith.datasets.wmt_mqm import DESCRIPTION, read_marked_ratings, read_wmt_mqm
from metricsmith.errors import DataError, OptionError
from metricsmith.mqm import MQMWeights
from metricsmith.records import ErrorSpan, Scale
from metricsmith.stats.rater_agreement import rater_agreement
from mqm_files import NEW, NEW_FILE, OLD, OLD_FILE, RAIN, tsv

RECORD = {
    "lp": "en-de", "system": "A", "doc": "zoo", "doc_seg_id": 1, "segment_id": 7, "rater": "r1", "slot": 0,
    "source": "The cat", "target": "Die Kazze", "hotw": "Found",
    "errors": [{"start": 4, "end": 9, "span": "Kazze", "category": "Fluency/Spelling", "severity": "Minor",
                "side": "target"}],
}  # fmt: skip


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "old.tsv"
    path.write_text(OLD_FILE, encoding="utf-8")
    return path


def records(path, *changes):
    path.write_text("".join(json.dumps(RECORD | change) + "\n" for change in changes), encoding="utf-8")
    return path


def message(source, **options) -> str:
    with pytest.raises(DataError) as caught:
        read_wmt_mqm(source, **options)
    return str(caught.value)


def test_a_row_is_a_rating_with_its_score_and_spans(old):
    table = read_wmt_mqm(old)
    # By hand: minor + major; none; major + minor punctuation + major; minor punctuation; non-translation; neutral.
    assert table.ratings.tolist() == [-6, 0, -10.1, -0.1, -25, 0]
    assert table.rows[2].toDict() == {
        "id": "B|zoo:2|r2",
        "group": "zoo:2",
        "system": "B",
        "rater": "r2",
        "slot": 0,
        "doc": "zoo",
        "segment": "8",
        "spans": (
            ErrorSpan("major", "Accuracy/Omission", 3, 9, "regnet"),
            ErrorSpan("minor", "Fluency/Punctuation", 9, 9, ""),
            ErrorSpan("major", "Accuracy/Omission", 10, 18, "said Ann", side="source"),
        ),
        "mqm": -10.1,
        "input": RAIN,
        "output": "Es regnet",
    }
    assert sorted(table.rows[2].inputs().keys()) == ["input", "output"]
    assert (table.task.target, table.task.scale, table.task.description) == ("mqm", Scale(-25, 0), DESCRIPTION)
    assert [row.mqm for row in table.rows] == table.ratings.tolist()


def test_with_an_average_a_row_is_an_output_and_the_table_knows_its_people(tmp_path):
    minor = RECORD["errors"]
    found = [
        {}, {"system": "B", "errors": []}, {"rater": "r2", "errors": minor * 2}, {"rater": "r3", "errors": minor * 6},
        {"doc_seg_id": 2, "errors": []},
    ]  # fmt: skip
    table = read_wmt_mqm(records(tmp_path / "a.jsonl", *found), raters="mean")
    # A minor error costs 1: the ratings of A's first segment are -1, -2 and -6.
    assert table.ratings.tolist() == [-3, 0, 0]
    assert table.people.ratings == ({"r1": -1, "r2": -2, "r3": -6}, {"r1": 0}, {"r1": 0})
    assert (table.raters, table.systems) == (["r1", "r2", "r3"], ["A", "B", "A"])
    assert table.rows[0].toDict() == {
        "id": "A|zoo:1", "group": "zoo:1", "system": "A", "doc": "zoo", "segment": "7", "language_pair": "en-de",
        "mqm": -3, "input": "The cat", "output": "Die Kazze",
    }  # fmt: skip
    assert sorted(table.rows[0].inputs().keys()) == ["input", "output"]
    assert "3 outputs: mean of 5 ratings by 3 raters" in table.notes
    assert table.rater_ceiling().withheld == "few"
    median = read_wmt_mqm(tmp_path / "a.jsonl", raters="median")
    assert (median.ratings.tolist(), median.people.average) == ([-2, 0, 0], "median")
    by_rating = read_wmt_mqm(tmp_path / "a.jsonl")
    assert (len(by_rating), by_rating.people, by_rating.rater_ceiling()) == (5, None, None)
    with pytest.raises(OptionError, match="raters='mode' is unknown; allowed are mean and median"):
        read_wmt_mqm(tmp_path / "a.jsonl", raters="mode")


def test_the_ceiling_of_side_by_side_ratings(shared_data):
    table = read_wmt_mqm(shared_data / "wmt23_sxs_ende.jsonl.gz", raters="mean")
    assert (len(table), sorted({len(given) for given in table.people.ratings})) == (1040, [3])
    found = table.rater_ceiling()
    assert found.withheld == ""
    assert 0.3 < found.agreement_low < found.agreement < found.low < found.ceiling < found.high < 0.95
    half = table.subset(range(0, 1040, 2))
    assert (len(half.people.ratings), half.people.ratings[1]) == (520, table.people.ratings[2])


def test_the_weights_are_the_callers(old):
    table = read_wmt_mqm(old, weights=MQMWeights.gemba(cap=10), task="Translate.")
    assert table.ratings.tolist() == [-6, 0, -10, -0.1, -5, 0]
    assert (table.task.scale, table.task.description) == (Scale(-10, 0), "Translate.")
    assert read_wmt_mqm(old, scale=Scale(-100, 0)).task.scale == Scale(-100, 0)


def test_the_scale_reaches_to_the_worst_rating(old):
    table = read_wmt_mqm(old, weights=MQMWeights(50, 40, 1))
    assert table.task.scale == Scale(-81, 0)
    assert "points taken off: critical 50, major 40, minor 1, neutral 0" in table.notes


def test_what_was_dropped_or_repaired_is_noted(old, tmp_path):
    assert read_wmt_mqm(old).notes == (
        "6 ratings of 3 systems with 8 errors, 1 of them marked in the source",
        "points taken off: critical 5, major 5, minor 1, neutral 0, minor punctuation 0.1, non-translation 25",
        "1 ratings say that there is no error",
        "1 spans lack their closing tag and reach to the end of the text",
        "2 spans reached into white space at the end of a text and were cut",
        "2 lines had white space at the end of source or target, which is removed",
        "1 errors mark no text: they count, without a span",
    )
    new = tmp_path / "new.tsv.gz"
    new.write_bytes(gzip.compress(NEW_FILE.encode()))
    notes = "\n".join(read_wmt_mqm(new).notes)
    assert "2 lines report an attention test that the rater passed" in notes
    assert "1 lines report an attention test that the rater failed" in notes
    assert "1 ratings consist of attention tests alone" in notes


def test_people_s_translations_can_be_references(old):
    table = read_wmt_mqm(old, references=["B", "C"])
    assert [row.get("references") for row in table.rows] == [
        ["Die Katze sass."], None, ["xx xx"], ["Es regnet", "xx xx"], ["Es regnet"], ["Es regnet"],
    ]  # fmt: skip
    assert "references" in table.rows[0].inputs()
    assert read_wmt_mqm(old, references=["C", "B"]).rows[3].references == ["xx xx", "Es regnet"]
    assert read_wmt_mqm(old, references="B").rows[0].references == ["Die Katze sass."]
    assert "no system 'D'; the systems are A, B, C" in message(old, references="D")
    assert "no system 'refa' (did you mean 'refA'?)" in message(
        records(old.with_suffix(".jsonl"), {"system": "refA"}), references=["refa"]
    )


def test_systems_that_always_say_the_same_are_named(tmp_path):
    twins = [{"system": system, "doc_seg_id": place} for system in "AB" for place in (1, 2)]
    other = [{"system": "D"}, {"system": "C"}, {"system": "C", "doc_seg_id": 2, "target": "Eine Kazze", "errors": []}]
    notes = read_wmt_mqm(records(tmp_path / "a.jsonl", *twins, *other)).notes
    assert [note for note in notes if "the same" in note] == [
        "'A' and 'B' are the same in all 2 segments that both have: whoever holds out one system must hold out the "
        "other with it"
    ]


def test_parsed_ratings_are_read_too(tmp_path):
    path = records(tmp_path / "a.jsonl", {}, {"rater": "r2", "errors": [], "hotw": "Missed"}, {"system": "B"})
    marked = read_marked_ratings(path)
    span = ErrorSpan("minor", "Fluency/Spelling", 4, 9, "Kazze")
    assert marked.ratings[0] == MarkedRating(
        "A", "zoo", "1", "7", "r1", "The cat", "Die Kazze", (span,), slot=0, language_pair="en-de"
    )
    assert [(rating.rater, rating.slot) for rating in marked.ratings] == [("r1", 0), ("r2", 1), ("r1", 0)]
    assert marked.counts == {"no_error": 1, "found": 2, "missed": 1}
    assert read_wmt_mqm(path).rows[0].language_pair == "en-de"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"span": "Katze"}, "the target has 'Kazze' from 4 to 9, not 'Katze'"),
        ({"start": 3}, "the target has ' Kazze' from 3 to 9"),
        ({"start": None}, "from None to 9"),
        ({"side": "left"}, "the side is 'left', neither source nor target"),
        ({"severity": "Mino"}, "the severity 'Mino' is unknown (did you mean 'minor'?)"),
    ],
)
def test_parsed_errors_must_fit_their_text(tmp_path, change, words):
    path = records(tmp_path / "a.jsonl", {}, {"rater": "r2", "errors": [RECORD["errors"][0] | change]})
    text = message(path)
    assert "row 2 (line 2), column 'errors'" in text
    assert words in text


def test_parsed_errors_without_offsets_keep_their_text(tmp_path):
    error = RECORD["errors"][0] | {"start": None, "end": None}
    assert read_wmt_mqm(records(tmp_path / "a.jsonl", {"errors": [error]})).rows[0].spans[0].text == "Kazze"


def test_files_that_cannot_be_used_are_one_clear_error(tmp_path, old):
    assert "no such file" in message(tmp_path / "odl.tsv")
    assert "did you mean 'old.tsv'" in message(tmp_path / "odl.tsv")
    bad = tmp_path / "bad.tsv"
    bad.write_bytes(OLD_FILE.replace("Style", "Stürz").encode("latin-1", "replace"))
    assert "is not UTF-8 text: byte 0xfc" in message(bad)
    assert "line 4" in message(bad)
    bad.write_text(tsv(OLD, []))
    assert "holds no rating" in message(bad)
    bad.write_text(tsv(NEW, [("A", "zoo", "1", "0", "r", "x", "y", "Found", "HOTW-test")]))
    assert "holds no rating" in message(bad)
    assert "unpack it" in message(tmp_path / "a.tsv.tar.gz")
    assert "rated 'A' on segment 1 of 'zoo' before" in message(records(tmp_path / "a.jsonl", {}, {"segment_id": 9}))
    path = tmp_path / "b.jsonl"
    path.write_text(json.dumps({**RECORD, "error": RECORD["errors"]} | {"errors": None}).replace('"errors"', '"e"'))
    assert "no column 'errors' (did you mean 'error'?)" in message(path)
    assert "cannot be read: there is no 'side'" in message(records(path, {"errors": [{"severity": "minor"}]}))


# The public collections, where they are at hand.


def as_tsv(ratings, header) -> str:
    """The look of the published file: one line by error, one for no error, tags in the text."""
    lines = []
    for rating in ratings:
        place = (rating.system, rating.doc, rating.doc_segment, rating.segment, rating.rater)
        for span in rating.spans:
            texts = {"source": rating.source, "target": rating.target}
            text = texts[span.side]
            texts[span.side] = f"{text[: span.start]}<v>{text[span.start : span.end]}</v>{text[span.end :]}"
            lines.append((*place, texts["source"], texts["target"], span.category, span.severity.title()))
        if not rating.spans:
            lines.append((*place, rating.source, rating.target, "No-error", "No-error"))
    return tsv(header, lines)


@pytest.mark.parametrize(
    ("file", "header"), [("wmt23_sxs_ende.jsonl.gz", NEW), ("ted_ende.jsonl.gz", OLD)], ids=["sxs", "ted"]
)
def test_the_raw_form_gives_the_same_ratings(shared_data, tmp_path, file, header):
    parsed = read_marked_ratings(shared_data / file).ratings
    path = tmp_path / "raw.tsv"
    path.write_text(as_tsv(parsed, header), encoding="utf-8", newline="\n")
    raw = read_marked_ratings(path).ratings
    assert raw == tuple(replace(rating, language_pair="") for rating in parsed)


def test_wmt23_side_by_side(shared_data, shared_golden):
    table = read_wmt_mqm(shared_data / "wmt23_sxs_ende.jsonl.gz")
    spans = [span for row in table.rows for span in row.spans]
    # Counted over the published file.
    assert (len(table), len(set(table.groups)), len({row.rater for row in table.rows})) == (3120, 104, 10)
    assert len({row.doc for row in table.rows}) == 30
    assert sum(span.side == "target" for span in spans) == 9245
    assert sum(span.side == "source" for span in spans) == 732
    assert sum(span.severity == "major" for span in spans) == 2526
    assert sum(span.severity == "minor" for span in spans) == 7451
    assert "748 ratings say that there is no error" in table.notes
    assert sum("GPT4-5shot_with_ONLINE-W" in note and "all 104" in note for note in table.notes) == 1
    # Scores by slot, system and segment as mt-metrics-eval's weights give them.
    golden = np.load(shared_golden / "mt_ende.npz")
    order = json.loads((shared_golden / "mt_ende.json").read_text())
    seeds = read_wmt_mqm(shared_data / "wmt23_sxs_ende.jsonl.gz", weights=MQMWeights.gemba())
    for scored, name in [(table, "ende__wmt__slots"), (seeds, "ende__seed25_5_1__slots")]:
        cells = np.full((3, 10, 104), np.nan)
        for row in scored.rows:
            cells[row.slot, order["systems"].index(row.system), order["segments"].index(int(row.segment))] = row.mqm
        np.testing.assert_allclose(cells, golden[name], atol=1e-9)
    np.testing.assert_allclose(np.nanmean(golden["ende__wmt__slots"], axis=(1, 2)), [-5.68, -4.48, -6.39], atol=0.005)


def test_wmt23_raters_against_each_other(shared_data, shared_golden):
    table = read_wmt_mqm(shared_data / "wmt23_sxs_ende.jsonl.gz")
    agreement = rater_agreement(table.rows, "mqm")
    results = json.loads((shared_golden / "mt_ende.json").read_text())["results"]
    pairs = ("gold0_metric1", "gold0_metric2", "gold1_metric2")
    for found, name in [(agreement.kendall_tau_b, "kendall_b/item"), (agreement.pearson, "pearson/item")]:
        # mt-metrics-eval's value, p-value and number of segments for each two slots.
        values, _, counts = zip(*(results[f"ende/wmt/{pair}"][name] for pair in pairs), strict=True)
        assert found.groups_used == sum(counts) == 290
        assert found.value == pytest.approx(np.average(values, weights=counts), abs=1e-12)
    assert (agreement.n, agreement.items, len(agreement.pairs)) == (3 * 1040, 104, 20)


def test_ted_talks(shared_data):
    table = read_wmt_mqm(shared_data / "ted_ende.jsonl.gz", references="ref")
    assert (len(table), len(set(table.groups)), len({row.system for row in table.rows})) == (7406, 529, 14)
    means = {
        system: -np.mean([row.mqm for row in table.rows if row.system == system])
        for system in {row.system for row in table.rows}
    }
    # The table in the README of google/wmt-mqm-human-evaluation, which cuts some numbers off.
    published = {
        "ref": 0.91, "Facebook-AI": 1.06, "Online-W": 1.12, "VolcTrans-AT": 1.24, "metricsystem3": 1.44,
        "VolcTrans-GLAT": 1.49, "HuaweiTSC": 1.50, "metricsystem1": 1.63, "metricsystem2": 1.69,
        "metricsystem5": 1.72, "UEdin": 1.77, "metricsystem4": 1.78, "eTranslation": 1.96, "Nemo": 2.14,
    }  # fmt: skip
    assert means == pytest.approx(published, abs=0.01)
    assert all(len(row.references) == 1 for row in table.rows if row.system != "ref")
    with pytest.raises(DataError, match="no output was rated by two"):
        rater_agreement(table.rows, "mqm")
