"""Imports run one way, hidden ones inside functions included."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "metricsmith"

# From the bottom up; a unit may import units of lower layers only. Units of one layer never import each other.
LAYERS = (
    {"errors", "moved", "sandbox", "threads", "version"},
    {"formats", "lazy", "records", "rendering", "spreadsheets"},
    {"metric", "outcomes"},
    {"reward", "saving"},
    {"stats"},
    {"meta_evaluation", "mqm", "rating_model"},
    {"model_calls", "signatures", "datasets", "report"},
    {"bank"},
    {"store"},
    {"scoring"},
    {"programs"},
    {"optimizers"},
    {"studies"},
    {"cli", "data", "judges", "probing", "reports", "students", "testing", "translation", "tuning"},
    {"__main__", "__init__"},
)  # fmt: skip
LEVEL = {unit: level for level, units in enumerate(LAYERS) for unit in units}


def unit_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_units(path: Path) -> set[str]:
    units = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [node.module or ""]
            if node.module == "metricsmith":
                names = [f"metricsmith.{alias.name}" for alias in node.names]
        units |= {name.split(".")[1] for name in names if name.startswith("metricsmith.")}
    return units


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_run_downward(path):
    unit = unit_of(path)
    assert unit in LEVEL, f"{unit} is not in the table of layers"
    upward = {other for other in imported_units(path) - {unit} if LEVEL.get(other, 99) >= LEVEL[unit]}
    assert upward == set()


def test_files_of_one_unit_form_no_circle():
    """Within a folder, too, imports must not run in circles."""
    modules = {"metricsmith." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in FILES}
    edges = {name: direct_imports(path) & set(modules) for name, path in modules.items()}
    while True:
        leaves = {name for name, targets in edges.items() if not targets}
        if not leaves:
            break
        edges = {name: targets - leaves for name, targets in edges.items() if name not in leaves}
    assert edges == {}


def direct_imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found
