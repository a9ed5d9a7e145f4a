"""Read CrowdHuman ``.odgt`` files, ground truth and results: a JSON object per line.

Conventions
-----------
- The box of a person is ``fbox``, the full body; ``vbox`` (visible) and ``hbox`` (head) are not compared. The
  column ``visibility`` is the area of ``vbox`` over that of ``fbox``.
- The ``ignore`` flag is set for every tag but ``person``, and if ``extra.ignore`` is not 0. All objects have
  the class ``person``, since ignored regions contain persons.
- Equal scores are ordered by the lines of the ground truth, so its images have the column ``line``, and
  detections are read in that order.
- Lines may have ``width`` and ``height``. Those of results become columns of the detections, because
  annotations lack them.

References
----------
https://www.crowdhuman.org/; CrowdDet, ``lib/evaluate``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np

from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import FileFormatError
from boxscore.formats import _json
from boxscore.formats._coco_records import DECODING_ERRORS
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows, check_sides, detections_of
from boxscore.formats._sniffer import Sniffer

LINE = "line"
"""Image column with the line number in the ground truth."""
TAGS = ("person", "mask", "background")
"""Tags of annotations."""


class _Truth(msgspec.Struct, gc=False):
    tag: str
    fbox: list[float]
    vbox: list[float] | None = None
    extra: dict[str, Any] | None = None


class _Detection(msgspec.Struct, gc=False):
    box: list[float]
    score: float
    tag: Any = None


class _Line(msgspec.Struct, gc=False):
    identifier: str = msgspec.field(name="ID")
    width: float | None = None
    height: float | None = None
    gtboxes: list[_Truth] | None = None
    dtboxes: list[_Detection] | None = None


class CrowdHumanFormat(RowFormat):
    """CrowdHuman files with a JSON object per line."""

    name = "crowdhuman"
    boxes = "xywh"
    takes = frozenset({"image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Recognize a first line with CrowdHuman boxes."""
        line = sniffer.first_line
        known = line.startswith("{") and '"ID"' in line and ('"gtboxes"' in line or '"dtboxes"' in line)
        return "CrowdHuman's lines of JSON" if known else None

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read detections in the order of the lines of the ground truth."""
        order: dict[Id, int] = {}
        if ground_truth is not None and LINE in ground_truth.images.columns:
            order = dict(
                zip(
                    ground_truth.images.ids.tolist(),
                    ground_truth.images.columns[LINE].tolist(),
                    strict=True,
                )
            )
        rows = self.rows(path, options, of_results=True, order=order)
        return detections_of(rows, options, ground_truth)

    def rows(
        self,
        path: Path,
        options: ReadOptions,
        *,
        of_results: bool,
        order: Mapping[Id, int] = MappingProxyType({}),
    ) -> Rows:
        """Read every line; images in ``order`` come first, in that order."""
        # Collect lists of boxes, and convert them to arrays once.
        wanted = "dtboxes" if of_results else "gtboxes"
        images: dict[str, int] = {}
        sizes: list[tuple[float, float]] = []
        index: list[int] = []
        boxes: list[list[float]] = []
        values: list[float] = []  # scores, or visibility
        flags: list[bool] = []
        places: list[tuple[int, int]] = []
        # Sort by the order of the ground truth, since equal scores are ranked by file order.
        lines: Iterable[tuple[int, _Line]] = _lines(path)
        if order:
            lines = sorted(lines, key=lambda line: order.get(line[1].identifier, len(order)))
        for number, line in lines:
            # A line has one of two lists; the other one indicates the wrong file.
            records: Any = line.dtboxes if of_results else line.gtboxes
            place = f"line {number} of {path}"
            if records is None:
                other = "gtboxes" if of_results else "dtboxes"
                cause = "are these results?" if line.dtboxes is not None else ""
                cause = "is this ground truth?" if line.gtboxes is not None else cause
                got = other if cause else "none"
                raise FileFormatError("a line", f"have {wanted}", got=got, place=place, cause=cause)
            if line.identifier in images:
                got = f"{line.identifier!r} twice"
                raise FileFormatError("images", "have one line each", got=got, place=place)
            # Treat impossible sizes as unknown.
            image = images[line.identifier] = len(images)
            known = 1 <= (line.width or 0) <= 1e9 and 1 <= (line.height or 0) <= 1e9
            sizes.append((float(line.width or 0), float(line.height or 0)) if known else (math.nan, math.nan))
            # Use full bodies, and flag masks and ignored persons.
            for position, record in enumerate(records):
                box = record.box if of_results else record.fbox
                if len(box) != 4:
                    raise FileFormatError(
                        "a box",
                        "be four numbers, x y w h",
                        got=f"{len(box)}",
                        place=f"{wanted} {position} of {place}",
                        cause="do they end with the score? it has a key of its own" if len(box) == 5 else "",
                    )
                # Add a row per box, with its place for messages.
                index.append(image)
                boxes.append(box)
                places.append((number, position))
                if of_results:
                    values.append(record.score)
                    continue
                if record.tag not in TAGS:
                    raise FileFormatError(
                        "a tag",
                        f"be one of {', '.join(TAGS)}",
                        got=repr(record.tag)[:60],
                        place=f"{wanted} {position} of {place}",
                    )
                # Flag everything except persons that are not ignored.
                flags.append(record.tag != "person" or _is_set(record.extra))
                values.append(_visible(box, record.vbox))

        def place_of(row: int) -> str:
            return "{1} {0[1]} of line {0[0]} of {2}".format(places[row], wanted, path)

        # Convert x y w h to corners, and check the sides between these.
        extent = np.array(sizes, dtype=np.float64).reshape(-1, 2)
        image_of_box = np.array(index, dtype=np.int64)
        corners = np.array(boxes, dtype=np.float64).reshape(-1, 4)
        if options.box_format is None:
            corners[:, 2:] += corners[:, :2]
            check_sides(corners[:, 2:] - corners[:, :2], place_of)
        # Results may have image sizes, which annotations lack.
        numbers = np.array(values, dtype=np.float64)
        given = {} if of_results else {"ignore": np.array(flags, dtype=bool)}
        columns: dict[str, Any] = {} if of_results else {"visibility": numbers}
        if of_results and not np.isnan(extent).all():
            columns = {"image_width": extent[image_of_box, 0], "image_height": extent[image_of_box, 1]}
        return Rows(
            source=str(path),
            images=list(images),
            image=image_of_box,
            labels=["person"],
            label=np.zeros(len(image_of_box), dtype=np.int64),
            boxes=corners,
            box_format="xyxy",
            place=place_of,
            scores=numbers if of_results else None,
            sizes=extent,
            given=given,
            columns=columns,
            image_columns={} if of_results else {LINE: np.arange(len(images))},
        )


def _lines(path: Path) -> Iterator[tuple[int, _Line]]:
    """Yield the lines that are not blank, with their numbers."""
    # Decode line by line, so that one line is in memory and errors name it.
    decode = msgspec.json.Decoder(_Line).decode
    with _json.open_binary(path) as file:
        for number, text in enumerate(file, start=1):
            line = text.removeprefix(b"\xef\xbb\xbf").strip()
            if not line:
                continue
            try:
                yield number, decode(line)
            except DECODING_ERRORS as error:
                place = f"line {number} of {path}"
                shown = line[:40].decode("utf-8", errors="replace")
                if isinstance(error, msgspec.ValidationError):
                    got = str(error)[:120]
                    rule = "have an ID and gtboxes (tag, fbox) or dtboxes (box, score)"
                    raise FileFormatError("a line", rule, got=got, place=place) from None
                cause = "is the file cut short?" if line.startswith(b"{") else "is this an .odgt file?"
                raise FileFormatError(
                    "a line", "be a JSON object", got=repr(shown), place=place, cause=cause
                ) from None


def _is_set(extra: dict[str, Any] | None) -> bool:
    return bool(extra) and (extra or {}).get("ignore", 0) != 0


def _visible(body: list[float], visible: list[float] | None) -> float:
    """Return the area of the visible box over that of the body."""
    area = body[2] * body[3]
    if visible is None or len(visible) != 4 or not area > 0:
        return math.nan
    return visible[2] * visible[3] / area


FORMAT = CrowdHumanFormat()
