"""Read COCO JSON: ground truth (``instances_*.json``) and results files.

Conventions
-----------
- Boxes are ``x, y, width, height``; rotated boxes are ``cx, cy, width, height`` and degrees
  counter-clockwise, as in detectron2. ``area`` is that of the annotation (of its mask), or else width times
  height.
- Images and classes are those in ``images`` and ``categories``, sorted by id, as in pycocotools.
- Annotations of unlisted images or classes are dropped, as in pycocotools, with a warning.
- If annotations share an id, the last one replaces the others, as in pycocotools, with a warning.
- A side that is slightly negative due to rounding is kept, as in pycocotools; the box does not overlap
  anything.
- ``"2299"`` and 2299 are the same id if only one of them is listed, with a warning.
- ``supercategory`` becomes a column of the classes if it is text, ``skeleton`` if it is pairs of keypoints.
- ``iscrowd`` overwrites ``ignore``, as in pycocotools. ``difficult`` is read if present.
- If images list classes, the file is in LVIS format: ``neg_category_ids`` and ``not_exhaustive_category_ids``
  become image labels, ``frequency`` becomes a column of the classes, and ``ignore`` is read.
- Results are a list of records, a COCO object whose annotations have a ``score``, or an object with such a
  list under ``results`` or ``predictions``. Unknown keys are skipped.
- If a record has a ``file_name``, it identifies the image; ultralytics writes it next to an id derived from
  the name.
- Masks and keypoints are loaded lazily, by reading the file again.

References
----------
https://cocodataset.org/#format-data and #format-results; pycocotools ``coco.py``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from boxscore._utils.checks import Place
from boxscore._utils.files import Snapshot, is_file
from boxscore._utils.lazy import shortcut
from boxscore._utils.memory import paused_collector
from boxscore._utils.processes import Workers
from boxscore._utils.text import counted, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.box_reading import in_pixels
from boxscore.data.boxes import BoxFormat, WrittenForm, WrittenFormat, box_convert, written_form
from boxscore.data.building import built_columns, vocabulary_columns
from boxscore.data.hints import ask
from boxscore.data.lazy import Reader
from boxscore.data.lookup import DeclaredVocabulary, as_numbers, find_categories, find_images, spelled_as
from boxscore.data.schema import DETECTIONS, GROUND_TRUTH, LISTS_OF_IMAGES
from boxscore.data.scores import all_or_none
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import SKELETON, SUPERCATEGORY, Categories, Id, Images, as_ids
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.formats import _json
from boxscore.formats._coco_keys import image_key_columns, key_columns
from boxscore.formats._coco_records import (
    DECODING_ERRORS,
    Columns,
    Kind,
    Reading,
    Text,
    annotation_kind,
    first_record,
    given_boxes,
    instance_columns,
    instance_kind,
    result_kind,
    rotated_boxes,
    text_in_file,
    text_in_memory,
    whole,
)
from boxscore.formats._format import Format, ReadOptions
from boxscore.formats._sniffer import Sniffer

ROBOFLOW = "_annotations.coco.json"
COCO_FORM = written_form("xywh")

if TYPE_CHECKING:
    from boxscore.formats.image_sizes import ImageSizes


class _Image(msgspec.Struct, gc=False):
    id: int | float | str
    file_name: str | None = None
    width: float | None = None
    height: float | None = None
    coco_url: str | None = None
    neg_category_ids: list[int | float | str] | None = None
    not_exhaustive_category_ids: list[int | float | str] | None = None


MOST_LIMBS = 10_000
"""Maximum number of limbs in a skeleton, and maximum keypoint number; other skeletons are dropped."""


class _Category(msgspec.Struct, gc=False):
    id: int | float | str
    name: str | None = None
    frequency: str | None = None
    supercategory: Any = None
    skeleton: Any = None


class _File(msgspec.Struct):
    images: list[_Image] | None = None
    categories: list[_Category] | None = None
    annotations: msgspec.Raw = msgspec.Raw(b"")
    results: msgspec.Raw = msgspec.Raw(b"")
    predictions: msgspec.Raw = msgspec.Raw(b"")

    def records(self) -> msgspec.Raw:
        """Return the records of results, from the first of the usual keys that is present."""
        keys = (self.annotations, self.results, self.predictions)
        return next((raw for raw in keys if len(memoryview(raw))), self.annotations)


class CocoFormat(Format):
    """COCO JSON files."""

    name = "coco"
    has_class_numbers = True
    boxes = "xywh"
    holds_any_text = True
    endings = (".json",)
    holds: ClassVar[Mapping[str, frozenset[str]]] = {
        "ground truth": frozenset(
            {"masks", "keypoints", "rotated", "areas", "crowd", "difficult", "sizes", "file names"}
            | {"ids", "classes", "image labels", "ignore together with image labels"}
            | {"class column frequency", f"class column {SUPERCATEGORY}"}
        ),
        "detections": frozenset({"masks", "keypoints", "rotated", "ids", "classes"}),
    }

    def detect(self, sniffer: Sniffer) -> str | None:
        """Accept any JSON file, and a folder with an annotation file; reading rejects other JSON."""
        if sniffer.is_folder:
            name = _annotations_in(sniffer.path)
            return None if name is None else f"a folder with {name.name}"
        if not (sniffer.is_json or sniffer.suffix == ".json"):
            return None
        return "a JSON file"

    def load_ground_truth(self, path: Path, options: ReadOptions) -> GroundTruth:
        """Read a COCO ground-truth file."""
        return TruthReading(path, options).ground_truth()

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read a results file, with several processes if it is large."""
        with begin(path, options, 0) as reading:
            return reading.detections(ground_truth)

    def save(self, table: BoxTable, path: Path, *, like: Path | None = None) -> None:
        """Write ground truth, or detections as a results file."""
        from boxscore.formats import _coco_writing

        if isinstance(table, GroundTruth):
            _coco_writing.save_ground_truth(table, path)
        else:
            _coco_writing.save_results(cast(Detections, table), path)


FORMAT = CocoFormat()

OPTIONS_OF_DETECTIONS = frozenset({"classes"})


class TruthReading:
    """Read a ground-truth file in steps."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        # Decode the top level; keep the annotations as text until their columns are known.
        self.path, self.options = (_annotations_in(path) or path) if path.is_dir() else path, options
        self._snapshot = Snapshot(self.path)
        self._content = _ground_truth_object(self.path, guess=True)
        self.is_federated = _is_federated(self._content)
        columns = image_key_columns(self.path, options.image_keys)
        self.images, self._categories = _vocabularies(self._content, self.path, columns)
        self._begin(self._content.annotations)

    def _begin(self, annotations: msgspec.Raw) -> None:
        # The first record determines the columns and the width of boxes, so that one decoder fits all.
        self.text = text_in_memory(annotations)
        self._first = first_record(self.text)
        self.kind = annotation_kind(self.options.instances, self._first, with_ignore=self.is_federated)

    def records(self) -> Columns:
        """Read the columns of all annotations."""
        try:
            records = self._records()
        except FileFormatError:
            # The end of the annotations was a guess. If it was wrong, read them again; if it was right, the
            # error is the same again.
            self._begin(_ground_truth_object(self.path).annotations)
            records = self._records()
        self._snapshot.check_reading()
        return records

    def _records(self) -> Columns:
        with self.reading() as reading:
            return reading.columns()

    def reading(self) -> Reading:
        """Start to read the annotations."""
        return Reading(self.text, self.path, self.kind, processes=self.options.processes)

    def keys(self, records: Columns) -> dict[str, NDArray[Any]]:
        """Read the requested keys in a second pass, to keep the first one numeric."""
        keys = key_columns(self.text, self.options.keys, self.path, record="annotation")
        return keys | key_columns(
            self.text, self.options.text_keys, self.path, record="annotation", of_text=True
        )

    def place(self, records: Columns) -> Place:
        """Return a function from a row to the place of its annotation, for messages."""
        path = self.path
        return lambda row: f"annotation {row} (id {records['id'].tolist()[row]}) of {path}"

    def reader(self, read: Callable[[str], Mapping[str, Any]]) -> Reader | None:
        """Return the lazy reader of masks and keypoints."""
        return Reader(read, self._first.instances)

    def ground_truth(self) -> GroundTruth:
        """Return the table."""
        records = self.records()
        keys, place = self.keys(records), self.place(records)
        path, options, images, categories = self.path, self.options, self.images, self._categories
        # Select the annotations that pycocotools uses, in its order.
        image, category = _listed_rows(records, images, categories, path)
        chosen = _select_rows(records["id"], image, category, path)
        # Masks and keypoints may need the image size; the last row, NaN, is for unlisted images.
        rotated = rotated_boxes(records["bbox"])

        def extent() -> NDArray[np.float64]:
            sizes: NDArray[np.float64] = np.append(images.sizes, [[np.nan, np.nan]], axis=0)[image]
            return sizes

        parts = instance_columns(records, options.instances, image_sizes=extent, place=place)
        # Convert boxes to pixels in float64 if the user gives their form; otherwise keep them.
        boxes, form = records["bbox"], COCO_FORM if options.written is None else options.written
        if options.written is not None:
            _refuse_box_format(options.box_format, rotated is not None, path)
            images = _with_sizes(images, options.image_sizes)
            boxes = in_pixels(boxes, form, extent(), place=place)
        # Check and build the columns; the table may reuse the arrays, which are not shared.
        table = built_columns(
            GROUND_TRUTH,
            {
                "images": images,
                "categories": categories,
                "image": image[chosen],
                "category": category[chosen],
            },
            boxes[chosen] if rotated is None else None,
            box_format=form.form,
            given={
                "rotated": None if rotated is None else rotated[chosen],
                "quadrilaterals": None,
                "ids": records["id"][chosen],
                "area": _areas(records["area"][chosen], boxes[chosen], form.form, path),
                "crowd": records["iscrowd"][chosen],
                "difficult": records["difficult"][chosen],
                "ignore": records["ignore"][chosen] if self.is_federated else None,
                **{name: None if column is None else column[chosen] for name, column in parts.items()},
            },
            columns={name: column[chosen] for name, column in keys.items()},
            read=self.reader(
                _instance_reader(
                    self._snapshot,
                    _annotations_text,
                    extent,
                    place,
                    of_results=False,
                    processes=options.processes,
                    rows=chosen,
                )
            ),
            lowest_size=options.lowest_side,
            reuse=True,
            place=lambda row: place(int(np.arange(len(image))[chosen][row])),
        )
        # Warn of boxes that pycocotools evaluates silently, and add LVIS image labels.
        if not options.any_sides:
            _warn_of_negative_sides(table["sizes"], path)
        labels = None
        if self.is_federated:
            read_lists = shortcut(LISTS_OF_IMAGES, "labels_of_records")
            labels = read_lists(self._content.images, images, categories, path)
        return GroundTruth(**table, image_labels=labels, source=str(path))


def begin(path: Path, options: ReadOptions, other_work: float) -> ResultsReading:
    """Start to read a results file in other processes, and return a context that ends them.

    ``other_work`` is the other work of this process, as a fraction of all work. Call ``detections`` of the
    context to finish.
    """
    return ResultsReading(path, options, other_work)


def _annotations_in(folder: Path) -> Path | None:
    """Return the annotation file in a split of a Roboflow export, or the only one of a CVAT export."""
    roboflow = folder / ROBOFLOW
    if is_file(roboflow):
        return roboflow
    files = (
        sorted((folder / "annotations").glob("instances_*.json")) if (folder / "annotations").is_dir() else []
    )
    return files[0] if len(files) == 1 else None


class ResultsReading:
    """Read a results file, in several processes if it is large; a context that ends these processes.

    Parameters
    ----------
    path : Path
        A list of records ``image_id, category_id, bbox, score``, or a COCO object whose annotations have a
        ``score``. Scores are present in all records or in none. The list may be empty.
    options : ReadOptions
    other_work : float
        As for :class:`~boxscore.formats._coco_records.Reading`.
    """

    def __init__(self, path: Path, options: ReadOptions, other_work: float) -> None:
        self.path, self.options, self._other_work = path, options, other_work
        self.vocabulary: DeclaredVocabulary | None = None
        self._snapshot = Snapshot(path)
        # Peek at the first record, which determines the columns, to read all records in one pass.
        text = self._object() if _json.first_byte(path) == b"{" else text_in_file(path)
        self.first = first = first_record(text)
        self._instances = list(
            dict.fromkeys([*options.instances, *([first.fallback] if first.fallback else [])])
        )
        # Choose the fastest kind of record that fits; a class list gives names to class numbers.
        kind = result_kind(self._instances, first, with_file_name=first.names_its_file)
        if options.classes is not None:
            self.vocabulary = self._name_classes(options.classes)
        # Start other processes, while the caller still reads the ground truth.
        self._reading = self.reading(text, kind)

    def reading(self, text: Text, kind: Kind) -> Reading:
        """Start to read the records."""
        return Reading(text, self.path, kind, processes=self.options.processes, other_work=self._other_work)

    def keys(self, records: Columns) -> dict[str, NDArray[Any]]:
        """Read the requested keys in a second pass."""
        keys = self.options.keys
        return key_columns(_results_text(self.path), keys, self.path, record="detection") if keys else {}

    def place(self, records: Columns) -> Place:
        """Return a function from a row to the place of its detection, for messages."""
        path = self.path
        return lambda row: f"detection {row} of {path}"

    def reader(self, read: Callable[[str], Mapping[str, Any]]) -> Reader | None:
        """Return the lazy reader of masks and keypoints."""
        return Reader(read, self.first.instances)

    def __enter__(self) -> ResultsReading:
        return self

    def __exit__(self, *_: object) -> None:
        self._reading.close()

    def _name_classes(self, classes: Sequence[str]) -> DeclaredVocabulary:
        if self.vocabulary is not None and len(self.vocabulary.categories):
            raise InputError(
                "classes",
                "be left out where the results name their classes",
                got=f"a list of {len(classes)} names",
                place=str(self.path),
            )
        images = Images.build([]) if self.vocabulary is None else self.vocabulary.images
        return DeclaredVocabulary(images, Categories.build(range(len(classes)), names=classes))

    def _object(self) -> Text:
        content = _read_object(self.path)
        records = content.records()
        if not len(memoryview(records)):
            raise FileFormatError(
                "detections",
                "be a list of results",
                got="an object without annotations",
                place=str(self.path),
                cause=ask("file of another kind", self.path),
            )
        self.vocabulary = DeclaredVocabulary(*_vocabularies(content, self.path))
        return text_in_memory(records)

    def detections(self, ground_truth: GroundTruth | None) -> Detections:
        """Return the table, in file order; without ground truth, with the images and classes that occur."""
        # Collect the columns from all processes; reject a file that changed in the meantime.
        records = self._reading.columns()
        self._snapshot.check_reading()
        path, options, instances = self.path, self.options, self._instances
        place = self.place(records)
        scores = all_or_none(records.get("score"), place)
        if options.classes is not None:
            from boxscore.formats.class_lists import check_listed

            check_listed(records["category_id"], options.classes, path)

        # Find the box, image and class of each record; drop records of unknown classes.
        boxes = records["bbox"]
        given = given_boxes(boxes, place=place) if instances else boxes
        rotated = rotated_boxes(given)
        rows, left_out = self._rows(records, ground_truth, place)
        known = np.flatnonzero(rows["category"] >= 0) if left_out else slice(None)
        images, image = rows["images"], rows["image"]

        # Build the other columns: masks and keypoints if needed now, and the requested keys.
        def extent() -> NDArray[np.float64]:
            sizes: NDArray[np.float64] = images.sizes[image]
            return sizes

        parts = instance_columns(records, instances, image_sizes=extent, place=place)
        keys = self.keys(records)
        # Convert boxes to pixels in float64 if the user gives their form.
        form, fractions = COCO_FORM, False
        if self.options.box_format is not None:
            _refuse_box_format(self.options.box_format, given is None or rotated is not None, path)
            form, fractions = self._form(ground_truth)
            sizes = _with_sizes(images, self.options.image_sizes).sizes[image]
            given = in_pixels(boxes, form, sizes, place=place)
        # Check and build the columns; others are read from the file lazily.
        table = built_columns(
            DETECTIONS,
            {**rows, "image": image[known], "category": rows["category"][known]},
            None if given is None or rotated is not None else given[known],
            box_format=form.form,
            given={
                "rotated": None if rotated is None else rotated[known],
                "quadrilaterals": None,
                "scores": None if scores is None else scores[known],
                **{name: None if column is None else column[known] for name, column in parts.items()},
            },
            columns={name: column[known] for name, column in keys.items()},
            read=self.reader(
                _instance_reader(
                    self._snapshot,
                    _results_text,
                    extent,
                    place,
                    of_results=True,
                    processes=options.processes,
                    rows=known,
                )
            ),
            lowest_size=options.lowest_side,
            reuse=True,
            place=lambda row: place(int(np.arange(len(image))[known][row])),
        )
        detections = Detections(
            **table,
            boxes_given=given is not None,
            left_out=left_out,
            units="fractions" if fractions else "pixels",
            source=str(path),
        )
        if not options.any_sides:
            _warn_of_negative_sides(table["sizes"], path)
        return detections

    def _form(self, ground_truth: GroundTruth | None) -> tuple[WrittenForm, bool]:
        """Return the form of the boxes, and whether to keep fractions, as the ground truth does."""
        form = COCO_FORM if self.options.box_format is None else written_form(self.options.box_format)
        stays = form.fractions and ground_truth is not None and ground_truth.units == "fractions"
        return form._replace(fractions=form.fractions and not stays), stays

    def _rows(
        self, records: Columns, ground_truth: GroundTruth | None, place: Place
    ) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the vocabularies and the rows of each record in them, and counts of unknown classes by name.

        The row of an unknown class is -1.
        """
        # Without ground truth, use the vocabularies of the file, or the ids that occur.
        image_ids, category_ids, vocabulary = records["image_id"], records["category_id"], self.vocabulary
        if ground_truth is None:
            images = vocabulary.images if vocabulary is not None and len(vocabulary.images) else None
            categories = (
                vocabulary.categories if vocabulary is not None and len(vocabulary.categories) else None
            )
            image_ids = self._unify_ids(image_ids, "image_id")
            category_ids = self._unify_ids(category_ids, "category_id")
            rows = vocabulary_columns(
                image_ids, category_ids, images, categories, count=None, of="detections", place=place
            )
            return rows, {}
        # With ground truth, use its vocabularies, and compare ids that are text by value.
        rows = {"images": ground_truth.images, "categories": ground_truth.categories}
        rows["image"] = self._images(records, ground_truth, place)
        listed = vocabulary.categories if vocabulary is not None and len(vocabulary.categories) else None
        known = rows["categories"] if listed is None else listed
        category_ids, changed = spelled_as(category_ids, known.ids.tolist(), names=known.names.tolist())
        _warn_of_spelling(changed, "category_id", self.path)
        rows["category"], left_out = find_categories(category_ids, rows["categories"], declared=listed)
        return rows, left_out

    def _images(self, records: Columns, ground_truth: GroundTruth, place: Place) -> NDArray[np.int32]:
        """Return the image of every record; if ids are ambiguous, the boxes decide."""

        # Count matches for one interpretation of the ids: the right one overlaps far more annotations.
        def count_matched(rows: NDArray[np.int32]) -> int:
            form = self._form(ground_truth)[0]
            sizes = _with_sizes(ground_truth.images, self.options.image_sizes).sizes[rows]
            corners = box_convert(in_pixels(boxes, form, sizes, place=place), form.form, "xyxy")
            matched: int = ask(
                "ids that are names", ground_truth, rows, corners, all_or_none(records.get("score"), place)
            ).matched
            return matched

        # Boxes can only decide if they are four finite numbers each.
        vocabulary, boxes = self.vocabulary, records["bbox"]
        return find_images(
            records["image_id"],
            ground_truth.images,
            declared=vocabulary and vocabulary.images,
            file_names=records.get("file_name"),
            count_matched=count_matched if boxes.shape[1] == 4 and np.isfinite(boxes).all() else None,
            place=place,
        )

    def _unify_ids(self, ids: NDArray[Any], key: str) -> NDArray[Any]:
        """Convert text to a number if the same number also occurs as an integer."""
        if ids.dtype != object:
            return ids
        ids, changed = spelled_as(ids, {each for each in ids.tolist() if isinstance(each, int)})
        _warn_of_spelling(changed, key, self.path)
        return ids


def _refuse_box_format(box_format: WrittenFormat | None, is_otherwise: bool, path: Path) -> None:
    """Reject ``box_format`` for boxes that are not four numbers."""
    if is_otherwise:
        rule = "be left out where boxes are not four numbers"
        raise InputError("box_format", rule, got=box_format, place=str(path))


def _with_sizes(images: Images, table: ImageSizes | None) -> Images:
    if table is None:
        return images
    from boxscore.formats.image_sizes import with_known_sizes

    return with_known_sizes(images, table)


def _instance_reader(
    snapshot: Snapshot,
    text_of: Callable[[Path], Text],
    image_sizes: Callable[[], NDArray[np.float64]],
    place: Place,
    *,
    of_results: bool,
    processes: Workers,
    rows: NDArray[np.intp] | slice = slice(None),
) -> Callable[[str], Mapping[str, Any]]:
    """Return a function that reads an instance column of these ``rows`` of a file."""

    def read(name: str) -> Mapping[str, Any]:
        name = "keypoints" if name == "keypoint_count" else name
        snapshot.check()
        text = text_of(snapshot.path)
        kind = instance_kind(name, first_record(text), of_results=of_results)
        with Reading(text, snapshot.path, kind, processes=processes) as reading:
            records = reading.columns()
        snapshot.check()
        columns = instance_columns(records, [name], image_sizes=image_sizes, place=place)
        return {key: None if column is None else column[rows] for key, column in columns.items()}

    return read


def _annotations_text(path: Path) -> Text:
    return text_in_memory(_ground_truth_object(path).annotations)


def _results_text(path: Path) -> Text:
    if _json.first_byte(path) == b"{":
        return text_in_memory(_read_object(path).records())
    return text_in_file(path)


def _ground_truth_object(path: Path, *, guess: bool = False) -> _File:
    """Decode the top level of a ground-truth file, and check its three keys.

    With ``guess`` the end of the annotations may be wrong, and so their text invalid.
    """
    # Reject a list before decoding the file.
    if _json.first_byte(path) == b"[":
        raise FileFormatError(
            "ground truth",
            "be an object with images, annotations and categories",
            got="a list",
            place=str(path),
            cause=ask("file of another kind", path) or "is this a results file?",
        )
    # An empty list is valid; only reject missing keys.
    content = _read_object(path, guess=guess)
    present = {
        "images": content.images is not None,
        "annotations": len(memoryview(content.annotations)) > 0,
        "categories": content.categories is not None,
    }
    for key, is_present in present.items():
        if not is_present:
            cause = ask("file of another kind", path)
            raise FileFormatError("ground truth", f"have {key}", got=f"no such key in {path}", cause=cause)
    return content


def listed_classes(path: Path) -> list[tuple[Any, str | None]]:
    """Return id and name of each class in the order of the file, which may lack annotations."""
    return [(category.id, category.name) for category in _read_object(path, guess=True).categories or []]


def _read_object(path: Path, *, guess: bool = False) -> _File:
    """Decode the top level of a COCO object, and keep the annotations as text."""
    with _json.open_binary(path) as file:
        text = file.read().removeprefix(b"\xef\xbb\xbf")
    try:
        with paused_collector():
            content = _decode_around_annotations(text) if guess else None
            if content is None:
                content = msgspec.json.decode(text, type=_File)
            _json.check_utf8(text)
            return content
    except DECODING_ERRORS as error:
        raise _explain_object(error, path, text) from None


_ANNOTATIONS = re.compile(rb'"annotations"\s*:\s*(?=\[\s*\{)')
"""The key of a list that is not empty; quotes inside a string are escaped."""
_IN_PLACE = b"[0]"


def _decode_around_annotations(text: bytes) -> _File | None:
    """Decode all but the annotations, whose end is guessed; None if a guess fails.

    The text of annotations is not decoded here, which is most of the file. The guess is right if this text is
    valid JSON, since the rest is valid with another list in its place.
    """
    found = _ANNOTATIONS.search(text)
    if found is None:
        return None
    # The list ends before the next of the other two keys, or is the last list of the file.
    start, stop = found.end(), len(text)
    for key in (b'"images"', b'"categories"'):
        if text.find(key, 0, start) < 0:
            stop = min(stop, text.rfind(key, start))
    stop = text.rfind(b"]", start, max(stop, start)) + 1
    try:
        content = msgspec.json.decode(b"".join((text[:start], _IN_PLACE, text[stop:])), type=_File)
    except DECODING_ERRORS:
        return None
    # The key may be that of another object.
    if bytes(content.annotations) != _IN_PLACE or content.images is None or content.categories is None:
        return None
    content.annotations = msgspec.Raw(memoryview(text)[start:stop])
    return content


def _explain_object(error: Exception, path: Path, text: bytes) -> FileFormatError:
    for key, record in (("images", "image"), ("categories", "category")):
        if f"`$.{key}[" in str(error):
            return _json.explain(error, path, record=record, text=text, whole=(key, "a list"))
    whole = ("ground truth", "an object with images, annotations and categories")
    return _json.explain(error, path, record="record", text=text, whole=whole)


def _vocabularies(
    content: _File, path: Path, columns: Mapping[str, Any] = MappingProxyType({})
) -> tuple[Images, Categories]:
    images, categories = content.images or [], content.categories or []
    # Transpose and copy, because the column of sizes must be contiguous.
    sizes = [[image.width for image in images], [image.height for image in images]]  # None becomes NaN
    return (
        Images.build(
            _listed_ids(images, "image", path),
            file_names=[_file_name(image) for image in images],
            sizes=np.array(sizes, dtype=np.float64).T.copy(),
            columns=columns,
        ),
        Categories.build(
            _listed_ids(categories, "category", path),
            names=[
                str(whole(category.id)) if category.name is None else category.name for category in categories
            ],
            columns=_class_columns(categories),
        ),
    )


def _file_name(image: _Image) -> str | None:
    """Return the file name of an image; LVIS v1 only has a URL such as ``.../val2017/000000266409.jpg``."""
    if image.file_name is not None or image.coco_url is None:
        return image.file_name
    return image.coco_url.rpartition("/")[2] or None


def _class_columns(categories: Sequence[_Category]) -> dict[str, list[str | None]]:
    """Return the columns of classes that occur: ``frequency`` (LVIS), ``supercategory``, ``skeleton``."""
    columns = {
        "frequency": [category.frequency for category in categories],
        SUPERCATEGORY: [
            category.supercategory if isinstance(category.supercategory, str) else None
            for category in categories
        ],
        SKELETON: [_skeleton_text(category.skeleton) for category in categories],
    }
    return {name: texts for name, texts in columns.items() if any(text is not None for text in texts)}


def _skeleton_text(given: Any) -> str | None:
    """Convert pairs of keypoints to text; None if invalid, because skeletons are only drawn."""
    if not isinstance(given, list) or not given or len(given) > MOST_LIMBS:
        return None
    if not all(isinstance(limb, list) and len(limb) == 2 for limb in given):
        return None
    if not all(isinstance(end, int) and 0 < end <= MOST_LIMBS for limb in given for end in limb):
        return None
    return " ".join(f"{first}-{second}" for first, second in given)


def _is_federated(content: _File) -> bool:
    """Whether images have LVIS lists of classes."""
    return any(
        image.neg_category_ids is not None or image.not_exhaustive_category_ids is not None
        for image in content.images or []
    )


def _listed_ids(records: Sequence[_Image | _Category], record: str, path: Path) -> NDArray[Any]:
    """Return ids of images or categories; convert text if others are numbers and its value is unused."""
    ids = [each.id for each in records]
    if not set(map(type, ids)) <= {int}:
        ids = list(map(whole, ids))
    for row, identifier in enumerate(ids if float in set(map(type, ids)) else []):
        if isinstance(identifier, float):
            raise FileFormatError(
                "id", "be an integer or a string", got=repr(identifier), place=f"{record} {row} of {path}"
            )
    numbers, changed = as_numbers(as_ids(ids, name=f"{record} ids"))
    _warn_of_spelling(changed, f"{record} id", path)
    return numbers


def _warn_of_spelling(count: int, what: str, path: Path) -> None:
    if count:
        warn_user(
            f"{path}: {counted(count, what)} written as text where others are numbers, or vice versa; "
            'boxscore reads "7" and 7 as the same id, pycocotools does not.',
        )


def _listed_rows(
    records: Columns, images: Images, categories: Categories, path: Path
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the rows of the image and category of each annotation; -1 if unlisted."""
    # Look up ids by value in both vocabularies; count unlisted ones by id for the warning.
    rows, texts = [], []
    for key, noun, plural, vocabulary in (
        ("category_id", "category", "categories", categories),
        ("image_id", "image", "images", images),
    ):
        ids, changed = spelled_as(records[key], vocabulary.ids.tolist())
        _warn_of_spelling(changed, key, path)
        rows.append(vocabulary.rows(ids))
        # The warning names a few ids, and counts all their annotations.
        unlisted = Counter(records[key][rows[-1] < 0].tolist())
        if unlisted:
            names = ", ".join(map(repr, list(unlisted)[:5])) + (", ..." if len(unlisted) > 5 else "")
            nouns = f"{noun} that is" if len(unlisted) == 1 else f"{plural} that are"
            texts.append(f"{unlisted.total()} of {len(unlisted)} {nouns} not listed ({names})")
    # One warning for both, because an annotation may lack both image and class.
    if texts:
        total = int(((rows[0] < 0) | (rows[1] < 0)).sum())
        warn_user(f"{path}: ignoring {counted(total, 'annotation')}, as in pycocotools: {', '.join(texts)}.")
    return rows[1], rows[0]


def _select_rows(
    ids: NDArray[Any], image: NDArray[np.int32], category: NDArray[np.int32], path: Path
) -> NDArray[np.intp] | slice:
    """Return the listed annotations, in the order of the table.

    If several share an id, the last one replaces the others, if it is listed. As pycocotools iterates over
    images in order, replacements within an image are ordered by the images of the annotations they replace.
    """
    # Unique ids, the normal case, only need a sort of integers.
    listed = (image >= 0) & (category >= 0)
    every = bool(listed.all())
    if ids.dtype != object and ((np.diff(ids) > 0).all() or (np.diff(np.sort(ids)) > 0).all()):
        return slice(None) if every else np.flatnonzero(listed)
    # Other ids need a dictionary, as in pycocotools, where the last record with an id wins.
    last: dict[Id, int] = {identifier: row for row, identifier in enumerate(ids.tolist())}
    if len(last) == len(ids):
        return slice(None) if every else np.flatnonzero(listed)
    repeated = len(ids) - len(last)
    text = (
        f"{path}: {counted(repeated, 'annotation id')} {verb(repeated, 'occur')} more than once; only the "
        "last annotation with an id counts, as in pycocotools."
    )
    warning = BoxscoreWarning(text, code="repeated-annotation-id", severity="error")
    warn_user(warning)
    # Replace each listed annotation by the last one with its id, if that one is listed.
    rows = np.flatnonzero(listed)
    final = np.array([last[identifier] for identifier in ids[rows].tolist()], dtype=np.intp)
    rows, final = rows[listed[final]], final[listed[final]]
    # Sort by the image of the replaced annotation, as pycocotools iterates, then by the final image.
    by_image = np.argsort(image[rows], kind="stable")
    ordered = np.empty_like(final)  # slots of each image in file order, filled in the order of pycocotools
    ordered[np.argsort(image[final], kind="stable")] = final[
        by_image[np.argsort(image[final[by_image]], kind="stable")]
    ]
    return ordered


def _warn_of_negative_sides(sizes: NDArray[np.float64] | None, path: Path) -> None:
    if sizes is None or not sizes.size or sizes.min() >= 0:  # None: derived from masks, never negative
        return
    count = int((sizes < 0).any(axis=1).sum())
    warn_user(
        f"{path}: {counted(count, 'box')} with a slightly negative side from rounding (down to "
        f"{sizes.min():g}); as in pycocotools, such boxes match nothing, and such detections are ignored "
        "because of their area.",
    )


def _areas(
    area: NDArray[np.float64], boxes: NDArray[np.float64], form: BoxFormat, path: Path
) -> NDArray[np.float64]:
    missing = np.isnan(area)
    count = int(missing.sum())
    if not count:
        return area
    warn_user(
        f"{path}: {counted(count, 'annotation')} {verb(count, 'lack')} an area; the box area decides "
        f"whether {('it is' if count == 1 else 'they are')} small, medium or large.",
    )
    sizes = boxes[:, 2:4] if form != "xyxy" else boxes[:, 2:] - boxes[:, :2]
    return np.where(missing, sizes[:, 0] * sizes[:, 1], area)
