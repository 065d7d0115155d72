"""Measures how far a reader has to walk: ``python tools/house.py [SRC]`` prints one line a figure.

Counted is the package under SRC (default: ``src/metricsmith`` beside this folder). Two figures come from runs that
are followed call by call, and begin after a first run of the same kind, so that nothing counts that happens once in a
process (imports, tables that are built lazily):

- one judgement: `score` with one judge (`CriterionJudge`), one row, a new store and DSPy's ``DummyLM``, from making
  the judge on;
- one induction: ``metricsmith induce`` on sixty rows without a model.

Everything with code of its own counts as a function there, comprehensions and lambdas included, for a reader walks
through them too. The files of an induction are those that were entered among `SPINE`.
"""

from __future__ import annotations

import ast
import csv
import random
import re
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from types import FrameType

SPINE = ("cli/induce.py", "cli/options.py", "optimizers/*", "programs/induced.py", "report/induction/record.py")
"""From the command's entry to the record: where these move, this line moves with them."""
RIDDLE = re.compile(r"(What|How|Whether|Which|Who|Where)\b")
SHORT = 3  # lines of a function's body that are hardly worth a name

Entry = tuple[str, str]  # file below the package, qualified name
Callables = ast.FunctionDef | ast.AsyncFunctionDef


def main(package: Path) -> None:
    """Print all figures of the package."""
    sys.path.insert(0, str(package.parent))
    for name, value in (*_written(package).items(), *_walked(package).items()):
        print(f"{value:>8,}  {name}")


def _written(package: Path) -> dict[str, int]:
    """Figures of the source as it stands."""
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(package.rglob("*.py"))}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    docs = [doc for node in nodes if isinstance(node, ast.Module | ast.ClassDef | Callables) if (doc := _doc(node))]
    functions = [node for node in nodes if isinstance(node, Callables)]
    uses = Counter(node.id for node in nodes if isinstance(node, ast.Name))
    uses += Counter(node.attr for node in nodes if isinstance(node, ast.Attribute))
    private = [node for node in functions if re.match(r"_(?!_)", node.name) and _length(node) <= SHORT]
    public = [
        node for node in nodes if isinstance(node, ast.ClassDef | Callables) and node.name[0] != "_" and _doc(node)
    ]
    defined = Counter(
        node.name
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef | Callables) and node.name[0] != "_"
    )
    return {
        "files": len(trees),
        "statements, docstrings aside": sum(isinstance(node, ast.stmt) for node in nodes) - len(docs),
        "docstrings": len(docs),
        "docstrings that begin with What, How, Whether, Which, Who, Where": sum(map(bool, map(RIDDLE.match, docs))),
        "documented public names": len(public),
        "words in their docstrings": sum(len((_doc(node) or "").split()) for node in public),
        "functions": len(functions),
        f"private functions of {SHORT} lines or less": len(private),
        f"private functions of {SHORT} lines or less that are called once": sum(uses[one.name] == 1 for one in private),
        "public functions and classes of one name in several files": sum(count > 1 for count in defined.values()),
        "longest file, lines": max(len(file.read_text(encoding="utf-8").splitlines()) for file in trees),
    }


def _walked(package: Path) -> dict[str, int]:
    """Figures of the two runs, and of what the package offers."""
    import metricsmith

    judgement, induction = _followed(package, _judge), _followed(package, _induce)
    files = [file for file, _ in judgement]
    spine = sorted({file for file, _ in induction if any(fnmatch(file, pattern) for pattern in SPINE)})
    return {
        "public root names": len(vars(metricsmith)["__all__"]),
        "one judgement: files entered": len(set(files)),
        "one judgement: functions entered": len(set(judgement)),
        "one judgement: changes of file": sum(one != other for one, other in pairwise(files)),
        "one induction: files from the command to the record": len(spine),
        "one induction: their lines": sum(
            len((package / file).read_text(encoding="utf-8").splitlines()) for file in spine
        ),
    }


def _followed(package: Path, run: Callable[[Path], None]) -> list[Entry]:
    """Every entry into a function of the package, in order, in the second of two runs."""
    entries: list[Entry] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(f"{package}/"):
            entries.append((str(Path(code.co_filename).relative_to(package)), code.co_qualname))

    with _scratch() as folder:
        run(folder)
    with _scratch() as folder:
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            run(folder)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return entries


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _judge(folder: Path) -> None:
    import dspy
    from dspy.utils import DummyLM

    from metricsmith import CriterionJudge, score

    judge = CriterionJudge(criterion="Clear", meaning="The answer is clear.", task="Answer.")
    row = dspy.Example(input="Why?", output="Because.", id="1").with_inputs("input")
    with dspy.context(lm=DummyLM([{"reasoning": "It is.", "score": "4"}])):
        table = score([judge], [row], store=folder / "judgements.sqlite")
    assert table.values.tolist() == [[[4.0]]], table.counts()


def _induce(folder: Path) -> None:
    from typer.testing import CliRunner

    from metricsmith.cli.app import command_line

    draw, data = random.Random(0), folder / "rated.csv"
    words = ["clear", "long", "wrong", "answer", "kind", "word"]
    with data.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "input", "output", "rating"])
        for number in range(60):
            text = " ".join(draw.choice(words) for _ in range(draw.randint(5, 40)))
            writer.writerow([f"r{number}", f"Question {number} on things", text, draw.randint(1, 5)])
    arguments = ["induce", str(data), "--target", "rating", "--out", str(folder / "out"), "--quiet"]
    result = CliRunner().invoke(command_line(["induce"]), arguments)
    assert result.exit_code == 0, result.output


def _doc(node: ast.Module | ast.ClassDef | Callables) -> str | None:
    return ast.get_docstring(node)


def _length(function: Callables) -> int:
    """Lines of the body, docstring aside."""
    body = function.body[1:] if _doc(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


if __name__ == "__main__":
    default = Path(__file__).resolve().parents[1] / "src" / "metricsmith"
    main(Path(sys.argv[1]).resolve() if sys.argv[1:] else default)
