"""KITTI's labels and results, line by line as the devkit has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore import InputError, load_detections, load_ground_truth
from boxscore.formats import detect_format
from support.real_data import real

OBJECT = "{} 0.25 2 -1.5 10 20 110 70 1.87 0.96 0.65 -8.5 2.07 23.02 1.59"


def written(folder: Path, **texts: str) -> Path:
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def test_what_a_line_becomes(tmp_path: Path) -> None:
    folder = written(tmp_path / "gt", a=f"{OBJECT.format('Car')}\n\n{OBJECT.format('DontCare')}\n", b="")
    table = load_ground_truth(folder)
    assert table.images.ids.tolist() == ["a", "b"]
    assert table.boxes.tolist() == [[10, 20, 110, 70]] * 2
    assert table.ignore.tolist() == [False, True]
    assert {name: column.tolist() for name, column in table.columns.items()} == {
        "truncated": [0.25, 0.25],
        "occluded": [2, 2],
        "alpha": [-1.5, -1.5],
    }
    results = written(tmp_path / "dt", a=f"{OBJECT.format('Car')} 0.75\r\n")
    detections = load_detections(results, table)
    assert (detections.boxes.tolist(), detections.scores.tolist()) == ([[10, 20, 110, 70]], [0.75])


def test_regions_without_labels_cost_nothing(tmp_path: Path) -> None:
    truth = written(tmp_path / "gt", a=f"{OBJECT.format('Car')}\n{OBJECT.format('DontCare')}\n")
    detections = written(tmp_path / "dt", a=f"{OBJECT.format('Car')} 0.75\n")
    result = boxscore.evaluate(truth, detections)
    assert result["AP50"] == pytest.approx(1, abs=1e-15)
    assert np.isnan(dict(zip(result.labels, result.class_values["AP"].tolist(), strict=True))["DontCare"])


def test_types_without_an_object_are_classes(tmp_path: Path) -> None:
    """A low detection of any type takes an object in KITTI's devkit, of one without labels too."""
    high = OBJECT.replace("70", "65")  # 45 pixels
    truth = written(tmp_path / "gt", a=f"{high.format('Car').replace('0.25 2', '0 0')}\n")
    low = OBJECT.replace("10 20 110 70", "10 22 110 61").format("Tram")
    found = written(tmp_path / "dt", a=f"{high.format('Car')} 0.5\n{low} 0.9\n")
    table = load_ground_truth(truth)
    assert {"Car", "Van", "Tram", "Misc"} <= {*table.categories.names}
    result = boxscore.evaluate(table, load_detections(found, table), protocol="kitti")
    assert result.class_values["AP_R11_easy"][result.labels.index("Car")] == 0
    assert result.class_values["AP_R11_moderate"][result.labels.index("Car")] == 1 / 11
    other = written(tmp_path / "other", a=OBJECT.format("helmet"))
    assert load_ground_truth(other).categories.names == ("helmet",)


@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
def test_labels_that_are_all_empty_have_no_number(tmp_path: Path) -> None:
    truth = written(tmp_path / "gt", a="", b="")
    found = written(tmp_path / "dt", a=f"{OBJECT.format('Car')} 0.5\n", b="")
    assert np.isnan(boxscore.evaluate(truth, found, protocol="kitti")["AP_R40_easy"])


@pytest.mark.parametrize("numbers", [13, 16])
def test_other_counts_of_numbers_are_no_kitti(numbers: int, tmp_path: Path) -> None:
    folder = written(tmp_path / "gt", a=" ".join(["Car", *["1"] * numbers]))
    with pytest.raises(InputError, match="be in a format that boxscore reads"):
        detect_format(folder)


@pytest.mark.parametrize("word", ["nan", "inf", "1e999"])
def test_numbers_that_are_not_finite(word: str, tmp_path: Path) -> None:
    folder = written(
        tmp_path / "gt", a=f"{OBJECT.format('Car')}\n{OBJECT.format('Car').replace('110', word)}\n"
    )
    with pytest.raises(InputError, match=r"a\.txt, line 2"):
        load_ground_truth(folder)


@pytest.mark.real
def test_real_labels_and_results() -> None:
    truth = load_ground_truth(real("kitti", "label_2"))
    detections = load_detections(real("kitti", "derived", "data"), truth)
    for table, folder in ((truth, real("kitti", "label_2")), (detections, real("kitti", "derived", "data"))):
        lines = [
            [path.stem, *line.split()]
            for path in sorted(folder.glob("*.txt"))
            for line in path.read_text().splitlines()
        ]
        names = np.array(table.categories.names)[table.category]
        images = np.array(table.images.ids)[table.image]
        ours = [
            [str(image), str(name), *map(float, box)]
            for image, name, box in zip(images, names, table.boxes, strict=True)
        ]
        assert sorted(ours) == sorted([line[0], line[1], *map(float, line[5:9])] for line in lines)
    assert truth.ignore.sum() == 597
    assert sorted(detections.scores) == sorted(float(line[-1]) for line in lines)
