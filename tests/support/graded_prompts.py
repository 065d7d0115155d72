"""A template for `PrometheusJudge`: texts of our own under the names that the published ones have."""

ABS_SYSTEM_PROMPT = "Grade with care."
ABSOLUTE_PROMPT = """###Task Description:
Grade it, the reference answer being a 5.

###The instruction to evaluate:
{instruction}

###Response to evaluate:
{response}

###Reference Answer (Score 5):
{reference_answer}

###Score Rubrics:
{rubric}

###Feedback: """
ABSOLUTE_PROMPT_WO_REF = """###Task Description:
Grade it.

###The instruction to evaluate:
{instruction}

###Response to evaluate:
{response}

###Score Rubrics:
{rubric}

###Feedback: """
RELATIVE_PROMPT_WO_REF = """###Task Description:
Choose.

###Instruction:
{instruction}

###Response A:
{response_A}

###Response B:
{response_B}

###Score Rubric:
{rubric}

###Feedback: """

raise RuntimeError("nothing in a template is run")
