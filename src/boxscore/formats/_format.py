"""Define the interface of a file format: how it is detected, read and written.

Conventions
-----------
A format is one file with one :class:`Format` and one line of the registry. The options of a path are in
:class:`ReadOptions`; a format names those that it takes in ``takes``, and the others are refused before it
is called. ``instances`` and ``processes`` are hints that it may ignore.

A path is detected once: :func:`boxscore.formats.registry.open_at` makes an :class:`Opened`, which carries the
path and its format to everything that reads there. Its ``data`` may be elsewhere than its ``path``: the
content of an unpacked archive, or data in a folder below. Messages and tables name the archive, never the
temporary folder.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np

from boxscore._utils.processes import Workers
from boxscore._utils.records import NamedTuple, record
from boxscore._utils.user_warnings import warn_user
from boxscore.data.alignment import concatenate
from boxscore.data.boxes import ROUNDING, WrittenForm, WrittenFormat, written_form
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import SUPERCATEGORY, Id
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError

if TYPE_CHECKING:
    from boxscore.data.column_names import ColumnMap
    from boxscore.formats._sniffer import Sniffer
    from boxscore.formats.image_sizes import ImageSizes


Side = Literal["ground truth", "detections"]
SIDES: tuple[Side, Side] = ("ground truth", "detections")

CONTENT = frozenset(
    {"masks", "keypoints", "rotated", "quadrilaterals", "areas", "crowd", "difficult", "ignore", "group"}
    | {"sizes", "file names", "columns", "image columns", "ids", "repeated ids", "classes", "fractions"}
    | {"image labels", "positive labels", "ignore together with image labels"}
    | {"class columns", "class column frequency", f"class column {SUPERCATEGORY}", "negative sides"}
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
        raise InputError(
            "the format of the output", "be a format that boxscore can write", got=repr(self.name)
        )

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


# ---------------------------------------------------------------- an opened path


_Table = TypeVar("_Table", bound=BoxTable)


class Opened(NamedTuple):
    """A path, its format, and where its data are."""

    path: Path
    """As it was given."""
    format: Format
    """Of several files, that of each."""
    reason: str
    """How the format was recognized; empty if it was not, and the user names the format."""
    data: Path
    """What the format reads."""
    unpacked: Path | None = None
    """The file or folder that an archive was unpacked to."""
    note: str = ""
    """Tells the user that data in a folder below are read."""
    files: tuple[Opened, ...] = ()
    """Several files that are read one by one."""

    @property
    def is_direct(self) -> bool:
        """Whether the format reads the given path itself, not an archive, data below it or several files."""
        return self.data == self.path and not self.files

    def load_ground_truth(self, options: ReadOptions) -> GroundTruth:
        """Read ground truth."""
        if self.files:
            return _joined_ground_truth([file.load_ground_truth(options) for file in self.files], self.path)
        return self.read(lambda data: self.format.load_ground_truth(data, options))

    def load_detections(self, options: ReadOptions, ground_truth: GroundTruth | None) -> Detections:
        """Read detections, aligned to a ground truth or, with None, in their own vocabularies."""
        if self.files:
            tables = [file.load_detections(options, ground_truth) for file in self.files]
            return _joined_detections(tables, self.path)
        return self.read(lambda data: self.format.load_detections(data, options, ground_truth))

    def read(self, load: Callable[[Path], _Table]) -> _Table:
        """Return what ``load`` reads of the data, and tell the user where they are."""
        self.tell()
        return self.loaded(lambda: load(self.data))

    def tell(self) -> None:
        """Tell the user where the data are, if that is elsewhere."""
        if self.note:
            warn_user(BoxscoreWarning(self.note, severity="note"))

    def loaded(self, load: Callable[[], _Table]) -> _Table:
        """Return what ``load`` reads; the table and errors name an archive, not its temporary folder."""
        with self.named():
            table = load()
        if self.unpacked is None:
            return table
        return dataclasses.replace(table, source=table.source.replace(str(self.unpacked), str(self.path)))

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Name the archive in place of its temporary folder in errors."""
        try:
            yield
        except (FileFormatError, InputError) as error:
            if self.unpacked is None or str(self.unpacked) not in str(error):
                raise
            text = str(error).replace(str(self.unpacked), str(self.path))
            raise type(error)(text) from None


def _joined_ground_truth(tables: Sequence[GroundTruth], path: Path) -> GroundTruth:
    """Return the images of all files as one table, which is named after the path."""
    known: dict[Id, str] = {}
    for table in tables:
        for image in table.images.ids.tolist():
            if image in known:
                rule, got = "be in one file of the ground truth", f"{image!r} in {known[image]}"
                cause = (
                    "its objects would count twice. To compare several annotators, use boxscore "
                    "agreement, or a folder with SA-Co files"
                )
                raise InputError("an image", rule, got=got, place=table.source, cause=cause)
            known[image] = table.source
    whole = concatenate(tables)[0].replaced(source=str(path))
    if len(np.unique(whole.ids)) < len(whole):  # each file counts its annotations from 1
        whole = whole.replaced(ids=np.arange(1, len(whole) + 1))
    return whole


def _joined_detections(tables: Sequence[Detections], path: Path) -> Detections:
    """Return the detections of all files as one table, which is named after the path."""
    left_out = sum((Counter(table.left_out) for table in tables), Counter[str]())
    if len({table.scored for table in tables}) > 1:
        without = next(table.source for table in tables if not table.scored)
        rule = "have scores in every file, or in none"
        raise FileFormatError("detections", rule, got="none", place=without)
    return concatenate(tables)[0].replaced(source=str(path), left_out=dict(left_out))
