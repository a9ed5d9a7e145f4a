"""The registry of methods: what each reads and changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

from boxscore._utils import checks
from boxscore.errors import InputError
from boxscore.similarity.pairs import Overlap
from boxscore.suppression.fast import select_in_rounds
from boxscore.suppression.hard import select
from boxscore.suppression.matrix import decay_all
from boxscore.suppression.merging import merge
from boxscore.suppression.result import Changes, Survivors
from boxscore.suppression.soft import soften


class Method(NamedTuple):
    """The method behind one name of :data:`METHODS`."""

    call: Callable[..., Survivors]
    """The function on ranked boxes, with the arguments that the name fixes."""
    changes: Changes
    """What changes in the survivors."""
    reads: frozenset[str]
    """The options it reads, of ``iou_threshold``, ``sigma``, ``overlap`` and ``owners``."""
    score_threshold: float | None = None
    """Default of the score threshold."""
    overlap: Overlap = "iou"
    """The overlap it measures if it cannot be chosen."""


_IOU, _SIGMA, _OVERLAP = frozenset({"iou_threshold"}), frozenset({"sigma"}), frozenset({"overlap"})
_OWNERS = frozenset({"owners"})

METHODS: dict[str, Method] = {
    "hard": Method(select, "nothing", _IOU | _OVERLAP | _OWNERS),
    "soft-linear": Method(partial(soften, method="linear"), "scores", _IOU, 0.001),
    "soft-gaussian": Method(partial(soften, method="gaussian"), "scores", _SIGMA, 0.001),
    "diou": Method(select, "nothing", _IOU | _OWNERS, overlap="diou"),
    "matrix-linear": Method(partial(decay_all, method="linear"), "scores", frozenset(), 0.0),
    "matrix-gaussian": Method(partial(decay_all, method="gaussian"), "scores", _SIGMA, 0.0),
    "fast": Method(partial(select_in_rounds, max_rounds=1), "nothing", _IOU),
    "cluster": Method(select_in_rounds, "nothing", _IOU | _OWNERS),
    "greedy-nmm": Method(partial(merge, transitive=False), "boxes", _IOU | _OVERLAP),
    "nmm": Method(partial(merge, transitive=True), "boxes", _IOU | _OVERLAP),
}
"""The methods by name; a name with a dash fixes the method of a function."""


class Setting(NamedTuple):
    """A method and what it reads; see :func:`boxscore.suppress`."""

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
        """Score below which detections take no part."""
        return METHODS[self.method].score_threshold if self.score_threshold is None else self.score_threshold


def check_method(
    method: str, *, iou_threshold: float | None, overlap: str = "iou", similarity: str = "box"
) -> Method:
    """Look up a method and check that it supports the options."""
    chosen = METHODS[checks.one_of(method, list(METHODS), name="method")]
    checks.one_of(overlap, ("iou", "ios"), name="overlap")
    if similarity != "box" and (chosen.overlap == "diou" or chosen.changes == "boxes"):
        named = {"mask": "masks", "quadrilateral": "corners"}
        named |= dict.fromkeys(("rotated", "probiou"), "rotated boxes")
        only = [
            name for name, known in METHODS.items() if known.overlap != "diou" and known.changes != "boxes"
        ]
        raise InputError(
            "method",
            f"be one that compares {named.get(similarity, similarity)}",
            got=repr(method),
            cause=f"known: {', '.join(only)}",
        )
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
    """Say which methods read an option."""
    return f"read by {', '.join(name for name, method in METHODS.items() if option in method.reads)}"
