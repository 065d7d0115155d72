"""The HTML report: one self-contained page.

Style sheet and plots are inside the file; its content security policy lets nothing else in, so that the
page opens offline and text from the data can neither run nor fetch anything.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from metricsmith.errors import DataError
from metricsmith.records import Agreement
from metricsmith.report import digest, formats, sentences
from metricsmith.report.plots.forest import Estimate, forest
from metricsmith.report.plots.learning import learning_curve
from metricsmith.report.plots.reliability import reliability
from metricsmith.report.plots.scatter import MOST_POINTS, Point, beyond, scatter, thin
from metricsmith.report.plots.svg import Svg
from metricsmith.report.plots.weights import MOST_BARS, weights
from metricsmith.report.record import RunRecord

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["FULL_TEXT", "render_html", "render_page", "standalone"]

# Longer texts are cut, with a note of what is left out: the page must stay small enough for a phone.
FULL_TEXT = 6000
EXCERPT = 180
FILTERS = (
    "count", "excerpt", "interval", "one_line", "p_value", "percent", "points", "rating", "raw", "statistic",
)  # fmt: skip


def render_html(record: RunRecord) -> str:
    """The report as one HTML page.

    Parameters
    ----------
    record : RunRecord
        The finished run. Undefined numbers appear as an en dash, with the reason where it is known.

    Returns
    -------
    str
        A complete document that refers to nothing outside itself; every text is escaped.
    """
    return render_page(
        "report.html.j2",
        record=record,
        verdict=sentences.verdict(record),
        plots=_plots(record),
        thinned=max(0, len(digest.rated_rows(record)) - MOST_POINTS),
        bins=digest.reliability_bins(record),
        beyond=beyond(_points(record), record.task.scale),
        disagreements=digest.disagreements(record),
        outlook=digest.outlook(record.headline) if record.tested and record.evaluation != "cv" else [],
        cards=digest.cards(record),
        costs=digest.costs(record),
        undefined=sentences.undefined_reasons(_blocks(record)),
        width=record.task.scale.width,
        weight_width=digest.weight_width(record),
        most_listed=MOST_BARS,
        full_text=FULL_TEXT,
        excerpt_length=EXCERPT,
        digest=digest,
        sentences=sentences,
    )


def render_page(template: str, /, **values: object) -> str:
    """A template of this package as a page that refers to nothing outside itself; every text is escaped."""
    style = _asset("report.css")
    written: str = (
        _environment().get_template(template).render(style=Svg(style), style_hash=_content_hash(style), **values)
    )
    return written


def standalone(drawing: Svg) -> str:
    """A plot as an SVG file of its own, in the page's colours; write it to ``name.svg``.

    Raises
    ------
    DataError
        If there is nothing to draw.
    """
    if not drawing:
        raise DataError("the plot is empty: none of its numbers is defined")
    style = f"{_asset('report.css')}\n:root {{ background: var(--paper); }}"
    return drawing.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(
        ">", f"><style>{escape(style)}</style>", 1
    )


def _plots(record: RunRecord) -> dict[str, Svg]:
    seen = "unseen" if record.tested else "training"
    name = "Induced metric" if record.tested else "Induced metric (training rows)"
    own = Estimate(name, *_estimate(record.headline), main=True)
    alone = replace(own, name=f"Kendall tau-b on {seen} rows")
    baselines = [Estimate(name, *_estimate(block)) for name, block in record.baselines.items()]
    prospects = [
        Estimate(_groups(item), item.value, item.low, item.high, main=item.factor == 1)
        for item in digest.outlook(record.headline)
    ]
    return {
        "verdict": forest("verdict", [alone], "The verdict", to_one=True),
        "weights": weights("weights", record.components, digest.weight_width(record)),
        "forest": forest("forest", [own, *baselines], "Agreement of the metric and of the baselines"),
        "scatter": scatter("scatter", thin(_points(record)), record.task.scale),
        "reliability": reliability("reliability", digest.reliability_bins(record), record.task.scale),
        "outlook": forest("outlook", prospects, "The interval with more labelled groups"),
        "learning": learning_curve("learning", record.learning),
    }


def _groups(item: digest.Outlook) -> str:
    remark = "now" if item.factor == 1 else f"{item.factor} times as many"
    return f"{formats.count(item.groups, 'group')} ({remark})"


def _estimate(block: Agreement) -> tuple[float, float, float]:
    return block.kendall_tau_b, block.ci_low, block.ci_high


def _blocks(record: RunRecord) -> list[tuple[str, Agreement]]:
    own = [("Induced metric, test", record.test)] if record.tested else []
    return [*own, ("Induced metric, training rows", record.train), *record.baselines.items()]


def _points(record: RunRecord) -> list[Point]:
    return [
        Point(row.id, rating, prediction, record.held_out(row)) for row, rating, prediction in digest.rated_rows(record)
    ]


def _content_hash(text: str) -> str:
    """The base64 SHA-256 by which a content security policy admits exactly this text."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache(maxsize=1)
def _asset(name: str) -> str:
    return files("metricsmith.report").joinpath("templates", name).read_text("utf-8")


def _printable(value: object) -> object:
    """Clean whatever text a template prints; finished markup passes."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return formats.clean(value)
    return value


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("metricsmith.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update({name: getattr(formats, name) for name in FILTERS})
    return environment
