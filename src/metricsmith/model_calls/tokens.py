"""How many tokens a text is likely to take, without a tokeniser's data file."""

from __future__ import annotations

import math

__all__ = ["estimate_tokens"]


def estimate_tokens(text: str) -> int:
    """Estimate tokens: four ASCII characters, or one other character, make a token.

    English runs at about four characters a token in the common byte-pair vocabularies; scripts that
    those vocabularies split finely come out too high rather than too low.
    """
    ascii_characters = sum(character.isascii() for character in text)
    return math.ceil(ascii_characters / 4) + len(text) - ascii_characters
