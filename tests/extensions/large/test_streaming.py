"""Parquet of every layout and order, read in partitions: the bits of reading it at once."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore._utils.files import temporary_folder
from boxscore.cli import main
from boxscore.data.alignment import align
from boxscore.distributed import scan
from boxscore.formats.parquet import FORMAT
from boxscore.formats.registry import format_named
from support import crowd_cases, instances, limits
from support.each import each
from support.examples import first_of
from support.insides import LocalEngine, distributed_evaluation
from support.quiet import quiet
from support.running import Run

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

IMAGES, CLASSES = 40, 3


def drawn(seed: int, *, texts: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns of ground truth and of detections: equal scores, images without objects, crowds."""
    rng = np.random.default_rng(seed)

    def boxes(count: int) -> dict[str, Any]:
        corner = rng.integers(0, 90, (count, 2)).astype(float)
        sides = rng.choice([4.0, 10.0, 30.0, 40.0], (count, 2))
        image = rng.integers(0, IMAGES, count) * 3 + 1
        return {"image": image, "label": rng.integers(0, CLASSES, count), "box": np.hstack([corner, sides])}

    truth, found = boxes(120), boxes(400)
    truth["crowd"] = rng.random(120) < 0.1
    found["image"] = rng.choice(truth["image"], 400)
    copied = rng.integers(0, 120, 250)
    for name in ("image", "label", "box"):
        found[name][:250] = truth[name][copied]
    found["box"][:250, 2:] += rng.integers(0, 3, (250, 2))
    found["score"] = rng.integers(1, 20, 400) / 20
    if texts:
        for side in (truth, found):
            side["image"] = np.array([f"img_{number:03d}" for number in side["image"].tolist()], dtype=object)
    return truth, found


def flat(columns: dict[str, Any], order: Any) -> Any:
    box = columns["box"][order]
    table = {
        "image_id": columns["image"][order].tolist(),
        "category_id": columns["label"][order],
        **{name: box[:, at] for at, name in enumerate(("left", "top", "width", "height"))},
    }
    table |= {
        name: columns[key][order]
        for name, key in (("score", "score"), ("iscrowd", "crowd"))
        if key in columns
    }
    return pa.table(table)


def lists(columns: dict[str, Any], order: Any, *, structures: bool = False) -> Any:
    image = columns["image"][order]
    rows = []
    for one in dict.fromkeys(image.tolist()):
        own = order[np.flatnonzero(image == one)]
        item = {"xywh": columns["box"][own].tolist(), "category_id": columns["label"][own].tolist()}
        item |= {
            name: columns[key][own].tolist()
            for name, key in (("score", "score"), ("iscrowd", "crowd"))
            if key in columns
        }
        if structures:
            rows.append(
                {
                    "image_id": one,
                    "objects": [
                        dict(zip(item, cell, strict=True)) for cell in zip(*item.values(), strict=True)
                    ],
                }
            )
        else:
            rows.append({"image_id": one, **item})
    return pa.Table.from_pylist(rows)


def write(table: Any, path: Path, *, files: int, rows: int) -> Path:
    """Write a file, or a folder of part files, in row groups of some rows."""
    if files == 1:
        pq.write_table(table, path, row_group_size=rows)
        return path
    path.mkdir()
    bounds = np.linspace(0, len(table), files + 1).astype(int)
    for number, (low, high) in enumerate(itertools.pairwise(bounds.tolist())):
        pq.write_table(table.slice(low, high - low), path / f"part-{number}.parquet", row_group_size=rows)
    return path


def bits(evaluation: boxscore.Evaluation) -> Any:
    arrays = {name: array.tobytes() for name, array in evaluation.arrays().items()}
    counts = {name: array.tolist() for name, array in evaluation.class_counts.items()}
    numbers = np.array(list(evaluation.metrics.values())).tobytes()
    return arrays, numbers, counts, evaluation.counts, evaluation._image_fingerprint


def whole(truth: Any, found: Any, protocol: Any) -> boxscore.Evaluation:
    with quiet():
        return boxscore.evaluate(truth, found, protocol=protocol)


@pytest.mark.long
@pytest.mark.parametrize("layout", ["flat", "lists", "structures"])
@pytest.mark.parametrize("order", first_of(1, ["scattered", "by image", "grouped"]))
@pytest.mark.parametrize("protocol", ["coco", "voc2012"])
def test_every_layout_and_order(tmp_path: Path, layout: str, order: str, protocol: str) -> None:
    truth, found = drawn(7, texts=layout == "lists")
    rng = np.random.default_rng(3)
    sides = []
    for name, columns in (("truth", truth), ("found", found)):
        if order == "by image":
            rows = np.argsort(columns["image"], kind="stable")
        elif order == "grouped":
            place = {one: at for at, one in enumerate(rng.permutation(np.unique(columns["image"])).tolist())}
            rows = np.argsort([place[one] for one in columns["image"].tolist()], kind="stable")
        else:
            rows = rng.permutation(len(columns["image"]))
        table = (
            flat(columns, rows)
            if layout == "flat"
            else lists(columns, rows, structures=layout == "structures")
        )
        sides.append(
            write(
                table,
                tmp_path / f"{name}{'' if name == 'found' else '.parquet'}",
                files=3 if name == "found" else 1,
                rows=16,
            )
        )
    expected = bits(whole(*sides, protocol))
    for partitions in (1, 5):
        assert bits(scan(*sides, protocol=protocol, partitions=partitions)) == expected
    table = boxscore.load_ground_truth(sides[0])
    assert bits(scan(table, sides[1], protocol=protocol, partitions=4)) == expected


def test_convert_writes_partitions_of_whole_images(tmp_path: Path) -> None:
    truth, found = drawn(1)
    pq.write_table(flat(truth, np.arange(120)), tmp_path / "gt.parquet")
    pq.write_table(flat(found, np.arange(400)), tmp_path / "dt.parquet")
    expected = bits(whole(tmp_path / "gt.parquet", tmp_path / "dt.parquet", "coco"))
    common = ["convert", "--gt", str(tmp_path / "gt.parquet"), "--to", "parquet", "--partitions", "5"]
    assert main([*common, "--output", str(tmp_path / "truth")]) == 0
    assert main([*common, "--dt", str(tmp_path / "dt.parquet"), "--output", str(tmp_path / "found")]) == 0
    files = sorted((tmp_path / "found").iterdir())
    assert [file.name for file in files] == [f"part-{number:05d}.parquet" for number in range(5)]
    images = [set(pq.read_table(file).column("image_id").to_pylist()) for file in files]
    assert sum(map(len, images)) == len(set.union(*images))
    assert bits(scan(tmp_path / "truth", tmp_path / "found", partitions=3)) == expected
    assert main([*common, "--output", str(tmp_path / "truth")]) == 2  # not into files that are there


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 12))])
@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")  # of boxes drawn beside their masks
def test_masks_are_written_and_read_in_partitions(tmp_path: Path, seed: int) -> None:
    """As one file and as part files, some without a detection; boxes are left out where none were given."""
    tables = instances.load(tmp_path, *instances.mask_case(seed))
    boxscore.save_as(tables[0], tmp_path / "truth.parquet")
    boxscore.save_as(tables[1], tmp_path / "found.parquet")
    for table, name in zip(tables, ("truth", "found"), strict=True):
        format_named("parquet").save_partitions(table, tmp_path / name, 3)
    expected = {kind: bits(whole(*tables, instances.PROTOCOLS[kind])) for kind in ("segm", "boundary")}
    for sides in itertools.product(("truth.parquet", "truth"), ("found.parquet", "found")):
        paths = [tmp_path / side for side in sides]
        assert boxscore.load_detections(paths[1], tables[0]).boxes_given == tables[1].boxes_given
        for kind, numbers in expected.items():
            assert bits(whole(*paths, instances.PROTOCOLS[kind])) == numbers
            for partitions in (1, 4):
                result = scan(*paths, protocol=instances.PROTOCOLS[kind], partitions=partitions)
                assert bits(result) == numbers


# ---------------------------------------------------------------- the command line


def on_disk(folder: Path, seed: int = 2) -> tuple[str, str]:
    truth, found = drawn(seed)
    rng = np.random.default_rng(seed)
    write(flat(truth, rng.permutation(120)), folder / "truth", files=2, rows=30)
    write(flat(found, rng.permutation(400)), folder / "found", files=3, rows=50)
    return str(folder / "truth"), str(folder / "found")


def test_the_command_line_prints_what_one_evaluation_prints(tmp_path: Path, run: Run) -> None:
    sides = on_disk(tmp_path)
    command = ["evaluate", *sides, "--output", "json", "--no-digest", "--classes", "1", "2"]
    expected = json.loads(run(*command).out)
    assert json.loads(run(*command, "--memory-limit", "2GB").out) == expected
    assert "--memory-limit must be " in run.error(*command, "--memory-limit", "10MB")
    assert "--verify must not be combined with --memory-limit" in run.error(
        *command, "--memory-limit", "2GB", "--verify"
    )


def test_parts_of_the_command_line_are_merged(tmp_path: Path, run: Run) -> None:
    sides = on_disk(tmp_path)
    command = ["evaluate", *sides, "--no-digest", "--per-class"]
    expected = run(*command).out
    images = sorted(
        {number * 3 + 1 for number in range(IMAGES)}
        & set(boxscore.load_ground_truth(sides[0]).images.ids.tolist())
    )
    files = []
    for number in range(2):
        files.append(str(tmp_path / f"{number}.npz"))
        own = [str(image) for image in images[number::2]]
        run(*command, "--images", *own, "--save-part", files[-1])
    assert run("merge", *files, "--per-class").out == expected
    assert "an image must be in one of the parts to merge" in run.error("merge", files[0], files[0])


def crowds_on_disk(name: str, folder: Path) -> tuple[boxscore.GroundTruth, tuple[Path, Path]]:
    truth, found = crowd_cases.crowd_case(12, name)
    FORMAT.save(truth, folder / "truth.parquet")
    FORMAT.save_partitions(align(found, truth), folder / "found", 3)
    return truth, (folder / "truth.parquet", folder / "found")


@pytest.mark.parametrize(
    "name", ["crowdhuman", "citypersons", "caltech", "widerface", "visdrone", "miss rates at caps"]
)
def test_crowds_in_parquet(name: str, tmp_path: Path) -> None:
    """Columns that the protocol bounds are read, scores are stretched and regions dropped as at once."""
    truth, sides = crowds_on_disk(name, tmp_path)
    rules = crowd_cases.crowd_protocol(name)
    result = whole(*sides, rules)
    expected = bits(result)
    assert len(result.matched)
    assert bits(scan(*sides, protocol=rules, partitions=3)) == expected
    assert bits(scan(truth, sides[1], protocol=rules, partitions=3)) == expected


def test_a_partition_with_one_score_is_stretched_with_the_others(tmp_path: Path) -> None:
    images = [image for seed in range(3, 6) for image in crowd_cases.scene(seed, tall=False)]
    images = [(truths, found[:1]) for truths, found in images]
    truth, found = crowd_cases.tables(images)
    FORMAT.save(truth, tmp_path / "truth.parquet")
    FORMAT.save_partitions(align(found, truth), tmp_path / "found", len(images))
    sides = tmp_path / "truth.parquet", tmp_path / "found"
    expected = whole(*sides, "widerface")
    assert expected.matches["score"].nunique() > 2
    assert bits(scan(*sides, protocol="widerface", partitions=len(images))) == bits(expected)


def test_regions_are_of_a_class_that_is_not_chosen(tmp_path: Path, run: Run) -> None:
    _, (truth, found) = crowds_on_disk("visdrone", tmp_path)
    command = ["evaluate", "--gt", str(truth), "--dt", str(found)]
    command += ["--protocol", "visdrone", "--classes", "c1", "c2", "--output", "json", "--no-digest"]
    expected = json.loads(run(*command).out)
    assert json.loads(run(*command, "--memory-limit", "2GB").out) == expected
    assert expected["counts"]["detections"] > 0


@pytest.mark.long
def test_parts_of_crowds_by_the_command_line(tmp_path: Path, run: Run) -> None:
    """Shares of one data set, files of their own: clipped, in file order, with miss rate and Jaccard index."""
    images = [image for seed in range(3, 9) for image in crowd_cases.scene(seed)]
    sides = crowd_cases.write_odgt(tmp_path, images)
    command = ["evaluate", "--protocol", "crowdhuman", "--no-digest", "--per-class"]
    expected = run(*command, *sides).out
    files = []
    for number, own in enumerate([slice(0, 5), slice(5, 6), slice(6, None)]):
        share = []
        for side in sides:
            lines = side.read_text().splitlines(keepends=True)
            share.append(tmp_path / f"{side.stem}{number}.odgt")
            share[-1].write_text("".join(lines[own]))
        files.append(str(tmp_path / f"{number}.npz"))
        run(*command, *share, "--save-part", files[-1])
    assert run("merge", *files, "--per-class").out == expected


# ---------------------------------------------------------------- what is wrong is named


def changed(folder: Path, column: str, row: int, value: Any) -> None:
    """Change a cell of the second file of detections."""
    path = folder / "found" / "part-1.parquet"
    table = pq.read_table(path)
    cells = table.column(column).to_pylist()
    cells[row] = value
    at = table.schema.get_field_index(column)
    pq.write_table(table.set_column(at, column, pa.array(cells)), path, row_group_size=50)


@pytest.mark.long
@each(
    [
        ("left", None, "row 20 of row group 1 of "),
        ("score", float("nan"), "row 20 of row group 1 of "),
        ("image_id", 99999, "row 20 of row group 1 of "),
        ("image_id", None, "row 20 of row group 1 of "),
        ("category_id", None, "row 20 of row group 1 of "),
        ("width", -3.0, "row 20 of row group 1 of "),
    ]
)
def test_a_bad_row_names_file_row_group_and_row(column: str, value: Any, place: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sides = on_disk(folder)
        changed(folder, column, 70, value)
        with pytest.raises(boxscore.InputError) as caught:
            scan(*sides, partitions=4)
        assert place in str(caught.value), caught.value
        assert "part-1.parquet" in str(caught.value)


def test_a_file_without_scores_is_named(tmp_path: Path, run: Run) -> None:
    sides = on_disk(tmp_path)
    path = tmp_path / "found" / "part-1.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["score"]), path)
    said = f"part files must have the same columns. Got no column 'score' in {path} in {sides[1]}."
    assert said in run.error("evaluate", *sides)
    assert said in run.error("evaluate", *sides, "--memory-limit", "2GB")


def test_scattered_rows_are_regrouped_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = on_disk(tmp_path)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    regrouped: list[list[str]] = []

    def run_all(run: Any, tasks: Any) -> list[Any]:
        regrouped.extend([path.name for path in temporary.rglob("*") if path.is_file()] for _ in tasks)
        return [run(task) for task in tasks]

    assert bits(scan(*sides, partitions=6, map=run_all)) == bits(whole(*sides, "coco"))
    assert len(regrouped) == 6
    assert len(regrouped[0]) >= 6
    assert not list(temporary.iterdir())


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_processes_score_from_files_and_nothing_is_left(workers: int, tmp_path: Path) -> None:
    sides = on_disk(tmp_path)
    result, protocol = whole(*sides, "coco"), boxscore.load_protocol("coco")

    def score(run: Any, tasks: Any) -> Any:
        with temporary_folder(tmp_path) as folder, LocalEngine(folder, workers) as engine:
            parts = engine.match(tasks)
            for most in (10**6, 25):  # the large classes by ranges of scores
                for asked in (None, protocol):  # then the other area ranges and caps from the files
                    some = distributed_evaluation(parts, engine, asked=asked, most=most)
                    np.testing.assert_array_equal(list(some.metrics.values()), list(result.metrics.values()))
                    assert bits(some) == bits(result)
        assert not list(tmp_path.glob("boxscore-*"))
        return map(run, tasks)

    assert bits(scan(*sides, partitions=5, map=score)) == bits(result)


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.long)])
def test_the_command_line_scores_classes_by_ranges_of_scores(
    workers: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes of its own are told how many detections they draw together."""
    command = ["evaluate", *on_disk(tmp_path), "--output", "json", "--no-digest"]
    expected = json.loads(run(*command).out)
    limits.few_detections_at_a_time(monkeypatch, 25)
    assert json.loads(run(*command, "--memory-limit", "4GB", "--workers", workers).out) == expected


@pytest.mark.long
def test_a_process_that_is_killed(tmp_path: Path) -> None:
    with LocalEngine(tmp_path, 2) as engine:
        once = [engine.submit("one", end_once, tmp_path / "ended"), engine.submit("two", abs, -2)]
        assert engine.results(once) == ["alive", 2]
        with pytest.raises(boxscore.InputError, match="three must be finished by a process"):
            engine.results([engine.submit("three", os._exit, 9), engine.submit("four", abs, -2)])
        assert engine.results([engine.submit("five", abs, -2)] * 2) == [2, 2]


def end_once(path: Path) -> str:
    if not path.exists():
        path.touch()
        os._exit(9)
    return "alive"
