"""The result of an evaluation whose parts stay where they were matched."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.resampling import WeightSets
from boxscore.data.vocabulary import Categories, Images
from boxscore.distributed.merging import MergedEvaluation, MergedParts, images_in_order, numbered_images
from boxscore.distributed.parts import Part, TruthIdentity
from boxscore.distributed.reduction import Engine, Numbers
from boxscore.distributed.weighing import HeldParts, weighed_parts
from boxscore.errors import InputError
from boxscore.protocols.protocol import SummaryRow
from boxscore.scoring.joined import JoinedCurves
from boxscore.scoring.weighing import Weighed

__all__ = ["DistributedEvaluation"]

FETCHED = 1 << 24
"""Detections whose parts are brought here, 20 to 30 bytes each, and several hundred while they are used."""


class DistributedEvaluation(MergedEvaluation):
    """What a cluster brought back: an :class:`~boxscore.Evaluation` of numbers.

    Metrics, per-class values, curves and arrays are there, with the bits of one process. Bootstrap intervals,
    slices by image and comparisons weigh images where the parts are, as long as the cluster holds them.
    Operating points and FROC fetch the parts, of up to 16 million detections. What needs boxes or overlaps is
    refused by name.
    """

    def __init__(self) -> None:
        raise InputError("a DistributedEvaluation", "be made by boxscore.distributed.evaluate", got="a call")

    @classmethod
    def of(cls, numbers: Numbers, held: HeldParts | None = None) -> DistributedEvaluation:
        """Make a result of numbers, and of the parts where they are."""
        self = cls.__new__(cls)
        vars(self).update(
            protocol=numbers.protocol,
            chosen_classes=False,
            categories=numbers.categories,
            counts=dict(numbers.counts),
            labels=numbers.labels,
            class_counts=dict(numbers.class_counts),
            left_out=dict(numbers.left_out),
            identity=numbers.identity,
            _curves=dict(numbers.curves),
            _held=held,
        )
        return self

    categories: Categories
    left_out: dict[str, int]
    identity: TruthIdentity
    _curves: dict[tuple[int, int, str | None], JoinedCurves]
    _held: HeldParts | None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_held": None}

    @property
    def class_columns(self) -> dict[str, NDArray[Any]]:
        """What the data set says of each class, [K]; nothing with classes pooled."""
        return dict(self.categories.columns) if self.protocol.matching.per_class else {}

    def curves_of(self, area: int = 0, cap: int = -1, pooled: str | None = None) -> Any:
        """Return the numbers of an area range and a detection cap, as in :class:`MergedEvaluation`."""
        return self._curves[area, cap % len(self.protocol.caps), pooled]

    def weighed(self, rows: Sequence[SummaryRow], weights: WeightSets, *, progress: bool = False) -> Weighed:
        """Compute summary metrics under image weights, where the parts are."""
        return weighed_parts(self._there(), rows, weights)

    @property
    def image_count(self) -> int:
        """Images that were evaluated, those without objects too."""
        return self.counts["images"]

    @functools.cached_property
    def images(self) -> Images:
        """All images, with the columns that every part has; their ids and columns are brought here."""
        with self._engine() as engine:
            tasks = [engine.submit("images", _images_of, part) for part in self._there().parts]
            tables = engine.results(tasks)
        named = [SimpleNamespace(image_ids=ids, source="") for ids, _ in tables]
        ids, places = numbered_images(named)
        order = np.empty(len(ids), dtype=np.int64)
        order[np.concatenate(places)] = np.arange(len(ids))
        return images_in_order(ids, order, [columns for _, columns in tables])

    @functools.cached_property
    def parts(self) -> MergedParts:  # type: ignore[override]
        """The parts, brought here from where they are."""
        count = int(self.class_counts["detections"].sum())
        if count > FETCHED:
            raise InputError(
                "detections whose parts are fetched",
                f"be at most {FETCHED:,}",
                got=f"{count:,}",
                cause="metrics, curves, bootstrap intervals, slices by image and comparisons need no parts "
                "here; for anything else evaluate some of the images by themselves",
            )
        with self._engine() as engine:
            return MergedParts(engine.results(list(self._there().parts)))

    @contextmanager
    def _engine(self) -> Iterator[Engine]:
        with self._there().running() as engine:
            yield engine

    def _there(self) -> HeldParts:
        if self._held is None:
            raise InputError(
                "the parts of a result",
                "still be on the cluster",
                got="numbers only",
                cause="ask before the client is closed, or save parts and merge them",
            )
        return self._held


def _images_of(part: Part) -> tuple[NDArray[Any], Mapping[str, NDArray[Any]]]:
    return part.image_ids, part.image_columns
