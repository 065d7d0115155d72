"""Places that cannot be written to are refused before any work."""

from __future__ import annotations

import pytest

from metricsmith.cli.running import check_apart, check_replaceable, check_writable
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


BANKLESS = ("--target", "rating", "--bank", "none", "--metric-columns", "good", "--quiet")


@pytest.fixture
def inducing(run, own, tmp_path):
    """`induce` into one folder: exit code and errors."""

    def call(*options):
        code, _, err = run("induce", own, *BANKLESS, *options, "--out", tmp_path / "out")
        return code, err

    return call


def test_a_metric_of_another_run_is_overwritten_only_by_force(inducing, tmp_path):
    assert inducing() == (0, "")
    before = (tmp_path / "out" / "metric.json").read_bytes()
    for other in (("--seed", 1), ("--n", 1), ("--where", "kind=odd"), ("--cv", 3), ("--task", "Other words.")):
        code, err = inducing(*other)
        assert code == 2
        assert f"{tmp_path / 'out'} holds a metric of another run, which would be lost (metricsmith " in err
        assert "data own.csv sha256:" in err
        assert "name another folder with --out, or add --force" in err
    assert (tmp_path / "out" / "metric.json").read_bytes() == before
    assert inducing("--seed", 1, "--force") == (0, "")
    assert (tmp_path / "out" / "metric.json").read_bytes() != before


def test_as_many_rows_by_another_condition_or_columns_in_other_roles_make_another_run(run, tmp_path):
    rows = [f"{number % 5},{number % 3},text {number},note {number},{'ab'[number % 2]}" for number in range(80)]
    (tmp_path / "own.csv").write_text("\n".join(["rating,good,answer,note,side", *rows]))

    def inducing(*options):
        return run("induce", tmp_path / "own.csv", *BANKLESS, *options, "--out", tmp_path / "out")

    assert inducing("--where", "side=a", "--where", "rating!=0", "--context", "note")[0] == 0
    for other in (
        ("--where", "side=b", "--where", "rating!=0", "--context", "note"),
        ("--where", "side=a", "--where", "rating!=0", "--id", "note"),
    ):
        code, _, err = inducing(*other)
        assert code == 2
        assert "another run, which would be lost (metricsmith " in err
        assert " where rating!=0 and side=a, 32 rows, columns target rating, output answer, context note, " in err
    assert inducing("--where", "rating!=0", "--where", "side=a", "--context", "note")[0] == 0


def test_the_same_command_rewrites_its_own_metric_and_a_dry_run_refuses_nothing(inducing, tmp_path):
    assert inducing() == (0, "")
    assert inducing("--store", tmp_path / "s.db") == (0, "")  # where judgements are kept decides on no number
    assert inducing("--seed", 1, "--dry-run") == (0, "")


@pytest.mark.parametrize("text", [None, "", '{"kind": "ind', "[1, 2]", "{}"])
def test_an_unfinished_folder_holds_no_metric(tmp_path, text):
    if text is not None:
        (tmp_path / "metric.json").write_text(text)
    check_replaceable(tmp_path, lambda _: False, "name another folder")


def test_a_metric_without_a_signature_is_named_by_its_date(tmp_path):
    (tmp_path / "metric.json").write_text('{"kind": "criterion_judge"}')
    with pytest.raises(OptionError, match=r"\(without a signature; written \d{4}-\d\d-\d\d \d\d:\d\d\); use another$"):
        check_replaceable(tmp_path, lambda _: False, "use another")
