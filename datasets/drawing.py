"""Draw the images of the samples: outlines, masks, textures and PNG files, the same bytes everywhere.

Conventions
-----------
- Continuous coordinates, origin top left: pixel ``(column, row)`` covers ``[column, column + 1]``.
- A pixel belongs to an outline when its center lies inside (even-odd rule).
- Only operations that give the same bits on every machine: the raw stream of PCG64 instead of NumPy's
  distributions, plain arithmetic instead of BLAS, and an encoder of our own instead of ``zlib.compress``,
  whose output depends on the zlib that Python was built with.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item")
Point = tuple[float, float]
Color = tuple[int, int, int]
Mask = NDArray[np.bool_]

COLORS: dict[str, Color] = {
    "circle": (214, 69, 65),
    "square": (44, 110, 185),
    "triangle": (38, 148, 92),
    "star": (232, 163, 23),
    "hexagon": (138, 84, 170),
    "cross": (70, 84, 104),
}
THEMES: tuple[tuple[Color, Color], ...] = (
    ((246, 238, 220), (226, 213, 186)),  # sand
    ((226, 238, 244), (194, 216, 228)),  # sky
    ((230, 241, 222), (203, 222, 190)),  # meadow
    ((240, 232, 238), (219, 204, 215)),  # heather
)
BACKGROUND_LEVELS = 6
SHADES = 4
"""Fill light, fill, fill dark, rim: the palette entries of one class."""


class Draws:
    """Random draws that no NumPy or Python release changes: only the raw stream of PCG64 is used."""

    def __init__(self, seed: int) -> None:
        self._stream = np.random.PCG64(seed)

    def uniforms(self, count: int) -> NDArray[np.float64]:
        """Return ``count`` numbers in [0, 1)."""
        raw = np.asarray(self._stream.random_raw(count), dtype=np.uint64)
        return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def between(self, low: float, high: float) -> float:
        """Return a number in [low, high)."""
        return low + (high - low) * float(self.uniforms(1)[0])

    def whole(self, low: int, high: int) -> int:
        """Return a whole number in [low, high], both ends included."""
        return low + int(self.uniforms(1)[0] * (high - low + 1))

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return bool(self.uniforms(1)[0] < probability)

    def choice(self, items: Sequence[Item]) -> Item:
        """Return one of the items."""
        return items[self.whole(0, len(items) - 1)]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Return the items in a random order."""
        order = np.argsort(self.uniforms(len(items)), kind="stable")
        return [items[index] for index in order]


def outline(name: str, center: Point, radius: float, *, angle: float = 0.0) -> list[Point]:
    """Return the corners of a shape, to two decimals.

    Parameters
    ----------
    name : str
        A key of `COLORS`.
    center : tuple of float
    radius : float
        Of the circle around the shape; of a square, half its side.
    angle : float, default 0
        Turn in degrees. A square is never turned.
    """
    if name == "square":
        unit: list[Point] = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    elif name == "cross":
        arm = 0.34
        quarter = [(arm, -arm), (arm, -1), (-arm, -1)]
        unit = []
        for _ in range(4):
            unit += quarter
            quarter = [(y, -x) for x, y in quarter]
        unit = _turned(unit, angle)
    else:
        corners = {"circle": 32, "triangle": 3, "star": 10, "hexagon": 6}[name]
        inner = 0.45 if name == "star" else 1.0
        turns = [360.0 * corner / corners - 90.0 + angle for corner in range(corners)]
        lengths = [inner if corner % 2 else 1.0 for corner in range(corners)]
        unit = [
            (float(length * np.cos(np.deg2rad(turn))), float(length * np.sin(np.deg2rad(turn))))
            for turn, length in zip(turns, lengths, strict=True)
        ]
    return [(round(center[0] + radius * x, 2), round(center[1] + radius * y, 2)) for x, y in unit]


def _turned(points: Sequence[Point], angle: float) -> list[Point]:
    """Turn points about the origin by an angle in degrees."""
    cosine, sine = float(np.cos(np.deg2rad(angle))), float(np.sin(np.deg2rad(angle)))
    return [(x * cosine - y * sine, x * sine + y * cosine) for x, y in points]


def clipped(points: Sequence[Point], width: int, height: int) -> list[Point]:
    """Push the corners of an outline back into the image."""
    return [(min(max(x, 0.0), float(width)), min(max(y, 0.0), float(height))) for x, y in points]


def extent(points: Sequence[Point]) -> tuple[float, float, float, float]:
    """Return the box ``x1, y1, x2, y2`` around an outline."""
    columns, rows = zip(*points, strict=True)
    return min(columns), min(rows), max(columns), max(rows)


def filled(points: Sequence[Point], width: int, height: int) -> Mask:
    """Return the pixels inside an outline [height, width]."""
    columns = np.arange(width)[None, :] + 0.5
    rows = np.arange(height)[:, None] + 0.5
    inside = np.zeros((height, width), dtype=bool)
    for (x1, y1), (x2, y2) in zip(points, [*points[1:], points[0]], strict=True):
        if y1 == y2:
            continue
        crosses = (y1 <= rows) != (y2 <= rows)
        inside ^= crosses & (columns < x1 + (rows - y1) * (x2 - x1) / (y2 - y1))
    return inside


def shrunk(mask: Mask, steps: int) -> Mask:
    """Take ``steps`` pixels off the rim of a mask."""
    for _ in range(steps):
        padded = np.pad(mask, 1)
        mask = mask & padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return mask


def grown(mask: Mask, steps: int) -> Mask:
    """Add ``steps`` pixels to the rim of a mask."""
    for _ in range(steps):
        padded = np.pad(mask, 1)
        mask = mask | padded[:-2, 1:-1] | padded[2:, 1:-1] | padded[1:-1, :-2] | padded[1:-1, 2:]
    return mask


def texture(width: int, height: int, draws: Draws) -> NDArray[np.uint8]:
    """Return a background [height, width] of levels below `BACKGROUND_LEVELS`: patches, like a map."""
    total = np.zeros((height, width))
    for spacing, weight in ((46, 0.7), (17, 0.3)):
        knots = (height // spacing + 2, width // spacing + 2)
        grid = draws.uniforms(knots[0] * knots[1]).reshape(knots)
        row, row_rest = np.divmod(np.arange(height), spacing)
        column, column_rest = np.divmod(np.arange(width), spacing)
        down, right = (row_rest / spacing)[:, None], (column_rest / spacing)[None, :]
        down, right = down * down * (3 - 2 * down), right * right * (3 - 2 * right)
        above = grid[row][:, column] * (1 - right) + grid[row][:, column + 1] * right
        below = grid[row + 1][:, column] * (1 - right) + grid[row + 1][:, column + 1] * right
        total += weight * (above * (1 - down) + below * down)
    return np.clip((total - 0.15) / 0.7 * BACKGROUND_LEVELS, 0, BACKGROUND_LEVELS - 1).astype(np.uint8)


def palette(theme: int) -> list[Color]:
    """Return the colors of a theme: background, the same in shadow, the classes, the classes faint."""
    light, dark = THEMES[theme]
    steps = [level / (BACKGROUND_LEVELS - 1) for level in range(BACKGROUND_LEVELS)]
    ground = [_mixed(light, dark, step) for step in steps]
    colors = [*ground, *(_mixed(color, (60, 60, 70), 0.3) for color in ground)]
    for faint in (0.0, 0.72):
        for color in COLORS.values():
            lights = ((255, 255, 255), 0.25), (color, 0.0), ((0, 0, 0), 0.15), ((0, 0, 0), 0.4)
            shades = [_mixed(color, light, share) for light, share in lights]
            colors += [_mixed(shade, ground[3], faint) for shade in shades]
    return colors


def _mixed(first: Color, second: Color, share: float) -> Color:
    """Return the mixture of two colors."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def paint(canvas: NDArray[np.uint8], mask: Mask, name: str, *, faint: bool) -> None:
    """Paint one shape into a canvas of palette entries: three shades, a rim and a shadow."""
    height, width = canvas.shape
    rows, columns = np.nonzero(mask)
    middle = (rows.min() + rows.max() + columns.min() + columns.max()) / 2
    span = max(int(rows.max() - rows.min()), int(columns.max() - columns.min()), 1)
    depth = 2 if span < 50 else 3
    shadow = np.zeros_like(mask)
    shadow[depth:, depth:] = mask[: height - depth, : width - depth]
    if not faint:
        canvas[shadow & (canvas < BACKGROUND_LEVELS)] += BACKGROUND_LEVELS
    first = 2 * BACKGROUND_LEVELS + SHADES * (list(COLORS).index(name) + (len(COLORS) if faint else 0))
    slope = (np.arange(height)[:, None] + np.arange(width)[None, :] - middle) / span
    shade = np.where(slope < -0.28, 0, np.where(slope > 0.34, 2, 1))
    rim = ~shrunk(mask, 1 if span < 50 else 2)
    canvas[mask] = np.where(rim, SHADES - 1, shade)[mask] + first


def png(canvas: NDArray[np.uint8], colors: Sequence[Color]) -> bytes:
    """Return a PNG file with a palette of at most 256 colors, one byte a pixel."""
    height, width = canvas.shape
    lines = b"".join(b"\x00" + row.tobytes() for row in canvas)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", bytes(value for color in colors for value in color)),
        (b"IDAT", b"\x78\x01" + deflated(lines, width + 1) + struct.pack(">I", zlib.adler32(lines))),
        (b"IEND", b""),
    ]
    packed = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def deflated(data: bytes, line: int) -> bytes:
    """Compress to one deflate block with the fixed codes (RFC 1951).

    Parameters
    ----------
    data : bytes
    line : int
        Length of an image line: the pixels just above are tried as a match, and so is the last position where
        the next three bytes occurred.
    """
    bits = _Bits()
    bits.add(0b011, 3)  # last block, fixed codes
    last_position: dict[bytes, int] = {}
    position, end = 0, len(data)
    while position < end:
        candidates = {position - line, last_position.get(data[position : position + 3], -1)}
        length, earlier = max((_match_length(data, earlier, position), earlier) for earlier in candidates)
        if length < 4:
            bits.add_symbol(data[position])
            length = 1
        else:
            bits.add_match(length, position - earlier)
        for passed in range(position, position + length):
            last_position[data[passed : passed + 3]] = passed
        position += length
    bits.add_symbol(256)
    return bits.to_bytes()


def _match_length(data: bytes, earlier: int, position: int) -> int:
    """Return how many bytes from ``earlier`` repeat at ``position``: 0 if it is out of reach."""
    if earlier < 0 or position - earlier > 32768:
        return 0
    limit = min(258, len(data) - position)
    length = 0
    while length < limit and data[earlier + length] == data[position + length]:
        length += 1
    return length


def _steps(first: int, zeros: int, each: int, count: int) -> list[tuple[int, int]]:
    """Return (base, extra bits) of deflate's length or distance codes."""
    table, base = [], first
    for code in range(count):
        extra = max(0, (code - zeros) // each + 1)
        table.append((base, extra))
        base += 1 << extra
    return table


LENGTHS = [*_steps(3, 8, 4, 28), (258, 0)]
DISTANCES = _steps(1, 4, 2, 30)


class _Bits:
    """Bits in deflate's order, and its fixed codes."""

    def __init__(self) -> None:
        self._held = 0
        self._count = 0
        self._bytes = bytearray()

    def add(self, value: int, width: int) -> None:
        """Append a number, lowest bit first."""
        self._held |= value << self._count
        self._count += width
        while self._count >= 8:
            self._bytes.append(self._held & 255)
            self._held >>= 8
            self._count -= 8

    def add_code(self, code: int, width: int) -> None:
        """Append a Huffman code, highest bit first."""
        self.add(int(f"{code:0{width}b}"[::-1], 2), width)

    def add_symbol(self, symbol: int) -> None:
        """Append a literal, a length symbol or the end of the block."""
        if symbol < 144:
            self.add_code(0x30 + symbol, 8)
        elif symbol < 256:
            self.add_code(0x190 + symbol - 144, 9)
        elif symbol < 280:
            self.add_code(symbol - 256, 7)
        else:
            self.add_code(0xC0 + symbol - 280, 8)

    def add_match(self, length: int, distance: int) -> None:
        """Append a copy of ``length`` bytes from ``distance`` bytes back."""
        code = max(index for index, (base, _) in enumerate(LENGTHS) if base <= length)
        self.add_symbol(257 + code)
        self.add(length - LENGTHS[code][0], LENGTHS[code][1])
        code = max(index for index, (base, _) in enumerate(DISTANCES) if base <= distance)
        self.add_code(code, 5)
        self.add(distance - DISTANCES[code][0], DISTANCES[code][1])

    def to_bytes(self) -> bytes:
        """Return everything, the last byte filled with zeros."""
        return bytes(self._bytes) + (bytes([self._held]) if self._count else b"")
