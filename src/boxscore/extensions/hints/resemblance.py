"""Recognize unsupported files, so that the error describes them and suggests what to do.

Conventions
-----------
The evidence is weak, so the error only says what the file looks like. The first matching row counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from boxscore.errors import FileFormatError
from boxscore.extensions.hints.data_below import SEARCHED_FOR
from boxscore.formats._format import Side
from boxscore.formats._sniffer import Sniffer
from boxscore.formats.registry import format_alone, format_named, format_names, readable_in


class Resemblance(NamedTuple):
    """A file type that a path resembles."""

    what: str
    advice: str


_CHECKPOINT = (
    "a checkpoint or pickled file",
    "boxscore runs nothing in a file, and reads pickles of protocols 2 to 5 with results of MMDetection or "
    "detectron2 alone: save other boxes as JSON",
)
_COCO = "export the annotations as COCO JSON there"
_BY_HAND = (
    'write a JSON line per image: {"image": "a.jpg", "objects": [{"bbox": [x, y, w, h], "category": "cat"}]}'
)
_LINES = "write JSON lines (.jsonl) with image, class, score, x1, y1, x2 and y2 per box"
_VIDEOS = "its metric compares tracks of masks in videos, so use its own program"
_3D = "boxscore evaluates boxes in images, not in space"
_ARCHIVE = "an archive", "unpack it and pass the folder or file in it"
_IMAGE = "an image", "pass the annotations here and the folder of images to --image-folder"


def _begins(*starts: bytes) -> Callable[[Sniffer], bool]:
    return lambda sniffer: sniffer.head.startswith(starts)


def _ends(*endings: str) -> Callable[[Sniffer], bool]:
    return lambda sniffer: sniffer.path.name.lower().endswith(endings)


def _has_keys(*names: str) -> Callable[[Sniffer], bool]:
    """Return whether JSON has all of these keys near its beginning, at any depth."""
    return lambda sniffer: sniffer.has_keys(*names)


def _first_line(pattern: str) -> Callable[[Sniffer], bool]:
    return lambda sniffer: not sniffer.is_folder and re.fullmatch(pattern, sniffer.first_line) is not None


_NUMBER = r"[-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?"

_FILES: tuple[tuple[Callable[[Sniffer], bool], str, str], ...] = (
    (lambda sniffer: not sniffer.head, "an empty file", "was writing it interrupted?"),
    (
        _begins(b"version https://git-lfs"),
        "a pointer of Git LFS, not the file",
        "run git lfs pull to fetch the file",
    ),
    (
        lambda sniffer: re.match(r"\s*<(?:!doctype html|html)", sniffer.text, re.IGNORECASE) is not None,
        "an HTML page",
        "did a download fail or ask for a login? Download the file again",
    ),
    (_begins(b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"RIFF", b"II*\0", b"MM\0*"), *_IMAGE),
    (_begins(b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"\x28\xb5\x2f\xfd"), *_ARCHIVE),
    (_ends(".zip", ".tar", ".tgz", ".rar", ".7z"), *_ARCHIVE),
    (_ends(".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".safetensors"), *_CHECKPOINT),
    (
        _ends(".onnx", ".engine", ".tflite", ".pb"),
        "a model",
        "run it first: boxscore reads the detections that it writes",
    ),
    (
        _begins(b"\x93NUMPY"),
        "one NumPy array",
        "save a results file, or use Detections.from_arrays in Python",
    ),
    (
        _begins(b"\x89HDF", b"MATLAB"),
        "a MATLAB or HDF5 file",
        "use GroundTruth.from_arrays or Detections.from_arrays in Python",
    ),
    (_begins(b"Iout"), "a region of ImageJ", _BY_HAND),
    (
        _begins(b"ARROW1", b"FEA1"),
        "a Feather or Arrow file",
        "save it as Parquet: pandas.read_feather(FILE).to_parquet(...)",
    ),
    (
        _ends(".tfrecord", ".tfrecords"),
        "a TFRecord file without image/object or image/detection (Waymo?)",
        _BY_HAND,
    ),
    (
        _ends(".pbtxt"),
        "a label map of TensorFlow",
        "pass the folder with it and the TFRecord file; elsewhere, write a class list with one name per line",
    ),
    (
        lambda sniffer: sniffer.suffix == ".toml",
        "a TOML file",
        "pass a run configuration to boxscore run, a protocol to --protocol",
    ),
    (
        lambda sniffer: sniffer.suffix in (".yaml", ".yml"),
        "a YAML file without YOLO's names and folders",
        "pass the folder of labels here and the class list to --gt-classes",
    ),
    (_ends(".ipynb"), "a notebook", "save its detections as a results file"),
    (_ends(".mp4", ".avi", ".mov", ".mkv"), "a video", "pass its annotations"),
    (
        lambda sniffer: sniffer.is_xml and "<boost_serialization" in sniffer.text,
        "KITTI's tracklets",
        "export boxes per image",
    ),
    (
        lambda sniffer: sniffer.is_xml and "<annotation" in sniffer.text[:4096],
        "one XML file of a VOC folder",
        "pass the folder with the XML files",
    ),
    (
        lambda sniffer: sniffer.is_xml and "<target_list" in sniffer.text,
        "XML of UA-DETRAC",
        _BY_HAND,
    ),
    (lambda sniffer: sniffer.is_xml, "an XML file", "boxscore reads XML of VOC and CVAT 1.1"),
    (
        _first_line(rf"(?:\d+,){{2}}(?:{_NUMBER},){{3,}}.*"),
        "a table of numbers without a header line",
        "add a header line: image,class,x,y,w,h,score",
    ),
    (
        _first_line(r"[A-Za-z_ -]+(?: " + _NUMBER + r"){14,15}"),
        "one file of KITTI labels",
        "pass the folder with these files",
    ),
    (
        _first_line(rf"\d+ -?\d+ [A-Za-z_]+(?: {_NUMBER}){{14,15}}"),
        "labels of KITTI tracking",
        "write a file per frame without the first two numbers, and pass the folder",
    ),
    (
        _first_line(rf"\d+(?: {_NUMBER}){{4,}}"),
        "one file of YOLO labels or predictions",
        "pass the folder with these files",
    ),
    (_ends(".names"), "a class list", "pass it to --gt-classes or --dt-classes"),
    (
        lambda sniffer: re.match(r"\S+\.jpg\s*\n\d+\s*\n(?:\d+ ){9}\d+", sniffer.text) is not None,
        "the text file of WIDER FACE",
        "pass the folder with wider_face_val.mat",
    ),
    (
        _first_line(r".*\.(?:jpe?g|png|bmp|webp|tiff?)"),
        "a list of images",
        "pass the file or folder with the annotations",
    ),
)
_BINARY = (
    (_ends(".npz"), "not an .npz archive, despite its name", "write it again with boxscore convert"),
    (lambda sniffer: b"\0" in sniffer.head, "binary data", "is it compressed or truncated?"),
)
_NAMELESS = re.compile(r'"(?:bbox|box)"\s*:\s*\[|"(?:x1|xmin|x_min)"\s*:')
"""A box in a file that does not name images."""
_JSON: tuple[tuple[Callable[[Sniffer], bool], str, str], ...] = (
    (
        lambda sniffer: (
            (sniffer.has_keys("class", "confidence") or sniffer.has_keys("label", "score"))
            and _NAMELESS.search(sniffer.text) is not None
            and re.search(r'"[^"]*(?:image|img|file|path)[^"]*"\s*:', sniffer.text) is None
        ),
        "detections that do not name their image",
        'add it to every record: {"image": "a.jpg", "class": "cat", "confidence": 0.9, "bbox": [1, 2, 3, 4]}',
    ),
    (
        _has_keys("segments_info"),
        "COCO panoptic annotations",
        "the boxes are in instances_*.json of the data set",
    ),
    (_has_keys("caption"), "COCO captions", "the boxes are in instances_*.json of the data set"),
    (
        _has_keys("classTitle", "objects"),
        "one file of a project of Supervisely",
        "pass the folder of the project, or its folder ann",
    ),
    (
        _has_keys("predicted_iou", "stability_score"),
        "masks of Segment Anything, which lack classes",
        "convert them to COCO JSON with a class",
    ),
    (_has_keys("cells", "nbformat"), "a notebook", "save its detections as a results file"),
    (_has_keys("Labels", "Instances", "BoundingBox"), "a response of Amazon Rekognition", _LINES),
    (_has_keys("tagName", "probability", "boundingBox"), "a response of Azure Custom Vision", _LINES),
    (
        _has_keys("localizedObjectAnnotations", "normalizedVertices"),
        "a response of Google Cloud Vision",
        _LINES,
    ),
    (_has_keys("region_info", "top_row"), "a response of Clarifai", _LINES),
    (_has_keys("people", "pose_keypoints_2d"), "the output of OpenPose", "save keypoints as COCO results"),
    (_has_keys("video_id", "segmentations"), "results of YouTube-VIS", _VIDEOS),
    (
        _has_keys("AP50"),
        "a result of boxscore evaluate",
        "pass it to boxscore check --result or --no-regression",
    ),
)

_TOOLS: tuple[tuple[Callable[[Sniffer], bool], str, str], ...] = (
    (_has_keys("label_hash", "data_units"), "an export of Encord", _COCO),
    (_has_keys("jsonResponse"), "an export of Kili", _COCO),
    (_has_keys("_input_hash", "spans"), "an export of Prodigy", _BY_HAND),
    (_has_keys("datasetId", "itemId"), "an export of Dataloop", _COCO),
    (_has_keys("label_classes", "image_name"), "an export of Hasty", _COCO),
    (_has_keys("instance_list", "label_map"), "an export of Diffgram", _BY_HAND),
    (_has_keys("samples", "task_type", "label_status"), "a release of Segments.ai", _BY_HAND),
    (_has_keys("image_w_h", "x_y_w_h"), "JSON of RectLabel", _COCO),
    (_has_keys("image_url", "topX", "bottomX"), "an export of Azure Machine Learning", _COCO),
    (
        _has_keys("shapes", "tracks", "occluded", "frame"),
        "annotations of a CVAT backup",
        "export the task as CVAT for images 1.1 there",
    ),
    (
        _has_keys("bbox_mode", "category_id"),
        "dataset dictionaries of detectron2",
        "convert them with convert_to_coco_json of detectron2.data.datasets.coco",
    ),
    (_has_keys("ann", "bboxes", "filename"), "annotations of MMDetection 2", _BY_HAND),
    (_has_keys("data_list", "instances", "bbox_label"), "annotations of MMDetection 3", _BY_HAND),
    (_has_keys("videos", "file_names"), "annotations of YouTube-VIS", _VIDEOS),
    (
        _has_keys("bboxVis", "objects"),
        "annotations of one image of CityPersons",
        "pass val_gt.json of its evaluation",
    ),
    (
        _has_keys("imgHeight", "imgWidth", "objects"),
        "annotations of one image of Cityscapes",
        "pass the folder with *_gtFine_instanceIds.png",
    ),
    (
        _has_keys("objects", "key", "label", "polygon"),
        "annotations of one image of Mapillary Vistas",
        _BY_HAND,
    ),
    (
        _has_keys("pair_id", "bounding_box"),
        "annotations of one image of DeepFashion2",
        "convert them with its deepfashion2_to_coco.py",
    ),
    (_has_keys("frames", "timestamp", "objects", "box2d"), "BDD100K's labels of one video", _BY_HAND),
    (_has_keys("merged_object_ids", "synsets"), "objects of Visual Genome", _BY_HAND),
    (
        _has_keys("category_token", "sample_data_token", "bbox"),
        "a table of nuImages",
        "convert it to COCO JSON with nuimage_converter.py of MMDetection3D",
    ),
    (_has_keys("sample_token", "instance_token", "translation"), "a table of nuScenes", _3D),
    (_has_keys("track_label_uuid", "label_class", "center"), "labels of Argoverse", _3D),
    (_has_keys("vcd", "objects"), "VCD, which became OpenLABEL", "save it as OpenLABEL with the package vcd"),
    (_has_keys("features", "geometry", "objectType"), "GeoJSON of QuPath", _BY_HAND),
    (_has_keys("features", "geometry"), "GeoJSON", _BY_HAND),
)
"""Annotation files of tools, whose boxes are nested in other ways than in the formats that are read."""


def refuse_tool(sniffer: Sniffer) -> None:
    """Raise if a file is of a tool whose files are not read."""
    like = _tool(sniffer)
    if like is not None:
        raise _unread(sniffer.path, like, like.advice)


def _tool(sniffer: Sniffer) -> Resemblance | None:
    # A COCO file may have further keys.
    if sniffer.has_keys("images", "annotations", "categories"):
        return None
    return next((Resemblance(what, advice) for test, what, advice in _TOOLS if test(sniffer)), None)


def _unread(path: Path, like: Resemblance | None, advice: str) -> FileFormatError:
    return FileFormatError(
        str(path),
        "be in a format that boxscore reads",
        got="something unknown" if like is None else f"what looks like {like.what}",
        cause=advice,
    )


MOST_OPENED = 10
"""Number of files of a folder that are opened to find the tool that wrote them."""


def looks_like(path: Path) -> str:
    """Return the likely cause if a file lacks the keys of its format; empty if unknown."""
    like = resemblance(Sniffer(path)) if path.is_file() else None
    return "" if like is None else f"this looks like {like.what}: {like.advice}"


def unknown_file(sniffer: Sniffer, side: Side | None) -> FileFormatError:
    """Return the error for a path that no format recognizes; it says what the path looks like."""
    like = resemblance(sniffer, side)
    within = [] if like is not None and like.what in {what for _, what, _ in _TOOLS} else readable_in(sniffer)
    advice = like.advice if like is not None else f"boxscore reads: {', '.join(format_names(auto=False))}"
    if within:
        advice = f"pass {'one of ' * (len(within) > 1)}{', '.join(map(str, within))}"
        if len(within) > 1 and all(Sniffer(entry).texts for entry in within):
            name = f"{within[0].name}/{Sniffer(within[0]).texts[0].path.stem}"
            advice += (
                f". To evaluate all of them together, combine them in one CSV file with images named {name!r}"
            )
    return _unread(sniffer.path, like, advice)


def resemblance(sniffer: Sniffer, side: Side | None = None) -> Resemblance | None:
    """Describe a path that no format reads, and suggest a fix; None if unknown."""
    if sniffer.is_folder:
        return _folder(sniffer, side)
    rows = (*_TOOLS, *_JSON) if sniffer.is_json else (*_TOOLS, *_FILES, *_BINARY)
    like = next((Resemblance(what, advice) for test, what, advice in rows if test(sniffer)), None)
    return _below_first_line(sniffer) if like is None else like


def _below_first_line(sniffer: Sniffer) -> Resemblance | None:
    """Describe a text file that would be read without its first line."""
    if sniffer.is_json or sniffer.is_xml or b"\0" in sniffer.head:
        return None
    rest = Sniffer(sniffer.path)
    vars(rest)["head"] = sniffer.head.lstrip().partition(b"\n")[2]
    name = format_alone(rest)
    if not name:
        return None
    what = f"a file of the format {name}, except for its first line, {sniffer.first_line[:60]!r}"
    return Resemblance(what, "delete this line")


def _kind_of_image(path: Path) -> str:
    """Return the format of a JSON file of which a folder has one per image; otherwise empty."""
    name = format_alone(Sniffer(path))
    return name if name and ".json" in format_named(name).folder_endings else ""


def _folder(sniffer: Sniffer, side: Side | None) -> Resemblance:
    if not sniffer.names:
        return Resemblance(
            "an empty folder",
            "was the data set unpacked here? VOC results without detections are empty comp4_det_*.txt files",
        )
    endings = {name.rpartition(".")[2].lower() for name in sniffer.names if "." in name}
    if endings and endings <= {"jpg", "jpeg", "png", "bmp", "webp", "tif", "tiff"}:
        return Resemblance("a folder of images", "pass the annotations here and the images to --image-folder")
    if endings == {"npy"}:
        return Resemblance("a folder of NumPy arrays", "use Detections.from_arrays in Python")
    # Name the tool that wrote one of the first files.
    kinds = (".json", ".jsonl", ".ndjson", ".csv")
    written = [name for name in sniffer.names if name.lower().endswith(kinds)]
    tools = (_tool(Sniffer(sniffer.path / name)) for name in written[:MOST_OPENED])
    tool = next((one for one in tools if one is not None), None)
    if tool is not None:
        return tool
    if "json" in endings:
        first, *others = [name for name in written if name.lower().endswith(".json")]
        of_images = next(
            filter(None, (_kind_of_image(sniffer.path / name) for name in others[:MOST_OPENED])), ""
        )
        if of_images:
            return Resemblance(
                f"a folder with files of the format {of_images}, of which {first} is not",
                f"correct {first}, or move it elsewhere",
            )
        return Resemblance(
            f"a folder with JSON files ({first}, ...)", "pass the file with annotations or results"
        )
    wanted = "detections" if side == "detections" else "annotations"
    names = ", ".join(SEARCHED_FOR.values()) if side is None else SEARCHED_FOR[side]
    return Resemblance(
        f"a folder with {', '.join(sniffer.names[:3])}",
        f"pass the file or folder with {wanted}; looked for: {names}",
    )
