"""Judges of one's own beside a shared task's metrics: by document, by number, by position."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pytest

from metricsmith.datasets.score_files import write_scores
from metricsmith.datasets.suite_roots import read_suite
from metricsmith.errors import DataError
from suite_roots import write_root

PAIR = "en-de"


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return write_root(tmp_path_factory.mktemp("root"))


def in_document(place):
    return {"doc": f"doc-{place // 5}", "segment": place % 5 + 1}


def rows(planted, label=in_document):
    """One line by output as `metricsmith mqm` writes them; the score is Aster's, or 0 for systems beside."""
    scores = dict(zip(planted.systems[PAIR], planted.metrics[PAIR]["Aster"], strict=True))
    found = [
        {"metric": "own judge", "system": system, **label(place), "raw": value, "runs": [value - 51, value - 49]}
        for system, values in ({"noise": np.zeros(60)} | scores).items()
        for place, value in enumerate(values.tolist())
    ]
    random.Random(0).shuffle(found)
    return found


def judged(planted, folder, lines, name="segments.jsonl", **options):
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    found = read_suite(planted.root, planted.suite, added={PAIR: [path]}, **options)
    assert not any(one.added for other in found[1:] for one in other.metrics.values())
    return found[0]


LABELS = {
    "document and number in it": in_document,
    "number in the set": lambda place: {"segment": place + 1},
    "number in the set, beside the document": lambda place: {"doc": f"doc-{place // 5}", "segment": place + 1},
    "one label": lambda place: {"segment": f"doc-{place // 5}:{place % 5 + 1}"},
}


@pytest.mark.parametrize("label", LABELS.values(), ids=LABELS)
def test_each_score_is_laid_beside_its_segment(planted, tmp_path, label):
    found = judged(planted, tmp_path, rows(planted, label))
    own = found.metrics["own judge"]
    assert (own.base, own.reference_free, own.added) == ("own judge", False, True)
    np.testing.assert_array_equal(own.segments, planted.metrics[PAIR]["Aster"])
    np.testing.assert_array_equal(own.systems, planted.system_metrics[PAIR]["Aster"])
    assert "segments.jsonl" in found.checksums
    assert not [one for one in found.left_out if one[0] == "segment"]


def test_runs_become_metrics(planted, tmp_path):
    found = judged(planted, tmp_path, rows(planted), each_run=True).metrics
    assert {name for name, one in found.items() if one.added} == {
        "own judge", *(f"own judge-{end}" for end in ("run-1", "run-2", "rrwa", "mean", "max", "geo")),
    }  # fmt: skip
    np.testing.assert_array_equal(found["own judge-run-2"].segments, planted.metrics[PAIR]["Aster"] - 49)


def test_a_score_file_with_gaps(planted, tmp_path):
    values = np.array(planted.metrics[PAIR]["Aster"])
    values[0, 7] = math.nan
    path = tmp_path / "mine-src.seg.score"
    write_scores(path, dict(zip(planted.systems[PAIR], values, strict=True)))
    own = read_suite(planted.root, planted.suite, added={PAIR: [path]})[0].metrics["mine-src"]
    np.testing.assert_array_equal(own.segments, values)


def test_gaps_stay_are_counted_and_systems_are_compared_on_what_all_have(planted, tmp_path):
    first, second = planted.systems[PAIR][:2]
    missing = {(first, 3), (second, 20), (second, 21)}
    lines = [
        line | ({"raw": None} if (line["system"], line["segment"] - 1) in missing else {})
        for line in rows(planted, LABELS["number in the set"])
        if (line["system"], line["segment"]) != (first, 11)
    ]
    found = judged(planted, tmp_path, lines)
    own, gold = found.metrics["own judge"], planted.gold[PAIR]
    empty = np.zeros((7, 60), dtype=bool)
    empty[[0, 1, 1, 0], [3, 20, 21, 10]] = True
    np.testing.assert_array_equal(np.isnan(own.segments), empty)
    shared = ~empty.any(axis=0)
    np.testing.assert_allclose(own.systems[:, 0], planted.metrics[PAIR]["Aster"][:, shared].mean(axis=1), rtol=1e-13)
    rated = ~np.isnan(gold)
    (_, name, by_system), (_, _, why) = [one for one in found.left_out if one[0] == "segment"]
    assert name == "own judge"
    assert (
        by_system == f"{shared.sum()} of 60 segments have its scores of all systems, on which its means by system rest"
    )
    assert f"no score for {(rated & empty).sum()} of {rated.sum()} rated outputs" in why
    assert (rated & empty).sum() > 1


def test_without_a_segment_that_all_have_there_are_no_system_scores(planted, tmp_path):
    names = planted.systems[PAIR]
    lines = [
        line for line in rows(planted, LABELS["number in the set"])
        if line["system"] not in names[:2] or line["segment"] % 2 == names.index(line["system"])
    ]  # fmt: skip
    own = judged(planted, tmp_path, lines).metrics["own judge"]
    assert own.systems is None
    assert own.segments is not None


def test_the_sign_of_a_judge_can_be_turned(planted, tmp_path):
    own = judged(planted, tmp_path, rows(planted), lower_is_better=["own judge"]).metrics["own judge"]
    np.testing.assert_array_equal(own.segments, -planted.metrics[PAIR]["Aster"])
    np.testing.assert_array_equal(own.systems, -planted.system_metrics[PAIR]["Aster"])


def test_metrics_asked_for_and_primary_leave_judges_in(planted, tmp_path):
    found = judged(planted, tmp_path, rows(planted), metrics=["Aster", "Elder"])
    assert list(found.metrics) == ["Aster", "Elder", "own judge"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"system": "System-7.v1"}, "no output of a system 'System-7.v1' (did you mean 'System-"),
        ({"doc": "doc-12"}, "the segment 'doc-12:"),
        ({"segment": 6}, ":6' is not in the 60 segments of en-de"),
        ({"segment": 0}, ":0' is not in the 60 segments of en-de"),
    ],
)
def test_a_row_that_the_test_set_does_not_have(planted, tmp_path, change, words):
    first, *others = rows(planted)
    with pytest.raises(DataError) as caught:
        judged(planted, tmp_path, [first | change, *others])
    assert str(caught.value).startswith(f"{tmp_path / 'segments.jsonl'}, row 1 (line 1): ")
    assert words in str(caught.value)


def test_numbers_from_zero_are_refused(planted, tmp_path):
    with pytest.raises(DataError, match="the segment '0' is not in the 60 segments"):
        judged(planted, tmp_path, rows(planted, lambda place: {"segment": place}))


def test_numbers_beside_another_document_are_refused(planted, tmp_path):
    with pytest.raises(DataError, match="is not in the 60 segments"):
        judged(planted, tmp_path, rows(planted, lambda place: {"doc": f"doc-{(place + 5) // 5}", "segment": place + 1}))


def test_two_rows_of_one_output(planted, tmp_path):
    lines = rows(planted)
    with pytest.raises(DataError, match=r"line 481\): .* has scores of segment 'doc-\d+:\d' already .*line 1\)"):
        judged(planted, tmp_path, [*lines, lines[0]])


def test_a_system_that_counts_and_was_not_judged(planted, tmp_path):
    lines = [line for line in rows(planted) if line["system"] != "System-2.v1"]
    with pytest.raises(DataError, match=r"no scores of 1 of the 7 systems needed, the first is 'System-2.v1'"):
        judged(planted, tmp_path, lines)
    found = judged(planted, tmp_path, lines, without=["System-2.v1"])
    assert found.metrics["own judge"].segments.shape == (6, 60)


@pytest.mark.parametrize("skip", [False, True])
def test_a_name_that_is_taken(planted, tmp_path, skip):
    lines = [line | {"metric": "Aster"} for line in rows(planted)]
    with pytest.raises(DataError, match="en-de has a metric 'Aster' already"):
        judged(planted, tmp_path, lines, skip_broken=skip)


def test_a_score_file_of_another_length(planted, tmp_path):
    path = tmp_path / "mine.seg.score"
    write_scores(path, {system: np.ones(59) for system in planted.systems[PAIR]})
    with pytest.raises(DataError, match="59 scores, 60 are needed"):
        read_suite(planted.root, planted.suite, added={PAIR: [path]})


def test_a_folder_or_scores_by_system_will_not_do(planted, tmp_path):
    with pytest.raises(DataError, match="Is a directory"):
        read_suite(planted.root, planted.suite, added={PAIR: [tmp_path]})
    path = tmp_path / "mine.sys.score"
    write_scores(path, {system: np.ones(1) for system in planted.systems[PAIR]})
    with pytest.raises(DataError, match="scores by segment are needed"):
        read_suite(planted.root, planted.suite, added={PAIR: [path]})


def test_numbers_that_fit_in_two_ways(tmp_path):
    # The numbers 6 to 10 may be the first five of document b, or its own sixth to tenth.
    root = write_root(tmp_path / "root")
    docs = root.folder / "documents" / f"{PAIR}.docs"
    docs.write_text("news a\n" * 5 + "news b\n" * 55, encoding="utf-8")
    scores = [
        {"system": system, "doc": "b", "segment": number, "raw": 1.0, "metric": "own judge"}
        for system in root.systems[PAIR]
        for number in range(6, 11)
    ]
    with pytest.raises(DataError, match="fit when counted in each document, and in the whole set"):
        judged(root, tmp_path, scores)


def test_judgements_of_other_translations_are_refused(planted, tmp_path):
    lines = rows(planted, lambda place: {"segment": place + 1})
    for line in lines:
        line["translation"] = f"{line['system']} {line['segment']}. "
    assert "own judge" in judged(planted, tmp_path, lines).metrics
    lines[7]["translation"] = "of another language"
    with pytest.raises(
        DataError, match=rf"row 8 .*: the translation is not the one of .*{PAIR}/.*\.txt, line \d+: name"
    ):
        judged(planted, tmp_path, lines)


def test_remarks_on_a_judge_are_handed_on(planted, tmp_path):
    lines = [line | {"runs": line["runs"][:1]} for line in rows(planted)]
    assert judged(planted, tmp_path, lines, each_run=True).notes == (
        f"{PAIR}: own judge has one run, so there is nothing to tell apart",
    )


def test_a_turned_sign_is_noted(planted, tmp_path):
    found = judged(planted, tmp_path, rows(planted), lower_is_better=("own judge", "Aster"))
    assert {
        f"{PAIR}: {name}: lower is better, so that its sign is turned round" for name in ("own judge", "Aster")
    } == {*found.notes}


def test_a_judge_is_not_joined_with_a_metric_of_another_pair(planted, tmp_path):
    pair = next(pair for pair, own in planted.metrics.items() if "Dahlia" not in own)
    path = tmp_path / "Dahlia.seg.score"
    write_scores(path, dict(zip(planted.systems[pair], planted.metrics[pair]["Aster"], strict=True)))
    with pytest.raises(
        DataError, match="'Dahlia' is an added judge in one language pair and a metric of the folder in"
    ):
        read_suite(planted.root, planted.suite, added={pair: [path]})
