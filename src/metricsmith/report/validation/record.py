"""Judges held against people as data, with everything that a reader needs to go on from the choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from metricsmith.errors import OptionError
from metricsmith.formats import jsonable
from metricsmith.rating_model.alternative_annotator import AlternativeAnnotatorTest, alternative_annotator_test
from metricsmith.rating_model.clinic import Clinic, disagreement_clinic
from metricsmith.rating_model.rated_sides import Rated, beta_of, check_types
from metricsmith.rating_model.ratings import Ratings
from metricsmith.rating_model.record import JudgeSelection
from metricsmith.rating_model.response_sets import ResponseSets
from metricsmith.rating_model.selection import select_judge
from metricsmith.rating_model.vectors import Decision
from metricsmith.report.notebook import NotebookRecord
from metricsmith.version import __version__

__all__ = ["BETAS", "MEASURES_SHOWN", "SCHEMA_VERSION", "Validation", "validate_judges"]

SCHEMA_VERSION = 1
BETAS = tuple(step / 20 for step in range(11))
MEASURES_SHOWN = (
    "hit_rate", "cohen_kappa", "krippendorff_alpha", "js_distance", "squared_error_choices", "coverage",
    "squared_error_sets",
)  # fmt: skip


@dataclass(frozen=True)
class Validation(NotebookRecord):
    """Judges, and the one to take.

    Parameters
    ----------
    selection : JudgeSelection
    response_sets : ResponseSets
        The options, and the sets that were admitted.
    decision : Decision, optional
    signature : str
        The line that makes every number reproducible.
    clinic : Clinic, optional
        The items where the judge to take and people differ: in a rating that speaks for the use or does not, without a
        use in the choice; None, with a note, where that cannot be told.
    replacing : mapping of str to AlternativeAnnotatorTest
        By judge; empty with fewer than three raters, for counts, or where most items have one rating.
    notes, warnings : tuple of str
    title : str
    """

    selection: JudgeSelection
    response_sets: ResponseSets
    decision: Decision | None
    signature: str
    clinic: Clinic | None = None
    replacing: Mapping[str, AlternativeAnnotatorTest] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    title: str = "Judges beside people"

    def as_dict(self) -> dict[str, Any]:
        """The content of ``validate.json``: JSON-ready, NaN as None."""
        sets = [sorted(held, key=self.response_sets.options.index) for held in self.response_sets.sets]
        plain = asdict(self) | {"response_sets": {"options": self.response_sets.options, "sets": sets}}
        return dict(jsonable({"schema_version": SCHEMA_VERSION, **plain}))


def validate_judges(
    human: Rated,
    judges: Mapping[str, Rated],
    options: Sequence[str],
    *,
    sets: str | Sequence[Sequence[str]] | None = None,
    decision: Decision | None = None,
    thresholds: Sequence[float] = (),
    beta: float = 0.0,
    betas: Sequence[float] | None = None,
    added: str | None = None,
    measures: Sequence[str] | None = MEASURES_SHOWN,
    sources: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    **settings: Any,
) -> Validation:
    """Choose a judge, and look into its disagreements with people.

    Parameters
    ----------
    human, judges, decision, thresholds, beta, added, measures
        As in `select_judge`.
    options : sequence of str
    sets : {"single", "all"} or sequence of sets, optional
        The admissible response sets, single options always among them. By default those that `beta` needs: one option
        beside the choice. Where response sets were rated they have to be named.
    betas : sequence of float, optional
        Of the sweep; by default 0 to .5 where only choices are known and `sets` allow it, else `beta` alone.
    sources : mapping of str to str
        The tables with their checksums, for the signature.
    notes : sequence of str
    settings
        Others of `select_judge`.

    Raises
    ------
    OptionError
        If sets have to be named, or as in `select_judge`.
    DataError
        As in `select_judge`.
    """
    check_types(human, judges, beta)
    known = [not isinstance(rated, Ratings) or rated.sets for rated in (human, *judges.values())]
    needed = [frozenset(pair) for pair in beta_of(decision, options, 1.0, added)] if decision else []
    admitted = _admitted(options, sets, needed, any(known))
    swept = decision is not None and not all(known) and {*needed} <= {*admitted.sets}
    declared = None if sets is None and not needed else admitted
    selection = select_judge(
        human, judges, response_sets=declared, decision=decision, beta=beta, added=added, measures=measures,
        betas=betas if betas is not None else BETAS if swept else (), thresholds=thresholds, **settings,
    )  # fmt: skip
    people = _part(human, sets=False) or _part(human, sets=True)
    alike = {name: _part(judges[name], sets=people.sets) for name in selection.judges} if people else {}
    replacing = people is not None and _replaceable(people)
    compared = _compared(human, judges[selection.pick], decision)
    return Validation(
        selection,
        admitted,
        decision,
        _signature(selection, admitted, sources or {}, thresholds),
        disagreement_clinic(*compared, seed=settings.get("seed", 0)) if compared else None,
        {name: alternative_annotator_test(people, one) for name, one in alike.items() if people and one and replacing},
        (*notes, *selection.notes, *_untold(people, compared is not None)),
        tuple(f"{name} is not compared: {why}" for name, why in selection.left_out.items()),
    )


def _replaceable(people: Ratings) -> bool:
    """True for three raters with names or more, two of whom rated most items."""
    several, rated = (int((people.per_item > least).sum()) for least in (1, 0))
    return len(people.raters) > 2 and 2 * several >= rated and not people.counted


def _compared(human: Rated, judge: Rated, decision: Decision | None) -> tuple[Ratings, Ratings] | None:
    """People's and a judge's choices; with a decision their response sets, or else choices, as it sees them."""
    for sets in (False,) if decision is None else (True, False):
        people, own = _part(human, sets=sets), _part(judge, sets=sets)
        if people and own and decision:
            return people.collapsed(decision.positive), own.collapsed(decision.positive)
        if people and own:
            return people, own
    return None


def _untold(people: Ratings | None, compared: bool) -> Iterator[str]:
    """Everything that the ratings do not tell of single raters and items."""
    if people is not None and people.counted:
        yield (
            "people's ratings are counts, which do not say who rated: raters are not tested for two policies, and no "
            "judge is tested in the place of one"
        )
    if not compared:
        yield (
            "differences between the judge and people are not looked into: that takes forced choices of both, or a "
            "decision (positive options) and response sets of both"
        )


def _part(rated: Rated, *, sets: bool) -> Ratings | None:
    """The forced choices or the response sets of one side, if there are any."""
    parts = rated if isinstance(rated, tuple) else (rated,)
    return next((one for one in parts if isinstance(one, Ratings) and one.sets == sets), None)


def _admitted(
    options: Sequence[str], sets: str | Sequence[Sequence[str]] | None, needed: Sequence[frozenset[str]], rated: bool
) -> ResponseSets:
    """The admissible sets, each declared or needed by the assumption."""
    if sets is None and rated:
        raise OptionError(
            "response sets were rated, and none is admitted by guess: declare them with sets=[...] (--sets 'a|b,a|c' "
            "beside the single options), or admit every one with sets='all' (--sets all)"
        )
    if sets == "all":
        return ResponseSets.every(options)
    if isinstance(sets, str) and sets != "single":
        raise OptionError(f"sets={sets!r} (--sets) must be single, all, or a list of sets")
    single = ResponseSets.single(options).sets
    more = needed if sets is None else [] if isinstance(sets, str) else list(map(frozenset, sets))
    return ResponseSets.of(options, list(dict.fromkeys((*single, *more))))


def _signature(
    found: JudgeSelection, admitted: ResponseSets, sources: Mapping[str, str], thresholds: Sequence[float]
) -> str:
    own: Mapping[str, Any] = found.settings
    decision = own["decision"]
    several = ["|".join(o for o in admitted.options if o in held) for held in admitted.sets if len(held) > 1]
    return " | ".join(
        [
            f"metricsmith {__version__}",
            *(f"{what} {source}" for what, source in sources.items()),
            f"{len(found.judges)} judges, {found.items} items in {found.groups} groups",
            f"options {', '.join(admitted.options)}, sets of several: {', '.join(several) or 'none'}",
            *([] if decision is None else [
                f"positive {', '.join(decision.positive)} by {decision.rule}, thresholds "
                f"{', '.join(f'{one:g}' for one in thresholds or [decision.threshold])}"]),
            f"by {found.by}, beta {own['beta']:g}" + (f" adds {own['added']}" if own["added"] else ""),
            f"ties {own['ties']}, level {own['level']:g}",
            f"seed {own['seed']}, {own['draws']} draws" + (" of items and raters" if own["raters"] else ""),
        ]
    )  # fmt: skip
