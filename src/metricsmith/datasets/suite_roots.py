"""A suite's folder, in the layout of mt-metrics-eval -> the scores of metrics and people in each language pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from metricsmith.stats.correlation import FloatArray

__all__ = ["MetricScores", "PairScores"]


@dataclass(frozen=True, slots=True)
class MetricScores:
    """One metric's scores in one language pair, for the systems and segments of its `PairScores`.

    Parameters
    ----------
    name : str
        ``BLEU``; with ``[noref]`` behind it if no reference was used. The same in all language pairs.
    base : str
        ``BLEU``.
    reference_free : bool
    segments : float array, shape (k, n), or None
        None without a file by segment.
    systems : float array, shape (k, 1), or None
        None without a file by system.
    added : bool
        Whether it is a judge of one's own and not of the folder. NaN where it has no score, which the files of the
        folder must not have.
    """

    name: str
    base: str
    reference_free: bool
    segments: FloatArray | None = field(repr=False)
    systems: FloatArray | None = field(repr=False)
    added: bool = False


@dataclass(frozen=True, slots=True)
class PairScores:
    """Everything that a suite measures in one language pair; higher is better on all sides.

    Parameters
    ----------
    pair : str
    gold_name : str
    systems : tuple of str, length k
        Those that count, in the order of the gold file.
    documents : tuple of str, length n
        Of each segment.
    segments : float array, shape (k, n)
        People's scores; NaN is missing.
    system_scores : float array, shape (k, 1), or None
        People's scores by system; None if there is no such file.
    metrics : mapping of str to MetricScores
        By name, sorted.
    left_out : tuple of (str, str, str)
        Kind (``system`` or ``metric``), name and reason.
    checksums : mapping of str to str
        Of every file that was read, by its path below the root.
    """

    pair: str
    gold_name: str
    systems: tuple[str, ...]
    documents: tuple[str, ...] = field(repr=False)
    segments: FloatArray = field(repr=False)
    system_scores: FloatArray | None = field(repr=False)
    metrics: Mapping[str, MetricScores] = field(repr=False)
    left_out: tuple[tuple[str, str, str], ...]
    checksums: Mapping[str, str] = field(repr=False)
