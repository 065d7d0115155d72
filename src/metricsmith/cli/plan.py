"""``metricsmith plan``: how many items to have rated, and how often each."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metricsmith.cli.terminal import say
from metricsmith.cli.validate import Column, Options, listed, named_columns
from metricsmith.errors import OptionError

if TYPE_CHECKING:
    from metricsmith.rating_model.planning import HumanCeiling, RatingPlan, RatingSpread

    Basis = tuple[RatingSpread, HumanCeiling | None, list[str]]

__all__ = ["plan_command"]

TRIED = (1, 2, 3, 5, 10, 20)  # ratings of each item
WIDEST = 0.5  # half width that an interval of a share can have


def plan_command(
    pilot: Annotated[Path | None, typer.Argument(help="Ratings so far: a table of item, rater, rating.")] = None,
    positive: Annotated[
        str, typer.Option(metavar="A,B,...", help="Of a pilot, the options to measure the share of.")
    ] = "",
    options: Options = "",
    column: Column = None,
    mean: Annotated[float | None, typer.Option(metavar="SHARE", help="Without a pilot: the share to expect.")] = None,
    between: Annotated[
        float | None, typer.Option(metavar="VARIANCE", help="Without a pilot: variance of items' own shares.")
    ] = None,
    half_width: Annotated[
        float | None, typer.Option("--half-width", metavar="SHARE", help="The interval that is wished, ± this.")
    ] = None,
    budget: Annotated[float | None, typer.Option(help="Or: what all ratings may cost.")] = None,
    item_cost: Annotated[float, typer.Option("--item-cost", help="Of an item, whatever its ratings.")] = 0.0,
    rating_cost: Annotated[float, typer.Option("--rating-cost", help="Of a rating.")] = 1.0,
    most_items: Annotated[int, typer.Option("--most-items", help="Items that there are.")] = 1_000_000,
    threshold: Annotated[float, typer.Option(help="Share of raters that decides on an item.")] = 0.5,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plans as JSON.")] = False,
) -> None:
    """Say how many items to have rated, and how often each, for an interval or a budget."""
    from metricsmith.formats import count, jsonable, raw, statistic
    from metricsmith.rating_model.planning import flip_probability, plan_ratings

    spread, ceiling, notes = (
        _of_numbers(mean, between, positive or options or column)
        if pilot is None
        else _of_pilot(pilot, listed(positive), listed(options), named_columns(column), mean, between)
    )
    wish: dict[str, Any] = {
        "half_width": half_width, "budget": budget, "most_items": most_items, "item_cost": item_cost,
        "rating_cost": rating_cost,
    }  # fmt: skip
    best = plan_ratings(spread, **wish)
    if best.half_width > WIDEST:
        raise OptionError(
            f"{best.items} items leave a share open by ± {statistic(best.half_width)}, which says nothing of it: ask "
            f"for a --half-width of at most {statistic(WIDEST)}, or raise --budget"
        )
    plans = {best.ratings_per_item: best}
    for times in TRIED:
        with suppress(OptionError):  # not for every number of ratings is there a plan
            plan = plan_ratings(spread, ratings_per_item=times, **wish)
            plans |= {times: plan} if plan.half_width <= WIDEST else {}
    plans = dict(sorted(plans.items()))
    varied = 0 < spread.between < spread.mean * (1 - spread.mean)
    flips = {times: flip_probability(times, threshold, spread=spread) if varied else math.nan for times in plans}
    if not as_json:
        decided = f"decided otherwise: items that so few ratings put on the wrong side of {raw(threshold)}"
        each, items = count(best.ratings_per_item, "rating"), count(best.items, "item")
        reached = f"a share then lies within ± {statistic(best.half_width)} (95 %)"
        say(f"Ask for {each} of each of {items}, which costs {raw(best.cost)}: {reached}.")
        say("\n".join([*notes, *_table(spread, best, plans, flips), decided, *_of_people(ceiling)]))
        return
    content = {
        "spread": asdict(spread),
        "best": asdict(best),
        "plans": [{**asdict(plan), "flip_probability": flips[times]} for times, plan in plans.items()],
        "ceiling": ceiling and asdict(ceiling),
    }
    say(json.dumps(jsonable(content), indent=1))


def _of_numbers(mean: float | None, between: float | None, of_pilot: object) -> Basis:
    """The spread that two numbers say.

    Raises
    ------
    OptionError
        If they are missing or out of range, or options of a pilot were given.
    """
    from metricsmith.rating_model.planning import RatingSpread

    if of_pilot:
        raise OptionError("--positive, --options and --column are about a table of ratings so far: give one, too")
    if mean is None or between is None or not 0 <= between <= mean * (1 - mean):
        raise OptionError(
            "give a table of ratings so far, or --mean, a share from 0 to 1, and --between, a variance from 0 to "
            "mean (1 - mean)"
        )
    return RatingSpread(mean, between, mean * (1 - mean) - between), None, []


def _of_pilot(
    pilot: Path, positive: list[str], options: list[str], columns: dict[str, str], *numbers: float | None
) -> Basis:
    """The spread of the decision's ratings (response sets where there are any), people's ceiling, and notes.

    Raises
    ------
    OptionError
        If no positive option is named, or the spread is given in numbers, too.
    """
    from metricsmith.datasets.choices import read_rated_choices
    from metricsmith.rating_model.planning import RatingSpread, human_ceiling

    if any(number is not None for number in numbers):
        raise OptionError("--mean and --between stand in for a table of ratings so far: leave out one or the other")
    found = read_rated_choices(pilot, None, options, columns)
    if not positive:
        names = ", ".join(found.options)
        raise OptionError(f"name with --positive the options to measure the share of; there are {names}")
    ratings, decided = found.human if isinstance(found.human, tuple) else (found.human, found.human)
    notes = [f"note: {note}" for note in found.notes]
    notes += ["a response set counts as positive where it holds a positive option"] * decided.sets
    return RatingSpread.of_pilot(decided, positive), None if ratings.sets else human_ceiling(ratings), notes


def _table(
    spread: RatingSpread, best: RatingPlan, plans: Mapping[int, RatingPlan], flips: Mapping[int, float]
) -> Iterator[str]:
    """The spread in words, and the plans by ratings of an item."""
    from metricsmith.formats import count, percent, raw, statistic
    from metricsmith.report.blocks import TextTable
    from metricsmith.report.render import aligned

    shares = f"share {statistic(spread.mean)}, variance of items' shares {statistic(spread.between)}"
    yield f"{shares}, of the ratings of an item {statistic(spread.within)}"
    if spread.group_size > 1:
        effect = 1 + spread.likeness / spread.variance(best.ratings_per_item)
        yield (
            f"items come in groups of {raw(spread.group_size, 3)} that are alike: by the best plan, "
            f"{count(best.items, 'item')} say as much as {count(best.items / effect)} that stand alone"
        )
    rows = [
        (
            f"{times}{' (best)' * (times == best.ratings_per_item)}", count(plan.items), count(plan.items * times),
            raw(plan.cost), f"± {statistic(plan.half_width)}", percent(flips[times]),
        )
        for times, plan in plans.items()
    ]  # fmt: skip
    head = ("ratings of an item", "items", "ratings", "cost", "95 %", "decided otherwise")
    yield from aligned(TextTable(head, rows))


def _of_people(ceiling: HumanCeiling | None) -> Iterator[str]:
    """People's agreement, where it is known."""
    from metricsmith.formats import count, interval_stated, percent

    if ceiling is not None and ceiling.items:
        low, high = ceiling.hit_rate_interval.low, ceiling.hit_rate_interval.high
        yield (
            f"one rater chooses as most others do in {percent(ceiling.hit_rate)} of cases ("
            f"{interval_stated(low, high, percent)}, {count(ceiling.items, 'item')}); a judge's hit rate is taken "
            "against all raters: it is not comparable with this, and may be higher"
        )
