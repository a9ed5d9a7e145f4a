"""Warn about detections with classes that the ground truth does not have, and suggest a class map."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import itertools
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.text import counted, short_list, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.image_names import FEW_SHOWN
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.unlisted import with_unlisted
from boxscore.data.vocabulary import Categories, Id
from boxscore.errors import BoxscoreWarning
from boxscore.extensions.hints.class_maps import read_in_file_classes
from boxscore.extensions.hints.numbering import (
    AS_THEY_ARE,
    FEW_IMAGES,
    InferredClassMap,
    infer_class_map,
    mapped_rows,
    with_classes,
)
from boxscore.formats._format import Opened
from boxscore.formats.reading import FileOptions

ALIKE, MOST_PAIRS = 0.8, 10_000
"""Minimum similarity (difflib) of a misspelled and a correct name, and maximum pairs of names to compare."""


_OTHER_NUMBERS = "classes are numbered differently, use --class-map (in Python class_map=)."


class LeftOut(dict[str, int]):
    """Counts of left-out detections by class, and functions that read their file again.

    Pickling keeps only the counts.
    """

    renumbered: Callable[[GroundTruth], tuple[InferredClassMap, Detections] | None] | None = None
    renamed: Callable[[GroundTruth, Mapping[Id, Id | None]], Detections] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


def with_reader(detections: Detections, opened: Opened, options: FileOptions) -> Detections:
    """Add functions that read the file again, with unknown classes."""
    left_out = LeftOut(detections.left_out)
    evaluated = dataclasses.replace(options, unlisted_images="drop")
    left_out.renumbered = functools.partial(renumbered_file, opened, options=evaluated)
    left_out.renamed = functools.partial(_read_renamed, opened, options=evaluated)
    return dataclasses.replace(detections, left_out=left_out)


def renumbered_file(
    opened: Opened, ground_truth: GroundTruth, options: FileOptions
) -> tuple[InferredClassMap, Detections] | None:
    """Return the class map inferred from a file's boxes, and its mapped detections; None if not needed."""
    detections = _read_again(opened, ground_truth, options)
    inferred = infer_class_map(ground_truth, detections, classes=options.classes)
    if inferred.name in (None, AS_THEY_ARE):
        return None
    known = ground_truth.categories
    return inferred, with_classes(
        detections, known, mapped_rows(inferred.pairs, detections.categories, known)
    )


def _read_renamed(
    opened: Opened, ground_truth: GroundTruth, pairs: Mapping[Id, Id | None], options: FileOptions
) -> Detections:
    detections, known = _read_again(opened, ground_truth, options), ground_truth.categories
    return with_classes(detections, known, mapped_rows(pairs, detections.categories, known))


def _read_again(opened: Opened, ground_truth: GroundTruth, options: FileOptions) -> Detections:
    with warnings.catch_warnings():
        # The file was read before.
        warnings.simplefilter("ignore", BoxscoreWarning)
        return with_unlisted(
            lambda truth: read_in_file_classes(opened, truth, options), ground_truth, options.unlisted_images
        )[1]


def warn_of_unknown(
    left_out: Mapping[str, int], source: str, categories: Categories, category: NDArray[np.int32]
) -> None:
    """Warn about unknown classes of a table; ``category`` are the classes of its other detections."""
    warn_left_out(left_out, source, hint=question_of_renamed(renamed_classes(left_out, categories, category)))


def warn_of_file(detections: Detections, ground_truth: GroundTruth, *, is_mapped: bool) -> None:
    """Warn about unknown classes of a file, and suggest a class map unless one is given."""
    hint = "" if is_mapped else class_map_hint(detections, ground_truth)
    if not hint and not len(detections):
        known = ground_truth.categories
        pairs = zip(known.ids.tolist(), known.names.tolist(), strict=True)
        named = [str(one) if str(one) == name else f"{one} ({name})" for one, name in pairs]
        hint = f" The ground truth has {short_list(named, 3)}; if {_OTHER_NUMBERS}"
    warn_left_out(detections.left_out, detections.source, all_of_them=not len(detections), hint=hint)


def renamed_classes(
    left_out: Iterable[str], categories: Categories, category: NDArray[np.int32]
) -> dict[str, str]:
    """Return which classes without detections the left-out ones probably are, under another name."""
    names = [*left_out]
    if not names:
        return {}
    silent = np.bincount(category, minlength=len(categories)) == 0
    return likely_classes(names, [*itertools.compress(categories.labels, silent)])


def question_of_renamed(renamed: Mapping[str, str]) -> str:
    """Ask whether left-out classes are those without detections; empty without any."""
    if not renamed:
        return ""
    pairs = [f"{theirs} the class {likely}" for theirs, likely in list(renamed.items())[:FEW_SHOWN]]
    more = f"; {len(renamed):,} such classes in total" * (len(renamed) > FEW_SHOWN)
    are, lack = verb(len(pairs), "are").capitalize(), "lacks" if len(pairs) == 1 else "lack"
    return f" {are} {' and '.join(pairs)} (which {lack} detections{more})?"


def warn_left_out(
    left_out: Mapping[str, int], source: str, *, all_of_them: bool = False, hint: str = ""
) -> None:
    """Warn about detections whose class the ground truth does not have; ``hint`` is a suggestion."""
    if left_out:
        total = sum(left_out.values())
        names = ", ".join(list(left_out)[:10]) + (", ..." if len(left_out) > 10 else "")
        if all_of_them:
            hint = " No detection remains." + (hint or f" If {_OTHER_NUMBERS}")
        text = (
            f"{source}: ignoring {counted(total, 'detection')} of {counted(len(left_out), 'class')} that the "
            f"ground truth does not have: {names}.{hint}"
        )
        code = "unknown-class"
        warn_user(BoxscoreWarning(text, code=code, severity="error") if all_of_them else text)


def likely_classes(words: Sequence[str], labels: Sequence[str]) -> dict[str, str]:
    """Return, for words that name no class, the label of which each is probably a misspelling.

    Case, blanks, ``_`` and ``-`` are ignored; otherwise the two must be similar. Numbers are never matched,
    nor are words or labels that are equally similar to several.
    """
    # Leave out numbers: they are not misspelled names.
    unknown, others = (
        [name for name in names if name.isprintable() and any(map(str.isalpha, name))]
        for names in (words, labels)
    )
    if not unknown:
        return {}
    # First find equal letters with a dictionary.
    spelt: dict[str, list[str]] = {}
    for label in others:
        spelt.setdefault(_folded(label), []).append(label)
    same = {(word, label) for word in unknown for label in spelt.get(_folded(word), ())}
    likely = _one_to_one(same)
    # Then find similar ones among the rest, if there are few enough to compare all pairs.
    words_of_pairs, labels_of_pairs = {word for word, _ in same}, {label for _, label in same}
    unknown = [word for word in unknown if word not in words_of_pairs]
    others = [label for label in others if label not in labels_of_pairs]
    if len(unknown) * len(others) <= MOST_PAIRS:
        import difflib

        near = set()
        for label in others:
            # The matcher prepares its second text; the quick bound saves most comparisons.
            matcher = difflib.SequenceMatcher(b=_folded(label), autojunk=False)
            for word in unknown:
                matcher.set_seq1(_folded(word))
                if matcher.real_quick_ratio() >= ALIKE and matcher.ratio() >= ALIKE:
                    near.add((word, label))
        likely |= _one_to_one(near)
    return {word: likely[word] for word in words if word in likely}


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()


def _one_to_one(pairs: set[tuple[str, str]]) -> dict[str, str]:
    """Return the pairs whose words are in no other pair."""
    counts = [Counter(each) for each in zip(*pairs, strict=True)]
    return {word: label for word, label in pairs if counts[0][word] == counts[1][label] == 1}


def class_map_hint(detections: Detections, ground_truth: GroundTruth) -> str:
    """Suggest a class map for left-out detections in a sentence; empty if none is clear.

    The evidence for a numbering is the detections that are not left out, in a few images.
    """
    known = ground_truth.categories
    renamed = renamed_classes(detections.left_out, known, detections.category)
    if renamed:
        return f"{question_of_renamed(renamed)} {class_map_advice(renamed)}."
    if len(detections) and any(word.isdecimal() for word in detections.left_out):
        inferred = infer_class_map(ground_truth, detections, most=FEW_IMAGES)
        if inferred.name not in (None, AS_THEY_ARE):
            return ' Use --class-map auto (in Python class_map="auto").'
    return ""


def class_map_advice(pairs: Mapping[str, str]) -> str:
    """Describe how to pass a class map of these pairs, without a full stop."""
    lines = []
    for pair in list(pairs.items())[:FEW_SHOWN]:
        text = io.StringIO()
        csv.writer(text, lineterminator="").writerow(pair)
        lines.append(text.getvalue())
    few = dict(list(pairs.items())[:FEW_SHOWN])
    more, and_so_on = (" and so on", ", ...") if len(pairs) > len(few) else ("", "")
    argument, mapping = "class_map", f"{repr(few)[:-1]}{and_so_on}}}"
    return (
        f"Use --class-map FILE with the {'lines' if lines[1:] else 'line'} {' and '.join(lines)}{more} "
        f"(in Python {argument}={mapping})"
    )
