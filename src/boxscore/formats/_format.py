"""Define the interface of a file format: detection, reading and writing.

Conventions
-----------
A format is a module with a :class:`Format`, and a line in the registry. It receives the options in
:class:`ReadOptions` and lists those it supports in ``takes``; others are rejected before it is called.
``instances`` and ``processes`` are hints that it may ignore.

The format of a path is detected once: :func:`boxscore.formats.registry.open_at` returns an :class:`Opened`,
which holds the path and its format. Its ``data`` may differ from its ``path``: an unpacked archive, or data
in a subfolder. Messages and tables show the path of the archive, not of the temporary folder.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

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


Around: TypeAlias = Callable[[Callable[[GroundTruth], Detections], GroundTruth], Detections]

Side = Literal["ground truth", "detections"]
SIDES: tuple[Side, Side] = ("ground truth", "detections")

CONTENT = frozenset(
    {"masks", "keypoints", "rotated", "quadrilaterals", "areas", "crowd", "difficult", "ignore", "group"}
    | {"sizes", "file names", "columns", "image columns", "ids", "repeated ids", "classes", "fractions"}
    | {"image labels", "positive labels", "ignore together with image labels"}
    | {"class columns", "class column frequency", f"class column {SUPERCATEGORY}", "negative sides"}
)
"""Optional content of a table, which not every file format can store.

``negative sides`` are those of inverted boxes, ``areas`` differ from width times height, ``sizes`` and
``file names`` are those of images, ``columns`` are the user's, ``image columns`` are additional columns of
images, ``classes`` are those without objects, and ``fractions`` are used instead of pixels. ``image labels``
are classes verified as absent from an image, or not annotated exhaustively, ``positive labels`` are classes
verified as present, and ``class columns`` are additional columns of classes.
"""


@record(frozen=True)
class ReadOptions:
    """Options that a format receives; ``FileOptions`` in ``reading`` adds the others.

    Attributes
    ----------
    format : str, default "auto"
        The name of the format; ``"auto"`` detects it.
    image_set : str or Path, optional
        The split of a data set to read.
    classes : tuple of str, optional
        Class names, in order of the class numbers from 0.
    image_sizes : ImageSizes, optional
        Image sizes in pixels, and a list of images.
    box_format : str, optional
        The form of the boxes, one of ``WRITTEN_FORMATS``, if the file does not define it or gets it wrong.
    instances : tuple of str
        Instance columns to read together with the boxes.
    processes : int or "auto"
        Number of processes for a large file.
    any_sides : bool
        Whether to accept boxes with negative sides, because the protocol drops them.
    needs_areas : bool
        Whether the protocol needs object areas, and therefore image sizes.
    keys, image_keys : tuple of str
        Additional keys of records and of images that the protocol needs.
    text_keys : tuple of str
        Additional keys of records with text values.
    columns : ColumnMap, optional
        The roles of table columns.
    further : mapping of str to any
        The given options of ``FURTHER`` in ``reading``, checked, by name: options that few formats support,
        or that change the ground truth after it is read.
    around : tuple of callable
        The values of those that correct detections: each is called with a function that reads detections of
        a ground truth, and with the ground truth.
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
    around: tuple[Around, ...] = ()

    @property
    def written(self) -> WrittenForm | None:
        """The form of the four numbers of a box, if the user gives one."""
        return None if self.box_format is None else written_form(self.box_format)

    @property
    def lowest_side(self) -> float:
        """The smallest accepted side of a box: 0 up to rounding, or any if the protocol drops such boxes."""
        return -math.inf if self.any_sides else -ROUNDING


class Format(abc.ABC):
    """One file format.

    Attributes
    ----------
    name : str
        The value of ``--format``.
    boxes : {"xywh", "xyxy"} or None
        The form of boxes in its files, to warn of boxes in another form. None: boxes were checked on writing.
    has_class_numbers : bool
        Whether class ids are chosen by the user and results refer to classes by id only.
    has_ground_truth : bool
        Whether files may be ground truth, not only detections.
    takes : frozenset of str
        The supported options: ``image_set``, ``classes``, ``image_sizes``, ...
    has_boxes : bool
        Whether files have upright boxes of four numbers, to which ``box_format`` applies.
    holds : mapping of str to frozenset of str
        The optional content that files can store, as words of ``CONTENT`` or ``"column NAME"``, for
        ``"ground truth"`` and ``"detections"``. If one of the two is missing, it cannot be written.
    holds_any_text : bool
        Whether names may be any text; otherwise they must be printable, without surrounding spaces.
    endings : tuple of str
        File name endings that select this format for output.
    folder_endings : tuple of str
        Endings of the files to read in a folder; empty for any.
    """

    name: ClassVar[str]
    boxes: ClassVar[Literal["xywh", "xyxy"] | None] = None
    has_boxes: ClassVar[bool] = True
    has_ground_truth: ClassVar[bool] = True
    has_class_numbers: ClassVar[bool] = False
    takes: ClassVar[frozenset[str]] = frozenset()
    holds: ClassVar[Mapping[str, frozenset[str]]] = {}
    holds_any_text: ClassVar[bool] = False
    endings: ClassVar[tuple[str, ...]] = ()
    folder_endings: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def detect(self, sniffer: Sniffer) -> str | None:
        """Return the reason why an existing path has this format; None if it does not."""

    @abc.abstractmethod
    def load_ground_truth(self, path: Path, options: ReadOptions) -> GroundTruth:
        """Read ground truth."""

    @abc.abstractmethod
    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read detections, aligned with a ground truth or, with None, in their own vocabularies."""

    def save(self, table: BoxTable, path: Path, *, like: Path | None = None) -> None:
        """Write a table; if a format has several files, ``like`` is a path with the file names to use."""
        raise InputError(
            "the format of the output", "be a format that boxscore can write", got=repr(self.name)
        )

    def lists_images(self, ground_truth: GroundTruth) -> bool:
        """Whether the files list all images of the data set, including those without objects."""
        return True

    def check_written(self, table: BoxTable) -> None:
        """Reject a table with values that the reader would change."""
        return

    def class_ids(self, table: BoxTable) -> list[Id]:
        """Return the ids that classes of ground truth have after writing and reading."""
        ids: list[Id] = table.categories.ids.tolist()
        return ids


# ---------------------------------------------------------------- an opened path


_Table = TypeVar("_Table", bound=BoxTable)


class Opened(NamedTuple):
    """A path with its detected format."""

    path: Path
    """The path given by the user."""
    format: Format
    """The format of the data, or of each of several files."""
    reason: str
    """Why the path has this format; empty if the user named the format and detection failed."""
    data: Path
    """The path to read."""
    unpacked: Path | None = None
    """The file or folder to which an archive was unpacked."""
    note: str = ""
    """A note for the user that data in a subfolder are read."""
    files: tuple[Opened, ...] = ()
    """Several files to read one by one."""

    @property
    def is_direct(self) -> bool:
        """Whether the path is read directly: no archive, subfolder or list of files."""
        return self.data == self.path and not self.files

    def load_ground_truth(self, options: ReadOptions) -> GroundTruth:
        """Read ground truth."""
        if self.files:
            return _join_ground_truth([file.load_ground_truth(options) for file in self.files], self.path)
        return self.read(lambda data: self.format.load_ground_truth(data, options))

    def load_detections(self, options: ReadOptions, ground_truth: GroundTruth | None) -> Detections:
        """Read detections, aligned with a ground truth or, with None, in their own vocabularies."""
        if options.around and ground_truth is not None:
            *outer, inner = options.around
            plain = dataclasses.replace(options, around=tuple(outer))
            return inner(lambda truth: self.load_detections(plain, truth), ground_truth)
        if self.files:
            tables = [file.load_detections(options, ground_truth) for file in self.files]
            return _join_detections(tables, self.path)
        return self.read(lambda data: self.format.load_detections(data, options, ground_truth))

    def read(self, load: Callable[[Path], _Table]) -> _Table:
        """Load the data with ``load``, and show the user a note if they are in a subfolder."""
        self.tell()
        return self.loaded(lambda: load(self.data))

    def tell(self) -> None:
        """Show the user a note if the data are in a subfolder."""
        if self.note:
            warn_user(BoxscoreWarning(self.note, severity="note"))

    def loaded(self, load: Callable[[], _Table]) -> _Table:
        """Call ``load``; show the archive instead of its temporary folder in the table and in errors."""
        with self.named():
            table = load()
        if self.unpacked is None:
            return table
        return dataclasses.replace(table, source=table.source.replace(str(self.unpacked), str(self.path)))

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Show the archive instead of its temporary folder in errors."""
        try:
            yield
        except (FileFormatError, InputError) as error:
            if self.unpacked is None or str(self.unpacked) not in str(error):
                raise
            text = str(error).replace(str(self.unpacked), str(self.path))
            raise type(error)(text) from None


def _join_ground_truth(tables: Sequence[GroundTruth], path: Path) -> GroundTruth:
    """Concatenate the ground truth of several files; the path becomes the source."""
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
    if len(np.unique(whole.ids)) < len(whole):  # each file numbers its annotations from 1
        whole = whole.replaced(ids=np.arange(1, len(whole) + 1))
    return whole


def _join_detections(tables: Sequence[Detections], path: Path) -> Detections:
    """Concatenate the detections of several files; the path becomes the source."""
    left_out = sum((Counter(table.left_out) for table in tables), Counter[str]())
    if len({table.scored for table in tables}) > 1:
        without = next(table.source for table in tables if not table.scored)
        rule = "have scores in every file, or in none"
        raise FileFormatError("detections", rule, got="none", place=without)
    return concatenate(tables)[0].replaced(source=str(path), left_out=dict(left_out))
