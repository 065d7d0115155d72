"""Runs the notebooks of ``examples/notebooks`` cell by cell and writes down what they print and show.

    python tools/notebooks.py

Cells run in one namespace, as a kernel runs them; nothing but Python is needed. A cell's output is its standard output
and the value of its last expression, as text and as HTML.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["NOTEBOOKS", "code_cells", "fresh_outputs"]

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "examples" / "notebooks").glob("*.ipynb"))

LONGEST = 400  # characters of a value's plain form, which is not shown where there is HTML


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells with code, in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def fresh_outputs(notebook: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Yields the outputs of each code cell as it is run; an error ends the run."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code_cells(notebook), 1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            value = _run("".join(cell["source"]), names)
        outputs: list[dict[str, Any]] = []
        if printed.getvalue():
            outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
        if value is not None:
            plain = repr(value)
            data = {"text/plain": _lines(plain if len(plain) <= LONGEST else f"{plain[:LONGEST]} …")}
            if hasattr(value, "_repr_html_"):
                data["text/html"] = _lines(value._repr_html_())
            outputs.append({"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data})
        yield outputs


def _run(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; the value of its last expression, None without one."""
    body = ast.parse(source).body
    last = body[-1] if body else None
    if not isinstance(last, ast.Expr):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        return None
    exec(compile(ast.Module(body[:-1], []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    """Run all notebooks and write them."""
    logging.disable(logging.WARNING)
    for path in NOTEBOOKS:
        notebook = json.loads(path.read_text("utf-8"))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for number, (cell, outputs) in enumerate(
                zip(code_cells(notebook), fresh_outputs(notebook), strict=True), 1
            ):
                cell["execution_count"], cell["outputs"] = number, outputs
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
        print(path.name, os.path.getsize(path))


if __name__ == "__main__":
    main()
