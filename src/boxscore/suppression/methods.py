"""Define the methods of suppression: their options, their effects, and the modules that compute them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from boxscore._utils import checks
from boxscore.errors import InputError
from boxscore.similarity.pairs import Overlap
from boxscore.suppression._ranked import Ranked
from boxscore.suppression.result import Changes, Survivors


class Method(NamedTuple):
    """The method behind one name of :data:`METHODS`."""

    function: str
    """The function on ranked boxes, ``module.function`` of this package; imported by the first call."""
    changes: Changes
    """The columns of the survivors that change."""
    reads: frozenset[str]
    """The options it reads, among ``iou_threshold``, ``sigma``, ``overlap`` and ``owners``."""
    score_threshold: float | None = None
    """Default of the score threshold."""
    overlap: Overlap = "iou"
    """The overlap it measures if it cannot be chosen."""
    fixed: Mapping[str, Any] = {}
    """Arguments of the function that the name fixes."""

    def call(self, ranked: Ranked, **options: Any) -> Survivors:
        """Suppress ranked boxes."""
        module, name = self.function.split(".")
        function = getattr(importlib.import_module(f"boxscore.suppression.{module}"), name)
        survivors: Survivors = function(ranked, **self.fixed, **options)
        return survivors


_IOU, _SIGMA, _OVERLAP = frozenset({"iou_threshold"}), frozenset({"sigma"}), frozenset({"overlap"})
_OWNERS = frozenset({"owners"})

METHODS: dict[str, Method] = {
    "hard": Method("hard.select", "nothing", _IOU | _OVERLAP | _OWNERS),
    "soft-linear": Method("soft.soften", "scores", _IOU, 0.001, fixed={"method": "linear"}),
    "soft-gaussian": Method("soft.soften", "scores", _SIGMA, 0.001, fixed={"method": "gaussian"}),
    "diou": Method("hard.select", "nothing", _IOU | _OWNERS, overlap="diou"),
    "matrix-linear": Method("matrix.decay_all", "scores", frozenset(), 0.0, fixed={"method": "linear"}),
    "matrix-gaussian": Method("matrix.decay_all", "scores", _SIGMA, 0.0, fixed={"method": "gaussian"}),
    "fast": Method("fast.select_in_rounds", "nothing", _IOU, fixed={"max_rounds": 1}),
    "cluster": Method("fast.select_in_rounds", "nothing", _IOU | _OWNERS),
    "greedy-nmm": Method("merging.merge", "boxes", _IOU | _OVERLAP, fixed={"transitive": False}),
    "nmm": Method("merging.merge", "boxes", _IOU | _OVERLAP, fixed={"transitive": True}),
}
"""The methods by name; a name with a dash fixes the method of a function."""


class Setting(NamedTuple):
    """A method and its options; see :func:`boxscore.suppress`."""

    method: str
    iou_threshold: float | None = None
    sigma: float | None = None
    score_threshold: float | None = None
    overlap: Literal["iou", "ios"] = "iou"

    @property
    def measured(self) -> Overlap:
        """The overlap that its method measures."""
        method = METHODS[self.method]
        return self.overlap if "overlap" in method.reads else method.overlap

    @property
    def lowest(self) -> float:
        """Overlap up to which two detections do not affect each other."""
        reads = METHODS[self.method].reads
        return self.iou_threshold or 0.0 if "iou_threshold" in reads else 0.0

    @property
    def floor(self) -> float | None:
        """Lowest score of the detections that take part."""
        return METHODS[self.method].score_threshold if self.score_threshold is None else self.score_threshold


def check_method(
    method: str, *, iou_threshold: float | None, overlap: str = "iou", similarity: str = "box"
) -> Method:
    """Look up a method and check that it supports the options."""
    # The similarity must suit the method: some need centers, and some merge boxes.
    chosen = METHODS[checks.one_of(method, list(METHODS), name="method")]
    checks.one_of(overlap, ("iou", "ios"), name="overlap")
    if similarity != "box" and (chosen.overlap == "diou" or chosen.changes == "boxes"):
        named = {"mask": "masks", "quadrilateral": "corners"}
        named |= dict.fromkeys(("rotated", "probiou"), "rotated boxes")
        only = [
            name for name, known in METHODS.items() if known.overlap != "diou" and known.changes != "boxes"
        ]
        shapes = named.get(similarity, similarity)
        merging = f"; boxscore fuse merges {shapes} (in Python fuse)" if chosen.changes == "boxes" else ""
        raise InputError(
            "method",
            f"be one that compares {shapes}",
            got=repr(method),
            cause=f"known: {', '.join(only)}{merging}",
        )
    # An option that the method does not read must have its default.
    if "iou_threshold" in chosen.reads and iou_threshold is None:
        raise InputError("iou_threshold", f"be given with method {method!r}", got="None")
    if overlap != "iou" and similarity not in ("box", "mask"):
        raise InputError("overlap", "be 'iou' where oriented boxes are compared", got=repr(overlap))
    if overlap != "iou" and "overlap" not in chosen.reads:
        raise InputError(
            "overlap", f"be 'iou' with method {method!r}", got=repr(overlap), cause=readers_of("overlap")
        )
    return chosen


def readers_of(option: str) -> str:
    """List the methods that read an option."""
    return f"used by {', '.join((name for name, method in METHODS.items() if option in method.reads))}"
