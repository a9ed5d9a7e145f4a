"""Convert batches of tensors to columns on the CPU, with torchmetrics' checks and messages.

Columns never reference a batch's memory, and numbers keep their precision.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from boxscore import BoxscoreWarning, Evaluation
from boxscore.compat.pycocotools import mask as run_lengths


def check_batch(preds: Any, target: Any, iou_types: Sequence[str]) -> None:
    """Reject the same inputs as torchmetrics, with the same messages."""
    # Check in torchmetrics' order, so that the same one of several errors is reported.
    sides = {"preds": preds, "target": target}
    for name, items in sides.items():
        if not isinstance(items, Sequence):
            raise ValueError(f"Expected argument `{name}` to be of type Sequence, but got {items}")
    if len(preds) != len(target):
        counts = f"{len(preds)} and {len(target)}"
        raise ValueError(f"Expected argument `preds` and `target` to have the same length, but got {counts}")
    # Require these keys for every image of each side.
    shapes = [{"bbox": "boxes", "segm": "masks"}[iou_type] for iou_type in iou_types]
    for name, items in sides.items():
        keys = [*shapes, "labels", "scores"] if name == "preds" else [*shapes, "labels"]
        for key in keys:
            if any(key not in item for item in items):
                raise ValueError(f"Expected all dicts in `{name}` to contain the `{key}` key")
            if not all(isinstance(item[key], torch.Tensor) for item in items):
                raise ValueError(f"Expected all {key} in `{name}` to be of type Tensor")
        # Require equal lengths for all keys of an image, since rows belong together.
        for row, item in enumerate(items):
            lengths = {key: len(item[key]) for key in keys}
            if len(set(lengths.values())) > 1:
                given = ", ".join(f"{count} {key}" for key, count in lengths.items())
                raise ValueError(f"Sample {row} of `{name}` has {given}, which have a different length")


def warn(text: str) -> None:
    """Warn the caller of a metric."""
    warnings.warn(text, BoxscoreWarning, stacklevel=2)


def joined(parts: Sequence[Any], convert: Callable[[Any], Any] = torch.clone) -> Any:
    """Concatenate the non-empty parts, converted in their own precision, as a new tensor on the CPU."""
    filled = [part.detach() for part in parts if part.numel()] or [parts[0].detach()]
    if len({(part.dtype, part.device) for part in filled}) > 1:
        return torch.cat([convert(part).cpu() for part in filled])
    return convert(torch.cat(filled)).cpu()


def optional(items: Sequence[dict[str, Any]], key: str) -> Any:
    """Concatenate a key of the targets, with 0 for targets without it."""
    lengths = [len(item["labels"]) for item in items]
    if not any(key in item for item in items):
        return torch.zeros(sum(lengths), dtype=torch.float64)
    given = [item.get(key, torch.zeros(length)).double() for item, length in zip(items, lengths, strict=True)]
    for item, values in zip(items, given, strict=True):
        if values.shape != item["labels"].shape:
            raise ValueError(
                f"Expected {key} and labels of the same length, got {len(values)}, {len(item['labels'])}"
            )
    return joined(given)


def check_kind(values: Any, name: str, *, floating: bool) -> None:
    """Reject integer scores, and labels that are not integers."""
    if values.numel() and values.is_floating_point() != floating:
        raise ValueError(f"Expected {name} of type {'float' if floating else 'int'}, got {values.dtype}")


def identifier(given: Any) -> int | str | None:
    """Return an image's id as an int or a str."""
    return given.item() if hasattr(given, "item") else given  # type: ignore[no-any-return]


def codes(masks: Any) -> list[tuple[Any, bytes]]:
    """Encode masks [N, H, W] in one call, as torchmetrics stores them."""
    if not len(masks):
        return []
    pixels = np.asfortranarray(masks.detach().cpu().numpy().transpose(1, 2, 0))
    return [(tuple(code["size"]), code["counts"]) for code in run_lengths.encode(pixels)]


def overlaps(made: Evaluation, iou_type: str, cap: int) -> dict[tuple[Any, int], Any]:
    """Return pycocotools' IoU [D, G] by image and class, detections by score; ``[]`` if a side is empty."""
    # Sort both sides by image and class; bounds delimit the rows of each pair.
    sides = []
    for table in (made.detections, made.ground_truth):
        shapes: Any = np.hstack([table.boxes[:, :2], table.sizes])
        if iou_type == "segm" and table.masks is not None:
            shapes = table.masks.codes()
        # Encode image and class in one number, in the order of the keys below.
        pairs = table.image * len(made.labels) + table.category
        order = np.argsort(pairs, kind="stable")
        bounds = np.searchsorted(pairs[order], np.arange(len(made.images) * len(made.labels) + 1))
        sides.append((shapes, order, bounds))
    (found, found_order, found_bounds), (truth, truth_order, truth_bounds) = sides
    overlaps: dict[tuple[Any, int], Any] = {}
    # Make an entry for every pair, like pycocotools.
    keys = ((i, k) for i in made.images.ids.tolist() for k in made.ground_truth.categories.ids.tolist())
    for pair, key in enumerate(keys):
        # Sort detections by descending score and apply the limit.
        mine = found_order[found_bounds[pair] : found_bounds[pair + 1]]
        theirs = truth_order[truth_bounds[pair] : truth_bounds[pair + 1]]
        mine = mine[np.argsort(-made.detections.scores[mine], kind="stable")][:cap]
        overlaps[key] = []
        # Use pycocotools' IoU, operation by operation, for run lengths and boxes.
        if len(mine) and len(theirs):
            shapes = [[side[row] for row in rows] for side, rows in ((found, mine), (truth, theirs))]
            if iou_type == "bbox":
                shapes = [np.array(side) for side in shapes]
            iou = run_lengths.iou(*shapes, made.ground_truth.crowd[theirs].astype(np.uint8).tolist())
            overlaps[key] = torch.tensor(iou, dtype=torch.float32)
    return overlaps
