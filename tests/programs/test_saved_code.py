"""A file with source text: read without running it, whoever wrote it, and listed."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

import pytest

from metricsmith.bank.code import CodeMetric
from metricsmith.errors import NeedsError, StateError
from metricsmith.metric import make_row
from metricsmith.programs.kinds import check_state
from metricsmith.programs.loading import from_state, load
from metricsmith.programs.state import write_state
from metricsmith.records import Output
from metricsmith.sandbox import monty
from metricsmith.sandbox.contract import Limits, MissingEngine
from metricsmith.scoring import score
from saved import every_kind, induced, write

SOURCE = (
    "import re\n\n\ndef words(output, references):\n    return len(re.findall(r'\\w+', output)) + len(references)\n"
)
METRIC = CodeMetric(SOURCE, "words", Limits(row_seconds=0.25), "words", "Words.", Output("", 0, None, half=9))
ROW = make_row("two words", references=["r"])


@pytest.fixture
def untouchable(monkeypatch):
    """A sandbox that nobody may ask for."""

    def asked():
        raise AssertionError("the sandbox was asked for")

    monkeypatch.setattr(monty, "sandbox", asked)


def written(tmp_path, **changes):
    content = {"schema_version": 1, "versions": {"metricsmith": "0.1"}, **METRIC.to_state(), **changes}
    return write(content, tmp_path / "metric.json")


def test_what_is_saved_is_read_back_and_scores_the_same(tmp_path):
    write_state(METRIC.to_state(), tmp_path / "metric.json")
    loaded = load(tmp_path / "metric.json")
    assert loaded == METRIC
    assert loaded.fingerprint() == METRIC.fingerprint()
    assert loaded.judge_batch([ROW]) == METRIC.judge_batch([ROW])
    assert loaded.judge_batch([ROW])[0].raw == 3.0
    assert from_state(METRIC.to_state()) == METRIC


@pytest.mark.usefixtures("untouchable")
def test_one_that_is_saved_alone_is_read_from_its_file_or_folder(tmp_path):
    METRIC.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["metric.json"]
    assert load(tmp_path) == load(tmp_path / "metric.json") == METRIC


def test_loading_runs_nothing_and_lists_the_code(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "metricsmith.notes"):
        assert load(written(tmp_path)) == METRIC
        metric = induced([METRIC, every_kind()["code"], every_kind()["column"]])
        metric.save(tmp_path / "both.json")
        load(tmp_path / "both.json")
    said = (
        "the metric has 2 code components, words, kept_words, which only the sandbox runs; wherever it scores, the "
        "sandbox must be installed (pip install 'metricsmith[code]')"
    )
    assert caplog.messages[0] == said.replace("2 code components, words, kept_words", "1 code component, words")
    assert caplog.messages[-1] == metric.demands[-1] == said
    assert len(metric.demands) == 2
    assert metric.components[0].source == load(tmp_path / "both.json").components[0].source


def test_a_process_that_loads_such_a_file_imports_no_engine(tmp_path):
    code = (
        "import sys, metricsmith; metric = metricsmith.load(sys.argv[1]); metric.to_state(); "
        "print('pydantic_monty' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, written(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("wrap", [lambda metric: metric, lambda metric: induced([metric])])
def test_without_the_extra_a_loaded_metric_says_so_before_any_work(tmp_path, monkeypatch, wrap):
    def missing():
        raise MissingEngine("not installed")

    write_state(wrap(METRIC).to_state(), tmp_path / "metric.json")
    monkeypatch.setattr(monty, "sandbox", missing)
    judged = []

    def first(example, pred):
        judged.append(pred)
        return 1.0

    with pytest.raises(NeedsError, match=r"words is code, .* pip install 'metricsmith\[code\]'"):
        score([first, load(tmp_path / "metric.json")], [ROW], progress=False)
    assert judged == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"source": "import os\ndef words(): return 1"}, "os is not allowed"),
        ({"source": "def words(output): return 1\n" + "#" * 30_000}, "source: a text of 30,028 characters is not"),
        ({"source": "def words(output): return 1\n" + "#é" * 9_000}, "bytes are too long"),
        ({"source": ""}, "source: a text of 0 characters is not allowed"),
        ({"source": "def words(: return"}, "no Python"),
        ({"source": "(" * 5_000}, "the source is not taken: "),
        ({"source": "-" * 19_000 + "1"}, "the source is not taken: "),
        ({"source": "def words(): return '<<CUSTOM-TYPE-START'"}, "not allowed is <<CUSTOM-TYPE-"),
        ({"source": "def words(): return '\ud800'"}, "half of a surrogate pair"),
        ({"source": ["def words(): return 1"]}, "source: ['def words(): return 1'] is no text"),
        ({"function": "words() or print"}, "no function words() or print is defined"),
        ({"function": "__import__"}, "no function __import__ is defined"),
        ({"source": "def words(secret): return 1"}, "takes secret, which nothing fills"),
        ({"limits": {"row_seconds": 0}}, "row_seconds=0 must be a finite number from 0.001"),
        ({"limits": {"row_seconds": -1}}, "limits.row_seconds: -1 is not allowed"),
        ({"limits": {"row_seconds": True}}, "limits.row_seconds: True is not allowed"),
        ({"limits": {"printed_bytes": 0.5}}, "limits.printed_bytes: 0.5 is not allowed; a whole number"),
        ({"limits": {"files": 1}}, "limits.files: not allowed; known are row_seconds"),
        ({"output": {"low": 1, "high": 0, "half": None, "higher_is_better": True}}, "low must be below high"),
        ({"output": {"low": None, "high": 0, "half": None, "higher_is_better": True}}, "needs 'half' above 0"),
        ({"engine": "exec"}, "engine: not allowed"),
        ({"name": ""}, "name: a text of 0 characters"),
    ],
)
@pytest.mark.usefixtures("untouchable")
def test_a_file_with_anything_else_is_refused_with_the_place_and_runs_nothing(tmp_path, changes, said):
    if "\ud800" in str(changes):
        content = written(tmp_path).read_text("utf-8").replace("import re", "\\ud800")
        (tmp_path / "metric.json").write_text(content, "utf-8")
        changes = json.loads(content)
        write(changes, tmp_path / "metric.json")
    else:
        written(tmp_path, **changes)
    with pytest.raises(StateError) as problem:
        load(tmp_path / "metric.json")
    assert said in str(problem.value)
    assert len(str(problem.value)) < 1_000


@pytest.mark.usefixtures("untouchable")
def test_a_state_is_checked_before_anything_is_built():
    with pytest.raises(StateError, match=r"components\[0\]: the source is not taken: line 1: import (of )?os"):
        check_state({**induced([METRIC]).to_state(), "components": [{**METRIC.to_state(), "source": "import os"}]})


def test_a_metric_takes_no_file_with_other_code(tmp_path):
    other = CodeMetric(f"{SOURCE}# more", "words", name="words")
    induced([other]).save(tmp_path / "other.json")
    with pytest.raises(StateError, match="built in another way"):
        induced([METRIC]).load(tmp_path / "other.json")
    induced([other]).load(tmp_path / "other.json")


def test_limits_above_ours_are_lowered_and_told_and_others_are_kept(tmp_path, caplog):
    file = written(tmp_path, limits={"row_seconds": 3600, "megabytes": 1e9, "seconds": 1.5})
    with caplog.at_level(logging.WARNING, "metricsmith.notes"):
        loaded = load(file)
    assert loaded.limits == Limits(seconds=1.5)
    assert caplog.messages[0] == (
        "words: limits of its file are lowered to ours: row_seconds from 3600 to 0.5, megabytes from 1000000000.0 to "
        "64.0"
    )


HOSTILE = {
    "a file": "open('{file}').read()",
    "a file written": "open('{file}', 'w').write('x')",
    "another process": "__import__('os').system('touch {file}.made')",
    "what is imported": "__import__('subprocess').run(['touch', '{file}.made'])",
    "the environment": "__import__('os').environ['SECRET_FOR_NOBODY']",
    "the classes": "().__class__.__base__.__subclasses__()",
    "the globals": "words.__globals__['__builtins__']",
    "the engine": "__import__('sys').modules",
    "code made here": "eval('__import__(\"os\").getcwd()')",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_reaches_nothing_when_it_is_scored(tmp_path, monkeypatch, name):
    monkeypatch.setenv("SECRET_FOR_NOBODY", "canary")
    (tmp_path / "secret").write_text("canary")
    source = (
        f"def words(output):\n    found = {HOSTILE[name].format(file=tmp_path / 'secret')}\n    return len(str(found))"
    )
    try:
        loaded = load(written(tmp_path, source=source))
    except StateError:  # a stricter subset refuses it at once
        return
    (one,) = score([loaded], [ROW], progress=False).column(0)
    assert one.raw is None
    assert "canary" not in one.error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metric.json", "secret"]
    assert (tmp_path / "secret").read_text() == "canary"
