"""`Specialist`: a judge that is shown, for each row, what people said about other outputs of the same source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import dspy

from metricsmith.datasets.history import History, joined_systems
from metricsmith.errors import DataError, OptionError
from metricsmith.metric import labels_of
from metricsmith.programs.judges.base import Judge
from metricsmith.programs.judges.direct_assessment import DirectAssessment
from metricsmith.programs.judges.mqm import MQMAnnotator
from metricsmith.programs.judges.parrot import ExampleMean, Parrot
from metricsmith.programs.judges.raters import ExampleJudge, GuidelineJudge
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.learned import mark_learned
from metricsmith.programs.specialist.choosing import ExamplePolicy, NoExample
from metricsmith.programs.specialist.examples import ROW_EXAMPLES, RowExamples, judged

__all__ = ["Specialist", "examples_of", "specialised"]

KINDS = (DirectAssessment, ExampleJudge, ExampleMean, GuidelineJudge, MQMAnnotator, Parrot)


@dataclass(frozen=True)
class Specialist:
    """Specialises a judge to the test set of a history.

    For new systems on a test set that people rated for older ones. A copy of the judge comes back, of its own class, so
    that `metricsmith.score`, saving, loading and repeated runs work as for any judge. GEPA and MIPROv2 may tune its
    instruction; its examples change from row to row and are not searched for.

    Parameters
    ----------
    policy : ExamplePolicy
        The rule by which a row gets its examples.

    References
    ----------
    Finkelstein et al. (2025), "From Jack of All Trades to Master of One", section 3 and algorithm 1.

    Examples
    --------
    >>> Specialist(ExamplePolicy(rater="any")).policy.source
    'same'
    """

    policy: ExamplePolicy = field(default_factory=ExamplePolicy)

    def __post_init__(self) -> None:
        if not isinstance(self.policy, ExamplePolicy):
            raise OptionError(f"policy={self.policy!r:.60} must be an ExamplePolicy, say ExamplePolicy(rater='any')")

    def compile(self, judge: Judge | Parrot, history: History, test: Iterable[dspy.Example] | None = None) -> Any:
        """Make a specialist.

        Before it is given back, the examples of every rating of the history are chosen and looked at a second time.

        Parameters
        ----------
        judge : MQMAnnotator, DirectAssessment, ExampleJudge, GuidelineJudge, Parrot, ExampleMean, or one in a Repeated
            Without examples of its own; an `MQMAnnotator` with ``worked_example=False, context="none"``.
        history : History
        test : sequence of dspy.Example, optional
            The rows to be judged, with ``system``: a system that equals one of the history in all segments that both
            have is joined with it, so that it is not shown its own ratings. Without them it cannot be known.

        Returns
        -------
        Judge
            A copy of `judge`; its attribute ``row_examples`` has history, policy and the systems that are one.

        Raises
        ------
        OptionError
            If the judge is of another kind, or has examples, a worked one or a document to show.
        DataError
            If the history has no rater though the policy asks for them, or ratings that this judge cannot show.
        LeakedExample
            If a rating would be shown that must not be.
        """
        self._check(judge.judge if isinstance(judge, Repeated) else judge, history)
        rows = list(test or ())
        compared = {labels_of(row, ("system",))["system"] for row in rows} - {"", *history.systems}
        examples = RowExamples(history, self.policy, joined_systems(history, rows), compared=frozenset(compared))
        return specialised(judge, examples)

    def _check(self, judge: Any, history: History) -> None:
        if not isinstance(judge, KINDS):
            known = ", ".join(kind.__name__ for kind in KINDS)
            raise OptionError(
                f"{getattr(judge, 'name', judge)!r:.60} cannot be specialised; {known} can, and so can one of them "
                "that is repeated"
            )
        if not isinstance(history, History):
            raise OptionError(f"history={history!r:.60} must be a History: History.from_table(read_wmt_mqm(path))")
        if isinstance(judge, MQMAnnotator) and judge.settings.worked_example:
            raise OptionError(
                f"{judge.name} has a worked example of another text: make it with worked_example=False, context='none'"
            )
        if judge.settings.values.get("context", "none") != "none":
            raise OptionError(
                f"{judge.name} is shown whole documents, which its examples do not have: make it with context='none'"
            )
        if isinstance(judge, Judge) and judge.judge.demos:
            raise OptionError(
                f"{judge.name} has {len(judge.judge.demos)} fixed examples, which would stand beside those that change "
                "from row to row: take a judge without examples; tuning may change its instruction"
            )
        if isinstance(judge, MQMAnnotator | Parrot) and any(one.spans is None for one in history.ratings):
            raise DataError(
                f"{history.name} has ratings without marked errors, which {judge.name} is to be shown: leave them out "
                "of the history, or take a judge of numbers, such as ExampleJudge (--judge examples)"
            )
        if self.policy.rater != "any" and self.policy.source != "none" and not history.raters:
            raise DataError(
                f"{history.name} does not say who rated, which rater={self.policy.rater!r} asks for: give the raters, "
                "or take the policy any: ExamplePolicy(rater='any')"
            )


def specialised(judge: Any, examples: RowExamples) -> Any:
    """A copy of a judge with these examples, each row's of the history looked at once.

    Raises
    ------
    LeakedExample
        If a rating would be shown that must not be.
    """
    copy = judge.deepcopy()
    if isinstance(copy, Repeated):
        copy.judge = specialised(copy.judge, examples)
        return copy
    copy.settings.values[ROW_EXAMPLES] = examples
    rows = examples.history.rows()
    for row in rows:
        try:
            copy.shown_examples(judged(row))
        except NoExample:
            continue  # a source that one system alone has ratings of
    mark_learned(copy, rows)
    return copy


def examples_of(metric: Any) -> RowExamples:
    """The history and policy of a specialist, repeated or not."""
    inner: Any = metric.judge if isinstance(metric, Repeated) else metric
    found: RowExamples = inner.row_examples
    return found
