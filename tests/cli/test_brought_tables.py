"""Plain `metricsmith induce FILE --target COL` on the shapes of table that people bring."""

from __future__ import annotations

import math
from contextlib import redirect_stdout
from io import StringIO

import pytest

from brought import BROUGHT, SORRY, write_brought
from metricsmith.formats import statistic
from metricsmith.optimizers import induce as module


@pytest.fixture(params=list(BROUGHT), scope="module")
def brought(request, exit_code, tmp_path_factory):
    """A table, which rows were learned from and tested on, the record of a plain run, and what it printed."""
    folder = tmp_path_factory.mktemp(request.param)
    given, own = [], write_brought(request.param, folder)
    real = module.induce_splits

    def evaluate(sides, *rest, **named):
        given.append((sides, real(sides, *rest, **named)))
        return given[-1][1]

    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as out:
        patch.setattr(module, "induce_splits", evaluate)
        assert exit_code("induce", own.path, "--target", own.target, "--out", folder / "out") == 0
    ((sides, done),) = given
    return own, sides, done.record, out.getvalue()


def test_no_source_and_no_long_output_stands_on_both_sides(brought):
    own, sides, _, _ = brought
    rows = sides.train.rows
    divided = [([rows[i] for i in one.train], [rows[i] for i in one.test]) for one in sides.folds]
    seen = set()
    for learned, held in divided or [(rows, sides.test.rows)]:
        learned, held = ({own.sources[row.get("input", ""), row.output] for row in side} | {row.output for row in side}
                         for side in (learned, held))  # fmt: skip
        assert learned
        assert held
        shared = learned & held
        assert [what for what in shared if what in own.sources.values() or len(what.split()) >= 8] == []
        seen |= learned | held
    assert SORRY in seen


def test_the_interval_is_defined_or_honestly_missing_and_the_first_line_is_true(brought):
    own, sides, record, out = brought
    assert math.isfinite(record.test.ci_low) or "too few for an interval" in out
    tested, block = len(sides.train.rows if sides.folds else sides.test.rows), record.test
    first, *lines = out.replace("\u00a0", " ").splitlines()
    of = f" of {block.groups} groups" if block.groups < block.n else ""
    where = f"{tested} rows{of}, each predicted while held out" if sides.folds else f"{tested} unseen rows{of}"
    assert first.endswith(f" on {where}.")
    assert f"tau-b {statistic(block.kendall_tau_b, 2)} (" in first
    assert any(line.startswith(f"Induced metric: {len(record.components)} components, each with") for line in lines)
    assert record.test.n == tested == own.outputs


def test_a_gold_column_that_is_the_rating_reaches_no_metric(run, tmp_path):
    own = write_brought("gold_column", tmp_path)
    code, _, err = run("induce", own.path, "--target", own.target, "--out", tmp_path / "out", "--dry-run")
    assert code == 0
    assert "note: 'gold' is not guessed as the reference: it holds numbers" in err
    assert "reference column guessed" not in err


def test_raters_that_make_up_the_rating_are_no_candidates_unless_all_are_allowed(run, tmp_path):
    own = write_brought("averaged_ratings", tmp_path)
    basics = ["induce", own.path, "--target", own.target, "--bank", "none", "--out", tmp_path / "out"]
    code, _, err = run(*basics, "--metric-columns", "rater_*")
    assert code == 2
    assert "matches only columns that people wrote (rater_1, rater_2, rater_3)" in err
    named = [part for number in (1, 2, 3) for part in ("--metric-columns", f"rater_{number}")]
    code, _, err = run(*basics, *named)
    assert code == 2
    assert "candidate columns 'rater_1', 'rater_2', 'rater_3' make up 'human_rating'" in err
    assert "row by row, their mean" in err
    assert not (tmp_path / "out").exists()
    compared = ["compare", *basics[1:-2], *named, "--out", tmp_path / "compared", "--dry-run"]
    assert run(*compared)[::2] == (2, err)
    allowed = [part for number in (1, 2, 3) for part in ("--allow-column", f"rater_{number}")]
    assert run(*basics, *named, *allowed)[0] == 0
    code, _, err = run(*basics, *named, "--allow-column", "rater_4")
    assert code == 2
    assert "names 'rater_4' (did you mean 'rater_" in err


def test_a_column_that_nearly_is_the_rating_is_the_first_warning(run, tmp_path):
    path, lines = tmp_path / "thumbs.csv", []
    for row in range(40):
        liked = int(row % 3 > 0)
        lines.append(f"answer {row},{liked},{liked if row else 1 - liked},{row % 7}")
    path.write_text("\n".join(["answer,thumbs,copied,other", *lines]) + "\n")
    options = [
        "--target",
        "thumbs",
        "--bank",
        "none",
        "--metric-columns",
        "copied",
        "--metric-columns",
        "other",
        "--force",
    ]
    code, out, err = run("induce", path, *options, "--out", tmp_path / "out")
    assert code == 0, err
    # One row of 40 is turned round: with 26 to 14 against 27 to 13 rows, tau-b is .944 and no warning; its twin is 1.
    assert "as only copies" not in out
    path.write_text(path.read_text("utf-8").replace("answer 0,0,1,", "answer 0,0,0,"))
    code, out, err = run("induce", path, *options, "--out", tmp_path / "out")
    assert code == 0, err
    first = next(line for line in out.splitlines() if line.startswith("warning: "))
    assert "These columns agree with 'thumbs' as only copies of it do (tau-b): 'copied' (+1.000)." in first
