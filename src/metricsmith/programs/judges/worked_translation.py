"""The worked example of MQM judging: a translation from English into German with an error of each severity."""

from __future__ import annotations

from metricsmith.metric import RowText
from metricsmith.signatures.translation import ErrorsBySeverity, TranslationError

__all__ = ["WORKED", "WORKED_ERRORS"]

WORKED = RowText(
    input="Keep the valve closed while the tank is being filled. Check the valve again once the tank is full.",
    output=(
        "Halten Sie das Ventil offen, während der Tank gefüllt wird. Prüfen Sie das Ventil wieder , sobald das Ventil "
        "voll ist."
    ),
    context=(
        "Filling the tank\nKeep the valve closed while the tank is being filled. Check the valve again once the tank "
        "is full.\nNever leave the tank unattended."
    ),
)
WORKED_ERRORS = ErrorsBySeverity(
    critical=[
        TranslationError(
            span="offen", type="accuracy/mistranslation", description="Tells to keep the valve open instead of closed."
        )
    ],
    major=[
        TranslationError(
            span="das Ventil",
            occurrence=3,
            type="accuracy/mistranslation",
            description="It is the tank that becomes full, not the valve.",
        )
    ],
    minor=[TranslationError(span=" ,", type="fluency/punctuation", description="Space before the comma.")],
)
