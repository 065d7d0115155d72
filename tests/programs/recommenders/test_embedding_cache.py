from __future__ import annotations

import logging
from io import BytesIO

import numpy as np

from metricsmith.programs.recommenders.embedding_cache import EmbeddingCache


class Encoder:
    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return np.full((2, 3), self.calls, dtype=np.float32)


def test_memory_encodes_a_text_once():
    cache, encode = EmbeddingCache(), Encoder()
    first = cache.get("model", "text", encode)
    assert cache.get("model", "text", encode) is first
    assert encode.calls == 1


def test_another_text_or_another_encoder_is_encoded():
    cache, encode = EmbeddingCache(), Encoder()
    for encoder, text in (("model", "text"), ("model", "text."), ("other", "text")):
        cache.get(encoder, text, encode)
    assert encode.calls == 3


def test_the_folder_outlives_the_process_and_holds_no_pickle(tmp_path):
    encode = Encoder()
    stored = EmbeddingCache(tmp_path / "new" / "folder").get("model", "text", encode)
    again = EmbeddingCache(tmp_path / "new" / "folder").get("model", "text", encode)
    np.testing.assert_array_equal(stored, again)
    assert encode.calls == 1
    (file,) = (tmp_path / "new" / "folder").iterdir()
    with np.load(file, allow_pickle=False) as content:
        assert content["embedding"].dtype == np.float32


def test_a_damaged_file_is_replaced_and_said(tmp_path, caplog):
    EmbeddingCache(tmp_path).get("model", "text", Encoder())
    (file,) = tmp_path.iterdir()
    array = BytesIO()
    np.save(array, np.zeros(3))
    for damage in (b"", b"not a zip", file.read_bytes()[:-30], array.getvalue()):
        file.write_bytes(damage)
        encode = Encoder()
        with caplog.at_level(logging.WARNING):
            EmbeddingCache(tmp_path).get("model", "text", encode)
        assert encode.calls == 1
        assert "made anew" in caplog.text
        caplog.clear()
    assert EmbeddingCache(tmp_path).get("model", "text", Encoder()).shape == (2, 3)
    assert [path.suffix for path in tmp_path.iterdir()] == [".npz"]
