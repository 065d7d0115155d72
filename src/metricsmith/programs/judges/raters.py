"""What judges share that stand in for the raters: they answer with the raters' number, on the raters' scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Self

from metricsmith.programs.judges.base import Judge
from metricsmith.records import Scale

__all__ = ["RatersJudge"]


class RatersJudge(Judge):
    """A judge on the raters' own scale.

    Parameters
    ----------
    name : str
        Column name.
    measure : str
        What the rating measures, in a few words; a column name will do.
    task : str
        What the outputs are made for.
    scale : Scale or mapping
        The raters' scale; answers outside it are failures.
    **settings
        What the subclass has besides.

    Raises
    ------
    OptionError
        If `scale` is none.
    """

    def __init__(
        self, *, name: str, measure: str, task: str, scale: Scale | Mapping[str, Any], **settings: Any
    ) -> None:
        plain = asdict(scale) if isinstance(scale, Scale) else dict(scale)
        Scale(**plain)  # refuses what is none
        meaning = f"{measure} as its raters see it"
        super().__init__(name=name, measure=measure, meaning=meaning, task=task, scale=plain, **settings)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Build a judge from `to_state`'s result."""
        settings = {name: value for name, value in state["state"]["settings"].items() if name != "meaning"}
        judge = cls(**settings)
        judge.load_state(dict(state["state"]))
        judge.made_with = state.get("made_with", {})
        return judge

    @property
    def scale(self) -> Scale:
        """The raters' scale."""
        return Scale(**self.settings.scale)

    def question(self) -> Mapping[str, str]:
        """Task and scale."""
        scale = self.scale
        best = scale.high if scale.higher_is_better else scale.low
        steps = "" if scale.step is None else f" in steps of {scale.step:g}"
        return {
            "task": str(self.settings.task),
            "scale": f"{self.settings.measure}: a number from {scale.low:g} to {scale.high:g}{steps}; {best:g} is best",
        }
