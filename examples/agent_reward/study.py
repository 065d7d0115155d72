"""The study: an agent before and after GEPA with each reward, beside its floors, and the metric beside one-liners."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import numpy as np

from agent_reward.agent import ServiceAgent, do_nothing, transfer_at_once
from agent_reward.episodes import Environment, Episode, Session
from agent_reward.loop import THREADS, Verified, examples, induced, optimised, played, rows
from metricsmith.errors import OptionError
from metricsmith.formats import count, interval, jsonable, p_value, statistic
from metricsmith.report.blocks import Block, Figure, Heading, Items, Page, Paragraph, Terms, TextTable
from metricsmith.report.gap import Gap, gap_verdict, plot_gaps
from metricsmith.report.render import aligned, render_page, replace_file
from metricsmith.reward import DSPyMetric
from metricsmith.stats.correlation import batch_kendall_tau_b
from metricsmith.stats.resampling import correlation_interval, group_mean_interval, holm, paired_permutation_test
from metricsmith.tuning import RewardMonitor

__all__ = ["BASE", "INDUCED", "ONE_LINERS", "VERIFIED", "Line", "Measure", "Study", "run_study", "write_study"]

BASE, VERIFIED, INDUCED = "base agent", "GEPA, verifiable reward", "GEPA, induced reward"
FLOORS: Mapping[str, Callable[[Session], Episode]] = {"do nothing": do_nothing, "transfer at once": transfer_at_once}
ONE_LINERS: Mapping[str, Callable[[Episode], float]] = {
    "characters of the transcript": lambda episode: sum(len(message["content"]) for message in episode.messages),
    "calls of tools": lambda episode: len(episode.calls),
    "different tools": lambda episode: len({call.tool for call in episode.calls}),
    "calls of transfer_to_human": lambda episode: sum(call.tool.startswith("transfer") for call in episode.calls),
}
RATED = ((1, 0.5), (2, 1.0))  # seed and temperature of the rollouts that the metric is induced from
GLOSSARY = (
    ("reward", "Share of the episodes that end with the right database and every fact told."),
    ("interval", "95\u00a0%, of the mean over tasks: the trials of a task stay together."),
    (
        "p",
        "Against the base agent: a permutation test that swaps whole tasks. Holm over the arms, controls as they are.",
    ),
    ("rollouts", "Episodes that made the agent, those included from which the metric is induced."),
    ("failed", "Rollouts without a reward, as when the model did not answer: GEPA books them as 0."),
    ("tau-b", "With the reward, over the base agent's test episodes; interval by leaving out one task at a time."),
)
CAPTION = (
    "Changes since the base agent on the test tasks, over the rollouts of GEPA. Reward: the induced one, which it "
    "optimises. Reference: the verifiable one, with its interval."
)


@dataclass(frozen=True)
class Line:
    """An agent on the test tasks: rewards by task and trial, interval by task, test against the base, origin."""

    name: str
    rewards: tuple[tuple[float, ...], ...]
    low: float
    high: float
    p: float
    holm: float = np.nan
    rollouts: int = 0
    failed: int = 0
    instruction: str = ""

    @property
    def mean(self) -> float:
        """Mean over tasks and trials."""
        return float(np.mean(self.rewards))


@dataclass(frozen=True)
class Measure:
    """A number of an episode beside its reward; NaN where it is constant, or one task alone decides it."""

    name: str
    kendall_tau_b: float
    low: float
    high: float


@dataclass(frozen=True)
class Study:
    """A finished study; `gaps` follow the induced reward and the verifiable one over the programs that GEPA found."""

    lines: tuple[Line, ...]
    measures: tuple[Measure, ...]
    gaps: tuple[Gap, ...]


def run_study(
    environment: Environment,
    lm: dspy.LM,
    *,
    trials: int = 5,
    budget: int = 135,
    seed: int = 0,
    told: str = "",
    controls: Mapping[str, tuple[Environment, DSPyMetric]] | None = None,
) -> Study:
    """Run floors, base agent, both arms and the controls on the test tasks.

    Parameters
    ----------
    environment : Environment
    lm : dspy.LM
        Agent, reflector and judge. With a cache, a study that was cut off goes on where it stopped.
    trials : int
        Conversations about each test task, in seeds of their own.
    budget : int
        Rollouts of an arm as for `optimised`; those that the metric is induced from are taken off it.
    seed : int
        Of induction and GEPA.
    told : str
        Rules that the agent is told from the start.
    controls : mapping of str to (Environment, DSPyMetric), optional
        Worlds and rewards that are to teach nothing, by name. Their agents are tested in `environment`.

    Raises
    ------
    OptionError
        If there is no trial, or so small a budget that no instruction could be tried.
    Exception
        Where the model fails in an episode that is rated or tested.
    """
    train = len(environment.tasks["train"])
    if trials < 1 or budget <= (len(RATED) + 1) * train:
        raise OptionError(
            f"trials={trials}, budget={budget}: at least one trial is needed, and more than {(len(RATED) + 1) * train} "
            f"rollouts, {len(RATED) * train} of which are rated for the induced metric"
        )
    test, seeds = environment.tasks["test"], range(trials)
    episodes: dict[str, list[Episode]] = {}
    with dspy.context(lm=lm):
        for name, floor in FLOORS.items():
            episodes[name] = [floor(environment.start(task, trial)) for task in test for trial in seeds]
        agent = ServiceAgent(environment, told=told)
        base = episodes[BASE] = played(agent, test, seeds)
        made = {BASE: {"instruction": agent.react.react.signature.instructions}}
        rated = []
        for sample, temperature in RATED:
            with dspy.context(lm=lm.copy(temperature=temperature)):
                rated += played(agent, environment.tasks["train"], [sample])
        metric = induced(rows(rated), environment.policy, lm=lm, seed=seed)
        reward = metric.as_reward(output="transcript", lm=lm)
        arms = {VERIFIED: (environment, Verified()), INDUCED: (environment, reward), **(controls or {})}
        for name, (world, arm) in arms.items():
            failed: list[Exception] = []
            used = len(rated) if name == INDUCED else 0
            program = ServiceAgent(world, told=told, on_failure=failed.append)
            tuned = optimised(program, arm, world, lm=lm, budget=budget - used, seed=seed)
            agent.react.react.signature = tuned.react.react.signature  # the control's words, in the world as it is
            episodes[name] = played(agent, test, seeds)
            made[name] = {
                "rollouts": used + tuned.detailed_results.total_metric_calls,
                "failed": len(failed) + (len(reward.failures) if name == INDUCED else 0),
                "instruction": tuned.react.react.signature.instructions,
            }
            if name == INDUCED:
                monitor = RewardMonitor(reward, examples(world, "test"), reference=Verified(), num_threads=THREADS)
                monitor.follow(tuned)
        scored = [judgement.score for judgement in metric.judge_batch(rows(base))]
    numbers = {"induced metric": [np.nan if score is None else score for score in scored]}
    numbers |= {name: [float(of(episode)) for episode in base] for name, of in ONE_LINERS.items()}
    lines = [_line(name, played, base, **made.get(name, {})) for name, played in episodes.items()]
    both = [line for line in lines if line.name in (VERIFIED, INDUCED)]
    adjusted = dict(zip((line.name for line in both), holm([line.p for line in both]), strict=True))
    return Study(
        tuple(replace(line, holm=float(adjusted.get(line.name, np.nan))) for line in lines),
        tuple(_measure(name, values, base) for name, values in numbers.items()),
        tuple(monitor.gaps()),
    )


def _line(name: str, episodes: Sequence[Episode], base: Sequence[Episode], **made: Any) -> Line:
    tasks = [episode.task for episode in base]
    rewards, others = (np.array([episode.reward for episode in side]) for side in (episodes, base))
    ends = group_mean_interval(rewards, tasks, bounds=(0.0, 1.0))
    mean = partial(np.nanmean, axis=-1)
    test = paired_permutation_test(mean, rewards, others, groups=tasks, batched=True, standardize=False)
    by_task = rewards.reshape(len(set(tasks)), -1).tolist()
    return Line(
        name, tuple(map(tuple, by_task)), ends.low, ends.high, test.p_value if "rollouts" in made else np.nan, **made
    )


def _measure(name: str, numbers: Sequence[float], episodes: Sequence[Episode]) -> Measure:
    rewards, tasks = [episode.reward for episode in episodes], [episode.task for episode in episodes]
    ends = correlation_interval(batch_kendall_tau_b, numbers, rewards, tasks, batched=True)
    return Measure(name, float(batch_kendall_tau_b(numbers, rewards)), ends.low, ends.high)


def write_study(study: Study, folder: Path) -> str:
    """Write agent.html and agent.json into a folder; returns the tables as lines for the terminal."""
    agents = [
        (
            line.name, statistic(line.mean), interval(line.low, line.high), p_value(line.p), p_value(line.holm),
            count(line.rollouts) if line.rollouts else "", count(line.failed) if line.rollouts else "",
        )
        for line in study.lines
    ]  # fmt: skip
    measures = [(one.name, statistic(one.kendall_tau_b), interval(one.low, one.high)) for one in study.measures]
    steps = [(count(gap.at), statistic(gap.reward), statistic(gap.reference)) for gap in study.gaps]
    tables = (
        TextTable(("agent", "reward", "interval", "p", "Holm", "rollouts", "failed"), agents, label="Agents"),
        TextTable(("number of an episode", "tau-b", "interval"), measures, label="Numbers of an episode"),
        TextTable(("rollouts", "induced reward", "verifiable reward"), steps, label="Steps"),
    )
    tasks, trials = np.shape(study.lines[0].rewards)
    title, figure = "An agent, its rewards and its floors", Figure(plot_gaps(study.gaps), CAPTION)
    size = Paragraph(f"{count(tasks, 'test task')}, {count(trials, 'trial')} of each.")
    known = next(line.instruction for line in study.lines if line.name == BASE).splitlines()
    written: list[Block] = []
    for line in study.lines:
        if line.rollouts:
            new = [text for text in line.instruction.splitlines() if text not in known]
            written += [Heading(f"New in the instruction: {line.name}"), Items(new or ["nothing"])]
    blocks = [
        tables[0], Heading("The metric beside one-liners"), tables[1], Heading("Induced reward and truth"), figure,
        Paragraph(gap_verdict(study.gaps)), tables[2], *written, Terms.glossary(GLOSSARY),
    ]  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / "agent.html", render_page(Page(title, [Heading(title, level=1), size], blocks)))
    replace_file(folder / "agent.json", json.dumps(jsonable(asdict(study)), indent=2, ensure_ascii=False) + "\n")
    return "\n".join(line for table in tables for line in (*aligned(table), ""))
