"""Porter's stemmer of English words, with the changes that nltk 3 makes to it and nothing else of that library.

ROUGE and METEOR are defined on these stems, and loading nltk for them takes as long as loading DSPy.

Cards still name nltk as the source, since fingerprints of stored judgements hold their text.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

__all__ = ["stem"]

_OWN_STEM = {
    "skies": "sky", "sky": "sky", "dying": "die", "lying": "lie", "tying": "tie", "news": "news",
    "inning": "inning", "innings": "inning", "outing": "outing", "outings": "outing",
    "canning": "canning", "cannings": "canning", "howe": "howe",
    "proceed": "proceed", "exceed": "exceed", "succeed": "succeed",
}  # fmt: skip
# Of each table the first ending that fits decides. Steps 2 to 4 of the paper.
_DOUBLE_ENDINGS = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble"),
    ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"),
    ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"),
    ("iviti", "ive"), ("biliti", "ble"), ("fulli", "ful"),
)  # fmt: skip
_PLAIN_ENDINGS = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
_LAST_ENDINGS = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
)  # fmt: skip


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The stem of one lower-cased English word, equal to that of ``nltk.stem.PorterStemmer()`` (nltk 3.10.4).

    Words of other languages lose what looks like an English ending; words of one or two letters stay as they are.

    References
    ----------
    Porter (1980), "An algorithm for suffix stripping".

    Examples
    --------
    >>> stem("generalizations"), stem("happy"), stem("flies"), stem("dying")
    ('gener', 'happi', 'fli', 'die')
    """
    if word in _OWN_STEM:
        return _OWN_STEM[word]
    if len(word) <= 2:
        return word
    word = _without_past(_without_plural(word))
    if word.endswith("y") and len(word) > 2 and _shape(word[:-1]).endswith("c"):
        word = word[:-1] + "i"
    word = _exchanged(_shortened(word), _PLAIN_ENDINGS)
    ending = next((one for one in _LAST_ENDINGS if word.endswith(one)), "")
    left = word.removesuffix(ending)
    if _measure(left) > 1 and (ending != "ion" or left[-1] in "st"):
        word = left
    if word.endswith("e") and (_measure(word[:-1]) > 1 or (_measure(word[:-1]) == 1 and not _is_short(word[:-1]))):
        word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _without_plural(word: str) -> str:
    """Step 1a."""
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_past(word: str) -> str:
    """Step 1b: -ed and -ing, and what they had changed in the stem."""
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    left = word.removesuffix("ed") if word.endswith("ed") else word.removesuffix("ing")
    if left == word or "v" not in _shape(left):
        return word
    if left.endswith(("at", "bl", "iz")):
        return left + "e"
    if left[-2:] == 2 * left[-1] and _shape(left).endswith("c"):
        return left if left[-1] in "lsz" else left[:-1]
    return left + "e" if _measure(left) == 1 and _is_short(left) else left


def _shortened(word: str) -> str:
    """Step 2."""
    if word.endswith("alli") and _measure(word[:-4]):
        return _shortened(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) else word
    return _exchanged(word, _DOUBLE_ENDINGS)


def _exchanged(word: str, endings: Iterable[tuple[str, str]]) -> str:
    """The word with its ending exchanged if something is left before it."""
    for ending, other in endings:
        if word.endswith(ending):
            left = word.removesuffix(ending)
            return left + other if _measure(left) else word
    return word


def _shape(word: str) -> str:
    """A ``c`` for every consonant and a ``v`` for every vowel; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        shape += "v" if letter in "aeiou" or (letter == "y" and shape.endswith("c")) else "c"
    return shape


def _measure(word: str) -> int:
    """Porter's m: how often consonants follow vowels."""
    return _shape(word).count("vc")


def _is_short(word: str) -> bool:
    """Porter's *o: consonant, vowel, consonant at the end, the last not w, x or y; in nltk also vowel, consonant."""
    shape = _shape(word)
    return shape == "vc" or (shape.endswith("cvc") and word[-1] not in "wxy")
