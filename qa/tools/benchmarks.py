"""Run the evaluators of benchmarks on thousands of made-up cases, and compare every number with ours.

    python qa/tools/benchmarks.py
    python qa/tools/benchmarks.py --tools kitti xview --cases 200 --folder /tmp/tools

Each tool is fetched at its named version, as ``run.py`` does it, and runs in a process of its own on all cases. A case
differs if one number of it does, in any bit unless the tool's own arithmetic is allowed for. Cases in which a tool
stops with an error are counted apart. The status is 1 if a case differs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests")]

import boxscore  # noqa: E402
from boxscore.diagnostics import keypoint_errors  # noqa: E402
from boxscore.extensions.keypoints.misplaced_keypoints import KINDS  # noqa: E402
from boxscore.label_maps import semantic_iou_of_folders  # noqa: E402
from support.digests import digest  # noqa: E402
from tools import made_up  # noqa: E402
from tools.run import NotHereError, Tool, Workshop, command  # noqa: E402

Numbers = dict[str, Any]
NUMPY = "numpy==1.26.4"
COCO = (NUMPY, "pycocotools")


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """A benchmark's own evaluator.

    Attributes
    ----------
    tool : Tool
    made : callable
        Writes a case.
    ours : callable
        What boxscore makes of a case.
    allowed : float
        What sums in another order may differ by.
    stops : tuple of str
        Errors with which the tool stops on cases that have a number.
    undefined : float
        What the tool prints where boxscore has no number, for want of objects.
    """

    tool: Tool
    made: Callable[[made_up.Random, Path], None]
    ours: Callable[[Path], Numbers]
    allowed: float = 0.0
    stops: tuple[str, ...] = ()
    undefined: float = math.nan


def evaluated(case: Path, protocol: Any) -> boxscore.Evaluation:
    return boxscore.evaluate(case / "gt.json", case / "dt.json", protocol=protocol)


def undefined_is(value: float, numbers: Iterable[float]) -> list[float]:
    return [value if math.isnan(number) else float(number) for number in numbers]


def of_coco(protocol: Any, stats: Callable[[list[float]], list[float]] = list) -> Callable[[Path], Numbers]:
    """Arrays and numbers, as evaluators made of COCO's have them."""

    def ours(case: Path) -> Numbers:
        result = evaluated(case, protocol)
        arrays = {name: digest(result.arrays()[name]) for name in ("precision", "recall")}
        return arrays | {"stats": stats(undefined_is(-1, result.metrics.values()))}

    return ours


def of_crowdpose(rules: dict[str, Any], zeros: int) -> Callable[[Path], Numbers]:
    """The three parts are rounded there, and undefined cells are averaged with their -1."""
    coco_areas = {"all": [0, 1e10], "medium": [1024, 9216], "large": [9216, 1e10]}
    whole = {"ignore": {"area_ranges": coco_areas, "image_ranges": {}}, "summary": [{"key": "AP"}]}

    def ours(case: Path) -> Numbers:
        result = evaluated(case, {"extends": "crowdpose", **rules})
        arrays = evaluated(case, {"extends": "crowdpose", **rules, **whole}).arrays()
        values = undefined_is(-1, result.metrics.values())
        stats = [*values[:3], *[0.0] * zeros, *values[3:6], *(round(value, 4) for value in values[6:])]
        return {name: digest(arrays[name]) for name in ("precision", "recall")} | {"stats": stats}

    return ours


def of_body(case: Path) -> Numbers:
    part = json.loads((case / "part.json").read_text(encoding="utf-8"))
    return of_coco("coco-wholebody" if part == "wholebody" else f"coco-wholebody-{part}")(case)


def of_poses(case: Path) -> Numbers:
    result = keypoint_errors(evaluated(case, "coco-keypoints"))
    counts = dict(zip(KINDS, result.counts.T.tolist(), strict=True))
    return counts | {"matched": result.matched, "analyzed": result.analyzed}


def of_xview(protocol: str) -> Callable[[Path], Numbers]:
    def ours(case: Path) -> Numbers:
        result = boxscore.evaluate(case / "gt.geojson", case / "dt", protocol=protocol)
        return {"mAP": result["mAP"], **dict(zip(result.labels, result.class_values["AP"], strict=True))}

    return ours


def of_cityscapes(case: Path) -> Numbers:
    ranges = {"all": {"area": [20, math.inf]}}
    rules = {"extends": "cityscapes", "ignore": {"column_ranges": ranges}}
    result = boxscore.evaluate(case / "gt", case / "dt", protocol=rules)
    classes = dict(zip(result.labels, result.ap_by_iou().T.tolist(), strict=True))
    return {"AP": result["AP"], "AP50": result["AP50"], **classes}


def of_pixels(case: Path) -> Numbers:
    result = semantic_iou_of_folders(
        case / "gt",
        case / "semantic",
        truth_ending="_gtFine_instanceIds.png",
        prediction_ending="_labelIds.png",
        rules="cityscapes-instances",
    )
    return {key: result.metrics[key] for key in ("mIoU", "iIoU", "mIoU_categories", "iIoU_categories")}


def of_nuscenes(case: Path) -> Numbers:
    rules = {"extends": "nuscenes-distance", "distance": {"largest": 80, "anchor": "point"}}
    result = evaluated(case, rules)
    return {
        f"{name[1:]}@{key}": value
        for key in ("4", "2", "1", "0.5")
        for name, value in zip(result.labels, result.class_values[f"AP{key}"].tolist(), strict=True)
    }


def of_points(means: bool, **matching: Any) -> Callable[[Path], Numbers]:
    """Pairs within ten pixels, classes together, and means over the images with objects."""
    rules = {
        "extends": "coco",
        "similarity": "distance",
        "distance": {"largest": 1024, "anchor": "point"},
        "matching": {
            "iou_thresholds": [1 - 10 / 1024],
            "max_detections": [],
            "per_class": False,
            **matching,
        },
        "ignore": {"area_ranges": {"all": [0, math.inf]}},
        "summary": [{"key": "R", "metric": "recall"}],
    }

    def ours(case: Path) -> Numbers:
        result = evaluated(case, rules)
        found = result.matches
        right = found[found["outcome"] == "true positive"]
        columns = (right[name] for name in ("annotation_id", "x1", "y1"))
        pairs = sorted([int(key), x, y] for key, x, y in zip(*columns, strict=True))
        numbers: Numbers = {"pairs": json.dumps(pairs)}
        if means:
            objects = Counter(result.ground_truth.image.tolist())
            every, hits = Counter(found["image_id"].tolist()), Counter(right["image_id"].tolist())
            images = [(result.images.ids.tolist()[row], count) for row, count in sorted(objects.items())]
            shares = [hits[image] / every[image] for image, _ in images if every[image]]
            recalls = [hits[image] / count for image, count in images]
            numbers["recall"] = sum(recalls) / len(recalls)
            numbers["precision"] = sum(shares) / len(shares) if shares else math.nan
        return numbers

    return ours


def of_kitti(case: Path) -> Numbers:
    paths = case / "data" / "object" / "label_2", case / "results" / "x" / "data"
    result = boxscore.evaluate(*paths, protocol="kitti")
    return {
        f"{name.lower()} {key}": float(values[row])
        for key, values in result.class_values.items()
        for row, name in enumerate(result.labels)
    }


AS_CROWDPOSETOOLS: dict[str, Any] = {
    "keypoints": {"unplaced": "count"},
    "matching": {"annotation_id_zero": "unmatched"},
}
XVIEW = ("scoring/score.py", "scoring/matching.py", "scoring/rectangle.py")
EVALUATION, HELPERS = "cityscapesscripts/evaluation", "cityscapesscripts/helpers"
CITYSCAPES = (
    *("cityscapesscripts/__init__.py", f"{EVALUATION}/__init__.py", f"{HELPERS}/__init__.py"),
    *(f"{EVALUATION}/{name}.py" for name in ("instance", "instances2dict")),
    *(f"{EVALUATION}/eval{name}LevelSemanticLabeling.py" for name in ("Instance", "Pixel")),
    *(f"{HELPERS}/{name}.py" for name in ("annotation", "box3dImageTransform", "csHelpers", "labels")),
)
CROWDPOSE = tuple(
    f"crowdpose-api/PythonAPI/crowdposetools/{name}.py" for name in ("__init__", "coco", "cocoeval", "mask")
)
NUSCENES = tuple(
    f"python-sdk/nuscenes/{path}.py"
    for path in (
        *("eval/__init__", "eval/common/__init__", "eval/detection/__init__"),
        *("eval/common/data_classes", "eval/common/utils"),
        *("eval/detection/algo", "eval/detection/constants", "eval/detection/data_classes"),
    )
)


def tool(
    name: str, version: str, adapter: str, protocol: str, needs: tuple[str, ...] = COCO, **more: Any
) -> Tool:
    return Tool(name, version, adapter, {"": protocol}, needs=needs, **more)


def xview_at(version: str, protocol: str, **more: Any) -> Benchmark:
    scorer = tool(
        *("xView1_baseline", version, "xview", protocol, (NUMPY, "pillow")),
        repository="DIUx-xView/xView1_baseline",
        paths=XVIEW,
    )
    return Benchmark(scorer, made_up.satellite_images, of_xview(protocol), allowed=1e-15, **more)


def xtcocotools(adapter: str, protocol: str, made: Any, ours: Callable[[Path], Numbers]) -> Benchmark:
    return Benchmark(tool("xtcocotools", "1.14.3", adapter, protocol, package="xtcocotools"), made, ours)


def cityscapes(adapter: str, protocol: str, ours: Callable[[Path], Numbers], **more: Any) -> Benchmark:
    script = tool(
        *("cityscapesScripts", "0bcc4a72549590fd80d71d8465be3a0c4b1c06e8", adapter, protocol),
        (NUMPY, "pillow"),
        repository="mcordts/cityscapesScripts",
        paths=CITYSCAPES,
    )
    return Benchmark(script, made_up.streets, ours, **more)


BENCHMARKS = (
    Benchmark(
        tool(
            *("cocoapi-aitod", "44a230ae5197cb89bf9e5e62f313cac3ad30c7af", "aitod", "aitod"),
            repository="jwwangchn/cocoapi-aitod",
            paths=tuple(
                f"aitodpycocotools/aitodpycocotools/{name}.py"
                for name in ("__init__", "coco", "cocoeval", "mask")
            ),
        ),
        made_up.tiny_objects,
        of_coco("aitod"),
    ),
    Benchmark(
        tool(
            *("SODA-mmdetection", "51e49755eade1740f6da8ab8fc024c7c1e86dbc2", "sodad", "sodad"),
            repository="shaunyuan22/SODA-mmdetection",
            paths=("mmdet/datasets/sodad_eval/sodadeval.py",),
        ),
        made_up.tiny_objects,
        of_coco("sodad"),
    ),
    Benchmark(
        tool(
            *("TinyBenchmark", "36436df3716d842b6148fb6f6bc7715a2fbdfd92", "tinyperson", "tinyperson"),
            repository="ucas-vg/TinyBenchmark",
            paths=("tiny_benchmark/maskrcnn_benchmark/data/datasets/evaluation/coco/cocoeval.py",),
        ),
        made_up.tiny_people,
        of_coco("tinyperson"),
    ),
    xtcocotools("xtcocotools", "coco-wholebody", made_up.whole_bodies, of_body),
    xtcocotools("xtcocotools_crowd", "crowdpose", made_up.crowds_of_people, of_crowdpose({}, 0)),
    xtcocotools("xtcocotools_animals", "ap10k", made_up.animals, of_coco("ap10k")),
    Benchmark(
        tool(
            *("crowdposetools", "86fe5e11e570cad02d553db52ec72545578cd1c8", "crowdposetools", "crowdpose"),
            repository="Jeff-sjtu/CrowdPose",
            paths=CROWDPOSE,
        ),
        made_up.crowds_of_people,
        of_crowdpose(AS_CROWDPOSETOOLS, 2),
        stops=("IndexError",),  # no detections
    ),
    Benchmark(
        tool(
            *("coco-analyze", "9eb8a0a9e57ad1e592661efc2b8964864c0e6f28", "coco_analyze", "coco-keypoints"),
            (*COCO, "scipy"),
            repository="matteorr/coco-analyze",
            paths=tuple(
                f"pycocotools/{name}.py" for name in ("__init__", "coco", "cocoanalyze", "cocoeval", "mask")
            ),
        ),
        made_up.poses,
        of_poses,
        stops=("IndexError",),  # no detections
    ),
    xview_at("02c271a79b5a507c284bc49e86e913d9ac37690e", "xview", stops=("IndexError", "ValueError")),
    xview_at("8efe3407861046458427ac6c47b424a62d5079db", "xview-july2018", stops=("ValueError",)),
    cityscapes("cityscapes", "cityscapes", of_cityscapes, stops=("IndexError",), allowed=1e-15),  # np.dot
    cityscapes("cityscapes_pixels", "cityscapes-instances", of_pixels),
    Benchmark(
        tool(
            *("nuscenes-devkit", "d9de17a73bdc06ce97a02f77ae7edb9b0406e851", "nuscenes"),
            *("nuscenes-distance", (NUMPY, "pyquaternion")),
            repository="nutonomy/nuscenes-devkit",
            paths=NUSCENES,
        ),
        made_up.places,
        of_nuscenes,
    ),
    Benchmark(
        tool(
            *("DeepForest", "1bad4419b3e6f7b4981a367e85acc2dda29cfc7b", "deepforest", "points-assigned"),
            (NUMPY, "geopandas", "pandas<3", "scipy"),
            repository="weecology/DeepForest",
            paths=("src/deepforest/IoU.py", "src/deepforest/evaluate.py"),
        ),
        made_up.scattered_points,
        of_points(True, candidate="assigned_before_threshold", threshold_closed=False),
        allowed=1e-15,
    ),
    Benchmark(
        tool(
            *("MillionTrees", "0.13.0", "milliontrees", "points-nearest-pair", (NUMPY, "torch")),
            package="milliontrees",
        ),
        made_up.scattered_points,
        of_points(False, candidate="best_pair_first", threshold_closed=True),
    ),
    Benchmark(
        tool(
            *("KITTI devkit", "4ac9f78cc6412893e909babec67db361e3b40b64", "kitti", "kitti", (NUMPY,)),
            repository="748811693aB/official_kitti_evaltool",
            paths=("cpp/evaluate_object.cpp", "cpp/mail.h"),
        ),
        made_up.roads,
        of_kitti,
        allowed=1e-13,
        undefined=0.0,
    ),
)


def run(workshop: Workshop, tool: Tool, cases: Path) -> list[Any]:
    """Return what the tool makes of each case: numbers, or the error it stops with."""
    files = workshop.files(tool)
    with tempfile.TemporaryDirectory(dir=workshop.folder) as own:
        output = Path(own) / "numbers"
        environment = {**os.environ, "PYTHONPATH": str(files), "MPLBACKEND": "Agg"}
        adapters = HERE / "benchmark_adapters.py"
        command(workshop.python, adapters, tool.adapter, cases, files, output, env=environment, cwd=own)
        answers: list[Any] = json.loads(output.read_text(encoding="utf-8"))
    return answers


def differing(theirs: Numbers, ours: Numbers, benchmark: Benchmark) -> list[str]:
    """Return the names of numbers that are not equal; a class that boxscore lacks is undefined there."""
    names = []
    for key, value in theirs.items():
        mine = ours.get(key, [math.nan] * len(value) if isinstance(value, list) else math.nan)
        if not _equal(value, mine, benchmark):
            names.append(key)
    return names


def _equal(theirs: Any, ours: Any, benchmark: Benchmark) -> bool:
    if isinstance(theirs, list):
        return len(theirs) == len(ours) and all(map(_equal, theirs, ours, [benchmark] * len(ours)))
    if isinstance(theirs, str):
        return bool(theirs == ours)
    ours = benchmark.undefined if math.isnan(ours) else ours
    if math.isnan(theirs) or math.isnan(ours):
        return math.isnan(theirs) and math.isnan(ours)
    return bool(abs(theirs - ours) <= benchmark.allowed)


@dataclasses.dataclass
class Outcome:
    """How many cases were compared, how many differ, and with which errors the tool or boxscore stopped."""

    compared: int = 0
    numbers: int = 0
    differ: list[str] = dataclasses.field(default_factory=list)
    stopped: Counter[str] = dataclasses.field(default_factory=Counter)


def compare(workshop: Workshop, benchmark: Benchmark, folder: Path, count: int) -> Outcome:
    cases = made_up.write_cases(benchmark.made, folder, count)
    outcome = Outcome()
    for case, theirs in zip(cases, run(workshop, benchmark.tool, folder), strict=True):
        if isinstance(theirs, str):
            outcome.stopped[theirs.partition(":")[0]] += 1
            if not theirs.startswith(benchmark.stops or "\0"):
                outcome.differ.append(f"{case.name}: the tool stops, {theirs}")
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", boxscore.BoxscoreWarning)
            try:
                names = differing(theirs, benchmark.ours(case), benchmark)
            except boxscore.InputError as error:
                names = [f"boxscore refuses, {error}"]
        outcome.compared += 1
        outcome.numbers += sum(len(value) if isinstance(value, list) else 1 for value in theirs.values())
        if names:
            outcome.differ.append(f"{case.name}: {', '.join(names[:4])}")
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tools", nargs="+", metavar="NAME", help="only those whose name or protocol says so"
    )
    parser.add_argument("--cases", type=int, default=2000, help="cases for each tool")
    parser.add_argument("--python", help="interpreter that has what the tools need")
    parser.add_argument("--sources", type=Path, help="folder of OWNER/NAME clones, instead of GitHub")
    parser.add_argument("--folder", type=Path, help="where tools are fetched to and kept")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        workshop = Workshop.set_up(folder, options.python, options.sources)
        for benchmark in BENCHMARKS:
            tool = benchmark.tool
            protocol = tool.protocols[""]
            if options.tools and not {tool.name, tool.label, protocol} & set(options.tools):
                continue
            place = Path(temporary) / "cases" / tool.adapter / protocol
            try:
                outcome = compare(workshop, benchmark, place, options.cases)
            except NotHereError as error:
                print(f"{tool.label:28} is not compared: {error}", flush=True)
                continue
            stopped = "".join(f", {count} stop with {name}" for name, count in outcome.stopped.items())
            print(
                f"{tool.label:28} {protocol:20} {outcome.compared} cases, {outcome.numbers} numbers, "
                f"{len(outcome.differ)} differ{stopped}",
                flush=True,
            )
            for line in outcome.differ[:5]:
                print(f"    {line}", flush=True)
            wrong += len(outcome.differ)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
