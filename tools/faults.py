"""Draws small faults in the source, and counts how many of them the tests catch.

``python tools/faults.py draw`` writes `LIST`: thirty faults drawn with a fixed seed over the code of the scoring
engine, the statistics, the reading of tables and the splits; as many of each kind in each area as can be. A fault is
one line replaced by another one, known by its file and its text, so that it can be carried over by hand where code
moves: the committed list was drawn at version 0.1.0, before the package was rebuilt, and has been.

``python tools/faults.py run [NUMBER...]`` puts one fault after the other into a copy of the tree, runs the tests there
until the first one fails (the mirror of the faulty file first, then its folder, then all), and prints which faults
nothing caught.
"""

from __future__ import annotations

import ast
import csv
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_name("faults.csv")
COUNT, SEED = 30, 14
AREAS = {
    "engine": ("scoring/*.py",),
    "statistics": ("stats/*.py", "stats/*/*.py"),
    "reading": ("datasets/cells.py", "datasets/columns.py", "datasets/labels.py", "datasets/ratings.py",
                "datasets/raters.py", "datasets/table.py", "datasets/score_*.py", "datasets/long_tables.py"),
    "splits": ("datasets/splits.py", "optimizers/splitting.py", "optimizers/evaluation.py"),
}  # fmt: skip
COMPARISONS = {"Lt": "<=", "LtE": "<", "Gt": ">=", "GtE": ">", "Eq": "!=", "NotEq": "==", "Is": "is not", "IsNot": "is"}
SIGNS = {"Add": "-", "Sub": "+", "Mult": "/", "Div": "*"}
IDLE = ("strict", "slots", "frozen", "eq")  # arguments that change nothing where the code is right
KINDS = ("comparison", "constant", "sign", "dropped line", "swapped arguments")
FIELDS = ("number", "area", "kind", "file", "line", "before", "after")


def faults(file: Path) -> Iterator[tuple[str, int, str, str]]:
    """Yields kind, line number, the line and the faulty line, for every place of a file that one line holds."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    tree = ast.parse(text)
    checks = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.keyword) and one.arg in IDLE}
    for node in ast.walk(tree):
        if id(node) in checks or getattr(node, "lineno", 0) != getattr(node, "end_lineno", None):
            continue
        for kind, start, end, new in _edits(node, text):
            number: int = node.lineno  # type: ignore[attr-defined]
            line = lines[number - 1]
            faulty = line[:start] + new + line[end:]
            if _parses([*lines[: number - 1], faulty, *lines[number:]]):
                yield kind, number, line, faulty


def _parses(lines: list[str]) -> bool:
    try:
        ast.parse("\n".join(lines))
    except SyntaxError:
        return False
    return True


def _edits(node: ast.AST, text: str) -> Iterator[tuple[str, int, int, str]]:
    """Yields kind, first and last column, and what takes their place. Lines hold no wide characters where it counts."""

    def source(part: ast.AST) -> str:
        return ast.get_source_segment(text, part) or ""

    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]).__name__ in COMPARISONS:
        new = f"{source(node.left)} {COMPARISONS[type(node.ops[0]).__name__]} {source(node.comparators[0])}"
        yield "comparison", node.col_offset, node.end_col_offset or 0, new
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        new = str(not node.value) if isinstance(node.value, bool) else repr(node.value + 1)
        yield "constant", node.col_offset, node.end_col_offset or 0, new
    elif isinstance(node, ast.BinOp) and type(node.op).__name__ in SIGNS:
        between = f" {SIGNS[type(node.op).__name__]} "
        yield "sign", node.left.end_col_offset or 0, node.right.col_offset, between
    elif isinstance(node, ast.Assign | ast.AugAssign) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield "dropped line", node.col_offset, node.end_col_offset or 0, "pass"
    elif isinstance(node, ast.Call) and len(node.args) > 1 and source(node.args[0]) != source(node.args[1]):
        first, second = node.args[:2]
        if not any(isinstance(part, ast.Starred) for part in (first, second)):
            yield (
                "swapped arguments", first.col_offset, second.end_col_offset or 0,
                f"{source(second)}, {source(first)}",
            )  # fmt: skip


def draw() -> list[dict[str, str]]:
    """The thirty faults: kinds and areas take turns, a file and line holds one at most."""
    package, random_ = ROOT / "src" / "metricsmith", random.Random(SEED)
    pools: dict[tuple[str, str], list[tuple[str, int, str, str]]] = {}
    for area, patterns in AREAS.items():
        files = sorted({file for pattern in patterns for file in package.glob(pattern)})
        for file in files:
            for kind, line, before, after in faults(file):
                pools.setdefault((area, kind), []).append((str(file.relative_to(ROOT)), line, before, after))
    for pool in pools.values():
        random_.shuffle(pool)
    found: list[dict[str, str]] = []
    taken: set[tuple[str, int]] = set()
    turns = [(area, kind) for kind in KINDS for area in AREAS]
    while len(found) < COUNT:
        area, kind = turns[len(found) % len(turns)]
        pool = pools[area, kind]
        path, line, before, after = next(one for one in iter(pool.pop, None) if one[:2] not in taken)
        taken.add((path, line))
        values = (str(len(found) + 1), area, kind, path, str(line), before.strip(), after.strip())
        found.append(dict(zip(FIELDS, values, strict=True)))
    return found


def run(numbers: set[str]) -> int:
    """Print one line a fault; returns how many were not caught."""
    with LIST.open(encoding="utf-8", newline="") as file:
        listed = [row for row in csv.DictReader(file) if not numbers or row["number"] in numbers]
    missed = 0
    for fault in listed:
        caught = _caught(fault)
        missed += not caught
        print(f"{fault['number']:>2} {caught or 'NOT CAUGHT'}: {fault['file']}: {fault['after']}", flush=True)
    print(f"{len(listed) - missed} of {len(listed)} caught")
    return missed


def _caught(fault: dict[str, str]) -> str:
    """The first test that fails with the fault in place; empty if none does."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__"))
        file = tree / fault["file"]
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        places = [place for place, line in enumerate(lines) if line.strip() == fault["before"]]
        if not places:
            raise SystemExit(f"{fault['file']} no longer has the line {fault['before']!r}: carry fault "
                             f"{fault['number']} over in {LIST.name}")  # fmt: skip
        place = min(places, key=lambda place: abs(place + 1 - int(fault["line"])))
        lines[place] = lines[place].replace(fault["before"], fault["after"])
        file.write_text("".join(lines), encoding="utf-8")
        own = Path(fault["file"]).relative_to("src/metricsmith")
        mirror = tree / "tests" / own.parent / f"test_{own.name}"
        near = [[str(place)] for place in (mirror, mirror.parent) if place.exists()]
        for tests in (*near, ["tests", "-n", "2"]):
            failed = _first_failure(tree, tests)
            if failed:
                return failed
    return ""


def _first_failure(tree: Path, tests: list[str]) -> str:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *tests]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0].split(" - ")[0] if lines else "" if done.returncode == 0 else "the run itself"


if __name__ == "__main__":
    if sys.argv[1:2] == ["draw"]:
        with LIST.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(draw())
    elif sys.argv[1:2] == ["run"]:
        raise SystemExit(min(run(set(sys.argv[2:])), 1))
    else:
        raise SystemExit(__doc__)
