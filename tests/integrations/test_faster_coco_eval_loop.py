"""faster_coco_eval's own evaluator of batches and the drop-in's, with tensors as RT-DETRv2 and D-FINE have them."""

from __future__ import annotations

import contextlib
import copy
import io
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("faster_coco_eval")
from coco_batches import NAMES, dataset, predictions  # noqa: E402

from boxscore.compat import faster_coco_eval as drop_in  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

IDS = sorted(NAMES)


def fed(library: Any, evaluators: Any, data: Any, kinds: list[str], size: int) -> Any:
    evaluator = evaluators.FasterCocoEvaluator(library.COCO(copy.deepcopy(data)), kinds)
    found = list(predictions(data).items())
    with contextlib.redirect_stdout(io.StringIO()):
        for start in range(0, len(found), size):
            evaluator.update(
                {
                    image: {
                        "boxes": torch.tensor(one["boxes"]),
                        "scores": torch.tensor(one["scores"]),
                        "labels": torch.tensor([IDS[label] for label in one["labels"]], dtype=torch.int64),
                        "masks": torch.tensor(one["masks"], dtype=torch.float32)[:, None],
                        "keypoints": torch.tensor(one["keypoints"]),
                    }
                    for image, one in found[start : start + size]
                }
            )
        evaluator.synchronize_between_processes()
        evaluator.accumulate()
        evaluator.summarize()
    return evaluator


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("kind", ["bbox", "segm", "keypoints"])
def test_the_same_numbers(kind: str, size: int) -> None:
    """One image has no detection: its arrays have no rows."""
    import faster_coco_eval
    from faster_coco_eval.utils import pytorch as its_evaluators

    data = dataset()
    theirs = fed(faster_coco_eval, its_evaluators, data, [kind], size).coco_eval[kind]
    ours = fed(drop_in, drop_in.utils.pytorch, data, [kind], size).coco_eval[kind]
    assert isinstance(ours, drop_in.COCOeval_faster)
    assert not isinstance(theirs, drop_in.COCOeval_faster)
    assert np.asarray(ours.stats).tolist() == pytest.approx(np.asarray(theirs.stats).tolist(), abs=1e-12)
    assert ours.stats[0] > 0.05
