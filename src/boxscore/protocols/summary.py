"""What a summary shows: kinds of metrics, and the rows that ask for them."""

from __future__ import annotations

import re
from typing import Any, Literal

from boxscore._utils import checks
from boxscore.errors import ProtocolError
from boxscore.protocols.acting import Refusal
from boxscore.protocols.fields import Check, Rules, choice, list_of, rule, text, whole

SUMMARY_KINDS = {
    "AP": "Average Precision  (AP)",
    "AR": "Average Recall     (AR)",
    "FROC": "Mean Sensitivity (FROC)",
    "MR": "Log-Average Miss Rate (MR)",
    "JI": "Jaccard Index      (JI)",
    "F1": "Best F1            (F1)",
    "AP_R40": "Average Precision  (R40)",
    "AP_R11": "Average Precision  (R11)",
    "AOS_R40": "Orientation Sim.   (R40)",
    "AOS_R11": "Orientation Sim.   (R11)",
    "precision": "Precision          (P)",
    "recall": "Recall             (R)",
    "micro_F1": "F1, all together   (F1)",
    "mean_iou": "Mean IoU of matches",
    "object_iou": "Mean IoU of objects",
    "fp_per_image": "False positives per image",
    "exact_images": "Images with the exact number",
    "image_precision": "Precision, mean of images",
    "image_recall": "Recall, mean of images",
    "image_F1": "F1 of the means of images",
    "cgF1": "Classification-gated F1 (cgF1)",
    "smoothed_precision": "Precision, as SAM 3 divides",
    "smoothed_recall": "Recall, as SAM 3 divides",
    "smoothed_F1": "F1, as SAM 3 divides",
    "positive_macro_F1": "F1, mean of positive phrases",
    "positive_micro_F1": "F1 of positive phrases",
    "positive_micro_precision": "Precision of positive phrases",
    "IL_precision": "Precision of images",
    "IL_recall": "Recall of images",
    "IL_F1": "F1 of images",
    "IL_FPR": "False positive rate of images",
    "IL_MCC": "Correlation of images (MCC)",
    "end_precision": "Precision at curves' ends",
    "end_recall": "Recall at curves' ends",
    "end_F1": "F1 at curves' ends",
    "AP_lowest": "AP, lowest of all orders",
    "AP_expected": "AP, expected over all orders",
    "AP_highest": "AP, highest of all orders",
}
"""Kinds of summary metrics, as pycocotools prints them or would; ``scoring/kinds`` computes them."""

NEED_ORDER = ("AP", "FROC", "MR", "JI", "AP_R40", "AP_R11", "AOS_R40", "AOS_R11")
"""Those that rank detections."""

ORDERLESS = ("AP_lowest", "AP_expected", "AP_highest")
"""Those of all orders of the detections."""

LEVEL_METRICS = ("AP_R40", "AP_R11", "AOS_R40", "AOS_R11")
"""Those that are read at score levels."""

OF_PHRASES = (
    "cgF1",
    "smoothed_precision",
    "smoothed_recall",
    "smoothed_F1",
    "positive_macro_F1",
    "positive_micro_F1",
    "positive_micro_precision",
    "IL_precision",
    "IL_recall",
    "IL_F1",
    "IL_FPR",
    "IL_MCC",
)
"""Those of images that are a picture and a phrase each."""

OF_IMAGES = ("image_precision", "image_recall", "image_F1", *OF_PHRASES)
"""Those that count the objects and detections of each image together."""


def _key(value: Any, name: str) -> str:
    if re.search(r"[{}]", text(value, name).replace("{cap}", "")):
        raise ProtocolError(name, "have no braces but in {cap}", got=repr(value))
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
"""Behind a selection of classes that is of some images alone."""


class SummaryRow(Rules):
    """One summary metric.

    A row whose threshold, area range or max detections the protocol does not have is left out of the summary.
    """

    key: str = rule(
        check=Check("string", _key), doc="Its name in `metrics`; `{cap}` stands for its max detections."
    )
    metric: str = rule("AP", check=choice(SUMMARY_KINDS), doc="What is computed.")
    iou: float | None = rule(
        None,
        check=Check("number in (0, 1]", _threshold_or_mean),
        doc="One threshold; left out, the mean over all.",
    )
    area: str = rule("all", check=text, doc="The name of an area range.")
    cap: int = rule(-1, check=whole(-1), doc="Position among max detections; -1 is the largest.")
    classes: str = rule(
        "",
        check=Check("column=value", _selection),
        doc="Only classes whose column has a value, or one of some: `frequency=r` for the rare ones of LVIS, "
        "`frequency=r|c` for these and the common ones. Left out, all.",
    )
    images: RowImages = rule(
        "all",
        check=choice(RowImages),
        doc="Where classes share a curve, the detections of a class in all images, or only in images with an "
        "object of it (OmniLabel's positive descriptions).",
    )
    harmonic_of: tuple[str, ...] = rule(
        (),
        check=list_of(text, "a list"),
        doc="Keys of two other metrics whose harmonic mean it is, with 1e-5 added to their sum (OmniLabel).",
    )

    @property
    def selection(self) -> str:
        """What shares a curve: classes, and in which images."""
        return self.classes if self.images == "all" else self.classes + WITH_OBJECTS

    def _label(self, name: str) -> str:
        return f"summary.{name}" if name == "key" else f"summary {self.key}: {name}"


def summary_title(metric: str, iou: str, area: str, cap: int | str) -> str:
    """Spell out what a summary metric is, the way pycocotools prints it."""
    return f"{SUMMARY_KINDS[metric]} @[ IoU={iou:<9} | area={area:>6} | maxDets={cap:>3} ]"


def first_metric(protocol: Any) -> str:
    """Name the first metric of a protocol."""
    return next((" ".join(SUMMARY_KINDS[row.metric].split()) for row in protocol.rows), "none")


def _beyond_one_curve(protocol: Any) -> bool:
    """Whether a metric is of two curves, or of some images of a class."""
    return any(row.harmonic_of or row.images != "all" for row in protocol.summary)


def _unknown_parts(protocol: Any) -> bool:
    """Whether a metric is of others that are not there, or not of two."""
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
        "have no metric with harmonic_of or images, in parts",
        got="one",
        cause="evaluate all images at once",
    ),
    Refusal("ranges", _beyond_one_curve),
)
"""What metrics of several curves refuse."""
