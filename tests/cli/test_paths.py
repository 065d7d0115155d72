"""Places that cannot be written to are refused before any work."""

from __future__ import annotations

import pytest

from metricsmith.cli.paths import check_apart, check_writable
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


@pytest.fixture
def circle(tmp_path):
    """A link that leads to itself."""
    (tmp_path / "circle").symlink_to("circle")
    return tmp_path / "circle"


@pytest.mark.parametrize("below", ["", "out"])
def test_a_folder_behind_a_link_to_nothing_is_refused(circle, below):
    with pytest.raises(OptionError, match=r"--out .* cannot be written: .*circle is a link to nothing; name another"):
        check_writable(circle / below, "--out", folder=True)


def test_links_that_lead_in_a_circle_are_told_apart_from_what_is_written(circle, tmp_path):
    check_apart([tmp_path / "scores.csv"], "--out", {"table": circle, "store": circle})
    with pytest.raises(OptionError, match="is the table"):
        check_apart([circle], "--out", {"table": circle})


@pytest.mark.parametrize(
    "command",
    [
        ("induce", "circle", "--target", "rating"),
        ("induce", "own.csv", "--target", "rating", "--test", "circle"),
        ("compare", "circle", "--target", "rating"),
        ("mqm", "circle", "own.csv", "--source-lang", "English", "--target-lang", "German", "--lm", "openai/m"),
        ("probe", "circle", "own.csv"),
        ("score", "circle", "own.csv"),
        ("meta-eval", "own.csv", "circle"),
    ],
    ids=" ".join,
)
def test_data_behind_a_link_to_itself_is_an_error_with_the_name(run, own, circle, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(*command, "--out", "out")
    assert (code, err.count("error: ")) == (2, 1)
    assert "circle" in err
    assert "Too many levels of symbolic links" in err
    assert not (tmp_path / "out").exists()
