"""Remakes the table of docs/specialist.md: ``python benchmarks/specialist.py FILE`` with the public ratings of WMT23.

FILE is the side-by-side collection of English-German, parsed (``wmt23_sxs_ende.jsonl.gz``). No model is asked: Parrot
copies the errors of a row's examples. The first line, held out by name alone, shows what forgetting twins is worth; it
takes the chooser directly, since a specialist refuses it.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from metricsmith.datasets.history import History, joined_systems
from metricsmith.datasets.wmt_mqm import read_wmt_mqm
from metricsmith.meta_evaluation.spans import character_f1, locate_spans
from metricsmith.programs.specialist.choosing import Chooser, ExamplePolicy, Judged

KEPT = ExamplePolicy(same_output="keep")
LINES = {
    "held out by name only": (KEPT, False),
    "twins joined, first kept; equal outputs kept": (KEPT, True),
    "the same, equal outputs dropped": (ExamplePolicy(), True),
    "other rater": (replace(KEPT, rater="other"), True),
    "merged raters": (replace(KEPT, rater="merged"), True),
    "filtered": (ExamplePolicy(), True),
    "both twins kept": (replace(KEPT, twins="both"), True),
    "both twins kept, equal outputs dropped": (ExamplePolicy(twins="both"), True),
    "both twins kept, other rater": (replace(KEPT, twins="both", rater="other"), True),
    "both twins kept, merged": (replace(KEPT, twins="both", rater="merged"), True),
    "both twins kept, filtered": (ExamplePolicy(twins="both"), True),
    "shuffled": (ExamplePolicy("shuffled", rater="any"), True),
    "fixed": (ExamplePolicy("fixed"), True),
}


def main(path: str) -> None:
    """Print one line a policy: examples and errors of a row, character F1 of Parrot with all and first occurrences."""
    history = History.from_table(read_wmt_mqm(path))
    joined = joined_systems(history)
    print(f"{'policy':46}{'examples':>9}{'errors':>8}{'all':>8}{'P':>8}{'R':>8}{'first':>8}")
    for name, (policy, knows_twins) in LINES.items():
        chooser = Chooser(history, policy, joined if knows_twins else {})
        figures = _figures(history, chooser, filtered=name.endswith("filtered"))
        print(f"{name:46}" + "".join(f"{figure:{9 if place == 0 else 8}.2f}" for place, figure in enumerate(figures)))
    places: dict[str, list[str]] = {}
    for one in history.ratings:
        places.setdefault(one.source, []).append(one.rater)
    slots = [{}, {}, {}]
    for one in history.ratings:
        slot = list(dict.fromkeys(places[one.source])).index(one.rater)
        slots[slot][one.system, one.source] = one
    pairs = [
        character_f1(
            [slots[first][key].spans for key in slots[0]],
            [slots[second][key].spans for key in slots[0]],
            [one.output for one in slots[0].values()],
        ).f1
        for first, second in ((0, 1), (0, 2), (1, 2))
    ]
    print("people against people, slots 01 / 02 / 12: " + ", ".join(f"{100 * value:.2f}" for value in pairs))


def _figures(history: History, chooser: Chooser, *, filtered: bool) -> list[float]:
    counts, marked = [], {"all": [], "first": []}
    for one in history.ratings:
        places = chooser.choose(Judged(one.source, one.output, one.system, one.rater)).places
        errors = [span for place in places for span in history.ratings[place].spans or ()]
        if filtered:
            gold = {span.text for span in one.spans or () if span.side == "target"}
            errors = [span for span in errors if span.side == "source" or span.text not in gold]
        counts.append((len(places), len(errors)))
        copied = [replace(span, start=None, end=None) for span in errors]
        for policy, found in marked.items():
            found.append(locate_spans(copied, one.output, policy=policy).spans)
    gold = [one.spans for one in history.ratings]
    texts = [one.output for one in history.ratings]
    both, first = (character_f1(marked[policy], gold, texts) for policy in ("all", "first"))
    shares = [100 * value for value in (both.f1, both.precision, both.recall, first.f1)]
    return [*np.mean(counts, axis=0).tolist(), *shares]


if __name__ == "__main__":
    main(sys.argv[1])
