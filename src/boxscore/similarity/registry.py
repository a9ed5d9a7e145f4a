"""Find a similarity by the name that a protocol gives it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

from boxscore._utils.lazy import loaded
from boxscore.similarity.base import Similarity

if TYPE_CHECKING:
    from boxscore.protocols.protocol import Protocol, SimilarityName

SIMILARITIES: dict[SimilarityName, str] = {
    "box": "boxscore.similarity.box:BoxSimilarity",
    "rotated": "boxscore.extensions.oriented.rotated:RotatedSimilarity",
    "quadrilateral": "boxscore.extensions.oriented.quadrilateral:QuadrilateralSimilarity",
    "probiou": "boxscore.extensions.oriented.probiou:ProbIouSimilarity",
    "mask": "boxscore.extensions.masks.mask:MaskSimilarity",
    "boundary": "boxscore.extensions.masks.boundary:BoundarySimilarity",
    "keypoints": "boxscore.extensions.keypoints.similarity:KeypointSimilarity",
    "distance": "boxscore.extensions.crowds.points:DistanceSimilarity",
    "point_in_box": "boxscore.extensions.crowds.points:PointInBoxSimilarity",
    "point_in_mask": "boxscore.extensions.crowds.points:PointInMaskSimilarity",
}
"""The module and class of each, imported when a protocol asks for it; an extension adds a line."""


def similarity_class(name: SimilarityName) -> type[Similarity]:
    """Return the class of the similarity with a name."""
    similarity: type[Similarity] = loaded(SIMILARITIES[name])
    return similarity


def similarity_of(protocol: Protocol) -> Similarity:
    """Make the similarity that a protocol compares by."""
    return similarity_class(protocol.similarity)(protocol)


class FileNeeds(TypedDict):
    """Options of ``read_options`` that say which parts of files are needed."""

    instances: list[str]
    any_sides: bool
    needs_areas: bool
    keys: tuple[str, ...]
    image_keys: tuple[str, ...]


def needs_of(*protocols: Protocol) -> FileNeeds:
    """Return the options for reading files that will be evaluated under all of these protocols."""
    return {
        "instances": sorted({name for rules in protocols for name in similarity_of(rules).needed_columns}),
        "any_sides": any(rules.boxes.degenerate != "count" for rules in protocols),
        "needs_areas": any(len(rules.ignore.area_ranges) > 1 for rules in protocols),
        "keys": _each(rules.scope.keys_read("rows") for rules in protocols),
        "image_keys": _each(rules.scope.keys_read("images") for rules in protocols),
    }


def _each(names: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(itertools.chain.from_iterable(names)))
