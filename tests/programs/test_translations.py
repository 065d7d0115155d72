"""Documents in; segment, document and system scores out."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from loopback import serve
from metricsmith.datasets.segments import read_translations
from metricsmith.errors import ModelFailure
from metricsmith.programs.judges.mqm import MQMJudge
from metricsmith.programs.translations import _differences, judge_translations, recorded
from metricsmith.records import Status
from metricsmith.report.translations.record import SegmentScore
from metricsmith.scoring import score
from metricsmith.stats.resampling import group_mean_interval
from reviser import DOCUMENTS, FILES, Reviser


def judge(**changes):
    return MQMJudge(**{"source_language": "English", "target_language": "German", "runs": 3, **changes})


@pytest.fixture(scope="module")
def read():
    return read_translations(FILES[0], FILES[1:], documents=DOCUMENTS)


def test_means_and_intervals_are_those_of_the_segments(read):
    with serve(Reviser()) as server:
        record = judge_translations(judge(), read, lm=server.lm(), progress=False)
        assert (record.usage.requests, record.estimated.requests) == (66, 66)
    assert record.judgements["ok"] == 36 * 3
    for line in record.systems:
        mine = [one for one in record.segments if one.system == line.system]
        numbers = [one.raw for one in mine]
        interval = group_mean_interval(numbers, [one.document for one in mine])
        assert line.mean == pytest.approx(np.mean(numbers))
        assert (line.low, line.high) == (interval.low, min(interval.high, 0.0))
        assert (line.segments, line.missing, line.groups) == (12, 0, 3)
    assert len(record.documents) == 9
    assert [line.mean for line in record.systems] == sorted((line.mean for line in record.systems), reverse=True)


def test_one_document_rests_on_its_segments():
    one = read_translations(FILES[0], FILES[1:2])
    with serve(Reviser()) as server:
        record = judge_translations(judge(), one, lm=server.lm(), progress=False)
    assert record.systems[0].groups == 12
    assert any(warning.startswith("95 % intervals rest on 12 segments; ") for warning in record.warnings)
    assert (record.systems[0].low, record.systems[0].high) == (record.documents[0].low, record.documents[0].high)


def test_segments_without_a_score_enter_no_mean(read):
    with serve(Reviser(), malformed=0.6, seed=2) as server:
        table = score([judge(min_runs=3)], read.rows, lm=server.lm(), max_failure_rate=1.0, progress=False)
        with pytest.raises(ModelFailure):
            judge_translations(judge(min_runs=3), read, lm=server.lm(), progress=False)
        import dspy

        with dspy.context(lm=server.lm()):
            record = recorded(judge(min_runs=3), read, table)
    without = [one for one in record.segments if one.raw is None]
    assert 0 < len(without) < 36
    assert sum(line.missing for line in record.systems) == len(without) == record.missing
    assert any(f"{len(without)} of 36 segments have no score" in warning for warning in record.warnings)
    assert any("systems have scores on different segments" in warning for warning in record.warnings)
    for line in record.systems:
        numbers = [one.raw for one in record.segments if one.system == line.system and one.raw is not None]
        assert line.mean == pytest.approx(np.mean(numbers)) if numbers else math.isnan(line.mean)
    assert {one.status for one in without} == {Status.UNPARSABLE.value}


def test_quotations_that_stand_nowhere_are_told(read):
    def paraphrasing(prompt):
        said = {"span": "words that are not there", "type": "style/awkward", "description": "d"}
        return {"errors": {"critical": [], "major": [], "minor": [said]}}

    with serve(paraphrasing) as server:
        record = judge_translations(judge(runs=2), read, lm=server.lm(), progress=False)
    assert any("72 of 72 errors quote words that do not stand in the text" in one for one in record.warnings)
    assert all(one.raw == -1.0 and one.errors[0].found == 2 for one in record.segments)


@pytest.mark.parametrize(("others", "told"), [(9, False), (8, True)])
def test_quotations_that_stand_nowhere_are_told_from_a_tenth_on(read, others, told):
    """Omissions, which quote nothing, are errors like others and not astray."""
    error = {"type": "accuracy/omission", "description": "d"}
    said = [{"span": "words that are not there", **error}, *[{"span": "", **error}] * others]
    one = replace(read, rows=read.rows[:1], systems=("alpha",))
    with serve(lambda prompt: {"errors": {"critical": [], "major": said, "minor": []}}) as server:
        record = judge_translations(judge(runs=1), one, lm=server.lm(), progress=False)
    assert any("quote words that do not stand in the text" in warning for warning in record.warnings) is told


def test_parts_are_the_runs_in_their_order(read):
    with serve(Reviser()) as server:
        table = score([judge()], read.rows[:2], lm=server.lm(), progress=False)
    parts = table.parts(0, 0)
    assert [part.run for part in parts] == [0, 1, 2]
    assert table.judgement(0, 0) == judge().verdict(parts, 0)
    with serve(Reviser()) as server:
        assert score([judge().judge], read.rows[:1], lm=server.lm(), progress=False).parts(0, 0) == []


def lines(*systems, documents=8):
    """Segments of systems with these scores, two in each document."""
    return [
        SegmentScore(f"{name}{n}", name, f"d{n // 2 % documents}", n, "s", "t", raw, None, None, "ok", "", (), 1, ())
        for name, scores in systems
        for n, raw in enumerate(scores)
    ]


def test_the_best_system_is_paired_with_each_other_on_the_segments_that_all_have():
    # Of eight documents every one is 2 and 3 points better: of 256 ways to swap whole documents two are as extreme.
    best, other = [-1.0, -2.0] * 8, [-3.0, -5.0] * 8
    (found,) = _differences(lines(("b", other), ("a", best)), ["b", "a"])
    assert (found.best, found.other, found.difference, found.segments, found.documents) == ("a", "b", 2.5, 16, 8)
    assert found.p_document == pytest.approx(2 / 256, abs=0.006)
    assert found.p_segment < 0.002  # 2 of 65,536
    assert found.by_segment.low == group_mean_interval([2.0, 3.0] * 8).low > 0
    (holed,) = _differences(lines(("a", best), ("b", [None, *other[1:]])), ["a", "b"])
    assert (holed.segments, holed.difference) == (15, pytest.approx(38 / 15))


def test_with_several_systems_p_values_allow_for_them_and_for_the_choice_of_the_best():
    best, other, third = [-1.0, -2.0] * 8, [-2.0, -2.0, -0.5, -2.0] * 4, [-3.0, -4.0] * 8
    two = _differences(lines(("a", best), ("b", other)), ["a", "b"])[0]
    three = _differences(lines(("a", best), ("b", other), ("c", third)), ["a", "b", "c"])
    assert [line.other for line in three] == ["b", "c"]  # nearest first
    # Holm takes the larger of two as it is; times half of three systems.
    assert three[0].p_document == pytest.approx(min(1.0, 1.5 * two.p_document), abs=0.05)
    assert three[1].p_document == pytest.approx(2 * 1.5 * 2 / 256, abs=0.02)


def test_one_document_is_not_paired_by_document_and_nothing_shared_is_not_compared():
    scores = [-1.0, -2.0] * 8
    (found,) = _differences(lines(("a", scores), ("b", [x - 1 - x % 2 for x in scores]), documents=1), ["a", "b"])
    assert math.isnan(found.p_document)
    assert math.isnan(found.by_document.low)
    assert found.better_by_segment
    assert not found.better  # on 16 segments
    assert _differences(lines(("a", [None, -1.0]), ("b", [-1.0, None])), ["a", "b"]) == []
    assert _differences(lines(("a", scores)), ["a"]) == []


def test_equal_systems_are_seldom_told_apart():
    # 5 % are allowed; 200 runs of 20 documents of a made-up kind, where segments of a document are alike.
    random = np.random.default_rng(0)
    found = []
    for _ in range(200):
        systems = [(name, -random.gamma(0.5, 4, 40) - np.repeat(random.gamma(1, 1, 20), 2)) for name in "ab"]
        found += _differences(lines(*systems, documents=20), ["a", "b"])
    assert 0 < sum(line.better for line in found) <= 18
