"""A store as a table: one line for each judgement."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import IO, Any

from metricsmith.errors import OptionError, nearest
from metricsmith.spreadsheets import write_table
from metricsmith.store.schema import connect
from metricsmith.store.verifying import Record, Unreadable, damage, records

__all__ = ["COLUMNS", "FORMATS", "Exported", "export"]

FORMATS = ("csv", "jsonl", "parquet")
COLUMNS = (
    "row_id", "row_key", "metric", "fingerprint", "run", "status", "raw", "score", "feedback", "error", "requests",
    "prompt_tokens", "completion_tokens", "cost", "seconds", "at",
)  # fmt: skip
AT_A_TIME = 10_000  # lines of a Parquet file that are held in memory together


@dataclass(frozen=True, slots=True)
class Exported:
    """How much was exported.

    Parameters
    ----------
    judgements : int
        Lines written.
    left_out : int
        Damaged entries, which `verify` names.
    unreadable : int
        Rows of which some entries could not be read.
    """

    judgements: int
    left_out: int
    unreadable: int


def export(
    path: str | PathLike[str],
    target: str | PathLike[str] | IO[str] | IO[bytes],
    *,
    format: str | None = None,
    raw_csv: bool = False,
) -> Exported:
    """Write a store's judgements as a table, ordered by row, metric and run, in bounded memory.

    The columns are `COLUMNS`. ``raw``, ``score``, ``cost`` and texts are what the judgement has; what is None is
    an empty cell of a CSV file and null elsewhere. ``at`` is when it was written, in UTC. What is damaged is left
    out and counted.

    Parameters
    ----------
    path : path
        The store; it is only read.
    target : path or stream
        Where to; an existing file is replaced when everything is written. A stream takes text (``csv``,
        ``jsonl``) or bytes (``parquet``).
    format : {'csv', 'jsonl', 'parquet'}, optional
        By default what the target's name ends with, ``csv`` for a stream.
    raw_csv : bool
        Write texts that a spreadsheet would run as they are; by default `metricsmith.spreadsheets.write_table` marks
        them.

    Raises
    ------
    StoreError
        If the store cannot be opened.
    OptionError
        If the format is unknown, or the target is the store or cannot be written.
    """
    store = Path(path)
    kind = _format(target, format)
    with closing(connect(store, read_only=True, salvage=True)) as connection, _opened(target, kind, store) as stream:
        counts = {"judgements": 0, "left_out": 0, "unreadable": 0}
        connection.execute("BEGIN")

        def lines() -> Iterator[dict[str, Any]]:
            counts.update(judgements=0, left_out=0, unreadable=0)  # a CSV file is looked through before it is written
            return _lines(records(connection), counts)

        if kind == "csv":
            write_table(stream, COLUMNS, lambda: map(_cells, lines()), raw=raw_csv, end="\r\n")
        elif kind == "jsonl":
            _jsonl(lines(), stream)
        else:
            _parquet(lines(), stream)
    return Exported(**counts)


def _format(target: Any, format: str | None) -> str:
    named = isinstance(target, str | PathLike)
    kind = format or (Path(target).suffix.removeprefix(".").lower() if named else "csv")
    if kind not in FORMATS:
        where = f"the name {target} does not end in one" if format is None else f"{format!r} is none"
        raise OptionError(
            f"a store is exported as {', '.join(FORMATS)}: {where}{nearest(kind, FORMATS)}; name a format"
        )
    return kind


@contextmanager
def _opened(target: Any, kind: str, store: Path) -> Iterator[Any]:
    """The stream to write to; a file appears under its name when it is complete."""
    if not isinstance(target, str | PathLike):
        yield target
        return
    path = Path(target)
    if os.path.realpath(path) in {os.path.realpath(f"{store}{ending}") for ending in ("", "-wal", "-shm")}:
        raise OptionError(f"{path} is the store itself: exporting there would destroy it; name another file")
    part = path.with_name(f"{path.name}.part")
    try:
        if kind == "parquet":
            with part.open("wb") as stream:
                yield stream
        else:
            with part.open("w", encoding="utf-8", newline="") as text:
                yield text
        os.replace(part, path)
    except OSError as problem:
        raise OptionError(f"cannot write {path}: {problem.strerror or problem}; name another place") from problem
    finally:
        part.unlink(missing_ok=True)


def _lines(found: Iterable[Record | Unreadable], counts: dict[str, int]) -> Iterator[dict[str, Any]]:
    for record in found:
        if isinstance(record, Unreadable):
            counts["unreadable"] += 1
        elif damage(record):
            counts["left_out"] += 1
        else:
            counts["judgements"] += 1
            yield _line(record)


def _line(record: Record) -> dict[str, Any]:
    judgement = record.judgement()
    usage = judgement.usage
    return {
        "row_id": record.label, "row_key": record.key, "metric": record.name, "fingerprint": record.fingerprint,
        "run": record.run, "status": judgement.status.value, "raw": judgement.raw, "score": judgement.score,
        "feedback": _plain(judgement.feedback), "error": _plain(judgement.error), "requests": usage.requests,
        "prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens, "cost": usage.cost,
        "seconds": usage.seconds, "at": datetime.fromtimestamp(record.at, UTC),
    }  # fmt: skip


def _plain(text: str) -> str:
    """Lone surrogates, which no file holds, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _cells(line: dict[str, Any]) -> list[Any]:
    return [*(line[name] for name in COLUMNS[:-1]), line["at"].isoformat()]


def _jsonl(lines: Iterator[dict[str, Any]], stream: IO[str]) -> None:
    for line in lines:
        stream.write(json.dumps({**line, "at": line["at"].isoformat()}, ensure_ascii=False) + "\n")


def _parquet(lines: Iterator[dict[str, Any]], stream: IO[bytes]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    integers = dict.fromkeys(("run", "requests", "prompt_tokens", "completion_tokens"), pa.int64())
    numbers = dict.fromkeys(("raw", "score", "cost", "seconds"), pa.float64())
    types = {**integers, **numbers, "at": pa.timestamp("us", tz="UTC")}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in COLUMNS])
    with parquet.ParquetWriter(stream, schema) as writer:
        while batch := list(islice(lines, AT_A_TIME)):
            writer.write_table(pa.Table.from_pylist(batch, schema))
