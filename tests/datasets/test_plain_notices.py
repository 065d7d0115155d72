from __future__ import annotations

import math
import re
from collections import Counter

import pytest
from scipy.stats import kendalltau, spearmanr

from metricsmith.datasets import plain_notices
from metricsmith.datasets.plain_notices import (
    DEFECTS,
    defect_effects,
    expected_sign,
)
from metricsmith.errors import DataError

# Three properties of a rewrite that lexical metrics measure, in their simplest form.


def words_of(text):
    return re.findall(r"[\w£'’]+", text.lower())


def length(row):
    return len(words_of(row.output))


def readability_grade(row):
    """Flesch-Kincaid grade level with a syllable for each run of vowels: enough for a sign."""
    words = words_of(row.output)
    sentences = len(re.findall(r"[.!?](?=\s|$)", row.output))
    syllables = sum(max(1, len(re.findall(r"[aeiouy]+", word))) for word in words)
    return 0.39 * len(words) / sentences + 11.8 * syllables / len(words) - 15.59


def reference_recall(row):
    """Share of the reference's words that the rewrite has, each as often as it occurs there."""
    reference = Counter(words_of(row.references[0]))
    return sum((reference & Counter(words_of(row.output))).values()) / sum(reference.values())


PROPERTIES = {measure.__name__: measure for measure in (length, readability_grade, reference_recall)}


def expected_signs():
    """`expected_sign` on the whole data set for each property of the text."""
    _, rows = plain_notices.load()
    return {name: expected_sign(rows, [measure(row) for row in rows]) for name, measure in PROPERTIES.items()}


@pytest.fixture(scope="module")
def rows():
    return plain_notices.load()[1]


def values_of(name, rows):
    return [PROPERTIES[name](row) for row in rows]


def planted(row):
    return sum(-defect.weight * row[defect.column] for defect in DEFECTS.values())


def test_there_are_at_least_44_sources_with_at_least_4_versions_each(rows):
    versions = Counter(row.group for row in rows)
    assert len(versions) >= 44
    assert min(versions.values()) >= 4


def test_rows_carry_the_texts_as_inputs_and_the_ratings_as_labels(rows):
    for row in rows:
        assert set(row.inputs().keys()) == {"input", "output", "references"}
        assert row.rating == pytest.approx((row.rater_1 + row.rater_2 + row.rater_3) / 3, abs=1e-4)
        assert all(row[f"rater_{number}"] in {1, 2, 3, 4, 5} for number in (1, 2, 3))


def test_the_task_names_the_rating_and_its_scale(rows):
    task, _ = plain_notices.load()
    assert all(task.scale.contains(row[task.target]) for row in rows)
    assert (task.scale.low, task.scale.high, task.scale.higher_is_better) == (1, 5, True)


def test_ids_are_unique_and_no_output_stands_twice_in_a_source(rows):
    assert len({row.id for row in rows}) == len(rows)
    assert len({(row.group, row.output) for row in rows}) == len(rows)


def test_each_source_has_one_notice_and_one_reference_of_its_own(rows):
    pairs = {(row.group, row.input, *row.references) for row in rows}
    groups = {row.group for row in rows}
    assert len(pairs) == len({pair[1] for pair in pairs}) == len({pair[2] for pair in pairs}) == len(groups)


def test_ratings_spread_over_the_scale(rows):
    ratings = sorted(row.rating for row in rows)
    assert ratings[0] == 1
    assert ratings[-1] == 5
    assert ratings[len(rows) // 10] < 2 < 4 <= ratings[-len(rows) // 10]


def test_perfect_knowledge_of_the_defects_agrees_well_but_not_perfectly_with_the_raters(rows):
    tau = kendalltau([planted(row) for row in rows], [row.rating for row in rows]).statistic
    assert 0.7 <= tau <= 0.8


@pytest.mark.parametrize("name", PROPERTIES)
def test_each_marginal_relation_with_the_rating_has_the_expected_sign_and_is_not_faint(name, rows):
    rho = spearmanr(values_of(name, rows), [row.rating for row in rows]).statistic
    assert rho * expected_signs()[name] >= 0.15


@pytest.mark.parametrize("name", PROPERTIES)
def test_the_defects_said_to_be_seen_by_a_property_move_it_against_its_sign(name, rows):
    effects = defect_effects(rows, values_of(name, rows))
    seen = [defect.name for defect in DEFECTS.values() if defect.seen_by == name]
    assert seen
    for defect in seen:
        assert effects[defect] * expected_signs()[name] < -0.5


def test_no_property_sees_a_contradiction_or_a_wrong_tone(rows):
    for name in PROPERTIES:
        effects = defect_effects(rows, values_of(name, rows))
        hidden = {defect.name for defect in DEFECTS.values() if not defect.visible}
        assert hidden == {"contradiction", "wrong_tone"}
        assert all(abs(effects[defect]) < 0.3 for defect in hidden)


def test_every_seen_by_is_a_property():
    assert {defect.seen_by for defect in DEFECTS.values() if defect.visible} == set(PROPERTIES)


def test_signs_follow_from_the_counts_and_not_from_the_ratings(rows):
    twisted = [row.copy(rating=6 - row.rating) for row in rows]
    for name, sign in expected_signs().items():
        assert expected_sign(twisted, values_of(name, rows)) == sign
        assert expected_sign(rows, [-value for value in values_of(name, rows)]) == -sign


def test_effect_of_a_defect_on_its_own_indicator_is_worked_out_by_hand(rows):
    # An indicator with share p has standard deviation sqrt(p (1 - p)) and a mean difference of 1.
    has = [float(row.n_padding > 0) for row in rows]
    share = sum(has) / len(has)
    assert defect_effects(rows, has)["padding"] == pytest.approx(1 / math.sqrt(share * (1 - share)))


def test_rows_without_a_value_are_left_out(rows):
    values = values_of("length", rows)
    holes = [math.nan if i % 3 == 0 else value for i, value in enumerate(values)]
    kept = [i for i in range(len(rows)) if i % 3]
    expected = defect_effects([rows[i] for i in kept], [values[i] for i in kept])
    assert defect_effects(rows, holes) == expected


def test_constant_or_missing_values_have_no_effect_and_no_sign(rows):
    for values in ([1.0] * len(rows), [math.nan] * len(rows)):
        assert all(math.isnan(effect) for effect in defect_effects(rows, values).values())
        assert expected_sign(rows, values) == 0


def test_values_that_do_not_match_the_rows_are_refused(rows):
    with pytest.raises(DataError, match="1 values for 240 rows"):
        defect_effects(rows, [1.0])


def test_the_label_says_that_nobody_rated_the_data():
    assert plain_notices.SYNTHETIC.startswith("Synthetic data")
    card = plain_notices.path().with_suffix(".md").read_text("utf-8")
    assert card.startswith("# Plain notices\n\n**Synthetic.**")
