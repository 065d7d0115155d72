"""The command line as a call, and a table whose columns no reader guesses wrongly."""

from __future__ import annotations

import csv
import json
import sys

import pytest

from metricsmith.cli import main
from planted import planted_rows


@pytest.fixture(scope="module", autouse=True)
def quiet_loggers(loggers_as_they_were):
    """Every test in here runs the command line."""


@pytest.fixture(scope="session")
def exit_code():
    """Run the command line with these arguments and return its exit code."""

    def call(*arguments):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["metricsmith", *map(str, arguments)])
            try:
                main()
            except SystemExit as end:
                return end.code or 0
        return 0

    return call


@pytest.fixture
def run(exit_code, capsys):
    """Run the command line with these arguments: exit code, output, errors."""

    def call(*arguments):
        code = exit_code(*arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.fixture
def write_own():
    """Write rows as a table with two columns of scores, `good` and `junk`."""

    def write(path, rows):
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["case", "bundle", "notice", "rewrite", "gold", "rating", "good", "junk", "kind"])
            for number, row in enumerate(rows):
                texts = row.input, row.output, row.references[0]
                scores = row["columns"]["good"], row["columns"]["junk"]
                writer.writerow([row.id, row.group, *texts, row["rating"], *scores, "odd" if number % 2 else "even"])
        return path

    return write


@pytest.fixture
def own(write_own, tmp_path):
    """Sixty rows of such a table."""
    return write_own(tmp_path / "own.csv", planted_rows(sources=20))


@pytest.fixture
def induced(run, own, tmp_path):
    """Run `induce` on the scores of `own` and read the report: report, output, errors."""

    def call(*arguments):
        basics = ["--target", "rating", "--bank", "none", "--metric-columns", "good", "--metric-columns", "junk"]
        code, out, err = run("induce", own, *basics, *arguments, "--out", tmp_path / "out", "--force")
        assert code == 0, err
        return json.loads((tmp_path / "out" / "report.json").read_text("utf-8")), out, err

    return call
