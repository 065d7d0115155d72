"""Judged translations as data: segments with their errors, means by document and by system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from metricsmith.formats import jsonable
from metricsmith.mqm import SharedError
from metricsmith.records import Usage
from metricsmith.report.notebook import NotebookRecord
from metricsmith.stats.resampling import Interval
from metricsmith.stats.resampling.intervals import ENOUGH_GROUPS

__all__ = [
    "SCHEMA_VERSION", "WITHOUT_SPANS", "JudgedNumber", "MeanScore", "SegmentScore", "SystemDifference",
    "TranslationRecord",
]  # fmt: skip

SCHEMA_VERSION = 1
SIGNIFICANT = 0.05
WITHOUT_SPANS = "Errors are not marked: no spans were asked for."


@dataclass(frozen=True, slots=True)
class JudgedNumber:
    """A judge's number in words; by default that of MQM.

    Parameters
    ----------
    title : str
        Names it in headings and columns.
    points : str
        Its unit in a sentence.
    meaning : str
        The rest of the sentence that the title begins.
    width : float
        Decides how many digits it deserves; of MQM, which has no lower end, the points of one critical error.
    marks : tuple of str
        Severities of the errors that the judge marks, worst first; empty if it marks none.
    unmarked : str
        A sentence on errors that are named and not marked; else empty.
    repeated : bool
        Whether the number combines several runs.
    """

    title: str = "MQM"
    points: str = "MQM points"
    meaning: str = (
        "is minus the sum of the weights of the errors: 0 is a translation without errors. Scores of different texts "
        "cannot be compared, since longer ones have more room for errors."
    )
    width: float = 25.0
    marks: tuple[str, ...] = ("critical", "major", "minor")
    unmarked: str = ""
    repeated: bool = True


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
        The judge's number on its own scale (MQM: 0 or below), and its map to [0, 1]; None without a number.
    half_width : float or None
        Half the width of the 95 % bootstrap interval of `raw` over its runs; None with fewer than two.
    status, error : str
        How the judgement ended.
    runs : tuple of (float or None)
        The scores of the runs that were needed, in their order; None for one that failed.
    kept : int
        Runs that `raw` rests on.
    errors : tuple of SharedError, or None
        Those that at least half of the kept runs found, worst first; None where the judge marks none.
    reasons : str or None
        The reasons of the run whose number is the nearest to `raw`; None where the errors are the reasons.
    counts : tuple of (mapping of str to int, or None)
        Critical, major and minor errors of each run, None for one that failed; empty for judges that look for none.
    outliers : tuple of int
        Runs, from 1, that were left out as outlying.
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
    errors: tuple[SharedError, ...] | None
    reasons: str | None = None
    counts: tuple[Mapping[str, int] | None, ...] = ()
    outliers: tuple[int, ...] = ()

    @property
    def delta(self) -> float | None:
        """The highest score of a run less the lowest (Δ of GEMBA-MQM V2, Figure 3); None with fewer than two."""
        scores = [run for run in self.runs if run is not None]
        return max(scores) - min(scores) if len(scores) > 1 else None

    def as_dict(self) -> dict[str, Any]:
        """One line of ``segments.jsonl``; it has ``reasons`` for judges that mark no errors alone."""
        content = asdict(self)
        if self.reasons is None:
            del content["reasons"]
        if self.errors is not None:
            content["errors"] = [asdict(error.span) | {"found": error.found} for error in self.errors]
        content["doc"] = content.pop("document")
        content["delta"] = self.delta
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


@dataclass(frozen=True, slots=True)
class SystemDifference:
    """The best system beside another, paired on the segments that every system has a score for.

    Parameters
    ----------
    best, other : str
    difference : float
        Mean score of the best system minus that of the other, 0 or above.
    segments, documents : int
        Shared segments, and their documents.
    by_segment, by_document : Interval
        95 % of the difference, for other segments and for other documents; NaN ends with fewer than two.
    p_segment, p_document : float
        Two-sided, by swapping the two systems in single segments, and in whole documents. With several systems after
        Holm over the others, times half the number of systems, because the same scores say which one is the best. NaN
        by document where all segments are of one.
    """

    best: str
    other: str
    difference: float
    segments: int
    documents: int
    by_segment: Interval
    by_document: Interval
    p_segment: float
    p_document: float

    @property
    def ends(self) -> Interval:
        """The interval of the more careful pairing: the wider one."""
        pairings = (self.by_segment, self.by_document)[: 1 + (self.documents > 1)]
        return max(pairings, key=lambda one: one.high - one.low)

    @property
    def better_by_segment(self) -> bool:
        """True if the best system is better by the test and the interval of the pairing by segment."""
        return self.p_segment <= SIGNIFICANT and self.by_segment.low > 0

    @property
    def better_by_document(self) -> bool:
        """True if it is by those of the pairing by document; false where all segments are of one."""
        return self.p_document <= SIGNIFICANT and self.by_document.low > 0

    @property
    def better(self) -> bool:
        """True if every pairing that there is says that the best system is better, on `ENOUGH_GROUPS` segments or more.

        Of fewer segments a system that makes one grave error in ten was called better in up to .41 of simulated runs.
        """
        paired = self.better_by_segment and (self.better_by_document or self.documents == 1)
        return paired and self.segments >= ENOUGH_GROUPS


@dataclass(frozen=True)
class TranslationRecord(NotebookRecord):
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
    differences : tuple of SystemDifference
        The system with the best mean beside each other one, nearest first; empty with one system, or where no segment
        has a score of every system.
    metric : str
        The judge's name.
    number : JudgedNumber
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
    differences: tuple[SystemDifference, ...] = ()
    metric: str = "mqm"
    number: JudgedNumber = JudgedNumber()

    @property
    def missing(self) -> int:
        """Segments without a score."""
        return sum(segment.raw is None for segment in self.segments)

    def as_dict(self) -> dict[str, Any]:
        """The content of ``mqm.json``; undefined numbers are None, segments stand in ``segments.jsonl``."""
        content = {"schema_version": SCHEMA_VERSION, **asdict(self)}
        del content["number"]  # words for readers, which `method` says in full
        content["segments"] = len(self.segments)
        return jsonable(content | {"missing": self.missing})  # type: ignore[no-any-return]
