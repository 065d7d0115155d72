"""Small histories whose examples can be told by hand."""

from __future__ import annotations

from metricsmith.datasets.history import HistoricalRating, History
from metricsmith.optimizers.specialist import Specialist
from metricsmith.programs.judges.direct_assessment import DirectAssessment
from metricsmith.programs.judges.mqm import MQMAnnotator
from metricsmith.programs.specialist.choosing import ExamplePolicy, Judged
from metricsmith.records import ErrorSpan, Scale

LANGUAGES = {"source_language": "English", "target_language": "German"}
SCALE = Scale(-25, 0)
# T says what A says, everywhere; C does so on s1 alone.
OUTPUTS = {
    "s1": {"A": "ein Haus", "T": "ein Haus", "B": "das Haus da", "C": "ein Haus"},
    "s2": {"A": "zwei Hunde", "T": "zwei Hunde", "B": "zwei Tiere", "C": "der Hund"},
    "s3": {"A": "drei Katzen", "T": "drei Katzen", "B": "drei Kater", "C": "die Katze"},
}
RATERS = {"s1": ("r1", "r2", "r3"), "s2": ("r1", "r2"), "s3": ("r1", "r2")}


def error(text, whole, severity="major", category="accuracy/mistranslation", **more):
    """An error that stands in a text."""
    start = whole.index(text)
    return ErrorSpan(severity, category, start, start + len(text), text, **more)


def past(source="s1", system="A", rater="r1", output="ein Haus", spans=(), rating=None, **places):
    """One rating with marked errors."""
    return HistoricalRating(source, system, output, rater, rating, spans, **places)


def marked(output, rater):
    """The first word, by r1 as a major error and by others as a minor one; r3 finds nothing."""
    severity = {"r1": "major", "r2": "minor"}.get(rater)
    return () if severity is None else (error(output.split()[0], output, severity),)


def history(outputs=OUTPUTS, raters=RATERS, **changes):
    """A rating of every output by each rater of its source, in the order source, system, rater."""
    ratings = [
        past(source, system, rater, output, marked(output, rater), -5.0 if rater == "r1" else -1.0, document="d")
        for source, systems in outputs.items()
        for system, output in systems.items()
        for rater in raters[source]
    ]
    return History(tuple(ratings), **{"name": "small", "scale": SCALE, **changes})


def row_of(system, source="s1", rater="r1"):
    """A row of the small history as it is judged."""
    return Judged(source, OUTPUTS[source][system], system, rater)


def annotator(**changes):
    """An annotator that can be specialised."""
    return MQMAnnotator(**{**LANGUAGES, "worked_example": False, "context": "none", **changes})


def assessment(**changes):
    """A direct assessment that can be specialised."""
    return DirectAssessment(**{**LANGUAGES, "context": "none", **changes})


SMALL = history()


def specialist(judge=None, of=SMALL, **policy):
    """A specialist, by default an annotator with the small history."""
    return Specialist(ExamplePolicy(**policy)).compile(judge or annotator(), of)
