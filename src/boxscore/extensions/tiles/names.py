"""Read the positions of tiles from their names, and make grids of tiles.

Conventions
-----------
- ``<image>_<x1>_<y1>_<x2>_<y2>`` is the name of SAHI, with whole numbers and exclusive corners. Its
  ``slice_coco`` writes the position of the image before the corners, and users write row and column there;
  these numbers are dropped if only the rest is the name of an image.
- ``<image>__<scale>__<x>___<y>`` is the name of the DOTA devkit. A number of 16 or more is the width of the
  tile instead, as mmrotate and ultralytics write it, and the tile is not scaled.
- ``corner`` is in pixels of the image after scaling it by ``scale``; a box in the image is
  ``(box + corner) / scale``.

References
----------
SAHI 0.12, ``slicing.py``; DOTA_devkit, ``ImgSplit.py`` and ``ResultMerge.py``; mmrotate, ``img_split.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import counted, short_list
from boxscore.data.image_names import stem_of
from boxscore.data.vocabulary import Images
from boxscore.errors import InputError

SMALLEST_WIDTH = 16.0
"""Smaller numbers in names of the DOTA form are scales; this and larger ones are widths of tiles."""

_CORNERS = re.compile(r"(.+)_(\d+)_(\d+)_(\d+)_(\d+)")
DOTA_NAME = re.compile(r"(.+)__(\d*\.?\d+)__(-?\d+)___(-?\d+)")
"""Image, scale or width, and corner."""

_COUNTED = re.compile(r"(.+)_\d+")


class Tiles(NamedTuple):
    """The positions of tiles in their images.

    Attributes
    ----------
    image : ndarray of int64, [T]
        Row of the whole image of each tile.
    corners : ndarray of float64, [T, 2]
        x and y of the upper left corner, in pixels of the scaled image.
    sizes : ndarray of float64, [T, 2]
        Width and height in pixels of the tile; NaN if unknown.
    scale : ndarray of float64, [T]
        Factor by which the image was scaled before it was cut.
    """

    image: NDArray[np.int64]
    corners: FloatArray
    sizes: FloatArray
    scale: FloatArray


class _Name(NamedTuple):
    """The parts of one name; ``images`` are possible names of the whole image, the likeliest first."""

    images: tuple[str, ...]
    corner: tuple[float, float]
    size: tuple[float, float]
    scale: float


def locate_tiles(tiles: Images, images: Images, *, tile_size: tuple[float, float] | None = None) -> Tiles:
    """Read the position of each tile from its name.

    Parameters
    ----------
    tiles : Images
        Named as the tool that cut them names them: SAHI, the DOTA devkit, mmrotate or ultralytics.
    images : Images
        The whole images.
    tile_size : (float, float), optional
        Width and height, where neither the names nor ``tiles.sizes`` have them.

    Returns
    -------
    Tiles

    Raises
    ------
    InputError
        If a name has no corner, its image is unknown, or its scale is 0.

    Examples
    --------
    >>> whole = Images.build([1], file_names=["a.png"], sizes=[[1000, 800]])
    >>> tiles = Images.build([1, 2], file_names=["a_0_0_512_512.png", "a_488_0_1000_512.png"])
    >>> locate_tiles(tiles, whole).corners.tolist()
    [[0.0, 0.0], [488.0, 0.0]]
    """
    # Whole images are found by the stems of their names; a stem of several images finds none of them.
    row_of: dict[str, int] = {}
    for row, name in enumerate(images.names):
        stem = stem_of(name)
        row_of[stem] = -1 if stem in row_of else row
    names = tiles.names
    parsed = [_parsed(stem_of(name)) for name in names]
    if names and not any(parsed):
        raise InputError(
            "tiles",
            "be called <image>_<x1>_<y1>_<x2>_<y2> or <image>__<scale>__<x>___<y>",
            got=repr(names[0]),
            cause="names contain the position; --tiles names the file that lists the tiles by name"
            if names[0].isdigit()
            else "are these whole images?",
        )
    # A whole image among the tiles is its own tile.
    known = [
        part or _Name((stem_of(name),), (0.0, 0.0), (np.nan, np.nan), 1.0)
        for part, name in zip(parsed, names, strict=True)
    ]
    rows = [next((row_of[name] for name in each.images if name in row_of), -1) for each in known]
    lost = [name for name, row in zip(names, rows, strict=True) if row < 0]
    if lost:
        raise InputError(
            "tiles",
            "be of images that the ground truth has once",
            got=f"{short_list(lost)} ({counted(len(lost), 'tile')} of {len(names)})",
            cause=f"its images are called {short_list(images.names)}",
        )
    scale = np.array([each.scale for each in known])
    if (scale == 0).any():
        raise InputError("the scale of a tile", "be above 0", got=repr(names[int(np.argmin(scale))]))
    # The size is in the name, in the list of tiles, or given; a whole image has its own.
    sizes = np.array([each.size for each in known]).reshape(-1, 2)
    whole = np.array([part is None for part in parsed], dtype=bool)
    image = np.array(rows, dtype=np.int64)
    for others in (tiles.sizes, np.where(whole[:, None], images.sizes[image], np.nan)):
        sizes = np.where(np.isnan(sizes), others, sizes)
    if tile_size is not None:
        sizes = np.where(np.isnan(sizes), tile_size, sizes)
    return Tiles(image, np.array([each.corner for each in known]).reshape(-1, 2), sizes, scale)


def sizes_in_names(stems: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Return the sizes of the tiles that have theirs in the name, by stem."""
    parsed = {stem: _parsed(stem) for stem in stems}
    return {stem: name.size for stem, name in parsed.items() if name is not None and name.size[0] > 0}


def _parsed(stem: str) -> _Name | None:
    """Parse the name of a tile; None for other names."""
    match = DOTA_NAME.fullmatch(stem)
    if match:
        number, corner = float(match[2]), (float(match[3]), float(match[4]))
        if number >= SMALLEST_WIDTH:
            return _Name((match[1],), corner, (number, number), 1.0)
        return _Name((match[1],), corner, (np.nan, np.nan), number)
    match = _CORNERS.fullmatch(stem)
    if match is None:
        return None
    x1, y1, x2, y2 = map(float, match.groups()[1:])
    if x2 <= x1 or y2 <= y1:
        return None
    return _Name(tuple(_shorter(match[1])), (x1, y1), (x2 - x1, y2 - y1), 1.0)


def _shorter(name: str) -> Iterator[str]:
    """Yield a name, and the name without one and two whole numbers at its end."""
    yield name
    for _ in range(2):
        match = _COUNTED.fullmatch(name)
        if match is None:
            return
        name = match[1]
        yield name


def tile_grid(
    width: int,
    height: int,
    tile_size: tuple[int, int] = (512, 512),
    *,
    overlap: float = 0.2,
    short_last: bool = False,
) -> FloatArray:
    """Return the corners of the tiles of an image, row by row.

    The last tile of a row is shifted back to its full size, so it may overlap its neighbor by more.

    Parameters
    ----------
    width, height : int
        Of the image, in pixels.
    tile_size : (int, int), default (512, 512)
        Width and height of a tile; an image that is smaller is one tile of its own size.
    overlap : float, default 0.2
        Overlap of neighbors as a fraction of the tile; in pixels it is rounded down.
    short_last : bool, default False
        Cut the last tile of a row short if tiles do not overlap, as supervision does.

    Returns
    -------
    ndarray of float64, [T, 4]
        ``x1, y1, x2, y2``, exclusive.

    Raises
    ------
    InputError
        If a side is not positive, or the overlap is not in [0, 1).

    References
    ----------
    SAHI, ``get_slice_bboxes``; supervision, ``InferenceSlicer``.

    Examples
    --------
    >>> tile_grid(1000, 512).tolist()
    [[0.0, 0.0, 512.0, 512.0], [410.0, 0.0, 922.0, 512.0], [488.0, 0.0, 1000.0, 512.0]]
    """
    overlap = checks.number_between(overlap, 0, 1, name="overlap")
    if overlap == 1:
        raise InputError("overlap", "be below 1", got=overlap)
    spans = []
    for name, length, side in zip(("width", "height"), (width, height), tile_size, strict=True):
        length = checks.whole_number(length, 1, name=name)
        side = checks.whole_number(side, 1, name=f"{name} of a tile")
        shared = int(overlap * side)
        spans.append(_spans(length, side, side - shared, short=short_last and not shared))
    return np.array([(x1, y1, x2, y2) for y1, y2 in spans[1] for x1, x2 in spans[0]], dtype=np.float64)


def _spans(length: int, side: int, step: int, *, short: bool) -> list[tuple[int, int]]:
    """Return start and end of the tiles along one axis; the last one ends with the image."""
    spans, start = [], 0
    while start + side < length:
        spans.append((start, start + side))
        start += step
    return [*spans, (start if short else max(length - side, 0), length)]


def grid_names(stem: str, grid: FloatArray, ending: str = ".png") -> list[str]:
    """Return the names that SAHI gives to the tiles of a grid."""
    return [f"{stem}_{'_'.join(f'{number:.0f}' for number in tile)}{ending}" for tile in grid.tolist()]


def tiles_of_grid(images: Images, tile_size: tuple[int, int], overlap: float) -> tuple[Images, Tiles]:
    """Lay one grid over every image; return the named tiles and their places."""
    unknown = np.flatnonzero(np.isnan(images.sizes).any(axis=1))
    if len(unknown):
        raise InputError(
            "images",
            "have known sizes to be cut into tiles",
            got=f"{images.names[int(unknown[0])]!r} without a size",
            cause="--image-sizes or --image-folder gives them",
        )
    names: list[str] = []
    places: list[FloatArray] = []
    rows: list[int] = []
    for row, (name, (width, height)) in enumerate(zip(images.names, images.sizes.tolist(), strict=True)):
        grid = tile_grid(int(width), int(height), tile_size, overlap=overlap)
        names += grid_names(stem_of(name), grid)
        places.append(grid)
        rows += [row] * len(grid)
    grid = np.concatenate(places) if places else np.empty((0, 4))
    sizes = grid[:, 2:] - grid[:, :2]
    tiles = Images.build(range(1, len(names) + 1), file_names=names, sizes=sizes)
    return tiles, Tiles(np.array(rows, dtype=np.int64), grid[:, :2], sizes, np.ones(len(names)))
