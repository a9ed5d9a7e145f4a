"""Tables put together keep every column."""

from __future__ import annotations

import numpy as np

from boxscore import GroundTruth
from boxscore.data.alignment import concatenate
from boxscore.data.vocabulary import Images


def part(image: int, names: list[str]) -> GroundTruth:
    return GroundTruth.from_arrays(
        [image] * len(names),
        names,
        [[0, 0, image, 5]] * len(names),
        ids=[image * 10 + n for n in range(len(names))],
        images=Images.build([image], sizes=[[8, 8]], columns={"weather": [f"w{image}"]}),
        keypoints=np.full((len(names), 2, 3), image),
        masks=[np.eye(8)] * len(names),
        columns={"camera": [f"{image}{name}" for name in names]},
    )


def test_every_column_goes_with_its_row() -> None:
    whole, rows = concatenate([part(5, ["cat", "dog"]), part(3, []), part(2, ["dog"])])
    assert whole.images.ids.tolist() == [2, 3, 5]
    assert whole.ids.tolist() == [20, 50, 51]
    assert rows.tolist() == [1, 2, 0]
    assert whole.columns["camera"].tolist() == ["2dog", "5cat", "5dog"]
    assert whole.images.columns["weather"].tolist() == ["w2", "w3", "w5"]
    assert whole.keypoints is not None
    assert whole.keypoints[:, 0, 0].tolist() == [2, 5, 5]
    assert whole.keypoint_count is not None
    assert whole.keypoint_count.tolist() == [2, 2, 2]
    assert whole.masks is not None
    assert whole.masks.area.tolist() == [8, 8, 8]
