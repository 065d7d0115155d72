"""Places that cannot be written to are refused before any work."""

from __future__ import annotations

import pytest

from metricsmith.cli.paths import check_writable
from metricsmith.errors import OptionError


def test_a_new_folder_below_a_writable_one_is_fine(tmp_path):
    check_writable(tmp_path / "a" / "b", "--out", folder=True)
    check_writable(tmp_path / "scores.csv", "--out", folder=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("place", "folder", "message"),
    [
        ("file", True, "is a file; name a folder"),
        (".", False, "is a folder; name a file"),
        ("file/below", True, "is not a writable folder"),
        ("missing/scores.csv", False, "make it first"),
    ],
)
def test_the_wrong_kind_of_place_is_refused(tmp_path, place, folder, message):
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match=message):
        check_writable(tmp_path / place, "--out", folder=folder)
