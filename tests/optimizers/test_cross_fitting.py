"""Cross-fitting: no training row has a number from ratings of its own group, and what is saved is trained on all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from metricsmith.bank.code import CodeMetric
from metricsmith.datasets.splits import folds
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import content_key, make_row
from metricsmith.optimizers.auto_metrics import AutoMetrics
from metricsmith.optimizers.cross_fitting import FOLDS, CrossFitted, cross_fit, is_untrained
from metricsmith.optimizers.induce import induce_splits, run_pass
from metricsmith.optimizers.own import from_learning, renamed
from metricsmith.optimizers.splits import RatedRows, Splits
from metricsmith.records import Judgement, Scale, Status, Task
from metricsmith.report.induction.document import RunDocument
from metricsmith.report.render import render_html, render_markdown
from metricsmith.saving import row_hash
from metricsmith.scoring import score
from metricsmith.stats.agreement import agreement
from metricsmith.stats.fold_agreement import agreement_over_folds
from planted import TASK
from trainable import Letters, letter_rows

SEEDS = range(30)
ROWS = letter_rows(40, 10, signal=0.5)


def rated(rows=ROWS):
    return RatedRows.of(rows, "rating")


def raws(metric, rows):
    return np.array([judgement.raw for judgement in metric.judge_batch(rows)])


def hashes(rows):
    return set(map(row_hash, rows))


def within_folds(crossed, data):
    """The agreement of the cross-fitted column inside the folds that its copies were trained without."""
    keys, column = [content_key(row) for row in data.rows], raws(crossed, data.rows)
    places = [[place for place, key in enumerate(keys) if key in held] for _, held in crossed.members]
    parts = [(column[own], data.ratings[own], [data.groups[place] for place in own]) for own in places]
    return agreement_over_folds(*map(list, zip(*parts, strict=True)))


def test_on_shuffled_labels_the_cross_fitted_tau_is_that_of_chance_and_the_uncrossed_one_is_not():
    held, plain = [], []
    for seed in SEEDS:
        data = rated(letter_rows(80, 20, seed))
        crossed = cross_fit(Letters(), data, seed=seed)
        held.append(within_folds(crossed, data))
        plain.append(agreement(raws(crossed.kept, data.rows), data.ratings, data.groups).kendall_tau_b)
    assert min(plain) > 0.5
    assert abs(np.mean([one.kendall_tau_b for one in held])) < 0.08
    assert sum(one.ci_low <= 0 <= one.ci_high for one in held) >= 27


def test_what_there_is_to_learn_is_learned_across_folds():
    data = rated(letter_rows(200, 40, signal=0.5))
    assert within_folds(cross_fit(Letters(columns=500), data), data).ci_low > 0.6


def test_copies_are_moved_to_one_level_for_else_the_column_falls_where_ratings_rise():
    moved, plain = [], []
    for seed in SEEDS[:20]:
        data = rated(letter_rows(80, 20, seed))
        stiff = Letters(penalty=1e7)  # all copies give little but the mean of their ratings
        moved.append(agreement(raws(cross_fit(stiff, data, seed=seed), data.rows), data.ratings).kendall_tau_b)
        column = np.empty(80)
        for part in folds(data.groups, FOLDS, seed, list(map(row_hash, data.rows)), ratings=data.ratings):
            member = stiff.compile([data.rows[place] for place in part.train])
            column[part.test] = raws(member, [data.rows[place] for place in part.test])
        plain.append(agreement(column, data.ratings).kendall_tau_b)
    assert abs(np.mean(moved)) < 0.06
    assert np.mean(plain) < -0.1


def test_each_copy_is_trained_without_the_groups_that_it_judges():
    metric = Letters()
    crossed = cross_fit(metric, rated())
    everything, *parts = metric.told
    assert hashes(everything) == hashes(ROWS)
    assert len(parts) == FOLDS == len(crossed.members)
    for told, (_, held) in zip(parts, crossed.members, strict=True):
        apart = {row.group for row in ROWS if content_key(row) in held}
        assert hashes(told) == hashes(row for row in ROWS if row.group not in apart)
    assert sorted(key for _, held in crossed.members for key in held) == sorted(map(content_key, ROWS))


def test_a_rating_moves_no_number_of_its_own_group_but_the_level_of_all():
    before = cross_fit(Letters(), rated())
    changed = [row.copy(rating=1.0) if row.group == "g3" else row for row in ROWS]
    after = cross_fit(Letters(), rated(changed))
    own = [row for row in ROWS if row.group == "g3"]
    apart = raws(after, own) - raws(before, own)
    assert apart == pytest.approx([apart[0]] * len(own), abs=1e-9)
    others = [row for row in ROWS if row.group != "g3"]
    assert np.ptp(raws(after, others) - raws(before, others)) > 0.05


def test_rows_of_one_output_are_in_one_fold_whatever_their_groups():
    text = "nine words that nobody writes twice by any chance"
    twins = [make_row(text, input=f"question {n}", rating=float(n), group=f"twin {n}") for n in (1, 5)]
    crossed = cross_fit(Letters(), rated([*ROWS, *twins]))
    keys = set(map(content_key, twins))
    assert [keys <= set(held) for _, held in crossed.members if keys & set(held)] == [True]


def test_other_rows_have_the_number_of_the_metric_that_is_saved():
    crossed = cross_fit(Letters(), rated())
    new = letter_rows(5, 5, seed=9)
    assert raws(crossed, new).tolist() == raws(crossed.kept, new).tolist()
    mixed = [new[0], ROWS[3], new[1], ROWS[0]]
    assert raws(crossed, mixed).tolist() == [raws(crossed, [row])[0] for row in mixed]
    assert raws(crossed, ROWS).tolist() != raws(crossed.kept, ROWS).tolist()


def test_a_judgement_of_the_column_has_the_run_that_was_asked_and_the_score_of_its_moved_number():
    crossed = cross_fit(Letters(), rated())
    for judgement in crossed.judge_batch(ROWS, run=2):
        assert (judgement.run, judgement.score) == (2, crossed.output.score(judgement.raw))


def test_a_store_never_takes_one_column_for_the_other(tmp_path):
    crossed, other = (cross_fit(Letters(), rated(), seed=seed) for seed in (0, 1))
    assert len({crossed.fingerprint(), other.fingerprint(), crossed.kept.fingerprint()}) == 3
    changed = [replace(crossed, seed=1), replace(crossed, members=crossed.members[::-1])]
    assert crossed.fingerprint() not in {one.fingerprint() for one in changed}
    columns = [score([metric], ROWS, store=tmp_path / "s.db").run()[:, 0] for metric in (crossed, crossed.kept, other)]
    assert columns[0].tolist() == raws(crossed, ROWS).tolist()
    assert columns[1].tolist() == raws(crossed.kept, ROWS).tolist()
    assert columns[2].tolist() == raws(other, ROWS).tolist()


def test_too_few_groups_cannot_be_crossed():
    with pytest.raises(DataError, match="1 group, too few for 2 folds"):
        cross_fit(Letters(), rated([row.copy(group="one") for row in ROWS]))


def test_a_renamed_column_is_that_of_a_renamed_metric():
    crossed = CrossFitted(CodeMetric("def score(output, input, references):\n    return 1\n"), {}, ())
    assert renamed(crossed, "other").kept.name == renamed(crossed, "other").name == "other"
    fitted = cross_fit(Letters(), rated())
    called = fitted.called("other", replace(fitted.kept, name="other"))
    assert {judgement.metric for judgement in called.judge_batch(ROWS)} == {"other"}


def options(metric, **more):
    return AutoMetrics(TASK, bank="none", metrics=[metric], progress=False, **more)


def test_an_untrained_metric_among_the_candidates_is_saved_as_trained_on_all_rows():
    test = letter_rows(20, 5, seed=5, signal=0.5)
    test = [row.copy(group=f"t{row.group}") for row in test]
    metric = options(Letters()).compile(ROWS, test)
    (kept,) = metric.components
    assert isinstance(kept, Letters)
    assert hashes(kept.learned) == hashes(ROWS)
    record, (component,) = metric.record, metric.record.components
    assert component.copies == FOLDS
    values = {row.output: row.values["letters"] for row in record.data}
    assert [values[row.output] for row in test] == pytest.approx(raws(kept, test).tolist())
    assert component.tau_train < 0.7 < agreement(raws(kept, ROWS), rated().ratings).kendall_tau_b
    for text in (render_html(RunDocument(record)), render_markdown(RunDocument(record))):
        assert "The column of letters on training rows was cross-fitted by group" in text
        assert "was trained on all training rows" in text


def test_the_column_is_weighed_although_the_saved_metric_names_the_rows_that_it_learned_from():
    done = run_pass(rated(), [], TASK, options(Letters()))
    (crossed,), (kept,) = done.components.metrics, done.saved
    assert from_learning(kept, rated()).all()
    assert not from_learning(crossed, rated()).any()
    assert not done.learned.any()
    assert np.isfinite(done.train_values).all()
    assert done.fingerprint() == done.metric().fingerprint()


def test_each_pass_of_a_cross_validation_trains_on_its_learning_rows_alone():
    metric, data = Letters(), rated()
    parts = folds(data.groups, 3, 0, ratings=data.ratings)
    done = induce_splits(Splits("cv", data, data.take([]), folds=parts), TASK, options(metric))
    told = [metric.told[start : start + FOLDS + 1] for start in range(0, len(metric.told), FOLDS + 1)]
    assert len(told) == len(parts) + 1
    for part, trainings in zip(parts, told, strict=False):
        learning = hashes(data.rows[place] for place in part.train)
        assert hashes(trainings[0]) == learning
        assert all(hashes(one) < learning for one in trainings[1:])
    assert hashes(told[-1][0]) == hashes(ROWS)
    assert done.record.evaluation == "cv"


def test_a_metric_that_cannot_be_trained_is_left_out_and_the_notes_say_so():
    rows = [row.copy(columns={"good": row["rating"] + len(row["id"])}) for row in ROWS]
    chosen = replace(options(Letters(least=1000)), columns=["good"])
    record = chosen.compile(rows).record
    assert [component.name for component in record.components] == ["good"]
    assert any("'letters' could not be trained and is left out: 40 rows are fewer" in note for note in record.notes)


def test_a_metric_without_a_number_on_its_rows_is_an_error_and_moves_no_copy(monkeypatch):
    silent = Judgement("letters", None, None, status=Status.TRANSPORT, error="no memory")
    monkeypatch.setattr(Letters, "judge_batch", lambda self, rows, **_: [silent] * len(rows))
    with pytest.raises(DataError, match="gives no number on its training rows; the first: no memory"):
        cross_fit(Letters(), rated())


def test_a_metric_of_another_rating_is_refused_before_anything_is_trained():
    metric = Letters(task=Task("Other.", "stars", Scale(1, 10)))
    with pytest.raises(OptionError, match=r"'letters' learns 'stars' .*give it the task of the run"):
        options(metric).compile(ROWS)
    assert metric.told == []


def test_only_what_waits_for_training_is_untrained():
    assert is_untrained(Letters())
    assert not is_untrained(Letters().compile(ROWS))
    assert not is_untrained(AutoMetrics(TASK))  # an optimiser, no metric
    assert not is_untrained("letters")
