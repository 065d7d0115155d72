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
from metricsmith.programs.translations import judge_translations, recorded
from metricsmith.records import Status
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
