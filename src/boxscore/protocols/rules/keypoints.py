"""How keypoints are measured, and objects that have none."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.records import part, record
from boxscore.errors import ProtocolError
from boxscore.protocols.acting import DESCRIBES, Refusal, Scope, matches, measures
from boxscore.protocols.fields import (
    Check,
    Rules,
    Step,
    Word,
    choice,
    list_of,
    number,
    rule,
    text,
    with_attributes,
)

UnlabelledRule = Literal["count", "ignore"]

_ANY_PAIR = Check("[keypoint, keypoint]", lambda value, name: value)


@with_attributes
@record(frozen=True)
class KeypointRules(Rules):
    """How keypoints are measured."""

    PREFIX = "keypoints."

    sigmas: tuple[float, ...] = rule(
        (),
        check=list_of(number(0, 1000, open_low=True), "a list"),
        doc="How far annotators scatter around each keypoint, relative to the object's size, [J].",
        scope=measures(Scope.ROW),
        refuses=(
            Refusal(
                "together",
                lambda protocol: protocol.similarity == "keypoints" and not protocol.keypoints.sigmas,
                "be given",
                got="none",
            ),
        ),
    )
    names: tuple[str, ...] = rule(
        (),
        check=list_of(text, "a list"),
        doc="Names of the keypoints, [J]; may be left out.",
        scope=DESCRIBES,
    )
    skeleton: tuple[tuple[int, int], ...] = rule(
        (),
        check=list_of(_ANY_PAIR, "a list"),
        doc="Pairs of keypoints joined by a limb, counted from 1 as in COCO files; for drawing only.",
        scope=DESCRIBES,
    )

    def _check_together(self) -> None:
        if self.names:
            checks.same_length(len(self.sigmas), of="keypoints.sigmas", names=self.names)
        known = range(1, len(self.sigmas) + 1)
        for limb in self.skeleton:
            is_pair = isinstance(limb, (list, tuple)) and len(limb) == 2
            if not is_pair or not all(isinstance(end, int) and end in known for end in limb):
                pairs = f"be pairs of keypoints, 1 to {len(self.sigmas)}"
                raise ProtocolError("keypoints.skeleton", pairs, got=repr(limb))
        object.__setattr__(self, "skeleton", tuple(tuple(limb) for limb in self.skeleton))

    @property
    def spread(self) -> NDArray[np.float64]:
        """The sigmas as they are computed with, [J]."""
        return np.array(self.sigmas, dtype=np.float64)


@part(frozen=True)
class UnlabelledField(Rules):
    """Objects without a labelled keypoint."""

    unlabelled: UnlabelledRule = rule(
        "count",
        check=choice(UnlabelledRule),
        doc="Ground truths without a labelled keypoint: counted, or ignored.",
        word=Word("nokpt", silent="count"),
        step=Step("objects without keypoints", "tables", {"count": "counted", "ignore": "ignored"}),
        scope=matches(Scope.ROW),
    )
