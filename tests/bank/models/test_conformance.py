"""Properties that every metric with weights has, whatever it measures: one row is one number."""

from __future__ import annotations

import copy
import json
import math
import pickle
import random
from pathlib import Path

import numpy as np
import pytest

import conformance
import parity
from metricsmith.bank.base import judge_family
from metricsmith.bank.models.engine.batching import token_budget
from metricsmith.records import Status
from model_cases import CASES, tiny_family

pytestmark = pytest.mark.extras
TOLERANCE = 1e-5
NAMES = [name for name in CASES if name != "mauve"]
each = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="session")
def family_of(tiny, tiny_folder):
    """A function from a name to the family on its tiny checkpoint."""
    return lambda name, **settings: tiny_family(name, tiny, tiny_folder, **settings)


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)


@each
def test_a_row_has_one_number_alone_in_a_batch_and_in_any_order(name, family_of):
    rows = conformance.rows_of(name)
    metrics = conformance.bound(family_of(name), rows)
    batch = conformance.numbers(metrics, rows)
    assert np.isfinite(batch).all()
    same(np.hstack([conformance.numbers(metrics, [row]) for row in rows]), batch)
    order = random.Random(17).sample(range(len(rows)), len(rows))
    same(conformance.numbers(metrics, [rows[place] for place in order]), batch[:, order])
    same(conformance.numbers(metrics, [*rows, *rows])[:, len(rows) :], batch)


@each
def test_the_token_budget_changes_no_number(name, family_of):
    rows = conformance.rows_of(name)
    metrics = conformance.bound(family_of(name), rows)
    batch = conformance.numbers(metrics, rows)
    for tokens in (1, 40, 100, 333, 1 << 20):
        with token_budget(tokens):
            same(conformance.numbers(metrics, rows), batch)


@each
def test_the_tokenizers_padding_side_changes_no_number(name, family_of, tiny_folder):
    family = family_of(name)
    path = Path(family.model.path)
    if not (path / "tokenizer_config.json").exists():
        pytest.skip("no tokenizer, so no padding")
    rows = conformance.rows_of(name)
    other = conformance.on(name, conformance.other_side(path, tiny_folder))
    expected = conformance.numbers(conformance.bound(family, rows), rows)
    same(conformance.numbers(conformance.bound(other, rows), rows), expected)


@each
def test_the_pad_token_inside_a_text_is_a_token_like_others(name, family_of, tiny_folder):
    family = family_of(name)
    path = Path(family.model.path)
    if not path.is_dir():
        pytest.skip("no tokenizer, so no padding")
    pad = json.loads((path / "tokenizer_config.json").read_text("utf-8")).get("pad_token") or "<|endoftext|>"
    plain = conformance.rows_of(name)
    rows = [row.copy(output=row.output.replace(" ", f" {pad} ", 1) + f" {pad} end {pad}") for row in plain]
    rows += [row.copy(output=row.output + " end") for row in plain]
    metrics = conformance.bound(family, rows)
    batch = conformance.numbers(metrics, rows)
    assert np.isfinite(batch).all()
    same(np.hstack([conformance.numbers(metrics, [row]) for row in rows]), batch)


@each
def test_a_row_has_one_number_in_half_precision_too(name, family_of):
    rows = conformance.rows_of(name)
    metrics = conformance.bound(family_of(name, dtype="bfloat16"), rows)
    batch = conformance.numbers(metrics, rows)
    same(np.hstack([conformance.numbers(metrics, [row]) for row in rows]), batch)


@each
def test_bfloat16_stays_within_its_stated_distance(name, family_of):
    stated = conformance.BFLOAT16[name]
    if isinstance(stated, str):
        pytest.skip(stated)
    rows = conformance.rows_of(name)
    exact = conformance.numbers(conformance.bound(family_of(name), rows), rows)
    rough = conformance.numbers(conformance.bound(family_of(name, dtype="bfloat16"), rows), rows)
    apart = np.abs(rough - exact).max(1) / np.ptp(exact, axis=1)
    assert (apart <= stated).all(), apart.max()
    assert (apart > 0).any(), "bfloat16 gave the same numbers: it was not used"


@each
@pytest.mark.parametrize("kind", conformance.HARD_TEXTS)
def test_a_hard_text_has_a_number_in_range_or_a_reason(name, kind, family_of):
    rows = list(conformance.hard_rows(conformance.HARD_TEXTS[kind]).values())
    plain = conformance.rows_of(name, 3)
    metrics = conformance.bound(family_of(name), plain)
    alone = conformance.numbers(metrics, plain)
    found = judge_family(metrics, [*plain, *rows])
    for metric, column in zip(metrics, found, strict=True):
        for judgement in column:
            if judgement.status is Status.OK:
                assert in_range(metric.output, judgement.raw), judgement
            else:
                assert judgement.error
                assert judgement.status in (Status.SKIPPED, Status.TRANSPORT)
    kept = np.array([[one.raw for one in column[: len(plain)]] for column in found])
    same(kept, alone)


def in_range(output, raw):
    low = -math.inf if output.low is None else output.low
    high = math.inf if output.high is None else output.high
    return math.isfinite(raw) and low - TOLERANCE <= raw <= high + TOLERANCE


@each
@pytest.mark.parametrize("text", ["", " \n "])
def test_an_empty_output_has_no_number(name, text, family_of):
    plain = conformance.rows_of(name, 3)
    metrics = conformance.bound(family_of(name), plain)
    row = plain[0].copy(output=text)
    for [judgement] in judge_family(metrics, [row]):
        assert judgement.status is Status.SKIPPED
        assert judgement.error
        assert "undefined for this text" not in judgement.error


@each
def test_copies_and_pickles_score_equally(name, family_of):
    rows = conformance.rows_of(name, 4)
    metrics = conformance.bound(family_of(name), rows)
    expected = conformance.numbers(metrics, rows)
    assert (conformance.numbers(copy.deepcopy(metrics), rows) == expected).all()
    assert (conformance.numbers(pickle.loads(pickle.dumps(metrics)), rows) == expected).all()
    assert len(pickle.dumps(metrics)) < 100_000, "the weights travel with the metric"


@each
def test_every_number_lies_in_its_range_and_scores_follow_the_direction(name, family_of):
    rows = conformance.rows_of(name)
    metrics = conformance.bound(family_of(name), rows)
    for metric, column in zip(metrics, judge_family(metrics, rows), strict=True):
        ordered = sorted(column, key=lambda judgement: judgement.raw)
        assert all(in_range(metric.output, judgement.raw) for judgement in column)
        scores = [judgement.score for judgement in ordered]
        assert scores == sorted(scores, reverse=not metric.output.higher_is_better)
        assert all(0 <= score <= 1 for score in scores)


@pytest.mark.parametrize(("name", "settings"), [(name, one) for name in NAMES for one in parity.variants(name) if one])
def test_every_number_lies_in_the_range_of_the_card_under_each_option(name, settings, family_of):
    rows = conformance.rows_of(name)
    metrics = conformance.bound(family_of(name, **settings), rows)
    for metric, column in zip(metrics, conformance.numbers(metrics, rows), strict=True):
        assert all(in_range(metric.output, raw) for raw in column), (metric.output, column)


@each
def test_a_row_without_what_the_card_needs_is_skipped_and_all_else_is_not_needed(name, family_of):
    family = family_of(name)
    rows = conformance.rows_of(name, 3)
    metrics = conformance.bound(family, rows)
    full = conformance.numbers(metrics, rows)
    for need, changes in (("input", {"input": ""}), ("references", {"references": []})):
        without = [row.copy(**changes) for row in rows]
        found = judge_family(metrics, without)
        if need in family.card.needs:
            assert all(f"no {need}" in judgement.error for column in found for judgement in column)
        else:
            raws = np.array([[judgement.raw for judgement in column] for column in found], dtype=float)
            assert np.isfinite(raws).any()
            same(np.where(np.isfinite(raws), raws, full), full)


BEST = {"bertscore": 1.0, "moverscore": 1.0, "yisi2": 1.0, "infolm": 0.0, "parascore": 0.95, "parascore_free": 0.95}
"""The number of an output equal to input and reference, where the formula gives one whatever the weights."""


@pytest.mark.parametrize("name", sorted(BEST.keys() & set(NAMES)))
def test_an_output_equal_to_its_reference_has_the_number_that_the_formula_gives(name, family_of):
    texts = [row.references[0] for row in conformance.rows_of(name)]
    rows = [conformance.example(text, text, [text]) for text in texts]
    metrics = conformance.bound(family_of(name), conformance.rows_of(name))
    np.testing.assert_allclose(conformance.numbers(metrics, rows), BEST[name], atol=TOLERANCE)
