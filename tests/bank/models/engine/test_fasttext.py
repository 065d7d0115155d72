"""A file of fastText's is checked before fastText, which believes every size in it, is given it."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import conformance
import tiny_fasttext
from metricsmith.errors import NeedsError

pytestmark = pytest.mark.extras
LABELS = ["__label__nsfw", "__label__non-nsfw"]
SETTINGS = 8 + 12 * 4 + 8  # bytes before the dictionary


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a file that can be read."""
    return tiny_fasttext.fasttext_bin(tmp_path_factory.mktemp("fasttext"), LABELS).read_bytes()


@pytest.fixture
def numbers(tmp_path, monkeypatch):
    """A function from the bytes of a file to the metric's numbers; fastText may be given it only if `sound`."""

    def read(content, *, sound=False):
        (path := tmp_path / "model.bin").write_bytes(content)
        rows = conformance.rows_of("fasttext_nsfw", 2)
        with monkeypatch.context() as patch:
            if not sound:
                patch.setattr("fasttext.load_model", lambda path: pytest.fail("fastText was given a broken file"))
            return conformance.numbers(conformance.on("fasttext_nsfw", path).metrics(), rows)

    return read


def with_number(content, place, layout, value):
    changed = bytearray(content)
    struct.pack_into(f"<{layout}", changed, place, value)
    return bytes(changed)


def test_a_file_cut_anywhere_is_refused_with_its_path(whole, numbers, tmp_path):
    for size in (1, 7, 50, 80, 100, 500, len(whole) // 2, len(whole) - 1):
        with pytest.raises(NeedsError, match=rf"{tmp_path}/model.bin cannot be .* byte .* has {size}; fetch"):
            numbers(whole[:size])
    with pytest.raises(NeedsError, match="cannot be read as fastText's"):
        numbers(b"")


@pytest.mark.parametrize(
    ("place", "layout", "value", "said"),
    [
        (0, "i", 7, "first number is 7, expected is 793712314"),
        (4, "i", 13, "version 13, known are those up to 12"),
        (8, "i", 1 << 30, "shape of a matrix is"),
        (8, "i", -1, "vectors have -1 numbers"),
        (8 + 4 * 7, "i", 1, "kind of model is 1, expected is 3"),
        (8 + 4 * 8, "i", 0, "n-grams 0 places"),
        (SETTINGS, "i", 1 << 30, "number of entries is"),
        (SETTINGS + 4, "i", 1 << 30, "number of entries is"),
        (SETTINGS + 20, "q", 1 << 40, "it ends before"),
        (SETTINGS + 20, "q", -2, "-2 n-grams"),
    ],
)
def test_a_size_that_the_file_does_not_hold_is_refused(place, layout, value, said, whole, numbers):
    with pytest.raises(NeedsError, match=said):
        numbers(with_number(whole, place, layout, value))


def test_bytes_beyond_the_end_are_refused(whole, numbers):
    with pytest.raises(NeedsError, match=rf"length in bytes is {len(whole) + 1}, expected is {len(whole)}"):
        numbers(whole + b"\0")


def quantised(whole, *, kept=4, rows=None):
    """The same dictionary with quantised vectors, with norms, of the words and `kept` n-grams."""
    width, buckets = tiny_fasttext.DIMENSION, tiny_fasttext.BUCKETS
    words = struct.unpack_from("<i", whole, SETTINGS + 4)[0]
    output = 17 + 4 * len(LABELS) * width
    inputs = 17 + 4 * (words + buckets) * width
    head = with_number(whole[: len(whole) - output - inputs], SETTINGS + 20, "q", kept)
    pairs = np.array([[one, one] for one in range(kept)] if rows is None else rows, "<i4")
    count, part = words + kept, 2
    random = np.random.default_rng(0)
    codes = random.integers(0, 256, count * width // part, dtype=np.uint8).tobytes()
    centroids = random.normal(size=256 * width).astype("<f4").tobytes()
    norms = bytes(count) + struct.pack("<4i", 1, 1, 1, 1) + np.ones(256, "<f4").tobytes()
    matrix = struct.pack("<??2qi", True, True, count, width, len(codes)) + codes
    matrix += struct.pack("<4i", width, width // part, part, part) + centroids + norms
    return head + pairs.tobytes() + matrix + whole[-output:]


def test_a_quantised_file_is_read_and_refused_where_it_is_cut_or_leads_outside(whole, numbers):
    sound = quantised(whole)
    assert np.isfinite(numbers(sound, sound=True)).all()
    for size in (len(sound) - 1, len(sound) // 2, 500):
        with pytest.raises(NeedsError, match="it ends before"):
            numbers(sound[:size])
    with pytest.raises(NeedsError, match="n-grams"):
        numbers(quantised(whole, rows=[[0, 0], [1, 1], [2, 2], [3, 4]]))
    place = sound.index(struct.pack("<4i", 8, 4, 2, 2))
    with pytest.raises(NeedsError, match="cuts rows of 8 into 4 times 3"):
        numbers(with_number(sound, place + 8, "i", 3))
