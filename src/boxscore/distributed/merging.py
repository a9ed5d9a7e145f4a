"""Parts to scores: every number with the bits that one process would have given.

Goal
----
Parts of disjoint images, from whatever partition, are merged block of classes by block of classes: a curve
depends on its class alone, so that no more than one block is sorted and drawn at a time.

Conventions
-----------
- Parts must have one protocol, one version of boxscore and the same classes; an image is in one part.
- Images are ordered by their ids over all parts, as in one vocabulary. Equal scores go as the protocol says:
  image by image, or by rows, which :mod:`boxscore.distributed.parts` defines.
- A merged result has no rows: what needs boxes or overlaps is refused by name.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import descending_order, rank_in_runs, stable_order
from boxscore._utils.resampling import WeightSets
from boxscore._version import __version__
from boxscore.data.vocabulary import Categories, Images, Vocabulary
from boxscore.distributed.parts import COUNTED, DESCRIBING, Part, TruthIdentity, load_part
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation, counts_of_classes
from boxscore.matching.matches import Matches
from boxscore.matching.packed import Placed, unpacked
from boxscore.protocols.protocol import Protocol, SummaryRow
from boxscore.scoring.curves import Curves
from boxscore.scoring.joined import JoinedCurves
from boxscore.scoring.weighing import Weighed

__all__ = [
    "BLOCK",
    "MergedEvaluation",
    "MergedParts",
    "check_headers",
    "images_in_order",
    "merge",
    "numbered_images",
]

BLOCK = 1 << 22
"""Detections that are sorted and drawn together, unless one class has more."""

NO_ROWS = "merged parts hold scores and outcomes only: evaluate these images by themselves, boxscore.evaluate"


def merge(parts: Iterable[Part | str | Path]) -> MergedEvaluation:
    """Merge parts of disjoint images, or the files they were saved to.

    Parameters
    ----------
    parts : iterable of Part, str or Path
        In the order of their detections, where equal scores go in file order.

    Returns
    -------
    MergedEvaluation
        With the bits of :func:`boxscore.evaluate` on all images at once.

    Raises
    ------
    InputError
        When there is none; when protocols, versions or classes differ; when an image is in two.
    FileFormatError
        When a file is no part, or damaged.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> from boxscore.distributed import part_of
    >>> boxes = [[10, 10, 50, 50]]
    >>> parts = []
    >>> for image, score in ((1, 0.9), (2, 0.8)):
    ...     truth = GroundTruth.from_arrays([image], ["cat"], boxes)
    ...     found = Detections.from_arrays([image], ["cat"], boxes, [score])
    ...     parts.append(part_of(evaluate(truth, found)))
    >>> round(merge(parts)["AP"], 6)
    1.0
    """
    return MergedEvaluation(
        MergedParts([part if isinstance(part, Part) else load_part(part) for part in parts])
    )


class MergedParts:
    """Parts that fit together, numbered as one.

    Parameters
    ----------
    parts : sequence of Part

    Raises
    ------
    InputError
        When they do not fit together.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        if not parts:
            raise InputError("parts to merge", "be one or more", got="none")
        self.parts = parts
        self.protocol: Protocol = parts[0].protocol
        check_headers(parts)
        self.ids, self._places = numbered_images(parts)
        self.every_class: Categories = parts[0].categories
        per_class = self.protocol.matching.per_class
        self.categories = self.every_class if per_class else Categories.build(["all"])

    @functools.cached_property
    def images(self) -> Images:
        """All images, with the columns that every part has."""
        order = np.empty(len(self.ids), dtype=np.int64)
        order[np.concatenate(self._places)] = np.arange(len(self.ids))
        return images_in_order(self.ids, order, [part.image_columns for part in self.parts])

    @property
    def detections_of_class(self) -> NDArray[np.int64]:
        """Matched detections of each class, [K]."""
        total: NDArray[np.int64] = sum(np.diff(part.matches.bounds[0]) for part in self.parts)
        return total

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Cut the classes into ranges of at most :data:`BLOCK` detections, or one class."""
        low, held = 0, 0
        for k, count in enumerate(self.detections_of_class.tolist()):
            if held and held + count > BLOCK:
                yield low, k
                low, held = k, 0
            held += count
        yield low, len(self.categories)

    def matches(self, low: int = 0, high: int | None = None) -> Matches:
        """Merge the classes in [low, high): scores and outcomes, without overlaps."""
        first = [0] * len(self.parts)
        if self.parts[0].row_order == "own":
            first = [0, *itertools.accumulate(part.row_count for part in self.parts[:-1])]
        placed = [
            Placed(part.matches, place, row)
            for part, place, row in zip(self.parts, self._places, first, strict=True)
        ]
        merged = unpacked(
            placed,
            self.images,
            self.categories,
            low=low,
            high=high,
            rows_by_image=self.parts[0].row_order == "image",
        )
        if self.protocol.matching.cap_scope == "data_set_class":
            merged = self._within_cap(merged, low, first)
        return merged

    def _within_cap(self, merged: Matches, low: int, first_rows: Sequence[int]) -> Matches:
        """Drop the detections beyond the cap of their class over the data set; ties go by row."""
        cap, K = self.protocol.caps[-1], len(merged.categories)
        if cap is None:
            return merged
        columns = [(merged.category.astype(np.int64), merged.score, merged.row)]
        for part, first in zip(self.parts, first_rows, strict=True):
            assert part.spent is not None
            category, score, row = part.spent
            here = (category >= low) & (category < low + K)
            columns.append((category[here].astype(np.int64) - low, score[here], row[here] + first))
        category, score, row = (np.concatenate(column) for column in zip(*columns, strict=True))
        order = np.argsort(row, kind="stable")
        order = order[descending_order(score[order])]
        order = order[stable_order(category[order], K)]
        kept = np.zeros(len(order), dtype=bool)
        kept[order[rank_in_runs(category[order]) < cap]] = True
        return merged.take_detections(kept[: len(merged)])


def check_headers(parts: Sequence[Any]) -> None:
    """Refuse parts, or their headers, that were not made alike."""
    first = parts[0]
    for part in parts:
        if part.version != __version__:
            raise InputError(
                "parts to merge",
                "be made by one version of boxscore, the one that merges them",
                got=f"{part.version}, where this is {__version__}",
                place=part.source,
            )
        if part.digest != first.digest:
            raise InputError(
                "parts to merge",
                "be made under one protocol",
                got=f"{first.protocol.name!r} in {first.source} and {part.protocol.name!r}",
                place=part.source,
                cause=_first_difference(first.protocol, part.protocol),
            )
        mine, yours = first.categories, part.categories
        if mine is not yours and (not mine.same_as(yours) or mine.names.tolist() != yours.names.tolist()):
            got = f"{len(mine)} in {first.source} and {len(yours)}"
            if len(mine) == len(yours):
                pairs = zip(mine.labels, yours.labels, strict=True)
                one, other = next((pair for pair in pairs if pair[0] != pair[1]), ("ids", "others"))
                got = f"{one!r} in {first.source} and {other!r}"
            raise InputError(
                "parts to merge",
                "have the same classes",
                got=got,
                place=part.source,
                cause="give every process the whole list of classes",
            )
        if part.row_order != first.row_order:
            raise InputError(
                "parts to merge",
                "have rows of one kind",
                got=f"{first.row_order!r} in {first.source} and {part.row_order!r}",
                place=part.source,
                cause="were some saved by an Evaluator, and others by evaluate?",
            )


def _first_difference(first: Protocol, second: Protocol) -> str:
    """Name a field in which two protocols differ."""
    for field in dataclasses.fields(Protocol):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if one == other or field.name in DESCRIBING:
            continue
        if dataclasses.is_dataclass(one):
            for inner in dataclasses.fields(one):
                mine, yours = getattr(one, inner.name), getattr(other, inner.name)
                if mine != yours:
                    return f"{field.name}.{inner.name} is {mine!r:.80} and {yours!r:.80}"
        return f"{field.name} differs"
    return ""


def numbered_images(parts: Sequence[Any]) -> tuple[NDArray[Any], list[NDArray[np.int32]]]:
    """Return the ids of all images, ordered, and the row of each part's images among them."""
    object_ids = any(part.image_ids.dtype == object for part in parts)
    counts = [len(part.image_ids) for part in parts]
    ids = np.concatenate([part.image_ids.astype(object) if object_ids else part.image_ids for part in parts])
    order = Vocabulary.order(ids)
    if len(order) < len(ids):
        _refuse_shared_image(parts)
    place = np.empty(len(ids), dtype=np.int32)
    place[order] = np.arange(len(ids), dtype=np.int32)
    return ids[order], np.split(place, np.cumsum(counts)[:-1])


def images_in_order(
    ids: NDArray[Any], order: NDArray[np.int64], columns: Sequence[Mapping[str, NDArray[Any]]]
) -> Images:
    """Join the images of parts, ordered, with the columns that every part has."""
    count = len(ids)
    shared = [name for name in columns[0] if all(name in own for own in columns)]
    return Images(
        ids,
        np.broadcast_to(np.array(None, dtype=object), count),
        np.broadcast_to(np.nan, (count, 2)),
        {name: np.concatenate([own[name] for own in columns])[order] for name in shared},
    )


def _refuse_shared_image(parts: Sequence[Any]) -> NoReturn:
    """Name an image that is in two parts, and the parts."""
    owner: dict[Any, Part] = {}
    shared: list[tuple[Any, Part, Part]] = []
    for part in parts:
        for identifier in part.image_ids.tolist():
            before = owner.setdefault(identifier, part)
            if before is not part:
                shared.append((identifier, before, part))
    identifier, one, other = shared[0]
    raise InputError(
        "an image",
        "be in one of the parts to merge",
        got=f"{identifier!r} in {one.source} and {other.source}",
        cause=f"{len(shared):,} such images; partition by image, each image in one partition",
    )


class MergedEvaluation(Evaluation):
    """The result of merging parts: an :class:`~boxscore.Evaluation` without rows.

    Metrics, per-class values, curves, arrays, bootstrap intervals and slices by image are there, with the
    bits of one process. What needs boxes or overlaps is refused by name.

    Parameters
    ----------
    parts : MergedParts
    """

    def __init__(self, parts: MergedParts) -> None:
        vars(self).update(parts=parts, protocol=parts.protocol, chosen_classes=False)

    parts: MergedParts

    def __getstate__(self) -> dict[str, Any]:
        return {"parts": self.parts, "protocol": self.protocol, "chosen_classes": False}

    def _refuse(self, name: str) -> NoReturn:
        raise InputError(
            f"{name} of merged parts", "be asked of tables", got="parts, which hold no boxes", cause=NO_ROWS
        )

    @property
    def ground_truth(self) -> Any:
        """Not kept."""
        self._refuse("the ground truth")

    @property
    def detections(self) -> Any:
        """Not kept."""
        self._refuse("the detections")

    @property
    def matches(self) -> Any:
        """Not kept."""
        self._refuse("the rows of matches")

    @property
    def outcomes(self) -> Any:
        """Not kept."""
        self._refuse("the outcomes of rows")

    @property
    def matcher(self) -> Any:
        """Not kept."""
        self._refuse("a second matching")

    @property
    def images(self) -> Images:
        """All images, with the columns that every part has."""
        return self.parts.images

    @property
    def holds_overlaps(self) -> bool:
        """No."""
        return False

    def require_overlaps(self, what: str) -> None:
        """Refuse what parts do not hold.

        Parameters
        ----------
        what : str
        """
        self._refuse(what)

    def has_same_truth(self, other: Evaluation) -> bool:
        """Whether another result is of the same images, classes and objects, by a digest of the objects.

        Parameters
        ----------
        other : Evaluation

        Returns
        -------
        bool
        """
        mine, yours = (
            one.identity if isinstance(one, MergedEvaluation) else TruthIdentity.of(one.ground_truth)
            for one in (self, other)
        )
        return mine.same_as(yours)

    @functools.cached_property
    def identity(self) -> TruthIdentity:
        """Tell the ground truth from others."""
        return TruthIdentity.joined(part.identity for part in self.parts.parts)

    def weighed(self, rows: Sequence[SummaryRow], weights: WeightSets, *, progress: bool = False) -> Weighed:
        """Compute summary metrics with every image counted as often as its weight says.

        Parameters
        ----------
        rows : sequence of SummaryRow
        weights : WeightSets
            Sets of whole numbers, [images] each.
        progress : bool, default False
            Show a progress bar if stderr is a terminal.

        Returns
        -------
        Weighed
        """
        from boxscore.distributed.reduction import Here, header_of
        from boxscore.distributed.weighing import HeldParts, weighed_parts

        parts = self.parts.parts
        held = HeldParts(parts, [header_of(part) for part in parts], lambda: nullcontext(Here()))
        return weighed_parts(held, rows, weights, progress=progress)

    @functools.cached_property
    def matched(self) -> Matches:
        """All classes merged, for what weighs images; made when it is first asked for."""
        return self.parts.matches()

    @functools.cached_property
    def labels(self) -> list[str]:
        """A name for each class, [K]; the axis K of every array here."""
        return self.parts.categories.labels

    @functools.cached_property
    def class_columns(self) -> dict[str, NDArray[Any]]:
        """What else is known of the classes, [K] each."""
        return dict(self.parts.categories.columns)

    @functools.cached_property
    def counts(self) -> dict[str, int]:
        """Numbers of images, ground truths, crowds, difficult, detections, classes and left out."""
        total: Counter[str] = Counter()
        for part in self.parts.parts:
            total.update(part.counts)
        return {
            "images": len(self.parts.ids),
            **{name: total[name] for name in COUNTED},
            "classes": len(self.parts.every_class),
            "left_out": sum(sum(part.left_out.values()) for part in self.parts.parts),
        }

    @functools.cached_property
    def class_counts(self) -> dict[str, NDArray[np.int64]]:
        """Ground truths, detections, and true positives at the first threshold of each class, [K]."""
        self._draw(self._asked())
        counts: dict[str, NDArray[np.int64]] = vars(self)["_class_counts"]
        return counts

    def curves_of(self, area: int = 0, cap: int = -1, pooled: str | None = None) -> Any:
        """Return the numbers of an area range and a detection cap; computed once.

        Parameters
        ----------
        area, cap : int
            Positions on the axes A and M.
        pooled : str, optional
            As in :meth:`boxscore.Evaluation.curves_of`.

        Returns
        -------
        JoinedCurves, or Curves where classes are pooled
        """
        if pooled is not None:
            return super().curves_of(area, cap, pooled)
        key = area, cap % len(self.protocol.caps)
        if key not in self._drawn:
            asked = self._asked()
            every = itertools.product(
                range(len(self.protocol.ignore.area_ranges)), range(len(self.protocol.caps))
            )
            self._draw(asked if key in asked else [one for one in every if one not in self._drawn])
        return self._drawn[key]

    @functools.cached_property
    def _drawn(self) -> dict[tuple[int, int], JoinedCurves]:
        return {}

    def _asked(self) -> list[tuple[int, int]]:
        """Return the area ranges and caps that the summary asks for, and the first of each."""
        areas, caps = list(self.protocol.ignore.area_ranges), len(self.protocol.caps)
        rows = {(areas.index(row.area), row.cap % caps): None for row in self.protocol.rows}
        return list({**rows, (0, caps - 1): None})

    def _draw(self, keys: Sequence[tuple[int, int]]) -> None:
        """Draw the curves of area ranges and caps, block of classes by block of classes."""
        drawn: dict[tuple[int, int], list[JoinedCurves]] = {key: [] for key in keys}
        counts = []
        for low, high in self.parts.blocks():
            matches = self.parts.matches(low, high)
            counts.append(counts_of_classes(matches))
            for (area, cap), blocks in drawn.items():
                blocks.append(JoinedCurves.of(Curves.of(matches, self.protocol, area, cap), self.protocol))
        columns = self.parts.categories.columns
        for key, blocks in drawn.items():
            self._drawn[key] = JoinedCurves.join(blocks, columns)
        joined = {name: np.concatenate([block[name] for block in counts]) for name in counts[0]}
        vars(self).setdefault("_class_counts", joined)
