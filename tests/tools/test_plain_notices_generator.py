from __future__ import annotations

import csv
import math

import numpy as np
import pytest

import plain_notices_generator as generator
from metricsmith.datasets import plain_notices
from metricsmith.datasets.plain_notices import DEFECTS, LENIENCY
from metricsmith.errors import OptionError
from plain_notices_generator import NOISE_LIMIT
from plain_notices_writer import load_material


@pytest.fixture(scope="module")
def rows():
    with plain_notices.path().open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def counts_of(row):
    return {name: int(row[defect.column]) for name, defect in DEFECTS.items()}


def test_the_shipped_file_is_what_the_generator_makes(tmp_path):
    generator.main(["--out", str(tmp_path / "again.csv")])
    assert (tmp_path / "again.csv").read_bytes() == plain_notices.path().read_bytes()


def test_another_seed_makes_other_texts_and_ratings():
    one, other = generator.generate(1), generator.generate(2)
    assert len(one) == len(other)
    for column in ("rewrite", "rating"):
        assert sum(a[column] != b[column] for a, b in zip(one, other, strict=True)) > len(one) / 3


def test_columns_are_the_promised_ones(rows):
    assert tuple(rows[0]) == generator.COLUMNS


def test_quality_is_five_minus_the_weighted_counts():
    # By hand: 5 - (.65 + 2 * .70 + .50) = 2.45
    counts = dict.fromkeys(DEFECTS, 0) | {"dropped_fact": 1, "padding": 2, "wrong_tone": 1}
    assert generator.planted_quality(counts) == pytest.approx(2.45)
    assert generator.planted_quality(dict.fromkeys(DEFECTS, 0)) == 5


def test_every_rating_follows_from_the_defects_within_the_noise_limit(rows):
    for row in rows:
        quality = generator.planted_quality(counts_of(row))
        for number, leniency in enumerate(LENIENCY, start=1):
            heard = [quality + leniency + noise for noise in (-NOISE_LIMIT, NOISE_LIMIT)]
            low, high = (min(5, max(1, math.floor(value + 0.5))) for value in heard)
            assert low <= int(row[f"rater_{number}"]) <= high


def test_rating_is_the_mean_of_the_raters(rows):
    for row in rows:
        raters = [int(row[f"rater_{number}"]) for number in range(1, len(LENIENCY) + 1)]
        assert float(row["rating"]) == pytest.approx(sum(raters) / len(raters), abs=5e-5)


def test_lenient_raters_rate_higher_on_average(rows):
    means = [sum(int(row[f"rater_{number}"]) for row in rows) for number in (1, 2, 3)]
    assert means == sorted(means, reverse=True)


def test_each_defect_occurs_in_its_shares_and_defects_are_nearly_uncorrelated(rows):
    table = np.array([list(counts_of(row).values()) for row in rows])
    for column in table.T:
        assert np.bincount(column) / len(rows) == pytest.approx(generator.COUNT_SHARES, abs=0.01)
    assert np.abs(np.corrcoef(table, rowvar=False) - np.eye(len(DEFECTS))).max() <= 0.08


def test_some_versions_are_perfect_and_state_every_fact_and_the_neutral_frame(rows):
    sources = {source.id: source for source in load_material().sources}
    perfect = [row for row in rows if not any(counts_of(row).values())]
    assert len(perfect) >= 5
    for row in perfect:
        source = sources[row["source_id"]]
        assert row["rewrite"].startswith(source.opening)
        assert row["rewrite"].endswith(source.closing)
        for fact in source.facts:
            assert fact.plain in row["rewrite"] or fact.second in row["rewrite"]


def test_planted_counts_can_be_read_off_the_text_where_nothing_is_broken(rows):
    material = load_material()
    sources = {source.id: source for source in material.sources}
    whole = [row for row in rows if row["n_broken_sentence"] == "0"]
    assert whole
    for row in whole:
        text, source, counts = row["rewrite"], sources[row["source_id"]], counts_of(row)
        idle = sum(sentence in text for sentence in material.idle_sentences(source.topic))
        assert idle == generator.PADDING_SENTENCES * counts["padding"]
        told = [[any(form in text for form in forms) for forms in wordings(fact)] for fact in source.facts]
        assert sum(not any(fact) for fact in told) == counts["dropped_fact"]
        assert sum(wrong or wrong_jargon for _, _, wrong, wrong_jargon in told) == counts["contradiction"]
        assert sum(jargon or wrong_jargon for _, jargon, _, wrong_jargon in told) == counts["jargon"]
        assert (source.opening_off in text) + (source.closing_off in text) == counts["wrong_tone"]


def wordings(fact):
    """Plain, jargon, plain but wrong, jargon but wrong: each the list of sentences it may be."""
    right = [[fact.plain, fact.second], [fact.jargon]]
    if not fact.right:
        return [*right, [], []]
    return [*right, *[[form.replace(fact.right, fact.wrong) for form in forms] for forms in right]]


def test_no_idle_sentence_stands_twice_in_a_source(rows):
    material = load_material()
    for source in material.sources:
        texts = " ".join(row["rewrite"] for row in rows if row["source_id"] == source.id)
        assert all(texts.count(sentence) <= 1 for sentence in material.idle_sentences(source.topic))


def test_a_design_for_too_few_versions_is_refused():
    with pytest.raises(OptionError, match="9 versions"):
        generator.design(9, np.random.default_rng(0))
