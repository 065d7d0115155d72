"""A realistic finished run, and a way to change any part of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from metricsmith.records import MetricCard, Output, Scale, Task, Usage
from metricsmith.report.induction.record import Component, LearningPoint, RowRecord, RunRecord
from metricsmith.stats.agreement import Agreement

SCALE = Scale(1, 5, 1)
NAMES = ("keeps_every_fact", "rouge1_recall", "plain_wording", "output_words", "fkgl", "tone_rubric")
WEIGHTS = (0.46, 0.31, 0.27, -0.22, -0.18, 0.09)
TEXTS = (
    "The recycling centre on Mill Lane is closed from Monday 3 June to Friday 7 June for works. "
    "Please keep garden waste at home or take it to the centre in Easton, which stays open until 8 pm. "
    "Your brown bin is emptied as usual. If you cannot travel, call 0100 555 010 and we will collect it.",
    "Parents must renew the school bus pass before 15 August. You can do it online or at the town hall.",
    "Pursuant to the ordinance in force, holders of parking entitlements are hereby notified of the "
    "modification of the applicable tariff, which shall be effected as of the first day of the quarter, without "
    "prejudice to entitlements previously conferred upon residents of the aforementioned zone.",
    "Water is off on Tuesday.",
)
REASONS = (
    "The date and the replacement site are there, but the phone number for those at home is missing.",
    "Short sentences and everyday words throughout. A reader with no background would follow it.",
    "Two of the five facts in the notice are gone, and the deadline has become a recommendation.",
)


def card(name: str, kind: str) -> MetricCard:
    judged = kind.endswith("_judge")
    return MetricCard(
        name=name.replace("_", " ").capitalize(),
        kind=kind,
        summary=f"Measures {name.replace('_', ' ')} of a rewritten notice.",
        formula="The whole number from 1 to 5 that the model gives after stating its reasons."
        if judged
        else "matches / tokens of the reference",
        outputs=(Output(name, 1.0 if judged else 0.0, 5.0 if judged else None, half=20.0, description="the number"),),
        needs=("model",) if judged else ("references",),
        cost="model" if judged else "free",
        multi_reference="The best reference counts.",
        best_for=("Spotting dropped content",),
        not_for=("Contradictions that reuse the right words",),
        limits=("Counts words, not meaning",),
        papers=("Lin 2004, ROUGE",),
        related=("rouge2", "meteor"),
    )


def components() -> tuple[Component, ...]:
    kinds = ("criterion_judge", "bank", "criterion_judge", "bank", "bank", "rubric_judge")
    taus = ((0.41, 0.36), (0.33, 0.28), (0.29, 0.31), (-0.24, -0.19), (-0.21, -0.12), (0.17, math.nan))
    shares = (0.81, 0.54, 0.43, 0.38, 0.29, 0.12)
    return tuple(
        Component(name, kind, weight, "+" if weight > 0 else "-", *tau, missing, card(name, kind), share)
        for name, kind, weight, tau, missing, share in zip(
            NAMES, kinds, WEIGHTS, taus, (3, 0, 1, 0, 0, 7), shares, strict=True
        )
    )


def rows(groups: int = 60, seed: int = 7) -> tuple[RowRecord, ...]:
    draw = np.random.default_rng(seed)
    made = []
    for group in range(groups):
        for version in range(4):
            contributions = {
                name: float(abs(weight) * draw.normal() * 0.8) for name, weight in zip(NAMES, WEIGHTS, strict=True)
            }
            prediction = 3.1 + sum(contributions.values())
            rating = float(np.clip(round(prediction + draw.normal(0, 0.9)), 1, 5))
            unrated = group >= groups - 2
            split = "unrated" if unrated else "test" if group % 10 < 3 else "train"
            made.append(
                RowRecord(
                    id=f"notice-{group:02d}-v{version}",
                    group=f"notice-{group:02d}",
                    split=split,
                    rating=None if unrated else rating,
                    prediction=prediction,
                    output=TEXTS[version],
                    input="NOTICE: " + TEXTS[(version + 2) % 4],
                    values={name: round(float(draw.uniform(0, 5)), 3) for name in NAMES},
                    contributions=contributions,
                    feedback={"keeps_every_fact": REASONS[version % 3], "plain_wording": REASONS[1]},
                )
            )
    return tuple(made)


def full_record() -> RunRecord:
    block = Agreement(72, 18, 0.412, 0.281, 0.524, 0.0004, 0.556, 0.531)
    return RunRecord(
        task=Task(
            "Rewrite a public notice in plain language: every fact stays, no jargon, a friendly tone.",
            "rating",
            SCALE,
        ),
        signature="metricsmith 0.1.0 | data sha256:3f9a1c22 | seed 0 | lm openai/some-model | k 30",
        evaluation="holdout",
        rows={"rated": 232, "train": 160, "test": 72, "unrated": 8},
        components=components(),
        train=Agreement(160, 40, 0.487, 0.402, 0.561, 0.0002, 0.631, 0.602),
        test=block,
        baselines={
            "Length in words": Agreement(72, 18, -0.194, -0.351, -0.021, 0.031, -0.232, -0.251),
            "Best single (keeps_every_fact)": Agreement(72, 18, 0.361, 0.212, 0.492, 0.0011, 0.47, 0.45),
            "Plain mean of the declared judges": Agreement(72, 18, 0.385, 0.244, 0.503, 0.0007, 0.51, 0.49),
            "The paper's PLS (n = 5)": Agreement(72, 18, 0.372, 0.231, 0.499, 0.0009, 0.49, 0.48),
        },
        judgements={
            "requested": 3600, "ok": 3589, "unparsable": 4, "out_of_range": 1, "refused": 0, "transport": 6,
            "budget": 0, "skipped": 0,
        },
        usage={
            "requests": 3612, "prompt_tokens": 1_904_211, "completion_tokens": 402_118, "cost": 0.5271,
            "seconds": 341.2, "estimated": Usage(3608, 1_850_000, 430_000, 0.55, 0.0),
        },
        warnings=("keeps_every_fact failed on 3 rows; they are missing, not 0.",),
        notes=("The column 'group' was guessed from 'source_id'.", "8 rows have no rating: scored only."),
        data=rows(),
        combiner="Ridge regression on normal-scored columns, shrunk towards the plain mean of the judges.",
        fidelity=0.978,
        clipped_share=0.021,
        learning=(
            LearningPoint(20, 0.21, 0.05, 0.34), LearningPoint(40, 0.30, 0.19, 0.39),
            LearningPoint(80, 0.36, 0.29, 0.43), LearningPoint(160, 0.41, 0.36, 0.45),
        ),
        failures=(
            "keeps_every_fact: transport, 3 (HTTP 500: the server is overloaded)",
            "tone_rubric: unparsable, 4 (no whole number in 'It depends on the reader')",
        ),
        synthetic="The notices and the three raters are made up: ratings follow planted defects.",
        title="Plain notices",
    )  # fmt: skip


@pytest.fixture
def make_record() -> Callable[..., RunRecord]:
    """``make_record(field=value, ...)``: the realistic run with parts replaced."""
    complete = full_record()

    def make(**changes: Any) -> RunRecord:
        return replace(complete, **changes)

    return make


VOID = {"meta", "link", "br", "wbr", "hr", "img", "input"}


@dataclass
class Page(HTMLParser):
    """A page as read back: its elements with the text inside each, what is amiss with its tags.

    `turning` lists text with a bidirectional override that no ``bdi`` or ``dir="auto"`` keeps to itself.
    """

    source: str
    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: str = ""
    headings: list[tuple[int, str]] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)
    mismatched: list[str] = field(default_factory=list)
    turning: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[tuple[str, int]] = []
        self.feed(self.source)
        self.close()
        self.mismatched += [f"<{tag}> never closed" for tag, _ in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append((tag, len(self.elements) - 1))
            self.texts[len(self.elements) - 1] = ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1][0] != tag:
            self.mismatched.append(f"</{tag}> closes {self._open[-1:]}")
            return
        _, index = self._open.pop()
        if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            self.headings.append((int(tag[1]), self.texts[index]))

    def handle_data(self, data: str) -> None:
        if any(tag == "style" for tag, _ in self._open):
            return
        self.text += data
        around = [(tag, self.elements[index][1]) for tag, index in self._open]
        if "\u202e" in data and not any(t == "bdi" or a.get("dir") == "auto" for t, a in around):
            self.turning.append(data)
        for _, index in self._open:
            self.texts[index] += data

    def inside(self, tag: str, **attributes: str) -> list[str]:
        """The text of every element with this tag and these attributes."""
        return [
            self.texts[index]
            for index, (name, found) in enumerate(self.elements)
            if name == tag and all(found.get(key.rstrip("_")) == value for key, value in attributes.items())
        ]


@pytest.fixture
def read() -> Callable[[str], Page]:
    """``read(html)``: the page as a `Page`."""
    return Page


EVIL = "<script>alert(1)</script>\"><img src=x onerror='alert(2)'>&amp;{{ 7 * 7 }}\x00\x1b\u202e שלום 東京"


def poison(value: Any) -> Any:
    """`value` with every text in it replaced by one that tries to break out; enumerated words stay."""
    kept = {"kind", "direction", "split", "evaluation", "cost"}
    if isinstance(value, str):
        return EVIL
    if isinstance(value, dict):
        return {EVIL + str(place): poison(item) for place, item in enumerate(value.values())}
    if isinstance(value, tuple):
        return tuple(poison(item) for item in value)
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, Scale | Usage | Agreement):
        changes = {
            name: poison(getattr(value, name))
            for name in value.__dataclass_fields__
            if name not in kept | {"rows", "usage", "judgements"}
        }
        return replace(value, **changes)
    return value


@pytest.fixture
def evil_record() -> RunRecord:
    """The realistic run with `EVIL` in every text: names, cards, rows, feedback, warnings, statuses."""
    record = poison(full_record())
    return replace(record, judgements={"requested": 2, "ok": 1, EVIL: 1})


@pytest.fixture
def evil() -> str:
    """The text that `evil_record` is full of."""
    return EVIL
