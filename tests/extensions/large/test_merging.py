"""Parts merge to the bits of one evaluation, whatever the partition; and what does not fit is refused."""

from __future__ import annotations

import dataclasses
import io
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore import diagnostics
from boxscore.data.alignment import align, of_images
from boxscore.data.vocabulary import Categories
from boxscore.distributed import MergedEvaluation, Part, load_part, merge, part_of
from boxscore.extensions.pages.plots.curves import MissRateDisplay
from boxscore.extensions.weights.resampling import Groups
from boxscore.protocols import protocol_names
from support import crowd_cases, every_kind, limits
from support.each import each
from support.every_kind import every
from support.examples import examples
from support.parted import Tables, bits, columns_of, drawn_parts, parts_of, scene, whole


def check(tables: Tables, protocol: Any, data: st.DataObject) -> None:
    parts = data.draw(st.permutations(drawn_parts(tables, protocol, data)), label="order of the parts")
    if parts:
        saved = [Part.from_bytes(part.to_bytes()) for part in parts]
        assert bits(merge(saved)) == bits(whole(tables, protocol))


test_coco = every(every_kind.coco, check, 25)
test_voc_whose_equal_scores_go_in_file_order = every(every_kind.voc, check, 20)
test_masks_and_keypoints = every(every_kind.masks_and_keypoints, check, 4)
test_federated = every(every_kind.federated, check, 40)
test_groups_that_count_in_part = every(every_kind.groups_in_part, check, 15)
test_rotated_boxes = every(every_kind.rotated_boxes, check, 15)


@pytest.mark.parametrize("name", crowd_cases.PROTOCOLS)
@given(seed=st.integers(0, 10_000), data=st.data())
@settings(max_examples=examples(12))
def test_crowds_faces_and_drones(name: str, seed: int, data: st.DataObject) -> None:
    check(crowd_cases.crowd_case(seed, name), crowd_cases.crowd_protocol(name), data)


# ---------------------------------------------------------------- diagnostics


def merged(tables: Tables, protocol: Any = "coco") -> MergedEvaluation:
    parts = parts_of(tables, protocol, np.arange(len(tables[0].images)) % 3)
    return merge([Part.from_bytes(part.to_bytes(), source=f"rank{n}.npz") for n, part in enumerate(parts)])


def test_bootstrap_slices_and_confidence_of_merged_parts() -> None:
    tables = scene()
    one, other = whole(tables, "coco"), merged(tables)
    for question in (
        lambda e: diagnostics.bootstrap_intervals(e).to_frame(),
        lambda e: diagnostics.slice_scores(e, by="night").to_frame(),
        lambda e: diagnostics.operating_points(e).to_frame(),
        lambda e: diagnostics.confidence_curve(e).to_frame(),
        lambda e: diagnostics.threshold_guarantee(e, recall=0.2).printed_frame(),
        lambda e: diagnostics.froc_scores(e).to_frame(),
        lambda e: e.summary,
        lambda e: e.per_class,
        lambda e: e.curves(area="small"),
    ):
        assert question(other).equals(question(one))


@pytest.mark.long
@each(["crowdhuman", "JI of ranges and thresholds", "citypersons", "widerface", "visdrone"])
def test_weights_of_images_and_plots_of_merged_crowds(name: str) -> None:
    rules = crowd_cases.crowd_protocol(name)
    tables = crowd_cases.tables([image for seed in range(3, 8) for image in crowd_cases.scene(seed)])
    one, other = whole(tables, rules), merged(tables, rules)
    for question in (
        lambda e: diagnostics.bootstrap_intervals(e).to_frame(),
        lambda e: diagnostics.froc_scores(e).to_frame(),
        lambda e: e.summary,
        lambda e: e.per_class,
    ):
        assert question(other).equals(question(one))
    pytest.importorskip("matplotlib")
    of_merged, of_whole = (MissRateDisplay.from_evaluation(e) for e in (other, one))
    assert np.array_equal(of_merged.missed, of_whole.missed)


def test_a_slice_of_merged_crowds_is_that_of_all_at_once() -> None:
    tables = crowd_cases.tables([image for seed in range(3, 8) for image in crowd_cases.scene(seed)])
    one, other = whole(tables, "crowdhuman"), merged(tables, "crowdhuman")
    slices = Groups((np.arange(len(one.images)) % 3 > 0).astype(np.uint8), 0, 2)
    ours, all_images = other._weighted_metrics(other.protocol.rows, slices), other.metrics
    for mine, theirs in zip(ours, one._weighted_metrics(one.protocol.rows, slices), strict=True):
        assert mine.tobytes() == theirs.tobytes()
    at = list(all_images).index("JI")
    assert ours.values[1, at, -1] != all_images["JI"]


def test_a_jaccard_index_needs_all_overlaps(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = crowd_cases.tables([image for seed in range(3, 8) for image in crowd_cases.scene(seed)])
    limits.few_pairs_at_a_time(monkeypatch, 1)
    limits.few_pairs_held(monkeypatch, 0)
    with pytest.raises(boxscore.InputError, match="overlapping pairs must be all kept for the Jaccard"):
        whole(tables, "crowdhuman").metrics  # noqa: B018


@pytest.mark.long
@each(
    [
        ("error_types", {}),
        ("confusion_matrix", {}),
        ("image_scores", {}),
        ("label_suspects", {}),
        ("localization_recall_precision", {}),
        ("tie_bounds", {}),
        ("calibration_error", {}),
        ("reliability", {}),
        ("slice_scores", {"by": "size"}),
    ]
)
def test_what_needs_rows_is_refused_by_name(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(boxscore.InputError, match="merged parts store only scores and outcomes"):
        getattr(diagnostics, name)(merged(scene()), **options)


@each(["ground_truth", "detections", "matches", "outcomes", "_matcher"])
def test_rows_are_refused_by_name(name: str) -> None:
    with pytest.raises(boxscore.InputError, match="of merged parts must be computed from tables"):
        getattr(merged(scene()), name)


@pytest.mark.long
def test_two_merged_results_are_compared_as_two_whole_ones() -> None:
    truth, found = scene()
    worse = found.replaced(scores=np.roll(found.scores, 7))
    results = [
        {"a": of((truth, found)), "b": of((truth, worse))} for of in (lambda t: whole(t, "coco"), merged)
    ]
    one, other = (diagnostics.compare_detectors(pair, resamples=20) for pair in results)
    columns = [name for name in one.to_frame() if name != "decided_by_ties"]
    assert other.total_frame()[columns].equals(one.total_frame()[columns])
    assert other.total_frame()["decided_by_ties"].tolist() == [None] * len(one.metrics)
    mixed = {"a": results[0]["a"], "b": results[1]["b"]}
    assert (
        diagnostics.compare_detectors(mixed, resamples=20).to_frame()[columns].equals(one.to_frame()[columns])
    )
    moved = boxscore.GroundTruth.from_arrays(
        truth.images.ids[truth.image],
        truth.category,
        truth.boxes + 1,
        images=truth.images,
        categories=range(3),
    )
    with pytest.raises(boxscore.InputError, match="have the same ground truth"):
        diagnostics.compare_detectors({"a": merged((truth, found)), "b": merged((moved, found))})


# ---------------------------------------------------------------- what does not fit


def test_an_image_in_two_parts_is_named_with_its_files(tmp_path: Path) -> None:
    truth, found = scene()
    for name, images in (("a", [0, 1, 2]), ("b", [2, 3])):
        result = boxscore.evaluate(truth, found, images=images)
        result.save_part(tmp_path / f"{name}.npz")
    with pytest.raises(boxscore.InputError) as caught:
        merge([tmp_path / "a.npz", tmp_path / "b.npz"])
    assert str(caught.value).startswith("an image must be in one of the parts to merge. Got 2 in ")
    assert "a.npz" in str(caught.value)
    assert "b.npz" in str(caught.value)


def test_parts_of_other_protocols_versions_and_classes_are_refused() -> None:
    tables = scene()
    first, second, _ = parts_of(tables, "coco", np.arange(12) % 3)
    voc = parts_of(tables, {"extends": "coco", "matching": {"max_detections": [7]}}, np.arange(12) % 3)[1]
    with pytest.raises(
        boxscore.InputError, match=r"the same protocol.*matching.max_detections is \(1, 10, 100\)"
    ):
        merge([first, voc])
    with pytest.raises(boxscore.InputError, match=r"the same version of boxscore\. Got 0\.0\.1; this is"):
        merge([first, dataclasses.replace(second, version="0.0.1")])
    with pytest.raises(boxscore.InputError, match="the same classes"):
        merge([first, dataclasses.replace(second, categories=Categories.build(["x", "y", "z"]))])
    with pytest.raises(boxscore.InputError, match="rows of one kind"):
        merge([first, dataclasses.replace(second, row_order="own")])
    with pytest.raises(boxscore.InputError, match="be at least one"):
        merge([])


def test_a_cap_over_the_data_set_that_cannot_be_met_is_refused_by_name() -> None:
    rules = {"extends": "lvis-fixed", "matching": {"per_class": False}}
    with pytest.raises(
        boxscore.ProtocolError, match=r"matching\.cap_scope must be 'class' or 'image' in parts"
    ):
        boxscore.scan(*scene(), protocol=rules)


OF_TWO_CURVES = ["omnilabel"]
"""The one that cannot be merged, as the page on large data says."""


@pytest.mark.long
def test_every_protocol_that_ships_can_be_merged_but_one() -> None:
    truth = boxscore.GroundTruth.from_arrays([1, 2], ["cat"] * 2, [[1, 1, 9, 9]] * 2)
    found = boxscore.Detections.from_arrays([1, 2], ["cat"] * 2, [[1, 1, 9, 9]] * 2, [0.5, 0.75])
    for name in protocol_names():
        refused = None
        try:
            parts_of((truth, found), name, 2)
        except boxscore.InputError as error:  # it needs masks, keypoints, corners or columns
            refused = error
        assert isinstance(refused, boxscore.ProtocolError) == (name in OF_TWO_CURVES), f"{name}: {refused}"


STRETCHED = {"extends": "coco", "rounding": {"stretch_scores": True}}
RANKED = {"ranked_files": True}


@each(
    [
        ({"matching": {"cap_scope": "image_each", "max_detections": [9]}}, r"matching\.cap_scope .* has JI"),
        ({"ap": {"pool": "classes"}}, r"ap\.pool must be 'none' in parts where the summary has JI"),
        (STRETCHED, r"matching\.ranked_files must be true in parts where scores are stretched"),
        ({**STRETCHED, "matching": {**RANKED, "per_class": False}}, r"matching\.per_class must be true"),
        ({**STRETCHED, "matching": {**RANKED, "score_threshold": 0.1}}, r"score_threshold must be left out"),
        ({**STRETCHED, "matching": {**RANKED, "equal_scores": "last_first"}}, r"matching\.equal_scores must"),
        ({**STRETCHED, "matching": RANKED, "ignore": {"regions": "x"}}, r"ignore\.regions must be left out"),
        ({**STRETCHED, "matching": RANKED, "group": {"treatment": "merge"}}, r"group\.treatment must be"),
        (
            {"rounding": {"stretch_scores": True}, "matching": RANKED},
            r"summary must have no JI in parts where scores are stretched",
        ),
    ]
)
def test_rules_that_parts_cannot_meet_are_refused_by_name(rules: dict[str, Any], message: str) -> None:
    protocol = {"extends": "crowdhuman", "boxes": {"clip": "none"}, "name": "case", **rules}
    with pytest.raises(boxscore.ProtocolError, match=message) as caught:
        boxscore.scan(*crowd_cases.crowd_case(3, "widerface"), protocol=protocol)
    assert "evaluate all" in str(caught.value)


@each(["extra:crowds:image", "extra:crowds:category", "extra:crowds", "extra:takes_part"])
def test_columns_of_crowds_that_do_not_fit_are_refused(name: str) -> None:
    rules = {"extends": "crowdhuman", "ap": {"recall_over": "all"}}
    tables = crowd_cases.tables(crowd_cases.scene(3))
    part = parts_of(tables, rules, [0] * len(tables[0].images))[0]
    column = columns_of(part)[name]
    assert len(column)
    more = column.astype(np.int32) if name == "extra:crowds" else column.astype(np.uint16) + np.uint16(1000)
    Part.from_bytes(damaged(part, name, column))
    for wrong in (column[:-1], more, None):
        with pytest.raises(boxscore.FileFormatError, match="hold what boxscore wrote"):
            Part.from_bytes(damaged(part, name, wrong))


def damaged(part: Part, name: str, column: Any) -> bytes:
    """Return the file of a part with another column, or without it."""
    columns = {**columns_of(part), name: column}
    file = io.BytesIO()
    np.savez(file, **{key: value for key, value in columns.items() if value is not None})
    return file.getvalue()


@given(seed=st.integers(0, 1000), shares=st.integers(2, 4))
@settings(max_examples=examples(15))
def test_scores_of_shares_are_stretched_together(seed: int, shares: int) -> None:
    """Each share is evaluated alone, and its own numbers are by its own least and largest score."""
    truth, found = crowd_cases.tables([i for n in range(9) for i in crowd_cases.scene(seed + n, close=True)])
    found, images = align(found, truth), np.arange(len(truth.images))
    alone = []
    for own in (images[number::shares] for number in range(shares)):
        rows = (np.flatnonzero(np.isin(table.image, own)) for table in (truth, found))
        tables = [of_images(table, own, some) for table, some in zip((truth, found), rows, strict=True)]
        alone.append(whole((tables[0], tables[1]), "widerface"))
    saved = [Part.from_bytes(part_of(one).to_bytes()) for one in alone]
    assert bits(merge(saved)) == bits(whole((truth, found), "widerface"))
    with pytest.raises(boxscore.FileFormatError, match="hold what boxscore wrote"):
        Part.from_bytes(dataclasses.replace(saved[0], score_ends=None).to_bytes())


def test_scores_that_are_all_the_same_cannot_be_stretched_together(tmp_path: Path) -> None:
    """Each share has one score, and differs from the other."""
    pytest.importorskip("pyarrow")
    truth = boxscore.GroundTruth.from_arrays([1, 2], ["a"] * 2, [[1, 1, 9, 9]] * 2)
    found = boxscore.Detections.from_arrays([1, 2], ["a"] * 2, [[1, 1, 9, 9]] * 2, [0.5, 0.75])
    rules = {"extends": "widerface", "ignore": {"area_ranges": {"easy": [0, 1e9]}, "column_ranges": {}}}
    paths = tmp_path / "truth.parquet", tmp_path / "found.parquet"
    for table, path in zip((truth, found), paths, strict=True):
        boxscore.save_as(table, path)
    parts = parts_of(paths, rules, 2)
    assert len(parts) == 2
    assert bits(merge(parts)) == bits(whole((truth, found), rules))
    with pytest.raises(boxscore.InputError, match=r"scores must differ, to be stretched over \[0, 1\]"):
        merge(parts[:1]).metrics  # noqa: B018


def test_a_file_that_is_no_part_or_damaged_is_refused(tmp_path: Path) -> None:
    part = parts_of(scene(), "coco", np.zeros(12, dtype=int))[0]
    path = tmp_path / "a.npz"
    part.save(path)
    assert bits(merge([load_part(path)])) == bits(merge([part]))
    content = path.read_bytes()
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    for name, bad in (("cut.npz", content[:-40]), ("text.npz", b"no"), ("empty.npz", b"")):
        (tmp_path / name).write_bytes(bad)
    for name in ("cut.npz", "text.npz", "empty.npz", "other.npz"):
        with pytest.raises(boxscore.FileFormatError, match="a part's file must be written by"):
            load_part(tmp_path / name)
    with pytest.raises(boxscore.InputError, match=r"be named \*.npz"):
        part.save(tmp_path / "a.json")


def test_a_file_of_another_form_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    part = parts_of(scene(), "coco", np.zeros(12, dtype=int))[0]
    with monkeypatch.context() as patch:
        limits.another_form_of_parts(patch, 1)
        old = part.to_bytes()
    with pytest.raises(
        boxscore.FileFormatError, match=r"a part's file must be of form 3\. Got 1.*another boxs"
    ):
        Part.from_bytes(old)


@pytest.mark.long
@given(name=st.sampled_from(["image", "truth", "outcome", "bounds", "pair_count", "score", "truth_image"]))
@settings(max_examples=7)
def test_columns_that_do_not_fit_are_refused(name: str) -> None:
    part = parts_of(scene(), "coco", np.zeros(12, dtype=int))[0]
    column = columns_of(part)[name]
    more = (column + 1000.0).astype(np.int64 if name == "bounds" else np.uint16)
    Part.from_bytes(damaged(part, name, column))
    for wrong in (column[:-1], more):
        with pytest.raises(boxscore.FileFormatError, match="hold what boxscore wrote"):
            Part.from_bytes(damaged(part, name, wrong))


# ---------------------------------------------------------------- evaluators and scan


def test_evaluators_of_two_ranks_save_parts(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    crowds = {"extends": "crowdhuman", "boxes": {"clip": "none"}, "matching": {"equal_scores": "image_order"}}
    for number, protocol in enumerate(["coco", "voc2012", crowds]):
        both, files = boxscore.Evaluator(protocol=protocol, classes=range(2)), []
        for rank in range(2):
            own = boxscore.Evaluator(protocol=protocol, classes=range(2))
            for image in (5 - rank, 1 + rank):
                box = rng.integers(0, 50, (3, 2))
                boxes = np.hstack([box, box + 20])
                target = {"image_id": image, "boxes": boxes, "labels": [0, 1, 1]}
                found = {"boxes": np.tile(boxes, (2, 1)), "labels": [0, 1, 1] * 2, "scores": [0.5] * 6}
                own.update([found], [target])
                both.update([found], [target])
            files.append(tmp_path / f"{number}-{rank}.npz")
            own.save_part(files[-1])
        assert bits(merge(files)) == bits(both.compute())
    numbered = boxscore.Evaluator()
    numbered.update([{"boxes": [], "labels": [], "scores": []}], [{"boxes": [], "labels": []}])
    with pytest.raises(boxscore.InputError, match="image_id must be in every target"):
        numbered.save_part(tmp_path / "c.npz")


def test_scan_takes_lists_of_images_and_refuses_those_that_do_not_fit() -> None:
    tables = scene()
    expected = bits(whole(tables, "coco"))
    with ThreadPoolExecutor(2) as threads:
        lists = [[0, 2, 4], [11, 1, 3, 5, 6], [], [7, 8, 9, 10]]
        assert bits(boxscore.scan(*tables, partitions=lists, map=threads.map)) == expected
    either = "partitions must be a whole number, or a list of image ids for each partition. Got "
    for lists, message in (
        (2.5, r"partitions must be a whole number >= 1. Got 2.5."),
        ([1, 2], either + re.escape("[1, 2].")),
        ("2", either + "'2'."),
        ([[0, 1], [1]], "Got 1 in 0 and 1"),
        ([[0, 1]], "Got 2 in none"),
        ([[0, 99]], "be in the ground truth. Got 99"),
    ):
        with pytest.raises(boxscore.InputError, match=message):
            boxscore.scan(*tables, partitions=lists)
    with pytest.raises(boxscore.InputError, match="pass the part of every task"):
        boxscore.scan(*tables, partitions=3, map=lambda function, tasks: [])


def test_one_part_given_twice_is_refused() -> None:
    part = part_of(whole(scene(), "coco"))
    with pytest.raises(boxscore.InputError, match=r"one of the parts to merge\. Got 0 in"):
        merge([part, part])
