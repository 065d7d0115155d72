"""The part of a saved metric that names its weights: checked as a whole, and followed nowhere."""

from __future__ import annotations

import subprocess
import sys

import pytest

from metricsmith.bank.catalogue import full_bank
from metricsmith.errors import OptionError, StateError
from metricsmith.programs.loading import from_state, load
from metricsmith.programs.state import write_state
from state_changes import REMOVED, with_change

HASH = "5f" * 32
STATE = {
    "kind": "bank", "name": "bertscore_f", "statistics": None,
    "model": {
        "id": "roberta-large", "revision": "main", "layer": 17, "tokenizer": "slow", "dtype": "float32", "options": {},
        "weights": HASH,
    },
}  # fmt: skip
CORPUS = {"documents": 2, "frequencies": {"7": 1}}


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("model", REMOVED, "model: is missing"),
        ("model", None, "model: None is not allowed"),
        ("name", "rouge1_f", "model: not allowed"),
        ("model.path", "/etc", "model.path: not allowed"),
        ("model.device", "cuda", "model.device: not allowed"),
        ("model.cache_dir", "/tmp", "model.cache_dir: not allowed"),
        ("model.id", 3, "model.id: 3 is no text"),
        ("model.revision", "../../x", "revision='../../x' must be letters"),
        ("model.revision", "..", "revision='..' must be letters"),
        ("model.revision", "refs/pr/1", "revision='refs/pr/1' must be letters"),
        ("model.revision", "a\x00b", r"revision='a\\x00b' must be letters"),
        ("model.revision", "main\n", r"revision='main\\n' must be letters"),
        ("model.revision", "", "revision='' must be letters"),
        ("model.layer", 0, "model.layer: 0 is not allowed"),
        ("model.layer", True, "model.layer: True is not allowed"),
        ("model.layer", 2.5, "model.layer: 2.5 is not allowed"),
        ("model.layer", None, "layer=None where the metric has 17"),
        ("model.tokenizer", "remote", "tokenizer='remote' must be one of"),
        ("model.dtype", "pickle", "dtype='pickle' must be one of"),
        ("model.options", {"idf": 1}, "model.options.idf: not allowed is 1"),
        ("model.options", {"trust": True}, "model.options.trust: not allowed"),
        ("model.weights", HASH[:-1], "model.weights: a text of 63"),
        ("model.weights", "Z" * 64, "must be 64 hexadecimal digits"),
        ("statistics", CORPUS, "statistics: not allowed; bertscore_f has none"),
    ],
)
def test_a_state_that_the_table_does_not_allow_is_refused(place, value, said):
    with pytest.raises(StateError, match=said):
        from_state(with_change(STATE, place, value))


def test_the_corpus_of_a_metric_that_weighs_by_one_is_kept():
    state = with_change(STATE, "model.options", {"idf": True}) | {"statistics": CORPUS}
    metric = from_state(state)
    assert (metric.statistics, metric.to_state()) == (CORPUS, state)


def test_the_id_of_a_file_is_a_text_that_leads_nowhere():
    metric = from_state(with_change(STATE, "model.id", "somebody/else"))
    assert metric.family.model.id == "roberta-large"


def test_load_needs_no_weights_and_keeps_where_they_lie_out_of_the_file(tmp_path):
    write_state(STATE, tmp_path / "metric.json")
    metric = load(tmp_path / "metric.json", local={"BERTScore": "/somewhere"})
    assert metric.family.model.path == "/somewhere"
    assert metric.to_state() == STATE
    assert metric.fingerprint() == load(tmp_path / "metric.json").fingerprint()


def test_a_place_for_a_metric_without_weights_is_an_error(tmp_path):
    write_state(STATE, tmp_path / "metric.json")
    with pytest.raises(OptionError, match="no metric 'rouge' with weights"):
        load(tmp_path / "metric.json", local={"rouge": "/somewhere"})


def test_neither_the_package_nor_the_whole_bank_nor_a_saved_metric_loads_torch(tmp_path):
    write_state(STATE, tmp_path / "metric.json")
    code = (
        "import sys, metricsmith\n"
        "metricsmith.full_bank('all').metrics()\n"
        f"metricsmith.load({str(tmp_path / 'metric.json')!r})\n"
        "print(sorted({'torch', 'transformers', 'safetensors', 'fasttext'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_a_revision_of_the_callers_is_checked_too():
    with pytest.raises(OptionError, match="revision='a/b' must be letters"):
        full_bank(["bertscore"], settings={"bertscore": {"revision": "a/b"}})
