"""Choose how the numbers of boxes are read where neither column names nor options say so.

Conventions
-----------
- The evidence is the lines that a reading cannot explain: a box would have a negative side, or would extend
  beyond its image by more than :data:`SLACK` of its side. For images of unknown size, only the left and top
  borders are checked, and only lines that another reading explains count.
- Many such lines rule a reading out. A few (:func:`are_few`) do not, because they are as likely mistakes: if
  another reading remains, the file is refused with these lines.
- If several different readings remain, the user must choose. A reading that was chosen here is reported with
  its reason.
"""

from __future__ import annotations

import itertools

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore._utils.checks import Place
from boxscore._utils.text import counted_of, enumerated, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.boxes import BOX_FORMATS, BoxFormat, WrittenForm, are_few, box_convert
from boxscore.errors import BoxscoreWarning, InputError

MOST, SLACK = 0.02, 0.05
LARGEST_FRACTION = 1.5
"""Tolerance for predicted fractions beyond the image; in pixels, boxes are never all within 1.5 pixels."""

SHOWN = 3
"""Lines to show of those that a reading cannot explain."""

_WORDS = {
    "xyxy": "x1,y1,x2,y2",
    "xywh": "x,y,w,h from the corner",
    "cxcywh": "x,y,w,h from the center",
}


def are_fractions(boxes: FloatArray, place: Place) -> bool:
    """Whether coordinates [N, 4] can only be fractions of the image size; raise if most can, but not all."""
    units = Units()
    units.add(boxes, place)
    return units.are_fractions()


def may_be_fractions(boxes: FloatArray, place: Place) -> bool:
    """Whether all coordinates [N, 4] are small enough for fractions; raise if most are, but not all."""
    units = Units(2.0)
    units.add(boxes, place)
    return units.are_small()


class Units:
    """Whether coordinates are fractions of the image size or pixels; boxes arrive in chunks.

    Parameters
    ----------
    largest : float
        Largest coordinate of a fraction.
    """

    def __init__(self, largest: float = LARGEST_FRACTION) -> None:
        self._largest = largest
        self._count = self._beyond = self._fractions = 0
        self._first = ""

    def add(self, boxes: FloatArray, place: Place) -> None:
        """Add boxes [N, 4]."""
        self._count += len(boxes)
        # In pixels, the third number alone shows that most boxes are too large; otherwise check all four.
        beyond: BoolArray = np.abs(boxes[:, 2]) > self._largest
        if 2 * np.count_nonzero(beyond) <= len(boxes):
            beyond = np.any(np.abs(boxes) > self._largest, axis=1)
            others = boxes[~beyond]
            self._fractions += int((others != np.floor(others)).any(axis=1).sum())
        count = int(np.count_nonzero(beyond))
        self._beyond += count
        # Keep the first for a message.
        if count and not self._first:
            row = int(np.argmax(beyond))
            number = boxes[row][np.abs(boxes[row]) > self._largest][0]
            self._first = f"{number:g} in {place(row)}"

    def are_small(self) -> bool:
        """Whether no box is too large for fractions.

        Raises
        ------
        InputError
            If some are, but more boxes can only be fractions: a few lines must not turn all into pixels.
        """
        if self._fractions > self._beyond > 0:
            count = self._beyond
            raise InputError(
                "coordinates",
                "be fractions of the image size in all boxes, or in none",
                got=self._first,
                cause=f"{counted_of(count, self._count, 'box')} {verb(count, 'are')} beyond "
                f"{self._largest:g}, but {self._fractions:,} can only be fractions: correct {_those(count)}",
            )
        return not self._beyond

    def are_fractions(self) -> bool:
        """Whether coordinates can only be fractions: no box is too large, and some are not whole numbers."""
        return self.are_small() and self._fractions > 0

    @property
    def are_clearly_pixels(self) -> bool:
        """Whether most boxes so far are too large for fractions."""
        return 2 * self._beyond > self._count


def _those(count: int) -> str:
    return "that box" if count == 1 else "those boxes"


def _in_python(option: str) -> str:
    """Return an option, with the argument of the same meaning in Python."""
    return f"{option} (in Python box_format=)" if option.startswith("--") else option


def report_reading(source: str, reading: str, reason: str, advice: str = "") -> None:
    """Tell the user which reading was chosen, why, and how to choose another."""
    end = f"; {advice}" if advice else ""
    warn_user(BoxscoreWarning(f"{source}: {reading}, because {reason}{end}.", severity="note"))


def in_pixels(boxes: FloatArray, written: WrittenForm, sizes: FloatArray, *, place: Place) -> FloatArray:
    """Convert boxes [N, 4] in this form to pixels, x first, given image sizes [N, 2]."""
    boxes = written.x_first(boxes)
    if not written.fractions:
        return boxes
    unknown = np.isnan(sizes).any(axis=1)
    if unknown.any():
        row, rule = int(np.argmax(unknown)), "have a known size where boxes are fractions of it"
        raise InputError("an image", rule, got="none", place=place(row), cause=checks.GIVE_SIZES)
    pixels: FloatArray = boxes * np.tile(sizes, 2)
    return pixels


def reading_of(
    boxes: FloatArray,
    sizes: FloatArray,
    *,
    names: tuple[str, ...],
    usual: BoxFormat | None,
    option: str,
    source: str,
    place: Place,
    fractions: bool = False,
) -> BoxFormat:
    """Infer the form of boxes [N, 4], given image sizes [N, 2].

    ``usual`` is the form that other columns suggest; it wins unless the boxes rule it out. ``option`` is the
    option for the user to choose.
    """
    readings = Readings(names)
    readings.add(boxes, np.ones_like(sizes) if fractions else sizes, place)
    return readings.chosen(usual=usual, option=option, source=source)


class Readings:
    """Candidate forms of boxes, which arrive in chunks.

    Parameters
    ----------
    names : tuple of str
        Names of the columns; empty if the numbers have none.
    forms : tuple of str, optional
        The forms to choose from.
    most : float
        Largest fraction of boxes outside their image.
    """

    def __init__(
        self, names: tuple[str, ...], forms: tuple[BoxFormat, ...] | None = None, most: float = MOST
    ) -> None:
        self._names, self._most = names, most
        self._readings = forms or (BOX_FORMATS if len(names) == 1 else ("xywh", "cxcywh"))
        self._count = self._sized = 0
        self._negative = dict.fromkeys(self._readings, 0)
        self._outside = dict.fromkeys(self._readings, 0)
        self._outside_sized = dict.fromkeys(self._readings, 0)
        self._odd = dict.fromkeys(self._readings, 0)
        self._places: dict[BoxFormat, list[str]] = {form: [] for form in self._readings}
        self._as_first = dict.fromkeys(itertools.permutations(self._readings, 2), True)

    def add(self, boxes: FloatArray, sizes: FloatArray, place: Place) -> None:
        """Add boxes [N, 4], given image sizes [N, 2]; NaN if unknown."""
        self._count += len(boxes)
        outside: dict[BoxFormat, BoolArray] = {}
        with np.errstate(all="ignore"):
            corners = {form: box_convert(boxes, form, "xyxy") for form in self._readings}
            for form, sides in corners.items():
                extent = sides[:, 2:] - sides[:, :2]
                slack = SLACK * np.where(np.isnan(sizes), extent, sizes)
                outside[form] = np.any((sides[:, :2] < -slack) | (sides[:, 2:] > sizes + slack), axis=1)
            # Without sizes, do not count boxes that are outside in every reading.
            unknown = np.isnan(sizes).any(axis=1)
            self._sized += int((~unknown).sum())
            no_evidence: BoolArray = unknown & np.logical_and.reduce([*outside.values()])
            for form, sides in corners.items():
                negative = (sides[:, 2:] < sides[:, :2]).any(axis=1)
                outside[form] &= ~no_evidence
                self._negative[form] += int(negative.sum())
                self._outside[form] += int(outside[form].sum())
                self._outside_sized[form] += int((outside[form] & ~unknown).sum())
                odd = np.flatnonzero(negative | outside[form])
                self._odd[form] += len(odd)
                wanted = SHOWN - len(self._places[form])
                self._places[form] += [place(row) for row in odd[:wanted].tolist()]
            for pair in self._as_first:
                self._as_first[pair] &= np.array_equal(corners[pair[0]], corners[pair[1]])

    def chosen(self, *, usual: BoxFormat | None, option: str, source: str) -> BoxFormat:
        """Return the remaining form, and report it; ``usual`` wins unless the boxes rule it out."""
        # Prefer the usual form.
        left = [form for form in self._readings if not self._is_ruled_out(form)]
        if usual in left:
            return usual
        # A form with a few odd lines is as good as one without, because these may be mistakes.
        if len(left) == 1:
            if self._count:
                self._report(left[0], option, source)
            return left[0]
        # Forms that give the same corners for all boxes are equivalent.
        if left and all(self._as_first[left[0], other] for other in left[1:]):
            return left[0]
        # Do not guess.
        raise self._ambiguous(left, option, source)

    def _is_ruled_out(self, form: BoxFormat) -> bool:
        """Whether many boxes rule out this form."""
        negative = self._negative[form]
        return (negative > 0 and not are_few(negative, self._count)) or any(
            outside > self._most * count and not are_few(outside, count, self._most)
            for outside, count in self._are_outside(form)
        )

    def _is_doubtful(self, form: BoxFormat) -> bool:
        """Whether a few boxes cannot be of this form."""
        return self._negative[form] > 0 or any(
            outside > self._most * count for outside, count in self._are_outside(form)
        )

    def _are_outside(self, form: BoxFormat) -> list[tuple[int, int]]:
        """Return how many boxes are outside their images, of all and of those in images of known size."""
        return [(self._outside[form], self._count), (self._outside_sized[form], self._sized)]

    def _ambiguous(self, left: list[BoxFormat], option: str, source: str) -> InputError:
        """Return the error for several remaining forms, or none."""
        if len(self._names) == 1:
            what = f"the numbers of {self._names[0]!r}"
        elif self._names:
            what = f"the columns {', '.join(self._names)}"
        else:
            what = "the four numbers of a box"
        fit = " and as ".join(self._with_odd_lines(form) for form in left)
        got = f"boxes that are valid as {fit}" if left else "boxes that are not valid in any format"
        cause = f"use {_in_python(f'{option} ' + '|'.join(left or self._readings))}"
        odd = max((self._odd[form] for form in left if self._is_doubtful(form)), default=0)
        if odd:
            cause = f"correct {_those(odd)}, or {cause}"
        return InputError(what, "have one meaning", got=got, place=source, cause=cause)

    def _with_odd_lines(self, form: BoxFormat) -> str:
        """Return the words for a form, with the few boxes that cannot be of it."""
        if not self._is_doubtful(form):
            return _WORDS[form]
        odd, places = self._odd[form], self._places[form]
        shown = ", ".join([*places, *["..."] * (odd > len(places))])
        return f"{_WORDS[form]} (but for {odd:,} of {self._count:,}: {shown})"

    def _report(self, form: BoxFormat, option: str, source: str) -> None:
        """Report a form, and how many boxes speak against each other one."""
        others = [other for other in self._readings if other != form]
        reason = enumerated(
            [
                f"{counted_of(self._odd[other], self._count, 'box')} cannot be {_WORDS[other]} "
                f"({self._places[other][0]})"
                for other in others
            ]
        )
        report_reading(
            source, f"boxes are read as {_WORDS[form]}", reason, f"{_in_python(option)} sets another"
        )
