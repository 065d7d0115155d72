"""``metricsmith induce --panel``."""

from __future__ import annotations

import pytest

from loopback import serve
from panels import panelled


@pytest.mark.parametrize(
    ("options", "judges"), [((), "15 generated judges,"), (("--panel",), "15 generated judges asked together,")]
)
def test_the_plan_says_whether_judges_are_asked_together(run, own, monkeypatch, options, judges):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    arguments = ["--target", "rating", "--output", "rewrite", "--input", "notice", "--bank", "generated", "--dry-run"]
    with serve(panelled) as server:
        model = ["--lm", "openai/loopback", "--api-base", f"http://127.0.0.1:{server.port}/v1"]
        code, printed, errors = run("induce", own, *arguments, *model, *options)
    assert (code, server.requests) == (0, 0), errors
    assert judges in printed
    # One request for all axes, five for rubrics; 60 rows by fifteen judges, or by one panel.
    assert f"requests: {1 + 5 + (60 if options else 60 * 15)}," in printed
