"""Read image labels (Open Images) and class hierarchies from files.

Conventions
-----------
- Labels are a CSV file with the columns ``ImageID, LabelName, Confidence``: 1 for a class verified present, 0
  for one verified absent. Images and classes with labels but no boxes belong to the data set.

References
----------
Open Images: "Data Formats" of its download page.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from boxscore._utils.text import counted, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.alignment import with_labels
from boxscore.data.tables import GroundTruth
from boxscore.data.vocabulary import Categories, Images, as_ids
from boxscore.errors import FileFormatError
from boxscore.extensions.federated.hierarchy import Hierarchy
from boxscore.extensions.federated.image_labels import IMAGE_LABEL_KINDS, ImageLabels
from boxscore.formats import _json

ROWS_TOGETHER = 1 << 18
_COLUMNS = ("ImageID", "LabelName", "Confidence")


def read_hierarchy(path: str | Path) -> Hierarchy:
    """Read a hierarchy of classes from a JSON file.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Hierarchy

    Raises
    ------
    FileFormatError, InputError
        When the file is not JSON or not a hierarchy.
    """
    import msgspec

    path = Path(path)
    with _json.open_binary(path) as file:
        text = file.read()
    try:
        tree = msgspec.json.decode(text.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise FileFormatError("a hierarchy", "be JSON", got=str(error)[:120], place=str(path)) from None
    return Hierarchy.of(tree, source=str(path))


def hierarchy_of(hierarchy: str | Path | Mapping[str, Any]) -> Hierarchy:
    """Return the given hierarchy, or read it from a file."""
    return Hierarchy.of(hierarchy) if isinstance(hierarchy, Mapping) else read_hierarchy(hierarchy)


def with_image_labels(ground_truth: GroundTruth, path: Path) -> GroundTruth:
    """Return the ground truth with image labels from a file, and with their images and classes."""
    # Check and look up distinct texts once; rows hold positions.
    columns = _read(path)
    kinds = _kinds(*columns["Confidence"], path)
    for name in ("ImageID", "LabelName"):
        values, at = columns[name]
        empty = [number for number, value in enumerate(values) if not value.strip()]
        if empty:
            place = f"line {int(np.argmax(at == empty[0])) + 2} of {path}"
            raise FileFormatError(name, "be there in every row", got="nothing", place=place)
    # Add images and classes that only the file names.
    image_ids, image_at = columns["ImageID"]
    names, class_at = columns["LabelName"]
    ground_truth = _widen(ground_truth, image_ids, names)
    images, categories = ground_truth.images, ground_truth.categories
    # Add one row per label.
    labels = ImageLabels(
        images.rows(as_ids(image_ids, name="ImageID"))[image_at],
        categories.rows_by_id_or_name(names)[class_at],
        kinds,
    )
    _warn_of_contradictions(labels, path)
    return ground_truth.replaced(image_labels=labels)


def _warn_of_contradictions(labels: ImageLabels, path: Path) -> None:
    absent = labels.of("negative")
    count = int(labels.says(absent.image, absent.category, "positive").sum())
    if count:
        warn_user(
            f"{path}: {counted(count, 'label')} {verb(count, 'say')} 0 of a class that another label of "
            "the same image says 1 of. Both list the class; were two files joined?",
        )


def _read(path: Path) -> dict[str, tuple[list[str], Any]]:
    """Read the distinct texts of each column, and the index of each row among them."""
    import pandas as pd

    # Check the header before reading millions of lines.
    try:
        with _json.open_binary(path) as file:
            head = file.readline(1 << 16).decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}.") from None
    names = [name.strip().strip('"') for name in head.rstrip("\r\n").split(",")]
    for name in _COLUMNS:
        if name not in names:
            raise FileFormatError(
                "labels of images",
                "have the columns ImageID, LabelName and Confidence",
                got=f"no {name}",
                place=str(path),
                cause="is this the file of boxes?" if "XMin" in names else "",
            )
    try:
        # Read in chunks: store each distinct text once, and each cell as a number.
        known: dict[str, dict[Any, int]] = {name: {} for name in _COLUMNS}
        codes: dict[str, list[Any]] = {name: [np.empty(0, dtype=np.int32)] for name in _COLUMNS}
        with pd.read_csv(
            path,
            dtype=str,
            keep_default_na=False,
            usecols=list(_COLUMNS),
            encoding="utf-8-sig",
            compression=None,
            chunksize=ROWS_TOGETHER,
        ) as reader:
            for frame in reader:
                for name, table in known.items():
                    # pandas numbers the texts of a chunk; a dictionary maps them to their number in the file.
                    code, values = pd.factorize(frame[name].to_numpy(dtype=object), use_na_sentinel=False)
                    position_of = [table.setdefault(value, len(table)) for value in values.tolist()]
                    codes[name].append(np.array(position_of, dtype=np.int32)[code])
        return {
            name: (
                [value if isinstance(value, str) else "" for value in table],
                np.concatenate(codes.pop(name)),
            )
            for name, table in known.items()
        }
    except (ValueError, MemoryError) as error:
        got = str(error).splitlines()[0][:200]
        raise FileFormatError("labels of images", "be CSV", got=got, place=str(path)) from None


def _kinds(values: list[str], at: Any, path: Path) -> Any:
    kinds = np.full(len(at), -1, dtype=np.int8)
    for number, text in enumerate(values):
        kind = {"1": "positive", "1.0": "positive", "0": "negative", "0.0": "negative"}.get(text.strip())
        if kind is None:
            row = int(np.argmax(at == number))
            raise FileFormatError(
                "Confidence",
                "be 1 or 0",
                got=repr(text)[:40],
                place=f"line {row + 2} of {path}",
                cause="labels made by machines have fractions: take the labels that people verified",
            )
        kinds[at == number] = IMAGE_LABEL_KINDS.index(kind)
    return kinds


def _widen(ground_truth: GroundTruth, image_ids: list[str], names: list[str]) -> GroundTruth:
    """Return the ground truth with further images and classes, without objects."""
    # Add new images and classes to the vocabularies.
    old_images, old_categories = ground_truth.images, ground_truth.categories
    more = as_ids(image_ids, name="ImageID")
    more = more[old_images.rows(more) < 0]
    images = old_images if not len(more) else Images.union([Images.build(more), old_images])
    new = [
        name
        for name, row in zip(names, old_categories.rows_by_id_or_name(names).tolist(), strict=True)
        if row < 0
    ]
    categories = old_categories if not new else _more_classes(old_categories, new)
    # Map rows to the wider vocabularies, with one lookup each.
    image_rows, class_rows = images.rows(old_images.ids), categories.rows(old_categories.ids)
    wider = ground_truth.replaced(
        images=images,
        categories=categories,
        image=image_rows[ground_truth.image],
        category=class_rows[ground_truth.category],
    )
    return with_labels(wider, images=image_rows, categories=class_rows)


def _more_classes(categories: Categories, names: list[str]) -> Categories:
    ids = categories.ids.tolist()
    named = any(isinstance(identifier, str) for identifier in ids)
    first = max((identifier for identifier in ids if isinstance(identifier, int)), default=0) + 1
    fresh = names if named else [first + number for number in range(len(names))]
    return Categories.build([*ids, *fresh], names=[*categories.names.tolist(), *names])
