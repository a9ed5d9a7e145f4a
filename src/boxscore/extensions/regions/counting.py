"""Decide which objects and detections count, by the regions of their image.

Conventions
-----------
- A place counts if it is in a region of ``inside``, if these are given, and in no region of ``outside``.
  Where an image has no region of ``inside``, no place counts.
- An object counts if the center of its box does. Others are ignored, like objects outside an area range of
  COCO: a detection that matches one is neither right nor wrong.
- A detection that matches an object that counts is right, wherever its own center is. One that matches
  nothing is wrong only if the center of its box counts. So no detection is lost, and none becomes wrong,
  because the two centers are on different sides of an edge.
- The regions of an image are a column of images, as JSON, so that selections and copies of tables keep them.
  Images that are added later have the regions of every image.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore._utils.ordering import stable_order
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import counted, counted_of, short_list, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.image_names import UNKNOWN
from boxscore.data.lookup import chosen_images
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Id, Images
from boxscore.errors import BoxscoreWarning, InputError
from boxscore.extensions.regions.reading import EVERY, Region, RegionFile, RegionsLike, read_regions
from boxscore.extensions.regions.shapes import Shape, box_around, contains
from boxscore.matching.ignoring import Ignoring
from boxscore.protocols import load_protocol
from boxscore.protocols.protocol import Protocol

COLUMN = "regions that count"
"""Name of the column of images."""

Side = Literal["inside", "outside"]


def restrict(
    ground_truth: GroundTruth,
    protocol: str | Protocol = "coco",
    *,
    inside: RegionsLike | None = None,
    outside: RegionsLike | None = None,
) -> tuple[GroundTruth, Protocol]:
    """Return a ground truth and a protocol that evaluate only some regions of the images.

    An object counts if the center of its box does; others are ignored. A detection without a match is a
    false positive only if the center of its box counts. A center on the edge of a region is in it.

    Parameters
    ----------
    ground_truth : GroundTruth
    protocol : str or Protocol, default "coco"
        The protocol to change: a name, a file or a Protocol.
    inside, outside : path, list or mapping, optional
        Regions where alone objects and detections count, and regions where none count; at least one of the
        two. In pixels, or fractions of the image size if no value is above 1. A list of regions is for every
        image; a mapping has the regions by image, with those of all others at ``"*"``. A region is a list of
        points ``[x, y]``; two points are opposite corners of a box. A path is of a JSON file with one of
        these, GeoJSON, a CSV file of boxes, a PNG mask, or ground truth in any format, whose objects are
        regions; ``"FILE:CLASS"`` takes only those of a class.

    Returns
    -------
    GroundTruth
        With the regions of each image.
    Protocol
        With ``ignore.within = "center"``.

    Raises
    ------
    InputError
        If a region has no area or crosses itself, an image is unknown, sizes do not fit, or no object counts.

    Examples
    --------
    >>> import boxscore
    >>> boxes = [[0, 0, 10, 10], [50, 50, 60, 60]]
    >>> truth = boxscore.GroundTruth.from_arrays([1, 1], ["car", "car"], boxes)
    >>> detections = boxscore.Detections.from_arrays([1], ["car"], boxes[:1], [0.9])
    >>> road = [[[0, 0], [20, 20]]]
    >>> truth, protocol = restrict(truth, inside=road)
    >>> round(boxscore.evaluate(truth, detections, protocol=protocol)["AP"], 6)
    1.0
    """
    if inside is None and outside is None:
        raise InputError("inside or outside", "be given", got="neither")
    for side, regions in (("inside", inside), ("outside", outside)):
        if regions is not None:
            ground_truth = _with_regions(ground_truth, regions, side).ground_truth  # type: ignore[arg-type]
    return ground_truth, by_center(load_protocol(protocol))


def by_center(protocol: Protocol) -> Protocol:
    """Return a protocol in which the regions of images decide what counts."""
    if protocol.ignore.within == "center":
        return protocol
    ignore = protocol.ignore.replaced(within="center")
    return protocol.replaced(name=f"{protocol.name}+", of_type={}, aliases=(), ignore=ignore)


# ---------------------------------------------------------------- matching


def ignored_elsewhere(
    ground_truth: GroundTruth, protocol: Protocol, ignoring: Ignoring, matched: Callable[..., Any] | None
) -> Ignoring:
    """Ignore the ground truths whose center does not count."""
    return ignoring._replace(ignored=ignoring.ignored | ~center_counts(ground_truth, ground_truth.images))


def counted_there(
    ground_truth: GroundTruth, detections: Detections, rows: NDArray[np.int64], protocol: Protocol
) -> BoolArray:
    """Return which of some detections have a center that counts, [rows]."""
    return center_counts(detections, ground_truth.images, rows)


def center_counts(table: BoxTable, images: Images, rows: NDArray[np.int64] | None = None) -> BoolArray:
    """Whether the centers of boxes count by the regions of ``images``, [N], or [rows]."""
    if COLUMN not in images.columns:
        cause = "--inside or --outside names their file (in Python boxscore.regions.restrict)"
        raise InputError("images", "have regions", got="none", cause=cause)
    boxes, image = (table.boxes, table.image) if rows is None else (table.boxes[rows], table.image[rows])
    centers = boxes[:, :2] / 2 + boxes[:, 2:] / 2
    # Take all images with the same regions together.
    texts = images.columns[COLUMN].tolist()
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    kind = np.array([numbers[text] for text in texts], dtype=np.int64)[image]
    order = stable_order(kind, len(numbers))
    ends = np.searchsorted(kind[order], np.arange(len(numbers) + 1))
    counts = np.empty(len(image), dtype=bool)
    elsewhere = next((text for text in numbers if text), "")
    for text, low, high in zip(numbers, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        if low < high:
            at = order[low:high]
            places = _places_of(text) if text else _places_of(elsewhere, later=True)
            counts[at] = places.counting(centers[at])
    return counts


class _Places(NamedTuple):
    """The regions of an image."""

    inside: Sequence[Shape] | None
    """None: nowhere is outside of them."""
    outside: Sequence[Shape]

    def counting(self, points: FloatArray) -> BoolArray:
        """Whether points [N, 2] count, [N]."""
        counts = np.ones(len(points), dtype=bool) if self.inside is None else _any(self.inside, points)
        return counts & ~_any(self.outside, points)


def _any(shapes: Sequence[Shape], points: FloatArray) -> BoolArray:
    found = np.zeros(len(points), dtype=bool)
    for shape in shapes:
        found |= contains(shape, points)
    return found


@functools.lru_cache(maxsize=1 << 12)
def _places_of(text: str, *, later: bool = False) -> _Places:
    """Read the regions in the text of an image, or those for images that were added later."""
    given = json.loads(text)["later"] if later else json.loads(text)
    if given is None:
        rule = "be in the same unit as the boxes if images are added to the ground truth"
        cause = "--unlisted-images drop leaves out these images (in Python unlisted_images=)"
        raise InputError("regions", rule, got="another unit", cause=cause)
    shapes: dict[str, Any] = {
        side: None
        if given[side] is None
        else [each if isinstance(each, dict) else tuple(map(np.array, each)) for each in given[side]]
        for side in ("inside", "outside")
    }
    return _Places(shapes["inside"], shapes["outside"] or [])


# ---------------------------------------------------------------- ground truth


def with_inside(ground_truth: GroundTruth, regions: RegionsLike) -> GroundTruth:
    """Return a ground truth that counts only inside these regions, and say how many objects do not count."""
    return _with_regions(ground_truth, regions, "inside").told()


def with_outside(ground_truth: GroundTruth, regions: RegionsLike) -> GroundTruth:
    """Return a ground truth that does not count inside these regions; say how many objects do not count."""
    return _with_regions(ground_truth, regions, "outside").told()


def _with_regions(ground_truth: GroundTruth, value: RegionsLike, side: Side) -> _Restricted:
    """Add the regions to the column of images."""
    file = read_regions(value, side)
    images = ground_truth.images
    rows = _rows_of_images(file, images)
    of_every = [region for region in file.regions if region.image is None]
    own: dict[int, list[Region]] = {}
    for region in file.regions:
        if region.image is not None:
            own.setdefault(rows[region.image], []).append(region)
    # Write the regions of each image as text. Images of equal size without own regions share theirs.
    fit = _Fitting(file, ground_truth.units, side)
    later = [fit.plain(region.shape) for region in of_every] if fit.needs_no_size else None
    before = images.columns.get(COLUMN, np.full(len(images), "", dtype=object)).tolist()
    texts = np.empty(len(images), dtype=object)
    known: dict[tuple[str, str], str] = {}
    for row, (name, size) in enumerate(zip(images.names, images.sizes.tolist(), strict=True)):
        key = (str(size), before[row])
        if row in own or key not in known:
            shapes = [fit.shape(region, size, name) for region in own.get(row, of_every)]
            texts[row] = _text(before[row], side, shapes, later)
            if row not in own:
                known[key] = texts[row]
        else:
            texts[row] = known[key]
    columns = {**images.columns, COLUMN: texts}
    restricted = ground_truth.replaced(images=dataclasses.replace(images, columns=columns))
    # Find the objects that no longer count.
    counts = center_counts(restricted, restricted.images)
    is_second = COLUMN in images.columns
    out = int((center_counts(ground_truth, images) & ~counts).sum()) if is_second else int((~counts).sum())
    if len(counts) and not counts.any():
        _raise_if_none_counts(restricted, file, side, rows, of_every=bool(of_every))
    return _Restricted(restricted, file, side, out, is_second, len(rows), has_every=bool(of_every))


def _raise_if_none_counts(
    table: GroundTruth, file: RegionFile, side: Side, rows: Mapping[Id, int], *, of_every: bool
) -> None:
    """Raise the error for regions that leave no object that counts, with the likely cause."""
    where = "outside" if side == "inside" else "inside"
    got = f"none, since the centers of all {counted(len(table), 'object')} are {where}"
    cause = "are the regions in the pixels of these images?"
    # Images without a region are the cause if most objects are there.
    without = len(table.images) - len(rows)
    if side == "inside" and not of_every and without:
        here = int(np.isin(table.image, list(rows.values())).sum())
        images = counted_of(without, len(table.images), "image")
        got = f"none, since {images} {verb(without, 'have')} no region"
        if here:
            objects = counted(here, "object")
            got += f", and the {objects} in the others {verb(here, 'have')} the center outside"
        cause = f'the image "{EVERY}" stands for every image without a region of its own'
    raise InputError(side, "leave at least one object that counts", got=got, place=file.source, cause=cause)


class _Restricted(NamedTuple):
    """A ground truth with regions."""

    ground_truth: GroundTruth
    file: RegionFile
    side: Side
    out: int
    """Number of objects that no longer count."""
    is_second: bool
    """Whether it had other regions before."""
    own: int
    """Number of images with regions of their own."""
    has_every: bool
    """Whether there are regions of every image."""

    def told(self) -> GroundTruth:
        """Say what does not count, as a note, and return the ground truth."""
        images, count, out = len(self.ground_truth.images), len(self.ground_truth), self.out
        of = counted_of(self.own, images, "image")
        if self.has_every:
            of = f"all {images:,} images" if images > 1 else "the only image"
        where = "outside" if self.side == "inside" else "inside"
        those = (
            f"{out:,} more of {counted(count, 'object')}"
            if self.is_second
            else counted_of(out, count, "object")
        )
        drawn = self.file.only_image
        only = f", drawn on {drawn!r}," if drawn is not None and images > 1 else ""
        units = ", in fractions of the image size" if self.file.fractions else ""
        text = (
            f"{self.file.source}: {counted(len(self.file.regions), 'region')}{only} for {of}{units}. {those} "
            f"{'has its' if out == 1 else 'have their'} center {where} and {verb(out, 'do')} not count."
        )
        without = images - self.own
        if self.side == "inside" and not self.has_every and without:
            text += f" Nothing counts in the {counted(without, 'image')} without a region."
        warn_user(BoxscoreWarning(text, severity="note"))
        return self.ground_truth


def _text(before: str, side: Side, shapes: list[Any], later: list[Any] | None) -> str:
    """Return the text of an image: the regions on both sides, and those of images that are added later.

    The latter are None if they depend on the size of the image.
    """
    nothing: dict[str, Any] = {"inside": None, "outside": []}
    value: dict[str, Any] = json.loads(before) if before else {**nothing, "later": nothing}
    known = None if later is None or value["later"] is None else {**value["later"], side: later}
    return json.dumps({**value, side: shapes, "later": known})


def _rows_of_images(file: RegionFile, images: Images) -> dict[Id, int]:
    """Return the row of each image with regions of its own; raise if one is unknown."""
    names = list(dict.fromkeys(region.image for region in file.regions if region.image is not None))
    if not names:
        return {}
    try:
        rows = chosen_images(names, images).tolist()
    except InputError as error:
        raise InputError(
            "the image of a region", error.rule, got=error.got, place=file.source, cause=error.cause
        ) from None
    unknown = [name for name, row in zip(names, rows, strict=True) if row <= UNKNOWN]
    if unknown:
        # Name the nearest image, or a few, but not all.
        near = checks.nearest(unknown[0], images.names[: checks.MOST_COMPARED])
        raise InputError(
            "the image of a region",
            "be in the ground truth",
            got=short_list(map(repr, unknown), most=3),
            place=file.source,
            cause=near or f'known: {short_list(images.names, most=5)}; "{EVERY}" is every image',
        )
    if len(set(rows)) < len(rows):
        row = next(row for row in rows if rows.count(row) > 1)
        got = " and ".join(repr(name) for name, of_name in zip(names, rows, strict=True) if of_name == row)
        raise InputError("the image of a region", "have one name", got=got, place=file.source)
    return dict(zip(names, rows, strict=True))


class _Fitting(NamedTuple):
    """Converts regions to the units of the ground truth, and checks that they fit the images."""

    file: RegionFile
    units: str
    """Unit of the boxes."""
    side: Side

    @property
    def needs_no_size(self) -> bool:
        """Whether regions and boxes have the same unit."""
        return self.file.fractions == (self.units != "pixels")

    @staticmethod
    def plain(shape: Shape) -> Any:
        """Return a shape for JSON."""
        return dict(shape) if isinstance(shape, Mapping) else [ring.tolist() for ring in shape]

    def shape(self, region: Region, size: list[float], name: str) -> Any:
        """Return the shape in an image of this width and height, for JSON."""
        shape, place = region.shape, f"{region.place}, for image {name!r}"
        key = EVERY if region.image is None else region.image
        drawn = self.file.sizes.get(self.file.only_image or key, (np.nan, np.nan))
        is_known = size[0] == size[0]
        if is_known and drawn[0] == drawn[0] and not self.file.fractions and tuple(size) != drawn:
            raise InputError(
                "a region",
                f"be drawn on an image of its own size, {size[0]:g} x {size[1]:g}",
                got=f"{drawn[0]:g} x {drawn[1]:g}",
                place=place,
                cause="fractions of the image size fit images of any size",
            )
        # Convert to the units of the ground truth.
        factor = np.ones(2)
        if self.file.fractions and self.units == "pixels":
            if not is_known:
                got = "fractions, and an image of unknown size"
                raise InputError(self.side, "be in pixels", got=got, place=place, cause=checks.GIVE_SIZES)
            factor = np.array(size)
        elif not self.file.fractions and self.units != "pixels":
            if isinstance(shape, Mapping) or drawn[0] != drawn[0]:
                rule = "be in fractions of the image size, as the ground truth"
                raise InputError(self.side, rule, got="pixels", place=place, cause=checks.GIVE_SIZES)
            factor = 1 / np.array(drawn)
        if not isinstance(shape, Mapping):
            shape = tuple(ring * factor for ring in shape)
        # A region that does not reach into the image has other coordinates than the boxes.
        end = np.array(size) if self.units == "pixels" else np.ones(2)
        box = box_around(shape)
        if (box[2:] <= 0).any() or (box[:2] >= end).any():  # never of an unknown size
            raise InputError(
                "a region",
                "overlap its image",
                got=f"x from {box[0]:g} to {box[2]:g}, y from {box[1]:g} to {box[3]:g}",
                place=place,
                cause="are these coordinates of a map, or of another image?",
            )
        return self.plain(shape)
