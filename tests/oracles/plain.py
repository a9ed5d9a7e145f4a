"""The whole meaning of a protocol in plain Python: every rule is an ``if`` in a loop, and nothing is clever.

Slow, and written to be read. It shares no code with boxscore but the protocol's values; NumPy only sums, because
the order of a sum is part of the answer. Boxes only.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

NAN = math.nan


class Box(NamedTuple):
    """Corners and sides; neither gives back the other to the last bit."""

    x1: float
    y1: float
    x2: float
    y2: float
    width: float
    height: float


def corners(x1: float, y1: float, x2: float, y2: float) -> Box:
    return Box(x1, y1, x2, y2, x2 - x1, y2 - y1)


def sides(x: float, y: float, width: float, height: float) -> Box:
    return Box(x, y, x + width, y + height, width, height)


class Object(NamedTuple):
    """An annotated object. ``image`` and ``label`` count from 0; ``area`` None: width times height."""

    box: Box
    image: int = 0
    label: int = 0
    area: float | None = None
    crowd: bool = False
    difficult: bool = False
    ignore: bool = False


class Detection(NamedTuple):
    box: Box
    score: float
    image: int = 0
    label: int = 0


class Ranked(NamedTuple):
    """A detection that is let through: its row in the file, and its rank in its image and class."""

    row: int
    rank: int


TRUE, FALSE, IGNORED = "true", "false", "ignored"


# ---------------------------------------------------------------- what a protocol says of one object


def ignore_flag(protocol: Any) -> str:
    return str(protocol.ignore.flagged)


def is_deleted(item: Object, protocol: Any) -> bool:
    return (
        (item.crowd and protocol.ignore.crowd == "delete")
        or (item.difficult and protocol.ignore.difficult == "delete")
        or (item.ignore and ignore_flag(protocol) == "delete")
        or (protocol.boxes.degenerate == "drop" and not 0 < area_of(item) < math.inf)
    )


def area_of(item: Object) -> float:
    return item.box.width * item.box.height if item.area is None else item.area


def is_dropped(item: Detection, protocol: Any) -> bool:
    if protocol.boxes.degenerate == "drop":
        offset = protocol.boxes.pixel_offset
        return not 0 < (item.box.width + offset) * (item.box.height + offset) < math.inf
    without_side = item.box.width <= 0 or item.box.height <= 0
    return bool(protocol.boxes.degenerate == "drop_detections" and without_side)


def absorbs(item: Object, protocol: Any) -> bool:
    """Whether any number of detections may match an object, all of them ignored."""
    return (
        (item.crowd and protocol.ignore.crowd in ("iof", "ignore"))
        or (item.difficult and protocol.ignore.difficult == "ignore")
        or (item.ignore and ignore_flag(protocol) == "iof")
    )


def is_out_of_bounds(item: Object, area_range: tuple[float, float], protocol: Any) -> bool:
    """Whether an object is ignored because of the range alone."""
    return not area_range[0] <= area_of(item) <= area_range[1]


def is_counted(item: Object, area_range: tuple[float, float], protocol: Any) -> bool:
    if absorbs(item, protocol) or (item.ignore and ignore_flag(protocol) == "ignore"):
        return False
    return area_range[0] <= area_of(item) <= area_range[1]


def is_inside(item: Detection, area_range: tuple[float, float], protocol: Any) -> bool:
    offset = protocol.boxes.pixel_offset
    area = (item.box.width + offset) * (item.box.height + offset)
    return bool(area_range[0] <= area <= area_range[1])


def overlap(found: Box, truth: Box, protocol: Any, *, over_detection: bool) -> float:
    """Intersection over union, or over the detection alone; 0 where they do not meet."""
    offset = protocol.boxes.pixel_offset
    if offset:
        right, bottom = min(found.x2, truth.x2), min(found.y2, truth.y2)
    else:
        right = min(found.x1 + found.width, truth.x1 + truth.width)
        bottom = min(found.y1 + found.height, truth.y1 + truth.height)
    width = right - max(found.x1, truth.x1) + offset
    height = bottom - max(found.y1, truth.y1) + offset
    if width <= 0 or height <= 0:
        return 0.0
    found_area = (found.width + offset) * (found.height + offset)
    truth_area = (truth.width + offset) * (truth.height + offset)
    intersection = width * height
    whole = found_area if over_detection else found_area + truth_area - intersection
    return intersection / (whole + protocol.boxes.overlap_epsilon)


def rounded(detections: list[Detection], protocol: Any) -> list[Detection]:
    """Detections as a file of text would keep them."""
    rules = protocol.rounding
    if rules.scores is not None:
        detections = [item._replace(score=float(np.round(item.score, rules.scores))) for item in detections]
    if rules.boxes is not None:
        detections = [
            item._replace(box=corners(*(float(np.round(value, rules.boxes)) for value in item.box[:4])))
            for item in detections
        ]
    return detections


# ---------------------------------------------------------------- order and caps


Listed = set[tuple[int, int]] | None
"""Images and classes that are evaluated; None: all."""


def listed_in(objects: list[Object], protocol: Any) -> Listed:
    """Without labels of images a class is listed where it has an object."""
    if protocol.labels.unlisted == "count":
        return None
    return {(item.image, item.label) for item in objects if not is_deleted(item, protocol)}


def let_through(
    detections: list[Detection], images: int, labels: int, protocol: Any, listed: Listed
) -> list[list[Ranked]]:
    """Detections of each class, in the order in which its curve is drawn."""
    cap = protocol.matching.max_detections[-1] if protocol.matching.max_detections else math.inf
    last_first = protocol.matching.equal_scores == "last_first"
    allowed = {row for row, item in enumerate(detections) if is_scored(item, protocol)}
    if protocol.matching.cap_scope == "data_set_class" and protocol.matching.per_class:
        for label in range(labels):
            mine = [row for row in sorted(allowed) if detections[row].label == label]
            mine.sort(key=lambda row: -detections[row].score)
            allowed -= {row for position, row in enumerate(mine) if position >= cap}
    kept: set[int] = set()
    ranks: dict[int, int] = {}
    for image in range(images):
        here = [row for row, item in enumerate(detections) if item.image == image and row in allowed]
        if last_first:
            here.reverse()
        here.sort(key=lambda row: -detections[row].score)  # stable: file order among equals
        if protocol.matching.cap_scope in ("image", "image_each"):
            here = [row for position, row in enumerate(here) if position < cap]
        in_image = {row: position for position, row in enumerate(here)}
        here = [row for row in here if not is_dropped(detections[row], protocol)]
        here = [row for row in here if listed is None or (image, detections[row].label) in listed]
        for label in range(labels):
            mine = [row for row in here if detections[row].label == label]
            for rank, row in enumerate(mine):
                if protocol.matching.cap_scope == "image_each":
                    rank = in_image[row]
                if rank < cap:
                    kept.add(row)
                    ranks[row] = rank
    classes = []
    for label in range(labels):
        rows = [row for row in range(len(detections)) if row in kept and detections[row].label == label]
        if protocol.matching.equal_scores == "image_order":
            rows.sort(key=lambda row: detections[row].image)
        if last_first:
            rows.sort(key=lambda row: -detections[row].image)
        rows.sort(key=lambda row: -detections[row].score)
        classes.append([Ranked(row, ranks[row]) for row in rows])
    return classes


def is_scored(item: Detection, protocol: Any) -> bool:
    low = float(protocol.matching.score_threshold)
    return item.score > low or (item.score == low and protocol.matching.score_closed)


# ---------------------------------------------------------------- matching


def judge(
    objects: list[Object],
    detections: list[Detection],
    ranked: list[Ranked],
    threshold: float,
    area_range: tuple[float, float],
    protocol: Any,
) -> list[str]:
    """What becomes of one class's detections at one threshold in one area range."""
    taken: set[int] = set()
    outcome: dict[int, str] = {}
    for row, _ in sorted(ranked, key=lambda item: (detections[item.row].image, item.rank)):
        item = detections[row]
        own = protocol.matching.class_thresholds.get(str(item.label))
        bar = threshold if own is None else own[protocol.matching.iou_thresholds.index(threshold)]
        bar = min(bar, protocol.matching.largest_threshold)
        candidates = []  # of this image and class: number, overlap
        for number, truth in enumerate(objects):
            if truth.image != item.image or truth.label != item.label or is_deleted(truth, protocol):
                continue
            outside = is_out_of_bounds(truth, area_range, protocol)
            over_detection = (
                (truth.crowd and protocol.ignore.crowd == "iof")
                or (truth.ignore and ignore_flag(protocol) == "iof")
                or (outside and protocol.ignore.outside == "iof")
            )
            value = overlap(item.box, truth.box, protocol, over_detection=over_detection)
            if value > 0:
                candidates.append((number, value))
        if protocol.matching.equal_iou == "last":
            candidates.reverse()
        candidates.sort(key=lambda pair: -pair[1])  # stable
        if protocol.matching.candidate == "best_overall":
            candidates = candidates[:1]
        open_to_it = [
            number
            for number, value in candidates
            if (value >= bar if protocol.matching.threshold_closed else value > bar) and number not in taken
        ]
        counted = [number for number in open_to_it if is_counted(objects[number], area_range, protocol)]
        if counted:
            taken.add(counted[0])
            outcome[row] = TRUE
        elif open_to_it:
            first = objects[open_to_it[0]]
            for_range = is_out_of_bounds(first, area_range, protocol) and protocol.ignore.outside != "ignore"
            if not absorbs(first, protocol) and not for_range:
                taken.add(open_to_it[0])
            outcome[row] = IGNORED
        else:
            outcome[row] = FALSE if is_inside(item, area_range, protocol) else IGNORED
    return [outcome[row] for row, _ in ranked]


# ---------------------------------------------------------------- one curve


class Curve(NamedTuple):
    recall: float
    precision: list[float]  # at the recall points
    scores: list[float]  # at the recall points
    average_precision: float


def draw(outcomes: list[str], scores: list[float], positives: int, protocol: Any) -> Curve:
    """Walk down a class's detections, best score first."""
    rules = protocol.ap
    points = rules.recall_points
    nothing = [NAN] * len(points)
    if not positives:
        is_zero = rules.absent_classes == "all_zero" or (rules.absent_classes == "zero" and len(scores) > 0)
        return Curve(NAN, [0.0] * len(points) if is_zero else nothing, nothing, 0.0 if is_zero else NAN)

    steps = list(zip(scores, outcomes, strict=True))
    if rules.tie_order != "as_ranked":
        last = rules.tie_order == "true_positives_last"
        steps.sort(key=lambda step: (-step[0], (step[1] == TRUE) == last))
    true = false = 0
    recall, precision = [], []
    for _, outcome in steps:
        true += outcome == TRUE
        false += outcome == FALSE
        recall.append(true / positives)
        counted = true + false + rules.precision_epsilon
        precision.append(true / counted if counted else 0.0)

    at_points, score_at_points = [], []
    for point in points:
        best, score = 0.0, 0.0
        for here, value, (its_score, _) in reversed(list(zip(recall, precision, steps, strict=True))):
            if here >= point:
                best, score = max(best, value), its_score
        at_points.append(best)
        score_at_points.append(score)

    counts = [outcome != IGNORED for _, outcome in steps]
    recall_counted = [value for value, kept in zip(recall, counts, strict=True) if kept]
    precision_counted = [value for value, kept in zip(precision, counts, strict=True) if kept]
    if rules.score_steps:
        average = area_at_scores(steps, positives, rules)
    elif rules.interpolation == "area":
        average = area_under_steps(recall_counted, precision_counted)
    elif rules.interpolation == "every_point":
        average = 0.0
        for i in range(1, len(recall_counted)):
            width = recall_counted[i] - recall_counted[i - 1]
            average += width * ((precision_counted[i - 1] + precision_counted[i]) / 2)
    elif rules.interpolation != "points":
        to_one = rules.interpolation == "trapezoid_to_one"
        average = area_under_lines(recall_counted, precision_counted, points, to_one=to_one)
    elif rules.sequential_mean:
        average = 0.0
        for value in at_points:
            average = average + value / len(points)
    else:
        average = float(np.mean(at_points))
    return Curve(recall[-1] if recall else 0.0, at_points, score_at_points, average)


def falling(values: list[float]) -> list[float]:
    """The largest value from each place on."""
    return [max(values[i:]) for i in range(len(values))]


def area_under_steps(recall: list[float], precision: list[float]) -> float:
    """VOCap.m."""
    mrec, mpre = [0.0, *recall, 1.0], falling([0.0, *precision, 0.0])
    steps = [(mrec[i] - mrec[i - 1]) * mpre[i] for i in range(1, len(mrec)) if mrec[i] != mrec[i - 1]]
    return float(np.sum(steps))


def area_at_scores(steps: list[tuple[float, str]], positives: int, rules: Any) -> float:
    """WIDER FACE's curve: a point at each of so many score thresholds."""
    recall, precision = [], []
    for i in range(rules.score_steps):
        bar = 1 - (i + 1) / rules.score_steps
        kept = [outcome for score, outcome in steps if score >= bar]
        counted = kept.count(TRUE) + kept.count(FALSE)
        recall.append(kept.count(TRUE) / positives)
        precision.append(kept.count(TRUE) / (counted + rules.precision_epsilon) if counted else 0.0)
    return area_under_steps(recall, precision)


def area_under_lines(
    recall: list[float], precision: list[float], points: tuple[float, ...], *, to_one: bool
) -> float:
    """``compute_ap`` of ultralytics, before (``to_one``) and after April 2026."""
    if not recall:
        return 0.0
    if to_one:
        mrec, mpre = [0.0, *recall, 1.0], falling([1.0, *precision, 0.0])
    else:
        mrec, mpre = [0.0, *recall, recall[-1], 1.0], falling([1.0, *precision, 0.0, 0.0])
    read = [line_through(point, mrec, mpre) for point in points]
    return float(
        np.sum([(read[i] + read[i - 1]) / 2 * (points[i] - points[i - 1]) for i in range(1, len(read))])
    )


def line_through(x: float, xs: list[float], ys: list[float]) -> float:
    """``numpy.interp``: of several points at one x, the last."""
    left = max(i for i, value in enumerate(xs) if value <= x)
    if left == len(xs) - 1 or xs[left] == x:
        return ys[left]
    slope = (ys[left + 1] - ys[left]) / (xs[left + 1] - xs[left])
    return slope * (x - xs[left]) + ys[left]


# ---------------------------------------------------------------- found at false positives per image


def sensitivities(
    outcomes: list[str], scores: list[float], positives: int, images: int, protocol: Any
) -> list[float]:
    """Try every confidence that occurs, highest first, and read between what they keep."""
    rules = protocol.froc
    if not positives:
        return [NAN for _ in rules.false_positives_per_image]
    false_per_image, found = [0.0], [0.0]
    for threshold in sorted(set(scores), reverse=True):
        kept = [outcome for outcome, score in zip(outcomes, scores, strict=True) if score >= threshold]
        false_per_image.append(kept.count(FALSE) / images)
        found.append(kept.count(TRUE) / positives)
    if rules.interpolation == "linear":
        return [line_through(point, false_per_image, found) for point in rules.false_positives_per_image]
    return [
        max(value for spent, value in zip(false_per_image, found, strict=True) if spent <= point)
        for point in rules.false_positives_per_image
    ]


# ---------------------------------------------------------------- missed at false positives per image


def miss_rate(outcomes: list[str], positives: int, images: int, protocol: Any) -> float:
    """Walk down the list for every anchor, and look at the entry that the reading names."""
    rules = protocol.miss_rate
    if not positives:
        return NAN
    points, false, true = [], 0, 0
    for outcome in outcomes:
        if outcome == IGNORED:
            continue
        false, true = false + (outcome == FALSE), true + (outcome == TRUE)
        points.append((false / images, 1.0 - true / positives))
    logs = []
    for anchor in rules.false_positives_per_image:
        within = [miss for spent, miss in points if spent <= anchor]
        beyond = [miss for spent, miss in points if spent >= anchor]
        if rules.reading == "first_at_least":
            if not points:
                return NAN
            miss = beyond[0] if beyond else points[-1][1]
        elif rules.reading == "last_at_most_or_end" and points and not within:
            miss = points[-1][1]
        else:
            miss = within[-1] if within else 1.0
        logs.append(miss)
    with np.errstate(divide="ignore"):
        return float(np.exp(np.log(np.array(logs)).mean()))


# ---------------------------------------------------------------- the whole


def pooled_curve(
    classes: list[tuple[list[tuple[Ranked, str]], int]],
    detections: list[Detection],
    cap: float,
    protocol: Any,
) -> Curve:
    """One curve of several classes: image by image, class by class, then by score."""
    steps = [(item, outcome) for some, _ in classes for item, outcome in some if item.rank < cap]
    steps.sort(key=lambda step: detections[step[0].row].image)  # stable: classes stay in order
    steps.sort(key=lambda step: -detections[step[0].row].score)
    scores = [detections[item.row].score for item, _ in steps]
    positives = sum(count for _, count in classes)
    return draw([outcome for _, outcome in steps], scores, positives, protocol)


def best_of_groups(detections: list[Detection], protocol: Any) -> list[Detection]:
    """The best of each image, or of each class over all images."""
    cap = protocol.matching.max_detections[-1]
    of_image = protocol.matching.cap_scope != "data_set_class"
    groups = [item.image if of_image else item.label for item in detections]
    kept: set[int] = set()
    for group in set(groups):
        mine = [row for row in range(len(detections)) if groups[row] == group]
        here = [row for row in mine if is_scored(detections[row], protocol)]
        here.sort(key=lambda row: -detections[row].score)
        kept |= set(here[:cap])
    return [item for row, item in enumerate(detections) if row in kept]


class Result(NamedTuple):
    """Arrays precision and scores [T, R, K, A, M], recall [T, K, A, M]; the headline numbers."""

    arrays: dict[str, np.ndarray[Any, Any]]
    metrics: dict[str, float]


def evaluate(
    objects: list[Object], detections: list[Detection], images: int, labels: int, protocol: Any
) -> Result:
    detections = rounded(detections, protocol)
    listed = listed_in(objects, protocol)
    if not protocol.matching.per_class:
        if protocol.matching.cap_scope != "class" and protocol.matching.max_detections:  # in file order
            detections = best_of_groups(detections, protocol)
        detections = [item for item in detections if listed is None or (item.image, item.label) in listed]
        listed = None
        if protocol.matching.equal_scores == "image_order":  # class by class, as pycocotools does
            objects = sorted(objects, key=lambda item: item.label)
            detections = sorted(detections, key=lambda item: item.label)
        objects = [item._replace(label=0) for item in objects]
        detections = [item._replace(label=0) for item in detections]
        labels = 1
    thresholds, points = protocol.matching.iou_thresholds, protocol.ap.recall_points
    ranges = protocol.ignore.area_ranges
    caps = protocol.matching.max_detections or (math.inf,)
    T, R, K, A, M = len(thresholds), len(points), labels, len(ranges), len(caps)
    precision, scores = np.full((T, R, K, A, M), NAN), np.full((T, R, K, A, M), NAN)
    recall, average = np.full((T, K, A, M), NAN), np.full((T, K, A, M), NAN)
    missed = np.full((T, K, A, M), NAN)
    found = np.full((T, len(protocol.froc.false_positives_per_image), K, A, M), NAN)
    classes = let_through(detections, images, labels, protocol, listed)
    judged: dict[tuple[int, int, int], tuple[list[tuple[Ranked, str]], int]] = {}
    curves: dict[
        tuple[tuple[tuple[str, float], ...], int], Curve
    ] = {}  # at many thresholds they are the same
    for k in range(K):
        for a, area_range in enumerate(ranges.values()):
            positives = sum(
                item.label == k
                and not is_deleted(item, protocol)
                and (is_counted(item, area_range, protocol) or protocol.ap.recall_over == "all")
                for item in objects
            )
            for t, threshold in enumerate(thresholds):
                outcomes = judge(objects, detections, classes[k], threshold, area_range, protocol)
                judged[t, a, k] = (list(zip(classes[k], outcomes, strict=True)), positives)
                for m, cap in enumerate(caps):
                    rows = [
                        (outcome, detections[row].score)
                        for (row, rank), outcome in zip(classes[k], outcomes, strict=True)
                        if rank < cap
                    ]
                    key = (tuple(rows), positives)
                    if key not in curves:
                        curves[key] = draw([o for o, _ in rows], [s for _, s in rows], positives, protocol)
                    curve = curves[key]
                    precision[t, :, k, a, m] = curve.precision
                    scores[t, :, k, a, m] = curve.scores
                    recall[t, k, a, m] = curve.recall
                    average[t, k, a, m] = curve.average_precision
                    missed[t, k, a, m] = miss_rate([o for o, _ in rows], positives, images, protocol)
                    found[t, :, k, a, m] = sensitivities(
                        [o for o, _ in rows], [s for _, s in rows], positives, images, protocol
                    )

    metrics = {}
    pointwise = protocol.ap.interpolation == "points" and not protocol.ap.sequential_mean
    for row in protocol.rows:
        if row.classes:  # no scene says more of its classes
            metrics[row.key] = NAN
            continue
        a = list(ranges).index(row.area)
        chosen = range(T) if row.iou is None else [thresholds.index(row.iou)]
        cells = []
        for t in chosen:
            if protocol.ap.pool == "classes":
                of_classes = [judged[t, a, k] for k in range(K)]
                curve = pooled_curve(of_classes, detections, caps[row.cap], protocol)
                whole = curve.precision if pointwise else [curve.average_precision]
                cells += [curve.recall] if row.metric == "AR" else whole
            elif row.metric == "AR":
                cells += recall[t, :, a, row.cap].tolist()
            elif row.metric == "MR":
                cells += missed[t, :, a, row.cap].tolist()
            elif row.metric == "FROC":
                cells += found[t, :, :, a, row.cap].ravel().tolist()
            elif pointwise:
                cells += precision[t, :, :, a, row.cap].ravel().tolist()
            else:
                cells += average[t, :, a, row.cap].tolist()
        defined = [value for value in cells if not math.isnan(value)]
        metrics[row.key] = float(np.mean(defined)) if defined else NAN
        if protocol.ap.class_mean == "nanmean" and defined:
            # One value a class and threshold is added class after class, points of curves as they stand.
            of_points = row.metric == "FROC" or (pointwise and row.metric not in ("AR", "MR"))
            one_each = not of_points and len(cells) == len(chosen) * K
            metrics[row.key] = float(np.nanmean(np.reshape(cells, (-1, K)).T.ravel() if one_each else cells))
    return Result({"precision": precision, "recall": recall, "scores": scores}, metrics)
