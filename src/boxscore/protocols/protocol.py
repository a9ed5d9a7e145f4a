"""A protocol is data: every choice that turns matches into a number.

Goal
----
One frozen value says how boxes are measured, matched, ignored, averaged and summarised. There is no
evaluator per benchmark: each choice is dispatched in one function of the stage that it belongs to.

Conventions
-----------
- The protocols that ship are TOML files in ``boxscore/protocols``; a user's file has the same form and
  may say ``extends = "coco"`` and give only what differs. Tables merge key by key, anything else replaces.
- IoU thresholds and recall points are grids, ``{start, stop, count}``, built by ``numpy.linspace``:
  decimal literals differ from pycocotools' values in one threshold and ten recall points.
- Everything about a field is defined at the field (see :mod:`boxscore.protocols.fields`): default, check,
  doc, word in the signature and step of a waterfall, both in the order of the fields. The fields stand in
  tables, and these by stage: ``measuring_rules``, ``matching_rules``, ``scoring_rules``.
- :meth:`Protocol.signature` prints the choices in one line. Fields that it omits have COCO's value.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping
from typing import Any, Literal

from boxscore._utils import checks
from boxscore._utils.records import record
from boxscore.errors import ProtocolError
from boxscore.protocols import wording
from boxscore.protocols.fields import (
    Check,
    Rules,
    Word,
    choice,
    list_of,
    read,
    rule,
    table,
    text,
    whole,
    with_attributes,
)
from boxscore.protocols.grids import grid_text
from boxscore.protocols.matching_rules import (
    AnnotationIdZero,
    DetectionArea,
    EqualScores,
    GroupRules,
    IgnoreRules,
    LabelRules,
    MatchingRules,
)
from boxscore.protocols.measuring_rules import BoxRules, KeypointRules, MaskRules, RoundingRules
from boxscore.protocols.scoring_rules import (
    ApRules,
    FrocInterpolation,
    FrocRules,
    JaccardRules,
    MissRateRules,
    TieOrder,
)
from boxscore.protocols.signature import signature_of

__all__ = [
    "SUMMARY_KINDS",
    "AnnotationIdZero",
    "ApRules",
    "BoxRules",
    "DetectionArea",
    "EqualScores",
    "FrocInterpolation",
    "FrocRules",
    "GroupRules",
    "IgnoreRules",
    "JaccardRules",
    "KeypointRules",
    "LabelRules",
    "MaskRules",
    "MatchingRules",
    "MissRateRules",
    "Protocol",
    "RoundingRules",
    "SimilarityName",
    "SummaryRow",
    "TieOrder",
    "summary_title",
]

SimilarityName = Literal["box", "rotated", "quadrilateral", "probiou", "mask", "boundary", "keypoints"]

SUMMARY_KINDS = {
    "AP": "Average Precision  (AP)",
    "AR": "Average Recall     (AR)",
    "FROC": "Mean Sensitivity (FROC)",
    "MR": "Log-Average Miss Rate (MR)",
    "JI": "Jaccard Index      (JI)",
}
"""Kinds of summary metrics, as pycocotools prints them or would; ``scoring/kinds.py`` computes each."""


def _strings(value: Any, name: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ProtocolError(name, "be a table of name = string", got=repr(value))
    return {key: text(item, f"{name}.{key}") for key, item in value.items()}


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


@with_attributes
@record(frozen=True)
class SummaryRow(Rules):
    """One summary metric.

    A row whose threshold, area range or cap the protocol does not have is left out of the summary.
    """

    key: str = rule(
        check=Check("string", _key), doc="Its name in `metrics`; `{cap}` stands for the detection cap."
    )
    metric: str = rule("AP", check=choice(SUMMARY_KINDS), doc="What is computed.")
    iou: float | None = rule(
        None,
        check=Check("number in (0, 1]", _threshold_or_mean),
        doc="One threshold; left out, the mean over all.",
    )
    area: str = rule("all", check=text, doc="The name of an area range.")
    cap: int = rule(-1, check=whole(-1), doc="Position among the detection caps; -1 is the largest.")
    classes: str = rule(
        "",
        check=Check("column=value", _selection),
        doc="Only classes whose column has a value: `frequency=r` for the rare ones of LVIS. Left out, all.",
    )

    def _label(self, name: str) -> str:
        return f"summary.{name}" if name == "key" else f"summary {self.key}: {name}"


def summary_title(metric: str, iou: str, area: str, cap: int | str) -> str:
    """Spell out what a summary metric is, the way pycocotools prints it."""
    return f"{SUMMARY_KINDS[metric]} @[ IoU={iou:<9} | area={area:>6} | maxDets={cap:>3} ]"


@with_attributes
@record(frozen=True)
class Protocol(Rules):
    """Everything that decides a score. See the module's page for the conventions."""

    name: str = rule(
        check=text, doc="Stands in the signature; not taken over by a protocol that extends this one."
    )
    title: str = rule("", check=text, doc="One line for people; not taken over.")
    aliases: tuple[str, ...] = rule(
        (),
        check=list_of(text, "a list"),
        doc="Other names by which `boxscore explain` knows the tool that scores so; not taken over.",
    )
    of_type: Mapping[str, str] = rule(
        {},
        check=Check("IoU type = protocol", _strings),
        doc="The protocols that take this one's place when `--iou-type` asks for something else; not taken "
        "over.",
    )
    similarity: SimilarityName = rule(
        "box",
        check=choice(SimilarityName),
        doc="What decides how well a detection and a ground truth agree.",
        word=Word(
            "sim",
            text=wording.similarity,
            note="left out for upright boxes; `rotated`, `quadrilateral`, `probiou`, `mask`, `boundary/` and "
            "its dilation, `oks/` and its keypoints",
        ),
    )
    rounding: RoundingRules = rule(RoundingRules(), check=table(RoundingRules), doc="")
    boxes: BoxRules = rule(BoxRules(), check=table(BoxRules), doc="")
    masks: MaskRules = rule(MaskRules(), check=table(MaskRules), doc="")
    keypoints: KeypointRules = rule(KeypointRules(), check=table(KeypointRules), doc="")
    ignore: IgnoreRules = rule(IgnoreRules(), check=table(IgnoreRules), doc="")
    group: GroupRules = rule(GroupRules(), check=table(GroupRules), doc="")
    labels: LabelRules = rule(LabelRules(), check=table(LabelRules), doc="")
    matching: MatchingRules = rule(MatchingRules(), check=table(MatchingRules), doc="")
    ap: ApRules = rule(ApRules(), check=table(ApRules), doc="")
    froc: FrocRules = rule(FrocRules(), check=table(FrocRules), doc="")
    miss_rate: MissRateRules = rule(MissRateRules(), check=table(MissRateRules), doc="")
    jaccard: JaccardRules = rule(JaccardRules(), check=table(JaccardRules), doc="")
    summary: tuple[SummaryRow, ...] = rule(
        (SummaryRow("mAP"),), check=list_of(table(SummaryRow), "a list of tables, [[summary]]"), doc=""
    )

    def _check_together(self) -> None:
        if self.matching.equal_scores == "last_first" and not self.matching.per_class:
            raise ProtocolError("matching.per_class", "be true where equal scores go last_first", got="false")
        if self.masks_may_lack and self.ignore.range_by_range:
            rule = 'be "ignore", and ignore.height_slack 0, where ground truths may lack their masks'
            raise ProtocolError("ignore.outside", rule, got=repr(self.ignore.outside))
        if self.group.treatment == "merge" and self.ignore.range_by_range:
            rule = 'be "ignore" where groups are merged'
            raise ProtocolError("ignore.outside", rule, got=repr(self.ignore.outside))
        if self.group.treatment == "merge" and self.matching.class_thresholds:
            raise ProtocolError(
                "matching.class_thresholds", "be left out where groups are merged", got="some"
            )
        if self.ap.score_steps and self.ap.interpolation != "area":
            rule = 'be 0 unless ap.interpolation is "area"'
            raise ProtocolError("ap.score_steps", rule, got=self.ap.score_steps)
        if self.asks_for("JI") and self.ignore.range_by_range:
            rule = 'be "ignore", and ignore.height_slack 0, where the summary has JI'
            raise ProtocolError("ignore.outside", rule, got=repr(self.ignore.outside))
        if self.ap.recall_over == "all" and self.group.weighs:
            raise ProtocolError("ap.recall_over", 'be "counted" where groups have weights', got='"all"')
        if self.similarity == "keypoints" and not self.keypoints.sigmas:
            raise ProtocolError("keypoints.sigmas", "be given", got="none")
        if self.group.weighs and self.ap.interpolation != "area":
            cause = "parts of an object have no place at recall points"
            raise ProtocolError(
                "group.weight",
                'be 0 or 1 unless ap.interpolation is "area"',
                got=self.group.weight,
                cause=cause,
            )

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Protocol:
        """Build a protocol from the values of a TOML file."""
        return read(cls, {"name": "custom", **values}, name="")

    def asks_for(self, metric: str) -> bool:
        """Whether the summary has a metric of a kind."""
        return any(row.metric == metric for row in self.summary)

    @property
    def lower_is_better(self) -> tuple[str, ...]:
        """Keys of the summary metrics that fall when a detector gets better: miss rates."""
        return tuple(row.key for row in self.rows if row.metric == "MR")

    @property
    def caps(self) -> tuple[int | None, ...]:
        """The detection caps, ascending; ``(None,)`` for no cap. The axis M."""
        return self.matching.max_detections or (None,)

    @property
    def masks_may_lack(self) -> bool:
        """Whether masks are compared, and ground truths without one are matched by their boxes."""
        return self.similarity in ("mask", "boundary") and self.masks.box_only_truth == "absorb"

    @functools.cached_property
    def rows(self) -> tuple[SummaryRow, ...]:
        """The summary rows that apply, their keys filled in, each key once."""
        rows: dict[str, SummaryRow] = {}
        for row in self.summary:
            has_cap = -len(self.caps) <= row.cap < len(self.caps)
            has_iou = row.iou is None or row.iou in self.matching.iou_thresholds
            if has_cap and has_iou and row.area in self.ignore.area_ranges:
                key = row.key.replace("{cap}", str(self.caps[row.cap]))
                rows.setdefault(key, dataclasses.replace(row, key=key))
        return tuple(rows.values())

    @property
    def class_keys(self) -> dict[str, str]:
        """What each summary metric is called in the rows per class, by its key: ``mAP`` is ``AP`` there.

        Metrics of some classes alone have no column there.
        A key keeps its name where it does not start with "m" and a capital letter, and where the shorter name
        is another metric's own.
        """
        keys = [row.key for row in self.rows if not row.classes]
        short = {key: key[1:] if re.match("m[A-Z]", key) else key for key in keys}
        return {key: key if short[key] in keys else short[key] for key in keys}

    def iou_text(self, row: SummaryRow) -> str:
        """Write the threshold, or the range of thresholds, of a summary row."""
        if row.iou is not None:
            return f"{row.iou:.2f}"
        thresholds = self.matching.iou_thresholds
        return grid_text(thresholds) if len(thresholds) <= 2 else f"{thresholds[0]:.2f}:{thresholds[-1]:.2f}"

    def row_title(self, row: SummaryRow) -> str:
        """Spell out what a summary row is, the way pycocotools prints it."""
        return summary_title(row.metric, self.iou_text(row), row.area, self.caps[row.cap] or "all")

    def signature(self) -> str:
        """Return every choice in one line, to print beside every score.

        Examples
        --------
        >>> from boxscore.protocols import load_protocol
        >>> load_protocol("coco").signature()
        'boxscore|coco|iou:0.50:0.95/10|ap:101|maxdet:1,10,100|area:coco|crowd:iof|offset:0|v:0.2.0'
        """
        return signature_of(self)
