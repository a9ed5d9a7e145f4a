"""The rules of a protocol by which masks and keypoints are measured: data, like all of a protocol."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.errors import ProtocolError

__all__ = ["KeypointRules", "MaskRules"]


@dataclasses.dataclass(frozen=True)
class MaskRules:
    """How masks are measured: ``boundary_dilation`` is a boundary's width over the image's diagonal."""

    boundary_dilation: float = 0.02

    def __post_init__(self) -> None:
        checks.number_between(self.boundary_dilation, 0, 1, name="masks.boundary_dilation", open_low=True)


@dataclasses.dataclass(frozen=True)
class KeypointRules:
    """How keypoints are measured.

    Attributes
    ----------
    sigmas : tuple of float, [J]
        How far annotators scatter around each keypoint, relative to the object's size.
    names : tuple of str, [J]
        Names of the keypoints; may be left out.
    skeleton : tuple of (int, int)
        Pairs of keypoints joined by a limb, counted from 1 as in COCO files; for drawing only.
    """

    sigmas: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    skeleton: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        for name in ("sigmas", "names", "skeleton"):
            if not isinstance(getattr(self, name), (list, tuple)):
                got = repr(getattr(self, name))
                raise ProtocolError(f"keypoints.{name}", "be a list", got=got)
        for value in self.sigmas:
            checks.number_between(value, 0, 1000, name="keypoints.sigmas", open_low=True)
        if self.names:
            checks.same_length(len(self.sigmas), of="keypoints.sigmas", names=self.names)
        known = range(1, len(self.sigmas) + 1)
        for limb in self.skeleton:
            is_pair = isinstance(limb, (list, tuple)) and len(limb) == 2
            if not is_pair or not all(isinstance(end, int) and end in known for end in limb):
                rule = f"be pairs of keypoints, 1 to {len(self.sigmas)}"
                raise ProtocolError("keypoints.skeleton", rule, got=repr(limb))
        limbs = tuple(tuple(limb) for limb in self.skeleton)
        object.__setattr__(self, "skeleton", limbs)

    @property
    def spread(self) -> NDArray[np.float64]:
        """The sigmas as they are computed with, [J]."""
        return np.array(self.sigmas, dtype=np.float64)
