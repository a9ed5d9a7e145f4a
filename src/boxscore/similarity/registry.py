"""The similarities by the name a protocol gives them."""

from __future__ import annotations

from boxscore.protocols.protocol import Protocol
from boxscore.similarity.base import Similarity
from boxscore.similarity.boundary import BoundarySimilarity
from boxscore.similarity.box import BoxSimilarity
from boxscore.similarity.keypoints import KeypointSimilarity
from boxscore.similarity.mask import MaskSimilarity

__all__ = ["SIMILARITIES", "similarity_of"]

SIMILARITIES: dict[str, type[Similarity]] = {
    "box": BoxSimilarity,
    "mask": MaskSimilarity,
    "boundary": BoundarySimilarity,
    "keypoints": KeypointSimilarity,
}


def similarity_of(protocol: Protocol) -> Similarity:
    """Make the similarity that a protocol compares by."""
    return SIMILARITIES[protocol.similarity](protocol)
