"""Rating files of mt-metrics-eval and ESA tables of WMT: spans, numbers, texts, and every broken line by its place."""

from __future__ import annotations

import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricsmith.datasets.labelled_scores import BY_DOCUMENT, BY_POSITION, BY_SEGMENT
from metricsmith.datasets.long_tables import read_gold
from metricsmith.datasets.score_files import gold_name
from metricsmith.datasets.score_matrices import read_score_matrices
from metricsmith.datasets.span_ratings import read_span_ratings
from metricsmith.errors import DataError, OptionError
from metricsmith.mqm import MQMWeights
from metricsmith.records import ErrorSpan

MAJOR = {"start": 0, "end": 3, "category": None, "severity": "major", "score": None, "is_source_error": False}
MINOR = {"start": 4, "end": 99, "category": "Fluency/Punctuation", "severity": "Minor", "is_source_error": False}
LEFT_OUT = {"start": 0, "end": 4, "category": "accuracy/omission", "severity": "major", "is_source_error": True}
OUTPUTS = {"A": ("Das ist gut.", "Rot", "Blau"), "B": ("Der ist gut.", "Rost", "Blau")}
RATED = {"A": ([MAJOR, MINOR], [], None), "B": ([LEFT_OUT], None, [MAJOR])}


def rating(errors):
    return "None" if errors is None else json.dumps({"errors": errors}) + "\trater1"


def layout(root, rated=RATED, texts=True, scores=None, name="esa"):
    """A test set with two systems of three segments in two documents, and its rating file."""
    human = root / "human-scores"
    human.mkdir(parents=True)
    path = human / f"en-de.{name}.seg.rating"
    path.write_text("".join(f"{system}\t{rating(e)}\n" for system, own in rated.items() for e in own), "utf-8")
    if texts:
        for folder in ("sources", "documents", "system-outputs/en-de"):
            (root / folder).mkdir(parents=True)
        (root / "sources/en-de.txt").write_text("That is good.\nRed\nBlue\n", "utf-8")
        (root / "documents/en-de.docs").write_text("news one\nnews one\nnews two\n", "utf-8")
        for system, lines in OUTPUTS.items():
            (root / f"system-outputs/en-de/{system}.txt").write_text("\n".join(lines) + "\n", "utf-8")
    if scores is not None:
        lines = [f"{system}\t{score}\n" for system, own in scores.items() for score in own]
        (human / f"en-de.{name}.seg.score").write_text("".join(lines), "utf-8")
    return path


def esa_lines(**changes):
    """Two systems of two segments in an ESA table."""
    spans = [
        {"start_i": 0, "end_i": 3, "severity": "major", "error_type": None},
        {"start_i": "missing", "end_i": "missing", "severity": "minor"},
        {"start_i": 4, "end_i": 7, "severity": "undecided"},
    ]
    return [
        {
            "langs": "en-de", "line_id": place, "src": "That is good.", "tgt": "Das ist gut.", "doc_id": "one",
            "domain": "news", "esa_spans": spans if system == "A" else [], "esa_score": "70" if system == "A" else 90,
            "system": system, "annotator": "x1", **changes,
        }
        for system in "AB" for place in (7, 8)
    ]  # fmt: skip


def table(path, lines):
    path.write_text("\n".join(map(json.dumps, lines)) + "\n", "utf-8")
    return path


def test_names_of_gold_files_run_from_the_first_dot_to_the_level(tmp_path):
    names = {
        "en-de.da-sqm.seg.score": "da-sqm", "en-sr_Cyrl_RS.esa-human1.seg.score": "esa-human1",
        "en-de.mqm.merged.seg.rating": "mqm.merged", "gold.seg.score": "gold", "my.own.seg.score": "my.own",
    }  # fmt: skip
    for file, name in names.items():
        assert gold_name(tmp_path / file) == name
    path = tmp_path / "en-de.da-sqm.seg.score"
    path.write_text("A 1\nB 2\n", "utf-8")
    assert list(read_gold(path).columns) == ["da-sqm"]


def test_a_rating_file_in_its_folder_has_texts_documents_and_spans(tmp_path):
    read = read_span_ratings(layout(tmp_path))
    assert list(read.columns) == ["esa"]
    first, second, third, fourth = read.spans[:4]
    assert first == (
        ErrorSpan("major", "", 0, 3, "Das"),
        ErrorSpan("minor", "Fluency/Punctuation", 4, 12, "ist gut."),  # cut at the end of the text
    )
    assert (read.systems[0], read.documents[2], read.raters[0], read.texts[0]) == ("A", "two", "rater1", "Das ist gut.")
    assert (second, third, read.segments[BY_DOCUMENT][:3]) == ((), None, ("one:1", "one:2", "two:1"))
    assert fourth == (ErrorSpan("major", "accuracy/omission", 0, 4, "That", "source"),)
    # Points of WMT: 5 for major, .1 for minor punctuation.
    assert read.columns["esa"][:2].tolist() == [-5.1, 0.0]
    assert math.isnan(read.columns["esa"][2])
    assert read.notes[0] == "4 ratings of 2 systems with 4 errors"
    assert {"2 outputs have no rating", "1 ratings say that there is no error"} <= set(read.notes)
    assert "1 spans reach beyond the end of the text and were cut" in read.notes


def test_the_number_is_the_raters_own_where_it_lies_beside_the_file_and_no_weights_are_given(tmp_path):
    path = layout(tmp_path, scores={"A": (61, 100, "None"), "B": (40, "None", 55)})
    read = read_span_ratings(path)
    assert read.columns["esa"].tolist() == pytest.approx([61, 100, math.nan, 40, math.nan, 55], nan_ok=True)
    assert "the rating is that of en-de.esa.seg.score, which lies beside it" in read.notes
    weighed = read_span_ratings(path, weights=MQMWeights.gemba())
    assert weighed.columns["esa"][:2].tolist() == [-5.1, 0.0]
    assert any("critical 25, major 5, minor 1" in note for note in weighed.notes)


def test_alone_a_rating_file_has_offsets_and_positions(tmp_path):
    read = read_span_ratings(layout(tmp_path, texts=False))
    assert read.spans[0][1] == ErrorSpan("minor", "Fluency/Punctuation", 4, 99)
    assert read.texts == ()
    assert any("marked errors have no texts, since there is no" in note for note in read.notes)
    assert read.segments == {BY_POSITION: ("1", "2", "3") * 2}


def test_gold_ratings_have_spans_beside_their_texts(tmp_path):
    gold = read_gold(layout(tmp_path))
    assert gold.segments[BY_DOCUMENT] == ("one:1", "one:2", "two:1") * 2
    assert gold.segments[BY_SEGMENT] == ("1", "2", "3") * 2
    assert (gold.texts[3], gold.spans[1], gold.spans[2]) == ("Der ist gut.", (), None)
    assert list(gold.columns) == ["esa"]
    path = tmp_path / "m-src.seg.score"
    path.write_text("".join(f"{s}\t{n}\n" for s in "AB" for n in (1, 2, 3)), "utf-8")
    read = read_score_matrices(path, tmp_path / "human-scores/en-de.esa.seg.rating")
    assert read.gold.tolist()[0][:2] == [-5.1, 0.0]
    assert read.documents == ("one", "one", "two")
    with pytest.raises(OptionError, match="is a rating file: leave it out"):
        read_gold(tmp_path / "human-scores/en-de.esa.seg.rating", target="esa")


def test_an_esa_table_has_the_raters_number_and_errors_without_a_place(tmp_path):
    path = table(tmp_path / "wmt24_esa.jsonl", esa_lines())
    read = read_span_ratings(path)
    assert read.columns["esa"].tolist() == [70, 70, 90, 90]
    assert read.spans[0] == (
        ErrorSpan("major", "", 0, 3, "Das"), ErrorSpan("minor"), ErrorSpan("neutral", "", 4, 7, "ist"),
    )  # fmt: skip
    assert "2 errors have no severity that was decided on: they count as neutral" in read.notes
    assert "2 errors mark words that are missing: they count, without a span" in read.notes
    gold = read_gold(path)
    assert gold.segments == {BY_SEGMENT: ("7", "8") * 2, BY_DOCUMENT: ("one:7", "one:8") * 2}
    assert gold.raters == ("x1",) * 4
    with pytest.raises(OptionError, match=r"weights .* is ESA ratings"):
        read_gold(path, weights=MQMWeights.wmt())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("A", r"line 2: 1 fields, seen 'A'"),
        ("A\tNone\tx\ty", "line 2: 4 fields"),
        ("\tNone", "line 2: 2 fields"),
        ("A\t{'errors': []}", "line 2: .* is not JSON"),
        ("A\t[]", "line 2: .* has no list of errors"),
        ('A\t{"errors": {}}', "line 2: .* has no list of errors"),
        ('A\t{"errors": [7]}', "line 2: the error '7' cannot be read"),
        (rating([{**MAJOR, "start": 4}]).join(["A\t", ""]), "line 2: the error .* with 0 <= start <= end"),
        (rating([{**MAJOR, "end": 3.0}]).join(["A\t", ""]), "line 2: the error"),
        (rating([{**MAJOR, "end": True}]).join(["A\t", ""]), "line 2: the error"),
        (rating([{**MAJOR, "start": -1}]).join(["A\t", ""]), "line 2: the error"),
        (rating([{**MAJOR, "severity": None}]).join(["A\t", ""]), "line 2: the error"),
        (rating([{**MAJOR, "severity": "grave"}]).join(["A\t", ""]), "line 2: the severity 'grave' is unknown"),
        (rating([{**MAJOR, "is_source_error": "no"}]).join(["A\t", ""]), "line 2: the error"),
        ("B\tNone", "line 2: system 'B' has 1 lines, the first one 2"),
    ],
)
def test_a_broken_line_is_named(tmp_path, line, message):
    path = tmp_path / "en-de.esa.seg.rating"
    path.write_text(f"A\tNone\n{line}\nA\tNone\n", "utf-8")
    with pytest.raises(DataError, match=rf"en-de.esa.seg.rating, {message}"):
        read_span_ratings(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"esa_score": "good"}, "row 1.* esa_score 'good'"),
        ({"system": ""}, "row 1.* system ''"),
        ({"esa_spans": "none"}, "column 'esa_spans': 'none' is no list"),
        ({"esa_spans": [{"start_i": 2, "end_i": "missing", "severity": "major"}]}, "row 1.*the error"),
    ],
)
def test_a_broken_row_of_an_esa_table_is_named(tmp_path, changes, message):
    path = table(tmp_path / "esa.jsonl", esa_lines(**changes))
    with pytest.raises(DataError, match=message):
        read_span_ratings(path)


def test_several_language_pairs_and_files_without_a_rating_are_refused(tmp_path):
    lines = esa_lines()
    path = table(tmp_path / "esa.jsonl", [*lines, {**lines[0], "langs": "en-cs"}])
    with pytest.raises(DataError, match=r"2 language pairs \(en-cs, en-de\)"):
        read_span_ratings(path)
    empty = tmp_path / "en-de.esa.seg.rating"
    for text in ("", "A\tNone\n"):
        empty.write_text(text, "utf-8")
        with pytest.raises(DataError, match="holds no rating"):
            read_span_ratings(empty)
    with pytest.raises(DataError, match="no such file"):
        read_span_ratings(tmp_path / "en-cs.esa.seg.rating")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 20) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*MAJOR, "errors", "start_i"]), inner, max_size=5)
    ),
    max_leaves=12,
)


@given(st.lists(JSON | st.sampled_from([MAJOR, MINOR]), min_size=1, max_size=4), st.integers(0, 2**32))
def test_whatever_stands_in_a_line_is_read_or_refused_with_its_place(tmp_path_factory, values, seed):
    path = tmp_path_factory.mktemp("fuzz") / "en-de.esa.seg.rating"
    pick = random.Random(seed)
    texts = [json.dumps(value if pick.random() < 0.3 else {"errors": [value]}) for value in values]
    if pick.random() < 0.3:
        texts[0] = texts[0][: pick.randrange(len(texts[0]) + 1)]
    path.write_text("".join(f"A\t{text}\n" for text in texts), "utf-8")
    rated, refused = (), ""
    try:
        rated = read_span_ratings(path).spans
    except DataError as problem:
        refused = str(problem)
    assert bool(rated) is not ("en-de.esa.seg.rating" in refused)
    assert all(0 <= span.start <= span.end for spans in rated for span in spans or ())
