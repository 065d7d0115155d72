"""Two versions of outputs: rows that pair, values that count, slices, components, and the pairs that moved most."""

from __future__ import annotations

import math
from dataclasses import replace

import dspy
import numpy as np
import pandas as pd
import pytest
from dspy.utils import DummyLM

from metricsmith.bank.catalogue import default_bank
from metricsmith.datasets.sources import RawTable
from metricsmith.errors import DataError, ModelFailure, OptionError
from metricsmith.programs.judges.choice import ChoiceJudge
from metricsmith.programs.judges.criterion import CriterionJudge
from metricsmith.programs.judges.panel import Panel
from metricsmith.records import Output, Status
from metricsmith.reports import Versus, versus
from metricsmith.studies.versus import paired_versions
from metricsmith.testing import GivenJudge
from saved import induced

WORTH = {"poor": 2.0, "fair": 3.0, "good": 4.0}


def worth(row):
    return WORTH.get(row.output.split()[0], Status.REFUSED)


JUDGE = GivenJudge(worth)


def table(words, **columns):
    """Outputs that begin with these words, each to an input of its own, with ids."""
    size = len(words)
    return pd.DataFrame(
        {"id": [f"r{k}" for k in range(size)], "question": [f"Question {k}?" for k in range(size)],
         "answer": [f"{word} {k}" for k, word in enumerate(words)], **columns}
    )  # fmt: skip


BEFORE = table(["poor", "fair"] * 10)
AFTER = table(["fair"] * 10 + ["good"] * 10)


def pairs(first, second, **options):
    return paired_versions(JUDGE, first, second, **options)


def paired_texts(found):
    return [(a.output, b.output) for a, b in found.rows]


def test_rows_pair_by_id_whatever_their_order():
    found = pairs(BEFORE, AFTER.sample(frac=1, random_state=0))
    assert found.ids == [f"r{k}" for k in range(20)]
    assert paired_texts(found)[:2] == [("poor 0", "fair 0"), ("fair 1", "fair 1")]
    assert (found.paired_by, found.left_out) == ("the column 'id'", {})


def test_the_mean_difference_and_its_verdict():
    found = versus(JUDGE, BEFORE, AFTER, progress=False)
    assert isinstance(found, Versus)
    # 2, 3, 2, 3 ... against 3 ten times and 4 ten times: 3.5 - 2.5.
    assert (found.whole.first, found.whole.second, found.whole.value) == (2.5, 3.5, 1.0)
    assert (found.whole.n, found.whole.groups, found.whole.verdict) == (20, 20, "better")
    assert (found.target, found.width, found.components) == ("given", 4.0, ())
    assert versus(JUDGE, AFTER, BEFORE, progress=False).whole.verdict == "worse"


def test_where_lower_is_better_a_rise_is_worse():
    judge = GivenJudge(worth, output=Output("errors", 1, 5, higher_is_better=False))
    found = versus(judge, BEFORE, AFTER.assign(answer=["poor 0", "poor 1", *AFTER["answer"][2:]]), progress=False)
    assert found.whole.verdict == "worse"
    assert [pair.change for pair in found.moved] == [-1.0, 2.0, 2.0, 2.0, 2.0, 2.0]  # what gained stands first


def test_a_metric_that_is_better_neither_way_is_refused_before_anything_is_asked():
    judge = GivenJudge(worth, output=Output("either", 1, 5, higher_is_better=None))
    with pytest.raises(OptionError, match="better neither way"):
        versus(judge, BEFORE, AFTER, progress=False)
    assert judge.asked == []


def test_a_panel_gives_several_numbers_and_is_refused():
    panel = Panel([CriterionJudge(criterion=name, meaning="Good.", task="Answer.") for name in ("Tone", "Facts")])
    with pytest.raises(OptionError, match="several numbers"):
        versus(panel, BEFORE, AFTER)
    with pytest.raises(OptionError, match="several numbers"):
        versus(ChoiceJudge(["yes", "no"], "Is it?", "Answer.", name="tone"), BEFORE, AFTER)


def test_a_bank_metric_goes_by_its_name_and_is_measured_on_its_own_numbers():
    found = versus("output_words", BEFORE, AFTER.assign(answer=AFTER["answer"] + " and more"), progress=False)
    assert (found.metric, found.whole.value) == ("output_words", 2.0)


def test_rows_pair_by_input_without_ids_and_the_kth_with_the_kth():
    first = BEFORE.drop(columns="id").assign(question=["Same?"] * 2 + [f"Q{k}" for k in range(2, 20)])
    second = AFTER.drop(columns="id").assign(question=["Q3", "Same?", "Same?", *(f"R{k}" for k in range(3, 20))])
    found = pairs(first, second)
    assert paired_texts(found) == [("poor 0", "fair 1"), ("fair 1", "fair 2"), ("fair 3", "fair 0")]
    assert found.paired_by == "the input's text (of 1 that repeat, the k-th with the k-th)"
    assert found.groups[0] == found.groups[1] != found.groups[2]
    assert {why: len(names) for why, names in found.left_out.items()} == {
        "rows of A pair with none": 17, "rows of B pair with none": 17,
    }  # fmt: skip


def test_one_instruction_pairs_rows_by_their_context_and_several_systems_pair_each_with_itself():
    texts = [f"About {k}." for k in range(20)]
    told = {"question": "Summarise.", "passage": texts}
    first, second = BEFORE.drop(columns="id").assign(**told), AFTER.drop(columns="id").assign(**told)
    found = pairs(first, second[::-1])
    assert found.paired_by == "the input's text, context"
    assert all(a.context == b.context for a, b in found.rows)
    looked_up = pairs(first, second[::-1].assign(passage=[f"Found {k}." for k in range(20)]))
    assert looked_up.paired_by == "the input's text (of 1 that repeat, the k-th with the k-th)"
    several = pd.concat([BEFORE.assign(system="s"), AFTER.assign(system="t")]).drop(columns="id")
    again = pairs(several, several[::-1])
    assert again.paired_by == "the input's text, system"
    assert all((a.output, a.system) == (b.output, b.system) for a, b in again.rows)


def test_a_blank_id_is_named_by_its_row():
    found = pairs(BEFORE.assign(id=["", *BEFORE["id"][1:]]), AFTER)
    assert found.left_out == {"rows of A pair with none": ("row 1",), "rows of B pair with none": ("r0",)}


def test_ids_that_have_nothing_in_common_leave_it_to_the_input():
    found = pairs(BEFORE, AFTER.assign(id=[f"other {k}" for k in range(20)]))
    assert (found.paired_by, len(found.rows)) == ("the input's text", 20)


def test_a_few_rows_that_are_new_do_not_change_the_way_of_pairing():
    found = pairs(BEFORE, AFTER.assign(id=[*(f"r{k}" for k in range(15)), *(f"new {k}" for k in range(5))]))
    assert (found.paired_by, len(found.rows)) == ("the column 'id'", 15)
    assert found.left_out["rows of B pair with none"] == tuple(f"new {k}" for k in range(5))


def test_an_id_that_a_table_has_twice_pairs_nothing_and_is_named():
    first, second = (one.drop(columns="question") for one in (BEFORE, AFTER))
    found = pairs(first, second.assign(id=["r1", *(f"r{k}" for k in range(1, 20))]))
    assert found.ids == [f"r{k}" for k in range(2, 20)]
    assert found.left_out["ids stand several times in a table and pair nothing"] == ("r1",)


def test_a_guessed_id_with_another_input_pairs_nothing_but_a_named_one_does():
    second = AFTER.assign(question=["Quite another?", *AFTER["question"][1:]])
    found = pairs(BEFORE, second)
    assert len(found.rows) == 19
    (why,) = [why for why in found.left_out if "different inputs" in why]
    assert found.left_out[why] == ("r0",)
    assert len(pairs(BEFORE, second, id="id").rows) == 20


def test_any_column_of_both_pairs_if_it_is_named():
    first, second = (one.assign(ticket=range(100, 120)).drop(columns="id") for one in (BEFORE, AFTER))
    found = pairs(first, second.drop(columns="question").iloc[::-1], id="ticket")
    assert found.paired_by == "the column 'ticket'"
    assert paired_texts(found)[0] == ("poor 0", "fair 0")


@pytest.mark.parametrize(
    ("second", "options", "said"),
    [
        (AFTER.assign(id="", question="Other?"), {}, "no row of .* pairs .*id=... \\(--id\\)"),
        (AFTER.drop(columns=["id", "question"]), {}, "no row of .* pairs"),
        (AFTER, {"id": "tickets"}, "no column 'tickets'"),
        (AFTER, {"by": "langage"}, "no column 'langage'.*did you mean|no column 'langage'"),
        (AFTER.iloc[:0], {}, "empty"),
        (AFTER, {"reading": {"output": "reply"}}, "no column 'reply'"),
    ],
)
def test_tables_that_cannot_be_paired_say_why(second, options, said):
    with pytest.raises(DataError, match=said):
        pairs(BEFORE.assign(language="en"), second, **options)


def test_a_pair_without_a_value_on_a_side_is_left_out_and_named():
    second = AFTER.assign(answer=["oh no", *AFTER["answer"][1:]])
    found = versus(JUDGE, BEFORE, second, progress=False, max_failure_rate=1.0)
    assert (found.whole.n, found.whole.missing) == (19, 0)
    assert found.left_out == {"pairs have no value on a side": ("r0",)}
    assert found.warnings == ()
    many = versus(
        JUDGE, BEFORE, AFTER.assign(answer=[*["oh no"] * 4, *AFTER["answer"][4:]]), progress=False, max_failure_rate=1.0
    )
    assert "4 of 20 pairs have no value (0 of A, 4 of B)" in many.warnings[0]


def test_no_pair_with_a_value_is_an_error_that_says_the_first_reason():
    with pytest.raises(ModelFailure, match="none of 20 pairs has a value on both sides; the first without"):
        versus(JUDGE, BEFORE, AFTER.assign(answer="oh no"), progress=False, max_failure_rate=1.0)
    with pytest.raises(DataError, match="none of 20 pairs"):
        versus("bleu", BEFORE, AFTER, progress=False)  # no references


def test_a_slice_for_each_value_with_holms_correction():
    found = versus(JUDGE, BEFORE.assign(language=["en"] * 12 + ["de"] * 8), AFTER, by="language", progress=False)
    assert [(one.name, one.n) for one in found.slices] == [("en", 12), ("de", 8)]
    # en: 3 ten times and 4 twice against 2.5; de: 4 against 2.5.
    assert [one.value for one in found.slices] == pytest.approx([8 / 12, 1.5])
    low = min(one.p_value for one in found.slices)
    assert min(one.p_adjusted for one in found.slices) == pytest.approx(2 * low)
    assert found.whole.p_adjusted == found.whole.p_value


def test_pairs_whose_two_cells_differ_stand_in_no_slice():
    first = BEFORE.assign(language=["en"] * 20)
    second = AFTER.assign(language=["de", *["en"] * 18, ""])
    found = versus(JUDGE, first, second, by="language", progress=False)
    assert [(one.name, one.n) for one in found.slices] == [("en", 18)]
    assert "2 pairs stand in no slice: A and B differ in 'language'" in found.notes


def test_a_column_with_a_value_for_each_row_is_no_slice():
    words = ["poor"] * 40
    with pytest.raises(OptionError, match="40 values over 40 pairs, at most 30"):
        pairs(table(words), table(words), by="id")


def test_the_model_that_was_given_is_the_one_that_is_told():
    class Asking(GivenJudge):
        @property
        def card(self):
            return replace(super().card, needs=("model",))

    given, other = DummyLM([]), DummyLM([])
    given.model, other.model = "given/one", "other/one"
    with dspy.context(lm=other):
        found = versus(Asking(worth), BEFORE, AFTER, lm=given, progress=False)
        assert versus(Asking(worth), BEFORE, AFTER, progress=False).model == "other/one"
    assert found.model == "given/one"
    assert "model given/one" in found.signature


def test_groups_and_slices_stand_in_the_signature():
    first = BEFORE.assign(source_id=["s0", "s0", *(f"s{k}" for k in range(1, 19))])
    one, other = (versus(JUDGE, before, AFTER, progress=False).signature for before in (BEFORE, first))
    assert "in 20 groups, columns" in one
    assert "in 19 groups, columns" in other
    assert one.split("columns ")[1] != other.split("columns ")[1]


def test_pairs_of_one_source_in_either_table_are_one_group():
    first = BEFORE.assign(source_id=["s0", "s0", *(f"s{k}" for k in range(1, 19))])
    found = pairs(first, AFTER)
    assert found.groups[0] == found.groups[1]
    assert len(set(found.groups.tolist())) == 19
    assert len(set(pairs(BEFORE, first).groups.tolist())) == 19


def test_the_pairs_that_moved_most_come_with_their_texts_and_reasons():
    found = versus(JUDGE, BEFORE, AFTER, progress=False)
    # +2 where a poor answer became a good one: places 10, 12, 14, 16, 18; nothing fell.
    assert [pair.first.id for pair in found.moved] == ["r10", "r12", "r14", "r16", "r18"]
    assert [pair.change for pair in found.moved] == [2.0] * 5
    assert found.moved[0].first.cells == {"input": "Question 10?", "output": "poor 10"}
    assert found.moved[0].second.cells["output"] == "good 10"
    assert found.moved[0].second.prediction.raw == 4.0
    back = versus(JUDGE, AFTER, BEFORE, progress=False)
    assert [pair.change for pair in back.moved] == [-2.0] * 5


def test_ratings_of_several_raters_do_not_merge_rows():
    rated = BEFORE.assign(rating=3, rater=["x", "y"] * 10)
    assert len(pairs(rated, AFTER, reading={"target": "rating"}).rows) == 20


def test_conditions_choose_rows_of_both():
    first, second = (one.assign(language=["en", "de"] * 10) for one in (BEFORE, AFTER))
    found = pairs(first, second, by="language", reading={"where": "language=de"})
    assert (len(found.rows), set(found.values)) == (10, {"de"})
    assert found.ids == [f"r{k}" for k in range(1, 20, 2)]


def test_the_same_table_twice_is_a_warning():
    found = versus(JUDGE, BEFORE, BEFORE, progress=False)
    assert found.warnings == ("A and B are the same table",)
    assert (found.whole.value, found.whole.wins.tied, found.whole.verdict, found.moved) == (0.0, 1.0, "undecided", ())


def test_components_add_up_to_the_whole():
    bank = default_bank()
    metric = induced([bank.get("output_words"), bank.get("fkgl"), bank.get("rouge1_r")])
    metric.settings.values["reading"] = {}
    second = AFTER.assign(answer=[f"{text} and {'so on ' * (k % 5)}" for k, text in enumerate(AFTER["answer"])])
    found = versus(metric, BEFORE, second, progress=False)  # without references one component counts as average
    assert [one.name for one in found.components] == ["output_words", "fkgl", "rouge1_r"]
    assert math.fsum(one.value for one in found.components) == pytest.approx(found.whole.value)
    assert found.components[2].value == 0
    assert found.target == "rating"


def test_a_run_that_is_cut_short_leaves_whole_pairs():
    assert [row.output for row in pairs(BEFORE, AFTER).every][:4] == ["poor 0", "fair 0", "fair 1", "fair 1"]


def test_raw_tables_are_read_as_they_are():
    raw = RawTable("given", {"id": ["a", "b"], "answer": ["x", "y"]}, (1, 2), (), "0" * 16)
    assert pairs(raw, raw).ids == ["a", "b"]


def test_the_record_is_json_ready():
    content = versus(JUDGE, BEFORE, AFTER.iloc[:3], progress=False).as_dict()
    assert content["verdict"] == "undecided"
    assert content["whole"]["value"] == pytest.approx(2 / 3)
    assert content["moved"][0]["first"]["cells"]["output"] == "poor 0"
    assert not any(isinstance(value, float) and np.isnan(value) for value in content["whole"].values())
