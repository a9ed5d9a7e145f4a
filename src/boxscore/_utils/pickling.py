"""Pickling dataclasses whose cached properties hold much."""

from __future__ import annotations

import dataclasses
from typing import Any

__all__ = ["PicklesFields"]


class PicklesFields:
    """A dataclass that pickles as its fields: what was given, not what was computed of it."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
