"""Finished suites, written by hand or made up in the size of WMT."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from meta_evaluations import NAN, result, task
from metricsmith.report.suite.record import LeftOut, SuiteAverage, SuiteColumn, SuiteEvaluation, SuiteMetric


def column(pair, measure, *metrics, pairs=None, weight=1.0, **details):
    result = task(measure, *metrics)
    settings = {
        "level": "seg", "systems": ("a", "b", "c"), "segments": 104, "outputs": 312, "documents": 30,
        "bounds": (-1.0, 1.0) if "pearson" in measure else (0.0, 1.0), **details,
    }  # fmt: skip
    name = f"{pair} {measure}"
    return SuiteColumn(
        name, measure, pairs=pairs or (pair,), weight=weight, result=replace(result, task=name), **settings
    )


def metric(name, role="primary"):
    base = name.removesuffix("[noref]")
    return SuiteMetric(name, base, base != name, role)


def suite(columns, metrics, averages, p_values, **changes):
    pairs = dict.fromkeys(pair for one in columns for pair in one.pairs)
    settings = {
        "suite": "own24", "source": "the tests", "gold": dict.fromkeys(pairs, "mqm"), "left_out": (), "seed": 0,
        "resamples": 1000, "signature": "s | t", **changes,
    }  # fmt: skip
    return SuiteEvaluation(
        columns=tuple(columns), metrics=tuple(metrics), averages=tuple(SuiteAverage(*one) for one in averages),
        p_values=tuple(map(tuple, p_values)), **settings,
    )  # fmt: skip


# Means by hand: atlas (.92 + .61 + (.9 + 1) / 2) / 3, and so on. fox<b> is absent in ja-zh, flat undefined in en-de.
FULL = suite(
    [
        column("en-de", "spa", result("atlas", 0.92, 1), result("my_judge[noref]", 0.9, 1), result("fox<b>", 0.8, 2),
               result("BLEU", 0.7, 3), result("flat", NAN)),
        column("en-de", "acc-t", result("my_judge[noref]", 0.62, 1), result("atlas", 0.61, 2),
               result("BLEU", 0.5, 3), result("fox<b>", 0.5, 3), result("flat", 0.4, 4)),
        column("ja-zh", "system-pearson", result("atlas", 0.9, 1), result("my_judge[noref]", 0.5, 2),
               result("BLEU", 0.4, 2), result("flat", -0.2, 2), level="sys", segments=1, documents=0),
    ],
    [metric("atlas"), metric("my_judge[noref]", "added"), metric("BLEU", "baseline"), metric("flat"),
     metric("fox<b>", "contrastive")],
    [("atlas", (0.92 + 0.61 + 0.95) / 3, 1), ("my_judge[noref]", (0.9 + 0.62 + 0.75) / 3, 2),
     ("BLEU", (0.7 + 0.5 + 0.7) / 3, 3)],
    [[NAN, 0.012, 0.0004], [NAN, NAN, 0.03], [NAN, NAN, NAN]],
    left_out=(LeftOut("en-de", "system", "refB", "the standard reference"),
              LeftOut("ja-zh", "system", "noise|x", "an outlier"),
              LeftOut("ja-zh", "metric", "odd", "its file is broken")),
    notes=("differences as <floats>",), warnings=("flat | is undefined",),
)  # fmt: skip


def wide(pairs, metrics=50, seed=0):
    """A suite with SPA and acc-t in so many language pairs, its numbers drawn."""
    rng = np.random.default_rng(seed)
    names = [f"metametrics_mt_mqm_same_source_targ_{n}" if n % 9 == 3 else f"Metric-{n}" for n in range(metrics)]
    names = [name + "[noref]" * (n % 4 == 0) for n, name in enumerate(names)]
    roles = ["added" if n == 5 else ("primary", "contrastive", "baseline")[n % 3] for n in range(metrics)]
    skill = np.sort(rng.normal(size=metrics))[::-1]
    columns, sums = [], np.zeros(metrics)
    for pair in (f"en-xx_{n:02}" for n in range(pairs)):
        for measure, middle, width in (("spa", 0.75, 0.08), ("acc-t", 0.55, 0.03)):
            values = middle + width * (skill + rng.normal(size=metrics)) / 2
            sums += values
            order = np.argsort(-values)
            ranks = 1 + np.cumsum(rng.random(metrics) < 0.3)
            lines = [
                result(names[one], float(values[one]), int(rank - ranks[0] + 1))
                for one, rank in zip(order, ranks, strict=True)
            ]
            columns.append(column(pair, measure, *lines, documents=170, segments=998))
    order = np.argsort(-sums)
    averages = [(names[one], sums[one] / len(columns), 1 + place // 4) for place, one in enumerate(order)]
    p_values = np.full((metrics, metrics), math.nan)
    for place in range(1, metrics):
        p_values[max(0, place - 4) : place, place] = rng.random(min(4, place))
    kept = [metric(names[one], roles[one]) for one in order]
    kept = [replace(one, name=name) for one, (name, *_) in zip(kept, averages, strict=True)]
    return suite(columns, kept, averages, p_values.tolist(), suite="wide25")
