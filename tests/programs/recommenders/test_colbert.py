from __future__ import annotations

import copy
import logging
import shutil
from dataclasses import replace
from importlib.util import find_spec
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricsmith.errors import NeedsError, OptionError
from metricsmith.programs.recommenders.colbert import ColBERTRecommender, EmbeddingCache, max_similarity
from metricsmith.programs.recommenders.colbert_checkpoint import ColBERTEncoder


@pytest.fixture
def encoded(monkeypatch):
    """The texts that were encoded as cards, in order."""
    seen: list[str] = []
    document = ColBERTEncoder.document

    def count(self, text):
        seen.append(text)
        return document(self, text)

    monkeypatch.setattr(ColBERTEncoder, "document", count)
    return seen


@pytest.mark.skipif(find_spec("colbert") is not None, reason="the extra colbert is installed")
def test_without_the_extra_the_install_line_comes_before_any_work(bare_checkpoint):
    with pytest.raises(NeedsError, match=r'pip install "metricsmith\[colbert\]"'):
        ColBERTRecommender(bare_checkpoint({"linear.weight": [2, 4]}))


def test_late_interaction_by_hand():
    query = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    document = np.array([[0.6, 0.8], [-1.0, 0.0], [0.8, -0.6]], dtype=np.float32)
    # By hand: the first query token is closest to row 3 (.8), the second to row 1 (.8).
    assert max_similarity(query, document) == pytest.approx(1.6)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_more_document_tokens_never_lower_the_score_and_order_is_free(q, t, seed):
    random = np.random.default_rng(seed)
    query = random.normal(size=(q, 4)).astype(np.float32)
    document = random.normal(size=(t, 4)).astype(np.float32)
    score = max_similarity(query, document)
    assert max_similarity(query, document[:1]) <= score + 1e-6
    assert max_similarity(query, document[::-1]) == pytest.approx(score, abs=1e-6)  # float32 sums


@pytest.mark.extras
def test_every_card_finds_itself(tiny_colbert, pool):
    recommender = ColBERTRecommender(tiny_colbert)
    found = [recommender.recommend(card.to_markdown(), pool, 1).names[0] for card in pool]
    assert found == [card.name for card in pool]


@pytest.mark.extras
def test_scores_equal_colberts_own(tiny_colbert, pool):
    from colbert.infra import ColBERTConfig
    from colbert.modeling.colbert import colbert_score

    recommender = ColBERTRecommender(tiny_colbert)
    ranked = recommender.recommend("poem about a river", pool, len(pool))
    model = recommender._load()._model
    (documents,) = model.docFromText([card.to_markdown() for card in pool], bsize=8)
    own = colbert_score(
        model.queryFromText(["poem about a river"]),
        documents,
        documents.abs().sum(-1) > 0,
        ColBERTConfig(gpus=0),
    )
    expected = {card.name: score for card, score in zip(pool, own.tolist(), strict=True)}
    assert dict(zip(ranked.names, ranked.scores, strict=True)) == pytest.approx(expected, abs=1e-4)
    assert list(ranked.scores) == sorted(ranked.scores, reverse=True)


@pytest.mark.extras
def test_a_cards_score_does_not_depend_on_its_neighbours(tiny_colbert, pool):
    together = ColBERTRecommender(tiny_colbert).recommend("poem", pool, 40)
    alone = ColBERTRecommender(tiny_colbert).recommend("poem", [pool[7]], 1)
    assert alone.scores[0] == together.scores[together.names.index(pool[7].name)]


@pytest.mark.extras
def test_known_cards_are_not_encoded_again(tiny_colbert, pool, encoded, tmp_path):
    recommender = ColBERTRecommender(tiny_colbert, cache_folder=tmp_path)
    first = recommender.recommend("poem", pool, 5)
    assert len(encoded) == len(pool)
    assert recommender.recommend("poem", pool, 5) == first
    assert ColBERTRecommender(tiny_colbert, cache_folder=tmp_path).recommend("poem", pool, 5) == first
    assert len(encoded) == len(pool)


@pytest.mark.extras
def test_an_edited_card_is_encoded_again(tiny_colbert, pool, encoded, tmp_path):
    recommender = ColBERTRecommender(tiny_colbert, cache_folder=tmp_path)
    recommender.recommend("poem", pool, 5)
    edited = replace(pool[3], summary=pool[3].summary + " poem")
    recommender.recommend("poem", [*pool[:3], edited, *pool[4:]], 5)
    assert encoded[len(pool) :] == [edited.to_markdown()]


@pytest.mark.extras
def test_another_checkpoint_or_limit_shares_nothing_a_moved_one_everything(tiny_colbert, pool, encoded, tmp_path):
    from safetensors.torch import load_file, save_file

    few, cache = pool[:3], tmp_path / "cache"
    ColBERTRecommender(tiny_colbert, cache_folder=cache).recommend("poem", few, 3)
    moved = shutil.copytree(tiny_colbert, tmp_path / "moved")
    ColBERTRecommender(moved, cache_folder=cache).recommend("poem", few, 3)
    assert len(encoded) == 3
    ColBERTRecommender(tiny_colbert, cache_folder=cache, card_tokens=20).recommend("poem", few, 3)
    assert len(encoded) == 6
    weights = load_file(moved / "model.safetensors")
    weights["linear.weight"] = -weights["linear.weight"]
    save_file(weights, moved / "model.safetensors", metadata={"format": "pt"})
    ColBERTRecommender(moved, cache_folder=cache).recommend("poem", few, 3)
    assert len(encoded) == 9


@pytest.mark.extras
def test_what_was_cut_is_said(tiny_colbert, card):
    cards = [card("short", "poem"), card("long", "poem " * 200)]
    ranked = ColBERTRecommender(tiny_colbert, query_tokens=8).recommend("verse " * 20, cards, 2)
    assert any("task is longer than 8 tokens" in note for note in ranked.notes)
    assert any("1 of 2 cards" in note and "192 tokens" in note for note in ranked.notes)


@pytest.mark.extras
def test_limits_without_room_for_words_are_refused(tiny_colbert):
    with pytest.raises(OptionError, match="card_tokens = 3"):
        ColBERTRecommender(tiny_colbert, card_tokens=3)


@pytest.mark.extras
def test_a_copied_program_shares_the_weights(tiny_colbert):
    recommender = ColBERTRecommender(tiny_colbert)
    assert copy.deepcopy(recommender) is recommender


@pytest.mark.extras
def test_it_is_a_module_whose_saved_state_holds_its_limits_and_no_path(tiny_colbert, pool, tmp_path):
    recommender = ColBERTRecommender(tiny_colbert)
    recommender.recommend("poem", pool, 3)
    ColBERTRecommender(tiny_colbert, query_tokens=8, card_tokens=20).save(tmp_path / "colbert.json")
    assert str(tiny_colbert) not in (tmp_path / "colbert.json").read_text("utf-8")
    recommender.load(tmp_path / "colbert.json")
    short = ColBERTRecommender(tiny_colbert, query_tokens=8, card_tokens=20)
    answer = recommender(task="verse " * 20, target="poem", cards=pool, k=3)
    assert (answer.names, answer.unknown) == (list(short.recommend("verse " * 20 + "\npoem", pool, 3).names), [])
    assert (recommender.query_tokens, recommender.card_tokens) == (8, 20)


class Encoder:
    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return np.full((2, 3), self.calls, dtype=np.float32)


def test_memory_encodes_a_text_once():
    cache, encode = EmbeddingCache(), Encoder()
    first = cache.get("model", "text", encode)
    assert cache.get("model", "text", encode) is first
    assert encode.calls == 1


def test_another_text_or_another_encoder_is_encoded():
    cache, encode = EmbeddingCache(), Encoder()
    for encoder, text in (("model", "text"), ("model", "text."), ("other", "text")):
        cache.get(encoder, text, encode)
    assert encode.calls == 3


def test_the_folder_outlives_the_process_and_holds_no_pickle(tmp_path):
    encode = Encoder()
    stored = EmbeddingCache(tmp_path / "new" / "folder").get("model", "text", encode)
    again = EmbeddingCache(tmp_path / "new" / "folder").get("model", "text", encode)
    np.testing.assert_array_equal(stored, again)
    assert encode.calls == 1
    (file,) = (tmp_path / "new" / "folder").iterdir()
    with np.load(file, allow_pickle=False) as content:
        assert content["embedding"].dtype == np.float32


def test_a_damaged_file_is_replaced_and_said(tmp_path, caplog):
    EmbeddingCache(tmp_path).get("model", "text", Encoder())
    (file,) = tmp_path.iterdir()
    array = BytesIO()
    np.save(array, np.zeros(3))
    for damage in (b"", b"not a zip", file.read_bytes()[:-30], array.getvalue()):
        file.write_bytes(damage)
        encode = Encoder()
        with caplog.at_level(logging.WARNING):
            EmbeddingCache(tmp_path).get("model", "text", encode)
        assert encode.calls == 1
        assert "made anew" in caplog.text
        caplog.clear()
    assert EmbeddingCache(tmp_path).get("model", "text", Encoder()).shape == (2, 3)
    assert [path.suffix for path in tmp_path.iterdir()] == [".npz"]
