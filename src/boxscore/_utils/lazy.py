"""Imports that run when their names are first used."""

from __future__ import annotations

import builtins
import contextlib
import importlib
from _thread import RLock
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

from boxscore._utils.collector import paused_collector

_ONE_BLOCK = RLock()
"""Two threads that import two packages come one after the other: each puts back what it replaced."""


@contextlib.contextmanager
def lazy_imports(namespace: dict[str, Any], *, public_module: str | None = None) -> Iterator[None]:
    """Put off the imports in a block of a package, until their names are first used.

    Each is written ``from module import name as name``, which type checkers read as a name that the package
    gives; together they are its ``__all__``. What loads says that it is from ``public_module``.
    """
    package = namespace["__name__"]
    origin: dict[str, str] = {}

    def note(*given: Any, **named: Any) -> Any:
        if len(given) != 5 or given[1] is not namespace:  # by a call, or in another thread
            return real_import(*given, **named)
        module, _, _, names, _ = given
        origin.update(dict.fromkeys(names, module))
        return SimpleNamespace(**dict.fromkeys(names))

    with _ONE_BLOCK:
        real_import = builtins.__import__
        builtins.__import__ = note
        try:
            yield
        finally:
            builtins.__import__ = real_import
    for name in origin:
        del namespace[name]

    modules = {f"{package}.{name}" if module == package else module for name, module in origin.items()}

    def load(name: str) -> Any:
        value: Any
        if origin.get(name, package) != package:
            value = getattr(_imported(origin[name]), name)
            if public_module is not None and hasattr(value, "__qualname__"):
                value.__module__ = public_module
        elif f"{package}.{name}" in modules:
            value = _imported(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = value
        return value

    namespace["__getattr__"] = load
    namespace["__dir__"] = lambda: sorted({*namespace, *origin})
    namespace["__all__"] = sorted(origin, key=lambda name: (name.islower(), name))


@paused_collector()
def _imported(module: str) -> ModuleType:
    """Import a module; what that makes is no garbage, and looking for some takes a tenth of the time."""
    return importlib.import_module(module)


def shortcut(module: str, name: str) -> Any:
    """Return a function of a later room, by name: for methods that only forward to it."""
    return getattr(importlib.import_module(module), name)
