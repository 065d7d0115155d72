"""The study: an agent before and after GEPA with each reward, beside its floors, and the metric beside one-liners."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import dspy
import numpy as np
from agent_reward.agent import ServiceAgent, do_nothing, transfer_at_once
from agent_reward.episodes import Environment, Episode, Session
from agent_reward.loop import THREADS, Verified, examples, induced, optimised, played, rows

from metricsmith.formats import MISSING, count, interval, jsonable, p_value, statistic
from metricsmith.report.blocks import Block, Code, Figure, Heading, Page, Paragraph, Terms, TextTable
from metricsmith.report.gap import Gap, gap_verdict, plot_gaps
from metricsmith.report.render import aligned, markdown_lines, render_page, replace_file
from metricsmith.reward import DSPyMetric
from metricsmith.stats.correlation import batch_kendall_tau_b
from metricsmith.stats.resampling import correlation_interval, group_mean_interval, holm, paired_permutation_test
from metricsmith.tuning import RewardMonitor

__all__ = ["ONE_LINERS", "Line", "Measure", "Study", "run_study", "write_study"]

FLOORS: Mapping[str, Callable[[Session], Episode]] = {"do nothing": do_nothing, "transfer at once": transfer_at_once}
ONE_LINERS: Mapping[str, Callable[[Episode], float]] = {
    "characters of the transcript": lambda episode: sum(len(message["content"]) for message in episode.messages),
    "calls of tools": lambda episode: len(episode.calls),
    "calls of transfer_to_human": lambda episode: sum(call.tool.startswith("transfer") for call in episode.calls),
    "different tools": lambda episode: len({call.tool for call in episode.calls}),
}
BASE, VERIFIED, INDUCED = "base agent", "GEPA, verifiable reward", "GEPA, induced reward"
RATED = ((1, 0.5), (2, 1.0))  # seed and temperature of the rollouts that the metric is induced from
GLOSSARY = (
    ("reward", "Share of the test tasks' episodes that end with the right database and every fact told."),
    ("interval", "95\u00a0%, of the mean over tasks, all trials of a task together."),
    ("p", "Paired permutation test against the base agent, whole tasks swapped; Holm over all tests of the table."),
    ("rollouts", "Episodes that were played to make the agent, those that the metric is induced from included."),
    ("tau-b", "With the reward, over the base agent's test episodes; interval by leaving one task out."),
)


@dataclass(frozen=True)
class Line:
    """An agent on the test tasks: mean reward and its interval by task, test against the base agent, and its cost."""

    name: str
    rewards: tuple[tuple[float, ...], ...]  # by task, then by trial
    low: float
    high: float
    p: float
    holm: float
    rollouts: int
    instruction: str

    @property
    def mean(self) -> float:
        """Mean over tasks and trials."""
        return float(np.mean(self.rewards))


@dataclass(frozen=True)
class Measure:
    """A number of an episode beside the reward, over the base agent's test episodes; NaN where it is constant."""

    name: str
    kendall_tau_b: float
    low: float
    high: float


@dataclass(frozen=True)
class Study:
    """A finished study; `gaps` follow the induced reward and the verifiable one over the programs that GEPA found."""

    trials: int
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
    """Run base agent, both arms and the controls.

    Parameters
    ----------
    environment : Environment
    lm : dspy.LM
        Agent, reflector and judge; without a cache, or a second trial is the first one again.
    trials : int
        Conversations about each test task, in seeds of their own.
    budget : int
        Rollouts of an arm as for `optimised`; those that the metric is induced from are taken off it.
    seed : int
    told : str
        What the agent is told of the policy from the start.
    controls : mapping of str to (Environment, DSPyMetric)
        Worlds and rewards that are to teach nothing, by name. Their agents are tested in `environment`.

    Raises
    ------
    Exception
        Where the model fails in an episode that is rated or tested.
    """
    agent, test = ServiceAgent(environment, told=told), environment.tasks["test"]
    seeds = range(trials)
    with dspy.context(lm=lm):
        rated = []
        for sample, temperature in RATED:
            with dspy.context(lm=lm.copy(temperature=temperature)):
                rated += played(agent, environment.tasks["train"], [sample])
        metric = induced(rows(rated), environment.policy, lm=lm, seed=seed)
        reward = metric.as_reward(output="transcript", lm=lm)
        arms = {VERIFIED: (environment, Verified()), INDUCED: (environment, reward), **(controls or {})}
        used = {name: len(rated) if name == INDUCED else 0 for name in arms}
        tuned = {
            name: optimised(ServiceAgent(world, told=told), arm, world, lm=lm, budget=budget - used[name], seed=seed)
            for name, (world, arm) in arms.items()
        }
        base = played(agent, test, seeds)
        episodes = {
            **{
                name: [floor(environment.start(task, trial)) for task in test for trial in seeds]
                for name, floor in FLOORS.items()
            },
            BASE: base,
            **{name: played(_taught(agent, program), test, seeds) for name, program in tuned.items()},
        }
        scored = [judgement.score for judgement in metric.judge_batch(rows(base))]
        monitor = RewardMonitor(reward, examples(environment, "test"), reference=Verified(), num_threads=THREADS)
        monitor.follow(tuned[INDUCED])
    numbers = {"induced metric": [np.nan if score is None else score for score in scored]}
    numbers |= {name: [float(of(episode)) for episode in base] for name, of in ONE_LINERS.items()}
    spent = {name: tuned[name].detailed_results.total_metric_calls + used[name] for name in tuned}
    instructions = {name: one.react.react.signature.instructions for name, one in {BASE: agent, **tuned}.items()}
    return Study(
        trials,
        _lines(episodes, instructions, spent),
        tuple(_measure(name, values, base) for name, values in numbers.items()),
        tuple(monitor.gaps()),
    )


def _taught(agent: ServiceAgent, program: ServiceAgent) -> ServiceAgent:
    """The agent with the program's instruction, in a world of its own."""
    taught = agent.deepcopy()
    taught.react.react.signature = program.react.react.signature
    return taught


def _lines(
    episodes: Mapping[str, Sequence[Episode]], instructions: Mapping[str, str], spent: Mapping[str, int]
) -> tuple[Line, ...]:
    base = episodes[BASE]
    tasks = [episode.task for episode in base]
    rewards = {name: np.array([episode.reward for episode in played]) for name, played in episodes.items()}
    p = {
        name: paired_permutation_test(
            _mean, rewards[name], rewards[BASE], groups=tasks, batched=True, standardize=False
        ).p_value
        for name in spent
    }
    adjusted = dict(zip(p, holm(list(p.values())), strict=True))
    lines = []
    for name, values in rewards.items():
        ends = group_mean_interval(values, tasks, bounds=(0.0, 1.0))
        by_task = values.reshape(len(dict.fromkeys(tasks)), -1)
        lines.append(
            Line(
                name, tuple(map(tuple, by_task.tolist())), ends.low, ends.high, p.get(name, np.nan),
                float(adjusted.get(name, np.nan)), spent.get(name, 0), instructions.get(name, ""),
            )  # fmt: skip
        )
    return tuple(lines)


def _mean(values: np.ndarray) -> np.ndarray:
    return np.nanmean(values, axis=-1)


def _measure(name: str, numbers: Sequence[float], episodes: Sequence[Episode]) -> Measure:
    rewards, tasks = [episode.reward for episode in episodes], [episode.task for episode in episodes]
    ends = correlation_interval(batch_kendall_tau_b, numbers, rewards, tasks, batched=True)
    return Measure(name, float(batch_kendall_tau_b(numbers, rewards)), ends.low, ends.high)


def write_study(study: Study, folder: Path) -> str:
    """Write agent.html, agent.md and agent.json into a folder; returns the tables as lines for the terminal."""
    agents, measures, steps = _tables(study)
    tasks = len(study.lines[0].rewards)
    title, head = "An agent, its rewards and its floors", Paragraph(
        f"{count(tasks, 'test task')}, {count(study.trials, 'trial')} each. {gap_verdict(study.gaps)}"
    )  # fmt: skip
    blocks: list[Block] = [agents, Heading("The metric beside one-liners"), measures, Heading("Reward against truth")]
    rest: list[Block] = [steps, Terms.glossary(GLOSSARY), Heading("Instructions")]
    for line in study.lines:
        if line.instruction:
            rest += [Paragraph(line.name), Code(line.instruction)]
    figure = Figure(plot_gaps(study.gaps), "Change of the induced and of the verifiable reward on the test tasks.")
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(
        folder / "agent.html", render_page(Page(title, [Heading(title, level=1), head], [*blocks, figure, *rest]))
    )
    replace_file(folder / "agent.md", "\n".join(markdown_lines([Heading(title, level=1), head, *blocks, *rest])))
    replace_file(folder / "agent.json", json.dumps(jsonable(asdict(study)), indent=2, ensure_ascii=False) + "\n")
    return "\n".join(line for table in (agents, measures, steps) for line in (*aligned(table), ""))


def _tables(study: Study) -> tuple[TextTable, TextTable, TextTable]:
    agents = [
        (
            line.name, statistic(line.mean), interval(line.low, line.high), p_value(line.p), p_value(line.holm),
            count(line.rollouts) if line.rollouts else MISSING,
        )
        for line in study.lines
    ]  # fmt: skip
    measures = [(one.name, statistic(one.kendall_tau_b), interval(one.low, one.high)) for one in study.measures]
    steps = [(count(gap.at), statistic(gap.reward), statistic(gap.reference)) for gap in study.gaps]
    return (
        TextTable(("agent", "reward", "interval", "p", "Holm", "rollouts"), agents, label="Agents"),
        TextTable(("measure", "tau-b", "interval"), measures, label="Measures"),
        TextTable(("rollouts", "induced reward", "verifiable reward"), steps, label="Steps"),
    )
