"""What is compared: boxes of any kind, masks, boundaries or keypoints."""

from __future__ import annotations

from typing import Any, Literal

from boxscore._utils.records import part
from boxscore.protocols.acting import Scope, measures
from boxscore.protocols.fields import Rules, Word, choice, rule
from boxscore.protocols.grids import number_text

SimilarityName = Literal[
    "box",
    "rotated",
    "quadrilateral",
    "probiou",
    "mask",
    "boundary",
    "keypoints",
    "distance",
    "point_in_box",
    "point_in_mask",
]


def _similarity(protocol: Any) -> str:
    """Write what is compared and what decides how; nothing for boxes."""
    if protocol.similarity == "boundary":
        return f"boundary/{number_text(protocol.masks.boundary_dilation)}"
    if protocol.similarity == "keypoints":
        spread = protocol.keypoints.spread
        return f"oks/{len(spread)}/{spread.sum():.4g}"
    if protocol.similarity == "distance":
        return f"distance/{protocol.distance.anchor}/{number_text(protocol.distance.largest)}"
    if protocol.similarity in ("point_in_box", "point_in_mask"):
        return f"{protocol.similarity.replace('_', '-')}/{protocol.distance.anchor}"
    return "" if protocol.similarity == "box" else protocol.similarity


@part(frozen=True)
class SimilarityField(Rules):
    """The measure of a pair."""

    similarity: SimilarityName = rule(
        "box",
        check=choice(SimilarityName),
        doc="What decides how well a detection and a ground truth agree. Points in boxes and masks agree by "
        "0.5 or more, and by more the nearer they are to the centre of the box.",
        word=Word(
            "sim",
            text=_similarity,
            note="left out for upright boxes; `rotated`, `quadrilateral`, `probiou`, `mask`, `boundary/` and "
            "its dilation, `oks/` and its keypoints, "
            "`distance/`, its anchor and scale, `point-in-box/` or `point-in-mask/` and the anchor",
        ),
        scope=measures(Scope.ROW),
    )
