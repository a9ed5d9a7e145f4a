"""Define a part: everything that one set of images contributes to the scores; save and load it.

Conventions
-----------
- A part holds packed matches (:mod:`boxscore.extensions.large.packed`), the ids of its images and a header:
  protocol and digest, version of boxscore, classes, counts. It does not store boxes or overlaps.
- If file order breaks ties between equal scores, rows are stored. *own* rows index the part's table, and
  parts follow each other in merge order; *shared* rows index one table that all parts came from; *image* rows
  count within an image, and images are ordered by id.
- If max detections apply per class to the whole data set, a part is matched without them and lists the
  *spent* detections, which count toward the limit but are not evaluated. The limit is applied on merging.
- If scores are min-max scaled over the data set, a part stores them as given, with their minimum and maximum,
  and they are scaled on merging. Scaling keeps their order, except that some scores become equal; the order
  in the file breaks these ties, so matching does not change.
- The file format is an uncompressed ``.npz`` archive without pickles: one array per column, the header as
  JSON.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.files import write_atomically
from boxscore._utils.records import PicklesFields
from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore._version import __version__
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, as_ids, digest_of_names
from boxscore.errors import FileFormatError, InputError
from boxscore.evaluation import Evaluation, counts_of_tables
from boxscore.extensions.crowds.stretching import GivenScores
from boxscore.extensions.formats._archive import Archive, open_archive, zipped
from boxscore.extensions.large.packed import PackedMatches, packed
from boxscore.extensions.large.packed_reading import packed_of_arrays
from boxscore.matching.matcher import Matcher
from boxscore.matching.matches import Matches
from boxscore.matching.ranking import scored_enough
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.kinds import counted_for

FORM = 3
"""Version of the file format."""

RowOrder = Literal["own", "shared", "image"]

COUNTED = ("ground_truths", "crowds", "difficult", "ignored", "detections")


class Spent(NamedTuple):
    """Detections that count toward max detections of the data set but are not evaluated, [S] each."""

    category: NDArray[np.int32]
    score: NDArray[np.float64]
    row: NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False)
class Part(PicklesFields):
    """Everything that one set of images contributes to the scores.

    Attributes
    ----------
    protocol : Protocol
    categories : Categories
        The classes; the same in every part.
    image_ids : ndarray, [I]
        Ids of all images of the part, also those without objects; ascending.
    image_columns : mapping of str to ndarray, [I] each
        Further image columns, for slices.
    matches : PackedMatches
    counts : mapping of str to int
        The entries of ``Evaluation.counts`` that add up: objects and detections.
    truth_digest : int
        :func:`truth_digest` of the ground truth.
    left_out : mapping of str to int
        Number of detections per class that is not in the ground truth.
    row_order : {"own", "shared", "image"}
        What rows are numbered within: the part's table, a shared table, or an image.
    row_count : int
        Number of rows of the part's detections table.
    spent : Spent, or None
    score_ends : (float, float), or None
        Minimum and maximum score, if scores are min-max scaled on merging.
    source : str
        Name of the part in messages.
    version : str
        Version of boxscore that made the part.
    fallbacks : (str, int)
        A message about a fallback in the comparison, and the number of parts that it affects; not saved.
    shard : (int, int), or None
        Number of the shard, and the number of shards.
    """

    protocol: Protocol
    categories: Categories
    image_ids: NDArray[Any]
    image_columns: Mapping[str, NDArray[Any]]
    matches: PackedMatches
    counts: Mapping[str, int]
    truth_digest: int
    left_out: Mapping[str, int]
    row_order: RowOrder
    row_count: int
    spent: Spent | None = None
    score_ends: tuple[float, float] | None = None
    source: str = "a part"
    version: str = __version__
    fallbacks: tuple[str, int] = ("", 0)
    shard: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self.matches)

    def __repr__(self) -> str:
        return (
            f"Part of {counted(len(self.image_ids), 'image')}: {counted(len(self), 'detection')} in "
            f"{self.nbytes:,} bytes, protocol {self.protocol.name!r}"
        )

    @property
    def stand_ins(self) -> tuple[str, int]:
        """The former name of :attr:`fallbacks`."""
        warn_user("Part.stand_ins is deprecated: it is called fallbacks", DeprecationWarning)
        return self.fallbacks

    @property
    def nbytes(self) -> int:
        """Size in memory in bytes, without image ids that are strings."""
        spent = sum(column.nbytes for column in self.spent) if self.spent is not None else 0
        return self.matches.nbytes + self.image_ids.nbytes + spent

    @property
    def digest(self) -> str:
        """Digest of the protocol."""
        return self.protocol.digest

    @property
    def identity(self) -> TruthIdentity:
        """Identity of the ground truth."""
        ids = self.image_ids
        return TruthIdentity(
            self.categories, len(ids), image_digest(ids), self.truth_digest, digest_of_names(ids)
        )

    @classmethod
    def of(
        cls,
        matches: Matches,
        ground_truth: GroundTruth,
        detections: Detections,
        protocol: Protocol,
        *,
        row_order: RowOrder = "own",
        spent: Spent | None = None,
        score_ends: tuple[float, float] | None = None,
    ) -> Part:
        """Make a part from the matches of two tables, which must have exactly the images of the part.

        Parameters
        ----------
        matches : Matches
            Matches with rows as ``row_order`` says.
        ground_truth, detections : GroundTruth, Detections
            The matched tables.
        protocol : Protocol
        row_order : {"own", "shared", "image"}, default "own"
        spent : Spent, optional
            Needed if max detections apply per class to the whole data set.
        score_ends : (float, float), optional
            Needed if the protocol min-max scales scores.

        Returns
        -------
        Part

        Raises
        ------
        ProtocolError
            If the protocol cannot be evaluated part by part.
        """
        # Keep only the columns that scores need, without boxes, so that a part is small.
        check_mergeable(protocol)
        counts = counts_of_tables(ground_truth, detections, matches)
        return cls(
            protocol,
            ground_truth.categories,
            matches.images.ids,
            matches.images.columns,
            packed(counted_for(matches, protocol), with_rows=spent is not None),
            {name: counts[name] for name in COUNTED},
            truth_digest(ground_truth),
            dict(detections.left_out),
            row_order,
            len(detections),
            spent,
            score_ends,
            detections.source,
        )

    # ------------------------------------------------------------ bytes

    def to_bytes(self) -> bytes:
        """Return the part as the bytes of an ``.npz`` archive.

        Raises
        ------
        InputError
            If a column of the images cannot be saved.
        """
        buffer = io.BytesIO()
        np.savez(buffer, **self._members())  # type: ignore[arg-type]
        return buffer.getvalue()

    def _members(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the file by name."""
        # Small plain values go into a JSON header.
        header: dict[str, Any] = {
            "boxscore_part": FORM,
            "version": self.version,
            "digest": self.digest,
            "protocol": dataclasses.asdict(self.protocol),
            "class_ids": self.categories.ids.tolist(),
            "class_names": self.categories.names.tolist(),
            "class_columns": {name: values.tolist() for name, values in self.categories.columns.items()},
            "images": len(self.image_ids),
            "counts": dict(self.counts),
            "truth_digest": self.truth_digest,
            "left_out": dict(self.left_out),
            "row_order": self.row_order,
            "row_count": self.row_count,
            "source": self.source,
            "image_columns": {},
        }
        # Write optional fields only if they are set.
        if self.shard is not None:
            header["shard"] = self.shard
        if self.score_ends is not None:
            header["score_ends"] = self.score_ends
        # Store ids that are numbers as an array, ids that are text in the header.
        arrays = self.matches.arrays()
        if self.image_ids.dtype == object:
            header["image_ids"] = self.image_ids.tolist()
        else:
            arrays["image_ids"] = self.image_ids
        # Store columns of plain numbers as arrays, others as JSON.
        for name, values in self.image_columns.items():
            if values.dtype == object or values.ndim != 1:
                header["image_columns"][name] = values.tolist()
            else:
                header["image_columns"][name] = None
                arrays[f"image:{name}"] = values
        # Detections that count toward max detections.
        if self.spent is not None:
            arrays |= {f"spent_{name}": values for name, values in self.spent._asdict().items()}
        # Raise if JSON cannot hold a value, before anything is written.
        try:
            text = json.dumps(header)
        except (TypeError, ValueError) as error:
            raise InputError(
                "columns of images and classes", "be plain values to be saved", got=error
            ) from None
        return arrays | {"header": np.frombuffer(text.encode("ascii"), dtype=np.uint8)}

    def save(self, path: str | Path) -> None:
        """Write the part to a file atomically.

        Parameters
        ----------
        path : str or Path
            Must end in ``.npz``.

        Raises
        ------
        InputError
            If the name has another ending, or the file cannot be written.
        """
        if Path(path).suffix != ".npz":
            raise InputError("a part's file", "be named *.npz", got=str(path))
        write_atomically(Path(path), self.to_bytes())

    @classmethod
    def from_bytes(cls, content: bytes, *, source: str = "a part") -> Part:
        """Read the bytes of :meth:`to_bytes`.

        Parameters
        ----------
        content : bytes
        source : str, default "a part"
            Name of the part in messages.

        Returns
        -------
        Part

        Raises
        ------
        FileFormatError
            If the bytes are not a part, damaged, or from another version of boxscore.
        """
        with open_archive(Path(source), io.BytesIO(content), what=WHAT, writer=WRITER) as archive:
            return _read(archive, source)


WHAT, WRITER = "a part's file", "boxscore evaluate --save-part or Evaluation.save_part"


def load_part(path: str | Path) -> Part:
    """Load a part from a file.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Part

    Raises
    ------
    FileFormatError
        If the file is not a part, damaged, or from another version of boxscore.
    """
    count = parts_in(path)
    if count > 1:
        cause = "boxscore.distributed.merge reads all of them"
        raise FileFormatError(WHAT, "hold one part", got=f"{count:,}", place=str(path), cause=cause)
    return load_one_of(path, 0)


def save_parts(path: str | Path, parts: Iterable[Part]) -> None:
    """Write parts of disjoint images to one file; a single part is written as by :meth:`Part.save`.

    Parameters
    ----------
    path : str or Path
        Must end in ``.npz``.
    parts : iterable of Part
        Only one part is in memory at a time.

    Raises
    ------
    InputError
        If the name has another ending, or the file cannot be written.
    """
    if Path(path).suffix != ".npz":
        raise InputError("a part's file", "be named *.npz", got=str(path))
    write_atomically(Path(path), zipped(_members_of(parts)))


def _members_of(parts: Iterable[Part]) -> Iterator[tuple[str, NDArray[Any]]]:
    for number, part in enumerate(parts):
        for name, values in part._members().items():
            yield f"{number}/{name}", values


def parts_in(path: str | Path) -> int:
    """Return the number of parts in a file, from the archive's directory."""
    with open_archive(Path(path), what=WHAT, writer=WRITER) as archive:
        return max(1, len({name.partition("/")[0] for name in archive.names if "/" in name}))


def load_one_of(path: str | Path, number: int) -> Part:
    """Load one of the parts in a file, counted from 0."""
    with open_archive(Path(path), what=WHAT, writer=WRITER) as archive:
        names = archive.names
        if not any("/" in name for name in names):
            return _read(archive, str(path))
        return _read(archive.within(f"{number}/"), f"part {number + 1} of {path}")


def truth_digest(ground_truth: GroundTruth) -> int:
    """Return a 64-bit digest of a ground truth that does not depend on the order of its rows.

    Digests of disjoint images add up modulo 2 ** 64.
    """
    image = _hashes(ground_truth.images.ids)
    with np.errstate(over="ignore"):
        mixed = _mixed(image[ground_truth.image]) + ground_truth.category.astype(np.uint64)
        for side in np.ascontiguousarray(ground_truth.boxes.T):
            mixed = _mixed(mixed) ^ (side + 0.0).view(np.uint64)
        return int(_mixed(mixed).sum(dtype=np.uint64))


class TruthIdentity(NamedTuple):
    """Digests and counts that identify a ground truth without its rows."""

    categories: Categories
    images: int
    image_digest: int
    """64-bit digest of the image ids; digests of disjoint images add up modulo 2 ** 64."""
    truth_digest: int
    """:func:`truth_digest`."""
    names_digest: int
    """:func:`~boxscore.data.vocabulary.digest_of_names` of the image ids, which also adds up."""

    @classmethod
    def of(cls, ground_truth: GroundTruth) -> TruthIdentity:
        """Return the identity of a table."""
        ids = ground_truth.images.ids
        return cls(
            ground_truth.categories,
            len(ids),
            image_digest(ids),
            truth_digest(ground_truth),
            digest_of_names(ids),
        )

    @classmethod
    def joined(cls, parts: Iterable[TruthIdentity]) -> TruthIdentity:
        """Add up the identities of disjoint images."""
        categories, *columns = zip(*parts, strict=True)
        images, image, truth, names = map(sum, columns)
        return cls(categories[0], images, image % 2**64, truth % 2**64, names % 2**256)

    def same_as(self, other: TruthIdentity) -> bool:
        """Return whether both have the same images, classes and objects."""
        return self[1:] == other[1:] and self.categories.same_as(other.categories)


def image_digest(ids: NDArray[Any]) -> int:
    """Return a 64-bit digest of image ids that does not depend on their order."""
    with np.errstate(over="ignore"):
        return int(_mixed(_hashes(ids)).sum(dtype=np.uint64))


def _hashes(ids: NDArray[Any]) -> NDArray[np.uint64]:
    """Hash each id to 64 bits; the hash of an integer does not depend on the other ids."""
    if ids.dtype != object:
        return ids.view(np.uint64)
    every = (
        (one % 2**64).to_bytes(8, sys.byteorder)
        if isinstance(one, int)
        else hashlib.blake2b(repr(one).encode(), digest_size=8).digest()
        for one in ids.tolist()
    )
    return np.frombuffer(b"".join(every), dtype=np.uint64)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix 64 bits (the finalizer of SplitMix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def match_part(
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: Protocol,
    *,
    rows: NDArray[np.int64] | None = None,
) -> Part:
    """Match two tables with the same vocabularies and return their part.

    Parameters
    ----------
    ground_truth, detections : GroundTruth, Detections
        Tables with exactly the images of the part, prepared as the protocol requires.
    protocol : Protocol
    rows : ndarray of int64, [D], optional
        Row of each detection in a table that all parts share.

    Returns
    -------
    Part

    Raises
    ------
    ProtocolError
        If the protocol cannot be evaluated part by part.
    """
    rules = protocol.matching
    check_mergeable(protocol)
    if not rules.caps_data_set:
        matches, spent = Matcher(ground_truth, detections, protocol).match(), None
    else:
        # Match without the limit: detections beyond it have lower scores and change no match before it.
        relaxed = protocol.replaced(matching=rules.replaced(cap_scope="class"))
        matcher = Matcher(ground_truth, detections, relaxed)
        matches = matcher.match()
        # Detections that are not eligible still count toward the limit; keep their class, score and row.
        unused = np.zeros(0, dtype=np.intp)
        if matcher.eligible is not None:
            unused = np.flatnonzero(~matcher.eligible & scored_enough(detections.scores, protocol))
        spent = Spent(detections.category[unused], detections.scores[unused], unused.astype(np.int64))
    # If scaling needs the extremes of all parts, store the scores as given.
    matches, ends = _as_given(matches, detections, protocol)
    # Use the rows of a shared table, so that they break ties.
    if rows is not None:
        matches = dataclasses.replace(matches, row=rows[matches.row])
        spent = None if spent is None else spent._replace(row=rows[spent.row])
    order: RowOrder = "own" if rows is None else "shared"
    return Part.of(matches, ground_truth, detections, protocol, row_order=order, spent=spent, score_ends=ends)


def part_of(evaluation: Evaluation) -> Part:
    """Return the part of an evaluation.

    Parameters
    ----------
    evaluation : Evaluation

    Returns
    -------
    Part

    Raises
    ------
    ProtocolError
        If the protocol cannot be evaluated part by part.
    """
    evaluation._require_overlaps("a part")
    truth, detections, protocol = evaluation.ground_truth, evaluation.detections, evaluation.protocol
    if protocol.matching.caps_data_set:
        return match_part(truth, detections, protocol)
    matches, ends = _as_given(evaluation.matched, detections, protocol)
    return Part.of(matches, truth, detections, protocol, score_ends=ends)


def _as_given(
    matches: Matches, detections: Detections, protocol: Protocol
) -> tuple[Matches, tuple[float, float] | None]:
    """Undo the scaling of scores; also return the minimum and maximum of the given scores."""
    if not protocol.rounding.stretch_scores:
        return matches, None
    given = GivenScores.of(detections)
    score = given.score_as_given[matches.row]
    return dataclasses.replace(matches, score=score).in_class_order(), given.ends


def check_mergeable(protocol: Protocol) -> None:
    """Raise if the protocol cannot be evaluated part by part."""
    protocol.scope.check("parts")


# ---------------------------------------------------------------- reading


def _read(archive: Archive, source: str) -> Part:
    # Check the header, then read all arrays.
    members = {name: archive.member(name) for name in archive.names}
    header = _header(archive, members, source)
    arrays = {name: archive.read(name) for name in members if name != "header"}
    # Do not trust the header: every value is checked, here or by a constructor.
    try:
        protocol = Protocol.read(header["protocol"])
        if not all(isinstance(name, str) for name in header["class_names"]):
            raise ValueError("a class name that is not text")
        categories = Categories.build(
            header["class_ids"], names=header["class_names"], columns=header["class_columns"]
        )
        if categories.ids.tolist() != header["class_ids"]:
            raise ValueError("classes in another order")
        # Ids are text in the header, or an array of numbers.
        ids = arrays.pop("image_ids", None)
        ids = as_ids(header["image_ids"] if ids is None else ids, name="image ids")
        if len(ids) != header["images"] or len(Categories.order(ids)) != len(ids):
            raise ValueError("image ids that occur twice")
        columns = {
            name: arrays.pop(f"image:{name}") if values is None else _objects(values)
            for name, values in header["image_columns"].items()
        }
        if any(len(values) != len(ids) for values in columns.values()):
            raise ValueError("image columns of another length")
        # ``packed_of_arrays`` checks the arrays of the matches.
        spent = None
        if "spent_row" in arrays:
            spent = Spent(*(arrays.pop(f"spent_{name}") for name in Spent._fields))
        matches = packed_of_arrays(arrays, protocol, len(ids), len(categories))
        counts = {name: _whole(header["counts"][name]) for name in COUNTED}
        left_out = {str(name): _whole(count) for name, count in header["left_out"].items()}
        if header["row_order"] not in get_args(RowOrder):
            raise ValueError("another order of rows")
        # Check the digest of the protocol at the end.
        part = Part(
            protocol,
            categories,
            ids,
            columns,
            matches,
            counts,
            _whole(header["truth_digest"]),
            left_out,
            header["row_order"],
            _whole(header["row_count"]),
            spent,
            _ends(header.get("score_ends"), protocol, len(matches)),
            source,
            str(header["version"]),
            shard=_shard(header.get("shard")),
        )
        if header["digest"] != protocol.digest:
            raise ValueError("a protocol that is not that of the digest")
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise FileFormatError(
            WHAT,
            "hold what boxscore wrote",
            got=str(error)[:200] or "less",
            place=source,
            cause="a damaged file?",
        ) from None
    return part


def _header(archive: Archive, members: Mapping[str, Any], source: str) -> dict[str, Any]:
    # Treat any damage of the header as a file of another tool.
    member = members.get("header")
    header: Any = None
    if member is not None and member.dtype == np.uint8 and len(member.shape) == 1:
        try:
            header = json.loads(archive.read("header").tobytes())
        except (ValueError, RecursionError):
            header = None
    if not isinstance(header, dict) or "boxscore_part" not in header:
        raise FileFormatError(WHAT, f"be written by {WRITER}", got=source)
    # Only the current version of the format is supported.
    if header["boxscore_part"] != FORM:
        raise FileFormatError(
            WHAT,
            f"be of form {FORM}",
            got=header["boxscore_part"],
            place=source,
            cause="of another boxscore?",
        )
    return header


def _objects(values: Any) -> NDArray[Any]:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _ends(value: Any, protocol: Protocol, detections: int) -> tuple[float, float] | None:
    if value is None and not (protocol.rounding.stretch_scores and detections):
        return None
    low, high = map(float, value)
    if not -np.inf < low <= high < np.inf or not protocol.rounding.stretch_scores:
        raise ValueError(f"the scores {value!r}")
    return low, high


def _shard(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    number, shares = map(_whole, value)
    if not 1 <= number <= shares:
        raise ValueError(f"the share {value!r}")
    return number, shares


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"the count {value!r}")
    return value
