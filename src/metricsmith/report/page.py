"""The HTML report: one self-contained page.

Style sheet and plots are inside the file; its content security policy lets nothing else in, so that the
page opens offline and text from the data can neither run nor fetch anything.
"""

from __future__ import annotations

from dataclasses import replace

from metricsmith.records import Agreement
from metricsmith.report import digest, formats, sentences
from metricsmith.report.assets import show_blocks
from metricsmith.report.blocks import Paragraph
from metricsmith.report.markup import Markup
from metricsmith.report.old_pages import render_page
from metricsmith.report.plots.forest import Estimate, forest
from metricsmith.report.plots.learning import learning_curve
from metricsmith.report.plots.reliability import reliability
from metricsmith.report.plots.scatter import MOST_POINTS, Point, beyond, scatter, thin
from metricsmith.report.plots.weights import MOST_BARS, weights
from metricsmith.report.probe.write import ProbeDocument, probe_verdict
from metricsmith.report.raters import run_ceiling
from metricsmith.report.record import RunRecord
from metricsmith.report.systems import systems_lines, systems_plot

__all__ = ["FULL_TEXT", "render_html"]

# Longer texts are cut, with a note of what is left out: the page must stay small enough for a phone.
FULL_TEXT = 6000
EXCERPT = 180


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
        outlook=digest.outlook(record.headline) if record.tested else [],
        cards=digest.cards(record),
        costs=digest.costs(record),
        undefined=sentences.undefined_reasons(_blocks(record)),
        ceiling=run_ceiling(record),
        few_groups=sentences.few_groups(digest.jackknifed(record)),
        systems=systems_lines(record.new_systems, record.headline),
        width=record.task.scale.width,
        weight_width=digest.weight_width(record),
        most_listed=MOST_BARS,
        full_text=FULL_TEXT,
        excerpt_length=EXCERPT,
        digest=digest,
        sentences=sentences,
        probe=_probe(record),
    )


def _probe(record: RunRecord) -> Markup | None:
    if record.probe is None:
        return None
    sentence = Paragraph(probe_verdict(record.probe).sentence, "strong")
    return show_blocks([ProbeDocument(record.probe).section(sentence)])


def _plots(record: RunRecord) -> dict[str, Markup]:
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
        "systems": systems_plot(record.new_systems, record.headline),
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
