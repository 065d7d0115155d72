"""The options that name metrics with weights and their places."""

from __future__ import annotations

import json
import re

import pytest

from planted import planted_rows

RATED = ("--target", "rating", "--output", "output", "--reference", "ref", "--group", "group")


@pytest.fixture
def rated(tmp_path):
    path = tmp_path / "rated.jsonl"
    cells = [
        {"output": row.output, "ref": row.references[0], "rating": row.rating, "group": row.group}
        for row in planted_rows(20)
    ]
    path.write_text("\n".join(map(json.dumps, cells)), "utf-8")
    return path


def test_the_bank_lists_metrics_with_weights_and_those_that_lack_them(run, tmp_path):
    code, out, _ = run("bank", "list", "--models", "--local", f"bertscore={tmp_path / 'nowhere'}")
    (line,) = [line for line in out.splitlines() if line.split()[0] == "bertscore"]
    assert (code, line.split()[:4]) == (0, ["bertscore", "1.43", "1.60", "no"])
    assert "see the model's card" in line
    cards = json.loads(run("bank", "list", "--models", "--json")[1])
    assert {card["cost"] for card in cards} == {"local"}
    assert next(card for card in cards if card["weights"] == "bertscore")["checkpoint"]["model"] == "roberta-large"


def test_the_bank_shows_a_metric_with_weights(run):
    code, out, _ = run("bank", "show", "bertscore")
    assert code == 0
    assert out.startswith("## BERTScore")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--local", "bertscore"), "--local bertscore must be NAME=PATH"),
        (("--local", "=here"), "--local =here must be NAME=PATH"),
        (("--local", "bleu=here"), "no metric 'bleu' with weights"),
        (("--models", "bertscore,nonsense"), "no metric 'nonsense' with weights"),
    ],
)
def test_names_and_places_are_checked_before_any_work(run, rated, arguments, said):
    code, _, err = run("induce", rated, *RATED, *arguments)
    assert code == 2
    assert said in err


def test_a_dry_run_says_which_metrics_are_left_out_and_why(run, rated, tmp_path):
    place = f"bertscore={tmp_path / 'nowhere'}"
    code, out, _ = run("induce", rated, *RATED, "--models", "bertscore", "--local", place, "--dry-run")
    (line,) = [line for line in out.splitlines() if line.endswith(": bertscore_p, bertscore_r, bertscore_f")]
    assert code == 0
    assert line.startswith(("left out because weights not on this machine", "left out because torch is not installed"))


@pytest.mark.extras
def test_a_saved_metric_scores_with_the_weights_that_local_names(run, rated, tmp_path):
    import tiny_models

    out, copy = tmp_path / "out", tmp_path / "copy"
    place = tiny_models.build("bleurt", tmp_path)
    local = ("--local", f"bleurt={place}")
    code, said, _ = run("induce", rated, *RATED, *local, "--bank", "existing", "--full", "--out", out)
    assert code == 0
    (line,) = [line for line in said.splitlines() if line.startswith("bleurt (")]
    assert re.search(r", revision main, sha256 [0-9a-f]{12}\): ", line)
    code, scored, _ = run("score", out / "metric.json", rated, *local)
    assert code == 0
    place.rename(copy)
    code, _, err = run("score", out / "metric.json", rated, *local)
    assert code != 0
    assert "weights not on this machine" in err
    assert run("score", out / "metric.json", rated, "--local", f"bleurt={copy}")[:2] == (0, scored)


def test_the_table_of_26_has_mauve_which_compares_sets(run, tmp_path):
    code, out, _ = run("bank", "list", "--models", "--local", f"mauve={tmp_path / 'nowhere'}")
    (line,) = [line for line in out.splitlines() if "(compares sets)" in line]
    assert (code, line.split()[0]) == (0, "mauve")
    listed = json.loads(run("bank", "list", "--models", "--json")[1])
    assert len(listed) == 26
    assert [card["weights"] for card in listed if card["sets"]] == ["mauve"]
    assert run("bank", "show", "mauve")[1].startswith("## MAUVE")
    assert run("bank", "check", "mauve")[:2] == (0, "mauve: no published number known\n")


@pytest.mark.extras
def test_a_metric_whose_network_fails_ends_the_command_with_3_and_keeps_the_rest(run, rated, tmp_path, monkeypatch):
    import tiny_models
    from metricsmith.bank.models import bleurt

    local = ("--local", f"bleurt={tiny_models.build('bleurt', tmp_path)}")
    out, scores = tmp_path / "out", tmp_path / "scores.csv"
    assert run("induce", rated, *RATED, *local, "--bank", "existing", "--full", "--out", out)[0] == 0

    def broken(batch, outputs):
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(bleurt, "compute", broken)
    code, _, err = run("score", out / "metric.json", rated, *local, "--out", scores)
    assert code == 3
    assert "60 of 60 model judgements failed (60 transport), the first: bleurt: RuntimeError: no such kernel" in err
    assert len(scores.read_text("utf-8").splitlines()) == 61
