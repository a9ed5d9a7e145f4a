"""Make usual mistakes in made-up files, and count how often ``evaluate`` names the right remedy.

    python qa/mistakes/run.py --cases 300 --seed 0
    python qa/mistakes/run.py --mistake letterbox --verbose
    python qa/mistakes/run.py --cases 0 --data FOLDER

A case is a mistake in a pair of formats, a protocol and a size of the data set. The remedy counts as right if
``evaluate`` prints it, and if the command with it gives the score of the files without the mistake. Files
without a mistake, also the pairs of real ones in ``--data``, must give no remedy.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import dataclasses
import io
import itertools
import json
import math
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from boxscore.cli import main

Box = tuple[float, float, float, float]

TOLERANCE = 0.02
"""Largest difference of the score with the remedy from the score without the mistake."""


@dataclasses.dataclass
class Image:
    """An image: ``name`` is its file name, ``written`` the size in the annotation file."""

    id: int
    name: str
    size: tuple[int, int]
    written: tuple[int, int]
    id_in_results: int
    name_in_results: str


@dataclasses.dataclass
class Scene:
    """A made-up data set and detections of it; boxes are corners."""

    classes: list[str]
    images: list[Image]
    objects: list[tuple[int, int, Box]]
    found: list[tuple[int, int, Box, float]]
    class_step: int = 0


def scene(rng: random.Random, images: int) -> Scene:
    """Make up a data set like those of detectors: landscape and portrait images, misses and false positives."""
    classes = rng.sample(["person", "car", "dog", "cup", "kite", "bus"], rng.randint(2, 6))
    made = Scene(classes, [], [], [])
    sizes = rng.choice([[(640, 480), (480, 640), (500, 375)], [(1280, 720)], [(1920, 1080), (800, 600)]])
    for row in range(images):
        size, name = rng.choice(sizes), f"{rng.choice(['street', 'IMG', 'frame'])}_{row + 1:04d}.jpg"
        made.images.append(Image(row + 1, name, size, size, row + 1, name))
        for _ in range(rng.randint(1, 8)):
            width, height = (side * rng.uniform(0.05, 0.45) for side in size)
            x, y = rng.uniform(0, size[0] - width), rng.uniform(0, size[1] - height)
            box, kind = (x, y, x + width, y + height), rng.randrange(len(classes))
            made.objects.append((row, kind, box))
            if rng.random() < 0.85:
                moved = tuple(c + rng.gauss(0, 0.03) * (width, height)[at % 2] for at, c in enumerate(box))
                wrong = rng.randrange(len(classes)) if rng.random() < 0.1 else kind
                made.found.append((row, wrong, _inside(moved, size), round(rng.uniform(0.3, 1.0), 4)))
        for _ in range(rng.randint(0, 3)):
            width, height = (side * rng.uniform(0.05, 0.3) for side in size)
            x, y = rng.uniform(0, size[0] - width), rng.uniform(0, size[1] - height)
            false = (x, y, x + width, y + height)
            made.found.append((row, rng.randrange(len(classes)), false, round(rng.uniform(0.01, 0.6), 4)))
    return made


def _inside(box: Sequence[float], size: tuple[int, int]) -> Box:
    x1, y1, x2, y2 = (min(max(c, 0.0), float(size[at % 2])) for at, c in enumerate(box))
    return x1, y1, max(x2, x1), max(y2, y1)


# ---------------------------------------------------------------- mistakes

Change = Callable[[Scene, random.Random], str]
"""A change of a scene; returns the remedy: options, or "renamed" if the files must be read without one."""


def _moved(made: Scene, place: Callable[[Box, tuple[int, int]], Box]) -> None:
    made.found = [
        (row, kind, place(box, made.images[row].size), score) for row, kind, box, score in made.found
    ]


def _letterbox(made: Scene, rng: random.Random) -> str:
    side = rng.choice([320, 416, 512, 640, 800, 1024, 1280])

    def place(box: Box, size: tuple[int, int]) -> Box:
        scale = side / max(size)
        left, top = ((side - length * scale) / 2 for length in size)
        return box[0] * scale + left, box[1] * scale + top, box[2] * scale + left, box[3] * scale + top

    _moved(made, place)
    return f"--network-input letterbox:{side}"


def _corner(made: Scene, rng: random.Random) -> str:
    side = rng.choice([320, 416, 512, 640, 800, 1024, 1280])

    def place(box: Box, size: tuple[int, int]) -> Box:
        scale = side / max(size)
        return box[0] * scale, box[1] * scale, box[2] * scale, box[3] * scale

    _moved(made, place)
    return f"--network-input corner:{side}"


def _stretch(made: Scene, rng: random.Random) -> str:
    side = rng.choice([320, 416, 512, 640, 800, 1024, 1280])

    def place(box: Box, size: tuple[int, int]) -> Box:
        across, down = side / size[0], side / size[1]
        return box[0] * across, box[1] * down, box[2] * across, box[3] * down

    _moved(made, place)
    return f"--network-input stretch:{side}"


def _scaled(made: Scene, rng: random.Random) -> str:
    factor = rng.choice([0.25, 0.5, 2.0, 4.0])
    _moved(made, lambda box, _: (factor * box[0], factor * box[1], factor * box[2], factor * box[3]))
    return f"--network-input scale:{factor:g}"


def _image_ids(made: Scene, rng: random.Random) -> str:
    step = rng.choice([-1, 1, 1, -1, 100])
    for image in made.images:
        image.id_in_results += step
    return f"--image-id-offset {-step}"


def _class_ids(made: Scene, rng: random.Random) -> str:
    made.class_step = rng.choice([-1, 1])
    return f"--class-map {'plus-one' if made.class_step < 0 else 'minus-one'}"


def _swapped_sizes(made: Scene, rng: random.Random) -> str:
    for image in made.images:
        image.written = image.size[::-1]
    return "--swap-image-sizes"


def _renamed(change: Callable[[str, random.Random], str]) -> Change:
    def renamed(made: Scene, rng: random.Random) -> str:
        of_truth = rng.random() < 0.5
        for image in made.images:
            if of_truth:
                image.name = change(image.name, rng)
            else:
                image.name_in_results = change(image.name_in_results, rng)
        return "renamed"

    return renamed


def _hexadecimal(rng: random.Random, digits: int) -> str:
    return f"{rng.getrandbits(4 * digits):0{digits}x}"


def _stem(name: str) -> str:
    return name.rpartition(".")[0]


MISTAKES: dict[str, Change] = {
    "letterbox": _letterbox,
    "corner": _corner,
    "stretch": _stretch,
    "scaled": _scaled,
    "image ids": _image_ids,
    "class ids": _class_ids,
    "swapped sizes": _swapped_sizes,
    "hash prefix": _renamed(lambda name, rng: f"{_hexadecimal(rng, 8)}-{name}"),
    "hash suffix": _renamed(lambda name, rng: f"{_stem(name)}_{_hexadecimal(rng, 16)}.jpg"),
    "roboflow": _renamed(lambda name, rng: f"{_stem(name)}_jpg.rf.{_hexadecimal(rng, 32)}.jpg"),
    "prefix": _renamed(lambda name, _: f"val_{name}"),
    "suffix": _renamed(lambda name, _: f"{_stem(name)}_resized.png"),
    "none": lambda made, rng: "",
}

# ---------------------------------------------------------------- formats


def _coco_truth(folder: Path, made: Scene) -> list[str]:
    images = [
        {"id": one.id, "file_name": one.name, "width": one.written[0], "height": one.written[1]}
        for one in made.images
    ]
    annotations = [
        {
            "id": number,
            "image_id": made.images[row].id,
            "category_id": kind + 1,
            "bbox": _sized(box),
            "iscrowd": 0,
        }
        | {"area": _sized(box)[2] * _sized(box)[3]}
        for number, (row, kind, box) in enumerate(made.objects, start=1)
    ]
    categories = [{"id": number, "name": name} for number, name in enumerate(made.classes, start=1)]
    (folder / "gt.json").write_text(
        json.dumps({"images": images, "categories": categories, "annotations": annotations})
    )
    return [str(folder / "gt.json")]


def _sized(box: Box) -> list[float]:
    return [box[0], box[1], box[2] - box[0], box[3] - box[1]]


def _voc_truth(folder: Path, made: Scene) -> list[str]:
    (folder / "gt").mkdir()
    for row, image in enumerate(made.images):
        objects = "".join(
            f"<object><name>{made.classes[kind]}</name><difficult>0</difficult><bndbox>"
            + "".join(
                f"<{key}>{c}</{key}>" for key, c in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)
            )
            + "</bndbox></object>"
            for at, kind, box in made.objects
            if at == row
        )
        width, height = image.written
        (folder / "gt" / f"{_stem(image.name)}.xml").write_text(
            f"<annotation><filename>{image.name}</filename><size><width>{width}</width><height>{height}</height>"
            f"<depth>3</depth></size>{objects}</annotation>"
        )
    return [str(folder / "gt")]


def _coco_results(folder: Path, made: Scene) -> list[str]:
    rows = [
        {"image_id": made.images[row].id_in_results, "category_id": kind + 1 + made.class_step}
        | {"bbox": _sized(box), "score": score}
        for row, kind, box, score in made.found
    ]
    (folder / "dt.json").write_text(json.dumps(rows))
    return [str(folder / "dt.json")]


def _csv_results(folder: Path, made: Scene) -> list[str]:
    lines = ["image,class,x1,y1,x2,y2,score"]
    for row, kind, box, score in made.found:
        values = [made.images[row].name_in_results, made.classes[kind], *box, score]
        lines.append(",".join(map(str, values)))
    (folder / "dt.csv").write_text("\n".join(lines) + "\n")
    return [str(folder / "dt.csv")]


def _yolo_results(folder: Path, made: Scene) -> list[str]:
    (folder / "dt").mkdir()
    lines: dict[str, list[str]] = {_stem(image.name_in_results): [] for image in made.images}
    for row, kind, box, score in made.found:
        width, height = made.images[row].size
        x, y, w, h = _sized(box)
        numbers = [(x + w / 2) / width, (y + h / 2) / height, w / width, h / height, score]
        lines[_stem(made.images[row].name_in_results)].append(f"{kind} {' '.join(map(str, numbers))}")
    for name, texts in lines.items():
        (folder / "dt" / f"{name}.txt").write_text("\n".join(texts) + "\n")
    (folder / "names.txt").write_text("\n".join(made.classes) + "\n")
    return [str(folder / "dt"), "--dt-classes", str(folder / "names.txt")]


def _yolo_truth(folder: Path, made: Scene) -> list[str]:
    (folder / "labels").mkdir()
    lines: dict[str, list[str]] = {_stem(image.name): [] for image in made.images}
    for row, kind, box in made.objects:
        width, height = made.images[row].size
        x, y, w, h = _sized(box)
        numbers = [(x + w / 2) / width, (y + h / 2) / height, w / width, h / height]
        lines[_stem(made.images[row].name)].append(f"{kind} {' '.join(map(str, numbers))}")
    for name, texts in lines.items():
        (folder / "labels" / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts))
    (folder / "gt-names.txt").write_text("\n".join(made.classes) + "\n")
    return [str(folder / "labels"), "--gt-classes", str(folder / "gt-names.txt")]


Writer = Callable[[Path, Scene], list[str]]
TRUTHS: dict[str, Writer] = {"coco": _coco_truth, "voc": _voc_truth, "yolo": _yolo_truth}
RESULTS: dict[str, Writer] = {"coco": _coco_results, "csv": _csv_results, "yolo": _yolo_results}
PAIRS = [
    ("coco", "coco"),
    ("coco", "csv"),
    ("coco", "yolo"),
    ("voc", "csv"),
    ("voc", "yolo"),
    ("yolo", "yolo"),
]
NAMED = ("csv", "yolo")
PROTOCOLS = ("coco", "voc2007", "ultralytics", "torchmetrics", "padilla-voc")
SIZES = (12, 24, 60, 200)


def applies(mistake: str, truth: str, results: str) -> bool:
    """Return whether a mistake can be made in a pair of formats."""
    if mistake in ("letterbox", "corner", "stretch", "scaled"):
        return results != "yolo" and truth != "yolo"  # fractions have no coordinates of a network
    if mistake == "swapped sizes":
        return results == "yolo" and truth != "yolo"
    if mistake in ("image ids", "class ids"):
        return results == "coco"
    return mistake == "none" or results in NAMED


# ---------------------------------------------------------------- running


ADVICE = re.compile(
    r"[Uu]se (--(?:network-input|image-id-offset|class-map|[dg]t-box-format) \S*\w|--swap-image-sizes)"
)
"""A remedy in a message."""


class OutcomeError(Exception):
    """What went wrong in a case."""


def run_command(words: Sequence[str]) -> tuple[int, str, str]:
    """Run the command in this process; return its status and what it prints."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = int(main(list(words)) or 0)
        except SystemExit as end:
            status = int(end.code or 0)
    return status, out.getvalue(), err.getvalue()


def score_of(output: str) -> float:
    """Return the first metric of an output in JSON."""
    metrics = json.loads(output)["metrics"]
    value = next(iter(metrics.values()))
    return float("nan") if value is None else float(value)


def words_of(folder: Path, made: Scene, truth: str, results: str, protocol: str) -> list[str]:
    """Write a scene, and return the words of the command."""
    folder.mkdir()
    gt, *gt_more = TRUTHS[truth](folder, made)
    dt, *dt_more = RESULTS[results](folder, made)
    return ["evaluate", gt, dt, *gt_more, *dt_more, "--protocol", protocol, "-o", "json"]


def check_case(folder: Path, case: Case) -> None:
    """Raise ``OutcomeError`` unless the remedy is named and right."""
    rng = random.Random(case.seed)
    made = scene(rng, case.images)
    status, clean, said = run_command(
        words_of(folder / "clean", made, case.truth, case.results, case.protocol)
    )
    if status:
        raise OutcomeError(f"refused without a mistake: {said}")
    wanted = score_of(clean)
    spoiled = copy.deepcopy(made)
    remedy = MISTAKES[case.mistake](spoiled, rng)
    words = words_of(folder / "spoiled", spoiled, case.truth, case.results, case.protocol)
    status, output, said = run_command(words)
    said = " ".join(said.split())
    if not remedy:
        if "error" in said or "Use --" in said or status:
            raise OutcomeError(f"false alarm: {said}")
        return
    if remedy == "renamed":
        if status:
            raise OutcomeError(f"not matched: {said}")
        if not math.isclose(score_of(output), wanted, abs_tol=TOLERANCE):
            raise OutcomeError(f"score {score_of(output):.4f}, not {wanted:.4f}: {said}")
        if "renamed" not in said:
            raise OutcomeError(f"not said: {said}")
        return
    if remedy not in said:
        # A harmless mistake needs no remedy, and another remedy may mean the same.
        if not status and math.isclose(score_of(output), wanted, abs_tol=TOLERANCE):
            return
        advised = ADVICE.search(said)
        if advised is None:
            raise OutcomeError(f"no {remedy}: {said}")
        remedy = advised[1]
    status, output, said = run_command([*words, *remedy.split(" ")])
    if status or not math.isclose(score_of(output), wanted, abs_tol=TOLERANCE):
        raise OutcomeError(
            f"with {remedy} {output and score_of(output):}, not {wanted:.4f}: {' '.join(said.split())}"
        )


@dataclasses.dataclass(frozen=True)
class Case:
    """A mistake in a pair of formats, a protocol and a number of images."""

    mistake: str
    truth: str
    results: str
    protocol: str
    images: int
    seed: int

    def __str__(self) -> str:
        return f"{self.mistake}, {self.truth} and {self.results}, {self.protocol}, {self.images} images, {self.seed}"


def cases(count: int, seed: int, mistake: str | None = None) -> Iterator[Case]:
    """Draw cases: every mistake equally often."""
    rng = random.Random(seed)
    names = [mistake] if mistake else list(MISTAKES)
    for number, name in zip(range(count), itertools.cycle(names), strict=False):
        truth, results = rng.choice([pair for pair in PAIRS if applies(name, *pair)])
        # Protocols of inclusive pixels need image sizes, which YOLO's labels lack.
        protocols = [one for one in PROTOCOLS if truth != "yolo" or not one.endswith(("voc", "2007"))]
        yield Case(name, truth, results, rng.choice(protocols), rng.choice(SIZES), 1000 * seed + number)


YOLACT = "coco_val2017/yolact_image_ids.json"

REAL = (
    ("coco_val2017/ground_truth_boxes.json", "coco_val2017/yolov2_608.json", "coco"),
    ("coco_val2017/ground_truth_boxes.json", "coco_val2017/yolact_base_100.bbox.json", "coco", YOLACT),
    ("coco_val2017/ground_truth_boxes.json", "coco_val2017/yolact_resnet50_100.bbox.json", "coco", YOLACT),
    (
        "coco_val2014_fake100/instances_val2014_100.json",
        "coco_val2014_fake100/instances_val2014_fakebbox100_results.json",
        "coco",
    ),
    ("coco_val2017_masks206/instances.json", "coco_val2017_masks206/yolov2_608.json", "coco"),
    ("coco_keypoints250/person_keypoints.json", "coco_keypoints250/openpose_a.json", "coco-keypoints"),
    ("coco_keypoints250/person_keypoints.json", "coco_keypoints250/openpose_b.json", "coco-keypoints"),
    ("brain_tumor/ground_truth.json", "brain_tumor/maskrcnn.json", "coco"),
    ("brain_tumor/ground_truth.json", "brain_tumor/maskrcnn.json", "coco-segm"),
    ("padilla_database/gts/pascalvoc_format", "padilla_database/dets/coco_format/coco_dets.json", "voc2012"),
    (
        "padilla_database/gts/coco_format_v1/instances_default.json",
        "padilla_database/dets/coco_format/coco_dets.json",
        "padilla-voc",
    ),
    (
        "padilla_toyexample/gts_coco_format/toy_example_coco.JSON",
        "padilla_toyexample/dets_coco_format/coco_dets.json",
        "padilla-voc",
    ),
    ("voc2007/VOC2007", "voc2007/results/yolov2", "voc2007"),
    ("lvis/lvis_val_100.json", "lvis/detections_bbox.json", "lvis"),
    ("lvis/lvis_val_100.json", "lvis/detections_segm.json", "lvis-segm"),
    ("kitti/label_2", "kitti/derived/data", "kitti"),
    ("tiny/gt.json", "tiny/dt.json", "aitod"),
    ("points/gt.json", "points/dt.json", "coco"),
    ("keypoints_more/crowdpose_gt.json", "keypoints_more/crowdpose_dt.json", "crowdpose"),
    ("keypoints_more/wholebody_gt.json", "keypoints_more/wholebody_dt.json", "coco-wholebody"),
    *(
        ("parity/gt.json", f"parity/{name}.json", "coco")
        for name in (
            *("a", "b_same", "b_bgr", "b_cap_6", "b_conf_25", "b_fp16_network", "b_fp16_output", "b_nms_45"),
            *("b_half_pixel", "b_images_lost", "b_int8", "b_logits", "b_no_nms", "b_scores_3_digits"),
            *("b_squared_scores", "b_truncated_pixels", "b_whole_pixels"),
        )
    ),
)
"""Pairs of real files without a mistake in the folder of real data, the protocol, and a list of images."""


def check_real(folder: Path) -> Iterator[str]:
    """Yield a line for each pair of real files: what is wrong with its message, or nothing."""
    for truth, results, protocol, *images in REAL:
        only = [word for path in images for word in ("--images", str(folder / path))]
        words = [
            "evaluate",
            str(folder / truth),
            str(folder / results),
            "--protocol",
            protocol,
            "-o",
            "json",
            *only,
        ]
        status, _, said = run_command(words)
        said = " ".join(said.split())
        alarm = ADVICE.search(said) is not None or "were renamed" in said
        verdict = "refused" if status else "false alarm" if alarm else "error" if "error in" in said else ""
        yield f"{truth}, {results}, {protocol}: {verdict or 'ok'}{f': {said}' if verdict else ''}"


def main_of(arguments: Sequence[str] | None = None) -> int:
    """Run the cases, and print the share with the right remedy by mistake."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mistake", choices=list(MISTAKES))
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="also check the real files in a folder")
    parser.add_argument(
        "--verbose", action="store_true", help="print what was wrong in every case that failed"
    )
    given = parser.parse_args(arguments)
    real = list(check_real(given.data)) if given.data else []
    print(*real, sep="\n", end="\n" * bool(real))
    tried, right = Counter[str](), Counter[str]()
    for case in cases(given.cases, given.seed, given.mistake):
        tried[case.mistake] += 1
        with tempfile.TemporaryDirectory() as folder:
            try:
                check_case(Path(folder), case)
            except OutcomeError as outcome:
                if given.verbose:
                    print(f"{case}\n    {outcome}")
                continue
        right[case.mistake] += 1
    for name, count in tried.items():
        print(f"{name:16} {right[name]:4} of {count}")
    made = sum(tried.values()) - tried["none"]
    found = sum(right.values()) - right["none"]
    if made:
        print(f"{'remedies':16} {found:4} of {made} ({found / made:.1%})")
    wrong = sum(not line.endswith(": ok") for line in real)
    if real:
        print(f"{'real pairs':16} {len(real) - wrong:4} of {len(real)}")
    return 0 if sum(right.values()) == sum(tried.values()) and not wrong else 1


if __name__ == "__main__":
    sys.exit(main_of())
