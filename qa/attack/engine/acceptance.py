"""What an accepted data set means, by other programs: pycocotools with ids as they are, and the devkit's rules.

A data set is first given to pycocotools as it is. Where that differs or raises, the differences named in
docs/explanation/exactness.md, docs/contributing/benchmark-comparisons.md and docs/reference/file-formats.md are
undone one after the other, and each is counted by its name; what is still different then is a silent difference.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import math
import re
import sys
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import boxscore
from attack.engine.mutant import Judged
from oracles import kit

__all__ = [
    "RefusedError",
    "cells_of",
    "compare_coco",
    "compare_voc",
    "metrics_of",
    "other_cell",
    "read_json",
    "voc_objects",
    "voc_results",
]

Record = dict[str, Any]
CELLS = ("precision", "recall", "scores")
KINDS = {"coco": "bbox", "coco-segm": "segm", "coco-keypoints": "keypoints"}


class RefusedError(Exception):
    """The oracle refuses the data; the text says why."""


class SilentError(Exception):
    """The oracle has no word on the data."""


def metrics_of(output: str) -> dict[str, float]:
    """Read the metrics of ``--output json``; undefined is NaN."""
    return {
        key: math.nan if value is None else float(value)
        for key, value in json.loads(output)["metrics"].items()
    }


def read_json(path: Path) -> Any:
    """Read JSON strictly: UTF-8, no NaN."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RefusedError("not UTF-8") from None
    most = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)  # a number of any length is JSON
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"json: {str(error).split(':')[0]}") from None
    finally:
        sys.set_int_max_str_digits(most)


# ---------------------------------------------------------------- pycocotools


Cells = Callable[[], Mapping[str, np.ndarray[Any, Any]]]
"""Makes the arrays precision, recall and scores; NaN where a cell is undefined."""


def _pycocotools(
    truth: Record, results: list[Record], kind: str, images: Any = None, classes: Any = None
) -> tuple[list[float], Mapping[str, np.ndarray[Any, Any]]]:
    """Return the summary metrics, and every cell."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        reference = COCO()
        reference.dataset = {"info": {}, **copy.deepcopy(truth)}
        reference.createIndex()
        found = reference.loadRes(copy.deepcopy(results))
        run = COCOeval(reference, found, kind)
        if images is not None:
            run.params.imgIds = sorted(images)
        if classes is not None:
            run.params.catIds = sorted(classes)
        run.evaluate()
        run.accumulate()
        run.summarize()
    absent = {name: run.eval["recall" if name == "recall" else "precision"] == -1 for name in CELLS}
    return [float(value) for value in run.stats], {
        name: np.where(absent[name], np.nan, run.eval[name]) for name in CELLS
    }


def other_cell(cells: Cells | None, theirs: Mapping[str, np.ndarray[Any, Any]]) -> str:
    """Name the first cell that differs."""
    ours = {} if cells is None else cells()
    for name, values in ours.items():
        if values.shape != theirs[name].shape:
            return f"{name}: shape {values.shape} here, {theirs[name].shape} there"
        same = (values == theirs[name]) | (np.isnan(values) & np.isnan(theirs[name]))
        if not same.all():
            cell = tuple(np.argwhere(~same)[0].tolist())
            return f"{name} at {cell}: {values[cell]!r} here, {theirs[name][cell]!r} there"
    return ""


def _same(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    filled = [-1.0 if math.isnan(value) else value for value in ours]
    return np.array(filled).tobytes() == np.array(theirs, dtype=np.float64).tobytes()


def compare_coco(
    truth: Any,
    results: Any,
    ours: Mapping[str, float],
    *,
    kind: str = "bbox",
    images: Sequence[Any] | None = None,
    classes: Sequence[Any] | None = None,
    cells: Cells | None = None,
) -> Judged:
    """Compare with pycocotools, first as the data are, then with the documented differences undone."""
    numbers = list(ours.values())
    raw: list[float] | Exception
    try:
        raw, arrays = _pycocotools(truth, results, kind, images, classes)
        if _same(numbers, raw) and not other_cell(cells, arrays):
            return Judged("equal")
    except MemoryError:
        raise
    except Exception as error:  # whatever it raises of such data
        raw = error
    try:
        plain, records, rules, chosen = normalized(truth, results, kind, images, classes)
        if kind == "segm" and not plain["annotations"]:  # no mask is looked at
            return Judged("documented" if all(map(math.isnan, numbers)) else "differs", "no annotations")
        if not records:
            values = [value for value in numbers if not math.isnan(value)]
            if any(values):
                return Judged("differs", f"{values[0]!r} of no detections")
            return Judged("documented", "empty results")
        theirs, arrays = _pycocotools(plain, records, kind, *chosen)
    except SilentError as error:
        return Judged("unknown", str(error))
    except MemoryError:
        raise
    except Exception as error:
        reason = raw if isinstance(raw, Exception) else error
        return Judged("laxer", f"pycocotools: {type(reason).__name__}: {str(reason)[:80]}")
    if _same(numbers, theirs):
        other = other_cell(cells, arrays)
        rules_text = ", ".join(sorted(rules)) or "ids renumbered"
        return Judged("differs", f"{other} [{rules_text}]") if other else Judged("documented", rules_text)
    if kind == "bbox" and any(map(_underflows, (*plain["annotations"], *records))):
        return Judged("documented", "areas too small for a float")  # 0/0 there
    first = next(i for i, (a, b) in enumerate(zip(numbers, theirs, strict=True)) if not _same([a], [b]))
    text = f"{list(ours)[first]}: {numbers[first]!r} here, {theirs[first]!r} in pycocotools"
    return Judged("differs", f"{text} [{', '.join(sorted(rules))}]")


def cells_of(truth: Path, results: Path, protocol: Any) -> Mapping[str, np.ndarray[Any, Any]]:
    """Evaluate files, for every cell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = boxscore.load_ground_truth(truth)
        found = boxscore.load_detections(results, table)
        return boxscore.evaluate(table, found, protocol=protocol).arrays()


def _underflows(record: Record) -> bool:
    width, height = record["bbox"][2:]
    return width > 0 and height > 0 and abs(width * height) < sys.float_info.min


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _ranks(ids: Sequence[Any]) -> dict[Any, int]:
    """Number ids from 1, integers first: the order in which equal scores are ranked."""
    distinct = dict.fromkeys(map(_whole, ids))
    integers = sorted(value for value in distinct if isinstance(value, int))
    texts = sorted(value for value in distinct if isinstance(value, str))
    if len(integers) + len(texts) < len(distinct):
        raise RefusedError("an id that is neither integer nor text")
    return {value: number for number, value in enumerate([*integers, *texts], start=1)}


def _value(identifier: Any) -> int | None:
    if isinstance(identifier, str):
        return int(identifier) if re.fullmatch("[0-9]{1,1000}", identifier) else None
    return identifier if isinstance(identifier, int) else None


def _as_numbers(ids: list[Any]) -> list[Any]:
    """Read text as numbers where some ids are numbers, and all text spells others."""
    values = [_value(identifier) for identifier in ids]
    mixed = len({isinstance(identifier, str) for identifier in ids}) > 1
    if mixed and None not in values and len(set(values)) == len(set(ids)):
        return values
    return ids


def _spelled(identifier: Any, known: Mapping[Any, int], rules: set[str]) -> Any:
    """Write an id as the only one of its value that is listed."""
    value = None if identifier in known else _value(identifier)
    if value is None:
        return identifier
    same = [other for other in known if _value(other) == value]
    if len(same) != 1:
        return identifier
    rules.add("ids in two spellings")
    return same[0]


def normalized(
    truth: Any, results: Any, kind: str, images: Any = None, classes: Any = None
) -> tuple[Record, list[Record], set[str], tuple[Any, Any]]:
    """Undo the documented differences; return the data, the names of the differences, and what was chosen."""
    rules: set[str] = set()
    if isinstance(results, dict):
        rules.add("results as an object")
        results = _by_own_names(truth, results, rules)
    images_listed = _as_numbers([_whole(image["id"]) for image in truth["images"]])
    classes_listed = _as_numbers([_whole(category["id"]) for category in truth["categories"]])
    results = [_plain(record, rules) for record in results]
    for record in results:
        if "bbox" in record and record["bbox"] is None:
            rules.add("no box")
            del record["bbox"]
        if kind == "keypoints" and "segmentation" in record:  # pycocotools takes it for a result with a mask
            rules.add("keypoints with a mask")
            del record["segmentation"]
    image_ranks, class_ranks = _ranks(images_listed), _ranks(classes_listed)
    if any(isinstance(value, str) for value in (*image_ranks, *class_ranks)):
        rules.add("ids that are text")
    names = {str(category.get("name", category["id"])): category["id"] for category in truth["categories"]}
    annotations = []
    given = [annotation.get("id") for annotation in truth["annotations"]]
    if None in given:
        rules.add("annotations without ids")
        given = list(range(1, len(given) + 1))
    numbers = {value: number for number, value in enumerate(dict.fromkeys(map(_whole, given)), start=1)}
    if 0 in numbers:
        rules.add("annotation id 0")
    for identifier, annotation in zip(given, truth["annotations"], strict=True):
        one = {**_plain(annotation, rules), "id": numbers[_whole(identifier)]}
        image = _spelled(_whole(one["image_id"]), image_ranks, rules)
        label = _spelled(_whole(one["category_id"]), class_ranks, rules)
        if image not in image_ranks or label not in class_ranks:
            rules.add("annotations of what is not listed")
            continue
        one["image_id"], one["category_id"] = image_ranks[image], class_ranks[label]
        if len(one["bbox"]) == 5:
            raise SilentError("rotated boxes")
        if one.get("area") is None:
            rules.add("no area")
            one["area"] = one["bbox"][2] * one["bbox"][3]
        if one.get("iscrowd") is None:
            rules.add("no iscrowd")
            one["iscrowd"] = 0
        if kind == "keypoints":
            _fill_keypoints(one, rules)
        annotations.append(one)
    by_name = {str(image["file_name"]): image["id"] for image in truth["images"] if image.get("file_name")}
    records = []
    for record in results:
        image, label = _whole(record["image_id"]), _whole(record["category_id"])
        if image not in image_ranks:
            image = _found_image(image, image_ranks, by_name, rules)
        if label not in class_ranks and isinstance(label, str) and label in names:
            rules.add("classes by name")
            label = names[label]
            label = _whole(label)
        label = _spelled(label, class_ranks, rules)
        if label not in class_ranks:
            rules.add("detections of unknown classes")
            continue
        records.append({**record, "image_id": image_ranks[image], "category_id": class_ranks[_whole(label)]})
    if kind == "segm" and not all(one.get("segmentation") for one in (*annotations, *records)):
        raise SilentError("masks that are not there")
    for record in records if kind == "segm" and annotations else ():
        if isinstance(record.get("segmentation"), list):
            rules.add("polygons in results")
            row = max(n for n, one in enumerate(images_listed) if image_ranks[one] == record["image_id"])
            record["segmentation"] = _rasterized(record["segmentation"], truth["images"][row])
    if kind == "keypoints" and records:
        length = max(len(record.get("keypoints") or []) for record in [*annotations, *records])
        for record in records:
            if not record.get("keypoints"):
                rules.add("no keypoints")
                record["keypoints"] = [0.0] * length
    own: dict[int, Record] = {}  # sizes of RLE, by image
    for record in (*annotations, *records) if kind == "segm" else ():
        code = record.get("segmentation")
        if isinstance(code, dict):
            own.setdefault(record["image_id"], dict(zip(("height", "width"), code["size"], strict=True)))
    if kind == "segm" and any(map(_has_no_size, truth["images"])):
        rules.add("no image sizes")  # which RLE does not need, though pycocotools asks for them
    plain = {
        "images": [
            {**_sized(image, own.get(image_ranks[identifier], {})), "id": image_ranks[identifier]}
            for image, identifier in zip(truth["images"], images_listed, strict=True)
        ],
        "categories": [
            {**one, "id": class_ranks[identifier]}
            for one, identifier in zip(truth["categories"], classes_listed, strict=True)
        ],
        "annotations": annotations,
    }
    return (
        plain,
        records,
        rules,
        (
            None if images is None else [image_ranks[_whole(image)] for image in images],
            None if classes is None else [class_ranks[_whole(label)] for label in classes],
        ),
    )


def _by_own_names(truth: Record, results: Record, rules: set[str]) -> list[Record]:
    """Translate the ids of results that list images or categories themselves: by file name and class name."""
    records = [dict(record) for record in results["annotations"]]
    for key, part, name in (("image_id", "images", "file_name"), ("category_id", "categories", "name")):
        if not results.get(part):
            continue
        known: dict[str, Any] = {}
        for one in truth[part]:
            label = one.get(name) or (str(one["id"]) if part == "categories" else None)
            if label in known:
                raise SilentError("names that several have")
            known[label] = one["id"]
        own = {_whole(one["id"]): one for one in results[part]}
        for record in records:
            one = own.get(_whole(record[key]))
            label = None if one is None else one.get(name)
            if label is None or (part == "images" and label not in known):
                raise SilentError("images or classes of their own without names")
            record[key] = known.get(label, f"unknown {label}")
        rules.add("results with own names")
    return records


def _found_image(image: Any, ranks: Mapping[Any, int], by_name: Mapping[str, Any], rules: set[str]) -> Any:
    if isinstance(image, str) and re.fullmatch(r"[0-9]{1,19}", image) and int(image) in ranks:
        rules.add("image ids as text")
        return int(image)
    if isinstance(image, int) and str(image) in ranks:
        rules.add("image ids as text")
        return str(image)
    raise SilentError("images by name")


def _plain(record: Record, rules: set[str]) -> Record:
    """Leave out a null segmentation, and write integers that no int64 holds as floats."""

    def small(value: Any) -> Any:
        if isinstance(value, list):
            return [small(item) for item in value]
        if isinstance(value, int) and abs(value) > 2**63 - 1:
            rules.add("integers of more than 64 bits")
            return float(value)
        return value

    plain = {
        key: small(value) if key in ("area", "bbox", "keypoints") else value for key, value in record.items()
    }
    if plain.get("segmentation", ()) is None:
        rules.add("null segmentation")
        del plain["segmentation"]
    return plain


def _has_no_size(image: Record) -> bool:
    return not all(
        isinstance(image.get(side), (int, float)) and image[side] > 0 for side in ("width", "height")
    )


def _sized(image: Record, own: Record) -> Record:
    """Fill unknown sizes; whole ones become integers, or pycocotools refuses them."""
    sizes = {"width": 1, "height": 1, **own}
    known = {key: _whole(value) for key, value in image.items() if value is not None}
    return {**known, **sizes} if _has_no_size(image) else known


def _rasterized(polygons: Any, image: Record) -> Any:
    """Polygons as pycocotools' annToRLE has them."""
    from pycocotools import mask as coco_mask

    return coco_mask.merge(coco_mask.frPyObjects(polygons, _whole(image["height"]), _whole(image["width"])))


def _fill_keypoints(one: Record, rules: set[str]) -> None:
    if not one.get("keypoints"):
        rules.add("no keypoints")
        one["keypoints"], one["num_keypoints"] = [0.0] * 51, one.get("num_keypoints") or 0
    if one.get("num_keypoints") is None:
        rules.add("no num_keypoints")
        one["num_keypoints"] = sum(flag > 0 for flag in one["keypoints"][2::3])


# ---------------------------------------------------------------- the devkit

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")


def _number(text: str | None) -> float:
    text = (text or "").strip()
    if not _NUMBER.match(text):
        raise RefusedError(f"no number: {text[:20]!r}")
    return float(text)


def voc_objects(folder: Path, names: Sequence[str]) -> list[kit.Object]:
    """Read annotations slowly and strictly."""
    objects = []
    for name in names:
        data = (folder / "Annotations" / f"{name}.xml").read_bytes()
        if b"\0" in data and data[:2] not in (b"\xff\xfe", b"\xfe\xff"):
            raise RefusedError("NUL in XML")
        if b"<!DOCTYPE" in data.replace(b"\0", b"") or b"<!ENTITY" in data.replace(b"\0", b""):
            raise RefusedError("a DOCTYPE")
        try:
            root = ElementTree.fromstring(data)
        except (ElementTree.ParseError, ValueError, LookupError) as error:
            if data[:2] in (b"\xff\xfe", b"\xfe\xff") and re.search(
                "multi-byte|unknown encoding", str(error)
            ):
                raise SilentError("a byte order mark, and another encoding declared") from None
            raise RefusedError(f"XML: {str(error).split(':')[0]}") from None
        for element in root.findall("object"):
            box = element.find("bndbox")
            if box is None:
                raise RefusedError("no bndbox")
            sides = [_number(box.findtext(side)) for side in ("xmin", "ymin", "xmax", "ymax")]
            label = (element.findtext("name") or "").strip()
            hard = (element.findtext("difficult") or "").strip()
            if hard not in ("", "0", "1"):
                raise RefusedError(f"difficult: {hard[:20]!r}")
            objects.append(kit.Object(name, label, tuple(sides), hard == "1"))  # type: ignore[arg-type]
    return objects


def voc_names(path: Path) -> list[str]:
    """Read an image set slowly and strictly."""
    names = []
    for line in _lines(path):
        fields = line.split()
        if not fields:
            continue
        if len(fields) > 2 or (len(fields) == 2 and fields[1] not in ("1", "0", "-1")):
            raise RefusedError(f"a line of the set: {line[:40]!r}")
        if fields[-1] != "-1" or len(fields) == 1:
            names.append(fields[0])
    return list(dict.fromkeys(names))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_bytes().decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise RefusedError("not UTF-8") from None


def voc_results(folder: Path, images: Sequence[str], labels: Container[str]) -> list[kit.Found]:
    """Read results slowly and strictly."""
    found = []
    for path in sorted(folder.glob("comp[0-9]_det_*.txt")):
        parts = re.match(r"comp\d_det_[^_]+_(.+)\.txt$", path.name)
        if parts is None:
            raise SilentError("names of files")
        if parts[1] not in labels:
            continue
        for line in _lines(path):
            fields = line.split()
            if not fields:
                continue
            if len(fields) != 6:
                raise RefusedError("not six columns")
            score, *box = map(_number, fields[1:])
            if not all(map(math.isfinite, (score, *box))):
                raise RefusedError("not finite")
            if fields[0] not in images:
                raise SilentError("images by name")
            found.append(kit.Found(fields[0], parts[1], score, tuple(box)))  # type: ignore[arg-type]
    return found


def compare_voc(folder: Path, output: str, *, rule: str = "kit") -> Judged:
    """Compare AP per class and their mean with the devkit's rules."""
    try:
        names = voc_names(folder / "ImageSets" / "Main" / "test.txt")
        objects = voc_objects(folder, names)
        found = voc_results(folder.parent / "results", names, {item.label for item in objects})
    except RefusedError as error:
        return Judged("laxer", f"devkit: {error}")
    except SilentError as error:
        return Judged("unknown", str(error))
    result = json.loads(output)
    labels = sorted({item.label for item in objects})
    ours = {row["class"]: math.nan if row["AP"] is None else row["AP"] for row in result["per_class"]}
    theirs = {label: kit.average_precision(objects, found, label, rule=rule) for label in labels}
    if len(ours) == len(labels):  # a name that is another class's id has its own id beside it
        shown = [re.sub(r" \(\d+\)$", "", label) for label in ours]
        ours = dict(zip(shown, ours.values(), strict=True)) if shown == labels else ours
    if list(ours) != labels:
        return Judged("differs", f"classes {list(ours)[:5]} here, {labels[:5]} in the devkit")
    for label in labels:
        if not np.array_equal(ours[label], theirs[label], equal_nan=True):
            return Judged("differs", f"AP: {ours[label]!r} here, {theirs[label]!r} in the devkit")
    defined = [value for value in theirs.values() if not math.isnan(value)]
    mean = float(np.mean(defined)) if defined else math.nan
    if not np.array_equal(metrics_of(output)["mAP"], mean, equal_nan=True):
        return Judged("differs", f"mAP: {metrics_of(output)['mAP']!r} here, {mean!r} in the devkit")
    return Judged("equal")
