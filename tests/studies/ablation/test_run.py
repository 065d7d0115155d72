"""A grid is run cell by cell: the reference first, each once, and on from where it was interrupted."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import replace

import numpy as np
import pytest

from loopback import own_axes, serve
from metricsmith.bank.catalogue import MetricBank, family
from metricsmith.errors import DataError, ModelFailure, OptionError
from metricsmith.model_calls.limits import Budget
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.report.ablation.document import write_ablation
from metricsmith.studies.ablation import run
from metricsmith.studies.ablation.grid import Grid, Setting, SettingTable
from metricsmith.studies.ablation.plan import ablation_plan, plan_grid
from metricsmith.studies.ablation.run import ablate
from panels import is_joint, panelled
from rated import rated_table

BANK = MetricBank((family("levenshtein"), family("rouge"), family("bleu")))
REFERENCE = Setting("n=2", bank="existing", n=2, regression="pls")
ONE = replace(REFERENCE, label="n=1", n=1)
GRID = Grid(
    "Sizes",
    (SettingTable("All rows", (ONE, REFERENCE)), SettingTable("Fewer", (replace(ONE, rows=20), ONE))),
    REFERENCE,
    seeds=2,
)
TWO = {"criterion": 2, "rubric": 1}
MADE = Setting("k=1", bank="generated", k=1, generators=TWO)
THREE = tuple(replace(MADE, label=f"k={k}", k=k) for k in (1, 2, 3))
ASKED = Grid("Asked", (SettingTable("Sizes", THREE),), THREE[-1], seeds=2)


@pytest.fixture(scope="module")
def tables():
    return {"notices": rated_table(), "others": rated_table(sources=14)}


@pytest.fixture(scope="module")
def whole(tables):
    """The record of a run that nothing interrupts."""
    return ablate(tables, GRID, optimizer())


def optimizer(**options):
    return AutoMetrics(metrics=BANK, progress=False, **options)


def interrupted(monkeypatch, cells):
    """Let so many cells end, then press Ctrl-C."""
    left, own = iter(range(cells)), run.run_cell

    def until(*arguments, **options):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return own(*arguments, **options)

    monkeypatch.setattr(run, "run_cell", until)


def journal(folder):
    return folder / "cells.jsonl"


def timeless(record):
    """A record without the seconds that it took."""
    return re.sub(r"'seconds': [\d.e-]+", "", repr(record.as_dict()))


def test_each_setting_is_run_once_in_a_block_with_the_reference_first(whole):
    blocks = {}
    for cell in whole.cells:
        blocks.setdefault((cell.data, cell.seed, cell.rows), []).append(cell.setting)
    # 2 data sets, 2 seeds, all rows and 20 of them. The reference with 20 rows stands in no part.
    assert len(blocks) == 8
    assert set(map(tuple, blocks.values())) == {("n=2", "n=1")}
    assert {cell.status for cell in whole.cells} == {"done"}
    assert whole.reference == "n=2"
    assert [one.name for one in whole.data] == ["notices", "others"]


def test_settings_share_the_test_rows_and_learning_rows_are_nested(tables):
    cells = plan_grid(tables, GRID, optimizer()).cells
    for seed in (0, 1):
        own = [cell for cell in cells if cell.seed == seed and cell.data == "notices"]
        assert len({cell.test.tobytes() for cell in own}) == 1
        few, many = (
            {cell.learned.tobytes() for cell in own if bool(cell.setting.rows) == few} for few in (True, False)
        )
        assert len(few) == len(many) == 1
        assert many.pop().startswith(few.pop())
        groups = tables["notices"].groups
        for cell in own:
            assert not {groups[place] for place in cell.learned} & {groups[place] for place in cell.test}


@pytest.mark.parametrize("cells", [0, 5])
def test_an_interrupted_grid_goes_on_to_the_same_record(tables, whole, tmp_path, monkeypatch, cells):
    with monkeypatch.context() as patch:
        interrupted(patch, cells)
        with pytest.raises(KeyboardInterrupt):
            ablate(tables, GRID, optimizer(), folder=tmp_path)
    before = journal(tmp_path).read_bytes()
    assert before.count(b"\n") == 1 + cells
    record = ablate(tables, GRID, optimizer(), folder=tmp_path)
    assert timeless(record) == timeless(whole)
    assert journal(tmp_path).read_bytes().startswith(before)
    assert journal(tmp_path).read_bytes().count(b"\n") == 1 + len(whole.cells)


def test_a_line_is_json_with_the_cell_and_its_figures(tables, whole, tmp_path):
    ablate(tables, GRID, optimizer(), folder=tmp_path)
    header, *lines = map(json.loads, journal(tmp_path).read_text("utf-8").splitlines())
    assert header["format"] == "metricsmith grid of inductions"
    assert header["run"]["data"].keys() == tables.keys()
    told = {
        (one["cell"]["setting"], one["cell"]["data"], one["cell"]["rows"], one["cell"]["seed"]): one for one in lines
    }
    for cell in whole.cells:
        assert told[cell.setting, cell.data, cell.rows, cell.seed]["cell"]["tau"] == cell.tau


def test_a_torn_last_line_is_run_again_and_a_damaged_one_is_named(tables, whole, tmp_path):
    ablate(tables, GRID, optimizer(), folder=tmp_path)
    content = journal(tmp_path).read_bytes()
    journal(tmp_path).write_bytes(content[:-40])
    assert timeless(ablate(tables, GRID, optimizer(), folder=tmp_path)) == timeless(whole)
    lines = journal(tmp_path).read_bytes().splitlines(keepends=True)
    changed = re.sub(rb'"tau": -?0\.\d', b'"tau": 0.9', lines[2])
    assert changed != lines[2]
    cell = {"setting": "n=1"}  # whole, but not what a cell is
    lacking = json.dumps({"cell": cell, "crc32": zlib.crc32(b'{"setting":"n=1"}')}).encode() + b"\n"
    for damaged in (changed, b"{}\n", b"\xff\n", b"[" * 100_000 + b"\n", lacking):
        journal(tmp_path).write_bytes(b"".join([*lines[:2], damaged, *lines[3:]]))
        with pytest.raises(DataError, match=r"cells\.jsonl:3: is damaged .*delete this line"):
            ablate(tables, GRID, optimizer(), folder=tmp_path)


@pytest.mark.parametrize("content", ["hello", "a\n", '{"format": "another"}\n{}\n'])
@pytest.mark.parametrize("force", [False, True])
def test_a_foreign_file_is_refused_and_stays_as_it_is(tables, tmp_path, content, force):
    journal(tmp_path).write_text(content, "utf-8")
    with pytest.raises(DataError, match=r"cells\.jsonl:1: holds no cells of a grid"):
        ablate(tables, GRID, optimizer(), folder=tmp_path, force=force)
    assert journal(tmp_path).read_text("utf-8") == content


def test_cells_of_another_run_are_refused_until_they_are_forced(tables, tmp_path):
    few = replace(GRID, seeds=1)
    ablate(tables, few, optimizer(), folder=tmp_path)
    kept, others = journal(tmp_path).read_bytes(), tables["others"]
    wanted = [
        ("grid", tables, replace(few, test=0.4), {}),
        ("data", {**tables, "others": rated_table(sources=15)}, few, {}),
        ("rows", {**tables, "others": replace(others, ratings=others.ratings[::-1])}, few, {}),
        ("options", tables, few, {"generated_only_below": 10}),
        ("seed", tables, few, {"seed": 7}),
        ("model", tables, few, {"lm": serve_nothing()}),
    ]
    for what, other, grid, options in wanted:
        with pytest.raises(OptionError, match=rf"another run, which differs in [\w, ]*{what}.*--force"):
            ablate(other, grid, optimizer(**options), folder=tmp_path)
        assert journal(tmp_path).read_bytes() == kept
    ablate(tables, few, optimizer(seed=7), folder=tmp_path, force=True)
    assert b"seed 7" in journal(tmp_path).read_bytes()


def serve_nothing():
    import dspy

    return dspy.LM("openai/nobody", api_base="http://127.0.0.1:9/v1", api_key="none", temperature=1.0)


def test_a_finished_grid_is_not_run_again_unless_forced(tables, tmp_path, monkeypatch):
    few = replace(GRID, seeds=1)
    record = ablate(tables, few, optimizer(), folder=tmp_path)
    assert timeless(ablate(tables, few, optimizer(), folder=tmp_path)) == timeless(record)  # its report is not there
    write_ablation(record, tmp_path)
    with pytest.raises(OptionError, match=r"holds this grid, finished: .*--force"):
        ablate(tables, few, optimizer(), folder=tmp_path)
    made = []
    own = run.run_cell
    monkeypatch.setattr(run, "run_cell", lambda *a, **o: made.append(1) or own(*a, **o))
    ablate(tables, few, optimizer(), folder=tmp_path, force=True)
    assert len(made) == len(record.cells)


def test_cells_with_too_few_rows_or_without_a_model_say_so_and_the_grid_goes_on(tables):
    settings = (REFERENCE, replace(REFERENCE, rows=5), replace(MADE, label="made"))
    grid = replace(GRID, seeds=1, parts=(SettingTable("Both", settings),))
    record = ablate({"notices": tables["notices"]}, grid, optimizer())
    assert [(cell.setting, cell.rows, cell.status) for cell in record.cells] == [
        ("n=2", 0, "done"), ("made", 0, "not run"), ("n=2", 5, "too few")
    ]  # fmt: skip
    assert "needs a language model" in record.cells[1].why
    assert np.isnan(record.cells[1].tau)
    assert record.warnings == (
        "1 of 3 cells not done: without what their setting needs; the same command looks for it again",
        "1 of 3 cells not done: too few learning rows"
    )  # fmt: skip


def test_a_cell_that_failed_is_run_again(tables, tmp_path, monkeypatch):
    grid, own = replace(GRID, seeds=1), run.run_cell
    with monkeypatch.context() as patch:
        failed = {"status": "failed", "why": "no answer", "final": False}
        patch.setattr(run, "run_cell", lambda *a, **o: replace(own(*a, **o), **failed))
        record = ablate(tables, grid, optimizer(), folder=tmp_path)
    assert {cell.status for cell in record.cells} == {"failed"}
    write_ablation(record, tmp_path)
    assert {cell.status for cell in ablate(tables, grid, optimizer(), folder=tmp_path).cells} == {"done"}


def test_what_failed_cells_asked_is_counted_as_spent(tables, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    prometheus = replace(MADE, label="prometheus", generators={"prometheus": 1})
    grid = replace(ASKED, seeds=1, parts=(SettingTable("Sizes", (THREE[-1], prometheus)),), measure="candidates")
    with serve(own_axes) as server:
        record = ablate({"notices": tables["notices"]}, grid, optimizer(lm=server.lm()))
        asked = server.requests
    assert [cell.status for cell in record.cells] == ["done", "failed"]
    assert record.cells[1].usage.requests > 5
    assert record.usage.requests == asked


def test_a_table_without_groups_is_named(tables):
    alone = tables["notices"].subset([0, 1, 2])
    with pytest.raises(DataError, match="alone: the rated rows form 1 group"):
        ablate({"notices": tables["notices"], "alone": alone}, GRID, optimizer())


@pytest.mark.parametrize(
    ("given", "said"), [({"tables": {"n": "n.csv"}}, r"tables=.*n\.csv"), ({"grid": "g"}, "grid='g'")]
)
def test_files_in_place_of_tables_and_grid_are_refused(tables, given, said):
    with pytest.raises(OptionError, match=f"{said}.* reads one"):
        ablate(**{"tables": tables, "grid": GRID, **given})


def test_two_settings_of_one_name_and_no_data_are_refused(tables):
    double = replace(GRID, parts=(SettingTable("Twice", (ONE, replace(ONE, n=3))),))
    with pytest.raises(OptionError, match="two settings with all learning rows are called 'n=1'"):
        ablate(tables, double, optimizer())
    with pytest.raises(OptionError, match="must be tables by their names"):
        ablate({}, GRID, optimizer())


def test_a_folder_that_another_run_writes_to_is_refused(tables, tmp_path, monkeypatch):
    def second(*_, **__):
        ablate(tables, GRID, optimizer(), folder=tmp_path)

    monkeypatch.setattr(run, "run_cell", second)
    with pytest.raises(OptionError, match="written by another run"):
        ablate(tables, GRID, optimizer(), folder=tmp_path)


@pytest.fixture
def one():
    return {"notices": rated_table(sources=14)}


def test_cells_share_what_they_ask_and_the_plan_says_how_much(one, tmp_path):
    with serve(own_axes) as alone:
        single = replace(ASKED, parts=(SettingTable("One", (ASKED.reference,)),))
        ablate(one, single, optimizer(lm=alone.lm(temperature=1.0)))
    with serve(own_axes) as server:
        options = optimizer(lm=server.lm(temperature=1.0))
        planned, text = plan_grid(one, ASKED, options), ablation_plan(one, ASKED, options)
        assert server.requests == 0
        record = ablate(one, ASKED, options, folder=tmp_path)
        seen = server.requests
    # The largest cell of each seed, and a ranking for each of k = 1 and k = 2: 3 cards are kept as they are for k = 3.
    assert seen == alone.requests + 4
    assert sum(cell.usage.requests for cell in record.cells) == record.usage.requests == seen
    assert 0.8 * seen <= planned.union.requests <= 1.2 * seen
    assert planned.summed.requests > 1.5 * planned.union.requests
    assert f"requests: {planned.union.requests} for all cells together, {planned.summed.requests} if each cell" in text
    assert "6 cells: 3 settings, learning rows all, 2 seeds, 1 data set" in text
    assert (record.union, record.summed) == (planned.union, planned.summed)
    assert (tmp_path / "judgements.sqlite").exists()


TWO_OF_THREE = replace(MADE, k=2)
WAYS = (
    replace(TWO_OF_THREE, label="bm25", retrieval="bm25"),
    replace(TWO_OF_THREE, label="model", retrieval="model"),
    replace(TWO_OF_THREE, label="brief", retrieval="bm25", cards="brief"),
)
PANELS = tuple(replace(one, panel=True) for one in THREE)


@pytest.mark.parametrize("settings", [WAYS, PANELS])
def test_settings_that_choose_other_judges_or_seat_other_panels_are_planned_for(one, settings):
    """Ways to choose keep two judges of three, and not the same two; a panel of two is another one than of three."""
    grid = Grid("Choices", (SettingTable("Choices", settings),), settings[0], seeds=2)
    with serve(lambda prompt: panelled(prompt) if is_joint(prompt) else own_axes(prompt)) as server:
        options = optimizer(lm=server.lm(temperature=1.0))
        planned = plan_grid(one, grid, options)
        record = ablate(one, grid, options)
    assert {cell.status for cell in record.cells} == {"done"}
    assert server.requests <= planned.union.requests <= min(planned.summed.requests, 1.4 * server.requests)


def test_one_budget_holds_for_all_cells_and_what_ended_is_kept(one, tmp_path):
    with serve(own_axes) as server:
        lm = server.lm(temperature=1.0)
        alone = plan_grid(one, replace(ASKED, seeds=1), optimizer(lm=lm)).union.requests
        with pytest.raises(ModelFailure, match="run the same again"):
            ablate(one, ASKED, optimizer(lm=lm, budget=Budget(requests=alone + 10)), folder=tmp_path)
        assert server.requests == alone + 10
    assert 1 < journal(tmp_path).read_bytes().count(b"\n") < 7
