"""The signature line of an induced metric: everything on which its numbers depend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from metricsmith.metric import content_hash
from metricsmith.model_calls.models import identity
from metricsmith.optimizers.induction import Induction, Options
from metricsmith.records import Task
from metricsmith.version import __version__

__all__ = ["known_signature", "same_run", "signature_line"]

SEPARATOR = " | "


def known_signature(rows: int, origin: str, task: Task, options: Options) -> Sequence[str]:
    """The parts of the line that are known before anything is asked.

    The hash stands for all options that decide on numbers and have no words of their own in the line: the task, the
    judges to make, the caller's own metrics, the model's settings.
    """
    model, sources = options.model, options.sources
    decided = {
        "task": asdict(task),
        "sources": {
            **vars(sources),
            **{name: sorted(getattr(sources, name)) for name in ("columns", "prior_columns", "allow_columns")},
            "metrics": None if sources.metrics is None else [metric.name for metric in sources.metrics.metrics()],
            "own": [one.name if one.card.kind == "callable" else one.fingerprint() for one in sources.own],
        },
        "fit": asdict(options.fit),
        "recommender": "" if options.recommender is None else type(options.recommender).__name__,
        "failures": [options.max_failure_rate, options.per_judge],
        "model": None if model is None else identity(model),
    }
    return [
        f"metricsmith {__version__}",
        *filter(None, [origin]),
        f"{rows} training rows",
        f"bank {sources.bank}, k {sources.k}{', panel' if sources.panel else ''}",
        f"model {model.model}" if getattr(model, "model", None) else "no model",
        f"seed {options.seed}",
        f"options sha256:{content_hash(decided)[:12]}",
    ]


def signature_line(induction: Induction, origin: str, task: Task, options: Options) -> str:
    """The whole line, with the size of the small model and the metric's fingerprint."""
    known = known_signature(len(induction.train), origin, task, options)
    metric = f"metric {induction.metric.fingerprint()}"
    return SEPARATOR.join([*known[:-4], induction.fit.label, *known[-4:-1], metric, known[-1]])


def same_run(line: str, known: Sequence[str]) -> bool:
    """True if a line is of a run with these known parts: the same data, rows, options, model and seed."""
    return set(SEPARATOR.join(known).split(SEPARATOR)) <= set(line.split(SEPARATOR))
