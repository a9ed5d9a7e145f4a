"""Write detections as the files that evaluation servers ask for.

Conventions
-----------
- Everything is checked before the output is written, which happens in one step. The same detections give the
  same bytes: files are sorted, without times.
- Coordinates are those of the table; the VOC server counts pixels from 1, as the annotations of VOC do.
- MOTChallenge's file of a sequence has ten numbers per line: frame, -1 (no track), left, top, width, height,
  score, and three times -1. The names of images say which sequence and frame they are. 1 is added to left and
  top, which the reader of MOTChallenge's files subtracts.

References
----------
COCO, "Upload results"; VOC2012 development kit, section 4.3; DOTA, "Tasks"; VisDrone, "Results format";
LVIS API, ``lvis/results.py``; MOTChallenge, "Instructions", and its evaluation kit, ``evaluateDetection.m``.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from boxscore._utils import checks
from boxscore._utils.files import read_bytes, temporary_folder, write_atomically
from boxscore._utils.text import counted, short_list
from boxscore._utils.user_warnings import warn_user
from boxscore.data.image_names import stems_of
from boxscore.data.tables import Detections
from boxscore.data.vocabulary import Categories
from boxscore.errors import BoxscoreWarning, InputError
from boxscore.extensions.crowds.visdrone import CLASSES as VISDRONE
from boxscore.extensions.data_tools.converting import Target
from boxscore.extensions.hints.numbering import COCO_IDS
from boxscore.formats._label_files import file_stems
from boxscore.formats.registry import format_named

VOC = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable"),
    *("dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"),
)
DOTA = (
    *("plane", "baseball-diamond", "bridge", "ground-track-field", "small-vehicle", "large-vehicle", "ship"),
    *("tennis-court", "basketball-court", "storage-tank", "soccer-ball-field", "roundabout", "harbor"),
    *("swimming-pool", "helicopter", "container-crane", "airport", "helipad"),
)
"""Classes of version 2.0; the first 15 are those of 1.0, the first 16 those of 1.5."""
_COCO_CLASSES = (
    *("person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light"),
    *("fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow"),
    *("elephant", "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase"),
    *("frisbee", "skis", "snowboard", "sports ball", "kite", "baseball bat", "baseball glove", "skateboard"),
    *("surfboard", "tennis racket", "bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl"),
    *("banana", "apple", "sandwich", "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake"),
    *("chair", "couch", "potted plant", "bed", "dining table", "toilet", "tv", "laptop", "mouse", "remote"),
    *("keyboard", "cell phone", "microwave", "oven", "toaster", "sink", "refrigerator", "book", "clock"),
    *("vase", "scissors", "teddy bear", "hair drier", "toothbrush"),
)
_COCO_NAMES = dict(zip(COCO_IDS, _COCO_CLASSES, strict=True))
_LVIS_CLASSES = 1203
"""Classes of version 1, with ids from 1."""
_WITH_IDS = {"coco": "image_info_test-dev2017.json", "lvis": "lvis_v1_val.json"}
"""Servers that know images and classes by their ids, and a data set that has the ids."""
MOST_IN_LVIS = 300
"""Detections per image that the LVIS API keeps."""
_COCO_NAME = re.compile(
    r"(?:detections|person_keypoints)_(?:val2017|test-dev2017|test2017)_[^_/]+_results\.zip"
)
_MOT_FRAMES = {
    "MOT17": (450, 600, 1500, 1050, 837, 1194, 500, 625, 525, 654, 900, 900, 750, 750),
    "MOT20": (429, 2782, 2405, 2080, 3315, 1008, 585, 806),
}
"""Frames of the sequences 01, 02, ... of MOTChallenge's benchmarks of detection, MOT17Det and MOT20Det."""
_MOT_TEST = {"MOT17": (1, 3, 6, 7, 8, 12, 14), "MOT20": (4, 6, 7, 8)}
"""Their sequences without public ground truth."""
_MOT_IMAGE = re.compile(
    r"(?:.*/)?(MOT17|MOT20)-(\d\d)(?:-(?:DPM|FRCNN|SDP))?/(?:img1/)?(\d{1,9})\.\w+", re.ASCII
)
"""Image names; MOT17 has each sequence three times, with the detections of one detector each."""

Files = dict[str, bytes]


class Server(NamedTuple):
    """An evaluation server: the end of its files, the format of the content, and where to upload it."""

    ending: str
    form: str
    files: Callable[[Detections, Path], Files]
    where: str


def _saved(table: Detections, form: str, name: str) -> Files:
    """Return what a format writes: one file of this name, or the files of a folder."""
    with temporary_folder() as folder:
        format_named(form).save(table, folder / name)
        if (folder / name).is_file():
            return {name: read_bytes(folder / name)}
        return {file.name: read_bytes(file) for file in (folder / name).iterdir()}


def _coco(table: Detections, output: Path) -> Files:
    if _COCO_NAME.fullmatch(output.name) is None:
        rule = "have the name that the COCO server asks for"
        cause = "e.g. detections_test-dev2017_NAME_results.zip (also test2017, val2017), without _ in NAME"
        raise InputError("--output", rule, got=repr(output.name), cause=cause)
    if output.name.startswith("person_keypoints") and table.keypoints is None:
        rule, cause = "be for keypoints", "results without keypoints are named detections_..._results.zip"
        raise InputError("--output", rule, got=repr(output.name), cause=cause)
    _check_ids(table, _WITH_IDS["coco"])
    other = sorted(set(table.categories.ids[np.unique(table.category)].tolist()) - set(COCO_IDS))
    if other:
        rule = "have one of the 80 ids of COCO, from 1 to 90"
        cause = "with --gt, classes get its ids: --gt instances_val2017.json or image_info_test-dev2017.json"
        raise InputError("a class", rule, got=f"{other[0]}", place=table.source, cause=cause)
    return _saved(table, "coco", f"{output.stem}.json")


def _lvis(table: Detections, output: Path) -> Files:
    _check_ids(table, _WITH_IDS["lvis"])
    counts = np.bincount(table.image, minlength=len(table.images))
    if counts.max(initial=0) > MOST_IN_LVIS:
        image = table.images.ids[int(counts.argmax())]
        rule = f"have at most {MOST_IN_LVIS} detections; the server keeps only the best"
        cause = f"boxscore nms --iou-threshold 1 --max-per-image {MOST_IN_LVIS} keeps them"
        raise InputError("an image", rule, got=f"{counts.max()} in {image}", place=table.source, cause=cause)
    return _saved(table, "coco", output.name)


def _check_ids(table: Detections, example: str) -> None:
    """Reject ids of images or classes that are not whole numbers."""
    for what, ids in (("an image", table.images.ids), ("a class", table.categories.ids)):
        text = next((id_ for id_ in ids.tolist() if not isinstance(id_, int)), None)
        if text is not None:
            cause = f"--gt gives the ids of a data set, e.g. --gt {example}"
            rule = "have a number as its id for this server"
            raise InputError(what, rule, got=repr(text), place=table.source, cause=cause)


def _voc(competition: str) -> Callable[[Detections, Path], Files]:
    def files(table: Detections, output: Path) -> Files:
        made = _saved(with_classes_of_server(table, VOC), "voc", "results")
        return {
            f"results/VOC2012/Main/{competition}{name.removeprefix('comp4')}": content
            for name, content in made.items()
        }

    return files


def _dota(count: int) -> Callable[[Detections, Path], Files]:
    return lambda table, output: _saved(with_classes_of_server(table, DOTA[:count]), "dota", "results")


def _visdrone(table: Detections, output: Path) -> Files:
    table = with_classes_of_server(table, VISDRONE[1:-1])
    lines: list[list[str]] = [[] for _ in range(len(table.images))]
    boxes = np.hstack([table.boxes[:, :2], table.sizes]).tolist()
    for image, category, score, box in zip(
        table.image.tolist(), table.category.tolist(), table.scores.tolist(), boxes, strict=True
    ):
        lines[image].append(",".join([*map(repr, box), repr(score), str(category + 1), "-1", "-1"]) + "\n")
    names = file_stems(table)
    return {f"{name}.txt": "".join(texts).encode() for name, texts in zip(names, lines, strict=True)}


def _mot(table: Detections, output: Path) -> Files:
    table = with_classes_of_server(table, ("pedestrian",))
    places = _mot_places(table)
    # Write the lines of each sequence by frame; a frame keeps the order of its detections.
    lines: dict[str, list[str]] = {sequence: [] for sequence, _ in places}
    boxes = np.hstack([table.boxes[:, :2] + 1, table.sizes]).tolist()
    scores, images = table.scores.tolist(), table.image.tolist()
    for row in sorted(range(len(table)), key=lambda row: places[images[row]]):
        sequence, frame = places[images[row]]
        numbers = ",".join(map(repr, [frame, -1, *boxes[row], scores[row], -1, -1, -1]))
        lines[sequence].append(f"{numbers}\n")
    # The server cannot read an empty file, and looks for all sequences.
    empty = next((sequence for sequence in sorted(lines) if not lines[sequence]), None)
    if empty is not None:
        raise InputError("a sequence", "have detections", got=f"none in {empty}", place=table.source)
    benchmark = next(iter(lines))[:5]
    missing = [name for number in _MOT_TEST[benchmark] if (name := f"{benchmark}-{number:02}") not in lines]
    if missing:
        text = f"no detections in {short_list(missing)}; {benchmark}Det asks for all of its test sequences"
        warn_user(f"{table.source}: {text}.")
    return {f"{sequence}.txt": "".join(texts).encode() for sequence, texts in lines.items()}


def _mot_places(table: Detections) -> list[tuple[str, int]]:
    """Return sequence and frame of each image; reject unknown ones, and several benchmarks."""
    places: dict[tuple[str, int], str] = {}
    images = table.images
    for identifier, file in zip(images.ids.tolist(), images.file_names.tolist(), strict=True):
        name = str(identifier if file is None else file).replace("\\", "/")
        found = _MOT_IMAGE.fullmatch(name)
        benchmark, sequence, frame = (found[1], int(found[2]), int(found[3])) if found else ("", 0, 0)
        frames = _MOT_FRAMES.get(benchmark, ())
        if not 1 <= sequence <= len(frames) or not 1 <= frame <= frames[sequence - 1]:
            rule = "be named by a sequence of MOT17 or MOT20 and one of its frames, from 1"
            cause = "e.g. MOT17-01/img1/000001.jpg; --gt with such file names gives them"
            raise InputError("an image", rule, got=repr(name), place=table.source, cause=cause)
        place = f"{benchmark}-{sequence:02}", frame
        if place in places:
            rule, cause = "be in one image", "pass only one of the folders DPM, FRCNN and SDP: --images FILE"
            got = f"frame {frame} in {places[place]} and {name}"
            raise InputError("a frame", rule, got=got, place=table.source, cause=cause)
        places[place] = name
    if len({sequence[:5] for sequence, _ in places}) > 1:
        got, cause = "images of MOT17 and MOT20", "write an archive for each: --images FILE"
        raise InputError("images", "be of one benchmark", got=got, place=table.source, cause=cause)
    return [*places]


SERVERS: Mapping[str, Server] = {
    "coco": Server(".zip", "coco", _coco, "https://codalab.lisn.upsaclay.fr/competitions/7384"),
    "voc": Server(".tar.gz", "voc", _voc("comp4"), "http://host.robots.ox.ac.uk:8080"),
    "voc-comp3": Server(".tar.gz", "voc", _voc("comp3"), "http://host.robots.ox.ac.uk:8080"),
    **{
        f"dota-{version}": Server(
            ".zip", "dota", _dota(count), "https://captain-whu.github.io/DOTA/evaluation.html"
        )
        for version, count in (("v1.0", 15), ("v1.5", 16), ("v2.0", 18))
    },
    "lvis": Server(".json", "coco", _lvis, "https://eval.ai (LVIS)"),
    "visdrone": Server(".zip", "voc", _visdrone, "http://aiskyeye.com"),
    "mot": Server(".zip", "voc", _mot, "https://motchallenge.net (MOT17Det or MOT20Det)"),
}
"""Evaluation servers by the value of ``--server``."""


def check_output(name: str, output: Path) -> None:
    """Check the name of the output before anything is read."""
    server = SERVERS[checks.one_of(name, tuple(SERVERS), name="--server")]
    if not output.name.endswith(server.ending):
        raise InputError("--output", f"end in {server.ending} for --server {name}", got=repr(output.name))


def check_listed(name: str, *, lists_images: bool) -> None:
    """Check that all images are known, if each needs a file."""
    if name == "visdrone" and not lists_images:
        rule = "know all images, because each needs a file, also without detections"
        cause = "pass --gt GT, --image-folder DIR, or --image-sizes FILE.csv, which list them"
        raise InputError("--server visdrone", rule, got="detections only", cause=cause)


def warn_of_ids(table: Detections, name: str, *, truth: bool) -> None:
    """Warn of ids that no data set was compared with, and of those that cannot be the server's."""
    if name not in _WITH_IDS:
        return
    strange = [*_strange_classes(table, name), *_strange_images(table, name, truth=truth)]
    if strange:
        text = f"the ids are not those of {name.upper()} ({'; '.join(strange)})"
        cause = f"the server would refuse or misread them; --gt {_WITH_IDS[name]} gives those of its images"
        warn_user(f"{table.source}: {text}: {cause}.")
    elif not truth:
        text = "the ids of images and classes are not checked without --gt"
        warn_user(f"{table.source}: {text}; pass --gt {_WITH_IDS[name]}.")


def _strange_classes(table: Detections, name: str) -> list[str]:
    """Say which classes with boxes have another name than the server gives their id, or an unknown id."""
    for row in np.unique(table.category).tolist():
        id_, text = table.categories.ids[row], table.categories.names[row]
        theirs = _COCO_NAMES.get(id_) if name == "coco" else None
        if theirs is not None and text not in (theirs, str(id_)):
            return [f"class {id_} is {text!r}, not {theirs!r}"]
        if name == "lvis" and not 1 <= id_ <= _LVIS_CLASSES:
            return [f"class {id_} is not one of 1 to {_LVIS_CLASSES}"]
    count = len(table.categories)
    if (
        name == "lvis"
        and count != _LVIS_CLASSES
        and table.categories.names.tolist() != [*map(str, table.categories.ids.tolist())]
    ):
        return [f"--gt has {counted(count, 'class')}, not {_LVIS_CLASSES}"]
    return []


def _strange_images(table: Detections, name: str, *, truth: bool) -> list[str]:
    """Say which image has a file name or an id that no image of COCO has; images of LVIS are the same."""
    for id_, file in zip(table.images.ids.tolist(), table.images.file_names.tolist(), strict=True):
        if file is not None and truth and PurePosixPath(file).stem.rpartition("_")[2] != f"{id_:012}":
            return [f"image {id_} is {file!r}, not '{id_:012}.jpg'"]
    ids = table.images.ids
    if len(ids) > 1 and int(ids.min()) in (0, 1) and int(ids.max()) - int(ids.min()) == len(ids) - 1:
        return [f"images are numbered from {ids.min()} to {ids.max()}"]
    return []


def save_for_server(
    table: Detections,
    output: Path,
    name: str,
    *,
    lossy: bool,
    strict: bool,
    truth: bool,
    listed: Iterable[str] = (),
) -> None:
    """Write detections for a server, with a note where to upload them.

    ``listed`` are names of images; ``truth`` says whether the ids are those of a ground truth.
    """
    server = SERVERS[name]
    if not table.scored or not len(table):
        rule = "have scores for a server" if len(table) else "not be empty for a server"
        raise InputError("the results", rule, got="none", place=table.source)
    target = Target(output, server.form, lossy=lossy, strict=strict, for_server=True)
    with target.without_lost(table, output) as (writable, _):
        assert isinstance(writable, Detections)
        files = server.files(writable, output)
        warn_of_ids(table, name, truth=truth)
        if name == "visdrone":
            files = _with_listed(files, listed, table.source)
        write_atomically(output, _packed(files, server.ending))
    text = f"{output}: {counted(len(files), 'file')}, to upload to {server.where}."
    warn_user(BoxscoreWarning(text, severity="note"))


def with_classes_of_server(table: Detections, names: tuple[str, ...]) -> Detections:
    """Return a table whose classes are those of a server, in this order; reject others that have boxes."""
    used = np.unique(table.category)
    known = {name: number for number, name in enumerate(names)}
    number = np.array([known.get(name, -1) for name in table.categories.names.tolist()], dtype=np.int32)
    other = table.categories.names[used[number[used] < 0]].tolist() if len(used) else []
    if other:
        rule = f"be {names[0]!r}, the only one of this server"
        cause = "--remap-classes renames or drops classes"
        if len(names) > 1:
            rule = f"be one of the {len(names)} of this server"
            cause = f"they are {', '.join(names)}; {cause}"
        raise InputError("a class", rule, got=short_list(map(repr, other)), place=table.source, cause=cause)
    classes = Categories.build(range(len(names)), names=names)
    return table.replaced(
        categories=classes, category=number[table.category] if len(table) else table.category
    )


def _with_listed(files: Files, listed: Iterable[str], source: str) -> Files:
    """Add an empty file for each listed image; reject detections in others."""
    names = {f"{stem}.txt" for stem in stems_of([*listed])}
    strange = sorted(files.keys() - names) if names else []
    if strange:
        rule, got = "be one of the listed images", repr(strange[0].removesuffix(".txt"))
        raise InputError("an image", rule, got=got, place=source)
    return dict.fromkeys(names, b"") | files


def _packed(files: Files, ending: str) -> bytes:
    """Return an archive with these files, or the only file itself."""
    if ending == ".json":
        return next(iter(files.values()))
    target = io.BytesIO()
    if ending == ".zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in sorted(files.items()):
                entry = zipfile.ZipInfo(name)  # of 1980
                entry.compress_type, entry.external_attr, entry.create_system = (
                    zipfile.ZIP_DEFLATED,
                    0o644 << 16,
                    3,
                )
                archive.writestr(entry, content)
        return target.getvalue()
    with (
        gzip.GzipFile("", "wb", fileobj=target, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        folders = {str(above) for name in files for above in PurePosixPath(name).parents} - {"."}
        for folder in sorted(folders):
            entry_of_folder = tarfile.TarInfo(folder)
            entry_of_folder.type, entry_of_folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry_of_folder)
        for name, content in sorted(files.items()):
            of_file = tarfile.TarInfo(name)
            of_file.size = len(content)
            tar.addfile(of_file, io.BytesIO(content))
    return target.getvalue()
