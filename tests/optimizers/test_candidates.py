"""Which candidates are used, and why."""

from __future__ import annotations

import dspy
import pytest
from loopback import scripted, serve
from planted import TASK, planted_rows

from metricsmith.bank import bleu, levenshtein, rouge
from metricsmith.bank.catalogue import MetricBank
from metricsmith.errors import NeedsError, OptionError
from metricsmith.metric import make_row
from metricsmith.optimizers.candidates import Sources, gather
from metricsmith.programs.recommenders.bm25 import BM25Recommender

BANK = MetricBank((levenshtein.FAMILY, rouge.FAMILY, bleu.FAMILY))
ROWS = planted_rows(sources=8)


@pytest.mark.parametrize(
    ("bank", "rated", "has_lm", "expected"),
    [
        ("auto", 200, False, (True, False)),
        ("auto", 79, True, (False, True)),
        ("auto", 80, True, (True, True)),
        ("existing", 10, True, (True, False)),
        ("generated", 500, True, (False, True)),
        ("all", 10, True, (True, True)),
        ("none", 500, True, (False, False)),
    ],
)
def test_sources_follow_bank_rows_and_model(bank, rated, has_lm, expected):
    plan = Sources(bank=bank).resolve(rated, has_lm, has_text=True)
    assert (plan.existing, plan.generated) == expected


def test_the_papers_rule_for_few_rows_is_a_parameter_and_said():
    plan = Sources(generated_only_below=10).resolve(10, True, True)
    assert plan.existing
    assert "generated judges only" in Sources().resolve(10, True, True).notes[0]


def test_without_a_model_one_line_says_that_nothing_is_generated():
    assert Sources().resolve(10, False, True).notes == ("no language model given: nothing is generated",)


def test_without_text_only_columns_remain():
    plan = Sources(columns=["a"]).resolve(10, True, has_text=False)
    assert (plan.existing, plan.generated) == (False, False)
    with pytest.raises(NeedsError, match="needs output text"):
        Sources(bank="existing").resolve(10, True, has_text=False)


@pytest.mark.parametrize("bank", ["generated", "all"])
def test_judges_without_a_model_are_refused_with_the_way_out(bank):
    with pytest.raises(NeedsError, match="pass --lm MODEL"):
        Sources(bank=bank).resolve(100, False, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bank": "exsting"}, "did you mean 'existing'"),
        ({"k": 0}, "at least 1"),
        ({"columns": ["a"], "prior_columns": ["b"]}, "'b' is not among the metric columns"),
    ],
)
def test_sources_without_meaning_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        Sources(**options)


def pool(rows=ROWS, has_lm=False, **options):
    sources = Sources(metrics=BANK, **options)
    plan = sources.resolve(len(rows), has_lm, True)
    return gather(rows, TASK, sources, plan, BM25Recommender())


def test_the_bank_offers_every_output_and_columns_come_first():
    candidates = pool(columns=["good"], prior_columns=["good"])
    names = [metric.name for metric in candidates.metrics]
    assert names[0] == "good"
    assert {"levenshtein_distance", "bleu", "rouge1_r", "rouge_l_f"} <= set(names)
    assert candidates.declared == {"good"}
    assert not candidates.costly


def test_k_counts_metrics_not_outputs():
    candidates = pool(k=2)
    assert len({metric.card.name for metric in candidates.metrics}) == 2
    assert "retrieval kept 2 of 3 metrics" in candidates.notes


def test_metrics_that_lack_texts_are_left_out_and_said():
    rows = [make_row(f"text {number}", rating=number % 5 + 1) for number in range(10)]
    with pytest.raises(OptionError, match="no candidate metric"):
        pool(rows)
    candidates = gather(
        rows, TASK, Sources(metrics=BANK, columns=["x"]), Sources().resolve(10, False, True), BM25Recommender()
    )
    assert [metric.name for metric in candidates.metrics] == ["x"]
    assert any("no row has references" in note and "bleu" in note for note in candidates.notes)


def test_generated_judges_are_declared_and_get_names_of_their_own():
    def answer(prompt):
        found = scripted(prompt)
        if "axes" in found:
            found["axes"][0] = {"name": "BLEU", "meaning": "Takes a bank metric's name."}
        return found

    with serve(answer) as server, dspy.context(lm=server.lm()):
        candidates = pool(has_lm=True, bank="all", generators={"criterion": 2})
    assert candidates.judged == {"bleu_2", "plain_words"}
    assert candidates.declared == candidates.judged
    assert candidates.costly
    assert candidates.usage.requests == 1
