"""`metricsmith score` with a model behind the metric: failures, limits, and files that must not be lost."""

from __future__ import annotations

import csv
import json

import pytest

from faults import Fault, Faults
from loopback import serve
from metricsmith.bank.catalogue import default_bank
from metricsmith.metric import make_row
from metricsmith.programs.induced import InducedMetric
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.records import Task
from metricsmith.scoring import score

TASK = Task("Rewrite notices.", "rating", "1 to 5")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A metric of two bank metrics and a judge, and a table of twelve rows."""
    raise NotImplementedError
