"""One name, one meaning: public functions and classes of one name stand in one file."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "metricsmith"
SHARED = {
    "compute": "the formula of each bank metric: one file, one metric, the same place in each",
    "statistics": "the corpus figures of a bank metric that weighs by a corpus, in its own file",
    "card_for": "the card of a bank metric under its options, in its own file",
    "train": "of each method of a finetuned metric, in its own file",
    "predict": "of each method of a finetuned metric, beside its `train`",
    "load": "`metricsmith.load` reads a saved metric, `plain_notices.load` the practice data",
}
RIDDLES = ("What ", "How ", "Whether ", "Which ", "Who ", "Where ", "As ", "That ")


def definitions():
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                yield node.name, str(path.relative_to(PACKAGE))


def test_no_public_name_is_defined_twice_but_for_those_with_a_reason():
    homes = defaultdict(set)
    for name, file in definitions():
        homes[name].add(file)
    assert {name for name, files in homes.items() if len(files) > 1} == set(SHARED)


def test_no_docstring_begins_with_a_riddle():
    files = [path for folder in ("src", "tests", "tools", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}: {text[:60]!r}"
        for path in sorted(files)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (text := ast.get_docstring(node) or "").startswith(RIDDLES)
    ]
    assert found == []
