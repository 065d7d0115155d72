"""The command that compares published numbers with those that the weights on this machine give."""

from __future__ import annotations

from dataclasses import replace

import pytest

from metricsmith.bank.models import published

ROWS = [{"output": "a cat sat here", "references": ["the dog sat there"]}, {"output": "", "references": ["a cat"]}]


def stated(monkeypatch, *numbers):
    monkeypatch.setattr(published, "published_numbers", lambda: numbers)


@pytest.fixture(scope="module")
def roberta(tmp_path_factory):
    import tiny_models

    return tiny_models.build("roberta", tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def numbers(roberta):
    """Those of a run of ours, which only a test takes for published."""
    from metricsmith.bank.weighted import model_family

    metric = model_family("bertscore", path=str(roberta), settings={"layer": 2}).metrics()[2]
    found = metric.score(**ROWS[0])
    return published.PublishedNumbers(
        "bertscore", {metric.name: [found]}, 1e-6, "card of some/model", ROWS[:1], {"layer": 2}, ""
    )


@pytest.mark.extras
def test_equal_numbers_are_ok(run, monkeypatch, numbers, roberta):
    stated(monkeypatch, numbers)
    code, out, err = run("bank", "check", "bertscore_f", "--local", f"bertscore={roberta}")
    assert code == 0, err
    heading, line = out.splitlines()
    assert heading == "bertscore (layer=2): card of some/model"
    assert line.startswith("  bertscore_f 1: expected ")
    assert line.endswith("  ok")


@pytest.mark.extras
def test_other_numbers_are_shown_and_end_with_3(run, monkeypatch, numbers, roberta):
    value = numbers.expected["bertscore_f"][0]
    missing = replace(numbers, rows=ROWS, expected={"bertscore_f": [value + 0.5, 0.0]})
    stated(monkeypatch, missing)
    code, out, err = run("bank", "check", "bertscore", "--local", f"bertscore={roberta}")
    assert code == 3
    assert "error: 2 of 2 numbers differ from those published" in err
    first, second = out.splitlines()[1:]
    assert "-0.500000" in first
    assert first.endswith("differs")
    assert "found nan, +nan the output is empty  differs" in second


def test_a_metric_without_published_numbers_says_so(run, monkeypatch):
    stated(monkeypatch)
    assert run("bank", "check", "bertscore")[:2] == (0, "bertscore: no published number known\n")


def test_numbers_of_other_weights_are_compared_with_these_alone(run, monkeypatch, numbers_of_others):
    stated(monkeypatch, numbers_of_others)
    code, out, _ = run("bank", "check", "bertscore")
    assert (code, out) == (
        0,
        "bertscore: no published number known; those for small/one are compared with --local bertscore=PATH\n",
    )


@pytest.fixture
def numbers_of_others():
    return published.PublishedNumbers("bertscore", {"bertscore_f": [1.0]}, 1e-6, "a card", ROWS[:1], {}, "small/one")


@pytest.mark.extras
def test_without_weights_it_names_the_command_that_fetches_them(run, tmp_path, monkeypatch, numbers_of_others):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "none"))
    stated(monkeypatch, replace(numbers_of_others, id=""))
    code, _, err = run("bank", "check", "bertscore")
    assert code == 2
    assert "`metricsmith bank fetch bertscore`" in err
    code, _, err = run("bank", "check", "bertscore", "--local", f"bertscore={tmp_path / 'none'}")
    assert code == 2
    assert f"bertscore: {tmp_path / 'none'}: no such file or folder" in err


@pytest.mark.parametrize(
    ("local", "said"),
    [(("bertscore",), "must be NAME=PATH"), (("bertscore=a", "bertscore=b"), "names bertscore twice")],
)
def test_places_are_read_as_for_an_induction(run, local, said):
    code, _, err = run("bank", "check", "bertscore", *(part for one in local for part in ("--local", one)))
    assert code == 2
    assert said in err
