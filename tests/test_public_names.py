"""The package shows what it means to show, and importing it stays cheap."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import metricsmith
from metricsmith.moved import MOVED

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
PACKAGE = Path(metricsmith.__file__).parent
ROOT_NAMES = {
    "Agreement", "AutoMetrics", "Budget", "CallableMetric", "Concurrency", "CriterionJudge", "DataError",
    "InducedMetric", "InputError", "Interrupted", "JudgeTuner", "Judgement", "JudgementFailed", "Metric", "MetricBank",
    "MetricCard", "MetricsmithError", "ModelFailure", "NeedsError", "OptionError", "Output", "Panel", "Repeated",
    "Reward", "RewardCheck", "RubricJudge", "RunResult", "Scale", "ScoreTable", "StateError", "Status", "Store",
    "StoreError", "Table", "Task", "Usage", "ascore", "compare", "corrected_mean", "default_bank", "estimate",
    "full_bank", "induce", "load", "make_row", "read_table", "score", "select_judge",
}  # fmt: skip
FACADES = ("bank", "data", "judges", "probing", "reports", "stats", "students", "translation", "tuning")
MODULES = ("metricsmith", *(f"metricsmith.{facade}" for facade in FACADES))


def homes(module: str) -> dict[str, str]:
    """The home that a type checker sees for each public name of a module, modules below it aside."""
    tree = ast.parse(Path(importlib.import_module(module).__file__).read_text("utf-8"))
    return {
        alias.asname: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module != module
        for alias in node.names
        if alias.asname == alias.name != "__version__"
    }


PUBLIC = [(module, name) for module in MODULES for name in sorted(homes(module))]


def test_the_root_shows_these_names_and_the_facades():
    assert set(metricsmith.__all__) == ROOT_NAMES
    assert dir(metricsmith) == sorted([*metricsmith.__all__, *FACADES, "testing", "__version__"])


@pytest.mark.parametrize("module", MODULES)
def test_the_list_is_sorted_and_complete(module):
    listed = importlib.import_module(module).__all__
    assert listed == sorted(listed)
    assert set(listed) == set(homes(module))


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_every_name_resolves_to_the_home_that_the_type_checker_sees(module, name):
    value = getattr(importlib.import_module(module), name)
    assert vars(importlib.import_module(module))[name] is value, "the next look-up would cost as much"
    assert getattr(sys.modules[homes(module)[name]], name) is value


def test_every_name_has_one_import_path():
    names = [name for _, name in PUBLIC]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("facade", FACADES)
def test_a_facade_is_there_without_an_import_and_its_docstring_lists_its_names(facade):
    module = importlib.import_module(f"metricsmith.{facade}")
    code = f"import metricsmith; print(sorted(metricsmith.{facade}.__all__) == {module.__all__!r})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"
    listed = [line.split("`")[1] for line in module.__doc__.splitlines() if line.startswith("`") and "`  " in line]
    assert sorted(listed) == module.__all__


def test_no_public_name_hides_behind_a_module_of_the_same_name():
    """Importing the module would put it in the name's place."""
    for module in MODULES:
        file = Path(importlib.import_module(module).__file__)
        if file.name == "__init__.py":
            modules = {path.name.removesuffix(".py") for path in file.parent.iterdir()}
            assert modules & set(importlib.import_module(module).__all__) == set()


@pytest.mark.parametrize("module", MODULES)
def test_an_unknown_name_is_an_attribute_error(module):
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        importlib.import_module(module).nonsense  # noqa: B018
    assert not hasattr(importlib.import_module(module), "nonsense")


@pytest.mark.parametrize("facade", FACADES)
def test_a_name_that_left_the_root_says_where_it_is(facade):
    for name in importlib.import_module(f"metricsmith.{facade}").__all__:
        with pytest.raises(AttributeError, match=f"; it moved to metricsmith.{facade}.{name}$"):
            getattr(metricsmith, name)


def test_an_import_of_a_name_that_left_the_root_says_so_too():
    for name, new in {"Prober": "probing.Prober", "validity": "stats.validity"}.items():
        with pytest.raises(
            ImportError, match=f"cannot import name '{name}' from 'metricsmith'; it moved to metricsmith.{new}$"
        ):
            exec(f"from metricsmith import {name}")
        assert not hasattr(metricsmith, name)


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_what_has_moved_is_where_the_table_says(old, new):
    path, _, name = f"metricsmith.{new}".rpartition(".")
    home = importlib.import_module(path)
    assert hasattr(home, name) or importlib.util.find_spec(f"metricsmith.{new}")
    assert importlib.util.find_spec("metricsmith." + old.partition(".")[0]) is None or "." in old
    if "." not in old:
        with pytest.raises(AttributeError, match=f"; it moved to metricsmith.{new}$"):
            getattr(metricsmith, old)


def test_the_paths_that_are_named_can_be_followed_as_they_are_written():
    code = "; ".join(["import metricsmith", *(f"metricsmith.{new}" for new in MOVED.values())])
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    "statement",
    [
        "import metricsmith",
        *(f"import metricsmith.{facade}" for facade in FACADES),
        "import metricsmith.testing",
        "from metricsmith import AutoMetrics, CriterionJudge, InducedMetric, MetricBank, default_bank, load, score",
        "from metricsmith.judges import DnAEval, GEval, GuidelineJudge",
    ],
)
def test_nothing_heavy_is_imported(statement):
    code = f"{statement}\nimport json, sys\nprint(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(printed.splitlines()[-1]) == []
