"""Judged translations as data: segments with their errors, means by document and by system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from metricsmith.mqm import SharedError
from metricsmith.records import Usage
from metricsmith.report.formats import jsonable

__all__ = ["SCHEMA_VERSION", "MeanScore", "SegmentScore", "TranslationRecord"]

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class SegmentScore:
    """One segment of one system.

    Parameters
    ----------
    id, system, document : str
    segment : int
        From 1 in each document.
    source, translation : str
    raw, score : float or None
        The MQM score, 0 or below, and its map to [0, 1]; None without a number.
    half_width : float or None
        Half the width of the 95 % bootstrap interval of `raw` over its runs; None with fewer than two.
    status, error : str
        How the judgement ended.
    runs : tuple of (float or None)
        The scores of the runs that were needed, in their order; None for one that failed.
    kept : int
        Runs that `raw` rests on.
    errors : tuple of SharedError
        Those that at least half of the kept runs found, worst first.
    """

    id: str
    system: str
    document: str
    segment: int
    source: str
    translation: str
    raw: float | None
    score: float | None
    half_width: float | None
    status: str
    error: str
    runs: tuple[float | None, ...]
    kept: int
    errors: tuple[SharedError, ...]

    def as_dict(self) -> dict[str, Any]:
        """One line of ``segments.jsonl``."""
        content = asdict(self)
        content["errors"] = [asdict(error.span) | {"found": error.found} for error in self.errors]
        content["doc"] = content.pop("document")
        return jsonable(content)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class MeanScore:
    """The mean score of a document, or of a whole system.

    Parameters
    ----------
    system, document : str
        `document` is empty for a system.
    mean, low, high : float
        Of the segments that have a score, with its 95 % interval over segments, for a system with several documents
        over documents; NaN where undefined.
    segments, missing : int
        With and without a score.
    groups : int
        What the interval rests on: documents, or segments.
    """

    system: str
    document: str
    mean: float
    low: float
    high: float
    segments: int
    missing: int
    groups: int


@dataclass(frozen=True)
class TranslationRecord:
    """Everything that was found out about some translations.

    Parameters
    ----------
    title : str
        Where they come from.
    languages : str
        ``English-German``.
    method : str
        How a segment's number comes about, in a sentence.
    segments : tuple of SegmentScore
    documents, systems : tuple of MeanScore
        Systems best first.
    judgements : mapping of str to int
        Model judgements (runs): ``requested``, ``ok`` and every failure.
    reused : int
        Of these, how many came from a store.
    usage, estimated : Usage
    signature : str
        The line that makes every number reproducible.
    warnings, notes : tuple of str
    """

    title: str
    languages: str
    method: str
    segments: tuple[SegmentScore, ...]
    documents: tuple[MeanScore, ...]
    systems: tuple[MeanScore, ...]
    judgements: Mapping[str, int]
    reused: int
    usage: Usage
    estimated: Usage
    signature: str
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def missing(self) -> int:
        """Segments without a score."""
        return sum(segment.raw is None for segment in self.segments)

    def as_dict(self) -> dict[str, Any]:
        """The content of ``mqm.json``; undefined numbers are None, segments stand in ``segments.jsonl``."""
        content = {"schema_version": SCHEMA_VERSION, **asdict(self)}
        content["segments"] = len(self.segments)
        return jsonable(content | {"missing": self.missing})  # type: ignore[no-any-return]
