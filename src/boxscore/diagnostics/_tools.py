"""Tools as points in one space of choices: the ground of :mod:`boxscore.diagnostics.explain`.

Conventions
-----------
A tool is a protocol reduced to what its AP over all areas at the largest cap depends on, and whether it
rounds detections to text first. A choice is one or more fields of it that belong together.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from boxscore._utils import checks
from boxscore.errors import ProtocolError
from boxscore.protocols import load_protocol, protocol_names
from boxscore.protocols.grids import grid_text
from boxscore.protocols.protocol import Protocol, SummaryRow

__all__ = ["CHOICES", "Choice", "Tool", "box_protocols", "tool_names", "tool_of", "with_choice", "with_field"]

ALIASES = {
    "pycocotools": "coco",
    "voc-kit": "voc2012",
    "voc": "voc2012",
    "tidecv": "tide",
    "padilla": "padilla-voc",
    "ultralytics-new": "ultralytics",
    "py-faster-rcnn": "py-faster-rcnn-voc2012",
    "detectron2-voc": "detectron2-voc2012",
    "mean-average-precision": "bes-dev",
}
"""Other names of tools, and the protocol each stands for."""


class Tool(NamedTuple):
    """A protocol, and whether detections are rounded to text before it is applied."""

    name: str
    protocol: Protocol
    rounded: bool = False


class Choice(NamedTuple):
    """One choice: what it is called, the fields that hold it, and how it reads."""

    title: str
    fields: tuple[str, ...]
    text: Callable[[Tool], str]


def _curve_text(tool: Tool) -> str:
    ap = tool.protocol.ap
    if ap.interpolation == "area":
        return "area under the envelope"
    points = f"{len(ap.recall_points)} recall points"
    lines = {
        "points": points,
        "trapezoid": f"straight lines, read at {points}",
        "trapezoid_to_one": f"straight lines, the last to (1, 0), read at {points}",
    }
    return lines[ap.interpolation]


def _thresholds_text(tool: Tool) -> str:
    values = tool.protocol.matching.iou_thresholds
    return grid_text(values) if len(values) < 3 else f"{values[0]:.2f}:{values[-1]:.2f}/{len(values)}"


def _cap_text(tool: Tool) -> str:
    cap = tool.protocol.caps[-1]
    scope = {"class": "an image and class", "image": "an image"}[tool.protocol.matching.cap_scope]
    return "none" if cap is None else f"{cap} {scope}"


CHOICES = (
    Choice("numbers", ("rounded",), lambda tool: "rounded to text" if tool.rounded else "as given"),
    Choice("crowd regions", ("ignore.crowd",), lambda tool: tool.protocol.ignore.crowd),
    Choice("difficult objects", ("ignore.difficult",), lambda tool: tool.protocol.ignore.difficult),
    Choice(
        "minimum score",
        ("matching.minimum_score",),
        lambda tool: f"{tool.protocol.matching.minimum_score:g}".replace("-inf", "none"),
    ),
    Choice("detection cap", ("matching.max_detections", "matching.cap_scope"), _cap_text),
    Choice(
        "classes",
        ("matching.per_class",),
        lambda tool: "apart" if tool.protocol.matching.per_class else "pooled",
    ),
    Choice(
        "pixels", ("boxes.pixel_offset",), lambda tool: "+1" if tool.protocol.boxes.pixel_offset else "exact"
    ),
    Choice(
        "IoU thresholds",
        ("matching.iou_thresholds", "matching.largest_threshold"),
        _thresholds_text,
    ),
    Choice(
        "threshold",
        ("matching.threshold_closed",),
        lambda tool: ">=" if tool.protocol.matching.threshold_closed else ">",
    ),
    Choice(
        "candidate", ("matching.candidate",), lambda tool: tool.protocol.matching.candidate.replace("_", " ")
    ),
    Choice("equal overlaps", ("matching.equal_iou",), lambda tool: tool.protocol.matching.equal_iou),
    Choice(
        "equal scores",
        ("matching.equal_scores", "ap.tie_order"),
        lambda tool: (
            tool.protocol.matching.equal_scores
            if tool.protocol.ap.tie_order == "as_ranked"
            else tool.protocol.ap.tie_order
        ).replace("_", " "),
    ),
    Choice(
        "curve",
        ("ap.interpolation", "ap.recall_points", "ap.precision_epsilon", "ap.sequential_mean"),
        _curve_text,
    ),
    Choice(
        "classes without ground truth",
        ("ap.absent_classes",),
        lambda tool: {"skip": "skipped", "zero": "AP 0 if detected", "all_zero": "AP 0"}[
            tool.protocol.ap.absent_classes
        ],
    ),
)
"""The choices that move AP, in the order of the waterfall's steps."""


def tool_names() -> list[str]:
    """Names that :func:`~boxscore.diagnostics.explain.explain` knows: protocols of boxes, and aliases."""
    return sorted([*box_protocols(), *ALIASES])


def box_protocols() -> list[str]:
    """Names of the shipped protocols that compare boxes."""
    return [name for name in protocol_names() if load_protocol(name).similarity == "box"]


def tool_of(tool: str | Path | Mapping[str, Any] | Protocol, iou: float | None) -> Tool:
    """Return a tool by name, or any protocol as one; ``iou`` puts one threshold in place of its own."""
    if isinstance(tool, str) and not tool.endswith(".toml"):
        name = ALIASES.get(tool, tool)
        checks.one_of(name, tool_names(), name="tool")
        protocol = load_protocol(name)
    else:
        protocol = load_protocol(tool)
        name = protocol.name
        if protocol.similarity != "box":
            raise ProtocolError("an explained protocol", "compare boxes", got=repr(name))
    matching = dataclasses.replace(protocol.matching, max_detections=protocol.matching.max_detections[-1:])
    if iou is not None:
        checks.number_between(iou, 0, 1, name="iou", open_low=True)
        matching = dataclasses.replace(matching, iou_thresholds=(iou,))
    reduced = dataclasses.replace(
        protocol,
        name="explained",
        title="",
        matching=matching,
        ignore=dataclasses.replace(protocol.ignore, area_ranges={"all": (0.0, math.inf)}),
        summary=(SummaryRow("AP"), SummaryRow("AP50", iou=0.5), SummaryRow("AP75", iou=0.75)),
    )
    return Tool(tool if isinstance(tool, str) else name, reduced, rounded=name.startswith("detectron2"))


def with_choice(tool: Tool, other: Tool, choice: Choice) -> Tool:
    """Return the tool with this choice made as the other makes it."""
    for field in choice.fields:
        table, _, name = field.partition(".")
        value = getattr(getattr(other.protocol, table), name) if name else getattr(other, table)
        tool = with_field(tool, field, value)
    return tool


def with_field(tool: Tool, field: str, value: Any) -> Tool:
    """Return a tool with one choice changed: a field of its own, or ``table.name`` of its protocol."""
    table, _, name = field.partition(".")
    if not name:
        return tool._replace(**{table: value})
    changed: Any = dataclasses.replace(getattr(tool.protocol, table), **{name: value})
    tables: dict[str, Any] = {table: changed}
    return tool._replace(protocol=dataclasses.replace(tool.protocol, **tables))
