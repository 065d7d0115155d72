"""`--finetune`: a metric that is trained in each pass, and the baselines of `compare`, from the command line."""

from __future__ import annotations

import json

import pytest

import finetuning
from finetuning import lettered_rows
from planted import planted_rows

NAMED = ("--target", "rating", "--output", "output", "--group", "group", "--scale", "-10:10")


@pytest.fixture
def letters(tmp_path):
    lines = [json.dumps({name: row[name] for name in ("output", "group", "rating")}) for row in lettered_rows(80)]
    (tmp_path / "letters.jsonl").write_text("\n".join(lines), "utf-8")
    return tmp_path / "letters.jsonl"


def test_induce_trains_a_candidate_and_saves_its_weights_beside_the_metric(run, letters, tmp_path, monkeypatch):
    finetuning.without_network(monkeypatch)
    options = (*NAMED, "--bank", "none", "--test", 0.3, "--out", tmp_path / "out")
    code, out, err = run("induce", letters, *options, "--finetune", "minilm", "--dry-run")
    assert (code, "0 columns, 1 of your own" in out) == (0, True), err
    code, _, err = run("induce", letters, *options, "--finetune", "minilm")
    assert code == 0, err
    state = json.loads((tmp_path / "out" / "metric.json").read_text("utf-8"))
    (component,) = state["components"]
    assert (component["kind"], component["encoder"], component["task"]["target"]) == ("finetuned", "minilm", "rating")
    assert (tmp_path / "out" / f"{component['weights']}.safetensors").exists()
    assert "was cross-fitted by group" in (tmp_path / "out" / "report.md").read_text("utf-8")


def test_compare_has_it_as_a_baseline(run, letters, tmp_path, monkeypatch):
    finetuning.without_network(monkeypatch)
    options = (*NAMED, "--methods", "finetuned,best_existing", "--seeds", 1, "--out", tmp_path / "out")
    code, out, err = run("compare", letters, *options, "--finetune", "minilm=some/folder")
    assert code == 0, err
    assert "Finetuned LLM" in out
    code, out, err = run("compare", letters, *options)
    assert code == 0, err
    assert "not run: Finetuned LLM: it needs an encoder: name one with --finetune NAME" in out


def test_an_unknown_encoder_is_refused_before_anything_else(run, own, write_own, tmp_path):
    write_own(own, planted_rows(sources=12))
    code, _, err = run("induce", own, "--target", "rating", "--finetune", "minillm", "--out", tmp_path / "out")
    assert code == 2
    assert "minillm" in err
    assert "did you mean 'minilm'" in err or "minilm" in err
    assert not (tmp_path / "out").exists()


def test_weights_that_are_not_there_are_told_by_the_name_of_the_option(run, letters, tmp_path):
    code, _, err = run("induce", letters, *NAMED, "--finetune", "minilm=nowhere", "--out", tmp_path / "out")
    assert code == 2
    assert "--finetune minilm=nowhere: " in err
    assert "metrics[" not in err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--finetune", "minilm"), "--methods names none"),
        (("--finetune", "", "--methods", "finetuned"), "must be one of modernbert_large"),
        (("--methods", "finetuned"), "no method can be run: finetuned needs an encoder"),
        (("--methods", "finetuned", "--finetune", "minilm=nowhere"), "nowhere: no such file"),
    ],
)
def test_compare_says_what_the_finetuned_baselines_lack(run, letters, tmp_path, options, says):
    code, _, err = run("compare", letters, *NAMED, *options, "--seeds", 1, "--out", tmp_path / "out")
    assert code == 2
    assert says in err
    assert not (tmp_path / "out").exists()
