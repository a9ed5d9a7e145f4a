"""The result of an evaluation whose parts stay where they were matched."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from boxscore.data.vocabulary import Categories
from boxscore.distributed.merging import MergedEvaluation, MergedParts
from boxscore.distributed.reduction import Numbers
from boxscore.errors import InputError
from boxscore.scoring.joined import JoinedCurves

__all__ = ["DistributedEvaluation"]


class DistributedEvaluation(MergedEvaluation):
    """What a cluster brought back: an :class:`~boxscore.Evaluation` of numbers.

    Metrics, per-class values, curves and arrays are there, with the bits of one process. Bootstrap intervals,
    slices by image and comparisons weigh images: they fetch the parts, 20 to 30 bytes a detection, as long as
    the cluster holds them. What needs boxes or overlaps is refused by name.
    """

    def __init__(self) -> None:
        raise InputError("a DistributedEvaluation", "be made by boxscore.distributed.evaluate", got="a call")

    @classmethod
    def of(cls, numbers: Numbers, fetch: Callable[[], MergedParts] | None = None) -> DistributedEvaluation:
        """Make a result of numbers; ``fetch`` brings the parts."""
        self = cls.__new__(cls)
        vars(self).update(
            protocol=numbers.protocol,
            chosen_classes=False,
            categories=numbers.categories,
            counts=dict(numbers.counts),
            labels=numbers.labels,
            class_counts=dict(numbers.class_counts),
            left_out=dict(numbers.left_out),
            _curves=dict(numbers.curves),
            _fetch=fetch,
        )
        return self

    categories: Categories
    left_out: dict[str, int]
    _curves: dict[tuple[int, int, str | None], JoinedCurves]
    _fetch: Callable[[], MergedParts] | None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_fetch": None}

    @property
    def class_columns(self) -> dict[str, NDArray[Any]]:
        """What the data set says of each class, [K]; nothing with classes pooled."""
        return dict(self.categories.columns) if self.protocol.matching.per_class else {}

    def curves_of(self, area: int = 0, cap: int = -1, pooled: str | None = None) -> Any:
        """Return the numbers of an area range and a detection cap, as in :class:`MergedEvaluation`."""
        return self._curves[area, cap % len(self.protocol.caps), pooled]

    @functools.cached_property
    def parts(self) -> MergedParts:  # type: ignore[override]
        """The parts, brought here from where they are."""
        if self._fetch is None:
            raise InputError(
                "the parts of a result",
                "still be on the cluster",
                got="numbers only",
                cause="ask before the client is closed, or save parts and merge them",
            )
        return self._fetch()
