"""The layout that the package promises to its users and to Python."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "metricsmith"


@pytest.mark.parametrize("name", ["programs", "signatures", "optimizers", "datasets"])
def test_the_root_links_into_the_package(name):
    link = ROOT / name
    assert link.is_symlink()
    assert link.resolve() == PACKAGE / name


def test_datasets_is_a_namespace_part():
    """A regular package of that name at the root would shadow Hugging Face's `datasets`."""
    assert not (PACKAGE / "datasets" / "__init__.py").exists()


def test_hugging_face_datasets_wins_from_the_root():
    found = subprocess.run(
        [sys.executable, "-c", "import importlib.util as u; print(u.find_spec('datasets').origin)"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    assert Path(found).name == "__init__.py"
    assert PACKAGE not in Path(found).resolve().parents


def test_every_other_folder_is_a_regular_package():
    folders = {path.parent for path in PACKAGE.rglob("*.py")} - {PACKAGE / "datasets"}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_no_source_file_is_longer_than_400_lines():
    sizes = {path: len(path.read_text("utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert {str(path.relative_to(ROOT)): size for path, size in sizes.items() if size > 400} == {}


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()
    assert importlib.util.find_spec("metricsmith") is not None
