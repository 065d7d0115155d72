"""The second look at a prompt's examples: it finds what the chooser must never let through."""

from __future__ import annotations

import pytest

from histories import OUTPUTS, annotator, error, history, past, row_of
from metricsmith.datasets.history import History, joined_systems
from metricsmith.errors import LeakedExample
from metricsmith.metric import fence, make_row
from metricsmith.optimizers.specialist import Specialist
from metricsmith.programs.judges.mqm import MQMJudge
from metricsmith.programs.judges.parrot import Parrot
from metricsmith.programs.specialist.choosing import Chooser, ExamplePolicy, Judged
from metricsmith.programs.specialist.leaks import check_examples

HISTORY = history()


def told_apart():
    """Every rating has marks of its own, so that none can pass for another."""
    ratings = tuple(
        past(one.source, one.system, one.rater, one.output,
             (error(one.output[:2], one.output, description=f"{one.system} {one.rater}"),), -5.0)
        for one in HISTORY.ratings
    )  # fmt: skip
    return History(ratings, "told apart", HISTORY.scale)


TOLD = told_apart()
KEEP = {"same_output": "keep"}


def check(row, *places, past=HISTORY, joined=None, **policy):
    """The second look at the ratings at some places of a history."""
    shown = [(one.source, one.output, one.spans) for one in (past.ratings[place] for place in places)]
    check_examples(
        shown, row, ExamplePolicy(**policy), past, lambda place: past.ratings[place].spans,
        joined_systems(past) if joined is None else joined,
    )  # fmt: skip


def place(system, source="s1", rater="r1", past=HISTORY):
    return next(
        number
        for number, one in enumerate(past.ratings)
        if (one.source, one.system, one.rater) == (source, system, rater)
    )


@pytest.mark.parametrize(
    ("system", "source", "rater", "policy", "words"),
    [
        ("B", "s1", "r1", {}, "it rates 'B', which is the row's system or equals it"),
        ("B", "s2", "r1", {"source": "shuffled"}, "it rates 'B', which is the row's system"),
        ("B", "s2", "r1", {"source": "augmented", "rater": "any"}, "it rates 'B'"),
        ("A", "s2", "r1", {}, "it is of another source"),
        ("A", "s1", "r1", {"source": "shuffled"}, "it is of the row's source"),
        ("A", "s1", "r1", {"source": "fixed"}, "it is of the row's source"),
        ("A", "s1", "r2", {}, "its rater is 'r2'"),
        ("A", "s1", "r1", {"rater": "merged"}, "its rater is 'r1'"),
        ("A", "s1", "r1", {"rater": "other"}, "its rater is 'r1'"),
        ("A", "s1", "r3", {"rater": "other"}, "its rater is 'r3'"),  # the next one is r2
    ],
)
def test_ratings_that_a_row_must_not_see(system, source, rater, policy, words):
    with pytest.raises(LeakedExample, match=words) as caught:
        check(row_of("B"), place(system, source, rater), **policy)
    assert "nothing was sent" in str(caught.value)


def test_ratings_that_a_row_may_see():
    check(row_of("B"), place("A"), place("C"))
    check(row_of("B"), place("A"), place("T"))  # whether both are shown is no matter of leaks
    check(row_of("B"), place("A", rater="r2"), rater="other")
    check(row_of("B", rater="r3"), place("A"), rater="other")
    check(row_of("B"), place("A", rater="r2"), place("A", rater="r3"), rater="merged")
    check(row_of("B"), place("C", "s2"), place("A"), source="augmented")
    check(row_of("A"), place("C"), **KEEP)
    check(Judged("s1", "das Haus da", "B", "r9"), place("A"), place("A", rater="r2"))  # nobody's ratings are wanted
    check(row_of("B"))


def test_an_equal_output_is_seen_only_where_it_is_kept():
    with pytest.raises(LeakedExample, match="it rates an equal output"):
        check(row_of("A"), place("C"), past=TOLD)
    with pytest.raises(LeakedExample, match="it rates an equal output"):  # without a system it may be the row itself
        check(Judged("s1", "ein Haus", "", "r1"), place("C"), past=TOLD, **KEEP)
    check(row_of("A"), place("C"), past=TOLD, **KEEP)


def test_twins_are_found_without_the_chooser_s_list():
    with pytest.raises(LeakedExample, match="it rates 'T', which is the row's system or equals it"):
        check(row_of("A", "s2"), place("T", "s2"), past=TOLD, joined={}, **KEEP)


def test_a_twin_of_a_twin_is_found_too():
    said = {"s1": "PQ", "s2": "PQ", "s3": "QR", "s4": "QR", "s5": "PR"}
    outputs = {source: {system: f"text {system if source == 's5' else ''}" for system in who}
               for source, who in said.items()}  # fmt: skip
    one = history(outputs, dict.fromkeys(outputs, ("r1",)))
    with pytest.raises(LeakedExample, match="it rates 'R'"):
        check(Judged("s5", "text P", "P", "r1"), place("R", "s5", past=one), past=one, joined={}, **KEEP)


def test_a_test_system_s_twin_is_known_from_the_rows():
    row = Judged("s2", "zwei Tiere", "new", "r1")
    check(row, place("A", "s2"), joined={"new": "B", "B": "B"})
    with pytest.raises(LeakedExample, match="it rates 'B'"):
        check(row, place("B", "s2"), joined={"new": "B", "B": "B"}, **KEEP)


def test_an_example_that_is_nowhere_in_the_history():
    for shown in [("s1", "ein Hut", ()), ("s9", "ein Haus", ()), ("s1", "ein Haus", (error("Haus", "ein Haus"),))]:
        with pytest.raises(LeakedExample, match="it stands nowhere in the history"):
            check_examples(
                [shown], row_of("B"), ExamplePolicy(), HISTORY, lambda place: HISTORY.ratings[place].spans, {}
            )


def test_what_two_ratings_can_be_is_fine_if_one_of_them_may_be_seen_and_no_more_often():
    """C's and A's ratings by r1 look alike: one of them may stand for C's, but not two."""
    check(row_of("A"), place("A"), **KEEP)
    with pytest.raises(LeakedExample, match="it rates 'A', which is the row's system"):
        check(row_of("A"), place("A"), place("C"), **KEEP)
    with pytest.raises(LeakedExample, match="it is shown more often than it stands in the history"):
        check(row_of("A"), place("B"), place("B"), **KEEP)


# Faults put into the chooser


def twin_forgotten(monkeypatch):
    monkeypatch.setattr(Chooser, "_unit", lambda self, system: system)


def rater_mixed(monkeypatch):
    monkeypatch.setattr(Chooser, "_raters", lambda self, row, own: (None, ()))


def own_rating_shown(monkeypatch):
    reason = Chooser._reason

    def seeing(self, place, row, raters):
        found = reason(self, place, row, raters)
        return "" if found == "of the row's own system" else found

    monkeypatch.setattr(Chooser, "_reason", seeing)


FAULTS = [
    (twin_forgotten, "which is the row's system or equals it", "T"),
    (rater_mixed, r"its rater is 'r\d'", "B"),
    (own_rating_shown, "which is the row's system or equals it", "B"),
]


@pytest.mark.parametrize(("fault", "words", "system"), FAULTS)
@pytest.mark.parametrize("judge", [Parrot(), annotator(), MQMJudge.of(annotator(), runs=2)])
def test_a_faulty_chooser_is_found_at_compile(monkeypatch, judge, fault, words, system):
    fault(monkeypatch)
    with pytest.raises(LeakedExample, match=words):
        Specialist(ExamplePolicy(**KEEP)).compile(judge, TOLD)


@pytest.mark.parametrize(("fault", "words", "system"), FAULTS)
def test_a_fault_that_comes_later_is_found_at_each_request(monkeypatch, fault, words, system):
    judge = Specialist(ExamplePolicy(**KEEP)).compile(annotator(), TOLD)
    row = make_row(OUTPUTS["s1"][system], input="s1", system=system, rater="r1")
    assert len(judge.messages(row)) == 2 + 2 * 2
    fault(monkeypatch)
    with pytest.raises(LeakedExample, match=words):
        judge.messages(row)
    with pytest.raises(LeakedExample, match=words):  # before anything is sent: there is no model here
        judge(output=row.output, input="s1", system=system, rater="r1")


def test_a_demonstration_that_is_not_of_the_history_is_found(monkeypatch):
    judge = Specialist().compile(annotator(), HISTORY)
    row = make_row("das Haus da", input="s1", system="B", rater="r1")
    (demonstration, *_) = judge.shown_examples(row_of("B")).demonstrations  # the very object that the prompt gets
    monkeypatch.setitem(demonstration, "translation", fence("ein Hut"))
    with pytest.raises(LeakedExample, match="it stands nowhere in the history"):
        judge.messages(row)


def test_texts_that_look_like_marks_and_empty_outputs_are_found_again():
    """Fencing changes what a prompt shows of a text; the second look must know it again."""
    odd = ["[[ ## errors ## ]]", "", "(the translation is empty)", "«begin 0123»\nx\n«end 0123»", " x \n", "ein Haus"]
    ratings = tuple(past("s1", f"S{place}", "r1", output) for place, output in enumerate(odd))
    judge = Specialist().compile(annotator(), History(ratings, "odd", HISTORY.scale))
    row = make_row("ein Haus", input="s1", system="S5", rater="r1")
    assert len(judge.messages(row)) == 2 + 2 * 5
    said = [message["content"] for message in judge.messages(row)]
    assert sum("]]\n(the translation is empty)" in text for text in said) == 1
    assert sum("»\n(the translation is empty)\n«" in text for text in said) == 1
