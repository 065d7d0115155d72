"""The bank's own sentence splitter and word tokeniser: Unicode aware, deterministic, no data files.

Lower-casing and normalisation are the caller's. Both functions are pure, so equal texts give equal tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

__all__ = ["finder", "sentences", "without_spaces", "words"]

# A letter, mark or digit of a script that puts spaces between words.
_CHARACTER = r"[[\p{L}\p{M}\p{N}]--[\p{Han}\p{Hiragana}\p{Katakana}\u30FC]]"
_IDEOGRAPH = r"[\p{Han}\p{Hiragana}\p{Katakana}\u30FC]\p{M}*"
_UNSPACED = r"[[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]&&\p{L}]"
# In turn: a word with what may stand inside it (u.s, well-known, 3,000.5, 10:30); one ideograph or kana;
# an ellipsis or a dash; a punctuation mark, symbol or emoji.
_TOKEN = rf"""
    {_CHARACTER}+ (?: (?:[-'’_.]|(?<=\p{{N}})[,:](?=\p{{N}})) {_CHARACTER}+ )*
  | {_IDEOGRAPH}
  | \.{{2,}} | -{{2,}}
  | (?=[^\s\x1c-\x1f])\X
"""
# The same for ASCII text, three times as fast without Unicode properties.
_ASCII_TOKEN = r"[A-Za-z0-9]+(?:(?:[-'_.]|(?<=[0-9])[,:](?=[0-9]))[A-Za-z0-9]+)*|\.{2,}|-{2,}|\S"
_CLITIC = r"(?i)^(.+?)(n['’]t|['’](?:s|m|d|re|ve|ll))$"
_SENTENCE_END = r"""(?:[.!?…]+["'”’»)\]]*\s+|[。！？｡]+["'”’»）」』]*\s*|\s*\n\s*)"""
# Followed by a full stop these do not end a sentence; "etc." and "no." may, so they are left out.
_TITLES = frozenset(
    "mr mrs ms dr prof st jr sr gen col rev hon vs cf fig e.g i.e".split()  # noqa: SIM905
)


_find_ascii_tokens = re.compile(_ASCII_TOKEN).findall
_match_clitic = re.compile(_CLITIC).match
_find_sentence_ends = re.compile(_SENTENCE_END).finditer


@lru_cache(maxsize=8)
def finder(pattern: str) -> Callable[[str], list[str]]:
    """Returns the search for all matches of a pattern of the package ``regex``, which loads at first use."""
    import regex

    return regex.compile(pattern, regex.VERBOSE | regex.VERSION1).findall  # type: ignore[no-any-return]


def words(text: str) -> list[str]:
    """Splits `text` into words and punctuation marks.

    Punctuation marks, symbols and emoji are tokens of their own, except inside a word
    (``well-known``, ``u.s``, ``3,000.5``). English clitics are split off (``do`` + ``n't``,
    ``it`` + ``'s``), as NLTK's treebank tokeniser does. Each Han or Kana character is a token. Scripts
    without spaces that are neither (Thai, Khmer) give one token per run of letters.

    Parameters
    ----------
    text : str
        Any text; case is kept.

    Returns
    -------
    list of str
        In order; joined, they give `text` without its white space. Empty for blank text.

    Examples
    --------
    >>> words("It's 3,000 km, isn't it?")
    ['It', "'s", '3,000', 'km', ',', 'is', "n't", 'it', '?']
    """
    return list(_words(text))


# Several metrics read the same texts one after another: 2,048 texts are split once.
@lru_cache(maxsize=2048)
def _words(text: str) -> tuple[str, ...]:
    tokens = _find_ascii_tokens(text) if text.isascii() else finder(_TOKEN)(text)
    if "'" not in text and "’" not in text:
        return tuple(tokens)
    split: list[str] = []
    for token in tokens:
        match = _match_clitic(token) if "'" in token or "’" in token else None
        split.extend(match.groups() if match else (token,))
    return tuple(split)


def without_spaces(texts: Sequence[str]) -> bool:
    """True where most letters of all `texts` together are of scripts that put no spaces between words.

    These are Chinese, Japanese, Thai, Lao, Khmer, Burmese and Tibetan; Korean puts spaces. False without a letter.

    Examples
    --------
    >>> without_spaces(["今日は雨です。", "OK"]), without_spaces(["It rains in 東京."])
    (True, False)
    """
    joined = "".join(text for text in texts if not text.isascii())
    unspaced = len(finder(_UNSPACED)(joined)) if joined else 0
    return bool(unspaced) and 2 * unspaced > sum(character.isalpha() for text in texts for character in text)


def sentences(text: str) -> list[str]:
    """Splits `text` into sentences.

    A sentence ends at white space after ``.``, ``!``, ``?`` or ``…`` (closing quotes and brackets
    included), after the full-width marks of Chinese and Japanese, and at a line break. Common titles
    (``Dr.``) and initials (``J.``) do not end one. Capital letters are not needed.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    list of str
        Stripped and never empty; an empty list for blank text.

    Examples
    --------
    >>> sentences("Dr. Lee left. why? nobody knows.")
    ['Dr. Lee left.', 'why?', 'nobody knows.']
    """
    found: list[str] = []
    start = 0
    for match in _find_sentence_ends(text):
        if _is_abbreviation(text[start : match.start()], match.group()):
            continue
        found.append(text[start : match.end()].strip())
        start = match.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def _is_abbreviation(before: str, end: str) -> bool:
    if end.rstrip(" ") != ".":
        return False
    last = before.rsplit(maxsplit=1)[-1].lstrip("(\"'“‘") if before.strip() else ""
    return last.lower() in _TITLES or (len(last) == 1 and last.isalpha() and last not in "iI")
