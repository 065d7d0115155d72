"""One line in the table is all that a judge needs to be loaded, checked and found under its name."""

from __future__ import annotations

import pytest

import metricsmith
from metricsmith.programs.judges.catalogue import JUDGES, judge_class
from metricsmith.programs.kinds import KINDS
from saved import every_kind


@pytest.mark.parametrize("kind", JUDGES)
def test_a_line_names_the_class_of_its_kind(kind):
    assert judge_class(kind).kind == kind
    assert kind in KINDS


@pytest.mark.parametrize("kind", [kind for kind in JUDGES if kind not in ("panel_member", "option_member")])
def test_every_judge_but_a_member_of_one_has_one_public_name(kind):
    rooms = (metricsmith, metricsmith.judges, metricsmith.translation)
    assert [getattr(room, JUDGES[kind][1]) for room in rooms if JUDGES[kind][1] in room.__all__] == [judge_class(kind)]


def test_every_line_is_tried_by_the_tests_of_saved_states():
    assert {name.split()[0] for name in every_kind()} >= set(JUDGES)
