"""Where the samples of the repository lie."""

from __future__ import annotations

from pathlib import Path

DATASETS = Path(__file__).parents[2] / "datasets"
SHAPES, SHAPES_VOC = DATASETS / "shapes_coco", DATASETS / "shapes_voc"
GT, DT = str(SHAPES / "instances.json"), str(SHAPES / "detections.json")
