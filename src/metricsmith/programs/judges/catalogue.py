"""The table of judges: from it follow their saved states, how they are loaded, and their names on the root.

A new judge is a signature in `metricsmith.signatures`, a file like its neighbours, with the settings that it `saves`,
and one line in `JUDGES`. Importing this module loads none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any

__all__ = ["JUDGES", "judge_class"]

JUDGES: Mapping[str, tuple[str, str]] = {  # by kind, as states have it: the file in this folder, the class
    "choice_judge": ("choice", "ChoiceJudge"),
    "criterion_judge": ("criterion", "CriterionJudge"),
    "direct_assessment": ("direct_assessment", "DirectAssessment"),
    "dna_eval": ("dna", "DnAEval"),
    "esa_judge": ("direct_assessment", "ESAJudge"),
    "example_judge": ("raters", "ExampleJudge"),
    "example_mean": ("parrot", "ExampleMean"),
    "geval_judge": ("geval", "GEval"),
    "guideline_judge": ("raters", "GuidelineJudge"),
    "mqm_annotator": ("mqm", "MQMAnnotator"),
    "mqm_judge": ("mqm", "MQMJudge"),
    "option_member": ("choice", "OptionMember"),
    "panel": ("panel", "Panel"),
    "panel_member": ("panel", "PanelMember"),
    "parrot": ("parrot", "Parrot"),
    "prometheus_judge": ("prometheus", "PrometheusJudge"),
    "repeated": ("repeated", "Repeated"),
    "response_set_judge": ("choice", "ResponseSetJudge"),
    "rubric_judge": ("criterion", "RubricJudge"),
}


@lru_cache
def judge_class(kind: str) -> Any:
    """The class of a kind of `JUDGES`."""
    file, name = JUDGES[kind]
    return getattr(import_module(f"metricsmith.programs.judges.{file}"), name)
