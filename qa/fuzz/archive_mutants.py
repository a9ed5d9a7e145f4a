"""Structured mutants of files of columns: each is refused with a message, or is what a slow reader makes of it.

Run by ``qa/fuzz/mutants.py``. A mutant is a good file with one to three changes to its members (shape, dtype, values, missing, twice, unknown),
its header, the headers of its arrays, or the archive around them. One that is taken is read again by NumPy and
compared column by column; it is evaluated, validated, sliced by each of its columns and searched for suspects.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import warnings
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import boxscore
from boxscore.cli import main as run_command
from boxscore.errors import BoxscoreError
from support.column_archives import Arrays, member_bytes, prepare

__all__ = ["one", "prepare"]

Rng = np.random.Generator

ODD: list[Any] = [None, True, 5, -1, 2.5, "x", "", "\ud800", [], [1], ["a"], [[1]], {}, {"a": 1}, 1 << 70]
DTYPES = ["f4", ">f8", "i4", "i8", "u8", "u1", "?", "c16", "M8[D]", "m8[s]", "U3", "S3", "V8", "f2"]
VALUES = [np.nan, np.inf, -1.0, 0.0, 1e308, -1e-300, 2.0**31, 3.0, 1e-9]


# ---------------------------------------------------------------- changes of members


def _pick(rng: Rng, values: Any) -> Any:
    values = list(values)
    return values[int(rng.integers(len(values)))]


def _some(rng: Rng, arrays: Arrays) -> str:
    return str(_pick(rng, [name for name in arrays if name != "header"]))


def reshape(rng: Rng, arrays: Arrays) -> None:
    name = _some(rng, arrays)
    a = arrays[name]
    forms: list[Callable[[], Any]] = [
        lambda: a[:-1],
        lambda: a[:0],
        lambda: np.concatenate([a, a[:1]]),
        lambda: a.ravel(),
        lambda: a[None],
        lambda: a[..., None],
        lambda: a.ravel()[0],
        lambda: a.T,
        lambda: a[:1],
    ]
    arrays[name] = np.array(_pick(rng, forms)())


def retype(rng: Rng, arrays: Arrays) -> None:
    name = _some(rng, arrays)
    with warnings.catch_warnings(), contextlib.suppress(TypeError, ValueError, OverflowError):
        warnings.simplefilter("ignore")
        arrays[name] = arrays[name].astype(_pick(rng, DTYPES))


def revalue(rng: Rng, arrays: Arrays) -> None:
    name = _some(rng, arrays)
    a = np.array(arrays[name])
    if a.size:
        with warnings.catch_warnings(), contextlib.suppress(TypeError, ValueError, OverflowError):
            warnings.simplefilter("ignore")
            at = int(rng.integers(a.size))
            a.flat[at] = np.array(_pick(rng, VALUES)).astype(a.dtype)
        arrays[name] = a


def scale(rng: Rng, arrays: Arrays) -> None:
    name = _some(rng, arrays)
    with contextlib.suppress(TypeError), np.errstate(all="ignore"):
        arrays[name] = arrays[name] * np.array(_pick(rng, [3, -1, 0])).astype(arrays[name].dtype)


def nudge(rng: Rng, arrays: Arrays) -> None:
    """Move a size by a few units in the last place, within and beyond what rounding gives."""
    name = _pick(rng, ["sizes", "boxes"])
    if name in arrays and arrays[name].dtype == np.float64 and arrays[name].size:
        a = np.array(arrays[name])
        at = int(rng.integers(a.size))
        a.flat[at] *= 1 + int(rng.integers(-40, 41)) * 2.0**-53
        arrays[name] = a


def permute(rng: Rng, arrays: Arrays) -> None:
    name = _some(rng, arrays)
    if arrays[name].ndim:
        arrays[name] = arrays[name][rng.permutation(len(arrays[name]))]


def drop(rng: Rng, arrays: Arrays) -> None:
    del arrays[_some(rng, arrays)]


def rename(rng: Rng, arrays: Arrays) -> None:
    name = _some(rng, arrays)
    new = _pick(
        rng, ["column:y", "image_column:y", "extra", "rotated", "scores", "ids", "header2", name + "s"]
    )
    arrays[new] = arrays.pop(name)


def add(rng: Rng, arrays: Arrays) -> None:
    name = _pick(
        rng, ["extra", "column:y", "scores", "rotated", "mask_rows", "keypoint_count", "ids", "area"]
    )
    arrays[name] = np.zeros(int(rng.integers(5)))


def fortran(rng: Rng, arrays: Arrays) -> None:
    name = _some(rng, arrays)
    arrays[name] = np.asfortranarray(arrays[name]) if arrays[name].ndim else arrays[name]


# ---------------------------------------------------------------- changes of the header


def header_key(rng: Rng, arrays: Arrays) -> None:
    header = arrays["header"]
    key = _pick(rng, [*header, "ids", "new", "scores", "boxes_given"])
    if rng.random() < 0.3:
        header.pop(key, None)
    else:
        header[key] = copy.deepcopy(_pick(rng, ODD))


def header_item(rng: Rng, arrays: Arrays) -> None:
    header = arrays["header"]
    key = _pick(rng, [*header])
    values = header[key]
    if isinstance(values, list) and values:
        at = int(rng.integers(len(values)))
        choice = int(rng.integers(5))
        if choice == 0:
            values[at] = copy.deepcopy(_pick(rng, ODD))
        elif choice == 1:
            values.pop(at)
        elif choice == 2:
            values.append(values[at])
        elif choice == 3:
            values.reverse()
        else:
            values[at] = values[0]
    elif isinstance(values, dict):
        name = _pick(rng, [*values, "y"])
        values[name] = copy.deepcopy(_pick(rng, [*ODD, [1, 2, 3, 4], ["a", None, 1.5, True]]))


CHANGES = [
    *(reshape, retype, revalue, scale, nudge, permute, drop, rename, add, fortran),
    *(header_key, header_item, header_item),
]


# ---------------------------------------------------------------- the archive


def spoil_npy(rng: Rng, content: bytes) -> bytes:
    """Change the header of one array."""
    data = bytearray(content)
    kind = int(rng.integers(6))
    if kind == 0:
        data[int(rng.integers(6, 10))] = int(rng.integers(256))
    elif kind == 1:
        return bytes(data.replace(b"(4,", b"(%d," % _pick(rng, [5, 3, 44, 10**12, 10**30]), 1))
    elif kind == 2:
        return bytes(data.replace(b"False", b"True ", 1))
    elif kind == 3:
        return bytes(data[: int(rng.integers(len(data)))])
    elif kind == 4:
        return bytes(data) + bytes(int(rng.integers(1, 20)))
    else:
        at = int(rng.integers(10, min(70, len(data))))
        data[at] = int(rng.integers(32, 127))
    return bytes(data)


def archive_bytes(rng: Rng, members: dict[str, bytes]) -> bytes:
    """Write an archive; in every fifth case with something wrong about it."""
    buffer = io.BytesIO()
    kind = int(rng.integers(40))
    method = zipfile.ZIP_DEFLATED if kind == 0 else zipfile.ZIP_STORED
    with zipfile.ZipFile(buffer, "w", method) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of two members with one name
        for name, content in members.items():
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), content, compress_type=method)
        if kind == 1:
            name = _pick(rng, members)
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), members[name])
        if kind == 2:  # a second entry for the bytes of a member
            info = copy.copy(_pick(rng, file.filelist))
            info.filename = _pick(rng, ["extra.npy", "column:x.npy", "notes.txt", info.filename])
            file.filelist.append(info)
        if kind == 3:  # an entry that reaches over the next
            info = _pick(rng, file.filelist)
            info.file_size = info.compress_size = info.file_size + int(rng.integers(1, 300))
        if kind == 4:
            _pick(rng, file.filelist).file_size += 8
        if kind == 5:
            info = _pick(rng, file.filelist)
            info.header_offset = max(0, info.header_offset + int(rng.integers(-30, 30)))
    data = bytearray(buffer.getvalue())
    if kind == 6:
        data = data[: int(rng.integers(len(data)))]
    if kind == 7:
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    if kind == 8:
        data = bytearray(b"PK\x03\x04") + data
    return bytes(data)


def mutant(rng: Rng, good: Arrays) -> bytes:
    """Return the bytes of a spoilt file of columns."""
    arrays = {name: copy.deepcopy(value) for name, value in good.items()}
    for _ in range(int(rng.integers(0, 4))):
        with contextlib.suppress(IndexError, ValueError, TypeError):  # the change does not fit what is left
            _pick(rng, CHANGES)(rng, arrays)
    members = {name: member_bytes(array) for name, array in arrays.items()}
    if rng.random() < 0.15:
        name = _pick(rng, members)
        members[name] = spoil_npy(rng, members[name])
    return archive_bytes(rng, members)


# ---------------------------------------------------------------- what a file that was taken must be


def check(table: Any, path: Path) -> None:
    """Read a file again, slowly, and compare."""
    with zipfile.ZipFile(path) as archive, np.load(path, allow_pickle=False) as content:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        assert len(set(names)) == len(names)
        assert sum(info.file_size for info in archive.infolist()) < path.stat().st_size
        arrays = {name: content[name] for name in names}
    header = json.loads(arrays["header"].tobytes())
    count = len(arrays["image"])
    for column in table.schema.needed:
        values = getattr(table, column.name)
        given = np.array(header[column.name], object) if column.name in header else arrays[column.name]
        assert len(values) == count
        assert values.tolist() == given.tolist()
        if column.name not in header:
            assert values.dtype == given.dtype
            assert given.shape == (count, *column.shape)
    for (x1, y1, x2, y2), sides in zip(arrays["boxes"].tolist(), arrays["sizes"].tolist(), strict=True):
        for low, high, side in ((x1, x2, sides[0]), (y1, y2, sides[1])):
            assert side >= 0
            off = abs(Fraction(side) - (Fraction(high) - Fraction(low)))
            assert off <= 5 * Fraction(2) ** -52 * max(abs(Fraction(low)), abs(Fraction(high)))
    if table.schema.name == "ground truth":
        assert all(type(one) in (int, str) for one in table.ids.tolist())
        check_vocabularies(table, header, arrays)
    assert {name for name in names if name.startswith("column:")} == {
        f"column:{name}" for name, values in header.get("columns", {}).items() if values is None
    }
    assert all(len(values) == count for values in table.columns.values())


def check_vocabularies(table: Any, header: Any, arrays: Arrays) -> None:
    """Compare images and classes; detections have those of the ground truth."""
    assert table.images.ids.tolist() == header["image_ids"]
    assert table.images.file_names.tolist() == header["file_names"]
    assert table.categories.ids.tolist() == header["category_ids"]
    assert table.categories.names.tolist() == header["category_names"]
    assert all(type(name) is str for name in header["category_names"])
    assert np.array_equal(table.images.sizes, arrays["image_sizes"], equal_nan=True)
    assert not (arrays["image_sizes"] < 0).any()
    assert all(len(values) == len(table.images) for values in table.images.columns.values())


def use(folder: Path, options: list[str], table: Any) -> None:
    """Run the commands that read such files; none may fail on a file that was taken."""
    sliced = [*table.images.columns, *(table.columns if table.schema.name == "ground truth" else ())]
    slices = [("slices", "--by", name) for name in sliced]
    for command, *more in (("evaluate",), ("validate",), ("suspects",), *slices):
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            status = run_command([command, *options, *more])
        text = errors.getvalue()
        assert status in (0, 1) or "be in the ground truth" in text, (command, more, text)


def one(rng: Rng, good: dict[str, Arrays], folder: Path, *, commands: float = 0.25) -> str:
    """Make a mutant of the ground truth or of the detections and read it; say what became of it.

    ``commands`` is the share of the mutants taken that every command reads as well.
    """
    kind = _pick(rng, good)
    path = folder / f"{kind}.npz"
    path.write_bytes(mutant(rng, good[kind]))
    truth = folder / "truth.npz"
    sides = {"gt": path, "dt": folder / "good_dt.npz"} if kind == "gt" else {"gt": truth, "dt": path}
    try:
        if kind == "gt":
            table: Any = boxscore.load_ground_truth(path, format="columns")
        else:
            own = boxscore.load_ground_truth(truth)
            table = boxscore.load_detections(path, own, format="columns")
            if not (table.images is own.images and len(table) == len(np.load(path)["image"])):
                return "taken with other vocabularies"
        parts = (table.masks, table.keypoints)
        if parts[0] is not None:
            rows = np.flatnonzero(~parts[0].missing)
            parts[0][rows].area  # noqa: B018
    except BoxscoreError:
        return "refused"
    check(table, path)
    if rng.random() < commands:
        use(folder, [f"--{side}={file}" for side, file in sides.items()], table)
    return "taken"
