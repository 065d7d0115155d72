"""Public names that load their module at first use.

The names of a module are listed once, in the imports below its ``if TYPE_CHECKING:``, where type checkers and editors
look for them; `lazy_names` reads the same lines.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from metricsmith.moved import MOVED

__all__ = ["lazy_names"]


def lazy_names(module: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__all__``, ``__getattr__`` and ``__dir__`` of a module out of its imports for type checkers.

    Parameters
    ----------
    module : str
        Its ``__name__``. Its imports have the form ``from home import name as name``; what it imports from itself are
        modules below it, which do not count as names of its own.

    Returns
    -------
    tuple of list and two functions
    """
    package: Any = sys.modules[module]
    source = package.__spec__.loader.get_data(package.__spec__.origin)  # bytes, out of a zip file as well
    homes = {
        alias.name: node.module or ""
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    below = [name for name, home in homes.items() if home == module]

    def load(name: str) -> Any:
        if name in below:
            return import_module(f"{module}.{name}")
        if name in homes:
            value = getattr(import_module(homes[name]), name)
            setattr(package, name, value)
            return value
        if not name.startswith("_") and hasattr(package, "__path__") and find_spec(f"{module}.{name}"):
            return import_module(f"{module}.{name}")  # any room below can be walked into, such as `stats.regression`
        new = MOVED.get(f"{module}.{name}".partition(".")[2])
        for other in below if not name.startswith("_") else ():
            if name in import_module(f"{module}.{other}").__all__:
                new = f"{other}.{name}"
        moved = f"; it moved to metricsmith.{new}" if new else ""
        # `from metricsmith import name` asks with `hasattr` first, and would drop the message of an AttributeError.
        if moved and sys._getframe(1).f_code.co_name == "_handle_fromlist":
            raise ImportError(f"cannot import name {name!r} from {module!r}{moved}", name=module)
        raise AttributeError(f"module {module!r} has no attribute {name!r}{moved}", name=name, obj=package)

    public = sorted(name for name in homes if name not in below and not name.startswith("_"))
    return public, load, lambda: sorted(homes)
