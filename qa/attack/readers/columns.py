"""Files of columns (.npz): arrays, their headers, the header in JSON, the archive itself."""

from __future__ import annotations

import functools
import io
import itertools
import json
import random
import struct
import tempfile
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import boxscore
from attack.engine import hostile, trees
from attack.engine.acceptance import KINDS, RefusedError, cells_of, compare_coco, metrics_of
from attack.engine.mutant import Judged, Mutant, Reader
from attack.readers import coco

__all__ = ["READERS"]

Members = list[tuple[str, bytes]]


@functools.lru_cache(maxsize=200)
def _seed(protocol: str, number: int) -> tuple[Members, Members]:
    """Members of the two archives of a good data set."""
    truth, results = coco.MAKERS[protocol](number)
    pair = []
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        (folder / "gt.json").write_text(json.dumps(truth))
        (folder / "dt.json").write_text(json.dumps(results))
        table = boxscore.load_ground_truth(folder / "gt.json")
        for one in (table, boxscore.load_detections(folder / "dt.json", table)):
            boxscore.save_columns(one, folder / "a.npz")
            with zipfile.ZipFile(folder / "a.npz") as archive:
                pair.append([(member, archive.read(member)) for member in archive.namelist()])
    return pair[0], pair[1]


class _Broken(bytes):
    """A member whose header was spoilt: reading it could take any memory."""

    __slots__ = ()


def _array(content: bytes) -> Any:
    if isinstance(content, _Broken):
        raise ValueError("spoilt before")
    return np.load(io.BytesIO(content), allow_pickle=False)


def _member(array: Any) -> bytes:
    data = io.BytesIO()
    np.save(data, array, allow_pickle=True)
    return data.getvalue()


EXTREMES = [
    0,
    -1,
    1,
    2**31 - 1,
    -(2**31),
    2**53,
    2**62,
    0.5,
    1e-200,
    1e100,
    1.1e100,
    1e308,
    np.nan,
    np.inf,
    -np.inf,
]
TYPES = [
    "<f4",
    ">f8",
    "<c16",
    "<M8[s]",
    "<m8[s]",
    "S4",
    "U4",
    "?",
    "<i8",
    "<u8",
    "<i2",
    "O",
    "<f2",
    "V8",
    "<f8",
    "<i4",
]


def _spoil_array(array: Any, rng: random.Random) -> Any:
    way = rng.randrange(10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if way < 3 and array.size:
            array = array.copy()
            places = rng.choice([1, array.size])
            value = rng.choice(EXTREMES)
            if array.dtype.kind in "iu" and not (np.isfinite(value) and abs(value) < 2**31):
                value = rng.choice([-1, 0, 1, 2, 2**30])
            array.flat[[rng.randrange(array.size) for _ in range(places)]] = value
            return array
        if way == 3:
            return array.astype(rng.choice(TYPES))
        if way == 4:
            return array * rng.choice([3, 0, -1, 1.5]) if array.dtype.kind in "fiu" else array
        if way == 5:
            return rng.choice([array[:-1], np.concatenate([array, array]), array[:0], array[::-1]])
        if way == 6:
            return rng.choice(
                [array.T, array.ravel(), array[None], array[..., None], np.asfortranarray(array)]
            )
        if way == 7:
            return np.array(rng.choice([0, 1, "a", 2.5, None, True]))
        if way == 8:
            return np.zeros(rng.choice([(0,), (0, 4), (3, 0), (1, 1, 1), (10_000,), (2, 2)]))
        return array[rng.choice([0, -1])] if array.ndim else array


def _spoil_npy(content: bytes, rng: random.Random) -> bytes:
    """Spoil the header of an array."""
    rows = rng.choice([10**9, 10**18, 3, -1, 2**63])
    text = rng.choice(
        [
            f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, 4), }}",
            "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
            "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4), }",
            "{'descr': '<f8', 'fortran_order': 7, 'shape': [3, 4]}",
            "{'descr': '<U1000000000', 'fortran_order': False, 'shape': (1,), }",
            "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }",
            "[" * 500,
            "{'descr': __import__('os'), 'fortran_order': False, 'shape': ()}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1L, 4), }",
        ]
    )
    end = content.find(b"\n") + 1
    head = text.encode().ljust(118) + b"\n"
    version = rng.choice([b"\x01\x00", b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x00"])
    size = struct.pack("<H", len(head)) if version == b"\x01\x00" else struct.pack("<I", len(head))
    return b"\x93NUMPY" + version + size + head + content[end:]


def _spoil(members: Members, rng: random.Random) -> Members:
    members = list(members)
    row = rng.randrange(len(members))
    if rng.random() < 0.3:
        row = next((n for n, (name, _) in enumerate(members) if name.startswith("header")), row)
    name, content = members[row]
    way = rng.randrange(12)
    if name == "header.npy" and way < 9:
        header = json.loads(_array(content).tobytes())
        text = trees.as_json(_spoil_header(header, rng), rng)
        members[row] = (name, _member(np.frombuffer(text, dtype=np.uint8)))
    elif way < 7:
        members[row] = (name, _member(_spoil_array(_array(content), rng)))
    elif way == 7:
        members[row] = (name, _Broken(_spoil_npy(content, rng)))
    elif way == 8:
        members[row] = (name, _Broken(hostile.damaged(content, rng)))
    elif way == 9:
        del members[row]
    elif way == 10:
        members.insert(row, (name, members[rng.randrange(len(members))][1]))
    else:
        new = rng.choice(
            ["column:x.npy", "extra.npy", "masks.npy", "ids.npy", "rotated.npy", "../x", "mask_rows.npy"]
        )
        members.append((new, _member(_spoil_array(np.arange(4.0), rng))))
    return members


def _spoil_header(header: Any, rng: random.Random) -> Any:
    way = rng.randrange(6)
    if way == 0:
        key = rng.choice(["image_ids", "category_ids"])
        header[key] = rng.choice(
            [
                [str(value) for value in header[key]],
                [value + 0.5 for value in header[key]],
                [header[key][0]] * len(header[key]),
                [[value] for value in header[key]],
                [None] * len(header[key]),
                [2**64 + value for value in header[key]],
            ]
        )
    elif way == 1:
        key = rng.choice(["file_names", "category_names"])
        header[key] = [rng.choice([1, None, True, "a", [], {}, "\x1b[1m", "\ud800"]) for _ in header[key]]
    elif way == 2:
        header[rng.choice(["columns", "image_columns"])] = {
            hostile.text(rng): rng.choice([None, [1], [], {}, "a"])
        }
    elif way == 3:
        header[rng.choice(["left_out", "boxes_given", "boxscore", "kind", "ids"])] = hostile.scalar(rng)
    else:
        header = trees.spoilt(header, rng)
    return header


def _archive(members: Members, rng: random.Random, *, spoil: bool) -> bytes:
    data = io.BytesIO()
    way = rng.randrange(9) if spoil else -1
    kind = zipfile.ZIP_DEFLATED if way == 0 else zipfile.ZIP_STORED
    with warnings.catch_warnings(), zipfile.ZipFile(data, "w", kind) as archive:
        warnings.simplefilter("ignore")  # of two members with one name
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, kind)
    content = data.getvalue()
    if way in (1, 2):
        return _spoil_directory(content, rng)
    if way == 8:
        return _overlapping(content, rng)
    if way == 3:
        return b"\0" * rng.choice([1, 1000]) + content
    if way > 3:
        return hostile.damaged(content, rng)
    return content


def _overlapping(content: bytes, rng: random.Random) -> bytes:
    """Let a member, with its name in both headers, lie over another, or within it: archives may, these may not."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        infos = archive.infolist()
        one, other = rng.sample(infos, 2)
    spoilt = bytearray(content)
    end = content.rfind(b"PK\x05\x06")
    start = struct.unpack_from("<I", content, end + 16)[0]
    at = start
    while content[at : at + 4] == b"PK\x01\x02":
        sizes = struct.unpack_from("<HHH", content, at + 28)
        name = content[at + 46 : at + 46 + sizes[0]].decode()
        if name == one.filename:
            struct.pack_into("<III", spoilt, at + 16, other.CRC, other.file_size, other.file_size)
            struct.pack_into("<I", spoilt, at + 42, other.header_offset)
        at += 46 + sum(sizes)
    if len(one.filename) == len(other.filename):  # else zipfile itself sees that the names differ
        head = other.header_offset + 30
        spoilt[head : head + len(one.filename)] = one.filename.encode()
    return bytes(spoilt)


def _refuse_overlaps(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        infos = sorted(archive.infolist(), key=lambda info: info.header_offset)
        for before, after in itertools.pairwise(infos):
            if before.header_offset + 30 + len(before.filename) + before.compress_size > after.header_offset:
                raise RefusedError("columns: members that share bytes")


def _spoil_directory(content: bytes, rng: random.Random) -> bytes:
    """Change a number in the archive's central directory: sizes, offsets, flags, counts."""
    spoilt = bytearray(content)
    starts = [n for n in range(len(content) - 46) if content[n : n + 4] == b"PK\x01\x02"]
    entry, end = rng.choice(starts), content.rfind(b"PK\x05\x06")
    place, form = rng.choice(
        [(8, "<H"), (10, "<H"), (16, "<I"), (20, "<I"), (24, "<I"), (28, "<H"), (42, "<I")]
    )
    if rng.random() < 0.3:
        entry, (place, form) = end, rng.choice([(8, "<H"), (10, "<H"), (12, "<I"), (16, "<I")])
    old = struct.unpack_from(form, content, entry + place)[0]
    other = struct.unpack_from("<I", content, rng.choice(starts) + 42)[0]
    value = rng.choice([0, 1, old + 1, max(0, old - 1), old * 2, other, 0xFFFF, 0xFFFFFFFF])
    struct.pack_into(form, spoilt, entry + place, value & (0xFFFF if form == "<H" else 0xFFFFFFFF))
    return bytes(spoilt)


def _make(rng: random.Random, protocol: str) -> Mutant:
    pair = list(_seed(protocol, rng.randrange(20)))
    steps, archive = rng.choice([1, 1, 1, 2, 3]), False
    for _ in range(steps):
        side = rng.randrange(2)
        if rng.random() < 0.8:
            try:
                pair[side] = _spoil(pair[side], rng)
            except (
                ValueError,
                TypeError,
                KeyError,
                IndexError,
                AttributeError,
                OverflowError,
                RecursionError,
            ):
                continue  # an earlier step made it no array, or it does not go into that type
        else:
            archive = True
    spoilt = rng.randrange(2) if archive else -1
    files = {
        name: _archive(members, rng, spoil=number == spoilt)
        for number, (name, members) in enumerate(zip(("gt.npz", "dt.npz"), pair, strict=True))
    }
    arguments = tuple(word.replace("t.json", "t.npz") for word in coco.commands(protocol, rng))
    compare = arguments[0] == "evaluate" and "json" in arguments
    return Mutant(files, arguments, steps, compare)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    _refuse_overlaps(path)
    with np.load(path, allow_pickle=False) as content:
        arrays = {name: content[name] for name in content.files}
    return json.loads(arrays.pop("header").tobytes()), arrays


def _records(header: dict[str, Any], arrays: dict[str, Any], protocol: str) -> list[dict[str, Any]]:
    """Rows as COCO's records; sizes must be those of the boxes."""
    boxes, sizes = arrays["boxes"], arrays["sizes"]
    if boxes.dtype != np.float64 or boxes.shape != (len(sizes), 4) or sizes.shape != (len(boxes), 2):
        raise RefusedError("columns: shapes")
    with np.errstate(all="ignore"):
        rounded = 1e-6 + 1e-6 * np.abs(sizes) + np.spacing(np.abs(boxes).max(axis=1, initial=0))[:, None]
        if not (np.abs(boxes[:, 2:] - boxes[:, :2] - sizes) <= rounded).all():
            raise RefusedError("columns: sizes that are not the boxes'")
    for name, ids in (("image", "image_ids"), ("category", "category_ids")):
        if len(set(map(str, header[ids]))) < len(header[ids]):
            raise RefusedError(f"columns: repeated {ids}")
        if arrays[name].dtype.kind not in "iu" or arrays[name].shape != (len(boxes),):
            raise RefusedError(f"columns: {name}")
    records = []
    rows = np.hstack([boxes[:, :2], sizes]).tolist()
    for image, label, box in zip(arrays["image"].tolist(), arrays["category"].tolist(), rows, strict=True):
        identifiers = {"image_id": header["image_ids"][image], "category_id": header["category_ids"][label]}
        records.append({**identifiers, "bbox": box})
    if protocol == "coco-segm" and "mask_rows" in arrays:
        ends = np.cumsum(arrays["mask_lengths"]).tolist()
        text = arrays["mask_counts"].tobytes()
        starts = [0, *ends[:-1]]
        for row, size, start, end in zip(
            arrays["mask_rows"].tolist(), arrays["mask_sizes"].tolist(), starts, ends, strict=True
        ):
            records[row]["segmentation"] = {"size": size, "counts": text[start:end]}
    for record, points in zip(records, arrays.get("keypoints", ()), strict=False):
        if protocol != "coco-keypoints":
            break
        record["keypoints"] = points.ravel().tolist()
    return records


def _take_classes_by_name(
    results: list[dict[str, Any]], header: Mapping[str, Any], of_truth: Mapping[str, Any]
) -> None:
    """Give each detection the class of its class's name, where there is one."""
    ids = dict(zip(of_truth["category_names"], of_truth["category_ids"], strict=True))
    names = dict(zip(header["category_ids"], header["category_names"], strict=True))
    for record in results:
        record["category_id"] = ids.get(names[record["category_id"]], record["category_id"])


def oracle(folder: Path, mutant: Mutant, output: str) -> Judged:
    """Make COCO's records of the columns, slowly, and ask pycocotools."""
    protocol = mutant.arguments[mutant.arguments.index("--protocol") + 1]
    try:
        header, arrays = _read(folder / "gt.npz")
        annotations = _records(header, arrays, protocol)
        ids = arrays["ids"].tolist() if "ids" in arrays else header["ids"]
        if len(ids) != len(annotations):
            raise RefusedError("columns: ids")
        if len(set(map(str, ids))) < len(ids):
            return Judged("unknown", "repeated ids of different objects")
        if any(
            type(value) not in (int, str) for value in (*ids, *header["image_ids"], *header["category_ids"])
        ):
            raise RefusedError("columns: ids of another type")
        _check_names(header)
        for name, values in zip(("area", "crowd"), (arrays["area"], arrays["crowd"]), strict=True):
            if values.shape != (len(annotations),):
                raise RefusedError(f"columns: {name}")
        if (arrays["ignore"] & ~arrays["crowd"]).any():
            return Judged("unknown", "objects flagged ignore")
        counts = arrays.get("keypoint_count")
        for row, record in enumerate(annotations):
            record.update(id=ids[row], area=float(arrays["area"][row]), iscrowd=int(arrays["crowd"][row]))
            if counts is not None:
                record["num_keypoints"] = int(counts[row])
        truth = {
            "images": [
                {**image, "width": width, "height": height}
                for image, (width, height) in zip(
                    _named(header["image_ids"], "file_name", header["file_names"]),
                    arrays["image_sizes"].tolist(),
                    strict=True,
                )
            ],
            "categories": _named(header["category_ids"], "name", header["category_names"]),
            "annotations": annotations,
        }
        of_truth = header
        header, arrays = _read(folder / "dt.npz")
        _check_names(header)
        if any(_types(of_truth[key]) != _types(header[key]) for key in ("image_ids", "category_ids")):
            return Judged("unknown", "ids that are text on one side")
        results = _records(header, arrays, protocol)
        if results and "scores" not in arrays:
            return Judged("unknown", "detections without scores")
        for record, score in zip(results, arrays["scores"].tolist() if results else [], strict=True):
            record["score"] = score
        _take_classes_by_name(results, header, of_truth)
        if not header.get("boxes_given", True) and all(map(_is_around, results)):
            for record in results:
                del record["bbox"]
    except RefusedError as error:
        return Judged("laxer", str(error))
    except Exception as error:
        return Judged("laxer", f"columns: {type(error).__name__}: {str(error)[:60]}")
    cells = functools.partial(cells_of, folder / "gt.npz", folder / "dt.npz", protocol)
    return compare_coco(truth, results, metrics_of(output), kind=KINDS[protocol], cells=cells)


def _is_around(record: dict[str, Any]) -> bool:
    """Whether the box is the one around the keypoints; an array may have been spoilt."""
    if "keypoints" not in record:
        return True
    x, y = record["keypoints"][0::3], record["keypoints"][1::3]
    return bool(record["bbox"] == [min(x), min(y), max(x) - min(x), max(y) - min(y)])


def _types(ids: list[Any]) -> set[type]:
    return {*map(type, ids)}


def _check_names(header: dict[str, Any]) -> None:
    texts = [*header["category_names"], *(name for name in header["file_names"] if name is not None)]
    if not all(isinstance(name, str) for name in texts):
        raise RefusedError("columns: names that are no text")


def _named(ids: list[Any], key: str, names: list[Any]) -> list[dict[str, Any]]:
    return [{"id": identifier, key: name} for identifier, name in zip(ids, names, strict=True)]


READERS = {
    f"columns-{KINDS[protocol]}": Reader(functools.partial(_make, protocol=protocol), oracle, weight)
    for protocol, weight in (("coco", 2.0), ("coco-segm", 1.0), ("coco-keypoints", 0.7))
}
