"""Reading and writing files; a format is one file and one line of the registry."""

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
    columns: Mapping[str, str] | None = None,
    unlisted_images: Literal["error", "background", "drop"] | None = None,
    workers: Workers = "auto",
) -> GroundTruth:
    """Read ground truth.

    Masks and keypoints are read when they are first needed. The file must stay in place until then.

    Parameters
    ----------
    path : str or Path
        A COCO JSON file, a VOC folder (``VOC2007``, or a folder of XML files), a YOLO data set, a table, ...:
        the page "File formats" lists them all.
    format : str, default "auto"
        One of :func:`boxscore.formats.format_names`; ``"auto"`` detects it from the content of the path.
    image_set : str or Path, optional
        VOC: the name of a set in ``ImageSets/Main``, or a file of image ids. YOLO: ``train``, ``val``, ...
    classes : str, Path or sequence of str, optional
        The names of classes that the files number from 0, or a file of them: one per line, or YOLO's
        ``data.yaml``. For Open Images its class descriptions (``LabelName,DisplayName``), or a label map
        (``LabelName,Id``).
    image_sizes : str, Path or mapping, optional
        Width and height of each image in pixels, by id or file name; or a CSV file with the columns
        ``image, width, height``; or ``"640x480"``, of all images. For files that hold fractions of the
        image's size. Images that are named there alone are added.
    image_folder : str or Path, optional
        The images: their names and sizes, in place of a table.
    box_format : {"xyxy", "xywh", "cxcywh", "yxyx", "yxhw", "xyxyn", ...}, optional
        What the four numbers of a box are, for files that do not say, or that say it wrongly: in pixels; with
        ``n`` behind the form (``"xyxyn"``, ``"cxcywhn"``) they are fractions of the image's size. Without it
        the numbers of formats that hold fractions (YOLO, ...) stay fractions.
    segments : str or Path, optional
        Masks for the boxes of a table, as Open Images has them: a CSV file with the boxes' columns, ``Mask``,
        ``ImageWidth`` and ``ImageHeight``. A box without a row there has no mask.
    image_labels : str or Path, optional
        Labels of whole images, as Open Images has them: a CSV file ``ImageID,LabelName,Confidence``. Images
        and classes that have only labels are added.
    hierarchy : str, Path or mapping, optional
        A hierarchy of classes in Open Images' form, or a JSON file of it: what is there is of the classes
        above as well (:func:`boxscore.expand_classes`).
    columns : mapping of str to str, optional
        What the columns of a table are, where their names do not show it:
        ``{"image": "photo", "class": "kind"}``.
    unlisted_images : {"error", "background", "drop"}, optional
        As for :func:`load_detections`. If it is given, images that ``image_sizes`` or ``image_folder`` alone
        name are not added.
    workers : int or "auto", default "auto"
        How many processes read a large COCO file, this one and forks of it. ``"auto"``: one per processor
        where forking is safe, as for :func:`boxscore.evaluate`.

    Returns
    -------
    GroundTruth

    Raises
    ------
    FileFormatError
        When the file breaks a rule of its format; the message names file, place, rule and value. Also
        raised when masks or keypoints are first read and break one, or the file has changed.
    InputError
        When a value does; for example a box with a negative side. When the format does not take an option.

    Warns
    -----
    BoxscoreWarning
        When boxes look like another box format, areas are missing, ids are repeated, or image sizes are
        needed and unknown. When more than a tenth of the images are added by ``image_sizes`` or
        ``image_folder``.
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
    columns: Mapping[str, str] | None = None,
    unlisted_images: Literal["error", "background", "drop"] | None = None,
    coordinates: str | None = None,
    repeated: Literal["keep", "once"] | None = None,
    loose: bool = False,
    workers: Workers = "auto",
) -> Detections:
    """Read detections of the images of a ground truth.

    Parameters
    ----------
    path : str or Path
        A COCO results file, a folder of the VOC devkit's ``comp4_det_<set>_<class>.txt`` files, a folder of
        YOLO predictions, a table, a file of columns, ... Any goes with every kind of ground truth. Results
        with masks or keypoints need no boxes; masks and keypoints beside boxes are read when they are first
        needed.
    ground_truth : GroundTruth
    format, classes, image_sizes, image_folder, box_format, columns : optional
        As for :func:`load_ground_truth`, of this side. COCO results take ``classes`` too: the name of number
        ``i`` is the class.
    class_map : str, Path or mapping, optional
        Which class of the ground truth each class of the detections is, where the files do not agree: ids or
        names ``{from: to}``, a file of lines ``from,to``, or a name. ``"zero-based"`` and ``"one-based"``:
        the numbers count the ground truth's classes, in the order of their ids, or the names in ``classes``.
        ``"plus-one"`` and ``"minus-one"``: the class whose id is 1 higher or lower.
        ``"coco80to91"`` and ``"coco91to80"``: between COCO's 80 classes in order and their ids. ``"auto"``
        infers the map from the boxes, and refuses where they are not clear. The page "File formats" defines
        them. For COCO results beside ground truth with a list of names (YOLO) the default is a named map, if
        one is inferred.
    unlisted_images : {"error", "background", "drop"}, optional
        What becomes of detections in images that the ground truth does not list: an error, the default; or
        they stay, in images without objects, for which :func:`boxscore.evaluate` takes the same option; or
        they are left out, with a warning that counts them.
    coordinates : str, optional
        What the numbers in a model's answers are: ``"pixels"``, ``"1000"``, ``"1000-yx"``, ``"unit"``, ...:
        the page "File formats" lists them. By default their tags or the numbers of the whole file say it.
    repeated : {"keep", "once"}, optional
        What becomes of boxes that an answer repeats exactly: they stay, the default, or only the first does.
    loose : bool, default False
        Whether the first four numbers in brackets are a box where an answer has only prose.
    workers : int or "auto", default "auto"
        As for :func:`load_ground_truth`.

    Returns
    -------
    Detections
        Without those of classes that the ground truth does not have: ``left_out`` counts them.

    Raises
    ------
    FileFormatError
        When the file breaks a rule of its format; the message names file, place, rule and value. Also
        raised when masks or keypoints are first read and break one, or the file has changed.
    InputError
        When a value does, an image is not in the ground truth, the format does not take an option, or the
        numbering of images or classes cannot be inferred.

    Warns
    -----
    BoxscoreWarning
        When detections were left out, or boxes look like another box format. When a class map was inferred
        from the boxes, with ``class_map="auto"`` or by default.
    """
    options = read_options(
        format=format,
        classes=classes,
        image_sizes=image_sizes,
        image_folder=image_folder,
        box_format=box_format,
        class_map=class_map,
        columns=columns,
        unlisted_images=unlisted_images,
        coordinates=coordinates,
        repeated=repeated,
        loose=loose,
        processes=workers,
    )
    return read_detections(path, ground_truth, options)


def save_columns(table: GroundTruth | Detections, path: str | Path) -> None:
    """Save ground truth or detections as columns, which load fast and come back to the bit.

    Parameters
    ----------
    table : GroundTruth or Detections
    path : str or Path
        Must end in ``.npz``. :func:`load_ground_truth` and :func:`load_detections` read it.

    Raises
    ------
    InputError
        When the name does not end in ``.npz``, the file cannot be written, a mask is invalid, or a user
        column holds what such a file cannot; the message names it.
    """
    format_named("columns").save(table, Path(path))
