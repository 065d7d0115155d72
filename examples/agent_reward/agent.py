"""A service agent as a DSPy module, and the two agents that anything worth the name must beat."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import dspy

from agent_reward.episodes import Environment, Episode, Session

START = (
    "A customer has turned to your service. Find out what the customer needs, look up what you do not know, do with "
    "the tools what has to be done, and tell the customer what came of it. Finish when nothing is left to do."
)


STEPS = 30  # calls of tools and turns of speech together, after which the conversation ends


class _ReAct(dspy.ReAct):
    """`dspy.ReAct` that does not parse the names of a trajectory's fields as Python source at each step.

    In CPython 3.11 that fails now and then while other threads parse too (``SystemError: AST constructor recursion
    depth mismatch``), and it costs more than the rest of a step.
    """

    def _format_trajectory(self, trajectory: dict[str, Any]) -> Any:
        fields = dspy.Signature({name: (str, dspy.InputField()) for name in trajectory}, "A trajectory.")
        return (dspy.settings.adapter or dspy.ChatAdapter()).format_user_message_content(fields, trajectory)


class ServiceAgent(dspy.Module):
    """`dspy.ReAct` over the tools of a session and a tool that speaks to the customer.

    Its one predictor is ``react.react``, whose instruction is what an optimiser rewrites. Called with a task and a seed
    it returns a Prediction with ``episode`` and ``transcript``, the messages that a judge reads. Calls in several
    threads do not meet: each has a session of its own.

    Parameters
    ----------
    environment : Environment
    told : str
        Rules that the agent is told from the start; by default none, so that it has to learn them.
    on_failure : callable
        Called with the error of a conversation that broke off, which optimisers book as a reward of 0.
    """

    def __init__(
        self, environment: Environment, *, told: str = "", on_failure: Callable[[BaseException], object] = bool
    ) -> None:
        super().__init__()
        # A function, because optimisers copy programs and the world is to stay one.
        self._start, self._on_failure = lambda task, seed: environment.start(task, seed), on_failure
        session = environment.start(environment.tasks["train"][0])
        signature = dspy.Signature("opening -> outcome", f"{START}\n\n{told}".strip())
        self.react = _ReAct(signature, [*session.tools.values(), session.say], max_iters=STEPS)
        session.close()
        self.react.tools = {"finish": self.react.tools["finish"]}  # the others belong to a session
        self.react.extract = lambda **_: {}  # the conversation is the result: nothing is asked about it afterwards

    def forward(self, task: str, seed: int = 0) -> dspy.Prediction:
        """Serve the customer of `task`; the seed also keeps samples apart in DSPy's cache.

        Raises
        ------
        Exception
            That of a model which did not answer, the customer's included, or of the world; `on_failure` has seen it.
        """
        session = self._start(task, seed)
        react = copy.copy(self.react)  # shares the predictor, so that its turns stand in the program's trace
        react.tools = {**session.tools, "say": dspy.Tool(session.say), **self.react.tools}
        try:
            with session.failing():
                with dspy.context(lm=dspy.settings.lm.copy(rollout_id=seed)):
                    react(opening=session.opening)
                if session.failure:  # of a tool, which ReAct has shown to the agent
                    raise session.failure
                episode = session.close()
        finally:
            if session.failure:
                self._on_failure(session.failure)
        return dspy.Prediction(episode=episode, transcript=list(episode.messages))


def do_nothing(session: Session) -> Episode:
    """The agent that ends the conversation at once: it changes nothing and tells nothing."""
    return session.close()


def transfer_at_once(session: Session) -> Episode:
    """The agent that hands every customer over to a person, unheard."""
    transfer = next(tool for name, tool in session.tools.items() if name.startswith("transfer_to_human"))
    transfer(**dict.fromkeys(transfer.args, "The customer is handed over."))
    return session.close()
