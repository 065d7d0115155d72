"""A finished probe with one of everything."""

from __future__ import annotations

from metricsmith.records import Scale, Task, Usage
from metricsmith.report.probe.record import Attack, ProbeRecord, StrategyResult, Subject, Surprise
from metricsmith.stats.resampling import Interval
from metricsmith.stats.validity import PairedMean, Sensitivity


def change(value, low, high, n=60):
    return PairedMean(value, Interval(low, high), n, 20, 0)


def share(value, low, high, tied=0.1, n=60):
    risen = 1 - value - tied
    return Sensitivity(value, Interval(low, high), n, 20, 0, tied, risen, Interval(low - risen, high - risen))


METRIC = Subject(
    "induced", "induced metric", "metric", sensitivity=share(0.82, 0.74, 0.88), magnitude=change(0.2, 0.15, 0.25),
    stability=change(0.95, 0.92, 0.97),
)  # fmt: skip
BLIND = Subject(
    "fkgl", "fkgl", "component", sensitivity=share(0.3, 0.2, 0.42, 0.4), magnitude=change(-0.01, -0.05, 0.02),
    stability=change(0.99, 0.98, 1.0), p_sensitivity=0.0004, p_stability=0.2,
)  # fmt: skip
STILL = Subject("constant", "a constant", "null", still=True, sensitivity=share(0.0, 0.0, 0.06, 1.0))
COLUMN = Subject("good", "good", "component", lacking="numbers come with the data, and a changed output has none")
RECORD = ProbeRecord(
    title="induced metric",
    task=Task("Rewrite notices <b>plainly</b>.", "rating", Scale(1, 5)),
    signature="metricsmith 0 | probe",
    counts={"rows": 20, "groups": 20, "worse": 60, "same": 20, "attack": 20, "declined": 7},
    unit="share of the range of a metric's own numbers",
    subjects=(METRIC, BLIND, COLUMN, STILL),
    strategies=(
        StrategyResult(
            "drop_sentence", "worse", "obvious", "", "builtin", "Leaves out one sentence.", 20, 3, "one sentence",
            sensitivity=share(0.9, 0.7, 0.97), change=change(-0.2, -0.3, -0.1),
        ),
        StrategyResult(
            "Blur facts", "worse", "subtle", "Facts", "generated", "Blurs <i>facts</i>.", 0, 20, "identical",
        ),
        StrategyResult(
            "markup", "same", "obvious", "", "builtin", "Other marks.", 20, 0, stability=change(0.95, 0.9, 0.99),
            change=change(0.0, -0.01, 0.01),
        ),
    ),
    attacks=(
        Attack("self_praise", "Praises itself.", False, change(0.1, 0.05, 0.15), share(0.2, 0.1, 0.4, n=20)),
        Attack("empty_output", "Leaves nothing.", True, change(-0.4, -0.5, -0.3), share(0.9, 0.7, 1.0, n=20)),
    ),
    surprises=(
        Surprise("r1", "drop_sentence", "worse", "obvious", "Bring <b>two</b> forms.", "Bring two cats.", 3.1, 3.4),
    ),
    judgements={"requested": 100, "ok": 97, "unparsable": 3, "skipped": 0},
    usage=Usage(120, 1000, 100, None, 3.2),
    estimated=Usage(118),
    warnings=("fkgl is insensitive",),
    notes=("a note",),
)  # fmt: skip
