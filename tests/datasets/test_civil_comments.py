"""The table of toxicity ratings, in both published forms, and the sample by disagreement."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from metricsmith.datasets.civil_comments import OPTIONS, TOXIC, read_civil_comments, sample_by_disagreement
from metricsmith.errors import DataError, OptionError
from metricsmith.rating_model.measures import judge_agreement
from metricsmith.rating_model.ratings import Ratings
from metricsmith.rating_model.response_sets import ResponseSets
from metricsmith.rating_model.vectors import RatingVectors

ROWS = [  # comment, worker, toxic, severe_toxic
    (59848, 1, 0, 0), (59848, 2, 1, 0), (59848, 3, 1, 1), (59849, 1, 0, 0), (59849, 4, 0, 1),
]  # fmt: skip


def annotations(rows=ROWS):
    return pd.DataFrame(rows, columns=["id", "worker", "toxic", "severe_toxic"])


def counted(**changes):
    columns = {
        "id": [59848, 59849, 59850],
        "toxicity": np.array([2 / 3, 1 / 2, 0], dtype=np.float32),  # published so
        "severe_toxicity": np.array([1 / 3, 1 / 2, 0], dtype=np.float32),
        "toxicity_annotator_count": [3, 2, 0],
    }
    return pd.DataFrame(columns | changes)


def test_single_annotations_keep_their_raters(tmp_path):
    annotations().to_csv(tmp_path / "ratings.csv", index=False)
    ratings = read_civil_comments(tmp_path / "ratings.csv")
    assert (ratings.items, ratings.raters) == (("59848", "59849"), ("1", "2", "3", "4"))
    assert ratings.counts.tolist() == [[1, 1, 1], [1, 0, 1]]
    assert ratings.table()[0].tolist() == [2, 1, 0, -1]


def test_shares_become_the_same_counts():
    ratings = read_civil_comments(counted())
    assert ratings.items == ("59848", "59849", "59850")
    assert ratings.counts.tolist() == [[1, 1, 1], [1, 0, 1], [0, 0, 0]]
    renamed = counted().rename(columns={"toxicity": "target"})
    assert read_civil_comments(renamed).counts.tolist() == ratings.counts.tolist()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (counted(toxicity=[0.5, 0.5, 0]), r"row 1 .*toxicity 0.5 and severe_toxicity 0.333333 are no shares of 3"),
        (counted(severe_toxicity=[1, 0.5, 0]), "the second within the first"),
        (counted(toxicity=["x", 0.5, 0]), "row 1 .*'x' is no number from 0 to 1"),
        (counted(toxicity_annotator_count=[3, -2, 0]), "row 2 .*'-2' is no number from 0:"),
        (counted().drop(columns="toxicity_annotator_count"), "no column 'toxicity_annotator_count'.*id, worker"),
        (annotations([(1, 1, 2, 0)]), "'2' is no whole number from 0 to 1"),
        (annotations([(1, 1, 0.5, 0)]), "'0.5' is no whole number from 0 to 1"),
        (annotations([*ROWS, ROWS[0]]), "rated item '59848' twice"),
    ],
)
def test_bad_tables_are_named(table, message):
    with pytest.raises(DataError, match=message):
        read_civil_comments(table)


def pool(per_level=8):
    """Comments with ten raters, 0 to 6 of whom find them toxic, and one without raters."""
    toxic = np.repeat(np.arange(7), per_level)
    counts = np.stack([toxic // 2, toxic - toxic // 2, 10 - toxic], axis=1)
    return Ratings.from_counts(np.vstack([counts, [[0, 0, 0]]]), OPTIONS, [f"c{n}" for n in range(len(counts) + 1)])


def toxic_shares(ratings):
    return (ratings.counts[:, :2].sum(axis=1) / ratings.per_item).tolist()


def test_the_sample_is_even_over_levels_of_disagreement():
    sample = sample_by_disagreement(pool(), 20)
    assert toxic_shares(sample) == [level / 10 for level in range(1, 6) for _ in range(4)]
    assert sample.items == sample_by_disagreement(pool(), 20).items
    assert sample.items != sample_by_disagreement(pool(), 20, seed=1).items
    very = sample_by_disagreement(pool(), 4, positive=["Very Toxic"], shares=(0.1, 0.3))
    assert (very.counts[:, 0] / 10).tolist() == [0.1, 0.1, 0.3, 0.3]


def test_the_draw_does_not_depend_on_the_order_of_the_table():
    whole = pool()
    turned = whole.of_items(whole.items[::-1])
    assert {*sample_by_disagreement(turned, 20).items} == {*sample_by_disagreement(whole, 20).items}


def test_shares_between_two_levels_belong_to_neither():
    half = Ratings.from_counts([[0, 5, 15], [0, 1, 3], [0, 2, 8], [0, 3, 7]], OPTIONS)  # .25 twice, .2, .3
    assert sample_by_disagreement(half, 2, shares=(0.2, 0.3)).items == (2, 3)


def test_too_few_items_and_odd_sizes_are_named():
    with pytest.raises(DataError, match=r"8 items have a share of positive ratings near 0\.1, 10 are needed"):
        sample_by_disagreement(pool(), 50)
    for arguments in ({"size": 7}, {"shares": (0.1,)}, {"shares": (0.2, 0.1)}, {"size": 0}):
        with pytest.raises(OptionError, match="a multiple"):
            sample_by_disagreement(pool(), **arguments)
    with pytest.raises(OptionError, match="'Toxc' is no option"):
        sample_by_disagreement(pool(), 10, positive=["Toxc"])


def test_the_analysis_of_the_case_study_runs_on_the_sample():
    """Beta: the share of those who chose neither toxic option, who would also have called it toxic."""
    sample = sample_by_disagreement(pool(), 20)
    sets = ResponseSets.every(OPTIONS)
    human = RatingVectors.of_ratings(sets, sample, beta={(OPTIONS[2], OPTIONS[1]): 0.4})
    toxic = human.sets @ sets.meets(TOXIC)
    assert toxic == pytest.approx([share + 0.4 * (1 - share) for share in toxic_shares(sample)])
    same = RatingVectors.stack([human])
    assert judge_agreement(human, same, ["squared_error_sets"], unbiased=False)[0, 0] == 0.0
