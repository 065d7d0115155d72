"""The card of MAUVE, and its place beside the metrics of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import metricsmith.bank
import tiny_texts
from metricsmith.bank.base import TextBatch
from metricsmith.bank.catalogue import full_bank, whole_table
from metricsmith.bank.corpus import mauve as compare_sets
from metricsmith.bank.models import mauve, perplexity
from metricsmith.bank.models.engine.causal import last_states
from metricsmith.bank.weighted import CORPUS_MODELS, MODELS, model_name
from metricsmith.errors import OptionError


def test_it_is_in_the_table_and_no_candidate_for_rows():
    assert CORPUS_MODELS == ("mauve",)
    assert not {*CORPUS_MODELS} & {*MODELS}
    assert "mauve" not in [metric.name for metric in full_bank("all").metrics()]
    for refused in (lambda: full_bank(["MAUVE"]), lambda: full_bank("all").get("mauve")):
        with pytest.raises(OptionError, match=r"has no number for a row: metricsmith.bank.corpus.mauve\(outputs"):
            refused()
    assert metricsmith.bank.mauve is compare_sets


def test_the_whole_table_has_its_card_and_its_weights_and_computes_no_row():
    (family,) = {*whole_table({"mauve": "here"}).families} - {*full_bank("all").families}
    assert (family.card.name, family.model.path, model_name("MAUVE")) == ("MAUVE", "here", "mauve")
    with pytest.raises(OptionError, match="has no number for a row"):
        family.compute(TextBatch([], [], [], None, family.model), ["mauve"])


def test_it_shares_its_weights_with_perplexity():
    assert (mauve.MODEL.id, mauve.MODEL.head) == (perplexity.MODEL.id, perplexity.MODEL.head)
    assert not hasattr(mauve, "compute")


@pytest.mark.extras
def test_a_set_and_itself_in_another_order_give_one_and_other_sets_less(tiny):
    texts = tiny_texts.sentences(60)
    place = tiny("gpt2")
    same = compare_sets(texts, texts[::-1], local=place, device="cpu")
    assert (same.value, same.clusters, same.outputs, same.references) == (1.0, 6, 60, 60)
    assert same.notes == ("60 texts on a side: fewer than 1,000 make the number too high",)
    other = compare_sets(
        [f"{text} {text}" for text in texts[:40]], [*texts, " ", ""], local=place, device="cpu", clusters=5
    )
    assert 0.0 < other.value < 0.9
    assert (other.clusters, other.notes[0]) == (5, "2 blank texts are left out")
    assert other == compare_sets(
        [f"{text} {text}" for text in texts[:40]], [*texts, " ", ""], local=place, device="cpu", clusters=5
    )


@pytest.mark.extras
def test_features_are_the_last_tokens_last_hidden_states(tiny):
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny("gpt2"))
    model = AutoModel.from_pretrained(tiny("gpt2")).eval()
    texts = [*tiny_texts.sentences(7), " ".join(tiny_texts.sentences(8))]
    expected = []
    for text in texts:
        ids = tokenizer([text], return_tensors="pt", truncation=True, max_length=64)
        with torch.inference_mode():
            expected.append(model(**ids, output_hidden_states=True).hidden_states[-1][0, -1].numpy())
    found = last_states(replace(mauve.MODEL, path=str(tiny("gpt2")), device="cpu"), texts)
    assert found == pytest.approx(np.array(expected), abs=1e-5)
