"""The notebooks of the examples run from start to end and print what they show."""

from __future__ import annotations

import json
import re

import pytest

from notebooks import NOTEBOOKS, code_cells, fresh_outputs

NAMES = ["from_ratings_to_a_metric", "is_my_judge_any_good", "metric_as_gepa_reward"]


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == NAMES


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_file_is_a_notebook_of_format_4_5_and_small(path):
    """By the schema of nbformat 4.5: the keys that it demands, and none that it does not know."""
    notebook = json.loads(path.read_text("utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook.keys() == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        code = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert cell.keys() == {"cell_type", "id", "metadata", "source"} | code
        assert re.fullmatch(r"[\w-]{1,64}", cell["id"])
    assert path.stat().st_size < 40_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs_and_prints_what_the_file_shows(path, tmp_path, monkeypatch):
    """A report holds times, so that of its HTML the form alone is compared."""
    monkeypatch.chdir(tmp_path)
    notebook, own = json.loads(path.read_text("utf-8")), 0
    for cell, outputs in zip(code_cells(notebook), fresh_outputs(notebook), strict=True):
        assert [one["output_type"] for one in outputs] == [one["output_type"] for one in cell["outputs"]]
        for fresh, kept in zip(outputs, cell["outputs"], strict=True):
            if fresh["output_type"] == "stream":
                assert fresh == kept
                continue
            assert fresh["data"].keys() == kept["data"].keys()
            shown, page = "".join(fresh["data"]["text/plain"]), "".join(fresh["data"].get("text/html", ""))
            if 'class="metricsmith"' in page:
                own += 1
                assert page.count("<div") == page.count("</div>")
                assert "<script" not in page
                assert 'class="metricsmith"' in "".join(kept["data"]["text/html"])
            else:
                assert shown == "".join(kept["data"]["text/plain"])
    assert own
