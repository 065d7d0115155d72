"""The use of a judge beside its agreement: plots of orders and of the sweep over beta, and the words for measures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from metricsmith.formats import count, raw, single_line, statistic
from metricsmith.rating_model.measures import DOWNSTREAM
from metricsmith.rating_model.record import JudgeFigure, JudgeSelection, MeasureResult, SweepCell
from metricsmith.report.blocks import Block, Figure
from metricsmith.report.plots.lines import MOST_SERIES, line_plot
from metricsmith.report.plots.slope import Slope, slope_plot

__all__ = ["MOST_DRAWN", "curves", "holds", "ranked", "slopes", "plain_name"]

MOST_DRAWN = 12  # judges in a plot


def slopes(found: JudgeSelection) -> list[Block]:
    """One plot for each order that measures put the judges in, beside their order in use."""
    if found.results[-1].name not in DOWNSTREAM:
        return []
    every = ranked(found.result(DOWNSTREAM[0]))
    letters = enumerate(zip(*found.judges, strict=False))
    alike = next((place for place, own in letters if len(set(own)) > 1), 0)  # letters that tell no names apart
    orders = dict[tuple[str, ...], list[MeasureResult]]()
    for one in found.results:
        if one.name not in DOWNSTREAM and one.pick:
            orders.setdefault(tuple(own.judge for own in ranked(one)), []).append(one)
    plots: list[Block] = []
    for number, (order, same) in enumerate(orders.items()):
        one, values = same[0], {own.judge: own.value for own in same[0].figures}
        use = [own for place, own in enumerate(every) if place < MOST_DRAWN or own.judge == one.pick]
        left = [name for name in order if name in {own.judge for own in use}]
        lines = [
            Slope(
                f"…{own.judge[alike:]}" if alike > 4 else own.judge,
                (left.index(own.judge), place),
                (statistic(values[own.judge], 2), statistic(own.value, 2)),
                "" if not place else "down" if own.judge == one.pick else "other",
            )
            for place, own in enumerate(use)
        ]
        names, rank = ", ".join(plain_name(other.name) for other in same), statistic(one.rank_correlation, 2)
        drawn = f" {len(use)} of {len(every)} judges." if len(use) < len(every) else ""
        caption = f"{names}: picks {one.pick}, regret {statistic(one.regret)}; rank correlation {rank}.{drawn}"
        plot = slope_plot(f"slope-{number}", lines, f"{names} beside use", (plain_name(one.name), "consistency in use"))
        plots.append(Figure(plot, single_line(caption)))
    return plots


def curves(sweep: Sequence[SweepCell]) -> list[Block]:
    """Consistency over beta at each threshold, of the best judge and of each measure's pick; and the prevalence."""
    if len({cell.beta for cell in sweep}) < 2:
        return []
    plots, prevalence = list[Block](), {}
    for threshold, cells in panels(sweep).items():
        betas = [cell.beta for cell in cells]
        paths = {tuple(cell.value for cell in cells): ["best judge"]}
        for name in cells[0].picks:
            path = tuple(cell.picks[name][1] if name in cell.picks else math.nan for cell in cells)
            paths.setdefault(path, []).append(plain_name(name))
        series = {shortened(names): list(zip(betas, path, strict=True)) for path, names in paths.items()}
        key, more = f"beta-{round(1000 * threshold)}", len(series) - MOST_SERIES
        plot = line_plot(key, series, f"Picks at threshold {raw(threshold)}", ("beta", "consistency"), from_zero=False)
        rest = f" {count(more, 'other path')} in validate.json." if more > 0 else ""
        plots.append(
            Figure(plot, f"Threshold {raw(threshold)}: the best judge's consistency in use, and each pick's.{rest}")
        )
        prevalence[f"threshold {raw(threshold)}"] = [(cell.beta, cell.prevalence) for cell in cells]
    plot = line_plot("prevalence", prevalence, "Prevalence by beta", ("beta", "prevalence"))
    caption = "Share of items that people decide to be positive. Near 0 and 1 a decision tells judges apart little."
    return [*plots, Figure(plot, caption)]


def holds(sweep: Sequence[SweepCell]) -> list[str]:
    """The best judge in use by threshold and range of beta; nothing of a single one of each."""
    lines = []
    for threshold, cells in panels(sweep).items() if len(sweep) > 1 else ():
        ranges = [(best, [raw(cell.beta) for cell in own]) for best, own in groupby(cells, lambda cell: cell.best)]
        said = [
            f"{best or 'all judges alike'} for beta {' to '.join(dict.fromkeys((own[0], own[-1])))}"
            for best, own in ranges
        ]
        lines.append(single_line(f"Best in use at threshold {raw(threshold)}: {', '.join(said)}."))
    return lines


def panels(sweep: Sequence[SweepCell]) -> dict[float, list[SweepCell]]:
    """The cells of a sweep by threshold, in the order of beta."""
    return {
        threshold: sorted((cell for cell in sweep if cell.threshold == threshold), key=lambda cell: cell.beta)
        for threshold in dict.fromkeys(cell.threshold for cell in sweep)
    }


def ranked(result: MeasureResult) -> list[JudgeFigure]:
    """The judges of a measure, the best first; those without a value come last."""

    def loss(one: JudgeFigure) -> float:
        value = abs(one.value) if result.name == DOWNSTREAM[1] else one.value
        return math.inf if math.isnan(value) else -value if result.higher_is_better else value

    return sorted(result.figures, key=loss)


def shortened(names: Sequence[str]) -> str:
    """The first two names, and the number of the others."""
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def plain_name(name: str) -> str:
    """The name of a measure in a sentence."""
    return name.replace("_", " ")
