from __future__ import annotations

from fractions import Fraction
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.bank.base import TextBatch
from metricsmith.bank.catalogue import family
from metricsmith.bank.sari import sari

FAMILY = family("sari")

NAMES = [output.name for output in FAMILY.card.outputs]
TOKENS = st.lists(st.sampled_from("abcde"), max_size=7)
FILLED = TOKENS.filter(bool)


def scores(source: str, output: str, *references: str) -> dict[str, float]:
    found = FAMILY.compute(TextBatch([output], [source], [references]), NAMES)
    return {name: float(found[name][0]) for name in NAMES}


def test_values_of_one_word_edit_by_hand() -> None:
    # input 'a b', output 'a c', reference 'a d'.
    # n=1: keep a: p 1/1, r 1/1, F 1; add c, wanted d: p 0, r 0, F 0; delete b, which the reference deletes: 1.
    # n=2: keep: nothing kept, nothing to keep: F 1; add 'a c', wanted 'a d': F 0; delete 'a b': 1.
    # n=3, 4: no n-grams at all: 1, 1, 1.
    assert scores("a b", "a c", "a d") == pytest.approx(
        {"sari": 100 * (1 + 1 / 2 + 1) / 3, "sari_keep": 100, "sari_add": 50, "sari_delete": 100}
    )


def test_values_with_two_references_by_hand() -> None:
    # input 'a b c', output 'a x', references 'a b' and 'a x y'; R' of a = 1, of b = 1/2, of c = 0.
    # n=1: keep a: p = 1 / 1; r = 1 / (1 + 1/2) = 2/3; F = 4/5.
    #      add x, wanted {x, y}: p 1, r 1/2, F = 2/3.
    #      delete b, c: (1/2 + 1) / 2 = 3/4.
    # n=2: keep none; wanted 'a b' with 1/2: p 0/0 = 1, r 0, F 0.
    #      add 'a x', wanted {'a x', 'x y'}: p 1, r 1/2, F 2/3.  delete 'a b', 'b c': (1/2 + 1) / 2 = 3/4.
    # n=3: keep none, none wanted: 1.  add none, wanted 'a x y': p 1, r 0, F 0.  delete 'a b c': 1.
    # n=4: 1, 1, 1.
    ((keep, add, delete),) = sari([["abc", "ax", "ab", "axy"]])
    assert keep == pytest.approx(100 * (4 / 5 + 0 + 1 + 1) / 4)
    assert add == pytest.approx(100 * (2 / 3 + 2 / 3 + 0 + 1) / 4)
    assert delete == pytest.approx(100 * (3 / 4 + 3 / 4 + 1 + 1) / 4)


def test_reproducing_a_single_reference_scores_100_in_every_part() -> None:
    source, reference = "The big cat sat down.", "The cat sat."
    assert scores(source, reference, reference) == dict.fromkeys(NAMES, 100.0)
    assert scores(source, source, source) == dict.fromkeys(NAMES, 100.0)


def test_copying_the_input_earns_no_addition() -> None:
    found = scores("the large feline sat down", "the large feline sat down", "the big cat sat")
    assert found["sari_add"] == 0
    assert found["sari"] < scores("the large feline sat down", "the big cat sat", "the big cat sat")["sari"]


def test_deleting_too_little_costs_nothing_and_deleting_too_much_does() -> None:
    timid, bold = scores("a b c d", "a b c", "a b"), scores("a b c d", "a", "a b")
    # timid deletes d, 'c d', 'b c d', 'a b c d', all rightly; bold deletes b and 'a b' besides
    assert timid["sari_delete"] == 100
    assert bold["sari_delete"] == pytest.approx(100 * (2 / 3 + 2 / 3 + 1 + 1) / 4)


def test_case_and_blank_references_do_not_count() -> None:
    assert scores("a B", "A c", "a d", " ") == scores("A b", "a C", "A D")


def test_an_empty_output_deletes_everything() -> None:
    found = scores("a b", "", "a")
    # deletes a (wrongly), b and 'a b': 1/2, 1, then 1, 1
    assert found["sari_delete"] == pytest.approx(100 * (1 / 2 + 1 + 1 + 1) / 4)
    assert found["sari_keep"] == pytest.approx(100 * (0 + 1 + 1 + 1) / 4)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(FILLED, TOKENS, st.lists(FILLED, min_size=1, max_size=3)), max_size=3))
def test_equals_the_papers_sums_over_all_ngrams(rows: list[tuple[list[str], list[str], list[list[str]]]]) -> None:
    expected = [
        [float(25 * sum(parts)) for parts in zip(*(by_definition(*row, order) for order in range(1, 5)), strict=True)]
        for row in rows
    ]
    found = sari([[source, output, *references] for source, output, references in rows])
    assert found.tolist() == [pytest.approx(parts, abs=1e-9) for parts in expected]


def by_definition(
    source: list[str], output: list[str], references: list[list[str]], order: int
) -> tuple[Fraction, Fraction, Fraction]:
    """The indicator sums of the paper, one n-gram after another, in exact fractions."""

    def grams(tokens: list[str]) -> set[tuple[str, ...]]:
        return {tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1)}

    before, after, targets = grams(source), grams(output), [grams(tokens) for tokens in references]
    everything = before | after | set(chain.from_iterable(targets))
    in_i, in_o = (lambda g: Fraction(g in before)), (lambda g: Fraction(g in after))
    in_r = {g: Fraction(sum(g in target for target in targets), len(targets)) for g in everything}

    def ratio(part: object, whole: object) -> Fraction:
        top, bottom = (sum((f(g) for g in everything), Fraction(0)) for f in (part, whole))
        return top / bottom if bottom else Fraction(1)

    def harmonic(p: Fraction, r: Fraction) -> Fraction:
        return 2 * p * r / (p + r) if p + r else Fraction(0)

    kept = lambda g: min(in_i(g), in_o(g))  # noqa: E731
    kept_wanted = lambda g: min(in_i(g), in_r[g])  # noqa: E731
    kept_rightly = lambda g: min(kept(g), kept_wanted(g))  # noqa: E731
    added = lambda g: max(in_o(g) - in_i(g), 0)  # noqa: E731
    add_wanted = lambda g: Fraction(in_r[g] > 0 and g not in before)  # noqa: E731
    added_rightly = lambda g: min(added(g), add_wanted(g))  # noqa: E731
    deleted = lambda g: max(in_i(g) - in_o(g), 0)  # noqa: E731
    deleted_rightly = lambda g: min(deleted(g), max(in_i(g) - in_r[g], 0))  # noqa: E731
    return (
        harmonic(ratio(kept_rightly, kept), ratio(kept_rightly, kept_wanted)),
        harmonic(ratio(added_rightly, added), ratio(added_rightly, add_wanted)),
        ratio(deleted_rightly, deleted),
    )
