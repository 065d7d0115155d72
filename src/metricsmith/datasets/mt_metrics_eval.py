"""Test sets and score files in the folder layout of mt-metrics-eval, to read and to write.

The layout is that of google-research/mt-metrics-eval (its README, "File organization and naming convention"). One
folder is one test set; line i of every text file belongs to segment i. The tool and its data are not part of this
package.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import dspy
import numpy as np
from numpy.typing import ArrayLike

from metricsmith.datasets.score_files import (
    check_free,
    check_name,
    check_scores,
    numbered,
    read_lines,
    read_scores,
    write_scores,
)
from metricsmith.errors import DataError, OptionError, nearest
from metricsmith.metric import make_row
from metricsmith.stats.correlation import FloatArray

__all__ = ["EvalSet", "Level", "read_eval_set"]

Level = Literal["seg", "doc", "sys"]


@dataclass(frozen=True, slots=True)
class EvalSet:
    """The texts of one test set in one language pair.

    Parameters
    ----------
    folder : Path
        Of the test set.
    language_pair : str
        Such as ``en-de``.
    sources : tuple of str, length n
    documents : tuple of (str, str), length n
        Domain and document of each segment.
    references, outputs : dict of str to tuple of str, length n
        By name of the reference or system. A reference that was rated like a system stands in both.
    """

    folder: Path
    language_pair: str
    sources: tuple[str, ...] = field(repr=False)
    documents: tuple[tuple[str, str], ...] = field(repr=False)
    references: dict[str, tuple[str, ...]] = field(repr=False)
    outputs: dict[str, tuple[str, ...]] = field(repr=False)

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def segments(self) -> tuple[str, ...]:
        """The group of each segment's rows: ``document:number``, counted from 1 in each document, as in MQM files."""
        places = numbered(document for _, document in self.documents)
        return tuple(f"{document}:{number}" for document, number in places)

    def rows(self, references: Sequence[str] = ()) -> list[dspy.Example]:
        """One row for each system and segment, systems one after the other.

        Parameters
        ----------
        references : sequence of str
            Which references to put into the rows, in this order; these are then no systems.

        Raises
        ------
        OptionError
            If there is no such reference.
        """
        _check_references(self, references)
        return [
            make_row(
                output,
                input=self.sources[index],
                references=[self.references[name][index] for name in references],
                id=f"{system}|{index + 1}",
                group=segment,
                system=system,
                doc=self.documents[index][1],
                domain=self.documents[index][0],
                segment=str(index + 1),
                language_pair=self.language_pair,
            )
            for system, outputs in self.outputs.items()
            if system not in references
            for index, (segment, output) in enumerate(zip(self.segments, outputs, strict=True))
        ]

    def metric_file(self, name: str, references: Sequence[str] = (), level: Level = "seg") -> Path:
        """The path for the scores of metric `name`: ``metric-scores/SRC-TGT/NAME-REF.LEVEL.score``."""
        check_name(name)
        _check_references(self, references)
        used = ".".join(references) or "src"
        return self.folder / "metric-scores" / self.language_pair / f"{name}-{used}.{_level(level)}.score"

    def human_file(self, name: str, level: Level = "seg") -> Path:
        """The path for people's scores: ``human-scores/SRC-TGT.NAME.LEVEL.score``."""
        check_name(name)
        return self.folder / "human-scores" / f"{self.language_pair}.{name}.{_level(level)}.score"

    def read_metric(self, name: str, references: Sequence[str] = (), level: Level = "seg") -> dict[str, FloatArray]:
        """A metric's scores by system, checked against this test set; see `read_scores`."""
        path = self.metric_file(name, references, level)
        scores = read_scores(path, length=self._length(level), systems=self.outputs)
        self._check_complete(str(path), scores, references)
        return scores

    def read_human(self, name: str, level: Level = "seg") -> dict[str, FloatArray]:
        """People's scores by system, NaN where there are none; see `read_scores`."""
        return read_scores(self.human_file(name, level), length=self._length(level), systems=self.outputs)

    def write_metric(
        self,
        name: str,
        scores: Mapping[str, ArrayLike],
        references: Sequence[str] = (),
        *,
        overwrite: bool = False,
    ) -> tuple[Path, Path]:
        """Write a metric's scores by segment, and their means by system, so that the tool reads them.

        Parameters
        ----------
        name : str
            The metric's name without references.
        scores : mapping of str to array_like, shape (n,)
            By system, higher is better. Every system that is no reference used must be there, without gaps.
        references : sequence of str
            Which references the metric looked at; none means that it needs only the source.
        overwrite : bool
            Whether files that exist may be replaced.

        Returns
        -------
        tuple of Path
            The file by segment and the file by system.

        Raises
        ------
        DataError
            If a system is missing or unknown, a count is wrong or a score is missing or not finite. A judgement that
            failed has no number here: judge it again, for the tool would fill the gap with 0, in MQM a perfect score.
            Also if a file exists and `overwrite` is False.
        OptionError
            If a name cannot stand in a file name.
        """
        arrays = {system: np.asarray(values, dtype=float) for system, values in scores.items()}
        what = f"scores of {name!r}"
        check_scores(what, arrays, len(self), self.outputs)
        self._check_complete(what, arrays, references)
        for system, values in arrays.items():
            gaps = np.flatnonzero(~np.isfinite(values))
            if gaps.size:
                raise DataError(
                    f"{what}, system {system!r}: {gaps.size} of {len(self)} segments have no finite score, the first "
                    f"is segment {gaps[0] + 1}; the layout allows no gaps in a metric's scores: score these again"
                )
        by_segment, by_all = self.metric_file(name, references, "seg"), self.metric_file(name, references, "sys")
        for path in (by_segment, by_all):
            check_free(path, overwrite)
        write_scores(by_segment, arrays, overwrite=overwrite)
        means = {system: [math.fsum(values) / len(self)] for system, values in arrays.items()}
        write_scores(by_all, means, overwrite=overwrite)
        return by_segment, by_all

    def _length(self, level: Level) -> int:
        return {"seg": len(self), "doc": len(set(self.documents)), "sys": 1}[level]

    def _check_complete(self, what: str, scores: Mapping[str, Any], references: Sequence[str]) -> None:
        missing = [system for system in self.outputs if system not in scores and system not in references]
        if missing:
            raise DataError(
                f"{what}: {len(missing)} of {len(self.outputs)} systems have no scores, the first is {missing[0]!r}; "
                f"the layout asks for every system that is not used as reference: score the others too"
            )


def read_eval_set(folder: str | os.PathLike[str], language_pair: str) -> EvalSet:
    """Read the texts of a test set.

    Parameters
    ----------
    folder : path
        Has ``sources``, ``documents``, ``references`` and ``system-outputs``, such as ``mt-metrics-eval-v2/wmt22``.
    language_pair : str
        Such as ``en-de``.

    Raises
    ------
    DataError
        If a file is missing, is not UTF-8, or has another number of lines than the source; if there is no system,
        a document is interrupted by another, or a reference's name could not be told from others in a file name.
    """
    root = Path(folder)
    sources = read_lines(root / "sources" / f"{language_pair}.txt")
    documents = _documents(root / "documents" / f"{language_pair}.docs", len(sources))
    prefix = f"{language_pair}."
    found = {
        path.name.removeprefix(prefix).removesuffix(".txt"): path
        for path in sorted((root / "references").glob(f"{prefix}*.txt"))
    }
    for name, path in found.items():
        if name in ("all", "src") or "." in name or "-" in name:
            raise DataError(
                f"{path}: a reference cannot be called {name!r}; dots, dashes, 'all' and 'src' are not allowed, since "
                f"names of score files could not tell them apart: rename the file"
            )
    systems = {path.stem: path for path in sorted((root / "system-outputs" / language_pair).glob("*.txt"))}
    if not systems:
        raise DataError(
            f"{root / 'system-outputs' / language_pair}: no .txt file; one file by system is needed: check folder and "
            f"language pair"
        )
    return EvalSet(
        root,
        language_pair,
        sources,
        documents,
        {name: read_lines(path, len(sources)) for name, path in found.items()},
        {name: read_lines(path, len(sources)) for name, path in systems.items()},
    )


def _documents(path: Path, count: int) -> tuple[tuple[str, str], ...]:
    documents: list[tuple[str, str]] = []
    seen: set[str] = set()
    for number, line in enumerate(read_lines(path, count), 1):
        cells = line.split()
        if len(cells) != 2:
            raise DataError(f"{path}, line {number}: {line[:40]!r}; a domain and a document are needed: correct it")
        domain, document = cells
        if document in seen and documents[-1][1] != document:
            raise DataError(
                f"{path}, line {number}: {document!r} goes on after another document; the segments of a document stand "
                f"together: restore the order"
            )
        seen.add(document)
        documents.append((domain, document))
    return tuple(documents)


def _check_references(data: EvalSet, references: Sequence[str]) -> None:
    for name in references:
        if name not in data.references:
            raise OptionError(
                f"no reference {name!r}{nearest(name, data.references)}; the test set has "
                f"{', '.join(data.references) or 'none'}: name some of these, or none"
            )


def _level(level: str) -> str:
    if level not in get_args(Level):
        raise OptionError(f"the level {level!r} is unknown{nearest(level, get_args(Level))}; use seg, doc or sys")
    return level
