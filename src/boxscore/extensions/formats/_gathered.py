"""Collect images and objects from annotation files, and return them as rows.

Conventions
-----------
- The id of an image is its file name without folder and extension; they stay where two images would otherwise
  have the same id. Numbers stay numbers.
- A rectangle is any two opposite corners. A rotated rectangle has its four corners and the box around them.
  Polygons and masks have their own area, not that of their box.
- Points and lines are skipped with a warning that counts them.
- Labels of whole images are skipped next to objects, and rejected if there is no object.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec
import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.files import read_at_most
from boxscore._utils.memory import paused_collector
from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore.data.boxes import BoxFormat
from boxscore.data.scores import all_or_none
from boxscore.data.vocabulary import Categories, Id
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.extensions.formats._holes import may_overlap, with_holes
from boxscore.formats import _json
from boxscore.formats._coco_records import DECODING_ERRORS
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import Rows, collected

Corners = tuple[float, float, float, float]
Record = TypeVar("Record")

LARGEST = 2_000_000_000
"""Maximum size in bytes of a JSON file that is read into memory."""
LARGEST_COORDINATE = 1e100


class Origin(NamedTuple):
    """The position of an object in its file, for messages."""

    kind: str
    number: int
    file: object

    def __str__(self) -> str:
        return f"{self.kind} {self.number} of {self.file}"


class Size(msgspec.Struct, gc=False):
    """Size of an image, if the file states it."""

    width: float | None = None
    height: float | None = None


class Point(msgspec.Struct, gc=False):
    """A point of an outline."""

    x: float
    y: float


def flat_points(points: Iterable[Point]) -> list[float]:
    """Return points as ``x, y, x, y, ...``."""
    return [float(number) for point in points for number in (point.x, point.y)]


class Gathered:
    """Images and objects of the ground truth or of the detections.

    Parameters
    ----------
    source : str
        Name in messages.
    options : ReadOptions
    endings : bool, default True
        Whether names of images have file extensions.
    any_corners : bool, default True
        Whether boxes are any two opposite corners, as drawn; otherwise the first is the upper left one.
    """

    def __init__(
        self, source: object, options: ReadOptions, *, endings: bool = True, any_corners: bool = True
    ) -> None:
        # Facts about the whole data set.
        self.source = str(source)
        self._given_form = options.written
        self._other_shapes = 0
        self._endings = endings
        self._any_corners = any_corners
        # Images in order of first appearance, each with its position.
        self._images: dict[Id, int] = {}
        self._sizes: list[tuple[float, float]] = []
        self._file_names: list[str | None] = []
        # One entry per object; the lists become arrays at the end.
        self._image: list[int] = []
        self._labels: list[Id] = []
        self._boxes: list[Corners] = []
        self._scores: list[float] = []
        self._crowd: list[bool] = []
        self._areas: list[float] = []
        self._masks: list[Any] = []
        self._corners: list[FloatArray | None] = []
        self._origins: list[Origin] = []
        self._left_out: Counter[tuple[str, str]] = Counter()
        self._image_labels: Counter[str] = Counter()
        self._polygons = 0
        self._has_areas = False

    def image(
        self,
        name: Id,
        width: float | None = None,
        height: float | None = None,
        *,
        file_name: str | None = None,
    ) -> int:
        """Add an image and return its position."""
        if name in self._images:
            raise FileFormatError(
                "images",
                "have different names",
                got=f"{name!r} twice",
                place=self.source,
                cause="several data sets in one, or several annotations of one image?",
            )
        position = self._images[name] = len(self._images)
        known = 1 <= (width or 0) <= 1e9 and 1 <= (height or 0) <= 1e9
        self._sizes.append((float(width or 0), float(height or 0)) if known else (math.nan, math.nan))
        self._file_names.append(file_name or (name if isinstance(name, str) else None))
        return position

    def known_image(self, name: Id) -> int:
        """Return the position of an image, and add it if it is new: for files with a record per object."""
        position = self._images.get(name)
        return self.image(name) if position is None else position

    def add(
        self,
        image: int,
        label: Id,
        box: Corners,
        origin: Origin,
        *,
        score: float | None = None,
        area: float | None = None,
        mask: Any = None,
        corners: FloatArray | None = None,
        crowd: bool = False,
    ) -> None:
        """Add an object by two opposite corners of its bounding box."""
        self._other_shapes += 1
        if label == "":
            raise FileFormatError("a class", "have a name", got="none", place=str(origin))
        self._image.append(image)
        self._labels.append(label)
        self._boxes.append(box)
        self._has_areas |= area is not None
        self._scores.append(math.nan if score is None else score)
        self._areas.append(math.nan if area is None else area)
        self._masks.append(mask)
        self._corners.append(corners)
        self._crowd.append(crowd)
        self._origins.append(origin)

    def add_box(
        self,
        image: int,
        label: Id,
        numbers: Corners,
        form: BoxFormat,
        origin: Origin,
        *,
        score: float | None = None,
        crowd: bool = False,
        percent_of: tuple[float, float] | None = None,
    ) -> None:
        """Add an object by the four numbers of its box, in this form unless the user gave another."""
        if self._given_form is not None:
            first, second, third, fourth = numbers
            numbers = (second, first, fourth, third) if self._given_form.y_first else numbers
            form = self._given_form.form
        if percent_of is not None:
            across, down = percent_of
            a, b, c, d = numbers
            numbers = a * across / 100, b * down / 100, c * across / 100, d * down / 100
        if self._given_form is None:
            if form != "xyxy" and (numbers[2] < 0 or numbers[3] < 0):
                got = f"{numbers[2]} x {numbers[3]}"
                raise FileFormatError("a box", "have a size >= 0", got=got, place=str(origin))
            numbers = _corners(numbers, form)
        self.add(image, label, numbers, origin, score=score, crowd=crowd)
        self._other_shapes -= 1  # counted by ``add``

    def inclusive(self, numbers: Sequence[float]) -> Corners:
        """Convert inclusive corners to exclusive ones: the end moves past the last pixel."""
        if self._given_form is None:
            x1, y1, x2, y2 = box_around(numbers)
        else:
            x1, y1, x2, y2 = numbers
        end = 1 if self._given_form is None or self._given_form.form == "xyxy" else 0
        return x1, y1, x2 + end, y2 + end

    def add_polygon(
        self,
        image: int,
        label: Id,
        points: Sequence[float],
        origin: Origin,
        *,
        score: float | None = None,
        crowd: bool = False,
    ) -> None:
        """Add an object by its outline ``x, y, x, y, ...``."""
        self.add_polygons(image, label, [points], origin, score=score, crowd=crowd)

    def add_polygons(
        self,
        image: int,
        label: Id,
        parts: Sequence[Sequence[float]],
        origin: Origin,
        *,
        score: float | None = None,
        crowd: bool = False,
        holes: Sequence[Sequence[float]] | None = None,
        even_odd: bool = False,
    ) -> None:
        """Add an object by the outlines of its parts, and of its holes.

        With ``even_odd``, a part inside another is a hole of it.
        """
        outlines: list[FloatArray] = []
        cut: list[FloatArray] = []
        area = 0.0
        for points in [*(parts or [()]), *(holes or ())]:
            if len(points) < 6 or len(points) % 2:
                got = f"{len(points)} numbers" if len(points) % 2 else counted(len(points) // 2, "point")
                raise FileFormatError("a polygon", "have three points or more", got=got, place=str(origin))
            outline = _finite(points, origin)
            if len(outlines) == max(len(parts), 1):
                cut.append(outline)
                continue
            x, y = outline[0::2], outline[1::2]
            area += abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) / 2
            outlines.append(outline)
        self._polygons += 1
        mask: Any = [outline.tolist() for outline in outlines]
        box = box_around(np.concatenate(outlines))
        if cut or (even_odd and may_overlap(outlines)):
            size = self._sizes[image]
            if math.isnan(size[0]):
                rule, cause = "have no holes where image sizes are unknown", "export COCO there"
                raise FileFormatError("a polygon", rule, got="some", place=str(origin), cause=cause)
            mask, area = with_holes(outlines, cut, size, str(origin)) or (mask, area)
        self.add(image, label, box, origin, score=score, area=area, mask=mask, crowd=crowd)

    def add_rotated(
        self, image: int, label: Id, corners: FloatArray, origin: Origin, *, score: float | None = None
    ) -> None:
        """Add a rotated rectangle by its corners in order, [4, 2]."""
        _finite(corners.ravel(), origin)
        sides = np.hypot(*(corners[1] - corners[0])) * np.hypot(*(corners[3] - corners[0]))
        box = box_around(corners.ravel())
        self.add(image, label, box, origin, score=score, area=float(sides), corners=corners)

    def leave_out(self, noun: str, rest: str = "") -> None:
        """Count a shape that is skipped, by a noun in the singular, or none, and the words after it."""
        self._left_out[noun, rest] += 1

    def leave_out_images(self, count: int, kind: str) -> None:
        """Warn that images without annotations are skipped; raise if no other image is left."""
        images = f"{counted(count, 'image')} {kind}"
        if count and not self._images:
            rule = "have images with annotations"
            raise FileFormatError("ground truth", rule, got=f"only {images}", place=self.source)
        if count:
            warn_user(f"{self.source}: left out {images}, which may show objects.")

    def label_image(self, label: str) -> None:
        """Count a label of a whole image."""
        self._image_labels[label] += 1

    def rows(self, *, of_results: bool, classes: Sequence[str] | None = None, **given: Any) -> Rows:
        """Return all images and objects as rows; ``classes`` are the declared ones."""
        # A classification data set has no objects, not even skipped ones.
        if self._image_labels and not self._image and not self._left_out.keys() - {("label", "")}:
            shown = ", ".join(repr(label)[:40] for label, _ in self._image_labels.most_common(3))
            raise FileFormatError(
                "detections" if of_results else "ground truth",
                "have boxes or regions",
                got=f"labels of whole images alone ({shown}{', ...' * (len(self._image_labels) > 3)})",
                place=self.source,
                cause="boxscore evaluates detection, not classification; is this the right export?",
            )
        # Ground truth without any object, because all were of a kind that is skipped, would score 0.
        if self._left_out and not self._image and not of_results:
            counts = _counted_kinds(self._left_out, 3)
            rule = "have boxes or regions with a class"
            raise FileFormatError("ground truth", rule, got=f"only {counts}", place=self.source)
        # Warn of skipped shapes. Scores count only if all objects have one.
        if self._left_out:
            counts = _counted_kinds(self._left_out, 8)
            text = (
                f"{self.source}: left out, because only boxes and regions with a class are objects: {counts}."
            )
            warn_user(text)
        scores = None
        if of_results:
            given_scores = np.array(self._scores, dtype=np.float64)
            scores = all_or_none(given_scores, lambda row: str(self._origins[row]))
        if any(self._crowd):
            given["crowd"] = np.array(self._crowd)
        # Sort the corners, which may come in any order; this never rounds.
        has_rotated = any(corners is not None for corners in self._corners)
        if self._given_form is not None and self._other_shapes:
            rule = "be left out where there are other shapes than boxes"
            raise InputError("box_format", rule, got=f"{self._other_shapes:,} of them", place=self.source)
        is_given = self._given_form is not None
        boxes = np.array(self._boxes, dtype=np.float64).reshape(-1, 4)
        boxes = boxes if is_given or not self._any_corners else _sort_corners(boxes)
        # Objects without an area get that of their box.
        if self._has_areas:
            areas = np.array(self._areas, dtype=np.float64)
            with np.errstate(over="ignore", invalid="ignore"):  # raises an error when the table is built
                of_boxes = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
            given["area"] = np.where(np.isnan(areas), of_boxes, areas)
        if any(mask is not None for mask in self._masks):
            given["masks"] = self._masks
        # Number the declared classes first, then others in order of their first object.
        names = list(self._images)
        labels = collected(self._labels)
        if classes is not None:
            classes = list(dict.fromkeys([*classes, *(str(label) for label in labels.values)]))
        # Pass rotated corners only if no object is a polygon.
        if has_rotated and self._polygons:
            rotated = sum(corners is not None for corners in self._corners)
            warn_user(
                f"{self.source}: {counted(rotated, 'rotated box')} compared as upright boxes, because "
                f"{counted(self._polygons, 'other object')} of the file are polygons."
            )
        return Rows(
            source=self.source,
            images=short_names(names) if self._endings else names,
            image=np.array(self._image, dtype=np.int64),
            labels=labels.values,
            label=labels.positions,
            boxes=boxes,
            box_format="xyxy" if self._given_form is None else self._given_form.form,
            form_applied=is_given,
            fractions=self._given_form is not None and self._given_form.fractions,
            place=lambda row: str(self._origins[row]),
            scores=scores,
            classes=classes,
            file_names=self._file_names,
            sizes=np.array(self._sizes, dtype=np.float64).reshape(-1, 2),
            corners=_all_corners(boxes, self._corners) if has_rotated and not self._polygons else None,
            given=given,
        )


def _counted_kinds(kinds: Counter[tuple[str, str]], most: int) -> str:
    """List kinds, each a noun and the words after it, with their counts, the most common first."""
    return ", ".join(
        f"{counted(count, noun) if noun else f'{count:,}'} {rest}".rstrip()
        for (noun, rest), count in kinds.most_common(most)
    )


def in_fractions(rows: Rows) -> Rows:
    """Return rows whose coordinates are fractions of the image size, unless the user gave the form."""
    if rows.form_applied:
        return rows
    boxes = rows.boxes if rows.boxes is not None else np.empty((0, 4))
    beyond = (np.abs(boxes) > LARGEST_COORDINATE).any(axis=1)
    if beyond.any():
        row = int(np.argmax(beyond))
        rule, got = "have coordinates of at most 1e+100", f"{boxes[row].tolist()}"
        raise FileFormatError("a box", rule, got=got, place=rows.place(row))
    return dataclasses.replace(rows, fractions=True)


def _corners(numbers: Corners, form: BoxFormat) -> Corners:
    """Return the corners of one box."""
    a, b, c, d = numbers
    if form == "cxcywh":
        a, b = a - c / 2, b - d / 2
    return numbers if form == "xyxy" else (a, b, a + c, b + d)


def _sort_corners(given: FloatArray) -> FloatArray:
    """Return boxes of any two opposite corners as ``x1, y1, x2, y2``, [N, 4]."""
    lower, upper = np.minimum(given[:, :2], given[:, 2:]), np.maximum(given[:, :2], given[:, 2:])
    return np.hstack([lower, upper])


def _all_corners(boxes: FloatArray, corners: Sequence[FloatArray | None]) -> FloatArray:
    """Return the corners of rotated rectangles, or of the boxes of other objects, [N, 4, 2]."""
    every = boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)
    for row, given in enumerate(corners):
        if given is not None:
            every[row] = given
    return every


def _finite(numbers: Sequence[float] | FloatArray, origin: Origin) -> FloatArray:
    values = np.asarray(numbers, dtype=np.float64)
    if not np.isfinite(values).all() or np.abs(values).max() > LARGEST_COORDINATE:
        raise FileFormatError(
            "a shape", "have coordinates of at most 1e+100", got="others", place=str(origin)
        )
    return values


def box_around(points: Sequence[float] | FloatArray) -> Corners:
    """Return the box around points ``x, y, x, y, ...``."""
    return min(points[0::2]), min(points[1::2]), max(points[0::2]), max(points[1::2])


def rotated_corners(box: Corners, degrees: float, *, center: tuple[float, float]) -> FloatArray:
    """Return the corners [4, 2] of a box rotated clockwise on the screen about a point."""
    x1, y1, x2, y2 = box
    angle = math.radians(math.fmod(degrees, 360)) if math.isfinite(degrees) else math.nan
    cosine, sine = math.cos(angle), math.sin(angle)
    with np.errstate(over="ignore", invalid="ignore"):  # adding the object rejects values that are too large
        offsets = np.array([(x1, y1), (x2, y1), (x2, y2), (x1, y2)], dtype=np.float64) - center
        return np.asarray(offsets @ np.array([[cosine, sine], [-sine, cosine]]) + center)


def short_names(names: Sequence[Id]) -> list[Id]:
    """Return names without folder and extension; keep the folder, or both, if names would clash."""
    shorter: tuple[Callable[[str], str], ...] = (
        lambda name: _stem(name.replace("\\", "/").rpartition("/")[2]),
        lambda name: _stem(name.replace("\\", "/")),
    )
    for shorten in shorter:
        short = [shorten(name) if isinstance(name, str) else name for name in names]
        if len(set(short)) == len(short) and "" not in short:
            return short
    return list(names)


def _stem(name: str) -> str:
    stem, dot, ending = name.rpartition(".")
    return stem if dot and stem and ending.isalnum() and len(ending) <= 5 and not ending.isdigit() else name


def are_numbers(categories: Categories) -> bool:
    """Whether classes are numbers without names, which only repeat them."""
    ids = categories.ids
    return ids.dtype != object and categories.names.tolist() == list(map(str, ids.tolist()))


def decoded(path: Path, kind: type[Record], *, record: str, whole: tuple[str, str]) -> Record:
    """Decode a JSON file; ``record`` and ``whole`` name its parts in messages."""
    return decoded_text(json_text(path), path, kind, record=record, whole=whole)


def json_text(path: Path) -> bytes:
    """Return the bytes of a JSON file, without a byte order mark."""
    with _json.open_binary(path) as file:
        text = read_at_most(file, LARGEST + 1).removeprefix(b"\xef\xbb\xbf")
    if len(text) > LARGEST:
        rule = f"have at most {LARGEST:,} bytes"
        raise FileFormatError("a JSON file", rule, got="more", place=str(path))
    return text


def decoded_text(
    text: bytes, path: Path, kind: type[Record], *, record: str, whole: tuple[str, str]
) -> Record:
    """Decode JSON text that came from a file."""
    try:
        with paused_collector():
            return msgspec.json.decode(text, type=kind)
    except DECODING_ERRORS as error:
        raise _json.explain(error, path, record=record, text=text, whole=whole) from None


def lines_of(path: Path, kind: type[Record], what: str) -> Iterator[tuple[int, Record]]:
    """Decode a file with a JSON object per line; yield the number of each line, from 1, and its content."""
    decoder = msgspec.json.Decoder(kind)
    with _json.open_binary(path) as file, paused_collector():
        for number, line in enumerate(file, start=1):
            text = line.removeprefix(b"\xef\xbb\xbf").strip()
            if not text:
                continue
            try:
                yield number, decoder.decode(text)
            except DECODING_ERRORS as error:
                place, whole = Path(f"{path}, line {number}"), (f"a line of {what}", "an object")
                raise _json.explain(error, place, record="record", text=text, whole=whole) from None


def named(name: str | None, origin: Origin, key: str = "a name") -> str:
    """Return the name of an image; raise if it has none under its key."""
    if not name:
        raise FileFormatError("an image", f"have {key}", got="none", place=str(origin))
    return name


def records_of(path: Path, kind: type[Record], what: str) -> Iterator[tuple[Origin, Record]]:
    """Decode a JSON list of objects, an object alone, or one per line; yield the place of each and it."""
    with _json.open_binary(path) as file:
        start = next((line for line in file if line.strip()), b"").removeprefix(b"\xef\xbb\xbf").strip()
    # An object of several lines begins with a line of a brace.
    if start[:1] != b"[" and start != b"{":
        yield from ((Origin("line", number, path), one) for number, one in lines_of(path, kind, what))
        return
    of_list: Any = list[kind] if start[:1] == b"[" else kind  # type: ignore[valid-type]
    content = decoded(path, of_list, record="record", whole=(what, "a list of objects"))
    for number, one in enumerate(content if isinstance(content, list) else [content]):
        yield Origin("record", number, path), one


def last_part(text: str) -> str:
    """Return the file name at the end of a path, an address, or Label Studio's ``local-files/?d=path``."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return text.rpartition("/")[2]
    path = parts.query.partition("d=")[2] if parts.path.endswith("local-files/") else parts.path
    # A hash sign may be part of a file name.
    path += f"#{parts.fragment}" if "." in parts.fragment else ""
    return unquote(path).replace("\\", "/").rpartition("/")[2]


_SAME_SPLITS = ("val", "validation", "valid")


def chosen_split(
    image_set: object,
    splits: Sequence[str],
    path: Path,
    *,
    default: bool = True,
    usual: Sequence[str] = _SAME_SPLITS,
) -> str | None:
    """Return the split to read: the one that the user gives, the validation split, or the only one.

    ``splits`` are those of all images, and ``default`` says whether the only split is read if it is another
    than the validation split, whose names are ``usual``. A note names the others.
    """
    counts = Counter(splits)
    if image_set is not None:
        wanted = (str(image_set), *(_SAME_SPLITS if image_set in _SAME_SPLITS else ()))
        given: str | None = next((name for name in wanted if name in counts), None)
        if given is None:
            rule, cause = "be a split of the data set", checks.did_you_mean(image_set, counts)
            raise InputError("image_set", rule, got=repr(str(image_set)), place=str(path), cause=cause)
        return given
    chosen = next((name for name in usual if name in counts), None)
    if chosen is None and len(counts) == 1 and default:
        return splits[0]
    if chosen is None and counts:
        rule, cause = f"be given where there is no split {usual[0]}", f"choose from {', '.join(counts)}"
        raise InputError("image_set", rule, got=f"none, in {path}", cause=cause)
    others = ", ".join(f"{name} ({count:,})" for name, count in counts.items() if name != chosen)
    if others:
        text = f"{path}: reading the split {chosen}; others: {others}. Use --image-set NAME for another."
        warn_user(BoxscoreWarning(text, severity="note"))
    return chosen
