"""Evaluate inside a training loop, batch by batch, in one process or many.

Goal
----
``update`` takes predictions and targets in torchvision's form; ``compute`` evaluates them at the end of an
epoch. The result equals :func:`boxscore.evaluate` on all images together to the last bit, for any order of
batches and any distribution of images over processes.

Conventions
-----------
- Each image has one prediction and one target: mappings in torchvision's form, as in
  :mod:`boxscore.extensions.data_tools.samples`, or the objects of
  :mod:`boxscore.extensions.training.model_objects`.
- Batches are checked when they arrive and matched soon after. Only
  :class:`~boxscore.matching.matches.Matches` and the columns of boxes, rotated boxes and keypoints are kept;
  masks are dropped unless ``keep_masks`` is set.
- If predictions have masks, mask protocols measure areas in mask pixels even if there are boxes too, as the
  evaluators of torchvision and detectron2 do.
- Images are evaluated in the order of their ids; without ids, in the order of arrival.
- With a ground truth, batches contain only predictions, and only images passed to ``update`` are evaluated.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from boxscore._utils import checks
from boxscore._utils.lazy import shortcut
from boxscore._utils.text import counted
from boxscore.data.alignment import align, of_images
from boxscore.data.boxes import BOX_FORMATS, BoxFormat
from boxscore.data.building import categories_of
from boxscore.data.lookup import chosen_images, find_categories
from boxscore.data.schema import DETECTIONS, GROUND_TRUTH
from boxscore.data.tables import ClassNames, Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id, Images, as_ids
from boxscore.errors import BoxscoreWarning, InputError
from boxscore.evaluation import Evaluation, warn_of_symptoms
from boxscore.extensions.data_tools.invalid_rows import Columns, Invalid, checked
from boxscore.extensions.data_tools.naming import (
    by_name,
    in_classes,
    kinds_of_labels,
    named_by,
    names_are_used,
    names_by_number,
    without_names,
)
from boxscore.extensions.data_tools.samples import (
    SHAPES,
    Rows,
    image_id,
    labels_of,
    listed_by,
    rows_of,
    table_columns,
)
from boxscore.extensions.federated.listing import check_class_labels
from boxscore.extensions.hints.left_out import warn_left_out
from boxscore.extensions.training.arrival_warnings import (
    RENAMING,
    SIDES,
    warn_numbered_from_zero,
    warn_of_fractions,
    warn_of_invalid_rows,
    warn_of_missing,
)
from boxscore.extensions.training.arrivals import Expected
from boxscore.extensions.training.model_objects import Sample, one_per_image, sample_of
from boxscore.extensions.training.room import Rooms
from boxscore.extensions.training.shares import Part, Share, Waiting, merged
from boxscore.extensions.training.tensors import as_array
from boxscore.extensions.weights.class_weights import check_class_weights
from boxscore.matching.ignoring import prepared
from boxscore.matching.matcher import Matcher
from boxscore.protocols import load_protocol
from boxscore.protocols.protocol import Protocol

Duplicates = Literal["error", "ignore"]

MATCHED_TOGETHER = 1 << 14
"""Rows that are matched in one batch, so that call overhead is about a tenth of the work."""

ROOM = (1 << 19) - 1
"""Rows per preallocated buffer, which become one table in the end. Columns of 8 bytes stay below 4 MiB: from
there on, NumPy asks for huge pages, and each column would take up to 2 MB more than its rows."""

OPTIONAL = (*SHAPES, "area")
"""Keys that all images with objects must have, or none."""

FORGOTTEN = " (their masks are forgotten; Evaluator(keep_masks=True) keeps them)"


class Evaluator:
    """Collect predictions and targets batch by batch, then evaluate them all.

    Parameters
    ----------
    protocol : str, Path, mapping or Protocol, default "coco"
        As in :func:`boxscore.evaluate`.
    classes : mapping of label to name, iterable of labels, or Categories, optional
        The classes; by default those that occur. :class:`~boxscore.Categories` may have columns, such as the
        ``frequency`` that selects LVIS's APr, APc and APf.
    prediction_class_names : sequence of str or mapping of int to str, optional
        Names of the predictions' class numbers, if the targets number classes differently: the names in order
        from 0, or by number. Predictions are then matched to classes by name.
    box_format : {"xyxy", "xywh", "cxcywh"}, default "xyxy"
        Format of predictions and targets. Objects with a known format keep theirs.
    duplicates : {"error", "ignore"}, default "error"
        What to do with an image whose id was seen before: raise an error, or drop the image. A distributed
        sampler repeats images so that every process has the same number; with "ignore" they count once.
    invalid : {"error", "drop", "false_positive"}, default "error"
        What to do with a box or score that is NaN or infinite, and with an inverted box: raise an error, drop
        the row, or count the prediction as an unmatched false positive. The false positive keeps its score;
        without a valid score, it is last in its image (at 0, or at the lowest score if that is less). Both of
        the latter drop targets. :attr:`invalid_counts` counts these rows, and :meth:`compute` warns.
    gather : callable, optional
        Function that takes this process's share, any picklable object, and returns the list of the shares of
        all processes: :func:`gather_with_torch`. All processes must then call :meth:`compute`, and get the
        same result.
    keep_masks : bool, default False
        Keep the masks of every image. Scores, curves and slices do not need them; diagnostics that compare
        masks across classes do.
    expected : int, iterable of ids, mapping of id to int, or GroundTruth, optional
        What should arrive: the number of images, their ids, or the number of objects of each; by default the
        images of ``ground_truth``. :meth:`compute` warns about missing ones: a loop that skips images, or
        drops its last batch as accelerate may, gives plausible numbers for the rest.
    ground_truth : GroundTruth, optional
        The objects of every image, as read by :func:`boxscore.load_ground_truth`, for loops without targets:
        :meth:`update` then takes only predictions. Its classes are used.

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
        classes: Mapping[Id, str] | Iterable[Id] | Categories | None = None,
        prediction_class_names: ClassNames | None = None,
        box_format: BoxFormat = "xyxy",
        duplicates: Duplicates = "error",
        invalid: Invalid = "error",
        gather: Callable[[Any], Sequence[Any]] | None = None,
        keep_masks: bool = False,
        expected: int | Iterable[Id] | Mapping[Id, int] | GroundTruth | None = None,
        ground_truth: GroundTruth | None = None,
    ) -> None:
        # Accept only protocols whose matches merge over batches.
        self.protocol = load_protocol(protocol)
        self.protocol.scope.check("batches")
        # The ground truth defines the classes and the expected images.
        if ground_truth is not None:
            _check_ground_truth(ground_truth, classes)
            classes = ground_truth.categories
            expected = ground_truth if expected is None else expected
        self.ground_truth = ground_truth
        self.categories = None if classes is None else categories_of(classes)
        # Check options now, not at the first batch.
        checks.one_of(box_format, BOX_FORMATS, name="box_format")
        checks.one_of(duplicates, get_args(Duplicates), name="duplicates")
        self.prediction_class_names = (
            None if prediction_class_names is None else names_by_number(prediction_class_names)
        )
        self.box_format: BoxFormat = box_format
        self.duplicates: Duplicates = duplicates
        self.invalid = checked(invalid)
        self.gather = gather
        self.keep_masks = keep_masks
        self.expected = None if expected is None else Expected.of(expected)
        # Matched parts, and batches that wait to be matched together.
        self._held: list[Part] = []
        self._waiting = Waiting()
        self._due = MATCHED_TOGETHER
        self._rooms = Rooms(ROOM)
        # Images in the parts.
        self._seen: set[Id] = set()
        # Whether images lack their own ids.
        self._numbered: bool | None = None
        # Optional keys, and the image that decided on each.
        self._given: dict[str, tuple[bool, Id]] = {}
        # Kinds of labels on either side.
        self._kinds: tuple[set[str], set[str]] = (set(), set())

    def __len__(self) -> int:
        """Return the number of images seen by this process."""
        return len(self._seen) + len(self._waiting.ids)

    def __repr__(self) -> str:
        return f"Evaluator(protocol={self.protocol.name!r}), {counted(len(self), 'image')} seen"

    @property
    def invalid_counts(self) -> dict[str, int]:
        """Invalid ``predictions`` and ``targets`` seen by this process, dropped or counted as unmatched."""
        parts = [counts for part in self._held for counts in part.invalid.values()]
        parts += self._waiting.invalid().values()
        return {name: sum(counts[side] for counts in parts) for side, name in enumerate(SIDES)}

    def update(
        self,
        predictions: Iterable[Any],
        targets: Iterable[Any] | None = None,
        *,
        image_ids: Iterable[Any] | None = None,
    ) -> None:
        """Add a batch.

        Parameters
        ----------
        predictions, targets : sequence of mappings or of model objects
            One per image, in the same order: mappings with ``boxes``, ``labels`` and ``scores`` as in
            :mod:`boxscore.extensions.data_tools.samples` (targets may have LVIS's lists of classes), or the
            outputs of torchvision, Hugging Face, ultralytics, supervision, detectron2, MMDetection and
            KerasCV, as in :mod:`boxscore.extensions.training.model_objects`. A mapping of batched arrays, as
            Keras models return it, is split by image. Leave out targets if the evaluator has a
            ``ground_truth``.
        image_ids : iterable of int or str, optional
            The id of each image; by default that of the targets, or of the predictions with a
            ``ground_truth``, which also accepts file names.

        Raises
        ------
        InputError
            When a batch is invalid; nothing of it is added then.
        """
        # In torch.compile, a graph of this would be rebuilt for every batch.
        compiler: Any = getattr(sys.modules.get("torch"), "compiler", None)
        if hasattr(compiler, "is_compiling") and compiler.is_compiling():
            compiler.disable(self._add)(predictions, targets, image_ids)
        else:
            self._add(predictions, targets, image_ids)

    def _add(
        self, predictions: Iterable[Any], targets: Iterable[Any] | None, image_ids: Iterable[Any] | None
    ) -> None:
        """Add a batch: see :meth:`update`."""
        # Read and check everything before changing any state.
        ids, both = self._read(predictions, targets, image_ids)
        # An image counts once; without ids, images are numbered as they arrive.
        batch: dict[Id, tuple[Sample, ...]] = {}
        for identifier, samples in zip(ids, zip(*both, strict=True), strict=True):
            if identifier is None:
                identifier = len(self) + len(batch)
            elif identifier in self._seen or identifier in self._waiting.ids or identifier in batch:
                self._refuse_duplicate(identifier)
                continue
            batch[identifier] = samples
        if not batch:
            return
        # Work on copies, so that an invalid batch changes nothing.
        given, kinds = dict(self._given), (self._kinds[0].copy(), self._kinds[1].copy())
        sides = [
            self._checked([samples[side] for samples in batch.values()], list(batch), side, kinds, given)
            for side in range(len(both))
        ]
        # Match many batches together, because each call of the matcher has a fixed cost.
        self._waiting.add(list(batch), sides)
        self._numbered, self._given, self._kinds = ids[0] is None, given, kinds
        if self._waiting.rows >= self._due and self._are_names_decided():
            # If it fails, retry later; compute reports the reason.
            self._due = 2 * self._waiting.rows
            with contextlib.suppress(InputError):
                self._match_waiting()

    def _read(
        self, predictions: Iterable[Any], targets: Iterable[Any] | None, image_ids: Iterable[Any] | None
    ) -> tuple[list[Id | None], list[list[Sample]]]:
        """Read a batch: the id of each image, its prediction, and its target if there are targets."""
        # Targets come with every batch, or from the ground truth, never both.
        if (targets is None) != (self.ground_truth is not None):
            raise InputError(
                "targets",
                "be given" if targets is None else "not be combined with a ground_truth",
                got="none" if targets is None else "some",
                cause="Evaluator(ground_truth=...) knows the objects of each image" * (targets is None),
            )
        # Convert each side to one sample per image, from any library.
        given = zip(SIDES, (predictions, targets), strict=True)
        items = [one_per_image(side, name[:-1]) for name, side in given if side is not None]
        if len({len(side) for side in items}) > 1:
            got = " and ".join(f"{len(side):,}" for side in items)
            raise InputError("predictions and targets", "have the same length", got=got)
        sides = [
            [sample_of(item, name[:-1], _place(position)) for position, item in enumerate(side)]
            for name, side in zip(SIDES, items, strict=False)
        ]
        ids: list[Id | None]
        # Ids are given, or read from the targets (or from the predictions, without targets).
        if image_ids is None:
            ids = [image_id(sample, place=_place(position)) for position, sample in enumerate(sides[-1])]
        else:
            array = as_array(image_ids, "image_ids") if hasattr(image_ids, "detach") else list(image_ids)
            ids = as_ids(array, name="image_ids").tolist()
            checks.same_length(len(items[0]), of="predictions", image_ids=ids)
        if self.ground_truth is not None:
            return self._known(ids, self.ground_truth.images), sides
        # Either all images of all batches have ids, or none.
        numbered = self._numbered if self._numbered is not None or not ids else ids[0] is None
        for position, identifier in enumerate(ids):
            if numbered != (identifier is None):
                item = items[-1][position]
                empty = isinstance(item, (list, tuple)) and not item
                raise InputError(
                    "image_id",
                    "be in every target or in none",
                    got=repr(identifier),
                    place=_place(position),
                    cause="an empty list lacks it: use {'image_id': ..., 'annotations': []}" if empty else "",
                )
        return ids, sides

    @staticmethod
    def _known(given: Sequence[Id | None], images: Images) -> list[Id | None]:
        """Return the image ids of the ground truth."""
        ids = [identifier for identifier in given if identifier is not None]
        if len(ids) < len(given):
            place, cause = _place(given.index(None)), "pass image_ids=, one per prediction"
            raise InputError("image_id", "be in every prediction", got="none", place=place, cause=cause)
        rows = chosen_images(ids, images) if ids else np.empty(0, dtype=np.int32)
        for position, (row, value) in enumerate(zip(rows.tolist(), ids, strict=True)):
            if row < 0:
                cause = checks.did_you_mean(value, map(str, images.ids.tolist()))
                rule, place = "be in the ground truth", _place(position)
                raise InputError("image_id", rule, got=repr(value), place=place, cause=cause)
        return images.ids[rows].tolist()  # type: ignore[no-any-return]

    def _checked(
        self,
        samples: list[Sample],
        identifiers: list[Id],
        side: int,
        kinds: tuple[set[str], set[str]],
        given: dict[str, tuple[bool, Id]],
    ) -> list[Rows]:
        """Check one side of a batch and look up class names; record the given keys and kinds of labels."""
        # Check all images of one kind as one array, which is much faster than per image.
        renamed = self.prediction_class_names if not side else None
        pieces = rows_of(
            samples,
            SIDES[side].removesuffix("s"),
            box_format=self.box_format,
            places=[f"image {identifier!r}" for identifier in identifiers],
            invalid=self.invalid,
            together=renamed is None,
            ranked=not side and self.protocol.matching.scores == "given",
        )
        # Columns and kinds of classes must be the same in every batch.
        starts = itertools.accumulate((len(rows.counts) for rows in pieces), initial=0)
        classified = []
        for start, rows in zip(starts, pieces, strict=False):
            columns, identifier = rows.columns, identifiers[start]
            _check_alike(given, SIDES[side], columns, identifier)
            place = f"image {identifier!r}"
            if renamed is not None:
                columns = named_by(columns, renamed, place=place)
            # Look up names if the classes are known; otherwise record whether they are names or numbers.
            if self.categories is not None:
                columns = in_classes(columns, self.categories, place=place)
                if side:
                    self._check_classes(columns, rows.counts, identifiers[start:])
            # Names and numbers must not mix, on one side or between the two.
            elif not kinds[side].issuperset(found := kinds_of_labels(columns)):
                kinds[side].update(found)
                decided = names_are_used(*kinds)
                if decided is not None and {"both"} in kinds:
                    _check_key(given, "names of classes", decided, identifier)
            classified.append(rows._replace(columns=columns))
        return classified

    def _are_names_decided(self) -> bool:
        return self.categories is not None or names_are_used(*self._kinds) is not None

    def compute(self) -> Evaluation:
        """Evaluate all images seen so far, by all processes if there is a ``gather``.

        Returns
        -------
        Evaluation

        Raises
        ------
        InputError
            Without images, or if two processes have the same image and ``duplicates`` is "error".
        """
        if self.gather is None:
            return self._evaluate()
        whole = self._empty()
        for share in self.gather(self._share()):
            whole._take_in(share)
        return whole._evaluate()

    def merge(self, other: Evaluator) -> None:
        """Add the images of another evaluator.

        Images without ids follow those of this evaluator; ``duplicates`` applies to repeated ids.

        Raises
        ------
        InputError
            When protocols or classes differ, or both have the same image and ``duplicates`` is "error".
        """
        mine, theirs = self.protocol, other.protocol
        if mine != theirs or _labels(self.categories) != _labels(other.categories):
            got = f"{mine.name!r} and {theirs.name!r}"
            raise InputError("evaluators", "have the same protocol and classes", got=got)
        self._take_in(other._share())

    def save_part(self, path: str | Path) -> None:
        """Save the data of this process that scores need, to be merged with those of other processes.

        :func:`boxscore.distributed.merge` and ``boxscore merge`` give exactly the numbers of a single
        evaluation. Every process must have the same ``classes``.

        Parameters
        ----------
        path : str or Path
            File name ``*.npz``; the file takes about 20 bytes per detection.

        Raises
        ------
        InputError
            Without images, if images lack their own ids, or if the file cannot be written.
        ProtocolError
            When the rules of the protocol do not allow merging.
        """
        part, left_out = self._whole()
        if self._numbered:
            raise InputError(
                "image_id",
                "be in every target of an evaluator that saves a part",
                got="images numbered as they came",
                cause="other processes number theirs alike, and merging could not tell them apart",
            )
        warn_of_invalid_rows(part, self.invalid)
        detections = dataclasses.replace(part.detections, left_out=dict(left_out))
        cut = shortcut("boxscore.extensions.large.parts", "Part").of
        cut(part.matches, part.ground_truth, detections, self.protocol, row_order="image").save(path)

    def reset(self) -> None:
        """Forget all images."""
        self._held, self._waiting, self._seen, self._numbered = [], Waiting(), set(), None
        self._due, self._given, self._kinds = MATCHED_TOGETHER, {}, (set(), set())
        self._rooms = Rooms(ROOM)

    def _empty(self) -> Evaluator:
        empty = object.__new__(type(self))
        empty.__dict__.update(self.__dict__)
        empty.reset()
        return empty

    def _share(self) -> Share:
        parts = self._parts()
        return Share((merged(parts),) if parts else (), self._numbered, self._given)

    def _parts(self) -> list[Part]:
        self._match_waiting()
        return self._held

    def _add_part(self, part: Part) -> None:
        self._seen.update(part.images.ids.tolist())
        self._held.append(part)

    def _take_in(self, share: Share) -> None:
        """Add the share of another evaluator, or nothing of it if an image is rejected."""
        if not share.parts:
            return
        self._match_waiting()
        if self._numbered is not None and self._numbered != share.numbered:
            raise InputError("image_id", "be in every target or in none", got="both")
        # Work on copies, so that a rejected share changes nothing.
        given = dict(self._given)
        for key, (is_given, identifier) in share.given.items():
            _check_key(given, key, is_given, identifier)
        # Continue the numbers of images without ids; images with ids must be new.
        parts = list(share.parts)
        if share.numbered:
            parts = [part.numbered_from(len(self._seen)) for part in parts]
        else:
            for identifier in (identifier for part in parts for identifier in part.images.ids.tolist()):
                if identifier in self._seen:
                    self._refuse_duplicate(identifier)
            parts = [part.without(self._seen) for part in parts]
        # Everything is valid: add the parts.
        for part in parts:
            if len(part.images):
                self._add_part(part)
        self._numbered = share.numbered
        self._given = given

    def _refuse_duplicate(self, identifier: Id) -> None:
        if self.duplicates == "error":
            raise InputError(
                "image_id",
                "occur only once",
                got=f"{identifier!r} again",
                cause="if a distributed sampler pads its last batch, set duplicates='ignore'; in a new "
                "epoch, call reset()",
            )

    def _check_classes(self, target: Columns, counts: Sequence[int], identifiers: Sequence[Id]) -> None:
        assert self.categories is not None
        unknown = self.categories.rows(target["labels"]) < 0
        if unknown.any():
            first = int(np.argmax(unknown))
            got = repr(target["labels"].tolist()[first])
            place = f"image {identifiers[int(np.searchsorted(np.cumsum(counts), first, side='right'))]!r}"
            cause = checks.did_you_mean(got, map(str, self.categories.ids.tolist()))
            raise InputError("a target's label", "be one of the classes", got=got, place=place, cause=cause)

    def _match_waiting(self) -> None:
        """Match the waiting images, and drop data that scores and curves do not need."""
        # Sort the waiting images by id, as files of the same images would be.
        if not self._waiting.ids:
            return
        images = Images.build(list(self._waiting.ids))
        predictions, targets = self._waiting.in_order(images)
        # A side may have numbers and names of its classes: use one of them for all images.
        if self.categories is None and {"both"} in self._kinds:
            settle = without_names if names_are_used(*self._kinds) is False else by_name
            _check_key(self._given, "names of classes", settle is by_name, images.ids.tolist()[0])
            predictions, targets = (
                [rows._replace(columns=settle(rows.columns)) for rows in side]
                for side in (predictions, targets)
            )
        # Use the given classes, or those that occur.
        labels = labels_of(predictions)
        categories = self.categories
        if categories is None:
            categories = Categories.build([*labels, *labels_of(targets), *listed_by(targets)])
        known = set(labels) <= set(categories.ids.tolist())
        ids = images.ids.tolist()
        # Make both tables as loaders do, with the same checks.
        if self.ground_truth is None:
            truth = GroundTruth(
                **table_columns(
                    GROUND_TRUTH, targets, ids, images=images, categories=categories, source="targets"
                )
            )
        else:
            truth = of_images(self.ground_truth, self.ground_truth.images.rows(images.ids).astype(np.int64))
            images = truth.images
        detections = Detections(
            **table_columns(
                DETECTIONS,
                predictions,
                ids,
                images=images,
                categories=categories if known else None,
                source="predictions",
            )
        )
        # Leave out detections of unknown classes and count them per image, so that a repeated image counts
        # once.
        left_out: dict[Id, Mapping[str, int]] = {}
        if not known:
            each = [rows for piece in predictions for rows in piece.each()]
            for identifier, rows in zip(ids, each, strict=True):
                _, unknown = find_categories(rows.columns["labels"], categories)
                if unknown:
                    left_out[identifier] = unknown
            # compute warns once, about all that were left out.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", BoxscoreWarning)
                detections = align(detections, truth)
        # Match only these images and keep only the data that scores need. Merging gives exactly the result of
        # a single matching.
        truth, detections = prepared(truth, detections, self.protocol)
        matches = Matcher(truth, detections, self.protocol).match()
        if not self.keep_masks:
            truth, detections = _without_masks(truth), _without_masks(detections)
        invalid = self._waiting.invalid()
        self._waiting, self._due = Waiting(), MATCHED_TOGETHER
        self._add_part(Part(matches, truth, detections, left_out, invalid).in_row_order().put_in(self._rooms))

    def _whole(self) -> tuple[Part, Counter[str]]:
        """Merge everything, and count the left-out detections by class."""
        parts = self._parts()
        if not parts:
            raise InputError("an evaluator", "have seen at least one image", got="none")
        part = merged(parts)
        self._held, self._rooms = [part], Rooms(ROOM)
        left_out: Counter[str] = Counter()
        for counts in part.left_out.values():
            left_out.update(counts)
        return part, left_out

    def _evaluate(self) -> Evaluation:
        # Merge all parts, and warn once about problems of all images.
        part, left_out = self._whole()
        warn_left_out(left_out, "predictions")
        warn_of_invalid_rows(part, self.invalid)
        warn_of_fractions(part)
        if self.expected is not None:
            warn_of_missing(part, self.expected, numbered=bool(self._numbered))
        # Labels from a training loop lack ids, so number them here.
        truth = part.ground_truth
        if self.ground_truth is None:
            truth = truth.replaced(ids=np.arange(1, len(truth) + 1))
        check_class_weights(self.protocol.ap, truth.categories)
        check_class_labels(truth.source, truth.categories, truth.image_labels, self.protocol)
        # Make an evaluation like that of files; its warnings follow.
        detections = part.detections.replaced(left_out=dict(left_out))
        result = Evaluation(truth, detections, self.protocol, part.matches)
        warn_of_symptoms(result, 1, renaming=RENAMING)
        warn_numbered_from_zero(result)
        return result


def _place(position: int) -> str:
    return f"image {position} of the batch"


def _check_ground_truth(given: Any, classes: object) -> None:
    if not isinstance(given, GroundTruth):
        cause = "boxscore.load_ground_truth reads files"
        raise InputError("ground_truth", "be a GroundTruth", got=f"a {type(given).__name__}", cause=cause)
    if classes is not None:
        raise InputError("classes", "not be combined with a ground_truth, which has its own", got="both")


def _without_masks(table: Any) -> Any:
    """Drop the masks; the source, which messages print, mentions this."""
    if not table.instances.shows("masks"):
        return table
    return dataclasses.replace(table, masks=None, source=table.source + FORGOTTEN)


def _check_alike(given: dict[str, tuple[bool, Id]], kind: str, side: Columns, identifier: Id) -> None:
    """Check that all images with objects have the same keys; remember those of the first."""
    if not len(side["labels"]):
        return
    for key in OPTIONAL:
        _check_key(given, f"{key} of {kind}", key in side, identifier)


def _check_key(given: dict[str, tuple[bool, Id]], key: str, is_given: bool, identifier: Id) -> None:
    known, first = given.setdefault(key, (is_given, identifier))
    if known != is_given:
        with_it, without = (first, identifier) if known else (identifier, first)
        raise InputError(
            key,
            "be set for every image or for none",
            got=f"image {with_it!r} with them and image {without!r} without",
        )


def _labels(categories: Categories | None) -> Any:
    return None if categories is None else (categories.ids.tolist(), categories.names.tolist())
