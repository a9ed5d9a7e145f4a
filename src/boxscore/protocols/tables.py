"""The tables of a protocol, each made of its rules in the order of their fields.

Conventions
-----------
- A rule stands in ``rules``, one file each, as the fields of one table or of several. A new rule is its file
  and its name here; a new field of a rule is in its file alone.
- Bases stand from the last to the first, the order in which dataclasses take fields from them. The order of
  fields is that of words, steps, docs and checks.
"""

from __future__ import annotations

from boxscore._utils.records import part, record
from boxscore.protocols.fields import Rules, rule, table, with_attributes
from boxscore.protocols.rules.areas import AreaFields, DetectionAreaField
from boxscore.protocols.rules.boxes import AspectRatioField, EdgeFields, PixelOffsetField
from boxscore.protocols.rules.candidates import CandidateFields
from boxscore.protocols.rules.caps import CapScopeField, MaxDetectionsField
from boxscore.protocols.rules.class_means import AbsentClassesField, ClassMeanField
from boxscore.protocols.rules.class_weights import ClassWeightsField
from boxscore.protocols.rules.clipping import ClippingField
from boxscore.protocols.rules.curve import (
    CurveFields,
    CutFields,
    PrecisionEpsilonField,
    ScoreStepsField,
    SequentialMeanField,
)
from boxscore.protocols.rules.distance import DistanceRules
from boxscore.protocols.rules.flags import FlagFields
from boxscore.protocols.rules.froc import FrocRules
from boxscore.protocols.rules.groups import GroupRules
from boxscore.protocols.rules.id_zero import IdZeroField
from boxscore.protocols.rules.jaccard import JaccardRules
from boxscore.protocols.rules.keypoints import KeypointRules, UnlabelledField
from boxscore.protocols.rules.labels import LabelRules
from boxscore.protocols.rules.longer_sides import LongerSidesField
from boxscore.protocols.rules.masks import MaskRules
from boxscore.protocols.rules.miss_rate import MissRateRules
from boxscore.protocols.rules.order import OrderField
from boxscore.protocols.rules.pooling import PerClassField, PoolField
from boxscore.protocols.rules.recall import RecallOverField
from boxscore.protocols.rules.regions import RegionsField
from boxscore.protocols.rules.rounding import RoundingFields
from boxscore.protocols.rules.score_levels import ScoreLevelRules
from boxscore.protocols.rules.score_threshold import ScoreThresholdField
from boxscore.protocols.rules.scores import ScoresField
from boxscore.protocols.rules.shares import ShareField, VoidField
from boxscore.protocols.rules.smallness import SmallnessFields
from boxscore.protocols.rules.stretching import StretchingField
from boxscore.protocols.rules.thresholds import ThresholdClosedField, ThresholdFields
from boxscore.protocols.rules.ties import EqualScoresField, RankedFilesField, TieOrderField


@with_attributes
@record(frozen=True)
class RoundingRules(StretchingField, RoundingFields):
    """What detections lose before anything else, as in tools that write them to text and read them again."""

    PREFIX = "rounding."


@with_attributes
@record(frozen=True)
class BoxRules(
    EdgeFields, AspectRatioField, ClippingField, LongerSidesField, SmallnessFields, PixelOffsetField
):
    """How boxes are measured."""

    PREFIX = "boxes."


@with_attributes
@record(frozen=True)
class IgnoreRules(
    RegionsField, VoidField, ShareField, AreaFields, UnlabelledField, DetectionAreaField, FlagFields
):
    """What counts neither for nor against."""

    PREFIX = "ignore."

    @property
    def range_by_range(self) -> bool:
        """Whether how a pair is measured, or which detections take part, depends on the range."""
        return self.outside != "ignore" or self.height_slack > 0 or self.share == "sum"


@with_attributes
@record(frozen=True)
class MatchingRules(
    PerClassField,
    ScoresField,
    MaxDetectionsField,
    ScoreThresholdField,
    RankedFilesField,
    CapScopeField,
    ThresholdClosedField,
    EqualScoresField,
    IdZeroField,
    OrderField,
    CandidateFields,
    ThresholdFields,
):
    """How detections and ground truths are matched."""

    PREFIX = "matching."

    @property
    def lowest_threshold(self) -> float:
        """What an overlap must reach to be a candidate at all, in any class."""
        return 0.0 if self.candidate == "assigned_before_threshold" else self.least_threshold


@with_attributes
@record(frozen=True)
class ApRules(
    SequentialMeanField,
    ClassWeightsField,
    ClassMeanField,
    PrecisionEpsilonField,
    PoolField,
    AbsentClassesField,
    RecallOverField,
    ScoreStepsField,
    TieOrderField,
    CutFields,
    CurveFields,
):
    """How a precision-recall curve becomes one number."""

    PREFIX = "ap."


@part(frozen=True)
class TableFields(Rules):
    """The tables of a protocol."""

    rounding: RoundingRules = rule(RoundingRules(), check=table(RoundingRules), doc="")
    boxes: BoxRules = rule(BoxRules(), check=table(BoxRules), doc="")
    masks: MaskRules = rule(MaskRules(), check=table(MaskRules), doc="")
    keypoints: KeypointRules = rule(KeypointRules(), check=table(KeypointRules), doc="")
    distance: DistanceRules = rule(DistanceRules(), check=table(DistanceRules), doc="")
    ignore: IgnoreRules = rule(IgnoreRules(), check=table(IgnoreRules), doc="")
    group: GroupRules = rule(GroupRules(), check=table(GroupRules), doc="")
    labels: LabelRules = rule(LabelRules(), check=table(LabelRules), doc="")
    matching: MatchingRules = rule(MatchingRules(), check=table(MatchingRules), doc="")
    ap: ApRules = rule(ApRules(), check=table(ApRules), doc="")
    froc: FrocRules = rule(FrocRules(), check=table(FrocRules), doc="")
    miss_rate: MissRateRules = rule(MissRateRules(), check=table(MissRateRules), doc="")
    jaccard: JaccardRules = rule(JaccardRules(), check=table(JaccardRules), doc="")
    score_levels: ScoreLevelRules = rule(ScoreLevelRules(), check=table(ScoreLevelRules), doc="")
