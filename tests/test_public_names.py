"""What the package shows is what it means to show, and importing it stays cheap."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import metricsmith

HEAVY = (
    "scipy",
    "sklearn",
    "pandas",
    "datasets",
    "torch",
    "transformers",
    "matplotlib",
    "litellm",
    "pyarrow",
)


def test_the_list_is_sorted_and_complete():
    assert sorted(metricsmith.__all__) == metricsmith.__all__ or set(metricsmith.__all__) == set(metricsmith._HOME)
    assert set(metricsmith.__all__) == set(metricsmith._HOME)
    assert dir(metricsmith) == sorted([*metricsmith.__all__, "__version__"])


@pytest.mark.parametrize("name", metricsmith.__all__)
def test_every_name_resolves_to_the_home_it_lists(name):
    value = getattr(metricsmith, name)
    assert getattr(sys.modules[f"metricsmith.{metricsmith._HOME[name]}"], name) is value


def test_the_type_checker_sees_the_same_homes():
    tree = ast.parse(Path(metricsmith.__file__).read_text("utf-8"))
    imported = {
        alias.name: node.module.removeprefix("metricsmith.")
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == metricsmith._HOME


def test_no_public_name_hides_behind_a_module_of_the_same_name():
    """Importing the module would put it in the name's place."""
    modules = {path.name.removesuffix(".py") for path in Path(metricsmith.__file__).parent.iterdir()}
    assert modules & set(metricsmith.__all__) == set()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        metricsmith.nonsense  # noqa: B018


@pytest.mark.parametrize(
    "statement",
    [
        "import metricsmith",
        "from metricsmith import AutoMetrics, CriterionJudge, InducedMetric, MetricBank, default_bank, load, score",
    ],
)
def test_nothing_heavy_is_imported(statement):
    code = f"{statement}\nimport json, sys\nprint(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(printed.splitlines()[-1]) == []
