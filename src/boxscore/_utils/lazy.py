"""Import the names that a package lists when they are first used.

Conventions
-----------
- A *face* is a package or module that users import and that only lists names. It lists each once, as a plain
  import in a ``with lazy_imports(__name__):`` block. Type checkers and editors read the imports as usual; at
  run time they are recorded, and run on first use.
- If a submodule and a name of the face are spelled alike, the face gives the name, in whatever order things
  are imported: Python's import system would set the submodule in its place.
- Importing a face runs none of the recorded imports, so ``import boxscore`` is fast.
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
    """A package whose names load on first use."""

    _module_of: dict[str, str]
    """The module of each name."""

    def __setattr__(self, name: str, value: object) -> None:
        # The import system sets each submodule as an attribute of its package. Ignore that if the face has
        # another object of the same name.
        is_submodule = value is sys.modules.get(f"{self.__name__}.{name}")
        if not is_submodule or self._module_of.get(name) in (None, self.__name__):
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        # Import a name from its module; else a submodule that the face lists or takes names from.
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

    Also set ``__all__`` of the package, names with capitals first.
    """
    face = sys.modules[package]
    names = vars(face)
    module_of: dict[str, str] = {}

    def record(module: str, of: Any = None, local: Any = None, listed: Any = (), level: int = 0) -> Any:
        # Another thread may import at the same time: record only imports of this block.
        if of is not names:
            return run(module, of, local, listed, level)
        module_of.update(dict.fromkeys(listed, module))
        return SimpleNamespace(**dict.fromkeys(listed))

    # Replace the import function while the block runs; one thread at a time.
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
def _imported(module: str) -> ModuleType:
    """Import a module without garbage collection, which would find nothing in a tenth of the time."""
    return importlib.import_module(module)


def loaded(text: str) -> Any:
    """Import what a socket names, ``"module:name"``; the name may have dots."""
    module, _, name = text.partition(":")
    return operator.attrgetter(name)(importlib.import_module(module))


def shortcut(module: str, name: str) -> Any:
    """Import a function of a higher layer by name, for methods that only forward to it."""
    return getattr(importlib.import_module(module), name)
