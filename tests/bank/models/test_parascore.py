"""ParaScore and ParaScoreFree: the bonus for other words, the closest text, and one encoding for both."""

from __future__ import annotations

import pytest

from metricsmith.bank.base import judge_family
from metricsmith.bank.models.engine import encoder
from metricsmith.bank.weighted import model_family
from metricsmith.metric import make_row
from metricsmith.records import Status

pytestmark = pytest.mark.extras
SOURCE = "A small dog slept under the long wooden table."


@pytest.fixture
def f_score(tiny):
    """Return BERTScore's F of two texts on the checkpoint of ParaScore's tests."""
    settings = {"layer": 1, "tokenizer": "fast"}
    metric = model_family("bertscore", path=str(tiny("bert_masked")), device="cpu", settings=settings).metrics()[-1]
    return lambda output, other: judge_family([metric], [make_row(output, references=[other])])[0][0].raw


@pytest.mark.parametrize("name", ["parascore", "parascore_free"])
def test_a_copy_loses_the_whole_bonus_and_another_05(scored, name):
    (copy,) = scored(name, [make_row(SOURCE, input=SOURCE, references=[SOURCE])])
    assert copy.raw == pytest.approx(0.95, abs=1e-6)


@pytest.mark.parametrize(
    ("output", "source", "bonus"),
    [
        ("cat", "hat", -1 + 1.35 / 0.35 / 3),  # 1 edit of 3 characters
        ("Cat", "cat", -1 + 1.35 / 0.35 / 3),  # case counts
        ("the cat", "a dog", 0.35),  # 6 edits of 7, beyond .35
        ("cat", "cats are here", 0.35),  # divided by the longer one: 10 of 13
    ],
)
def test_the_bonus_rises_to_its_most_at_a_distance_of_35_hundredths(scored, f_score, output, source, bonus):
    (found,) = scored("parascore_free", [make_row(output, input=source)])
    assert found.raw == pytest.approx(f_score(output, source) + 0.05 * bonus, abs=1e-6)


def test_the_closest_of_input_and_references_counts(scored, f_score):
    output, references = "The dog slept.", ["Prices fell sharply.", "Why did the engine stop?"]
    (both,) = scored("parascore", [make_row(output, input=SOURCE, references=references)])
    closest = max(f_score(output, text) for text in (SOURCE, *references))
    assert both.raw == pytest.approx(closest + 0.05 * 0.35, abs=1e-6)  # 32 of 46 characters go: beyond .35
    (exact,) = scored("parascore", [make_row(output, input=SOURCE, references=[*references, output])])
    assert exact.raw == pytest.approx(1.0175, abs=1e-6)


def test_a_copy_is_below_a_reference_in_other_words(scored):
    reference = "Beneath a large desk lay one sleeping puppy."
    copy, other = scored(
        "parascore", [make_row(text, input=SOURCE, references=[reference]) for text in (SOURCE, reference)]
    )
    assert other.raw > copy.raw


@pytest.mark.parametrize(
    ("output", "source", "references", "reason"),
    [
        ("", SOURCE, ["a"], "the output is empty"),
        ("a", " ", ["a"], "the input is empty"),
        ("a", SOURCE, [" ", "\n"], "every reference is empty"),
    ],
)
def test_a_row_without_a_text_to_compare_is_skipped(scored, output, source, references, reason):
    (found,) = scored("parascore", [make_row(output, input=source, references=references)])
    assert found.status is Status.SKIPPED
    assert found.error == reason


def test_each_row_has_its_own_bonus_in_any_batch(scored):
    rows = [make_row(output, input=SOURCE) for output in (SOURCE, SOURCE[:-2], "No.", "The train leaves at 17:45.")]
    alone = [scored("parascore_free", [row])[0].raw for row in rows]
    assert [one.raw for one in scored("parascore_free", rows[::-1])] == pytest.approx(alone[::-1], abs=1e-6)


def test_both_share_the_encodings_of_one_checkpoint(scored, monkeypatch):
    rows = [make_row(output, input=SOURCE, references=["Nobody."]) for output in ("A dog.", "No, 3.")]
    batches, forward = [], encoder._forward
    monkeypatch.setattr(encoder, "_forward", lambda loaded, batch: (batches.append(batch), forward(loaded, batch))[1])
    with encoder.encodings_kept():
        scored("parascore", rows)
        assert sum(map(len, batches)) == 4
        scored("parascore_free", rows)
    assert sum(map(len, batches)) == 4
