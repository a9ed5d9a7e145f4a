"""Rules know their scope: what they answer together is what lists of fields answered, and how tables behave."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pytest

import boxscore
from boxscore import InputError, Protocol, ProtocolError, load_protocol
from boxscore.data.alignment import align
from boxscore.data.vocabulary import Images
from boxscore.extensions.diagnostics._tools import fits
from boxscore.protocols import protocol_names
from boxscore.protocols.acting import UNSAID, Act, Refusal, Scope, Way
from boxscore.protocols.fields import Field, all_fields
from boxscore.protocols.protocol import ProtocolScope, describing_fields
from support.each import each
from support.insides import check_mergeable, prepared
from support.scenes import BOX_PROTOCOLS, Scene, det, obj, outcomes, rules
from support.scenes import evaluate as evaluate_scene
from support.shipped import box_protocols, shipped

FIELDS = all_fields(Protocol)


@pytest.mark.long
@each([(field,) for field in FIELDS])
def test_every_field_says_what_it_does_and_by_what_it_decides(field: Field) -> None:
    acts = field.rule.scope
    assert acts is not UNSAID
    assert acts.act in get_args(Act)
    assert (acts.act == "describes") == (acts.scope is Scope.NONE)
    for name in protocol_names():
        assert isinstance(load_protocol(name).scope.of(field.path), Scope)
    for refusal in field.rule.refuses:
        assert refusal.way in get_args(Way)
        assert not refusal.field or refusal.field in {other.path for other in FIELDS}


def test_what_describes_is_not_taken_over() -> None:
    assert describing_fields(Protocol) == ("name", "title", "aliases", "of_type")


# ---------------------------------------------------------------- the lists that were

VALUES: dict[str, list[Any]] = {
    "rounding.scores": [3],
    "rounding.stretch_scores": [True],
    "boxes.clip": ["image"],
    "ignore.regions": ["ignored regions"],
    "ignore.column_ranges": [{"all": {"height": [50, 75]}}],
    "group.treatment": ["merge"],
    "labels.unlisted": ["drop", "drop_without_object"],
    "labels.not_exhaustive": ["ignore"],
    "matching.cap_scope": ["image", "image_each", "data_set_class"],
    "matching.equal_scores": ["file_order", "last_first"],
    "matching.per_class": [False],
    "matching.ranked_files": [True],
    "matching.score_threshold": [0.1],
    "ap.interpolation": ["area", "every_point"],
    "ap.score_steps": [10],
    "ap.class_mean": ["by_images", "nanmean"],
    "ap.recall_over": ["all"],
    "ap.pool": ["classes"],
    "summary": [[{"key": "JI", "metric": "JI"}], [{"key": "MR", "metric": "MR"}, {"key": "AP"}]],
}


def changed(*changes: tuple[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {"extends": "coco"}
    for path, value in changes:
        table, _, name = path.rpartition(".")
        (values.setdefault(table, {}) if table else values)[name] = value
    return values


def every_protocol() -> Iterator[Protocol]:
    """Those that ship, and COCO's with one to three choices changed."""
    yield from shipped().values()
    single = [(path, value) for path, values in VALUES.items() for value in values]
    for count in (1, 2, 3):
        for changes in itertools.combinations(single, count):
            if len({path for path, _ in changes}) == count:
                try:
                    yield load_protocol(changed(*changes))
                except ProtocolError:
                    continue


@functools.cache
def scopes() -> tuple[ProtocolScope, ...]:
    """What the rules of each that ships say together."""
    return tuple(protocol.scope for protocol in shipped().values())


@functools.cache
def every() -> tuple[Protocol, ...]:
    """All of them, read once."""
    return tuple(every_protocol())


class _One:
    """What a message says of a metric that it does not name."""

    def __repr__(self) -> str:
        return "one"


ONE = _One()


def old_parts(p: Protocol) -> Iterator[tuple[str, str, Any, str]]:
    """What refused parts, in the order in which it was asked: field, rule, value, cause."""
    rules = p.matching
    if rules.cap_scope == "data_set_class" and (not rules.per_class or rules.equal_scores == "last_first"):
        yield (
            "matching.cap_scope",
            "be 'class' or 'image' in parts, where classes are pooled or equal scores go last_first",
            rules.cap_scope,
            "evaluate all images at once",
        )
    if p.asks_for("JI"):
        cause = "a part holds its counts, not the overlaps to count again: evaluate all images at once"
        for wrong, field, rule, got in (
            (
                rules.cap_scope in ("image_each", "data_set_class"),
                "matching.cap_scope",
                "be 'class' or 'image'",
                rules.cap_scope,
            ),
            (p.ap.pool == "classes", "ap.pool", "be 'none'", p.ap.pool),
        ):
            if wrong:
                yield field, f"{rule} in parts where the summary has JI", got, cause
    if any(row.harmonic_of or row.images != "all" for row in p.summary):
        rule = "not have a metric with harmonic_of or images, in parts"
        yield "summary", rule, ONE, "evaluate all images at once"
    if p.rounding.stretch_scores:
        cause = "the least and the largest score are known when parts are merged: evaluate all at once"
        for wrong, field, rule, got in (
            (not rules.ranked_files, "matching.ranked_files", "be true", rules.ranked_files),
            (not rules.per_class, "matching.per_class", "be true", rules.per_class),
            (
                rules.equal_scores == "last_first",
                "matching.equal_scores",
                "be 'image_order' or 'file_order'",
                rules.equal_scores,
            ),
            (
                rules.cap_scope == "data_set_class",
                "matching.cap_scope",
                "be 'class' or of an image",
                rules.cap_scope,
            ),
            (
                rules.score_threshold > -np.inf,
                "matching.score_threshold",
                "be left out",
                rules.score_threshold,
            ),
            (p.group.treatment != "count", "group.treatment", "be 'count'", p.group.treatment),
            (bool(p.ignore.regions), "ignore.regions", "be left out", p.ignore.regions),
            (p.asks_for("JI"), "summary", "have no JI", "JI"),
        ):
            if wrong:
                yield field, f"{rule} in parts where scores are stretched", got, cause


def messages(old: Iterator[tuple[str, str, Any, str]]) -> list[str]:
    return [str(ProtocolError(field, rule, got=repr(got), cause=cause)) for field, rule, got, cause in old]


def message(check: Any, *given: Any, **options: Any) -> str:
    try:
        check(*given, **options)
    except ProtocolError as error:
        return str(error)
    return ""


@pytest.mark.long
def test_parts_are_refused_in_the_same_words() -> None:
    for protocol in every():
        old = messages(old_parts(protocol))
        assert sorted(map(str, protocol.scope.refusals("parts"))) == sorted(old), protocol
        assert message(check_mergeable, protocol) in (old or [""])
    assert sum(not protocol.scope.allows("parts") for protocol in every()) > 50


@pytest.mark.long
def test_what_ranges_and_sweeps_asked_is_answered_the_same() -> None:
    for p in every():
        splits = p.matching.cap_scope != "data_set_class" and not p.rounding.stretch_scores
        by_row = not any(
            (
                p.rounding.stretch_scores,
                p.matching.ranked_files,
                p.boxes.clip != "none",
                p.ignore.regions,
                p.keypoints.unplaced == "drop",
                p.labels.undetected == "drop",
                p.ignore.void,
                p.labels.inexhaustive_images == "drop",
            )
        )
        more = (
            *(p.ignore.column_ranges, p.ignore.regions, p.matching.ranked_files, p.boxes.clip != "none"),
            *(p.ignore.flags, p.boxes.longer_sides > 0, p.labels.undetected == "drop"),
            *(p.ignore.void, p.matching.order == "file"),
        )
        labels = p.labels.unlisted == "drop" or p.labels.not_exhaustive == "ignore"
        splits = splits and p.ap.interpolation != "ends_of_ties"
        splits = splits and not any(row.harmonic_of or row.images != "all" for row in p.summary)
        assert p.scope.allows("ranges") == (splits and p.matching.scores == "given")
        assert p.scope.is_prepared_by_row == by_row
        assert (p.scope.widest("prepares") <= Scope.IMAGE) == (not p.rounding.stretch_scores)
        ranked = p.matching.scores == "given" and p.matching.candidate != "most_pairs"
        ranked = (
            ranked
            and p.labels.annotators == "all"
            and p.labels.undetected != "drop"
            and p.matching.order != "file"
        )
        assert p.scope.allows("cuts") == (p.rounding.scores is None and not p.keypoints.scores and ranked)
        assert p.scope.allows("plain_tables") == (not any(more))
        assert p.scope.allows("unlabeled_images") == (not labels)


@pytest.mark.long
def test_an_evaluator_refuses_in_the_same_words() -> None:
    over_all = (
        "matching.cap_scope must be 'class' or 'image' for an Evaluator. Got 'data_set_class'; max "
        "detections over all images cannot be applied batch by batch: evaluate a results file."
    )
    stretched = (
        "rounding.stretch_scores must be false for an Evaluator. Got true; the least and the largest score are "
        "known at the end: evaluate a results file."
    )
    for protocol in every():
        old = over_all if protocol.matching.cap_scope == "data_set_class" else ""
        old = old or (stretched if protocol.rounding.stretch_scores else "")
        assert message(protocol.scope.check, "batches") == old
        assert protocol.scope.allows("batches") == protocol.scope.is_matched_alone
    for name in ("lvis-fixed", "widerface", "coco"):
        protocol = load_protocol(name)
        assert message(boxscore.Evaluator, protocol=protocol) == message(protocol.scope.check, "batches")


@each(
    [
        (
            {"matching": {"equal_scores": "last_first", "per_class": False}},
            "matching.per_class must be true where equal scores go last_first. Got false.",
        ),
        (
            {
                "similarity": "mask",
                "masks": {"box_only_truth": "absorb"},
                "ignore": {"outside": "absorb", "detection_area": "mask"},
            },
            "ignore.outside must be \"ignore\" where ground truths may lack their masks. Got 'absorb'.",
        ),
        (
            {
                "similarity": "mask",
                "masks": {"box_only_truth": "absorb"},
                "ignore": {"height_slack": 1.25, "detection_area": "mask"},
            },
            "ignore.height_slack must be 0 where ground truths may lack their masks. Got 1.25.",
        ),
        (
            {
                "similarity": "mask",
                "masks": {"box_only_truth": "absorb"},
                "ignore": {"detection_area": "mask"},
                "matching": {"iou_thresholds": [0.5], "class_thresholds": {"a": [0.7]}},
            },
            "matching.class_thresholds must be left out where ground truths may lack their masks. Got some.",
        ),
        (
            {"group": {"treatment": "merge"}, "ignore": {"height_slack": 1.25}},
            "ignore.height_slack must be 0 where groups are merged. Got 1.25.",
        ),
        (
            {
                "group": {"treatment": "merge"},
                "matching": {"iou_thresholds": [0.5], "class_thresholds": {"a": [0.7]}},
            },
            "matching.class_thresholds must be left out where groups are merged. Got some.",
        ),
        (
            {"summary": [{"key": "JI", "metric": "JI"}], "ignore": {"outside": "iof"}},
            "ignore.outside must be \"ignore\" where the summary has JI. Got 'iof'.",
        ),
        (
            {"summary": [{"key": "JI", "metric": "JI"}], "ignore": {"height_slack": 1.25}},
            "ignore.height_slack must be 0 where the summary has JI. Got 1.25.",
        ),
        (
            {
                "group": {"treatment": "merge", "weight": 0.5},
                "ap": {"interpolation": "area", "recall_over": "all"},
            },
            'ap.recall_over must be "counted" where groups have weights. Got "all".',
        ),
        (
            {"group": {"treatment": "merge", "weight": 0.5}},
            'group.weight must be 0 or 1 unless ap.interpolation is "area". Got 0.5; parts of an object have no '
            "place at recall points.",
        ),
    ]
)
def test_what_does_not_go_together_is_refused_in_the_same_words(values: dict[str, Any], text: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        load_protocol({"extends": "coco", **values})
    assert str(caught.value) == text


# ---------------------------------------------------------------- how tables behave


def data(protocol: Protocol) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    """Boxes in and beyond their image, and in a region; the size of an image beside some detections alone."""
    region = protocol.ignore.regions or "region"
    truth = boxscore.GroundTruth.from_arrays(
        [0, 0, 1],
        ["a", region, "a"],
        [[10, 10, 30, 30], [60, 60, 99, 99], [5, 5, 20, 20]],
        images=Images.build([0, 1], sizes=[[100, 100], [np.nan, np.nan]]),
        categories=["a", region],
    )
    found = boxscore.Detections.from_arrays(
        [0, 0, 0, 1, 1],
        ["a"] * 5,
        [[10, 10, 31, 31], [-9, 80, 30, 120], [65, 65, 90, 90], [4, 4, 19, 19], [40, 40, 90, 90]],
        [0.7123, 0.6, 0.5, 0.2, 0.41],
        columns={
            "image_width": np.array([np.nan, np.nan, np.nan, np.nan, 50]),
            "image_height": np.array([np.nan, np.nan, np.nan, np.nan, 50]),
        },
    )
    return truth, align(found, truth)


def is_prepared_apart(protocol: Protocol, groups: list[list[int]]) -> bool:
    """Whether groups of detections are prepared alone as they are with all others."""

    def columns(rows: list[int]) -> list[tuple[Any, ...]]:
        _, made = prepared(truth, found.take(np.array(rows)), protocol)
        if len(made) != len(rows):
            raise InputError("rows", "be all there")
        scores = made.scores.tolist() if made.scored else [None] * len(made)
        return [(*box, score) for box, score in zip(made.boxes.tolist(), scores, strict=True)]

    truth, found = data(protocol)
    order = np.lexsort((-found.scores, found.image)) if protocol.matching.ranked_files else None
    found = found if order is None else found.take(order)
    try:
        whole = columns(list(range(len(found))))
        return whole == [row for group in groups for row in columns(group)]
    except InputError:
        return False


OF_BOXES = box_protocols()


@pytest.mark.long
@each([*OF_BOXES, *(p for p in itertools.islice(every_protocol(), 80) if p.name == "custom")])
def test_what_is_prepared_by_row_is_prepared_apart(case: str | Protocol) -> None:
    protocol = load_protocol(case)
    apart = is_prepared_apart(protocol, [[0], [1], [2], [3], [4]])
    if protocol.scope.is_prepared_by_row:
        assert apart
    elif (
        not protocol.matching.ranked_files
        and protocol.labels.undetected != "drop"
        and protocol.labels.inexhaustive_images != "drop"
    ):
        assert not apart  # no class of this data is undetected, and every image is annotated in full
    if protocol.scope.widest("prepares") <= Scope.IMAGE and not protocol.ignore.regions:
        assert is_prepared_apart(protocol, [[0, 1, 2], [3, 4]])
    elif protocol.rounding.stretch_scores:
        assert not is_prepared_apart(protocol, [[0, 1, 2], [3, 4]])


def test_the_order_of_a_file_is_that_of_its_images() -> None:
    protocol = load_protocol({"extends": "coco", "matching": {"ranked_files": True}})
    truth, found = data(protocol)
    assert not protocol.scope.is_prepared_by_row
    prepared(truth, found.take(np.array([3])), protocol)
    with pytest.raises(InputError, match="come by descending score"):
        prepared(truth, found, protocol)


SCENE = Scene(
    [obj(1, 1, 20, 20), obj(41, 1, 60, 20, image=1), obj(1, 1, 20, 20, image=2)],
    [
        det(1, 1, 20, 19, score=0.9, image=1),
        det(1, 1, 20, 20, score=0.8),
        det(1, 2, 20, 20, score=0.8),
        det(41, 1, 60, 20, score=0.7, image=1),
        det(1, 1, 20, 18, score=0.95, image=2),
    ],
    images=3,
)


def matched_apart(protocol: Protocol) -> tuple[str, str]:
    """Outcomes of all detections: matched together, and image by image."""
    together = outcomes(evaluate_scene(SCENE, protocol))
    apart = [""] * len(SCENE.detections)
    for image in range(SCENE.images):
        rows = [n for n, one in enumerate(SCENE.detections) if one.image == image]
        alone = Scene(
            [one for one in SCENE.objects if one.image == image],
            [SCENE.detections[n] for n in rows],
            images=3,
        )
        for n, letter in zip(rows, outcomes(evaluate_scene(alone, protocol)), strict=True):
            apart[n] = letter
    return together, "".join(apart)


@pytest.mark.long
@each(BOX_PROTOCOLS)
def test_what_is_matched_alone_is_matched_image_by_image(name: str) -> None:
    for cap in ([1], [2], []):
        protocol = rules(name, matching={"max_detections": cap})
        if protocol.scope.is_matched_alone:
            together, apart = matched_apart(protocol)
            assert together == apart


def test_a_cap_over_the_data_set_is_not_met_image_by_image() -> None:
    protocol = rules("coco", matching={"max_detections": [2], "cap_scope": "data_set_class"})
    assert protocol.scope.of("matching.max_detections") == Scope.CLASS
    assert not protocol.scope.is_matched_alone
    together, apart = matched_apart(protocol)
    assert together != apart


def test_tools_that_need_more_than_boxes_fit_no_plain_tables() -> None:
    truth, found = SCENE.tables()
    for name in OF_BOXES:
        protocol = load_protocol(name)
        if not protocol.scope.allows("plain_tables") or not protocol.scope.allows("unlabeled_images"):
            assert not fits(protocol, truth, found)


def test_a_refusal_says_what_must_change() -> None:
    for field in FIELDS:
        for refusal in field.rule.refuses:
            assert isinstance(refusal, Refusal)
            asked_only = refusal.way in ("classes", "ranges", "cuts", "plain_tables", "unlabeled_images")
            assert bool(refusal.rule) != asked_only
