"""Store image labels: classes verified absent, verified present, or not annotated exhaustively.

Goal
----
Federated data sets (LVIS, Open Images) do not annotate every class in every image. A table has the known
labels per image and class; the protocol's ``labels`` rules apply them.

Conventions
-----------
- ``negative``: verified absent. ``positive``: verified present. ``not_exhaustive``: present, but not every
  object is annotated. A pair may have several kinds.
- Rows are in file order; repeated rows count once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.checks import Place
from boxscore._utils.ordering import among
from boxscore._utils.records import record
from boxscore.data.vocabulary import Categories, Id, Images, as_ids, read_only
from boxscore.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

ImageLabelKind = Literal["negative", "positive", "not_exhaustive"]
IMAGE_LABEL_KINDS: tuple[ImageLabelKind, ...] = get_args(ImageLabelKind)


@record(frozen=True, eq=False, repr=False)
class ImageLabels:
    """Image labels, one row each.

    Attributes
    ----------
    image, category : ndarray of int32, [L]
        Row numbers of the ground truth's images and classes.
    kind : ndarray of int8, [L]
        Position in :data:`IMAGE_LABEL_KINDS`.
    """

    image: NDArray[np.int32]
    category: NDArray[np.int32]
    kind: NDArray[np.int8]

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, read_only(getattr(self, field.name)))

    def __len__(self) -> int:
        return len(self.image)

    def __repr__(self) -> str:
        counts = np.bincount(self.kind, minlength=len(IMAGE_LABEL_KINDS)).tolist()
        texts = [f"{count:,} {kind}" for kind, count in zip(IMAGE_LABEL_KINDS, counts, strict=True) if count]
        return f"ImageLabels: {', '.join(texts) or 'none'}"

    @classmethod
    def from_arrays(
        cls,
        image_ids: Sequence[Id] | NDArray[Any],
        category_ids: Sequence[Id] | NDArray[Any],
        kinds: Sequence[ImageLabelKind] | NDArray[Any],
        *,
        images: Images,
        categories: Categories,
        source: str = "image labels",
        place: Place | None = None,
    ) -> ImageLabels:
        """Build a table from arrays, one row per label.

        Parameters
        ----------
        image_ids, category_ids : array_like, [L]
            Ids; classes also by name.
        kinds : sequence of {"negative", "positive", "not_exhaustive"}, [L]
        images, categories : Images, Categories
            The images and classes of the ground truth.
        source : str
            Name of the data in messages.
        place : callable, optional
            Returns the name of row ``i`` for messages.

        Returns
        -------
        ImageLabels

        Raises
        ------
        InputError
            When lengths differ, or an image, class or kind is unknown.

        Examples
        --------
        >>> images, classes = Images.build([1, 2]), Categories.build([7, 8], names=["cat", "dog"])
        >>> ImageLabels.from_arrays([1, 2], ["cat", 8], ["negative"] * 2, images=images, categories=classes)
        ImageLabels: 2 negative
        """
        where = place or (lambda row: f"row {row} of {source}")
        ids = as_ids(image_ids, name="image ids")
        checks.same_length(len(ids), of="image ids", category_ids=category_ids, kinds=kinds)
        # Look up all images and classes in one call each; report the first unknown one.
        image = images.rows(ids)
        category = categories.rows_by_id_or_name(as_ids(category_ids, name="category ids").tolist())
        for rows, given, name in ((image, ids, "image_id"), (category, category_ids, "category_id")):
            if len(rows) and rows.min() < 0:
                row = int(np.argmin(rows))
                got = repr(as_ids(given, name=name).tolist()[row])
                raise InputError(name, "be in the ground truth", got=got, place=where(row))
        # Store the kind as int8.
        number = {kind: position for position, kind in enumerate(IMAGE_LABEL_KINDS)}
        wrong = next((row for row, kind in enumerate(kinds) if kind not in number), None)
        if wrong is not None:
            rule = f"be one of {', '.join(IMAGE_LABEL_KINDS)}"
            raise InputError("kind", rule, got=repr(kinds[wrong]), place=where(wrong))
        return cls(image, category, np.array([number[kind] for kind in kinds], dtype=np.int8))

    def of(self, *kinds: ImageLabelKind) -> ImageLabels:
        """Return the rows of some kinds.

        Parameters
        ----------
        *kinds : {"negative", "positive", "not_exhaustive"}

        Returns
        -------
        ImageLabels
        """
        wanted = [IMAGE_LABEL_KINDS.index(kind) for kind in kinds]
        return self._take(np.isin(self.kind, wanted))

    def says(self, image: NDArray[Any], category: NDArray[Any], *kinds: ImageLabelKind) -> NDArray[np.bool_]:
        """Return whether each pair of image and class has a label of one of these kinds.

        Parameters
        ----------
        image, category : ndarray of int, [N]
            Row numbers.
        *kinds : {"negative", "positive", "not_exhaustive"}

        Returns
        -------
        ndarray of bool, [N]
        """
        labels = self.of(*kinds)
        if not len(labels) or not len(image):
            return np.zeros(len(image), dtype=bool)
        width = max(int(labels.category.max()), int(np.max(category))) + 1
        height = max(int(labels.image.max()), int(np.max(image))) + 1
        known = labels.image.astype(np.int64) * width + labels.category
        return among(known, np.asarray(image, dtype=np.int64) * width + category, height * width)

    def renumbered(
        self, *, images: NDArray[Any] | None = None, categories: NDArray[Any] | None = None
    ) -> ImageLabels:
        """Renumber images and classes.

        Parameters
        ----------
        images, categories : ndarray of int, optional
            The new row of each old row; -1 drops its labels.

        Returns
        -------
        ImageLabels
        """
        image = self.image if images is None else images[self.image]
        category = self.category if categories is None else categories[self.category]
        known = (image >= 0) & (category >= 0)
        return ImageLabels(
            image[known].astype(np.int32, copy=False),
            category[known].astype(np.int32, copy=False),
            self.kind[known],
        )

    @classmethod
    def joined(cls, parts: Iterable[ImageLabels]) -> ImageLabels:
        """Concatenate labels that use the same row numbers.

        Parameters
        ----------
        parts : iterable of ImageLabels
            At least one.

        Returns
        -------
        ImageLabels
        """
        columns = zip(*((part.image, part.category, part.kind) for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def to_pandas(self, images: Images, categories: Categories) -> pd.DataFrame:
        """Return ``image_id, category_id, class, kind``, one row per label.

        Parameters
        ----------
        images, categories : Images, Categories
            The vocabularies of the row numbers.

        Returns
        -------
        DataFrame
        """
        import pandas as pd

        kinds = np.array(IMAGE_LABEL_KINDS, dtype=object)
        return pd.DataFrame(
            {
                "image_id": images.ids[self.image],
                "category_id": categories.ids[self.category],
                "class": categories.names[self.category],
                "kind": kinds[self.kind],
            }
        )

    def _take(self, rows: NDArray[Any]) -> ImageLabels:
        return ImageLabels(self.image[rows], self.category[rows], self.kind[rows])
