"""Explain the difference between two tools' numbers: change one choice at a time from one to the other.

Goal
----
A tool is a set of choices, which a protocol describes. Changing one tool's protocol into another's, choice by
choice, shows the effect of each choice.

Conventions
-----------
- The number is the tool's AP over its IoU thresholds, all areas, at the largest max detections. With ``iou``,
  it is AP at that one threshold in both tools. For a tool that does not rank detections, it is the first
  metric at its threshold.
- Steps have a fixed order (:data:`CHOICES`), and each starts where the previous one ended: a single ``delta``
  depends on the order, the sum does not. Choices that both tools share are skipped.
- A choice that is invalid together with the current others waits until it is valid. If all remaining choices
  wait, they become one step.
- Deltas add up to the difference exactly: values are rounded to multiples of 2**-53, which changes at most
  the last bit, and float64 subtraction of such numbers is exact.

References
----------
Each protocol file names its tool and its special rules: ``boxscore protocols NAME``.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from boxscore._utils import checks
from boxscore._utils.text import html_table
from boxscore.data.alignment import align
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import BoxscoreWarning, InputError, ProtocolError
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._tools import (
    CHOICES,
    Choice,
    Tool,
    fits,
    fits_scores,
    reduced_tool,
    tool_of,
    tool_protocols,
    with_choices,
    with_fields,
    with_similarity,
)
from boxscore.extensions.diagnostics.ties import ends_of_ties
from boxscore.extensions.federated.hierarchy import Hierarchy, expand_classes
from boxscore.matching.ignoring import ignoring, prepared
from boxscore.matching.matcher import Matcher
from boxscore.protocols import load_protocol, protocol_names
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.ap import Interpolation
from boxscore.similarity.registry import similarity_of

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The steps from one tool's number to another's.

    Attributes
    ----------
    first, last : str
        The tools.
    first_value, last_value : float
    steps : tuple of (str, float, float)
        Description of the change, change of AP, and AP after it.
    """

    first: str
    last: str
    first_value: float
    last_value: float
    steps: tuple[tuple[str, float, float], ...]

    @property
    def table(self) -> pd.DataFrame:
        """Return the waterfall: one row per choice, ``change, delta, value``, between the tools' rows."""
        import pandas as pd

        rows = [
            (self.first, math.nan, self.first_value),
            *self.steps,
            (self.last, math.nan, self.last_value),
        ]
        return pd.DataFrame(rows, columns=["change", "delta", "value"])

    def _repr_html_(self) -> str:
        columns = {str(name): column.tolist() for name, column in self.table.items()}
        return f"<div><b>Explanation</b>{html_table(columns)}</div>"

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form: ``{"from": {tool, value}, "to": ..., "steps": [{change, delta}, ...]}``."""
        return {
            "from": {"tool": self.first, "value": self.first_value},
            "to": {"tool": self.last, "value": self.last_value},
            "steps": [{"change": change, "delta": delta} for change, delta, _ in self.steps],
        }


def explain(
    ground_truth: GroundTruth,
    detections: Detections,
    first: str | Path | Mapping[str, Any] | Protocol,
    last: str | Path | Mapping[str, Any] | Protocol = "coco",
    *,
    iou: float | None = None,
) -> Explanation:
    """Break the difference between two tools' AP down into the choices that cause it.

    Parameters
    ----------
    ground_truth : GroundTruth
    detections : Detections
    first, last : str, Path, mapping or Protocol
        A tool (:func:`tool_names`), or any protocol. Both compare boxes, or keypoints, or masks and
        boundaries.
    iou : float, optional
        Compare AP at this one threshold instead of at the thresholds of each tool.

    Returns
    -------
    Explanation

    Raises
    ------
    InputError
        When a tool is unknown, its number is undefined on this data, or the two compare different objects.
    """
    # Change similarity first, because all other choices act on its pairs.
    start, end = tool_of(first, iou), tool_of(last, iou)
    tables = _Tables(ground_truth, detections)
    value = tables.value(start)
    now, first_value, steps = with_similarity(start, end), value, []
    # Add one row for the similarity, if it differs.
    if now != start:
        after = tables.value(now)
        text = f"similarity: {start.protocol.similarity} -> {end.protocol.similarity}"
        steps.append((text, after - value, after))
        value = after
    # Then change one choice after the other. Each step starts where the last one ended, so the differences
    # add up.
    for changed, choices in _tools_between(now, end):
        after = tables.value(changed)
        steps.append(
            (" and ".join(_change(choice, now, changed) for choice in choices), after - value, after)
        )
        now, value = changed, after
    return Explanation(start.name, end.name, first_value, value, tuple(steps))


def _tools_between(now: Tool, end: Tool) -> Iterator[tuple[Tool, Sequence[Choice]]]:
    """Yield the intermediate tools from one to another, with the choices that each one changed."""
    left = [choice for choice in CHOICES if with_choices(now, end, [choice]) != now]
    while left:
        allowed = ([choice] for choice in left if with_choices(now, end, [choice]) is not None)
        together = next(allowed, left)
        changed = with_choices(now, end, together)
        assert changed is not None, "all rules of a tool together"
        now, left = changed, [choice for choice in left if choice not in together]
        yield now, together


def _change(choice: Choice, old: Tool, new: Tool) -> str:
    """Describe a change in words; if the words are equal, show the values in full precision."""
    before, after = choice.text(old), choice.text(new)
    return f"{choice.title}: {f'{before} -> {after}' if before != after else f'{before} (rounding)'}"


def _recall_points(interpolation: Interpolation, count: int) -> dict[str, Any]:
    points = tuple(np.linspace(0, 1, count).tolist())
    return {"ap.interpolation": interpolation, "ap.recall_points": points, "ap.score_steps": 0}


VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "11 recall points": _recall_points("points", 11),
    "101 recall points": _recall_points("points", 101),
    "straight lines, the last to (1, 0)": _recall_points("trapezoid_to_one", 101),
    "exact pixels": {"boxes.pixel_offset": 0},
    "+1 pixels": {"boxes.pixel_offset": 1},
    "difficult objects counted": {"ignore.difficult": "count"},
    "difficult objects deleted": {"ignore.difficult": "delete"},
    "crowd regions counted": {"ignore.crowd": "count"},
    "crowd regions deleted": {"ignore.crowd": "delete"},
    "candidate: best available": {"matching.candidate": "best_available"},
    "candidate: best overall": {"matching.candidate": "best_overall"},
    "threshold open (>)": {"matching.threshold_closed": False},
    "score threshold .25": {"matching.score_threshold": 0.25},
    "max detections: 10 per image and class": {
        "matching.max_detections": (10,),
        "matching.cap_scope": "class",
    },
    "max detections: 100 per image": {"matching.max_detections": (100,), "matching.cap_scope": "image"},
    "absent classes as AP 0": {"ap.absent_classes": "zero"},
}
"""Single changes that :func:`ablation` tries."""


def ablation(
    ground_truth: GroundTruth,
    detections: Detections,
    base: str | Path | Mapping[str, Any] | Protocol = "voc2012",
    *,
    iou: float | None = None,
) -> pd.DataFrame:
    """Change one choice at a time and measure the effect of each alone.

    Parameters
    ----------
    ground_truth : GroundTruth
    detections : Detections
    base : str, Path, mapping or Protocol, default "voc2012"
    iou : float, optional
        As in :func:`explain`.

    Returns
    -------
    DataFrame
        ``change, delta, value``; the row of the base first. Changes that the base already has are left out.
    """
    import pandas as pd

    tool = tool_of(base, iou)
    tables = _Tables(ground_truth, detections)
    value = tables.value(tool)
    rows = [(tool.name, math.nan, value)]
    for name, changes in VARIANTS.items():
        try:
            changed = with_fields(tool, changes)
        # Other rules of the tool do not allow the change.
        except ProtocolError:
            continue
        if changed != tool:
            after = tables.value(changed)
            rows.append((name, after - value, after))
    return pd.DataFrame(rows, columns=["change", "delta", "value"])


def find_number(
    ground_truth: GroundTruth, detections: Detections, number: float | str, *, within: float | None = None
) -> pd.DataFrame:
    """Search the known tools for one that gives a number.

    Parameters
    ----------
    ground_truth : GroundTruth
    detections : Detections
    number : float or str
        The number as printed: ``0.595``, or ``59.5`` for a percentage. A string keeps its zeros
        (``"0.700"``).
    within : float, optional
        Largest difference that counts as a match; by default half a unit of the number's last digit.

    Returns
    -------
    DataFrame
        One row per tool and metric (``AP``, ``AP50``, ``AP75``), nearest first: ``tool, metric, value,
        difference, found``.

    Raises
    ------
    InputError
        When the number is not between 0 and 100.
    """
    import pandas as pd

    # The last digit of the number limits the rounding error.
    text = str(number).strip().rstrip("%")
    try:
        wanted = float(text)
    except ValueError:
        raise InputError("number", "be a number", got=repr(number)) from None
    checks.number_between(wanted, 0, 100, name="number")
    digits = len(text.partition(".")[2])
    scale = 100.0 if wanted > 1 or str(number).strip().endswith("%") else 1.0
    margin = 0.5 * 10.0**-digits / scale if within is None else within
    # Score the data under every tool that can read them; shared tables are prepared once.
    rows, tables = [], _Tables(ground_truth, detections)
    oriented = fits(load_protocol("coco-rotated"), ground_truth, detections)
    for name in tool_protocols(oriented=oriented):
        if not fits_scores(load_protocol(name), tables.detections):
            continue
        metrics = dict(tables.metrics(tool_of(name, None)))
        if len(metrics) == 2 and metrics["AP"] == metrics.get("AP50"):
            # A single threshold has a single value.
            del metrics["AP"]
        for key, value in metrics.items():
            rows.append((name, key, value, value - wanted / scale))
    # Add slack, so that binary fractions do not miss a value exactly on the margin.
    frame = pd.DataFrame(rows, columns=["tool", "metric", "value", "difference"])
    frame["found"] = frame["difference"].abs() <= margin * (1 + 1e-9)
    order = frame["difference"].abs().sort_values(kind="stable").index
    return frame.loc[order].reset_index(drop=True)


def expansions(
    ground_truth: GroundTruth,
    detections: Detections,
    hierarchy: Hierarchy,
    protocol: str | Path | Mapping[str, Any] | Protocol = "openimages-challenge",
) -> pd.DataFrame:
    """Score data as given and expanded along a class hierarchy: the truth, the detections, or both.

    Parameters
    ----------
    ground_truth : GroundTruth
        Unexpanded, with its image labels.
    detections : Detections
        Unexpanded.
    hierarchy : Hierarchy
    protocol : str, Path, mapping or Protocol, default "openimages-challenge"

    Returns
    -------
    DataFrame
        ``ground_truth, detections, value``: "as given" or "expanded" for each, and the protocol's first
        summary metric; NaN where it is undefined.

    Raises
    ------
    InputError
        When a class is not in the hierarchy.
    """
    import pandas as pd

    rules = load_protocol(protocol)
    wider = expand_classes(ground_truth, hierarchy)
    given = align(detections, wider)
    rows = []
    for truth, of_truth in ((ground_truth, "as given"), (wider, "expanded")):
        for one, of_detections in ((given, "as given"), (expand_classes(given, hierarchy), "expanded")):
            with warnings.catch_warnings():
                # The truth lacks some parent classes.
                warnings.simplefilter("ignore", BoxscoreWarning)
                matcher = Matcher(truth, align(one, truth), rules)
                metrics = Evaluation(truth, matcher.detections, rules, matcher.match()).metrics
            rows.append((of_truth, of_detections, next(iter(metrics.values()))))
    return pd.DataFrame(rows, columns=["ground_truth", "detections", "value"])


@dataclasses.dataclass(frozen=True)
class Reading:
    """The result of two tables under one protocol.

    Attributes
    ----------
    protocol, title : str
    metric : str
        Name of the metric in the protocol.
    value : float
        AP over the protocol's IoU thresholds; without scores, the protocol's first metric. NaN where it is
        undefined.
    AP50 : float
        AP at IoU 0.5; NaN if the protocol does not have this threshold.
    difference : float
        Difference from the first reading.
    lowest, highest : float
        Bounds over the orders of equally scored detections; see :func:`boxscore.diagnostics.tie_bounds`.
    choices : tuple of str
        Choices that differ from the first protocol: ``title: choice``.
    """

    protocol: str
    title: str
    metric: str
    value: float
    AP50: float
    difference: float
    lowest: float
    highest: float
    choices: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Readings:
    """The results of the same tables under several protocols.

    Attributes
    ----------
    readings : tuple of Reading
        The first protocol, then the others sorted by name.
    """

    readings: tuple[Reading, ...]

    @property
    def table(self) -> pd.DataFrame:
        """Return one row per protocol: the fields of :class:`Reading`, with ``choices`` as one text."""
        import pandas as pd

        rows = [{**dataclasses.asdict(one), "choices": "; ".join(one.choices)} for one in self.readings]
        return pd.DataFrame(rows, columns=[field.name for field in dataclasses.fields(Reading)])

    def _repr_html_(self) -> str:
        columns = {str(name): column.tolist() for name, column in self.table.items()}
        return f"<div><b>Readings</b>{html_table(columns)}</div>"

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form: ``{"first": protocol, "readings": [{protocol, value, ...}, ...]}``."""
        rows = [dataclasses.asdict(one) | {"choices": list(one.choices)} for one in self.readings]
        return {"first": self.readings[0].protocol, "readings": rows}


def compare_protocols(
    ground_truth: GroundTruth,
    detections: Detections,
    first: str | Path | Mapping[str, Any] | Protocol | None = None,
) -> Readings:
    """Score two tables under every shipped protocol that fits them.

    Parameters
    ----------
    ground_truth : GroundTruth
    detections : Detections
    first : str, Path, mapping or Protocol, optional
        Protocol to compare the others with. The default is ``coco`` if it fits, otherwise the protocol that
        reads most of the ground truth's columns.

    Returns
    -------
    Readings

    Raises
    ------
    InputError
        When no protocol fits, or ``first`` does not.
    """
    # Align once, so that every protocol sees the same rows.
    aligned = align(detections, ground_truth)
    shipped = [load_protocol(name) for name in protocol_names()]
    chosen = None if first is None else load_protocol(first)
    fitting = [protocol for protocol in shipped if fits(protocol, ground_truth, aligned, chosen)]
    # Compare with the given protocol, or with the one that reads most of the data.
    if chosen is not None:
        if not fits(chosen, ground_truth, aligned, chosen):
            known = ", ".join(protocol.name for protocol in fitting)
            rule = "match the content of the files"
            raise InputError("the first protocol", rule, got=repr(chosen.name), cause=f"use one of: {known}")
        fitting = [chosen, *(protocol for protocol in fitting if protocol != chosen)]
    elif fitting:
        start = max(fitting, key=lambda protocol: _closeness(protocol, ground_truth))
        fitting = [start, *(protocol for protocol in fitting if protocol is not start)]
    if not fitting:
        raise InputError(
            "a protocol", "match the content of the files", got="none that matches", place=detections.source
        )
    # Score each protocol, and bound it over the order of equal scores; prepared tables are shared.
    tables = _Tables(ground_truth, detections)
    readings: list[Reading] = []
    start_tool = reduced_tool(fitting[0].name, fitting[0])
    for protocol in fitting:
        tool = reduced_tool(protocol.name, protocol)
        metrics, bounds = tables.bounds(tool)
        value = metrics["AP"]
        # Name only the choices that differ from the first protocol and have an effect on this data.
        readings.append(
            Reading(
                protocol=protocol.name,
                title=protocol.title,
                metric=next((row.key for row in protocol.rows), "AP"),
                value=value,
                AP50=metrics.get("AP50", math.nan),
                difference=value - readings[0].value if readings else 0.0,
                lowest=bounds[0],
                highest=bounds[1],
                choices=(
                    *_other_similarity(start_tool, tool),
                    *(
                        _chosen(choice, start_tool, tool)
                        for choice in CHOICES
                        if with_choices(start_tool, tool, [choice]) != start_tool
                    ),
                ),
            )
        )
    return Readings(tuple(readings))


def _chosen(choice: Choice, first: Tool, tool: Tool) -> str:
    """Describe a choice that differs from the first tool; if the words are equal, show full precision."""
    text = choice.text(tool)
    return f"{choice.title}: {text}{' (rounding)' if text == choice.text(first) else ''}"


def _other_similarity(first: Tool, other: Tool) -> tuple[str, ...]:
    same = first.protocol.similarity == other.protocol.similarity
    return () if same else (f"similarity: {other.protocol.similarity}",)


def _closeness(protocol: Protocol, ground_truth: GroundTruth) -> tuple[int, bool]:
    """Return how much of the ground truth a protocol reads; among equals COCO wins."""
    column = similarity_of(protocol).column
    compared = column is not None and getattr(ground_truth, column, None) is not None
    flags = bool(ignoring(ground_truth, protocol).ignored.any())
    plain = protocol in (load_protocol("coco"), load_protocol("scoreless"))
    return (0 if plain else int(compared) + int(compared and flags), plain)


class _Tables:
    """Two tables to score under many protocols; protocols share the overlaps that they have in common."""

    def __init__(self, ground_truth: GroundTruth, detections: Detections) -> None:
        self._truth, self.detections = ground_truth, align(detections, ground_truth)
        self._matchers: dict[Any, Matcher] = {}

    def metrics(self, tool: Tool) -> dict[str, float]:
        """Evaluate under a tool's protocol, without the warnings that every evaluation repeats."""
        return self.evaluation(tool).metrics

    def bounds(self, tool: Tool) -> tuple[dict[str, float], tuple[float, float]]:
        """Evaluate, and bound the AP over the orders of equal scores."""
        result = self.evaluation(tool)
        # Counting metrics do not depend on the order of equal scores, or not on it alone.
        if not tool.protocol.asks_for("AP"):
            value = result.metrics["AP"] if tool.protocol.matching.scores == "none" else math.nan
            return result.metrics, (value, value)
        _, lowest, highest = ends_of_ties(result, ["AP"]).total[:, 0].tolist()
        return result.metrics, (lowest, highest)

    def evaluation(self, tool: Tool) -> Evaluation:
        """Evaluate under a tool's protocol."""
        protocol = tool.protocol
        rules = protocol.scope.prepared_by
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BoxscoreWarning)
            if rules not in self._matchers:
                self._matchers[rules] = Matcher(*prepared(self._truth, self.detections, protocol), protocol)
            matcher = self._matchers[rules].under(protocol)
            return Evaluation(matcher.ground_truth, matcher.detections, protocol, matcher.match())

    def value(self, tool: Tool) -> float:
        """Return AP, as a multiple of 2**-53."""
        value = self.metrics(tool)["AP"]
        if math.isnan(value):
            raise InputError(
                "an explained AP",
                "be defined",
                got=f"NaN for {tool.name!r}",
                cause="does any class have ground truth that counts?",
            )
        return round(value * 2**53) / 2**53
