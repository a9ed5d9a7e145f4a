"""torchvision's measures of overlap: the same values without its eps, which moves boxes of small numbers most."""

from __future__ import annotations

import numpy as np
import pytest

import boxscore

torch = pytest.importorskip("torch")
ops = pytest.importorskip("torchvision.ops")


@pytest.mark.parametrize("scale", [1.0, 640.0, 1e5])
@pytest.mark.parametrize("name", ["box_iou", "generalized_box_iou", "distance_box_iou", "complete_box_iou"])
def test_the_same_values(name: str, scale: float) -> None:
    random = np.random.default_rng(0)
    corner = random.uniform(0, scale, (2, 120, 2))
    boxes = np.concatenate([corner, corner + random.uniform(scale / 500, scale / 4, (2, 120, 2))], axis=2)
    boxes[1, :40] = boxes[0, :40] + random.normal(0, scale / 900, (40, 4))
    boxes[1, :10] = boxes[0, :10]
    ours = getattr(boxscore, name)(boxes[0], boxes[1])
    tensors = torch.tensor(boxes[0]), torch.tensor(boxes[1])
    has_eps = name in ("distance_box_iou", "complete_box_iou")
    theirs = getattr(ops, name)(*tensors, **({"eps": 0} if has_eps else {})).numpy()
    same = ~np.isnan(theirs)  # 0 / 0 of equal boxes
    assert same.mean() > 0.99
    assert ours[same] == pytest.approx(theirs[same], abs=1e-14)
    if has_eps:
        differs = np.abs(ours - getattr(ops, name)(*tensors).numpy()).max()
        assert differs < (3e-5 if scale == 1 else 3e-8)
        assert (differs > 1e-7) == (scale == 1)
