"""The promises of every metric of the bank."""

from __future__ import annotations

import math
import re
import subprocess
import sys

import dspy
import pytest

from metricsmith.bank.base import BankMetric, Family
from metricsmith.bank.catalogue import default_bank
from metricsmith.metric import make_row
from metricsmith.records import Status

FAMILIES = default_bank().families
METRICS = default_bank().metrics()
WITH_REFERENCES = [metric for metric in METRICS if "references" in metric.card.needs]

INPUT = "The committee gave its approval to the construction plan after deliberating at length on Monday morning."
REFERENCE = "On Monday the committee approved the building plan after a long debate. Work starts in June."
GOOD = "The committee approved the building plan on Monday after a long debate. Work starts in June."
BAD = "Purple kites drift slowly above the silent harbour! Nobody knows who painted those nine little boats."
OTHERS = [
    GOOD,
    BAD,
    INPUT,
    "The plan.",
    "Work starts. Work starts. Work starts.",
    REFERENCE[:40],
    REFERENCE + " " + BAD,
]

# Reference-free metrics have no reference to be close to: each gets the pair that its card speaks of.
OWN_PAIRS = {
    "self_bleu": (
        "The bus is late. A dog sleeps. Rain fell all night.",
        "The bus is late. The bus is late now. The bus is late.",
    ),
}
REPETITION = ("each word here stands alone and never returns", "the bus the bus the bus the bus the bus")
PLAIN = (
    "We moved the date. Please call us.",
    "Notwithstanding aforementioned administrative considerations, rescheduling necessitates telephonic communication.",
)
BREVITY = ("Short and clear.", "This text goes on and on, and then on again, long after everything was said. " * 3)
WORST_INPUT_FREE = {"distinct": REPETITION, "fkgl": PLAIN, "output": BREVITY, "length": BREVITY, "input": BREVITY}

SCRIPTS = {
    "Cyrillic": (
        "Комитет одобрил новый план после долгих споров в понедельник.",
        "Тихие лодки плывут мимо старой белой башни у моря.",
    ),
    "Arabic": (
        "وافقت اللجنة على الخطة الجديدة بعد نقاش طويل يوم الاثنين",
        "تبحر القوارب الصغيرة بهدوء قرب البرج الأبيض القديم",
    ),
    "Devanagari": ("समिति ने लंबी बहस के बाद नई योजना को मंजूरी दी", "छोटी नावें पुराने सफेद टावर के पास धीरे चलती हैं"),
    "Han": ("委员会 周一 经过 长时间 辩论 批准 了 新 计划", "小船 静静 地 驶过 海边 古老 的 白色 灯塔"),
}


def ids(metric: BankMetric) -> str:
    return metric.name


def row(output: str, *references: str, input: str = INPUT) -> dspy.Example:
    return make_row(output, input=input, references=references)


CORPUS = [row(text, REFERENCE) for text in OTHERS] + [
    row(text, text, input=text) for text in (BAD, *sum(SCRIPTS.values(), ()))
]


def fitted(metric: BankMetric) -> BankMetric:
    return metric.fit(CORPUS)


def raw(metric: BankMetric, output: str, *references: str, input: str = INPUT) -> float:
    judged = fitted(metric).judge_batch([row(output, *references, input=input)])[0]
    return math.nan if judged.raw is None else judged.raw


def quality(metric: BankMetric, output: str, *references: str, input: str = INPUT) -> float:
    return metric.output.score(raw(metric, output, *references, input=input))


@pytest.mark.parametrize("metric", METRICS, ids=ids)
@pytest.mark.parametrize(
    "output", ["", " \n\t ", "a", "?!", *OTHERS, "🙂🙂 🙂", "x" * 400, "e\u0301 \u200d", "1 1 1 1", "a\nb\n\nc"]
)
def test_raw_stays_in_the_cards_range_and_score_in_the_unit_interval(metric: BankMetric, output: str) -> None:
    for references in ((REFERENCE,), (output or "x",), ("x",)):
        judged = fitted(metric).judge_batch([row(output, *references)])[0]
        if judged.status is Status.SKIPPED:
            assert "undefined" in judged.error or "no input" in judged.error or "no reference" in judged.error
            continue
        low, high = metric.output.low, metric.output.high
        assert judged.raw is not None
        assert low is None or judged.raw >= low
        assert high is None or judged.raw <= high
        assert judged.score is not None
        assert 0.0 <= judged.score <= 1.0


@pytest.mark.parametrize("metric", METRICS, ids=ids)
def test_score_is_monotone_in_raw_and_points_upwards(metric: BankMetric) -> None:
    output = metric.output
    low = -50.0 if output.low is None else output.low
    high = low + 500.0 if output.high is None else output.high
    steps = [low + (high - low) * step / 20 for step in range(21)]
    scores = [output.score(value) for value in (steps if output.higher_is_better else reversed(steps))]
    assert scores == sorted(scores)
    assert scores[0] < scores[-1]


def _pair(metric: BankMetric) -> tuple[str, str]:
    if "references" in metric.card.needs:
        return GOOD, BAD
    if metric.name in OWN_PAIRS:
        return OWN_PAIRS[metric.name]
    return next((pair for stem, pair in WORST_INPUT_FREE.items() if metric.name.startswith(stem)), (GOOD, BAD))


@pytest.mark.parametrize("metric", METRICS, ids=ids)
def test_a_good_text_scores_above_a_bad_one(metric: BankMetric) -> None:
    good, bad = _pair(metric)
    assert quality(metric, good, REFERENCE) > quality(metric, bad, REFERENCE)


@pytest.mark.parametrize("metric", METRICS, ids=ids)
@pytest.mark.parametrize("missing", ["references", "input"])
def test_what_the_card_needs_is_needed_and_nothing_else(metric: BankMetric, missing: str) -> None:
    full = {"input": INPUT, "references": [REFERENCE]}
    judged = fitted(metric).judge_batch(
        [make_row(GOOD, **{key: text for key, text in full.items() if key != missing})]
    )[0]
    if missing in metric.card.needs:
        assert judged.status is Status.SKIPPED
        assert missing in judged.error
    else:
        assert judged == fitted(metric).judge_batch([row(GOOD, REFERENCE)])[0]


@pytest.mark.parametrize("metric", WITH_REFERENCES, ids=ids)
def test_no_text_beats_the_reference_itself(metric: BankMetric) -> None:
    perfect = quality(metric, REFERENCE, REFERENCE)
    assert perfect >= max(quality(metric, other, REFERENCE) for other in OTHERS) - 1e-12


@pytest.mark.parametrize("metric", WITH_REFERENCES, ids=ids)
def test_an_empty_output_has_no_number_or_a_worse_one_than_the_reference(metric: BankMetric) -> None:
    empty = raw(metric, "", REFERENCE)
    assert math.isnan(empty) or metric.output.score(empty) < quality(metric, REFERENCE, REFERENCE)


@pytest.mark.parametrize("metric", WITH_REFERENCES, ids=ids)
def test_blank_references_give_no_number(metric: BankMetric) -> None:
    judged = fitted(metric).judge_batch([row(GOOD, ""), row(GOOD, " \n")])
    assert [judgement.status for judgement in judged] == [Status.SKIPPED] * 2


@pytest.mark.parametrize("metric", WITH_REFERENCES, ids=ids)
def test_several_references_follow_the_stated_rule(metric: BankMetric) -> None:
    rule = metric.card.multi_reference
    one, other = raw(metric, GOOD, REFERENCE, BAD), raw(metric, GOOD, BAD, REFERENCE)
    if "first reference" in rule:
        assert one == raw(metric, GOOD, REFERENCE)
        assert other == raw(metric, GOOD, BAD)
        return
    assert one == pytest.approx(other, rel=1e-12)
    if re.match(
        "(the|for each type the|each number is that of the) (reference with the )?(highest|lowest|smallest|closest)",
        rule,
    ):
        assert one == raw(metric, GOOD, REFERENCE)


@pytest.mark.parametrize("metric", WITH_REFERENCES, ids=ids)
@pytest.mark.parametrize("script", SCRIPTS)
def test_text_in_any_script_is_read(metric: BankMetric, script: str) -> None:
    text, unrelated = SCRIPTS[script]
    source = unrelated + " " + text.split()[0]
    assert quality(metric, text, text, input=source) > quality(metric, unrelated, text, input=source)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.card.name)
def test_a_batch_gives_exactly_what_single_rows_give(family: Family) -> None:
    rows = [*CORPUS, row("", REFERENCE), row(GOOD, BAD, REFERENCE), row("单 个 x", "单 个 y", REFERENCE), row("x", "")]
    for metric in map(fitted, family.metrics()):
        together = metric.judge_batch(rows)
        assert together == [metric.judge_batch([each])[0] for each in rows]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.card.name)
def test_outputs_asked_for_alone_equal_those_asked_for_together(family: Family) -> None:
    from metricsmith.bank.base import judge_family

    metrics = [fitted(metric) for metric in family.metrics()]
    assert judge_family(metrics, CORPUS) == [metric.judge_batch(CORPUS) for metric in metrics]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.card.name)
def test_the_card_is_complete_and_renders(family: Family) -> None:
    card = family.card
    for section in (
        "summary",
        "formula",
        "domains",
        "tasks",
        "best_for",
        "not_for",
        "limits",
        "failure_cases",
        "papers",
    ):
        assert getattr(card, section), section
    assert card.kind == "bank"
    assert card.backend
    assert card.backend_license
    assert bool(card.multi_reference) == ("references" in card.needs)
    markdown = card.to_markdown()
    assert markdown.startswith(f"## {card.name}\n")
    for output in card.outputs:
        assert output.description
        assert f"| `{output.name}` |" in markdown


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.card.name)
def test_related_metrics_can_be_looked_up(family: Family) -> None:
    for name in family.card.related:
        assert default_bank().card(name) is not family.card


def test_output_names_are_unique_plain_identifiers() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names)


def test_looking_at_the_bank_loads_no_backend() -> None:
    program = (
        "import sys; from metricsmith.bank.catalogue import default_bank; default_bank().metrics()\n"
        "heavy = {'nltk', 'sacrebleu', 'rouge_score', 'rapidfuzz', 'pyphen', 'scipy', 'sklearn', 'pandas'}\n"
        "raise SystemExit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
