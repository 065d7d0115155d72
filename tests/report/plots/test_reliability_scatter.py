"""The scatter plot."""

from __future__ import annotations

import re

from metricsmith.records import Scale
from metricsmith.report.plots.reliability import Point, beyond, scatter, thin

SCALE = Scale(1, 5, 1)


def circles(drawing):
    return [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', drawing)]


def test_both_axes_show_one_scale_so_that_equal_numbers_lie_on_the_diagonal():
    drawing = scatter("k", [Point("a", 2.0, 2.0, True), Point("b", 4.0, 4.0, True)], SCALE)
    (x, y), (other_x, other_y) = circles(drawing)
    assert other_x > x
    assert other_y < y
    assert abs((other_x - x) - (y - other_y)) < 0.1


def test_held_out_rows_are_discs_on_top_of_training_squares():
    drawing = scatter("k", [Point("a", 2.0, 3.0, True), Point("b", 4.0, 4.0, False)], SCALE)
    assert drawing.index('class="point train"') < drawing.index('class="point test"')
    assert len(circles(drawing)) == 1


def test_a_prediction_far_outside_is_held_at_the_frame_and_counted():
    drawn = [Point("a", 3.0, 1000.0, True), Point("b", 3.0, 3.0, True), Point("c", 3.0, 5.9, True)]
    assert beyond(drawn, SCALE) == 1
    (_, far), (_, inside), _ = circles(scatter("k", drawn, SCALE))
    assert 0 < far < inside


def test_thinning_is_seeded_keeps_order_and_leaves_few_points_alone():
    points = [Point(str(k), 1.0, 1.0, True) for k in range(50)]
    few = thin(points, most=10)
    assert few == thin(points, most=10)
    assert len(few) == 10
    assert [int(point.name) for point in few] == sorted(int(point.name) for point in few)
    assert few != thin(points, most=10, seed=1)
    assert thin(points, most=50) == points


def test_points_carry_their_row_and_numbers_escaped():
    drawing = scatter("k", [Point("<b>", 2.0, 3.14159, True)], SCALE)
    assert "<title>&lt;b&gt;: rated 2, predicted 3.14</title>" in drawing


def test_nothing_to_draw_draws_nothing():
    assert scatter("k", [], SCALE) == ""
