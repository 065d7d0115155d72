"""The ferry line's world: its reward is earned by the gold actions and by obeying the rules, and by nothing less."""

from __future__ import annotations

import json
import random
import re
from concurrent.futures import ThreadPoolExecutor

import pandas
import pytest
from agent_reward.customer import GOODBYE, TOPICS, reply
from agent_reward.episodes import CALL, Call, Episode
from agent_reward.policy import POLICY, RULES, broken, is_told
from agent_reward.scripted import run_steps, steps
from agent_reward.tasks import tasks
from agent_reward.tools import TOOLS, book, cancel_booking, give_voucher, move_booking, new_database, state_of
from agent_reward.world import MOST_TURNS, ServiceWorld

from metricsmith.data import read_taubench
from metricsmith.errors import DataError, OptionError

WORLD = ServiceWorld()
ALL = (*WORLD.tasks["train"], *WORLD.tasks["test"])
DECIDED = [(rule, task) for rule in RULES for task in ALL if rule in tasks()[task].rules]

IDLE = ("train-02", "test-02")
"""Nothing is to be changed or told: the customer declines the fee. One task of twenty on either side."""

TRANSFER = ("train-01", "test-01")
"""A transfer is all: the customer is not the holder. One task of twenty on either side."""


def played(task, obeyed=RULES, *, seed=0, world=WORLD):
    session = world.start(task, seed)
    run_steps(session, steps(tasks()[task], obeyed))
    return session.close()


def replayed(task):
    """The gold actions, then the facts, unless a transfer has to come last."""
    session = WORLD.start(task)
    tools = session.tools
    if tasks()[task].facts and not any(name == "book" for name, *_ in tasks()[task].gold):
        session.say(f"It is {' and '.join(tasks()[task].facts)}.")
    for name, *arguments in tasks()[task].gold:
        answer = json.loads(tools[name](**dict(zip(tools[name].args, arguments, strict=True))))
        if name == "book":
            session.say(f"Booked: {answer['booking']}.")
    return session.close()


def test_the_world_has_the_size_that_the_page_says():
    db = new_database()
    assert [len(db[table]) for table in ("customers", "bookings", "connections")] == [20, 40, 30]
    assert [len(WORLD.tasks[side]) for side in ("train", "test")] == [20, 20]
    assert (len(TOOLS), len(RULES)) == (8, 6)
    assert all(sentence in POLICY for sentence in RULES.values())
    assert {booking["customer"] for booking in db["bookings"].values()} == set(db["customers"])


@pytest.mark.parametrize("task", ALL)
def test_the_gold_actions_earn_the_reward(task):
    episode = replayed(task)
    assert (episode.reward, episode.lacks) == (1, ())


@pytest.mark.parametrize("task", ALL)
def test_an_agent_that_obeys_all_rules_earns_the_reward_and_breaks_none(task):
    episode = played(task)
    assert (episode.reward, episode.lacks, broken(episode)) == (1, (), ())


@pytest.mark.parametrize(("rule", "task"), DECIDED)
def test_a_single_breach_of_a_rule_that_decides_earns_nothing_and_is_named(rule, task):
    episode = played(task, set(RULES) - {rule})
    assert episode.reward == 0
    assert episode.lacks[0] == f"{rule}: {RULES[rule]}"
    assert broken(episode) == (rule,)


@pytest.mark.parametrize("task", ALL)
def test_rules_that_do_not_decide_a_task_may_be_broken_there(task):
    assert played(task, tasks()[task].rules).reward == 1


@pytest.mark.parametrize("side", ["train", "test"])
def test_each_rule_decides_three_tasks_of_a_side_and_eight_are_decided_by_none(side):
    of_side = [tasks()[task] for task in WORLD.tasks[side]]
    assert {rule: sum(rule in task.rules for task in of_side) for rule in RULES} == dict.fromkeys(RULES, 3)
    assert [played(task.id, ()).reward for task in of_side] == [float(not task.rules) for task in of_side]
    assert sum(not task.rules for task in of_side) == 8


def test_doing_nothing_and_transferring_at_once_earn_the_stated_tasks_only():
    def transferred(task):
        session = WORLD.start(task)
        session.tools["transfer_to_human"](reason="I hand you over")
        return session.close()

    assert tuple(task for task in ALL if WORLD.start(task).close().reward) == IDLE
    assert tuple(task for task in ALL if transferred(task).reward) == TRANSFER


def test_a_reward_of_nothing_is_explained_and_a_fact_that_was_not_told_named():
    assert WORLD.start("train-14").close().lacks == ("The customer was not told 17:14.",)
    (why,) = WORLD.start("train-13").close().lacks
    assert "not those that the wishes lead to" in why


def test_the_same_seed_gives_the_same_rollouts_and_another_another_greeting():
    first, second = ([played(task, seed=3) for task in ALL] for _ in range(2))
    assert first == second
    other = [played(task, seed=4) for task in ALL]
    assert all(
        one.messages[0] != two.messages[0] and one.state == two.state for one, two in zip(first, other, strict=True)
    )


def test_32_threads_leave_the_databases_of_the_serial_run():
    work = [(task, rule) for task in ALL for rule in (None, *RULES)] * 2
    random.Random(5).shuffle(work)
    serial = [played(task, set(RULES) - {rule}) for task, rule in work]
    with ThreadPoolExecutor(32) as pool:
        threaded = list(pool.map(lambda one: played(one[0], set(RULES) - {one[1]}), work))
    assert [episode.state for episode in threaded] == [episode.state for episode in serial]
    assert threaded == serial


QUESTIONS = {
    "name": "What is your full name?",
    "born": "Please tell me the date of birth of the holder.",
    "booking": "Could you give me the booking number?",
    "crossing": "To which crossing shall I move it?",
    "passengers": "For how many people is it?",
    "fare": "Would you like saver or flex?",
    "refund": "Shall it come back as money or as a voucher?",
    "fee": "That costs a fee of 15 euros. Do you agree?",
    "refused": "It was moved before and can’t be moved again.",
}
SILENT = (
    "I have looked your booking up and see your name, your date of birth and when you sail.",
    "The voucher was added, with no charges to you and nothing to refund.",
    "How is the weather with you?",
    "Your crossing is booked for all passengers.",
    "I can't change anything before I know your date of birth. Could you tell me?",
    "There is no fee for that. All right?",
)


@pytest.mark.parametrize("task", ALL)
def test_customers_tell_what_is_asked_and_nothing_else(task):
    session = WORLD.start(task)
    says = {"name": "My name is ", "born": "I was born on "} | dict(tasks()[task].says)
    for said in SILENT:
        assert session.say(said) in ("All right.", "That I do not know.")
    for topic, question in QUESTIONS.items():
        answer = session.say(question)
        for other, known in says.items():
            assert (known in answer) == (other == topic), (topic, other, answer)
    assert session.say("Is there anything else?") == GOODBYE
    assert session.over


@pytest.mark.parametrize("task", ALL)
def test_the_opening_holds_neither_booking_nor_date_of_birth(task):
    assert not re.search(r"\bB\d\d\b|\b19\d\d-", tasks()[task].opening)
    assert set(tasks()[task].says) <= set(TOPICS)


def test_a_customer_answers_several_questions_at_once_and_admits_not_to_know():
    says = {"name": "I am Ada.", "booking": "It is B01."}
    assert reply(says, "Please give me your full name and the booking number.") == ("I am Ada. It is B01.", False)
    assert reply(says, "Which fare did you book?") == ("That I do not know.", False)


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("Could you please provide your booking reference and your date of birth?", {"booking", "born"}),
        ("May I have the holder's name and DOB?", {"name", "born"}),
        ("What is the date of birth?", {"born"}),
        ("What new date and time would suit you?", {"crossing"}),
        ("Let me know which sailing you prefer.", {"crossing"}),
        ("Moving it incurs a charge of €15. Shall I go ahead?", {"fee"}),
        ("I'm unable to change this booking a second time.", {"refused"}),
        ("It cannot be changed, as it was moved before.", {"refused"}),
        ("I cannot move it until I have checked that. What is the date of birth?", {"born"}),
        ("Without your name I can't move it. What is your name?", {"name"}),
        ("I cannot find that booking to move it.", set()),
        ("There is no fee for that. Which crossing do you want?", {"crossing"}),
        ("There is no fee for flex, and a fee of 15 euros here. Do you agree?", {"fee"}),
        ("I cannot find that booking.", set()),
        ("I will move it free of charges.", set()),
        ("Your new date is noted, and the voucher is on its way.", set()),
    ],
)
def test_a_question_is_understood_in_other_words(text, topics):
    answer, over = reply({topic: f"<{topic}>" for topic in TOPICS}, text)
    assert set(re.findall("<(.*?)>", answer)) == topics
    assert not over


def test_nothing_happens_after_a_transfer():
    session = WORLD.start("train-13")
    session.tools["transfer_to_human"](reason="a test")
    assert session.over
    assert session.say("Are you still there?") == ""
    assert session.tools["cancel_booking"](booking="B25", refund="money").startswith(
        "Error: the conversation was handed"
    )
    assert session.close().lacks == (
        "The bookings, vouchers and transfers at the end are not those that the wishes lead to.",
    )


def test_what_was_promised_can_be_done_after_the_customers_leave():
    """Agents ask "anything else?" before they act, too."""
    task = "train-13"
    session = WORLD.start(task)
    assert session.say("I cancel it now. Is there anything else?") == GOODBYE
    assert session.over
    assert session.say("It is done.") == ""
    for name, *arguments in tasks()[task].gold:
        session.tools[name](**dict(zip(session.tools[name].args, arguments, strict=True)))
    assert session.close().reward == 1


def test_a_customer_hangs_up_at_last():
    session = WORLD.start("train-13")
    for _ in range(MOST_TURNS):
        assert not session.over
        session.say("Hm.")
    assert session.over


@pytest.mark.parametrize(
    ("fact", "text", "told"),
    [
        ("14", "It costs 14.", True),
        ("14", "14 euros", True),
        ("14", "(14)", True),
        ("14", "That is €14.00.", True),
        ("14", "It costs 140.", False),
        ("14", "It costs 214.", False),
        ("14", "It leaves at 14:30.", False),
        ("14", "It leaves at 9:14.", False),
        ("14", "It costs 14.50 or 1,14.", False),
        ("14", "On 2027-06-14.", False),
        ("B41", "Your number is b41.", True),
        ("B41", "Your number is B410.", False),
        ("09:34", "At 09:34, as ever.", True),
        ("09:34", "At 09:345.", False),
        ("09:34", "At 9:34 AM.", True),
        ("09:34", "At 9:34 PM or 19:34.", False),
        ("17:14", "17:14-19:02", True),
        ("19:02", "17:14-19:02", True),
        ("17:14", "At 5:14 PM.", True),
        ("17:14", "At 5:14 p.m.", True),
        ("17:14", "At 5:14, 5:14 AM or 15:14 pm.", False),
        ("15:31", "departs 2027-06-16T15:31", True),
        ("15:31", "departs 2027-06-16T15:31:00", True),
        ("15:31", "At 15:31:20.", False),
        ("27", "EUR27", True),
        ("27", "27EUR", True),
        ("27", "27€", True),
        ("27", "27EURX, 27E, EUR270 or EUR2.27", False),
        ("14", "2027-06-16T14", False),
    ],
)
def test_a_fact_is_told_as_a_whole_token(fact, text, told):
    assert is_told(fact, text) is told


def episode_of(*turns):
    """An episode by hand: ``(role, text)``, or ``(tool, arguments, answer)``."""
    messages, calls = [], []
    for turn in turns:
        if len(turn) == 2:
            messages.append({"role": turn[0], "content": turn[1]})
        else:
            answer = turn[2] if isinstance(turn[2], str) else json.dumps(turn[2])
            calls.append(Call(turn[0], turn[1], answer))
            messages += [{"role": "assistant", "content": f"{CALL}{turn[0]}"}, {"role": "tool", "content": answer}]
    return Episode("by hand", tuple(messages), tuple(calls), 0.0, "")


SEEN = {"booking": "B09", "born": "1970-02-08", "customer": "C05", "passengers": 2, "fare": "saver", "left": "runs"}
MOVED = ("move_booking", {}, {**SEEN, "moved": 1, "fee_paid": 15})
CANCELLED = ("cancel_booking", {}, {**SEEN, "moved": 1, "refund": "voucher"})
OFF = ("cancel_booking", {}, {**SEEN, "moved": 0, "refund": "money", "left": "called off"})
KNOWN = ("user", "I was born on 1970-02-08.")
ASKED, YES = ("assistant", "The fee is 15 euros. Do you agree?"), ("user", "Yes, I do.")
NEW = ("book", {}, {"booking": "B41"})


@pytest.mark.parametrize(
    ("rules", "turns"),
    [
        ((), [KNOWN, ASKED, YES, MOVED]),
        (("identity",), [("user", "I was born on 1970-02-09."), ASKED, YES, MOVED]),
        (("identity",), [ASKED, YES, MOVED, KNOWN]),
        (("identity",), [ASKED, YES, ("assistant", "You were born on 1970-02-08."), MOVED]),
        (("confirm",), [KNOWN, MOVED, ASKED, YES]),
        (("confirm",), [KNOWN, ASKED, ("user", "No, I do not."), MOVED]),
        (("confirm",), [KNOWN, ("assistant", "There is a fee. Do you agree?"), YES, MOVED]),
        ((), [KNOWN, CANCELLED]),
        (("refund",), [KNOWN, ("cancel_booking", {}, {**CANCELLED[2], "refund": "money"})]),
        ((), [KNOWN, ("cancel_booking", {}, {**CANCELLED[2], "refund": "money", "fare": "flex"})]),
        (("goodwill",), [KNOWN, OFF]),
        ((), [KNOWN, OFF, ("give_voucher", {"customer": "C05", "euros": 20}, {})]),
        (("goodwill",), [KNOWN, OFF, ("give_voucher", {"customer": "C05", "euros": 10}, {})]),
        (("goodwill",), [KNOWN, OFF, ("give_voucher", {"customer": "C05", "euros": 20}, "Error: no such customer")]),
        (("once",), [KNOWN, ASKED, YES, ("move_booking", {}, {**MOVED[2], "moved": 2})]),
        ((), [KNOWN, ("move_booking", {}, "Error: there is no 'B99'")]),
        ((), [NEW, ("assistant", "Your booking is B41.")]),
        (("number",), [NEW, ("assistant", "You are booked.")]),
        (("number",), [("assistant", "It will be B41."), NEW]),
        (("identity", "number"), [CANCELLED, NEW]),
    ],
)
def test_the_breaches_of_an_episode_are_read_from_its_messages_and_calls(rules, turns):
    assert broken(episode_of(*turns)) == rules


def test_the_hash_is_of_the_contents_alone_and_a_refused_call_leaves_them():
    one, two = new_database(), new_database()
    give_voucher(one, "C01", 5)
    cancel_booking(one, "B25", "money")
    cancel_booking(two, "B25", "money")
    two["customers"] = dict(reversed(two["customers"].items()))
    assert state_of(one) != state_of(two)
    give_voucher(two, "C01", 5)
    assert state_of(one) == state_of(two)
    for refused in (
        lambda: cancel_booking(one, "B25", "money"),  # it no longer stands
        lambda: move_booking(one, "B01", "F01"),  # to another port
        lambda: move_booking(one, "B22", "F09"),  # called off
        lambda: book(one, "C01", "F01", 34, "flex"),  # 33 seats
        lambda: book(one, "C99", "F01", 1, "flex"),
        lambda: give_voucher(one, "C01", 0),
    ):
        with pytest.raises(DataError):
            refused()
    assert state_of(one) == state_of(two)


def test_a_voucher_instead_of_money_is_credited_to_the_holder():
    db = new_database()
    assert json.loads(cancel_booking(db, "B05", "voucher"))["euros"] == 42  # two passengers at 21 euros
    assert db["customers"]["C03"]["voucher"] == 42
    assert json.loads(move_booking(db, "B03", "F20"))["fee_paid"] == 15  # saver
    assert json.loads(move_booking(db, "B29", "F22"))["fee_paid"] == 0  # flex


def test_wrong_arguments_of_a_tool_are_an_answer_that_says_what_to_do():
    session = WORLD.start("train-13")
    tools = session.tools
    assert "did you mean 'B25'" in tools["get_booking"](booking="B025")
    assert "missing 1 required positional argument: 'refund'" in tools["cancel_booking"](booking="B25")
    assert "unexpected keyword argument 'on'" in tools["cancel_booking"](booking="B25", refund="money", on="Monday")
    assert "did you mean 'Ada Tveit'" in tools["find_customer"](name="Ada Tveit.")
    assert json.loads(tools["find_customer"](name="ada tveit"))["bookings"] == ["B01", "B02"]
    wanted = {"origin": "Norhavn", "destination": "lyra", "date": "2027-06-13"}
    assert len(json.loads(tools["find_connections"](**wanted))["connections"]) == 2
    assert "Error: euros is '20'; it must be a whole number" in tools["give_voucher"](customer="C03", euros="20")
    assert tools["get_booking"](booking=["B25"]) == "Error: unhashable type: 'list'"
    assert session.calls[-2].arguments == {"customer": "C03", "euros": "20"}
    assert [call.tool for call in session.calls][1:3] == ["cancel_booking"] * 2  # refused calls are recorded
    with pytest.raises(DataError, match="allowed are 'money' and 'voucher'"):
        cancel_booking(new_database(), "B25", "cash")


def test_a_task_that_is_not_there_is_refused_with_the_nearest():
    with pytest.raises(OptionError, match="did you mean 'train-"):
        WORLD.start("train-1")
    with pytest.raises(OptionError, match="no task 'nowhere'"):
        ServiceWorld({"train-01": "nowhere"})


def test_an_episode_judged_as_another_task_earns_that_tasks_reward():
    world = ServiceWorld({"train-13": "train-02", "train-02": "train-13"})
    assert played("train-13", world=world).reward == 0
    assert world.start("train-13").close().reward == 1  # nothing is to be done in train-02
    (why,) = played("train-02", (), world=world).lacks  # train-13 is decided by no rule, so none is named
    assert "not those that the wishes lead to" in why


def test_episodes_are_read_as_recorded_runs():
    episodes = [played(task, obeyed) for task in ALL[:8] for obeyed in ((), RULES)]
    rows = [
        {"id": episode.task, "user_query": episode.messages[0]["content"], "messages": list(episode.messages),
         "reward": episode.reward}
        for episode in episodes
    ]  # fmt: skip
    table = read_taubench(pandas.DataFrame(rows))
    assert len(table) == 16
    assert len(set(table.groups)) == 8
