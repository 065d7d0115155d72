"""Historical ratings: what is refused, where they come from, their state, and systems that are one."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from histories import OUTPUTS, SCALE, error, history, past
from metricsmith.datasets.history import History, equal_systems, joined_systems
from metricsmith.datasets.table import read_table
from metricsmith.datasets.wmt_mqm import read_wmt_mqm
from metricsmith.errors import DataError
from metricsmith.metric import make_row
from metricsmith.records import ErrorSpan, Scale


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": " "}, "lacks its source or its system"),
        ({"system": ""}, "lacks its source or its system"),
        ({"spans": None}, "neither a number nor marked errors"),
        ({"spans": (ErrorSpan("mayor", text="x"),)}, r"severity 'mayor' is unknown \(did you mean 'major'\?\)"),
        ({"spans": (ErrorSpan("minor", start=3, end=9),)}, "marks 3:9 in a target of 8 characters"),
        ({"spans": (ErrorSpan("minor", start=-1, end=2),)}, "marks -1:2 in a target"),
        ({"spans": (ErrorSpan("minor", start=2, end=1),)}, "marks 2:1 in a target"),
        ({"spans": (ErrorSpan("minor", start=0, end=3, side="source"),)}, "marks 0:3 in a source of 2 characters"),
        ({"spans": ("Haus",)}, "has marks that are no ErrorSpan"),
        ({"rating": "3"}, "is '3', which is no number"),
    ],
)
def test_a_rating_that_cannot_be_used_is_refused(changes, words):
    with pytest.raises(DataError, match=words) as caught:
        past(**changes)
    assert "the rating of" in str(caught.value) or "severity" in words


@pytest.mark.parametrize("changes", [{"output": float("nan")}, {"source": 3}, {"rater": None}, {"document": 7}])
def test_a_text_of_a_rating_is_text(changes):
    with pytest.raises(DataError, match=f"^{next(iter(changes))}=.* of a rating is no text"):
        past(**changes)


def test_numbers_of_any_type_are_saved_as_plain_ones():
    typed = History((past(rating=np.int64(-3)), past(system="B", rating=np.float32(-2))), scale=SCALE)
    plain = History((past(rating=-3), past(system="B", rating=-2.0)), scale=SCALE)
    assert typed.checksum == plain.checksum
    assert History.from_state(json.loads(json.dumps(typed.to_state()))).checksum == plain.checksum


def test_a_span_may_end_where_its_text_ends_and_needs_no_offsets():
    past(spans=(ErrorSpan("minor", start=4, end=8), ErrorSpan("minor", start=8, end=8), ErrorSpan("minor", text="x")))


def test_a_history_needs_ratings_on_its_scale():
    with pytest.raises(DataError, match="none has no rating to learn from"):
        History((), "none")
    for rating in (-26.0, 1.0, float("nan")):
        with pytest.raises(DataError, match="is not on the scale -25 to 0"):
            History((past(rating=rating),), scale=SCALE)
    with pytest.raises(DataError, match="is not on the scale None: give its scale"):
        History((past(rating=-1.0),))


def test_a_table_of_marked_ratings_is_a_history(tmp_path):
    kazze = {"start": 4, "end": 9, "span": "Kazze", "category": "Spelling", "severity": "Minor", "side": "target"}
    record = {"lp": "en-de", "system": "A", "doc": "zoo", "doc_seg_id": 1, "segment_id": 7, "rater": "r1", "slot": 0,
              "source": "The cat", "target": "Die Kazze", "errors": [kazze]}  # fmt: skip
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(record | more) + "\n" for more in ({}, {"rater": "r2", "errors": []})))
    table = read_wmt_mqm(path)
    found = History.from_table(table)
    first, second = found.ratings
    assert (first.source, first.output, first.system, first.rater) == ("The cat", "Die Kazze", "A", "r1")
    assert (first.rating, first.spans, first.segment, first.document) == (-1.0, table.rows[0].spans, "zoo:1", "zoo")
    assert (second.rating, second.spans) == (0.0, ())
    assert (found.scale, found.name, found.systems, found.raters) == (SCALE, table.source, ("A",), ("r1", "r2"))
    averaged = History.from_table(read_wmt_mqm(path, raters="mean"))
    assert [(one.rater, one.rating, one.spans) for one in averaged.ratings] == [("", -0.5, None)]
    assert averaged.raters == ()


def test_a_rated_table_is_a_history(tmp_path):
    path = tmp_path / "rated.csv"
    path.write_text("id,src,out,engine,rating\n1,one,eins,A,4\n2,one,ein,B,\n3,two,zwei,A,2\n")
    table = read_table(
        path, target="rating", output="out", inputs="src", scale=Scale(1, 5), system="engine", min_rated=1
    )
    found = History.from_table(table)
    assert [(one.source, one.output, one.system, one.rating, one.spans) for one in found.ratings] == [
        ("one", "eins", "A", 4.0, None), ("two", "zwei", "A", 2.0, None),
    ]  # fmt: skip
    path.write_text("id,src,out,rating\n1,one,eins,4\n2,one,ein,3\n")
    without = read_table(path, target="rating", output="out", inputs="src", scale=Scale(1, 5), min_rated=1)
    with pytest.raises(DataError, match="does not say which system wrote an output"):
        History.from_table(without)
    path.write_text("id,src,out,engine,rating\n1,one,eins,A,4\n2,one,ein,,3\n")
    partly = read_table(
        path, target="rating", output="out", inputs="src", scale=Scale(1, 5), system="engine", min_rated=1
    )
    with pytest.raises(DataError, match="lacks its source or its system"):
        History.from_table(partly)


def test_rows_hand_system_and_rater_on_as_inputs():
    rows = history().rows()
    assert len(rows) == len(history()) == 28
    assert rows[1].inputs().toDict() == {"input": "s1", "output": "ein Haus", "system": "A", "rater": "r2"}
    assert (rows[1].id, rows[1].group, rows[1].doc, rows[1].rating) == ("1", "s1", "d", -1.0)
    assert rows[2].spans == ()
    assert "rating" not in History((past(),)).rows()[0]


def test_a_state_gives_an_equal_history_and_is_plain_data():
    told = past("s4", "A", "r1", "x y", (error("y", "x y", description="Wrong."),), -1.0, segment="g", document="d")
    one = History((*history().ratings, told), "small", SCALE)
    state = json.loads(json.dumps(one.to_state()))
    again = History.from_state(state)
    assert (again.ratings, again.name, again.scale, again.checksum) == (one.ratings, one.name, one.scale, one.checksum)
    assert one.to_state() is one.to_state()
    assert len(state["texts"]) == len({text for r in one.ratings for text in (r.source, r.output)})
    state["ratings"][0]["output"] = 99
    with pytest.raises(DataError, match="rests on a text that the history does not hold"):
        History.from_state(state)


def test_copies_share_the_history():
    one = history()
    assert copy.deepcopy(one) is one
    assert copy.deepcopy({"in": [one]})["in"][0] is one


def test_the_checksum_tells_everything_but_the_name():
    one = history()
    others = [
        history(name="other"),
        History(one.ratings[::-1], "small", SCALE),  # whose raters have another order
        History(one.ratings, "small", Scale(-30, 0)),
        *(
            History((replace(one.ratings[0], **change), *one.ratings[1:]), "small", SCALE)
            for change in (
                {"output": "ein Haus."}, {"rater": "r9"}, {"system": "X"}, {"rating": -4.0}, {"segment": "g"},
                {"document": ""}, {"spans": ()}, {"spans": None}, {"source": "s9"},
            )
        ),
    ]  # fmt: skip
    assert others[0].checksum == one.checksum == history().checksum
    assert len({other.checksum for other in others}) == len(others)
    History((past(output="half \ud800 pair"),)).checksum  # noqa: B018  which is computed at all


def test_the_checksum_is_the_same_in_every_process():
    code = "from histories import history; print(history().checksum)"
    folder = os.path.join(os.path.dirname(__file__), "..", "support")
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([*sys.path, folder])}
        said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert said.stdout.strip() == history().checksum


# Systems that are one


def test_systems_are_equal_where_all_shared_texts_are():
    outputs = {
        "A": {"1": "x", "2": "y", "3": "z"},
        "B": {"2": "y", "3": "z", "4": "w"},  # as A on the two that both have
        "C": {"1": "x", "2": "y", "3": "Z"},
        "D": {"1": "x"},  # one shared segment alone says nothing
        "E": {"9": "x", "8": "y"},
    }
    assert equal_systems(outputs) == [("A", "B", 2)]


def test_twins_are_joined_under_the_first_name():
    assert joined_systems(history()) == {"A": "A", "T": "A"}


def chained():
    """P and Q share s1 and s2, Q and R share s3 and s4, P and R share nothing."""
    texts = {"s1": "PQ", "s2": "PQ", "s3": "QR", "s4": "QR"}
    outputs = {s: {**dict.fromkeys(who, f"text {s}"), "Z": f"other {s}"} for s, who in texts.items()}
    return history(outputs, dict.fromkeys(outputs, ("r1",)))


def test_systems_that_equal_a_third_one_are_joined():
    assert joined_systems(chained()) == dict.fromkeys("PQR", "P")


def rows_of(system, texts, **more):
    return [make_row(output, input=source, system=system, **more) for source, output in texts]


def test_a_test_system_that_equals_one_of_the_history_is_joined_with_it():
    new = [(source, outputs["B"]) for source, outputs in OUTPUTS.items()]
    assert joined_systems(history(), rows_of("new", new))["new"] == "B"
    assert joined_systems(history(), iter(rows_of("0 first", new)))["B"] == "0 first"
    assert "new" not in joined_systems(history(), rows_of("new", new[:1]))
    assert "new" not in joined_systems(history(), rows_of("new", [*new[:2], ("s3", "drei")]))
    assert "new" not in joined_systems(history(), rows_of("new", [("s8", "x"), ("s9", "y")]))
    # A system of the history keeps the outputs that the history has.
    assert joined_systems(history(), rows_of("C", new)) == {"A": "A", "T": "A"}


def test_a_test_system_can_join_two_that_share_nothing():
    one = History(tuple(rating for rating in chained().ratings if rating.system != "Q"), "small", SCALE)
    assert joined_systems(one) == {}
    new = rows_of("Q", [(source, f"text {source}") for source in ("s1", "s2", "s3", "s4")])
    assert joined_systems(one, new) == dict.fromkeys("PQR", "P")


def test_a_source_that_stands_twice_hides_no_twin():
    """The same source has two outputs by one system; rows that name no segment are compared elsewhere."""
    texts = [("g1", "Thanks", "Danke"), ("g2", "Thanks", "Vielen Dank"), ("g3", "Hi", "Hallo"), ("g4", "Bye", "Ade")]
    one = History(tuple(past(source, "A", "r1", output, segment=group) for group, source, output in texts), scale=SCALE)
    plain = [make_row(output, input=source, system="new") for _, source, output in texts]
    named = [make_row(output, input=source, system="new", group=group) for group, source, output in texts]
    assert joined_systems(one, plain) == joined_systems(one, named) == {"A": "A", "new": "A"}
    named[1] = make_row("Dank", input="Thanks", system="new", group="g2")
    assert joined_systems(one, named) == {}


def test_a_segment_of_several_sources_hides_no_twin_and_makes_none():
    """Groups of a table may hold several sources, which each system has in an order of its own."""
    texts = {
        "A": [("g1", "s1", "a"), ("g1", "s2", "b"), ("g2", "s3", "c"), ("g2", "s4", "d")],
        "T": [("g1", "s2", "b"), ("g1", "s1", "a"), ("g2", "s4", "d"), ("g2", "s3", "c")],
        "B": [("g1", "s1", "a"), ("g1", "s2", "x"), ("g2", "s3", "c"), ("g2", "s4", "y")],
    }
    ratings = [past(s, system, output=text, segment=g) for system, own in texts.items() for g, s, text in own]
    one = History(tuple(ratings), scale=SCALE)
    assert joined_systems(one) == {"A": "A", "T": "A"}
    new = [make_row(text, input=source, system="new", group=group) for group, source, text in texts["B"]]
    assert joined_systems(one, new) == {"A": "A", "T": "A", "B": "B", "new": "B"}


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from("ABCDE"), st.dictionaries(st.sampled_from("123"), st.sampled_from("xy"))))
def test_joined_systems_are_the_connected_parts(outputs):
    kept = {system: texts for system, texts in outputs.items() if texts}
    if not kept:
        return
    ratings = [past(f"s{item}", system, output=text) for system, texts in kept.items() for item, text in texts.items()]
    linked = {frozenset(pair[:2]) for pair in equal_systems(kept)}
    parts = [{system} for system in kept]
    for pair in linked:  # by hand: unite the two parts that a pair touches
        touched = [part for part in parts if part & pair]
        parts = [part for part in parts if not part & pair] + [set().union(*touched)]
    expected = {system: min(part) for part in parts if len(part) > 1 for system in part}
    assert joined_systems(History(tuple(ratings), scale=SCALE)) == expected


def test_each_rater_of_a_table_of_averages_may_have_ratings_of_their_own():
    frame = pd.DataFrame(
        {"input": ["a", "a", "b", "b"], "output": ["x y", "x y", "z", "z"], "system": ["A", "A", "B", "B"],
         "rater": ["r", "s", "r", "s"], "score": [1, 4, 2, 5]}
    )  # fmt: skip
    table = read_table(frame, target="score", min_rated=1)
    each = History.from_table(table, by_rater=True)
    assert [(one.system, one.rater, one.rating) for one in each.ratings] == [
        ("A", "r", 1.0), ("A", "s", 4.0), ("B", "r", 2.0), ("B", "s", 5.0),
    ]  # fmt: skip
    averages = History.from_table(table)
    assert [(one.system, one.rater, one.rating) for one in averages.ratings] == [("A", "", 2.5), ("B", "", 3.5)]
