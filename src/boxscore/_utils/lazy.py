"""Import the public names of a package lazily.

Conventions
-----------
- A *face* is a package or module for users that only lists names, as plain imports in a block ``with
  lazy_imports(__name__):``. Type checkers and editors read the imports as usual; at run time they are
  recorded, and run on first use. So ``import boxscore`` is fast.
- If a submodule and a name of the face are the same, the face always provides the name; the import system of
  Python would replace it by the submodule.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import operator
import sys
import threading
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

from boxscore._utils.memory import lasting_objects

_recording = threading.RLock()


class _Face(ModuleType):
    """A package whose names are imported on first use."""

    _module_of: dict[str, str]
    """The module of each name."""

    def __setattr__(self, name: str, value: object) -> None:
        # The import system sets submodules as attributes of their package; ignore this for names of the face.
        is_submodule = value is sys.modules.get(f"{self.__name__}.{name}")
        if not is_submodule or self._module_of.get(name) in (None, self.__name__):
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        # Import a name from its module, or a submodule that the face lists or takes names from.
        module, below = self._module_of.get(name), f"{self.__name__}.{name}"
        if module not in (None, self.__name__):
            value = getattr(_import(module), name)
            if self.__name__ == "boxscore" and hasattr(value, "__qualname__"):
                value.__module__ = "boxscore"  # show the module from which users import it
        elif module is not None or below in self._module_of.values():
            value = _import(below)
        else:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *self._module_of})


@contextlib.contextmanager
def lazy_imports(package: str) -> Iterator[None]:
    """Record the ``from module import name`` statements of a block, to run them on first use of the name.

    Also set ``__all__`` of the package, with capitalized names first.
    """
    face = sys.modules[package]
    names = vars(face)
    module_of: dict[str, str] = {}

    def record(module: str, of: Any = None, local: Any = None, listed: Any = (), level: int = 0) -> Any:
        # Only record imports of this block, because another thread may import at the same time.
        if of is not names:
            return run(module, of, local, listed, level)
        module_of.update(dict.fromkeys(listed, module))
        return SimpleNamespace(**dict.fromkeys(listed))

    # Replace the import function during the block, in one thread at a time.
    with _recording:
        run = builtins.__import__
        builtins.__import__ = record  # type: ignore[assignment]
        try:
            yield
        finally:
            builtins.__import__ = run
    # Drop the placeholders, so that ``__getattr__`` is called for the names.
    for name in module_of:
        del names[name]
    names["__all__"] = sorted(module_of, key=lambda name: (name.islower(), name))
    names["_module_of"] = module_of
    face.__class__ = _Face


@lasting_objects()
def _import(module: str) -> ModuleType:
    """Import a module with the garbage collector paused, which would take a tenth of the import time."""
    return importlib.import_module(module)


def loaded(text: str) -> Any:
    """Import an object given as ``"module:name"``; the name may contain dots."""
    module, _, name = text.partition(":")
    return operator.attrgetter(name)(importlib.import_module(module))


def shortcut(module: str, name: str) -> Any:
    """Import a function of a higher layer by name, for methods that only forward to it."""
    return getattr(importlib.import_module(module), name)
