"""One pass: only the training rows' ratings and statistics reach the fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loopback import scripted, serve
from metricsmith.bank.catalogue import MetricBank, family
from metricsmith.errors import DataError, ModelFailure, OptionError
from metricsmith.metric import make_row
from metricsmith.optimizers.induce import run_pass
from metricsmith.optimizers.options import Options
from metricsmith.optimizers.splits import RatedRows
from metricsmith.programs.induced import best_contributions
from planted import TASK, planted_rows

TRAIN, OTHERS = planted_rows(sources=12), planted_rows(sources=4, seed=1)
COLUMNS = Options(bank="none", columns=["good", "junk"])


def rated(rows=TRAIN):
    return RatedRows.of(rows, "rating")


def test_rows_without_a_group_are_groups_of_their_own():
    rows = [make_row("a", rating=1.0), make_row("b", rating=2.0), make_row("c", rating=3.0, group="g")]
    assert len(set(rated(rows).groups)) == 3
    assert rated(rows).groups[2] == "g"


def test_taking_rows_keeps_ratings_and_groups_beside_them():
    part = rated().take([5, 2])
    assert [row.id for row in part.rows] == [TRAIN[5].id, TRAIN[2].id]
    assert part.ratings.tolist() == [TRAIN[5]["rating"], TRAIN[2]["rating"]]
    assert part.groups == [TRAIN[5].group, TRAIN[2].group]


def test_scores_of_the_training_rows_come_first():
    done = run_pass(rated(), OTHERS, TASK, COLUMNS)
    assert done.train_values[:, 0].tolist() == [row["columns"]["good"] for row in TRAIN]
    assert done.other_values[:, 1].tolist() == [row["columns"]["junk"] for row in OTHERS]
    assert done.components.names == done.fitted.small.names


def test_corpus_statistics_come_from_the_training_rows_alone():
    options = Options(bank="existing", metrics=MetricBank((family("cider"),)))
    with_others, without = run_pass(rated(), OTHERS, TASK, options), run_pass(rated(), [], TASK, options)
    assert without.metric().components[0].statistics is not None
    assert with_others.metric().fingerprint() == without.metric().fingerprint()


def test_judges_are_generated_from_the_training_rows_alone():
    marked = [row.copy(output="SECRET " + row.output, rating=5.0) for row in OTHERS]
    with serve(scripted) as server:
        options = Options(bank="generated", generators={"criterion": 1}, lm=server.lm())
        run_pass(rated(), marked, TASK, options)
    assert "SECRET" not in server.prompts[0]
    assert any("SECRET" in prompt for prompt in server.prompts[1:])


def test_costs_are_measured_from_the_best_training_row():
    splendid = [row.copy(columns={"good": 99.0, "junk": 99.0}) for row in OTHERS]
    straight = replace(COLUMNS, regression="pls", n=2)  # z-scores know no ceiling
    first, second = run_pass(rated(), OTHERS, TASK, straight), run_pass(rated(), splendid, TASK, straight)
    assert first.metric().settings.best == second.metric().settings.best
    train = first.components.run()[: len(TRAIN)]
    assert first.metric().settings.best == best_contributions(first.fitted.small, train, TASK.scale)


def test_unrated_rows_are_not_judged_for_the_fit_where_judging_costs():
    with serve(scripted) as server:
        options = Options(bank="generated", generators={"criterion": 2}, lm=server.lm())
        done = run_pass(rated(), [], TASK, options, unrated=OTHERS)
    assert server.requests == 1 + 2 * len(TRAIN)
    assert len(done.table.rows) == len(TRAIN)


def stubborn(prompt):
    """One of three judges never gives a number: a third of the judgements fail."""
    judged = "## criterion ##" in prompt and "Plain words" in prompt
    return {"reasoning": "No number."} if judged and "`score`" in prompt else scripted(prompt)


@pytest.mark.parametrize(("gate", "stops"), [(0.2, True), (0.32, True), (0.34, False)])
def test_the_gate_over_all_judges_is_the_callers(gate, stops):
    with serve(stubborn) as server:
        sources = Options(bank="generated", generators={"criterion": 3})
        options = replace(sources, lm=server.lm(), max_failure_rate=gate, per_judge=False)
        if stops:
            with pytest.raises(ModelFailure, match="judgements failed"):
                run_pass(rated(), [], TASK, options)
        else:
            counts = [judgement.ok for judgement in run_pass(rated(), [], TASK, options).table.flat()]
            assert (sum(counts), len(counts)) == (2 * len(TRAIN), 3 * len(TRAIN))


@pytest.mark.parametrize(("gate", "kept"), [(0.2, 2), (0.99, 2), (1.0, 3)])
def test_the_gate_for_each_judge_is_the_callers(gate, kept):
    with serve(stubborn) as server:
        sources = Options(bank="generated", generators={"criterion": 3})
        done = run_pass(rated(), [], TASK, replace(sources, lm=server.lm(), max_failure_rate=gate))
    assert len(done.table.names) == len(done.candidates.metrics) == kept
    assert len(done.scored.names) == 3
    assert set(done.scored.dropped) == set(done.scored.names) - set(done.table.names)


@pytest.mark.parametrize("gate", [-0.1, 1.1, float("nan"), "0.2", True])
def test_a_gate_that_is_no_share_is_refused_before_anything_is_asked(gate):
    with pytest.raises(OptionError, match="max_failure_rate"):
        Options(max_failure_rate=gate)


def test_no_more_requests_are_in_flight_than_asked_for():
    with serve(scripted, delay=0.01) as server:
        sources = Options(bank="generated", generators={"criterion": 2})
        run_pass(rated(TRAIN[:9]), [], TASK, replace(sources, lm=server.lm(), concurrency=2))
    assert server.most_in_flight == 2


def gaps(count, rows=TRAIN):
    """The rows, with `count` of them lacking a number in the column ``good``."""
    return [row.copy(columns={**row["columns"], "good": float("nan")}) if place < count else row
            for place, row in enumerate(rows)]  # fmt: skip


@pytest.mark.parametrize(("missing", "kept"), [(3, ["good", "junk"]), (4, ["junk"])])
def test_a_candidate_that_lacks_more_than_a_tenth_of_the_training_values_is_out_and_said(missing, kept):
    """3 of 30 are a tenth, 4 are more."""
    done = run_pass(rated(gaps(missing, TRAIN[:30])), OTHERS, TASK, COLUMNS)
    assert list(done.table.names) == kept
    said = [note for note in done.candidates.notes if "no value on more than 10\u00a0%" in note]
    assert said == ([] if len(kept) == 2 else [
        "no value on more than 10\u00a0% of the training rows, and so left out (--allow-missing keeps them): good "
        "(none on 13\u00a0%)"
    ])  # fmt: skip
    assert done.candidates.sparse == ({} if len(kept) == 2 else {"good": "13\u00a0%"})


def test_gaps_in_rows_to_be_tested_rule_nothing_out():
    assert run_pass(rated(), gaps(9, OTHERS), TASK, COLUMNS).table.names == ("good", "junk")


def test_candidates_with_gaps_stay_where_that_is_allowed():
    options = Options(bank="none", columns=["good", "junk"], allow_missing=True)
    done = run_pass(rated(gaps(20)), OTHERS, TASK, options)
    assert done.table.names == ("good", "junk")
    assert not done.candidates.sparse


def test_candidates_that_all_have_gaps_are_an_error_with_the_way_out():
    options = Options(bank="none", columns=["good"])
    with pytest.raises(
        DataError, match=r"every candidate lacks .* 36 training rows: good \(none on 14\xa0%\).*--allow-mis"
    ):
        run_pass(rated(gaps(5)), OTHERS, TASK, options)


def test_a_metric_made_where_references_are_missing_scores_every_row():
    rows = [row.copy(references=[]) if place % 3 else row for place, row in enumerate(TRAIN)]
    done = run_pass(rated(rows), [], TASK, Options(bank="existing"))
    assert any("only 12 of 36 rows have references" in note for note in done.candidates.notes)
    assert all(judgement.ok for judgement in done.metric().judge_batch(rows))
    assert {"bleu", "rouge1_r"}.isdisjoint(done.table.names)
