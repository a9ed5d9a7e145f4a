"""What an overlap must reach to be a match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.records import part
from boxscore.errors import ProtocolError
from boxscore.protocols.acting import Scope, matches
from boxscore.protocols.fields import Check, Rules, Step, Word, flag, grid_of, number, rule, text
from boxscore.protocols.grids import grid_text, number_text

MOST_THRESHOLDS = 64
"""IoU thresholds are stored as the bits of one unsigned integer."""

COCO_LARGEST_THRESHOLD = 0.9999999999


def _class_thresholds(value: Any, name: str) -> dict[str, tuple[float, ...]]:
    if not isinstance(value, Mapping):
        raise ProtocolError(name, "be a table of class = [threshold, ...]", got=repr(value))
    check = grid_of(most=MOST_THRESHOLDS, open_low=True)
    return {text(key, name): check(grid, f"{name}.{key}") for key, grid in value.items()}


def _thresholds(protocol: Any) -> str:
    """Write the grid of IoU thresholds."""
    return grid_text(protocol.matching.iou_thresholds)


def _largest_threshold(protocol: Any) -> str:
    """Write the bound; nothing where thresholds are lowered as COCO's would be."""
    matching = protocol.matching
    lowered = np.minimum(matching.iou_thresholds, matching.largest_threshold)
    same = (lowered == np.minimum(matching.iou_thresholds, COCO_LARGEST_THRESHOLD)).all()
    return "" if same else number_text(matching.largest_threshold)


def _class_thresholds_text(protocol: Any) -> str:
    """Write the classes that have other thresholds; nothing where none has."""
    of_class = protocol.matching.class_thresholds
    return ",".join(f"{name}={grid_text(thresholds)}" for name, thresholds in of_class.items())


def _threshold_range(protocol: Any) -> str:
    """Write the IoU thresholds briefly, rounded."""
    values = protocol.matching.iou_thresholds
    return grid_text(values) if len(values) < 3 else f"{values[0]:.2f}:{values[-1]:.2f}/{len(values)}"


@part(frozen=True)
class ThresholdFields(Rules):
    """The thresholds, and those of single classes."""

    iou_thresholds: tuple[float, ...] = rule(
        (0.5,),
        check=grid_of(most=MOST_THRESHOLDS, open_low=True),
        doc="What an overlap must reach to be a match, ascending, [T].",
        word=Word("iou", text=_thresholds, note="one, several, or `first:last/count`"),
        step=Step("IoU thresholds", "thresholds", _threshold_range),
        scope=matches(Scope.ROW),
        replaces=True,
    )
    largest_threshold: float = rule(
        1.0,
        check=number(0, 1, open_low=True),
        doc="Higher thresholds are lowered to this (pycocotools: 1 - 1e-10).",
        word=Word("top", text=_largest_threshold, note="left out where it makes no difference"),
        step="matching.iou_thresholds",
        scope=matches(Scope.ROW),
    )
    class_thresholds: Mapping[str, tuple[float, ...]] = rule(
        {},
        check=Check("class = grid in (0, 1]", _class_thresholds),
        doc="Classes with IoU thresholds of their own, by name: as many as `iou_thresholds`, in whose place "
        "they stand (KITTI: `Car = [0.7]` beside 0.5).",
        word=Word("classiou", text=_class_thresholds_text, note="the classes with thresholds of their own"),
        step="matching.iou_thresholds",  # which are as many
        scope=matches(Scope.ROW),
    )

    def _check_together(self: Any) -> None:
        count = len(self.iou_thresholds)
        for name, thresholds in self.class_thresholds.items():
            if len(thresholds) != count:
                rule = f"have {count} values, one for each of matching.iou_thresholds"
                raise ProtocolError(f"matching.class_thresholds.{name}", rule, got=len(thresholds))
        if self.class_thresholds and not self.per_class:
            raise ProtocolError(
                "matching.class_thresholds", "be left out where classes are pooled", got="some"
            )

    @property
    def effective_thresholds(self) -> NDArray[np.float64]:
        """What an overlap must reach (``>=``) at each IoU threshold, [T]."""
        return self._effective(self.iou_thresholds)

    def effective_thresholds_of(self, name: str) -> NDArray[np.float64]:
        """Return what an overlap must reach for a class, [T]."""
        return self._effective(self.class_thresholds.get(name, self.iou_thresholds))

    @property
    def least_threshold(self) -> float:
        """What an overlap must reach to match at all, in any class."""
        lowest = (self.iou_thresholds[0], *(grid[0] for grid in self.class_thresholds.values()))
        return float(self._effective((min(lowest),))[0])

    def levels_of(
        self, overlaps: NDArray[np.float64], group: NDArray[np.int64], names: NDArray[Any] | None
    ) -> NDArray[np.intp]:
        """How many thresholds each overlap reaches, [P]; ``group`` is of images and classes, image first."""
        if names is None or not self.class_thresholds:
            return np.searchsorted(self.effective_thresholds, overlaps, side="right")
        return self.levels(overlaps, group % len(names), names)

    def levels(
        self, overlaps: NDArray[np.float64], classes: NDArray[np.integer[Any]], names: NDArray[Any]
    ) -> NDArray[np.intp]:
        """How many thresholds of its class each overlap reaches, [P]; ``names`` are of the classes [K]."""
        level = np.searchsorted(self.effective_thresholds, overlaps, side="right")
        for name in self.class_thresholds:
            rows = np.isin(classes, np.flatnonzero(names == name))
            thresholds = self.effective_thresholds_of(name)
            level[rows] = np.searchsorted(thresholds, overlaps[rows], side="right")
        return level

    def _effective(self: Any, thresholds: tuple[float, ...]) -> NDArray[np.float64]:
        lowered: NDArray[np.float64] = np.minimum(thresholds, self.largest_threshold)
        return lowered if self.threshold_closed else np.nextafter(lowered, np.inf)


@part(frozen=True)
class ThresholdClosedField(Rules):
    """What an overlap equal to a threshold is."""

    threshold_closed: bool = rule(
        True,
        check=flag,
        doc="Whether an overlap equal to the threshold matches (`>=`).",
        word=Word(
            "match",
            silent=True,
            text={False: ">", True: ">="},
            note="`>` where an overlap equal to the threshold does not match",
        ),
        step=Step("threshold", "thresholds", {False: ">", True: ">="}),
        scope=matches(Scope.ROW),
    )
