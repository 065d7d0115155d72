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
from agent_reward.counts import Measure, calls, characters, measured, table_lines, transfers, turns
from agent_reward.episodes import Environment, Episode, Session
from agent_reward.loop import THREADS, Reward, examples, induced, optimised, played, rows, verified
from metricsmith import OptionError
from metricsmith.formats import count, interval, jsonable, p_value, statistic
from metricsmith.stats.resampling import group_mean_interval, holm, paired_permutation_test
from metricsmith.tuning import RewardMonitor

BASE, VERIFIED, INDUCED = "base agent", "GEPA, verifiable reward", "GEPA, induced reward"
FLOORS: Mapping[str, Callable[[Session], Episode]] = {"do nothing": do_nothing, "transfer at once": transfer_at_once}
ONE_LINERS = (characters, calls, turns, transfers)
RATED = ((1, 0.5), (2, 1.0))  # seed and temperature of the rollouts that the metric is induced from
NOTES = """\
reward: share of the episodes that end with the right database and every fact told. interval: 95 %, of the mean over
tasks, the trials of one together. p: against the base agent, by swapping whole tasks; Holm over both arms, controls as
they are. rollouts: what made the agent, the rated ones for the metric included. failed: rollouts without a reward; GEPA
books them as 0. tau-b: with the reward, over the base agent's test episodes, by leaving out one task at a time.
"""


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
class Study:
    """A finished study; `monitor` followed the induced reward and the verifiable one over the programs of GEPA."""

    lines: tuple[Line, ...]
    measures: tuple[Measure, ...]
    monitor: RewardMonitor


def run_study(
    environment: Environment,
    lm: dspy.LM,
    *,
    trials: int = 5,
    budget: int = 135,
    seed: int = 0,
    told: str = "",
    controls: Mapping[str, tuple[Environment, Reward]] | None = None,
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
    controls : mapping of str to (Environment, Reward), optional
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
        arms = {VERIFIED: (environment, verified), INDUCED: (environment, reward), **(controls or {})}
        for name, (world, arm) in arms.items():
            failed: list[BaseException] = []
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
                monitor = RewardMonitor(reward, examples(world, "test"), reference=verified, num_threads=THREADS)
                monitor.follow(tuned)
        rated = rows(base)
        scored = [judgement.score for judgement in metric.judge_batch(rated)]
    numbers = {"induced metric": [np.nan if score is None else score for score in scored]}
    numbers |= {one.__name__: [one(row.output) for row in rated] for one in ONE_LINERS}
    lines = [_line(name, played, base, **made.get(name, {})) for name, played in episodes.items()]
    both = [line for line in lines if line.name in (VERIFIED, INDUCED)]
    adjusted = dict(zip((line.name for line in both), holm([line.p for line in both]), strict=True))
    rewards, groups = [row.reward for row in rated], [row.group for row in rated]
    return Study(
        tuple(replace(line, holm=float(adjusted.get(line.name, np.nan))) for line in lines),
        tuple(measured(name, values, rewards, groups) for name, values in numbers.items()),
        monitor,
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


def write_study(study: Study, folder: Path) -> str:
    """Write agent.md, agent.json and, of two steps or more, reward.html; returns the tables for the terminal."""
    agents = [
        (
            line.name, statistic(line.mean), interval(line.low, line.high), p_value(line.p), p_value(line.holm),
            count(line.rollouts) if line.rollouts else "–", count(line.failed) if line.rollouts else "–",
        )
        for line in study.lines
    ]  # fmt: skip
    measures = [(one.name, statistic(one.kendall_tau_b), interval(one.low, one.high)) for one in study.measures]
    gaps = study.monitor.gaps()
    steps = [(count(gap.at), statistic(gap.reward), statistic(gap.reference)) for gap in gaps]
    tables = (
        table_lines(("agent", "reward", "interval", "p", "Holm", "rollouts", "failed"), agents),
        table_lines(("number of an episode", "tau-b", "interval"), measures),
        table_lines(("rollouts", "induced reward", "verifiable reward"), steps),
    )
    shown = "\n\n".join("\n".join(lines) for lines in tables)
    tasks, trials = np.shape(study.lines[0].rewards)
    page = [
        "# An agent, its rewards and its floors", f"{count(tasks, 'test task')}, {count(trials, 'trial')} of each.",
        f"```\n{shown}\n```", study.monitor.report(), NOTES,
    ]  # fmt: skip
    known = next(line.instruction for line in study.lines if line.name == BASE).splitlines()
    for line in study.lines:
        if line.rollouts:
            new = [f"- {text}" for text in line.instruction.splitlines() if text not in known]
            page += [f"## New in the instruction: {line.name}", "\n".join(new) or "Nothing."]
    record = {"lines": study.lines, "measures": study.measures, "gaps": gaps}
    written = {name: [asdict(one) for one in several] for name, several in record.items()}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.md").write_text("\n\n".join(page), "utf-8")
    (folder / "agent.json").write_text(json.dumps(jsonable(written), indent=2, ensure_ascii=False) + "\n", "utf-8")
    if len(gaps) > 1:
        study.monitor.write(folder / "reward.html", "Induced reward and truth")
    return shown
