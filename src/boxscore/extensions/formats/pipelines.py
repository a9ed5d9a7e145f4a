"""Read detections of Hugging Face's object detection pipelines: ``score``, ``label`` and ``box`` per object.

Conventions
-----------
The pipeline cuts boxes to whole pixels, and drops scores below 0.5 by default.

References
----------
https://github.com/huggingface/transformers, ``pipelines/object_detection.py``
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec

from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import GroundTruth
from boxscore.extensions.formats._gathered import Gathered, Origin
from boxscore.extensions.formats._json_folders import first_json, first_object
from boxscore.extensions.formats._responses import DetectionsFormat, responses
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import Rows
from boxscore.formats._sniffer import Sniffer

SCORE_THRESHOLD = 0.5
"""The default of the pipeline."""


class _Box(msgspec.Struct, gc=False):
    xmin: float
    ymin: float
    xmax: float
    ymax: float


class _Detection(msgspec.Struct, gc=False):
    score: float
    label: str
    box: _Box


class PipelineFormat(DetectionsFormat):
    """Output of Hugging Face's pipelines."""

    name = "pipeline"
    folder_endings = (".json",)

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect a list whose first object has the three keys."""
        file = first_json(sniffer)
        first = {} if file is None else first_object(file, by_name=True)
        box = first.get("box")
        if first.keys() != {"score", "label", "box"} or not isinstance(box, dict) or "xmin" not in box:
            return None
        return f"{'a folder of ' * sniffer.is_folder}output of a Hugging Face pipeline"

    def rows_of(self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None) -> Rows:
        """Read every list."""
        gathered = Gathered(path, options, endings=False, any_corners=False)
        ordered, whole, lowest = False, True, 1.0
        for response in responses(path, _Detection, ground_truth, tool="output of a pipeline"):
            ordered = response.is_ordered
            image = gathered.image(response.image)
            for number, detection in enumerate(response.detections):
                box = detection.box
                corners = (box.xmin, box.ymin, box.xmax, box.ymax)
                whole = whole and all(corner.is_integer() for corner in corners)
                lowest = min(lowest, detection.score)
                origin = Origin(response.place, number, response.file)
                gathered.add_box(image, detection.label, corners, "xyxy", origin, score=detection.score)
        rows = dataclasses.replace(gathered.rows(of_results=True), named_by_id=ordered)
        if whole and len(rows.image):
            cut = " and dropped scores below 0.5" * (lowest >= SCORE_THRESHOLD)
            warn_user(
                f"{path}: the pipeline cut boxes to whole pixels{cut}, so AP is not exactly that of the "
                "model. To evaluate the model itself, save the output of "
                "post_process_object_detection(threshold=0)."
            )
        return rows


FORMAT = PipelineFormat()
