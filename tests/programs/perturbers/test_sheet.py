"""A rating sheet that does not tell what was done, and its way through a spreadsheet and back."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import DataError, OptionError, StateError
from metricsmith.programs.perturbers.base import Perturbation, Source
from metricsmith.programs.perturbers.sheet import COLUMNS, guarded, read_sheet, spread, unguarded, write_sheet
from metricsmith.programs.state import write_state
from metricsmith.records import Scale

SOURCES = [Source(f"Version {row}.", f"Notice {row}.") for row in range(4)] + [Source("Never shown.", "n")]
MADE = [
    Perturbation(row, strategy, effect, strength, f"{strategy} {strength} {row}", "", "Facts", "generated")
    for row in range(4)
    for strategy, effect in (("Cut", "worse"), ("Blur", "worse"), ("preserve", "same"))
    for strength in ("subtle", "obvious")
]
CRITERION = "Facts, from 1 (none) to 5 (all)"


@pytest.fixture
def sheet(tmp_path):
    """Path, key and lines of a sheet."""
    path = tmp_path / "sheet.csv"
    key = write_sheet(path, SOURCES, MADE, seed=3, criterion=CRITERION)
    return path, key, read(path)


def read(path):
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def rewrite(path, lines, *, delimiter=",", encoding="utf-8"):
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, delimiter=delimiter)
    writer.writeheader()
    writer.writerows(lines)
    path.write_bytes(text.getvalue().encode(encoding))


def rated(lines, rating):
    return [{**line, "rating": str(rating(line["output"]))} for line in lines]


def by_hand(output):
    """Originals 4; Cut 2, Blur 4 if subtle and 3 if obvious, preserved 5 if obvious and 4 if subtle."""
    if output.startswith("Version"):
        return 4
    return (
        2
        if "Cut" in output
        else 4 + (output.startswith("preserve") - output.startswith("Blur")) * ("obvious" in output)
    )


def test_the_sheet_shows_originals_and_perturbed_outputs_and_nothing_else(sheet):
    _, key, lines = sheet
    assert tuple(lines[0]) == COLUMNS
    assert Counter(line["output"] for line in lines) == Counter(
        [f"Version {row}." for row in range(4)] + [one.output for one in MADE]
    )
    assert {line["rating"] for line in lines} == {""}
    assert {line["criterion"] for line in lines} == {CRITERION}
    for line in lines:
        assert line["input"] == f"Notice {line['output'].rstrip('.')[-1]}."
    assert [line["item"] for line in lines] == [f"i{number:02d}" for number in range(1, 29)]
    assert key.name == "sheet.key.json"


def test_the_key_says_what_each_item_is_without_its_text(sheet):
    _, key, lines = sheet
    items = json.loads(key.read_text("utf-8"))["items"]
    for line in lines:
        entry = items[line["item"]]
        if entry["effect"] == "original":
            assert line["output"] == f"Version {entry['row']}."
            assert set(entry) == {"row", "hash", "effect"}
        else:
            assert line["output"] == f"{entry['strategy']} {entry['strength']} {entry['row']}"
            assert (entry["dimension"], entry["origin"]) == ("Facts", "generated")
    assert "Version" not in key.read_text("utf-8")


def test_the_order_follows_the_seed_and_parts_what_belongs_together(tmp_path, sheet):
    _, _, lines = sheet
    for seed, same in ((3, True), (4, False)):
        path = tmp_path / f"other{seed}.csv"
        write_sheet(path, SOURCES, MADE, seed=seed, criterion=CRITERION)
        assert (read(path) == lines) == same
    inputs = [line["input"] for line in lines]
    assert all(one != other for one, other in pairwise(inputs))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 4), max_size=24), st.integers(0, 3))
def test_neighbours_differ_wherever_that_is_possible(groups, seed):
    order = spread(groups, seed)
    assert sorted(order) == list(range(len(groups)))
    together = sum(groups[a] == groups[b] for a, b in pairwise(order))
    most = max(Counter(groups).values(), default=0)
    if 2 * most <= len(groups) + 1:  # otherwise there is no such order
        assert together == 0
    else:
        assert together == 2 * most - len(groups) - 1  # by counting the gaps that the others leave


def test_every_place_may_come_first():
    assert {spread([0, 0, 1, 1, 2], seed)[0] for seed in range(60)} == {0, 1, 2, 3, 4}


def test_ratings_come_back_as_pairs_with_sensitivity_and_stability(sheet):
    path, key, lines = sheet
    rewrite(path, rated(lines, by_hand))
    back = read_sheet(path, key)
    assert back.criterion == CRITERION
    assert sorted(pair.row for pair in back.pairs) == sorted(one.row for one in MADE)
    cut = [pair for pair in back.pairs if pair.strategy == "Cut"]
    assert {(pair.original, pair.perturbed, pair.effect) for pair in cut} == {(4.0, 2.0, "worse")}
    # Of 16 worse pairs 8 (Cut) and 4 (Blur, obvious) are rated lower; 4 are tied, which is not lower.
    assert back.sensitivity() == back.sensitivity(Scale(1, 5)) == 12 / 16
    # The 8 preserved ones moved by 0 or 1, half of them each; the ratings go from 2 to 5, the scale from 1 to 5.
    assert back.stability() == pytest.approx(1 - 0.5 / 3)
    assert back.stability(Scale(1, 5)) == pytest.approx(1 - 0.5 / 4)
    assert back.sensitivity(Scale(1, 5, higher_is_better=False)) == 0.0


def test_where_lower_is_better_a_higher_rating_is_worse(sheet):
    path, key, lines = sheet
    rewrite(path, rated(lines, lambda output: 5 - by_hand(output)))
    back = read_sheet(path, key)
    assert back.sensitivity(Scale(0, 5, higher_is_better=False)) == 12 / 16
    assert back.stability(Scale(0, 5, higher_is_better=False)) == pytest.approx(0.9)


def test_missing_ratings_are_left_out_and_never_zero(sheet):
    path, key, lines = sheet
    rewrite(path, rated(lines, lambda output: "" if output.endswith("0") or "Blur" in output else by_hand(output)))
    back = read_sheet(path, key)
    assert len(back.pairs) == 24
    assert sum(pair.rated for pair in back.pairs) == 3 * 4
    assert back.sensitivity() == 1.0
    rewrite(path, lines)
    assert all(math.isnan(value) for value in (read_sheet(path, key).sensitivity(), read_sheet(path, key).stability()))
    rewrite(path, rated(lines, lambda output: 3))
    assert math.isnan(read_sheet(path, key).stability())  # all equal: no width to measure in
    assert read_sheet(path, key).stability(Scale(1, 5)) == 1.0


def test_a_rating_off_the_scale_has_no_stability(sheet):
    path, key, lines = sheet
    rewrite(path, rated(lines, by_hand))
    with pytest.raises(DataError, match=r"the rating (4|5) is not on the scale 1 to 3"):
        read_sheet(path, key).stability(Scale(1, 3))


@pytest.mark.parametrize(
    ("delimiter", "encoding", "comma"),
    [(",", "utf-8", False), (",", "utf-8-sig", False), (";", "utf-8-sig", True), ("\t", "utf-8", True)],
)
def test_the_sheet_comes_back_as_spreadsheets_write_it(sheet, delimiter, encoding, comma):
    path, key, lines = sheet
    filled = rated(lines[::-1], lambda output: str(by_hand(output) + 0.5).replace(".", "," if comma else "."))
    empty = dict.fromkeys(COLUMNS, "")
    rewrite(path, [*filled[:3], empty, *filled[3:], empty], delimiter=delimiter, encoding=encoding)
    back = read_sheet(path, key)
    assert {pair.original for pair in back.pairs} == {4.5}
    assert back.sensitivity() == 12 / 16


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+49 30",
        "-1",
        "@SUM(A1)",
        "\tx",
        "'tis",
        "''",
        "\r\nx",
        "＝1",
        "007",
        "1.50",
        "14.05.2026",
        "TRUE",
        "50 %",
    ],
)
def test_no_cell_is_read_as_a_formula_number_or_date(tmp_path, text):
    sources, made = [Source(text, text)], [Perturbation(0, "s", "worse", "subtle", "x " + text)]
    path = tmp_path / "sheet.csv"
    key = write_sheet(path, sources, made, seed=0, criterion=text)
    line = next(line for line in read(path) if not line["output"].startswith("x "))
    assert line["output"] == line["input"] == line["criterion"] == "'" + text
    assert len(read_sheet(path, key).pairs) == 1


@given(st.text())
def test_a_guard_is_taken_off_exactly(text):
    assert unguarded(guarded(text)) == text
    assert not guarded(text).startswith(("=", "+", "-", "@"))
    assert guarded("x" + text) == "x" + text


def test_line_ends_and_white_space_at_the_ends_may_change(tmp_path):
    path = tmp_path / "sheet.csv"
    key = write_sheet(
        path, [Source("one\r\ntwo \n")], [Perturbation(0, "s", "same", "subtle", "a\rb")], seed=0, criterion="c"
    )
    rewrite(
        path, [{**line, "output": line["output"].replace("\r\n", "\n").strip(), "rating": 1} for line in read(path)]
    )
    assert read_sheet(path, key).pairs[0].rated


def change(lines, place, **cells):
    return [*lines[:place], {**lines[place], **cells}, *lines[place + 1 :]]


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda lines: lines[1:], r"lacks 1 of 28 items, such as 'i01'"),
        (lambda lines: [*lines, lines[2]], r"rows 4 and 30: item 'i03' stands there 2 times"),
        (lambda lines: change(lines, 4, item="x9"), r"row 6: there is no item 'x9' in the key"),
        (lambda lines: change(lines, 4, item=""), r"row 6: there is no item ''"),
        (lambda lines: change(lines, 1, output="mended"), r"row 3: the output of item 'i02' is not the one"),
        (lambda lines: change(lines, 0, rating="good"), r"row 2: the rating 'good' is no number"),
        (lambda lines: change(lines, 0, rating="nan"), "'nan' is no number"),
        (lambda lines: change(lines, 0, rating="inf"), "'inf' is no number"),
        (lambda lines: change(lines, 0, rating="1,000"), "'1,000' is no number"),
        (lambda lines: change(lines, 0, rating="3,5,1"), "is no number"),
    ],
)
def test_a_sheet_that_was_changed_is_refused_with_the_row(sheet, spoil, problem):
    path, key, lines = sheet
    rewrite(path, spoil(lines))
    with pytest.raises(DataError, match=problem):
        read_sheet(path, key)


def test_ratings_may_be_negative_or_guarded(sheet):
    path, key, lines = sheet
    rewrite(path, rated(lines, lambda output: "'-1.5" if output.startswith("V") else "+2"))
    assert {(pair.original, pair.perturbed) for pair in read_sheet(path, key).pairs} == {(-1.5, 2.0)}


def test_a_missing_column_file_or_key_is_said(sheet, tmp_path):
    path, key, _ = sheet
    path.write_text("item,output\ni01,x\n", "utf-8")
    with pytest.raises(DataError, match="has no column 'rating'"):
        read_sheet(path, key)
    with pytest.raises(DataError, match="cannot be read"):
        read_sheet(tmp_path / "none.csv", key)
    with pytest.raises(StateError, match="not a readable"):
        read_sheet(path, tmp_path / "none.json")
    write_state({"kind": "bank", "name": "BLEU"}, tmp_path / "metric.json")
    with pytest.raises(StateError, match="holds a 'bank', not the key of a rating sheet"):
        read_sheet(path, tmp_path / "metric.json")
    content = json.loads(key.read_text("utf-8"))
    content["items"]["i01"]["row"] = 3
    key.write_text(json.dumps(content), "utf-8")
    with pytest.raises(StateError, match="does not match its own hash"):
        read_sheet(path, key)


def test_what_cannot_be_shown_is_refused(tmp_path):
    declined = Perturbation(0, "s", "same", "subtle", None, "why")
    with pytest.raises(DataError, match="no perturbation has an output"):
        write_sheet(tmp_path / "a.csv", SOURCES, [declined], seed=0, criterion="c")
    with pytest.raises(DataError, match="row 4 is not among 2 sources"):
        write_sheet(
            tmp_path / "a.csv", SOURCES[:2], [Perturbation(4, "s", "same", "subtle", "x")], seed=0, criterion="c"
        )
    with pytest.raises(OptionError, match="a name that ends in"):
        write_sheet(tmp_path / "a.xlsx", SOURCES, MADE, seed=0, criterion="c")
    assert list(tmp_path.iterdir()) == []


def test_a_sheet_or_key_that_is_there_is_never_overwritten(sheet, tmp_path):
    path, key, lines = sheet
    rewrite(path, rated(lines, by_hand))
    before = path.read_bytes(), key.read_bytes()
    with pytest.raises(OptionError, match="exists already"):
        write_sheet(path, SOURCES, MADE, seed=4, criterion="c")
    with pytest.raises(OptionError, match="exists already"):
        write_sheet(tmp_path / "new.csv", SOURCES, MADE, seed=4, criterion="c", key=key)
    assert (path.read_bytes(), key.read_bytes()) == before
    assert not (tmp_path / "new.csv").exists()


def test_declined_perturbations_are_left_out_and_the_key_may_lie_elsewhere(tmp_path):
    made = [MADE[0], Perturbation(1, "s", "same", "subtle", None, "why")]
    key = write_sheet(tmp_path / "a.csv", SOURCES, made, seed=0, criterion="c", key=tmp_path / "secret.json")
    assert key == tmp_path / "secret.json"
    assert {line["output"] for line in read(tmp_path / "a.csv")} == {"Version 0.", MADE[0].output}
