"""Corrected means of rows by metrics of every kind: which rows count, in which groups, and wrong input."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith import Panel, Scale, Status, corrected_mean, make_row, read_table
from metricsmith.errors import DataError, OptionError
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.learned import mark_learned
from metricsmith.records import Output
from metricsmith.studies.correction import CorrectionRows
from metricsmith.testing import GivenJudge, GivenModel
from panels import item

STARS = Scale(1, 5, 1)
ANY = GivenJudge(3)


def answers(count, seed=0, first=0, rated=True):
    """Answers to questions, three to each, that are worse the longer they are; two systems take turns."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(first, first + count):
        words = int(random.integers(3, 30))
        stars = float(np.clip(round(5.2 - words / 8 + 0.4 * random.normal()), 1, 5))
        rating = {"stars": stars} if rated else {}
        text = " ".join([f"answer{number}"] * words)
        rows.append(make_row(text, input=f"question {number // 3}", system="ab"[number % 2], **rating))
    return rows


LABELLED, OTHERS = answers(60), answers(600, seed=1, first=60, rated=False)


def corrected(labelled=LABELLED, unlabelled=OTHERS, metric="output_words", **options):
    return corrected_mean(labelled, unlabelled, metric=metric, progress=False, **{"target": "stars", **options})


def truth(rows):
    return float(np.mean([row.stars for row in rows]))


def test_a_length_in_words_corrects_the_mean_rating_though_it_falls_with_quality():
    found = corrected(scale=STARS)
    assert found.lam == pytest.approx(-1 / 8, rel=0.2)
    assert found.low < truth(answers(600, seed=1, first=60)) < found.high
    assert found.high - found.low < 0.6 * (found.classical_high - found.classical_low)
    assert (found.groups, found.unlabelled_groups) == (20, 200)  # by the question
    assert found.plain == pytest.approx(np.mean([len(row.output.split()) for row in OTHERS]))


def test_a_metric_of_its_own_scale_changes_nothing_and_sees_no_rating():
    def brevity(example, pred):
        assert "stars" not in example
        return 100 - 7 * len(pred.output.split())

    by_words, by_function = corrected(), corrected(metric=brevity)
    for name in ("estimate", "low", "high", "classical"):
        assert getattr(by_function, name) == pytest.approx(getattr(by_words, name))


def test_a_prevalence_counts_ratings_from_a_threshold_on():
    found = corrected(positive=4)
    assert found.classical == np.mean([row.stars >= 4 for row in LABELLED])
    assert found.low < np.mean([row.stars >= 4 for row in answers(600, seed=1, first=60)]) < found.high
    verdicts = GivenJudge(lambda row: 5.2 - len(row.output.split()) / 8, output=Output("guess", -5, 9))
    rogan = corrected(positive=4, method="rogan-gladen", metric=verdicts)
    assert rogan.method == "rogan-gladen"
    assert rogan.plain == np.mean([5.2 - len(row.output.split()) / 8 >= 4 for row in OTHERS])


def test_two_systems_are_compared_and_strata_are_weighted():
    found, turned = corrected(systems=("a", "b")), corrected(systems=("b", "a"))
    assert (found.estimate, found.low) == pytest.approx((-turned.estimate, -turned.high))
    assert -4 <= found.low < found.estimate < found.high <= 4
    assert found.low < 0  # the scale from 1 to 5 is not that of a difference
    few = [row for number, row in enumerate(LABELLED) if row.system == "a" or number % 4 == 1]
    by_system = corrected(labelled=few, strata="system")
    a, b = (np.mean([row.stars for row in few if row.system == name]) for name in "ab")
    assert by_system.classical == pytest.approx((a + b) / 2)  # half of the unlabelled rows each


def test_rows_of_both_sets_count_as_labelled_alone_and_each_once():
    found = corrected(unlabelled=[*OTHERS, *LABELLED[:5], LABELLED[0]])
    assert (found.labelled, found.unlabelled) == (60, 601)  # the sixth is another row with equal texts
    assert found.note == "5 unlabelled rows are labelled too and count as labelled alone"


def test_rows_without_a_rating_or_with_a_failed_judgement_are_never_numbers():
    failing = {LABELLED[3].output: Status.REFUSED, OTHERS[7].output: Status.REFUSED}
    judge = GivenJudge(lambda row: failing.get(row.output, len(row.output.split())), output=Output("n", 0, 99))
    found = corrected(labelled=[*LABELLED, *answers(4, first=700, rated=False)], metric=judge)
    assert (found.labelled, found.missing, found.unlabelled_missing) == (59, 1, 1)


def test_ratings_in_words_count_as_a_table_would_read_them():
    said = [row.copy(stars=f"{row.stars:g} stars") for row in LABELLED]
    assert corrected(labelled=said) == corrected()
    liked = [row.copy(stars="good" if row.stars > 3 else "bad") for row in LABELLED]
    assert corrected(labelled=liked).classical == np.mean([row.stars > 3 for row in LABELLED])
    with pytest.raises(DataError, match=r"rated '(good|bad)', a verdict, but the scale runs from 1 to 5"):
        corrected(labelled=liked, scale=STARS)


def test_groups_that_the_metric_has_learned_from_are_left_out():
    judge = CriterionJudge(criterion="Brevity", meaning="Short.", task="Answer.")
    mark_learned(judge, LABELLED[:1])
    data = CorrectionRows.of(LABELLED, OTHERS, metric=judge, target="stars")
    assert data.ratings.size == 57  # the row's question has three answers
    assert data.notes == ("3 rows are left out: the metric has learned from their groups",)
    mark_learned(judge, LABELLED)
    with pytest.raises(DataError, match=r"no labelled row is left .60 rows are left out: the metric has learned"):
        CorrectionRows.of(LABELLED, OTHERS, metric=judge, target="stars")


def test_groups_of_tables_are_one_where_a_column_names_them_or_inputs_are_equal(write_table):
    def groups(header, labelled, unlabelled):
        options = {"output": "answer", "require_target": False}
        first = read_table(write_table("rated.csv", [f"{header},stars", *labelled]), target="stars", **options)
        second = read_table(write_table("new.csv", [header, *unlabelled]), **options)
        return CorrectionRows.of(first, second, metric=ANY).groups

    # without a column the first rows of both tables have one number and are not one group
    assert groups("answer", ["one,1", "two,2"], ["three", "four"]) == [0, 1, 2, 3]
    asked = groups("question,answer", ["q,one,1", "r,two,2", "t,six,3"], ["r,three", "s,four", "u,five", "v,ten"])
    assert asked == [0, 1, 2, 1, 3, 4, 5]
    named = groups("group,answer", ["g,one,1", "g,two,2", "h,six,3"], ["h,three", "h,four", "k,five"])
    assert named == [0, 0, 1, 1, 1, 2]


@pytest.fixture
def write_table(tmp_path):
    def write(name, lines):
        (tmp_path / name).write_text("\n".join(lines) + "\n", "utf-8")
        return tmp_path / name

    return write


def test_a_member_of_a_panel_asks_a_model_once_and_the_store_answers_again(tmp_path):
    judges = [CriterionJudge(criterion=name, meaning="Short.", task="Answer.") for name in ("Brevity", "Order")]
    member = Panel(judges).members()[0]
    labelled, others = LABELLED[:18], OTHERS[:18]

    def answer(prompt):
        stars = 1 + len(prompt) % 5
        return {"reasoning": "Counted.", "score": stars, "ratings": [item("Brevity", stars), item("Order", 3)]}

    with GivenModel(answer) as model:
        options = {"metric": member, "lm": model.lm(), "store": tmp_path / "s.db"}
        first = corrected(labelled, others, **options)
        sent = model.requests
        assert corrected(labelled, others, **options) == first
        assert model.requests == sent == 36
    assert (first.labelled, first.missing, first.unlabelled_missing) == (18, 0, 0)
    with pytest.raises(OptionError, match=r"gives several numbers a row \(brevity, order\): give one of its members"):
        corrected(metric=Panel(judges))


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"target": None}, DataError, "no rating column: give one, or name it with target="),
        ({"target": "points"}, DataError, "none of 60 labelled rows has a rating 'points'"),
        (
            {"labelled": [LABELLED[0].copy(stars="fine, mostly"), *LABELLED]},
            DataError,
            "row 0: stars is 'fine, mostly'",
        ),
        ({"scale": Scale(1, 3)}, DataError, "but the scale runs from 1 to 3"),
        ({"labelled": LABELLED[:1]}, DataError, "1 labelled groups and 600 unlabelled rows have numbers"),
        ({"unlabelled": LABELLED}, DataError, "no unlabelled row is left .60 unlabelled rows are labelled too"),
        ({"method": "pp"}, OptionError, "'pp' is unknown.*choose one of"),
        ({"systems": ("a", "c")}, OptionError, "no row is by the system 'c'"),
        ({"systems": ("a", "a")}, OptionError, "give two that differ"),
        ({"systems": ("a",)}, OptionError, "give two that differ"),
        ({"strata": "sytem"}, OptionError, "'sytem': 660 of 660 rows have no such label"),
        ({"positive": 9}, OptionError, "positive=9 divides no ratings from"),
        ({"positive": math.nan}, OptionError, "positive=nan divides no ratings from"),
        ({"systems": ("a", "b"), "strata": "system"}, OptionError, "exclude each other"),
        ({"labelled": [{"output": "text", "stars": 3}]}, OptionError, "is no row; make one with"),
        ({"unlabelled": "new.csv"}, OptionError, "rows must be a list, not one str"),
        ({"metric": "output_wordz"}, OptionError, "did you mean 'output_words'"),
        ({"method": "rogan-gladen"}, DataError, "is neither 0 nor 1"),
    ],
)
def test_wrong_input_is_refused(change, error, said):
    with pytest.raises(error, match=said):
        corrected(**change)


def test_ratings_that_are_all_alike_give_the_classical_interval_and_the_reason():
    found = corrected(labelled=[row.copy(stars=4.0) for row in LABELLED], scale=STARS)
    assert (found.method, found.estimate) == ("classical", 4.0)
    assert 3 < found.low < 4 < found.high <= 5
    assert found.note.startswith("0 of 20 labelled groups hold a rating other than 4")
