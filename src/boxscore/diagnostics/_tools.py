"""Tools as sets of choices, for :mod:`boxscore.diagnostics.explaining`.

Conventions
-----------
A tool is a protocol reduced to what its AP over all areas at the largest cap depends on. A choice is one or
more fields of it that belong together, as the fields themselves say.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

from boxscore._utils import checks
from boxscore.errors import ProtocolError
from boxscore.protocols import load_protocol, protocol_names
from boxscore.protocols.fields import Field, Stage, Step, all_fields
from boxscore.protocols.protocol import Protocol, SummaryRow

__all__ = [
    "CHOICES",
    "Choice",
    "Tool",
    "box_protocols",
    "tool_names",
    "tool_of",
    "with_choice",
    "with_field",
    "with_similarity",
]


class Tool(NamedTuple):
    """A protocol, and the name the user gave it."""

    name: str
    protocol: Protocol


class Choice(NamedTuple):
    """One choice: its step, the field that says it, and the paths of all fields that it covers."""

    step: Step
    field: Field
    paths: tuple[str, ...]

    @property
    def title(self) -> str:
        """What the choice is called."""
        return self.step.title

    def text(self, tool: Tool) -> str:
        """Write how a tool makes the choice."""
        written = self.field.written(tool.protocol, self.step.text)
        return written if self.step.text is not None else written.replace("_", " ")


def _choices() -> tuple[Choice, ...]:
    fields = list(all_fields(Protocol("any")))
    choices = [
        Choice(step, field, (field.path, *(other.path for other in fields if other.rule.step == field.path)))
        for field in fields
        if isinstance(step := field.rule.step, Step)
    ]
    stages = get_args(Stage)
    return tuple(sorted(choices, key=lambda choice: stages.index(choice.step.stage)))


CHOICES = _choices()
"""The choices that move AP, in the order of the waterfall's steps."""


def tool_names() -> list[str]:
    """Names that :func:`~boxscore.diagnostics.explain` knows: protocols of boxes, and aliases."""
    return sorted([*box_protocols(), *_aliases()])


def box_protocols() -> list[str]:
    """Names of the shipped protocols that compare boxes."""
    return [name for name in protocol_names() if load_protocol(name).similarity == "box"]


@functools.cache
def _aliases() -> dict[str, str]:
    """Other names of tools, and the protocol that each stands for."""
    return {alias: name for name in box_protocols() for alias in load_protocol(name).aliases}


def tool_of(tool: str | Path | Mapping[str, Any] | Protocol, iou: float | None) -> Tool:
    """Return a tool by name, or any protocol as one; ``iou`` replaces its thresholds."""
    if isinstance(tool, str) and not tool.endswith(".toml"):
        name = _aliases().get(tool, tool)
        if name not in protocol_names():
            checks.one_of(name, tool_names(), name="tool")
        protocol = load_protocol(name)
    else:
        protocol = load_protocol(tool)
        name = protocol.name
    matching = dataclasses.replace(protocol.matching, max_detections=protocol.matching.max_detections[-1:])
    if iou is not None:
        checks.number_between(iou, 0, 1, name="iou", open_low=True)
        matching = dataclasses.replace(matching, iou_thresholds=(iou,))
    reduced = dataclasses.replace(
        protocol,
        name="explained",
        title="",
        aliases=(),
        of_type={},
        matching=matching,
        ignore=dataclasses.replace(protocol.ignore, area_ranges={"all": (0.0, math.inf)}),
        summary=(SummaryRow("AP"), SummaryRow("AP50", iou=0.5), SummaryRow("AP75", iou=0.75)),
    )
    return Tool(tool if isinstance(tool, str) else name, reduced)


def with_similarity(tool: Tool, other: Tool) -> Tool:
    """Return the tool with the other's similarity; of masks and boundaries, since the same tables have both.

    Raises
    ------
    ProtocolError
        When the two compare different objects, such as boxes and masks.
    """
    own, wanted = tool.protocol.similarity, other.protocol.similarity
    if own != wanted and not {own, wanted} <= {"mask", "boundary"}:
        raise ProtocolError(
            "explained protocols",
            "compare the same kind of objects",
            got=f"{tool.name!r} by {own} and {other.name!r} by {wanted}",
        )
    return tool._replace(protocol=dataclasses.replace(tool.protocol, similarity=wanted))


def with_choice(tool: Tool, other: Tool, choice: Choice) -> Tool:
    """Return the tool with this choice made as the other makes it."""
    for path in choice.paths:
        table, name = path.split(".")
        tool = with_field(tool, path, getattr(getattr(other.protocol, table), name))
    return tool


def with_field(tool: Tool, path: str, value: Any) -> Tool:
    """Return a tool with one field of its protocol, ``table.name``, changed."""
    table, name = path.split(".")
    changed: Any = dataclasses.replace(getattr(tool.protocol, table), **{name: value})
    tables: dict[str, Any] = {table: changed}
    return tool._replace(protocol=dataclasses.replace(tool.protocol, **tables))
