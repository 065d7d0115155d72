"""Texts for perturbers, and a short way to apply one."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from metricsmith.programs.perturbers.base import Source
from metricsmith.programs.perturbers.catalogue import perturb

ARTICLE = (
    "The library opened in 1912 with 12,000 books. It was built by Anna Keller, who is still remembered in Marlow. "
    'Although the roof leaks, visitors say that it is "a quiet place" for everyone. You can\'t borrow more than five '
    "books, for example, and they don't take cash.\n\n"
    "Opening hours will change on Monday 3 June. The colour of the new sign was chosen by the mayor. "
    "It has cost $45000, which is about 30% of the yearly budget."
)

# Each is left alone by everything that must not change the meaning.
UNTOUCHABLE = (
    "https://example.org/it's-5-people?colour=grey",
    "`don't = 5`",
    "```\nit's  a 1000 people, for example.\n```",
    "neil.colour@example.com",
    '"They don\'t need 5 days, for example."',
    "“It's a colour, although grey.”",
    "| it's a | for example, 5 people |\n| --- | --- |\n| don't | colour |",
    "src/colour/it_is.py",
)

WORDS = (
    "the", "a", "it", "is", "are", "was", "not", "it's", "don't", "can't", "they're", "you", "will", "colour",
    "grey", "although", "everyone", "for", "example,", "for", "instance,", "5", "five", "people", "days", "12,000",
    "12000", "2022", "$4500", "3.14", "30%", "v1.000", "2026-11-21", "Dr.", "Smith", "e.g.", "i.e.", "its", "IT'S",
    "Anna", '"said"', "do", "cannot", "about", "over", "naïve", "東京", "🙂", "and", "towards", "each", "other",
    "percent", "-", "*", "**bold**", "because", "Monday",
)  # fmt: skip


@st.composite
def prose(draw: st.DrawFn) -> str:
    """A text of words that perturbers look for, in sentences, lines, lists and quotations."""
    parts = []
    for _ in range(draw(st.integers(1, 6))):
        told = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12))
        sentence = " ".join(told) + draw(st.sampled_from([".", "?", "!", "", ":"]))
        parts += [draw(st.sampled_from(["", "", "- ", "1. ", "It is ", '"'])), sentence]
        parts.append(draw(st.sampled_from([" ", " ", "\n", "\r\n", "\n\n", '" '])))
    return "".join(parts)


def change(name: str, text: str, strength: Any = "obvious", seed: int = 0, **fields: Any) -> str:
    """The text that the perturber makes; the text itself where it declines."""
    (made,) = perturb([Source(text, **fields)], perturbers=[name], strengths=[strength], seed=seed)
    return text if made.output is None else made.output
