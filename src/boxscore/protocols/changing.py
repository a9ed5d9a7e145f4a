"""Change single choices of a protocol, as flags of the command line do.

Conventions
-----------
- The name gets a ``+``, since a changed protocol is no longer COCO. The signature shows the changes.
- The summary is updated: metrics whose threshold, area range or detection limit was removed are dropped, and
  every new IoU threshold, area range and detection limit gets a metric.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from boxscore.errors import ProtocolError
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow, named_kind
from boxscore.protocols.tables.matching import RANKED

MOST_METRICS = 12
"""Largest number of IoU thresholds that each get a metric; a longer list is summarized by its mean."""


def changed_protocol(
    protocol: Protocol,
    *,
    max_detections: Sequence[int] | None = None,
    iou_thresholds: Sequence[float] | Mapping[str, Any] | None = None,
    area_ranges: Mapping[str, tuple[float, float]] | None = None,
    score_threshold: float | None = None,
    class_weights: Mapping[Any, float] | str | None = None,
) -> Protocol:
    """Return a protocol with some choices changed and its summary updated.

    Parameters
    ----------
    protocol : Protocol
    max_detections : sequence of int, optional
        Number of detections per image and class to evaluate; AP uses the largest.
    iou_thresholds : sequence of float or mapping, optional
        Values in (0, 1], or a grid ``{start, stop, count}``.
    area_ranges : mapping of str to (low, high), optional
        Square pixels. The range of all areas is always kept.
    score_threshold : float, optional
        Detections with lower scores are dropped.
    class_weights : mapping of class to float, or str, optional
        Weight of each class in means over classes, by name or id; ``"*"`` is every other class. A string is
        the name of a column of classes (:attr:`Categories.columns`) that holds the weights.

    Returns
    -------
    Protocol
        The given protocol if nothing changes.

    Raises
    ------
    ProtocolError
        When a value breaks the rule of its field.

    Examples
    --------
    >>> from boxscore.protocols import changed_protocol, load_protocol
    >>> low = changed_protocol(load_protocol("coco"), iou_thresholds=[0.3, 0.5], max_detections=[300])
    >>> [row.key for row in low.rows]
    ['AP', 'AP30', 'AP50', 'APs', 'APm', 'APl', 'AR300', 'ARs', 'ARm', 'ARl']
    """
    # Without changes, return the same protocol with its name.
    matching: dict[str, Any] = {
        name: value
        for name, value in (
            ("max_detections", max_detections),
            ("iou_thresholds", iou_thresholds),
            ("score_threshold", score_threshold),
        )
        if value is not None
    }
    if not matching and area_ranges is None and class_weights is None:
        return protocol
    # Always keep the range of all areas, since most metrics use it.
    ignore, ap = protocol.ignore, protocol.ap
    if class_weights is not None:
        ap = ap.replaced(class_weights=class_weights)
    if area_ranges is not None:
        every = {name: pair for name, pair in ignore.area_ranges.items() if name == "all"}
        ignore = ignore.replaced(area_ranges={**every, **area_ranges})
    # Change the name and drop the aliases: a changed protocol is no longer the benchmark's.
    changed = protocol.replaced(
        name=f"{protocol.name}+",
        of_type={},
        aliases=(),
        matching=protocol.matching.replaced(**matching),
        ap=ap,
        ignore=ignore,
    )
    return changed.replaced(summary=_summary(changed, new_thresholds=iou_thresholds is not None))


def without_scores(protocol: Protocol) -> Protocol:
    """Return a protocol for detections without scores, keeping every metric that does not rank them.

    Matching maximizes the number of pairs, then the total IoU, unless the protocol's matching already ignores
    scores. Detection limits are removed, since detections cannot be ranked. AP becomes the lowest,
    expected and highest AP over all orders; AR and F1 are unchanged.

    Parameters
    ----------
    protocol : Protocol

    Returns
    -------
    Protocol
        The given protocol if it does not read scores.

    Raises
    ------
    ProtocolError
        When no metric of its summary remains.

    Examples
    --------
    >>> from boxscore.protocols import load_protocol, without_scores
    >>> [row.key for row in without_scores(load_protocol("voc2007")).rows]
    ['mAP_lowest', 'mAP_expected', 'mAP_highest']
    """
    if protocol.matching.scores != "given":
        return protocol
    # Replace AP by its bounds and mean over all orders; keep unranked metrics at the largest cap.
    rows: dict[str, SummaryRow] = {}
    for row in protocol.rows:
        if row.harmonic_of:
            continue
        # AP has a lowest, a mean and a highest value over all orders.
        if row.metric == "AP":
            made = [
                row.replaced(key=f"{row.key}_{end}", metric=f"AP_{end}", cap=-1)
                for end in ("lowest", "expected", "highest")
            ]
        # Keep an unranked metric, only at the largest cap.
        elif not named_kind(row.metric).needs_order:
            largest = row.cap in (-1, len(protocol.caps) - 1)
            key = row.key.removesuffix(str(protocol.caps[-1])) if row.metric == "AR" else row.key
            made = [row.replaced(key=key, cap=-1)] if largest else []
        else:
            made = []
        rows |= {one.key: one for one in made}
    if protocol.summary and not rows:
        raise ProtocolError(
            f"protocol {protocol.name}",
            "have a metric that needs no scores, for detections without scores",
            got=", ".join(dict.fromkeys(row.metric for row in protocol.rows)),
            cause="the protocol scoreless counts boxes without ranking them",
        )
    # Set rules that read scores to values that do not.
    matching = protocol.matching.replaced(
        scores="none",
        candidate="most_pairs" if protocol.matching.candidate in RANKED else protocol.matching.candidate,
        max_detections=(),
        cap_scope="class",
        score_threshold=-math.inf,
        score_closed=True,
        equal_scores="image_order",
        ranked_files=False,
    )
    # Reset the rounding of scores and the order of ties, which no longer matter.
    return protocol.replaced(
        of_type={},
        aliases=(),
        matching=matching,
        rounding=protocol.rounding.replaced(scores=None, stretch_scores=False),
        ap=protocol.ap.replaced(score_steps=0, tie_order="as_ranked"),
        summary=tuple(rows.values()),
    )


def _summary(protocol: Protocol, *, new_thresholds: bool) -> tuple[SummaryRow, ...]:
    """Return the summary rows, plus rows for new thresholds, area ranges and limits."""
    # Add a row of AP per new threshold after the mean, if there are few.
    rows = list(protocol.summary)
    means = [
        row for row in rows if row.iou is None and row.area == "all" and row.cap == -1 and row.metric == "AP"
    ]
    thresholds = protocol.matching.iou_thresholds
    if new_thresholds and 1 < len(thresholds) <= MOST_METRICS:
        singles = [row for row in rows if row.metric == "AP" and row.area == "all" and row.iou is not None]
        rows = [row for row in rows if row not in singles]
        shown = {row.iou for row in singles}
        singles += [SummaryRow(f"AP{100 * t:g}", iou=t) for t in thresholds if t not in shown]
        at = rows.index(means[0]) + 1 if means else len(rows)
        rows[at:at] = sorted(singles, key=lambda row: row.iou or 0.0)
    # Add a row of AP and AR per new area range, after the last of the metric.
    for metric in ("AP", "AR"):
        shown_areas = {row.area for row in rows if row.metric == metric}
        if not shown_areas:
            continue
        last = max(position for position, row in enumerate(rows) if row.metric == metric)
        rows[last + 1 : last + 1] = [
            SummaryRow(f"{metric}_{name}", metric=metric, area=name)
            for name in protocol.ignore.area_ranges
            if name not in shown_areas
        ]
    # Add a row of AR per new limit, after the others.
    recalls = [row for row in rows if row.metric == "AR" and row.area == "all" and row.iou is None]
    if recalls:
        positions = {
            row.cap % len(protocol.caps)
            for row in recalls
            if -len(protocol.caps) <= row.cap < len(protocol.caps)
        }
        at = rows.index(recalls[-1]) + 1
        rows[at:at] = [
            SummaryRow("AR{cap}", metric="AR", cap=cap)
            for cap in range(len(protocol.caps))
            if cap not in positions
        ]
    return tuple(rows)


def iou_thresholds_of_text(words: Sequence[str]) -> list[float] | dict[str, Any]:
    """Parse thresholds ``0.5 0.75``, or one grid ``0.5:0.95/10`` (first value, last value, count)."""
    if len(words) == 1 and ":" in words[0]:
        first, _, rest = words[0].partition(":")
        last, _, count = rest.partition("/")
        if not count.isascii() or not count.isdecimal():
            rule = "be numbers, or first:last/count such as 0.5:0.95/10"
            raise ProtocolError("--iou-thresholds", rule, got=repr(words[0]))
        return {"start": _number(first), "stop": _number(last), "count": int(count)}
    return sorted({_number(word) for word in words})


def area_ranges_of_text(words: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Parse area ranges such as ``small=0:1024``; ``inf`` removes the upper bound."""
    ranges = {}
    for word in words:
        name, equals, ends = word.partition("=")
        low, colon, high = ends.partition(":")
        if not (name and equals and colon):
            rule = "be name=low:high in square pixels, such as small=0:1024"
            raise ProtocolError("--area-ranges", rule, got=repr(word))
        ranges[name] = (_number(low, "--area-ranges"), _number(high, "--area-ranges"))
    return ranges


def _number(text: str, name: str = "--iou-thresholds") -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value) or not text.isascii() or "_" in text:
        raise ProtocolError(name, "be numbers", got=repr(text))
    return value
