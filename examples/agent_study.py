"""An agent optimised by GEPA with a verifiable and with an induced reward, beside its floors.

    python examples/agent_study.py --offline
    python examples/agent_study.py --model openai/gpt-4.1-mini --out study
    python examples/agent_study.py --model openai/local --api-base http://127.0.0.1:8000/v1 --trials 5
    python examples/agent_study.py --model openai/gpt-4.1 --tau-bench tau-bench --tau-python tau-bench/.venv/bin/python
    python examples/agent_study.py --recorded taubench_train_runs.csv

Offline a server on the loopback interface plays agent, reflector and judge, and the study runs in minutes without a
key; two controls then show that nothing is learned from rewards of other tasks or without feedback.
"""

from __future__ import annotations

import argparse
import logging
import sys
from contextlib import ExitStack, redirect_stdout
from pathlib import Path

import dspy
from agent_reward.loopback import controls, loopback
from agent_reward.recorded import shown
from agent_reward.study import run_study, write_study
from agent_reward.taubench import TauBench
from agent_reward.world import ServiceWorld


def main() -> None:
    """Run the study and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument("--offline", action="store_true", help="ask a server of our own, without a key")
    model.add_argument("--model", help="provider/name, as DSPy takes it; plays agent, customer, reflector and judge")
    model.add_argument("--recorded", type=Path, metavar="RUNS", help="no agent: figures on recorded runs of tau-bench")
    parser.add_argument("--api-base", help="address of an OpenAI-compatible server")
    parser.add_argument("--trials", type=int, default=5, help="conversations about each test task")
    parser.add_argument("--rollouts", type=int, default=135, help="after so many, no arm begins another iteration")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--told", action="store_true", help="tell the agent the rules; by default it learns them")
    parser.add_argument("--tau-bench", type=Path, metavar="FOLDER", help="a checkout of it, in place of our own world")
    parser.add_argument("--tau-python", metavar="PY", help="the interpreter that has its requirements")
    parser.add_argument("--tau-tasks", type=Path, metavar="FILE", help="corrected tasks: tau2-bench's tasks.json")
    parser.add_argument("--out", type=Path, default=Path("agent_study"))
    options = parser.parse_args()
    tau = (options.tau_bench, options.tau_python, options.tau_tasks)
    if any(tau) and not (all(tau[:2]) and options.model):
        parser.error("--tau-bench, --tau-python and a --model that plays the customer go together")
    if options.recorded:
        print(*shown(options.recorded), sep="\n")
        return
    logging.getLogger("dspy").setLevel(logging.WARNING)  # GEPA writes every prompt into its log
    with ExitStack() as stack:
        environment = ServiceWorld()
        if options.tau_bench:
            environment = TauBench(*tau)
            for task, answer in environment.left_out.items():
                print(f"task {task} is left out, a gold action of it fails: {answer}", file=sys.stderr)
        if options.offline:
            lm, extra = stack.enter_context(loopback()), controls(environment, options.seed)
        else:
            base = {"api_base": options.api_base} if options.api_base else {}
            lm, extra = dspy.LM(options.model, temperature=1.0, **base), {}
        told = environment.policy if options.told or options.tau_bench else ""
        stack.enter_context(redirect_stdout(sys.stderr))  # where DSPy's progress bars belong
        study = run_study(
            environment, lm, trials=options.trials, budget=options.rollouts, seed=options.seed, told=told,
            controls=extra,
        )  # fmt: skip
    print(write_study(study, options.out))
    print(f"\nreport: {options.out / 'agent.md'}")


if __name__ == "__main__":
    main()
