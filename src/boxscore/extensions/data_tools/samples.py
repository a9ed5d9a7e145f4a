"""Check the predictions and targets of a training loop, and convert them to columns.

Conventions
-----------
- A prediction has ``boxes`` [D, 4], ``labels`` [D] and, unless no prediction has them, ``scores`` [D]; a
  target ``boxes``, ``labels`` and, where the data set has them, ``image_id``, ``area``, ``iscrowd``,
  ``difficult``, ``ignore``, and LVIS's lists ``neg_category_ids`` and ``not_exhaustive_category_ids``, of ids
  or names of classes. Both may have ``masks`` [D, H, W] or [D, 1, H, W], ``keypoints`` [D, J, 3] and
  ``rotated`` [D, 5]; then ``boxes`` may be missing. Other keys are not read.
- Arrays may be lists, NumPy arrays, or tensors on any device; no library is imported for them.
- The objects of detection libraries are put into these keys by
  :mod:`boxscore.extensions.training.model_objects`.
- Boxes are stored as corners and sizes.
- Masks are stored as RLEs. Floating-point masks are probabilities: a pixel belongs to the mask above 0.5.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.ordering import distinct
from boxscore._utils.text import counted_of
from boxscore.data.boxes import BOX_FORMATS, BoxFormat, corners_and_sizes
from boxscore.data.building import (
    CategoriesLike,
    ImagesLike,
    built_columns,
    categories_of,
    vocabulary_columns,
)
from boxscore.data.schema import DETECTIONS, GROUND_TRUTH, Schema
from boxscore.data.scores import COUNTED
from boxscore.data.tables import ClassNames
from boxscore.data.vocabulary import Categories, Id, Images, as_ids
from boxscore.errors import InputError
from boxscore.extensions.data_tools.invalid_rows import (
    LARGEST_NUMBER,
    REMEDY,
    Columns,
    Invalid,
    invalid_rows,
    kept_rows,
    match_nothing,
)
from boxscore.extensions.data_tools.naming import (
    by_name,
    in_classes,
    kinds_of_labels,
    named_by,
    names_by_number,
)
from boxscore.extensions.federated.image_labels import ImageLabelKind, ImageLabels
from boxscore.extensions.masks.column import Masks
from boxscore.extensions.training.model_objects import Sample, one_per_image, sample_of
from boxscore.extensions.training.tensors import as_array

SHAPES = ("boxes", "masks", "keypoints", "rotated")
"""Keys of an object's shape; a sample needs at least one."""

MASK_THRESHOLD = 0.5
"""A pixel belongs to a mask of probabilities above this, as in torchvision's evaluation."""

FLAGS = ("iscrowd", "difficult", "ignore")

LISTS: Mapping[str, ImageLabelKind] = {
    "neg_category_ids": "negative",
    "not_exhaustive_category_ids": "not_exhaustive",
}
"""Keys of a target that list classes of the whole image, as in LVIS files, and their meaning."""


def image_id(sample: Sample, *, place: str) -> Id | None:
    """Return the image id of a target or prediction, or None."""
    value = sample.columns.get("image_id")
    if value is None or type(value) is int:
        return value
    array = as_array(value, "image_id")
    if array.size != 1:
        raise InputError("image_id", "be one id", got=repr(value), place=place)
    identifier: Id = as_ids([array.item()], name="image_id").tolist()[0]
    return identifier


class Rows(NamedTuple):
    """The rows of some images, in order."""

    counts: Sequence[int]
    """Rows of each image."""
    columns: Columns
    invalid: int = 0
    """Invalid rows, if there is one image; see :data:`Invalid`."""

    def each(self) -> list[Rows]:
        """Return the rows of each image."""
        if len(self.counts) == 1:
            return [self]
        bounds = itertools.pairwise(itertools.accumulate(self.counts, initial=0))
        return [
            Rows([end - start], {key: values[start:end] for key, values in self.columns.items()})
            for start, end in bounds
        ]


OF_KIND: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "prediction": (("labels",), ("scores",)),
    "target": (("labels",), ("area", *FLAGS)),
}
"""Required keys of predictions and targets, and their optional keys other than shapes."""


def rows_of(
    samples: Sequence[Sample],
    kind: str,
    *,
    box_format: BoxFormat,
    places: Sequence[str],
    invalid: Invalid | None = None,
    together: bool = True,
    ranked: bool = False,
) -> list[Rows]:
    """Check predictions or targets; images with the same keys are checked together, for speed.

    Parameters
    ----------
    samples : sequence of Sample
        One per image.
    kind : {"prediction", "target"}
    box_format : str
        Box format of samples that do not state their own.
    places : sequence of str
        Names of the images in messages.
    invalid : {"error", "drop", "false_positive"}, optional
        The caller's option; None if the caller lacks it, so that messages do not mention it.
    together : bool, default True
        Whether images may be checked together.
    ranked : bool, default False
        Whether each image that has rows must have ``scores``.
    """
    each = [
        _convert(sample, kind, place, ranked=ranked) for sample, place in zip(samples, places, strict=True)
    ]
    forms = [sample.box_format or box_format for sample in samples]
    if together and _are_alike(samples, each, forms):
        counts = [len(columns["labels"]) for columns in each]
        filled = [columns for columns in each if len(columns["labels"])] or each[:1]
        columns = {key: np.concatenate([columns[key] for columns in filled]) for key in filled[0]}
        rows = _check_rows(columns, counts, kind, forms[0], places, invalid)
        if not rows.invalid:
            return [rows]
    return [
        _check_rows(dict(columns), [len(columns["labels"])], kind, form, [place], invalid)
        for columns, form, place in zip(each, forms, places, strict=True)
    ]


def _are_alike(samples: Sequence[Sample], each: Sequence[Columns], forms: Sequence[str]) -> bool:
    """Whether images have the same keys, arrays that can be concatenated, and unnamed class numbers."""
    if len(each) < 2 or len(set(forms)) > 1 or any(sample.names is not None for sample in samples):
        return False
    filled = [columns for columns in each if len(columns["labels"])] or each[:1]
    if any(columns["labels"].dtype == object for columns in filled):
        return False
    shapes = [
        {key: value.shape[1:] for key, value in columns.items() if isinstance(value, np.ndarray)}
        for columns in filled
    ]
    listed = any(key in columns for columns in each for key in LISTS)
    return not listed and all(
        shape == shapes[0] and len(shape) == len(columns)
        for shape, columns in zip(shapes, filled, strict=True)
    )


def _convert(sample: Sample, kind: str, place: str, *, ranked: bool) -> Columns:
    """Return the columns of a sample as arrays of equal length; some may be the caller's own arrays."""
    # Check which keys exist, and suggest a similar key for a missing one.
    side = sample.columns
    needed, optional = OF_KIND[kind]
    given = {key for key, value in side.items() if value is not None}
    named = (*needed, "scores") if kind == "prediction" else needed
    misnamed = len(named) > len(needed) and "scores" not in given and not given.isdisjoint(_SCORES)
    refused = functools.partial(
        InputError, f"a {kind}", f"have boxes, {', '.join(named)}", got=f"keys {list(side)}", place=place
    )
    if not given.issuperset(needed) or given.isdisjoint(SHAPES) or misnamed:
        raise refused(cause=_other_name(side, named))
    # The labels give the number of rows.
    labels = as_ids(_one_value_each(side["labels"], f"{kind} labels", place), name="labels")
    if ranked and len(labels) and "scores" not in given:
        raise refused(cause=COUNTED)
    # Convert each key by its kind, and compare lengths.
    columns: Columns = {"labels": labels}
    for key in (*SHAPES, *optional):
        if key not in given:
            continue
        # Arrays of other libraries become NumPy arrays, without a copy where possible.
        if key == "masks":
            columns[key] = _codes(side[key])
        elif key == "boxes":
            columns[key] = _four_numbers(as_array(side[key], f"{kind} {key}"), kind, place)
        elif key == "keypoints":
            columns[key] = checks.numbers(as_array(side[key], f"{kind} {key}"), name=f"{kind} {key}")
        elif key == "rotated":
            columns[key] = DETECTIONS.column(key).made_of(as_array(side[key], f"{kind} {key}"))
        else:
            convert = checks.flags if key in FLAGS else _plain_numbers
            columns[key] = convert(_one_value_each(side[key], f"{kind} {key}", place), name=f"{kind} {key}")
        # Compare lengths here, so that the error can name the key.
        if len(columns[key]) != len(labels):
            checks.same_length(len(labels), of=f"labels of {place}", **{key: columns[key]})
    # Names of labels, and lists of classes of the whole image.
    if sample.names is not None:
        checks.same_length(len(labels), of=f"labels of {place}", names=sample.names)
        columns["names"] = as_ids(list(sample.names), name="names")
    if kind == "target":
        for key in LISTS:
            listed = side.get(key)
            if listed is not None:
                columns[key] = as_ids(as_array(listed, f"target {key}").reshape(-1), name=key).tolist()
    return columns


def _four_numbers(array: NDArray[Any], kind: str, place: str) -> NDArray[np.floating[Any]]:
    """Check that boxes are numbers [N, 4]."""
    if array.ndim == 2 and array.shape[1] == 4 and array.dtype.char in "fd":
        return array
    if array.ndim == 3 and array.size:
        cause = "does it contain a whole batch? Pass one prediction and one target per image"
        got = f"shape {list(array.shape)}"
        raise InputError(f"{kind} boxes", "have shape [N, 4]", got=got, place=place, cause=cause)
    return checks.float_array(array, name=f"{kind} boxes", columns=4)


def _plain_numbers(array: NDArray[Any], *, name: str) -> NDArray[np.floating[Any]]:
    return array if array.dtype.char in "fd" else checks.numbers(array, name=name)


def _check_rows(
    columns: Columns,
    counts: Sequence[int],
    kind: str,
    form: BoxFormat,
    places: Sequence[str],
    invalid: Invalid | None,
) -> Rows:
    """Check values, and convert boxes to corners and sizes. Arrays are copied."""
    # Copy the arrays, since the caller may change them later; numbers become float64.
    for key, value in columns.items():
        if isinstance(value, np.ndarray):
            columns[key] = value.astype(np.float64 if value.dtype.kind == "f" else value.dtype)
    # Drop or move invalid rows, or raise an error for the first one.
    if invalid not in (None, "error"):
        as_false_positives = invalid == "false_positive" and kind == "prediction"
        return _without_invalid(columns, counts, form, as_false_positives=as_false_positives)

    def row(number: int) -> str:
        image = int(np.searchsorted(np.cumsum(counts), number, side="right"))
        return f"row {number - sum(counts[:image])} of the {kind} of {places[image]}"

    # Check the boxes before and after conversion: the errors for negative sizes and non-finite numbers
    # differ.
    remedy = REMEDY if invalid == "error" else ""
    if "rotated" in columns:
        DETECTIONS.column("rotated").check(columns["rotated"], row)
    # Convert in place: the boxes are copies by now.
    if "boxes" in columns:
        checks.finite(columns["boxes"], name="box", place=row, cause=remedy)
        corners, sizes = corners_and_sizes(columns["boxes"], form, overwrite=True)
        cause = " ".join(filter(None, ["is box_format right?", remedy]))
        checks.sizes_not_negative(sizes, place=row, cause=cause)
        columns["boxes"], columns["sizes"] = corners, sizes
    # Scores and areas must be finite.
    for key in {"scores", "area"} & set(columns):
        checks.finite(columns[key], name=key, place=row, limit=LARGEST_NUMBER, cause=remedy)
    return Rows(counts, columns)


# ---------------------------------------------------------------- invalid rows


def _without_invalid(
    columns: Columns, counts: Sequence[int], box_format: BoxFormat, *, as_false_positives: bool
) -> Rows:
    """Drop invalid rows, or turn them into detections that match nothing."""
    # Convert boxes even if some are not finite; the rows are found below.
    if "boxes" in columns:
        with np.errstate(invalid="ignore", over="ignore"):
            corners, sizes = corners_and_sizes(columns["boxes"], box_format, overwrite=True)
        columns["boxes"], columns["sizes"] = corners, sizes
    bad = invalid_rows(columns, len(columns["labels"]))
    if not bad.any():
        return Rows(counts, columns)
    # Keep bad detections so that they match nothing, or drop their rows.
    if as_false_positives:
        match_nothing(columns, bad)
    else:
        columns |= kept_rows({key: values for key, values in columns.items() if key not in LISTS}, ~bad)
    return Rows([len(columns["labels"])], columns, int(bad.sum()))


def listed_by(pieces: Sequence[Rows]) -> list[Id]:
    """Return the distinct classes that targets list for whole images."""
    names = (name for rows in pieces for key in LISTS for name in rows.columns.get(key, ()))
    return list(dict.fromkeys(names))


def image_labels_of(
    pieces: Sequence[Rows], identifiers: Sequence[Id], *, images: Images, categories: Categories
) -> ImageLabels | None:
    """Return the image labels of targets; None if no target has any."""
    if not any(key in piece.columns for piece in pieces for key in LISTS):
        return None
    starts = itertools.accumulate((len(piece.counts) for piece in pieces), initial=0)
    rows = [
        (identifiers[start], name, kind, key)
        for start, piece in zip(starts, pieces, strict=False)  # images with lists are checked one by one
        for key, kind in LISTS.items()
        for name in piece.columns.get(key, ())
    ]
    return ImageLabels.from_arrays(
        [row[0] for row in rows],
        [row[1] for row in rows],
        [row[2] for row in rows],
        images=images,
        categories=categories,
        place=lambda row: f"{rows[row][3]} of image {rows[row][0]!r}",
    )


def _one_value_each(values: Any, name: str, place: str) -> NDArray[Any]:
    """Return one value per object, [N]; [N, C] is ambiguous and an error."""
    array = as_array(values, name)
    if array.ndim > 1 and array.size > max(array.shape):
        cause = "one score per class? scores, labels = x.max(-1) selects the best class"
        raise InputError(name, "have shape [N]", got=f"shape {list(array.shape)}", place=place, cause=cause)
    return array.reshape(-1)


_SCORES = ("confidence", "confidences", "conf", "probs", "score")
_OTHER_NAMES = {
    "labels": ("classes", "class_ids", "class_id", "category_ids", "category_id", "cls", "pred_classes"),
    "scores": _SCORES,
    "boxes": ("bboxes", "bbox", "rois", "pred_boxes", "xyxy"),
}


def _other_name(side: Mapping[str, Any], needed: Sequence[str]) -> str:
    """Return a hint that names the key that may hold the missing one."""
    for name in ("boxes", *needed):
        other = next((key for key in _OTHER_NAMES[name] if key in side), None)
        if side.get(name) is None and other is not None:
            return f"is {other!r} the {name}?"
    return ""


def labels_of(pieces: Sequence[Rows]) -> list[Id]:
    """Return the distinct labels."""
    labels = np.concatenate([rows.columns["labels"] for rows in pieces])
    return distinct(labels).tolist() if labels.dtype != object else list(dict.fromkeys(labels.tolist()))


def table_columns(
    schema: Schema,
    pieces: Sequence[Rows],
    identifiers: Sequence[Id],
    *,
    images: ImagesLike,
    categories: CategoriesLike | None,
    source: str,
) -> dict[str, Any]:
    """Concatenate images in order into the columns of a table."""

    def place(row: int) -> str:
        return f"row {row} of {source}"

    # Join each column over all images with objects. All of them must have it, or none, because missing values
    # cannot be filled in.
    counts = [count for rows in pieces for count in rows.counts]
    sides = [rows.columns for rows in pieces]
    filled = [side for side in sides if len(side["labels"])]
    given: dict[str, Any] = {}
    for key in (*SHAPES, "sizes", "area", "scores"):
        parts = [side[key] for side in filled if key in side]
        # Name an image that has the key and one that does not, if each piece is one image.
        if len(parts) not in (0, len(filled)):
            got = f"{counted_of(len(parts), len(filled), 'image')} with it"
            filled_ids = [name for name, count in zip(identifiers, counts, strict=True) if count]
            there = [key in side for side in filled]
            which = ""
            if len(filled_ids) == len(filled):
                which = f"image {filled_ids[there.index(True)]!r}, not {filled_ids[there.index(False)]!r}"
            raise InputError(key, "be set for every image or for none", got=got, cause=which)
        # Masks stay a list, since a table encodes them itself.
        if parts:
            given[key] = (
                [mask for part in parts for mask in part] if key == "masks" else np.concatenate(parts)
            )
    # Flags are false where an image lacks them.
    if schema is GROUND_TRUTH:
        flags = {"crowd": "iscrowd", "difficult": "difficult", "ignore": "ignore"}
        given |= {name: _join_flags(sides, key) for name, key in flags.items()}
    # Look up images and labels once, then repeat each for the rows of its image.
    boxes, sizes = given.pop("boxes", None if filled else np.empty((0, 4))), given.pop("sizes", None)
    rows = vocabulary_columns(
        np.repeat(as_ids(identifiers, name="image_ids"), counts),
        as_ids(np.concatenate([side["labels"] for side in sides]) if sides else [], name="labels"),
        images,
        categories,
        count=None,
        of=f"{schema.noun} boxes",
        place=place,
    )
    # Build the columns without another copy of the boxes.
    table = built_columns(
        schema, rows, boxes, box_format="xyxy", given=given, sizes=sizes, reuse=True, place=place
    )
    if schema is DETECTIONS:
        has_boxes = boxes is not None or "rotated" in given
        table["boxes_given"] = has_boxes and "masks" not in given
    if schema is GROUND_TRUTH:
        labels = image_labels_of(pieces, identifiers, images=rows["images"], categories=rows["categories"])
        table |= {} if labels is None else {"image_labels": labels}
    return {**table, "source": source}


def _join_flags(sides: Sequence[Columns], key: str) -> NDArray[np.bool_]:
    """Concatenate a column of flags over images; false where an image does not have it."""
    columns = [side.get(key, np.zeros(len(side["labels"]), dtype=bool)) for side in sides]
    return np.concatenate(columns) if columns else np.zeros(0, dtype=bool)


def table_of_objects(
    schema: Schema,
    items: Any,
    *,
    image_ids: Iterable[Id] | None,
    class_names: ClassNames | None,
    box_format: BoxFormat,
    images: ImagesLike | None,
    categories: CategoriesLike | None,
    source: str,
) -> dict[str, Any]:
    """Return the columns of a table of predictions, or of targets, one object per image."""
    # Read the objects of all libraries.
    checks.one_of(box_format, BOX_FORMATS, name="box_format")
    kind = "target" if schema is GROUND_TRUTH else "prediction"
    samples = [
        sample_of(item, kind, f"{kind} {position}")
        for position, item in enumerate(one_per_image(items, kind))
    ]
    # Each sample gets its image.
    identifiers = _identifiers(samples, image_ids, kind)
    names = None if class_names is None else names_by_number(class_names)
    vocabulary = None if categories is None else categories_of(categories)
    places = [f"image {identifier!r}" for identifier in identifiers]
    # Check objects of one kind together as arrays; look names up per group.
    pieces, kinds = [], set()
    together = names is None
    starts = 0
    for rows in rows_of(samples, kind, box_format=box_format, places=places, together=together):
        place, side = places[starts], rows.columns
        starts += len(rows.counts)
        # Names by number first, then classes by name.
        if names is not None:
            side = named_by(side, names, place=place)
        kinds |= kinds_of_labels(side)
        side = by_name(side) if vocabulary is None else in_classes(side, vocabulary, place=place)
        pieces.append(rows._replace(columns=side))
    if vocabulary is None and {"both", "numbers"} <= kinds:
        cause = "pass class_names= or categories="
        raise InputError(f"the classes of {kind}s", "all have names, or none", got="some", cause=cause)
    # Build the table as from arrays.
    known = Images.build(identifiers) if images is None else images
    return table_columns(schema, pieces, identifiers, images=known, categories=vocabulary, source=source)


def _identifiers(samples: Sequence[Sample], image_ids: Iterable[Id] | None, kind: str) -> list[Id]:
    """Return the image id of each object, from the caller or from the objects."""
    # Use the caller's ids, otherwise those of the objects; then every object must have one.
    if image_ids is not None:
        given = as_array(image_ids, "image_ids") if hasattr(image_ids, "detach") else image_ids
        identifiers: list[Id] = as_ids(given, name="image_ids").tolist()
        checks.same_length(len(samples), of=f"{kind}s", image_ids=identifiers)
    else:
        given_ids = [image_id(sample, place=f"{kind} {position}") for position, sample in enumerate(samples)]
        identifiers = [identifier for identifier in given_ids if identifier is not None]
        if len(identifiers) < len(samples):
            got = f"None, and {kind} {given_ids.index(None)} lacks an id"
            cause = f"one per {kind}, such as range({len(samples)}) on both sides"
            raise InputError("image_ids", "be given", got=got, cause=cause)
    # A repeated id would merge two images.
    twice = [identifier for identifier, count in Counter(identifiers).items() if count > 1]
    if twice:
        cause = "" if image_ids is not None else f"pass image_ids=, one per {kind}"
        raise InputError("image_ids", "occur only once", got=f"{twice[0]!r} again", cause=cause)
    return identifiers


def _codes(masks: Any) -> list[Any]:
    """Encode masks: arrays [N, H, W] or [N, 1, H, W]; polygons and RLEs stay."""
    if isinstance(masks, (list, tuple)) and all(isinstance(mask, (dict, list)) for mask in masks):
        return list(masks)
    array = as_array(masks, "masks")
    if array.ndim == 4 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 3:
        rule = "have shape [N, H, W] or [N, 1, H, W]"
        raise InputError("masks", rule, got=f"shape {list(array.shape)}")
    return list(Masks(array if array.dtype == bool else array > MASK_THRESHOLD).codes())
