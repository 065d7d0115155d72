"""The rows that a judge has learned from travel with it, and change nothing else."""

from __future__ import annotations

import pytest

from metricsmith.metric import make_row
from metricsmith.programs.judges.panel import Panel
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.learned import has_learned, learned_from, mark_tuned
from metricsmith.programs.loading import from_state, load
from metricsmith.programs.state import write_state
from metricsmith.saving import row_hash
from saved import RATED, ROW, criterion, every_kind, induced

LONG = "One two three four five six seven eight"  # words from which an output is known without its input
HASHES = {row_hash(row) for row in RATED}


def test_a_row_is_known_again_by_its_output_and_a_short_one_by_its_input_too():
    long, short = make_row(LONG, input="a"), make_row("yes", input="a")
    assert row_hash(long) == row_hash(make_row(LONG.replace(" ", " \n"), input="b", references=["c"], context="d"))
    assert row_hash(long) != row_hash(make_row(LONG[:-1], input="a"))
    assert (
        row_hash(short) == row_hash(make_row(" yes", input="a ", context="d")) != row_hash(make_row("yes", input="b"))
    )
    assert len(row_hash(long)) == len(row_hash(short)) == 16
    assert row_hash(make_row("", input="a")) == ""


def test_examples_are_recorded_and_survive_the_file_without_a_change_of_prompt_or_fingerprint(tmp_path):
    judge = criterion().with_examples(RATED, [1, 3, 5])
    assert learned_from(judge) == HASHES
    judge.save(tmp_path / "judge.json")
    again = load(tmp_path / "judge.json")
    assert learned_from(again) == HASHES
    silent = judge.deepcopy()
    silent.made_with = {}
    assert silent.fingerprint() == judge.fingerprint() == again.fingerprint()
    assert silent.messages(ROW) == judge.messages(ROW)
    more = again.with_examples([ROW], [2])  # the earlier ones may have left their mark in an instruction
    assert learned_from(more) == HASHES | {row_hash(ROW)}


def test_a_file_of_before_loads_and_shows_that_it_learned_without_saying_what_from(tmp_path):
    judge = criterion().with_examples(RATED, [1, 3, 5])
    state = {key: part for key, part in judge.to_state().items() if key != "made_with"}
    write_state(state, tmp_path / "old.json")
    old = load(tmp_path / "old.json")
    assert (learned_from(old), has_learned(old), old.fingerprint()) == (frozenset(), True, judge.fingerprint())


def test_whatever_is_made_of_a_judge_has_learned_from_its_rows():
    judge = criterion().with_examples(RATED, [1, 3, 5])
    member = Panel([judge, criterion("Other")]).members()[1]
    whole = [Repeated(judge, 3), member, induced([judge, criterion("Other")])]
    for metric in [*whole, *(from_state(one.to_state()) for one in whole)]:
        assert learned_from(metric) == HASHES


UNLEARNED = ("rubric_judge", "guideline_judge", "geval_judge logprob", "mqm_judge", "dna_eval", "bank", "callable")


@pytest.mark.parametrize("name", UNLEARNED)
def test_what_nobody_tuned_has_learned_nothing(name):
    metric = every_kind()[name]
    assert (learned_from(metric), has_learned(metric)) == (frozenset(), False)


def test_a_search_that_changed_nothing_leaves_no_mark():
    judge, instructed = criterion(), criterion()
    mark_tuned(judge, RATED)
    assert learned_from(judge) == frozenset()
    instructed.judge.signature = instructed.judge.signature.with_instructions("Rate it.")
    mark_tuned(instructed, RATED)
    assert learned_from(instructed) == HASHES
