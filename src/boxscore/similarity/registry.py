"""The similarities by the name a protocol gives them."""

from __future__ import annotations

from boxscore.protocols.protocol import Protocol, SimilarityName
from boxscore.similarity.base import Similarity
from boxscore.similarity.boundary import BoundarySimilarity
from boxscore.similarity.box import BoxSimilarity
from boxscore.similarity.keypoints import KeypointSimilarity
from boxscore.similarity.mask import MaskSimilarity
from boxscore.similarity.probiou import ProbIouSimilarity
from boxscore.similarity.quadrilateral import QuadrilateralSimilarity
from boxscore.similarity.rotated import RotatedSimilarity

__all__ = ["SIMILARITIES", "similarity_of"]

SIMILARITIES: dict[SimilarityName, type[Similarity]] = {
    "box": BoxSimilarity,
    "rotated": RotatedSimilarity,
    "quadrilateral": QuadrilateralSimilarity,
    "probiou": ProbIouSimilarity,
    "mask": MaskSimilarity,
    "boundary": BoundarySimilarity,
    "keypoints": KeypointSimilarity,
}


def similarity_of(protocol: Protocol) -> Similarity:
    """Make the similarity that a protocol compares by."""
    return SIMILARITIES[protocol.similarity](protocol)
