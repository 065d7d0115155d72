"""``metricsmith mqm --no-spans``: errors without places, left out by name wherever a place would stand."""

from __future__ import annotations

import json

from loopback import serve
from metricsmith.programs.judges.mqm import NO_SPANS
from reviser import DOCUMENTS, FILES, GOLD, Reviser


def test_the_command_asks_for_no_spans_says_so_and_its_scores_can_be_evaluated(run, tmp_path):
    with serve(Reviser()) as server:
        code, out, err = run(
            "mqm", *FILES, "--source-lang", "English", "--target-lang", "German", "--documents", DOCUMENTS,
            "--no-spans", "--runs", 3, "--out", tmp_path, "--lm", "openai/m", "--api-base", f"http://127.0.0.1:{server.port}/v1",
        )  # fmt: skip
        assert code == 0, err
    assert not [prompt for prompt in server.prompts if '"span"' in prompt]
    assert f"note: {NO_SPANS}" in out
    lines = [json.loads(line) for line in (tmp_path / "segments.jsonl").read_text("utf-8").splitlines()]
    assert [line["errors"] for line in lines] == [None] * 36
    assert {cells.rsplit("\t", 1)[1] for cells in (tmp_path / "segments.tsv").read_text("utf-8").splitlines()[1:]} == {
        "null"
    }
    assert NO_SPANS in json.loads((tmp_path / "mqm.json").read_text("utf-8"))["notes"]
    code, out, err = run("meta-eval", tmp_path / "segments.jsonl", GOLD)
    assert code == 0, err
    assert "mqm agrees with the gold rating" in out
    assert "mqm" not in json.dumps(
        json.loads(run("meta-eval", tmp_path / "segments.jsonl", GOLD, "--json")[1])["marked"] or ""
    )
