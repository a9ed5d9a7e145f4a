"""Annotators against each other: by brute force, by hand, and of simulated annotators whose errors are known."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore.cli import main
from boxscore.diagnostics import annotator_agreement
from boxscore.diagnostics.agreement import best_pairs, cohens_kappa, krippendorffs_alpha
from boxscore.errors import InputError

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
        chosen = best_pairs(first, second, iou[first, second])
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


def test_known_errors_are_recovered() -> None:
    """Wilson's 95 % intervals hold the true rates in nearly all of 20 simulated pairs."""
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
