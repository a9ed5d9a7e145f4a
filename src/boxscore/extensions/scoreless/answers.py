"""Read answers of language models: text with boxes, one per image, or per image and phrase.

Conventions
-----------
- Files are JSON lines, or a JSON list, of ``{"image_id": 7, "answer": "..."}``, with ``width`` and ``height``
  of the image, ``input_width`` and ``input_height`` of the model's input, and ``phrase``, the one class in
  question; or a folder of text files, named like the images.
- Text is parsed by :mod:`boxscore.extensions.scoreless._answer_text`, numbers are interpreted by
  :mod:`boxscore.extensions.scoreless.coordinates`: one convention per file.
- Labels are compared exactly, then without case and with blanks for ``_`` and ``-``, never in part. With a
  phrase, every box belongs to that phrase. A box without a label has the class of a ground truth with only
  one; otherwise it is left out, with a warning.
- Answers do not have scores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore._utils.files import read_bytes, read_text
from boxscore._utils.memory import paused_collector
from boxscore._utils.text import counted, counted_of, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.lookup import image_rows_by_name
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id, as_ids
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._record_tables import decoded_lines
from boxscore.extensions.scoreless._answer_boxes import AnswerBoxes, same_label
from boxscore.extensions.scoreless._answer_tags import NOTATIONS
from boxscore.extensions.scoreless._answer_text import KEYS_OF_BOXES, LONGEST, read_answer
from boxscore.extensions.scoreless._phrases import PHRASE
from boxscore.formats._format import ReadOptions
from boxscore.formats._label_files import text_files
from boxscore.formats._rows import RowFormat, Rows, collected, detections_of
from boxscore.formats._sniffer import Sniffer
from boxscore.formats.image_sizes import known_sizes

MANY_TURNED, FEW_TURNED = 0.1, 5
"""Minimum fraction and number of boxes with swapped corners that are not just slips of a model."""

_IMAGES = ("image_id", "image", "file_name")
_SIDES = (("width", "height"), ("input_width", "input_height"))


class _Line(NamedTuple):
    """An answer with the other data of its line."""

    image: Id
    text: str
    phrase: str | None
    size: tuple[float, float]
    input_size: tuple[float, float]
    place: str


class AnswersFormat(RowFormat):
    """Answers of language models."""

    name = "answers"
    boxes = "xyxy"
    has_boxes = False
    folder_endings = (".txt",)

    def detect(self, sniffer: Sniffer) -> str | None:
        """Recognize records with the keys of an image and an answer, or text files with boxes of a model."""
        if sniffer.is_folder:
            return "a folder of answers" if any(_has_boxes(text.text) for text in sniffer.texts) else None
        if sniffer.has_keys("answer") and any(sniffer.has_keys(name) for name in _IMAGES):
            return "answers of a language model"
        return None

    @paused_collector()
    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read the boxes of the answers, with only the images and classes of the file."""
        if not of_results:
            cause = "pass them as detections, with ground truth in another format"
            raise FileFormatError("ground truth", "not be answers of a model", got=str(path), cause=cause)
        return _Reading(path, options).rows(None)

    @paused_collector()
    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read the answers."""
        reading = _Reading(path, options)
        rows = reading.rows(ground_truth)
        return detections_of(rows, options, ground_truth).replaced(answers=reading.summary)


FORMAT = AnswersFormat()

OPTIONS_OF_DETECTIONS = frozenset({"image_sizes", "coordinates", "repeated", "loose"})


def _has_boxes(text: str) -> bool:
    """Return whether a text has a key of boxes, or the marker of a notation."""
    return any(f'"{key}"' in text or f"'{key}'" in text for key in KEYS_OF_BOXES) or any(
        notation.sign.search(text) for notation in NOTATIONS
    )


class _Reading:
    """One pass over a file of answers."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self._path, self._options = path, options
        self._lines = _reject_repeats(_lines_at(path))
        images = collected([line.image for line in self._lines])
        self._images, self._image = images.values, images.positions
        answers = [read_answer(line.text, loose=options.further.get("loose", False)) for line in self._lines]
        self._boxes = AnswerBoxes(answers, [line.image for line in self._lines])

    def rows(self, ground_truth: GroundTruth | None) -> Rows:
        """Return the boxes as rows, in fractions if the convention is relative."""
        # Use one convention for all boxes of the file: it cannot change from answer to answer.
        lines, boxes, options = self._lines, self._boxes, self._options
        sizes = self._sizes(ground_truth)
        inputs = np.array([line.input_size for line in lines], dtype=np.float64).reshape(-1, 2)
        chosen = boxes.convention(options.further.get("coordinates"), sizes, inputs, place=str(self._path))
        corners = boxes.corners(chosen.name, sizes, inputs)
        # Keep labels without a class, so that they count as wrong.
        labels = self._labels(ground_truth)
        unknown = Counter[str]()
        if ground_truth is not None:
            known = {*ground_truth.categories.names.tolist()}
            strange = np.array([label is not None and label not in known for label in labels], dtype=bool)
            unknown.update(label for label in labels if label is not None and label not in known)
            boxes.count_rows("unknown_label", strange)
        # Drop and count repeated boxes and boxes without label.
        kept = ~boxes.repeated(labels, self._image[boxes.answer]) | (
            options.further.get("repeated") != "once"
        )
        unlabeled = np.array([label is None for label in labels], dtype=bool)
        boxes.count_rows("without_label", unlabeled)
        self._warn_of_unlabeled(unlabeled)
        kept &= ~unlabeled
        # From here on, rows are the boxes that are kept.
        distinct = collected([label for label, keep in zip(labels, kept.tolist(), strict=True) if keep])  # type: ignore[misc]
        answer = boxes.answer[kept]
        self._warn_of_swapped_corners()
        if chosen.name == "molmo" and len(answer):
            warn_user(
                f"{self._path}: the answers contain points, read as boxes without area: only protocols "
                "that compare points or centers can match them."
            )
        # Describe how the answers were read.
        further = options.further
        changed = ["repeated:once"] * (further.get("repeated") == "once")
        changed += ["answers:loose"] * further.get("loose", False)
        self.summary = boxes.summary(chosen, unknown, changed)
        return Rows(
            source=str(self._path),
            images=self._images,
            image=self._image[answer],
            labels=distinct.values,
            label=distinct.positions,
            boxes=corners[kept],
            box_format="xyxy",
            fractions=chosen.name != "pixels",
            numbers="names",
            sizes=self._sizes_of_images(),
            place=lambda row: lines[int(answer[row])].place,
        )

    def _sizes(self, ground_truth: GroundTruth | None) -> FloatArray:
        """Return each answer's image size, [answers, 2]: from the file, the user or the ground truth."""
        sizes = np.array([line.size for line in self._lines], dtype=np.float64).reshape(-1, 2)
        given = known_sizes(self._options.image_sizes, self._images)
        if ground_truth is not None:
            rows = image_rows_by_name(as_ids(self._images, name="image ids"), ground_truth.images)
            missing = np.ones(len(ground_truth.images), dtype=bool)
            missing[rows[rows >= 0]] = False
            names = ground_truth.images.ids[missing].tolist()
            self._boxes.counts["missing"] = len(names)
            self._boxes.first |= {"missing": names[0]} if names else {}
            theirs = np.full((len(rows), 2), np.nan)
            theirs[rows >= 0] = ground_truth.images.sizes[rows[rows >= 0]]
            given = np.where(np.isnan(given), theirs, given)
        return np.where(np.isnan(sizes), given[self._image], sizes)

    def _sizes_of_images(self) -> FloatArray:
        """Return width and height of each image from the file, [images, 2]; NaN if unknown."""
        sizes = np.full((len(self._images), 2), np.nan)
        for line, image in zip(self._lines, self._image.tolist(), strict=True):
            if line.size[0] == line.size[0]:
                sizes[image] = line.size
        return sizes

    def _labels(self, ground_truth: GroundTruth | None) -> list[str | None]:
        """Return the class of each box, with the spelling of the ground truth."""
        boxes, lines = self._boxes, self._lines
        words = [
            label if lines[answer].phrase is None else lines[answer].phrase
            for label, answer in zip(boxes.labels, boxes.answer.tolist(), strict=True)
        ]
        if ground_truth is None:
            return words
        names: list[str] = ground_truth.categories.names.tolist()
        only = names[0] if len(names) == 1 else None
        if only is not None and PHRASE in ground_truth.images.columns:
            # Each image is a question of its own.
            return [only] * len(words)
        exact, spelled = {*names}, _by_spelling(names)
        found = {
            word: word if word in exact else spelled.get(same_label(word), word)
            for word in words
            if word is not None
        }
        labels = [only if word is None else found[word] for word in words]
        if only is None:
            return labels
        asked = [lines[answer].phrase is not None for answer in boxes.answer.tolist()]
        return [only if was_asked else label for label, was_asked in zip(labels, asked, strict=True)]

    def _warn_of_swapped_corners(self) -> None:
        """Warn that numbers may not be two corners if many are in the wrong order; nothing is changed."""
        turned, count = self._boxes.counts["swapped"], self._boxes.counts["boxes"]
        if turned > max(MANY_TURNED * count, FEW_TURNED):
            warn_user(
                f"{self._path}: {counted_of(turned, count, 'box')} {verb(turned, 'have')} corners in the "
                "wrong order. Answers are read as two corners; did the prompt ask for x, y, width and "
                "height?"
            )

    def _warn_of_unlabeled(self, unlabeled: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        count = int(unlabeled.sum())
        if count:
            line = self._lines[int(self._boxes.answer[int(np.argmax(unlabeled))])]
            warn_user(
                f"{self._path}: ignoring {counted(count, 'box')} without a label (first: {line.place}): "
                'with several classes, boxes need labels; or add a "phrase" to the answer to set the '
                "class."
            )


def _by_spelling(names: Sequence[str]) -> dict[str, str]:
    """Map normalized names to names; leave out ambiguous ones."""
    counts = Counter(map(same_label, names))
    return {same_label(name): name for name in names if counts[same_label(name)] == 1}


def _reject_repeats(lines: list[_Line]) -> list[_Line]:
    """Reject a second answer to one question."""
    seen: dict[tuple[Id, str | None], str] = {}
    for line in lines:
        other = seen.setdefault((line.image, line.phrase), line.place)
        if other is not line.place:
            of = "" if line.phrase is None else f" and phrase {line.phrase[:60]!r}"
            rule, got = f"have one answer{of}", f"a second one, after {other}"
            raise FileFormatError(f"image {line.image!r}", rule, got=got, place=line.place)
    return lines


def _lines_at(path: Path) -> list[_Line]:
    """Read the lines of a file, or the files of a folder."""
    # A folder has a text file per image.
    if path.is_dir():
        unknown = (float("nan"), float("nan"))
        return [
            _Line(name[: -len(".txt")], _text_of(path / name), None, unknown, unknown, str(path / name))
            for name in text_files(path, "a folder of answers", FORMAT.detect)
        ]
    # A file is a JSON list, or JSON lines.
    content = read_bytes(path).removeprefix(b"\xef\xbb\xbf").lstrip()
    if content[:1] != b"[":
        return [_line(record, f"line {number} of {path}") for number, record in decoded_lines(path)]
    try:
        records = msgspec.json.decode(content, type=list[dict[str, Any]])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        cause = str(error)[:80].replace("\n", " ")
        rule = "be a JSON list of objects, or JSON lines"
        raise FileFormatError("answers", rule, got="other text", place=str(path), cause=cause) from None
    return [_line(record, f"record {number} of {path}") for number, record in enumerate(records)]


def _text_of(path: Path) -> str:
    return _check_text(read_text(path, "an answer"), str(path))


def _line(record: dict[str, Any], place: str) -> _Line:
    """Validate a record."""
    key = next((name for name in _IMAGES if record.get(name) is not None), None)
    if key is None:
        cause = "each answer needs the id of an image of the ground truth"
        raise FileFormatError("an answer", "have image_id", got="none", place=place, cause=cause)
    image = record[key]
    if isinstance(image, bool) or not isinstance(image, (int, str)):
        raise FileFormatError(key, "be a whole number or text", got=repr(image)[:60], place=place)
    if "answer" not in record:
        got = f"only {', '.join(map(repr, list(record)[:6]))}"
        raise FileFormatError("a record", "have the key answer", got=got, place=place)
    phrase = record.get(PHRASE)
    if not isinstance(phrase, (str, type(None))):
        raise FileFormatError(PHRASE, "be text", got=repr(phrase)[:60], place=place)
    size, input_size = (_size(record, names, place) for names in _SIDES)
    return _Line(image, _check_text(record["answer"], place), phrase, size, input_size, place)


def _check_text(answer: Any, place: str) -> str:
    if answer is None:
        return ""
    if not isinstance(answer, str):
        cause = "save the text of the model, not parsed output"
        raise FileFormatError("answer", "be text", got=repr(answer)[:60], place=place, cause=cause)
    if len(answer) > LONGEST:
        rule = f"have at most {LONGEST:,} letters"
        raise FileFormatError("answer", rule, got=f"{len(answer):,}", place=place)
    return answer


def _size(record: dict[str, Any], names: tuple[str, str], place: str) -> tuple[float, float]:
    """Return two sides; NaN if neither is given."""
    sides = [record.get(name) for name in names]
    if sides == [None, None]:
        return float("nan"), float("nan")
    for name, side in zip(names, sides, strict=True):
        if isinstance(side, bool) or not isinstance(side, (int, float)) or not 0 < side < 1e9:
            raise FileFormatError(name, "be pixels, above 0", got=repr(side)[:60], place=place)
    return float(sides[0]), float(sides[1])  # type: ignore[arg-type]
