"""Protocols: the shipped ones, a user's own, the grids to the last bit, and signatures."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from pycocotools.cocoeval import Params

import boxscore
from boxscore import InputError, Protocol, ProtocolError, load_protocol
from boxscore.protocols import IOU_TYPES, protocol_names, protocol_of_type, protocol_toml, read_toml
from boxscore.protocols.fields import ALWAYS, OTHER_PROTOCOLS, all_fields, meant_protocols
from boxscore.protocols.grids import colon, grid
from boxscore.protocols.protocol import FIRST_WORDS, SimilarityName
from boxscore.protocols.summary import summary_title
from boxscore.protocols.tables.matching import MatchingRules
from support.each import each

V = boxscore.__version__
SIGNATURES = {
    line.split("|")[1]: f"{line}|v:{V}"
    for line in (Path(__file__).parent / "signatures.txt").read_text(encoding="utf-8").splitlines()
}
"""Every protocol that ships, as its signature has read since it ships."""


def test_shipped_protocols() -> None:
    assert list(SIGNATURES) == protocol_names()


@each(protocol_names())
def test_every_shipped_protocol_goes_by_its_own_name(name: str) -> None:
    protocol = load_protocol(name)
    assert protocol.name == name
    assert protocol.title
    assert protocol.rows
    assert protocol.signature().startswith(f"boxscore|{name}|")


def test_shipped_protocols_of_one_signature_make_the_same_choices() -> None:
    """Several tools score as COCO does; a choice that the signature hides would show here."""
    rest: dict[str, list[Protocol]] = {}
    for name in protocol_names():
        protocol = load_protocol(name)
        bare = dataclasses.replace(
            protocol,
            name="",
            title="",
            aliases=(),
            of_type={},
            summary=(),
            matching=dataclasses.replace(protocol.matching, largest_threshold=1.0),  # changes none of them
        )
        rest.setdefault(protocol.signature().split("|", 2)[2], []).append(bare)
    for protocols in rest.values():
        assert all(protocol == protocols[0] for protocol in protocols)


@each(SIGNATURES)
def test_signature(name: str) -> None:
    assert load_protocol(name).signature() == SIGNATURES[name]


@pytest.mark.long
def test_every_shipped_protocol_is_printed_as_toml_that_loads_as_itself(tmp_path: Path) -> None:
    for name in protocol_names():
        path = tmp_path / f"{name}.toml"
        path.write_text(protocol_toml(name), encoding="utf-8")
        assert load_protocol(path) == load_protocol(name)


def test_a_protocol_is_a_frozen_value() -> None:
    coco = load_protocol("coco")
    assert load_protocol(coco) is coco
    assert load_protocol("coco") == coco
    with pytest.raises(dataclasses.FrozenInstanceError):
        coco.name = "mine"  # type: ignore[misc]


# ---------------------------------------------------------------- grids


def test_coco_grids_have_pycocotools_bits() -> None:
    coco, params = load_protocol("coco"), Params("bbox")
    assert np.array(coco.matching.iou_thresholds).tobytes() == params.iouThrs.tobytes()
    assert np.array(coco.ap.recall_points).tobytes() == params.recThrs.tobytes()
    assert list(coco.matching.max_detections) == params.maxDets
    assert [list(pair) for pair in coco.ignore.area_ranges.values()] == params.areaRng
    assert list(coco.ignore.area_ranges) == params.areaRngLbl
    assert coco.ap.precision_epsilon == np.spacing(1)
    assert coco.matching.effective_thresholds.tolist() == [min(t, 1 - 1e-10) for t in params.iouThrs.tolist()]


def test_decimal_literals_are_another_grid() -> None:
    """Why grids are built: one IoU threshold and ten recall points differ."""
    literals = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
    linspace = grid({"start": 0.5, "stop": 0.95, "count": 10}, name="g")
    assert sum(a != b for a, b in zip(literals, linspace, strict=True)) == 1
    points = grid({"start": 0, "stop": 1, "count": 101}, name="g")
    assert sum(a != round(a, 2) for a in points) == 10
    own = {"extends": "coco", "matching": {"iou_thresholds": literals}}
    assert load_protocol(own).signature() != load_protocol({"extends": "coco"}).signature()


@pytest.mark.parametrize("count", [1, 2, 3, 11, 101, 1001])
def test_linspace(count: int) -> None:
    values = grid({"start": 0.1, "stop": 0.9, "count": count}, name="g")
    assert np.array(values).tobytes() == np.linspace(0.1, 0.9, count).tobytes()


def test_arange_is_numpys() -> None:
    values = grid({"start": 0, "stop": 1.1, "step": 0.1, "rule": "arange"}, name="g")
    assert np.array(values).tobytes() == np.arange(0, 1.1, 0.1).tobytes()
    assert values == load_protocol("voc2007-numpy").ap.recall_points
    assert values == grid({"start": 0, "stop": 1, "count": 11}, name="g")  # its signature says ap:11


def test_colon_is_matlabs() -> None:
    """The values that MATLAB's 0:0.1:1 has: the lower half from below, the upper half from above."""
    kit = [0.0, 0.1, 0.2, 3 * 0.1, 0.4, 0.5, 1 - 4 * 0.1, 1 - 3 * 0.1, 1 - 2 * 0.1, 1 - 0.1, 1.0]
    assert colon(0, 0.1, 1) == kit
    assert list(load_protocol("voc2007").ap.recall_points) == kit
    assert colon(0, 0.25, 1) == [0, 0.25, 0.5, 0.75, 1]
    assert colon(0, 1, 1) == [0, 1]
    assert colon(0.5, 0.1, 0.7) == [0.5, 0.6, 0.7]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ([], "g must have at least one value. Got none."),
        ([0.5, 0.5], "g must be ascending, each value once. Got [0.5, 0.5]."),
        ([0.7, 0.5], "g must be ascending, each value once. Got [0.7, 0.5]."),
        ([1.5], "g must be a number in [0, 1]. Got 1.5."),
        ([float("nan")], "g must be a number in [0, 1]. Got nan."),
        (["0.5"], "g must be a number in [0, 1]. Got '0.5'."),
        ([True], "g must be a number in [0, 1]. Got True."),
        (0.5, "g must be a list of numbers or {start, stop, count}. Got 0.5."),
        ({"start": 0, "stop": 1}, "g.count must be a whole number >= 1. Got none."),
        ({"start": 0, "stop": 1, "count": 2.0}, "g.count must be a whole number >= 1. Got 2.0."),
        ({"start": 0, "stop": 1, "count": 0}, "g.count must be a whole number >= 1. Got 0."),
        ({"start": 0, "stop": 1, "step": 0, "rule": "colon"}, "g.step must be a number in (0, 1]. Got 0."),
        ({"stop": 1, "rule": "arange"}, "g.step must be a number in (0, 1]. Got none."),
        (
            {"start": 0, "stop": 1, "rule": "log"},
            "g.rule must be one of 'linspace', 'float32', 'hundredths', 'arange', 'colon'. Got 'log'.",
        ),
        ({"begin": 0}, "a key must be known. Got g.begin; known: count, rule, start, step, stop."),
        ({"starts": 0}, "a key must be known. Got g.starts; did you mean 'start'?"),
    ],
)
def test_bad_grids(spec: Any, text: str) -> None:
    with pytest.raises(InputError) as caught:
        grid(spec, name="g")
    assert str(caught.value) == text


# ---------------------------------------------------------------- a user's own


def test_extends_merges_tables_key_by_key() -> None:
    coco = load_protocol("coco")
    mine = load_protocol({"extends": "coco", "name": "mine", "matching": {"max_detections": [300]}})
    assert mine == dataclasses.replace(
        coco,
        name="mine",
        title="",
        aliases=(),
        of_type={},
        matching=dataclasses.replace(coco.matching, max_detections=(300,)),
    )


def test_extends_replaces_grids_ranges_and_the_summary_whole() -> None:
    mine = load_protocol(
        {
            "extends": "coco",
            "matching": {"iou_thresholds": [0.5, 0.75]},
            "ignore": {"area_ranges": {"all": [0, 50]}},
            "ap": {"recall_points": {"start": 0, "stop": 1, "count": 11}},
            "summary": [{"key": "AP"}],
        }
    )
    assert mine.matching.iou_thresholds == (0.5, 0.75)
    assert mine.ignore.area_ranges == {"all": (0.0, 50.0)}
    assert mine.ignore.crowd == "iof"
    assert len(mine.ap.recall_points) == 11
    assert [row.key for row in mine.rows] == ["AP"]


def test_what_differs_does_not_go_by_the_name_of_what_it_extends(tmp_path: Path) -> None:
    path = tmp_path / "street.toml"
    path.write_text('extends = "coco"\n[matching]\nmax_detections = [300]\n')
    mine = load_protocol(path)
    assert (mine.name, mine.title) == ("street", "")
    assert mine.signature().startswith("boxscore|street|")
    assert load_protocol({"extends": "coco"}).name == "custom"
    assert load_protocol({"extends": "coco", "name": "n", "title": "t"}).title == "t"


def test_extends_goes_over_several_files(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "caps.toml").write_text('extends = "voc2012"\n[matching]\nmax_detections = [7]\n')
    (tmp_path / "mine.toml").write_text('extends = "base/caps.toml"\nname = "m"\n[boxes]\npixel_offset = 0\n')
    mine = load_protocol(str(tmp_path / "mine.toml"))
    assert (mine.matching.max_detections, mine.boxes.pixel_offset, mine.ap.interpolation) == ((7,), 0, "area")


def test_caps_are_sorted_and_each_is_there_once() -> None:
    mine = load_protocol({"extends": "coco", "matching": {"max_detections": [100, 1, 100]}})
    assert mine.matching.max_detections == (1, 100)


@pytest.mark.parametrize(
    ("caps", "keys"),
    [
        (
            [1, 10, 100],
            ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"],
        ),
        ([300], ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR300", "ARs", "ARm", "ARl"]),
        ([5, 300], ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR5", "AR300", "ARs", "ARm", "ARl"]),
    ],
)
def test_summary_rows_follow_the_caps(caps: list[int], keys: list[str]) -> None:
    mine = load_protocol({"extends": "coco", "matching": {"max_detections": caps}})
    assert [row.key for row in mine.rows] == keys


def test_summary_rows_follow_thresholds_and_ranges() -> None:
    mine = load_protocol(
        {"extends": "coco", "matching": {"iou_thresholds": [0.5]}, "ignore": {"area_ranges": {"all": [0, 9]}}}
    )
    assert [row.key for row in mine.rows] == ["AP", "AP50", "AR1", "AR10", "AR100"]


def test_row_titles_are_pycocotools() -> None:
    coco = load_protocol("coco")
    titles = [
        summary_title(row.metric, coco.iou_text(row), row.area, coco.caps[row.cap] or "all")
        for row in coco.rows
    ]
    assert titles[0] == "Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ]"
    assert titles[1] == "Average Precision  (AP) @[ IoU=0.50      | area=   all | maxDets=100 ]"
    assert titles[6] == "Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=  1 ]"


@pytest.mark.parametrize(
    ("keys", "columns"),
    [
        (["mAP"], ["AP"]),
        (["mAP", "mAP50", "mAR{cap}"], ["AP", "AP50", "AR100"]),
        (["mean_large"], ["mean_large"]),
        (["m", "m50", "mm", "M"], ["m", "m50", "mm", "M"]),
        (["mAP", "AP"], ["mAP", "AP"]),
        (["AP50", "mAP50", "mAP75"], ["AP50", "mAP50", "AP75"]),
        (["mmAP", "mAP"], ["mmAP", "AP"]),
    ],
)
def test_each_summary_metric_has_a_column_of_its_own_per_class(keys: list[str], columns: list[str]) -> None:
    mine = load_protocol({"summary": [{"key": key} for key in keys], "matching": {"max_detections": [100]}})
    assert list(mine.class_keys) == [row.key for row in mine.rows]
    assert list(mine.class_keys.values()) == columns


CHANGES = [
    ({"matching": {"iou_thresholds": [0.5]}}, "iou:0.50"),
    ({"matching": {"iou_thresholds": [0.5, 0.75]}}, "iou:0.5,0.75"),
    ({"matching": {"iou_thresholds": [1 / 3]}}, f"iou:{1 / 3!r}"),
    ({"matching": {"iou_thresholds": {"start": 0.5, "stop": 0.9, "count": 3}}}, "iou:0.50:0.90/3"),
    ({"matching": {"threshold_closed": False}}, "match:>"),
    ({"matching": {"candidate": "best_overall"}}, "candidate:best_overall"),
    ({"matching": {"equal_iou": "first"}}, "ties:first"),
    ({"matching": {"equal_scores": "file_order"}}, "order:file_order"),
    ({"matching": {"equal_scores": "last_first"}}, "order:last_first"),
    ({"group": {"treatment": "merge"}}, "group:merge/1"),
    ({"group": {"treatment": "merge", "weight": 0}}, "group:merge/0"),
    ({"matching": {"max_detections": []}}, "maxdet:none"),
    ({"matching": {"max_detections": [300]}}, "maxdet:300"),
    ({"matching": {"per_class": False}}, "classes:pooled"),
    ({"matching": {"iou_thresholds": [0.5, 1.0], "largest_threshold": 1.0}}, "top:1"),
    ({"matching": {"largest_threshold": 0.9}}, "top:0.9"),
    ({"ignore": {"crowd": "count"}}, "crowd:count"),
    ({"ignore": {"difficult": "ignore"}}, "difficult:ignore"),
    ({"ignore": {"area_ranges": {"all": [0, 1e10]}}}, "area:all=0-1e+10"),
    ({"ignore": {"area_ranges": {"all": [0, 1e10], "tiny": [0, 256]}}}, "area:all=0-1e+10,tiny=0-256"),
    ({"boxes": {"pixel_offset": 1}}, "offset:1"),
    ({"ap": {"interpolation": "area"}}, "ap:area"),
    ({"ap": {"recall_points": {"start": 0, "stop": 1, "count": 11}}}, "ap:11"),
    ({"ap": {"recall_points": [0.0, 0.5, 0.7]}}, "ap:0,0.5,0.7"),
    ({"ap": {"precision_epsilon": 0.0}}, "eps:0"),
    ({"ap": {"sequential_mean": True}}, "mean:sequential"),
    ({"ap": {"tie_order": "true_positives_first"}}, "equal:true_positives_first"),
    ({"ap": {"absent_classes": "zero"}}, "absent:zero"),
    ({"ap": {"pool": "classes"}}, "pool:classes"),
    ({"ap": {"class_mean": "nanmean"}}, "classmean:nanmean"),
    ({"matching": {"annotation_id_zero": "unmatched"}}, "id0:unmatched"),
    ({"matching": {"cap_scope": "image"}}, "cap:per image"),
    ({"matching": {"cap_scope": "data_set_class"}}, "cap:per class"),
    ({"boxes": {"degenerate": "drop"}}, "degenerate:drop"),
    ({"boxes": {"least_side": 2}}, "leastside:2"),
    ({"labels": {"unlisted": "drop"}}, "unlisted:drop"),
    ({"labels": {"listed_by": "verified"}}, "listed:verified"),
    ({"labels": {"not_exhaustive": "ignore"}}, "notexhaustive:ignore"),
    ({"matching": {"score_threshold": 0.05}}, "conf:0.05"),
    ({"matching": {"score_threshold": 0.0500000001}}, "conf:0.0500000001"),
    ({"matching": {"score_threshold": 0.05, "score_closed": False}}, "keep:>"),
    ({"ignore": {"detection_area": "mask"}}, "dtarea:mask"),
    ({"ignore": {"unlabeled": "ignore"}}, "nokpt:ignore"),
    ({"ignore": {"flagged": "count"}}, "flagged:count"),
    ({"ignore": {"flagged": "delete"}}, "flagged:delete"),
    ({"froc": {"false_positives_per_image": [4, 0.5]}}, "froc:0.5,4"),
    ({"froc": {"interpolation": "step"}}, "froc:0.125,0.25,0.5,1,2,4,8-step"),
    ({"ignore": {"flagged": "iof"}}, "flagged:iof"),
    ({"ignore": {"outside": "iof"}}, "outside:iof"),
    ({"ignore": {"column_ranges": {"all": {"height": [50, 75]}}}}, "ranges:all.height=50-75"),
    ({"ignore": {"height_slack": 1.25}}, "dtheight:1.25"),
    ({"ignore": {"regions": "ignored regions"}}, "regions:ignored regions"),
    ({"ignore": {"within": "center"}}, "within:center"),
    ({"labels": {"unlisted": "drop_without_object"}}, "unlisted:drop_without_object"),
    ({"labels": {"not_evaluated": ["others"]}}, "without:others"),
    ({"matching": {"iou_thresholds": [0.5], "class_thresholds": {"Car": [0.7]}}}, "classiou:Car=0.70"),
    ({"matching": {"cap_scope": "image_each"}}, "cap:per image, each"),
    ({"matching": {"ranked_files": True}}, "files:ranked"),
    ({"boxes": {"clip": "image"}}, "clip:image"),
    ({"boxes": {"longer_sides": 1}}, "longer:1"),
    ({"boxes": {"aspect_ratio": 0.41}}, "aspect:0.41"),
    ({"boxes": {"edges": "corners"}}, "edges:corners"),
    ({"boxes": {"foreground_share": "from_iou"}}, "share:from_iou"),
    ({"boxes": {"overlap_epsilon": 1e-6}}, "overlapeps:1e-06"),
    ({"ap": {"interpolation": "every_point"}}, "ap:every"),
    ({"ap": {"interpolation": "area", "score_steps": 1000}}, "steps:1000"),
    ({"ap": {"interpolation": "lines_as_they_are"}}, "ap:101-as-they-are"),
    ({"ap": {"recall_above": 0.1}}, "recallabove:0.1"),
    ({"ap": {"precision_above": 0.1}}, "precisionabove:0.1"),
    ({"ap": {"interpolation": "ends_of_ties"}}, "ap:ends-of-ties"),
    ({"similarity": "mask", "ignore": {"share": "sum"}}, "shares:sum"),
    ({"ignore": {"void": "void"}}, "void:void"),
    ({"matching": {"order": "file", "max_detections": []}}, "by:file"),
    ({"labels": {"undetected": "drop"}}, "undetected:drop"),
    ({"labels": {"annotators": "best"}}, "annotators:best"),
    ({"labels": {"inexhaustive_images": "drop"}}, "inexhaustive:drop"),
    ({"similarity": "distance", "distance": {"largest": 8}}, "sim:distance/centre/8"),
    ({"similarity": "distance", "distance": {"anchor": "point"}}, "sim:distance/point/100"),
    ({"similarity": "point_in_box"}, "sim:point-in-box/centre"),
    ({"similarity": "point_in_mask", "distance": {"anchor": "point"}}, "sim:point-in-mask/point"),
    ({"matching": {"candidate": "best_pair_first"}}, "candidate:best_pair_first"),
    ({"matching": {"candidate": "assigned_before_threshold"}}, "candidate:assigned_before_threshold"),
    ({"matching": {"equal_scores": "last_in_file_first"}}, "order:last_in_file_first"),
    ({"ap": {"recall_over": "all"}}, "recall:all"),
    ({"ap": {"class_mean": "by_images"}}, "classmean:by_images"),
    ({"ap": {"class_weights": {"person": 5, "*": 0.5}}}, "classweight:*=0.5,person=5"),
    ({"ap": {"class_weights": "importance"}}, "classweight:column=importance"),
    ({"miss_rate": {"false_positives_per_image": [1, 0.1]}}, "mr:0.1,1"),
    ({"miss_rate": {"false_positives_per_image": [1], "reading": "first_at_least"}}, "mr:1-first_at_least"),
    ({"jaccard": {"score_thresholds": [0.5, 0]}}, "ji:0,0.5"),
    ({"score_levels": {"neighbors": {"Car": ["Van", "Bus"]}}}, "neighbours:Car=Van+Bus"),
    ({"ignore": {"least_height_closed": False}}, "leastheight:>"),
    ({"ignore": {"image_ranges": {"all": {"lux": [0, 5]}}}}, "images:all.lux=0-5"),
    ({"ignore": {"flags": ["ignore", "uncertain"]}}, "flags:ignore+uncertain"),
    ({"ignore": {"unlabeled_by": "visibility"}}, "nokptby:visibility"),
    ({"keypoints": {"parts": ["keypoints", "foot_kpts"]}}, "parts:keypoints+foot_kpts"),
    ({"keypoints": {"scores": ["face_score", "score"]}}, "scored:face_score+score"),
    ({"keypoints": {"scale": "box"}}, "scale:box"),
    ({"keypoints": {"scale": "box", "box_share": 0.53}}, "scale:box*0.53"),
    ({"keypoints": {"unlabeled_similarity": "zero"}}, "nokptsim:zero"),
    ({"keypoints": {"unplaced": "drop"}}, "unplaced:drop"),
    ({"rounding": {"stretch_scores": True}}, "scores:stretched"),
    (
        {
            "matching": {"scores": "none", "max_detections": []},
            "summary": [{"key": "P", "metric": "precision"}],
        },
        "scores:none",
    ),
    ({"rounding": {"scores": 3}}, "decimals:3,all"),
    ({"rounding": {"boxes": 0}}, "decimals:all,0"),
    ({"rounding": {"scores": 3, "boxes": 1}}, "decimals:3,1"),
]


@each(CHANGES)
def test_every_choice_shows_in_the_signature(change: dict[str, Any], part: str) -> None:
    signature = load_protocol({"extends": "coco", "name": "coco", **change}).signature()
    assert part in signature.split("|")
    assert signature != SIGNATURES["coco"]


def test_every_field_of_a_protocol_is_among_the_changes_above() -> None:
    changed = {
        (table, key)
        for change, _ in CHANGES
        for table, keys in change.items()
        if isinstance(keys, dict)
        for key in keys
    }
    changed |= {
        ("keypoints", key) for key in ("sigmas", "names", "skeleton")
    }  # which stand in `sim`, or describe
    coco = load_protocol("coco")
    fields = {
        (table, field.name)
        for table in (
            *("rounding", "boxes", "group", "labels", "matching", "ignore", "ap", "froc"),
            *("miss_rate", "jaccard", "score_levels", "keypoints", "distance"),
        )
        for field in dataclasses.fields(getattr(coco, table))
    }
    assert fields == changed


def test_signatures_of_two_grids_differ() -> None:
    grids: list[Any] = [
        {"start": 0.5, "stop": 0.95, "count": 10},
        [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95],
        [0.5, 0.6, 0.95],
        [0.5, 0.5 + 2**-30],
        [0.5, 0.5 + 2**-31],
    ]
    signatures = {
        load_protocol({"extends": "coco", "matching": {"iou_thresholds": spec}}).signature() for spec in grids
    }
    assert len(signatures) == len(grids)


@each(
    [
        ({"matchin": {}}, "a key must be known. Got matchin; did you mean 'matching'?"),
        (
            {"matching": {"iou_threshold": [0.5]}},
            "a key must be known. Got matching.iou_threshold; did you mean 'iou_thresholds'?",
        ),
        ({"summary": [{"keys": "AP"}]}, "a key must be known. Got summary.keys; did you mean 'key'?"),
        (
            {"zzz": 1},
            "a key must be known. Got zzz; known: aliases, ap, boxes, distance, froc, group, ignore, jaccard, keypoints, "
            "labels, masks, matching, miss_rate, name, of_type, rounding, score_levels, similarity, summary, title.",
        ),
        (
            {"matching": {"iou_thresholds": list(np.linspace(0.1, 0.9, 65))}},
            "matching.iou_thresholds must have at most 64 values. Got 65.",
        ),
        (
            {"matching": {"largest_threshold": "0.9"}},
            "matching.largest_threshold must be a number in (0, 1]. Got '0.9'.",
        ),
        (
            {"matching": {"max_detections": [True]}},
            "matching.max_detections must be a whole number >= 1. Got True.",
        ),
        ({"boxes": {"pixel_offset": 2}}, "boxes.pixel_offset must be a number in [0, 1]. Got 2."),
        ({"boxes": {"pixel_offset": True}}, "boxes.pixel_offset must be a number in [0, 1]. Got True."),
        ({"ignore": {"area_ranges": {}}}, "ignore.area_ranges must name at least one range. Got none."),
        ({"ignore": {"area_ranges": {"all": [0]}}}, "ignore.area_ranges.all must be [low, high]. Got [0]."),
        (
            {"ignore": {"area_ranges": {"all": ["0", 1]}}},
            "ignore.area_ranges.all must be a number in [0, inf]. Got '0'.",
        ),
        (
            {"ignore": {"crowd": "iou"}},
            "ignore.crowd must be one of 'iof', 'ignore', 'count', 'delete'. Got 'iou'; did you mean 'iof'?",
        ),
        (
            {"ap": {"interpolation": "11"}},
            "ap.interpolation must be one of 'points', 'area', 'trapezoid', 'trapezoid_to_one', 'every_point', 'lines_as_they_are', 'ends_of_ties'. Got '11'.",
        ),
        (
            {"froc": {"false_positives_per_image": []}},
            "froc.false_positives_per_image must have 1 to 100000 values. Got none.",
        ),
        (
            {"froc": {"false_positives_per_image": [-1]}},
            "froc.false_positives_per_image must be a number in [0, 1e+09]. Got -1.",
        ),
        (
            {"froc": {"false_positives_per_image": 1}},
            "froc.false_positives_per_image must be a list of numbers. Got 1.",
        ),
        ({"ap": {"precision_epsilon": -1}}, "ap.precision_epsilon must be a number in [0, 1]. Got -1."),
        (
            {"similarity": "masks"},
            f"similarity must be one of {', '.join(map(repr, get_args(SimilarityName)))}. Got 'masks'; did you mean 'mask'?",
        ),
        ({"similarity": "keypoints"}, "keypoints.sigmas must be given. Got none."),
        ({"name": 3}, "name must be a string. Got 3."),
        ({"aliases": "x"}, "aliases must be a list. Got 'x'."),
        ({"aliases": [1]}, "aliases must be a string. Got 1."),
        ({"of_type": ["x"]}, "of_type must be a table of name = string. Got ['x']."),
        ({"of_type": {"segm": 1}}, "of_type.segm must be a string. Got 1."),
        (
            {"ignore": {"flagged": "ioa"}},
            "ignore.flagged must be one of 'ignore', 'iof', 'count', 'delete'. Got 'ioa'; did you mean 'iof'?",
        ),
        (
            {"matching": {"class_thresholds": {"Car": [0.7, 0.8]}}},
            "matching.class_thresholds.Car must have 1 values, one for each of matching.iou_thresholds. Got 2.",
        ),
        (
            {"matching": {"class_thresholds": {"Car": [0.7]}, "per_class": False}},
            "matching.class_thresholds must be left out where classes are pooled. Got some.",
        ),
        (
            {"ap": {"score_steps": 10}},
            'ap.score_steps must be 0 unless ap.interpolation is "area". Got 10.',
        ),
        (
            {"group": {"treatment": "merge"}, "ignore": {"outside": "iof"}},
            "ignore.outside must be \"ignore\" where groups are merged. Got 'iof'.",
        ),
        ({"rounding": {"scores": -1}}, "rounding.scores must be a whole number >= 0. Got -1."),
        ({"rounding": {"boxes": "all"}}, "rounding.boxes must be a whole number >= 0. Got 'all'."),
        ({"keypoints": {"names": [1]}}, "keypoints.names must be a string. Got 1."),
        (
            {"keypoints": {"names": ["nose"]}},
            "names must be as long as keypoints.sigmas (0). Got length 1.",
        ),
        ({"summary": [3]}, "summary must be a table. Got 3."),
        (
            {"score_levels": {"neighbors": ["Van"]}},
            "score_levels.neighbors must be a table of class = [class, ...]. Got ['Van'].",
        ),
        (
            {"score_levels": {"neighbors": {"Car": "Van"}}},
            "score_levels.neighbors.Car must be a list. Got 'Van'.",
        ),
        (
            {"summary": [{"key": "AP", "metric": "AP_R40"}], "matching": {"per_class": False}},
            "matching.per_class must be true where objects choose their detections. Got false.",
        ),
        ({"summary": [{"key": 3}]}, "summary.key must be a string. Got 3."),
        ({"summary": [{"key": "AP", "area": 3}]}, "summary AP: area must be a string. Got 3."),
        ({"title": ["x"]}, "title must be a string. Got ['x']."),
    ]
)
def test_bad_protocols(values: dict[str, Any], text: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        load_protocol(values)
    assert str(caught.value) == text


def test_the_extended_protocol_is_not_changed() -> None:
    values: dict[str, Any] = {"extends": "coco", "matching": {"max_detections": [3]}}
    load_protocol(values)
    assert values == {"extends": "coco", "matching": {"max_detections": [3]}}


@pytest.mark.parametrize(
    ("other", "cause"),
    [
        ("voc207", "did you mean 'voc2007'?"),
        ("coco.tom", "did you mean 'coco'?"),
        ("COCO", "did you mean 'coco'?"),
        ("argoverse", "boxscore protocols lists them."),
        ("", "boxscore protocols lists them."),
    ],
)
def test_unknown_names(other: str, cause: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        load_protocol(other)
    assert str(caught.value) == f"protocol must be a known name or a .toml file. Got {other!r}; {cause}"


def test_a_circle_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('extends = "b.toml"')
    (tmp_path / "b.toml").write_text('extends = "a.toml"')
    with pytest.raises(ProtocolError) as caught:
        load_protocol(tmp_path / "a.toml")
    assert str(caught.value) == (
        f"{tmp_path / 'a.toml'}: extends must not go in a circle. Got a.toml -> b.toml -> a.toml."
    )


def test_read_toml(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("a = 1")
    assert read_toml(tmp_path / "x.toml") == {"a": 1}
    assert isinstance(load_protocol("coco"), Protocol)


# ---------------------------------------------------------------- the fields


def test_rules_made_in_python_are_checked_as_those_read_from_toml() -> None:
    with pytest.raises(ProtocolError) as caught:
        MatchingRules(score_threshold="high")  # type: ignore[arg-type]
    assert str(caught.value) == "matching.score_threshold must be a number in [-inf, inf]. Got 'high'."
    assert caught.value.name == "matching.score_threshold"
    assert Protocol("mine", boxes={"pixel_offset": 1}).boxes.pixel_offset == 1  # type: ignore[arg-type]


def test_every_field_says_what_it_is() -> None:
    for field in all_fields(load_protocol("coco")):
        if field.path != "summary":
            assert field.rule.doc.endswith("."), field.path
            assert field.rule.check.values, field.path


def test_words_of_the_signature_are_each_there_once() -> None:
    keys = [field.rule.word.key for field in all_fields(load_protocol("coco")) if field.rule.word]
    assert len(set(keys)) == len(keys)
    assert set(FIRST_WORDS) <= set(keys)


def test_what_the_signature_leaves_out_is_cocos() -> None:
    coco = load_protocol("coco")
    for field in all_fields(coco):
        word = field.rule.word
        if word is not None and word.silent is not ALWAYS:
            assert field.of(coco) == word.silent, field.path


def test_docstrings_say_what_the_fields_say() -> None:
    text = inspect.getdoc(MatchingRules) or ""
    assert (
        "Attributes\n----------\niou_thresholds : grid in (0, 1]\n    The least overlap for a match" in text
    )


# ---------------------------------------------------------------- what stands in for a protocol


@pytest.mark.parametrize("iou_type", list(IOU_TYPES))
def test_coco_says_which_protocol_takes_its_place(iou_type: str) -> None:
    coco = load_protocol("coco")
    assert protocol_of_type(coco, iou_type) == load_protocol(IOU_TYPES[iou_type])


def test_what_differs_from_coco_is_not_replaced_by_cocos_own() -> None:
    mine = load_protocol({"extends": "coco", "name": "mine", "matching": {"max_detections": [7]}})
    assert mine.of_type == {}
    masks = protocol_of_type(mine, "segm")
    assert (masks.name, masks.similarity, masks.matching.max_detections) == ("mine-segm", "mask", (7,))
    with pytest.raises(ProtocolError) as caught:
        protocol_of_type(mine, "keypoints")
    assert "protocol mine must compare keypoints" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("voc", "'voc2007' or 'voc2012'"),
        ("pascal", "'voc2007' or 'voc2012'"),
        ("PASCAL-VOC", "'voc2007' or 'voc2012'"),
        ("voc2010", "'voc2012'"),
        ("VOC2007", "'voc2007'"),
        ("coco2017", "'coco'"),
        ("coco_segm", "'coco-segm'"),
        ("lvis1", "'lvis'"),
        ("LVIS-v1.0", "'lvis'"),
        ("openimages", "'openimages-v2' or 'openimages-challenge'"),
        ("yolov8", "'ultralytics' or 'ultralytics-old'"),
        ("dota2", "'dota-v1.5'"),
    ],
)
def test_what_others_call_a_protocol(name: str, meant: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        load_protocol(name)
    assert str(caught.value) == (
        f"protocol must be a known name or a .toml file. Got {name!r}; did you mean {meant}?"
    )


def test_other_names_lead_to_protocols_that_are_there() -> None:
    known = protocol_names()
    for name, meant in OTHER_PROTOCOLS.items():
        assert name not in known
        assert set(meant) <= set(known)
        assert meant_protocols(name, known) == list(meant)


def test_a_protocol_pickles_once_its_rules_act() -> None:
    """Partitions and parts travel with it."""
    for name in protocol_names():
        protocol = load_protocol(name)
        assert protocol.does is protocol.does
        assert pickle.loads(pickle.dumps(protocol)) == protocol
