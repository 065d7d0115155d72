"""``metricsmith mqm --judge``: every scale by one command, with planted numbers that come out as means."""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np
import pytest

from faults import draw
from loopback import serve
from metricsmith.datasets.segments import read_translations
from metricsmith.programs.judges.direct_assessment import CLASSES
from reviser import DOCUMENTS, FENCED, FILES

LANGUAGES = ("--source-lang", "English", "--target-lang", "German")
LEVELS = {"da": (0, 100), "sqm": (0, 100), "esa": (0, 100), "stars": (1, 5), "classes": (0, 4)}
TITLES = {"da": "DA", "sqm": "SQM", "esa": "ESA", "stars": "Star rating", "classes": "Quality class"}


def planted(kind, translation):
    """The number of a translation: a whole one on the scale, drawn from its text."""
    low, high = LEVELS[kind]
    return low + int(draw(translation, 0, 7) * (high - low + 1))


def answering(kind, move=lambda attempt: 0):
    """A model that gives each translation its planted number, moved by how often it was asked for it."""
    asked = defaultdict(int)

    def answer(prompt):
        translation = {name: text for name, _, text in FENCED.findall(prompt)}["translation"]
        number = planted(kind, translation) + move(asked[translation])
        asked[translation] += 1
        if kind == "classes":
            return {"reasoning": "Weighed.", "quality": CLASSES[number]}
        if kind == "esa":
            error = {"span": translation.split()[0], "type": "style/awkward", "description": "stiff"}
            errors = {"major": [], "minor": [error]}
            return {"errors": json.dumps(errors), "reasoning": "Weighed.", "score": str(number)}
        return {"reasoning": "Weighed.", "score": str(number)}

    return answer


def model(server):
    return ("--lm", "openai/judges", "--api-base", f"http://127.0.0.1:{server.port}/v1")


def lines(folder):
    return [json.loads(line) for line in (folder / "segments.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("kind", LEVELS)
def test_planted_numbers_come_out_as_means_of_documents_and_systems(run, tmp_path, kind):
    with serve(answering(kind)) as server:
        options = ("--judge", kind, "--documents", DOCUMENTS, "--out", tmp_path / "out", "--json")
        code, out, err = run("mqm", *FILES, *LANGUAGES, *options, *model(server))
        assert code == 0, err
        assert server.requests == 22  # one for each different text
    record, (low, high) = json.loads(out), LEVELS[kind]
    expected = defaultdict(list)
    for row in read_translations(FILES[0], FILES[1:], documents=DOCUMENTS).rows:
        expected[row.system, ""].append(planted(kind, row.output))
        expected[row.system, row.doc].append(planted(kind, row.output))
    means = {(line["system"], line["document"]): line for line in [*record["systems"], *record["documents"]]}
    assert {place: line["mean"] for place, line in means.items()} == {
        place: pytest.approx(np.mean(numbers)) for place, numbers in expected.items()
    }
    assert all(low <= line["low"] <= line["mean"] <= line["high"] <= high for line in means.values())
    by_mean = sorted((line["mean"] for line in record["systems"]), reverse=True)
    assert [line["mean"] for line in record["systems"]] == by_mean
    assert [line["difference"] for line in record["differences"]] == pytest.approx(
        [by_mean[0] - m for m in by_mean[1:]]
    )
    assert all(0 < line["p_segment"] <= 1 and 0 < line["p_document"] <= 1 for line in record["differences"])
    assert record["metric"] == kind
    for line in lines(tmp_path / "out"):
        assert (line["runs"], line["kept"], line["half_width"]) == ([line["raw"]], 1, None)
        assert line["raw"] == planted(kind, line["translation"])
        assert (line["errors"] and [error["found"] for error in line["errors"]]) == ([1] if kind == "esa" else None)
        assert ("reasons" in line) is (kind != "esa")
    table = (tmp_path / "out" / "segments.tsv").read_text("utf-8").splitlines()
    assert len(table) == 37
    for file in ("mqm.html", "mqm.md"):
        page = (tmp_path / "out" / file).read_text("utf-8")
        assert f"{TITLES[kind]} of " in page
        assert "MQM" not in page.replace("metricsmith mqm", "").replace("GEMBA-MQM", "")
        shown = page.split("<main")[-1].split("How to read this")[0]
        assert ("error" in shown) is (kind == "esa")
        assert "of 1 runs" not in page
    if kind == "esa":
        legend = '<mark class="major">Major</mark> and <mark class="minor">minor</mark> errors that the model found.'
        assert legend in (tmp_path / "out" / "mqm.html").read_text("utf-8")


def test_terminal_names_the_scale_and_counts_judgements(run, tmp_path):
    with serve(answering("stars")) as server:
        options = ("--judge", "stars", "--documents", DOCUMENTS, "--out", tmp_path / "out")
        code, out, err = run("mqm", *FILES, *LANGUAGES, *options, *model(server))
    assert code == 0, err
    assert "36 of 36 judgements have a number" in out
    assert "system  Star rating" in " ".join(out.split("\n\n")[1].splitlines()[:1])
    assert "or bad translations may not have come up" in out


@pytest.mark.parametrize("kind", ["da", "esa"])
def test_several_runs_become_their_mean(run, tmp_path, kind):
    with serve(answering(kind, lambda attempt: (attempt % 3) / 10 - 0.1)) as server:
        options = (
            "--judge",
            kind,
            "--runs",
            3,
            "--documents",
            DOCUMENTS,
            "--out",
            tmp_path / "out",
            "--concurrency",
            1,
        )
        code, out, err = run("mqm", *FILES, *LANGUAGES, *options, *model(server))
        assert code in (0, 3), err
        assert server.requests >= 66
    segments = lines(tmp_path / "out")
    whole = [line for line in segments if None not in line["runs"]]
    assert len(whole) > 30  # a planted 0 or 100 moves off the scale
    for line in whole:
        assert line["raw"] == pytest.approx(np.mean(line["runs"])) == pytest.approx(planted(kind, line["translation"]))
        assert len(line["runs"]) == 3
        assert 0 < line["half_width"] < 0.3
        assert (line["errors"] and [error["found"] for error in line["errors"]]) == ([3] if kind == "esa" else None)
    assert segments[0]["metric"] == kind
    page = (tmp_path / "out" / "mqm.html").read_text("utf-8")
    assert "3 of 3 runs, from " in page
    assert ("errors that at least half of the runs found" in page) is (kind == "esa")
    assert "runs have a number" in out


def test_runs_that_agree_end_early(run, tmp_path):
    with serve(answering("da")) as server:
        options = ("--judge", "da", "--runs", 5, "--min-runs", 2, "--stop-when", 1, "--aggregate", "median")
        code, _, err = run("mqm", *FILES[:2], *LANGUAGES, *options, "--out", tmp_path / "out", *model(server))
        assert code == 0, err
        assert server.requests == 24
    assert all(line["runs"] == [line["raw"]] * 2 for line in lines(tmp_path / "out"))


def test_references_are_shown_all_of_them_and_only_to_a_judge_that_asks(run, tmp_path):
    with serve(answering("da")) as server:
        files = ("--references", FILES[2], "--references", FILES[3])
        options = ("--judge", "da", "--out", tmp_path / "out")
        code, _, err = run("mqm", *FILES[:2], *LANGUAGES, *options, *files, *model(server))
        assert code == 0, err
        first = [path.read_text("utf-8").splitlines()[0] for path in FILES[1:]]
        prompt = next(text for text in server.prompts if all(line in text for line in first))
    asked = prompt.rsplit("[[ ## references ## ]]", 1)[-1].split("[[ ## ")[0]
    assert first[1] in asked
    assert first[2] in asked
    assert lines(tmp_path / "out")[0]["metric"] == "da_ref"
    page = (tmp_path / "out" / "mqm.html").read_text("utf-8")
    assert "beside translations by people" in page


def test_a_line_without_a_reference_has_no_score_and_says_why(run, tmp_path):
    text = FILES[2].read_text("utf-8").splitlines()
    holed = tmp_path / "holed.txt"
    holed.write_text("\n".join([*text[:11], ""]) + "\n", "utf-8")
    with serve(answering("sqm")) as server:
        options = ("--judge", "sqm", "--references", holed, "--out", tmp_path / "out")
        code, out, err = run("mqm", *FILES[:2], *LANGUAGES, *options, *model(server))
    assert code == 0, err
    last = lines(tmp_path / "out")[-1]
    assert (last["raw"], last["status"]) == (None, "skipped")
    assert "no reference" in last["error"]
    assert "1 of 12 segments have no score (1 skipped)" in out


def test_a_table_gives_references_in_a_column_that_is_named(run, tmp_path):
    rows = read_translations(FILES[0], FILES[1:2], references=FILES[2:3]).rows
    content = [{"src": row.input, "mt": row.output, "human": row.references[0]} for row in rows]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, content)), "utf-8")
    for column, name in (((), "classes"), (("--column", "reference=human"), "classes_ref")):
        with serve(answering("classes")) as server:
            options = ("--judge", "classes", *column, "--out", tmp_path / name)
            assert run("mqm", path, *LANGUAGES, *options, *model(server))[0] == 0
            shown = any(content[0]["human"] in text for text in server.prompts)
        assert shown is bool(column)
        assert lines(tmp_path / name)[0]["metric"] == name


def test_an_esa_judge_is_held_against_peoples_ratings_in_the_layout_of_mt_metrics_eval(run, tmp_path):
    human, outputs = tmp_path / "human-scores", tmp_path / "system-outputs" / "en-de"
    for folder in (human, outputs, tmp_path / "sources", tmp_path / "documents"):
        folder.mkdir(parents=True)
    (tmp_path / "sources" / "en-de.txt").write_bytes(FILES[0].read_bytes())
    (tmp_path / "documents" / "en-de.docs").write_bytes(DOCUMENTS.read_bytes())
    ratings, scores = [], []
    for target in FILES[1:]:
        (outputs / target.name).write_bytes(target.read_bytes())
        for line in target.read_text("utf-8").splitlines():
            error = {"start": 0, "end": len(line.split()[0]), "severity": "minor", "is_source_error": False}
            ratings.append(f"{target.stem}\t{json.dumps({'errors': [error]})}\tr1\n")
            scores.append(f"{target.stem}\t{planted('esa', line)}\n")
    gold = human / "en-de.esa.seg.rating"
    gold.write_text("".join(ratings), "utf-8")
    gold.with_suffix(".score").write_text("".join(scores), "utf-8")
    with serve(answering("esa")) as server:
        options = ("--judge", "esa", "--documents", DOCUMENTS, "--out", tmp_path / "out")
        assert run("mqm", *FILES, *LANGUAGES, *options, *model(server))[0] == 0
    code, out, err = run("meta-eval", tmp_path / "out" / "segments.jsonl", gold, "--resamples", 50, "--json")
    assert code == 0, err
    record = json.loads(out)
    assert "segments were matched by document and segment" in record["notes"]
    assert "the rating is that of en-de.esa.seg.score, which lies beside it" in record["notes"]
    assert record["target"] == "esa"
    # The judge gives what people gave, cell by cell.
    assert all(task["metrics"][0]["value"] == pytest.approx(1) for task in record["tasks"] if task["task"] == "acc-t")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--judge", "star"), "--judge 'star' is unknown (did you mean 'stars'?)"),
        (("--judge", "da", "--weights", "gemba"), "--weights belongs to --judge mqm, and --judge da takes none"),
        (("--references", FILES[1]), "--references belongs to --judge da, sqm, stars, classes, and --judge mqm"),
        (("--judge", "esa", "--references", FILES[1]), "--judge esa takes none: leave it out"),
        (("--judge", "esa", "--column", "reference=a"), "--column reference=... belongs to --judge da"),
        (("--judge", "da", "--aggregate", "mean"), "--aggregate mean is about several runs, and --judge da is asked"),
        (("--judge", "sqm", "--min-runs", "2"), "--min-runs 2 is about several runs"),
        (("--judge", "esa", "--stop-when", "2"), "--stop-when 2.0 is about several runs"),
        (("--judge", "da", "--runs", "0"), "runs=0 must be a whole number from 1"),
        (("--judge", "da", "--runs", "2", "--temperature", "0"), "--temperature 0 with --runs 2"),
        (("--judge", "da", "--temperature", "nan"), "--temperature nan must be a number from 0"),
        (("--judge", "da", "--references", FILES[1].parent / "gold.tsv"), "has 84 lines, the source has 12"),
        (("--judge", "da", "--references", "absent.txt"), "absent.txt: no such file"),
    ],
)
def test_wrong_inputs_say_what_to_do(run, tmp_path, arguments, message):
    place = ("--out", tmp_path / "out", "--lm", "openai/m", "--api-base", "http://127.0.0.1:9")
    code, _, err = run("mqm", *FILES, *LANGUAGES, *arguments, *place)
    assert code == 2, err
    assert message in " ".join(err.split())
    assert not (tmp_path / "out").exists()
