"""One text in; one number with its reasons out, or one for each of several criteria."""

from __future__ import annotations

from typing import Any

import dspy
import pydantic

from metricsmith.signatures.base import ReviewedWork

__all__ = [
    "JudgeByExamples", "JudgeByGuideline", "JudgeBySteps", "JudgeCriterion", "JudgeCriterionOnScale", "JudgePanel",
    "JudgeRubric", "PanelItem",
]  # fmt: skip


class JudgeCriterion(ReviewedWork):
    """Rate one piece of work on one criterion, as a careful reviewer would, with a whole number from 1 to 5.

    Look at nothing but the criterion: a text may be poor otherwise and still earn a 5 here. Point at what in
    the output decides the matter before you give the number. 1 means the criterion is not met at all, 3 means
    it is met in part, 5 means that you see nothing to improve.
    """

    criterion: str = dspy.InputField(desc="the one quality to rate, and what it means")
    reasoning: str = dspy.OutputField(desc="what in the output speaks for and against it, in two to four sentences")
    score: int = dspy.OutputField(desc="a whole number from 1 to 5, digits only")


class JudgeCriterionOnScale(ReviewedWork):
    """Rate one piece of work on one criterion, as a careful reviewer would, with a number on the given scale.

    Look at nothing but the criterion: a text may be poor otherwise and still earn the best number here. Point at
    what in the output decides the matter before you give the number. The worst number means the criterion is not met
    at all, the middle of the scale that it is met in part, the best number that you see nothing to improve.
    """

    criterion: str = dspy.InputField(desc="the one quality to rate, and what it means")
    scale: str = dspy.InputField(desc="which numbers there are, and which end is best")
    reasoning: str = dspy.OutputField(desc="what in the output speaks for and against it, in two to four sentences")
    score: float = dspy.OutputField(desc="a number on the scale, digits only")


class JudgeRubric(ReviewedWork):
    """Place one piece of work on a five-level rubric and give the level's number.

    Compare the output with the description of each level and choose the one that fits best as a whole; between
    two levels take the lower one. Name the passages that decide it before you give the number.
    """

    criterion: str = dspy.InputField(desc="the one quality that the rubric describes")
    rubric: str = dspy.InputField(desc="what each level from 1 (worst) to 5 (best) looks like")
    reasoning: str = dspy.OutputField(desc="which descriptions fit and which do not, in two to four sentences")
    score: int = dspy.OutputField(desc="a whole number from 1 to 5, digits only")


class JudgeByExamples(ReviewedWork):
    """Rate one piece of work with the number that its raters would give, on their scale.

    Earlier turns show works of the same kind with the ratings that people gave. Learn from them what these people
    value and which part of the scale they use; where they differ from your own taste, follow them. Compare the
    output with the rated ones that are most like it before you give the number.
    """

    scale: str = dspy.InputField(desc="the raters' scale")
    reasoning: str = dspy.OutputField(
        desc="which rated works it is most like and how it differs, in two to four sentences"
    )
    score: float = dspy.OutputField(desc="a number on the scale, digits only")


class JudgeBySteps(ReviewedWork):
    """Rate one piece of work on one criterion by going through the given steps, then give one number on the scale.

    Take the steps in their order and note what each brings to light in the output. Judge the criterion alone: a
    text may be poor otherwise and still be at the best end here. State the findings first; the number follows from
    them and stands alone.
    """

    criterion: str = dspy.InputField(desc="the one quality to rate, and what it means")
    steps: str = dspy.InputField(desc="how to go about it")
    scale: str = dspy.InputField(desc="which numbers there are, and which end is best")
    reasoning: str = dspy.OutputField(desc="what the steps brought to light, in two to five sentences")
    score: str = dspy.OutputField(desc="a whole number on the scale, digits only")


class JudgeByGuideline(ReviewedWork):
    """Rate one piece of work as the people did who were given the guideline, with a number on their scale.

    Apply the guideline as it is written. What it asks to look at counts, however the work may please or annoy you
    otherwise; what it leaves open, decide as a conscientious rater would who has to give a number all the same. Say
    which passages of the output decide the matter before you give the number.
    """

    guideline: str = dspy.InputField(desc="what the raters were told to do")
    scale: str = dspy.InputField(desc="the raters' scale")
    reasoning: str = dspy.OutputField(desc="what the guideline says about this output, in two to four sentences")
    score: float = dspy.OutputField(desc="a number on the scale, digits only")


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
