"""The monitor: paired changes by hand, blind rating, GEPA's leaders, and a page that stands alone."""

from __future__ import annotations

import logging
import math
import re
from types import SimpleNamespace
from xml.etree import ElementTree

import dspy
import pytest

from metricsmith.errors import DataError, JudgementFailed, OptionError
from metricsmith.records import Output, Scale
from metricsmith.reward import Reward
from metricsmith.scoring import CallableMetric
from metricsmith.studies.monitoring import RewardMonitor

ROWS = [dspy.Example(id=f"r{n}", input=f"q{n}", group=f"g{n // 2}").with_inputs("input") for n in range(8)]


def length(row, pred):
    """Goes up with every word; nothing at all is a failure."""
    words = len(pred.output.split())
    return words / 10 if words else None


def reward():
    return Reward(CallableMetric(length, output=Output("length", 0, 1), version="1"))


def words(count, but=()):
    return lambda input: dspy.Prediction(output=f"{input} " * (0 if input in but else count))


def capped(row, pred, trace=None):
    """Follows the reward up to four words, and falls from there on, by .01 more or less in every other group."""
    count = len(pred.output.split())
    wobble = 0.01 * (-1) ** int(row.get("group", "g0")[1:])
    return min(count, 4) / 10 - (max(0, count - 4) / 20 + wobble if count > 4 else 0)


def watched(**options):
    monitor = RewardMonitor(reward(), ROWS, reference=capped, **options)
    for count in (2, 4, 6):
        monitor.observe(words(count), at=10 * count, label=f"{count} words")
    return monitor


def test_the_gap_is_what_the_reward_rose_beyond_the_reference():
    start, middle, end = watched().gaps()
    assert (start.gap, start.low, start.high, start.over_optimised) == (0, 0, 0, False)
    # 2 -> 4 words: both rise by .2. 2 -> 6 words: the reward by .4, the reference from .2 to .4 - .1 = .3.
    assert (middle.reward_change, middle.gap) == pytest.approx((0.2, 0.0))
    assert (end.reward, end.reference, end.reward_change, end.gap) == pytest.approx((0.6, 0.3, 0.4, 0.3))
    assert end.over_optimised
    # Four groups of two rows lie .01 above or below .3: sums depart by .02, the squared error is 4/3 * 4 * .02^2 / 8^2,
    # Student's t with 3 degrees of freedom is 3.182, and there is no skewness.
    half = 3.18245 * math.sqrt(4 / 3 * 4 * 0.02**2) / 8
    assert (end.low, end.high, end.rows) == pytest.approx((0.3 - half, 0.3 + half, 8))


def test_gaps_that_are_all_alike_on_a_few_rows_prove_nothing():
    monitor = RewardMonitor(reward(), ROWS, reference=lambda row, pred: 0.5)
    monitor.observe(words(2))
    monitor.observe(words(6))
    first, last = monitor.gaps()
    assert (first.low, first.high) == (0, 0)  # a step has no distance to itself, and that is no estimate
    assert last.gap == pytest.approx(0.4)
    assert -2 < last.low < 0 < last.high < 2


def test_a_constant_difference_in_level_is_no_gap():
    monitor = RewardMonitor(reward(), ROWS, reference=lambda row, pred: length(row, pred) / 1 - 0.15)
    monitor.observe(words(2))
    monitor.observe(words(6))
    assert monitor.gaps()[1].gap == pytest.approx(0)
    assert monitor.gaps()[1].over_optimised is False
    assert "At no step" in monitor.report()


def test_the_program_to_keep_is_the_one_with_the_best_reference():
    monitor = watched()
    assert monitor.best().label == "4 words"
    assert monitor.report() == (
        "By step 60 the reward changed by +.40 and the reference by +.10: a gap of +.30 (.28 to .32). "
        "From step 60 on the reward rises beyond what the reference bears out; the reference is highest at step 40."
    )


def test_rows_without_both_numbers_are_left_out_everywhere():
    def fussy(row, pred):
        if row.id == "r7":
            raise JudgementFailed("no comment", "refused")
        return capped(row, pred)

    monitor = RewardMonitor(reward(), ROWS, reference=fussy)
    monitor.observe(words(2, but=("q0",)))
    monitor.observe(words(4))
    assert [gap.rows for gap in monitor.gaps()] == [6, 6]
    assert monitor.gaps()[1].reward_change == pytest.approx(0.2)


def test_the_interval_stands_on_groups_and_not_on_rows():
    def by_group(row, pred):
        return capped(row, pred) - (0.2 if row.group in ("g0", "g1") and len(pred.output.split()) == 6 else 0.0)

    alone = [dspy.Example(row, group=row.id).with_inputs("input") for row in ROWS]
    names = {f"r{n}": f"g{n // 2}" for n in range(8)}
    found = []
    for rows in (ROWS, alone):
        reference = lambda row, pred: by_group(dspy.Example(group=names[row.id]), pred)  # noqa: E731
        monitor = RewardMonitor(reward(), rows, reference=reference)
        monitor.observe(words(2))
        monitor.observe(words(6))
        found.append(monitor.gaps()[1])
    grouped, single = found
    # Half of the groups have a gap of .3, half of .5; the mean of four groups is less sure than that of eight rows.
    assert grouped.gap == single.gap == pytest.approx(0.4)
    assert grouped.high - grouped.low > 1.2 * (single.high - single.low)


def test_the_order_of_steps_is_that_of_the_optimisation():
    monitor = RewardMonitor(reward(), ROWS, reference=capped)
    monitor.observe(words(6), at=60)
    monitor.observe(words(2), at=0)
    assert [gap.at for gap in monitor.gaps()] == [0, 60]
    assert monitor.gaps()[1].reward_change == pytest.approx(0.4)


def test_raters_see_each_output_once_and_not_where_it_comes_from():
    monitor = RewardMonitor(reward(), ROWS, scale=Scale(1, 5), sample=3, seed=4)
    for count in (2, 4, 4):
        monitor.observe(words(count))
    items = monitor.to_rate()
    assert len(items) == 6
    assert len({item.input for item in items}) == 3
    assert all(set(item.keys()) == {"id", "input", "output"} for item in items)
    assert [item.id for item in items] == [item.id for item in monitor.to_rate()]
    assert [item.output for item in items] != sorted(item.output for item in items)
    monitor.rate({items[0].id: 3})
    assert len(monitor.to_rate()) == 5


def test_peoples_ratings_are_the_reference_of_exactly_the_rated_rows():
    monitor = RewardMonitor(reward(), ROWS, scale=Scale(1, 5), sample=4)
    monitor.observe(words(2), at=0)
    monitor.observe(words(6), at=10)
    assert [gap.rows for gap in monitor.gaps()] == [0, 0]
    assert monitor.report().startswith("Nothing to compare yet")
    # Everything gets 2 of 1 to 5, which is .25: the reward's rise of .4 is all gap.
    items = monitor.to_rate()
    long = [item.id for item in items if len(item.output.split()) == 6]
    monitor.rate({item.id: 2 for item in items} | dict(zip(long, (1.96, 1.98, 2.02, 2.04), strict=True)))
    last = monitor.gaps()[1]
    assert (last.rows, last.reference, last.gap) == pytest.approx((4, 0.25, 0.4))
    assert last.over_optimised
    assert math.isnan(last.kendall_tau_b)


def test_wrong_ratings_are_refused():
    monitor = RewardMonitor(reward(), ROWS, scale=Scale(1, 5))
    monitor.observe(words(2))
    with pytest.raises(DataError, match="no output has the id 'x'"):
        monitor.rate({"x": 3})
    with pytest.raises(DataError, match=r"rating 9 of .* is not on the scale 1 to 5"):
        monitor.rate({monitor.to_rate()[0].id: 9})
    with pytest.raises(DataError, match="no step has a reference yet"):
        monitor.best()
    with pytest.raises(OptionError, match="scale="):
        watched().rate({})


def test_a_monitor_needs_rows_and_one_kind_of_reference():
    with pytest.raises(OptionError, match="no rows"):
        RewardMonitor(reward(), [], reference=capped)
    for both in ({}, {"reference": capped, "scale": Scale(1, 5)}):
        with pytest.raises(OptionError, match="either reference="):
            RewardMonitor(reward(), ROWS, **both)


def test_a_reference_off_the_unit_scale_is_refused():
    monitor = RewardMonitor(reward(), ROWS, reference=lambda row, pred: 3)
    with pytest.raises(DataError, match="between 0 and 1"):
        monitor.observe(words(1))


def compiled(scores):
    candidates = [words(count) for count in (2, 4, 3, 6)]
    return SimpleNamespace(
        detailed_results=SimpleNamespace(
            candidates=candidates, val_aggregate_scores=scores, discovery_eval_counts=[0, 20, 40, 60]
        )
    )


def test_the_leaders_of_a_run_are_followed_and_an_alarm_is_logged(caplog):
    monitor = RewardMonitor(reward(), ROWS, reference=capped)
    with caplog.at_level(logging.WARNING):
        monitor.follow(compiled([0.2, 0.4, 0.3, 0.6]))
    assert [(gap.at, gap.label) for gap in monitor.gaps()] == [
        (0, "candidate 0"),
        (20, "candidate 1"),
        (60, "candidate 3"),
    ]
    assert "the reward rises beyond its reference: By step 60" in caplog.text


def test_every_candidate_can_be_followed_and_a_run_without_statistics_cannot():
    monitor = RewardMonitor(reward(), ROWS, reference=capped)
    monitor.follow(compiled([0.2, 0.4, 0.3, 0.6]), every=True)
    assert len(monitor.steps) == 4
    with pytest.raises(DataError, match="track_stats=True"):
        monitor.follow(dspy.Predict("a -> b"))


def test_the_plot_shows_both_lines_and_the_page_stands_alone(tmp_path):
    monitor = watched()
    monitor.write(tmp_path / "gap.svg")
    drawing = (tmp_path / "gap.svg").read_text("utf-8")
    assert ElementTree.fromstring(drawing).tag == "{http://www.w3.org/2000/svg}svg"
    lines = re.findall(r'<polyline points="([^"]+)" class="curve (\w+)"', drawing)
    heights = {kind: [float(place.split(",")[1]) for place in points.split()] for points, kind in lines}
    assert heights["main"][1] == heights["down"][1]
    assert heights["main"][2] < heights["down"][2]
    # From 0 the reward rises by .4 and the reference by .1.
    rises = [heights[kind][0] - heights[kind][2] for kind in ("main", "down")]
    assert rises[0] / rises[1] == pytest.approx(4, rel=0.02)
    path = tmp_path / "gap.html"
    monitor.write(path, title="<b>Reward</b>")
    page = path.read_text("utf-8")
    assert "&lt;b&gt;Reward" in page
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    assert page.count("<tr>") == 4


def test_one_step_draws_nothing(tmp_path):
    monitor = RewardMonitor(reward(), ROWS, reference=capped)
    assert monitor.gaps() == []
    monitor.observe(words(2))
    with pytest.raises(DataError, match="fewer than two steps"):
        monitor.write(tmp_path / "gap.svg")
