"""Names of a package that load when they are first used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from boxscore._utils.collector import paused_collector


def lazy_names(
    package: str,
    names: Mapping[str, Sequence[str]],
    *,
    modules: Sequence[str] = (),
    public_module: str | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the ``__getattr__`` and ``__dir__`` of a package from the names that its modules give."""
    origin = {name: module for module, some in names.items() for name in some}
    whole = {module.rpartition(".")[2]: module for module in modules}

    def load(name: str) -> Any:
        if name in whole:
            value: Any = _imported(whole[name])
        elif name in origin:
            value = getattr(_imported(origin[name]), name)
            if public_module is not None and hasattr(value, "__qualname__"):
                value.__module__ = public_module
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *origin, *whole})

    return load, listed


@paused_collector()
def _imported(module: str) -> ModuleType:
    """Import a module; what that makes is no garbage, and looking for some takes a tenth of the time."""
    return importlib.import_module(module)


def shortcut(module: str, name: str) -> Any:
    """Return a function of a later room, by name: for methods that only forward to it."""
    return getattr(importlib.import_module(module), name)
