"""MoverScore 2: transport by hand, both published formulas, what carries weight, and rows without a number."""

from __future__ import annotations

import string

import numpy as np
import pytest

from metricsmith.bank.models import moverscore, spec
from metricsmith.bank.models.moverscore import transport_cost
from metricsmith.bank.weighted import lacking
from metricsmith.errors import NeedsError
from metricsmith.metric import make_row
from metricsmith.records import Status
from model_cases import tiny_family

pytestmark = pytest.mark.extras
FORMULAS = ("1/(1+cost)", "1-cost")
ROW = make_row("The soup was fine, but unforgettable.", references=["Heavy rain is expected tomorrow.", "No soup."])


def test_transport_takes_the_cheapest_way():
    # All of the second word stays, and .25 of the first must go over a distance of 1.
    assert transport_cost(np.array([0.5, 0.5]), np.array([0.25, 0.75]), np.array([[0.0, 1.0], [1.0, 0.0]])) == 0.25
    assert transport_cost(np.array([0.5, 0.5]), np.array([1.0]), np.array([[1.0], [3.0]])) == 2.0


def test_a_problem_that_is_not_solved_is_no_number(monkeypatch):
    import ot

    monkeypatch.setattr(ot, "emd2", lambda *_, **__: (0.0, {"warning": "numItermax reached"}))
    with pytest.raises(ArithmeticError, match="numItermax"):
        transport_cost(np.ones(1), np.ones(1), np.zeros((1, 1)))


def test_without_its_solver_it_is_left_out_with_the_install_line(monkeypatch, tiny, tiny_folder):
    family = tiny_family("moverscore", tiny, tiny_folder)
    there = spec.find_spec
    monkeypatch.setattr(spec, "find_spec", lambda name: None if name == "ot" else there(name))
    assert lacking(family) == "ot is not installed: pip install 'metricsmith[models]'"
    with pytest.raises(NeedsError, match="ot is not installed"):
        family.metrics()[0].score("a", references=["b"])


def cost_of(path, output, reference):
    """Return the cost of one pair by the formula, with all weights 1 and scipy's linear programs."""
    import torch
    from scipy.optimize import linprog
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModel.from_pretrained(path).eval()
    sides = []
    for text in (output, reference):
        encoding = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            vectors = model(**encoding).last_hidden_state[0].double().numpy()
        pieces = tokenizer.convert_ids_to_tokens(encoding["input_ids"][0])
        kept = [not piece.startswith("##") and piece not in list(string.punctuation) for piece in pieces]
        sides.append((vectors / np.linalg.norm(vectors, axis=1)[:, None])[kept])
    rows, columns = map(len, sides)
    distances = np.sqrt(((sides[0][:, None] - sides[1][None]) ** 2).sum(axis=2))
    totals = np.vstack([np.kron(np.eye(rows), np.ones(columns)), np.kron(np.ones(rows), np.eye(columns))])
    wanted = [1 / rows] * rows + [1 / columns] * columns
    return linprog(distances.ravel(), A_eq=totals, b_eq=wanted).fun


def test_it_is_the_mean_over_the_references_of_either_formula(scored, tiny):
    costs = [cost_of(tiny("distilbert"), ROW.output, reference) for reference in ROW.references]
    assert scored("moverscore", [ROW])[0].raw == pytest.approx(np.mean([1 / (1 + cost) for cost in costs]), abs=1e-6)
    difference = scored("moverscore", [ROW], similarity="1-cost")[0].raw
    assert difference == pytest.approx(np.mean([1 - cost for cost in costs]), abs=1e-6)


def test_the_card_has_the_ends_of_the_formula_in_force(scored):
    # Vectors of length 1 are at most 2 apart: 1 / (1 + 2) and 1 - 2.
    assert [moverscore.card_for(moverscore.MODEL.using(similarity=one)).outputs[0].low for one in FORMULAS] == [
        1 / 3,
        -1,
    ]
    (half,) = scored("moverscore", [ROW])
    assert half.score == pytest.approx((half.raw - 1 / 3) / (2 / 3))


def test_the_reference_itself_scores_1_and_blank_references_are_ignored(scored):
    rows = [make_row("A dog slept.", references=refs) for refs in (["A dog slept.", " "], ["A dog slept.", "\x01"])]
    rows += [make_row("No.", references=["A dog slept."])]
    same, without_token, other = (one.raw for one in scored("moverscore", rows))
    assert same == without_token == pytest.approx(1.0, abs=1e-6)
    assert other < 0.99


def test_idf_counts_outputs_and_references_apart(scored, tiny, tiny_folder):
    rows = [ROW, make_row("No dog.", references=["The soup."]), make_row("A dog.", references=["Rain."])]
    metric = tiny_family("moverscore", tiny, tiny_folder, idf=True).metrics()[0].fit(rows)
    assert (metric.statistics["outputs"]["documents"], metric.statistics["references"]["documents"]) == (3, 4)
    plain, weighted = scored("moverscore", rows)[0].raw, scored("moverscore", rows, corpus=rows, idf=True)[0].raw
    assert weighted != pytest.approx(plain, abs=1e-4)
    assert scored("moverscore", rows[:1], corpus=rows, idf=True)[0].raw == pytest.approx(weighted, abs=1e-6)


@pytest.mark.parametrize(
    ("output", "settings", "reason"),
    [
        (" ", {}, "the output is empty"),
        ("?!", {}, "no token"),  # punctuation weighs nothing, and the marks at the ends alone are no text
        ("a dog", {"idf": True}, "no token"),  # one document: no word is rarer than another
    ],
)
def test_a_text_without_weight_is_skipped_and_not_perfect(scored, output, settings, reason):
    row = make_row(output, references=["a dog"])
    (found,) = scored("moverscore", [row], corpus=[row], **settings)
    assert found.status is Status.SKIPPED
    assert found.error.startswith(reason)
