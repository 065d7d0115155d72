"""Markdown that data cannot break: escaped texts and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from metricsmith.report.formats import one_line

__all__ = ["escape", "table"]

_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
# What would open a list, a heading or a rule at the start of a line.
_OPENING = re.compile(r"^(\s*)([-+#=]|\d+(?=[.)]))")


def escape(text: str) -> str:
    """`text` on one line, with nothing left that Markdown or HTML would act on."""
    line = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _SPECIAL.sub(r"\\\1", line)
    return _OPENING.sub(lambda match: match[1] + ("&#8203;" if match[2].isdigit() else "\\") + match[2], line)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right_from: int) -> list[str]:
    """A table's lines; cells are written as they are, columns from `right_from` on stand to the right."""
    rule = ["---" if index < right_from else "---:" for index in range(len(head))]
    return [f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)]
