"""Names and line ends that a test set's folder may have: each read as what it is, nothing of a neighbour's."""

from __future__ import annotations

import numpy as np
import pytest

from metricsmith.datasets.score_files import write_scores
from metricsmith.datasets.suite_roots import read_suite
from metricsmith.errors import DataError
from metricsmith.meta_evaluation.suites import PairRules, Suite, SuiteTask

SYSTEMS = ("A.1-b", "B", "refA")
PAIRS = ("en-cs", "en-cs_CZ")


@pytest.fixture
def root(tmp_path):
    """Two pairs, the name of one beginning the other's; numbers say where they stand."""
    for place, pair in enumerate(PAIRS):
        length = 4 + place
        for name, lines in {
            f"sources/{pair}.txt": [f"source {n}" for n in range(length)],
            f"documents/{pair}.docs": [f"news\tdoc-{n // 2}" for n in range(length)],
            f"references/{pair}.refA.txt": [f"reference {n}" for n in range(length)],
            **{f"system-outputs/{pair}/{system}.txt": [f"{system} {n}" for n in range(length)] for system in SYSTEMS},
        }.items():
            path = tmp_path / "set" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        write(tmp_path, f"human-scores/{pair}.mqm.merged.seg.score", numbers(place, length))
        write(tmp_path, f"metric-scores/{pair}/x.seg.s-all.seg.score", numbers(place + 10, length, ("refA",)))
    return tmp_path


def numbers(start, length, without=()):
    named = [name for name in SYSTEMS if name not in without]
    return {name: 100 * start + 10.0 * row + np.arange(length) for row, name in enumerate(named)}


def write(root, name, scores):
    write_scores(root / "set" / name, scores)
    return root / "set" / name


def read(root, pairs=PAIRS, gold="mqm.merged", **options):
    rules = {pair: PairRules(gold) for pair in pairs}
    suite = Suite("own", "set", rules, tuple(SuiteTask("acc-t", (pair,)) for pair in pairs))
    return read_suite(root, suite, **options)


def test_a_pair_whose_name_begins_another_has_files_of_its_own(root):
    for place, found in enumerate(read(root)):
        (metric,) = found.metrics.values()
        assert (metric.name, metric.base, metric.reference_free) == ("x.seg.s", "x.seg.s", False)
        assert found.systems == ("A.1-b", "B")
        assert found.segments.shape == (2, 4 + place)
        assert found.segments[0, 0] == 100 * place
        assert metric.segments[1, 0] == 100 * (place + 10) + 10
        assert not any(f"{PAIRS[1 - place]}." in name or f"/{PAIRS[1 - place]}/" in name for name in found.checksums)


def test_gold_of_a_pair_whose_name_is_longer_is_not_taken(root):
    (root / "set" / "human-scores" / "en-cs.mqm.merged.seg.score").unlink()
    with pytest.raises(DataError, match=r"there are none: add the file"):
        read(root, ("en-cs",))
    (root / "set" / "references" / "en-cs.refA.txt").rename(root / "set" / "references" / "en-cs.refC.txt")
    with pytest.raises(DataError, match=r"en-cs has no reference 'refA' \(did you mean 'refC'\?\)"):
        read(root, ("en-cs",))


def test_gold_whose_name_goes_on_after_a_dot_is_another(root):
    with pytest.raises(DataError, match=r"no gold scores 'mqm' by segment.*there are mqm\.merged"):
        read(root, gold="mqm")


@pytest.mark.parametrize("pack", [
    lambda text: b"\xef\xbb\xbf" + text,
    lambda text: text.replace(b"\n", b"\r\n"),
    lambda text: text.rstrip(b"\n"),
    lambda text: text.replace(b"\t", b"   "),
], ids=["byte order mark", "line ends of Windows", "no last line end", "blanks"])  # fmt: skip
def test_bytes_that_mean_the_same_give_the_same_numbers(root, pack):
    expected = read(root)
    for path in (path for path in (root / "set").rglob("*") if path.is_file()):
        path.write_bytes(pack(path.read_bytes()))
    for one, other in zip(expected, read(root), strict=True):
        np.testing.assert_array_equal(one.segments, other.segments)
        np.testing.assert_array_equal(one.metrics["x.seg.s"].segments, other.metrics["x.seg.s"].segments)
        assert one.documents == other.documents


@pytest.mark.parametrize(
    "name", ["human-scores/en-cs.mqm.merged.seg.score", "metric-scores/en-cs/x.seg.s-all.seg.score"]
)
@pytest.mark.parametrize(("more", "said"), [("\n", "0 fields"), ("news B 1.0\n", "3 fields"), ("B nan\n", "no finite")])
def test_a_line_too_many_or_by_domain_is_named(root, name, more, said):
    path = root / "set" / name
    count = len(path.read_text("utf-8").splitlines())
    with path.open("a", encoding="utf-8") as stream:
        stream.write(more)
    with pytest.raises(DataError, match=rf"{path.name}, line {count + 1}: .*{said}"):
        read(root)


def test_files_by_domain_or_document_are_no_scores_of_segments(root):
    for level in ("domain", "doc"):
        for name in (f"human-scores/en-cs.mqm.merged.{level}.score", f"metric-scores/en-cs/x.seg.s-all.{level}.score"):
            (root / "set" / name).write_text("news B 1.0\n", encoding="utf-8")
    assert not any(".domain." in name or ".doc." in name for found in read(root) for name in found.checksums)


@pytest.mark.parametrize(("stem", "name"), [
    ("a-b-c-refA", "a-b-c"), ("a.b-src", "a.b[noref]"), ("q.sys-src", "q.sys[noref]"), ("a_b-all", "a_b"),
])  # fmt: skip
def test_a_metrics_name_ends_at_the_last_dash(root, stem, name):
    write(root, f"metric-scores/en-cs/{stem}.seg.score", numbers(7, 4, () if stem.endswith("src") else ("refA",)))
    assert set(read(root)[0].metrics) == {"x.seg.s", name}


def test_references_are_joined_by_dots_and_all_is_every_one(root):
    (root / "set" / "references" / "en-cs.refB.txt").write_text("r\n" * 4, encoding="utf-8")
    for stem in ("both-refA.refB", "both-refB.refA", "second-refB", "both-all"):
        write(root, f"metric-scores/en-cs/{stem}.seg.score", numbers(7, 4, ("refA",)))
    write(root, "metric-scores/en-cs/one-refA.seg.score", numbers(8, 4, ("refA",)))
    found = read(root)[0]
    assert set(found.metrics) == {"one"}
    left_out = {name: why for kind, name, why in found.left_out if kind == "metric"}
    assert left_out == {
        "both-all": "used refA, refB, not refA", "both-refA.refB": "used refA, refB, not refA",
        "both-refB.refA": "used refB, refA, not refA", "second-refB": "used refB, not refA",
        "x.seg.s-all": "used refA, refB, not refA",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["human-scores/en-cs.mqm.merged", "metric-scores/en-cs/x.seg.s-all"])
def test_scores_whose_squares_overflow_are_refused(root, name):
    path = root / "set" / f"{name}.seg.score"
    path.write_text(path.read_text("utf-8").replace("1.0\n", "1e200\n", 1), encoding="utf-8")
    with pytest.raises(DataError, match=rf"{path.name}: .* has a score beyond 1e\+100"):
        read(root)


def test_an_added_score_whose_square_overflows_is_refused(root):
    path = root / "judge.seg.score"
    write_scores(path, {name: np.full(4, -1.7e308) for name in SYSTEMS})
    with pytest.raises(DataError, match=r"judge\.seg\.score: judge: system '.*' has a score beyond 1e\+100"):
        read(root, added={"en-cs": [path]})
