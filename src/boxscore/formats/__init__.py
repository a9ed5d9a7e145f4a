"""Load and save ground truth and detections in any supported format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from boxscore._utils.lazy import lazy_imports
from boxscore._utils.processes import Workers
from boxscore.data.boxes import WrittenFormat
from boxscore.data.tables import Detections, GroundTruth
from boxscore.formats.reading import load_both, read_detections, read_ground_truth, read_options
from boxscore.formats.registry import detect_format, format_named, format_names

with lazy_imports(__name__):
    from boxscore.extensions.data_tools.converting import save_as, writable_formats

__all__ = [
    "detect_format",
    "format_names",
    "load_both",
    "load_detections",
    "load_ground_truth",
    "save_as",
    "save_columns",
    "writable_formats",
]


def load_ground_truth(
    path: str | Path,
    *,
    format: str = "auto",
    image_set: str | Path | None = None,
    classes: str | Path | Sequence[str] | None = None,
    image_sizes: str | Path | Mapping[Any, Sequence[float]] | None = None,
    image_folder: str | Path | None = None,
    box_format: WrittenFormat | None = None,
    segments: str | Path | None = None,
    image_labels: str | Path | None = None,
    hierarchy: str | Path | Mapping[str, Any] | None = None,
    swap_image_sizes: bool = False,
    columns: Mapping[str, str] | None = None,
    unlisted_images: Literal["error", "background", "drop"] | None = None,
    workers: Workers = "auto",
) -> GroundTruth:
    """Load ground truth.

    Masks and keypoints are loaded lazily, on first use; the file must stay in place until then.

    Parameters
    ----------
    path : str or Path
        A COCO JSON file, a VOC folder (``VOC2007``, or a folder of XML files), a YOLO data set, a table, ...
        The page "File formats" lists all formats.
    format : str, default "auto"
        One of :func:`boxscore.formats.format_names`; ``"auto"`` detects it from the file content.
    image_set : str or Path, optional
        VOC: the name of a set in ``ImageSets/Main``, or a file of image ids. YOLO: ``train``, ``val``, ...
    classes : str, Path or sequence of str, optional
        Class names, in order of the class numbers from 0, or a file that lists them: one per line, or a YOLO
        ``data.yaml``. For Open Images: class descriptions (``LabelName,DisplayName``) or a label map
        (``LabelName,Id``).
    image_sizes : str, Path or mapping, optional
        Image sizes in pixels, for files that store fractions of the image size: a mapping from image id or
        file name to ``(width, height)``, a CSV file with the columns ``image, width, height``, or
        ``"640x480"`` for all images. Images listed only here are added as images without objects.
    image_folder : str or Path, optional
        A folder of images, from which names and sizes are read instead of from ``image_sizes``.
    box_format : {"xyxy", "xywh", "cxcywh", "yxyx", "yxhw", "xyxyn", ...}, optional
        The order of the four numbers of a box, if the file does not define it or gets it wrong. Values are in
        pixels; with a trailing ``n`` (``"xyxyn"``, ``"cxcywhn"``) they are fractions of the image size. By
        default, boxes of formats that store fractions (YOLO, ...) are fractions.
    segments : str or Path, optional
        Open Images masks for the boxes of a table: a CSV file with the columns of the boxes, ``Mask``,
        ``ImageWidth`` and ``ImageHeight``. Boxes that are not listed there do not get a mask.
    image_labels : str or Path, optional
        Open Images image-level labels: a CSV file ``ImageID,LabelName,Confidence``. Images and classes that
        only have labels are added.
    hierarchy : str, Path or mapping, optional
        An Open Images class hierarchy, or a JSON file with one. Each object is also added to the ancestors of
        its class (:func:`boxscore.expand_classes`).
    swap_image_sizes : bool, default False
        Exchange width and height of all images, if the file has them in the wrong order.
    columns : mapping of str to str, optional
        The roles of table columns, if their names do not show them: ``{"image": "photo", "class": "kind"}``.
    unlisted_images : {"error", "background", "drop"}, optional
        As for :func:`load_detections`. If given, images listed only in ``image_sizes`` or ``image_folder``
        are not added.
    workers : int or "auto", default "auto"
        Number of processes that read a large COCO file: this one and its forks. ``"auto"``: one per CPU core
        if forking is safe, as for :func:`boxscore.evaluate`.

    Returns
    -------
    GroundTruth

    Raises
    ------
    FileFormatError
        If the file is not valid in its format; the message gives the file, the place, the rule and the value.
        Also raised on first use of masks or keypoints, if they are invalid or the file has changed.
    InputError
        If a value is invalid, such as a box with a negative side, or the format does not support an option.

    Warns
    -----
    BoxscoreWarning
        If boxes look like another box format, areas are missing, ids are repeated, or required image sizes
        are unknown. If ``image_sizes`` or ``image_folder`` add more than a tenth of the images.
    """
    options = read_options(
        format=format,
        image_set=image_set,
        classes=classes,
        image_sizes=image_sizes,
        image_folder=image_folder,
        box_format=box_format,
        segments=segments,
        image_labels=image_labels,
        hierarchy=hierarchy,
        swap_image_sizes=swap_image_sizes,
        columns=columns,
        unlisted_images=unlisted_images,
        processes=workers,
    )
    return read_ground_truth(path, options)


def load_detections(
    path: str | Path,
    ground_truth: GroundTruth,
    *,
    format: str = "auto",
    classes: str | Path | Sequence[str] | None = None,
    image_sizes: str | Path | Mapping[Any, Sequence[float]] | None = None,
    image_folder: str | Path | None = None,
    box_format: WrittenFormat | None = None,
    class_map: str | Path | Mapping[Any, Any] | None = None,
    image_id_offset: int | None = None,
    network_input: str | None = None,
    columns: Mapping[str, str] | None = None,
    unlisted_images: Literal["error", "background", "drop"] | None = None,
    coordinates: str | None = None,
    repeated: Literal["keep", "once"] | None = None,
    loose: bool = False,
    workers: Workers = "auto",
) -> Detections:
    """Load detections and align them with a ground truth.

    Parameters
    ----------
    path : str or Path
        A COCO results file, a folder of the VOC devkit's ``comp4_det_<set>_<class>.txt`` files, a folder of
        YOLO predictions, a table, a file of columns, ... The format may differ from that of the ground truth.
        Boxes are optional for results with masks or keypoints; if there are boxes, masks and keypoints are
        loaded lazily.
    ground_truth : GroundTruth
    format, classes, image_sizes, image_folder, box_format, columns : optional
        As for :func:`load_ground_truth`, but for the detections. COCO results accept ``classes`` too: class
        number ``i`` is then the class with the ``i``-th name, counting from 0.
    class_map : str, Path or mapping, optional
        How detection classes map to ground-truth classes, if the files differ: a mapping ``{from: to}`` of
        ids or names, a file of lines ``from,to``, or one of these names (see the page "File formats"):
        ``"zero-based"`` and ``"one-based"`` index the ground-truth classes in the order of their ids, or the
        names in ``classes``; ``"plus-one"`` and ``"minus-one"`` shift the class id by 1; ``"coco80to91"`` and
        ``"coco91to80"`` convert between the indices and the ids of the 80 COCO classes; ``"auto"`` infers the
        map from the boxes and raises an error if they are ambiguous. For COCO results with ground truth that
        has a list of names (YOLO), the default is the named map inferred from the boxes, if there is one.
    image_id_offset : int, optional
        A number to add to the image ids of the detections, if they count images from another one.
    network_input : str, optional
        The network's input whose coordinates the boxes have, from which they are scaled back to the image:
        ``"letterbox:640"`` (centered padding), ``"corner:640"`` (image at the top left),
        ``"stretch:640x384"`` (without padding) or ``"scale:0.5"`` (half the image's width and height).
    unlisted_images : {"error", "background", "drop"}, optional
        How to treat detections in images that the ground truth does not list. ``"error"``, the default:
        raise. ``"background"``: keep them, in images without objects (:func:`boxscore.evaluate` takes the
        same option). ``"drop"``: drop them, with a warning that gives their number.
    coordinates : str, optional
        The coordinate system of the boxes in model answers: ``"pixels"``, ``"1000"``, ``"1000-yx"``,
        ``"unit"``, ... (see the page "File formats"). By default it is inferred from tags, or from all
        numbers in the file.
    repeated : {"keep", "once"}, optional
        How to treat boxes that an answer repeats exactly: keep all, the default, or only the first.
    loose : bool, default False
        Read the first four bracketed numbers of an answer in prose as a box.
    workers : int or "auto", default "auto"
        As for :func:`load_ground_truth`.

    Returns
    -------
    Detections
        Detections of classes that the ground truth does not have are dropped; ``left_out`` counts them.

    Raises
    ------
    FileFormatError
        If the file is not valid in its format; the message gives the file, the place, the rule and the value.
        Also raised on first use of masks or keypoints, if they are invalid or the file has changed.
    InputError
        If a value is invalid, an image is not in the ground truth, the format does not support an option, or
        the numbering of images or classes cannot be inferred.

    Warns
    -----
    BoxscoreWarning
        If detections are dropped, boxes look like another box format, or a class map is inferred from the
        boxes, with ``class_map="auto"`` or by default.
    """
    options = read_options(
        format=format,
        classes=classes,
        image_sizes=image_sizes,
        image_folder=image_folder,
        box_format=box_format,
        class_map=class_map,
        image_id_offset=image_id_offset,
        network_input=network_input,
        columns=columns,
        unlisted_images=unlisted_images,
        coordinates=coordinates,
        repeated=repeated,
        loose=loose,
        processes=workers,
    )
    return read_detections(path, ground_truth, options)


def save_columns(table: GroundTruth | Detections, path: str | Path) -> None:
    """Save ground truth or detections as columns: a file that loads fast and preserves every bit.

    Parameters
    ----------
    table : GroundTruth or Detections
    path : str or Path
        Must end in ``.npz``. :func:`load_ground_truth` and :func:`load_detections` read it.

    Raises
    ------
    InputError
        If the name does not end in ``.npz``, the file cannot be written, a mask is invalid, or a user column
        has values that such a file cannot store.
    """
    format_named("columns").save(table, Path(path))
