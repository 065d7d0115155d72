"""Whole translations judged: documents in; scores by segment, document and system out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from metricsmith.datasets.segments import Translations
from metricsmith.errors import OptionError
from metricsmith.formats import count
from metricsmith.metric import content_hash
from metricsmith.model_calls.adapters import adapter_in_force
from metricsmith.model_calls.models import form_identity, identity, using
from metricsmith.mqm import SEVERITIES, SharedError, severity_name, shared_errors
from metricsmith.programs.judges.direct_assessment import CLASSES, DirectAssessment, ESAJudge
from metricsmith.programs.judges.mqm import NO_SPANS, MQMAnnotator, MQMJudge
from metricsmith.programs.judges.repeated import Repeated, numbers_of
from metricsmith.programs.judges.translation import TranslationJudge
from metricsmith.records import Judgement, Output, Usage
from metricsmith.report.translations.record import (
    WITHOUT_SPANS,
    JudgedNumber,
    MeanScore,
    SegmentScore,
    SystemDifference,
    TranslationRecord,
)
from metricsmith.scoring import Budget, Concurrency, ScoreTable, estimate, score
from metricsmith.scoring.plan import model_of
from metricsmith.scoring.table import tally
from metricsmith.stats.aggregation import AGGREGATES, half_width
from metricsmith.stats.resampling import group_mean_interval, holm, measured_coverage, paired_permutation_test
from metricsmith.store import Store
from metricsmith.version import __version__

__all__ = ["judge_translations", "recorded"]

TITLES = {"da": "DA", "sqm": "SQM", "stars": "Star rating", "classes": "Quality class"}
DRAWS = 1000  # of a test of two systems, times the number of systems: adjusted p-values are that much larger


def judge_translations(
    judge: TranslationJudge | Repeated,
    translations: Translations,
    *,
    lm: Any = None,
    store: str | PathLike[str] | Store | None = None,
    concurrency: Literal["auto"] | int | Concurrency = "auto",
    budget: Budget | None = None,
    max_failure_rate: float = 0.2,
    progress: bool = True,
    batch_n: bool = False,
) -> TranslationRecord:
    """Judge every segment on its own, with its whole source document as context where the judge is shown one.

    Parameters
    ----------
    judge : TranslationJudge or Repeated
        An `MQMJudge`, `DirectAssessment`, `ESAJudge` or another judge of translations, or `Repeated` of one.
    translations : Translations
        As `read_translations` gives them.
    lm, store, concurrency, budget, max_failure_rate, progress, batch_n
        As for `metricsmith.score`.

    Returns
    -------
    TranslationRecord
        A segment without a number enters no mean; each mean says how many it lacks.

    Raises
    ------
    OptionError
        If `judge` is no judge of translations, or another option has no meaning.
    NeedsError, StoreError, ModelFailure, Interrupted
        As `metricsmith.score`; ``table`` holds the judgements that were made, and `recorded` makes a record of it.
    """
    _asked(judge)
    with using(lm):
        expected = estimate([judge], translations.rows, store=store, batch_n=batch_n)
        table = score(
            [judge], translations.rows, store=store, concurrency=concurrency, budget=budget,
            max_failure_rate=max_failure_rate, progress=progress, batch_n=batch_n,
        )  # fmt: skip
        return recorded(judge, translations, table, expected)


def recorded(
    judge: TranslationJudge | Repeated, translations: Translations, table: ScoreTable, estimated: Usage | None = None
) -> TranslationRecord:
    """The record of a table in which `judge` alone has judged the rows of `translations`, on the model in force."""
    number, output = _number(judge), judge.output
    needed = [
        judge.needed(table.parts(place, 0)) if isinstance(judge, Repeated) else [table.judgement(place, 0)]
        for place in range(len(translations))
    ]
    widths = _half_widths(judge, needed)
    segments = [
        _segment(judge, row, table.judgement(place, 0), needed[place], widths[place], number)
        for place, row in enumerate(translations.rows)
    ]
    runs = [part for parts in needed for part in parts]
    (coverage,) = table.coverage()
    systems = [
        _mean([line for line in segments if line.system == system], output, system) for system in translations.systems
    ]
    counts = tally(runs)
    return TranslationRecord(
        title=Path(translations.name).name,
        languages=_asked(judge).languages,
        method=judge.card.formula,
        segments=tuple(segments),
        documents=tuple(
            _mean([line for line in segments if (line.system, line.document) == key], output, *key)
            for key in dict.fromkeys((line.system, line.document) for line in segments)
        ),
        systems=tuple(sorted(systems, key=lambda line: (math.isnan(line.mean), -line.mean))),
        judgements=counts,
        reused=coverage.reused,
        usage=table.usage,
        estimated=estimated or Usage(),
        signature=_signature(judge, translations),
        warnings=tuple(_warnings(segments, systems, runs)),
        notes=(*translations.notes, NO_SPANS) if number.unmarked else translations.notes,
        differences=tuple(_differences(segments, [line.system for line in systems if line.segments])),
        metric=judge.name,
        number=number,
    )


def _asked(judge: Any) -> TranslationJudge:
    """The judge that the model is asked by, in each run."""
    asked = judge.judge if isinstance(judge, Repeated) else judge
    if not isinstance(asked, TranslationJudge):
        raise OptionError(
            f"{judge!r} is no judge of translations; make one with MQMJudge(source_language=..., target_language=...), "
            "DirectAssessment or ESAJudge, or Repeated of one"
        )
    return asked


def _number(judge: TranslationJudge | Repeated) -> JudgedNumber:
    """The words for what this judge gives."""
    asked, repeated = _asked(judge), isinstance(judge, Repeated)
    if isinstance(asked, MQMAnnotator):
        number = JudgedNumber(repeated=repeated)
        return number if asked.has_spans else replace(number, marks=(), unmarked=WITHOUT_SPANS)
    errors, scale = asked.signature.output_fields.get("errors"), asked.scale
    title, gives = "ESA", f"is the number that the model gives each segment, from {scale.low:g} to {scale.high:g}"
    if isinstance(asked, DirectAssessment):
        title = TITLES[asked.settings.scale]
        if asked.settings.scale == "classes":
            places = ", ".join(f"{name} {place}" for place, name in enumerate(CLASSES))
            gives = f"is the class that the model puts each segment into, as a number: {places}"
        seen = "beside translations by people" if asked.settings.reference else "without a reference"
    elif isinstance(asked, ESAJudge):
        seen = "after it has marked the errors"
    else:
        title, seen = asked.name, "after its reasons"
    words = f"{gives}, {seen}; higher is better. Numbers of different models, scales or languages cannot be compared."
    marks = () if errors is None else tuple(errors.annotation.model_fields)
    return JudgedNumber(title, "points", words, scale.width, marks, repeated=repeated)


def _half_widths(judge: TranslationJudge | Repeated, needed: Sequence[Sequence[Judgement]]) -> list[float]:
    if not isinstance(judge, Repeated):
        return [math.nan] * len(needed)
    runs = np.full((len(needed), judge.runs), np.nan)
    for place, parts in enumerate(needed):
        runs[place, : len(parts)] = numbers_of(parts)[0]
    found = half_width(runs, AGGREGATES[judge.settings.aggregate], outliers=judge.outliers)
    return list(np.asarray(found).tolist())


def _segment(
    judge: TranslationJudge | Repeated, row: Any, judgement: Judgement, parts: Sequence[Judgement], width: float,
    number: JudgedNumber,
) -> SegmentScore:  # fmt: skip
    kept = np.full(len(parts), judgement.ok)
    if judgement.ok and isinstance(judge, Repeated):
        kept = judge.kept(parts)
    errors: tuple[SharedError, ...] | None = None
    if number.marks and isinstance(judge, MQMJudge):  # whose weights order them
        errors = judge.shared(parts) if judgement.ok else ()
    elif number.marks:
        errors = shared_errors([part.spans for part, stays in zip(parts, kept, strict=True) if stays])
    return SegmentScore(
        id=row.id,
        system=row.system,
        document=row.doc,
        segment=row.segment,
        source=row.get("input", ""),
        translation=row.output,
        raw=judgement.raw,
        score=judgement.score,
        half_width=width if judgement.ok and not math.isnan(width) else None,
        status=judgement.status.value,
        error=judgement.error,
        runs=tuple(part.raw for part in parts),
        counts=tuple(_by_severity(part) for part in parts) if number.marks or number.unmarked else (),
        outliers=tuple(
            run
            for run, (part, stays) in enumerate(zip(parts, kept, strict=True), 1)
            if judgement.ok and part.raw is not None and not stays
        ),
        kept=int(kept.sum()),
        errors=errors,
        reasons=None if number.marks else _nearest(judgement, parts, kept),
    )


def _nearest(judgement: Judgement, parts: Sequence[Judgement], kept: NDArray[np.bool_]) -> str:
    """The reasons of the kept run whose number is the nearest to the judgement's; empty without one."""
    runs = [(part.raw, part.feedback) for part, stays in zip(parts, kept, strict=True) if stays]
    known = [(abs(raw - judgement.raw), told) for raw, told in runs if raw is not None and judgement.raw is not None]
    return min(known, key=lambda one: one[0])[1] if known and judgement.ok else ""


def _by_severity(part: Judgement) -> dict[str, int] | None:
    found = Counter(severity_name(span.severity) for span in part.spans)
    return {severity: found[severity] for severity in SEVERITIES[:3]} if part.ok else None


def _mean(lines: Sequence[SegmentScore], output: Output, system: str, document: str = "") -> MeanScore:
    """The mean with its interval, over documents where there are several, since segments of one document are alike."""
    scored = [line for line in lines if line.raw is not None]
    several = len({line.document for line in scored}) > 1
    groups = [line.document if several else line.id for line in scored]
    numbers = np.array([line.raw for line in scored], dtype=float)
    interval = group_mean_interval(numbers, groups)
    return MeanScore(
        system=system,
        document=document,
        mean=float(numbers.mean()) if scored else math.nan,
        low=interval.low if output.low is None else max(interval.low, output.low),
        high=interval.high if output.high is None else min(interval.high, output.high),
        segments=len(scored),
        missing=len(lines) - len(scored),
        groups=len(set(groups)),
    )


def _differences(segments: Sequence[SegmentScore], systems: Sequence[str]) -> list[SystemDifference]:
    """The best of these systems beside each other one; see `SystemDifference`."""
    raw = {(line.system, line.document, line.segment): line.raw for line in segments if line.raw is not None}
    places = dict.fromkeys((line.document, line.segment) for line in segments)
    shared = [place for place in places if all((system, *place) in raw for system in systems)]
    if len(systems) < 2 or not shared:
        return []
    numbers = {system: np.array([raw[(system, *place)] for place in shared]) for system in systems}
    best, *others = sorted(systems, key=lambda system: -numbers[system].mean())
    documents = [document for document, _ in shared]
    several = len(set(documents)) > 1

    def adjusted(groups: Sequence[str] | None) -> list[float]:
        tests = [
            paired_permutation_test(
                lambda scores: scores.mean(axis=-1), numbers[best], numbers[other], groups=groups,
                permutations=DRAWS * len(systems), batched=True, standardize=False,
            )
            for other in others
        ]  # fmt: skip
        return np.minimum(holm([test.p_value for test in tests]) * len(systems) / 2, 1.0).tolist()  # type: ignore[no-any-return]

    by_document = adjusted(documents) if several else [math.nan] * len(others)
    return [
        SystemDifference(
            best=best, other=other, difference=float(apart.mean()), segments=len(shared), documents=len(set(documents)),
            by_segment=group_mean_interval(apart), by_document=group_mean_interval(apart, documents),
            p_segment=p_segment, p_document=p_document,
        )
        for other, p_segment, p_document in zip(others, adjusted(None), by_document, strict=True)
        for apart in [numbers[best] - numbers[other]]
    ]  # fmt: skip


def _warnings(
    segments: Sequence[SegmentScore], systems: Sequence[MeanScore], runs: Sequence[Judgement]
) -> Iterable[str]:
    without = [line for line in segments if line.raw is None]
    if without:
        kinds = ", ".join(f"{times} {kind}" for kind, times in Counter(line.status for line in without).most_common())
        yield (
            f"{len(without)} of {len(segments)} segments have no score ({kinds}), the first: {without[0].id}: "
            f"{without[0].error}"
        )
    scored = [
        {(line.document, line.segment) for line in segments if line.system == one.system and line.raw is not None}
        for one in systems
    ]
    if without and any(mine != scored[0] for mine in scored):
        yield "systems have scores on different segments: their means cannot be compared until all have one"
    spans = [span for run in runs for span in run.spans]
    stray = [span for span in spans if span.start is None and span.text]
    if len(stray) > 0.1 * max(1, len(spans)):
        yield f"{len(stray)} of {len(spans)} errors quote words that do not stand in the text, and cannot be marked"
    few = min((line.groups for line in systems), default=0)
    coverage = measured_coverage("mean", few) if few else None
    if coverage is not None:
        said = "were not tried" if math.isnan(coverage) else f"held the true mean in as few as {coverage:.0%} of cases"
        one = len({line.document for line in segments}) == 1
        groups = count(few, "segment") if one else f"{count(few, 'document')} (or segments of one)"
        yield f"95 % intervals rest on {groups}; with so few they {said} in simulations"


def _signature(judge: TranslationJudge | Repeated, translations: Translations) -> str:
    model = model_of(_asked(judge))
    named = identity(model) | form_identity(adapter_in_force()) if model is not None else {}
    return " | ".join(
        [
            f"metricsmith {__version__}",
            f"{judge.name} {judge.fingerprint()[:12]}",
            f"{len(translations)} segments of {translations.name}, sha256:{translations.checksum}",
            f"model {named.get('model', 'none')} {content_hash(named)[:12]}",
        ]
    )
