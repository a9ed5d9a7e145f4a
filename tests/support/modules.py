"""The modules of the package."""

from __future__ import annotations

import importlib
import pkgutil

import boxscore

ADAPTERS = "boxscore.integrations."


def every_module() -> list[str]:
    """Return the names of all modules that can be imported, sorted: adapters whose framework is here, not others."""
    found = pkgutil.walk_packages(boxscore.__path__, "boxscore.")
    names = ["boxscore", *sorted(item.name for item in found if not item.name.endswith("__main__"))]
    return [name for name in names if not name.startswith(ADAPTERS) or _is_usable(name)]


def _is_usable(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("boxscore"):
            raise
        return False
    return True
