"""Read and write LVIS's lists of classes in the images of COCO files.

Conventions
-----------
- ``neg_category_ids`` lists the classes that are verified absent from an image,
  ``not_exhaustive_category_ids`` those of which not every object is annotated.
- A list that an image lacks is read as empty, with a warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boxscore._utils.text import counted_of, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.lookup import spelled_as
from boxscore.data.tables import GroundTruth
from boxscore.data.vocabulary import Categories, Id, Images, as_ids
from boxscore.extensions.federated.image_labels import ImageLabelKind, ImageLabels
from boxscore.formats._coco_records import whole

KINDS: Mapping[str, ImageLabelKind] = {
    "neg_category_ids": "negative",
    "not_exhaustive_category_ids": "not_exhaustive",
}
"""The kind of label that each list is, by key."""


def labels_of_records(
    records: Sequence[Any], images: Images, categories: Categories, path: Path
) -> ImageLabels:
    """Return the labels that image records list; a list is an attribute, None where it is missing."""
    for key in KINDS:
        missing = sum(getattr(image, key) is None for image in records)
        if missing:
            warn_user(
                f"{path}: {counted_of(missing, len(records), 'image')} {verb(missing, 'have')} no {key}; "
                "read as empty, where lvis-api stops with a KeyError.",
            )
    # Flatten both lists of every image into four columns, including the key for messages.
    ids: list[Any] = []
    classes: list[Any] = []
    kinds: list[ImageLabelKind] = []
    places: list[str] = []
    for image in records:
        for key, kind in KINDS.items():
            values = getattr(image, key) or []
            ids += [whole(image.id)] * len(values)
            classes += map(whole, values)
            kinds += [kind] * len(values)
            places += [key] * len(values)
    # Convert ids to the type of the file's categories, so that "7" and 7 are one class.
    return ImageLabels.from_arrays(
        ids,
        spelled_as(as_ids(classes, name="category ids"), categories.ids.tolist())[0],
        kinds,
        images=images,
        categories=categories,
        place=lambda row: f"{places[row]} of image {ids[row]!r} of {path}",
    )


def lists_by_image(table: GroundTruth, labels: ImageLabels) -> dict[str, list[list[Id]]]:
    """Return both lists of every image, by key."""
    lists: dict[str, list[list[Id]]] = {}
    for key, kind in KINDS.items():
        of_kind = labels.of(kind)
        lists[key] = [[] for _ in range(len(table.images))]
        for image, identifier in zip(
            of_kind.image.tolist(), table.categories.ids[of_kind.category].tolist(), strict=True
        ):
            lists[key][image].append(identifier)
    return lists
