"""Describe tools as sets of choices, for :mod:`boxscore.extensions.diagnostics.explaining`.

Conventions
-----------
A tool is a protocol reduced to the fields that affect its AP over all areas at the largest max detections. If
the protocol does not rank detections, its first summary metric takes the place of AP. A choice is one field,
or several that belong together, as the fields declare.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

from boxscore._utils import checks
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import ProtocolError
from boxscore.protocols import load_protocol, protocol_names
from boxscore.protocols.fields import Field, Stage, Step, all_fields
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow, named_kind

ORIENTED = ("quadrilateral", "rotated", "probiou")
"""Similarities of oriented boxes; they compare the same objects."""


class Tool(NamedTuple):
    """A protocol and the name that the user gave it."""

    name: str
    protocol: Protocol


class Choice(NamedTuple):
    """One choice: its step, its main field, and the paths of all fields that it covers."""

    step: Step
    field: Field
    paths: tuple[str, ...]

    @property
    def title(self) -> str:
        """Name of the choice."""
        return self.step.title

    def text(self, tool: Tool) -> str:
        """Describe the tool's choice."""
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
"""The choices that affect the number, in the order of the waterfall's steps."""


def tool_names() -> list[str]:
    """Return the names that :func:`~boxscore.diagnostics.explain` accepts: box protocols, and aliases."""
    return sorted([*tool_protocols(), *tool_protocols(oriented=True), *_aliases()])


def tool_protocols(*, oriented: bool = False) -> list[str]:
    """Return the names of the shipped protocols that compare upright boxes, or oriented ones."""
    kinds = ORIENTED if oriented else ("box",)
    protocols = {name: load_protocol(name) for name in protocol_names()}
    return [
        name
        for name, one in protocols.items()
        if one.similarity in kinds and one.scope.allows("plain_tables")
    ]


def fits(
    protocol: Protocol, ground_truth: GroundTruth, detections: Detections, asked: Protocol | None = None
) -> bool:
    """Return whether the tables have the objects, scores and image labels that a protocol reads.

    ``asked`` is the protocol that the user named: other protocols may read the same optional columns.
    """
    more = {*_beyond_plain(protocol)}
    plain = more <= ({*_beyond_plain(asked)} if asked is not None else set())
    if not plain or not fits_scores(protocol, detections):
        return False
    labeled = ground_truth.image_labels is not None
    if not labeled and not protocol.scope.allows("unlabeled_images"):
        return False
    if protocol.group.treatment == "merge" and not (labeled or ground_truth.group.any()):
        return False
    return _holds_what_is_compared(ground_truth, detections, protocol)


def fits_scores(protocol: Protocol, detections: Detections) -> bool:
    """Return whether detections have scores if a protocol reads them, and none if it does not."""
    return (protocol.matching.scores == "given") == detections.scored


def _beyond_plain(protocol: Protocol) -> list[str]:
    """List the fields that need more than plain tables."""
    return [refusal.name for refusal in protocol.scope.refusals("plain_tables")]


def _holds_what_is_compared(ground_truth: GroundTruth, detections: Detections, protocol: Protocol) -> bool:
    tables = (ground_truth, detections)
    if all(table.quadrilaterals is not None or table.rotated is not None for table in tables):
        return protocol.similarity in ORIENTED
    if detections.boxes_given:
        return protocol.similarity == "box"
    if protocol.similarity in ("mask", "boundary"):
        return detections.masks is not None and ground_truth.masks is not None
    if protocol.similarity == "keypoints":
        points, truths = detections.keypoints, ground_truth.keypoints
        count, parts = len(protocol.keypoints.sigmas), {*protocol.keypoints.parts} - {"keypoints"}
        if parts:
            return all(parts <= {*table.columns} for table in tables)
        return points is not None and truths is not None and points.shape[1] == truths.shape[1] == count
    return False


@functools.cache
def _aliases() -> dict[str, str]:
    """Map other names of tools to protocols."""
    return {alias: name for name in tool_protocols() for alias in load_protocol(name).aliases}


def tool_of(tool: str | Path | Mapping[str, Any] | Protocol, iou: float | None) -> Tool:
    """Return a tool by name, or wrap any protocol; ``iou`` replaces its thresholds."""
    if isinstance(tool, str) and not tool.endswith(".toml"):
        name = _aliases().get(tool, tool)
        if name not in protocol_names():
            checks.one_of(name, tool_names(), name="tool")
        protocol = load_protocol(name)
    else:
        protocol = load_protocol(tool)
        name = protocol.name
    return reduced_tool(tool if isinstance(tool, str) else name, protocol, iou)


def reduced_tool(name: str, protocol: Protocol, iou: float | None = None) -> Tool:
    """Reduce a protocol to the fields that affect its number: all areas, the largest max detections."""
    # Keep one AP at the largest max detections; without ranking, keep the protocol's own metric.
    matching = protocol.matching.replaced(max_detections=protocol.matching.max_detections[-1:])
    metric = "AP"
    if protocol.rows and not any(named_kind(row.metric).needs_order for row in protocol.rows):
        first = protocol.rows[0]
        metric, iou = first.metric, first.iou if iou is None else iou
    # Replace the thresholds of the protocol by one.
    if iou is not None:
        checks.number_between(iou, 0, 1, name="iou", open_low=True)
        matching = matching.replaced(iou_thresholds=(iou,))
    # Drop names, types and area ranges, so that tools that differ only in these are equal.
    reduced = protocol.replaced(
        name="explained",
        title="",
        aliases=(),
        of_type={},
        matching=matching,
        ignore=protocol.ignore.replaced(area_ranges={"all": (0.0, math.inf)}, image_ranges={}),
        summary=(
            SummaryRow("AP", metric),
            SummaryRow("AP50", metric, iou=0.5),
            SummaryRow("AP75", metric, iou=0.75),
        ),
    )
    return Tool(name, reduced)


def with_similarity(tool: Tool, other: Tool) -> Tool:
    """Return the tool with the other's similarity, if the same tables serve both.

    Raises
    ------
    ProtocolError
        When the two compare different kinds of objects, such as boxes and masks.
    """
    given, wanted = tool.protocol.similarity, other.protocol.similarity
    if given != wanted and not any({given, wanted} <= {*kinds} for kinds in (("mask", "boundary"), ORIENTED)):
        raise ProtocolError(
            "explained protocols",
            "compare the same kind of objects",
            got=f"{tool.name!r} by {given} and {other.name!r} by {wanted}",
        )
    return tool._replace(protocol=tool.protocol.replaced(similarity=wanted))


def with_choices(tool: Tool, other: Tool, choices: Sequence[Choice]) -> Tool | None:
    """Return the tool with some choices of the other tool; None if the combination is not allowed."""
    paths = [path for choice in choices for path in choice.paths]
    try:
        return with_fields(tool, {path: operator.attrgetter(path)(other.protocol) for path in paths})
    except ProtocolError:
        return None


def with_fields(tool: Tool, values: Mapping[str, Any]) -> Tool:
    """Return a tool with fields of its protocol (``table.name`` or ``name``) changed together.

    Changing one of them alone may be invalid.
    """
    fields: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        table, _, name = path.rpartition(".")
        fields.setdefault(table, {})[name] = value
    changed = fields.pop("", {})
    for table, some in fields.items():
        changed[table] = getattr(tool.protocol, table).replaced(**some)
    return tool._replace(protocol=tool.protocol.replaced(**changed))
