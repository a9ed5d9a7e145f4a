"""Find images that an exporter renamed, and the names most similar to an unknown one.

Goal
----
Annotation tools rename images: Label Studio writes ``0b3d3f0a-a.jpg`` for ``a.jpg``, Roboflow
``a_jpg.rf.<hash>.jpg``, and scripts add ``val_`` or ``_resized``. Detections made on the original images then
name images that the ground truth does not have.

Conventions
-----------
- Names are compared without folders and extension. A change is one rule for all names of a file: a hash
  before or after the name on either side, another case or other separators, or one text before or after every
  name.
- Some files give their images further names, kept as image columns (:data:`OTHER_NAMES`): they apply only if
  every name of the detections is one of them.
- A rule applies only if no name of the file matches without it, if it explains at least half of the names,
  and only to names that match exactly one image, which no other name matches. A warning gives an example.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore.data.image_names import names_of, stem_of
from boxscore.data.vocabulary import Id, Images
from boxscore.errors import BoxscoreWarning

MOST_COMPARED = 20_000
"""Maximum number of images whose names are compared with an unknown one."""

_HASH = r"(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8,64})"
_BEFORE = re.compile(rf"{_HASH}[-_.](?=.)", re.IGNORECASE)
_AFTER = re.compile(
    rf"(?<=.)(?:[-_](?:jpe?g|png|bmp|webp|tiff?|gif|heic))?(?:\.rf\.[0-9a-z]{{8,64}}|[-_.]{_HASH})$",
    re.IGNORECASE,
)
"""A hash with its separator before and after a name; Roboflow writes the extension before it."""

_LINE = re.compile(r"(?:[0-9a-f]{32}_)?([1-9][0-9]{0,8})")

OTHER_NAMES = {
    "ndjson_line": "the number of their line in the NDJSON file, as Ultralytics names them when it trains",
    "global_key": "their global key of Labelbox",
    "data_row_id": "their data row of Labelbox",
}
"""Image columns with another name of each image, with a description."""

_OTHERS = re.compile(r"[\W_]+")
_SAMPLE = 20
"""Number of names that suggest a text before or after every name."""


def rows_of_renamed(
    rows: NDArray[np.int32], values_at: Callable[[NDArray[np.intp]], list[Id]], images: Images, source: str
) -> NDArray[np.int32]:
    """Return the image row of each value, [D], also of names that fit a rule, with a warning."""
    # A rule is only likely if it explains names of which none is known.
    values = values_at(np.arange(len(rows)))
    row_of, index = dict(zip(values, rows.tolist(), strict=True)), names_of(images)
    names = [value for value, row in row_of.items() if row < 0 and isinstance(value, str)]
    known = (value for value, row in row_of.items() if row >= 0)
    if not names or not all(isinstance(value, str) and index.is_added(value) for value in known):
        return rows
    by_other = len(names) == len(row_of) and _by_other_names(names, images)
    if by_other:
        row_of.update(by_other[1])
        name, row = next(iter(by_other[1].items()))
        text = f"{source}: images are found by {OTHER_NAMES[by_other[0]]}: {name!r} is {images.names[row]!r}."
        warn_user(BoxscoreWarning(text, severity="note"))
        return np.array([row_of[value] for value in values], dtype=np.int32)
    found = _renamed(names, images)
    if not found:
        return rows
    name, row = next(iter(found.items()))
    warn_user(
        f"{source}: the ground truth has {images.names[row]!r} instead of {name!r}; assuming that "
        f"{counted(len(found), 'image')} {'was' if len(found) == 1 else 'were'} renamed like this.",
    )
    row_of.update(found)
    return np.array([row_of[value] for value in values], dtype=np.int32)


def _by_other_names(names: Sequence[str], images: Images) -> tuple[str, dict[str, int]] | None:
    """Return an image column that has all names, and the row of each; None without such a column."""
    for column in (name for name in OTHER_NAMES if name in images.columns):
        row_of: dict[str, int] = {}
        for row, value in enumerate(map(str, images.columns[column].tolist())):
            row_of[value] = -1 if value in row_of else row
        found = {name: row_of.get(name, row_of.get(_of_line(name), -1)) for name in names}
        if min(found.values()) >= 0 and len({*found.values()}) == len(found):
            return column, found
    return None


def _of_line(name: str) -> str:
    """Return the number in the name of an image that Ultralytics renamed to its line: ``<hash>_3.jpg``."""
    found = _LINE.fullmatch(stem_of(name))
    return "" if found is None else found[1]


def _renamed(names: Sequence[str], images: Images) -> dict[str, int]:
    """Return the rows of names by the first rule that explains at least half of them; empty if none does."""
    places = {name: _place(name) for name in names}
    known = _known_places(images)
    # Images in several folders must be in equal ones on both sides.
    if not all(len({folder for folder, _ in one}) > 1 for one in (places.values(), known)):
        places = {name: ("", stem) for name, (_, stem) in places.items()}
        known = _joined({place: ("", place[1]) for place in known}, known)
    # An equal name in another folder is another image.
    if not known.keys().isdisjoint(places.values()):
        return {}
    for key_of, key_of_image in _rules([stem for _, stem in places.values()], [stem for _, stem in known]):
        keys = {name: (folder, key_of(stem)) for name, (folder, stem) in places.items()}
        rows = _one_to_one(
            keys, _joined({place: (place[0], key_of_image(place[1])) for place in known}, known)
        )
        if 2 * len(rows) >= len(names):
            return rows
    return {}


Place = tuple[str, str]
"""The last folder and the stem of a name."""


def _place(name: str) -> Place:
    return name.replace("\\", "/").rpartition("/")[0].rpartition("/")[2], stem_of(name)


def _known_places(images: Images) -> dict[Place, set[int]]:
    """Return the rows of images by their names, and by ids that are text; without added images."""
    known: dict[Place, set[int]] = {}
    index, pairs = names_of(images), zip(images.file_names.tolist(), images.ids.tolist(), strict=True)
    for row, texts in enumerate(pairs):
        names = [text for text in texts if isinstance(text, str) and text]
        if not any(map(index.is_added, names)):
            for name in names:
                known.setdefault(_place(name), set()).add(row)
    return known


def _joined(keys: Mapping[Place, Place], rows: Mapping[Place, set[int]]) -> dict[Place, set[int]]:
    """Return rows by another key; those of equal keys are joined."""
    joined: dict[Place, set[int]] = {}
    for place, key in keys.items():
        joined.setdefault(key, set()).update(rows[place])
    return joined


def _one_to_one(keys: Mapping[str, Place], rows: Mapping[Place, set[int]]) -> dict[str, int]:
    """Return the row of each name whose key is that of one image, and of no other name."""
    times = Counter(keys.values())
    return {
        name: min(rows[key])
        for name, key in keys.items()
        if key[1] and times[key] == 1 and len(rows.get(key, ())) == 1
    }


Key = Callable[[str], str]


def _rules(stems: Sequence[str], known: Sequence[str]) -> Iterator[tuple[Key, Key]]:
    """Yield rules: functions from the stem of a name, and from that of an image, to equal keys."""
    # A hash on one side; on both only if Roboflow wrote it, since numbers of images look like hashes.
    for clean in (str, _folded):
        yield clean, functools.partial(_without_hash, clean=clean)
        yield functools.partial(_without_hash, clean=clean), clean
    yield _without_roboflow, _without_roboflow
    # A text before or after every name, on the side of the images or of the detections.
    for before, after in _added_texts(stems, known):
        yield functools.partial(_with_text, before=before, after=after), str
    for before, after in _added_texts(known, stems):
        yield str, functools.partial(_with_text, before=before, after=after)


def _with_text(stem: str, *, before: str, after: str) -> str:
    return before + stem + after


def _without_hash(stem: str, clean: Key) -> str:
    return clean(_AFTER.sub("", _BEFORE.sub("", stem, count=1), count=1))


def _without_roboflow(stem: str) -> str:
    return _AFTER.sub("", stem, count=1) if ".rf." in stem else stem


def _folded(stem: str) -> str:
    """Return a stem with one separator for all others, in one case."""
    return _OTHERS.sub("-", stem).strip("-").casefold()


def _added_texts(stems: Sequence[str], longer: Sequence[str]) -> list[tuple[str, str]]:
    """Return what longer stems have before and after a stem: the two most frequent pairs of texts.

    One name is not enough to suggest such a text.
    """
    texts: Counter[tuple[str, str]] = Counter()
    for stem in filter(None, stems[:: len(stems) // _SAMPLE + 1]):
        for other in longer[:MOST_COMPARED]:
            # The stem may be at the end, at the start, or between two texts.
            for at in {len(other) - len(stem), 0, other.find(stem)} if len(other) > len(stem) else ():
                before, after = other[: max(at, 0)], other[at + len(stem) :]
                if other == before + stem + after and _is_border(before[-1:], stem[0]):
                    texts[before, after] += _is_border(stem[-1], after[:1])
    return [pair for pair, count in texts.most_common(2) if count > 1]


def _is_border(left: str, right: str) -> bool:
    """Return whether a word ends between two characters: at a separator, or where digits begin or end."""
    return not (left.isalnum() and right.isalnum()) or left.isdecimal() != right.isdecimal()


def nearest_names(name: str, images: Images, *, most: int = 3) -> list[str]:
    """Return the image names most similar to an unknown one; names that differ only in digits are not."""
    start = stem_of(name).partition(".")[0]
    stems = {text: stem_of(text).partition(".")[0] for text in images.names[:MOST_COMPARED]}
    same = [text for text, stem in stems.items() if stem == start]
    if same or not start:
        return same[:1]
    alike = difflib.get_close_matches(start, [*dict.fromkeys(stems.values())], n=most)
    alike = [stem for stem in alike if re.sub(r"\d+", "0", stem) != re.sub(r"\d+", "0", start)]
    return [next(text for text, stem in stems.items() if stem == one) for one in alike]
