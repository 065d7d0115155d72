"""A judge for models that were trained to grade on the form of Prometheus 2, and know no other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import dspy

from metricsmith.errors import JudgementFailed, OptionError
from metricsmith.metric import EMPTY, MARKER, RowText
from metricsmith.model_calls.adapters import in_form
from metricsmith.model_calls.calls import model_call
from metricsmith.model_calls.trained_form import RESULT, TrainedForm
from metricsmith.programs import schema
from metricsmith.programs.judges.base import Judge, Predictor, slug
from metricsmith.programs.judges.criterion import RubricJudge
from metricsmith.programs.judges.published_form import TEMPLATE, read_template
from metricsmith.programs.kinds import asker_state
from metricsmith.records import MetricCard, Status
from metricsmith.signatures.prometheus import FORMS, ChooseByForm, GradeByForm
from metricsmith.threads import in_threads

__all__ = ["PrometheusJudge"]

REFERENCE = (True, False, "auto")
HEADING = re.compile(r"(^|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])([\s\u200b\ufeff]*)###")
RESULTS = re.compile(re.escape(RESULT), re.IGNORECASE)
UNREFERENCED = "the row has no reference, which reference=True shows; reference='auto' does without where there is none"


class PrometheusJudge(Judge):
    """Grades by five levels on the form of Prometheus 2 (Kim et al., 2024; the paper's "Rubric (Prometheus)").

    For models that were trained on that form, such as Prometheus 2 and M-Prometheus, behind any OpenAI-compatible
    server: the model that is in force, or the judge's own (``judge.set_lm``). The request is the form whatever adapter
    DSPy has in force, and the answer must be ``(feedback) [RESULT] (1 to 5)``: anything else is ``unparsable``, after
    one repetition. Any other model can be asked too.

    Headings, their order and the rubric's block are those that the weights know. The rules under the first heading and
    the system sentence say the same in our words; with `template` they are the published ones, which alone are what
    the weights have seen.

    Parameters
    ----------
    criterion, meaning, levels, task
        As for `RubricJudge`. Task, input and context together are the form's instruction.
    name : str, optional
        Column name; by default made from the criterion, with ``_prometheus``.
    reference : True, False or "auto"
        Whether the form has the block of a reference answer, which holds the row's first reference. True: rows without
        one are skipped. "auto": where a row has one.
    template : path, optional
        A Python file with the published texts, such as ``prompts.py`` of prometheus-eval: only constants are read, and
        nothing is run. The judge keeps the texts and their hash, not the path. Its instruction cannot be tuned.

    Raises
    ------
    OptionError
        If there are not exactly five non-empty levels, `reference` is none of the above, or the template lacks a text
        that is needed or has other gaps.

    Notes
    -----
    The form has no marks around texts. A line of a row's text that begins with ``###`` is shown with ``# ##``, and a
    ``[RESULT]`` in it as ``[ RESULT]``, so that it cannot pose as another block or as an answer; beyond that an output
    can talk to the model, which is told of no borders.

    Examples
    --------
    >>> judge = PrometheusJudge(criterion="Plain words", meaning="Every word is short.", task="Rewrite notices.",
    ...                         levels=["all long", "mostly long", "mixed", "mostly short", "all short"])
    >>> judge.name
    'plain_words_prometheus'
    """

    kind = "prometheus_judge"
    signature = GradeByForm
    saves: ClassVar[schema.Checks] = {**RubricJudge.saves, "reference": schema.one_of(*REFERENCE)}
    may_save: ClassVar[schema.Checks] = {"template": TEMPLATE}
    judged = ("instruction", "response")
    versions = (1,)  # of `FORMS`
    shows_examples = False

    def __init__(
        self,
        *,
        criterion: str,
        meaning: str,
        levels: Sequence[str],
        task: str,
        name: str = "",
        reference: bool | Literal["auto"] = "auto",
        template: str | PathLike[str] | None = None,
    ) -> None:
        texts = isinstance(levels, list | tuple) and [one for one in levels if isinstance(one, str) and one.strip()]
        if not texts or not len(texts) == len(levels) == 5:
            raise OptionError(f"this form has five described levels, 1 to 5, worst first; got levels={levels!r:.200}")
        if not (isinstance(reference, bool) or reference == "auto"):
            raise OptionError(f"reference={reference!r} is not known; allowed are True, False and 'auto'")
        own = {} if template is None else {"template": read_template(template, _needed(reference))}
        super().__init__(
            name=name or f"{slug(criterion)}_prometheus", criterion=criterion, meaning=meaning, levels=list(levels),
            task=task, reference=reference, **own,
        )  # fmt: skip
        self.judge.form = TrainedForm()

    @classmethod
    def from_rubric(
        cls,
        judge: RubricJudge,
        *,
        reference: bool | Literal["auto"] = "auto",
        template: str | PathLike[str] | None = None,
        name: str = "",
    ) -> Self:
        """The judge with the criterion, the levels and the task of a `RubricJudge`.

        Raises
        ------
        OptionError
            If `judge` is another kind of judge, which has no five described levels.
        """
        if not isinstance(judge, RubricJudge):
            raise OptionError(
                f"{judge!r:.60} has no five described levels, which this form needs: give a RubricJudge, or the levels "
                "themselves to PrometheusJudge(levels=[...])"
            )
        known = {key: judge.settings.values[key] for key in ("criterion", "meaning", "levels", "task")}
        return cls(**known, name=name, reference=reference, template=template)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Build an object with these settings; a template is there as its texts."""
        made = cls(**{key: value for key, value in settings.items() if key != "template"})
        made.settings.values.update(settings)
        return made

    @classmethod
    def saved(cls) -> schema.Check:
        """The check of `to_state`'s result: without examples, and of a template with all texts that are needed."""
        known = asker_state(cls.signature, cls.may_save, **cls.saves)

        def check(value: Any, path: str) -> None:
            known(value, path)
            state = value["state"]
            if state["judge"]["demos"]:
                schema.refuse(schema.at(path, "state", "judge", "demos"), "not allowed; this form has no examples")
            if lacking := set(_needed(state["settings"]["reference"])) - _texts(state["settings"]).keys():
                schema.refuse(schema.at(path, "state", "settings", "template"), f"not allowed without {min(lacking)}")

        return check

    def question(self) -> Mapping[str, str]:
        """The rubric's block: the criterion, then one line for each level."""
        values = self.settings.values
        lines = [f"Score {number}: {level}" for number, level in enumerate(values["levels"], 1)]
        return {"rubric": _apart("\n".join([_headline(values), *lines]))}

    def texts(self, text: RowText) -> Mapping[str, str]:
        """The system sentence, the form with or without a reference's block, and what fills its gaps."""
        return {**self._shown(text, "ABSOLUTE"), "response": _apart(text.output) or EMPTY[0]}

    def _shown(self, text: RowText, mode: Literal["ABSOLUTE", "RELATIVE"]) -> dict[str, str]:
        values = self.settings.values
        reference = next(filter(str.strip, text.references), "") if values["reference"] else ""
        forms, name = _texts(values), _name(mode, bool(reference))
        if name not in forms:
            raise OptionError(f"{self.name}'s template has no text {name}, which this needs: make it with one")
        instruction = "\n\n".join(filter(str.strip, (values["task"], text.input, text.context)))
        return {
            "system": forms.get(f"{mode[:3]}_SYSTEM_PROMPT", ""),
            "form": forms[name],
            "instruction": _apart(instruction),
            "reference_answer": _apart(reference),
        }

    def lacking(self, text: RowText) -> str:
        """The reason why a row cannot be judged: no reference where one is asked for."""
        lacks = self.settings.values["reference"] is True and not any(map(str.strip, text.references))
        return UNREFERENCED if lacks else ""

    def _arguments(self, text: RowText, system: str = "", rater: str = "") -> dict[str, Any]:
        if self.fixed_instruction and self.judge.signature.instructions != self.signature.instructions:
            raise OptionError(self.fixed_instruction)
        return super()._arguments(text, system, rater)

    @property
    def fixed_instruction(self) -> str:
        """The reason why the instruction must stay as it is; empty without a template."""
        if "template" not in self.settings.values:
            return ""
        return (
            f"{self.name} is asked in the words of its template, in which an instruction of another's has no place: "
            "tune a judge without template="
        )

    def example(self, row: dspy.Example, rating: float, reason: str = "") -> Mapping[str, Any]:
        """Raise `OptionError`: the form has no place for rated examples."""
        raise OptionError(f"{self.name} cannot show examples: the form has none; take an ExampleJudge or a RubricJudge")

    def compare(
        self, output_a: str, output_b: str, *, input: str = "", references: Sequence[str] = (), context: str = ""
    ) -> dspy.Prediction:
        """Compare two outputs on the criterion, asked in both orders (the form's relative mode).

        Parameters
        ----------
        output_a, output_b : str
            Two outputs for the same input.
        input, references, context
            As in a row.

        Returns
        -------
        dspy.Prediction
            ``winner`` is ``A``, ``B``, or ``tie`` where the orders differ; ``feedback`` are the reasons given in each
            order, and ``usage`` is the cost of both requests.

        Raises
        ------
        JudgementFailed
            If the answer in either order cannot be used; with the cost of both.
        OptionError
            If the template has no text for this mode.
        """
        references = [references] if isinstance(references, str) else list(references)
        text = RowText("", input, tuple(references), context)
        if lacking := self.lacking(text):
            raise JudgementFailed(lacking, Status.SKIPPED)
        asked = {**self._shown(text, "RELATIVE"), "rubric": _apart(_headline(self.settings.values))}
        chooser = Predictor(ChooseByForm)
        chooser.lm = self.judge.lm
        shown = [_apart(output) or EMPTY[0] for output in (output_a, output_b)]
        orders = [dict(zip(("response_A", "response_B"), pair, strict=True)) for pair in (shown, shown[::-1])]
        tasks = [partial(model_call, chooser, **{**asked, **order}) for order in orders]  # type: ignore[arg-type]
        with in_form(self.judge.form):
            calls = in_threads(tasks, 2, "metricsmith comparing")
        usage = calls[0].usage + calls[1].usage
        for call in calls:
            if call.prediction is None:
                raise JudgementFailed(call.error, call.status, usage)
        first, second = (call.prediction for call in calls)
        agreed = first.choice != second.choice  # the letters change places
        feedback = f"In this order: {first.reasoning}\nWith A and B exchanged: {second.reasoning}"
        return dspy.Prediction(winner=first.choice if agreed else "tie", feedback=feedback, usage=usage)

    @property
    def family_card(self) -> MetricCard:
        """The generated card."""
        values = self.settings.values
        template = values.get("template")
        texts = f"the published texts (hash {template['hash']})" if template else "rules in our words"
        needs = ("references", "model") if values["reference"] is True else ("model",)
        return self.card_with(
            name=f"{values['criterion']} (Prometheus)",
            summary=f"A model trained to grade by rubrics places the output on one of five levels. {values['meaning']}",
            formula="; ".join(f"{number} = {level}" for number, level in enumerate(values["levels"], 1)),
            needs=needs,
            multi_reference="The first reference is shown: the form has one." if values["reference"] else "",
            best_for=(f"Checking {values['criterion'].lower()} with an open model that was trained to grade",),
            not_for=("Judging overall quality: it looks at nothing but its rubric",),
            limits=(
                "Criterion and levels were written by a model from a few rated examples",
                f"Asked on the form of Prometheus 2 with {texts}; another model may use the levels differently",
                "The form sets texts off by headings alone: an output can address the grader",
            ),
            failure_cases=("Texts beyond the model's context", "Answers in another form than the trained one"),
            papers=("Prometheus 2 (Kim et al., 2024)", "AutoMetrics, appendix (rubric, Prometheus)"),
        )


def _name(mode: str, reference: bool) -> str:
    return f"{mode}_PROMPT" if reference else f"{mode}_PROMPT_WO_REF"


def _needed(reference: bool | str) -> list[str]:
    """The names of the forms that may be asked in."""
    return [_name("ABSOLUTE", one) for one in ([True, False] if reference == "auto" else [bool(reference)])]


def _texts(settings: Mapping[str, Any]) -> Mapping[str, str]:
    """The texts of a judge's forms: of its template, or ours."""
    own: Mapping[str, str] = settings["template"]["texts"] if "template" in settings else FORMS
    return own


def _headline(values: Mapping[str, Any]) -> str:
    return f"[{values['criterion']}: {values['meaning']}]"


def _apart(text: str) -> str:
    """A text that can pose neither as another block of the form, nor as an answer, nor have a picture fetched."""
    apart = HEADING.sub(r"\1\2# ##", text.replace(MARKER, f"< {MARKER[1:]}"))
    return RESULTS.sub(lambda found: f"[ {found[0][1:]}", apart)
