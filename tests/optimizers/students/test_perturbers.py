"""Examples for perturbers: what is shown, and what is kept to try strategies on."""

from __future__ import annotations

import copy

import dspy
import pytest

from faults import Fault, Faults
from loopback import serve
from metricsmith.errors import DataError, JudgementFailed, ModelFailure, OptionError
from metricsmith.optimizers.students.perturbers import PerturberMetric, perturbation_episodes, strategy_episodes
from metricsmith.optimizers.tuner import JudgeTuner
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.repeated import Repeated
from metricsmith.programs.perturbers.base import Source
from metricsmith.programs.perturbers.generated import DegradationStrategies, Preserve, Worsen
from metricsmith.records import Output, Status
from metricsmith.signatures.generation import Axis, Strategy
from perturbed import FACTS, HINT, TASK, answer, sources
from stubs import Scripted

TONE = Axis(name="Tone", meaning="It is polite.")
PLAN = Strategy(name="Cut", description="Cut.")


def test_there_is_an_example_for_each_source_and_strength():
    given = [*sources(2), Source(" "), Source("x", "i", "c", ("r", "s"))]
    episodes = perturbation_episodes(given, TASK, FACTS, ["subtle", "obvious"], [PLAN])
    assert [(episode.output, episode.strength) for episode in episodes] == [
        (source.output, strength) for source in (given[0], given[1], given[3]) for strength in ("subtle", "obvious")
    ]
    last = dict(episodes[-1].inputs().items())
    assert last.pop("strategies") == [PLAN]  # as the student is to get them
    assert last == {
        "task": TASK, "dimension": "Facts: All facts are there.", "strength": "obvious", "output": "x", "input": "i",
        "references": ["r", "s"], "context": "c",
    }  # fmt: skip
    assert episodes[-1].label.rows[0].toDict() == {
        "output": "x",
        "input": "i",
        "references": ["r", "s"],
        "context": "c",
    }
    assert "strategies" not in perturbation_episodes(given, TASK, FACTS, ["subtle"])[0]


def test_strategies_are_never_tried_on_the_groups_that_were_shown():
    given = sources(12)
    groups = [f"g{n % 4}" for n in range(12)]
    of = {source.output: group for source, group in zip(given, groups, strict=True)}
    episodes = strategy_episodes(given, TASK, [FACTS, TONE], groups=groups, tried=9, splits=3, strength="subtle")
    assert len(episodes) == 6
    assert {episode.dimension for episode in episodes} == {"Facts: All facts are there.", "Tone: It is polite."}
    for episode in episodes:
        shown = {of[source.output] for source in given if source.output in episode.examples}
        tried = [of[source.output] for source in episode.label.sources]
        assert len(shown) == len(tried) == len(set(tried)) == 2  # two of four groups stay to be shown
        assert not shown & set(tried)
        assert (episode.label.axis.name, episode.label.strength) == (episode.dimension.split(":")[0], "subtle")


def test_the_seed_decides_and_each_split_has_its_own():
    def tried(seed, splits):
        found = strategy_episodes(sources(8), TASK, [FACTS], tried=3, splits=splits, seed=seed)
        return [[source.output for source in episode.label.sources] for episode in found]

    assert tried(0, 4) == tried(0, 4)
    assert tried(0, 4)[1:] == tried(1, 3)
    assert len({tuple(outputs) for outputs in tried(0, 4)}) > 1
    assert {len(outputs) for outputs in tried(0, 4)} == {3}


def test_too_few_groups_and_numbers_are_refused():
    with pytest.raises(DataError, match="outputs of 2 groups; at least 3"):
        strategy_episodes([*sources(2), Source("")], TASK, [FACTS])
    for options in ({"tried": 0}, {"splits": 0}):
        with pytest.raises(OptionError, match="must be 1 or more"):
            strategy_episodes(sources(4), TASK, [FACTS], **options)


PAD = [Strategy(name="Pad", description="Add a word."), Strategy(name="Fill", description="Add a word.")]
JUDGE = CriterionJudge(criterion="Facts", meaning="All facts are there.", task=TASK)
EPISODES = {
    Worsen: lambda count, start: perturbation_episodes(sources(count, start), TASK, FACTS, ["obvious"], PAD),
    Preserve: lambda count, start: perturbation_episodes(sources(count, start), TASK, FACTS, ["obvious"]),
    DegradationStrategies: lambda count, start: strategy_episodes(
        sources(5, 100 * start), TASK, [FACTS], tried=2, splits=count, seed=start
    ),
}


@pytest.fixture(params=EPISODES, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


class Words(Scripted):
    """Counts words; its number may fall where quality rises, and it may fail."""

    def __init__(self, higher_is_better=True, failing=""):
        output = Output("words", 0.0, 20.0, higher_is_better)
        super().__init__(lambda row, run: self.count(row.output), "words", output)
        self.failing = failing

    def count(self, text):
        return Status.REFUSED if self.failing and self.failing in text else float(len(text.split()))


def worsened(*outputs, strategies=PAD):
    (episode,) = perturbation_episodes(sources(1), TASK, FACTS, ["obvious"], strategies)
    return episode, dspy.Prediction(outputs=list(outputs))


def preserved(output, declined=""):
    (episode,) = perturbation_episodes(sources(1), TASK, FACTS, ["subtle"])
    return episode, dspy.Prediction(output=output, declined=declined)


ORIGINAL = sources(1)[0].output  # eight words
SHORT, LONG = "Notice 0 says", f"{ORIGINAL} and so on"


@pytest.mark.parametrize(
    ("outputs", "share"),
    [
        ((SHORT, "Notice"), 1.0),
        ((SHORT, LONG), 0.5),
        ((LONG, LONG + "!"), 0.0),
        ((ORIGINAL, SHORT), 0.5),
        ((SHORT, SHORT), 0.5),
    ],
)
def test_damage_is_worth_the_share_that_scores_lower(outputs, share):
    # What came back unchanged, and the second of two equal texts, are no damage.
    assert PerturberMetric(Words())(*worsened(*outputs)).score == share


def test_where_lower_is_better_damage_raises_the_number():
    assert PerturberMetric(Words(higher_is_better=False))(*worsened(SHORT, LONG)).score == 0.5
    assert PerturberMetric(Words(higher_is_better=False))(*worsened(LONG, LONG + "!")).score == 1.0


def test_an_equal_score_is_no_lower_one():
    assert PerturberMetric(Words())(*worsened("a b c d e f g h", SHORT)).score == 0.5


def test_what_is_preserved_is_worth_one_minus_the_change_of_the_score():
    # 8 of 20 words score .4, 3 score .15, 11 score .55.
    metric = PerturberMetric(Words())
    assert metric(*preserved(SHORT)).score == pytest.approx(0.75)
    assert metric(*preserved(LONG)).score == pytest.approx(0.85)
    assert metric(*preserved("a b c d e f g h")).score == 1.0


@pytest.mark.parametrize(("output", "declined"), [(None, "All of it counts."), (f" {ORIGINAL}\n", "")])
def test_nothing_changed_is_nothing_shown(output, declined):
    found = PerturberMetric(Words())(*preserved(output, declined))
    assert found.score == 0.0
    assert (declined or "unchanged") in found.feedback


def test_the_feedback_says_which_strategy_the_metric_noticed():
    feedback = PerturberMetric(Words())(*worsened(SHORT, LONG)).feedback
    assert feedback.startswith("1 of 2 damaged outputs score worse than the original.")
    assert "'Pad', worse in 1 of 1: 8 -> 3." in feedback
    assert "'Fill', worse in 0 of 1: 8 -> 11, not worse." in feedback
    assert (
        "'Fill', worse in 0 of 1: the same output as by 'Pad'."
        in PerturberMetric(Words())(*worsened(SHORT, SHORT)).feedback
    )
    assert "The score moved by 0.25: 8 -> 3." in PerturberMetric(Words())(*preserved(SHORT)).feedback


def test_strategies_are_tried_on_the_outputs_that_were_kept(server):
    (episode,) = strategy_episodes(sources(6), TASK, [FACTS], tried=3)
    good = dspy.Prediction(strategies=[Strategy(name="Cut", description="c"), PAD[0]])
    metric = PerturberMetric(Words())
    found = metric(episode, good)
    assert found.score == 0.5  # Cut on each of the three, Pad on none
    assert "3 of 6 damaged outputs" in found.feedback
    assert "'Cut', worse in 3 of 3: 8 -> 4; 8 -> 4; 8 -> 4." in found.feedback
    assert server.requests == metric.usage.requests - 9 == 3  # nine judgements are the stub's
    for prompt in server.prompts:
        assert not any(source.output in episode.examples for source in episode.label.sources)
        assert "[[ ## strength ## ]]\nobvious" in prompt
    weak = dspy.Prediction(strategies=PAD)
    assert metric(episode, weak).score == 0.0


def test_the_metric_and_the_perturber_see_all_texts_of_a_row(server):
    given = [Source(f"Road {n} is shut now", f"Notice {n}", f"By Ann {n}", (f"Shut {n}.",)) for n in range(3)]
    seen = []

    def judged(row, run):
        seen.append((row["input"], row["context"], row["references"]))
        return 1.0

    texts = [(source.input, source.context, list(source.references)) for source in given]
    metric = PerturberMetric(Scripted(judged))
    (episode,) = strategy_episodes(given, TASK, [FACTS], tried=1)
    metric(episode, dspy.Prediction(strategies=PAD))
    (kept,) = [text for source, text in zip(given, texts, strict=True) if source in episode.label.sources]
    assert seen == [kept] * 3
    assert all(text in server.prompts[0] for text in (kept[0], kept[1], kept[2][0]))
    seen.clear()
    (episode,) = perturbation_episodes(given[:1], TASK, FACTS, ["subtle"])
    metric(episode, dspy.Prediction(output="x", declined=""))
    assert seen == texts[:1] * 2


def test_while_dspy_bootstraps_the_answer_is_a_truth_value():
    given = worsened(SHORT, LONG)
    assert PerturberMetric(Words(), success_at=0.5)(*given, []) is True
    assert PerturberMetric(Words(), success_at=0.51)(*given, []) is False
    assert PerturberMetric(Words())(*given, [], "damage", []).score == 0.5


def test_equal_answers_are_measured_once():
    words = Words()
    metric = PerturberMetric(words)
    for _ in range(3):
        metric(*worsened(SHORT, LONG))
    assert len(words.asked) == 3
    metric(*worsened(LONG, SHORT))
    assert len(words.asked) == 6


@pytest.mark.parametrize("failing", [ORIGINAL, "and so on"])
def test_a_failed_judgement_is_no_number(failing):
    metric = PerturberMetric(Words(failing=failing), max_failure_rate=1.0)
    with pytest.raises(JudgementFailed, match="planted"):
        metric(*worsened(SHORT, LONG))
    with pytest.raises(JudgementFailed):
        metric(*preserved(LONG))
    assert metric.failures == 2
    with pytest.raises(ModelFailure):
        PerturberMetric(Words(failing=failing))(*worsened(SHORT, LONG))


def test_a_strategy_that_cannot_be_applied_is_no_number():
    (episode,) = strategy_episodes(sources(4), TASK, [FACTS], tried=2)
    with serve(lambda prompt: {"outputs": []}) as server:
        metric = PerturberMetric(Words(), lm=server.lm())
        with pytest.raises(JudgementFailed, match="0 outputs for 2 strategies"):
            metric(episode, dspy.Prediction(strategies=PAD))
    assert metric.failures == 1
    assert server.requests == metric.usage.requests == 4


@pytest.mark.parametrize(("judge", "each"), [(JUDGE, 1), (Repeated(JUDGE, runs=3), 3)])
def test_the_requests_of_a_measurement_are_known_beforehand(judge, each, kind):
    with serve(answer) as server, dspy.context(lm=server.lm(temperature=1.0)):
        metric = PerturberMetric(judge)
        episode = EPISODES[kind](1, 0)[0]
        bound = metric.requests(episode)
        prediction = kind()(**episode.inputs())
        before = server.requests
        metric(episode, prediction)
    sent = server.requests - before
    assert sent == metric.usage.requests
    if kind is DegradationStrategies:  # one strategy came, three might have
        assert (sent, bound) == (2 + 2 * 2 * each, 2 + 2 * 4 * each)
    else:
        assert sent == bound == (3 if kind is Worsen else 2) * each


def evaluate(student, episodes, metric):
    return dspy.Evaluate(devset=episodes, metric=metric, num_threads=2, display_progress=False)(student).score


def test_gepa_finds_the_better_instruction(kind, server):
    student, learn, select = kind(), EPISODES[kind](2, 0), EPISODES[kind](2, 10)
    metric = PerturberMetric(JUDGE)
    search = dspy.GEPA(
        metric=metric, max_metric_calls=12, reflection_lm=server.lm(), reflection_minibatch_size=2, num_threads=2
    )
    tuned = search.compile(student, trainset=learn, valset=select)
    assert HINT in tuned.predictors()[0].signature.instructions
    assert evaluate(tuned, select, metric) > evaluate(student, select, metric)
    assert metric.failures == 0


def test_mipro_finds_the_better_instruction(kind, server):
    metric = PerturberMetric(JUDGE)
    search = dspy.MIPROv2(
        metric=metric, auto=None, num_candidates=2, max_bootstrapped_demos=1, max_labeled_demos=0,
        prompt_model=server.lm(),
    )  # fmt: skip
    tuned = search.compile(
        kind(), trainset=EPISODES[kind](2, 0), valset=EPISODES[kind](2, 10), num_trials=4, minibatch=False
    )
    assert tuned.predictors()[0].signature.instructions == HINT


BUDGETS = {Worsen: 110, Preserve: 80, DegradationStrategies: 230}


def tuned_within(kind, script, budget):
    """The tuning, the server and the bound."""
    with serve(answer, script=script) as server:
        tuner = JudgeTuner(method="gepa", objective=PerturberMetric(JUDGE), budget=budget, lm=server.lm(), seed=1)
        learn, select = EPISODES[kind](4, 0), EPISODES[kind](4, 10)
        bound = tuner.bound(kind(), learn, select)
        tuned = tuner.compile(kind(), learn, select)
    assert server.wrong == []
    assert type(tuned) is kind
    assert tuned.tuning.usage.requests == server.requests <= bound <= budget
    return tuned.tuning, server


def test_the_tuner_finds_it_within_its_bound(kind):
    tuning, _ = tuned_within(kind, Faults(), BUDGETS[kind])
    assert tuning.replaced
    assert HINT in next(iter(tuning.after.values()))


def test_faults_do_not_break_the_tuners_bound():
    _, server = tuned_within(DegradationStrategies, Faults({Fault.ERROR_500: 0.2}), 230)
    assert server.statuses[500] > 10


def test_what_is_learned_from_cannot_select(kind):
    tuner = JudgeTuner(method="gepa", objective=PerturberMetric(Words()), budget=400, lm=dspy.LM("openai/none"))
    with pytest.raises(OptionError, match="is held out in trainset and valset"):
        tuner.bound(kind(), EPISODES[kind](4, 0), EPISODES[kind](4, 0))


def test_a_copy_starts_anew_with_the_same_options():
    metric = PerturberMetric(Words(), lm="model", success_at=0.8, concurrency=3)
    metric.failures = 4
    twin = copy.deepcopy(metric)
    assert (twin.metric, twin.worsen) == (metric.metric, metric.worsen)
    assert (twin.lm, twin.success_at, twin.scoring, twin.failures) == ("model", 0.8, {"concurrency": 3}, 0)


def test_other_students_and_examples_are_refused():
    episode, _ = preserved("x")
    with pytest.raises(DataError, match="is not from Worsen, Preserve or DegradationStrategies"):
        PerturberMetric(Words())(episode, dspy.Prediction(score=1))
    with pytest.raises(DataError, match="make episodes with strategy_episodes"):
        PerturberMetric(Words())(dspy.Example(examples="x"), dspy.Prediction(strategies=PAD))
    with pytest.raises(OptionError, match="is no metric"):
        PerturberMetric(3)
