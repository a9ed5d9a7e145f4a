"""A format is one file and one line: everything else asks the registry."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, ClassVar

import pytest

import boxscore
from boxscore._utils.lazy import loaded
from boxscore.errors import FileFormatError
from boxscore.extensions.data_tools.converting import lost
from boxscore.extensions.formats.columns import ColumnsFormat
from boxscore.formats import detect_format, format_names, reading, registry
from boxscore.formats._format import Format, ReadOptions
from boxscore.formats._sniffer import Sniffer
from boxscore.validation import validate_files
from support.program import run_python
from support.running import Run
from support.samples import SHAPES


def test_every_format_has_its_name() -> None:
    assert format_names()[:2] == ("auto", "coco")
    for name in format_names(auto=False):
        assert registry.format_named(name).name == name


def test_what_single_formats_can_do_is_there() -> None:
    for name, what in registry._CAPABILITIES:
        assert registry.capability(registry.format_named(name), what), (name, what)
    assert registry.capability(registry.format_named("kitti"), "rewrite") is None


def test_options_of_few_formats_are_loaded_by_name() -> None:
    for option in reading.FURTHER.values():
        for text in (option.check, option.applied):
            assert not text or callable(loaded(text))
    with pytest.raises(TypeError, match="unexpected keyword argument 'loosely'"):
        reading.read_options(loosely=True)


def test_choices_of_the_command_line(run: Run) -> None:
    output = run("formats", "--output", "json").out
    assert [name for name in format_names(auto=False) if f'"{name}"' not in output] == []


class _Lines(Format):
    """One box a line: ``image class x1 y1 x2 y2 [score]``."""

    name = "lines"
    boxes = "xyxy"

    def detect(self, sniffer: Sniffer) -> str | None:
        return "a file of lines" if sniffer.suffix == ".lines" else None

    def load_ground_truth(self, path: Path, options: ReadOptions) -> boxscore.GroundTruth:
        rows = [line.split() for line in path.read_text().splitlines()]
        return boxscore.GroundTruth.from_arrays(
            [row[0] for row in rows], [row[1] for row in rows], [list(map(float, row[2:6])) for row in rows]
        )

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: boxscore.GroundTruth | None
    ) -> boxscore.Detections:
        rows = [line.split() for line in path.read_text().splitlines()]
        return boxscore.Detections.from_arrays(
            [row[0] for row in rows],
            [row[1] for row in rows],
            [list(map(float, row[2:6])) for row in rows],
            [float(row[6]) for row in rows],
        )

    def save(self, table: Any, path: Path, *, like: Path | None = None) -> None:
        raise NotImplementedError


def test_a_format_is_one_object_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    named = registry.format_named
    monkeypatch.setattr(registry, "_FORMATS", {"lines": registry._Entry(""), **registry._FORMATS})
    monkeypatch.setattr(registry, "format_named", lambda name: _Lines() if name == "lines" else named(name))
    truth, detections = tmp_path / "gt.lines", tmp_path / "dt.lines"
    truth.write_text("a cat 0 0 10 10\nb dog 5 5 9 9\n")
    detections.write_text("a cat 0 0 10 10 0.5\n")
    assert detect_format(truth) == ("lines", "a file of lines")
    command = [
        "evaluate",
        "--gt",
        str(truth),
        "--dt",
        str(detections),
        "--format",
        "lines",
        "--output",
        "csv",
    ]
    assert "AR100,0.5," in run(*command).out
    (tmp_path / "run.toml").write_text(
        '[ground_truth]\npath = "gt.lines"\nformat = "lines"\n[detections]\npath = "dt.lines"\n'
        '[output]\nform = "csv"\n'
    )
    run("run", tmp_path / "run.toml")
    assert {finding.code for finding in validate_files(truth, detections, format="lines")} >= {
        "class-without-detections"
    }


KEYS = (
    *("labels", "category", "box2d", "coordinates", "label", "assets", "asset", "regions", "videoSettings"),
    *("_via_img_metadata", "filename", "size", "shape_attributes", "source-ref", "categories", "items"),
    *("dm_format_version", "result", "data", "from_name", "rectanglelabels", "original_width"),
    *("imageData", "shapes", "shape_type", "imagePath", "image_id", "bbox", "image", "box", "answer"),
)
ENDINGS = ("", ".json", ".jsonl", ".txt", ".xml", ".yaml", ".data", ".csv", ".npz", ".parquet")
HEADS = (
    *(b"PK\x03\x04", b"PAR1", b"<annotations><image", b"<annotation>", b"names: [a]\nnc: 1\ntrain: x\n"),
    *(b"classes = 1\ntrain = a.txt\nnames = b\n", b"images/a.jpg\nimages/b.jpg\n"),
    *(
        b'{"images": [{"id": 1, "text_input": "a"}]}',
        b'{"images": [{"id": 1, "caption": "a"}]}',
        b'{"descriptions": [{"id": 1, "text": "a"}]}',
        b'{"ID": "a", "gtboxes": []}\n{"ID": "b", "gtboxes": []}\n',
        b'{"annotations": [{"bbox": [], "vis_ratio": 1}]}',
        b'{"samples": [{"filepath": "a.jpg"}]}',
        b'{"item": {"name": "a.jpg", "slots": []}, "annotations": []}',
        b'{"metadata": {"name": "a.jpg"}, "instances": []}',
        b'[{"reference_id": "a", "geometry": {}}]',
        b'{"dataRow": {"id": "a"}, "bbox": {}}',
        b'{"type": "dataset", "task": "detect"}\n{"type": "image"}',
        b'[{"frame_id": 1, "filename": "a.jpg", "objects": []}]',
        b'{"images": [{"file": "a.jpg", "detections": []}]}',
        b'{"a.jpg": [{"name": "cat", "class": 0, "confidence": 0.5, "box": {"x1": 1}}]}',
        b'[[{"score": 0.5, "label": "cat", "box": {"xmin": 1}}]]',
        b'{"predictions": [], "image": {"width": 1, "height": 1}}',
        b'[{"image": "a.jpg", "boxes": [], "labels": []}]',
        b'{"imageGcsUri": "gs://a.jpg", "boundingBoxAnnotations": []}\n',
        b"TEST,gs://a.jpg,cat,0,0,1,0,1,1,0,1\n",
        b"filename,region_count,region_shape_attributes\n",
        b'{"type": "bounding-box-labels", "boundingBoxes": {}}',
        b'{"type": "localization", "labels": [], "annotations": {}}',
        b'{"captures": [{"annotations": []}]}',
        b'{"openlabel": {}}',
        b'{"labels": [], "scores": [], "bboxes": []}',
        b'{"filename": "a.jpg", "detection": {"instances": []}}\n',
        b"a.jpg 1,2,3,4,0\nb.jpg\n",
    ),
    *(b"\x80\x02]q\x00.", b"1,-1,10,20,30,40,0.5\n"),
    *(b"image,class,x,y,w,h\na,b,1,2,3,4\n", b"image/x\n" * 3, b"0 0.5 0.5 0.1 0.1\n", b""),
    *(b"0 0 4 0 4 4 0 4 ship 0\n", b"<HRSC_Image></HRSC_Image>") * 6,
)


def test_what_a_format_recognizes_passes_its_quick_test(tmp_path: Path) -> None:
    draw, seen = random.Random(20), set()
    for number in range(1_000):
        if number % 4:
            keys = draw.sample(KEYS, draw.randint(1, 9))
            value = {key: draw.choice([1, "a", [1], {"label": {}}, {"a": 1}, [{"size": 1}]]) for key in keys}
            text = json.dumps(
                [value] if draw.random() < 0.4 else value, indent=draw.choice([None, 1])
            ).encode()
        else:
            text = draw.choice(HEADS)
        path = tmp_path / f"{number}{draw.choice(ENDINGS)}"
        path.write_bytes(text)
        for name, entry in registry._FORMATS.items():
            try:
                reason = registry.format_named(name).detect(Sniffer(path))
            except boxscore.FileFormatError:
                reason = "refused"
            if reason is not None:
                seen.add(name)
                assert entry.may_be(Sniffer(path)), (name, path.name, text)
    for folder in [SHAPES, SHAPES.parent, tmp_path]:
        for name, entry in registry._FORMATS.items():
            assert registry.format_named(name).detect(Sniffer(folder)) is None or entry.may_be(
                Sniffer(folder)
            )
    assert len(seen) >= len(registry._FORMATS) - 10  # folders of benchmarks are not drawn


def test_only_the_modules_of_formats_that_may_be_there_are_imported() -> None:
    code = (
        "import sys, boxscore.cli\n"
        f"boxscore.cli.main(['evaluate', '--gt', {str(SHAPES / 'instances.json')!r},"
        f" '--dt', {str(SHAPES / 'detections.json')!r}])\n"
        "print(*sys.modules)"
    )
    loaded = set(run_python(["-c", code])[1].splitlines()[-1].split())
    assert "boxscore.formats.coco" in loaded
    unused = ("formats.voc", "formats.yolo", "formats.csv_tables", "data.frames", "suppression.hard")
    assert not loaded & {f"boxscore.{name}" for name in unused}
    extensions = ("formats", "oriented", "federated", "crowds", "scoreless", "masks", "data_tools", "stores")
    assert not loaded & {f"boxscore.extensions.{name}" for name in extensions}
    assert not loaded & {"pandas", "xml.etree.ElementTree", "csv", "zipfile", "matplotlib", "yaml"}


def test_a_run_configuration_takes_every_format(tmp_path: Path, run: Run) -> None:
    truth = boxscore.load_ground_truth(SHAPES / "instances.json")
    boxscore.save_columns(truth, tmp_path / "gt.npz")
    (tmp_path / "run.toml").write_text(
        f'[ground_truth]\npath = "gt.npz"\nformat = "columns"\n'
        f'[detections]\npath = "{SHAPES / "detections.json"}"\n[output]\nform = "csv"\n'
    )
    assert run("run", tmp_path / "run.toml").out.startswith("metric,value")


def test_image_sets_where_there_are_none() -> None:
    with pytest.raises(boxscore.InputError, match="image_set must not be used with the format coco"):
        boxscore.load_ground_truth(SHAPES / "instances.json", image_set="test")


def test_what_cannot_be_written(tmp_path: Path) -> None:
    class ReadOnly(ColumnsFormat):
        holds: ClassVar[dict[str, frozenset[str]]] = {}

    truth = boxscore.load_ground_truth(SHAPES / "instances.json")
    with pytest.raises(boxscore.InputError, match="be a format that can store ground truth"):
        lost(truth, ReadOnly())
    with pytest.raises(
        boxscore.InputError, match=r"--to huggingface writes metadata\.jsonl; --to also takes coco"
    ):
        boxscore.save_as(truth, tmp_path / "metadata.jsonl")
    with pytest.raises(boxscore.InputError, match="must be set with --to"):
        boxscore.save_as(truth, tmp_path / "out")


def test_folders_of_labels_that_belong_together_are_not_to_be_evaluated_one_by_one(tmp_path: Path) -> None:
    for folder in ("cam1", "cam2"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "0001.txt").write_text("cat 0.9 0 0 20 20\n")
    with pytest.raises(FileFormatError) as refused:
        detect_format(tmp_path)
    assert str(refused.value).endswith(
        f"pass one of {tmp_path / 'cam1'}, {tmp_path / 'cam2'}. To evaluate all of them together, "
        "combine them in one CSV file with images named 'cam1/0001'."
    )
