"""Define the rows of a summary, and name the kinds of metrics that they can ask for."""

from __future__ import annotations

import functools
import importlib
import re
from typing import Any, Literal, Protocol

from boxscore._utils import checks
from boxscore.errors import ProtocolError
from boxscore.protocols.acting import Refusal
from boxscore.protocols.fields import Check, Rules, choice, list_of, rule, text, whole

FAMILIES = {
    "boxscore.scoring.average_precision": "AP AR",
    "boxscore.extensions.crowds.froc_metric": "FROC",
    "boxscore.extensions.crowds.miss_rate_metric": "MR",
    "boxscore.extensions.crowds.jaccard_metric": "JI",
    "boxscore.scoring.best_f1": "F1",
    "boxscore.extensions.crowds.score_level_metrics": "AP_R40 AP_R11 AOS_R40 AOS_R11",
    "boxscore.extensions.scoreless.ratios": "precision recall micro_F1 mean_iou object_iou fp_per_image",
    "boxscore.extensions.scoreless.exact_images": "exact_images",
    "boxscore.extensions.scoreless.image_counts": "image_precision image_recall image_F1",
    "boxscore.extensions.scoreless.phrase_counts": (
        "cgF1 smoothed_precision smoothed_recall smoothed_F1 positive_macro_F1 positive_micro_F1 "
        "positive_micro_precision IL_precision IL_recall IL_F1 IL_FPR IL_MCC"
    ),
    "boxscore.extensions.scoreless.curve_ends": "end_precision end_recall end_F1",
    "boxscore.extensions.scoreless.orderless": "AP_lowest AP_expected AP_highest",
}
"""Families of summary metrics: the module that computes a family, and the names of its kinds.

Protocols are checked against the names. A module lists its kinds, with their titles, in ``KINDS``, and is
imported lazily.
"""

SUMMARY_KINDS = tuple(name for names in FAMILIES.values() for name in names.split())
"""Kinds of summary metrics, in the order of messages."""

ORDERLESS = tuple(FAMILIES["boxscore.extensions.scoreless.orderless"].split())
"""Kinds that are computed over all orders of the detections."""

LEVEL_METRICS = tuple(FAMILIES["boxscore.extensions.crowds.score_level_metrics"].split())
"""Kinds that are read at score levels."""

OF_IMAGES = (
    *FAMILIES["boxscore.extensions.scoreless.image_counts"].split(),
    *FAMILIES["boxscore.extensions.scoreless.phrase_counts"].split(),
)
"""Kinds that count the objects and detections of each image together."""


class NamedKind(Protocol):
    """The interface of a kind of summary metric that protocols and pages need."""

    @property
    def name(self) -> str:
        """The name in protocols."""

    @property
    def title(self) -> str:
        """A title in the style of pycocotools."""

    @property
    def needs_order(self) -> bool:
        """Whether the metric ranks detections."""

    @property
    def lower_is_better(self) -> bool:
        """Whether lower values are better."""


@functools.cache
def named_kind(metric: str) -> NamedKind:
    """Return a kind of summary metric by its name; imports its module."""
    module = next(module for module, names in FAMILIES.items() if metric in names.split())
    kinds: tuple[NamedKind, ...] = importlib.import_module(module).KINDS
    return next(kind for kind in kinds if kind.name == metric)


def _key(value: Any, name: str) -> str:
    if re.search(r"[{}]", text(value, name).replace("{cap}", "")):
        raise ProtocolError(name, "use braces only in {cap}", got=repr(value))
    return str(value)


def _threshold_or_mean(value: Any, name: str) -> float | None:
    return None if value is None else checks.number_between(value, 0, 1, name=name, open_low=True)


def _selection(value: Any, name: str) -> str:
    column, equals, wanted = text(value, name).partition("=")
    if value and not (column and equals and wanted):
        raise ProtocolError(name, "be column=value", got=repr(value), cause="for example frequency=r")
    return str(value)


RowImages = Literal["all", "with_objects"]

WITH_OBJECTS = ", in images with objects"
"""Suffix of a selection of classes that is restricted to images with objects."""


class SummaryRow(Rules):
    """One summary metric.

    The summary drops a row whose threshold, area range or max detections the protocol does not have.
    """

    key: str = rule(
        check=Check("string", _key), doc="Its name in `metrics`; `{cap}` is replaced by its max detections."
    )
    metric: str = rule("AP", check=choice(SUMMARY_KINDS), doc="The metric.")
    iou: float | None = rule(
        None,
        check=Check("number in (0, 1]", _threshold_or_mean),
        doc="One threshold; the default is the mean over all.",
    )
    area: str = rule("all", check=text, doc="The name of an area range.")
    cap: int = rule(-1, check=whole(-1), doc="Position among max detections; -1 is the largest.")
    classes: str = rule(
        "",
        check=Check("column=value", _selection),
        doc="Only classes whose column has this value, or one of several: `frequency=r` for the rare ones "
        "of LVIS, `frequency=r|c` for rare and common ones. The default is all.",
    )
    images: RowImages = rule(
        "all",
        check=choice(RowImages),
        doc="If classes share a curve: the detections of a class in all images, or only in images with an "
        "object of that class (OmniLabel's positive descriptions).",
    )
    harmonic_of: tuple[str, ...] = rule(
        (),
        check=list_of(text, "a list"),
        doc="Keys of two other metrics; the metric is their harmonic mean, with 1e-5 added to their sum "
        "(OmniLabel).",
    )

    @property
    def selection(self) -> str:
        """The classes and images that share a curve."""
        return self.classes if self.images == "all" else self.classes + WITH_OBJECTS

    def _label(self, name: str) -> str:
        return f"summary.{name}" if name == "key" else f"summary {self.key}: {name}"


def summary_title(metric: str, iou: str, area: str, cap: int | str) -> str:
    """Describe a summary metric in the style of pycocotools."""
    return f"{named_kind(metric).title} @[ IoU={iou:<9} | area={area:>6} | maxDets={cap:>3} ]"


def first_metric(protocol: Any) -> str:
    """Return the title of the first metric of a protocol."""
    return next((" ".join(named_kind(row.metric).title.split()) for row in protocol.rows), "none")


def _beyond_one_curve(protocol: Any) -> bool:
    """Whether a metric combines two curves or restricts a class to some images."""
    return any(row.harmonic_of or row.images != "all" for row in protocol.summary)


def _unknown_parts(protocol: Any) -> bool:
    """Whether ``harmonic_of`` names metrics that do not exist, or not exactly two."""
    keys = {row.key for row in protocol.summary if not row.harmonic_of}
    return any(row.harmonic_of and len({*row.harmonic_of} & keys) != 2 for row in protocol.summary)


SUMMARY_REFUSED = (
    Refusal("together", _unknown_parts, "name two metrics of the summary in harmonic_of", got="others"),
    Refusal(
        "together",
        lambda protocol: protocol.ap.pool == "none" and any(row.images != "all" for row in protocol.summary),
        "be 'classes' where a metric is of the images with objects",
        field="ap.pool",
    ),
    Refusal(
        "parts",
        _beyond_one_curve,
        "not have a metric with harmonic_of or images, in parts",
        got="one",
        cause="evaluate all images at once",
    ),
    Refusal("ranges", _beyond_one_curve),
)
"""Ways that metrics of several curves reject."""
