"""Score made-up federated data with boxscore and with the rules in plain Python, and look for a difference.

    python qa/fuzz/federated.py --cases 5000 --seed 0 [--reference FOLDER]

LVIS boxes: with the cap per image, and with a cap per class over the data set. ``--reference`` is a checkout of
lvis-api, which then scores every case as well, and the drop-in face is compared with it in everything it returns.
Open Images: boxes under both evaluators, masks, groups of three weights, and equal scores.
Every cell must be equal to the last bit.
"""

from __future__ import annotations

import argparse
import copy
import json
import logging
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests")]

import boxscore  # noqa: E402
from oracles import lvis, open_images  # noqa: E402
from support.federated_cases import (  # noqa: E402
    federated_case,
    open_images_case,
    open_images_mask_case,
    tied,
)
from support.open_images import scored_open_images  # noqa: E402
from support.quiet import quiet  # noqa: E402

Record = dict[str, Any]


def scored(folder: Path, dataset: Record, results: list[Record], **matching: Any) -> lvis.Arrays:
    truth, found = folder / "truth.json", folder / "results.json"
    truth.write_text(json.dumps(dataset), encoding="utf-8")
    found.write_text(json.dumps(results), encoding="utf-8")
    with quiet():
        evaluation = boxscore.evaluate(truth, found, protocol={"extends": "lvis", "matching": matching})
    arrays = evaluation.arrays()
    return lvis.Arrays(*(np.nan_to_num(arrays[name][..., 0], nan=-1.0) for name in ("precision", "recall")))


def by_reference(dataset: Record, results: list[Record], *, cap: int) -> lvis.Arrays | None:
    """Score with lvis-api; None where it cannot (no results)."""
    from lvis import LVIS, LVISEval, LVISResults  # type: ignore[import-not-found]

    if not results:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "truth.json")
        path.write_text(json.dumps(dataset), encoding="utf-8")
        truth = LVIS(str(path))
    run = LVISEval(truth, LVISResults(truth, copy.deepcopy(results), max_dets=cap), "bbox")
    run.params.max_dets = cap
    run.evaluate()
    run.accumulate()
    return lvis.Arrays(run.eval["precision"], run.eval["recall"])


def face_differences(dataset: Record, results: list[Record], *, cap: int) -> list[str]:
    """Run lvis-api and the drop-in for it side by side and name what differs."""
    import lvis

    from boxscore.compat import lvis as face

    if not results:
        return []
    runs = []
    for library in (lvis, face):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "truth.json")
            path.write_text(json.dumps(dataset), encoding="utf-8")
            truth = library.LVIS(str(path))
        run = library.LVISEval(
            truth, library.LVISResults(truth, copy.deepcopy(results), max_dets=cap), "bbox"
        )
        run.params.max_dets = cap
        run.run()
        runs.append(run)
    theirs, ours = runs
    different = []
    if list(theirs.results.items()) != list(ours.results.items()):
        different.append("results")
    keys = ("precision", "recall")
    different += [key for key in keys if theirs.eval[key].tobytes() != ours.eval[key].tobytes()]
    if theirs.freq_groups != ours.freq_groups or theirs.img_nel != ours.img_nel:
        different.append("groups")
    if theirs.lvis_dt.anns != ours.lvis_dt.anns or theirs.lvis_gt.anns != ours.lvis_gt.anns:
        different.append("annotations")
    if not _alike(theirs.eval_imgs, ours.eval_imgs):
        different.append("eval_imgs")
    if not _alike(theirs.ious, ours.ious):
        different.append("ious")
    if not _alike(theirs.eval["dt_pointers"], ours.eval["dt_pointers"]):
        different.append("dt_pointers")
    return different


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return list(one) == list(other) and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    return bool(np.array_equal(one, other))


def check(folder: Path, seed: int, *, reference: bool) -> list[str]:
    dataset, results = federated_case(seed)
    wrong = []
    for cap in (3, 300):
        ours = scored(folder, dataset, results, max_detections=[cap])
        pairs = {"oracle": lvis.evaluate(dataset, results, per_image=cap)}
        if reference:
            theirs = by_reference(dataset, results, cap=cap)
            pairs |= {} if theirs is None else {"reference": theirs}
            wrong += [f"face, cap {cap}: {what}" for what in face_differences(dataset, results, cap=cap)]
        wrong += [f"{name}, cap {cap}" for name, theirs in pairs.items() if not _same(ours, theirs)]
    ours = scored(folder, dataset, results, max_detections=[4], cap_scope="data_set_class")
    theirs = lvis.evaluate(dataset, results, per_image=None, per_class=4)
    return wrong + ([] if _same(ours, theirs) else ["oracle, cap per class"])


def check_open_images(seed: int, *, ties: bool) -> list[str]:
    wrong = []
    for name, weight in (
        ("openimages-challenge", 1.0),
        ("openimages-challenge", 0.5),
        ("openimages-challenge", 0.0),
        ("openimages-v2", 0.0),
        ("openimages-segmentation", 1.0),
        ("openimages-segmentation", 0.5),
        ("openimages-segmentation", 0.0),
    ):
        masks = name == "openimages-segmentation"
        case = (open_images_mask_case if masks else open_images_case)(seed)
        truths, found, listed, images, labels = tied(case, seed) if ties else case
        rules = open_images.Rules(weight, None if name == "openimages-v2" else listed, masks)
        theirs = open_images.evaluate(truths, found, images, labels, rules)
        ours, mean = scored_open_images(truths, found, listed, images, labels, name, weight)
        whole = np.nanmean(theirs) if not np.isnan(theirs).all() else np.nan
        if not np.array_equal([*ours, mean], [*theirs, whole], equal_nan=True):
            wrong.append(f"{name}, weight {weight}{', equal scores' * ties}")
    return wrong


def _same(ours: lvis.Arrays, theirs: lvis.Arrays) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(ours, theirs, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reference", type=Path)
    options = parser.parse_args()
    if options.reference is not None:
        sys.path.insert(0, str(options.reference))
        sys.modules["lvis.vis"] = types.ModuleType("lvis.vis")  # draws, and needs OpenCV
        vars(sys.modules["lvis.vis"])["LVISVis"] = None
        logging.disable(logging.CRITICAL)
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seed, options.seed + options.cases):
            wrong = check(Path(folder), seed, reference=options.reference is not None)
            wrong += check_open_images(seed, ties=False) + check_open_images(seed, ties=True)
            different += bool(wrong)
            if wrong:
                print(f"seed {seed}: {'; '.join(wrong)}")
    print(f"{options.cases} cases, {different} with a difference")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
