"""One text in, one number with its reason out for each of several criteria."""

from __future__ import annotations

from typing import Any

import dspy
import pydantic

from metricsmith.signatures.base import ReviewedWork

__all__ = ["JudgePanel", "PanelItem"]


class PanelItem(pydantic.BaseModel):
    """One criterion of a model's answer.

    Every field takes any value, because DSPy turns down the whole list for one malformed item;
    `metricsmith.programs.judges.panel_answers` decides what an item is worth.
    """

    criterion: str = ""
    reason: str = ""
    score: int | float | str | None = None

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: pydantic.GetJsonSchemaHandler) -> dict[str, Any]:
        """The form that is wanted, and that the model is shown; many others are borne."""
        return {
            "type": "object",
            "properties": {
                "criterion": {"type": "string"},
                "reason": {"type": "string"},
                "score": {"type": "integer", "minimum": 1, "maximum": 5},
            },
            "required": ["criterion", "reason", "score"],
        }

    @pydantic.model_validator(mode="before")
    @classmethod
    def _lenient(cls, value: Any) -> Any:
        """Keep the usable parts of any value."""
        if not isinstance(value, dict):
            return value if isinstance(value, cls) else {}
        score = value.get("score")
        if type(score) is int and score.bit_length() > 64:  # Python cannot even print one of 5,000 digits
            score = "a number of many digits"
        elif score is not None and type(score) not in (int, float):
            score = str(score)
        texts = {name: value.get(name) for name in ("criterion", "reason")}
        return {name: "" if text is None else str(text) for name, text in texts.items()} | {"score": score}


class JudgePanel(ReviewedWork):
    """Rate one piece of work on several criteria, as a careful reviewer would, each with a whole number from 1 to 5.

    Take the criteria one after the other and look each time at nothing but that one: a text may fail one of
    them and still earn a 5 on the next. Point at what in the output decides the matter before you give the
    number. Where a criterion describes its levels, choose the description that fits best as a whole, and between
    two levels the lower one. Where it does not, 1 means the criterion is not met at all, 3 means it is met in
    part, 5 means that you see nothing to improve. Leave no criterion out and name none twice.
    """

    criteria: str = dspy.InputField(desc="the qualities to rate, each under its name, with what it means")
    ratings: list[PanelItem] = dspy.OutputField(
        desc="one item for each criterion, in the order given: its name exactly as it stands there, what in the "
        "output speaks for and against it in one or two sentences, then a whole number from 1 to 5"
    )
