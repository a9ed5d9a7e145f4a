"""Check data larger than memory: count in partitions of whole images, and evaluate a sample.

Conventions
-----------
- Checks of single images are counted in every partition, and the counts add up: count and message equal those
  of the whole tables. Examples come from the first partitions that have any.
- Checks that need an evaluation, or all rows together, use a sample of images, evenly spaced in every
  partition. The finding says so, and its numbers and effects refer to the sample.
- :data:`LEFT_OUT` needs all rows, and a sample would be misleading, so it is not checked.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import IntArray
from boxscore._utils.text import counted
from boxscore.data.alignment import of_images
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.evaluation import Evaluation
from boxscore.extensions.large.joining import of_one_data_set
from boxscore.extensions.large.questions import source_of
from boxscore.extensions.validation import geometric, semantic, structural, unread
from boxscore.extensions.validation._findings import (
    MOST_EXAMPLES,
    Context,
    Finding,
    RowCheck,
    by_weight,
    image_rows,
)
from boxscore.extensions.validation.checking import check, consequences
from boxscore.protocols.protocol import Protocol

OF_TRUTH: tuple[RowCheck, ...] = (
    structural.ID_ZERO,
    *geometric.OF_TRUTH,
    *unread.FLAGS.values(),
    semantic.NEAR_DUPLICATES,
    *semantic.AREAS,
)
OF_DETECTIONS: tuple[RowCheck, ...] = (*geometric.OF_DETECTIONS, semantic.REPEATED)

ADDED = (
    *("classes-of-one-name", "class-without-annotations", "image-without-annotations", "unknown-class"),
    *("image-without-detections", "class-without-detections", "class-without-results-file"),
    *("integer-coordinates", "score-outside-0-1", "scores-all-equal", "no-scores"),
    *("beyond-max-detections", "detections-cut-per-image", "lvis-version"),
    *(one.code for one in (*OF_TRUTH, *OF_DETECTIONS)),
)
"""Codes of findings over all rows."""

LEFT_OUT = {"repeated-annotation-id": "repeated annotation ids"}
"""Codes of findings that need all rows, and their description."""

OF_CLASSES = ("class-always-called-another",)
"""Codes of findings whose examples are classes, not rows of the sample."""

SAMPLED = 2_000
"""Maximum number of images in the sample."""
MOST_SAMPLED = 200_000
"""Maximum number of boxes in the sample."""


class Tally(NamedTuple):
    """Rows that a check finds in some images."""

    found: int = 0
    most: float = 0.0
    examples: tuple[str, ...] = ()

    def __add__(self, other: Tally) -> Tally:  # type: ignore[override]
        """Add up the counts of disjoint images."""
        examples = (*self.examples, *other.examples)[:MOST_EXAMPLES]
        return Tally(self.found + other.found, max(self.most, other.most), examples)


@dataclasses.dataclass(frozen=True, eq=False)
class Share:
    """Counts of some images for all checks.

    Attributes
    ----------
    tallies : mapping of str to Tally
        By code of the finding; ``empty`` are images without annotations, ``silent`` those with annotations
        but no detections.
    counts : mapping of str to int
    per_class : mapping of str to ndarray of int64, [K]
    full : mapping of int to Tally
        Images by number of detections.
    scores : (float, float)
        The lowest and the highest score.
    capped : Capped
    left_out : mapping of str to int
    sample : list of tables
    """

    tallies: Mapping[str, Tally]
    counts: Mapping[str, int]
    per_class: Mapping[str, IntArray]
    full: Mapping[int, Tally]
    scores: tuple[float, float]
    capped: semantic.Capped
    left_out: Mapping[str, int]
    sample: list[tuple[GroundTruth, Detections]]

    def __add__(self, other: Share) -> Share:
        """Add up the counts of disjoint images."""
        return Share(
            {code: tally + other.tallies[code] for code, tally in self.tallies.items()},
            {name: count + other.counts[name] for name, count in self.counts.items()},
            {name: counts + other.per_class[name] for name, counts in self.per_class.items()},
            {
                number: self.full.get(number, Tally()) + other.full.get(number, Tally())
                for number in {**self.full, **other.full}
            },
            (min(self.scores[0], other.scores[0]), max(self.scores[1], other.scores[1])),
            self.capped + other.capped,
            dict(Counter(self.left_out) + Counter(other.left_out)),
            [*self.sample, *other.sample],
        )


def share_of(
    truth: GroundTruth,
    detections: Detections,
    truth_rows: NDArray[np.int64] | None,
    rows: NDArray[np.int64] | None,
    *,
    protocol: Protocol,
    partitions: int,
) -> Share:
    """Count the images of one of ``partitions`` partitions."""
    # Run the row checks on both sides. Detections without boxes are checked for repeats only.
    context = Context(truth, detections, protocol, file_rows=rows, truth_rows=truth_rows, measured=False)
    sides: list[tuple[BoxTable, tuple[RowCheck, ...]]] = [(truth, OF_TRUTH)]
    if len(detections):
        drawn = detections.boxes_given
        sides.append((detections, OF_DETECTIONS if drawn else (semantic.REPEATED,)))
    # Keep counts, the largest deviation and a few examples, which add up over partitions.
    tallies = {one.code: Tally() for one in (*OF_TRUTH, *OF_DETECTIONS)}
    for table, checks in sides:
        for one in checks:
            found, most = one.rows(context, table)
            examples = tuple(context.locate(table, row) for row in found[:MOST_EXAMPLES].tolist())
            tallies[one.code] = Tally(len(found), most, examples)
    # Count images without objects, and images with objects but no detections.
    per_truth, per_image = np.bincount(truth.image, minlength=len(truth.images)), context.per_image
    for name, chosen in (("empty", per_truth == 0), ("silent", (per_truth > 0) & (per_image == 0))):
        images = np.flatnonzero(chosen)
        tallies[name] = Tally(len(images), 0.0, tuple(image_rows(truth.images, images)))
    # Count scores outside [0, 1]; track the minimum and maximum.
    scores = detections.scores if detections.scored else np.empty(0)
    outside = np.flatnonzero((scores < 0) | (scores > 1))
    located = tuple(context.locate(detections, row) for row in outside[:MOST_EXAMPLES].tolist())
    tallies["score-outside-0-1"] = Tally(len(outside), 0.0, located)
    # Take a small, even sample of images for checks that need whole images.
    K = len(truth.categories)
    return Share(
        tallies,
        {
            "images": len(truth.images),
            "annotated": int((per_truth > 0).sum()),
            "objects": len(truth),
            "detections": len(detections),
            "scores": len(detections) if detections.scored else 0,
            "whole objects": int(geometric.whole_boxes(truth.boxes).sum()),
            "whole detections": int(geometric.whole_boxes(detections.boxes).sum()) * detections.boxes_given,
        },
        {
            "objects": np.bincount(truth.category, minlength=K),
            "detections": np.bincount(detections.category, minlength=K),
        },
        _count_images(truth, per_image),
        (float(scores.min(initial=np.inf)), float(scores.max(initial=-np.inf))),
        semantic.counts_beyond(protocol, detections),
        {str(label): count for label, count in detections.left_out.items()},
        [_take_sample(truth, detections, partitions)],
    )


def _count_images(truth: GroundTruth, per_image: IntArray) -> dict[int, Tally]:
    """Count the images by number of detections, and keep the first few as examples."""
    order = np.argsort(per_image, kind="stable")
    numbers, first, counts = np.unique(per_image[order], return_index=True, return_counts=True)
    ids = truth.images.ids
    return {
        int(number): Tally(
            int(count), 0.0, tuple(f"image {one}" for one in ids[order[at : at + min(count, 5)]].tolist())
        )
        for number, at, count in zip(numbers.tolist(), first.tolist(), counts.tolist(), strict=True)
    }


def _take_sample(
    truth: GroundTruth, detections: Detections, partitions: int
) -> tuple[GroundTruth, Detections]:
    """Take this partition's share of the sample, evenly spaced."""
    count = len(truth.images)
    wanted = min(count, max(1, SAMPLED // partitions))
    rows = (
        np.unique(np.linspace(0, max(count - 1, 0), wanted).astype(np.int64)) if count else np.empty(0, int)
    )
    boxes = np.bincount(truth.image, minlength=count) + np.bincount(detections.image, minlength=count)
    rows = rows[: 1 + int(np.searchsorted(np.cumsum(boxes[rows]), MOST_SAMPLED // partitions))]
    chosen = np.isin(detections.image, rows)
    kept = of_images(detections, rows, np.flatnonzero(chosen)).replaced(left_out={})
    return of_images(truth, rows, np.flatnonzero(np.isin(truth.image, rows))), kept


# ---------------------------------------------------------------- all partitions


def findings_of_shares(shares: Iterable[Share], protocol: Protocol) -> tuple[list[Finding], int]:
    """Return the findings of all partitions, errors first, and the number of images in the sample."""
    # Add up the counts of all partitions, and join their samples.
    each = iter(shares)
    whole = next(each)
    for one in each:
        whole += one
    truth, detections = (of_one_data_set(tables) for tables in zip(*whole.sample, strict=True))
    nothing = np.empty(0, dtype=np.int64)
    # Checks of counts read no rows, so the tables are empty.
    context = Context(
        of_images(truth, nothing, nothing),
        of_images(detections, nothing, nothing).replaced(left_out=whole.left_out),
        protocol,
        measured=False,
    )
    objects, found = whole.per_class["objects"], whole.per_class["detections"]
    vars(context).update(objects_per_class=objects, silent_classes=found == 0)
    # Take findings that add up from the counts, the others from the sample. A wrong box order explains boxes
    # outside the image.
    known = list(_exact_findings(context, whole))
    sampled = list(_sample_findings(truth, detections, protocol, whole))
    wrong = {one.code for one in sampled}
    findings = [
        one
        for one in (*known, *sampled)
        if one.code not in {f"{noun}-outside-image" for noun in ("annotation", "detection")}
        or one.code.replace("outside-image", "box-order") not in wrong
    ]
    follows = consequences(context, findings)
    return by_weight(one for one in findings if one.code not in follows), len(truth.images)


def findings_of_partitions(evaluation: Evaluation) -> tuple[list[Finding], int]:
    """Return the findings of a partitioned evaluation, which is read again, and the sample's images."""
    source: Any = source_of(evaluation)
    source.require("findings about the input")
    held = source.there
    options = {"protocol": evaluation.protocol, "partitions": len(held.tasks)}
    with held.engine.asked_again():
        calls = [held.engine.submit("check", _share_of_task, task, options) for task in held.tasks]
        shares = held.engine.results(calls, shown="reading again")
    return findings_of_shares(shares, evaluation.protocol)


def _share_of_task(task: Any, options: Mapping[str, Any]) -> Share:
    share: Share = task.told(share_of, options)
    return share


def _exact_findings(context: Context, whole: Share) -> Iterator[Finding]:
    """Return the findings that add up."""
    # Row checks: counts and largest deviations add up over partitions, and the first examples remain.
    for one in (*OF_TRUTH, *OF_DETECTIONS):
        count, most, examples = whole.tallies[one.code]
        if count:
            text = one.text(context, count, most)
            yield context.finding(one.code, one.kind, one.severity(context), count, text, examples=examples)
    # Checks of classes and images need only counts too.
    counts, tallies = whole.counts, whole.tallies
    yield from structural.of_classes(context)
    empty, silent = tallies["empty"], tallies["silent"]
    yield from structural.empty_images(context, empty.found, counts["images"], examples=empty.examples)
    yield from structural.unknown_classes(context, whole.left_out, counts["detections"])
    yield from structural.silent_images(
        context, silent.found, counts["annotated"], counts["detections"], examples=silent.examples
    )
    yield from structural.silent_classes(context)
    if not counts["detections"]:
        return
    # Whole numbers: use their fraction if there are enough boxes.
    whole_detections = counts["whole detections"] / counts["detections"]
    enough = min(counts["objects"], counts["detections"]) >= geometric.FEWEST
    if enough and whole_detections > geometric.ALL:
        share = counts["whole objects"] / counts["objects"]
        yield from geometric.whole_numbers(context, counts["detections"], whole_detections, share)
    # Scores: the lowest and the highest suggest their meaning.
    if counts["scores"]:
        outside = tallies["score-outside-0-1"]
        for odd in semantic.odd_scores(context, counts["detections"], *whole.scores, outside.found):
            examples = outside.examples if odd.code == "score-outside-0-1" else ()
            yield dataclasses.replace(odd, examples=examples)
    else:
        yield semantic.no_scores(context, counts["detections"])
    # Detections were probably truncated if many images have the largest count and few have one less.
    capped = whole.capped
    yield from semantic.beyond_max_detections(context, capped)
    most = max(whole.full)
    full, below = whole.full[most], whole.full.get(most - 1, Tally())
    yield from semantic.cut_per_image(
        context, most, full.found, below.found, counts["images"], examples=full.examples
    )


def _sample_findings(
    truth: GroundTruth, detections: Detections, protocol: Protocol, whole: Share
) -> Iterator[Finding]:
    """Return the findings of the sample that do not add up."""
    context = Context(truth, detections, protocol)
    # Use the counts of all images.
    vars(context).update(silent_classes=whole.per_class["detections"] == 0)
    for one in check(context):
        if one.code in ADDED or one.code in LEFT_OUT:
            continue
        if one.code == "score-floor" and whole.scores[0] < semantic.LEAST_FLOOR:
            continue
        of = f" (in a sample of {counted(len(truth.images), 'image')})"
        message = f"{one.head}{of}{one.message.removeprefix(one.head)}"
        examples = one.examples if one.code in OF_CLASSES else ()
        yield dataclasses.replace(one, message=message, examples=examples)


def note_of_shares(images: int) -> str:
    """Describe the checks that partitions leave out."""
    return (
        "box formats, class numbering, ties and effects on the metric are based on a sample of "
        f"{counted(images, 'image')}; not checked: {' and '.join(LEFT_OUT.values())}"
    )
