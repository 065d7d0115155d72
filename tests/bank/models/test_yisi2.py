"""YiSi-2: the formula one row at a time, frequencies of both sides, and rows without a number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.metric import make_row
from metricsmith.records import Status
from model_cases import tiny_family

pytestmark = pytest.mark.extras
ROWS = [
    make_row("The harbour was quiet.", input="Der Zug fährt heute von Gleis 12, nicht von Gleis 3."),
    make_row("Two boats came back before dawn, and two more at noon.", input="Der Hund schläft."),
    make_row("A dog.", input="Der Zug."),
]


def in_words(path, row, counts=None):
    """Return the score of one row by the formula: counts are {side: (documents, {id: documents that have it})}."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModel.from_pretrained(path).eval()
    sides = []
    for side, text in (("outputs", row.output), ("inputs", row.input)):
        encoding = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            vectors = model(**encoding).last_hidden_state[0, 1:-1].double().numpy()
        documents, found = counts[side] if counts else (0, {})
        ids = encoding["input_ids"][0, 1:-1].tolist()
        weights = [math.log2(1 + (documents + 1) / (found.get(one, 0) + 1)) for one in ids]
        sides.append((vectors / np.linalg.norm(vectors, axis=1)[:, None], weights))
    (left, left_weights), (right, right_weights) = sides
    cosines = (left @ right.T).clip(min=0)
    precision = np.average(cosines.max(axis=1), weights=left_weights)
    recall = np.average(cosines.max(axis=0), weights=right_weights)
    return precision * recall / (0.8 * precision + 0.2 * recall)


def test_without_idf_it_is_the_formula(scored, tiny):
    found = [one.raw for one in scored("yisi2", ROWS, idf=False)]
    assert found == pytest.approx([in_words(tiny("mbert"), row) for row in ROWS], abs=1e-6)
    assert np.ptp(found) > 0.01


def test_idf_counts_outputs_and_inputs_apart(scored, tiny, tiny_folder):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny("mbert"))
    counts = {}
    for side, name in (("outputs", "output"), ("inputs", "input")):
        documents = [set(tokenizer(row[name])["input_ids"]) for row in ROWS]
        counts[side] = (3, {one: sum(one in ids for ids in documents) for one in set().union(*documents)})
    fitted = tiny_family("yisi2", tiny, tiny_folder).metrics()[0].fit(ROWS).statistics
    assert fitted["inputs"]["frequencies"] == {str(one): count for one, count in counts["inputs"][1].items()}
    found = [one.raw for one in scored("yisi2", ROWS, corpus=ROWS)]
    assert found == pytest.approx([in_words(tiny("mbert"), row, counts) for row in ROWS], abs=1e-6)
    assert scored("yisi2", ROWS[:1], corpus=ROWS)[0].raw == pytest.approx(found[0], abs=1e-6)


def test_the_input_itself_scores_1_and_references_play_no_part(scored):
    text = "Nobody answered the phone."
    copy, with_reference = scored("yisi2", [make_row(text, input=text), make_row(text, input=text, references=["No."])])
    assert copy.raw == with_reference.raw == pytest.approx(1.0, abs=1e-6)
    assert scored("yisi2", ROWS)[0].raw < 0.999


def test_case_counts(scored):
    rows = [make_row(text, input="The Dog") for text in ("The Dog", "the dog")]
    same, lower = scored("yisi2", rows, idf=False)
    assert lower.raw < same.raw


@pytest.mark.parametrize(
    ("output", "source", "reason"),
    [("", "a", "the output is empty"), ("a", " ", "the input is empty"), ("\x01", "a", "no tok")],
)
def test_a_row_without_tokens_is_skipped(scored, output, source, reason):
    (found,) = scored("yisi2", [make_row(output, input=source)], corpus=ROWS)
    assert found.status is Status.SKIPPED
    assert found.error.startswith(reason)
