"""Determine the convention of the numbers in a model's boxes, and convert them.

Conventions
-----------
One convention applies to a file: the user's, otherwise that of the tags, otherwise the one that fits the
numbers of all boxes. If several fit, there is an error with the evidence. The choice is never made per box,
and never uses the ground truth.

References
----------
Kosmos-2's cells: ``patch_index_to_coordinate`` of Transformers' processing_kosmos2.py. Florence-2's centers:
``dequantize`` of its processing_florence2.py. PaliGemma's 1024 steps: big_vision's paligemma README.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import counted
from boxscore.errors import InputError

REPEATED = ("keep", "once")
"""Options for boxes that an answer repeats exactly."""


def checked_coordinates(coordinates: str) -> str:
    """Check the user's convention of coordinates."""
    return checks.one_of(coordinates, tuple(COORDINATES), name="coordinates")


def checked_repeated(repeated: str) -> str:
    """Check the user's choice for repeated boxes."""
    return checks.one_of(repeated, REPEATED, name="repeated")


class Convention(NamedTuple):
    """A convention: fractions of the image in steps, with or without half a step added; x or y first.

    ``steps`` is 0 for pixels.
    """

    what: str
    steps: float
    center: float = 0.0
    y_first: bool = False


COORDINATES = {
    "pixels": Convention("pixels", 0),
    "1000": Convention("thousandths of the image's sides", 1000),
    "1000-yx": Convention("thousandths, y before x", 1000, y_first=True),
    "999": Convention("parts of 999", 999),
    "unit": Convention("fractions of the image's sides", 1),
    "unit-yx": Convention("fractions, y before x", 1, y_first=True),
    "percent": Convention("percent of the image's sides", 100),
    "florence-2": Convention("the thousand bins of Florence-2", 1000, center=0.5),
    "paligemma": Convention("PaliGemma's 1,024 bins, y before x", 1024, y_first=True),
    "kosmos-2": Convention("Kosmos-2's 32 x 32 cells", 32, center=0.5),
    "molmo": Convention("Molmo's points, in percent", 100),
}
"""The conventions by name: the values of ``--coordinates``."""

OUTSIDE = 0.02
"""Fraction of a side by which a box may exceed its image."""

STRAY = 0.01
"""Fraction of boxes that is ignored: a model invents a few in any convention."""

MANY = 0.1
"""Fraction of boxes outside their image that a model does not invent."""

ENOUGH, REACHED = 100, 0.8
"""Boxes that would exceed the side of a small image if they were thousandths, and the limit of small,
relative to 1000."""


FULL = 0.9
"""Fraction of the long sides that boxes in pixels reach if there are ``ENOUGH`` of them."""

LARGEST_INPUT = 994
"""Largest side of a model's input below 1000, a multiple of 14, 16, 28 or 32."""


class Evidence(NamedTuple):
    """The evidence in the numbers of a file without tags.

    Attributes
    ----------
    boxes : int
    largest : float
        The largest number, ignoring one box in a hundred.
    has_decimals : bool
    outside : int or None
        Number of boxes that exceed their image if they are pixels; None if a size is unknown.
    largest_side : float
        Largest side of the images of these boxes; NaN if unknown.
    is_one_square : bool
        Whether all these images are 1000 x 1000 pixels.
    keys : tuple of str
        Keys of the boxes, most frequent first.
    reach : float
        Largest number along the longer sides, relative to them, ignoring one box in a hundred.
    may_be_enlarged : bool
        Whether boxes can be pixels of an input that is larger than the image: its size is unknown, and they
        stay inside a rectangle with the aspect ratio of the image, or many exceed the image and 1000.
    """

    boxes: int
    largest: float
    has_decimals: bool
    outside: int | None
    largest_side: float
    is_one_square: bool
    keys: tuple[str, ...]
    reach: float = float("nan")
    may_be_enlarged: bool = False

    @classmethod
    def of(
        cls, written: FloatArray, sizes: FloatArray, keys: Sequence[str], *, input_is_known: bool = False
    ) -> Evidence:
        """Gather the evidence of boxes as written, [N, 4], in images of these sizes, [N, 2]."""
        count = len(written)
        ends = np.sort(written.max(axis=1, initial=0))
        known = not np.isnan(sizes).any()
        passing = (written > np.tile(sizes, 2) * (1 + OUTSIDE)).any(axis=1)
        # Pixels of an enlarged input keep the aspect ratio: thousandths use the whole of the shorter side.
        largest = float(ends[count - 1 - int(count * STRAY)]) if count else 0.0
        far = np.maximum(written[:, :2], written[:, 2:])
        sides = np.where(sizes[:, :1] >= sizes[:, 1:], [[0, 1]], [[1, 0]])
        far, ordered = (np.take_along_axis(each, sides, axis=1) for each in (far, sizes))
        along = np.sort(far[:, 0] / ordered[:, 0])
        bound = max(largest, 1000) * ordered[:, 1] / ordered[:, 0] * (1 + OUTSIDE)
        return cls(
            boxes=count,
            largest=largest,
            has_decimals=bool((written != np.rint(written)).any()),
            outside=int(passing.sum()) if known else None,
            largest_side=float(sizes.max(initial=0)) if known else float("nan"),
            is_one_square=bool((sizes == 1000).all()),
            keys=tuple(key for key, _ in Counter(filter(None, keys)).most_common(3)),
            reach=float(along[count - 1 - int(count * STRAY)]) if count and known else float("nan"),
            may_be_enlarged=known
            and not input_is_known
            and (
                (int((far[:, 1] > bound).sum()) <= STRAY * count and not LARGEST_INPUT < largest <= 1000)
                or (largest > 1000 and int(passing.sum()) > MANY * count)
            ),
        )

    def __str__(self) -> str:
        parts = [f"{counted(self.boxes, 'box')} with numbers up to {self.largest:g}"]
        parts += [] if self.has_decimals else ["no decimals"]
        if self.outside is None:
            parts.append("images of unknown size")
        else:
            parts.append(f"{self.outside} of them outside their image if they are pixels")
            parts.append(f"a largest side of {self.largest_side:g} pixels")
        parts += [f"the key {', '.join(self.keys)}"] if self.keys else []
        return ", ".join(parts)

    @property
    def candidates(self) -> tuple[str, ...]:
        """The possible conventions, the most likely first."""
        if not self.boxes:
            return ("pixels",)
        is_y_first = "box_2d" in self.keys
        fits = self.outside is None or self.outside <= STRAY * self.boxes
        if self.largest <= 1.5:
            fractions = ("unit-yx", "unit") if is_y_first else ("unit",)
            return fractions if self.has_decimals else (*fractions, "pixels")
        if self.largest > 1000:
            return ("pixels",)
        # In squares of 1000, pixels are thousandths.
        grid = "1000-yx" if is_y_first else "1000"
        is_same = self.is_one_square and not is_y_first
        possible = [] if is_same or self._would_have_passed else [grid]
        possible += ["pixels"] if fits or self.may_be_enlarged else []
        possible += ["percent"] if self.largest <= 100 else []
        return tuple(possible) or (grid,)

    @property
    def needs_input(self) -> bool:
        """Return whether boxes in pixels exceed their images, so that they need the size of the input."""
        return self.outside is not None and self.outside > STRAY * self.boxes and self.may_be_enlarged

    @property
    def _would_have_passed(self) -> bool:
        """Return whether so many boxes in such small images can hardly be thousandths."""
        is_small = self.largest <= self.largest_side <= REACHED * 1000
        return self.boxes >= ENOUGH and is_small and self.reach >= FULL


class Chosen(NamedTuple):
    """The convention of a file, and the reason."""

    name: str
    reason: str


def chosen_coordinates(
    said: str | None, notations: Sequence[tuple[str, str]], evidence: Evidence, *, place: str
) -> Chosen:
    """Choose the convention of a file.

    ``notations`` are those of the boxes that were read from tags, each with its convention.
    """
    # Prefer the user's choice, then tags, which have one convention each.
    if said is not None:
        return Chosen(said, "as given")
    counts = Counter(notations)
    if counts:
        names = {coordinates for _, coordinates in counts}
        tags = ", ".join(
            f"{number:,} in the notation of {name}" for (name, _), number in counts.most_common()
        )
        if len(names) == 1:
            return Chosen(names.pop(), f"by their tags: {tags}")
        raise InputError(
            "boxes of one file",
            "be in one convention of coordinates",
            got=tags,
            place=place,
            cause=f"say which with --coordinates {'|'.join(sorted(names))} (in Python coordinates=)",
        )
    # Then use the numbers, if only one convention fits.
    candidates = evidence.candidates
    inputs = "pixels of an enlarged input need input_width and input_height in each answer"
    if candidates == ("pixels",) and evidence.needs_input:
        rule = "be inside their images if they are pixels of the images"
        raise InputError("boxes", rule, got=str(evidence), place=place, cause=inputs)
    if len(candidates) == 1:
        return Chosen(candidates[0], f"by their numbers: {evidence}" if evidence.boxes else "no boxes")
    raise InputError(
        "coordinates of boxes",
        f"be in one convention; these can be {' or '.join(candidates)}",
        got=str(evidence),
        place=place,
        cause=f"say which with --coordinates {'|'.join(candidates)} (in Python coordinates=)"
        + (f"; {inputs}" if evidence.needs_input and "pixels" in candidates else ""),
    )


def in_fractions(written: FloatArray, name: str) -> FloatArray:
    """Return corners, x first, of boxes as written in a relative convention, [N, 4]: fractions."""
    convention = COORDINATES[name]
    corners = written[:, [1, 0, 3, 2]] if convention.y_first else written
    parts = corners + convention.center
    if name == "kosmos-2":
        parts[_in_one_line(corners)] += (-0.5, -0.5, 0.5, 0.5)
    return np.asarray(parts / convention.steps)


def of_originals(written: FloatArray, sizes: FloatArray, inputs: FloatArray) -> FloatArray:
    """Convert boxes from pixels of the model's input, [N, 4], to pixels of the images.

    ``inputs`` and ``sizes`` are width and height of both, [N, 2]; if one is unknown, the other is used.
    """
    scale = sizes / inputs
    return np.asarray(written * np.tile(np.where(np.isnan(scale), 1.0, scale), 2))


def _in_one_line(cells: FloatArray) -> BoolArray:
    """Return whether two cells share a row or column: the box then encloses them, not their centers."""
    same: BoolArray = (cells[:, :2] == cells[:, 2:]).any(axis=1)
    return same
