"""Pickled results give the numbers of the same boxes in COCO's JSON, and nothing in a pickle is run."""

from __future__ import annotations

import itertools
import json
import pickle
import struct
import tracemalloc
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.cli import main
from boxscore.errors import BoxscoreError, BoxscoreWarning
from boxscore.formats.registry import detect_format
from support.pickles import in_zip, named, old_file, plain, reference, tensor, whole

IMAGES, CLASSES = [30, 10, 20, 40], {9: "cat", 4: "dog", 6: "cow"}
"""Neither in ascending order: what counts is the order of the file, except for detectron2."""


COUNTS = "Pac0T3l]c0"
"""COCO's text for 20,000, 100 and 19,900 pixels, of an image of 200 x 200."""


def found() -> dict[int, list[tuple[int, list[float], float]]]:
    """Return class number, corners and score of the detections of each image; one image has none."""
    generator = np.random.default_rng(54)
    per_image = {}
    for image in IMAGES[:3]:
        corners = generator.integers(0, 300, (6, 2, 2)) / 8 + [[[0, 0], [60, 50]]]
        rows = corners.reshape(6, 4).tolist()
        per_image[image] = [
            (k % 3, box, round(0.9 - 0.01 * k - image / 7000, 4)) for k, box in enumerate(rows)
        ]
    return per_image | {40: []}


def xywh(box: list[float]) -> list[float]:
    x1, y1, x2, y2 = box
    return [x1, y1, x2 - x1, y2 - y1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ground truth as COCO, and the detections as COCO results, in float32 as tools have them."""
    images = [
        {"id": image, "file_name": f"val/{image:04}.jpg", "width": 200, "height": 200} for image in IMAGES
    ]
    categories = [{"id": key, "name": name} for key, name in CLASSES.items()]
    ids = list(CLASSES)
    results: list[Any] = []
    annotations: list[Any] = []
    for image, rows in found().items():
        for number, (place, box, score) in enumerate(rows):
            results.append(
                {
                    "image_id": image,
                    "category_id": ids[place],
                    "bbox": xywh(box),
                    "score": float(np.float32(score)),
                }
            )
            truth = [box[0] + number, box[1], box[2] + number, box[3]]
            sides = xywh(truth)
            annotations.append(
                {"id": len(annotations) + 1, "image_id": image, "category_id": ids[place], "bbox": sides}
                | {"area": sides[2] * sides[3], "iscrowd": 0}
            )
    truth_file = {"images": images, "annotations": annotations, "categories": categories}
    (tmp_path / "gt.json").write_text(json.dumps(truth_file), encoding="utf-8")
    (tmp_path / "dt.json").write_text(json.dumps(results), encoding="utf-8")
    return tmp_path


def mmdet2(*, masks: Any = None) -> list[Any]:
    images: list[Any] = []
    for rows in found().values():
        arrays = [
            np.array([[*box, score] for place, box, score in rows if place == at], np.float32).reshape(-1, 5)
            for at in range(3)
        ]
        images.append(arrays if masks is None else (arrays, [[masks] * len(array) for array in arrays]))
    return images


def mmdet3(*, name: str = "img_path", labels: str = "i8") -> bytes:
    """Return the opcodes of MMDetection 3's list."""
    images = b""
    for image, rows in found().items():
        value = f"/data/val/{image:04}.jpg" if name == "img_path" else image
        inner = (
            *(plain("scores"), tensor(np.array([row[2] for row in rows], np.float32))),
            *(plain("bboxes"), tensor(np.array([row[1] for row in rows], np.float32).reshape(-1, 4))),
            *(plain("labels"), tensor(np.array([row[0] for row in rows], labels))),
        )
        images += (
            b"}(" + plain(name) + plain(value) + plain("pred_instances") + b"}(" + b"".join(inner) + b"uu"
        )
    return b"](" + images + b"e"


def detectron2(**more: Any) -> list[Any]:
    """Return detectron2's list; its class numbers are in order of the ids."""
    ids = sorted(CLASSES)
    return [
        {
            "image_id": image,
            "instances": [
                {"image_id": image, "category_id": ids.index(list(CLASSES)[place]), "bbox": xywh(box)}
                | {"score": float(np.float32(score))}
                | more
                for place, box, score in rows
            ],
        }
        for image, rows in found().items()
    ]


def numbers(folder: Path, file: str, **options: Any) -> tuple[dict[str, float], list[str]]:
    """Return all metrics, and what is said."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        truth = boxscore.load_ground_truth(folder / "gt.json")
        detections = boxscore.load_detections(folder / file, truth, **options)
    return dict(boxscore.evaluate(truth, detections).metrics), [str(one.message) for one in said]


def save(folder: Path, content: bytes, name: str = "results.pkl") -> str:
    (folder / name).write_bytes(content)
    return name


def written(folder: Path, kind: str) -> str:
    """Write the detections as a tool does."""
    if kind.startswith("mmdet2"):
        return save(folder, pickle.dumps(mmdet2(), int(kind[-1])))
    if kind == "numpy 1":
        content = pickle.dumps(mmdet2(), 2)
        return save(folder, content.replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n"))
    if kind.startswith("mmdet3"):
        return save(folder, whole(mmdet3(name=kind.partition(" ")[2])))
    if kind == "detectron2 zip":
        return in_zip(folder / "instances_predictions.pth", plain(detectron2())).name
    return save(folder, old_file(plain(detectron2()), {}), "instances_predictions.pth")


KINDS = [
    *("mmdet2 2", "mmdet2 3", "mmdet2 4", "mmdet2 5", "numpy 1", "mmdet3 img_path", "mmdet3 img_id"),
    *("detectron2 zip", "detectron2 old"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_pickle_gives_the_numbers_of_the_same_boxes_as_coco(kind: str, folder: Path) -> None:
    name = written(folder, kind)
    assert detect_format(folder / name)[0] == "pickled"
    expected, _ = numbers(folder, "dt.json")
    got, said = numbers(folder, name)
    assert 0.3 < expected["AP"] < 0.95
    assert {key: repr(value) for key, value in got.items()} == {
        key: repr(value) for key, value in expected.items()
    }
    order = "0 dog, 1 cow, 2 cat" if "detectron2" in kind else "0 cat, 1 dog, 2 cow"
    assert len(said) == 1
    assert said[0].endswith(f"{order}.")
    assert ("images and classes" in said[0]) == (kind.startswith(("mmdet2", "numpy")))


def test_a_class_list_goes_by_place(folder: Path) -> None:
    (folder / "names.txt").write_text("cow\ncat\ndog\n", encoding="utf-8")
    save(folder, pickle.dumps([[image[2], image[0], image[1]] for image in mmdet2()], 2))
    expected, _ = numbers(folder, "dt.json")
    got, said = numbers(folder, "results.pkl", classes=folder / "names.txt")
    assert said == []
    assert {key: repr(value) for key, value in got.items()} == {
        key: repr(value) for key, value in expected.items()
    }


def test_masks_are_read(folder: Path) -> None:
    rle = {"size": [200, 200], "counts": COUNTS.encode()}
    save(folder, pickle.dumps(mmdet2(masks=rle), 2))
    in_zip(folder / "d.pth", plain(detectron2(segmentation=rle | {"counts": COUNTS})))
    truth = boxscore.load_ground_truth(folder / "gt.json")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoxscoreWarning)
        tables = [boxscore.load_detections(folder / name, truth) for name in ("results.pkl", "d.pth")]
    for table in tables:
        assert table.masks is not None
        assert table.masks.area.tolist() == [100] * 18


def test_keypoints_are_read(folder: Path) -> None:
    in_zip(folder / "d.pth", plain(detectron2(keypoints=[1.5, 2.5, 0.25] * 17)))
    truth = boxscore.load_ground_truth(folder / "gt.json")
    with pytest.warns(BoxscoreWarning, match="in order of their ids"):
        table = boxscore.load_detections(folder / "d.pth", truth)
    assert table.keypoints is not None
    assert table.keypoints.shape == (18, 17, 3)
    assert table.keypoints[4, 3].tolist() == [1.5, 2.5, 0.25]


def test_numbers_of_a_zip_are_those_of_its_members(folder: Path) -> None:
    # One storage for all tensors of an image: boxes start at number 2, by column.
    values = np.array([0.5, 0.25, 10, 20, 11, 21, 50, 60, 51, 61], np.float32)
    shared = reference(values, "0")
    labels = np.array([1, 2])
    inner = (
        *(plain("scores"), tensor(values[:2], shared)),
        *(plain("bboxes"), tensor(values, shared, offset=2, shape=(2, 4), strides=(1, 2))),
        *(plain("labels"), tensor(labels, reference(labels, "1"))),
    )
    image = b"}(" + plain("img_id") + plain(10) + plain("pred_instances") + b"}(" + b"".join(inner) + b"uu"
    in_zip(folder / "results.pth", b"](" + image + b"e", k0=values.tobytes(), k1=labels.tobytes())
    truth = boxscore.load_ground_truth(folder / "gt.json")
    with pytest.warns(BoxscoreWarning, match="classes are those of"):
        table = boxscore.load_detections(folder / "results.pth", truth)
    assert table.boxes.tolist() == [[10, 11, 50, 51], [20, 21, 60, 61]]
    assert table.scores.tolist() == [0.5, 0.25]
    assert table.categories.names[table.category].tolist() == ["dog", "cow"]


# ---------------------------------------------------------------- what is refused

NAMELESS = "results of MMDetection 2 must "
OTHER = "results.pkl must be results of MMDetection's tools/test.py or instances_predictions.pth of detectron2. Got "
READABLE = "a pickle of results must be readable. Got "
ONLY = (
    "a pickle of results must hold only lists, numbers, names and arrays: nothing else is loaded, because it may run "
    "code. Got "
)
RUN = "to evaluate a model, run it on the images first: boxscore reads the detections that it writes."
ORDER = "pass the class names in the model's order, one per line: --dt-classes FILE."
BOX = np.zeros((1, 5), np.float32)


def array(dtype: bytes, shape: Any, data: bytes, *, state: bytes | None = None) -> bytes:
    """Return the opcodes of an array, which may not fit together."""
    kind = named("numpy dtype") + b"(" + dtype + b"\x89\x88tR"
    state = (
        b"(K\x03" + plain("<") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb" if state is None else state
    )
    new = (
        named("numpy.core.multiarray _reconstruct")
        + b"("
        + named("numpy ndarray")
        + plain((0,))
        + plain(b"b")
        + b"tR"
    )
    return new + b"(K\x01" + plain(shape) + kind + state + b"\x89" + plain(data) + b"tb"


REFUSED: list[tuple[str, bytes, str]] = [
    ("another count", pickle.dumps(mmdet2()[:3], 2), f"{NAMELESS}have the 4 images of the ground truth, because they name no images. Got 3 images in results.pkl; pass the annotation file that the run used."),
    ("fewer classes", pickle.dumps([image[:2] for image in mmdet2()], 2), f"the classes must be the 3 classes of the ground truth. Got 2 classes in results.pkl; {ORDER}"),
    ("a class too many", pickle.dumps([{"image_id": 10, "instances": [{"image_id": 10, "category_id": 3, "bbox": [1, 2, 3, 4], "score": 0.5}]}], 2), f"the classes must be the 3 classes of the ground truth. Got class number 3 in results.pkl; {ORDER}"),
    ("a checkpoint", pickle.dumps({"state_dict": {}, "meta": {}}, 2), f"results.pkl must hold detections. Got a checkpoint, the weights of a model; {RUN}"),
    ("a checkpoint of tensors", whole(b"}(" + plain("w") + tensor(BOX) + b"u"), f"results.pkl must hold detections. Got a checkpoint, the weights of a model; {RUN}"),
    ("a dictionary", pickle.dumps({"a": 1, "b": 2}, 2), f"{OTHER}a dictionary with 'a', 'b'; save others as COCO JSON."),
    ("an empty list", pickle.dumps([], 2), f"{OTHER}an empty list; save others as COCO JSON."),
    ("numbers", pickle.dumps([7], 2), f"{OTHER}a list of other values; save others as COCO JSON."),
    ("proposals", pickle.dumps([{"image_id": 1, "proposals": 1}], 2), f"{OTHER}proposals, which have no classes; save others as COCO JSON."),
    ("arrays without classes", pickle.dumps([BOX, BOX], 2), f"{OTHER}a list of arrays, without classes; save others as COCO JSON."),
    ("a class of the user", pickle.dumps(json.JSONDecoder, 2), f"{ONLY}'json.decoder.JSONDecoder' in results.pkl; {RUN}"),
    ("six numbers", pickle.dumps([[np.zeros((2, 6), np.float32)] * 3] * 4, 2), f"{READABLE}boxes of shape 2 x 6, not 5 numbers each in results.pkl."),
    ("a rotated box", pickle.dumps([{"image_id": 10, "instances": [{"bbox": [1, 2, 3, 4, 5]}]}], 2), f"{READABLE}a box of 5 numbers in results.pkl."),
    ("an image twice", pickle.dumps([{"image_id": 10, "instances": []}] * 2, 2), f"{READABLE}two images of one image_id in results.pkl."),
    ("labels that are not whole", whole(mmdet3(labels="f4")), f"{READABLE}scores or labels that are not one number per box in results.pkl."),
    ("masks of one class too few", pickle.dumps([(image, [[], []]) for image in mmdet2()], 2), f"{READABLE}masks that are not one RLE per box in results.pkl."),
    ("cut short", whole(b"]X\xff\x00\x00\x00a"), f"{READABLE}a pickle that is cut short in results.pkl; is the file complete?"),
    ("two pickles", pickle.dumps(mmdet2(), 2) * 2, f"{READABLE}more bytes after the pickle in results.pkl."),
    ("an array of objects", whole(array(plain("O8"), (1, 5), b"")), f"{READABLE}an array of something else than numbers in results.pkl."),
    ("more numbers than bytes", whole(array(plain("f4"), (1 << 30, 5), b"1234")), f"{READABLE}an array whose shape is not that of its bytes in results.pkl."),
    ("a negative shape", whole(array(plain("f4"), (-1, 5), b"1234")), f"{READABLE}an array whose shape is not a few numbers in results.pkl."),
    ("strides beyond the storage", whole(b"](" + b"}(" + plain("img_id") + b"K\x0a" + plain("pred_instances") + b"}(" + plain("bboxes") + tensor(np.zeros((2, 4), np.float32), strides=(400, 1)) + b"uue"), f"{READABLE}a tensor that is larger than its numbers in results.pkl."),
    ("one number as many", whole(b"](" + b"}(" + plain("img_id") + b"K\x0a" + plain("pred_instances") + b"}(" + plain("bboxes") + tensor(np.zeros(1, np.float32), shape=(1 << 30, 4), strides=(0, 0)) + b"uue"), f"{READABLE}a tensor that is larger than its numbers in results.pkl."),
    ("another byte order", old_file(plain(detectron2()), {}, {"little_endian": False}), f"{READABLE}numbers in another byte order in results.pkl."),
    ("a key that nests", old_file(plain([]), {})[: -len(pickle.dumps([], 2))] + whole(b"]" + b")" + b"\x85" * 100_000 + b"a"), f"{READABLE}other numbers than the tensors use in results.pkl."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_what_is_refused(
    content: bytes,
    message: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    save(folder, content)
    monkeypatch.chdir(folder)
    assert main(["evaluate", "gt.json", "results.pkl", "--quiet"]) == 2
    assert capsys.readouterr().err == f"boxscore: error: {message}\n"


def test_mmdet2_needs_the_coco_file(folder: Path) -> None:
    save(folder, pickle.dumps(mmdet2(), 2))
    truth = boxscore.load_ground_truth(folder / "gt.json")
    with pytest.raises(BoxscoreError, match=r"come with the COCO file .* format-only of MMDetection's"):
        boxscore.load_detections(folder / "results.pkl", truth.replaced(source=""))


def test_mmdet2_is_not_rewritten_without_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing that is written could be evaluated; the advice names the images, and can be typed."""
    save(folder, pickle.dumps(mmdet2(), 2))
    save(folder, pickle.dumps(mmdet2() * 3, 2), "more.pkl")  # 12 images: sorted as text, 10 is before 2
    monkeypatch.chdir(folder)
    Path("names.txt").write_text("\n".join(f"class {number}" for number in range(len(mmdet2()[0]))))
    further = ["--dt-classes", "names.txt", "--output", "kept.json"]
    given = ["results.pkl", *further]
    for command in (
        ["nms", "more.pkl", *further, "--iou-threshold", "0.5"],
        ["convert", "--dt", "more.pkl", *further],
        ["convert", "--dt", *given],
        ["nms", *given, "--iou-threshold", "0.5"],
        ["fuse", "results.pkl", *given],
    ):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert "images must have names, by which the output is evaluated. Got image 0, image 1" in said
        assert not Path("kept.json").exists()
    advised = said.partition("boxscore convert ")[2].partition(" writes")[0].replace("GT", "gt.json")
    assert main(["convert", *advised.split()]) == 0
    assert main(["nms", "named.json", "--output", "kept.json", "--iou-threshold", "0.5"]) == 0
    assert main(["evaluate", "gt.json", "kept.json"]) == 0


def test_class_numbers_need_an_order(folder: Path) -> None:
    in_zip(folder / "d.pth", plain(detectron2()))
    truth = boxscore.load_ground_truth(folder / "gt.json").replaced(source="")
    with pytest.raises(BoxscoreError, match=r"the ground truth has no order of classes.* --dt-classes FILE"):
        boxscore.load_detections(folder / "d.pth", truth)


def test_detections_are_no_ground_truth(folder: Path) -> None:
    in_zip(folder / "d.pth", plain(detectron2()))
    with pytest.raises(
        BoxscoreError, match=r"ground truth must be annotations. Got detections of detectron2"
    ):
        boxscore.load_ground_truth(folder / "d.pth")


# ---------------------------------------------------------------- hostile pickles

RAN: list[str] = []


def runs(text: str) -> str:
    RAN.append(text)
    return text


class Hostile:
    def __reduce__(self) -> Any:
        return runs, ("it ran",)


SIZE = struct.Struct("<Q").pack
ENCODE = named("_codecs encode")
BOMBS = {
    "a function": pickle.dumps([[Hostile()]], 2),
    "a function, by stack": pickle.dumps([[Hostile()]], 4),
    "the state of a known function": whole(ENCODE + plain({"__defaults__": (1,)}) + b"b"),
    "the state of a list": whole(b"]" + plain({"a": 1}) + b"b"),
    "a call of text": whole(plain("a") + b")R"),
    "a call of a result": whole(named("numpy dtype") + plain("f4") + b"\x85R)R"),
    "a call with a list": whole(ENCODE + b"]R"),
    "too many arguments": whole(ENCODE + b")R"),
    "an instance": whole(b"(ios\nsystem\n"),
    "a new object": whole(named("numpy ndarray") + b")\x81"),
    "an extension": whole(b"\x82\x01"),
    "a persistent id": whole(b"K\x01Q"),
    "a persistent id without a file": whole(b"]" + reference(BOX) + b"a"),
    "nothing": whole(b""),
    "no mark": whole(b"t"),
    "an unknown memo": whole(b"h\x07"),
    "8 exabytes of bytes": b"\x80\x04\x8e" + SIZE(1 << 62) + b".",
    "8 exabytes of an array": b"\x80\x05\x96" + SIZE(1 << 62) + b".",
    "8 exabytes of text": b"\x80\x04\x8d" + SIZE(1 << 62) + b".",
    "a long number": whole(b"\x8a\xff" + b"\x7f" * 255),
    "a very long number": whole(b"\x8b\xff\xff\xff\x7f"),
    "a large memo": whole(b"Nr\xff\xff\xff\x7f"),
    "lists in lists": whole(b"]" * 200_000 + b"a" * 199_999),
    "tuples in tuples": whole(b")" + b"\x85" * 200_000),
    "a key of tuples": whole(b"})" + b"\x85" * 200_000 + b"K\x01s"),
    "2 to the 100 values": whole(b")" + b"q\x00h\x00\x86" * 100),
    "a list in itself": whole(b"]q\x00h\x00a"),
    "text encoded often": whole(plain("a" * 10_000) + b"q\x00" + (ENCODE + b"h\x00" + plain("latin1") + b"\x86R") * 5_000),
    "text that is not UTF-8": whole(b"X\x01\x00\x00\x00\xff"),
    "rows referenced often": pickle.dumps([{"image_id": i, "instances": [{}] * 1} for i in range(3)], 2),
    "one list for many images": pickle.dumps(
        [{"image_id": i, "instances": row} for row in [[{"bbox": [1.0, 1.0, 2.0, 2.0], "score": 0.5, "category_id": 0}] * 5_000] for i in range(2_000)], 2
    ),
    "one array for many images": pickle.dumps([[array_] * 3 for array_ in [np.zeros((20_000, 5), np.float32)] for _ in range(500)], 2),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_hostile_pickles_are_refused_in_little_memory(name: str, folder: Path) -> None:
    content = BOMBS[name]
    save(folder, content)
    truth = boxscore.load_ground_truth(folder / "gt.json")
    tracemalloc.start()
    with pytest.raises(BoxscoreError):
        boxscore.load_detections(folder / "results.pkl", truth)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3_000_000 + 120 * len(content)
    assert RAN == []


@pytest.mark.parametrize(
    "how", ["compressed", "twice", "overlapping", "another order", "without its numbers", "not a zip"]
)
def test_hostile_zips_are_refused(how: str, folder: Path) -> None:
    path = in_zip(
        folder / "d.pth", plain(detectron2()), byteorder=b"big" if how == "another order" else b"little"
    )
    if how == "compressed":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("archive/data.pkl", whole(plain(detectron2())))
    if how == "twice":
        with zipfile.ZipFile(path, "a") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            file.writestr("archive/data.pkl", whole(plain([])))
    if how == "overlapping":
        with zipfile.ZipFile(path) as file:
            entry = (
                path.read_bytes()[file.start_dir :].partition(b"PK\x01\x02")[2].partition(b"PK\x01\x02")[0]
            )
        content = path.read_bytes().replace(
            struct.pack("<I", len(whole(plain(detectron2())))), struct.pack("<I", 1 << 30)
        )
        assert entry
        path.write_bytes(content)
    if how == "without its numbers":
        values = np.zeros(4, np.float32)
        in_zip(path, b"](" + tensor(values, reference(values, "0")) + b"e")
    if how == "not a zip":
        path.write_bytes(path.read_bytes()[:-40])
    truth = boxscore.load_ground_truth(folder / "gt.json")
    with pytest.raises(BoxscoreError):
        boxscore.load_detections(path, truth, format="pickled")


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_map_renumbers_the_numbers_of_the_file(kind: str, folder: Path) -> None:
    name = written(folder, kind)
    order = sorted(CLASSES) if "detectron2" in kind else list(CLASSES)
    expected, _ = numbers(folder, "dt.json")
    got, _ = numbers(folder, name, class_map=dict(enumerate(order)))
    assert {key: repr(value) for key, value in got.items()} == {
        key: repr(value) for key, value in expected.items()
    }


@pytest.mark.parametrize("label", [-1, 1 << 20, 1 << 40])
def test_labels_out_of_range_are_refused(label: int, folder: Path) -> None:
    inner = (
        *(plain("scores"), tensor(np.array([0.5], np.float32))),
        *(plain("bboxes"), tensor(np.ones((1, 4), np.float32))),
        *(plain("labels"), tensor(np.array([label]))),
    )
    image = b"}(" + plain("img_id") + plain(10) + plain("pred_instances") + b"}(" + b"".join(inner) + b"uu"
    save(folder, whole(b"](" + image + b"e"))
    truth = boxscore.load_ground_truth(folder / "gt.json")
    with pytest.raises(BoxscoreError, match="a label that is not from 0 to 999,999"):
        boxscore.load_detections(folder / "results.pkl", truth)


@pytest.mark.parametrize("kind", KINDS)
def test_mutants_are_read_or_refused(kind: str, folder: Path) -> None:
    name = written(folder, kind)
    content = (folder / name).read_bytes()
    truth = boxscore.load_ground_truth(folder / "gt.json")
    generator = np.random.default_rng([54, KINDS.index(kind)])
    outcomes = []
    for _ in range(60):
        mutant = bytearray(content)
        for at in generator.integers(0, len(content), generator.integers(1, 4)).tolist():
            mutant[at] = int(generator.integers(0, 256))
        (folder / name).write_bytes(mutant)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", BoxscoreWarning)
            try:
                found_ = boxscore.load_detections(folder / name, truth, format="pickled")
                boxscore.evaluate(truth, found_)
                outcomes.append("read")
            except BoxscoreError:
                outcomes.append("refused")
    assert {*outcomes} == {"read", "refused"}


def test_every_known_opcode_is_in_a_test() -> None:
    """The opcodes of the pickles here, without those that only hostile ones have."""
    contents = itertools.chain(BOMBS.values(), (content for _, content, _ in REFUSED))
    seen = {byte for content in contents for byte in content}
    assert {ord(code) for code in "(NJKMGXCB)t]ae}suqrhjcRbQ"} <= seen
