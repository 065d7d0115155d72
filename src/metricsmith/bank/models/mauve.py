"""MAUVE: how close two sets of texts are; its numbers come from `metricsmith.bank.corpus`, never row by row."""

from __future__ import annotations

from metricsmith.bank.models.spec import ModelSpec
from metricsmith.records import Checkpoint, MetricCard, Output

__all__ = ["CARD", "MODEL"]

MODEL = ModelSpec(name="mauve", id="gpt2-large", head="causal")  # the head of perplexity, so that both share one copy

CARD = MetricCard(
    name="MAUVE",
    kind="bank",
    summary=(
        "How close the texts of a system are, as a set, to texts that people wrote. One number for two sets; a row has "
        "none."
    ),
    formula=(
        "P and Q are the shares of k clusters in the outputs and in the references; the clusters are those of k-means "
        "on the last hidden states of both sets, of length 1, reduced to the principal components that hold .9 of the "
        "variance; k is a tenth of the smaller set, at least 2; MAUVE is the area under the points (exp(-5 KL(Q|R)), "
        "exp(-5 KL(P|R))) for R = w P + (1 - w) Q, 25 weights w from 0 to 1, between (1, 0) and (0, 1)"
    ),
    outputs=(Output("mauve", description="near 0 sets that share no cluster, 1 sets with equal shares"),),
    needs=("references", "weights", "extra:models"),
    cost="local",
    multi_reference="all references are one set; they belong to no row, and the sets may differ in size",
    domains=("general text", "stories", "web text"),
    tasks=("open generation", "story generation"),
    best_for=("systems beside each other on thousands of open-ended texts", "decoding settings of one model"),
    not_for=("single rows, a judge's candidates, a reward", "tasks where each input has one right answer"),
    limits=(
        "undefined below 20 texts on a side, where a cluster would hold fewer than ten; the authors advise thousands: "
        "fewer texts give higher numbers",
        "only numbers of equal settings, sizes and seeds can be compared",
        "k-means is that of scikit-learn with 5 starts, the package's that of faiss: clusters differ, and so do "
        "numbers by some hundredths",
        "mauve-text 0.4.0 sorts points whose order is known: two equal histograms may get .75 instead of 1; here the "
        "points keep their order",
        "autometrics-ai 0.1.0 computes it for one output and one reference: a constant",
    ),
    failure_cases=("right texts for the wrong inputs: the sets are the same",),
    related=("perplexity", "self_bleu", "distinct_2"),
    papers=(
        "Pillutla et al. 2021, MAUVE: measuring the gap between neural text and human text using divergence frontiers",
    ),
    checkpoint=Checkpoint("gpt2-large", 3.25, 3.6, 1024, "the end is cut off"),
)
