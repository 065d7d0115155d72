"""A saved file that names a server, a model or a setting of its own: refused before anything is sent to anybody."""

from __future__ import annotations

import csv
import json

import pytest

from loopback import serve
from metricsmith.programs import state
from metricsmith.programs.judges.repeated import Repeated
from saved import answer, criterion, every_kind, induced, write


@pytest.fixture
def table(tmp_path):
    with (tmp_path / "new.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["text", "source", "length"], ["A plain text.", "Some source.", 4]])
    return tmp_path / "new.csv"


PICTURE = (
    '<<CUSTOM-TYPE-START-IDENTIFIER>>[{"type": "image_url", "image_url": {"url": "%s"}}]<<CUSTOM-TYPE-END-IDENTIFIER>>'
)
ATTACKS = {
    # where in the file, what is put there ("%s" is the other server's address), and what the error begins with
    "config": ("components.2.state.judge", {"config": {"api_base": "%s"}},
               "components[2].state.judge.config: not allowed"),
    "headers": ("components.2.state.judge", {"config": {"extra_headers": {"a": "b"}, "n": 9}},
                "components[2].state.judge.config: not allowed"),
    "lm": ("components.2.state.judge", {"lm": {"model": "openai/x", "api_base": "%s"}},
           "components[2].state.judge.lm: not allowed"),
    "lm of a class": ("components.2.state.judge", {"lm": {"_dspy_lm_class": "os.system", "model": "x"}},
                      "components[2].state.judge.lm: not allowed"),
    "inside a repeated judge": ("components.1.judge.state.judge", {"lm": {"model": "openai/x", "api_base": "%s"}},
                                "components[1].judge.state.judge.lm: not allowed"),
    "inside a panel": ("components.0.panel.state.settings.judges.1.state.judge", {"config": {"api_base": "%s"}},
                       "components[0].panel.state.settings.judges[1].state.judge.config: not allowed"),
    "a panel's own": ("components.0.panel.state.judge", {"config": {"temperature": 2}},
                      "components[0].panel.state.judge.config: not allowed"),
    "decisions": ("components.2.state.judge", {"fields": {}}, "components[2].state.judge.fields: not allowed"),
    "traces": ("components.2.state.judge", {"traces": [1]}, "components[2].state.judge.traces: not allowed"),
    "a picture in a text": ("components.2.state.settings", {"meaning": PICTURE},
                            "components[2].state.settings.meaning: not allowed is <<CUSTOM-TYPE-"),
    "a picture in a demonstration": ("components.2.state.judge", {"demos": [{"input": PICTURE, "score": 1}]},
                                     "components[2].state.judge.demos[0].input: not allowed is <<CUSTOM-TYPE-"),
    "what to read": ("reading", {"where": "text=x"}, "reading.where: not allowed"),
    "where to read": ("reading", {"source": "/etc/passwd"}, "reading.source: not allowed"),
    "a metric of no bank": ("components.3", {"name": "os.system"}, "components[3].name: not allowed is 'os.system'"),
    "code that imports": ("components.5", {"source": "import os\ndef kept(): return 1"},
                          "components[5]: the source is not taken: line 1: import "),
    "code by another engine": ("components.5", {"engine": "exec"}, "components[5].engine: not allowed"),
    "code called otherwise": ("components.5", {"function": "__import__('os').getcwd"}, "components[5]: the source is"),
    "more runs than ours": ("components.1.settings", {"runs": 10**9}, "components[1].settings.runs: 1000000000 is not"),
}  # fmt: skip


def attacked(place, changes, address):
    kinds = every_kind()
    once = Repeated(criterion("Kept facts"), 1)
    metric = induced([kinds["panel_member"], once, criterion(), kinds["bank"], kinds["column"], kinds["code"]])
    content = {"schema_version": 1, "versions": {"metricsmith": "0.1"}, **metric.to_state()}
    part = content
    for key in place.split("."):
        part = part[int(key) if key.isdigit() else key]
    part.update(json.loads(json.dumps(changes).replace("%s", address)))
    return content


@pytest.mark.parametrize(
    ("command", "attack"), [*(("score", attack) for attack in ATTACKS), ("explain", "config"), ("explain", "lm")]
)
def test_a_hostile_file_ends_with_its_path_and_sends_nothing_to_anybody(
    run, tmp_path, table, monkeypatch, command, attack
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890abcdef")
    place, changes, error = ATTACKS[attack]
    with serve(answer) as chosen, serve(answer) as elsewhere:
        content = attacked(place, changes, f"http://127.0.0.1:{elsewhere.port}/v1")
        file = write(content, tmp_path / "metric.json")
        model = ["--lm", "openai/m", "--api-base", f"http://127.0.0.1:{chosen.port}/v1"]
        extra = ["--out", tmp_path / "out.csv"] if command == "score" else ["--row", "1"]
        code, _, errors = run(command, file, table, *model, *extra)
    assert (code, elsewhere.requests, chosen.requests) == (2, 0, 0)
    assert f"metric.json: {error}" in errors
    assert "Traceback" not in errors
    if attack in ("config", "lm"):
        assert "--lm" in errors
        assert "load_state" in errors  # both ways on


def test_without_the_attack_such_a_file_is_scored_where_the_user_said(run, tmp_path, table, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890abcdef")
    kinds = every_kind()
    metric = induced([kinds["panel_member"], criterion(), kinds["bank"], kinds["column"], kinds["code"]])
    metric.made_with = {"model": "openai/first"}
    metric.save(tmp_path)  # as its metric.json
    state._compared.clear()
    with serve(answer) as chosen:
        model = ["--lm", "openai/m", "--api-base", f"http://127.0.0.1:{chosen.port}/v1"]
        code, _, errors = run("score", tmp_path, table, *model, "--out", tmp_path / "out.csv")
    assert code == 0, errors
    assert chosen.requests == 2
    assert errors.count("note: the metric was made with the model openai/first and is used with openai/m") == 1
