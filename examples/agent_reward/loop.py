"""Rewards for an agent, rollouts, a metric induced from them, and GEPA: the parts of the study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import dspy

from agent_reward.agent import ServiceAgent
from agent_reward.episodes import Environment, Episode
from metricsmith import AutoMetrics, InducedMetric, Scale, Task, make_row
from metricsmith.rendering import render_output
from metricsmith.threads import in_threads

Reward = Callable[..., Any]  # a metric as DSPy calls it

THREADS = 8
JUDGES: Mapping[str, int] = {"criterion": 8}  # fewer than the paper's 15: each is asked about each episode
FAULTLESS = "Nothing was wrong with this conversation."


def verified(_example: Any, pred: Any, *_: Any) -> dspy.Prediction:
    """The reward that can be verified: database and told facts, with what the episode lacks as the feedback."""
    return dspy.Prediction(score=pred.episode.reward, feedback="\n".join(pred.episode.lacks) or FAULTLESS)


def without_words(_example: Any, pred: Any, *_: Any) -> dspy.Prediction:
    """A control: the true reward with empty feedback."""
    return dspy.Prediction(score=pred.episode.reward, feedback="")


def examples(environment: Environment, side: str) -> list[dspy.Example]:
    """The tasks of a side as examples for an optimiser; ``group`` keeps what is about one task together."""
    return [dspy.Example(task=task, seed=0, group=task).with_inputs("task", "seed") for task in environment.tasks[side]]


def played(agent: ServiceAgent, tasks: Sequence[str], seeds: Sequence[int], threads: int = THREADS) -> list[Episode]:
    """Episodes of an agent, task by task and in each seed by seed.

    Raises
    ------
    Exception
        That of the first episode that failed: a model that did not answer is no reward of 0.
    """
    jobs = [partial(agent, task=task, seed=seed) for task in tasks for seed in seeds]
    return [prediction.episode for prediction in in_threads(jobs, threads, "episode")]


def rows(episodes: Sequence[Episode]) -> list[dspy.Example]:
    """Rated rows: the transcript as the output, the reward as the rating, the task as the group."""
    return [
        make_row(render_output(list(episode.messages)), id=f"{place}", group=episode.task, reward=episode.reward)
        for place, episode in enumerate(episodes)
    ]


def induced(rated: Sequence[dspy.Example], policy: str, *, lm: dspy.LM, seed: int = 0) -> InducedMetric:
    """Induces a metric of judges alone from rated episodes; the judges are told the policy, the agent is not."""
    description = f"An agent serves a customer in a conversation and calls tools. Its policy:\n\n{policy}"
    task = Task(description, "reward", Scale(0, 1, 1))
    optimizer = AutoMetrics(task, bank="generated", generators=JUDGES, lm=lm, seed=seed, concurrency=THREADS)
    return optimizer.compile(list(rated))


def optimised(
    agent: ServiceAgent, reward: Reward, environment: Environment, *, lm: dspy.LM, budget: int, seed: int = 0
) -> ServiceAgent:
    """`dspy.GEPA` on the training tasks, every other of which also decides which instruction is kept.

    After `budget` rollouts no new iteration begins; the one that runs is finished (`metricsmith.tuning.gepa_bound`).
    The agent has ``detailed_results``, which `metricsmith.tuning.RewardMonitor` follows.
    """
    train = examples(environment, "train")
    optimizer = dspy.GEPA(
        metric=reward, max_metric_calls=budget, reflection_lm=lm, num_threads=THREADS, track_stats=True, seed=seed
    )
    return optimizer.compile(agent, trainset=train, valset=train[::2])
