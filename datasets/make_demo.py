"""Make the samples inside the package: some images of ``shapes_coco``, boxes only.

python datasets/make_demo.py --output src/boxscore/cli/samples
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent / "shapes_coco"
IMAGES = 12
MOST = 20
"""Detections of an image; one of the data set has 133 of small circles, to make a point about caps."""


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    output = parser.parse_args().output
    truth = json.loads((SOURCE / "instances.json").read_text(encoding="utf-8"))
    results = json.loads((SOURCE / "detections.json").read_text(encoding="utf-8"))
    counts = Counter(result["image_id"] for result in results)
    images = [image for image in truth["images"] if counts[image["id"]] <= MOST][:IMAGES]
    chosen = {image["id"] for image in images}
    keys = ("id", "image_id", "category_id", "bbox", "area", "iscrowd")
    annotations = [
        {key: annotation[key] for key in keys}
        for annotation in truth["annotations"]
        if annotation["image_id"] in chosen
    ]
    output.mkdir(parents=True, exist_ok=True)
    text = ",\n".join(
        f"{json.dumps(name)}: {_lines(rows)}"
        for name, rows in (
            ("images", images),
            ("categories", truth["categories"]),
            ("annotations", annotations),
        )
    )
    (output / "instances.json").write_text(f"{{{text}}}\n", encoding="utf-8")
    detections = [result for result in results if result["image_id"] in chosen]
    (output / "detections.json").write_text(f"{_lines(detections)}\n", encoding="utf-8")


def _lines(rows: list[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]"


if __name__ == "__main__":
    main()
