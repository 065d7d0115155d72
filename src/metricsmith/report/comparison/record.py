"""A finished comparison as data: what every method came to on the same test rows, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from metricsmith.formats import jsonable
from metricsmith.records import Task, Usage
from metricsmith.report.notebook import NotebookRecord
from metricsmith.stats.ceiling import RaterCeiling
from metricsmith.stats.resampling import Interval

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SCHEMA_VERSION", "Comparison", "MethodResult"]

SCHEMA_VERSION = 1
UNDEFINED = Interval(math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class MethodResult:
    """One method's line.

    Numbers are NaN where they are undefined, and for a method that was not run.

    Parameters
    ----------
    key, label : str
        How the method is asked for, and how it is called in tables.
    model : bool
        Whether it asks the language model.
    skipped : str
        Why it was not run; empty if it was.
    taus : tuple of float
        Kendall tau-b on the test rows for each seed; NaN where it is undefined (a constant prediction).
    tau : float
        Mean of the defined `taus`.
    n, groups : int
        Test rows for which every method has a prediction in every seed, and their groups. A method that lacks more
        than half of the rows is measured on those of its own among them, and leaves the others theirs.
    over_seeds : Interval
        95 %, Student's t over `taus`, cut to [-1, 1]: the test rows stay as they are (the paper's).
    over_rows : Interval
        95 %, for other groups of test rows (each is left out of all seeds in turn): the seeds stay as they are.
    over_both : Interval
        95 %, for other groups and other seeds: the variance between seeds is added to that of the groups. With one seed
        it is `over_rows`. Both: `metricsmith.stats.resampling.repeated_interval`.
    difference : float
        `tau` of the reference method minus that of this one, on the rows that have both; above 0 the reference is
        better.
    difference_interval : Interval
        95 %, for other groups and other seeds: the difference is taken anew without each group.
    p_value, p_adjusted : float
        Two-sided, by swapping the two methods in whole groups; and after Holm, over all methods compared.
    judgements : mapping of str to int
        Judgements that the method rests on, over all seeds: ``requested``, ``ok`` and every failure.
    usage : Usage
        Over all seeds; ``seconds`` is the time of the whole method.
    remarks : tuple of str
        What it chose, what is undefined, what was left out.
    """

    key: str
    label: str
    model: bool
    skipped: str = ""
    taus: tuple[float, ...] = ()
    tau: float = math.nan
    n: int = 0
    groups: int = 0
    over_seeds: Interval = UNDEFINED
    over_rows: Interval = UNDEFINED
    over_both: Interval = UNDEFINED
    difference: float = math.nan
    difference_interval: Interval = UNDEFINED
    p_value: float = math.nan
    p_adjusted: float = math.nan
    judgements: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    remarks: tuple[str, ...] = ()

    @property
    def failed(self) -> int:
        """Judgements without a number that were asked for; rows that lack a text do not count."""
        unasked = ("requested", "ok", "skipped", "budget")
        return sum(count for status, count in self.judgements.items() if status not in unasked)


@dataclass(frozen=True)
class Comparison(NotebookRecord):
    """Methods side by side on one split.

    Parameters
    ----------
    task : Task
    methods : tuple of MethodResult
        In the order in which they were asked for.
    reference : str
        Key of the method that the others are compared with; empty without one.
    seeds : int
    rows : mapping of str to int
        ``train``, ``validation``, ``test``, ``test_groups`` and ``unrated``.
    model : str
        Name of the language model, empty without one.
    signature : str
        The line that makes every number reproducible.
    usage, estimated : Usage
        What all methods asked for together, and the bound on it that was computed beforehand.
    notes, warnings : tuple of str
    title : str
    raters : RaterCeiling, optional
        How people agree, and the ceiling that follows, where it is known who rated.
    """

    task: Task
    methods: tuple[MethodResult, ...]
    reference: str
    seeds: int
    rows: Mapping[str, int]
    model: str
    signature: str
    usage: Usage = field(default_factory=Usage)
    estimated: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    title: str = "Methods compared"
    raters: RaterCeiling | None = None

    @property
    def run(self) -> tuple[MethodResult, ...]:
        """The methods that were run."""
        return tuple(method for method in self.methods if not method.skipped)

    @property
    def skipped(self) -> tuple[MethodResult, ...]:
        """The methods that were not run."""
        return tuple(method for method in self.methods if method.skipped)

    def method(self, key: str) -> MethodResult:
        """The line of one method; KeyError if it was not asked for."""
        for method in self.methods:
            if method.key == key:
                return method
        raise KeyError(key)

    def to_pandas(self) -> pd.DataFrame:
        """One line a method: its figures, the ends of their intervals, and its cost."""
        import pandas as pd

        lines = []
        for method in self.methods:
            line = {**asdict(method), **asdict(method.usage), "failed": method.failed}
            spans = {name: line.pop(name) for name in ("over_seeds", "over_rows", "over_both", "difference_interval")}
            line |= {f"{name}_{end}": span[end] for name, span in spans.items() for end in ("low", "high")}
            lines.append({name: cell for name, cell in line.items() if name not in ("usage", "judgements")})
        return pd.DataFrame(lines)

    def as_dict(self) -> dict[str, Any]:
        """The content of ``compare.json``: JSON-ready, NaN as None."""
        return dict(jsonable({"schema_version": SCHEMA_VERSION, **asdict(self)}))
