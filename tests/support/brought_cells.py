"""One table of 36 rated outputs, written with the cells and in the files that people bring."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["CELLS", "ERRORS", "own_rows", "write_cells"]

Row = dict[str, Any]
PLACES = ("library", "pool", "museum", "market", "station", "clinic", "theatre", "bakery", "garden")
FACTS = ("opens", "at", "nine", "and", "closes", "at", "six", "on", "monday", "and", "friday")
JAPANESE = "図書館は月曜日の朝九時に開いて夕方の六時に閉まります"


def own_rows() -> list[Row]:
    """Rows of nine sources in four versions; a version that keeps more of its source is rated better, 1 to 5."""
    rows = []
    for number in range(36):
        place, version = PLACES[number // 4], (number * 3 + number // 4) % 5
        text = " ".join([f"the {place}", *FACTS[: 3 + 2 * version], f"in hall {number}"])
        rows.append({"id": number, "prompt": f"When is the {place} open?", "response": text, "rating": 1 + version})
    return rows


def rated(write: Callable[[int, int], Any]) -> Callable[[list[Row]], list[Row]]:
    """Ratings from 1 to 5 in another writing; `write` gets the row's number and its rating."""
    return lambda rows: [row | {"rating": write(number, row["rating"])} for number, row in enumerate(rows)]


def without(row: Row, *names: str) -> Row:
    return {name: cell for name, cell in row.items() if name not in names}


def single_message(rows: list[Row]) -> list[Row]:
    return [row | {"response": {"role": "assistant", "content": row["response"]}} for row in rows]


def messages(rows: list[Row]) -> list[Row]:
    made = []
    for row in rows:
        turns = ("Hello.", "How can I help?", row["prompt"], row["response"])
        talk = [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(turns)]
        made.append(without(row, "prompt", "response") | {"messages": talk})
    return made


def japanese(rows: list[Row]) -> list[Row]:
    return [
        row
        | {
            "prompt": f"何時に開きますか（{row['id'] // 4}）",
            "response": f"{JAPANESE[: 4 + 4 * row['rating']]}（{row['id']}）。",
        }
        for row in rows
    ]


def duplicate_id(rows: list[Row]) -> list[Row]:
    return [row | {"id": 3} if row["id"] == 20 else row for row in rows]


def other_names(rows: list[Row]) -> list[Row]:
    return [{"質問": row["prompt"], "réponse à noter": row["response"], "оценка": row["rating"]} for row in rows]


# Name -> suffix of the file, its rows, further options, the scale, what the notes say.
CELLS: Mapping[str, tuple[str, Callable[[list[Row]], list[Row]], tuple[str, ...], str, str]] = {
    "fractions": (".csv", rated(lambda _, n: f"{n}/5"), (), "1 to 5", "ratings of 'rating' are out of 5"),
    "of": (".csv", rated(lambda _, n: f"{n} of 5"), (), "1 to 5", "ratings of 'rating' are out of 5"),
    "percent": (".csv", rated(lambda _, n: f"{20 * n}%"), (), "0 to 100", "ratings of 'rating' are percentages"),
    "comma": (
        ".tsv", rated(lambda k, n: f"{n - 0.2 * (k % 3 and n > 1):.1f}".replace(".", ",")), (), "1 to 5",
        "ratings of 'rating' have a comma as their decimal mark",
    ),
    "words": (
        ".csv", rated(lambda _, n: ("Poor", "poor ", "OKAY", "okay", "good")[n - 1]), ("--levels", "poor, okay, good"),
        "1 to 3", "the words of 'rating' count as 1 poor, 2 okay, 3 good",
    ),
    "booleans": (".jsonl", rated(lambda _, n: n > 3), (), "0 to 1", "rating scale inferred: 0 to 1, step 1"),
    "thumbs": (".csv", rated(lambda _, n: "👍" if n > 3 else "👎"), (), "0 to 1", "rating scale inferred: 0 to 1"),
    "stars": (".csv", rated(lambda _, n: "★" * n + "☆" * (5 - n)), (), "1 to 5", "rating scale inferred: 1 to 5"),
    "gaps": (
        ".csv", rated(lambda k, n: ("NaN", "n/a", "-", "null")[k // 9] if k % 9 == 0 else n), (), "1 to 5",
        "4 of 36 rows have no rating",
    ),
    "outlier": (
        ".csv", rated(lambda k, n: 55 if k == 16 else n), (), "0 to 100",
        "row 17 (line 18), column 'rating': the rating 55 stretches the scale to 0 to 100, the others lie on 1 to 5",
    ),
    "single_message": (".jsonl", single_message, (), "1 to 5", "'response' holds conversations: the messages are"),
    "messages": (".jsonl", messages, (), "1 to 5", "the closing assistant message is the output"),
    "workbook": (".xlsx", lambda rows: rows, (), "1 to 5", "the first of 2 sheets is read, 'rated'"),
    "japanese": (".csv", japanese, (), "1 to 5", "rating scale inferred: 1 to 5"),
    "duplicate_id": (
        ".csv", duplicate_id, (), "1 to 5",
        "ids of 'id' that stand on outputs of different inputs join no rows: '3' (rows 4, 21)",
    ),
    "other_names": (
        ".csv", other_names, ("--target", "оценка", "--output", "réponse à noter", "--input", "質問"), "1 to 5",
        "rating scale inferred: 1 to 5",
    ),
}  # fmt: skip

# Name -> rows, what the one error says.
ERRORS: Mapping[str, tuple[Callable[[list[Row]], list[Row]], str]] = {
    "denominators": (
        rated(lambda k, n: f"{2 * n}/10" if k == 7 else f"{n}/5"),
        "row 8 (line 9), column 'rating': '6/10' is not a rating: row 1 is '1/5', and all of a column must be out of 5",
    ),
    "half_fractions": (
        rated(lambda k, n: n if k == 7 else f"{n}/5"),
        "row 8 (line 9), column 'rating': '3' is not a rating: row 1 is '1/5'",
    ),
    "thousands": (
        rated(lambda k, n: "1,800" if k == 7 else f"{n},5"),
        "'1,5' is not a rating: a comma may group thousands or be the decimal mark (row 8 is '1,800'): write none",
    ),
    "european_thousands": (
        rated(lambda k, n: "1.800" if k == 7 else f"{n},5"),
        "row 8 (line 9), column 'rating': '1.800' is not a rating: its dot may group thousands",
    ),
    "words": (
        rated(lambda _, n: ("poor", "okay", "good")[n // 2]),
        "row 1 (line 2), column 'rating': 'poor' is not a rating",
    ),
}


def write_cells(path: Path, rows: list[Row]) -> Path:
    """Write rows in the format that the suffix of `path` names."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    elif path.suffix == ".xlsx":
        import openpyxl

        book = openpyxl.Workbook()
        book.active.title = "rated"
        for cells in ([*rows[0]], *([*row.values()] for row in rows)):
            book.active.append(cells)
        book.create_sheet("notes").append(["not read"])
        book.save(path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, [*rows[0]], delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    return path
