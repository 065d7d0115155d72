from __future__ import annotations

import shutil

import pytest

from metricsmith.errors import StateError
from metricsmith.programs.recommenders.colbert_checkpoint import inspect_checkpoint

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
