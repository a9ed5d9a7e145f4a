"""What an evaluation of plain boxes in COCO's files loads, which for small files is much of its time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MOST_MODULES = 159
"""Modules of boxscore: the rules of a protocol, a file each, are a quarter of them."""

OURS_NOT_NEEDED = (
    *("data.column_names", "data.operations", "data.rasterising", "data.spans", "diagnostics", "distributed"),
    *(
        "evaluation.flat_names",
        "formats._data_below",
        "formats._several",
        "formats.recognising",
        "label_maps",
        "reports",
    ),
    *("matching.annotators", "matching.groups", "matching.joined_keypoints", "matching.outcomes"),
    *("matching.score_levels", "matching.shares", "matching.whole_groups", "protocols.changing"),
    *(
        "scoring.orderless",
        "scoring.phrase_counts",
        "scoring.weight_sums",
        "scoring.weighted",
        "scoring.weighted_curves",
    ),
    *("similarity.keypoints", "similarity.mask", "similarity.mask_pairs"),
)
OTHERS_NOT_NEEDED = ("difflib", "lzma", "multiprocessing", "pandas", "shutil")

EVALUATION = """
import json, sys, warnings
warnings.simplefilter("ignore")
import boxscore
result = boxscore.evaluate(*sys.argv[1:])
assert result["AP"] > 0 and len(result.metrics) == 12
print(json.dumps(sorted(sys.modules)))
"""


def test_an_evaluation_of_plain_boxes_loads_what_it_needs(tmp_path: Path) -> None:
    images = [{"id": image, "width": 100, "height": 100, "file_name": f"{image}.jpg"} for image in range(800)]
    boxes = [
        {"image_id": image, "category_id": 1 + image % 3, "bbox": [image % 50, 10, 40, 40]}
        for image in range(800)
    ]
    annotations = [{**box, "id": row + 1, "area": 1600, "iscrowd": 0} for row, box in enumerate(boxes)]
    categories = [{"id": number, "name": f"class {number}"} for number in (1, 2, 3)]
    truth, results = tmp_path / "truth.json", tmp_path / "results.json"
    truth.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    results.write_text(json.dumps([{**box, "score": 1 - row / 1000} for row, box in enumerate(boxes)]))
    command = [sys.executable, "-c", EVALUATION, str(truth), str(results)]
    loaded = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    ours = [name.removeprefix("boxscore.") for name in loaded if name.partition(".")[0] == "boxscore"]
    assert [name for name in OURS_NOT_NEEDED if name in ours] == []
    assert [name for name in OTHERS_NOT_NEEDED if name in loaded] == []
    assert len(ours) <= MOST_MODULES, f"{len(ours)} modules: {' '.join(ours)}"
