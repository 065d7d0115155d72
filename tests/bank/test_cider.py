from __future__ import annotations

import json
import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.bank.base import TextBatch
from metricsmith.bank.catalogue import family
from metricsmith.bank.cider import document_frequencies
from metricsmith.metric import make_row

FAMILY = family("cider")

(METRIC,) = FAMILY.metrics()
TEXTS = st.lists(st.sampled_from(["cat", "dog", "the", "sat", "ran"]), min_size=1, max_size=8).map(" ".join)


def batch(*rows: tuple[str, list[str]], statistics: dict[str, object] | None = None) -> TextBatch:
    outputs, references = zip(*rows, strict=True)
    return TextBatch(outputs, [""] * len(rows), references, statistics)


def scores(*rows: tuple[str, list[str]], statistics: dict[str, object] | None = None) -> list[float]:
    found = FAMILY.compute(batch(*rows, statistics=statistics), ["cider"])["cider"]
    return [float(value) for value in found]


def test_value_by_hand_in_a_corpus_of_three_items() -> None:
    # References 'a b', 'a c', 'd': N = 3, document frequencies a 2, everything else 1.
    # idf: a log(4/2) = l, others log 4 = 2 l.  Output 'a c' against 'a b', all counts 1:
    # n = 1: a.a / (|a c| |a b|) = l^2 / (l^2 + 4 l^2) = 1/5;  n = 2: 'a c' and 'a b' differ: 0.
    # mean of the two orders that occur, times 10, same length: 10 (1/5 + 0) / 2 = 1.
    found = scores(("a c", ["a b"]), ("x", ["a c"]), ("x", ["d"]))
    assert found[0] == pytest.approx(1.0)


def test_repetition_is_clipped_and_length_is_penalised_by_hand() -> None:
    # one item: every idf is log 2, which cancels. Output 'a a a' against 'a': n = 1: min(3, 1) * 1 / (3 * 1) = 1/3;
    # n = 2, 3: only the output has n-grams: 0. Mean of three orders, times exp(-(3 - 1)^2 / 72).
    assert scores(("a a a", ["a"])) == pytest.approx([10 * (1 / 3) / 3 * math.exp(-4 / 72)])


def test_a_perfect_match_beats_a_near_miss_even_for_a_row_alone() -> None:
    perfect = METRIC.score("the cat sat on the mat", references="the cat sat on the mat")
    near = METRIC.score("the cat sat on the hat", references="the cat sat on the mat")
    far = METRIC.score("dogs run", references="the cat sat on the mat")
    assert perfect == pytest.approx(10)
    assert perfect > near > far == 0


@pytest.mark.parametrize("text", ["word", "two words", "我喜欢猫", "!", "Привет, мир"])
def test_a_perfect_match_gives_10_however_short(text: str) -> None:
    assert METRIC.score(text, references=text) == pytest.approx(10)


def test_rare_words_count_more_than_common_ones() -> None:
    corpus = [make_row("x", references=[f"the {animal} sat"]) for animal in ("cat", "dog", "cow", "pig")]
    fitted = METRIC.fit(corpus)
    rare, common = (fitted.score(output, references="the zebra sat") for output in ("a zebra stood", "the gnu stood"))
    assert rare > 2 * common


def test_given_frequencies_take_the_place_of_the_batchs_own() -> None:
    statistics = document_frequencies(batch(("x", ["the cat"]), ("x", ["the dog"]), ("x", ["a cow"])))
    # 'the' occurs in 2 of 3 items, 'cat' in one: idf log 2 = l and 2 l.  'cat' against 'the cat':
    # n = 1: 4 l^2 / (2 l sqrt(5) l) = 2 / sqrt 5; n = 2: 0; lengths 1 and 2.
    expected = 10 * (2 / math.sqrt(5)) / 2 * math.exp(-1 / 72)
    assert scores(("cat", ["the cat"]), statistics=statistics) == pytest.approx([expected])
    assert scores(("cat", ["the cat"])) != pytest.approx([expected])


def test_statistics_are_json_ready_and_survive_it() -> None:
    statistics = document_frequencies(batch(("x", ["the cat sat"]), ("x", ["the cat ran"]), ("x", ["a dog"])))
    # n-grams of one item only weigh as much as unknown ones and are left out
    assert statistics == {"documents": 3, "frequencies": {"the": 2, "cat": 2, "the cat": 2}}
    again = json.loads(json.dumps(statistics))
    rows = ("the cat", ["the cat sat"]), ("a dog ran", ["a dog"])
    assert scores(*rows, statistics=again) == scores(*rows, statistics=statistics)


def test_outputs_for_one_input_share_one_item() -> None:
    once = document_frequencies(batch(("x", ["the cat", "a cat"]), ("x", ["the dog"])))
    twice = document_frequencies(batch(("x", ["the cat", "a cat"]), ("y", ["a cat", "the cat"]), ("x", ["the dog"])))
    assert once == twice == {"documents": 2, "frequencies": {"the": 2}}


def test_several_references_are_averaged() -> None:
    statistics = document_frequencies(batch(("x", ["a b"]), ("x", ["c d"]), ("x", ["a e"])))
    both, first, second = (
        scores(("a b", references), statistics=statistics)[0] for references in (["a b", "c d"], ["a b"], ["c d"])
    )
    assert both == pytest.approx((first + second) / 2)
    assert scores(("a b", ["", "a b"]), statistics=statistics) == [first]


def test_an_empty_output_scores_0_and_an_empty_corpus_is_no_error() -> None:
    assert METRIC.score("", references="the cat") == 0.0
    assert METRIC.fit([make_row("x")]).score("the cat", references="the cat") == pytest.approx(10)


def test_rows_alone_equal_the_batch_once_fitted() -> None:
    rows = [
        make_row(output, references=references)
        for output, references in [("the cat ran", ["the cat sat", "a cat"]), ("a dog", ["a dog"]), ("", ["cat"])]
    ]
    fitted = METRIC.fit(rows)
    assert fitted.judge_batch(rows) == [fitted.judge_batch([row])[0] for row in rows]
    assert fitted.fingerprint() != METRIC.fingerprint()


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3)), min_size=1, max_size=4))
def test_equals_the_papers_formula_on_dense_vectors(rows: list[tuple[str, list[str]]]) -> None:
    assert scores(*rows) == pytest.approx([by_definition(row, rows) for row in rows], abs=1e-9)


def by_definition(row: tuple[str, list[str]], rows: list[tuple[str, list[str]]]) -> float:
    items = {frozenset(references) for _, references in rows}

    def grams(text: str, order: int) -> Counter[tuple[str, ...]]:
        tokens = text.split()
        return Counter(tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1))

    def idf(gram: tuple[str, ...]) -> float:
        count = sum(any(gram in grams(text, len(gram)) for text in item) for item in items)
        return math.log((len(items) + 1) / max(1, count))

    def one(output: str, reference: str) -> float:
        cosines = []
        for order in range(1, 5):
            c, r = grams(output, order), grams(reference, order)
            if not c and not r:
                continue
            axes = sorted({*c, *r})
            left, right = ([counts[axis] * idf(axis) for axis in axes] for counts in (c, r))
            product = sum(min(x, y) * y for x, y in zip(left, right, strict=True))
            cosines.append(product / (math.hypot(*left) * math.hypot(*right)) if c and r else 0.0)
        gap = len(output.split()) - len(reference.split())
        return 10 * sum(cosines) / len(cosines) * math.exp(-(gap**2) / 72)

    output, references = row
    return sum(one(output, reference) for reference in references) / len(references)
