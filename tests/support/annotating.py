"""Judges of translations from English into German, one door, and answers for them."""

from __future__ import annotations

import json

import dspy
from dspy.utils import DummyLM

from metricsmith.metric import make_row
from metricsmith.programs.judges.mqm import MQMAnnotator, MQMJudge
from metricsmith.records import ErrorSpan, Judgement, Status

LANGUAGES = {"source_language": "English", "target_language": "German"}
ROW = make_row("Die Tür ist offen.", input="The door is shut.", context="The door is shut.\nKnock twice.")


def annotator(**changes):
    return MQMAnnotator(**{**LANGUAGES, **changes})


def judge(**changes):
    return MQMJudge(**{**LANGUAGES, **changes})


def error(span="offen", kind="accuracy/mistranslation", **more):
    return {"span": span, "type": kind, "description": f"{span} is wrong", **more}


def errors(**lists):
    return json.dumps({"critical": [], "major": [], "minor": [], **lists})


def saying(*answers):
    lm = DummyLM([{"errors": answer} for answer in answers])
    lm.kwargs["temperature"] = 1.0
    return dspy.context(lm=lm)


def one(answer, **changes):
    with saying(answer):
        return annotator(**changes).judge_batch([ROW])[0]


def part(*spans, run=0, status=Status.OK):
    if status is not Status.OK:
        return Judgement("mqm_run", status=status, error="small talk", run=run)
    costs = {"critical": 25, "major": 5, "minor": 1}
    return Judgement("mqm_run", -float(sum(costs[span.severity] for span in spans)), 0.5, "f", run=run, spans=spans)


MAJOR = ErrorSpan("major", "accuracy/mistranslation", 12, 17, "offen", description="open for shut")
MINOR = ErrorSpan("minor", "style/awkward", 0, 3, "Die")
