"""A scored row as a line of a table."""

from __future__ import annotations

import math

from metricsmith.metric import Explanation, Part
from metricsmith.records import Judgement, Status
from metricsmith.report.scored.record import ScoredRow


def part(name: str, contribution: float, judgement: Judgement) -> Part:
    return Part(name, "", 1.0, True, contribution, 0.0, judgement)


def row(*parts: Part, cells: dict[str, str] | None = None) -> ScoredRow:
    value = Judgement("induced", 3.5, 0.625, "good")
    return ScoredRow.of("r1", cells or {}, Explanation(value, 3.0, parts))


def test_a_line_has_the_value_and_each_components_number():
    parts = part("bleu", 0.5, Judgement("bleu", 0.2, 0.2)), part("judge", 0.0, Judgement("judge", 4.0, 0.8, "kind"))
    assert row(*parts).line() == {
        "id": "r1", "prediction": 3.5, "score": 0.625, "status": "ok", "missing": 0, "error": "", "bleu": 0.2,
        "judge": 4.0,
    }  # fmt: skip
    details = row(*parts).line(details=True)
    assert details["intercept"] + details["bleu.contribution"] + details["judge.contribution"] == details["prediction"]
    assert (details["reason"], details["judge.reason"]) == ("good", "kind")


def test_a_missing_component_is_empty_and_its_error_stands_in_the_row():
    lost = part("bleu", math.nan, Judgement("bleu", status=Status.SKIPPED, error="no reference"))
    line = row(lost).line(details=True)
    assert (line["bleu"], line["bleu.contribution"], line["missing"]) == (None, None, 1)
    assert line["error"] == "bleu: no reference"


def test_names_of_our_own_columns_are_never_written_twice():
    parts = [part("score", 0.5, Judgement("score", 1.0, 1.0)), part("text", 0.0, Judgement("text", 2.0, 1.0))]
    line = row(*parts, cells={"status": "new", "text": "a"}).line()
    assert (line["status"], line["status (data)"], line["text"]) == ("ok", "new", "a")
    assert (line["score"], line["score (component)"], line["text (component)"]) == (0.625, 1.0, 2.0)
