"""Every field of a protocol is known to an oracle: a new one is not held by the tests of others."""

from __future__ import annotations

import ast
from pathlib import Path

import boxscore
from boxscore.protocols import Protocol, protocol_names
from boxscore.protocols.fields import Field, all_fields
from support.each import each
from support.fields_read import aliases, fields_read

ROOT = Path(__file__).parents[2]
DECIDING = [field for field in all_fields(Protocol) if field.rule.scope.act != "describes"]
TABLES = {field.table for field in DECIDING if field.table}


def read_by_the_plain_oracle() -> set[str]:
    tree = ast.parse((ROOT / "tests" / "oracles" / "plain.py").read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    read = {
        found
        for function in functions
        for found in fields_read(function, aliases(ast.walk(function), TABLES), TABLES)
    }
    return {f"{table}.{name}" for table, name in read}


PLAIN = read_by_the_plain_oracle()

ELSEWHERE = {
    "similarity": "tests/similarity/test_pairs.py",
    "summary": "tests/scoring/test_summary_kinds.py",
    "rounding.stretch_scores": "tests/extensions/crowds/test_crowd_benchmarks.py",
    "boxes.least_side": "qa/real/test_real_dota.py",
    "boxes.longer_sides": "tests/extensions/crowds/test_bdd100k.py",
    "boxes.clip": "tests/extensions/crowds/test_crowd_benchmarks.py",
    "boxes.aspect_ratio": "tests/extensions/crowds/test_crowd_benchmarks.py",
    "boxes.edges": "tests/extensions/crowds/test_kitti_benchmark.py",
    "boxes.foreground_share": "tests/extensions/crowds/test_tiny_benchmarks.py",
    "masks.boundary_dilation": "qa/real/test_real_lvis.py",
    "masks.box_only_truth": "tests/extensions/federated/test_open_images.py",
    "masks.precision": "tests/extensions/federated/test_open_images.py",
    "keypoints.sigmas": "tests/extensions/keypoints/test_keypoints.py",
    "keypoints.parts": "tests/extensions/keypoints/test_keypoint_benchmarks.py",
    "keypoints.scores": "tests/extensions/keypoints/test_keypoint_benchmarks.py",
    "keypoints.scale": "tests/extensions/keypoints/test_keypoint_benchmarks.py",
    "keypoints.box_share": "tests/extensions/keypoints/test_keypoint_benchmarks.py",
    "keypoints.unlabeled_similarity": "tests/extensions/keypoints/test_keypoint_benchmarks.py",
    "keypoints.unplaced": "tests/extensions/keypoints/test_keypoint_benchmarks.py",
    "distance.largest": "tests/extensions/crowds/test_distance.py",
    "distance.anchor": "tests/extensions/crowds/test_points.py",
    "ignore.flags": "tests/extensions/crowds/test_tiny_benchmarks.py",
    "ignore.detection_area": "tests/extensions/masks/test_mask_parity.py",
    "ignore.unlabeled": "tests/extensions/keypoints/test_keypoints.py",
    "ignore.unlabeled_by": "tests/extensions/keypoints/test_keypoint_benchmarks.py",
    "ignore.column_ranges": "tests/extensions/crowds/test_crowd_benchmarks.py",
    "ignore.image_ranges": "tests/extensions/keypoints/test_keypoint_benchmarks.py",
    "ignore.least_height_closed": "tests/extensions/crowds/test_kitti_benchmark.py",
    "ignore.height_slack": "tests/extensions/crowds/test_crowd_benchmarks.py",
    "ignore.share": "tests/extensions/crowds/test_cityscapes.py",
    "ignore.void": "tests/extensions/crowds/test_cityscapes.py",
    "ignore.regions": "tests/extensions/crowds/test_crowd_benchmarks.py",
    "ignore.within": "tests/extensions/regions/test_regions.py",
    "group.treatment": "tests/extensions/federated/test_open_images.py",
    "group.weight": "tests/extensions/federated/test_open_images.py",
    "labels.annotators": "tests/extensions/scoreless/test_phrase_metrics.py",
    "labels.inexhaustive_images": "tests/extensions/scoreless/test_phrase_metrics.py",
    "labels.listed_by": "tests/extensions/federated/test_open_images.py",
    "labels.not_exhaustive": "tests/extensions/federated/test_lvis.py",
    "labels.undetected": "tests/extensions/federated/test_xview.py",
    "labels.not_evaluated": "tests/extensions/crowds/test_kitti_benchmark.py",
    "matching.order": "tests/extensions/federated/test_xview.py",
    "matching.annotation_id_zero": "tests/parity/test_id_zero.py",
    "matching.ranked_files": "tests/extensions/crowds/test_crowd_benchmarks.py",
    "matching.scores": "tests/extensions/scoreless/test_language_models.py",
    "ap.recall_above": "tests/extensions/crowds/test_distance.py",
    "ap.precision_above": "tests/extensions/crowds/test_distance.py",
    "ap.class_weights": "tests/rules/test_class_weights.py",
    "jaccard.score_thresholds": "tests/support/crowd_cases.py",
    "score_levels.neighbors": "tests/extensions/crowds/test_kitti_benchmark.py",
}
"""Fields that the plain oracle does not know, and the tests whose oracle, or cases by hand, decide about them."""

NOT_DRAWN = {
    "rounding.scores": "tests/data/test_rounding.py",
    "rounding.boxes": "tests/data/test_rounding.py",
    "ap.pool": "tests/support/crowd_cases.py",
}
"""Fields that the plain oracle knows and that random protocols leave as they are."""


def test_every_field_is_known_to_an_oracle() -> None:
    assert {field.path for field in DECIDING} - PLAIN == set(ELSEWHERE)


def test_random_protocols_draw_every_field_that_the_plain_oracle_knows() -> None:
    tree = ast.parse((ROOT / "tests" / "rules" / "test_every_protocol.py").read_text(encoding="utf-8"))
    (drawing,) = (
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "protocols"
    )
    drawn = {node.value for node in ast.walk(drawing) if isinstance(node, ast.Constant)}
    not_drawn = {field.path for field in DECIDING if field.path in PLAIN and field.name not in drawn}
    assert not_drawn == set(NOT_DRAWN)


@each([(field.path, field) for field in DECIDING if field.path in ELSEWHERE | NOT_DRAWN])
def test_tests_that_know_a_field_name_it_or_a_protocol_with_it(path: str, field: Field) -> None:
    usual = field.of(boxscore.load_protocol("coco"))
    with_it = [name for name in protocol_names() if field.of(boxscore.load_protocol(name)) != usual]
    text = (ROOT / (ELSEWHERE | NOT_DRAWN)[path]).read_text(encoding="utf-8")
    assert any(word in text for word in (field.name, *(f'"{name}"' for name in with_it)))
