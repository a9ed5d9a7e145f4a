"""Annotators against each other: by brute force, by hand, and of simulated annotators whose errors are known."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.cli import main
from boxscore.data.vocabulary import Images
from boxscore.diagnostics import annotator_agreement
from boxscore.errors import InputError
from boxscore.extensions.labels.agreement import best_pairs, cohens_kappa, krippendorffs_alpha
from boxscore.extensions.labels.label_edits import labels_of
from oracles.polygons import overlap
from support.drawn import drawn

Tables = dict[str, boxscore.GroundTruth]


def simulated(
    seed: int, *, images: int = 60, misses: tuple[float, float] = (0.1, 0.2), wrong: float = 0.1
) -> Tables:
    """Two annotators of the same objects: each misses some, the second takes some for another class."""
    rng, rows = np.random.default_rng(seed), ([], [])  # type: ignore[var-annotated]
    for image in range(images):
        for place in range(rng.integers(1, 6)):
            label = int(rng.integers(4))
            for annotator in range(2):
                if rng.random() >= misses[annotator]:
                    other = annotator and rng.random() < wrong
                    named = (label + int(rng.integers(1, 4))) % 4 if other else label
                    shift = rng.normal(0, 3, 2) if annotator else (0, 0)
                    rows[annotator].append((image, named, [120 * place + shift[0], 10 + shift[1], 100, 100]))
    tables = [
        boxscore.GroundTruth.from_arrays(
            *([row[side] for row in own] for side in range(3)),
            box_format="xywh",
            images=range(images),
            categories=range(4),
        )
        for own in rows
    ]
    return dict(zip(("one", "two"), tables, strict=True))


def brute_force(edges: list[tuple[int, int]], iou: list[float]) -> tuple[int, float]:
    """Try every set of edges."""
    best = (0, 0.0)
    for size in range(1, min(len(edges), 5) + 1):
        for some in itertools.combinations(range(len(edges)), size):
            ends = [edges[e] for e in some]
            if len({a for a, _ in ends}) == len({b for _, b in ends}) == size:
                best = max(best, (size, round(sum(iou[e] for e in some), 9)))
    return best


def matchings(cases: range) -> int:
    for seed in cases:
        rng = np.random.default_rng(seed)
        iou = np.round(rng.random(tuple(rng.integers(1, 5, 2))), 1 if seed % 2 else 6)
        first, second = np.nonzero(iou >= 0.5)
        chosen = best_pairs(first, second, iou[first, second], np.zeros(len(first), dtype=np.intp))
        got = (len(chosen), round(float(iou[first[chosen], second[chosen]].sum()), 9))
        edges = list(zip(first.tolist(), second.tolist(), strict=True))
        assert got == brute_force(edges, iou[first, second].tolist())
        assert len(set(first[chosen])) == len(set(second[chosen])) == len(chosen)
    return len(cases)


def test_the_matching_is_the_best_there_is() -> None:
    assert matchings(range(100))


@pytest.mark.slow
def test_the_matching_is_the_best_of_2000_cases() -> None:
    assert matchings(range(2000)) == 2000


def test_kappa_by_hand() -> None:
    """Of 50, 20 are yes for both and 15 no for both, 5 and 10 apart: po .7, pe .5."""
    first = np.repeat([0, 0, 1, 1], [20, 5, 10, 15])
    second = np.repeat([0, 1, 0, 1], [20, 5, 10, 15])
    assert cohens_kappa(first, second, 2) == pytest.approx(0.4, abs=1e-15)
    assert np.isnan(cohens_kappa(np.zeros(3, dtype=int), np.zeros(3, dtype=int), 2))
    assert np.isnan(cohens_kappa(np.empty(0, dtype=int), np.empty(0, dtype=int), 2))


def test_alpha_by_hand() -> None:
    """Two observers, ten units, two values, as in Krippendorff's section A: .095."""
    first = np.array([0, 1, 0, 0, 0, 0, 0, 0, 1, 0])
    second = np.array([1, 1, 1, 0, 0, 1, 0, 0, 0, 0])
    assert krippendorffs_alpha(np.stack([first, second]), 2) == pytest.approx(0.095, abs=5e-4)
    assert krippendorffs_alpha(np.stack([first, first]), 2) == 1
    assert np.isnan(krippendorffs_alpha(np.zeros((2, 4), dtype=int), 2))
    third = np.full(10, -1)
    assert krippendorffs_alpha(np.stack([first, second, third]), 2) == krippendorffs_alpha(
        np.stack([first, second]), 2
    )


def test_who_misses_what() -> None:
    boxes = [[0, 0, 10, 10], [20, 0, 30, 10], [40, 0, 50, 10]]
    one = boxscore.GroundTruth.from_arrays([1, 1, 2], ["cat", "cat", "dog"], boxes, images=[1, 2])
    two = boxscore.GroundTruth.from_arrays([1, 2], ["cat", "cat"], [boxes[0], boxes[2]], images=[1, 2])
    result = annotator_agreement({"one": one, "two": two})
    (row,) = result.to_frame().to_dict("records")
    assert (row["matched"], row["missed_by_first"], row["missed_by_other"]) == (2, 0, 1)
    assert (row["same_class"], row["mean_iou"]) == (1, 1.0)
    assert row["f1"] == 2 * 1 / (3 + 2)
    table = result.image_frame()
    assert table["image_id"].tolist() == [2, 1]
    assert table["share"].tolist() == [0.0, 0.5]
    assert result.class_frame()["labels"].tolist() == [4, 1]


def test_three_annotators_share_units() -> None:
    tables = simulated(3)
    result = annotator_agreement({**tables, "again": tables["two"]})
    assert len(result.pairs) == 3
    assert (result.units[1] == result.units[2]).all()
    two = annotator_agreement(tables)
    assert (result.units[:2] == two.units).all()
    assert two.alpha == krippendorffs_alpha(two.units, 5)


@pytest.mark.long
def test_known_errors_are_recovered() -> None:
    """Wilson's 95% intervals hold the true rates in nearly all of 20 simulated pairs."""
    held = np.zeros(3)
    for seed in range(20):
        row = annotator_agreement(simulated(seed + 1)).pairs[0].as_row()
        for n, (count, total, rate) in enumerate(
            [
                (row["missed_by_first"], row["labels_other"], 0.1),
                (row["missed_by_other"], row["labels_first"], 0.2),
                (row["matched"] - row["same_class"], row["matched"], 0.1),
            ]
        ):
            held[n] += abs(count / total - rate) <= 1.96 * np.sqrt(rate * (1 - rate) / total)
    assert (held >= 17).all()


def test_ceilings_are_scores_without_order() -> None:
    tables = simulated(1)
    row = annotator_agreement(tables).pairs[0].as_row()
    two = tables["two"]
    found = boxscore.Detections.from_arrays(
        two.images.ids[two.image], two.categories.ids[two.category], two.boxes, images=two.images
    )
    alone = boxscore.evaluate(tables["one"], found, protocol="scoreless")
    assert row["ceiling_other"] == alone["AP_expected"]
    assert row["highest_other"] == alone["AP_highest"]
    assert row["f1"] == alone["F1_50"]


@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
def test_one_annotator_is_not_enough() -> None:
    tables = simulated(1)
    with pytest.raises(InputError, match="annotators must be two or more"):
        annotator_agreement({"one": tables["one"]})


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for name, table in simulated(2, images=6).items():
        paths.append(str(tmp_path / f"{name}.json"))
        boxscore.save_as(table, paths[-1], lossy=True)
    assert main(["agreement", "--gt", *paths, "--quiet"]) == 0
    assert "Agreement of 2 annotators" in capsys.readouterr().out
    assert main(["agreement", "--gt", *paths, "--by", "images", "--top", "2", "--output", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main(["agreement", "--gt", paths[0]]) == 2


def similarities(kind: str, first: boxscore.GroundTruth, second: boxscore.GroundTruth) -> Any:
    """Compare every label of one image with every other, by pixels, points or corners; [i, j]."""
    rules = boxscore.load_protocol(kind)
    if kind == "coco-segm":
        pixels = [table.masks.arrays() for table in (first, second)]
        return np.array([[(a & b).sum() / max((a | b).sum(), 1) for b in pixels[1]] for a in pixels[0]])
    if kind == "coco-keypoints":
        values = np.zeros((len(first), len(second)))
        for i, person in enumerate(first.keypoints.tolist()):
            for j, other in enumerate(second.keypoints.tolist()):
                parts = [
                    math.exp(
                        -((x - u) ** 2 + (y - v) ** 2) / (2 * (2 * sigma) ** 2 * (first.area[i] + 2.0**-52))
                    )
                    for (x, y, seen), (u, v, _), sigma in zip(
                        person, other, rules.keypoints.sigmas, strict=True
                    )
                    if seen > 0
                ]
                values[i, j] = sum(parts) / len(parts)
        return values
    return np.array(
        [[overlap(one, two) for two in second.rotated.tolist()] for one in first.rotated.tolist()]
    )


def best_of(values: Any, row: int = 0, taken: int = 0) -> tuple[int, float]:
    """Try every partner of every row: the most pairs, then the greatest sum."""
    if row == len(values):
        return 0, 0.0
    best = best_of(values, row + 1, taken)
    for column in range(values.shape[1]):
        if not taken >> column & 1 and values[row, column] >= 0.5:
            count, total = best_of(values, row + 1, taken | 1 << column)
            best = max(best, (count + 1, total + float(values[row, column])))
    return best


@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
@pytest.mark.parametrize("kind", ["coco-segm", "coco-keypoints", "coco-rotated"])
@pytest.mark.parametrize("seed", range(4))
def test_masks_keypoints_and_rotated_boxes_by_slow_oracles(kind: str, seed: int) -> None:
    truth, found = drawn(kind, seed)
    truth = truth.take(np.flatnonzero(~(truth.crowd | truth.difficult | truth.ignore)))
    evaluation = boxscore.evaluate(truth, found, protocol=kind, digest=False)
    rows = np.random.default_rng(seed).permutation(len(found))[: len(truth)]
    other = labels_of(evaluation, np.sort(rows))
    row = annotator_agreement({"one": truth, "two": other}, protocol=kind).pairs[0].as_row()
    count, total = 0, 0.0
    for image in range(len(truth.images)):
        sides = [table.take(np.flatnonzero(table.image == image)) for table in (truth, other)]
        if all(map(len, sides)):
            pairs, weight = best_of(similarities(kind, *sides))
            count, total = count + pairs, total + weight
    assert row["matched"] == count > 1
    assert row["mean_iou"] == pytest.approx(total / count, abs=1e-9)
    assert row["missed_by_first"] == len(other) - count


def test_all_annotators_in_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = simulated(2, images=6)
    paths = [str(tmp_path / f"{name}.json") for name in tables]
    contents = []
    for table, path in zip(tables.values(), paths, strict=True):
        boxscore.save_as(table, path, lossy=True)
        contents.append(json.loads(Path(path).read_text()))
    whole = {**contents[0], "annotations": []}
    for name, content in zip(tables, contents, strict=True):
        whole["annotations"] += [{**one, "by": name} for one in content["annotations"]]
    for number, one in enumerate(whole["annotations"], start=1):
        one["id"] = number
    together = tmp_path / "all.json"
    together.write_text(json.dumps(whole))
    assert main(["agreement", "--gt", *paths, "--output", "json"]) == 0
    apart = capsys.readouterr().out
    assert main(["agreement", "--gt", str(together), "--annotator-column", "by", "--output", "json"]) == 0
    assert capsys.readouterr().out == apart
    rows = ["image,class,x1,y1,x2,y2,by"]
    for name, table in tables.items():
        for image, label, box in zip(table.image, table.category, table.boxes.tolist(), strict=True):
            rows.append(f"{table.images.ids[image]},c{label},{','.join(map(repr, box))},{name}")
    (tmp_path / "all.csv").write_text("\n".join(rows) + "\n")
    assert (
        main(["agreement", "--gt", str(tmp_path / "all.csv"), "--annotator-column", "by", "--output", "json"])
        == 0
    )
    of_csv, of_coco = json.loads(capsys.readouterr().out), json.loads(apart)
    for mine, theirs in zip(of_csv["rows"], of_coco["rows"], strict=True):
        assert mine["matched"] == theirs["matched"]
        assert mine["kappa"] == theirs["kappa"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--annotator-column", "b"], "the annotators must be in a column b. Got none in"),
        ([], "for one file with several annotators use --annotator-column"),
        (
            ["--annotator-column", "by", "--names", "x"],
            "--annotator-column must be used with one file and without --names",
        ),
        (
            ["--annotator-column", "holes"],
            "holes must name the annotator of every label. Got none in row 1 of",
        ),
        (["--annotator-column", "area"], "area must be a text or a whole number. Got 1.5 in annotation 0 of"),
    ],
)
def test_annotators_that_are_not_named(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    box = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1.5], "area": 1.5, "by": "a"}
    content = {
        "images": [{"id": 1, "width": 9, "height": 9}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{**box, "id": 1, "holes": "a"}, {**box, "id": 2}],
    }
    (tmp_path / "all.json").write_text(json.dumps(content))
    assert main(["agreement", "--gt", str(tmp_path / "all.json"), *options]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")


def labels(ids: list[Any], names: list[str] | None = None, crowd: bool = False) -> boxscore.GroundTruth:
    """One cat in each of some images."""
    table = boxscore.GroundTruth.from_arrays(
        ids, ["cat"] * len(ids), [[0, 0, 30, 30]] * len(ids), images=ids, categories=["cat"]
    )
    images = Images.build(ids, file_names=names)
    return table.replaced(images=images, image=images.rows(table.images.ids)[table.image])


def test_images_of_one_file_only_are_said() -> None:
    with pytest.warns(boxscore.BoxscoreWarning, match=r"2 of 4 images are not in every file, such as 3;"):
        forth = annotator_agreement({"a": labels([1, 2, 3, 4]), "b": labels([1, 2])}).pairs[0]
    with pytest.warns(boxscore.BoxscoreWarning, match="2 of 4 images"):
        back = annotator_agreement({"b": labels([1, 2]), "a": labels([1, 2, 3, 4])}).pairs[0]
    assert len(forth.iou) == len(back.iou) == 2


def test_a_file_name_with_two_ids_is_refused() -> None:
    names = ["1.jpg", "2.jpg"]
    with pytest.raises(InputError, match=r"image '2.jpg' of .* have the same id as in .*Got 1 for 2"):
        annotator_agreement({"a": labels([1, 2], names), "b": labels([1, 2], names[::-1])})


def test_crowds_are_measured_by_iou_on_either_side() -> None:
    crowd = boxscore.GroundTruth.from_arrays([1], ["cat"], [[0, 0, 300, 300]], crowd=[True])
    cats = boxscore.GroundTruth.from_arrays([1, 1], ["cat"] * 2, [[0, 0, 100, 100], [150, 150, 250, 250]])
    for one, other in ((crowd, cats), (cats, crowd)):
        result = annotator_agreement({"one": one, "other": other})
        assert len(result.pairs[0].iou) == 0
        assert result.alpha == pytest.approx(-2 / 3)


def crowded(seed: int, annotators: int) -> dict[str, boxscore.GroundTruth]:
    """Labels of few places, many of them equal, so that most matchings are not unique."""
    rng = np.random.default_rng(seed)
    tables = {}
    for number in range(annotators):
        count = int(rng.integers(6, 13))
        at = rng.choice([0, 0, 1, 2, 40], count)
        boxes = np.stack([at, at * 0, at + 10, at * 0 + 10], axis=1)
        image, classes = rng.integers(1, 4, count), rng.choice(["ant", "bee", "cow"], count)
        tables[f"annotator {number}"] = boxscore.GroundTruth.from_arrays(
            image, classes, boxes, images=range(1, 4), categories=["ant", "bee", "cow"]
        )
    return tables


def figures(result: Any) -> tuple[Any, ...]:
    kappas = {frozenset((pair.first, pair.other)): pair.kappa for pair in result.pairs}
    same = {frozenset((pair.first, pair.other)): pair.as_row()["same_class"] for pair in result.pairs}
    text = {pair: f"{kappa:.12f}" for pair, kappa in kappas.items()}
    return text, same, f"{result.alpha:.12f}", [f"{value:.12f}" for value in result.class_alpha]


@pytest.mark.parametrize("annotators", [2, 3, 4])
@pytest.mark.parametrize("seed", range(12))
def test_neither_the_order_of_labels_nor_that_of_annotators_decides(seed: int, annotators: int) -> None:
    tables = crowded(seed, annotators)
    expected = figures(boxscore.diagnostics.annotator_agreement(tables))
    rng = np.random.default_rng(seed)
    for _ in range(4):
        shuffled = {
            name: tables[name].take(rng.permutation(len(tables[name])))
            for name in rng.permutation([*tables]).tolist()
        }
        assert figures(boxscore.diagnostics.annotator_agreement(shuffled)) == expected


@pytest.mark.parametrize("seed", range(8))
def test_equal_labels_agree_in_every_order(seed: int) -> None:
    one = crowded(seed, 1)["annotator 0"]
    order = np.random.default_rng(seed).permutation(len(one))
    result = boxscore.diagnostics.annotator_agreement({"one": one, "other": one.take(order), "third": one})
    assert result.alpha == 1
    assert [pair.kappa for pair in result.pairs] == [1, 1, 1]


@pytest.mark.parametrize("seed", range(30))
def test_equal_classes_break_ties_of_overlap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    iou = rng.choice([0.5, 0.75], tuple(rng.integers(1, 5, 2)))
    same = rng.integers(0, 2, iou.shape)
    first, second = np.nonzero(iou)
    chosen = best_pairs(first, second, iou[first, second], same[first, second])
    count = min(iou.shape)
    flat, agree = (iou, same) if iou.shape[0] == count else (iou.T, same.T)
    best = max(
        (
            sum(flat[row, column] for row, column in enumerate(columns)),
            sum(agree[row, column] for row, column in enumerate(columns)),
        )
        for columns in itertools.permutations(range(flat.shape[1]), count)
    )
    assert (iou[first, second][chosen].sum(), same[first, second][chosen].sum()) == best
