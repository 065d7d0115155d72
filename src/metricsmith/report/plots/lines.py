"""Several curves in one frame: a number by another one, each series with its own colour and line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from metricsmith.formats import fit_columns, raw, statistic
from metricsmith.report.blocks import Markup, element
from metricsmith.report.plots.svg import LinearAxis, LogAxis, connected, frame, picture, svg_text, ticks

__all__ = ["MOST_SERIES", "line_plot"]

LEFT, RIGHT, TOP, BOTTOM, LINE = 50.0, 350.0, 10.0, 190.0, 18.0
KINDS = ("", "down", "other", "fourth", "fifth")
MOST_SERIES = len(KINDS)


def line_plot(
    key: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    title: str,
    names: tuple[str, str],
    *,
    from_zero: bool = True,
    trials: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    logarithmic: bool = False,
) -> Markup:
    """Draw each series as a line through its points; empty if no point is a number.

    Parameters
    ----------
    key : str
        Unique on the page.
    series : mapping of str to sequence of (float, float)
        Places across, and values in [-1, 1]; in any order. The first `MOST_SERIES` are drawn.
    title : str
        What the plot shows, for those who do not see it.
    names : tuple of str
        Of the axis below and of the one on the left.
    from_zero : bool
        False begins the axis on the left near the least value.
    trials : mapping of str to sequence of (float, float), optional
        Points that a series is the mean of, drawn as faint dots.
    logarithmic : bool
        True lays the places, all above 0, on a logarithmic scale with a number at each.
    """
    known, faint = (
        {name: sorted(p for p in points if all(map(math.isfinite, p))) for name, points in given.items()}
        for given in (series, trials or {})
    )
    drawn = dict([(name, points) for name, points in known.items() if points][:MOST_SERIES])
    if not drawn:
        return Markup("")
    shown = [*drawn.values(), *(faint.get(name, []) for name in drawn)]
    places, values = zip(*(point for points in shown for point in points), strict=True)
    if logarithmic:
        across: LinearAxis = LogAxis(min(places) / 1.2, max(places) * 1.2, LEFT, RIGHT)
    else:
        margin = 0.04 * (max(places) - min(places)) or 1.0
        across = LinearAxis(min(places) - margin, max(places) + margin, LEFT, RIGHT)
    least = min([*values] + [0.0] * from_zero)
    up = LinearAxis(max(-1.0, least - 0.03), min(1.0, max(0.2, *values) + 0.05), BOTTOM, TOP)
    below = sorted(set(places))
    if (not logarithmic and len(below) > 6) or not all(float(place).is_integer() for place in below):
        below = ticks(across.low, across.high)
    legend = [
        element(
            "g",
            connected([(x, BOTTOM + 54 + LINE * row) for x in (LEFT, LEFT + 24)], 3.5, kind),
            svg_text(LEFT + 34, BOTTOM + 58 + LINE * row, fit_columns(name, 44)),
        )
        for row, (name, kind) in enumerate(zip(drawn, KINDS, strict=False))
    ]
    description = "; ".join(
        f"{name}: {', '.join(f'{statistic(value, 2)} at {raw(place)}' for place, value in points)}"
        for name, points in drawn.items()
    )
    return picture(
        key, BOTTOM + 52 + LINE * len(drawn), title, description,
        frame(across, up, (below, ticks(up.low, up.high, 4)), names, leading_zeros=(True, False)),
        *(
            element("circle", cx=across(place), cy=up(value), r=2.5, class_=f"dot {kind or 'main'}", opacity=0.35)
            for name, kind in zip(drawn, KINDS, strict=False)
            for place, value in faint.get(name, [])
        ),
        *(
            connected([(across(place), up(value)) for place, value in points], 4.0, kind)
            for points, kind in reversed(list(zip(drawn.values(), KINDS, strict=False)))
        ),
        *legend,
    )  # fmt: skip
