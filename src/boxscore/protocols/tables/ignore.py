"""Define ``[ignore]``: flags, objects without keypoints, ranges, shares and regions that do not count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from boxscore._utils import checks
from boxscore.errors import ProtocolError
from boxscore.protocols.acting import Does, Refusal, Scope, matches, prepares
from boxscore.protocols.fields import (
    Check,
    Reads,
    Rules,
    Step,
    Word,
    choice,
    flag,
    list_of,
    number,
    rule,
    text,
)
from boxscore.protocols.grids import number_text

CrowdRule = Literal["iof", "ignore", "count", "delete"]
IgnoreRule = Literal["ignore", "count", "delete"]
FlaggedRule = Literal["ignore", "iof", "count", "delete"]
DetectionArea = Literal["box", "mask", "box_or_mask"]
Outside = Literal["ignore", "absorb", "iof"]
UnlabeledBy = Literal["num_keypoints", "visibility"]
UnlabeledRule = Literal["count", "ignore"]
Share = Literal["each", "sum"]
Within = Literal["anywhere", "center"]


_IN_WORDS = {"ignore": "ignored", "count": "counted", "delete": "deleted", "iof": "ignored, by IoF"}
"""Names of the values in the steps of a waterfall."""

COCO_AREAS = {"all": (0.0, 1e10), "small": (0.0, 1024.0), "medium": (1024.0, 9216.0), "large": (9216.0, 1e10)}


def _area_ranges(value: Any, name: str) -> dict[str, tuple[float, float]]:
    if not isinstance(value, Mapping):
        raise ProtocolError(name, "be a table of name = [low, high]", got=repr(value))
    if not value:
        raise ProtocolError(name, "name at least one range", got="none")
    return {text(key, name): _area_range(pair, f"{name}.{key}") for key, pair in value.items()}


def _area_range(pair: Any, name: str) -> tuple[float, float]:
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise ProtocolError(name, "be [low, high]", got=repr(pair))
    low, high = (checks.number_between(end, 0, np.inf, name=name) for end in pair)
    if low > high:
        raise ProtocolError(name, "have low <= high", got=[low, high])
    return low, high


def _column_ranges(value: Any, name: str) -> dict[str, dict[str, tuple[float, float]]]:
    if not isinstance(value, Mapping):
        raise ProtocolError(name, "be a table of area range = {column = [low, high]}", got=repr(value))
    return {text(key, name): _area_ranges(columns, f"{name}.{key}") for key, columns in value.items()}


def _areas(protocol: Any) -> str:
    """Name COCO's ranges and the range of all areas; otherwise format each range."""
    ranges = protocol.ignore.area_ranges
    if ranges == COCO_AREAS:
        return "coco"
    if ranges == {"all": (0.0, float("inf"))}:
        return "all"
    return ",".join(f"{name}={number_text(low)}-{number_text(high)}" for name, (low, high) in ranges.items())


def _column_ranges_text(protocol: Any) -> str:
    """Format the columns that bound each range; empty if only areas do."""
    return _bounds_text(protocol.ignore.column_ranges)


def _image_ranges_text(protocol: Any) -> str:
    """Format the columns of images that bound each range; empty without any."""
    return _bounds_text(protocol.ignore.image_ranges)


def _image_columns(protocol: Any) -> tuple[str, ...]:
    """Return the columns of images that bound a range."""
    return tuple(name for columns in protocol.ignore.image_ranges.values() for name in columns)


def _bounds_columns(protocol: Any) -> bool:
    return len(protocol.ignore.column_ranges) > 0


def _bounds_images(protocol: Any) -> bool:
    return len(protocol.ignore.image_ranges) > 0


def _differs_by_range(protocol: Any) -> bool:
    """Whether a range decides how pairs are measured or which detections take part; summed shares aside."""
    return bool(protocol.ignore.range_by_range and protocol.ignore.share == "each")


def _bounds_text(ranges: Mapping[str, Mapping[str, tuple[float, float]]]) -> str:
    return ",".join(
        f"{name}." + "&".join(f"{column}={_ends(ends)}" for column, ends in columns.items())
        for name, columns in ranges.items()
    )


def _ends(ends: tuple[float, float]) -> str:
    return f"{number_text(ends[0])}-{number_text(ends[1])}"


def _unlabeled(protocol: Any) -> str:
    """Describe the treatment of objects without keypoints, and how they are recognized."""
    rules = protocol.ignore
    return "counted" if rules.unlabeled == "count" else f"ignored, by {rules.unlabeled_by}"


def _sums(protocol: Any) -> bool:
    return bool(protocol.ignore.share == "sum")


def _has_void(protocol: Any) -> bool:
    return bool(protocol.ignore.void)


def _by_center(protocol: Any) -> bool:
    return bool(protocol.ignore.within == "center")


def _has_regions(protocol: Any) -> bool:
    return bool(protocol.ignore.regions)


class IgnoreRules(Rules):
    """Ground truths and detections that are neither right nor wrong."""

    PREFIX = "ignore."

    # flags
    crowd: CrowdRule = rule(
        "iof",
        check=choice(CrowdRule),
        doc="Crowd regions: ignored and measured by intersection over the detection (COCO), ignored and "
        "measured by IoU, counted like any object, or removed before matching. Ignored regions absorb "
        "any number of detections.",
        word=Word("crowd"),
        step=Step("crowd regions", "tables", _IN_WORDS | {"ignore": "ignored, by IoU"}),
        scope=matches(Scope.ROW),
    )
    difficult: IgnoreRule = rule(
        "count",
        check=choice(IgnoreRule),
        doc="Difficult objects: ignored, absorbing any number of detections; counted like any object; or "
        "removed before matching.",
        word=Word("difficult", silent="count"),
        step=Step("difficult objects", "tables", _IN_WORDS),
        scope=matches(Scope.ROW),
    )
    flagged: FlaggedRule = rule(
        "ignore",
        check=choice(FlaggedRule),
        doc="Ground truths with the `ignore` flag: ignored, each absorbing at most one detection; ignored, "
        "absorbing any number and measured by intersection over the detection; counted like any object; "
        "or removed before matching.",
        word=Word("flagged", silent="ignore"),
        step=Step("objects flagged ignore", "tables", _IN_WORDS),
        scope=matches(Scope.ROW),
    )
    flags: tuple[str, ...] = rule(
        (),
        check=list_of(text, "a list"),
        doc='Keys of annotations, or columns, that set the `ignore` flag where they are true: `["ignore"]` '
        'in COCO files (SODA-D), `["ignore", "uncertain"]` (TinyPerson). Empty: the default of the '
        "format.",
        word=Word("flags", silent=(), text=lambda protocol: "+".join(protocol.ignore.flags)),
        step="ignore.flagged",
        scope=matches(Scope.ROW),
        refuses=(Refusal("plain_tables", lambda protocol: protocol.ignore.flags != ()),),
        reads=Reads("rows", lambda protocol: protocol.ignore.flags),
    )
    # ranges
    detection_area: DetectionArea = rule(
        "box",
        check=choice(DetectionArea),
        doc="The area of a detection in area ranges: width times height; its mask's pixels; or width times "
        "height if the results carry boxes and the mask's pixels if they do not (pycocotools).",
        word=Word("dtarea", silent="box"),
        scope=matches(Scope.ROW),
    )
    # keypoints
    unlabeled: UnlabeledRule = rule(
        "count",
        check=choice(UnlabeledRule),
        doc="Ground truths without a labeled keypoint: counted, or ignored.",
        word=Word("nokpt", silent="count"),
        step=Step("objects without keypoints", "tables", _unlabeled),
        scope=matches(Scope.ROW),
        does=(
            Does(
                "ignore",
                "boxscore.extensions.keypoints.joining:ignoring_unlabeled",
                lambda protocol: protocol.ignore.unlabeled == "ignore",
            ),
        ),
    )
    unlabeled_by: UnlabeledBy = rule(
        "num_keypoints",
        check=choice(UnlabeledBy),
        doc="How ground truths without a labeled keypoint are recognized: `num_keypoints` is 0 (COCO; "
        "CrowdPose, which does not count head and neck), or every keypoint has visibility 0 "
        "(xtcocotools).",
        word=Word("nokptby", silent="num_keypoints"),
        step="ignore.unlabeled",
        scope=prepares(Scope.ROW),
    )
    # ranges
    area_ranges: Mapping[str, tuple[float, float]] = rule(
        {"all": (0.0, math.inf)},
        check=Check("name = [low, high]", _area_ranges),
        doc="Square pixels, closed at both ends. Ground truths outside are ignored, and so are unmatched "
        "detections outside.",
        word=Word("area", text=_areas, note="`coco`, `all`, or each range"),
        scope=matches(Scope.ROW),
        replaces=True,
    )
    column_ranges: Mapping[str, Mapping[str, tuple[float, float]]] = rule(
        {},
        check=Check("area range = {column = [low, high]}", _column_ranges),
        doc="Further bounds of an area range on the ground truth, closed at both ends: by the range's name, "
        "its `area`, the `width`, `height`, `x1`, `y1`, `x2`, `y2` of its box in pixels, or a column of "
        "the ground truth. An object must be within all of them to be in the range.",
        word=Word("ranges", text=_column_ranges_text, note="the columns that bound each range"),
        step=Step("subsets", "tables", _column_ranges_text),
        scope=matches(Scope.ROW),
        replaces=True,
        refuses=(Refusal("plain_tables", _bounds_columns),),
        does=(
            Does("ranges", "boxscore.extensions.crowds.column_ranges:in_column_ranges", _bounds_columns, 10),
        ),
    )
    image_ranges: Mapping[str, Mapping[str, tuple[float, float]]] = rule(
        {},
        check=Check("area range = {column of images = [low, high]}", _column_ranges),
        doc="Bounds of an area range on columns of the images, closed at both ends: only images within them "
        "count in it, as if they were evaluated alone (CrowdPose: `crowdIndex`).",
        word=Word("images", text=_image_ranges_text, note="the columns of images that bound each range"),
        step=Step("subsets of images", "tables", _image_ranges_text),
        scope=matches(Scope.ROW),
        replaces=True,
        reads=Reads("images", _image_columns),
        does=(
            Does("ranges", "boxscore.extensions.crowds.column_ranges:in_image_ranges", _bounds_images, 20),
            Does(
                "unmatched",
                "boxscore.extensions.crowds.column_ranges:counted_in_image_ranges",
                _bounds_images,
            ),
        ),
    )
    outside: Outside = rule(
        "ignore",
        check=choice(Outside),
        doc="Ground truths outside a range: ignored, each absorbing at most one detection (COCO); ignored, "
        "absorbing any number; or the same, measured by intersection over the detection.",
        word=Word("outside", silent="ignore"),
        step=Step("objects outside a range", "matching"),
        scope=matches(Scope.ROW),
    )
    least_height_closed: bool = rule(
        True,
        check=flag,
        doc="Whether a ground truth as high as the lower bound of a range on `height` is in the range "
        "(`>=`; not in KITTI).",
        word=Word("leastheight", silent=True, text={False: ">"}, note="`>` where that height is too low"),
        step="ignore.column_ranges",
        scope=matches(Scope.ROW),
    )
    height_slack: float = rule(
        0.0,
        check=number(0, 1e6),
        doc="Detections are dropped from a range with bounds on `height` if their height is below the lower "
        "bound divided by this factor, or not below the upper bound times it (Caltech: 1.25); 0 keeps "
        "all.",
        word=Word("dtheight", silent=0.0),
        step=Step("heights of detections", "ranking", {0.0: "any"}),
        scope=matches(Scope.ROW),
        does=(
            Does("pairs", "boxscore.extensions.crowds.column_ranges:range_by_range", _differs_by_range, 10),
        ),
    )
    # shares
    share: Share = rule(
        "each",
        check=choice(Share),
        doc="The region of an intersection over the detection: each ignored object alone; or all ignored "
        "objects of the class together (Cityscapes). In the latter case, ignored objects match nothing "
        "else; only detections that overlap no counted object enough can match them; and a crowd "
        "outside the range counts twice.",
        word=Word("shares", silent="each"),
        step=Step("shares on ignored objects", "matching", {"each": "of each", "sum": "of all together"}),
        scope=matches(lambda protocol: Scope.IMAGE if _sums(protocol) else Scope.ROW),
        refuses=(
            Refusal(
                "together",
                lambda protocol: _sums(protocol) and protocol.similarity != "mask",
                "be 'mask' where shares of detections are added up",
                field="similarity",
                cause='pixels are added up: give masks, or take ignore.share = "each"',
            ),
            Refusal(
                "together",
                lambda protocol: _sums(protocol) and protocol.masks_may_lack,
                "be 'refuse' where shares of detections are added up",
                field="masks.box_only_truth",
            ),
            Refusal(
                "together",
                lambda protocol: _sums(protocol) and protocol.group.treatment == "merge",
                "be 'count' where shares of detections are added up",
                field="group.treatment",
            ),
            Refusal(
                "together",
                lambda protocol: _sums(protocol) and bool(protocol.matching.class_thresholds),
                "be left out where shares of detections are added up",
                field="matching.class_thresholds",
                got="some",
            ),
        ),
        does=(Does("pairs", "boxscore.extensions.crowds.shares:summed_shares", _sums, 10),),
    )
    void: str = rule(
        "",
        check=text,
        doc="The class whose objects are regions without a class: they become objects with the flag "
        "`ignore` in every class detected in their image (Cityscapes).",
        word=Word("void", silent=""),
        step=Step("regions of no class", "tables", {"": "none"}),
        scope=prepares(lambda protocol: Scope.IMAGE if protocol.ignore.void else Scope.ROW),
        refuses=(Refusal("plain_tables", _has_void),),
        does=(Does("prepare", "boxscore.extensions.crowds.regions:with_void", _has_void, 60),),
    )
    # regions
    regions: str = rule(
        "",
        check=text,
        doc="The class whose objects are unannotated regions of their image: objects and detections of "
        "every class with at least half their area inside are dropped before anything else (VisDrone).",
        word=Word("regions", silent=""),
        step=Step("regions that are not annotated", "tables", {"": "none"}),
        scope=prepares(lambda protocol: Scope.IMAGE if protocol.ignore.regions else Scope.ROW),
        refuses=(Refusal("plain_tables", _has_regions),),
        does=(Does("prepare", "boxscore.extensions.crowds.regions:outside_regions", _has_regions, 40),),
    )
    within: Within = rule(
        "anywhere",
        check=choice(Within),
        doc="Where objects and detections count: anywhere; or where the regions of their image say that the "
        "center of the box does. Other objects are ignored, and so are unmatched detections.",
        word=Word("within", silent="anywhere"),
        step=Step("regions that count", "tables"),
        scope=matches(Scope.ROW),
        refuses=(
            Refusal("plain_tables", _by_center),
            Refusal("streams", _by_center, 'be "anywhere" where Parquet is read in partitions'),
        ),
        does=(
            Does("ignore", "boxscore.extensions.regions.counting:ignored_elsewhere", _by_center),
            Does("unmatched", "boxscore.extensions.regions.counting:counted_there", _by_center),
        ),
    )

    # ranges

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Ends of the area ranges, [A].

        A range from 0 to infinity also contains negative areas if it is the only one, or is bounded by other
        columns.
        """
        return [
            (-math.inf, math.inf)
            if ends == (0.0, math.inf) and (len(self.area_ranges) == 1 or name in self.column_ranges)
            else ends
            for name, ends in self.area_ranges.items()
        ]

    @property
    def range_by_range(self) -> bool:
        """Whether the range decides how a pair is measured, or which detections take part."""
        return self.outside != "ignore" or self.height_slack > 0 or self.share == "sum"
