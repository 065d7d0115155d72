"""A table that is read piece by piece has the rows, or the refusal, of the table that is read whole."""

from __future__ import annotations

import itertools
import json

import pandas
import pytest

from metricsmith.datasets import streamed
from metricsmith.datasets.streamed import stream_table
from metricsmith.datasets.table import read_table
from metricsmith.errors import DataError, OptionError

ROWS = 12
USER, REPLY = {"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}


def base(**columns):
    """Twelve rows of texts and these columns, which may be functions of the row's number; None drops one."""
    filled = {"question": lambda i: f"Why {i}?", "answer": lambda i: f"Because of {i}.", **columns}
    return [
        {name: cell(i) if callable(cell) else cell for name, cell in filled.items() if cell is not None}
        for i in range(ROWS)
    ]


def talk(*messages, form=json.dumps):
    return lambda i: form([{**one, "content": f"{one['content']} {i}"} for one in messages])


def ids(text):
    """A cell for each row; a dash is a blank one."""
    return lambda i: text.split()[i].replace("-", "")


UNIQUE = "a b c d e f g h i j k l"
TWICE = "a b c d e f a b c d e f"
ONE_TWICE = "a b c d e f g h i j k a"
MOST = "a a a a a a g h i j k l"
TABLES = {
    "plain": base(id=ids(UNIQUE)),
    "no id": base(),
    "ids that repeat on other inputs": base(id=ids(TWICE)),
    "ids that repeat on the same input": base(id=ids(TWICE), question=lambda i: f"Why {i % 6}?"),
    "ids that repeat without inputs": base(id=ids(TWICE), question=None),
    "an id that repeats once": base(id=ids(ONE_TWICE)),
    "an id that repeats once without inputs": base(id=ids(ONE_TWICE), question=None),
    "blank ids": base(id=ids("a - c - e f g h i j k l")),
    "blank ids that repeat": base(id=ids("a - c - a - g h a j k l")),
    "blank ids only": base(id=""),
    "one id": base(id="same"),
    "one id without inputs": base(id="same", question=None),
    "one id and one input": base(id="same", question="Why?"),
    "an id of most": base(id=ids(MOST)),
    "an id of most without inputs": base(id=ids(MOST), question=None),
    "an id of most on one input": base(id=ids(MOST), question="Why?"),
    "two ids": base(id=lambda i: "ab"[i % 2], question=None),
    "spaces around ids": base(id=lambda i: f" r{i} "),
    "numbers as ids": base(id=lambda i: i),
    "systems and raters": base(id=ids(TWICE), system=lambda i: f"s{i // 6}", rater=lambda i: f"p{i % 3}"),
    "one system": base(id=ids(UNIQUE), system="s", rater="p"),
    "a system in each row": base(id=ids(UNIQUE), system=lambda i: f"s{i}", rater=lambda i: f"p{i}"),
    "systems, some blank": base(id=ids(TWICE), system=ids("a b - a b - a b - a b -")),
    "one id for two systems": base(id="same", system=lambda i: f"s{i % 2}", question=None),
    "groups": base(id=ids(UNIQUE), group=lambda i: f"g{i % 4}"),
    "groups, some blank": base(id=ids(UNIQUE), group=ids("a - a - a b b b b b b b")),
    "references and context": base(reference=lambda i: json.dumps([f"For {i}", "So"]), context=lambda i: f"There {i}"),
    "scores": base(good=lambda i: i / 2, bad=lambda i: "" if i == 3 else i),
    "an empty output": base(answer=lambda i: "" if i == 5 else "So."),
    "messages": base(question=None, answer=None, messages=talk(USER, REPLY)),
    "messages of Python": base(question=None, answer=None, messages=talk(USER, REPLY, form=repr)),
    "messages as input": base(question=None, messages=talk(USER, REPLY)),
    "messages without a reply": base(question=None, messages=talk(USER)),
    "messages beside a prompt": base(messages=talk(USER, REPLY)),
    "messages beside a prompt alone": base(answer=None, messages=talk(USER, REPLY)),
    "one message": base(question=None, answer=None, messages=lambda i: json.dumps(REPLY)),
    "messages, some without a reply": base(
        question=None, answer=None, messages=lambda i: talk(*([USER, REPLY] if i != 9 else [USER]))(i)
    ),
    "messages, some blank": base(question=None, messages=lambda i: "" if i == 4 else talk(USER, REPLY)(i)),
    "messages, one broken": base(question=None, messages=lambda i: "[{" if i == 4 else talk(USER, REPLY)(i)),
    "messages and ids that repeat": base(question=None, answer=None, id=ids(TWICE), messages=talk(USER, REPLY)),
    "one id on messages": base(question=None, answer=None, id="same", messages=talk(USER, REPLY)),
    "a conversation as prompt": base(question=talk(USER, REPLY)),
    "a conversation as output": base(answer=talk(USER, REPLY)),
    "a message as output": base(answer=lambda i: json.dumps({**REPLY, "content": f"So {i}"})),
    "conversations in few rows": base(answer=lambda i: "[1]" if i else talk(USER)(i)),
    "a conversation as context": base(context=talk(USER)),
}  # fmt: skip
OPTIONS = {
    "guessed": {},
    "named id": {"id": "id"},
    "named output": {"output": "answer"},
    "named texts": {"output": "messages", "inputs": ["question"]},
    "messages whole": {"output": "messages", "inputs": ["messages"]},
    "scores": {"metric_columns": ["good", "bad"]},
    "two inputs": {"inputs": ["id", "question"]},
    "named labels": {"system": "system", "rater": "rater", "group": "group"},
    "where": {"where": ["id=a"]},
    "where not": {"where": ["id!=a", "answer!="]},
}


def written(records, form, folder):
    path = folder / f"table.{form}"
    frame = pandas.DataFrame(records)
    if form == "jsonl":
        path.write_text("".join(json.dumps(one) + "\n" for one in records), "utf-8")
    elif form == "json":
        path.write_text(json.dumps(records), "utf-8")
    elif form == "xlsx":
        frame.to_excel(path, index=False)
    elif form == "parquet":
        frame.astype(str).to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


def outcome(read):
    """The rows without their groups, the columns, and the notes; or the refusal."""
    try:
        columns, rows = read()
    except (DataError, OptionError) as refusal:
        return str(refusal)
    kept = [{key: repr(value) for key, value in row.toDict().items() if "group" not in key} for row in rows]
    output = columns.inputs[0] if str(columns.output).startswith("closing message") else columns.output
    texts = output, columns.inputs, columns.references, columns.context, columns.system, columns.rater
    return kept, texts


def test_a_blank_conversation_that_holds_the_output_is_refused_by_both(tmp_path):
    path = written(TABLES["messages, some blank"], "csv", tmp_path)
    for read in (read_table, stream_table):
        more = {"require_target": False} if read is read_table else {}
        with pytest.raises(DataError, match=r"row 5 \(line 6\), column 'messages'"):
            read(path, output="messages", inputs=["messages"], **more)


CASES = [
    (name, options, form)
    for name, options in itertools.product(TABLES, OPTIONS)
    if (name, options) != ("messages, some blank", "messages whole")  # see above
    for form in ("csv", "jsonl", "json", "xlsx", "parquet")
    if form in ("csv", "jsonl") or options in ("guessed", "where not")
]


@pytest.mark.parametrize(("name", "options", "form"), CASES)
def test_the_rows_are_those_of_the_table_that_is_read_whole(tmp_path, monkeypatch, name, options, form):
    named = OPTIONS[options]
    monkeypatch.setattr(streamed, "READ", 5)
    path = written(TABLES[name], form, tmp_path)

    def whole():
        table = read_table(path, require_target=False, **named)
        return table.columns, table.rows

    def streaming():
        table = stream_table(path, **named)
        rows = [row for row, _ in table]
        assert len(rows) == len(table)
        return table.columns, rows

    expected, found = outcome(whole), outcome(streaming)
    assert found == expected
