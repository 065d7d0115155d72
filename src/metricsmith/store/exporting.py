"""A store as a table: one line for each judgement."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import IO, Any

from metricsmith.errors import OptionError, nearest
from metricsmith.spreadsheets import write_table
from metricsmith.store.schema import connect, without_surrogates
from metricsmith.store.verifying import Record, records

__all__ = ["COLUMNS", "FORMATS", "Exported", "export"]

FORMATS = ("csv", "jsonl", "parquet")
COLUMNS = (
    "row_id", "row_key", "metric", "fingerprint", "run", "status", "raw", "score", "feedback", "error", "requests",
    "prompt_tokens", "completion_tokens", "cost", "seconds", "at",
)  # fmt: skip
AT_A_TIME = 10_000  # lines of a Parquet file that are held in memory together


@dataclass(frozen=True, slots=True)
class Exported:
    """The size of an export.

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
        connection.execute("BEGIN")
        counts = {"judgements": 0, "left_out": 0, "unreadable": 0}

        def lines() -> Iterator[dict[str, Any]]:
            counts.update(dict.fromkeys(counts, 0))  # a CSV file is looked through before it is written
            for record in records(connection):
                line = _line(record)
                counts["judgements" if line else "unreadable" if record.lost else "left_out"] += 1
                if line:
                    yield line

        if kind == "csv":
            write_table(stream, COLUMNS, lambda: (list(_texts(line).values()) for line in lines()), raw=raw_csv,
                        end="\r\n")  # fmt: skip
        elif kind == "jsonl":
            for line in lines():
                stream.write(json.dumps(_texts(line), ensure_ascii=False) + "\n")
        else:
            _write_parquet(lines(), stream)
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


def _line(record: Record) -> dict[str, Any]:
    """The cells of a judgement by column; none for what is damaged."""
    judgement = record.judgement
    if judgement is None:
        return {}
    usage = judgement.usage
    feedback, error = without_surrogates(judgement.feedback), without_surrogates(judgement.error)
    return {
        "row_id": record.row_id, "row_key": record.row_key, "metric": judgement.metric,
        "fingerprint": record.fingerprint, "run": judgement.run, "status": judgement.status.value,
        "raw": judgement.raw, "score": judgement.score, "feedback": feedback, "error": error,
        "requests": usage.requests, "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens, "cost": usage.cost, "seconds": usage.seconds,
        "at": datetime.fromtimestamp(record.at, UTC),
    }  # fmt: skip


def _texts(line: dict[str, Any]) -> dict[str, Any]:
    """The cells of a text format, which has no type for a time."""
    return {**line, "at": line["at"].isoformat()}


def _write_parquet(lines: Iterator[dict[str, Any]], stream: IO[bytes]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    integers = dict.fromkeys(("run", "requests", "prompt_tokens", "completion_tokens"), pa.int64())
    numbers = dict.fromkeys(("raw", "score", "cost", "seconds"), pa.float64())
    types = {**integers, **numbers, "at": pa.timestamp("us", tz="UTC")}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in COLUMNS])
    with parquet.ParquetWriter(stream, schema) as writer:
        while batch := list(islice(lines, AT_A_TIME)):
            writer.write_table(pa.Table.from_pylist(batch, schema))
