"""The folder of a small shared task with metrics of planted quality, in which every rule on systems bites."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from metricsmith.datasets.score_files import write_scores
from metricsmith.meta_evaluation.suites import PairRules, Suite, SuiteTask

TEST_SET = "own24"
RULES = {
    "en-de": PairRules("mqm", "refB", human=True, outliers=("noise",)),
    "en-sr_Cyrl_RS": PairRules("esa-human1", "refA"),
    "ja-zh": PairRules("mqm", "refA", outliers=("noise",)),
}
REFERENCES = {"en-de": ("refA", "refB"), "en-sr_Cyrl_RS": ("refA", "refB"), "ja-zh": ("refA",)}
# Standard deviation of each metric's noise, beside 1 of the truth; the best first. [noref] is written as NAME-src.
NOISES = {"Aster": 0.3, "x.seg.s[noref]": 0.8, "Briar-2": 1.4, "Clover_q": 2.2, "Dahlia": 3.5, "Elder": 6.0}
ABSENT = {"Dahlia": ("ja-zh",)}  # has no files in these pairs


def own_suite(kind: str = "wmt24") -> Suite:
    """The columns of wmt24 (SPA and acc-t by pair) or of wmt23 (pooled accuracy three times, then three by pair)."""
    if kind == "wmt24":
        tasks = [SuiteTask(name, (pair,)) for pair in RULES for name in ("spa", "acc-t")]
    else:
        three = (("system-pearson", "sys"), ("pearson", "seg"), ("acc-t", "seg"))
        tasks = [SuiteTask("system-accuracy", tuple(RULES), "sys", 3.0)]
        tasks += [SuiteTask(name, (pair,), level) for pair in RULES for name, level in three]
    return Suite(f"own-{kind}", TEST_SET, RULES, tuple(tasks), source="tests/support/suite_roots.py")


@dataclass(frozen=True)
class Planted:
    """Numbers of the systems that count, as a right reader must find them: k systems in gold's order, n segments.

    ``gold[pair]`` and ``metrics[pair][name]`` have shape (k, n), ``system_gold[pair]`` and
    ``system_metrics[pair][name]`` shape (k, 1). ``order`` holds the metrics' names, best first. ``left_out[pair]``
    holds the systems and, by their files' names before the level, the metrics that do not count.
    """

    root: Path
    suite: Suite
    order: tuple[str, ...]
    systems: Mapping[str, tuple[str, ...]]
    documents: Mapping[str, tuple[str, ...]]
    gold: Mapping[str, np.ndarray]
    system_gold: Mapping[str, np.ndarray]
    metrics: Mapping[str, Mapping[str, np.ndarray]]
    system_metrics: Mapping[str, Mapping[str, np.ndarray]]
    left_out: Mapping[str, tuple[frozenset[str], frozenset[str]]]

    @property
    def folder(self) -> Path:
        """Of the test set."""
        return self.root / TEST_SET


def write_root(
    folder: Path,
    *,
    seed: int = 0,
    kind: str = "wmt24",
    systems: int = 6,
    segments: int = 60,
    noises: Mapping[str, float] = NOISES,
    gaps: float = 0.04,
) -> Planted:
    """Write ``folder/own24`` with three language pairs; of gold, `gaps` of the cells and three segments are missing.

    Beside the `systems` that count each pair holds the references, ``noise`` (an outlier in two pairs, one more system
    in the other) and ``silent``, which nobody rated.
    """
    found: dict[str, dict] = {name: {} for name in Planted.__annotations__ if name not in ("root", "suite", "order")}
    for place, pair in enumerate(RULES):
        for name, value in _write_pair(folder / TEST_SET, pair, (seed, place), systems, segments, noises, gaps).items():
            found[name][pair] = value
    return Planted(folder, own_suite(kind), tuple(sorted(noises, key=noises.__getitem__)), **found)


def _write_pair(root, pair, seed, systems, segments, noises, gaps):
    rng, rules, references = np.random.default_rng(seed), RULES[pair], REFERENCES[pair]
    # Gold's order is neither that of names nor that of quality.
    ranks = -0.35 * rng.permutation(systems)
    quality = {f"System-{number}.v1": rank for number, rank in zip(range(systems, 0, -1), ranks, strict=True)}
    quality |= {"noise": -3.0, "silent": 0.0, **dict.fromkeys(references, 0.4)}
    truth = (
        np.array([*quality.values()])[:, None] + rng.normal(size=segments) + rng.normal(size=(len(quality), segments))
    )
    documents = tuple(f"doc-{segment // 5}" for segment in range(segments))
    _write_texts(root, pair, quality, references, documents)
    gold = -np.round(np.clip(3 - 2 * truth, 0, 25))
    if rules.gold != "mqm":
        gold = 100.0 + 4 * gold
    gold[rng.random(gold.shape) < gaps] = math.nan
    gold[:, rng.choice(segments, 3, replace=False)] = math.nan
    names = list(quality)
    gold[names.index("silent")] = math.nan
    rated = {name: row for name, row in zip(names, gold, strict=True) if name != "silent" or pair == "en-de"}
    people = {name: np.nanmean(row, keepdims=True) if name != "silent" else row[:1] for name, row in rated.items()}
    write_scores(root / "human-scores" / f"{pair}.{rules.gold}.seg.score", rated)
    write_scores(root / "human-scores" / f"{pair}.{rules.gold}.sys.score", people)
    dropped = {"silent", rules.reference, *rules.outliers, *(() if rules.human else references)}
    kept = tuple(name for name in rated if name not in dropped)
    metrics, means, others = {}, {}, set()
    for name, noise in noises.items():
        values = truth + noise * rng.normal(size=truth.shape)
        base = name.removesuffix("[noref]")
        used = () if base != name else (rules.reference,)
        if pair in ABSENT.get(name, ()):
            continue
        stem = f"{base}-{'.'.join(used) or 'src'}"
        if pair == "ja-zh" and name == "Briar-2":
            stem = f"{base}-all"  # the same set of references by its other name
        sides = _write_metric(root, pair, stem, dict(zip(names, values, strict=True)), used)
        metrics[name], means[name] = (np.array([side[system] for system in kept]) for side in sides)
        if len(references) == 2 and name == min(noises, key=noises.__getitem__):
            other = next(one for one in references if one != rules.reference)
            for stem, used in (("refA.refB", references), ("all", references), (other, (other,))):
                _write_metric(root, pair, f"{base}-{stem}", dict(zip(names, values + 1, strict=True)), used)
                others.add(f"{base}-{stem}")
    return {
        "systems": kept,
        "documents": documents,
        "gold": np.array([rated[name] for name in kept]),
        "system_gold": np.array([people[name] for name in kept]),
        "metrics": metrics,
        "system_metrics": means,
        "left_out": (frozenset(set(quality) - set(kept)), frozenset(others)),
    }


def _write_metric(root, pair, stem, values, used):
    """The scores that were written by segment, and their means; rows in the order of names."""
    rows = {system: values[system] for system in sorted(values) if system not in used}
    means = {system: np.array([math.fsum(row) / row.size]) for system, row in rows.items()}
    for level, scores in (("seg", rows), ("sys", means)):
        write_scores(root / "metric-scores" / pair / f"{stem}.{level}.score", scores)
    return rows, means


def _write_texts(root, pair, systems, references, documents):
    count = range(1, len(documents) + 1)
    texts = {
        f"sources/{pair}.txt": [f"Source {number}." for number in count],
        f"documents/{pair}.docs": [f"{'news' if int(name[4:]) % 2 else 'talk'}\t{name}" for name in documents],
        **{f"references/{pair}.{name}.txt": [f"{name} {number}." for number in count] for name in references},
        **{f"system-outputs/{pair}/{name}.txt": [f"{name} {number}." for number in count] for name in systems},
    }
    for name, lines in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
