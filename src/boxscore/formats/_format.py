"""Define the interface of a file format: how it is detected, read and written.

Conventions
-----------
A format is one file with one :class:`Format` and one line of the registry. The options of a path are in
:class:`ReadOptions`; a format names those that it takes in ``takes``, and the others are refused before it
is called. ``instances`` and ``processes`` are hints that it may ignore.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from boxscore._utils.processes import Workers
from boxscore._utils.records import record
from boxscore.data.boxes import ROUNDING, WrittenForm, WrittenFormat, written_form
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import SUPERCATEGORY, Id
from boxscore.errors import InputError

if TYPE_CHECKING:
    from boxscore.data.column_names import ColumnMap
    from boxscore.formats._sniffer import Sniffer
    from boxscore.formats.image_sizes import ImageSizes

Side = Literal["ground truth", "detections"]
SIDES: tuple[Side, Side] = ("ground truth", "detections")

CONTENT = frozenset(
    {"masks", "keypoints", "rotated", "quadrilaterals", "areas", "crowd", "difficult", "ignore", "group"}
    | {"sizes", "file names", "columns", "image columns", "ids", "repeated ids", "classes", "fractions"}
    | {"image labels", "positive labels", "ignore beside image labels"}
    | {"class columns", "class column frequency", f"class column {SUPERCATEGORY}", "sides below 0"}
)
"""What a table may have besides images, classes, upright boxes and scores; not every file can hold it.

``sides below 0`` are those of inverted boxes, ``areas`` those other than width times height, ``sizes`` and
``file names`` those of images, ``columns`` the user's, ``image columns`` further columns of images,
``classes`` those without objects, and ``fractions`` coordinates in place of pixels. ``image labels`` are
classes verified as absent from whole images, or not annotated in full, ``positive labels`` those verified as
present, and ``class columns`` further columns of classes.
"""


@record(frozen=True)
class ReadOptions:
    """The options of a path that a format sees; the others are in ``FileOptions``, of ``reading``.

    Attributes
    ----------
    format : str, default "auto"
        The format's name; ``"auto"`` detects it.
    image_set : str or Path, optional
        Which part of a data set.
    classes : tuple of str, optional
        The names behind class numbers that count from 0.
    image_sizes : ImageSizes, optional
        Width and height of images in pixels, and which images there are.
    box_format : str, optional
        What the four numbers of a box are, one of ``WRITTEN_FORMATS``: for files that do not say, or say it
        wrongly.
    instances : tuple of str
        Instance columns worth reading with the boxes.
    processes : int or "auto"
        That may read a large file together.
    any_sides : bool
        Whether boxes with sides below 0 are read, because the protocol drops them.
    needs_areas : bool
        Whether the protocol needs the areas of objects, so that sizes of images matter.
    keys, image_keys : tuple of str
        Further keys of records and of images, which the protocol asks for.
    text_keys : tuple of str
        Further keys of records whose values are texts.
    columns : ColumnMap, optional
        Which columns of a table are the image, the class, ...
    further : mapping of str to any
        Options that few formats take or that change ground truth once it is read, checked, by name; those
        that are not given are not there. The table ``FURTHER`` of ``reading`` lists them.
    """

    format: str = "auto"
    image_set: str | Path | None = None
    classes: tuple[str, ...] | None = None
    image_sizes: ImageSizes | None = None
    box_format: WrittenFormat | None = None
    instances: tuple[str, ...] = ()
    processes: Workers = 1
    any_sides: bool = False
    needs_areas: bool = True
    keys: tuple[str, ...] = ()
    image_keys: tuple[str, ...] = ()
    text_keys: tuple[str, ...] = ()
    columns: ColumnMap | None = None
    further: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def written(self) -> WrittenForm | None:
        """The form of the four numbers of a box, if the user gives one."""
        return None if self.box_format is None else written_form(self.box_format)

    @property
    def lowest_side(self) -> float:
        """The least side of a box that is read: 0 but for rounding, unless the protocol drops others."""
        return -math.inf if self.any_sides else -ROUNDING


class Format(abc.ABC):
    """One file format.

    Attributes
    ----------
    name : str
        Its value for ``--format``.
    boxes : {"xywh", "xyxy"} or None
        The box form of its files, for warnings of the box order. None: boxes were checked when written.
    has_class_numbers : bool
        Whether class ids are the user's, and results refer to classes by them alone.
    takes : frozenset of str
        The options that it takes, of ``image_set``, ``classes``, ``image_sizes``, ...
    has_boxes : bool
        Whether its files have upright boxes of four numbers, to which ``box_format`` applies.
    holds : mapping of str to frozenset of str
        What its files can hold beside images, classes, upright boxes and scores, of the words of
        ``CONTENT``, or ``"column NAME"``: by the kind of table, ``"ground truth"`` or
        ``"detections"``. A kind that is not there cannot be written.
    holds_any_text : bool
        Whether names may be any text; else they are printable, without blanks at their ends.
    endings : tuple of str
        How the names of its files end: what chooses it for a file that is written.
    folder_endings : tuple of str
        How the names of the files that it reads in a folder end; none where that may be any.
    """

    name: ClassVar[str]
    boxes: ClassVar[Literal["xywh", "xyxy"] | None] = None
    has_boxes: ClassVar[bool] = True
    has_class_numbers: ClassVar[bool] = False
    takes: ClassVar[frozenset[str]] = frozenset()
    holds: ClassVar[Mapping[str, frozenset[str]]] = {}
    holds_any_text: ClassVar[bool] = False
    endings: ClassVar[tuple[str, ...]] = ()
    folder_endings: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def detect(self, sniffer: Sniffer) -> str | None:
        """Return how this format is recognised at an existing path; None where it is another."""

    @abc.abstractmethod
    def load_ground_truth(self, path: Path, options: ReadOptions) -> GroundTruth:
        """Read ground truth."""

    @abc.abstractmethod
    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read detections, aligned to a ground truth or, with None, in their own vocabularies."""

    def save(self, table: BoxTable, path: Path, *, like: Path | None = None) -> None:
        """Write a table; ``like`` gives the file names where a format has several files."""
        raise InputError("the format of the output", "be one that can be written", got=repr(self.name))

    def lists_images(self, ground_truth: GroundTruth) -> bool:
        """Whether its files name images without objects too, so that no other is one of the data set."""
        return True

    def check_written(self, table: BoxTable) -> None:
        """Refuse a table whose values would not be read as they are."""
        return

    def class_ids(self, table: BoxTable) -> list[Id]:
        """Return the ids that a reader of its files gives the classes of ground truth."""
        ids: list[Id] = table.categories.ids.tolist()
        return ids
