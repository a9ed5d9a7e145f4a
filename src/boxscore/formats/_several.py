"""Read several files of one format as one data set.

Conventions
-----------
- Each image of the ground truth is in one file; detections of an image may be in several, and equal scores
  then go in the order of the files.
- Classes are joined by id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from boxscore.data.alignment import concatenate
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import FileFormatError, InputError


def joined_ground_truth(tables: Sequence[GroundTruth], path: Path) -> GroundTruth:
    """Return the images of all files as one table, which is named after the path."""
    known: dict[Id, str] = {}
    for table in tables:
        for image in table.images.ids.tolist():
            if image in known:
                rule, got = "be in one file of the ground truth", f"{image!r} in {known[image]}"
                cause = (
                    "its objects would count twice. Of several annotators: boxscore agreement compares "
                    "them, and a folder of SA-Co's files is read as theirs"
                )
                raise InputError("an image", rule, got=got, place=table.source, cause=cause)
            known[image] = table.source
    whole = concatenate(tables)[0].replaced(source=str(path))
    if len(np.unique(whole.ids)) < len(whole):  # each file counts its annotations from 1
        whole = whole.replaced(ids=np.arange(1, len(whole) + 1))
    return whole


def joined_detections(tables: Sequence[Detections], path: Path) -> Detections:
    """Return the detections of all files as one table, which is named after the path."""
    left_out = sum((Counter(table.left_out) for table in tables), Counter[str]())
    if len({table.scored for table in tables}) > 1:
        without = next(table.source for table in tables if not table.scored)
        rule = "have scores in every file, or in none"
        raise FileFormatError("detections", rule, got="none", place=without)
    return concatenate(tables)[0].replaced(source=str(path), left_out=dict(left_out))
