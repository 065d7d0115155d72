"""The rows that are probed, and what stands beside them."""

from __future__ import annotations

import pytest

from metricsmith.errors import DataError, OptionError
from metricsmith.metric import make_row, row_text
from metricsmith.programs.perturbers.base import Perturbation
from metricsmith.studies.probing.data import draw_source_rows

ROWS = [
    make_row(f"output {n}", input=f"input {n // 4}", references=["r"], id=f"r{n}", rating=n, columns={"x": n})
    for n in range(20)
]


def test_groups_take_turns():
    changed, places = draw_source_rows(ROWS, 7, seed=0)
    assert len(changed.sources) == 7 == len(places)
    sizes = [changed.groups.count(group) for group in set(changed.groups)]
    assert sorted(sizes) == [1, 1, 1, 2, 2]
    assert (
        [row["id"] for row in changed.sources]
        == [f"r{place}" for place in places]
        == sorted((f"r{place}" for place in places), key=lambda name: int(name[1:]))
    )


def test_the_seed_decides_and_all_rows_are_the_most():
    assert (
        draw_source_rows(ROWS, 5, seed=1)[1]
        == draw_source_rows(ROWS, 5, seed=1)[1]
        != draw_source_rows(ROWS, 5, seed=2)[1]
    )
    assert draw_source_rows(ROWS, 99, seed=0)[1] == list(range(20))


def test_numbers_that_came_with_the_data_are_left_behind():
    changed, _ = draw_source_rows(ROWS, 3, seed=0)
    assert all("columns" not in row and "rating" not in row for row in changed.rows)
    assert changed.sources[0].inputs().keys() == ["output", "input", "references"]


def test_a_changed_row_has_the_texts_of_its_original_and_an_id_of_its_own():
    changed, _ = draw_source_rows(ROWS, 2, seed=0)
    made = [
        Perturbation(1, "typos", "worse", "obvious", "otuput", dimension="Tone"),
        Perturbation(0, "typos", "worse", "obvious", None, "nothing"),
        Perturbation(0, "markup", "same", "subtle", "*output*"),
    ]
    rows = type(changed)(changed.sources, changed.groups, made).rows
    assert [row_text(row).output for row in rows[2:]] == ["otuput", "*output*"]
    assert rows[2]["id"] == f"{changed.sources[1]['id']}~typos~obvious~Tone"
    assert rows[2].input == changed.sources[1].input
    assert rows[2].group == changed.sources[1].group
    assert changed.sources[1].output != "otuput"


@pytest.mark.parametrize("n", [0, -1, True, 2.5])
def test_a_number_of_outputs_that_is_none_is_refused(n):
    with pytest.raises(OptionError, match="how many outputs"):
        draw_source_rows(ROWS, n, seed=0)


def test_rows_without_an_output_are_left_out():
    assert draw_source_rows([make_row(" ", input="a"), ROWS[0]], 5, seed=0)[1] == [1]
    with pytest.raises(DataError, match="none of 1 rows"):
        draw_source_rows([make_row("", input="a")], 5, seed=0)
