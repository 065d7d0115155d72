from __future__ import annotations

import doctest

import numpy as np
import pytest

import plain_notices_writer as writer
from plain_notices_writer import (
    break_sentences,
    drop_verb,
    load_material,
    run_on,
    scramble,
)

SOURCES = load_material().sources
by_source = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.id)


def words(text):
    return len(text.split())


@by_source
def test_notice_and_reference_have_their_lengths(source):
    assert 60 <= words(source.notice) <= 100
    assert 45 <= words(source.reference) <= 95


@by_source
def test_every_fact_has_three_different_wordings_and_jargon_is_the_heaviest(source):
    assert len(source.facts) == 5
    for fact in source.facts:
        texts = (fact.plain, fact.second, fact.jargon)
        assert len(set(texts)) == 3
        letters = [sum(map(len, text.split())) / words(text) for text in texts]
        assert letters[2] > max(letters[:2])


@by_source
def test_at_least_two_facts_can_be_contradicted_in_every_wording(source):
    contradictable = [fact for fact in source.facts if fact.right]
    assert len(contradictable) >= 2
    for fact in contradictable:
        assert fact.wrong
        assert fact.wrong != fact.right
        for text in (fact.plain, fact.second, fact.jargon):
            assert text.count(fact.right) == 1
            assert abs(words(text) - words(text.replace(fact.right, fact.wrong))) <= 4


@by_source
def test_a_wrong_tone_has_the_length_of_the_neutral_sentence(source):
    assert abs(words(source.opening) - words(source.opening_off)) <= 2
    assert abs(words(source.closing) - words(source.closing_off)) <= 2


def test_sources_are_many_and_no_sentence_serves_two_of_them():
    told = [fact for source in SOURCES for fact in source.facts]
    facts = [text for fact in told for text in (fact.plain, fact.second, fact.jargon)]
    frames = [text for s in SOURCES for text in (s.opening, s.opening_off, s.closing, s.closing_off)]
    assert len(SOURCES) >= 44
    assert len(set(facts)) == len(facts)
    assert len(set(frames)) == len(frames)
    assert len({source.topic for source in SOURCES}) >= 10


def test_idle_sentences_are_at_least_25_for_each_topic_and_all_different():
    material = load_material()
    everything = [sentence for sentences in material.padding.values() for sentence in sentences]
    assert len(set(everything)) == len(everything)
    assert all(len(material.idle_sentences(source.topic)) >= 25 for source in SOURCES)


def test_running_on_leaves_one_full_stop_and_every_word():
    text = run_on(["The pool is shut.", "Do you swim?", "Elmtree Pharmacy is open."])
    assert text == "The pool is shut do you swim Elmtree Pharmacy is open."


def test_a_verb_that_carries_a_not_is_kept():
    assert drop_verb("We will not stop, but buses are free.") == "We will not stop, but buses free."


def test_a_sentence_without_a_common_verb_is_scrambled_instead():
    assert drop_verb("Put them out by noon on Friday.") == scramble("Put them out by noon on Friday.")


def test_scrambling_keeps_every_word_and_does_not_cut_through_a_number():
    sentence = "Please ring 0555 010 330 at least a day before."
    assert scramble(sentence) == "At least a day before please ring 0555 010 330."
    assert scramble("Call 0555 010 330.") == "Call 0555 010 330."


@pytest.mark.parametrize(("count", "sentences_left"), [(0, 6), (1, 4), (2, 2)])
def test_breaking_runs_three_sentences_together_each_time(count, sentences_left):
    sentences = [f"Fact number {number} is told here at some length." for number in range(6)]
    broken = break_sentences(sentences, count, np.random.default_rng(3))
    assert len(broken) == sentences_left
    assert (broken == sentences) == (count == 0)


def test_breaking_few_sentences_runs_all_of_them_together():
    assert len(break_sentences(["One is here.", "Two is there."], 1, np.random.default_rng(0))) == 1


def test_the_docstring_examples_hold():
    assert doctest.testmod(writer).failed == 0
