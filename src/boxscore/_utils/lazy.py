"""Names of a package that load when they are first used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from boxscore._utils.collector import lasting_objects


def lazy_names(
    package: str, names: Mapping[str, str], *, public_module: str | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make ``__getattr__``, ``__dir__`` and ``__all__`` of a package from the names that its modules give.

    Modules are relative to the package, and ``""`` gives modules themselves; names are separated by blanks.
    What loads gets ``public_module`` as its ``__module__``.
    """
    origin = {name: module for module, listed in names.items() for name in listed.split()}

    def load(name: str) -> Any:
        module = origin.get(name, "")
        value: Any
        if module:
            value = getattr(_imported(f"{package}.{module}"), name)
            if public_module is not None and hasattr(value, "__qualname__"):
                value.__module__ = public_module
        elif name in origin or name in names:
            value = _imported(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *origin})

    return load, listed, sorted(origin, key=lambda name: (name.islower(), name))


@lasting_objects()
def _imported(module: str) -> ModuleType:
    """Import a module without collecting garbage: there is none, and collection takes a tenth of the time."""
    return importlib.import_module(module)


def shortcut(module: str, name: str) -> Any:
    """Return a function of a higher layer, by name: for methods that only forward to it."""
    return getattr(importlib.import_module(module), name)
