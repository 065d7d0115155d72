from __future__ import annotations

import copy
import json
import math
from dataclasses import replace

import dspy
import numpy as np
import pytest

from loopback import serve
from metricsmith.bank.catalogue import MetricBank, default_bank, family
from metricsmith.datasets.splits import holdout
from metricsmith.errors import DataError, OptionError
from metricsmith.optimizers.generation import generate_judges
from metricsmith.optimizers.students.episodes import (
    Episode,
    HeldOut,
    axes_episodes,
    recommendation_episodes,
    rubric_episodes,
)
from metricsmith.programs.generators.axes import AxesGenerator
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.recommenders.language_model import LMRecommender
from metricsmith.records import Task
from metricsmith.scoring import CallableMetric
from metricsmith.signatures.generation import Axis
from metricsmith.stats.correlation import kendall_tau_b
from planted import planted_rows
from students import answer, rated_table

BANK = MetricBank((family("levenshtein"), family("rouge"), family("bleu"), family("self_bleu")))
TABLE = rated_table()
AXES = [Axis(name="No padding", meaning="No word is idle."), Axis(name="Warm tone", meaning="It sounds friendly.")]


def training_side(table=TABLE, seed=0):
    split = holdout(table.groups, table.texts, fraction=0.3, seed=seed, ratings=table.ratings)
    return table.subset(split.train), table.subset(split.test)


def test_a_recommender_is_asked_what_an_induction_asks_it():
    (episode,) = recommendation_episodes(TABLE, bank=BANK, k=2)
    assert sorted(episode.inputs().keys()) == ["cards", "k", "target", "task"]
    assert (episode.task, episode.target, episode.k) == (TABLE.task.description, "rating", 2)
    assert [card.name for card in episode.cards] == ["Levenshtein", "ROUGE", "BLEU", "SelfBLEU"]
    with serve(answer) as server, dspy.context(lm=server.lm()):
        names = LMRecommender()(**episode.inputs()).names
        recommended = LMRecommender().recommend(TABLE.task, episode.cards, 2).names
    assert server.prompts[0] == server.prompts[1]
    assert tuple(names) == recommended


def test_a_gain_is_the_largest_absolute_tau_of_the_cards_metrics_on_training_rows():
    (episode,) = recommendation_episodes(TABLE)
    train, _ = training_side()
    taus = {}
    for metric in default_bank().metrics():
        raws = [judgement.raw for judgement in metric.fit(train.rows).judge_batch(train.rows)]
        tau = abs(kendall_tau_b(np.array(raws, dtype=float), train.ratings))
        taus.setdefault(metric.card.name, []).append(tau)
    constant = {name for name, found in taus.items() if np.isnan(found).all()}
    assert constant == {"SelfBLEU"}  # every row has one output only: there is nothing to compare
    assert math.isnan(episode.label.by_card.pop("SelfBLEU"))
    assert episode.label.by_card == pytest.approx({n: np.nanmax(f) for n, f in taus.items() if n not in constant})
    assert any(len(found) > 1 and found[-1] < max(found) for found in taus.values())


def test_ratings_of_held_out_rows_are_never_read():
    _, held = training_side()
    inside = set(held.ids)
    # What the split looks at, whether ratings vary, stays: ratings change by the sign of their slope.
    ratings = np.where([row.id in inside for row in TABLE.rows], 6 - TABLE.ratings, TABLE.ratings)
    rows = [row.copy(rating=float(rating)) for row, rating in zip(TABLE.rows, ratings, strict=True)]
    changed = replace(TABLE, rows=rows, ratings=ratings)
    assert recommendation_episodes(changed, bank=BANK)[0].label.by_card == pytest.approx(
        recommendation_episodes(TABLE, bank=BANK)[0].label.by_card, nan_ok=True
    )
    assert axes_episodes(changed, splits=1)[0].inputs() == axes_episodes(TABLE, splits=1)[0].inputs()


def test_lower_is_better_changes_no_gain():
    table = rated_table(higher_is_better=False)
    assert recommendation_episodes(table, bank=BANK)[0].label.by_card["ROUGE"] == pytest.approx(
        recommendation_episodes(TABLE, bank=BANK)[0].label.by_card["ROUGE"]
    )


def test_unusable_metrics_are_not_in_the_pool_and_more_can_be_put_in():
    table = replace(TABLE, rows=[row.without("references") for row in TABLE.rows])
    words = CallableMetric(lambda row, pred=None: len(row.output.split()), name="words")
    (episode,) = recommendation_episodes(table, bank=MetricBank((family("rouge"), family("distinct"))), metrics=[words])
    assert [card.name for card in episode.cards] == ["Distinct-n", "words"]
    assert episode.label.by_card["words"] > 0


def test_judges_in_the_pool_are_scored_by_the_model():
    judge = CriterionJudge(criterion="No padding", meaning="No word is idle.", task="Write.")
    with serve(answer) as server:
        (episode,) = recommendation_episodes(TABLE, bank=BANK, metrics=[judge], lm=server.lm())
    assert server.requests == len(training_side()[0])
    assert episode.label.by_card["no_padding"] > 0.5


def test_every_table_and_split_gives_an_episode():
    other = rated_table(seed=5, name="quality")
    episodes = recommendation_episodes([TABLE, other], bank=BANK, splits=2, seed=3)
    assert [episode.target for episode in episodes] == ["rating", "rating", "quality", "quality"]
    assert [episode.label.origin for episode in episodes] == ["the data frame, seed 3", "the data frame, seed 4"] * 2
    assert episodes[0].label != episodes[1].label
    again = recommendation_episodes([TABLE, other], bank=BANK, splits=2, seed=3)
    assert [list(episode.label.by_card.values()) for episode in again] == pytest.approx(
        np.array([list(episode.label.by_card.values()) for episode in episodes]), nan_ok=True
    )


def test_a_generator_is_asked_what_an_induction_asks_it():
    episode = axes_episodes(TABLE, count=2, splits=1, seed=3)[0]
    train, _ = training_side(seed=3)
    with serve(answer) as server, dspy.context(lm=server.lm()):
        AxesGenerator()(**episode.inputs())
        generate_judges(train.rows, TABLE.task, {"criterion": 2}, seed=3)
    assert server.prompts[0] == server.prompts[1]


def test_held_out_rows_share_no_group_with_what_was_shown():
    for seed, episode in enumerate(axes_episodes(TABLE, splits=4)):
        train, held = training_side(seed=seed)
        label = episode.label
        assert isinstance(label, HeldOut)
        assert "label" not in episode.inputs()
        assert {row.id for row in label.rows} == set(held.ids)
        assert not {row.group for row in label.rows} & set(train.groups)
        assert not any(row.output in episode.liked + episode.disliked for row in label.rows)
        assert (label.wanted, label.axis, label.task) == (5, None, TABLE.task)


def test_a_rubric_generator_gets_every_axis_in_every_split():
    episodes = rubric_episodes(TABLE, AXES, splits=2)
    assert [episode.criterion for episode in episodes] == [
        "No padding: No word is idle.", "Warm tone: It sounds friendly.",
    ] * 2  # fmt: skip
    assert sorted(episodes[0].inputs().keys()) == ["criterion", "task"]
    assert [episode.label.axis for episode in episodes] == AXES * 2
    assert [row.id for row in episodes[3].label.rows] == training_side(seed=1)[1].ids


def test_a_label_goes_with_copies_but_never_with_inputs_or_fields():
    episode = axes_episodes(TABLE, splits=1)[0]
    assert sorted(episode.copy(note="x").inputs().keys()) == ["count", "disliked", "liked", "rating", "task"]
    for twin in (episode.copy(count=3), episode.with_inputs("task"), copy.deepcopy(episode)):
        assert isinstance(twin, Episode)
        assert [row.id for row in twin.label.rows] == [row.id for row in episode.label.rows]
    assert episode.inputs().label is None
    assert episode.inputs().toDict() == episode.toDict()
    assert not any(row.output in json.dumps(episode.toDict()) for row in episode.label.rows)


def test_unrated_rows_take_no_part():
    rows = [*TABLE.rows, *(row.copy(id=f"u{row.id}") for row in planted_rows(sources=2, rated=False, first=50))]
    table = replace(TABLE, rows=rows, ratings=np.append(TABLE.ratings, np.full(6, math.nan)))
    assert axes_episodes(table, splits=1)[0].inputs() == axes_episodes(TABLE, splits=1)[0].inputs()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: recommendation_episodes(TABLE, k=0), OptionError, "k=0 must be 1 or more"),
        (lambda: recommendation_episodes(TABLE, splits=0), OptionError, "splits=0 must be 1 or more"),
        (
            lambda: recommendation_episodes(TABLE, bank=BANK, metrics=[BANK.get("bleu")]),
            OptionError,
            "two metrics of the pool are called 'BLEU'",
        ),
        (lambda: axes_episodes(TABLE, count=0), OptionError, "count=0 must be 1 or more"),
        (lambda: axes_episodes(TABLE.rows), OptionError, "made of tables, not of a Example: use read_table"),
        (lambda: rubric_episodes(TABLE, []), OptionError, "no axis to write a rubric about"),
        (lambda: axes_episodes(TABLE.subset([0, 1, 2])), DataError, "too few for a held-out test"),
    ],
)
def test_what_makes_no_sense_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_table_without_ratings_is_refused():
    table = replace(TABLE, task=Task("Write.", "", TABLE.task.scale))
    with pytest.raises(OptionError, match="has no rating column: name one"):
        axes_episodes(table)


def test_a_pool_without_any_tau_is_refused():
    with pytest.raises(DataError, match=r"seed 0: none of 1 metrics has a tau .* on \d+ training rows"):
        recommendation_episodes(TABLE, bank=MetricBank((family("self_bleu"),)))
