"""The default first stage: BM25 over the cards, without a model and without weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from metricsmith.errors import OptionError
from metricsmith.programs.recommenders.base import FirstStage, Recommendation, by_score, check_pool, query_text
from metricsmith.programs.state import Settings
from metricsmith.records import MetricCard, Task

__all__ = ["BM25Recommender", "tokens"]

WORD = re.compile(r"\w+")


class BM25Recommender(FirstStage):
    """Ranks cards by BM25 of the task's words in the card's Markdown (Robertson and Zaragoza 2009).

    The variant is Lucene's as bm25s computes it. Words are case-folded, English stop words are dropped and
    English endings stripped (Snowball); other scripts match whole words only. Equal scores keep the order of
    the cards, so the result depends on nothing but the arguments. Where no word of the task occurs in any
    card, all scores are 0, the order is the pool's own, and a note says so.

    Parameters
    ----------
    k1 : float
        Saturation of repeated words: the lower, the sooner repeats stop counting; at least 0.
    b : float
        Strength of the discount for long cards, in [0, 1].

    Raises
    ------
    OptionError
        If a parameter is out of range.
    """

    def __init__(self, k1: float = 1.5, b: float = 0.75) -> None:
        super().__init__()
        if not k1 >= 0:
            raise OptionError(f"BM25 is not defined for k1 = {k1:g}: k1 must be 0 or more (1.5 is usual)")
        if not 0 <= b <= 1:
            raise OptionError(f"BM25 is not defined for b = {b:g}: b must be in [0, 1] (0.75 is usual)")
        self.settings = Settings(k1=k1, b=b)

    def recommend(self, task: Task | str, cards: Sequence[MetricCard], k: int = 30) -> Recommendation:
        """Name the `k` cards with the best BM25 score for the task; see `Recommender.recommend`."""
        import bm25s

        check_pool(cards, k)
        index = bm25s.BM25(k1=self.settings.k1, b=self.settings.b, method="lucene", backend="numpy")
        index.index([tokens(card.to_markdown()) for card in cards], show_progress=False)
        # By number, since bm25s takes an empty list of numbers but no empty list of words.
        scores = index.get_scores_from_ids(index.get_tokens_ids(tokens(query_text(task))))
        if scores.any():
            return by_score(cards, scores, k)
        note = "no word of the task occurs in any card: the order is the pool's own"
        return by_score(cards, scores, k, (note,))


def tokens(text: str) -> list[str]:
    """Split text into case-folded word stems without English stop words.

    Examples
    --------
    >>> tokens("The summaries are READABLE.")
    ['summari', 'readabl']
    """
    from bm25s.stopwords import STOPWORDS_EN

    stem = _stemmer()
    return [stem(word) for word in WORD.findall(text.casefold()) if word not in STOPWORDS_EN]


@cache
def _stemmer() -> Callable[[str], str]:
    from nltk.stem.snowball import EnglishStemmer

    stem: Callable[[str], str] = cache(EnglishStemmer().stem)
    return stem
