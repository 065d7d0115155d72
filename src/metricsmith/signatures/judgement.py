"""One text in, one number with its reasons out."""

from __future__ import annotations

import dspy

from metricsmith.signatures.base import ReviewedWork

__all__ = ["JudgeByExamples", "JudgeByGuideline", "JudgeBySteps", "JudgeCriterion", "JudgeRubric"]


class JudgeCriterion(ReviewedWork):
    """Rate one piece of work on one criterion, as a careful reviewer would, with a whole number from 1 to 5.

    Look at nothing but the criterion: a text may be poor otherwise and still earn a 5 here. Point at what in
    the output decides the matter before you give the number. 1 means the criterion is not met at all, 3 means
    it is met in part, 5 means that you see nothing to improve.
    """

    criterion: str = dspy.InputField(desc="the one quality to rate, and what it means")
    reasoning: str = dspy.OutputField(desc="what in the output speaks for and against it, in two to four sentences")
    score: int = dspy.OutputField(desc="a whole number from 1 to 5, digits only")


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
