"""The reader of HANNA, on a small file of our own writing."""

from __future__ import annotations

import pandas as pd
import pytest

from metricsmith.datasets.hanna import CRITERIA, MEAN, read_hanna
from metricsmith.datasets.history import HistoricalRating, History
from metricsmith.errors import DataError, OptionError
from metricsmith.optimizers.specialist import Specialist
from metricsmith.programs.judges.parrot import ExampleMean
from metricsmith.programs.judges.raters import ExampleJudge
from metricsmith.programs.specialist.choosing import ExamplePolicy
from metricsmith.records import Scale
from metricsmith.studies.specialist.evaluation import evaluate_specialist

SYSTEMS = ("Human", "Fabulist", "Teller")


def annotations() -> pd.DataFrame:
    """Four prompts, three authors, three raters; rater b's ratings are not those of a and c."""
    rows = [
        {
            "Story ID": 3 * prompt + place, "Prompt": f"Write about day {prompt}.", "Human": f"Day {prompt} was wet.",
            "Story": f"{system} says that day {prompt} was long.", "Model": system, "Worker ID": worker,
            **{name: 1 + (prompt + place + number + (worker == "b")) % 5 for number, name in enumerate(CRITERIA)},
        }
        for prompt in range(4) for place, system in enumerate(SYSTEMS) for worker in "abc"
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_ratings_are_averaged_over_raters_and_criteria():
    frame = annotations()
    table = read_hanna(frame)
    one = frame[frame["Story ID"] == 4]
    row = next(row for row in table.rows if row.id == "4")
    assert (len(table), row.system, row.input) == (12, "Fabulist", "Write about day 1.")
    assert row[MEAN] == pytest.approx(one[list(CRITERIA)].to_numpy().mean())
    assert table.task.scale == Scale(1, 5)
    assert sorted(table.raters) == ["a", "b", "c"]
    assert len(set(table.groups)) == 4


def test_one_criterion_and_stories_by_systems_alone():
    frame = annotations()
    table = read_hanna(frame, "Empathy", human=False)
    assert {row.system for row in table.rows} == {"Fabulist", "Teller"}
    for row in table.rows:
        assert row["Empathy"] == pytest.approx(frame[frame["Story ID"].astype(str) == row.id]["Empathy"].mean())


def test_a_wrong_criterion_column_or_rating_is_named():
    with pytest.raises(OptionError, match=r"unknown criterion 'Coherance'.*'Coherence'"):
        read_hanna(annotations(), "Coherance")
    with pytest.raises(DataError, match="no column 'Worker ID'"):
        read_hanna(annotations().drop(columns="Worker ID"))
    frame = annotations()
    frame.loc[3, "Surprise"] = 6
    with pytest.raises(DataError, match="'Surprise'"):
        read_hanna(frame)


def test_a_specialist_for_stories_is_asked_with_two_decimals():
    history = History.from_table(read_hanna(annotations()))
    judge = ExampleJudge(measure="Quality", task="Write a story.", scale=Scale(1, 5), decimals=True)
    assert judge.card.asked == "1 to 5 with two decimals, as averages of ratings have them"
    specialist = Specialist(ExamplePolicy(rater="any")).compile(judge, history)
    system, *turns = specialist.messages(history.rows()[0])
    assert "a number from 1 to 5 with two decimals; 5 is best" in system["content"]
    shown = [turn["content"] for turn in turns if turn["role"] == "assistant"]
    wanted = [round(one.rating, 2) for one in history.ratings if one.source == history.ratings[0].source][1:]
    assert sorted(float(text.split("[[ ## score ## ]]\n")[1].split()[0]) for text in shown) == sorted(wanted)
    assert len(turns) == 2 * len(wanted) + 1


def test_the_mean_of_other_stories_on_the_public_ratings(shared_data):
    """Counts and figures need no text; the figures were computed anew with pandas (`groupby` less the own rating)."""
    frame = pd.read_csv(shared_data / "hanna_scores_dev.csv.gz")
    frame = frame[["prompt_index", "system", "story_id", *CRITERIA]].assign(mean=frame[list(CRITERIA)].mean(axis=1))
    for human, count in ((True, 10.0), (False, 9.0)):
        part = frame if human else frame[frame["system"] != "Human"]
        for name in ("Coherence", "mean"):
            sums, sizes = (part.groupby("prompt_index")[name].transform(how) for how in ("sum", "size"))
            others = ((sums - part[name]) / (sizes - 1)).round(9)  # equal means tie
            ratings = tuple(
                HistoricalRating(f"prompt {prompt}", system, f"story {story}", rating=rating)
                for prompt, system, story, rating in zip(
                    part["prompt_index"], part["system"], part["story_id"], part[name], strict=True
                )
            )
            history = History(ratings, "HANNA", Scale(1, 5))
            for measure in ("pearson", "spearman"):
                found = evaluate_specialist(
                    ExampleMean(), history, {"others": ExamplePolicy(rater="any")}, measure=measure, progress=False
                ).results[0]
                assert found.examples == count
                assert found.value == pytest.approx(others.corr(part[name], method=measure), abs=1e-9)
