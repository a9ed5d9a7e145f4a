"""Define a protocol: every choice that turns matches into a number, as data.

One frozen value defines how boxes are measured, matched, ignored, averaged and summarized. A benchmark is a
value, not code: each choice is implemented in one place, the stage that it belongs to.

Conventions
-----------
- Shipped protocols are TOML files, here and in the folders ``protocols`` of extensions; a user's file has the
  same form and may contain ``extends = "coco"`` and only the differences. Tables merge key by key, anything
  else replaces the parent's value.
- IoU thresholds and recall points are grids, ``{start, stop, count}``, built by ``numpy.linspace``:
  decimal literals differ from pycocotools' values in one threshold and ten recall points.
- A field declares everything about itself (see :mod:`boxscore.protocols.fields`): default, check, doc,
  signature word and waterfall step; its scope, its effect on matching and the ways that it rejects (see
  :mod:`boxscore.protocols.acting`). Words and steps follow the order of the fields. The classes of the tables
  are in ``tables``.
- :meth:`Protocol.signature` prints the choices in one line, to print next to every score. Each field defines
  its word (:class:`boxscore.protocols.fields.Word`). Words that are always printed come first; others are
  printed only when the value differs from COCO's.
- :class:`ProtocolScope` combines the needs of all rules: whether images can be matched separately, and which
  ways of computing are supported.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from boxscore._version import __version__
from boxscore.errors import ProtocolError
from boxscore.protocols.acting import DESCRIBES, Act, Does, Point, Refusal, Scope, Way, measures, scores
from boxscore.protocols.fields import (
    ALWAYS,
    Check,
    Field,
    Rules,
    Step,
    Word,
    all_fields,
    choice,
    list_of,
    read,
    rule,
    table,
    text,
)
from boxscore.protocols.grids import grid_text, number_text
from boxscore.protocols.summary import SUMMARY_REFUSED, SummaryRow, first_metric, named_kind
from boxscore.protocols.tables.ap import ApRules
from boxscore.protocols.tables.boxes import BoxRules, RoundingRules
from boxscore.protocols.tables.crowds import FrocRules, JaccardRules, MissRateRules, ScoreLevelRules
from boxscore.protocols.tables.ignore import IgnoreRules
from boxscore.protocols.tables.labels import GroupRules, LabelRules
from boxscore.protocols.tables.matching import MatchingRules
from boxscore.protocols.tables.shapes import DistanceRules, KeypointRules, MaskRules


class ProtocolScope:
    """The scope of a protocol and the ways of computing that it supports, collected from its rules.

    Parameters
    ----------
    protocol : Protocol

    Examples
    --------
    >>> from boxscore.protocols import load_protocol
    >>> load_protocol("coco").scope.is_matched_alone
    True
    >>> load_protocol("widerface").scope.allows("batches")
    False
    """

    def __init__(self, protocol: Any) -> None:
        self._protocol = protocol
        self._kind: Any = type(protocol)
        self._fields = all_fields(self._kind)

    def of(self, path: str) -> Scope:
        """Return the scope of one field, named as in TOML: ``matching.cap_scope``."""
        return next(field.rule.scope for field in self._fields if field.path == path).scope_in(self._protocol)

    def widest(self, *acts: Act) -> Scope:
        """Return the widest scope of the rules with any of these effects."""
        scopes = [field.rule.scope for field in self._fields]
        return max(one.scope_in(self._protocol) for one in scopes if one.act in acts)

    @property
    def prepared_by(self) -> tuple[Any, ...]:
        """The values that prepare tables; protocols with equal values share the tables."""
        return self._values("prepares")

    @property
    def measured_by(self) -> tuple[Any, ...]:
        """The values that measure pairs; protocols with equal values share the overlaps."""
        return self._values("measures")

    def _values(self, act: Act) -> tuple[Any, ...]:
        return tuple(field.of(self._protocol) for field in self._fields if field.rule.scope.act == act)

    @property
    def is_prepared_by_row(self) -> bool:
        """Whether each row is prepared independently, and none dropped."""
        return self.widest("prepares") <= Scope.ROW

    @property
    def is_matched_alone(self) -> bool:
        """Whether the matches of an image depend only on that image."""
        return self.widest("prepares", "measures", "ranks", "matches") <= Scope.IMAGE

    @property
    def has_separate_classes(self) -> bool:
        """Whether classes do not meet between the preparation of the tables and the mean over classes."""
        acting = self._protocol.does.keys() - {"prepare"}  # functions may read other classes of an image
        return not acting and self.allows("classes")

    def keys_read(self, of: Literal["rows", "images"]) -> tuple[str, ...]:
        """Return the keys of rows or images to read from files, without duplicates."""
        asked = [field.rule.reads for field in self._fields if field.rule.reads is not None]
        names = [name for reads in asked if reads.of == of for name in reads.names(self._protocol)]
        return tuple(dict.fromkeys(names))

    def allows(self, way: Way) -> bool:
        """Whether every rule supports a way of computing."""
        return not any(refusal.when(self._protocol) for _, refusal in _refusals(self._kind, way))

    def refusals(self, way: Way) -> Sequence[ProtocolError]:
        """Return the errors of the rules that reject a way of computing, last-acting rules first."""
        return [
            ProtocolError(name, refusal.rule, got=self._shown(name, refusal.got), cause=refusal.cause)
            for field, refusal in _refusals(self._kind, way)
            if refusal.when(self._protocol)
            for name in [refusal.field or field.path]
        ]

    def check(self, way: Way) -> None:
        """Raise the first error of a rule that rejects a way of computing."""
        for refusal in self.refusals(way):
            raise refusal

    def _shown(self, name: str, got: str | None) -> str:
        return repr(operator.attrgetter(name)(self._protocol)) if got is None else got


@functools.cache
def _refusals(kind: Any, way: Way) -> tuple[tuple[Field, Refusal], ...]:
    """Return the refusals of a way that a protocol class declares, last-acting rules first."""
    acts = get_args(Act)
    fields = sorted(all_fields(kind), key=lambda field: -acts.index(field.rule.scope.act))
    return tuple((field, one) for field in fields for one in field.rule.refuses if one.way == way)


def describing_fields(protocol: Any) -> tuple[str, ...]:
    """Return the top-level fields of a protocol that do not change any number."""
    return tuple(
        field.name
        for field in all_fields(protocol)
        if not field.table and field.rule.scope.act == "describes"
    )


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


FIRST_WORDS = ("sim", "iou", "ap", "maxdet", "area", "crowd", "offset")
"""The first words of a signature; the others follow in the order of the fields."""


def _strings(value: Any, name: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ProtocolError(name, "be a table of name = string", got=repr(value))
    return {key: text(item, f"{name}.{key}") for key, item in value.items()}


def _similarity(protocol: Any) -> str:
    """Name the similarity with the values that define it; empty for boxes."""
    if protocol.similarity == "boundary":
        return f"boundary/{number_text(protocol.masks.boundary_dilation)}"
    if protocol.similarity == "keypoints":
        spread = protocol.keypoints.spread
        return f"oks/{len(spread)}/{spread.sum():.4g}"
    # Signatures keep the spelling "centre", so that signatures in published tables stay valid.
    anchor = "centre" if protocol.distance.anchor == "center" else protocol.distance.anchor
    if protocol.similarity == "distance":
        return f"distance/{anchor}/{number_text(protocol.distance.largest)}"
    if protocol.similarity in ("point_in_box", "point_in_mask"):
        return f"{protocol.similarity.replace('_', '-')}/{anchor}"
    return "" if protocol.similarity == "box" else protocol.similarity


class Protocol(Rules):
    """All choices that decide a score. See the module's page for the conventions."""

    name: str = rule(
        check=text,
        doc="Printed in the signature. A protocol that extends this one does not inherit it.",
        scope=DESCRIBES,
    )
    title: str = rule(
        "",
        check=text,
        doc="One line that describes the protocol. Not inherited.",
        scope=DESCRIBES,
    )
    aliases: tuple[str, ...] = rule(
        (),
        check=list_of(text, "a list"),
        doc="Other names by which `boxscore explain` finds the tool that scores this way. Not inherited.",
        scope=DESCRIBES,
    )
    of_type: Mapping[str, str] = rule(
        {},
        check=Check("IoU type = protocol", _strings),
        doc="The protocols that replace this one when `--iou-type` asks for another type. Not inherited.",
        scope=DESCRIBES,
    )
    similarity: SimilarityName = rule(
        "box",
        check=choice(SimilarityName),
        doc="How the agreement of a detection and a ground truth is measured. For points in boxes and "
        "masks, a hit scores 0.5 or more, and more the nearer the point is to the center of the box.",
        word=Word(
            "sim",
            text=_similarity,
            note="left out for upright boxes; `rotated`, `quadrilateral`, `probiou`, `mask`, `boundary/` and "
            "its dilation, `oks/` and its keypoints, "
            "`distance/`, its anchor and scale, `point-in-box/` or `point-in-mask/` and the anchor",
        ),
        scope=measures(Scope.ROW),
    )
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
    summary: tuple[SummaryRow, ...] = rule(
        (SummaryRow("mAP"),),
        check=list_of(table(SummaryRow), "a list of tables, [[summary]]"),
        doc="",
        step=Step("metric", "scoring", first_metric),
        scope=scores(Scope.DATA_SET),
        refuses=SUMMARY_REFUSED,
    )

    @property
    def scope(self) -> ProtocolScope:
        """The data that its rules need, and the ways of computing that they support."""
        return ProtocolScope(self)

    def _check_together(self) -> None:
        self.scope.check("together")

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Protocol:
        """Build a protocol from the values of a TOML file."""
        return read(cls, {"name": "custom", **values}, name="")

    @functools.cached_property
    def does(self) -> Mapping[Point, Sequence[Does]]:
        """The functions of its rules that act on matching, by point, in order of execution."""
        asked = [each for each in DOES if each.when(self)]
        points = dict.fromkeys(each.point for each in asked)
        return {point: [each for each in asked if each.point == point] for point in points}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out ``does``, which is computed again: lambdas cannot be pickled."""
        return {name: value for name, value in vars(self).items() if name != "does"}

    def asks_for(self, metric: str) -> bool:
        """Whether the summary has a metric of a kind."""
        return metric in self._metrics

    @functools.cached_property
    def _metrics(self) -> frozenset[str]:
        return frozenset(row.metric for row in self.summary)

    @property
    def lower_is_better(self) -> tuple[str, ...]:
        """Keys of the summary metrics where lower is better: miss rates, false positives."""
        return tuple(row.key for row in self.rows if named_kind(row.metric).lower_is_better)

    @functools.cached_property
    def caps(self) -> tuple[int | None, ...]:
        """Max detections, ascending; ``(None,)`` if unlimited. The axis M."""
        return self.matching.max_detections or (None,)

    @property
    def masks_may_lack(self) -> bool:
        """Whether masks are compared and ground truths without a mask are matched by their boxes."""
        return self.similarity in ("mask", "boundary") and self.masks.box_only_truth == "absorb"

    @functools.cached_property
    def rows(self) -> tuple[SummaryRow, ...]:
        """The summary rows that apply, with their keys filled in and without duplicates."""
        rows: dict[str, SummaryRow] = {}
        for row in self.summary:
            has_cap = -len(self.caps) <= row.cap < len(self.caps)
            has_iou = row.iou is None or row.iou in self.matching.iou_thresholds
            if has_cap and has_iou and row.area in self.ignore.area_ranges:
                key = row.key.replace("{cap}", str(self.caps[row.cap]))
                rows.setdefault(key, row.replaced(key=key))
        return tuple(row for row in rows.values() if {*row.harmonic_of} <= rows.keys())

    def position_of(self, row: SummaryRow) -> tuple[int, int]:
        """Return the positions of a row's area range and max detections on the axes A and M."""
        return list(self.ignore.area_ranges).index(row.area), row.cap % len(self.caps)

    @property
    def class_keys(self) -> dict[str, str]:
        """The name of each summary metric in the rows per class, by its key: ``mAP`` becomes ``AP``.

        Metrics over a subset of the classes are left out. Without scores, the mean of the classes' F1 is left
        out if there is F1 over all classes, since both are equal for a single class. A key stays unchanged if
        it does not start with "m" and a capital letter, or if another metric already has the shorter name.
        """
        of_all = [row for row in self.rows if not (row.classes or row.harmonic_of)]
        keys = [row.key for row in of_all if not self._is_another_of_a_class(row)]
        short = {key: key[1:] if re.match("m[A-Z]", key) else key for key in keys}
        return {key: key if short[key] in keys else short[key] for key in keys}

    def _is_another_of_a_class(self, row: SummaryRow) -> bool:
        """Whether a class's value equals that of another row: without scores, F1 has one threshold."""
        if self.matching.scores == "given" or row.metric != "F1":
            return False
        return any(row.replaced(key=one.key, metric="micro_F1") == one for one in self.rows)

    @property
    def rates_at_first(self) -> frozenset[str]:
        """Rates at the first threshold that equal a metric of the class when detections have no scores."""
        if self.matching.scores == "given":
            return frozenset()
        names = {"precision": "precision", "recall": "recall", "micro_F1": "F1"}
        first, area = self.matching.iou_thresholds[0], next(iter(self.ignore.area_ranges))
        rows = [row for row in self.rows if row.iou == first and row.area == area and not row.classes]
        return frozenset(names[row.metric] for row in rows if row.metric in names)

    def iou_text(self, row: SummaryRow) -> str:
        """Format the threshold, or the range of thresholds, of a summary row."""
        if row.iou is not None:
            return f"{row.iou:.2f}"
        thresholds = self.matching.iou_thresholds
        return grid_text(thresholds) if len(thresholds) <= 2 else f"{thresholds[0]:.2f}:{thresholds[-1]:.2f}"

    def __repr__(self) -> str:
        title = f", {self.title}" if self.title else ""
        return f"Protocol {self.name!r}{title}\n{self.signature()}"

    def signature(self) -> str:
        """Return every choice in one line, to print next to every score.

        Examples
        --------
        >>> from boxscore.protocols import load_protocol
        >>> load_protocol("coco").signature()
        'boxscore|coco|iou:0.50:0.95/10|ap:101|maxdet:1,10,100|area:coco|crowd:iof|offset:0|v:0.2.0'
        """
        parts = dict.fromkeys(FIRST_WORDS, "")
        for field in all_fields(self):
            word = field.rule.word
            if word is not None and (word.silent is ALWAYS or field.of(self) != word.silent):
                parts[word.key] = field.written(self, word.text)
        parts["v"] = __version__
        words = [f"{key}:{text}" for key, text in parts.items() if text]
        return "|".join(["boxscore", self.name, *words])

    @functools.cached_property
    def digest(self) -> str:
        """A hash of every choice except descriptive fields: 16 hexadecimal digits."""
        import hashlib
        import json

        values = dataclasses.asdict(self)
        for name in describing_fields(self):
            values.pop(name)
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


EXTRA_COLUMNS = {column.name: column for field in all_fields(Protocol) for column in field.rule.columns}
"""Columns of matches that only one rule asks for, by name, in the order of their fields."""

DOES = sorted(
    (each for field in all_fields(Protocol) for each in field.rule.does), key=lambda each: each.order
)
"""Every function of a rule that acts on matching, in ascending order."""
