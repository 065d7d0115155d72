"""Improve a DSPy program with GEPA, an induced metric being the only reward.

    python examples/gepa_reward.py --model openai/gpt-4.1-mini
    python examples/gepa_reward.py --model openai/local --api-base http://127.0.0.1:8000/v1

The ratings are the embedded synthetic ones; the metric is made of bank metrics, so that the model is asked for
rewrites and reflections only. Before it starts, the example prints the most requests that the run can take.
"""

from __future__ import annotations

import argparse

import dspy
from dspy.utils.callback import BaseCallback

from metricsmith import AutoMetrics
from metricsmith.datasets import plain_notices
from metricsmith.tuning import gepa_bound


class Requests(BaseCallback):
    """Counts what is asked of the model."""

    count = 0

    def on_lm_start(self, call_id, instance, inputs) -> None:
        """One more."""
        self.count += 1


def notices(rows: list[dspy.Example]) -> list[dspy.Example]:
    """One example per notice, under the program's own field names."""
    return [
        dspy.Example(id=row.group, notice=row.input, references=row.references).with_inputs("notice")
        for row in {row.group: row for row in rows}.values()
    ]


def main() -> None:
    """Induce the metric, optimise the program, and compare both on notices that nothing has seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="provider/name, as DSPy takes it")
    parser.add_argument("--api-base", help="address of an OpenAI-compatible server")
    parser.add_argument("--api-key", help="by default from the provider's environment variable")
    parser.add_argument("--max-metric-calls", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    task, rows = plain_notices.load()
    groups = list(dict.fromkeys(row.group for row in rows))
    rated, test, train, val, held_out = (
        [row for row in rows if row.group in groups[start:end]]
        for start, end in ((0, 20), (20, 28), (28, 34), (34, 40), (40, 48))
    )
    metric = AutoMetrics(task).compile(rated, test)
    print(f"held-out tau-b of the metric: {metric.record.test.kendall_tau_b:.2f} ({plain_notices.SYNTHETIC})")

    requests = Requests()
    connection = {"api_base": options.api_base, "api_key": options.api_key}
    lm = dspy.LM(
        options.model, num_retries=0, callbacks=[requests], **{key: value for key, value in connection.items() if value}
    )
    reward = metric.as_reward(input="notice", output="rewrite")
    program = dspy.Predict(dspy.Signature("notice -> rewrite", "Rewrite the notice."))
    optimizer = dspy.GEPA(metric=reward, max_metric_calls=options.max_metric_calls, reflection_lm=lm, seed=options.seed)
    trainset, valset = notices(train), notices(val)
    print(gepa_bound(optimizer, program, trainset, valset))
    with dspy.context(lm=lm):
        tuned = optimizer.compile(program, trainset=trainset, valset=valset)
        print(f"requests made: {requests.count}")
        before, after = (reward.check(version, notices(held_out)) for version in (program, tuned))
    print(f"before: {before}\nafter:  {after}")
    print(f"instruction: {tuned.signature.instructions}\n{reward.report()}")


if __name__ == "__main__":
    main()
