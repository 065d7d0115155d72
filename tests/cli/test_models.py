"""The options that name metrics with weights and their places."""

from __future__ import annotations

import json
import re

import pytest

from metricsmith.bank.models.finetuned import ENCODERS
from metricsmith.bank.weighted import CORPUS_MODELS, MODELS, model_family
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
    line = next(line for line in out.splitlines() if line.split()[0] == "bertscore")
    assert (code, line.split()[:5]) == (0, ["bertscore", "1.43", "1.60", "no", "–"])
    head, *_ = out.splitlines()
    assert max(map(len, out.split("licence")[0].splitlines())) <= 120
    assert "licence" not in head
    assert out.count("licence: see the model's card") == 1
    assert f"{tmp_path / 'nowhere'}: no such file or folder" in out
    cards = json.loads(run("bank", "list", "--models", "--json")[1])
    assert {card["cost"] for card in cards} == {"local"}
    assert next(card for card in cards if card["weights"] == "bertscore")["checkpoint"]["model"] == "roberta-large"


def test_encoders_that_are_fetched_by_name_are_listed_below(run, nothing_here):
    lines = [line.split() for line in run("bank", "list", "--models")[1].splitlines()]
    head = next(place for place, line in enumerate(lines) if line[:3] == ["encoder", "for", "--finetune"])
    assert [line[0] for line in lines[head + 1 :]] == list(ENCODERS)
    assert lines[head + 2] == ["modernbert_base", "0.60", "1.00", "no"]


def test_absent_weights_have_one_line_with_one_command(run, nothing_here):
    lines = run("bank", "list", "--models")[1].splitlines()
    assert sum("bank fetch NAME`" in line for line in lines) <= 2  # alone, and beside an absent module


def test_the_plain_list_says_where_the_others_are(run):
    assert (
        run("bank", "list")[1].splitlines()[-1] == "26 more with weights are listed by `metricsmith bank list --models`"
    )


@pytest.mark.parametrize("name", [*MODELS, *CORPUS_MODELS])
def test_the_bank_shows_a_metric_with_weights_by_its_name_in_our_table(run, name):
    code, out, _ = run("bank", "show", name)
    assert code == 0
    assert out.startswith(f"## {model_family(name).card.name}\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--local", "bertscore"), "--local bertscore must be NAME=PATH"),
        (("--local", "=here"), "--local =here must be NAME=PATH"),
        (("--local", "bleu=here"), "no metric 'bleu' with weights"),
        (("--models", "bertscore,nonsense"), "no metric 'nonsense' with weights"),
        (("--models", "smal"), "did you mean 'small'?"),
        (("--models", "small,bleurt"), "'small' stands alone: give small, or all, or names"),
        (
            ("--models", "bleurt", "--bank", "none"),
            "bank='none' takes no metric of the bank, and bank_models (--models)",
        ),
        (("--local", "bertscore=a", "--local", "bertscore_f=b"), "--local names bertscore twice, a and b"),
    ],
)
def test_names_and_places_are_checked_before_any_work(run, rated, arguments, said):
    code, _, err = run("induce", rated, *RATED, *arguments)
    assert code == 2
    assert said in err


@pytest.fixture
def nothing_here(monkeypatch, tmp_path):
    """An empty cache of the hub."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.file_download.HF_HUB_CACHE", str(tmp_path / "cache"), raising=False)


def test_a_dry_run_says_which_metrics_are_left_out_and_why(run, rated, nothing_here):
    code, out, _ = run("induce", rated, *RATED, "--models", "small", "--dry-run")
    (line,) = [line for line in out.splitlines() if ", toxicity, " in line]
    assert code == 0
    assert line.startswith(("left out because weights not on this machine", "left out because torch is not installed"))
    assert "`metricsmith bank fetch NAME`: infolm, moverscore, " in line


@pytest.mark.extras
def test_one_line_on_the_terminal_counts_the_metrics_that_are_left_out(run, rated, nothing_here, tmp_path):
    code, _, err = run("induce", rated, *RATED, "--models", "small", "--bank", "existing", "--out", tmp_path / "out")
    assert code == 0
    said = (
        "note: 10 of 10 metrics with weights are left out: weights not on this machine: `metricsmith bank fetch NAME`"
    )
    assert [line for line in err.splitlines() if "left out" in line] == [said]
    assert "left out because weights not on this machine" in (tmp_path / "out" / "report.json").read_text("utf-8")


@pytest.mark.parametrize("option", ["--models", "--local"])
def test_a_metric_named_by_hand_that_cannot_be_computed_ends_the_run_before_it_starts(
    run, rated, option, nothing_here, tmp_path
):
    named = "bleurt" if option == "--models" else f"bleurt={tmp_path / 'nowhere'}"
    code, out, err = run("induce", rated, *RATED, option, named, "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert "error: bleurt: " in err
    reason = (
        "`metricsmith bank fetch bleurt`" if option == "--models" else f"{tmp_path / 'nowhere'}: no such file or folder"
    )
    assert reason in err
    assert ("fetch" in err) == (option == "--models")
    assert not (tmp_path / "out").exists()


@pytest.mark.extras
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pytorch_model.bin", "has its weights as a pickle (pytorch_model.bin), which could run code when read"),
        ("config.json", "has no *.safetensors"),
        ("", "is a file: name the folder"),
    ],
)
def test_a_place_without_weights_that_can_be_read_is_refused_before_the_run(run, rated, tmp_path, name, said):
    place = tmp_path / "place"
    (place.mkdir(), (place / name).touch()) if name else place.touch()
    code, _, err = run("induce", rated, *RATED, "--local", f"bleurt={place}")
    assert code == 2
    assert f"bleurt: {place} {said}" in err


@pytest.mark.extras
def test_a_checkpoint_of_another_kind_is_refused_before_the_run(run, rated, tmp_path):
    import tiny_models

    place = tiny_models.build("gpt2", tmp_path)
    code, _, err = run("induce", rated, *RATED, "--local", f"bleurt={place}")
    assert code == 2
    assert f"bleurt: the checkpoint {place} is a gpt2, and bleurt takes bleurt" in err


@pytest.mark.extras
def test_a_dry_run_names_the_metrics_with_weights_and_their_memory(run, rated, tmp_path):
    import tiny_models

    place = tiny_models.build("bleurt", tmp_path)
    code, out, _ = run("induce", rated, *RATED, "--local", f"bleurt={place}", "--dry-run")
    assert code == 0
    assert "with weights, and the memory of each: BLEURT (2.6 GB)" in out.splitlines()


@pytest.mark.extras
def test_a_saved_metric_scores_with_the_weights_that_local_names(run, rated, tmp_path):
    import tiny_models

    out, copy = tmp_path / "out", tmp_path / "copy"
    place = tiny_models.build("bleurt", tmp_path)
    local = ("--local", f"bleurt={place}")
    code, said, _ = run("induce", rated, *RATED, *local, "--bank", "existing", "--full", "--out", out)
    assert code == 0
    (line,) = [line for line in said.splitlines() if line.startswith("bleurt (")]
    at_hand = r"weights at hand in place of [\w/-]+, sha256 [0-9a-f]{12}"
    assert re.search(rf"\({at_hand}\): ", line)
    saved = "".join(path.read_text("utf-8") for path in out.iterdir())
    assert str(place) not in saved
    assert re.search(r'"id": "weights at hand in place of', saved)
    assert re.search(at_hand, (out / "report.md").read_text("utf-8"))
    code, scored, _ = run("score", out / "metric.json", rated, *local)
    assert code == 0
    place.rename(copy)
    code, _, err = run("score", out / "metric.json", rated, *local)
    assert code != 0
    assert f"{place}: no such file or folder" in err
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


@pytest.mark.extras
def test_a_network_that_fails_in_every_fold_is_told_once_and_counts_as_no_judge(run, rated, tmp_path, monkeypatch):
    import tiny_models
    from metricsmith.bank.models import bleurt

    def broken(batch, outputs):
        raise RuntimeError(f"no such kernel for {batch.outputs[0]}")

    local, out = ("--local", f"bleurt={tiny_models.build('bleurt', tmp_path)}"), tmp_path / "out"
    monkeypatch.setattr(bleurt, "compute", broken)
    code, _, err = run("induce", rated, *RATED, *local, "--bank", "existing", "--cv", "3", "--out", out)
    assert code == 0
    assert err.count("bleurt: not computed any further") == 1
    report = (out / "report.md").read_text("utf-8")
    assert "Of the metrics with weights 1 fell away: bleurt." in report
    assert "judges fell away" not in report
