from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import socket
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from metricsmith.errors import NeedsError, StateError
from metricsmith.programs.recommenders.colbert_checkpoint import ColBERTEncoder, check_extra, inspect_checkpoint

SHAPES = {"bert.embeddings": [5, 4], "linear.weight": [2, 4]}


def test_dimension_length_and_names_are_read_from_the_files(bare_checkpoint):
    folder = bare_checkpoint(SHAPES, config={"max_position_embeddings": 64})
    checkpoint = inspect_checkpoint(folder)
    assert checkpoint.folder == folder.resolve()
    assert checkpoint.dimension == 2
    assert checkpoint.max_positions == 64
    assert checkpoint.tensors == {"bert.embeddings", "linear.weight"}


@pytest.mark.parametrize(
    ("positions", "longest_text", "expected"), [(514, 512, 512), (64, 10**30, 64), (None, None, 512)]
)
def test_the_shorter_of_encoder_and_tokenizer_limits_the_text(bare_checkpoint, positions, longest_text, expected):
    config = {"max_position_embeddings": positions}
    folder = bare_checkpoint(SHAPES, config=config, tokenizer={"model_max_length": longest_text})
    assert inspect_checkpoint(folder).max_positions == expected


def test_a_checkpoint_without_its_projection_is_refused(bare_checkpoint):
    with pytest.raises(StateError, match=r"'linear\.weight' is missing"):
        inspect_checkpoint(bare_checkpoint({"bert.embeddings": [5, 4]}))


def test_a_projection_that_is_no_matrix_is_refused(bare_checkpoint):
    with pytest.raises(StateError, match=r"of shape \[4\]"):
        inspect_checkpoint(bare_checkpoint({"linear.weight": [4]}))


@pytest.mark.parametrize("where", ["config", "tokenizer"])
def test_a_checkpoint_with_code_of_its_own_is_refused(bare_checkpoint, where):
    folder = bare_checkpoint(SHAPES, **{where: {"auto_map": {"AutoModel": "evil.Model"}}})
    with pytest.raises(StateError, match="auto_map"):
        inspect_checkpoint(folder)


def test_a_missing_folder_is_named_with_what_to_do(tmp_path):
    with pytest.raises(StateError, match="not a folder"):
        inspect_checkpoint(tmp_path / "none")
    with pytest.raises(StateError, match="not fetched"):
        inspect_checkpoint("somebody/colbert")


def test_pickled_weights_are_not_read(bare_checkpoint):
    folder = bare_checkpoint(SHAPES)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(StateError, match="pickled weights are not read"):
        inspect_checkpoint(folder)


@pytest.mark.parametrize(
    "damage", [b"", b"\x04", b"\xff" * 20, b"\x02" + bytes(7) + b"[]", b"\x05" + bytes(7) + b'{"a":']
)
def test_damaged_weights_are_refused(bare_checkpoint, damage):
    folder = bare_checkpoint(SHAPES)
    (folder / "model.safetensors").write_bytes(damage)
    with pytest.raises(StateError, match=r"model\.safetensors cannot be read"):
        inspect_checkpoint(folder)


def test_weights_that_end_early_are_refused(bare_checkpoint):
    folder = bare_checkpoint(SHAPES)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4])
    with pytest.raises(StateError, match="where its header announces"):
        inspect_checkpoint(folder)


@pytest.mark.parametrize("text", ["", "[1]", "{", "\udcff"])
def test_an_unreadable_configuration_is_refused(bare_checkpoint, text):
    folder = bare_checkpoint(SHAPES)
    (folder / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(StateError, match=r"config\.json cannot be read"):
        inspect_checkpoint(folder)


def test_the_hash_follows_the_content_and_not_the_place(bare_checkpoint, tmp_path):
    folder = bare_checkpoint(SHAPES)
    moved = tmp_path / "moved"
    shutil.copytree(folder, moved)
    assert inspect_checkpoint(folder).content_hash() == inspect_checkpoint(moved).content_hash()
    weights = moved / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    assert inspect_checkpoint(folder).content_hash() != inspect_checkpoint(moved).content_hash()


@pytest.fixture(scope="module")
def encoder(tiny_colbert):
    return ColBERTEncoder(inspect_checkpoint(tiny_colbert), 16, 64)


@pytest.fixture
def copy(tiny_colbert, tmp_path):
    return shutil.copytree(tiny_colbert, tmp_path / "copy")


@pytest.fixture
def contacted(monkeypatch):
    """The addresses that were asked for; none can be reached."""
    seen: list[tuple[object, ...]] = []

    def refuse(*address, **options):
        seen.append(address)
        raise OSError("no network in tests")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return seen


def load(folder):
    return ColBERTEncoder(inspect_checkpoint(folder), 16, 64)


@pytest.mark.skipif(find_spec("colbert") is not None, reason="the extra colbert is installed")
def test_without_the_extra_the_install_line_is_given():
    with pytest.raises(NeedsError, match=r'pip install "metricsmith\[colbert\]"'):
        check_extra()


def test_a_transformers_that_is_too_new_is_named(monkeypatch):
    versions = {"torch": "2.13.0", "colbert-ai": "0.2.22", "transformers": "5.23.0"}
    monkeypatch.setattr("metricsmith.programs.recommenders.colbert_checkpoint.version", versions.__getitem__)
    with pytest.raises(NeedsError, match=r"transformers 5\.23\.0.*below 5"):
        check_extra()


def test_a_missing_package_is_named(monkeypatch):
    def version(package):
        if package == "colbert-ai":
            raise importlib.metadata.PackageNotFoundError(package)
        return "2.13.0"

    monkeypatch.setattr("metricsmith.programs.recommenders.colbert_checkpoint.version", version)
    with pytest.raises(NeedsError, match="needs the package colbert-ai"):
        check_extra()


@pytest.mark.extras
def test_embeddings_have_unit_rows_and_the_checkpoints_dimension(encoder):
    for matrix in (encoder.query("poem verse"), encoder.document("poem, verse!")):
        assert matrix.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1.0, atol=1e-5)
    assert encoder.query("poem verse").shape == (16, 32)
    # [CLS], marker, poem, verse, [SEP]: punctuation is left out.
    assert encoder.document("poem, verse!").shape == (5, 32)


@pytest.mark.extras
def test_length_counts_special_tokens_and_marker(encoder):
    assert encoder.length("poem, verse!") == 7


@pytest.mark.extras
def test_texts_are_cut_at_the_limits(encoder):
    assert encoder.query("poem " * 100).shape == (16, 32)
    assert encoder.document("poem " * 100).shape == (64, 32)


IN_A_FRESH_PROCESS = """
import socket, sys
def refuse(*address, **options):
    raise SystemExit(f"network use: {address}")
socket.getaddrinfo = socket.socket.connect = refuse
sys.modules["faiss"] = None  # colbert takes it where it is installed; nothing of ours may need it
from metricsmith.programs.recommenders.colbert import ColBERTRecommender
from metricsmith.records import MetricCard, Output
card = MetricCard("BLEU", "bank", "poem", "", (Output("bleu"),))
assert ColBERTRecommender(sys.argv[1]).recommend("poem", [card]).names == ("BLEU",)
assert sys.modules["faiss"] is None
"""


@pytest.mark.extras
def test_a_first_use_is_silent_offline_and_compiles_nothing(tiny_colbert, tmp_path):
    extensions = tmp_path / "extensions"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", IN_A_FRESH_PROCESS, str(tiny_colbert)],
        env={**os.environ, "TORCH_EXTENSIONS_DIR": str(extensions)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert not extensions.exists()


@pytest.mark.extras
def test_colbert_itself_is_left_as_it_was(encoder):
    from colbert.modeling.colbert import ColBERT

    assert not hasattr(ColBERT, "loaded_extensions")


@pytest.mark.extras
def test_a_gap_in_the_encoders_weights_is_refused(copy):
    from safetensors.torch import load_file, save_file

    weights = load_file(copy / "model.safetensors")
    del weights["bert.encoder.layer.1.output.dense.weight"]
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(StateError, match=r"lacks 1 weights.*layer\.1\.output\.dense\.weight"):
        load(copy)


@pytest.mark.extras
def test_an_unknown_model_type_is_refused_and_never_replaced(copy, contacted):
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "model_type": "nonesuch"}))
    with pytest.raises(StateError, match="cannot be loaded"):
        load(copy)
    assert contacted == []


@pytest.mark.extras
def test_what_the_checkpoint_recorded_about_its_training_fetches_nothing(copy, contacted):
    recorded = {
        "model_name": "bert-base-uncased",
        "checkpoint": "somebody/colbert",
        "dim": 128,
        "doc_maxlen": 20,
    }
    (copy / "artifact.metadata").write_text(json.dumps(recorded))
    assert load(copy).document("poem " * 100).shape == (64, 32)
    assert contacted == []


@pytest.mark.extras
def test_weights_of_another_size_are_refused(copy):
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "hidden_size": 32}))
    with pytest.raises(StateError, match="cannot be loaded"):
        load(copy)


@pytest.mark.extras
def test_a_tokenizer_without_the_markers_is_refused(copy):
    text = (copy / "tokenizer.json").read_text().replace("[unused1]", "[spare]")
    (copy / "tokenizer.json").write_text(text)
    (copy / "vocab.txt").unlink(missing_ok=True)
    with pytest.raises(StateError, match=r"marker '\[unused1\]'"):
        load(copy)
