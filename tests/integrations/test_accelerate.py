"""accelerate cuts the last batch it gathers: an evaluator that knows what to expect counts what is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
accelerate = pytest.importorskip("accelerate")

from boxscore import BoxscoreWarning, Evaluator  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def test_objects_of_a_cut_batch_are_counted() -> None:
    rng = np.random.default_rng(0)
    counts = [4, 5, 3, 4, 6, 3, 4, 5, 6, 4, 5, 6, 3, 2]  # 60 objects in 14 images, in batches of 4
    samples: list[dict[str, Any]] = []
    for image, count in enumerate(counts):
        corner = torch.tensor(rng.uniform(0, 50, (count, 2)), dtype=torch.float32)
        samples.append(
            {
                "image_id": torch.tensor([image]),
                "boxes": torch.cat([corner, corner + 20], dim=1),
                "labels": torch.zeros(count, dtype=torch.int64),
            }
        )
    accelerator = accelerate.Accelerator(cpu=True)
    loader = accelerator.prepare(torch.utils.data.DataLoader(samples, 4, collate_fn=list))
    evaluator = Evaluator(expected=dict(enumerate(counts)))
    for batch in loader:
        targets = accelerator.gather_for_metrics(batch)
        evaluator.update(
            [target | {"scores": torch.ones(len(target["labels"]))} for target in targets], targets
        )
    assert len(evaluator) == 14
    text = (
        "^59 of 60 expected objects arrived: image 12 has 2 of 3. The metrics cover the rest. .* accelerate"
    )
    with pytest.warns(BoxscoreWarning, match=text):
        evaluator.compute()
