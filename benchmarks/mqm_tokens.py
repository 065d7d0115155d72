"""Prompt and completion tokens of MQM judging with spans and without, on the loopback server.

::

    python benchmarks/mqm_tokens.py

One run over the 36 translations of examples/translations, of which equal ones are asked once. The stand-in of
tests/support/reviser.py answers with the planted errors that it finds, the same in both ways. The server counts four
characters a token, so ratios are what counts.
"""

from __future__ import annotations

import sys
from pathlib import Path

import metricsmith
from metricsmith.formats import percent
from metricsmith.translation import MQMAnnotator, read_translations

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from loopback import serve
from reviser import DOCUMENTS, FILES, Reviser


def main() -> None:
    """Judge twice and print the table."""
    rows = read_translations(FILES[0], FILES[1:], documents=DOCUMENTS).rows
    used = []
    for spans in (True, False):
        judge = MQMAnnotator(source_language="English", target_language="German", spans=spans)
        with serve(Reviser()) as server:
            used.append(metricsmith.score([judge], rows, lm=server.lm(), progress=False).usage)
    print("| tokens a request | with spans | without | fewer |\n|---|---|---|---|")
    for name in ("prompt_tokens", "completion_tokens"):
        marked, named = (getattr(usage, name) / usage.requests for usage in used)
        print(f"| {name.split('_')[0]} | {marked:,.0f} | {named:,.0f} | {percent(1 - named / marked)} |")


if __name__ == "__main__":
    main()
