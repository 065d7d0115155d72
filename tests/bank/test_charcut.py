from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.bank.base import TextBatch
from metricsmith.bank.catalogue import family
from metricsmith.bank.charcut import SHORTEST, Block, charcut, matching_blocks

FAMILY = family("charcut")

(METRIC,) = FAMILY.metrics()
TEXTS = st.text(alphabet="ab c", max_size=25)


def test_values_by_hand() -> None:
    # 'abcd' and 'wxyz' change places around ' ': the first longest, 'abcd', and 'wxyz' are cut out; the chain
    # keeps one of them, the other is 4 shifted characters; the space is left over twice: 6 of 18
    assert charcut("abcd wxyz", "wxyz abcd") == pytest.approx(6 / 18)
    # common prefix 'a ' and suffix '.' count although they are short; 'x', 'y' are left over: 2 of 8
    assert charcut("a x.", "a y.") == pytest.approx(2 / 8)
    assert charcut("kitten", "mitten") == pytest.approx(2 / 12)


def test_value_that_the_authors_program_is_documented_to_give() -> None:
    # HF evaluate, card of charcut_mt: the two pairs together give 0.1971153846153846 = 41 / 208
    pairs = [
        (
            "this week the saudis denied information published in the new york times",
            "saudi arabia denied this week information published in the american new york times",
        ),
        ("this is in fact an estimate", "this is actually an estimate"),
    ]
    lengths = [len(output) + len(reference) for output, reference in pairs]
    edits = [charcut(*pair) * length for pair, length in zip(pairs, lengths, strict=True)]
    assert sum(edits) / sum(lengths) == pytest.approx(0.1971153846153846)


def test_short_matches_inside_do_not_count() -> None:
    assert charcut("xxabyy", "zzabww") == 1.0
    assert charcut("xxabcyy", "zzabcww") == pytest.approx(8 / 14)


def test_the_longest_substring_is_cut_out_first_and_others_are_trimmed_by_it() -> None:
    # 'bcdefg' (6) wins over 'abcd' and 'fghi', of which nothing of three characters is left
    assert matching_blocks("abcd_bcdefg", "bcdefghi_abcd") == [Block(0, 9, 4), Block(5, 0, 6)]
    # of 'xabcdefy' only 'abc' is left on one side once 'defy' is gone
    blocks = matching_blocks("xxabcdef...defyyyy", "abcdef defyyyy")
    assert Block(11, 7, 7) in blocks
    assert Block(2, 0, 6) in blocks


def test_of_equally_long_substrings_the_first_in_the_output_is_cut_out() -> None:
    assert matching_blocks("_abcde_", ".cde.abc.") == [Block(1, 5, 3)]


def test_a_moved_passage_costs_its_length_once() -> None:
    # moved: 'one ' or so; the heavier 'two three four ' stays
    stays, moved = "two three four ", "one "
    assert charcut(moved + stays, stays + moved) == pytest.approx(len(moved) / (2 * len(stays + moved)))


def test_the_closest_reference_counts_and_blank_ones_do_not() -> None:
    found = METRIC.score("kitten", references=["dog", "mitten", " "])
    assert found == pytest.approx(2 / 12)


def test_an_empty_output_is_all_insertion() -> None:
    assert METRIC.score("", references="abc") == 1.0


def test_letters_beyond_ascii_are_characters_like_any() -> None:
    assert charcut("кошка сидит 🙂", "кошка лежит 🙂") == pytest.approx(6 / 26)


@settings(deadline=None, max_examples=50)
@given(TEXTS, TEXTS.filter(bool))
def test_blocks_are_the_greedy_cuts_of_the_definition(output: str, reference: str) -> None:
    inner = [block for block in matching_blocks(output, reference) if block.size >= SHORTEST]
    assert inner == sorted(greedy_cuts(output, reference))


@settings(deadline=None, max_examples=50)
@given(TEXTS, TEXTS.filter(bool))
def test_value_equals_the_count_of_characters_by_brute_force(output: str, reference: str) -> None:
    blocks = matching_blocks(output, reference)
    heaviest = max(
        (
            sum(block.size for block in chosen)
            for chosen in subsets(blocks)
            if all(a.reference < b.reference for a, b in pairwise(chosen))
        ),
        default=0,
    )
    length, matched = len(output) + len(reference), sum(block.size for block in blocks)
    assert charcut(output, reference) == pytest.approx((length - 2 * matched + matched - heaviest) / length)


@settings(deadline=None, max_examples=50)
@given(TEXTS, TEXTS.filter(bool))
def test_blocks_are_equal_text_and_never_overlap(output: str, reference: str) -> None:
    used_left: set[int] = set()
    used_right: set[int] = set()
    for block in matching_blocks(output, reference):
        left = range(block.output, block.output + block.size)
        right = range(block.reference, block.reference + block.size)
        assert [output[place] for place in left] == [reference[place] for place in right]
        assert used_left.isdisjoint(left)
        assert used_right.isdisjoint(right)
        used_left.update(left)
        used_right.update(right)


def greedy_cuts(output: str, reference: str) -> list[Block]:
    """Cut the longest common substring out of what is left, again and again, searching anew each time."""
    left, right = [*output], [*reference]
    cuts = []
    while True:
        found = [
            Block(i, j, size)
            for size in range(min(len(left), len(right)), SHORTEST - 1, -1)
            for i in range(len(left) - size + 1)
            for j in range(len(right) - size + 1)
            if left[i : i + size] == right[j : j + size]
        ]
        if not found:
            return cuts
        best = max(found, key=lambda block: (block.size, -block.output, -block.reference))
        cuts.append(best)
        left[best.output : best.output + best.size] = ["left"] * best.size
        right[best.reference : best.reference + best.size] = ["right"] * best.size


def subsets(blocks: list[Block]) -> list[list[Block]]:
    chains: list[list[Block]] = [[]]
    for block in blocks:
        chains += [[*chain, block] for chain in chains]
    return chains


def test_a_batch_equals_single_rows() -> None:
    outputs, references = ["abc def", "", "x"], [["abc deg", "def abc"], ["y"], ["x", "z"]]
    together = FAMILY.compute(TextBatch(outputs, ["", "", ""], references), ["charcut"])["charcut"]
    assert together.tolist() == [
        METRIC.score(output, references=texts) for output, texts in zip(outputs, references, strict=True)
    ]
