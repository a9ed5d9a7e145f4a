"""Evaluation inside a training loop, batch by batch, in one process or many.

Goal
----
``update`` takes predictions and targets in torchvision's form; ``compute`` evaluates them at the end of an
epoch. The result is that of :func:`boxscore.evaluate` on all images at once, to the last bit, whatever the
order of the batches and the distribution of images over processes.

Conventions
-----------
- Predictions and targets come one per image: mappings in torchvision's form, as
  :mod:`boxscore.data.samples` has it, or the objects of :mod:`boxscore.data.model_objects`.
- Batches are checked when they arrive and matched soon after. Only
  :class:`~boxscore.matching.matches.Matches` and the columns of boxes, rotated boxes and keypoints are kept;
  masks are dropped unless ``keep_masks`` is set.
- Where predictions have masks, mask protocols measure areas by their pixels even if there are boxes too, as
  torchvision's and detectron2's evaluators do.
- Images are evaluated in the order of their ids; without ids, in the order of arrival.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from boxscore._utils import checks
from boxscore._utils.lazy import shortcut
from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore.data.alignment import align, concatenate, warn_left_out, with_labels
from boxscore.data.arrivals import Expected
from boxscore.data.boxes import BOX_FORMATS, BoxFormat
from boxscore.data.building import categories_of
from boxscore.data.lookup import find_categories
from boxscore.data.model_objects import Sample, one_per_image, sample_of
from boxscore.data.naming import (
    ClassNames,
    by_name,
    in_classes,
    kinds_of_labels,
    named_by,
    names_are_used,
    names_by_number,
    without_names,
)
from boxscore.data.samples import (
    SHAPES,
    Columns,
    Invalid,
    Rows,
    image_id,
    labels_of,
    listed_by,
    rows_of,
    table_columns,
)
from boxscore.data.schema import DETECTIONS, GROUND_TRUTH
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id, Images
from boxscore.errors import BoxscoreWarning, InputError, MissingDependencyError
from boxscore.evaluation import Evaluation, check_class_labels
from boxscore.matching.matcher import Matcher
from boxscore.matching.matches import Matches, merge
from boxscore.matching.preparing import prepared
from boxscore.protocols import load_protocol
from boxscore.protocols.protocol import Protocol

__all__ = ["Evaluator", "gather_with_torch"]

Duplicates = Literal["error", "ignore"]

SIDES = ("predictions", "targets")

MATCHED_TOGETHER = 1 << 14
"""Rows that are matched together: the overhead of a call is then a tenth of the work."""

FAN_IN = 32
"""Parts of one level that are merged into one of the next; each row is copied once per level."""

OPTIONAL = (*SHAPES, "area")
"""Keys that either all images with objects have, or none."""

FRACTIONS, PIXELS = 1.5, 8.0
"""Boxes that all end below the one look like fractions where others end above the other."""

FORGOTTEN = " (their masks are forgotten; Evaluator(keep_masks=True) keeps them)"


class _Part(NamedTuple):
    """What is kept of some images; row numbers in ``matches`` are rows of the tables."""

    matches: Matches
    ground_truth: GroundTruth
    detections: Detections
    left_out: Mapping[Id, Mapping[str, int]]
    """Detections of unknown classes: image, class, count."""
    invalid: Mapping[Id, tuple[int, int]] = {}
    """Invalid predictions and targets of the images that have some."""

    @property
    def images(self) -> Images:
        return self.matches.images

    def without(self, seen: set[Id]) -> _Part:
        """Drop images that were seen elsewhere."""
        kept = np.array([identifier not in seen for identifier in self.images.ids.tolist()], dtype=bool)
        matches = self.matches.take_images(kept)
        images, tables, rows = matches.images, [], []
        number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
        for table in (self.ground_truth, self.detections):
            chosen = kept[table.image]
            left = table.take(np.flatnonzero(chosen))
            renumbered = left.replaced(images=images, image=number[left.image])
            tables.append(with_labels(renumbered, images=np.where(kept, number, np.int32(-1))))
            rows.append(np.cumsum(chosen) - 1)
        matches = dataclasses.replace(matches, truth_row=rows[0][matches.truth_row], row=rows[1][matches.row])
        left_out = {image: counts for image, counts in self.left_out.items() if image not in seen}
        invalid = {image: counts for image, counts in self.invalid.items() if image not in seen}
        truth, detections = tables
        return _Part(matches, truth, detections, left_out, invalid)  # type: ignore[arg-type]

    def numbered_from(self, first: int) -> _Part:
        """Renumber images that have no ids of their own."""
        images = Images.build(self.images.ids + first)
        return _Part(
            dataclasses.replace(self.matches, images=images),
            dataclasses.replace(self.ground_truth, images=images),
            dataclasses.replace(self.detections, images=images),
            {int(image) + first: counts for image, counts in self.left_out.items()},
            {int(image) + first: counts for image, counts in self.invalid.items()},
        )


def _merged(parts: Sequence[_Part]) -> _Part:
    """Merge parts of disjoint images; rows are ordered by ascending image id."""
    if len(parts) == 1:
        return parts[0]
    truth, truth_rows = concatenate([part.ground_truth for part in parts])
    detections, rows = concatenate([part.detections for part in parts])
    renumbered, truths_before, rows_before = [], 0, 0
    for part in parts:
        matches = part.matches
        renumbered.append(
            dataclasses.replace(
                matches,
                truth_row=truth_rows[truths_before + matches.truth_row],
                row=rows[rows_before + matches.row],
            )
        )
        truths_before += len(part.ground_truth)
        rows_before += len(part.detections)
    left_out = {image: counts for part in parts for image, counts in part.left_out.items()}
    invalid = {image: counts for part in parts for image, counts in part.invalid.items()}
    return _Part(merge(renumbered), truth, detections, left_out, invalid)


class _Waiting:
    """Checked images that are not matched yet, in the order of arrival."""

    def __init__(self) -> None:
        self.ids: dict[Id, None] = {}
        self.rows = 0
        self._sides: tuple[list[Rows], list[Rows]] = ([], [])  # predictions and targets

    def add(self, identifiers: Sequence[Id], sides: Sequence[Sequence[Rows]]) -> None:
        """Add a batch."""
        self.ids |= dict.fromkeys(identifiers)
        for known, new in zip(self._sides, sides, strict=True):
            known += new
            self.rows += sum(sum(rows.counts) for rows in new)

    def in_order(self, images: Images) -> list[list[Rows]]:
        """Return predictions and targets in the order of the images."""
        wanted = images.ids.tolist()
        if list(self.ids) == wanted:
            return [*self._sides]
        both = []
        for side in self._sides:
            each = [rows for piece in side for rows in piece.each()]
            of_image = dict(zip(self.ids, each, strict=True))
            both.append([of_image[identifier] for identifier in wanted])
        return both

    def invalid(self) -> dict[Id, tuple[int, int]]:
        """Count the invalid predictions and targets of the images that have some."""
        if not any(rows.invalid for side in self._sides for rows in side):
            return {}
        counts = [[rows.invalid for piece in side for rows in piece.each()] for side in self._sides]
        pairs = zip(self.ids, zip(*counts, strict=True), strict=True)
        return {identifier: (pair[0], pair[1]) for identifier, pair in pairs if any(pair)}


class _Share(NamedTuple):
    """Everything one process has seen: what ``merge`` and ``gather`` exchange."""

    parts: tuple[_Part, ...]
    numbered: bool | None
    given: Mapping[str, tuple[bool, Id]]


class Evaluator:
    """Collect predictions and targets batch by batch, then evaluate them all.

    Parameters
    ----------
    protocol : str, Path, mapping or Protocol, default "coco"
        As in :func:`boxscore.evaluate`.
    classes : mapping of label to name, iterable of labels, or Categories, optional
        The classes. Those that occur, when not given. :class:`~boxscore.Categories` may have columns, such as
        the ``frequency`` that LVIS's APr, APc and APf select by.
    prediction_class_names : sequence of str or mapping of int to str, optional
        What the predictions' class numbers mean, where the targets number classes otherwise: the names in
        order from 0, or by number. They are then looked up by name.
    box_format : {"xyxy", "xywh", "cxcywh"}, default "xyxy"
        Of predictions and targets alike. Objects whose form is known have that form.
    duplicates : {"error", "ignore"}, default "error"
        What to do with an image whose id was seen before: raise, or drop it. A distributed sampler repeats
        images so that every process has the same number; with "ignore" they count once.
    invalid : {"error", "drop", "false_positive"}, default "error"
        What to do with a box or score that is NaN or infinite, and with a box that ends before it begins:
        raise; drop the row; or count the prediction as a false positive without a match, at its score, or
        last in its image (at 0, or at the lowest score if that is less) where it has none. Both drop targets.
        :attr:`invalid_counts` counts, and :meth:`compute` warns.
    gather : callable, optional
        Takes this process's share, any picklable object, and returns the list of all processes' shares:
        :func:`gather_with_torch`. All processes then call :meth:`compute` and get the same result.
    keep_masks : bool, default False
        Keep the masks of every image. Scores, curves and slices do not need them; diagnostics that compare
        masks across classes do.
    expected : int, iterable of ids, mapping of id to int, or GroundTruth, optional
        What should arrive: the number of images, their ids, or the number of objects of each.
        :meth:`compute` warns of what did not: a loop that skips images, or cuts its last batch as accelerate
        does, gives plausible numbers of the rest.

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
    ) -> None:
        self.protocol = load_protocol(protocol)
        self.protocol.scope.check("batches")
        self.categories = None if classes is None else categories_of(classes)
        checks.one_of(box_format, BOX_FORMATS, name="box_format")
        checks.one_of(duplicates, get_args(Duplicates), name="duplicates")
        checks.one_of(invalid, get_args(Invalid), name="invalid")
        self.prediction_class_names = (
            None if prediction_class_names is None else names_by_number(prediction_class_names)
        )
        self.box_format: BoxFormat = box_format
        self.duplicates: Duplicates = duplicates
        self.invalid: Invalid = invalid
        self.gather = gather
        self.keep_masks = keep_masks
        self.expected = None if expected is None else Expected.of(expected)
        self._levels: list[list[_Part]] = []  # of parts with up to FAN_IN ** level batches
        self._waiting = _Waiting()
        self._due = MATCHED_TOGETHER
        self._seen: set[Id] = set()  # images in the parts
        self._numbered: bool | None = None  # images have no ids of their own
        self._given: dict[str, tuple[bool, Id]] = {}  # optional keys, and the image that decided
        self._kinds: tuple[set[str], set[str]] = (set(), set())  # of the labels of either side

    def __len__(self) -> int:
        """Count the images seen by this process."""
        return len(self._seen) + len(self._waiting.ids)

    def __repr__(self) -> str:
        return f"Evaluator(protocol={self.protocol.name!r}), {counted(len(self), 'image')} seen"

    @property
    def invalid_counts(self) -> dict[str, int]:
        """Invalid ``predictions`` and ``targets`` seen by this process, which were dropped or hit nothing."""
        parts = [counts for level in self._levels for part in level for counts in part.invalid.values()]
        parts += self._waiting.invalid().values()
        return {name: sum(counts[side] for counts in parts) for side, name in enumerate(SIDES)}

    def update(self, predictions: Iterable[Any], targets: Iterable[Any]) -> None:
        """Add a batch.

        Parameters
        ----------
        predictions, targets : sequence of mappings or of model objects
            One per image, in the same order: mappings with ``boxes``, ``labels`` and ``scores`` as in
            :mod:`boxscore.data.samples` (targets may have LVIS's lists of classes), or what torchvision,
            Hugging Face, ultralytics, supervision, detectron2, MMDetection and KerasCV return, as in
            :mod:`boxscore.data.model_objects`. A
            mapping of arrays with an axis of images, as Keras models return it, is split by image.

        Raises
        ------
        InputError
            When a batch breaks a rule; nothing of it is added then.
        """
        predictions, targets = one_per_image(predictions, "prediction"), one_per_image(targets, "target")
        if len(predictions) != len(targets):
            got = f"{len(predictions):,} and {len(targets):,}"
            raise InputError("predictions and targets", "have the same length", got=got)
        batch: dict[Id, tuple[Sample, Sample]] = {}
        numbered, given = self._numbered, dict(self._given)
        kinds = self._kinds[0].copy(), self._kinds[1].copy()
        for position, (prediction, target) in enumerate(zip(predictions, targets, strict=True)):
            place = f"image {position} of the batch"
            truth = sample_of(target, "target", place)
            identifier = image_id(truth, place=place)
            if numbered is not None and numbered != (identifier is None):
                empty = isinstance(target, (list, tuple)) and not target
                raise InputError(
                    "image_id",
                    "be in every target or in none",
                    got=repr(identifier),
                    place=place,
                    cause="an empty list has none: {'image_id': ..., 'annotations': []}" if empty else "",
                )
            numbered = identifier is None
            if identifier is None:
                identifier = len(self) + len(batch)
            elif identifier in self._seen or identifier in self._waiting.ids or identifier in batch:
                self._refuse_duplicate(identifier)
                continue
            batch[identifier] = sample_of(prediction, "prediction", place), truth
        if not batch:
            return
        sides = [
            self._checked([pair[side] for pair in batch.values()], list(batch), side, kinds, given)
            for side in (0, 1)
        ]
        self._waiting.add(list(batch), sides)
        self._numbered, self._given, self._kinds = numbered, given, kinds
        if self._waiting.rows >= self._due and self._names_decided():
            self._due = 2 * self._waiting.rows  # retried later if it fails; compute reports why
            with contextlib.suppress(InputError):
                self._match_waiting()

    def _checked(
        self,
        samples: list[Sample],
        identifiers: list[Id],
        side: int,
        kinds: tuple[set[str], set[str]],
        given: dict[str, tuple[bool, Id]],
    ) -> list[Rows]:
        """Check one side of a batch and look names of classes up; note what is given, and how classes are."""
        renamed = self.prediction_class_names if not side else None
        pieces = rows_of(
            samples,
            SIDES[side].removesuffix("s"),
            box_format=self.box_format,
            places=[f"image {identifier!r}" for identifier in identifiers],
            invalid=self.invalid,
            together=renamed is None,
        )
        starts = itertools.accumulate((len(rows.counts) for rows in pieces), initial=0)
        classified = []
        for start, rows in zip(starts, pieces, strict=False):
            columns, identifier = rows.columns, identifiers[start]
            _check_alike(given, SIDES[side], columns, identifier)
            place = f"image {identifier!r}"
            if renamed is not None:
                columns = named_by(columns, renamed, place=place)
            if self.categories is not None:
                columns = in_classes(columns, self.categories, place=place)
                if side:
                    self._check_classes(columns, rows.counts, identifiers[start:])
            elif not kinds[side].issuperset(found := kinds_of_labels(columns)):
                kinds[side].update(found)
                decided = names_are_used(*kinds)
                if decided is not None and {"both"} in kinds:
                    _check_key(given, "names of classes", decided, identifier)
            classified.append(rows._replace(columns=columns))
        return classified

    def _names_decided(self) -> bool:
        return self.categories is not None or names_are_used(*self._kinds) is not None

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
        for share in self.gather(self._share()):
            whole._take_in(share)
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
            raise InputError("evaluators", "have the same protocol and classes", got=got)
        self._take_in(other._share())

    def save_part(self, path: str | Path) -> None:
        """Save what scores need of the images seen by this process, to be merged with those of others.

        :func:`boxscore.distributed.merge` and ``boxscore merge`` give the numbers of all images at once, with
        the bits of one evaluation. Every process must be given the same ``classes``.

        Parameters
        ----------
        path : str or Path
            Named ``*.npz``; about 20 bytes per detection.

        Raises
        ------
        InputError
            When no image was seen, images have no ids of their own, or the file cannot be written.
        ProtocolError
            When the protocol's rules cannot be met part by part.
        """
        part, left_out = self._whole()
        if self._numbered:
            raise InputError(
                "image_id",
                "be in every target of an evaluator that saves a part",
                got="images numbered as they came",
                cause="other processes number theirs alike, and merging could not tell them apart",
            )
        _warn_of_invalid(part, self.invalid)
        detections = dataclasses.replace(part.detections, left_out=dict(left_out))
        cut = shortcut("boxscore.distributed.parts", "Part").of
        cut(part.matches, part.ground_truth, detections, self.protocol, row_order="image").save(path)

    def reset(self) -> None:
        """Forget every image."""
        self._levels, self._waiting, self._seen, self._numbered = [], _Waiting(), set(), None
        self._due, self._given, self._kinds = MATCHED_TOGETHER, {}, (set(), set())

    def _empty(self) -> Evaluator:
        empty = object.__new__(type(self))
        empty.__dict__.update(self.__dict__)
        empty.reset()
        return empty

    def _share(self) -> _Share:
        parts = self._parts()
        return _Share((_merged(parts),) if parts else (), self._numbered, self._given)

    def _parts(self) -> list[_Part]:
        self._match_waiting()
        return [part for level in self._levels for part in level]

    def _add_part(self, part: _Part) -> None:
        """Keep a part; ``FAN_IN`` parts of a level are merged into one of the next."""
        self._seen.update(part.images.ids.tolist())
        for level in range(len(self._levels) + 1):
            if level == len(self._levels):
                self._levels.append([])
            self._levels[level].append(part)
            if len(self._levels[level]) < FAN_IN:
                return
            part = _merged(self._levels[level])
            self._levels[level] = []

    def _take_in(self, share: _Share) -> None:
        """Add the share of another evaluator, or nothing of it if an image is refused."""
        if not share.parts:
            return
        self._match_waiting()
        if self._numbered is not None and self._numbered != share.numbered:
            raise InputError("image_id", "be in every target or in none", got="both")
        for key, (is_given, identifier) in share.given.items():
            _check_key(self._given, key, is_given, identifier)
        parts = list(share.parts)
        if share.numbered:
            parts = [part.numbered_from(len(self._seen)) for part in parts]
        else:
            for identifier in (identifier for part in parts for identifier in part.images.ids.tolist()):
                if identifier in self._seen:
                    self._refuse_duplicate(identifier)
            parts = [part.without(self._seen) for part in parts]
        for part in parts:
            if len(part.images):
                self._add_part(part)
        self._numbered = share.numbered
        self._given = {**share.given, **self._given}

    def _refuse_duplicate(self, identifier: Id) -> None:
        if self.duplicates == "error":
            raise InputError(
                "image_id",
                "occur only once",
                got=f"{identifier!r} again",
                cause="a distributed sampler that fills up its last batch? say duplicates='ignore'; "
                "a new epoch? call reset()",
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
        """Match the images that wait, and drop what scores and curves do not need."""
        if not self._waiting.ids:
            return
        images = Images.build(list(self._waiting.ids))
        predictions, targets = self._waiting.in_order(images)
        if self.categories is None and {"both"} in self._kinds:
            settle = without_names if names_are_used(*self._kinds) is False else by_name
            _check_key(self._given, "names of classes", settle is by_name, images.ids.tolist()[0])
            predictions, targets = (
                [rows._replace(columns=settle(rows.columns)) for rows in side]
                for side in (predictions, targets)
            )
        labels = labels_of(predictions)
        categories = self.categories
        if categories is None:
            categories = Categories.build([*labels, *labels_of(targets), *listed_by(targets)])
        known = set(labels) <= set(categories.ids.tolist())
        ids = images.ids.tolist()
        truth = GroundTruth(
            **table_columns(
                GROUND_TRUTH, targets, ids, images=images, categories=categories, source="targets"
            )
        )
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
        left_out: dict[Id, Mapping[str, int]] = {}
        if not known:
            each = [rows for piece in predictions for rows in piece.each()]
            for identifier, rows in zip(ids, each, strict=True):
                _, unknown = find_categories(rows.columns["labels"], categories)
                if unknown:
                    left_out[identifier] = unknown
            with warnings.catch_warnings():  # compute warns once, of all that were left out
                warnings.simplefilter("ignore", BoxscoreWarning)
                detections = align(detections, truth)
        truth, detections = prepared(truth, detections, self.protocol)
        matches = Matcher(truth, detections, self.protocol).match()
        if not self.keep_masks:
            truth, detections = _without_masks(truth), _without_masks(detections)
        invalid = self._waiting.invalid()
        self._waiting, self._due = _Waiting(), MATCHED_TOGETHER
        self._add_part(_Part(matches, truth, detections, left_out, invalid))

    def _whole(self) -> tuple[_Part, Counter[str]]:
        """Merge everything, and count what was left out by class."""
        parts = self._parts()
        if not parts:
            raise InputError("an evaluator", "have seen at least one image", got="none")
        part = _merged(parts)
        if len(parts) > 1:
            self._levels = [*([] for _ in self._levels[1:]), [part]]
        left_out: Counter[str] = Counter()
        for counts in part.left_out.values():
            left_out.update(counts)
        return part, left_out

    def _evaluate(self) -> Evaluation:
        part, left_out = self._whole()
        warn_left_out(left_out, "predictions")
        _warn_of_invalid(part, self.invalid)
        _warn_numbered_from_zero(part, "0" in left_out)
        _warn_of_fractions(part)
        if self.expected is not None:
            _warn_of_missing(part, self.expected, numbered=bool(self._numbered))
        truth = dataclasses.replace(part.ground_truth, ids=np.arange(1, len(part.ground_truth) + 1))
        self.protocol.ap.check_classes(truth.categories)
        check_class_labels(truth.source, truth.categories, truth.image_labels, self.protocol)
        detections = dataclasses.replace(part.detections, left_out=dict(left_out))
        return Evaluation(truth, detections, self.protocol, part.matches)


def _warn_of_invalid(part: _Part, invalid: Invalid) -> None:
    """Warn of the rows that were dropped, or count as false positives, because they are no boxes."""
    for side, name in enumerate(SIDES):
        images = [image for image, counts in part.invalid.items() if counts[side]]
        if images:
            count = sum(counts[side] for counts in part.invalid.values())
            became = "dropped"
            if invalid == "false_positive" and not side:
                became = f"counted as {'a false positive' if count == 1 else 'false positives'}"
            warn_user(
                f"{counted(count, name.removesuffix('s'))} of {counted(len(images), 'image')} {became}"
                ": boxes or scores that are NaN or infinite, or boxes that end before they begin; the first "
                f"in image {min(images, key=str)!r}.",
            )


def _warn_numbered_from_zero(part: _Part, left_out_zero: bool) -> None:
    """Warn where predictions look numbered from 0 and targets from 1."""
    truth = part.ground_truth.categories.ids[np.unique(part.ground_truth.category)]
    found = part.detections.categories.ids[np.unique(part.detections.category)]
    if not len(truth) or not len(found) or object in (truth.dtype, found.dtype):
        return
    lowest = 0 if left_out_zero else found.min()
    if lowest == 0 and truth.min() == 1 and truth.max() > found.max():
        warn_user(
            f"predictions have classes {lowest} to {found.max()} and targets {truth.min()} to {truth.max()}: "
            "are predictions numbered from 0? pass prediction_class_names= to say what they mean.",
        )


def _warn_of_fractions(part: _Part) -> None:
    """Warn where the boxes of one side are fractions of the image and those of the other pixels."""
    sides = {"predictions": part.detections.boxes, "targets": part.ground_truth.boxes}
    if not all(len(boxes) for boxes in sides.values()):
        return
    small, large = sorted(sides, key=lambda side: float(sides[side].max()))
    if 0 < sides[small].max() <= FRACTIONS and sides[large].max() > PIXELS:
        warn_user(
            f"every box of the {small} lies within {sides[small].max():.3g}, those of the {large} reach "
            f"{sides[large].max():.4g}: are the {small} fractions of the image? Multiply them by its "
            "width and height.",
        )


def _warn_of_missing(part: _Part, expected: Expected, *, numbered: bool) -> None:
    """Warn of expected images and objects that did not arrive."""
    each = np.bincount(part.ground_truth.image, minlength=len(part.images))
    arrived: dict[Id, int] = dict(zip(part.images.ids.tolist(), each.tolist(), strict=True))
    for image, (_, dropped) in part.invalid.items():
        arrived[image] += dropped
    missing = expected.missing(arrived, numbered=numbered)
    if missing:
        warn_user(
            f"{missing}. The numbers are of the rest. Does the loop skip images, or the gather cut the last "
            "batch, as accelerate does (a batch size that divides the number of images avoids it)?",
        )


def _without_masks(table: Any) -> Any:
    """Drop the masks; the source, which messages print, mentions it."""
    if table.masks is None:
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
            "be given for every image or for none",
            got=f"image {with_it!r} with them and image {without!r} without",
        )


def gather_with_torch(share: Any) -> list[Any]:
    """Collect every process's share with ``torch.distributed``; alone where it is not initialised."""
    try:
        from torch import distributed
    except ImportError:
        raise MissingDependencyError("gather_with_torch needs torch: pip install torch.") from None
    if not (distributed.is_available() and distributed.is_initialized()):
        return [share]
    shares: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(shares, share)
    return shares


def _labels(categories: Categories | None) -> Any:
    return None if categories is None else (categories.ids.tolist(), categories.names.tolist())
