"""The command line: exit statuses, forms of output, choices, and what it never does."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import boxscore
from boxscore.cli import COMMANDS
from boxscore.protocols import load_protocol, protocol_names, protocol_toml
from support.examples import first_of
from support.program import SOURCES, run_boxscore, run_python
from support.running import Run
from support.samples import DT, GT, SHAPES_VOC
from support.scenes import CROWDS
from support.shipped import shipped

COCO = ["evaluate", "--gt", GT, "--dt", DT]
VOC_GT, VOC_DT = str(SHAPES_VOC / "VOC2007"), str(SHAPES_VOC / "results")
VOC = ["evaluate", "--gt", VOC_GT, "--dt", VOC_DT, "--image-set", "test", "--protocol", "voc2007"]


@pytest.fixture(scope="module")
def evaluation() -> boxscore.Evaluation:
    truth = boxscore.load_ground_truth(GT)
    return boxscore.evaluate(truth, boxscore.load_detections(DT, truth))


# ---------------------------------------------------------------- help


def test_help(run: Run) -> None:
    for arguments in ([], ["--help"]):
        output, errors = run(*arguments)
        assert errors == ""
        unwrapped = " ".join(output.split())
        for command, text in COMMANDS.items():
            assert f"{command} {text}" in unwrapped


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_commands(command: str, run: Run) -> None:
    output, errors = run(command, "--help")
    assert output.startswith(f"usage: boxscore {command}")
    assert max(map(len, output.splitlines())) <= 80
    assert errors == ""


def test_version(run: Run) -> None:
    for option in ("--version", "-V"):
        assert run(option) == (f"boxscore {boxscore.__version__}\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["evalute"],
        ["evaluate"],
        ["evaluate", "--gt", GT],
        [*COCO, "--output", "xml"],
        [*COCO, "--format", "cocoa"],
        [*COCO, "--workers", "two"],
        [*COCO, "--nonsense"],
        [*COCO, "--classes"],
        ["run"],
    ],
)
def test_usage_errors(arguments: list[str], run: Run) -> None:
    output, errors = run(*arguments, status=2)
    assert output == ""
    wrong, advice = errors.splitlines()
    assert wrong.startswith("boxscore: error: ")
    assert "boxscore" in advice or advice.startswith("Possible values: ")


# ---------------------------------------------------------------- forms of output


PER_CLASS = ["per_class", "operating_point"]


def test_json(run: Run, evaluation: boxscore.Evaluation) -> None:
    value = run.json(*COCO)
    assert list(value) == [
        "schema",
        "protocol",
        "signature",
        "metrics",
        *PER_CLASS,
        "counts",
        "images_digest",
        "warnings",
    ]
    assert value["protocol"] == "coco"
    assert value["signature"] == evaluation.signature
    assert value["metrics"] == evaluation.metrics
    assert value["counts"] == evaluation.counts
    assert value["warnings"] == []
    assert [row["class"] for row in value["per_class"]] == evaluation.labels
    ap = [row["AP"] for row in value["per_class"]]
    assert ap == [None if v != v else v for v in evaluation.per_class["AP"]]
    assert None in ap  # undefined


@pytest.mark.parametrize(
    "protocol",
    [
        name
        for name in protocol_names()
        if shipped()[name].similarity == "box"
        and name not in CROWDS
        and shipped()[name].matching.scores == "given"
        and any(row.metric == "AP" and not (row.classes or row.harmonic_of) for row in shipped()[name].rows)
    ],
)
def test_every_protocol_gives_a_class_its_ap(protocol: str, run: Run) -> None:
    output, errors = run(*COCO, "--protocol", protocol, "--no-digest", "--output", "json")
    value = json.loads(output)
    assert ("which classes were annotated in it" in errors) == (
        load_protocol(protocol).labels.unlisted == "drop"
    )
    assert value["protocol"] == protocol
    assert all("AP" in row for row in value["per_class"])
    assert list(value["metrics"]) == [row.key for row in load_protocol(protocol).rows]


def evaluation_keys() -> list[str]:
    return ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"]


def test_csv(run: Run, evaluation: boxscore.Evaluation) -> None:
    output, _ = run(*COCO, "--output", "csv")
    rows = list(csv.DictReader(io.StringIO(output)))
    assert {row["metric"]: float(row["value"]) for row in rows} == evaluation.metrics
    output, _ = run(*COCO, "--output", "csv", "--per-class")
    rows = list(csv.DictReader(io.StringIO(output)))
    assert [row["class"] for row in rows] == evaluation.labels
    assert [row["AP"] and float(row["AP"]) for row in rows] == [
        "" if v != v else v for v in evaluation.per_class["AP"]
    ]


def test_markdown(run: Run, evaluation: boxscore.Evaluation) -> None:
    output, _ = run(*COCO, "--output", "markdown")
    assert f"| AP | {evaluation.metrics['AP']:.4f} | 0.50:0.95 | all | 100 |" in output
    assert output.rstrip().endswith(f"`{evaluation.signature}`")
    assert "| hexagon |" not in output
    assert "| hexagon |" in run(*COCO, "--output", "markdown", "--per-class")[0]


def test_text(run: Run, evaluation: boxscore.Evaluation) -> None:
    output, _ = run(*COCO)
    lines = output.splitlines()
    for row, (key, value) in zip(evaluation.protocol.rows, evaluation.metrics.items(), strict=True):
        cap = evaluation.protocol.caps[row.cap]
        assert any(
            line.split() == [key, f"{value:.4f}", evaluation.protocol.iou_text(row), row.area, str(cap)]
            for line in lines
        )
    assert "24 images, 108 ground truths and 5 crowd regions, 282 detections, 7 classes" in lines
    assert lines[-1] == evaluation.signature
    per_class, _ = run(*COCO, "--per-class", "--wide")
    assert len(per_class.splitlines()) == len(lines) + 3 + 1 + 7  # a title between blank lines


# ---------------------------------------------------------------- choices


def test_classes(run: Run, tmp_path: Path, evaluation: boxscore.Evaluation) -> None:
    names = tmp_path / "names.txt"
    names.write_text("\ufeffcircle\n\n star \n", encoding="utf-8")
    chosen = run.json(*COCO, "--classes", str(names))
    truth = evaluation.ground_truth
    ids = [str(truth.categories.ids[evaluation.labels.index(name)]) for name in ("circle", "star")]
    assert [row["class"] for row in chosen["per_class"]] == ["circle", "star"]
    assert run.json(*COCO, "--classes", "star", "circle") == chosen
    assert run.json(*COCO, "--classes", *ids) == chosen
    assert run.json(*COCO, "--classes", ids[0], "star") == chosen
    full = {row["class"]: row for row in run.json(*COCO)["per_class"]}
    assert chosen["per_class"] == [full["circle"], full["star"]]


def test_images(run: Run, tmp_path: Path) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_text("101\n117\n", encoding="utf-8")
    chosen = run.json(*COCO, "--images", str(ids))
    assert chosen["counts"]["images"] == 2
    assert run.json(*COCO, "--images", "117", "101") == chosen
    voc = run.json(*VOC, "--images", "000003", "000009")
    assert voc["counts"]["images"] == 2


def test_a_name_that_is_a_file_too(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class goes before a file of the same name."""
    (tmp_path / "circle").write_text("star\n")
    monkeypatch.chdir(tmp_path)
    assert [row["class"] for row in run.json(*COCO, "--classes", "circle")["per_class"]] == ["circle"]


@pytest.mark.parametrize("workers", ["1", "2", "5"])
def test_workers_do_not_change_the_result(workers: str, run: Run) -> None:
    assert run.json(*COCO, "--workers", workers) == run.json(*COCO)
    assert run.json(*VOC, "--workers", workers) == run.json(*VOC)


def test_protocol_files(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('extends = "coco"\n[matching]\nmax_detections = [50]\n')
    value = run.json(*COCO, "--protocol", str(path))
    assert value["protocol"] == "mine"
    assert "AR50" in value["metrics"]


def test_formats_and_protocols_are_independent(run: Run) -> None:
    coco_on_voc = run.json(*VOC[:-1], "coco", "--no-digest")
    assert list(coco_on_voc["metrics"]) == evaluation_keys()
    voc_on_coco = run.json(*COCO, "--protocol", "voc2012")
    assert list(voc_on_coco["metrics"]) == ["mAP"]
    results = str(SHAPES_VOC / "results_coco.json")
    json_results = run.json(*[results if value == VOC_DT else value for value in VOC])
    assert json_results["metrics"] == run.json(*VOC)["metrics"]


# ---------------------------------------------------------------- warnings


@pytest.fixture
def unknown_class(tmp_path: Path) -> list[str]:
    rows = json.loads(Path(DT).read_text())
    extra = [{**rows[0], "category_id": 77}, {**rows[1], "category_id": 77}, {**rows[2], "category_id": 78}]
    (tmp_path / "dt.json").write_text(json.dumps([*rows, *extra]))
    return ["evaluate", "--gt", GT, "--dt", str(tmp_path / "dt.json")]


def test_unknown_classes_are_warned_of(run: Run, unknown_class: list[str]) -> None:
    output, errors = run(*unknown_class, "--output", "json")
    text = "ignoring 3 detections of 2 classes that the ground truth does not have: 77, 78."
    assert errors == f"boxscore: warning: {unknown_class[-1]}: {text}\n"
    value = json.loads(output)
    assert value["warnings"] == [f"{unknown_class[-1]}: {text}"]
    assert value["counts"]["left_out"] == 3
    assert value["metrics"] == run.json(*COCO)["metrics"]


def test_strict_makes_it_an_error(run: Run, unknown_class: list[str]) -> None:
    output, errors = run(*unknown_class, "--strict", status=2)
    assert output == ""
    assert errors.startswith(f"boxscore: error: {unknown_class[-1]}: ignoring 3 detections")
    assert len(errors.splitlines()) == 1
    run(*COCO, "--strict")


def test_hostile_class_names_do_not_steer_the_terminal(run: Run, tmp_path: Path) -> None:
    rows = json.loads(Path(DT).read_text())
    rows.append({**rows[0], "category_id": "\x1b[31mred\nboxscore: all is well"})
    (tmp_path / "dt.json").write_text(json.dumps(rows))
    _, errors = run("evaluate", "--gt", GT, "--dt", str(tmp_path / "dt.json"))
    assert "\x1b" not in errors
    assert len(errors.splitlines()) == 1


# ---------------------------------------------------------------- verify, report, run


def test_verify(run: Run) -> None:
    text = "verified against pycocotools: largest difference 0.0 (precision 0, recall 0, scores 0)\n"
    output, errors = run(*COCO, "--verify")
    assert output.endswith(text)
    assert errors == ""
    output, errors = run(*COCO, "--verify", "--output", "json")
    json.loads(output)
    assert errors == text


def test_verify_fails_with_status_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from boxscore.compat import verification

    monkeypatch.setattr(
        verification,
        "verify",
        lambda _: verification.Verification({"precision": 0.5}, "first in precision"),
    )
    output, errors = run(*COCO, "--verify", status=1)
    assert output.startswith("COCO detection")
    assert errors == (
        "boxscore: differs from pycocotools: largest difference 0.5 (precision 0.5); first in precision\n"
    )


def test_report(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "reports" / "today"
    output, errors = run(*COCO, "--report", str(folder))
    assert errors == f"report written to {folder / 'report.html'}\n"
    assert output == run(*COCO)[0]
    files = {entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir()}
    assert sorted(files) == [
        *("per_class.csv", "report.html", "report.md", "result.json", "summary.csv"),
    ]
    result = json.loads(files["result.json"])
    # 24 images are too few for one area range, and recall of the first detections has no interval.
    assert set(result.pop("intervals")) == {"AP", "AP50", "AP75", "AR100"}
    assert result == run.json(*COCO)
    assert files["summary.csv"] == run(*COCO, "--output", "csv")[0]
    assert files["per_class.csv"] == run(*COCO, "--output", "csv", "--per-class")[0]
    markdown = run(*COCO, "--output", "markdown", "--per-class")[0].rstrip("\n")
    assert files["report.md"].startswith(
        f"{markdown}\n\n### 95% intervals\n\nAP 0.340; without the bias of few"
    )


def test_run_configurations(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are relative to the file, not to where the command is run."""
    folder = tmp_path / "configs"
    folder.mkdir()
    (folder / "mine.toml").write_text('extends = "voc2007"\n')
    (folder / "list.txt").write_text("000003\n000009\n")
    config = folder / "run.toml"
    config.write_text(
        f"""
        [ground_truth]
        path = {os.path.relpath(VOC_GT, folder)!r}
        format = "voc"
        image_set = "list.txt"
        [detections]
        path = {os.path.relpath(SHAPES_VOC / "small", folder)!r}
        [evaluation]
        protocol = "mine.toml"
        classes = ["circle", "square"]
        workers = 2
        [output]
        form = "json"
        report = "out"
        """
    )
    small = SHAPES_VOC / "results_coco.json"
    rows = [row for row in json.loads(small.read_text()) if row["image_id"] in ("000003", "000009")]
    rows = [row for row in rows if row["category_id"] in ("circle", "square")]
    (folder / "small.json").write_text(json.dumps(rows))
    config.write_text(
        config.read_text().replace(os.path.relpath(small.with_name("small"), folder), "small.json")
    )
    monkeypatch.chdir("/")
    output, errors = run("run", str(config))
    value = json.loads(output)
    assert value["protocol"] == "mine"
    assert value["counts"]["images"] == 2
    assert [row["class"] for row in value["per_class"]] == ["circle", "square"]
    assert (folder / "out" / "result.json").is_file()
    assert errors == f"report written to {folder / 'out' / 'report.html'}\n"


def test_run_is_evaluate_with_the_arguments_of_the_file(run: Run) -> None:
    configs = Path(__file__).parents[2] / "configs"
    assert sorted(entry.name for entry in configs.glob("*.toml")) >= ["shapes-coco.toml", "shapes-voc.toml"]
    for config in configs.glob("*.toml"):
        text = config.read_text(encoding="utf-8")
        assert 'report = "../reports-out/' in text


def test_protocols(run: Run) -> None:
    output, _ = run("protocols", "--wide")
    for name in protocol_names():
        assert any(line.startswith(name) and f"|{name}|" in line for line in output.splitlines())
        assert run("protocols", name)[0] == protocol_toml(name)


# ---------------------------------------------------------------- the process


def test_a_reader_that_leaves_early() -> None:
    """``boxscore ... | head -1``: no traceback, no message."""
    with subprocess.Popen(
        [sys.executable, "-m", "boxscore", *COCO, "--per-class", "--output", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": SOURCES},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(60) == 0
    assert errors == b""


def test_the_program_and_the_module_are_one() -> None:
    status, output, errors = run_boxscore(["--version"])
    assert (status, output, errors) == (0, f"boxscore {boxscore.__version__}\n", "")


@pytest.mark.parametrize("encoding", first_of(2, ["ascii", "utf-8", "cp1252"]))
@pytest.mark.parametrize("form", first_of(1, ["text", "markdown", "csv", "json"]))
def test_names_that_the_terminal_cannot_show(encoding: str, form: str, tmp_path: Path) -> None:
    truth = json.loads(Path(GT).read_text())
    truth["categories"][0]["name"] = "猫" * 41
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    status, output, errors = run_boxscore(
        ["evaluate", "--gt", str(tmp_path / "gt.json"), "--dt", DT, "--per-class", "--output", form],
        PYTHONIOENCODING=encoding,
    )
    assert (status, errors) == (0, "")
    if form == "json":
        assert "猫" * 41 in {row["class"] for row in json.loads(output)["per_class"]}
    else:
        assert ("猫" if encoding == "utf-8" else "\\u732b") in output


def test_importing_boxscore_loads_little() -> None:
    code = "import sys, boxscore; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    status, output, _ = run_python(["-c", code])
    loaded = set(output.split())
    assert status == 0
    assert "boxscore" in loaded
    assert not loaded & {
        "numpy",
        "pandas",
        "matplotlib",
        "pycocotools",
        "msgspec",
        "tqdm",
        "scipy",
        "torch",
        "tomli",
    }


def test_evaluating_loads_neither_pandas_nor_pycocotools() -> None:
    code = (
        "import sys\nfrom boxscore.cli import main\n"
        f"assert main({[*COCO, '--per-class']!r}) == 0\n"
        "print(*sorted({'pandas', 'pycocotools', 'matplotlib'} & set(sys.modules)), file=sys.stderr)"
    )
    assert run_python(["-c", code])[2] == "\n"
