"""BERTScore: hand-made vectors, options, several references, and rows without a number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricsmith.bank.base import judge_family
from metricsmith.bank.models import bertscore
from metricsmith.bank.models.engine.encoder import Encoded, token_ids
from metricsmith.errors import OptionError
from metricsmith.metric import make_row
from metricsmith.records import Status
from model_cases import tiny_family

pytestmark = pytest.mark.extras
MARK = frozenset({0})


def text(*tokens):
    """Return an `Encoded` of (id, vector) pairs."""
    ids, vectors = zip(*tokens, strict=True)
    return Encoded(np.array(ids), np.array(vectors, dtype=np.float32))


OUTPUT = text((0, (0, 1)), (5, (2, 0)))
REFERENCE = text((0, (0, 3)), (5, (3, 4)), (6, (0, 1)))


def test_precision_and_recall_are_means_of_the_best_cosines_without_the_marks():
    # Cosines of the output's token 5 with the reference's 0, 5 and 6: 0, .6, 0. Those of its mark: 1, .8, 1.
    # The mark can be matched: the reference's 5 finds .8 and its 6 finds 1 there.
    precision, recall, f_score = bertscore.matched(OUTPUT, REFERENCE, MARK)
    assert precision == pytest.approx(0.6)
    assert recall == pytest.approx((0.8 + 1.0) / 2)
    assert f_score == pytest.approx(2 * 0.6 * 0.9 / 1.5)


def test_idf_weighs_a_token_by_the_documents_that_have_it():
    # Three documents: token 5 in one of them weighs ln(4/2), token 6 in none ln 4, twice as much.
    counts = {"documents": 3, "frequencies": {"0": 3, "5": 1}}
    assert bertscore.matched(OUTPUT, REFERENCE, MARK, counts)[1] == pytest.approx((0.8 + 2 * 1.0) / 3)


def test_tokens_that_all_documents_have_leave_nothing_to_average():
    counts = {"documents": 1, "frequencies": {"0": 1, "5": 1, "6": 1}}
    assert all(map(math.isnan, bertscore.matched(OUTPUT, REFERENCE, MARK, counts)))


def test_opposite_vectors_keep_their_sign():
    precision, recall, f_score = bertscore.matched(text((5, (1, 0))), text((5, (-1, 0))), MARK)
    assert (precision, recall) == pytest.approx((-1.0, -1.0))
    assert math.isnan(f_score)


def test_numbers_of_opposite_signs_have_no_harmonic_mean():
    # Each word finds the other text's mark, at .1 and at -.09: 2 * .1 * -.09 / .01 is -1.8, which no range has.
    output, reference = text((0, (0.09, 0.9959)), (5, (1, 0))), text((0, (0.1, 0.995)), (6, (-1, 0)))
    precision, recall, f_score = bertscore.matched(output, reference, MARK)
    assert (precision, recall) == pytest.approx((0.1, -0.09), abs=1e-3)
    assert math.isnan(f_score)


def test_equal_texts_score_1_and_others_less(scored):
    same, other = scored("bertscore", [make_row("A dog slept.", references=[ref]) for ref in ("A dog slept.", "No.")])
    assert same.raw == pytest.approx(1.0, abs=1e-6)
    assert other.raw < 0.999


def test_precision_of_swapped_texts_is_recall(tiny, tiny_folder):
    metrics = tiny_family("bertscore", tiny, tiny_folder).metrics()
    one, two = "The harbour was quiet.", "Two boats came back before dawn, and a dog."
    table = judge_family(metrics, [make_row(one, references=[two]), make_row(two, references=[one])])
    assert table[0][0].raw == pytest.approx(table[1][1].raw, abs=1e-6)
    assert table[0][0].raw != pytest.approx(table[0][1].raw, abs=1e-4)


def test_each_number_is_the_highest_over_the_references(tiny, tiny_folder):
    metrics = tiny_family("bertscore", tiny, tiny_folder).metrics()
    output, references = (
        "The soup was fine, the service slow.",
        ["The soup.", "Slow service and soup, fine and dear, ..."],
    )
    rows = [
        make_row(output, references=refs) for refs in (references, references[:1], references[1:], [*references, ""])
    ]
    for column in judge_family(metrics, rows):
        both, first, second, blank = (judgement.raw for judgement in column)
        assert both == blank == pytest.approx(max(first, second), abs=1e-6)


def test_idf_counts_each_reference_as_a_document(tiny, tiny_folder):
    family = tiny_family("bertscore", tiny, tiny_folder, idf=True)
    rows = [make_row("x", references=["a dog", "a cat", " "]), make_row("y", references=["a dog"])]
    counts = family.metrics()[0].fit(rows).statistics
    dog, cat = token_ids(family.model, ["a dog", "a cat"])
    assert counts["documents"] == 3
    assert [counts["frequencies"][str(token)] for token in (dog[0], dog[1], dog[-2])] == [3, 3, 2]
    assert counts["frequencies"][str(cat[-2])] == 1


@pytest.mark.parametrize(
    ("output", "reason"), [(" \n", "the output is empty"), ("a dog", "no token of the output, or of the texts")]
)
def test_a_row_without_a_number_says_why(scored, output, reason):
    row = make_row(output, references=["a dog"])
    (found,) = scored("bertscore", [row], corpus=[row], idf=True)  # one document: no token is rarer than another
    assert found.status is Status.SKIPPED
    assert found.error.startswith(reason)


def test_rescaling_moves_the_mean_of_random_pairs_to_0(scored, monkeypatch):
    row = make_row("A dog slept.", references=["No, 3."])
    (plain,) = scored("bertscore", [row])
    monkeypatch.setitem(bertscore.BASELINES, ("roberta", 32, 2), (0.1, 0.2, 0.25))
    (rescaled,) = scored("bertscore", [row], rescale=True)
    assert rescaled.raw == pytest.approx((plain.raw - 0.25) / 0.75)


def test_a_rescaled_number_has_no_lower_end_and_that_of_random_pairs_scores_a_half(scored, monkeypatch):
    monkeypatch.setitem(bertscore.BASELINES, ("roberta", 32, 2), (0.99, 0.99, 0.99))
    rows = [make_row("A dog slept.", references=[text]) for text in ("No, 3.", "Prices fell sharply.")]
    one, other = scored("bertscore", rows, rescale=True)
    assert max(one.raw, other.raw) < -1
    assert one.score != other.score
    assert bertscore.card_for(bertscore.MODEL.using(rescale=True)).outputs[0].score(0) == 0.5


def test_rescaling_is_refused_where_the_mean_of_random_pairs_is_not_known(scored):
    with pytest.raises(OptionError, match=r"layer 2 of a roberta of width 32.*layer 17 of roberta-large alone"):
        scored("bertscore", [make_row("a", references=["b"])], rescale=True)


@pytest.mark.parametrize("settings", [{"tokenizer": "fast"}, {"layer": 1}, {"idf": True}])
def test_a_setting_changes_the_number(scored, settings):
    rows = [make_row("A dog slept.", references=["Nobody answered."]), make_row("No.", references=["A dog answered."])]
    usual, changed = scored("bertscore", rows, rows), scored("bertscore", rows, rows, **settings)
    assert usual[0].raw != pytest.approx(changed[0].raw, abs=1e-4)
