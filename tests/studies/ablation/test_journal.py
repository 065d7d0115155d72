"""A grid that goes on in its folder: cells of the same run alone, each attempt paid for, final ones kept."""

from __future__ import annotations

import re
from dataclasses import replace

import dspy
import pytest

from loopback import own_axes, serve
from metricsmith.bank.catalogue import MetricBank, family
from metricsmith.errors import ModelFailure, OptionError
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.programs.recommenders.bm25 import BM25Recommender
from metricsmith.programs.recommenders.language_model import PipelineRecommender
from metricsmith.report.ablation.document import write_ablation
from metricsmith.scoring.callables import CallableMetric
from metricsmith.studies.ablation import cells
from metricsmith.studies.ablation.grid import Grid, Setting, SettingTable
from metricsmith.studies.ablation.run import ablate
from rated import rated_table

BANK = MetricBank((family("levenshtein"), family("rouge"), family("bleu")))
REFERENCE = Setting("n=2", bank="existing", n=2, regression="pls")
ONE = replace(REFERENCE, label="n=1", n=1)
MADE = Setting("made", bank="generated", k=3, generators={"criterion": 2, "rubric": 1})


def of(*settings, **options):
    return Grid("Few", (SettingTable("Few", settings),), settings[0], seeds=1, **options)


GRID = of(REFERENCE, ONE)


@pytest.fixture(scope="module")
def tables():
    return {"notices": rated_table(sources=14)}


def optimizer(**options):
    return AutoMetrics(**{"metrics": BANK, "progress": False} | options)


def timeless(record):
    """A record without the seconds that it took."""
    return re.sub(r"'seconds': [\d.e-]+", "", repr(record.as_dict()))


def scored_by(body):
    """A function called `own`, whose number is given as source text."""
    named = {}
    exec(f"def own(example, pred):\n    return {body}", named)
    return named["own"]


def outline(metric):
    """A table, a grid of one cell, and options with a metric of one's own."""
    return {"notices": rated_table(sources=14)}, of(Setting("own", bank="none", n=1)), optimizer(metrics=[metric])


def test_a_function_is_known_by_its_code(tmp_path):
    ablate(*outline(scored_by("len(pred.output)")), folder=tmp_path)
    ablate(*outline(scored_by("len(pred.output)")), folder=tmp_path)
    for other in ("len(pred.input)", "len(pred.output) + 1", "sum(1 for word in pred.output.split())"):
        with pytest.raises(OptionError, match="another run, which differs in metrics"):
            ablate(*outline(scored_by(other)), folder=tmp_path)
    inside = "sum(map(lambda word: {}, pred.output.split()))"
    ablate(*outline(scored_by(inside.format("len(word)"))), folder=tmp_path, force=True)
    with pytest.raises(OptionError, match="another run, which differs in metrics"):
        ablate(*outline(scored_by(inside.format("-len(word)"))), folder=tmp_path)


def test_a_function_that_is_more_than_its_code_needs_a_version_to_be_kept(tmp_path):
    least = 3

    def long(example, pred):
        return sum(len(word) > least for word in pred.output.split())

    with pytest.raises(OptionError, match=r"whether 'long' is the same function .*CallableMetric\(f, version='1'\)"):
        ablate(*outline(long), folder=tmp_path)
    assert not list(tmp_path.iterdir())
    assert ablate(*outline(long)).cells[0].status == "done"  # of which nothing is kept
    ablate(*outline(CallableMetric(long, version="1")), folder=tmp_path)
    ablate(*outline(CallableMetric(long, version="1")), folder=tmp_path)
    with pytest.raises(OptionError, match="another run, which differs in metrics"):
        ablate(*outline(CallableMetric(long, version="2")), folder=tmp_path)


def test_cells_of_another_adapter_ranking_repetition_or_strictness_are_refused(tables, tmp_path):
    nobody = dspy.LM("openai/nobody", api_base="http://127.0.0.1:9/v1", api_key="none")
    ranked = optimizer(recommender=BM25Recommender(), lm=nobody)
    ablate(tables, GRID, ranked, folder=tmp_path)
    second = {"recommender": PipelineRecommender(BM25Recommender(), None)}
    for what, options in (("recommender", second), ("repetition", {"repetition": 1}), ("strict", {"strict": True})):
        with pytest.raises(OptionError, match=rf"another run, which differs in [\w, ]*{what}"):
            ablate(tables, GRID, replace(ranked, **options), folder=tmp_path)
    with dspy.context(adapter=dspy.JSONAdapter()), pytest.raises(OptionError, match="differs in adapter"):
        ablate(tables, GRID, ranked, folder=tmp_path)


def test_a_report_of_another_grid_does_not_make_a_grid_finished(tables, tmp_path):
    write_ablation(ablate(tables, GRID, optimizer(), folder=tmp_path), tmp_path)
    other = replace(GRID, test=0.4)
    record = ablate(tables, other, optimizer(), folder=tmp_path, force=True)  # and dies before its report
    assert timeless(ablate(tables, other, optimizer(), folder=tmp_path)) == timeless(record)


def test_a_cell_is_run_again_where_the_model_failed_and_not_where_its_options_are_wrong(tables, tmp_path, monkeypatch):
    own, made = cells.prepare, list[int]()
    wrong = {7: OptionError("no such option"), 8: ModelFailure("no answer")}
    grid = of(REFERENCE, replace(ONE, label="data", k=7), replace(ONE, label="model", k=8), MADE)

    def prepare(table, options, division):
        made.append(options.k)
        if options.k in wrong:
            raise wrong[options.k]
        return own(table, options, division)

    monkeypatch.setattr(cells, "prepare", prepare)
    record = ablate(tables, grid, optimizer(), folder=tmp_path)
    assert [cell.status for cell in record.cells] == ["done", "failed", "failed", "not run"]
    write_ablation(record, tmp_path)
    made.clear()
    again = ablate(tables, grid, optimizer(), folder=tmp_path)
    assert (made, [cell.status for cell in again.cells]) == ([8, 3], [cell.status for cell in record.cells])
    wrong.clear()
    assert [cell.status for cell in ablate(tables, grid, optimizer(), folder=tmp_path).cells] == [
        "done", "failed", "done", "not run"
    ]  # fmt: skip


def test_failed_attempts_count_as_spent_when_the_grid_goes_on(tables, tmp_path):
    grid = of(MADE)
    with serve(lambda _: "small talk") as down:
        record = ablate(tables, grid, optimizer(lm=down.lm(temperature=1.0), strict=True), folder=tmp_path)
        failed = down.requests
    assert [cell.status for cell in record.cells] == ["failed"]
    assert record.usage.requests == failed > 0
    with serve(own_axes) as server:
        record = ablate(tables, grid, optimizer(lm=server.lm(temperature=1.0), strict=True), folder=tmp_path)
        asked = server.requests
    assert [cell.status for cell in record.cells] == ["done"]
    assert (record.cells[0].usage.requests, record.usage.requests) == (asked, failed + asked)
    with serve(own_axes) as server:  # read back from the file
        record = ablate(tables, grid, optimizer(lm=server.lm(temperature=1.0), strict=True), folder=tmp_path)
        assert server.requests == 0
    assert record.usage.requests == failed + asked


def test_force_throws_the_cells_of_an_unfinished_grid_away(tables, tmp_path):
    ablate(tables, GRID, optimizer(), folder=tmp_path)
    kept = (tmp_path / "cells.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "cells.jsonl").write_bytes(b"".join(kept[:2]))
    ablate(tables, GRID, optimizer(), folder=tmp_path, force=True)
    header, *cells = (tmp_path / "cells.jsonl").read_bytes().splitlines(keepends=True)
    assert (header, len(cells)) == (kept[0], 2)
    assert cells[0] != kept[1]  # its seconds: it was run again
