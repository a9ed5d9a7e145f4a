"""Max detections, and what they are counted over."""

from __future__ import annotations

from typing import Any, Literal

from boxscore._utils.records import part
from boxscore.protocols.acting import Refusal, Scope, ranks
from boxscore.protocols.fields import Rules, Step, Word, choice, list_of, rule, whole

CapScope = Literal["class", "image", "image_each", "data_set_class"]


def _max_detections(protocol: Any) -> str:
    """Write max detections."""
    return ",".join(map(str, protocol.matching.max_detections)) or "none"


def _largest_max_detections(protocol: Any) -> str:
    """Write the largest of max detections, and what it is counted over."""
    most = protocol.caps[-1]
    scopes = {"class": "image and class", "image": "image", "data_set_class": "class of the data set"}
    scope = scopes[protocol.matching.cap_scope.removesuffix("_each")]
    return "none" if most is None else f"{most} per {scope}"


def _over_data_set(protocol: Any) -> bool:
    return bool(protocol.matching.caps_data_set)


def _scope(protocol: Any) -> Scope:
    return Scope.CLASS if _over_data_set(protocol) else Scope.IMAGE


_REFUSALS = (
    Refusal("ranges", _over_data_set),
    Refusal(
        "batches",
        _over_data_set,
        "be 'class' or 'image' for an Evaluator",
        cause="max detections over all images cannot be applied batch by batch: evaluate a results file",
    ),
    Refusal(
        "parts",
        lambda protocol: (
            _over_data_set(protocol)
            and (not protocol.matching.per_class or protocol.matching.equal_scores == "last_first")
        ),
        "be 'class' or 'image' in parts, where classes are pooled or equal scores go last_first",
        cause="evaluate all images at once",
    ),
)


@part(frozen=True)
class CapScopeField(Rules):
    """What max detections are counted over."""

    cap_scope: CapScope = rule(
        "class",
        check=choice(CapScope),
        doc="Whether the largest of max detections is counted per image and class, per image over all its "
        "classes, or per class over all images; or whether each is counted per image over all its classes.",
        word=Word(
            "cap",
            silent="class",
            text={"image": "per image", "image_each": "per image, each", "data_set_class": "per class"},
            note="what max detections are counted over, where that is not an image and class",
        ),
        step="matching.max_detections",
        scope=ranks(_scope),
        refuses=_REFUSALS,
    )

    @property
    def caps_image(self) -> bool:
        """Whether the largest of max detections is counted over all classes of an image."""
        return self.cap_scope in ("image", "image_each")

    @property
    def caps_data_set(self) -> bool:
        """Whether the largest of max detections is counted over all images of a class."""
        return self.cap_scope == "data_set_class"


@part(frozen=True)
class MaxDetectionsField(Rules):
    """Max detections."""

    max_detections: tuple[int, ...] = rule(
        (),
        check=list_of(whole(1), "a list of whole numbers", ordered=True),
        doc="How many detections per image and class are evaluated, best score first; ascending, [M]. "
        "Empty: all.",
        word=Word("maxdet", text=_max_detections, note="max detections, or `none`"),
        step=Step("max detections", "ranking", _largest_max_detections),
        scope=ranks(_scope),
    )
