"""Runs a benchmark's own evaluator on every case: ``benchmark_adapters.py ADAPTER CASES FILES OUTPUT``.

CASES has a folder for each case, as ``made_up.py`` wrote it; FILES holds the tool's files. What is written is a list
with the numbers of each case, or the name of the error that the tool stopped with. Imports nothing of boxscore: the
interpreter is another one.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.metadata
import importlib.util
import io
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.adapters import load, stand_in

Numbers = dict[str, Any]
OfCase = Callable[[Path], Numbers]

for old, new in {"float": float, "int": int, "bool": bool, "object": object}.items():
    if old not in np.__dict__:
        setattr(np, old, new)
setattr(np, "in1d", np.isin)  # noqa: B010, of which the shape is given anew at once


def digest(array: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(array, dtype=np.float64).tobytes()).hexdigest()


def masks_of_coco(package: str) -> None:
    """Give a copy of the COCO API the compiled masks of pycocotools, whose code is the same."""
    compiled = importlib.import_module("pycocotools._mask")
    sys.modules[f"{package}._mask"] = compiled


def read(case: Path, name: str) -> Any:
    return json.loads((case / name).read_text(encoding="utf-8"))


def arrays_of(evaluator: Any) -> Numbers:
    return {"precision": digest(evaluator.eval["precision"]), "recall": digest(evaluator.eval["recall"])}


def of_coco(evaluator: Any) -> Numbers:
    evaluator.evaluate()
    evaluator.accumulate()
    numbers = arrays_of(evaluator)
    evaluator.summarize()
    return numbers | {"stats": [float(value) for value in evaluator.stats]}


def aitod(files: Path) -> OfCase:
    sys.path.insert(0, str(files / "aitodpycocotools"))
    masks_of_coco("aitodpycocotools")
    from aitodpycocotools.coco import COCO
    from aitodpycocotools.cocoeval import COCOeval

    def numbers(case: Path) -> Numbers:
        truth = COCO(str(case / "gt.json"))
        found = of_coco(COCOeval(truth, truth.loadRes(str(case / "dt.json")), "bbox"))
        stats = found["stats"]
        return found | {"stats": [stats[0], *stats[2:-4]]}  # without AP25, which is -1, and oLRP

    return numbers


def sodad(files: Path) -> OfCase:
    from pycocotools.coco import COCO

    module = load(files / "mmdet/datasets/sodad_eval/sodadeval.py", "sodadeval")

    def numbers(case: Path) -> Numbers:
        truth = COCO(str(case / "gt.json"))
        return of_coco(module.SODADeval(truth, truth.loadRes(str(case / "dt.json")), "bbox"))

    return numbers


def tinyperson(files: Path) -> OfCase:
    from pycocotools.coco import COCO

    folder = files / "tiny_benchmark/maskrcnn_benchmark/data/datasets/evaluation/coco"
    whole = (r"(np\.round\([^\n]*?\)) \+ 1", r"int(\1) + 1")  # NumPy counts in whole numbers
    module = load(folder / "cocoeval.py", "tiny_cocoeval", lambda text: re.sub(*whole, text))
    module.Params.EVAL_STRANDARD = "tiny"

    def numbers(case: Path) -> Numbers:
        truth = COCO(str(case / "gt.json"))
        found = truth.loadRes(str(case / "dt.json"))
        return of_coco(module.COCOeval(truth, found, "bbox", True, True))

    return numbers


def xtcocotools_of(case: Path, kind: str, use_area: bool = True) -> Numbers:
    from xtcocotools.coco import COCO
    from xtcocotools.cocoeval import COCOeval

    truth = COCO(str(case / "gt.json"))
    found = truth.loadRes(str(case / "dt.json"))
    return of_coco(COCOeval(truth, found, kind, np.array(read(case, "sigmas.json")), use_area=use_area))


def xtcocotools(files: Path) -> OfCase:
    masks_of_coco("xtcocotools")
    return lambda case: xtcocotools_of(case, f"keypoints_{read(case, 'part.json')}")


def xtcocotools_crowd(files: Path) -> OfCase:
    masks_of_coco("xtcocotools")
    return lambda case: xtcocotools_of(case, "keypoints_crowd", use_area=False)


def xtcocotools_animals(files: Path) -> OfCase:
    masks_of_coco("xtcocotools")
    return lambda case: xtcocotools_of(case, "keypoints")


def crowdposetools(files: Path) -> OfCase:
    stand_in("matplotlib", "matplotlib.pyplot", "matplotlib.collections", "matplotlib.patches")
    sys.path.insert(0, str(files / "crowdpose-api" / "PythonAPI"))
    masks_of_coco("crowdposetools")
    from crowdposetools.coco import COCO
    from crowdposetools.cocoeval import COCOeval

    def numbers(case: Path) -> Numbers:
        truth = COCO(str(case / "gt.json"))
        found = truth.loadRes(str(case / "dt.json"))
        return of_coco(COCOeval(truth, found, "keypoints"))

    return numbers


def coco_analyze(files: Path) -> OfCase:
    """The counts of ``analysisAPI/localizationErrors.py``, which draws them; its package has pycocotools' name."""
    stand_in("matplotlib", "matplotlib.pyplot", "matplotlib.collections", "matplotlib.patches")
    stand_in("colour", "skimage", "skimage.io")
    installed = Path(str(importlib.metadata.distribution("pycocotools").locate_file("pycocotools")))
    spec = importlib.util.spec_from_file_location("pycocotools._mask", next(installed.glob("_mask.*.so")))
    assert spec is not None
    assert spec.loader is not None
    masks = sys.modules["pycocotools._mask"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(masks)
    linspace = np.linspace
    np.linspace = lambda start, stop, num, **rest: linspace(start, stop, int(num), **rest)  # type: ignore
    from pycocotools.coco import COCO
    from pycocotools.cocoanalyze import COCOanalyze

    def numbers(case: Path) -> Numbers:
        truth = COCO(str(case / "gt.json"))
        analysis = COCOanalyze(truth, truth.loadRes(str(case / "dt.json")), "keypoints")
        analysis.params.areaRng, analysis.params.areaRngLbl = [[32**2, 1e5**2]], ["all"]
        analysis.cocoEval.params.useGtIgnore, analysis.cocoEval.params.gtIgnoreIds = 0, []
        analysis.analyze(check_kpts=True, check_scores=False, check_bckgd=False)
        analyzed = [one for one in analysis.corrected_dts["all"] if "good" in one]
        found: Numbers = {
            kind: np.sum([np.zeros(17), *(one[kind] for one in analyzed)], axis=0).tolist()
            for kind in ("good", "jitter", "inversion", "swap", "miss")
        }
        matches = analysis.localization_matches["all", str(analysis.params.oksLocThrs), "dts"]
        return found | {"matched": len(matches), "analyzed": len(analyzed)}

    return numbers


def xview(files: Path) -> OfCase:
    """``score.py`` as it stands; its numbers are taken before it rounds them into a file."""
    stand_in("tqdm")
    sys.modules["tqdm"].tqdm = lambda values: values  # type: ignore[attr-defined]
    sys.path.insert(0, str(files / "scoring"))

    def with_values(text: str) -> str:
        return text.replace("  ttime = time.time()", "  global vals; ttime = time.time()", 1)

    module = load(files / "scoring" / "score.py", "score", with_values)

    def numbers(case: Path) -> Numbers:
        with np.errstate(all="ignore"):
            module.score(f"{case}/dt/", str(case / "gt.geojson"), str(case))
        values = module.__dict__["vals"]
        classes = {str(key): float(value) for key, value in values.items() if isinstance(key, int)}
        return {"mAP": float(values["map"]), **classes}

    return numbers


def cityscapes(files: Path) -> OfCase:
    script = importlib.import_module("cityscapesscripts.evaluation.evalInstanceLevelSemanticLabeling")

    def numbers(case: Path) -> Numbers:
        args = script.args
        args.quiet, args.JSONOutput = True, False
        args.minRegionSizes = np.array([20, 1000, 1000])
        args.gtInstancesFile = str(case / "instances.json")
        args.predictionPath, args.predictionWalk = str((case / "dt").resolve()), None
        os.chdir(case)
        truths = sorted(map(str, (case / "gt").glob("*_instanceIds.png")))
        found = [script.getPrediction(path, args) for path in truths]
        content = script.evaluateImgLists(found, truths, args)
        aps = np.array(content["resultApMatrix"])[0]
        per_class = dict(zip(args.instLabels, aps.tolist(), strict=True))
        return {"AP": content["averages"]["allAp"], "AP50": content["averages"]["allAp50%"], **per_class}

    return numbers


def cityscapes_pixels(files: Path) -> OfCase:
    script = importlib.import_module("cityscapesscripts.evaluation.evalPixelLevelSemanticLabeling")

    def numbers(case: Path) -> Numbers:
        args = script.args
        args.quiet, args.JSONOutput = True, False
        truths = sorted(map(str, (case / "gt").glob("*_labelIds.png")))
        found = sorted(map(str, (case / "semantic").glob("*_labelIds.png")))
        content = script.evaluateImgLists(found, truths, args)
        means = {
            "mIoU": content["averageScoreClasses"],
            "iIoU": content["averageScoreInstClasses"],
            "mIoU_categories": content["averageScoreCategories"],
            "iIoU_categories": content["averageScoreInstCategories"],
        }
        return {key: float(value) for key, value in means.items()}

    return numbers


def nuscenes(files: Path) -> OfCase:
    """``accumulate`` and ``calc_ap``; places are plane points, distances 40, 20, 10 and 5."""
    sys.path.insert(0, str(files / "python-sdk"))
    stand_in("nuscenes.utils", "nuscenes.utils.data_classes")
    from nuscenes.eval.common.data_classes import EvalBoxes
    from nuscenes.eval.common.utils import center_distance
    from nuscenes.eval.detection.algo import accumulate, calc_ap
    from nuscenes.eval.detection.data_classes import DetectionBox

    names = {1: "car", 2: "truck"}

    def boxes(records: list[Numbers], images: list[Numbers]) -> Any:
        given = EvalBoxes()
        for image in images:
            given.add_boxes(str(image["id"]), [])
        for item in records:
            token = str(item["image_id"])
            box = DetectionBox(
                sample_token=token,
                translation=(*item["point"], 0.0),
                size=(1.0, 1.0, 1.0),
                rotation=(1.0, 0.0, 0.0, 0.0),
                detection_name=names[item["category_id"]],
                detection_score=item.get("score", -1.0),
            )
            given.add_boxes(token, [box])
        return given

    def numbers(case: Path) -> Numbers:
        truth = read(case, "gt.json")
        images = truth["images"]
        truths, found = boxes(truth["annotations"], images), boxes(read(case, "dt.json"), images)
        values: Numbers = {}
        for key, apart in (("4", 40), ("2", 20), ("1", 10), ("0.5", 5)):
            for label, name in names.items():
                with np.errstate(all="ignore"):
                    data = accumulate(truths, found, name, center_distance, apart)
                values[f"{label}@{key}"] = calc_ap(data, 0.1, 0.1)
        return values

    return numbers


def in_images(case: Path) -> list[tuple[int, list[Numbers], list[Numbers]]]:
    """Return the records of each image, truths and detections."""
    truth, found = read(case, "gt.json"), read(case, "dt.json")
    return [
        (
            image["id"],
            *(
                [one for one in side if one["image_id"] == image["id"]]
                for side in (truth["annotations"], found)
            ),
        )
        for image in truth["images"]
    ]


def named_pairs(pairs: list[tuple[Numbers, Numbers]]) -> str:
    return json.dumps(sorted([truth["id"], *found["bbox"][:2]] for truth, found in pairs))


def deepforest(files: Path) -> OfCase:
    """``evaluate_geometry`` of points; what it imports to read files takes no part."""
    import geopandas
    from shapely.geometry import Point

    stand_in("deepforest", "deepforest.utilities")
    folder = files / "src" / "deepforest"
    sys.modules["deepforest"].IoU = load(folder / "IoU.py", "deepforest.IoU")  # type: ignore[attr-defined]
    module = load(folder / "evaluate.py", "deepforest.evaluate")

    def frame(records: list[Numbers]) -> Any:
        rows = [
            {
                "image_path": one["image_id"],
                "label": one["category_id"],
                "x": one["point"][0],
                "y": one["point"][1],
                "score": one.get("score", 1.0),
            }
            for one in records
        ]
        return geopandas.GeoDataFrame(rows, geometry=[Point(*one["point"]) for one in records])

    def numbers(case: Path) -> Numbers:
        images = in_images(case)
        sides = [frame([one for image in images for one in image[side]]) for side in (2, 1)]
        found = module.evaluate_geometry(*sides, distance_threshold=10.0, geometry_type="point")
        of_image = {image: (truths, detections) for image, truths, detections in images}
        rows = found["results"]
        right = rows[rows["match"].astype(bool)]
        pairs = [
            (of_image[image][0][int(truth)], of_image[image][1][int(detection)])
            for image, truth, detection in zip(
                right["image_path"], right["truth_id"], right["prediction_id"], strict=True
            )
        ]
        means = {name: float(found[f"point_{name}"]) for name in ("recall", "precision")}
        return {"pairs": named_pairs(pairs), **means}

    return numbers


def milliontrees(files: Path) -> OfCase:
    """``greedy_distance_match``, of distances in double precision."""
    import torch

    module = load(files / "milliontrees" / "common" / "metrics" / "matching.py", "matching")

    def numbers(case: Path) -> Numbers:
        pairs = []
        for _, truths, found in in_images(case):
            places = [
                torch.tensor([one["point"] for one in side], dtype=torch.float64).reshape(-1, 2)
                for side in (truths, found)
            ]
            apart = torch.sqrt(((places[0][:, None] - places[1][None]) ** 2).sum(dim=2))
            matched = module.greedy_distance_match(apart, 10.0).tolist()
            pairs += [(truth, found[at]) for truth, at in zip(truths, matched, strict=True) if at >= 0]
        return {"pairs": named_pairs(pairs)}

    return numbers


LEVELS = {"EASY": "easy", "MODERATE": "moderate", "HARD": "hard"}


def without_boost(text: str) -> str:
    """Leave out what compares polygons, read the number of images and print every digit."""
    text = re.sub(r"(?m)^#include <boost.*$|^BOOST_GEOMETRY.*$|^typedef boost.*$", "", text)
    start = text.index("// compute polygon of an oriented")
    text = text[:start] + text[text.index("vector<double> getThresholds") :]
    start = text.index("  // don't evaluate AOS for birdview boxes")
    text = text[:start] + text[text.index("  // success\n  return true;") :]
    text = text.replace(
        "const int32_t N_TESTIMAGES = 7480;", 'int32_t N_TESTIMAGES = atoi(getenv("IMAGES"));'
    )
    text = re.sub(r"(?m)^ *saveAndPlotPlots\(plot_dir.*$", "", text)
    text = re.sub(r'system\(\("mkdir[^;]*;', "", text)
    return text.replace('"%f "', '"%.17g "').replace(
        "#include <stdio.h>", "#include <stdio.h>\n#include <stdlib.h>"
    )


def kitti(files: Path) -> OfCase:
    """``evaluate_object.cpp``, compiled here."""
    program = files / "evaluate_object"
    source = files / "cpp" / "plain.cpp"
    text = without_boost((files / "cpp" / "evaluate_object.cpp").read_text(encoding="utf-8"))
    source.write_text(text, encoding="utf-8")
    subprocess.run(["g++", "-O2", "-w", "-o", str(program), str(source)], check=True)

    def read_lines(case: Path, name: str, kind: str) -> dict[str, list[float]]:
        path = case / "results" / "x" / f"stats_{name}_{kind}.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        if kind == "orientation":
            lines = [f"{level} {line}" for level, line in zip(LEVELS, lines, strict=True)] if lines else []
        words = [line.split() for line in lines]
        return {LEVELS[line[0]]: [float(word) for word in line[1:42]] for line in words}

    def numbers(case: Path) -> Numbers:
        count = len(list((case / "data" / "object" / "label_2").iterdir()))
        environment = {**os.environ, "IMAGES": str(count)}
        subprocess.run([str(program), "x"], cwd=case, env=environment, check=True, stdout=subprocess.DEVNULL)
        values = {}
        for name in ("car", "pedestrian", "cyclist"):
            for key, kind in (("AP", "detection"), ("AOS", "orientation")):
                for level, points in read_lines(case, name, kind).items():
                    values[f"{name} {key}_R40_{level}"] = sum(points[1:]) / 40
                    values[f"{name} {key}_R11_{level}"] = sum(points[::4]) / 11
        return {key: value for key, value in values.items() if not math.isnan(value)}

    return numbers


ADAPTERS: dict[str, Callable[[Path], OfCase]] = {
    one.__name__: one
    for one in (
        *(aitod, sodad, tinyperson, xtcocotools, xtcocotools_crowd, xtcocotools_animals, crowdposetools),
        *(coco_analyze, xview, cityscapes, cityscapes_pixels, nuscenes, deepforest, milliontrees, kitti),
    )
}


def main() -> None:
    name, cases, files, output = sys.argv[1:]
    of_case = ADAPTERS[name](Path(files))
    answers: list[Any] = []
    for case in sorted(Path(cases).resolve().iterdir()):
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                answers.append(of_case(case))
        except (Exception, SystemExit) as error:  # what a tool stops with is its answer
            answers.append(f"{type(error).__name__}: {error}")
    Path(output).write_text(json.dumps(answers), encoding="utf-8")


if __name__ == "__main__":
    main()
