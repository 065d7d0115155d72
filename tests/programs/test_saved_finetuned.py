"""A trained metric in a file: the hash of its weights there, the weights beside it, and nothing else followed."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys

import dspy
import numpy as np
import pytest

from finetuning import HASH, lettered_rows, trained_by_hand, without_network
from metricsmith.bank.models.trained import Trained, packed
from metricsmith.errors import OptionError, StateError
from metricsmith.metric import make_row
from metricsmith.programs.learned import learned_from
from metricsmith.programs.loading import from_state, load
from saved import induced, write
from state_changes import REMOVED, with_change

METRIC = trained_by_hand()
NAME = f"{METRIC.trained.digest}.safetensors"
LEARNED = {METRIC.trained.digest: METRIC.trained.content}


def nested():
    """An induced metric that has one of its components inside another."""
    return induced([induced([METRIC]), trained_by_hand(name="two")])


@pytest.mark.parametrize("place", ["metric.json", "mine.json", ""])
def test_the_weights_lie_beside_the_file_and_are_found_there(tmp_path, place):
    METRIC.save(tmp_path / place)
    assert {path.name for path in tmp_path.iterdir()} == {place or "metric.json", NAME}
    assert load(tmp_path / place) == METRIC
    text = (tmp_path / (place or "metric.json")).read_text("utf-8")
    assert json.loads(text)["weights"] == METRIC.trained.digest
    assert "coefficients" not in text
    assert "/" not in text.replace("sentence-transformers/", "")  # no path


def test_an_induced_metric_writes_those_of_its_components_and_says_so(tmp_path, monkeypatch, caplog):
    without_network(monkeypatch)
    metric = nested()
    with caplog.at_level(logging.WARNING, "metricsmith.notes"):
        metric.save(tmp_path)
    assert f"the metric rests on learned weights: keep its file and {NAME} in one folder" in caplog.messages
    assert {path.name for path in tmp_path.iterdir()} == {"metric.json", NAME}
    loaded = load(tmp_path)
    assert loaded.components[1] == metric.components[1]
    assert loaded.fingerprint() == metric.fingerprint()
    rows = lettered_rows(4)
    assert [one.raw for one in loaded.judge_batch(rows)] == [one.raw for one in metric.judge_batch(rows)]
    assert learned_from(loaded) == {"0123456789abcdef"}


def test_copies_and_other_programs_keep_the_weights(tmp_path):
    metric = nested()
    assert metric.deepcopy().components[1].trained == metric.components[1].trained
    again = nested()
    metric.save(tmp_path)
    again.load(tmp_path)  # into one that was built in the same way
    assert again.components[1] == METRIC.__class__(**{**vars(METRIC), "name": "two"})
    other = induced([induced([METRIC]), trained_by_hand(name="two", seed=3)])
    with pytest.raises(StateError, match="built in another way"):
        other.load(tmp_path)

    class Program(dspy.Module):
        def __init__(self):
            super().__init__()
            self.judge = nested()

    Program().save(tmp_path / "program.json")
    Program().load(tmp_path / "program.json")


def test_a_file_that_was_copied_alone_says_which_one_is_missing(tmp_path):
    (tmp_path / "there").mkdir()
    for metric in (METRIC, nested()):
        metric.save(tmp_path)
        shutil.copy(tmp_path / "metric.json", tmp_path / "there")
        with pytest.raises(StateError, match=f"{NAME.replace('.', '[.]')} is missing: .*; copy both files"):
            load(tmp_path / "there")


def test_weights_that_were_changed_are_refused_whatever_they_are(tmp_path):
    METRIC.save(tmp_path)
    content = bytearray((tmp_path / NAME).read_bytes())
    content[-1] ^= 1
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(StateError, match="was cut off or changed: its hash is"):
        load(tmp_path)
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).symlink_to("/etc/passwd")
    with pytest.raises(StateError, match="it is a link, which is not followed"):
        load(tmp_path)


def test_weights_of_another_method_or_shape_are_refused_when_they_are_used(tmp_path, monkeypatch):
    without_network(monkeypatch)
    for weights in ({"x": np.zeros(3)}, {"coefficients": np.zeros((2, 2)), "intercept": np.zeros(1)}):
        trained_by_hand(trained=Trained(packed(weights), 0.0, 1.0, 5, 5)).save(tmp_path)
        with pytest.raises(StateError, match="do not fit a ridge on the 8 numbers"):
            load(tmp_path).judge_batch(lettered_rows(2))


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("weights", REMOVED, "weights: is missing"),
        ("weights", "../" + "a" * 61, "must be 64 hexadecimal digits"),
        ("weights", "A" * 64, "must be 64 hexadecimal digits"),
        ("weights", "a" * 63, "a text of 63 characters"),
        ("weights", [1.0], "is no text"),
        ("encoder", "/etc", "encoder: not allowed is '/etc'"),
        ("encoder", "minilm2", "did you mean 'minilm'"),
        ("local", "/etc", "local: not allowed"),
        ("path", "/etc", "path: not allowed"),
        ("model.path", "/etc", "model.path: not allowed"),
        ("model.device", "cuda", "model.device: not allowed"),
        ("model.options", {"x": 1}, "model.options.x: not allowed"),
        ("model.revision", "../x", "revision='../x' must be letters"),
        ("model.weights", "x" * 64, "must be 64 hexadecimal digits"),
        ("model.dtype", "int8", "dtype='int8' must be one of"),
        ("method", "auto", "method: not allowed is 'auto'"),
        ("method", "os", "method: not allowed is 'os'"),
        ("settings", {"rank": 3}, "ridge has no setting 'rank'"),
        ("settings", {"rank": "x"}, "settings.rank: 'x' is not allowed"),
        ("seed", -1, "seed: -1 is not allowed"),
        ("centre", None, "centre: None is not allowed"),
        ("centre", 1e101, "centre: 1e"),
        ("spread", -1.0, "spread: -1.0 is not allowed"),
        ("rows", 1.5, "rows: 1.5 is not allowed"),
        ("groups", 0, "groups: 0 is not allowed"),
        ("task.scale", {"low": 5, "high": 1}, "scale 5 to 1 is not usable"),
        ("name", "", "name: a text of 0 characters"),
        ("trained", {}, "trained: not allowed"),
        ("made_with.learned_from", 3, "made_with.learned_from: 3 is no list"),
    ],
)
def test_a_state_with_anything_else_is_refused_with_the_place(tmp_path, place, value, said):
    state = with_change(METRIC.to_state(), place, value)
    with pytest.raises(StateError) as problem:
        from_state(state, learned=LEARNED)
    assert said in str(problem.value)
    METRIC.write_weights(tmp_path)
    file = write({"schema_version": 1, "versions": {}, **state}, tmp_path / "metric.json")
    with pytest.raises(StateError) as problem:
        load(file)
    assert str(file) in str(problem.value)
    assert said in str(problem.value)


def test_a_state_alone_is_built_with_the_weights_that_are_given():
    assert from_state(METRIC.to_state(), learned=LEARNED) == METRIC
    assert from_state(nested().to_state(), learned=LEARNED).components[1].trained == METRIC.trained
    with pytest.raises(StateError, match=r"holds the hash of learned weights alone: .* learned="):
        from_state(METRIC.to_state())
    with pytest.raises(StateError, match=r"^components\[0\]\.components\[0\]: a state holds"):
        from_state(nested().to_state(), learned={})
    other = {METRIC.trained.digest: METRIC.trained.content + b" "}
    with pytest.raises(StateError, match=f"the state names '{METRIC.trained.digest}"):
        from_state(METRIC.to_state(), learned=other)


def test_the_place_of_the_encoder_is_the_callers(tmp_path):
    METRIC.save(tmp_path)
    loaded = load(tmp_path, local={"minilm": "/somewhere"})
    assert (loaded.encoder.path, loaded.encoder.weights) == ("/somewhere", HASH)
    assert loaded.fingerprint() == METRIC.fingerprint()
    with pytest.raises(OptionError, match=r"no metric 'minlm' with weights \(did you mean 'minilm'"):
        load(tmp_path, local={"minlm": "/somewhere"})


def test_loading_imports_no_backend_and_reads_no_encoder(tmp_path):
    nested().save(tmp_path)
    code = (
        "import sys, metricsmith; metricsmith.load(sys.argv[1]); "
        "print([name for name in ('torch', 'transformers', 'peft', 'safetensors', 'sklearn.linear_model') "
        "if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_row_is_scored_without_the_file_once_it_is_loaded(tmp_path, monkeypatch):
    without_network(monkeypatch)
    METRIC.save(tmp_path)
    loaded = load(tmp_path)
    shutil.rmtree(tmp_path)
    # by hand: of "ab" half is a, half b; 3 + 2 * (.5 - 1 * .5 + 2 * .5)
    assert loaded.judge_batch([make_row("ab")])[0].raw == pytest.approx(5.0)
