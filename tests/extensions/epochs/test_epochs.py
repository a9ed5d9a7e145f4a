"""Epochs of a training run: which file is which epoch, the curve, and what is said about the best one."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boxscore import Detections, Evaluation, GroundTruth, InputError, evaluate
from boxscore.diagnostics import bootstrap_intervals
from boxscore.epochs import epoch_curve, find_epochs
from boxscore.extensions.epochs import epochs_command
from boxscore.reports import plots
from support.running import Run

IMAGES = 40
FOUND = (5, 20, 33, 33, 35, 34)
"""Images in which each epoch finds the only object, from the first one on."""


def _truth(images: int = IMAGES) -> GroundTruth:
    return GroundTruth.from_arrays(range(images), ["cat"] * images, [[0, 0, 9, 9]] * images)


def _epoch(rows: Any, images: int = IMAGES) -> Evaluation:
    rows = np.asarray(rows)
    found = Detections.from_arrays(
        rows, ["cat"] * len(rows), [[0, 0, 9, 9]] * len(rows), np.full(len(rows), 0.9)
    )
    return evaluate(_truth(images), found)


def _write(root: Path, names: tuple[str, ...] = ()) -> None:
    truth = {
        "images": [{"id": i, "width": 99, "height": 99} for i in range(IMAGES)],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [
            {"id": i + 1, "image_id": i, "category_id": 1, "bbox": [0, 0, 9, 9], "area": 81, "iscrowd": 0}
            for i in range(IMAGES)
        ],
    }
    (root / "gt.json").write_text(json.dumps(truth))
    for number, found in enumerate(FOUND, start=1):
        name = names[number - 1] if names else f"results/epoch_{number}.bbox.json"
        record = {"category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.9}
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([{"image_id": i, **record} for i in range(found)]))


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("names", "epochs"),
    [
        (["epoch_2.bbox.json", "epoch_12.bbox.json", "epoch_3.bbox.json"], [2, 3, 12]),
        (["results_ep003.json", "results_ep010.json", "metrics.json"], [3, 10]),
        (["predictions_epoch5.json", "predictions_epoch25.json", "predictions_last.json"], [5, 25]),
        (["epoch10/predictions.json", "epoch9/predictions.json"], [9, 10]),
        (["epoch1/epoch_1.json", "epoch2/epoch_2.json"], [1, 2]),
        (["exp7/epoch_1_step_500.json", "exp7/epoch_2_step_1000.json"], [1, 2]),
        (["yolov8_640_e1.csv", "yolov8_640_e2.csv"], [1, 2]),
        (["0.json", "1.json", "2.json"], [0, 1, 2]),
        (["epoch1/labels/000001.txt", "epoch1/labels/000002.txt", "epoch4/labels/000001.txt"], [1, 4]),
        ([".epoch_1.json", "epoch_2.json", "epoch_3.json"], [2, 3]),
    ],
)
def test_the_number_that_varies_is_the_epoch(tmp_path: Path, names: list[str], epochs: list[int]) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = find_epochs(tmp_path)
    assert list(found.paths) == epochs
    assert all(path.exists() for path in found.paths.values())
    # The same files, named one by one, are the same epochs.
    assert find_epochs(list(found.paths.values())).paths == found.paths


def test_patterns_lists_and_expressions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/1_v9.json", "a/2_v8.json", "b/1_v9.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"2 in N_vN\.json.*--number"):
        find_epochs("a")
    assert list(find_epochs("a", number="_v([0-9])").paths) == [8, 9]
    assert list(find_epochs("[a]/?_v*.json", number="([0-9])_").paths) == [1, 2]
    assert list(find_epochs(f"{tmp_path}/a/*.json", number="([0-9])_v").paths) == [1, 2]
    with pytest.raises(InputError, match=r"one file for each epoch.*a/1_v9\.json and b/1_v9\.json"):
        find_epochs("*/*.json", number="([0-9])_v")
    for number, message in (("(", "be valid"), ("v", "have a group")):
        with pytest.raises(InputError, match=message):
            find_epochs("a", number=number)


def test_what_is_ambiguous_is_refused_with_what_to_type(tmp_path: Path) -> None:
    for name in ("epoch_1.bbox.json", "epoch_2.bbox.json", "epoch_1.segm.json", "epoch_2.segm.json"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"one series of files.*epoch_\*\.bbox\.json' \(2 files\)"):
        find_epochs(tmp_path)
    assert list(find_epochs(f"{tmp_path}/epoch_*.segm.json").paths) == [1, 2]
    (tmp_path / "epoch_02.segm.json").touch()
    with pytest.raises(InputError, match=r"epoch 2 in .*epoch_02\.segm\.json and .*epoch_2\.segm\.json"):
        find_epochs(f"{tmp_path}/epoch_*.segm.json")
    # Two runs in a folder: a pattern for each. The epoch is the number that varies in it.
    runs = tmp_path / "1"
    runs.mkdir()
    for name in ("s640_e1.json", "s640_e2.json", "s1_e1.json", "s1_e2.json"):
        (runs / name).touch()
    with pytest.raises(InputError, match=r"one file for each epoch.*name one run") as caught:
        find_epochs(runs)
    patterns = re.findall("'(.+?)'", str(caught.value))
    assert sorted(patterns) == [f"{runs}/s1_e*.json", f"{runs}/s640_e*.json"]
    assert [list(find_epochs(pattern).paths) for pattern in patterns] == [[1, 2], [1, 2]]
    with pytest.raises(InputError, match=r"two epochs or more.*epoch_1\.bbox\.json"):
        find_epochs(tmp_path / "epoch_1.bbox.json")
    with pytest.raises(InputError, match="must exist"):
        find_epochs(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("epochs", "missing"),
    [
        ([1, 2, 3, 5, 6], [4]),
        ([10, 20, 30, 60], [40, 50]),
        ([1, 2], []),
        ([1, 5, 7, 20], []),
        ([1, 2, 3, 10**12], []),
    ],
)
def test_missing_epochs(tmp_path: Path, epochs: list[int], missing: list[int]) -> None:
    for epoch in epochs:
        (tmp_path / f"epoch_{epoch}.json").touch()
    assert find_epochs(tmp_path).missing() == missing


def test_equal_files(tmp_path: Path) -> None:
    for name, text in (("epoch_1.json", "[]"), ("epoch_2.json", "[ ]"), ("last.json", "[ ]")):
        (tmp_path / name).write_text(text)
    assert find_epochs(tmp_path).same() == [[tmp_path / "epoch_2.json", tmp_path / "last.json"]]


# ---------------------------------------------------------------- curve


def test_values_and_intervals_are_those_of_each_epoch() -> None:
    results = {epoch: _epoch(range(found)) for epoch, found in enumerate(FOUND, start=1)}
    curve = epoch_curve(results)
    assert curve.epochs == (1, 2, 3, 4, 5, 6)
    assert curve.values.tolist() == [result.metrics["AP"] for result in results.values()]
    for at, result in enumerate(results.values()):
        total = bootstrap_intervals(result, metrics=["AP"]).total
        assert (curve.low[at], curve.high[at]) == (total.low[0], total.high[0])
    assert curve.epochs[curve.best] == 5
    np.testing.assert_allclose(curve.behind, curve.values[4] - curve.values)
    # An iterator in another order gives the same curve.
    again = epoch_curve(iter(sorted(results.items(), reverse=True)))
    assert again.to_frame().equals(curve.to_frame())
    assert json.loads(curve.to_json())["best"] == 5
    assert repr(curve).startswith("EpochCurve: AP of 6 epochs, best 5")


def test_of_two_epochs_p_is_that_of_a_one_sided_t_test() -> None:
    """Recall of one object an image is a mean, whose jackknife is the usual t test of a paired difference."""
    one, two = np.zeros(IMAGES), np.zeros(IMAGES)
    one[:24], two[6:36] = 1, 1
    curve = epoch_curve({1: _epoch(np.flatnonzero(one)), 2: _epoch(np.flatnonzero(two))}, metric="AR100")
    difference = two - one
    t = difference.mean() / (difference.std(ddof=1) / np.sqrt(IMAGES))
    random = np.random.default_rng(0)
    drawn = random.standard_t(IMAGES - 1, 400_000)
    assert curve.p_values[0] == pytest.approx((drawn >= t).mean(), abs=0.012)
    assert curve.p_values[1] == pytest.approx((drawn >= -t).mean(), abs=0.012)


def test_an_epoch_may_find_nothing() -> None:
    curve = epoch_curve({0: _epoch([]), 1: _epoch(range(30))})
    assert curve.values[0] == 0
    assert curve.may_be_best.tolist() == [False, True]


def test_equal_epochs_may_all_be_the_best() -> None:
    curve = epoch_curve({1: _epoch(range(20)), 2: _epoch(range(20))})
    assert curve.best == 0  # the earliest
    assert curve.p_values.tolist() == [1, 1]
    assert curve.excess == pytest.approx(0, abs=1e-12)


def test_the_excess_of_many_equal_epochs() -> None:
    """The best of 20 independent means is 1.87 standard errors above the truth."""
    random = np.random.default_rng(3)
    estimates, excess, missed = [], [], 0
    for _ in range(4):
        found = random.random((20, 60)) < 0.5
        curve = epoch_curve(
            ((at, _epoch(np.flatnonzero(row), 60)) for at, row in enumerate(found)), metric="AR100"
        )
        estimates.append(curve.excess)
        excess.append(curve.values.max() - 0.5)
        missed += int(not curve.may_be_best[-1])
    expected = 1.87 * 0.5 / np.sqrt(60)
    assert np.mean(excess) == pytest.approx(expected, abs=0.03)
    assert np.mean(estimates) == pytest.approx(expected, abs=0.03)
    assert missed <= 2


def test_too_few_images_give_no_verdict() -> None:
    curve = epoch_curve({1: _epoch(range(2), 5), 2: _epoch(range(4), 5)})
    assert np.isnan(curve.p_values).all()
    assert np.isnan(curve.excess)
    assert curve.may_be_best.all()


@pytest.mark.filterwarnings("ignore::boxscore.FindingWarning")
def test_a_metric_that_falls() -> None:
    protocol = {"extends": "coco", "name": "misses", "summary": [{"key": "MR", "metric": "MR", "iou": 0.5}]}
    boxes = [[0, 0, 9, 9]] * IMAGES

    def after(found: int) -> Evaluation:
        table = Detections.from_arrays(range(found), ["cat"] * found, boxes[:found], [0.9] * found)
        return evaluate(_truth(), table, protocol=protocol)

    curve = epoch_curve({1: after(10), 2: after(38), 3: after(20)})
    assert curve.lower_is_better
    assert curve.epochs[curve.best] == 2
    assert (curve.behind >= 0).all()
    assert curve.may_be_best.tolist() == [False, True, False]


def test_curves_that_cannot_be() -> None:
    result = _epoch(range(20))
    with pytest.raises(InputError, match="two epochs or more"):
        epoch_curve({1: result})
    with pytest.raises(InputError, match=r"differ\. Got 1 twice"):
        epoch_curve([(1, result), (1, result)])
    with pytest.raises(InputError, match="same ground truth"):
        epoch_curve({1: result, 2: _epoch(range(20), 41)})
    with pytest.raises(InputError, match="metric"):
        epoch_curve({1: result, 2: result}, metric="AP95000")
    nothing = evaluate(
        GroundTruth.from_arrays([], [], np.empty((0, 4)), images=[1]),
        Detections.from_arrays([], [], np.empty((0, 4)), []),
    )
    with pytest.raises(InputError, match="no object counts"):
        epoch_curve({1: nothing, 2: nothing})


def test_a_copy_leaves_no_more_to_choose() -> None:
    results = {epoch: _epoch(range(found)) for epoch, found in enumerate((20, 28, 33, 34), start=1)}
    curve, copied = epoch_curve(results), epoch_curve({**results, 5: results[4], 6: results[2]})
    assert copied.excess == curve.excess > 0
    assert copied.p_values[:4].tolist() == curve.p_values.tolist()
    assert copied.p_values[4:].tolist() == curve.p_values[[3, 1]].tolist()


# ---------------------------------------------------------------- command


def _said(run: Run, root: Path, *options: str) -> str:
    printed = run("epochs", root / "gt.json", root / "results", *options)
    return " ".join(printed.out.partition("\n\n")[0].split())


def test_copies_count_once(tmp_path: Path, run: Run) -> None:
    """Epochs 3 and 4 are the same file."""
    _write(tmp_path)
    results = tmp_path / "results"
    assert "3 of 5 epochs may be the best: 3, 5, 6. Copies count once. The best of 5" in _said(run, tmp_path)
    shutil.copy(results / "epoch_5.bbox.json", results / "epoch_7.bbox.json")
    text = _said(run, tmp_path)
    assert "The last, 7, is a copy of its file. 3 of 6 epochs may" not in text
    assert "The last, 7, is a copy of its file. 3 of 5 epochs may be the best: 3, 5, 6. Copies count" in text
    for path in results.iterdir():
        path.write_bytes((results / "epoch_1.bbox.json").read_bytes())
    text = _said(run, tmp_path)
    assert text.startswith("All 7 epochs have the same AP")
    assert "best" not in text


def test_why_there_is_no_interval(tmp_path: Path, run: Run) -> None:
    _write(tmp_path)
    assert "No interval" not in _said(run, tmp_path)
    assert "No interval: none of this metric that was tried holds" in _said(run, tmp_path, "--metric", "AR1")
    truth = json.loads((tmp_path / "gt.json").read_text())
    for kept, verdict in (
        (20, ""),
        (19, ""),
        (9, ": too few images with objects (9; at least 10 are needed)"),
    ):
        part = {**truth, "annotations": truth["annotations"][:kept]}
        (tmp_path / "gt.json").write_text(json.dumps(part))
        text = _said(run, tmp_path)
        few = f"No interval: too few images with objects ({kept}; at least 20 are needed)."
        assert (few in text) == (kept < 20)
        assert verdict in text


def test_a_last_epoch_that_may_be_unfinished_is_doubted(tmp_path: Path, run: Run) -> None:
    _write(tmp_path)
    doubt = "But epoch 7 may be unfinished: see the warning."
    shutil.copy(tmp_path / "results/epoch_1.bbox.json", tmp_path / "results/epoch_7.bbox.json")
    assert f"It is better than the last, 7, by 0.7426 (p = 0.000). {doubt}" in _said(run, tmp_path)
    shutil.copy(tmp_path / "results/epoch_6.bbox.json", tmp_path / "results/epoch_7.bbox.json")
    assert doubt not in _said(run, tmp_path)


def test_the_command(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    printed = run("epochs", "gt.json", "results")
    assert printed.out.startswith("Epoch 5 is the best: AP 0.8")
    assert "The last, 6, may be as good" in " ".join(printed.out.split())
    assert "results/epoch_6.bbox.json results/epoch_5.bbox.json --metrics AP --plan" in " ".join(
        printed.out.split()
    )
    assert "##############" in printed.out
    assert (
        "note: these files are identical: results/epoch_3.bbox.json, results/epoch_4.bbox.json" in printed.err
    )
    lines = [line for line in printed.out.splitlines() if not line.startswith("boxscore|")]
    assert max(map(len, lines)) <= 80
    shutil.rmtree(tmp_path / "results")
    _write(tmp_path, tuple(f"runs/epoch{n}/predictions.json" for n in (1, 2, 3, 5, 6, 7)))
    said = run("epochs", "gt.json", "runs/*/predictions.json")
    assert "note: no results for epoch 4" in said.err
    monkeypatch.chdir(tmp_path / "runs")
    rows = json.loads(run("epochs", "../gt.json", ".", "--output", "json").out)
    assert [row["epoch"] for row in rows["epochs"]] == [1, 2, 3, 5, 6, 7]
    assert rows["best"] == 6
    alone = json.loads(run("evaluate", "../gt.json", "epoch6/predictions.json", "--output", "json").out)
    assert rows["epochs"][4]["AP"] == alone["metrics"]["AP"]


def test_the_best_epoch_is_better_or_the_last(tmp_path: Path, run: Run) -> None:
    _write(tmp_path)
    results = [tmp_path / f"results/epoch_{n}.bbox.json" for n in (6, 5, 4, 3, 2, 1)]
    shutil.copy(results[-1], tmp_path / "results/epoch_7.bbox.json")
    printed = " ".join(run("epochs", tmp_path / "gt.json", tmp_path / "results").out.split())
    assert printed.startswith("Take epoch 5: AP")
    assert "It is better than the last, 7, by 0." in printed
    first = " ".join(run("epochs", tmp_path / "gt.json", *results[-3:]).out.split())
    assert first.startswith("The last epoch, 3, is the best")
    assert "More epochs may raise it." in first
    same = run("epochs", tmp_path / "gt.json", *results[2:4]).out
    assert same.startswith("All 2 epochs have the same AP")


def test_files_that_fail_or_are_unfinished(tmp_path: Path, run: Run) -> None:
    _write(tmp_path)
    (tmp_path / "results" / "epoch_3.bbox.json").write_text('[{"image_id": 1')
    (tmp_path / "results" / "epoch_2.bbox.json").write_text(
        '[{"image_id": 4000, "category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.5}]'
    )
    shutil.copy(tmp_path / "results/epoch_1.bbox.json", tmp_path / "results/epoch_7.bbox.json")
    (tmp_path / "results" / "latest.json").write_text("{}")
    printed = run("epochs", tmp_path / "gt.json", tmp_path / "results", "--output", "json")
    assert "2 of 7 epochs are left out, because they cannot be read: 2 (" in printed.err
    assert "skipped, because their names have no epoch: latest.json" in printed.err
    chosen = run("epochs", tmp_path / "gt.json", tmp_path / "results", "--number", "epoch_([14])").err
    assert "because --number finds no epoch in their names: epoch_2.bbox.json" in chosen
    assert "epoch_7.bbox.json: has detections in 5 images, others in about 33" in printed.err
    value = json.loads(printed.out)
    assert [row["epoch"] for row in value["failed"]] == [2, 3]
    assert [row["epoch"] for row in value["epochs"]] == [1, 4, 5, 6, 7]
    for path in (tmp_path / "results").glob("epoch*"):
        path.write_text("")
    assert "epoch_1.bbox.json" in run.error("epochs", tmp_path / "gt.json", tmp_path / "results")


def test_warnings_of_many_epochs_are_said_once(tmp_path: Path, run: Run) -> None:
    _write(tmp_path)
    for path in (tmp_path / "results").iterdir():
        records = json.loads(path.read_text())
        other = {"image_id": 1, "category_id": 77, "bbox": [0, 0, 9, 9], "score": 0.5}
        path.write_text(json.dumps([*records, other]))
    said = run("epochs", tmp_path / "gt.json", tmp_path / "results").err
    assert said.count("77") == 1
    assert "epochs 1, 2, 3, 4, 5, 6: ignoring 1 detection" in said


def test_options(tmp_path: Path, run: Run) -> None:
    _write(tmp_path)
    call = ("epochs", tmp_path / "gt.json", tmp_path / "results")
    run(*call, "--plot", tmp_path / "curve.svg", "--metric", "AP50")
    assert "may be the best" in (tmp_path / "curve.svg").read_text()
    assert "--plot" in run.error(*call, "--plot", tmp_path / "curve.txt")
    assert "--unlisted-images" in run.error(*call, "--unlisted-images", "background")
    assert run(*call, "--output", "csv").out.startswith(
        "epoch,AP,estimate,low,high,behind,p_value,may_be_best,file"
    )
    assert "tabular" in run(*call, "--output", "latex").out
    assert "metric" in run.error(*call, "--metric", "XYZ")


def test_many_epochs_are_shown_thinned(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the rows that are shown, of a tenth of the epochs."""
    assert epochs_command.MOST_ROWS == 60
    monkeypatch.setattr(epochs_command, "MOST_ROWS", 6)
    _write(tmp_path)
    for number in range(7, 14):
        shutil.copy(tmp_path / "results/epoch_4.bbox.json", tmp_path / f"results/epoch_{number}.bbox.json")
    out = run("epochs", tmp_path / "gt.json", tmp_path / "results").out
    table = out.partition("epoch  ")[2].splitlines()
    shown = [int(line.split()[0]) for line in table if line.split()[:1] and line.split()[0].isdecimal()]
    assert 4 < len(shown) <= 7
    assert 5 in shown


def test_the_plot() -> None:
    pytest.importorskip("matplotlib")
    curve = epoch_curve({1: _epoch(range(20)), 5: _epoch(range(30))})
    figure = plots.epochs(curve)
    assert figure.axes[0].get_xlabel() == "epoch"
    assert plots.EpochsDisplay.from_curve(curve).curve is curve


def test_an_epoch_that_finds_nothing_is_not_among_the_best() -> None:
    """A difference without any spread over images is certain."""
    boxes = [[0, 0, 20, 20]] * 40
    truth = GroundTruth.from_arrays(range(40), ["cat"] * 40, boxes)
    right = Detections.from_arrays(range(40), ["cat"] * 40, boxes, [0.9] * 40)
    wrong = Detections.from_arrays(range(40), ["cat"] * 40, [[50, 50, 70, 70]] * 40, [0.9] * 40)
    curve = epoch_curve((n, evaluate(truth, found)) for n, found in ((1, wrong), (2, right)))
    assert curve.values.tolist() == [0, 1]
    assert curve.may_be_best.tolist() == [False, True]
    assert curve.p_values.tolist() == [0, 1]


@pytest.mark.parametrize("file", ["a.json", "a_1.json"])
def test_folders_of_one_file_per_image_are_named(file: str, tmp_path: Path, run: Run) -> None:
    _write(tmp_path)
    for epoch in (1, 2, 10):
        folder = tmp_path / f"runs/epoch_{epoch}"
        folder.mkdir(parents=True)
        for name in (file, "b.json", "b_2.json"):
            (folder / name).write_text(f'[{{"image_id": {epoch}}}]')
    said = run.error("epochs", tmp_path / "gt.json", tmp_path / "runs")
    assert f"if a folder is an epoch, name the folders: '{tmp_path}/runs/epoch_*'" in said
    found = find_epochs(f"{tmp_path}/runs/epoch_*")
    assert {epoch: path.name for epoch, path in found.paths.items()} == {
        1: "epoch_1",
        2: "epoch_2",
        10: "epoch_10",
    }


def test_numbered_images_in_folders_of_epochs(tmp_path: Path) -> None:
    for name in ("epoch_1/a_1.json", "epoch_1/a_2.json", "epoch_2/a_1.json", "epoch_2/a_2.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("[]")
    with pytest.raises(InputError, match=r"if a folder is an epoch, name the folders: '.*/epoch_\*'"):
        find_epochs(tmp_path)
    for folder in ("epoch_1", "epoch_2"):
        (tmp_path / folder / "a_2.json").unlink()
        (tmp_path / folder / "a_1.json").rename(tmp_path / folder / "result.json")
    assert list(find_epochs(tmp_path).paths) == [1, 2]
