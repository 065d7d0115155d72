"""No line of the libraries below reaches the terminal: what matters is said by our own checks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from model_cases import CASES, tiny_family

pytestmark = pytest.mark.extras
PROGRAM = """
import sys
from pathlib import Path
import dspy
import transformers
import conformance
from metricsmith.bank.base import judge_family

long = "The harbour was quiet, and only two boats came back before dawn. " * 120
plain = "The dog slept under the table."
rows = [conformance.example(*texts) for texts in ((long, long, [long]), (long, plain, [plain]), (plain, long, [long]))]
before = transformers.logging.get_verbosity(), transformers.logging.is_progress_bar_enabled()
for line in sys.stdin.read().splitlines():
    name, path = line.split(" ", 1)
    metrics = conformance.bound(conformance.on(name, Path(path)), rows)
    judge_family(metrics, rows)
assert before == (transformers.logging.get_verbosity(), transformers.logging.is_progress_bar_enabled())
"""


def test_loading_and_scoring_long_texts_leave_the_terminal_empty(tiny, tiny_folder):
    places = [f"{name} {tiny_family(name, tiny, tiny_folder).model.path}" for name in CASES]
    support = Path(__file__).parents[2] / "support"
    environment = os.environ | {"PYTHONPATH": f"{support}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], input="\n".join(places), env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
