"""A finished run as data: everything that the reports show and nothing that they compute.

`RunRecord.as_dict` is the content of ``report.json``; its keys are a public contract: later work adds
blocks, never renames one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from metricsmith.formats import jsonable
from metricsmith.records import MetricCard, Task, Usage
from metricsmith.report.notebook import NotebookRecord
from metricsmith.report.probe.record import ProbeRecord
from metricsmith.stats.agreement import Agreement, Difference
from metricsmith.stats.ceiling import RaterCeiling

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "MINIMUM_SYSTEMS", "ROW_COLUMNS", "SCHEMA_VERSION", "Component", "LearningPoint", "NewSystems", "PanelTokens",
    "RowRecord", "RunRecord",
]  # fmt: skip

SCHEMA_VERSION = 1
ROW_COLUMNS = ("id", "group", "split", "rating", "prediction")
MINIMUM_SYSTEMS = 6
"""With fewer there is no figure for new systems."""


@dataclass(frozen=True, slots=True)
class Component:
    """One metric inside the induced one.

    Parameters
    ----------
    name, kind : str
        The column's name; ``bank``, ``criterion_judge``, ``rubric_judge``, ``geval_judge``,
        ``panel_member`` or ``column``.
    weight : float
        Rating points that one standard deviation of the (transformed) column adds.
    direction : str
        ``+`` if a higher raw value raises the prediction, ``-`` otherwise.
    tau_train, tau_test : float
        Kendall tau-b of the component alone with the ratings; NaN if undefined.
    missing : int
        Rows (train and test) on which it had no value.
    selected_share : float
        Share of bootstrap refits that select it, in [0, 1]; NaN if not computed.
    card : MetricCard
    weights : str
        The id, revision and beginning of the hash of a network's weights; empty without any.
    copies : int
        Copies trained without a part of the training rows, from which its numbers for these rows come; 0: none.
    seconds : float
        Taken by a row, on average; NaN where nobody measured it.
    """

    name: str
    kind: str
    weight: float
    direction: str
    tau_train: float
    tau_test: float
    missing: int
    card: MetricCard
    selected_share: float = math.nan
    weights: str = ""
    copies: int = 0
    seconds: float = field(default=math.nan, compare=False)  # another run takes another time


@dataclass(frozen=True, slots=True)
class RowRecord:
    """One row as scored: the unit of ``scores.csv``, the scatter plot and the disagreement list.

    `split` is ``train``, ``test`` or ``unrated``. `prediction` is on the rating scale, unclipped.
    `values` holds every component's raw number (None: no value), `contributions` the rating points
    that each adds, `feedback` the judges' reasons. Under cross-validation `prediction` of a rated row
    is the one made while the row was held out, by another fit than the final one, so that it has no
    `contributions`; `fold` is the number of that fold, from 1, and 0 elsewhere.
    """

    id: str
    group: str
    split: str
    rating: float | None
    prediction: float | None
    output: str = ""
    input: str = ""
    values: Mapping[str, float | None] = field(default_factory=dict)
    contributions: Mapping[str, float] = field(default_factory=dict)
    feedback: Mapping[str, str] = field(default_factory=dict)
    fold: int = 0


@dataclass(frozen=True, slots=True)
class LearningPoint:
    """Held-out tau-b when the fit sees `rows` training rows: mean, low and high over seeded draws."""

    rows: int
    kendall_tau_b: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PanelTokens:
    """Prompt tokens of a panel beside those of its judges asked one by one; answers are not counted.

    Parameters
    ----------
    criteria : int
        Judges on the panel.
    joint, single : float
        Estimated prompt tokens a row: of the one joint request, and of one request for each judge.
    """

    criteria: int
    joint: float
    single: float


@dataclass(frozen=True, slots=True)
class NewSystems:
    """The figures of held-out rows for systems that nobody has rated.

    Parameters
    ----------
    systems, rows : int
        Systems among the held-out rows, and the rows that name one.
    kendall_tau_b, ci_low, ci_high : float
        To be expected on new rows of new systems, with its 95 % interval over groups and systems; NaN if withheld.
    within_tau_b, within_low, within_high : float
        Over the pairs of rows of one system, pooled, with its 95 % interval over groups.
    judges : int
        Components that were written or tuned on rated rows of all systems.
    unnamed : int
        Held-out rows without a system, which are left out.
    withheld : str
        Why there is no figure for new systems; empty if there is one.
    """

    systems: int
    rows: int
    kendall_tau_b: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    within_tau_b: float = math.nan
    within_low: float = math.nan
    within_high: float = math.nan
    judges: int = 0
    unnamed: int = 0
    withheld: str = ""


@dataclass(frozen=True)
class RunRecord(NotebookRecord):
    """A finished induction.

    Parameters
    ----------
    task : Task
    signature : str
        The line that makes every number reproducible: package, data checksum, seed, model, settings.
    evaluation : str
        ``holdout``, ``file``, ``cv`` or ``train_only``.
    rows : mapping
        ``rated``, ``train``, ``test``, ``unrated`` counts.
    components : tuple of Component
        By falling absolute weight.
    train, test : Agreement
        `test` has n 0 when only training data were available.
    baselines : mapping of str to Agreement
        Same rows as `test` (as `train` when there is no test).
    judgements : mapping of str to int
        ``requested``, ``ok`` and every failure status; requested is their sum.
    usage : mapping
        ``requests``, ``prompt_tokens``, ``completion_tokens``, ``cost``, ``seconds``, ``estimated`` (the
        same keys, before the run).
    warnings, notes : tuple of str
        What must not be overlooked; what is worth knowing.
    data : tuple of RowRecord
    combiner : str
        One sentence on how the components are combined.
    fidelity : float
        Correlation of the small model with the full one on the rows that it was chosen on (training and
        unrated ones); NaN if nothing was left out.
    clipped_share : float
        Share of predictions outside the scale.
    learning : tuple of LearningPoint
    failures : tuple of str
        One line per kind of failure: metric, status, count, first message.
    fallen : tuple of str
        One line for each way in which candidates, or a model's ranking of them, fell away; `warnings` and `notes` have
        them too.
    unabridged : str
        Which of `baselines` is the full model that the metric abridges; empty if none is. It is shown, but it
        is no rival: it costs every candidate.
    synthetic : str
        Non-empty for synthetic data: the sentence that says so, shown wherever the results show.
    split : str
        How rows were set aside for the test, and why so, in a sentence; empty where nothing was to be decided.
    panel : PanelTokens, optional
        Where the generated judges were asked together.
    probe : ProbeRecord, optional
        What the metric makes of outputs that were changed on purpose.
    raters : RaterCeiling, optional
        How people agree, and the ceiling that follows, where it is known who rated.
    differences : mapping of str to Difference
        By baseline: how much better the metric agrees with the raters, on the rows that both predict.
    new_systems : NewSystems, optional
        Where rows name the system that wrote them.
    """

    task: Task
    signature: str
    evaluation: str
    rows: Mapping[str, int]
    components: tuple[Component, ...]
    train: Agreement
    test: Agreement
    baselines: Mapping[str, Agreement]
    judgements: Mapping[str, int]
    usage: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    data: tuple[RowRecord, ...] = field(default=(), repr=False)
    combiner: str = ""
    fidelity: float = math.nan
    clipped_share: float = 0.0
    learning: tuple[LearningPoint, ...] = ()
    failures: tuple[str, ...] = ()
    fallen: tuple[str, ...] = ()
    unabridged: str = ""
    synthetic: str = ""
    title: str = "Induced metric"
    split: str = ""
    panel: PanelTokens | None = None
    probe: ProbeRecord | None = None
    raters: RaterCeiling | None = None
    differences: Mapping[str, Difference] = field(default_factory=dict)
    new_systems: NewSystems | None = None

    @property
    def tested(self) -> bool:
        """True if agreement was measured on rows that the fit did not see."""
        return self.evaluation != "train_only" and self.test.n > 0

    @property
    def headline(self) -> Agreement:
        """The block that the verdict and the baselines stand on: `test`, or `train` if there is no test."""
        return self.test if self.tested else self.train

    def held_out(self, row: RowRecord) -> bool:
        """True if the prediction of `row` comes from a fit that did not see its rating."""
        return row.split == "test" or (self.evaluation == "cv" and row.rating is not None)

    def lines(self) -> tuple[list[str], list[list[str | float | None]]]:
        """The names and the cells of one line a row: `ROW_COLUMNS`, then every component's raw number.

        The split is ``train``, ``test``, ``unrated`` or, where a cross-validation held the row out and predicted it,
        the number of that fold (``fold 1``). A component that bears the name of a leading column gets `` (component)``
        behind it.
        """
        names = [component.name for component in self.components]
        head = [*ROW_COLUMNS, *(f"{name} (component)" if name in ROW_COLUMNS else name for name in names)]
        return head, [
            [
                row.id, row.group, f"fold {row.fold}" if row.fold else row.split, row.rating, row.prediction,
                *map(row.values.get, names),
            ]
            for row in self.data
        ]  # fmt: skip

    def to_pandas(self) -> pd.DataFrame:
        """A frame of `lines`: one line a row, its rating, its prediction and every component's number; NaN is none."""
        import pandas as pd

        head, lines = self.lines()
        return pd.DataFrame([[math.nan if cell is None else cell for cell in line] for line in lines], columns=head)

    def as_dict(self) -> dict[str, Any]:
        """The content of ``report.json``: JSON-ready, NaN as None, without the per-row data."""
        content = {
            "schema_version": SCHEMA_VERSION,
            "title": self.title,
            "synthetic": self.synthetic,
            "task": asdict(self.task),
            "signature": self.signature,
            "evaluation": self.evaluation,
            "split": self.split,
            "rows": dict(self.rows),
            "components": [
                {key: value for key, value in asdict(component).items() if key != "card"}
                for component in self.components
            ],
            "train": asdict(self.train),
            "test": asdict(self.test),
            "baselines": {name: asdict(block) for name, block in self.baselines.items()},
            "differences": {name: asdict(apart) for name, apart in self.differences.items()},
            "unabridged": self.unabridged,
            "combiner": self.combiner,
            "fidelity": self.fidelity,
            "clipped_share": self.clipped_share,
            "learning": [asdict(point) for point in self.learning],
            "judgements": dict(self.judgements),
            "failures": list(self.failures),
            "usage": {key: asdict(value) if isinstance(value, Usage) else value for key, value in self.usage.items()},
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }
        parts = {
            "panel": self.panel and asdict(self.panel),
            "probe": self.probe and self.probe.as_dict(),
            "raters": self.raters and asdict(self.raters),
            "new_systems": self.new_systems and asdict(self.new_systems),
        }
        return dict(jsonable(content | {name: part for name, part in parts.items() if part is not None}))
