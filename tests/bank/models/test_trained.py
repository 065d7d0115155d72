"""The file of learned weights: the same bytes for the same arrays, and nothing else is read."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle

import numpy as np
import pytest

from metricsmith.bank.models import trained
from metricsmith.bank.models.trained import Trained, packed, read_weights, unpacked
from metricsmith.errors import StateError

WEIGHTS = {"b": np.arange(6.0).reshape(2, 3), "a": np.float32([1.5, -2]), "none": np.zeros((0, 4))}


def file_of(header, data=b"", length=None):
    said = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(said) if length is None else length).to_bytes(8, "little") + said + data


def entry(dtype="F64", shape=(1,), offsets=(0, 8), **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


def placed(folder, content):
    """The hash of a content that lies in a folder under it."""
    digest = hashlib.sha256(content).hexdigest()
    (folder / f"{digest}.safetensors").write_bytes(content)
    return digest


def test_arrays_come_back_as_they_were_whatever_their_order():
    found = unpacked(packed(WEIGHTS))
    assert found.keys() == WEIGHTS.keys()
    for name, array in WEIGHTS.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array)
        assert not found[name].flags.writeable
    assert packed(dict(reversed(WEIGHTS.items()))) == packed(WEIGHTS) == packed(found)
    assert packed({"b": np.asfortranarray(WEIGHTS["b"])}) == packed({"b": WEIGHTS["b"]})


def test_the_bytes_are_those_of_the_format():
    # by hand, from the format's description: length of the header, the header padded with blanks, the numbers
    header = b'{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    assert packed({"x": np.float32([1])}) == b"\x38" + bytes(7) + header + b"  " + b"\x00\x00\x80\x3f"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no safetensors file"),
        (b"\x00" * 7, "no safetensors file"),
        (file_of(b'{"a":1}', length=4), "no safetensors file"),
        (file_of(b"", length=9), "no safetensors file"),
        (file_of(b"", length=2**64 - 1), "a header of 18,446,744,073,709,551,615 bytes; 1,000,000 are allowed"),
        (file_of(b" " * 1_000_001), "a header of 1,000,001 bytes; 1,000,000 are allowed"),
        (file_of(b"not json"), "no safetensors file"),
        (file_of(b"\xff\xfe"), "no safetensors file"),
        (file_of(b"[" * 100_000), "no safetensors file"),
        (file_of([]), "no safetensors file"),
        (file_of({"a": 1}), "no safetensors file"),
        (file_of({"a": entry("I64")}, bytes(8)), "'a' are int64"),
        (file_of({"a": entry("BF16", (4,))}, bytes(8)), "no safetensors file of numbers|'a' are bfloat16"),
        (file_of({"a": entry("F8_E4M3", (8,))}, bytes(8)), "no safetensors file of numbers|'a' are float8"),
        (file_of({"a": entry(["F64"])}, bytes(8)), "no safetensors file"),
        (file_of({"a": entry(shape=(-1,))}, bytes(8)), "no safetensors file"),
        (file_of({"a": entry(shape=(2**40,), offsets=(0, 2**43))}, bytes(8)), "no safetensors file"),
        (file_of({"a": entry(shape=(2**62, 2**62))}, bytes(8)), "no safetensors file"),
        (file_of({"a": entry(offsets=(8, 16))}, bytes(16)), "no safetensors file"),
        (file_of({"a": entry(), "b": entry()}, bytes(8)), "no safetensors file"),
        (file_of({"a": entry()}, bytes(9)), "no safetensors file"),
        (file_of({"a": entry()}, bytes(7)), "no safetensors file"),
        (file_of({"a": entry()}, np.float64([np.nan]).tobytes()), "finite float32 or float64"),
        (file_of({"a": entry()}, np.float64([-np.inf]).tobytes()), "finite float32 or float64"),
        (file_of({"a": entry()}, np.float64([1e101]).tobytes()), "finite float32 or float64"),
    ],
)
def test_a_file_of_anything_else_is_refused_in_words(content, said):
    with pytest.raises(StateError, match=said) as problem:
        unpacked(content)
    assert len(str(problem.value)) < 500


def test_a_pickle_under_the_right_name_is_refused_and_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "evil"),)

    content = read_weights(tmp_path, placed(tmp_path, pickle.dumps(Evil())))
    with pytest.raises(StateError, match=r"a header of .* bytes; 1,000,000 are allowed"):
        unpacked(content)
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("digest", ["", "../" + "a" * 61, "A" * 64, "a" * 63, "a" * 64 + "\n", "/etc/passwd"])
def test_a_name_that_is_no_hash_leads_nowhere(tmp_path, digest):
    with pytest.raises(StateError, match="must be 64 hexadecimal digits"):
        read_weights(tmp_path, digest)


def test_a_missing_file_is_named_and_so_is_what_to_do(tmp_path):
    with pytest.raises(StateError, match=rf"{'a' * 64}\.safetensors is missing: .* copy both"):
        read_weights(tmp_path, "a" * 64)


def test_another_hash_than_the_name_is_refused(tmp_path):
    digest = placed(tmp_path, packed(WEIGHTS))
    other = tmp_path / f"{'a' * 64}.safetensors"
    (tmp_path / f"{digest}.safetensors").rename(other)
    with pytest.raises(StateError, match=rf"its hash is {digest}, not its name"):
        read_weights(tmp_path, "a" * 64)


@pytest.mark.parametrize("kind", ["link", "dangling", "folder", "pipe"])
def test_a_link_a_folder_and_a_pipe_are_refused_at_once(tmp_path, kind):
    (tmp_path / "elsewhere").mkdir()
    digest = placed(tmp_path / "elsewhere", packed(WEIGHTS))
    place = tmp_path / f"{digest}.safetensors"
    if kind in ("link", "dangling"):
        place.symlink_to(tmp_path / "elsewhere" / (place.name if kind == "link" else "nothing"))
    elif kind == "folder":
        place.mkdir()
    else:
        os.mkfifo(place)
    said = {"folder": "cannot be read: ", "pipe": "is no plain file"}.get(kind, "it is a link, which is not followed")
    with pytest.raises(StateError, match=said):
        read_weights(tmp_path, digest)


@pytest.mark.parametrize("absent", ["O_NOFOLLOW", "islink"])
def test_a_link_is_refused_between_two_looks_and_where_a_system_cannot_refuse_it(tmp_path, monkeypatch, absent):
    (tmp_path / "elsewhere").mkdir()
    digest = placed(tmp_path / "elsewhere", packed(WEIGHTS))
    (tmp_path / f"{digest}.safetensors").symlink_to(tmp_path / "elsewhere" / f"{digest}.safetensors")
    if absent == "islink":
        monkeypatch.setattr(os.path, "islink", lambda path: False)
    else:
        monkeypatch.delattr(os, absent)
    with pytest.raises(StateError, match="cannot be read"):
        read_weights(tmp_path, digest)


def test_a_file_beyond_the_limit_is_not_read(tmp_path, monkeypatch):
    place = tmp_path / f"{'a' * 64}.safetensors"
    with place.open("wb") as file:
        file.truncate(trained.MOST + 1)  # takes no room on the disk
    with pytest.raises(StateError, match="larger than 200,000,000 bytes"):
        read_weights(tmp_path, "a" * 64)
    monkeypatch.setattr(trained, "MOST", 100)
    with pytest.raises(StateError, match=r"take [0-9]+ bytes; 100 can be kept"):
        packed(WEIGHTS)


@pytest.mark.parametrize("array", [np.arange(3), np.float64([np.nan]), np.float32([np.inf]), np.array(["a"])])
def test_what_could_not_be_read_is_not_written(array):
    with pytest.raises(StateError, match="finite float32 or float64 can be kept"):
        packed({"x": array})


def test_what_was_learned_cannot_be_changed_and_is_equal_to_its_copies(tmp_path):
    own = np.array([1.0, 2.0])
    learned = Trained(packed({"x": own}), 3.0, 0.5, 10, 4, ("h",))
    own[0] = 9
    assert learned.weights["x"][0] == 1.0
    for one in (learned, copy.deepcopy(learned), pickle.loads(pickle.dumps(learned))):
        with pytest.raises(ValueError, match="read-only"):
            one.weights["x"][0] = 2
        assert (one, one.learned_from, hash(one)) == (learned, ("h",), hash(learned))
    assert Trained(packed({"x": np.array([1.0, 2.5])}), 3.0, 0.5, 10, 4) != learned
    assert learned.write(tmp_path).name == f"{learned.digest}.safetensors"
    assert [path.name for path in tmp_path.iterdir()] == [f"{learned.digest}.safetensors"]
    assert read_weights(tmp_path, learned.digest) == learned.content
