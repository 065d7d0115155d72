"""A file of scores that grows line by line beside its place, from which a run that ended early goes on."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import typer

from metricsmith.cli.terminal import say
from metricsmith.errors import DataError, Interrupted, OptionError
from metricsmith.report.render import lock_for_writing, replace_file

__all__ = ["Printed", "ScoresFile"]


class Printed:
    """Lines on standard output; a reader that closes the pipe ends the command quietly, Ctrl-C ends it with 130."""

    quiet = False  # so that nothing else is drawn on the screen
    name = ""  # of a file, as the end of a sentence

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}

    def write(self, text: str) -> None:
        """Add text."""
        say(text, nl=False)

    def sure(self, told: Mapping[str, Any]) -> None:
        """Note how far the rows are sure, where anybody can go on from there."""

    def finish(self) -> None:
        """Note that all is written."""

    def leave(self) -> str:
        """End, finished or not, and return a sentence on what stays to go on from."""
        return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        stays = self.leave()
        interrupted = isinstance(problem, Interrupted | KeyboardInterrupt)
        if interrupted:
            say(f"error: {str(problem) or 'interrupted'}", err=True)
        if stays:
            say(f"note: {stays}", err=True)
        if interrupted:
            raise typer.Exit(130) from problem
        if isinstance(problem, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python flushes at its end
            raise typer.Exit from problem


class ScoresFile(Printed):
    """A file that gets its name when it is complete.

    Until then its lines stand in ``NAME.part``, and ``NAME.part.json`` says what run they are of and how many bytes of
    it are sure. What a killed process wrote beyond that is cut off, so that nothing is lost or doubled.

    Parameters
    ----------
    out : Path
    run : mapping of str to str
        What another run must share to go on from here: a hash or text for each thing that changes a line.
    kept : bool
        Whether a later run may go on from here.

    Attributes
    ----------
    told : dict
        What was last told to `sure`, by an earlier process too; empty before.

    Raises
    ------
    OptionError
        If there is a part of another run.
    DataError
        If the file cannot be written.
    """

    quiet = True

    def __init__(self, out: Path, run: Mapping[str, str], *, kept: bool = True) -> None:
        super().__init__()
        self.out, self.run, self.kept, self.name = out, dict(run), kept, f": {out}"
        self.part, self.place = self.beside(out)
        self._bytes = 0
        if self.part.exists() and self.part.stat().st_size:
            self._find()
        try:
            self._stream = self.part.open("r+b" if self.told else "ab")
            lock_for_writing(self._stream, self.part)
            self._note()
            self._stream.truncate(self._bytes)
            self._stream.seek(self._bytes)
        except OSError as problem:
            raise DataError(f"cannot write {self.part}: {problem.strerror}; name another place for --out") from problem
        if self.told:
            say(f"note: {self._stays()}: it goes on after them", err=True)

    @staticmethod
    def beside(out: Path) -> tuple[Path, Path]:
        """The unfinished file, and the file that says how far it is sure."""
        return out.with_name(f"{out.name}.part"), out.with_name(f"{out.name}.part.json")

    def _find(self) -> None:
        """Take over what another process was sure of."""
        try:
            found = json.loads(self.place.read_text("utf-8"))
            others = [name for name in self.run if found["run"][name] != self.run[name]]
            told, sure = dict(found["told"]), int(found["bytes"])
        except (OSError, ValueError, LookupError, TypeError):
            raise OptionError(f"{self.part} is in the way, which is not this command's: name another --out") from None
        if told and (others or self.part.stat().st_size < sure):
            what = f"of another {' and another '.join(others)}" if others else "and shorter than it was"
            raise OptionError(
                f"{self.part} is an unfinished file {what}: delete it to begin anew, give what it was made with to go "
                "on with it, or name another --out"
            )
        if self.kept:
            self.told, self._bytes = told, sure

    def write(self, text: str) -> None:
        """Add text; a lone surrogate, which has no UTF-8 form, is escaped."""
        self._stream.write(text.encode("utf-8", "backslashreplace"))

    def sure(self, told: Mapping[str, Any]) -> None:
        """Let a later run go on after what is written now, and give it `told`, which is JSON-ready."""
        if self.kept:
            self._stream.flush()
            self.told, self._bytes = dict(told), self._stream.tell()
            self._note()

    def _note(self) -> None:
        replace_file(self.place, json.dumps({"run": self.run, "bytes": self._bytes, "told": self.told}))

    def finish(self) -> None:
        """Give the file its name; rows that are sure stay apart where others were written that are not."""
        self._stream.close()
        rest = self.part.with_name(f"{self.part.name}.rest")
        if doubtful := self.told and self._bytes < self.part.stat().st_size:
            shutil.copyfile(self.part, rest)
            os.truncate(rest, self._bytes)
        os.replace(self.part, self.out)
        if doubtful:
            os.replace(rest, self.part)
        self.leave()

    def leave(self) -> str:
        """End, finished or not, and return a sentence on what stays to go on from."""
        self._stream.close()
        if self.told and self.part.exists():
            return f"{self._stays()}, from which the same command goes on"
        self.part.unlink(missing_ok=True)
        self.place.unlink(missing_ok=True)
        return ""

    def _stays(self) -> str:
        return f"{self.told['rows']} rows stand in {self.part}"
