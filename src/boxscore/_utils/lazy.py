"""Import the names that a package lists when they are first used.

Conventions
-----------
- A face lists its names once, as plain imports in a ``with lazy_imports(__name__):`` block. Type checkers and
  editors read them as they are; at run time they are recorded and run on first use.
- A submodule never shadows a name of the face, whatever was imported before.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import sys
import threading
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

from boxscore._utils.collector import lasting_objects

_recording = threading.RLock()


class _Face(ModuleType):
    """A package whose names load on first use."""

    _module_of: dict[str, str]

    def __setattr__(self, name: str, value: object) -> None:
        # The import system binds a submodule in its package, also where the face has a function of its name.
        is_submodule = value is sys.modules.get(f"{self.__name__}.{name}")
        if not is_submodule or self._module_of.get(name) in (None, self.__name__):
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        module, below = self._module_of.get(name), f"{self.__name__}.{name}"
        if module not in (None, self.__name__):
            value = getattr(_imported(module), name)
            if self.__name__ == "boxscore" and hasattr(value, "__qualname__"):
                value.__module__ = "boxscore"  # what users see is where they import it from
        elif module is not None or below in self._module_of.values():
            value = _imported(below)
        else:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *self._module_of})


@contextlib.contextmanager
def lazy_imports(package: str) -> Iterator[None]:
    """Record each ``from module import name`` of a block; the package imports the name when it is first used.

    Also gives the package ``__all__``, capitals first.
    """
    face = sys.modules[package]
    names = vars(face)
    module_of: dict[str, str] = {}

    def record(module: str, of: Any = None, local: Any = None, listed: Any = (), level: int = 0) -> Any:
        if of is not names:  # another module's import, in another thread
            return run(module, of, local, listed, level)
        module_of.update(dict.fromkeys(listed, module))
        return SimpleNamespace(**dict.fromkeys(listed))

    with _recording:
        run = builtins.__import__
        builtins.__import__ = record  # type: ignore[assignment]
        try:
            yield
        finally:
            builtins.__import__ = run
    for name in module_of:
        del names[name]
    names["__all__"] = sorted(module_of, key=lambda name: (name.islower(), name))
    names["_module_of"] = module_of
    face.__class__ = _Face


@lasting_objects()
def _imported(module: str) -> ModuleType:
    """Import a module without collecting garbage: there is none, and collection takes a tenth of the time."""
    return importlib.import_module(module)


def shortcut(module: str, name: str) -> Any:
    """Return a function of a higher layer, by name: for methods that only forward to it."""
    return getattr(importlib.import_module(module), name)
