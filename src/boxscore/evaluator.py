"""Evaluation inside a training loop: batch by batch, on one process or many.

Goal
----
``update`` with what a detector gives and what its data set gives, in torchvision's form; ``compute`` when the
epoch is over. Whatever the order of the batches, and however the images were spread over processes, the
result is that of :func:`boxscore.evaluate` on all of them at once, to the last bit.

Conventions
-----------
- Predictions and targets are mappings, one an image, in torchvision's form: see
  :mod:`boxscore.data.samples`.
- Where predictions have masks, protocols of masks measure them by their pixels, as torchvision's and
  detectron2's evaluators do, although there are boxes too.
- Images are evaluated in the order of their ids; without ids, in the order in which they came.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from boxscore._utils import checks
from boxscore.data.boxes import BOX_FORMATS, BoxFormat
from boxscore.data.samples import (
    Columns,
    image_id,
    joined,
    labels_of,
    prediction_columns,
    table_columns,
    target_columns,
)
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id, Images
from boxscore.errors import InputError, MissingDependencyError
from boxscore.evaluation import Evaluation, evaluate
from boxscore.protocols import load_protocol
from boxscore.protocols.protocol import Protocol

__all__ = ["Evaluator", "gather_with_torch"]

Duplicates = Literal["error", "ignore"]


@dataclasses.dataclass(frozen=True)
class _Image:
    """What is kept of one image: checked columns."""

    prediction: Columns
    target: Columns


class Evaluator:
    """Collect predictions and targets batch by batch; evaluate them all in the end.

    Parameters
    ----------
    protocol : str, Path, mapping or Protocol, default "coco"
        As in :func:`boxscore.evaluate`.
    classes : mapping of label to name, or iterable of labels, optional
        The classes. Those that occur, when not given.
    box_format : {"xyxy", "xywh", "cxcywh"}, default "xyxy"
        Of predictions and targets alike.
    duplicates : {"error", "ignore"}, default "error"
        What to do with an image whose id was seen before: refuse it, or leave it out. A distributed sampler
        repeats images to give every process as many; with "ignore" they count once.
    gather : callable, optional
        Takes this process's share, any picklable object, and returns the list of all processes' shares:
        :func:`gather_with_torch`. :meth:`compute` then is called by all processes, and gives all the same.

    Examples
    --------
    >>> evaluator = Evaluator(classes={1: "cat", 2: "dog"})
    >>> predictions = [{"boxes": [[10, 10, 50, 50]], "labels": [1], "scores": [0.9]}]
    >>> targets = [{"image_id": 7, "boxes": [[10, 10, 50, 50]], "labels": [1]}]
    >>> evaluator.update(predictions, targets)
    >>> round(evaluator.compute().metrics["AP50"], 6)
    1.0
    """

    def __init__(
        self,
        *,
        protocol: str | Path | Mapping[str, Any] | Protocol = "coco",
        classes: Mapping[Id, str] | Iterable[Id] | None = None,
        box_format: BoxFormat = "xyxy",
        duplicates: Duplicates = "error",
        gather: Callable[[Any], Sequence[Any]] | None = None,
    ) -> None:
        self.protocol = load_protocol(protocol)
        self.categories = _categories(classes)
        checks.one_of(box_format, BOX_FORMATS, name="box_format")
        checks.one_of(duplicates, get_args(Duplicates), name="duplicates")
        self.box_format: BoxFormat = box_format
        self.duplicates: Duplicates = duplicates
        self.gather = gather
        self._images: dict[Id, _Image] = {}
        self._numbered: bool | None = None  # images have no ids of their own

    def __len__(self) -> int:
        """Count the images seen by this process."""
        return len(self._images)

    def update(self, predictions: Sequence[Mapping[str, Any]], targets: Sequence[Mapping[str, Any]]) -> None:
        """Add a batch.

        Parameters
        ----------
        predictions, targets : sequence of mappings
            One each an image, in the same order: see :mod:`boxscore.data.samples`.

        Raises
        ------
        InputError
            When a batch breaks a rule; nothing of it is added then.
        """
        if len(predictions) != len(targets):
            got = f"{len(predictions)} and {len(targets)}"
            raise InputError("predictions and targets", "be as many", got=got)
        batch: dict[Id, _Image] = {}
        numbered = self._numbered
        for position, (prediction, target) in enumerate(zip(predictions, targets, strict=True)):
            place = f"image {position} of the batch"
            identifier = image_id(target, place=place)
            if numbered is not None and numbered != (identifier is None):
                raise InputError(
                    "image_id", "be in every target or in none", got=repr(identifier), place=place
                )
            numbered = identifier is None
            if identifier is None:
                identifier = len(self._images) + len(batch)
            elif identifier in self._images or identifier in batch:
                self._refuse_duplicate(identifier)
                continue
            where = f"image {identifier!r}"
            batch[identifier] = _Image(
                prediction_columns(prediction, box_format=self.box_format, place=where),
                target_columns(target, box_format=self.box_format, place=where),
            )
        self._images.update(batch)
        self._numbered = numbered

    def compute(self) -> Evaluation:
        """Evaluate everything seen so far, by all processes where there is a ``gather``.

        Returns
        -------
        Evaluation

        Raises
        ------
        InputError
            When there is no image, or an image comes from two processes and ``duplicates`` is "error".
        """
        if self.gather is None:
            return self._evaluate()
        whole = self._empty()
        for images, numbered in self.gather((self._images, self._numbered)):
            whole._add(images, numbered)
        return whole._evaluate()

    def merge(self, other: Evaluator) -> None:
        """Add what another evaluator has seen.

        Images without ids come after those of this evaluator; of repeated ids ``duplicates`` decides.

        Raises
        ------
        InputError
            When the two have other protocols or classes, or an image is in both and ``duplicates`` is
            "error".
        """
        mine, theirs = self.protocol, other.protocol
        if mine != theirs or _labels(self.categories) != _labels(other.categories):
            got = f"{mine.name!r} and {theirs.name!r}"
            raise InputError("evaluators", "have one protocol and the same classes", got=got)
        self._add(other._images, other._numbered)

    def reset(self) -> None:
        """Forget every image."""
        self._images = {}
        self._numbered = None

    def _empty(self) -> Evaluator:
        empty = object.__new__(type(self))
        empty.__dict__.update(self.__dict__)
        empty.reset()
        return empty

    def _add(self, images: Mapping[Id, _Image], numbered: bool | None) -> None:
        if not images:
            return
        if self._numbered is not None and self._numbered != numbered:
            raise InputError("image_id", "be in every target or in none", got="both")
        new: dict[Id, _Image] = {}
        if numbered:
            new = {len(self._images) + place: image for place, image in enumerate(images.values())}
        else:
            for identifier, image in images.items():
                if identifier in self._images:
                    self._refuse_duplicate(identifier)
                else:
                    new[identifier] = image
        self._images.update(new)
        self._numbered = numbered

    def _refuse_duplicate(self, identifier: Id) -> None:
        if self.duplicates == "error":
            raise InputError(
                "image_id",
                "come once",
                got=f"{identifier!r} again",
                cause="a distributed sampler that fills up its last batch? say duplicates='ignore'; "
                "a new epoch? call reset()",
            )

    def _evaluate(self) -> Evaluation:
        if not self._images:
            raise InputError("an evaluator", "have seen an image", got="none")
        images = Images.build(list(self._images))
        ordered = [self._images[identifier] for identifier in images.ids.tolist()]
        predictions, targets = [one.prediction for one in ordered], [one.target for one in ordered]
        labels = labels_of(predictions)
        categories = self.categories
        if categories is None:
            categories = Categories.build([*labels, *labels_of(targets)])
        known = set(labels) <= set(categories.ids.tolist())
        truth = GroundTruth.from_arrays(
            **table_columns(targets, images),
            box_format=self.box_format,
            categories=categories,
            crowd=joined(targets, "iscrowd"),
            difficult=joined(targets, "difficult"),
            ignore=joined(targets, "ignore"),
            source="targets",
        )
        found = Detections.from_arrays(
            **{"scores": [], **table_columns(predictions, images)},
            box_format=self.box_format,
            categories=categories if known else None,  # evaluate counts and names those that are not
            source="predictions",
        )
        if found.masks is not None:
            found = dataclasses.replace(found, boxes_given=False)
        return evaluate(truth, found, protocol=self.protocol)


def gather_with_torch(share: Any) -> list[Any]:
    """Collect every process's share with ``torch.distributed``; alone where it is not initialised.

    Parameters
    ----------
    share : object
        Anything picklable.

    Returns
    -------
    list
        One a process, by rank.

    Raises
    ------
    MissingDependencyError
        When torch is not installed.
    """
    try:
        from torch import distributed
    except ImportError:
        raise MissingDependencyError("gather_with_torch needs torch: pip install torch.") from None
    if not (distributed.is_available() and distributed.is_initialized()):
        return [share]
    shares: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(shares, share)
    return shares


def _categories(classes: Mapping[Id, str] | Iterable[Id] | None) -> Categories | None:
    if classes is None:
        return None
    if isinstance(classes, Mapping):
        return Categories.build(list(classes), names=list(classes.values()))
    return Categories.build(classes)


def _labels(categories: Categories | None) -> Any:
    return None if categories is None else (categories.ids.tolist(), categories.names.tolist())
