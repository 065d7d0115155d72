"""The fields of a model's answer, read exactly or not at all: in DSPy's chat form, as a JSON object, or in XML.

DSPy repairs what it reads: of two equal fields it takes the first, so that a draft passes for the answer; it closes
a list that breaks off, takes the last of two equal keys, and reads ``true`` as 1 and ``0x10`` as 16. Here an answer
that may be meant in two ways, or that would have to be mended, is unreadable, and the message names the fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, get_origin
from xml.etree import ElementTree

import dspy
import pydantic
from dspy.adapters.chat_adapter import field_header_pattern
from dspy.adapters.utils import apply_output_field_defaults, parse_value
from dspy.utils.exceptions import AdapterParseError

from metricsmith.model_calls.dspy_internals import fields_apart
from metricsmith.model_calls.values import AROUND, SHOWN, json_value, option_in, options_in, options_of, shown

__all__ = ["UnreadableAnswer", "read", "read_plain", "whole"]

WHOLE_NUMBER = re.compile(r"-?[1-9][0-9]{0,14}|0")
NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
NO_END = re.compile(r"nan|[-+]?inf(?:inity)?", re.IGNORECASE)  # numbers that are on no scale
THOUGHT = re.compile(r"<(/?)(think|thinking|reasoning)\s*>", re.IGNORECASE)  # either end of a reasoning block
DRAFT = "a reasoning block and the fields cannot be told apart"
LONGEST_NUMBER = 300  # characters

Pieces = dict[str, list[Any]]  # what stands in each field: texts, or the values of a JSON object; mostly one


class UnreadableAnswer(AdapterParseError):  # type: ignore[misc]
    """An answer that cannot be read; `fault` says why, and `complaint` says it to the model that gave it."""

    def __init__(
        self, signature: type[dspy.Signature], answer: str, fault: str, complaint: str, message: str | None = None
    ) -> None:
        super().__init__("metricsmith", signature, answer, message or fault)
        self.fault, self.complaint = fault, complaint


class _Fault(ValueError):
    """A fault in words, for people and for the model, and the field that has it."""

    def __init__(self, fault: str, complaint: str, field: str = "", value: Any = "") -> None:
        super().__init__(
            fault, complaint, f"Failed to parse field {field} with value {value}: {fault}" if field else fault
        )


def read(adapter: dspy.Adapter, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
    """The fields of an answer in the form that `adapter` asks for.

    A reasoning block before the first field is taken off, and half characters, which no file can hold, become
    question marks. Instead of the chat form, a JSON object with exactly the fields is read. An adapter of a class that
    reads in its own way keeps it.

    Raises
    ------
    UnreadableAnswer
        If a field is missing, holds something else than it must, or stands there twice with different values.
    """
    text = whole(completion)
    parse, xml = getattr(adapter, "own_parse", None), isinstance(adapter, dspy.XMLAdapter)
    try:
        if "<" in text:
            text = _without_reasoning(text, tuple(signature.output_fields) if xml else ())
        if parse is not None:
            return _checked(signature, parse(adapter, signature, text))
        if xml:
            pieces = _xml_pieces(adapter, signature, text)
        elif isinstance(adapter, dspy.JSONAdapter):
            pieces = _json_pieces(signature, text)
        else:
            if (plain := read_plain(signature, text)) is not None:
                return plain
            pieces = _chat_pieces(signature, text)
        return _fields(signature, pieces, text)
    except _Fault as found:
        raise UnreadableAnswer(signature, completion, *found.args) from found.__cause__
    except (ValueError, RecursionError, OverflowError) as problem:  # of a parser that the answer was given to
        if isinstance(problem, AdapterParseError):
            raise
        fault = f"the answer cannot be read: {_brief(problem)}"
        raise UnreadableAnswer(signature, completion, fault, "it cannot be read") from problem


def whole(text: Any) -> Any:
    """A text with a question mark for each half of a surrogate pair, which UTF-8 cannot write."""
    return text if not isinstance(text, str) or text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def read_plain(signature: type[dspy.Signature], answer: str) -> dict[str, Any] | None:
    """The fields of an answer in the chat form that needs no interpretation.

    Returns
    -------
    dict or None
        None unless every field of the answer is there once, and a text or a whole number in plain digits.
    """
    sections: Pieces = {}
    for name, text, _ in _sections(answer):
        sections.setdefault(name, []).append(text)
    fields: dict[str, Any] = {}
    for name, info in signature.output_fields.items():
        texts = sections.get(name, ())
        if len(texts) != 1:
            return None
        if info.annotation is str:
            fields[name] = _lines(texts[0])
        elif info.annotation is int and WHOLE_NUMBER.fullmatch(texts[0]):
            fields[name] = int(texts[0])
        else:
            return None
    return fields


def _sections(answer: str) -> Iterator[tuple[str, str, bool]]:
    """Each header's name, the text under it, and whether the answer was completed before."""
    name, lines, completed = "", [""], False
    for line in answer.splitlines(keepends=True):
        header = field_header_pattern.match(line.strip())
        if header is None:
            lines.append(line)
            continue
        if name:
            yield name, "".join(lines).strip(), completed
        completed = completed or name == "completed"
        rest = line.lstrip()[header.end() :].strip()
        name, lines = header[1], [rest + "\n" if rest else ""]
    if name:
        yield name, "".join(lines).strip(), completed


def _lines(text: str) -> str:
    """A text with its lines parted by line feeds, as DSPy's chat adapter gives it."""
    return "\n".join(text.splitlines()).strip()


def _chat_pieces(signature: type[dspy.Signature], text: str) -> Pieces:
    """The pieces under each header; what comes after the answer's end counts where nothing stands before it."""
    before: Pieces = {}
    after: Pieces = {}
    for name, piece, completed in _sections(text):
        if name in signature.output_fields:
            kind = signature.output_fields[name].annotation
            late = completed and not _is_object(kind)  # a second list of errors is never left out
            (after if late else before).setdefault(name, []).append(_lines(piece) if kind is str else piece)
    return after | before if after or before else _json_pieces(signature, text, others=False)


def _json_pieces(signature: type[dspy.Signature], text: str, *, others: bool = True) -> Pieces:
    """The members of a JSON object, plain or in a code block; `others` says whether it may have others besides."""
    if not text.lstrip().startswith(("{", "```")):
        return {}
    try:
        members = json_value(text.strip())
    except (ValueError, RecursionError) as problem:
        raise _Fault(
            f"the answer is not one piece of JSON: {_brief(problem)}", "it is not one piece of JSON"
        ) from problem
    if not isinstance(members, dict):
        return {}
    names = signature.output_fields.keys()
    if (extra := members.keys() - names) and not others:
        stray = ", ".join(sorted(extra))[:SHOWN]
        raise _Fault(f"the JSON object has other members: {stray}", f"it has members that it must not have: {stray}")
    return {name: [value] for name, value in members.items() if name in names}


def _xml_pieces(adapter: dspy.Adapter, signature: type[dspy.Signature], text: str) -> Pieces:
    """The texts of the elements; what is neither text, number nor option is left to DSPy."""
    try:
        root = ElementTree.fromstring(f"<root>{text}</root>")  # inside it no entity can be declared
    except ElementTree.ParseError as problem:
        raise _Fault(f"the answer is not well-formed XML: {problem}", "it is not well-formed XML") from problem
    pieces: Pieces = {}
    others = signature
    for name, info in signature.output_fields.items():
        elements, listed = root.findall(name), get_origin(info.annotation) is list
        if info.annotation in (str, int, float) or options_of(info.annotation):
            others = others.delete(name)
            for element in elements:
                if listed and len(element) and all(child.tag == "item" for child in element):
                    pieces.setdefault(name, []).append(["".join(child.itertext()) for child in element])
                    continue
                inner = "".join(ElementTree.tostring(child, encoding="unicode") for child in element)
                pieces.setdefault(name, []).append(((element.text or "") + inner).strip())
        elif len(elements) > 1 and _is_object(info.annotation):
            raise _twice(name, elements)
    if others.output_fields:
        values = fields_apart(adapter, others, text)
        pieces |= {name: [value] for name, value in values.items()}
    return pieces


def _fields(signature: type[dspy.Signature], pieces: Pieces, text: str) -> dict[str, Any]:
    """The value of each field."""
    kinds = {name: info.annotation for name, info in signature.output_fields.items()}
    fields = {name: _only(name, kinds[name], pieces[name]) for name in kinds if name in pieces}
    fields = dict(apply_output_field_defaults(signature, fields))
    if missing := ", ".join(name for name in kinds if name not in fields):
        answer = " ".join(text[:1000].split())
        fault = f"no {missing[:120]} in the answer {answer[:120]!r}{'...' if len(answer) > 120 else ''}"
        raise _Fault(fault, f"it lacks {missing}")
    return fields


def _only(name: str, kind: Any, pieces: Sequence[Any]) -> Any:
    """The one value of a field; the same value may be there twice, unless it is an object."""
    if len(pieces) == 1:
        return _value(name, kind, pieces[0])
    if _is_object(kind):
        raise _twice(name, pieces)
    try:
        values = [_value(name, kind, piece) for piece in pieces]
    except _Fault:
        if any(piece != pieces[0] for piece in pieces):
            raise _twice(name, pieces) from None
        raise
    if any(value != values[0] for value in values):
        raise _twice(name, pieces)
    return values[0]


def _twice(name: str, pieces: Sequence[Any]) -> _Fault:
    both = " and ".join(map(shown, pieces[:2])) if isinstance(pieces[0], str) else "as two objects"
    return _Fault(f"{name} is there twice: {both}", f"the field {name} is there twice", name, pieces[0])


def _value(name: str, kind: Any, piece: Any) -> Any:
    """The value of a field; `piece` is its text, or a value of JSON."""
    options = options_of(kind)
    listed = "a list of some of" if get_origin(kind) is list else "one of"
    wanted = f"{listed}: {'; '.join(options)}" if options else getattr(kind, "__name__", str(kind))
    complaint = f"the field {name} does not hold what it must hold ({wanted})"
    try:
        if kind is str:
            if isinstance(piece, bool) or not isinstance(piece, str | int | float):
                raise ValueError(f"{name} {shown(piece)} is not a text")
            return str(piece)
        if kind in (int, float):
            return _number(name, kind, piece)
        if options:
            return options_in(name, options, piece) if get_origin(kind) is list else option_in(name, options, piece)
        if _is_object(kind):
            return kind.model_validate(json_value(piece) if isinstance(piece, str) else piece)
        return parse_value(piece, kind)
    except (ValueError, RecursionError, OverflowError) as problem:  # of JSON and of pydantic alike
        ours = kind in (str, int, float) or options
        fault = str(problem) if ours else f"{name} does not hold what it must hold ({wanted}): {_brief(problem)}"
        raise _Fault(fault, complaint, name, piece) from problem


def _number(name: str, kind: type, piece: Any) -> int | float:
    """A number in digits; emphasis and quotation marks may stand around it."""
    value = piece
    if isinstance(piece, str):
        bare = piece.strip()
        while around := AROUND.fullmatch(bare):
            bare = around[2].strip()
        digits = len(bare) <= LONGEST_NUMBER and (NUMBER.fullmatch(bare) or (kind is float and NO_END.fullmatch(bare)))
        value = None if not digits else int(bare) if bare.lstrip("+-").isdigit() else float(bare)
    if type(value) is int or (type(value) is float and (kind is float or value.is_integer())):
        return kind(value)  # type: ignore[no-any-return]
    raise ValueError(f"{name} {shown(piece)} is not a {'whole ' if kind is int else ''}number")


def _is_object(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, pydantic.BaseModel) and not issubclass(kind, pydantic.RootModel)


def _checked(signature: type[dspy.Signature], fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that an adapter has read in its own way; raises `_Fault` for a number that is none."""
    for name, info in signature.output_fields.items():
        if info.annotation in (int, float):
            fields[name] = _value(name, info.annotation, fields.get(name))
    return fields


def _without_reasoning(text: str, fields: Sequence[str]) -> str:
    """The answer after its leading reasoning blocks; `fields` are names of elements, which are no such blocks.

    Raises
    ------
    _Fault
        If a block does not end, or if fields stand in one, or before the end of one, so that they may be a draft.
    """
    while True:
        ends = [end for end in THOUGHT.finditer(text) if end[2].lower() not in fields]
        first = _first_field(text, fields)
        if not ends or ends[0].start() > first:
            _check_drafts(text, ends)
            return text
        if ends[0][1]:
            last = [end for end in ends if end[1] and end.start() < first][-1]
        else:
            depth, closing = 0, []
            for end in ends:
                if end[2].lower() == ends[0][2].lower():
                    depth += -1 if end[1] else 1
                    closing += [end] if end[1] else []
                    if depth == 0:
                        break
            if not closing:
                raise _Fault("the answer ends within its reasoning block", "it ends within its reasoning block")
            last = closing[-1] if depth == 0 else closing[0]
        text = text[last.end() :]


def _first_field(text: str, fields: Sequence[str]) -> int:
    """The place where the first field or the JSON object begins; the text's length where there is none."""
    if text.lstrip().startswith(("{", "```")):
        return 0
    place = 0
    for line in text.splitlines(keepends=True):
        if field_header_pattern.match(line.strip()) or any(f"<{name}>" in line for name in fields):
            return place
        place += len(line)
    return len(text)


def _check_drafts(text: str, ends: Sequence[re.Match[str]]) -> None:
    """Raise where a block after the first field makes it unclear which fields are meant."""
    opened: list[re.Match[str]] = []
    for end in ends:
        if not end[1]:
            opened.append(end)
        elif opened and opened[-1][2].lower() == end[2].lower():
            if any(True for _ in _sections(text[opened.pop().end() : end.start()])):
                raise _Fault(f"{DRAFT}: fields stand in the block", "fields stand in a reasoning block")
        elif not text[end.end() :].partition("\n")[0].strip():
            raise _Fault(f"{DRAFT}: the block ends after fields", "a reasoning block ends after fields")
    for end in opened:
        rest = text[end.end() :]
        alone = not text[: end.start()].rpartition("\n")[2].strip() and not rest.partition("\n")[0].strip()
        if alone and any(name != "completed" for name, _, _ in _sections(rest)):
            raise _Fault(f"{DRAFT}: the block does not end", "a reasoning block does not end")


def _brief(problem: Exception) -> str:
    if isinstance(problem, pydantic.ValidationError):
        first = problem.errors()[0]
        return ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))
    return " ".join(str(problem)[:400].split()) or type(problem).__name__
