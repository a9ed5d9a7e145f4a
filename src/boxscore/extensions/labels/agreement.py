"""Measure how well annotators agree, and the highest scores that a detector can expect on their labels.

Conventions
-----------
- The labels of two annotators in an image are matched regardless of class. Matching maximizes the number of
  pairs with an IoU of at least ``iou_threshold``, then the total IoU
  (:mod:`boxscore.extensions.scoreless.assignment`), then the number of pairs of one class. Remaining ties are
  broken by boxes and classes. Neither the order of the labels nor that of the annotators has an effect.
- ``f1``, ``mean_f1`` and the ceilings use the protocol ``scoreless``, with one annotator as the detector:
  labels of one class are matched separately at each threshold. ``ceiling`` is the AP of a detector that makes
  the annotator's labels with uninformative scores; ``highest``, with scores that rank all errors last.
- A *unit* is an object: matched labels of several annotators. Annotators are added one after the other,
  ordered by their labels, each matched to the existing units. If an annotator did not label the object, the
  value is ``(nothing)``.
- Cohen's kappa is computed on the classes of matched pairs of two annotators; Krippendorff's alpha (nominal)
  on the units of all. Both are NaN where undefined, for example if all labels have the same class.

References
----------
J. Cohen, "A Coefficient of Agreement for Nominal Scales", Educational and Psychological Measurement 1960.
K. Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray, Positions
from boxscore._utils.checks import did_you_mean
from boxscore._utils.ordering import inverse_order
from boxscore._utils.user_warnings import warn_user
from boxscore.data.alignment import align, with_labels
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id, Images
from boxscore.errors import InputError
from boxscore.evaluation import evaluate
from boxscore.extensions.diagnostics._result import DiagnosticResult
from boxscore.extensions.scoreless.assignment import UNIT, components, heaviest
from boxscore.matching.matcher import CrossPairs, Matcher
from boxscore.protocols import load_protocol
from boxscore.protocols.protocol import Protocol

if TYPE_CHECKING:
    import pandas as pd


def best_pairs(first: Positions, second: Positions, iou: FloatArray, same: IntArray) -> Positions:
    """Return the positions of the pairs in the matching with the most pairs, then the greatest total IoU.

    If several matchings are equally good, the one with the greatest total of ``same`` [P] is taken, then the
    first by the numbers of the rows.
    """
    chosen: list[int] = []
    if not len(first):
        return np.empty(0, dtype=np.intp)
    # ``same`` decides only between equal sums of IoU, so a step of IoU is larger than any total of it. These
    # numbers can exceed 64 bits.
    step = int(same.sum()) + 1
    weight = np.floor(np.clip(iou, 0, 1) * UNIT).astype(np.int64).astype(object) * step + same
    component = components(first, second)
    order = np.lexsort((second, first, component))
    for edges in np.split(order, np.flatnonzero(np.diff(component[order])) + 1):
        best = heaviest(first[edges], second[edges], weight[edges], unit=(UNIT + 1) * step)
        chosen += edges[best].tolist()
    return np.sort(np.array(chosen, dtype=np.intp))


def cohens_kappa(first: IntArray, second: IntArray, classes: int) -> float:
    """Compute Cohen's kappa of matched pairs; NaN if agreement by chance is certain."""
    counts = np.zeros((classes, classes))
    np.add.at(counts, (first, second), 1)
    total = counts.sum()
    if not total:
        return float("nan")
    observed = np.trace(counts) / total
    expected = (counts.sum(axis=0) @ counts.sum(axis=1)) / total**2
    return float((observed - expected) / (1 - expected)) if expected < 1 else float("nan")


def krippendorffs_alpha(values: NDArray[np.integer], classes: int) -> float:
    """Compute Krippendorff's alpha of [annotators, units]; -1: not asked. NaN where undefined."""
    counts = np.stack([(values == value).sum(axis=0) for value in range(classes)], axis=1)  # [units, classes]
    raters = counts.sum(axis=1)
    counts = counts[raters > 1].astype(np.float64)
    raters = raters[raters > 1]
    pairs = (counts.T / (raters - 1)) @ counts
    pairs[np.diag_indices(classes)] -= (counts / (raters - 1)[:, None]).sum(axis=0)
    each = pairs.sum(axis=0)
    total = each.sum()
    disagreed = total - np.trace(pairs)
    expected = total**2 - (each**2).sum()
    return float(1 - (total - 1) * disagreed / expected) if expected > 0 else float("nan")


# ---------------------------------------------------------------- tables


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Agreement(DiagnosticResult):
    """The agreement of annotators.

    Attributes
    ----------
    annotators : list of str, [A]
    classes : list of str, [K]
    pairs : list of AnnotatorPair
        One for each pair of annotators.
    alpha : float
        Krippendorff's alpha, over the units of all annotators.
    class_alpha : ndarray of float64, [K]
        Krippendorff's alpha of each class against all others.
    units : ndarray of intp, [A, U]
        Class of each annotator's label in each unit; K without a label.
    unit_image : ndarray of intp, [U]
    image_ids : ndarray, [I]
    """

    annotators: list[str]
    classes: list[str]
    pairs: list[AnnotatorPair]
    alpha: float
    class_alpha: FloatArray
    units: Positions
    unit_image: Positions
    image_ids: NDArray[Any]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per pair of annotators.

        ``first, other, labels_first, labels_other, matched, missed_by_first, missed_by_other, mean_iou, f1,
        mean_f1, same_class, kappa, ceiling_first, ceiling_other, highest_first, highest_other``.
        """
        import pandas as pd

        return pd.DataFrame([pair.as_row() for pair in self.pairs])

    def image_frame(self) -> pd.DataFrame:
        """Return one row per labeled image, the least agreed first: ``image_id, objects, agreed, share``."""
        import pandas as pd

        agreed = (self.units == self.units[:1]).all(axis=0)
        count = len(self.image_ids)
        objects = np.bincount(self.unit_image, minlength=count)
        same = np.bincount(self.unit_image[agreed], minlength=count)
        some = np.flatnonzero(objects)
        frame = pd.DataFrame(
            {"image_id": self.image_ids[some], "objects": objects[some], "agreed": same[some]}
        )
        frame["share"] = frame["agreed"] / frame["objects"]
        return frame.sort_values(["share", "objects"], ascending=[True, False], ignore_index=True)

    def class_frame(self) -> pd.DataFrame:
        """Return one row per class: ``class, labels, agreed, alpha``."""
        import pandas as pd

        same = (self.units == self.units[:1]).all(axis=0)
        K = len(self.classes)
        return pd.DataFrame(
            {
                "class": self.classes,
                "labels": [int((self.units == k).sum()) for k in range(K)],
                "agreed": [int((self.units[0][same] == k).sum()) for k in range(K)],
                "alpha": self.class_alpha,
            }
        )


@dataclasses.dataclass(frozen=True)
class AnnotatorPair:
    """The comparison of two annotators."""

    first: str
    other: str
    labels: tuple[int, int]
    iou: FloatArray
    """IoU of the matched pairs, [P]."""
    classes: tuple[Positions, Positions]
    """Classes of the matched pairs, [P]."""
    metrics: tuple[Mapping[str, float], Mapping[str, float]]
    """Metrics of the protocol ``scoreless``, with the first annotator as the detector, and with the other."""
    kappa: float

    def as_row(self) -> dict[str, Any]:
        """Return the row of the table."""
        matched = len(self.iou)
        return {
            "first": self.first,
            "other": self.other,
            "labels_first": self.labels[0],
            "labels_other": self.labels[1],
            "matched": matched,
            "missed_by_first": self.labels[1] - matched,
            "missed_by_other": self.labels[0] - matched,
            "mean_iou": float(self.iou.mean()) if matched else float("nan"),
            "f1": self.metrics[0]["F1_50"],
            "mean_f1": self.metrics[0]["F1"],
            "same_class": int((self.classes[0] == self.classes[1]).sum()),
            "kappa": self.kappa,
            "ceiling_first": self.metrics[0]["AP_expected"],
            "ceiling_other": self.metrics[1]["AP_expected"],
            "highest_first": self.metrics[0]["AP_highest"],
            "highest_other": self.metrics[1]["AP_highest"],
        }


def labels_by_annotator(table: GroundTruth, column: str) -> dict[str, GroundTruth]:
    """Split the labels of several annotators in one table.

    Parameters
    ----------
    table : GroundTruth
    column : str
        Column with the annotator of each label.

    Returns
    -------
    dict of str to GroundTruth
        Labels by annotator, sorted by name. Each table has all images, because the column does not say which
        images an annotator saw.

    Raises
    ------
    InputError
        When the column does not exist, or a label lacks an annotator.

    Examples
    --------
    >>> boxes, by = [[0, 0, 9, 9]] * 2, {"by": ["b", "a"]}
    >>> table = GroundTruth.from_arrays([1, 1], ["cat", "cat"], boxes, columns=by)
    >>> list(labels_by_annotator(table, "by"))
    ['a', 'b']
    """
    if column not in table.columns:
        cause = did_you_mean(column, table.columns)
        raise InputError(
            "the annotators", f"be in a column {column}", got="none", place=table.source, cause=cause
        )
    values = [None if value != value else value for value in table.columns[column].tolist()]
    if None in values:
        place = f"row {values.index(None)} of {table.source}"
        raise InputError(column, "name the annotator of every label", got="none", place=place)
    of_row = np.array([str(value) for value in values], dtype=object)
    return {name: table.take(np.flatnonzero(of_row == name)) for name in sorted({*of_row.tolist()})}


def annotator_agreement(
    annotators: Mapping[str, GroundTruth],
    *,
    protocol: str = "coco",
    iou_threshold: float = 0.5,
) -> Agreement:
    """Compare the labels of two or more annotators on the same images.

    Parameters
    ----------
    annotators : mapping of str to GroundTruth
        Labels by annotator. The images of all tables are used; an image missing in a table is unlabeled
        there. Classes are those of the first table.
    protocol : str, default "coco"
        Selects the objects to compare: boxes, rotated boxes, masks or keypoints.
    iou_threshold : float, default 0.5
        Minimum IoU of two labels of one object.

    Returns
    -------
    Agreement

    Raises
    ------
    InputError
        When there are fewer than two annotators, a file name has two ids, or the first table lacks a class.
    """
    if len(annotators) < 2:
        raise InputError("annotators", "be two or more", got=len(annotators))
    # Match without scores, with the protocol's similarity; all tables get one vocabulary.
    asked = load_protocol(protocol)
    compared = {name: getattr(asked, name) for name in ("similarity", "boxes", "masks", "keypoints")}
    rules = load_protocol("scoreless").replaced(**compared)
    names, tables = list(annotators), _align(list(annotators.values()))
    K = len(tables[0].categories)
    matchings: dict[tuple[int, int], CrossPairs] = {}
    pairs = []
    # Number the labels and order the annotators by content, not by file, so that ties do not depend on files.
    numbers, order = _by_content(tables)
    # Measure each pair of annotators once, across classes: labels may match in place and differ in class.
    for a, b in itertools.combinations(range(len(names)), 2):
        matcher = Matcher(tables[a], _as_detections(tables[b]), rules)
        # Measure crowds by IoU too.
        nowhere = np.zeros(len(tables[a]), dtype=bool)
        matchings[a, b] = cross = matcher.across_classes(iou_threshold=iou_threshold, by_foreground=nowhere)
        turned = order.index(a) > order.index(b)
        chosen = _chosen(cross, (tables[a], tables[b]), (numbers[a], numbers[b]), turned=turned)
        pairs.append(_pair_of((names[a], names[b]), (tables[a], tables[b]), cross, chosen, rules, K))
    # Join the pairwise matches into units with one label per annotator. Compute alpha over all classes, and
    # for each class against the rest.
    units, image = _units(tables, matchings, numbers, order, K)
    alone = [krippendorffs_alpha((units == k).astype(np.intp), 2) for k in range(K)]
    return Agreement(
        names,
        tables[0].categories.labels,
        pairs,
        krippendorffs_alpha(units, K + 1),
        np.array(alone),
        units,
        image,
        tables[0].images.ids,
    )


def _as_detections(table: GroundTruth) -> Detections:
    """Convert labels to boxes without scores."""
    names = tuple(column.name for column in Detections.schema.instances)
    given = {name: table.instances[name] for name in names if name in table.instances}
    columns = {name: getattr(table, name) for name in ("image", "category", "boxes", "sizes", "images")}
    return Detections(**columns, categories=table.categories, units=table.units, source=table.source, **given)


def _align(tables: Sequence[GroundTruth]) -> list[GroundTruth]:
    """Align all tables: images of all, classes of the first."""
    # Every table gets the images of all; an image that an annotator did not label is empty there.
    _check_images(tables)
    first, images = tables[0], Images.union([table.images for table in tables])
    if not images.same_as(first.images):
        rows = images.rows(first.images.ids)
        first = with_labels(first.replaced(images=images, image=rows[first.image]), images=rows)
    # Find classes as for detections, by id or name.
    aligned = [first]
    for table in tables[1:]:
        other = align(_as_detections(table), first)
        if other.left_out:
            got = repr(next(iter(other.left_out)))
            raise InputError(f"a class of {table.source}", "be a class of the first annotator", got=got)
        aligned.append(
            table.replaced(
                images=first.images, categories=first.categories, image=other.image, category=other.category
            )
        )
    return aligned


def _check_images(tables: Sequence[GroundTruth]) -> None:
    """Check that each file name has one id, and warn about images that are missing in some tables."""
    # One name with two ids would compare different images.
    first = tables[0]
    known = _ids_by_name(first)
    for table in tables[1:]:
        for name, identifier in _ids_by_name(table).items():
            if known.get(name, identifier) != identifier:
                raise InputError(
                    f"image {name!r} of {table.source}",
                    f"have the same id as in {first.source}",
                    got=f"{identifier!r} for {known[name]!r}",
                    cause="images are matched by id: use the same ids in every file",
                )
    # Images may be missing in some tables, with a warning.
    listed = [{*table.images.ids.tolist()} for table in tables]
    some = set.union(*listed) - set.intersection(*listed)
    if some:
        count, example = len(set.union(*listed)), min(some, key=str)
        warn_user(
            f"{len(some):,} of {count:,} images are not in every file, such as {example!r}; they count "
            "as unlabeled in the files that lack them"
        )


def _ids_by_name(table: GroundTruth) -> dict[str, Id]:
    names, ids = table.images.file_names.tolist(), table.images.ids.tolist()
    return {name: identifier for name, identifier in zip(names, ids, strict=True) if name is not None}


def _by_content(tables: Sequence[GroundTruth]) -> tuple[list[Positions], list[int]]:
    """Rank the rows of each table by image, box, class and area, and sort the tables by these values."""
    # Image ids and class names are the same whichever table comes first; their numbers are not.
    images = inverse_order(np.argsort(np.array([str(value) for value in tables[0].images.ids.tolist()])))
    classes = inverse_order(np.argsort(np.array(tables[0].categories.labels, dtype=str)))
    numbers, contents = [], []
    for table in tables:
        keys = np.column_stack([images[table.image], table.boxes, classes[table.category], table.area])
        by_key = np.lexsort(keys.T[::-1])
        numbers.append(inverse_order(by_key))
        contents.append(keys[by_key].tolist())
    return numbers, sorted(range(len(tables)), key=contents.__getitem__)


def _chosen(
    cross: CrossPairs,
    tables: tuple[GroundTruth, GroundTruth],
    numbers: tuple[Positions, Positions],
    *,
    turned: bool,
) -> Positions:
    """Return the positions of the matched pairs of two annotators; ``turned``: the second comes first."""
    rows = numbers[0][cross.truth], numbers[1][cross.detection]
    same = tables[0].category[cross.truth] == tables[1].category[cross.detection]
    return best_pairs(*(rows[::-1] if turned else rows), cross.iou, same.astype(np.intp))


def _pair_of(
    names: tuple[str, str],
    tables: tuple[GroundTruth, GroundTruth],
    cross: CrossPairs,
    chosen: Positions,
    rules: Protocol,
    K: int,
) -> AnnotatorPair:
    # Score each annotator against the other: the two directions differ.
    first, second = cross.truth, cross.detection
    one, two = tables[0].category[first], tables[1].category[second]
    back, forth = (
        evaluate(truth, _as_detections(other), protocol=rules, digest=False).metrics
        for truth, other in (tables[::-1], tables)
    )
    # Compare classes on the matched pairs.
    classes = one[chosen].astype(np.intp), two[chosen].astype(np.intp)
    sizes = len(tables[0]), len(tables[1])
    return AnnotatorPair(*names, sizes, cross.iou[chosen], classes, (back, forth), cohens_kappa(*classes, K))


def _units(
    tables: Sequence[GroundTruth],
    matchings: Mapping[tuple[int, int], CrossPairs],
    numbers: Sequence[Positions],
    order: Sequence[int],
    K: int,
) -> tuple[Positions, Positions]:
    """Return each annotator's class in each unit, [A, U], K without a label; and the image of each unit."""
    # Start with the labels of the first annotator in ``order`` as units; ``unit_at`` gives the unit of each
    # label. A unit holds a row of each annotator added so far, or -1.
    members = np.arange(len(tables[order[0]]))[None]  # [annotators so far, U]
    unit_at = {order[0]: members[0]}
    # Add one annotator after the other, and match its labels to units by the largest overlap with any member.
    for added, b in enumerate(order[1:], 1):
        edges: dict[tuple[int, int], float] = {}
        same: dict[tuple[int, int], int] = {}
        for a in order[:added]:
            cross = matchings[min(a, b), max(a, b)]
            rows = {min(a, b): cross.truth, max(a, b): cross.detection}
            agree = tables[a].category[rows[a]] == tables[b].category[rows[b]]
            columns = (unit_at[a][rows[a]], rows[b], cross.iou, agree)
            for unit, label, iou, is_same in zip(*(column.tolist() for column in columns), strict=True):
                edges[unit, label] = max(edges.get((unit, label), 0.0), iou)
                same[unit, label] = same.get((unit, label), 0) + is_same
        # Number the units by the content of their members.
        found = [np.append(numbers[a], -1)[row] for a, row in zip(order, members, strict=False)]
        number = inverse_order(np.lexsort(found[::-1]))
        # Each label joins at most one unit, and each unit gets at most one label, chosen by
        # :func:`best_pairs`.
        keys = np.array(list(edges), dtype=np.intp).reshape(-1, 2)
        chosen = best_pairs(
            number[keys[:, 0]],
            numbers[b][keys[:, 1]],
            np.array(list(edges.values())),
            np.array([same[edge] for edge in edges], dtype=np.intp),
        )
        at = np.full(len(tables[b]), -1, dtype=np.intp)
        at[keys[chosen, 1]] = keys[chosen, 0]
        # A label without a unit starts a new one; a unit without a label of this annotator gets -1.
        new = np.flatnonzero(at < 0)
        at[new] = members.shape[1] + np.arange(len(new))
        members = np.pad(members, ((0, 1), (0, len(new))), constant_values=-1)
        members[added, at] = np.arange(len(at))
        unit_at[b] = at
    # Look up class and image of each member, [A, U]. A row of -1 reads the last entry: class K, image -1.
    back = inverse_order(np.array(order))
    classes = np.stack([np.append(tables[a].category, K)[members[back[a]]] for a in range(len(tables))])
    images = np.stack([np.append(tables[a].image, -1)[members[back[a]]] for a in range(len(tables))])
    return classes.astype(np.intp), images.max(axis=0).astype(np.intp)
