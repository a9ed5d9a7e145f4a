"""The frame of an image in a gallery: its stated size, or one that holds its boxes."""

from __future__ import annotations

import numpy as np
import pytest

import boxscore
from boxscore.data.vocabulary import Images
from boxscore.extensions.pages.gallery import frame_size


@pytest.mark.parametrize("size", [(np.inf, np.inf), (np.nan, np.nan), (0, 10), (10, -1)])
def test_sizes_that_cannot_be_drawn_give_a_frame_around_the_boxes(size: tuple[float, float]) -> None:
    images = Images.build([1], sizes=[size])
    truth = boxscore.GroundTruth.from_arrays([1], ["cat"], [[0, 0, 100, 50]], images=images)
    assert frame_size(truth, 0, truth.boxes) == pytest.approx((102, 51))
