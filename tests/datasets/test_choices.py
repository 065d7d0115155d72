"""Long tables of choices and response sets, read or refused with the place of the fault."""

from __future__ import annotations

import pytest

from metricsmith.datasets.choices import read_rated_choices
from metricsmith.errors import DataError, OptionError

PEOPLE = "item,rater,rating\na,ann,rude\na,bea,fine\nb,ann,fine\nb,bea,\n"
JUDGES = "item,judge,sample,rating\na,x,1,rude\na,x,2,fine\nb,x,1,fine\nb,y,1,\n"


@pytest.fixture
def read(tmp_path):
    """Read tables given as text."""

    def call(people=PEOPLE, judges=JUDGES, options=(), columns=None):
        for name, text in (("people.csv", people), ("judges.csv", judges)):
            (tmp_path / name).write_text(text or "", "utf-8")
        second = None if judges is None else tmp_path / "judges.csv"
        return read_rated_choices(tmp_path / "people.csv", second, options, columns or {})

    return call


def test_choices_become_counts_and_a_blank_is_missing(read):
    found = read()
    assert found.options == ("rude", "fine")
    assert found.human.counts.tolist() == [[1, 1], [0, 1]]
    assert (found.human.missing, found.human.raters) == (1, ("ann", "bea"))
    assert found.judges["x"].counts.tolist() == [[1, 1], [0, 1]]
    assert found.judges["y"].counts.tolist() == [[0, 0]]
    assert found.judges["y"].missing == 1
    assert [line for line in found.notes if "options are those" in line]
    assert not any("no row of people's" in line for line in found.notes)
    assert list(found.sources) == ["people", "judges"]
    assert "sha256:" in found.sources["people"]


def test_items_that_people_did_not_rate_are_counted(read):
    found = read(judges=JUDGES + "c,x,1,fine\n")
    assert "1 of 3 items that judges rated have no row of people's" in found.notes
    assert found.human.items == ("a", "b")


def test_without_samples_rows_of_a_judge_and_item_are_numbered(read):
    found = read(judges="item,judge,rating\na,x,rude\na,x,fine\na,y,fine\n")
    assert found.judges["x"].raters == ("1", "2")
    assert found.judges["y"].raters == ("1",)


def test_a_bar_makes_response_sets_and_a_column_of_sets_makes_pairs(read):
    people = "item,rater,rating\na,ann,rude|fine\na,bea, fine\nb,ann,rude\n"
    judges = "item,judge,rating,set\na,x,rude,rude|fine\nb,x,fine,fine\nc,x,,\n"
    found = read(people, judges)
    assert found.human.sets
    assert found.human.counts.tolist() == [[1, 2], [1, 0]]
    choices, sets = found.judges["x"]
    assert (choices.sets, sets.sets) == (False, True)
    assert choices.counts.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert sets.counts.tolist() == [[1, 1], [0, 1], [0, 0]]
    assert (choices.missing, sets.missing) == (1, 1)


def test_groups_of_items_are_read(read):
    found = read("item,rater,rating,group\na,ann,rude,g\na,bea,fine,g\nb,ann,fine,h\n")
    assert found.human.groups == ("g", "h")


def test_columns_are_named_or_guessed_and_options_declared(read):
    people = "notice,who,label\na,ann,rude\nb,ann,fine\n"
    columns = {"item": "notice", "rater": "who", "judge": "model"}
    found = read(people, "notice,model,label\na,x,odd\n", ("fine", "odd", "rude"), columns)
    assert found.options == ("fine", "odd", "rude")
    assert found.judges["x"].counts.tolist() == [[0, 1, 0]]
    assert any("one rater only" in line for line in found.notes)
    assert any("rating 'label'" in line and "notice" not in line for line in found.notes)


@pytest.mark.parametrize(
    ("people", "judges", "message"),
    [
        ("item,rater,rating\na,ann,rude\na,bea,fine\n", "item,judge,rating\na,x,rud\n",
         r"judges.csv, row 1 \(line 2\), column 'rating': 'rud' was not declared.*did you mean 'rude'"),
        ("item,rater,rating\na,ann,rude\na,ann,fine\n", JUDGES, r"row 2 .*'ann' rated item 'a' before: keep"),
        (PEOPLE, "item,judge,sample,rating\na,x,1,rude\na,x,1,fine\n",
         r"row 2 .*'x' rated item 'a' as sample '1' before: keep"),
        ("item,rater,rating\na,,rude\nb,ann,fine\n", JUDGES, "the rater is blank"),
        ("item,rating\na,rude\nb,fine\n", JUDGES, "no column of the raters.*--column rater=NAME.*Ratings.from_counts"),
        ("item,rater,rating\na,ann,rude\n", JUDGES, r"people gave \['rude'\] alone; declare all options"),
        ("item,rater\na,ann\n", JUDGES, "no column of the ratings"),
        ("item,rater,rating,set\na,ann,rude,fine\nb,ann,fine,fine\n", JUDGES, "'rude' is no choice out of the set"),
        ("item,rater,rating,set\na,ann,rude|fine,rude|fine\n", JUDGES, "is no choice out of the set"),
        ("item,rater,rating,group\na,ann,rude,g\na,bea,fine,h\n", JUDGES, "'a' is in group 'h', before in 'g'"),
    ],
)  # fmt: skip
def test_bad_tables_are_refused_with_the_place(read, people, judges, message):
    with pytest.raises(DataError, match=message):
        read(people, judges)


def test_ratings_on_a_scale_are_told_what_to_do_instead(read):
    rows = "".join(f"i{number},ann,{number % 5}\n" for number in range(10))
    with pytest.raises(DataError, match=r"5 different numbers, such as 0, 1, 2.*--options.*metricsmith compare"):
        read("item,rater,rating\n" + rows)
    assert read("item,rater,rating\n" + rows, None, tuple("01234")).options == tuple("01234")
    texts = "".join(f"i{number},ann,text {number}\n" for number in range(30))
    with pytest.raises(DataError, match="30 different texts"):
        read("item,rater,rating\n" + texts)


def test_two_numbers_are_options(read):
    people, judges = "item,rater,rating\na,ann,1\nb,ann,0\n", "item,judge,rating\na,x,1\n"
    assert read(people, judges).options == ("1", "0")


def test_unknown_roles_and_columns_are_refused(read):
    with pytest.raises(OptionError, match="no role 'items'"):
        read(columns={"items": "item"})
    with pytest.raises(DataError, match=r"no column 'ratings'.*did you mean 'rating'"):
        read(columns={"rating": "ratings"})
    with pytest.raises(DataError, match=r"judges.csv.*no column 'who'"):
        read("item,who,rating\na,ann,rude\nb,bea,fine\n", columns={"rater": "who", "judge": "who"})
    with pytest.raises(OptionError, match="--column judge=x: no table of judges was given"):
        read(judges=None, columns={"judge": "x"})


def test_a_single_option_and_people_as_their_own_judges_are_refused(read):
    with pytest.raises(OptionError, match=r"options \['rude'\]: give at least two"):
        read(options=["rude"])
    with pytest.raises(DataError, match=r"judges.csv holds the same rows as people's table"):
        read(judges=PEOPLE, columns={"judge": "rater"})
