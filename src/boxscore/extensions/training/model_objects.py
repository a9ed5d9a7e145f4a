"""Recognize and read the objects that detection libraries return for an image.

Goal
----
A reader converts the object of one image to a :class:`Sample`: the keys of
:mod:`boxscore.extensions.data_tools.samples`. No library is imported: objects are recognized by attributes or
keys that only they have.

Conventions
-----------
- Class numbers stay unchanged; class names, if the object has them, are added per row.
- Boxes of an object with a known format keep it; those of other mappings have the caller's format.
- Attributes that no reader uses are ignored.

To support another library, add a reader, and a line in ``_OF_MAPPINGS`` or ``_OF_OBJECTS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.user_warnings import warn_user
from boxscore.data.boxes import BOX_FORMATS, BoxFormat
from boxscore.data.schema import rotated_of_corners
from boxscore.errors import InputError
from boxscore.extensions.masks.column import Masks
from boxscore.extensions.training.tensors import as_array, as_whole_numbers

KEYED = "is it a mapping by image? Pass its values, and its keys as image_ids="
RAW = "is it the raw output of a model? Convert it with post_process_object_detection of its processor"
LIBRARIES = "torchvision, Hugging Face, ultralytics, supervision, detectron2, MMDetection and KerasCV"


class Sample(NamedTuple):
    """One image's prediction or target in the keys of :mod:`boxscore.extensions.data_tools.samples`."""

    columns: Mapping[str, Any]
    names: Sequence[str] | None = None
    """The class name of each row, in addition to the numbers in ``labels``."""
    box_format: BoxFormat | None = None
    """None: the caller's format."""


class _Source(NamedTuple):
    """The source of an object: used in messages, and to tell predictions from targets."""

    kind: str
    place: str

    @property
    def is_target(self) -> bool:
        return self.kind == "target"

    def error(self, name: str, rule: str, *, got: object, cause: str = "") -> InputError:
        return InputError(f"{name} of a {self.kind}", rule, got=got, place=self.place, cause=cause)

    def unknown(self, item: Any, cause: str) -> InputError:
        rule, shape = "be a mapping or a known object", getattr(item, "shape", None)
        got = f"a {type(item).__name__}" + (f" of shape {list(shape)}" if isinstance(shape, tuple) else "")
        return InputError(f"a {self.kind}", rule, got=got, place=self.place, cause=cause)


def _advice(item: Any) -> str:
    """Suggest how to convert an unknown object to a known one."""
    if _has(item, "xyxy", "cls"):
        return "pass the Results it belongs to"
    if isinstance(item, (str, PurePath)):
        return "load_detections and load_ground_truth read files"
    if _has(item, "shape", "dtype"):
        shape = getattr(item, "shape", None)
        if isinstance(shape, tuple) and len(shape) == 2 and shape[1] == 6:
            parts = "{'boxes': x[:, :4], 'scores': x[:, 4], 'labels': x[:, 5].int()}"
            return f"x1, y1, x2, y2, score, class? {parts}"
        return "name its parts: {'boxes': ..., 'scores': ..., 'labels': ...}"
    return f"boxscore reads the objects that {LIBRARIES} return"


def sample_of(item: Any, kind: str, place: str) -> Sample:
    """Read the prediction or target of one image, of any supported type.

    Raises
    ------
    InputError
        When it is neither a mapping nor a known object, or lacks a required attribute.
    """
    # Handle the usual form first, without further checks.
    is_mapping = type(item) is dict or isinstance(item, Mapping)
    if (
        is_mapping
        and "boxes" in item
        and "labels" in item
        and not ("confidence" in item or "text_labels" in item)
    ):
        return _torchvision(item)
    # Then try other mappings and objects by their attributes, without importing a library.
    source = _Source(kind, place)
    if is_mapping:
        for recognizes, read in _OF_MAPPINGS:
            if recognizes(item):
                return _read(item, read, source)
        return _torchvision(item)
    for recognizes, read in _OF_OBJECTS:
        if recognizes(item):
            return _read(item, read, source)
    raise source.unknown(item, _advice(item))


def _read(item: Any, read: Callable[[Any, _Source], Sample], source: _Source) -> Sample:
    """Read an object of another library, in which any attribute may be missing or of another type."""
    try:
        return read(item, source)
    except InputError:
        raise
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        words = str(error).split("\n", 1)[0].rstrip(".")
        raise InputError(
            f"a {source.kind}",
            "be as its library makes it",
            got=f"a {type(item).__name__} that cannot be read ({words})",
            place=source.place,
            cause="another version of the library?",
        ) from None


def one_per_image(items: Any, kind: str) -> Sequence[Any]:
    """Return a batch as a sequence with one object per image.

    Raises
    ------
    InputError
        When it is the object of a single image.
    """
    # A list is a batch; text, raw tensors and objects of one image are not.
    if type(items) is list:
        batch: Sequence[Any] = items
    elif isinstance(items, (str, bytes, PurePath)):
        raise _sequence_error(items, kind, "load_detections and load_ground_truth read files")
    elif _is_raw(items):
        raise _sequence_error(items, kind, RAW)
    elif isinstance(items, Mapping):
        batch = _unbatch(items, kind)
    else:
        known = (recognizes for recognizes, _ in _OF_OBJECTS if recognizes is not _is_list)
        if any(recognizes(items) for recognizes in known) or not isinstance(items, Iterable):
            raise _sequence_error(items, kind)
        batch = list(items)
    # The rows of one image look like a batch: reject them, because each would count as an image.
    if batch and isinstance(batch[0], Mapping) and (_is_pipeline_row(batch[0]) or _is_coco_row(batch[0])):
        cause = "this list is for one image; put it in a list"
        raise InputError(f"{kind}s", "be a sequence with one item per image", got="detections", cause=cause)
    return batch


def _sequence_error(items: Any, kind: str, cause: str = "put it in a list?") -> InputError:
    got = f"a {type(items).__name__}"
    rule = "be a sequence with one item per image"
    return InputError(f"{kind}s", rule, got=got, cause=cause)


def _has(item: Any, *names: str) -> bool:
    return all(hasattr(item, name) for name in names)


def _part(item: Any, name: str) -> Any:
    """Return a key of a mapping or an attribute of an object; None if it does not exist."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def _required(item: Any, name: str, source: _Source) -> Any:
    value = _part(item, name)
    if value is None:
        raise source.error(name, "be given", got=f"a {type(item).__name__} without {name}")
    return value


def _present(**columns: Any) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if value is not None}


# ---------------------------------------------------------------- torchvision, Hugging Face, KerasCV


def _torchvision(item: Mapping[str, Any]) -> Sample:
    """Read torchvision's mapping, or any in its form; boxes of ``tv_tensors`` have their own format."""
    if type(item.get("boxes")) is np.ndarray:
        return Sample(item)
    form = getattr(item.get("boxes"), "format", None)
    name = str(getattr(form, "name", form)).lower()
    if name in BOX_FORMATS and hasattr(item["boxes"], "canvas_size"):
        return Sample(item, box_format=name)
    return Sample(item)


def _grounded(item: Mapping[str, Any], source: _Source) -> Sample:
    """Read Hugging Face's grounded detections, in which the detected phrases are the classes."""
    texts = item["text_labels"]
    return _torchvision(item if texts is None else {**item, "labels": list(texts)})


def _processor_target(item: Mapping[str, Any], source: _Source) -> Sample:
    """Read targets of a Hugging Face image processor: fractions, and areas in resized pixels."""
    # Convert fractions to pixels of the original image, or of the resized one if only that is known.
    boxes = as_array(_required(item, "boxes", source), "boxes").astype(np.float64).reshape(-1, 4)
    size, original = (_size(item.get(key), key, source) for key in ("size", "orig_size"))
    frame = size if original is None else original
    if frame is None:
        cause = "class_labels are of a Hugging Face processor, whose boxes are fractions of the image"
        raise source.error("orig_size", "be given", got=f"keys {list(item)}", cause=cause)
    # Larger numbers are already pixels.
    if boxes.size and not boxes.max() <= 1.5:
        cause = "pixels? then name the classes labels, and say box_format="
        rule = "be fractions of the image"
        raise source.error("boxes together with class_labels", rule, got=boxes.max(), cause=cause)
    # Areas are in resized pixels: scale them like the image.
    area = item.get("area")
    if area is not None and size is not None:
        area = as_array(area, "area").astype(np.float64) * (frame.prod() / size.prod())
    columns = _present(
        boxes=boxes * np.tile(frame, 2),
        labels=item["class_labels"],
        area=area,
        iscrowd=item.get("iscrowd"),
        image_id=item.get("image_id"),
        scores=item.get("scores"),
    )
    return Sample(columns, box_format="cxcywh")


def _size(value: Any, name: str, source: _Source) -> NDArray[np.float64] | None:
    """Return ``height, width`` as ``width, height``."""
    if value is None:
        return None
    size = as_array(value, name).astype(np.float64).reshape(-1)
    if size.shape != (2,) or not (size > 0).all():
        raise source.error(name, "be a height and a width", got=size.tolist())
    return size[::-1]


def _keras(item: Mapping[str, Any], source: _Source) -> Sample:
    """Read a mapping of KerasCV or KerasHub; rows of class -1, or after ``num_detections``, are padding."""
    # The class or the count marks padding.
    labels = as_whole_numbers(_required(item, _keras_classes(item), source), "classes", place=source.place)
    boxes = as_array(_required(item, "boxes", source), "boxes")
    if boxes.ndim == 3:
        cause = "pass the mapping itself, not a list of it"
        raise source.error("boxes", "have shape [N, 4]", got=f"shape {list(boxes.shape)}", cause=cause)
    valid = labels != -1
    count = item.get("num_detections")
    if count is not None:
        valid &= np.arange(len(labels)) < int(as_array(count, "num_detections").reshape(-1)[0])
    # Drop padding after checking that all columns have the same length.
    columns = {"boxes": boxes, "labels": labels}
    for key, name in (("confidence", "scores"), ("masks", "masks")):
        if item.get(key) is not None:
            columns[name] = as_array(item[key], key)
    for name, column in columns.items():
        if len(column) != len(labels):
            raise source.error(name, f"be as long as the classes ({len(labels)})", got=len(column))
    read = {name: column[valid] for name, column in columns.items()}
    return Sample(read if item.get("image_id") is None else {**read, "image_id": item["image_id"]})


def _keras_classes(item: Mapping[str, Any]) -> str:
    return "classes" if "classes" in item else "labels"


def _unbatch(items: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    """Split a mapping of batched arrays, as Keras models return it, by image."""
    # The detection API has its own reader with a better error message.
    if "detection_boxes" in items:
        _detection_api(items, _Source(kind, "the batch"))
    # Three dimensions are a batch; every array must cover its images.
    boxes = items.get("boxes")
    array = None if boxes is None else as_array(boxes, "boxes")
    if array is None or array.ndim != 3:
        raise _sequence_error(items, kind, "put it in a list?" if array is not None else KEYED)
    read = ("classes", "labels", "confidence", "scores", "num_detections", "masks", "image_id")
    arrays = {"boxes": array} | {
        name: as_array(items[name], name) for name in read if items.get(name) is not None
    }
    for name, column in arrays.items():
        if not column.ndim or len(column) != len(array):
            got = f"shape {list(column.shape)}"
            raise InputError(f"{name} of {kind}s", f"cover as many images as boxes ({len(array)})", got=got)
    # Versions use different keys for classes and scores.
    if "classes" not in arrays and "labels" in arrays:
        arrays["classes"] = arrays.pop("labels")
    if "scores" in arrays:
        arrays.setdefault("confidence", arrays.pop("scores"))
    return [{name: column[image] for name, column in arrays.items()} for image in range(len(array))]


def _is_raw(item: Any) -> bool:
    """Return whether this is raw network output: scores of all classes for every query."""
    return _part(item, "logits") is not None and _part(item, "pred_boxes") is not None


def _raw(item: Any, source: _Source) -> Sample:
    rule, got = "be final detections", f"a {type(item).__name__} with logits"
    raise InputError(f"a {source.kind}", rule, got=got, place=source.place, cause=RAW)


def _detection_api(item: Mapping[str, Any], source: _Source) -> Sample:
    """Reject the output of TensorFlow's detection API, which does not contain the image size."""
    cause = (
        "detection_boxes are [ymin, xmin, ymax, xmax] as fractions: {'boxes': b[:, [1, 0, 3, 2]] * "
        "[width, height, width, height], 'scores': ..., 'labels': detection_classes.astype(int)}"
    )
    rule, got = "have boxes in pixels", "keys detection_boxes, detection_classes"
    raise InputError(f"a {source.kind}", rule, got=got, place=source.place, cause=cause)


def _is_pipeline_row(item: Mapping[str, Any]) -> bool:
    return "score" in item and "label" in item and "box" in item


def _lone_row(item: Mapping[str, Any], source: _Source) -> Sample:
    cause = "this is one detection; a prediction is the list of an image's"
    rule = "be one per image"
    raise InputError(f"a {source.kind}", rule, got="a detection", place=source.place, cause=cause)


# ---------------------------------------------------------------- COCO rows of one image


def _is_coco_row(item: Mapping[str, Any]) -> bool:
    return "bbox" in item and "category_id" in item


def _annotations(item: Mapping[str, Any], source: _Source) -> Sample:
    """Read ``image_id`` and ``annotations``, the targets of Hugging Face's processors."""
    rows = _required(item, "annotations", source)
    if not isinstance(rows, (list, tuple)) or not all(isinstance(row, Mapping) for row in rows):
        raise source.error("annotations", "be a list of annotations", got=f"a {type(rows).__name__}")
    sample = _coco_rows(rows, source)
    if item.get("image_id") is None:
        return sample
    return sample._replace(columns={**sample.columns, "image_id": item["image_id"]})


def _coco_rows(rows: Sequence[Mapping[str, Any]], source: _Source) -> Sample:
    """Read COCO rows of an image, as torchvision's ``CocoDetection`` returns them.

    Polygons are not read, because the rows do not contain the image size.
    """

    # A key is used only if every row has it.
    def column(name: str) -> list[Any] | None:
        values = [row.get(name) for row in rows]
        return values if rows and None not in [type(v) if v is not None else None for v in values] else None

    # Check the ids: the rows must belong to one image.
    images = {row["image_id"] for row in rows if row.get("image_id") is not None}
    if len(images) > 1:
        cause = "a whole file? load_detections and load_ground_truth read it"
        raise source.error(
            "annotations", "be of one image", got=f"image_id {sorted(images, key=str)[:2]}", cause=cause
        )
    # Read masks if all are run-length encoded.
    boxes = [row["bbox"] for row in rows]
    masks, keypoints = column("segmentation"), column("keypoints")
    if masks is not None and not all(isinstance(mask, Mapping) for mask in masks):
        masks = None
    # An empty list is an image without detections, which has scores; without them it would look unscored.
    columns = _present(
        boxes=np.array(boxes, dtype=np.float64).reshape(-1, 4),
        labels=[row["category_id"] for row in rows],
        scores=[] if not rows and not source.is_target else column("score"),
        area=column("area"),
        iscrowd=[bool(row.get("iscrowd", 0)) for row in rows],
        masks=masks,
        keypoints=None
        if keypoints is None
        else np.array(keypoints, dtype=np.float64).reshape(len(rows), -1, 3),
        image_id=next(iter(images), None),
    )
    return Sample(columns, box_format="xywh")


# ---------------------------------------------------------------- Hugging Face pipelines, MMDetection 2


def _is_list(item: Any) -> bool:
    return isinstance(item, (list, tuple))


def _read_list(item: Sequence[Any], source: _Source) -> Sample:
    # Accept rows of COCO or of a pipeline; a target may be empty.
    if all(isinstance(row, Mapping) and _is_coco_row(row) for row in item) and (item or source.is_target):
        return _coco_rows(item, source)
    if source.is_target:
        cause = "of lists, those of COCO annotations with bbox and category_id"
        raise source.unknown(item, cause)
    if all(isinstance(row, Mapping) and _is_pipeline_row(row) for row in item):
        return _pipeline(item, source)
    # MMDetection's lists have an array per class, and optional masks.
    boxes, masks = item, None
    if isinstance(item, tuple) and len(item) == 2:
        boxes, masks = item
    arrays = [as_array(part, "boxes") for part in boxes if not isinstance(part, (Mapping, str))]
    if len(arrays) != len(boxes) or any(array.ndim != 2 or array.shape[1] != 5 for array in arrays):
        cause = (
            "of lists, those of detections with score, label, box, or bbox, category_id, score, and of "
            "arrays [N, 5], one per class; arrays of boxes, scores and labels need their names"
        )
        raise source.unknown(item, cause)
    return _read_by_class(arrays, masks, source)


def _pipeline(item: Sequence[Mapping[str, Any]], source: _Source) -> Sample:
    """Read the list of detections of a Hugging Face pipeline; classes are names."""
    sides = ("xmin", "ymin", "xmax", "ymax")
    try:
        boxes = [[row["box"][side] for side in sides] for row in item]
    except (KeyError, TypeError):
        raise source.error("box", f"have {', '.join(sides)}", got="another box") from None
    columns = {
        "boxes": np.array(boxes, dtype=np.float64).reshape(-1, 4),
        "labels": [row["label"] for row in item],
        "scores": [row["score"] for row in item],
    }
    return Sample(columns, box_format="xyxy")


def _read_by_class(arrays: Sequence[NDArray[Any]], masks: Any, source: _Source) -> Sample:
    """Read MMDetection 2 output: ``x1, y1, x2, y2, score`` in one array per class, numbered from 0."""
    rows = np.concatenate(arrays)
    columns: dict[str, Any] = {
        "boxes": rows[:, :4],
        "scores": rows[:, 4],
        "labels": np.repeat(np.arange(len(arrays)), [len(array) for array in arrays]),
    }
    if masks is not None:
        each = [mask for of_class in masks for mask in of_class]
        if len(each) != len(rows):
            raise source.error("masks", f"be as long as the boxes ({len(rows)})", got=len(each))
        if each and not isinstance(each[0], Mapping):
            each = list(np.stack([as_array(mask, "masks") for mask in each]))
        columns["masks"] = np.array(each) if each and not isinstance(each[0], Mapping) else each
    return Sample(columns, box_format="xyxy")


# ---------------------------------------------------------------- ultralytics


def _ultralytics(item: Any, source: _Source) -> Sample:
    """Read ``Results``: boxes in image pixels, class names by number; the image id is the path."""
    upright, rotated = item.boxes, getattr(item, "obb", None)
    boxes = rotated if upright is None else upright
    if boxes is None:
        raise source.error("boxes", "be given", got="Results of a task without boxes")
    labels = as_whole_numbers(boxes.cls, "cls", place=source.place)
    columns = _present(
        boxes=boxes.xyxy if rotated is None else None,
        rotated=None if rotated is None else rotated.xywhr,
        scores=boxes.conf,
        labels=labels,
        keypoints=_with_visibility(_part(item.keypoints, "data")) if _has(item, "keypoints") else None,
        masks=_masks_of_size(_part(getattr(item, "masks", None), "data"), item.orig_shape),
        image_id=PurePath(str(item.path).replace("\\", "/")).name if getattr(item, "path", None) else None,
    )
    return Sample(columns, _names_of(labels, item.names, source), box_format="xyxy")


def _names_of(numbers: NDArray[Any], names: Any, source: _Source) -> list[str] | None:
    """Return the class name of each row from names by number."""
    if not names:
        return None
    known = dict(names) if isinstance(names, Mapping) else dict(enumerate(names))
    for number in numbers.tolist():
        if number not in known:
            raise source.error("a class number", "have a name", got=number)
    return [str(known[number]) for number in numbers.tolist()]


def _with_visibility(keypoints: Any) -> NDArray[Any] | None:
    """Add visibility to keypoints [N, J, 2]."""
    if keypoints is None:
        return None
    array = as_array(keypoints, "keypoints")
    if array.ndim == 3 and array.shape[2] == 2:
        return np.concatenate([array, np.ones_like(array[:, :, :1])], axis=2)
    return array


def _masks_of_size(masks: Any, size: Any) -> NDArray[Any] | None:
    """Return masks of the image's size; masks of the network's input size cannot be scored."""
    if masks is None:
        return None
    array = as_array(masks, "masks")
    if array.shape[1:] == tuple(size):
        return array
    warn_user(
        f"masks of {list(array.shape[1:])} pixels in images of {list(size)} are not read: predict with "
        "retina_masks=True.",
    )
    return None


# ---------------------------------------------------------------- supervision


def _supervision(item: Any, source: _Source) -> Sample:
    """Read ``Detections``; ``data`` has names, rotated-box corners, and targets' flags and areas."""
    # Use names as labels without numbers; an empty object needs neither.
    data = getattr(item, "data", None) or {}
    names, corners, numbers = data.get("class_name"), data.get("xyxyxyxy"), item.class_id
    count = len(item.xyxy)
    if numbers is None and names is None:
        if count:
            raise source.error("class_id", "be given", got="Detections without classes")
        numbers = np.empty(0, dtype=np.int64)
    texts = None if names is None else [str(name) for name in as_array(names, "class_name").tolist()]
    labels = texts if numbers is None else as_whole_numbers(numbers, "class_id", place=source.place)
    # Only an empty object may lack scores.
    scores = item.confidence
    if scores is None and not count:
        scores = np.empty(0)
    # Convert corners to rotated boxes.
    rotated = None
    if corners is not None:
        four = as_array(corners, "xyxyxyxy").astype(np.float64).reshape(-1, 4, 2)
        rotated = rotated_of_corners(four) if len(four) else np.empty((0, 5))
    # Only targets have flags and areas.
    masks = getattr(item, "mask", None)
    columns = _present(
        boxes=item.xyxy if rotated is None else None,
        rotated=rotated,
        labels=labels,
        scores=scores,
        masks=None if masks is None else np.asarray(masks),
        **{key: data.get(key) for key in ("area", "iscrowd", "ignore") if source.is_target},
    )
    return Sample(columns, None if numbers is None else texts, box_format="xyxy")


# ---------------------------------------------------------------- detectron2


def _is_instances(item: Any) -> bool:
    return hasattr(item, "image_size") and (hasattr(item, "pred_classes") or hasattr(item, "gt_classes"))


def _detectron2_mapping(item: Mapping[str, Any], source: _Source) -> Sample:
    """Read a detectron2 model's output for an image, or its data loader's target."""
    instances = item["instances"]
    if not _is_instances(instances):
        raise source.error("instances", "be detectron2's", got=f"a {type(instances).__name__}")
    sample = _detectron2(instances, source)
    stated = (item.get("height"), item.get("width"))
    if None not in stated and tuple(instances.image_size) != stated:
        cause = "they are of the resized image; predictions are of the original"
        got = f"{list(instances.image_size)}"
        raise source.error("instances", f"be of an image of {list(stated)} pixels", got=got, cause=cause)
    if item.get("image_id") is not None:
        return sample._replace(columns={**sample.columns, "image_id": item["image_id"]})
    return sample


def _detectron2(item: Any, source: _Source) -> Sample:
    """Read ``Instances``: ``pred_`` fields, or ``gt_`` fields of targets; rotated boxes in degrees, y up."""
    # The prefix tells fields of predictions from those of targets.
    is_truth = source.is_target and hasattr(item, "gt_classes")
    if not is_truth and not hasattr(item, "pred_classes"):
        raise source.error("pred_classes", "be given", got="Instances with gt_classes only")
    prefix = "gt_" if is_truth else "pred_"
    # Five numbers are a rotated box, in degrees with y up.
    boxes = getattr(item, prefix + "boxes", None)
    array = None if boxes is None else as_array(_part(boxes, "tensor"), "boxes")
    is_rotated = array is not None and array.ndim == 2 and array.shape[1] == 5
    keypoints = getattr(item, prefix + "keypoints", None)
    inner = getattr(keypoints, "tensor", keypoints)
    columns = _present(
        boxes=None if is_rotated else array,
        rotated=_from_degrees(array) if is_rotated and array is not None else None,
        labels=getattr(item, prefix + "classes"),
        scores=getattr(item, "scores", None),
        masks=_masks_of(getattr(item, prefix + "masks", None), item.image_size),
        keypoints=inner,
    )
    return Sample(columns, box_format="xyxy")


def _from_degrees(rotated: NDArray[Any]) -> NDArray[np.float64]:
    in_radians = rotated.astype(np.float64)
    in_radians[:, 4] = -np.deg2rad(in_radians[:, 4])
    return in_radians


def _masks_of(masks: Any, size: Any) -> Any:
    """Return detectron2 or MMDetection masks as arrays or RLEs; polygons are rasterized."""
    polygons = getattr(masks, "polygons", None)
    inner = getattr(masks, "masks", None)
    if polygons is None and isinstance(inner, (list, tuple)):
        polygons = inner
    if polygons is not None:
        rows = [[as_array(ring, "masks").ravel().tolist() for ring in rings] for rings in polygons]
        height, width = size
        return list(Masks(rows, image_sizes=np.tile([width, height], (len(rows), 1))).codes())
    if hasattr(masks, "tensor"):
        return masks.tensor
    return masks if inner is None else inner


# ---------------------------------------------------------------- MMDetection 3


def _is_data_sample(item: Any) -> bool:
    return _has(item, "pred_instances") or _has(item, "gt_instances")


def _mmdetection(item: Any, source: _Source) -> Sample:
    """Read a data sample: ``gt_instances`` of targets, else ``pred_instances``; flag ignored objects."""
    information = _part(item, "metainfo") or {}
    identifier = information.get("img_id", _part(item, "img_id"))
    truth = _part(item, "gt_instances") if source.is_target else None
    name = "pred_instances" if truth is None else "gt_instances"
    size = information.get("ori_shape", _part(item, "ori_shape"))
    columns = _instance_columns(_required(item, name, source), size, source)
    ignored = _part(item, "ignored_instances") if truth is not None else None
    if ignored is not None and _part(ignored, "labels") is not None and len(_part(ignored, "labels")):
        columns = _with_ignored(columns, _instance_columns(ignored, size, source))
    if identifier is not None:
        columns["image_id"] = identifier
    return Sample(columns, box_format="xyxy")


def _instance_columns(instances: Any, size: Any, source: _Source) -> dict[str, Any]:
    boxes = _required(instances, "bboxes", source)
    array = as_array(getattr(boxes, "tensor", boxes), "bboxes")
    is_rotated = array.ndim == 2 and array.shape[1] == 5
    return _present(
        boxes=None if is_rotated else array,
        rotated=array if is_rotated else None,
        labels=_required(instances, "labels", source),
        scores=_part(instances, "scores"),
        masks=_masks_of(_part(instances, "masks"), size),
    )


def _with_ignored(columns: dict[str, Any], ignored: dict[str, Any]) -> dict[str, Any]:
    """Append ignored objects, flagged as both crowd and difficult, because the sample does not say which."""
    joined: dict[str, Any] = {
        name: np.concatenate([as_array(part[name], name) for part in (columns, ignored)])
        for name in ("boxes", "rotated", "labels")
        if name in columns and name in ignored
    }
    if "masks" in columns and "masks" in ignored:
        joined["masks"] = [*columns["masks"], *ignored["masks"]]
        if not isinstance(joined["masks"][0], Mapping):
            joined["masks"] = np.stack([as_array(mask, "masks") for mask in joined["masks"]])
    flag = np.arange(len(joined["labels"])) >= len(as_array(columns["labels"], "labels"))
    return {**joined, "iscrowd": flag, "difficult": flag}


def _inferencer(item: Mapping[str, Any], source: _Source) -> Sample:
    """Read one entry of the ``predictions`` of MMDetection's ``DetInferencer``."""
    return Sample(_instance_columns(item, None, source), box_format="xyxy")


# ---------------------------------------------------------------- known objects

Is = Callable[[Any], bool]
Read = Callable[[Any, _Source], Sample]

_OF_MAPPINGS: tuple[tuple[Is, Read], ...] = (
    (lambda item: "instances" in item, _detectron2_mapping),
    (lambda item: "pred_instances" in item or "gt_instances" in item, _mmdetection),
    (lambda item: "class_labels" in item, _processor_target),
    (lambda item: "classes" in item or ("confidence" in item and "scores" not in item), _keras),
    (lambda item: "bboxes" in item and "boxes" not in item, _inferencer),
    (lambda item: "text_labels" in item, _grounded),
    (lambda item: "annotations" in item and "boxes" not in item, _annotations),
    (lambda item: "detection_boxes" in item and "detection_classes" in item, _detection_api),
    (_is_raw, _raw),
    (lambda item: _is_pipeline_row(item) or _is_coco_row(item), _lone_row),
)

_OF_OBJECTS: tuple[tuple[Is, Read], ...] = (
    (_is_list, _read_list),
    (lambda item: _has(item, "orig_shape", "names", "boxes"), _ultralytics),
    (lambda item: _has(item, "xyxy", "class_id", "confidence"), _supervision),
    (_is_instances, _detectron2),
    (_is_raw, _raw),
    (_is_data_sample, _mmdetection),
)
