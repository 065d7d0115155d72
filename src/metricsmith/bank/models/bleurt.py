"""BLEURT: a network trained on people's ratings of translations compares the output with a reference."""

from __future__ import annotations

from metricsmith.bank.base import FloatArray, Names, Reasoned, TextBatch, pair_up, where_filled
from metricsmith.bank.models.engine.classifier import logits
from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL", "compute"]

MODEL = ModelSpec(name="bleurt", id="lucadiliello/BLEURT-20", head="bleurt", needs=("sentencepiece",))

CARD = MetricCard(
    name="BLEURT",
    kind="bank",
    summary=(
        "Similarity in meaning to a reference, as raters of translations see it: a network that was trained on "
        "ratings and on synthetic errors reads both texts together."
    ),
    formula="the network's one number for [CLS] reference [SEP] output [SEP], as it stands, without a final function",
    outputs=(
        Output("bleurt", None, None, half=0.5, description="mostly 0 to 1, not bound to; higher is closer"),
    ),
    needs=("references", "weights", "extra:models"),
    cost="local",
    multi_reference="the highest number over the references; blank references are ignored",
    domains=("machine translation", "general text", "data-to-text"),
    tasks=("translation", "paraphrase", "data-to-text", "summarisation"),
    best_for=("adequacy of a sentence against one reference", "good wordings that share few words with the reference"),
    not_for=("long documents: trained on sentences", "texts without a reference"),
    limits=(
        "unbounded: numbers below 0 and above 1 occur, and their size means little across languages",
        "the order counts: reference first",
        "pairs beyond 512 tokens lose the end of the longer text",
        "autometrics-ai 0.1.0 takes the first reference alone",
        "its authors checked BLEURT-20 on 13 languages; others are less certain",
    ),
    failure_cases=("a fluent output with one wrong number or name stays high",),
    related=("bertscore_f", "moverscore", "bartscore", "chrf"),
    papers=(
        "Sellam et al. 2020, BLEURT: learning robust metrics for text generation",
        "Pu et al. 2021, Learning compact metrics for MT",
    ),
    checkpoint=Checkpoint(
        MODEL.id, 2.32, 2.6, 512, "the end of the longer text, output or reference, is cut off",
        languages="13 languages, English among them",
    ),
)  # fmt: skip


def compute(batch: TextBatch, outputs: Names) -> Reasoned:
    """Read each distinct pair of reference and output once."""

    def best(part: TextBatch) -> FloatArray:
        pairs = pair_up(part)
        return pairs.best(logits(part.spec, pairs.references, pairs.outputs)[:, 0])

    return where_filled(batch, outputs, best, "references")
