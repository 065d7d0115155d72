"""``metricsmith mqm`` against a model of our own: ten runs by segment, malformed answers, wrong inputs."""

from __future__ import annotations

import json
import math
from collections import defaultdict

import numpy as np
import pytest

from loopback import serve
from metricsmith import scoring
from metricsmith.datasets.segments import read_translations
from metricsmith.errors import Interrupted
from metricsmith.mqm import MQMWeights, mqm_score
from metricsmith.records import ErrorSpan
from metricsmith.stats.aggregation import half_width, rrwa
from reviser import DOCUMENTS, FILES, Reviser

ONE_BY_ONE = ("--concurrency", 1)  # which of ten equal prompts meets which fault depends on their order
LANGUAGES = ("--source-lang", "English", "--target-lang", "German")


def model(server):
    return ("--lm", "openai/m", "--api-base", f"http://127.0.0.1:{server.port}/v1")


def lines(folder):
    return [json.loads(line) for line in (folder / "segments.jsonl").read_text("utf-8").splitlines()]


def test_the_whole_judge_with_a_tenth_of_the_answers_malformed(run, tmp_path):
    with serve(Reviser(), malformed=0.1, seed=3) as server:
        code, out, err = run(
            "mqm", *FILES, *LANGUAGES, "--documents", DOCUMENTS, "--out", tmp_path / "out", *ONE_BY_ONE, *model(server)
        )
        assert code == 0, err
        assert server.malformed_sent > 10
        requests = server.requests
    segments = lines(tmp_path / "out")
    assert len(segments) == 36
    assert f"{requests} requests (220 estimated)" in out
    lost = sum(None in line["runs"] for line in segments)
    assert lost > 0  # some answers could not be mended
    for line in segments:
        runs = [number for number in line["runs"] if number is not None]
        assert len(line["runs"]) == 10
        assert line["raw"] == pytest.approx(rrwa(runs))
        assert line["kept"] <= len(runs)
    read = {line["id"]: line for line in segments}
    assert read["beta|library:1"]["errors"][0] | {"found": 0} == {
        "severity": "major",
        "category": "Accuracy/Mistranslation",
        "start": 29,
        "end": 37,
        "text": "geöffnet",
        "side": "target",
        "description": "a reviser would mend geöffnet",
        "found": 0,
    }
    assert read["alpha|library:1"]["errors"] == []
    assert {line["side"] for line in read["beta|pool:2"]["errors"]} == {"source"}


def test_means_follow_from_the_segments(run, tmp_path):
    with serve(Reviser()) as server:
        code, out, err = run(
            "mqm", *FILES, *LANGUAGES, "--documents", DOCUMENTS, "--out", tmp_path / "out", "--json", *model(server)
        )
        assert code == 0, err
        assert server.requests == 220  # 22 of the 36 translations are different texts
    record = json.loads(out)
    assert record == json.loads((tmp_path / "out" / "mqm.json").read_text("utf-8"))
    by_system, by_document = defaultdict(list), defaultdict(list)
    for line in lines(tmp_path / "out"):
        by_system[line["system"]].append(line["raw"])
        by_document[line["system"], line["doc"]].append(line["raw"])
    assert {line["system"]: line["mean"] for line in record["systems"]} == {
        system: pytest.approx(np.mean(numbers)) for system, numbers in by_system.items()
    }
    assert {(line["system"], line["document"]): line["mean"] for line in record["documents"]} == {
        key: pytest.approx(np.mean(numbers)) for key, numbers in by_document.items()
    }
    assert [line["system"] for line in record["systems"]] == ["alpha", "gamma", "beta"]
    worst = record["systems"][-1]
    assert worst["low"] < worst["mean"] < worst["high"] <= 0
    assert worst["groups"] == 3


def test_every_answer_malformed_gives_no_score_and_code_3(run, tmp_path):
    with serve(Reviser(), malformed=1.0) as server:
        code, out, err = run(
            "mqm", *FILES, *LANGUAGES, "--documents", DOCUMENTS, "--out", tmp_path / "out", *model(server)
        )
    assert code == 3
    assert "unparsable" in err
    assert all(line["raw"] is None for line in lines(tmp_path / "out"))
    assert "36 of 36 segments have no score" in out
    assert "0 of 360 runs have a number" in out
    record = json.loads((tmp_path / "out" / "mqm.json").read_text("utf-8"))
    assert record["systems"][0]["mean"] is None


def test_fewer_runs_than_needed_are_no_score(run, tmp_path):
    with serve(Reviser(), malformed=0.6, seed=1) as server:
        options = ("--documents", DOCUMENTS, "--min-runs", 10, "--out", tmp_path / "out", *ONE_BY_ONE)
        code, *_ = run("mqm", *FILES, *LANGUAGES, *options, *model(server))
    assert code == 3  # more than a fifth of the runs failed
    segments = lines(tmp_path / "out")
    for line in segments:
        assert (line["raw"] is None) == (None in line["runs"])
    assert any(line["raw"] is None for line in segments)
    without = next(line for line in segments if line["raw"] is None)
    assert "10 are needed" in without["error"]


def test_a_store_answers_the_second_time_and_keeps_the_errors(run, tmp_path):
    with serve(Reviser()) as server:
        options = ("--documents", DOCUMENTS, "--runs", 3, "--store", tmp_path / "s.db", *model(server))
        assert run("mqm", *FILES, *LANGUAGES, *options, "--out", tmp_path / "one")[0] == 0
        assert server.requests == 66
        code, out, _ = run("mqm", *FILES, *LANGUAGES, *options, "--out", tmp_path / "two")
        assert code == 0
        assert server.requests == 66
    assert "108 runs came from the store" in out
    assert lines(tmp_path / "one") == lines(tmp_path / "two")
    assert any(line["errors"] for line in lines(tmp_path / "two"))


def test_a_budget_leaves_whole_segments_and_the_store_goes_on(run, tmp_path):
    with serve(Reviser()) as server:
        options = ("--documents", DOCUMENTS, "--runs", 4, "--store", tmp_path / "s.db", *model(server))
        code, out, _ = run("mqm", *FILES[:2], *LANGUAGES, *options, "--max-requests", 10, "--out", tmp_path / "one")
        assert (code, server.requests) == (0, 10)
        cut = lines(tmp_path / "one")
        missing = [line for line in cut if line["raw"] is None]
        assert {line["status"] for line in missing} == {"budget"}
        assert f"{len(missing)} of 12 segments have no score ({len(missing)} budget)" in out
        assert run("mqm", *FILES[:2], *LANGUAGES, *options, "--out", tmp_path / "two")[0] == 0
        assert server.requests == 48
    for before, after in zip(cut, lines(tmp_path / "two"), strict=True):
        assert after["raw"] is not None
        assert all(run in (None, later) for run, later in zip(before["runs"], after["runs"], strict=True))


def test_a_budget_for_half_a_score_gives_none_and_code_3(run, tmp_path):
    with serve(Reviser()) as server:
        options = ("--runs", 2, "--min-runs", 2, "--max-requests", 1, "--out", tmp_path / "out")
        code, _, err = run("mqm", *FILES[:2], *LANGUAGES, *options, *model(server))
        assert server.requests == 1
    assert code == 3
    assert "no segment has a score" in err
    assert all(line["raw"] is None for line in lines(tmp_path / "out"))


def test_an_interrupt_keeps_what_was_finished(run, tmp_path, monkeypatch):
    whole = scoring.score

    def cut(*arguments, **options):
        stop = Interrupted("interrupted with 10 of 48 model judgements finished")
        stop.table = whole(*arguments, **(options | {"budget": scoring.Budget(requests=10)}))
        raise stop

    monkeypatch.setattr(scoring, "score", cut)
    with serve(Reviser()) as server:
        options = ("--documents", DOCUMENTS, "--runs", 4, "--out", tmp_path / "out", *model(server))
        code, _, err = run("mqm", *FILES[:2], *LANGUAGES, *options)
    assert code == 130
    assert "interrupted with 10 of 48" in err
    assert "--store" in err
    assert 0 < sum(line["raw"] is not None for line in lines(tmp_path / "out")) < 12


def test_the_document_is_shown_unless_it_is_not_wanted(run, tmp_path):
    for context, there in (("document", True), ("none", False)):
        with serve(Reviser()) as server:
            options = ("--documents", DOCUMENTS, "--runs", 1, "--context", context, "--out", tmp_path / context)
            assert run("mqm", *FILES[:2], *LANGUAGES, *options, *model(server))[0] == 0
            prompt = next(text for text in server.prompts if "Die Rutsche ist außer Betrieb." in text)
        asked = prompt.rsplit("[[ ## document ## ]]", 1)[-1]
        assert ("Children under six" in asked) is there
        assert "The library is closed" not in asked  # another document


def test_a_table_is_read_as_well(run, tmp_path):
    rows = read_translations(FILES[0], FILES[1:], documents=DOCUMENTS).rows
    content = [{"src": row.input, "mt": row.output, "doc": row.doc, "system": row.system} for row in rows]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, content)), "utf-8")
    with serve(Reviser()) as server:
        code, _, err = run(
            "mqm", path, *LANGUAGES, "--runs", 2, "--column", "translation=mt", "--out", tmp_path / "out",
            *model(server),
        )  # fmt: skip
        assert code == 0, err
        assert server.requests == 44
    assert [line["id"] for line in lines(tmp_path / "out")] == [row.id for row in rows]


def test_weights_and_errors_give_the_runs_scores(run, tmp_path):
    with serve(Reviser()) as server:
        options = ("--documents", DOCUMENTS, "--runs", 1, "--weights", "wmt", "--out", tmp_path / "out")
        assert run("mqm", *FILES, *LANGUAGES, *options, *model(server))[0] == 0
    for line in lines(tmp_path / "out"):
        spans = [ErrorSpan(error["severity"], error["category"]) for error in line["errors"]]
        assert line["raw"] == mqm_score(spans, MQMWeights.wmt())


def test_runs_end_where_the_score_is_known_well_enough(run, tmp_path):
    with serve(Reviser()) as server:
        options = ("--documents", DOCUMENTS, "--min-runs", 3, "--stop-when", 0.5, "--out", tmp_path / "out")
        code, out, err = run("mqm", *FILES, *LANGUAGES, *options, *model(server))
        assert code == 0, err
        assert 66 <= server.requests < 220
    for line in lines(tmp_path / "out"):
        assert 3 <= len(line["runs"]) <= 10
        assert line["raw"] == pytest.approx(rrwa(line["runs"]))
        assert line["half_width"] == half_width(line["runs"])
        assert line["half_width"] <= 0.5 or len(line["runs"]) == 10
        assert all(half_width(line["runs"][:asked]) > 0.5 for asked in range(3, len(line["runs"])))
    asked = sum(len(line["runs"]) for line in lines(tmp_path / "out"))
    assert f"{asked} of {asked} runs have a number" in out


def test_a_dry_run_sends_and_writes_nothing(run, tmp_path):
    with serve(Reviser()) as server:
        options = ("--documents", DOCUMENTS, "--dry-run", "--out", tmp_path / "out")
        code, out, _ = run("mqm", *FILES, *LANGUAGES, *options, *model(server))
        assert server.requests == 0
    assert code == 0
    assert "220 requests" in out
    assert not (tmp_path / "out").exists()
    _, out, _ = run("mqm", *FILES, *LANGUAGES, "--dry-run", "--lm", "openai/m")
    assert "note: all 12 lines of notices.en.txt are taken for one document" in out  # in time to name documents


def test_the_page_marks_errors_where_they_stand(run, tmp_path):
    with serve(Reviser()) as server:
        options = ("--documents", DOCUMENTS, "--out", tmp_path / "out")
        assert run("mqm", *FILES, *LANGUAGES, *options, *model(server))[0] == 0
    page = (tmp_path / "out" / "mqm.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert 'ist am Montag <mark class="major">geöffnet<sup>[1]</sup></mark>.' in page
    assert 'be with them<mark class="major"> at all times<sup>[1]</sup></mark>.' in page
    assert "http" not in page.replace("http-equiv", "")
    table = (tmp_path / "out" / "segments.tsv").read_text("utf-8").splitlines()
    assert len(table) == 37
    assert table[0].split("\t")[:5] == ["id", "system", "doc", "segment", "raw"]
    assert math.isfinite(float(table[1].split("\t")[4]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("absent.txt", FILES[1], *LANGUAGES), "absent.txt: no such file"),
        ((*FILES, "--source-lang", "English"), "--target-lang is needed"),
        ((*FILES, *LANGUAGES, "--weights", "gmeba"), "unknown weights 'gmeba'"),
        ((*FILES, *LANGUAGES, "--context", "page"), "unknown context='page'"),
        ((*FILES, *LANGUAGES, "--runs", "0"), "runs=0 must be a whole number from 1"),
        ((*FILES, *LANGUAGES, "--min-runs", "11"), "min_runs=11"),
        ((*FILES, *LANGUAGES, "--temperature", "0.1"), "--temperature 0.1 with --runs 10"),
        ((*FILES, *LANGUAGES, "--aggregate", "rwra"), "unknown aggregate 'rwra'"),
        ((*FILES, FILES[1], *LANGUAGES), "two files are named 'alpha'"),
        ((FILES[0], *LANGUAGES), "is no table"),
        ((FILES[0], FILES[1].parent / "gold.tsv", *LANGUAGES), "has 84 lines, the source has 12"),
        ((FILES[1].parent / "gold.tsv", *LANGUAGES, "--column", "translaton=mt"), "no role 'translaton'"),
        ((*FILES, *LANGUAGES, "--column", "translation=mt"), "leave them out"),
        ((*FILES, *LANGUAGES, "--column", "source=a", "--column", "source=b"), "names the source twice, 'a' and 'b'"),
        ((*FILES, *LANGUAGES, "--column", "source="), "must be ROLE=NAME"),
        ((*FILES, *LANGUAGES, "--stop-when", "-1"), "stop_when=-1.0 must be a number from 0"),
        ((*FILES, *LANGUAGES, "--stop-when", "nan"), "stop_when=nan"),
        ((*FILES, *LANGUAGES, "--stop-when", "1", "--runs", "1"), "needs at least 2 runs"),
        ((*FILES, *LANGUAGES, "--temperature", "nan"), "temperature=nan must lie between 0 and 2"),
        ((*FILES, *LANGUAGES, "--max-requests", "-3"), "a budget of -3 requests has no meaning"),
        ((*FILES, *LANGUAGES, "--max-requests", "0"), "a budget of 0 requests has no meaning"),
        ((*FILES, *LANGUAGES, "--max-seconds", "inf"), "no --max-seconds"),
        ((*FILES, *LANGUAGES, "--documents", FILES[0].parent / "gold.tsv"), "has 84 lines, the source has 12"),
        ((*FILES, *LANGUAGES, "--store", FILES[0]), "is no SQLite file"),
    ],
)
def test_wrong_inputs_say_what_to_do(run, tmp_path, arguments, message):
    code, _, err = run(
        "mqm", *arguments, "--out", tmp_path / "out", "--lm", "openai/m", "--api-base", "http://127.0.0.1:9"
    )
    assert code == 2, err
    assert message in err
    assert not (tmp_path / "out").exists()


def test_a_model_is_needed(run, tmp_path):
    code, _, err = run("mqm", *FILES, *LANGUAGES, "--out", tmp_path / "out")
    assert code == 2
    assert "--lm" in err
