"""Tables saved as columns: ``.npz`` files that read in no time.

Conventions
-----------
- A NumPy ``.npz`` archive, not compressed: one array a column, and a header in JSON with the vocabularies.
  It needs nothing but NumPy, here and in any other program; Parquet would need pyarrow.
- Every bit of a table comes back: corners and sizes are both kept.
- Nothing is unpickled, nothing is unpacked: an archive with pickled or compressed members is refused.
- Masks are kept as run-length codes, rasterised once and for all; they and keypoints are read only where
  they are compared.
"""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.files import write_atomically
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Images, as_ids
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._instance_columns import instance_arrays, masks_of, points_of
from boxscore.protocols.protocol import Similarity

__all__ = ["load_detections", "load_ground_truth", "save_columns"]

FORMAT_VERSION = 1
_COMMON = {"image": "i4", "category": "i4", "boxes": "f8", "sizes": "f8"}
_COLUMNS: Mapping[type, dict[str, str]] = {
    GroundTruth: {**_COMMON, "area": "f8", "crowd": "b1", "difficult": "b1", "ignore": "b1"},
    Detections: {**_COMMON, "scores": "f8"},
}
_HEADER: Mapping[str, type] = {
    **dict.fromkeys(("image_ids", "file_names", "category_ids", "category_names", "ids"), list),
    "left_out": dict,
}


def save_columns(table: GroundTruth | Detections, path: str | Path) -> None:
    """Save a table as columns.

    Parameters
    ----------
    table : GroundTruth or Detections
    path : str or Path
        Must end in ``.npz``.

    Raises
    ------
    InputError
        When the name does not end in ``.npz``, the file cannot be written, or a mask is none.
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise InputError("a file of columns", "be named *.npz", got=str(path))
    header: dict[str, Any] = {
        "boxscore": FORMAT_VERSION,
        "kind": type(table).__name__,
        "image_ids": table.images.ids.tolist(),
        "file_names": table.images.file_names.tolist(),
        "category_ids": table.categories.ids.tolist(),
        "category_names": table.categories.names.tolist(),
    }
    arrays = {name: getattr(table, name) for name in _COLUMNS[type(table)]}
    arrays["image_sizes"] = table.images.sizes
    arrays |= instance_arrays(table)
    if isinstance(table, GroundTruth):
        if table.ids.dtype == object:
            header["ids"] = table.ids.tolist()
        else:
            arrays["ids"] = table.ids
        for name, values in table.columns.items():
            if values.dtype != object:
                arrays[f"column:{name}"] = values
    else:
        header["left_out"] = dict(table.left_out)
        header["boxes_given"] = table.boxes_given
    arrays["header"] = np.frombuffer(json.dumps(header).encode("utf-8"), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    write_atomically(path, buffer.getvalue())


def load_ground_truth(path: Path, *, similarity: Similarity = "box") -> GroundTruth:
    """Load a ground truth saved by :func:`save_columns`; masks and keypoints where ``similarity`` needs them.

    Raises
    ------
    FileFormatError
        When the file is not one, or its columns break a rule.
    """
    header, arrays = _read(path, GroundTruth, similarity)
    images, categories = _vocabularies(header, arrays, path)
    ids = arrays.get("ids")
    columns = {
        name.removeprefix("column:"): values for name, values in arrays.items() if name.startswith("column:")
    }
    return GroundTruth(
        images=images,
        categories=categories,
        **_own_columns(arrays, GroundTruth),
        **_instances(arrays, images, path),
        ids=as_ids(header["ids"], name="ids") if ids is None else ids,
        columns=columns,
        source=str(path),
    )


def load_detections(path: Path, *, similarity: Similarity = "box") -> Detections:
    """Load detections saved by :func:`save_columns`, with their own vocabularies.

    Masks and keypoints are read where ``similarity`` needs them.

    Raises
    ------
    FileFormatError
        When the file is not one, or its columns break a rule.
    """
    header, arrays = _read(path, Detections, similarity)
    images, categories = _vocabularies(header, arrays, path)
    return Detections(
        images=images,
        categories=categories,
        **_own_columns(arrays, Detections),
        **_instances(arrays, images, path),
        boxes_given=bool(header.get("boxes_given", True)),
        left_out=header.get("left_out", {}),
        source=str(path),
    )


def _own_columns(arrays: Mapping[str, NDArray[Any]], kind: type) -> dict[str, Any]:
    return {name: arrays[name] for name in _COLUMNS[kind]}


def _instances(arrays: dict[str, NDArray[Any]], images: Images, path: Path) -> dict[str, Any]:
    """Columns ``masks``, ``keypoints`` and ``keypoint_count``, as far as they were read."""
    image = arrays["image"]
    masks = masks_of(arrays, images.sizes[image], place=lambda row: f"row {row} of {path}", source=str(path))
    return {**points_of(arrays, len(image), source=str(path)), **({} if masks is None else {"masks": masks})}


def _wanted(name: str, similarity: Similarity) -> bool:
    """Whether a member is read: parts of masks and keypoints only for what compares them."""
    if name.startswith("mask_"):
        return similarity in ("mask", "boundary")
    return similarity == "keypoints" or not name.startswith("keypoint")


def _read(path: Path, kind: type, similarity: Similarity) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read header and columns, and check that they are what a table of this kind is made of."""
    try:
        with zipfile.ZipFile(path) as archive:
            if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
                raise FileFormatError("a file of columns", "not be compressed", got=str(path))
        with warnings.catch_warnings(), np.load(path, allow_pickle=False) as content:
            warnings.simplefilter("error")  # of headers in other programs' form
            arrays = {name: content[name] for name in content.files if _wanted(name, similarity)}
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):
            raise ValueError("a member that is no array")
        header = json.loads(arrays.pop("header").tobytes())
    except FileFormatError:
        raise
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror or error}.") from None
    except Exception:  # whatever zipfile, NumPy and its reader of headers have to say of other bytes
        raise FileFormatError("a file of columns", "be written by boxscore convert", got=str(path)) from None
    if not isinstance(header, dict) or header.get("boxscore") != FORMAT_VERSION:
        raise FileFormatError(
            "a file of columns",
            f"be of version {FORMAT_VERSION}",
            got=str(path),
            cause="written by a newer boxscore?",
        )
    if header.get("kind") != kind.__name__:
        wanted = "ground truth" if kind is GroundTruth else "detections"
        raise FileFormatError(str(path), f"hold {wanted}", got=f"a {header.get('kind')} table")
    for name, form in _HEADER.items():
        if not isinstance(header.get(name, form()), form):
            rule = f"have a {'list' if form is list else 'table'} of {name.replace('_', ' ')}"
            got = f"a {type(header[name]).__name__}"
            raise FileFormatError("the header", rule, got=got, place=str(path))
    _check_columns(path, kind, header, arrays)
    return header, arrays


def _check_columns(path: Path, kind: type, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    def refuse(name: str, rule: str, got: object) -> FileFormatError:
        return FileFormatError(f"column {name}", rule, got=got, place=str(path), cause="a damaged file?")

    count = len(arrays["image"]) if "image" in arrays else 0
    shapes = {"boxes": (count, 4), "sizes": (count, 2), "image_sizes": (len(header.get("image_ids", ())), 2)}
    for name, code in {**_COLUMNS[kind], "image_sizes": "f8"}.items():
        if name not in arrays:
            raise refuse(name, "be there", "none")
        shape = shapes.get(name, (count,))
        if arrays[name].dtype != np.dtype(code) or arrays[name].shape != shape:
            raise refuse(
                name, f"be {np.dtype(code)} {list(shape)}", f"{arrays[name].dtype} {list(arrays[name].shape)}"
            )
    for name, size in (
        ("image", len(header["image_ids"])),
        ("category", len(header.get("category_ids", ()))),
    ):
        rows = arrays[name]
        if count and not 0 <= rows.min() <= rows.max() < size:
            raise refuse(name, f"be rows below {size}", f"{rows.min()} to {rows.max()}")

    def place(row: int) -> str:
        return f"row {row} of {path}"

    checks.finite(arrays["boxes"], name="box", place=place)
    checks.finite(arrays["sizes"], name="size", place=place)
    checks.sizes_not_negative(arrays["sizes"], place=place)
    if kind is Detections:
        checks.finite(arrays["scores"], name="score", place=place, limit=np.finfo(np.float64).max)
    else:
        checks.finite(arrays["area"], name="area", place=place, limit=np.inf)
        ids = arrays.get("ids", header.get("ids", ()))
        if len(ids) != count:
            raise refuse("ids", f"have {count} rows", len(ids))


def _vocabularies(
    header: dict[str, Any], arrays: dict[str, NDArray[Any]], path: Path
) -> tuple[Images, Categories]:
    try:
        images = Images.build(
            header["image_ids"], file_names=header["file_names"], sizes=arrays["image_sizes"].reshape(-1, 2)
        )
        categories = Categories.build(header["category_ids"], names=header["category_names"])
    except (KeyError, TypeError, InputError):
        raise FileFormatError("the header", "name images and classes", got=str(path)) from None
    if len(images) != len(header["image_ids"]) or len(categories) != len(header["category_ids"]):
        raise FileFormatError("ids", "be unique", got="repeated ids", place=str(path))
    return images, categories
