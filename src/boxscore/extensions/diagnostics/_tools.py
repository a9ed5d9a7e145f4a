"""Tools as sets of choices, for :mod:`boxscore.extensions.diagnostics.explaining`.

Conventions
-----------
A tool is a protocol reduced to what its AP over all areas at the largest max detections depends on; where it
ranks nothing, to what its first summary metric depends on. A choice is one or more fields of it that belong
together, as the fields themselves say.
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
"""Similarities of oriented boxes: each can compare what the others do."""


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
"""The choices that move the number, in the order of the waterfall's steps."""


def tool_names() -> list[str]:
    """Names that :func:`~boxscore.diagnostics.explain` knows: protocols of boxes, and aliases."""
    return sorted([*tool_protocols(), *tool_protocols(oriented=True), *_aliases()])


def tool_protocols(*, oriented: bool = False) -> list[str]:
    """Names of the shipped protocols that compare upright boxes, or oriented ones."""
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
    """Whether tables hold what a protocol compares, and the scores and labels of images that it reads.

    ``asked`` is one that the user named: what else it reads of tables, others may read as well.
    """
    more = {*_beyond_plain(protocol)}
    plain = more <= ({*_beyond_plain(asked)} if asked is not None else set())
    if not plain or not fits_scores(protocol, detections):
        return False
    labelled = ground_truth.image_labels is not None
    if not labelled and not protocol.scope.allows("unlabelled_images"):
        return False
    if protocol.group.treatment == "merge" and not (labelled or ground_truth.group.any()):
        return False
    return _holds_what_is_compared(ground_truth, detections, protocol)


def fits_scores(protocol: Protocol, detections: Detections) -> bool:
    """Whether detections have the scores that a protocol reads, or none where it reads none."""
    return (protocol.matching.scores == "given") == detections.scored


def _beyond_plain(protocol: Protocol) -> list[str]:
    """Fields for which plain tables are not enough."""
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
    """Other names of tools, and the protocol that each stands for."""
    return {alias: name for name in tool_protocols() for alias in load_protocol(name).aliases}


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
    return reduced_tool(tool if isinstance(tool, str) else name, protocol, iou)


def reduced_tool(name: str, protocol: Protocol, iou: float | None = None) -> Tool:
    """Reduce a protocol to what its number depends on, all areas together, at the largest max detections."""
    # One AP at the largest max detections; without an order of scores, the protocol's own metric.
    matching = protocol.matching.replaced(max_detections=protocol.matching.max_detections[-1:])
    metric = "AP"
    if protocol.rows and not any(named_kind(row.metric).needs_order for row in protocol.rows):
        first = protocol.rows[0]
        metric, iou = first.metric, first.iou if iou is None else iou
    # One threshold in place of the protocol's.
    if iou is not None:
        checks.number_between(iou, 0, 1, name="iou", open_low=True)
        matching = matching.replaced(iou_thresholds=(iou,))
    # Names, types and area ranges go, so that tools that differ only in them are equal.
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
    """Return the tool with the other's similarity, where the same tables have what both compare.

    Raises
    ------
    ProtocolError
        When the two compare different objects, such as boxes and masks.
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
    """Return the tool with some choices made as the other makes them; None where rules do not allow them."""
    paths = [path for choice in choices for path in choice.paths]
    try:
        return with_fields(tool, {path: operator.attrgetter(path)(other.protocol) for path in paths})
    except ProtocolError:
        return None


def with_fields(tool: Tool, values: Mapping[str, Any]) -> Tool:
    """Return a tool with fields of its protocol, ``table.name`` or ``name``, changed at once.

    One of them alone can break a rule.
    """
    fields: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        table, _, name = path.rpartition(".")
        fields.setdefault(table, {})[name] = value
    changed = fields.pop("", {})
    for table, some in fields.items():
        changed[table] = getattr(tool.protocol, table).replaced(**some)
    return tool._replace(protocol=tool.protocol.replaced(**changed))
