"""torchmetrics' ``MeanAveragePrecision``, evaluated by boxscore.

Same arguments, keys, shapes and float32 bits, in a fraction of the time and memory: batches are stored as
columns and evaluated in one pass.

Conventions
-----------
- ``update`` copies columns to the CPU; batches are not referenced.
- If every target has an ``image_id``, images are evaluated in the order of their ids, and repeated ones count
  one time. Without ids they are in the order of arrival; several ranks take turns.
- -1 is undefined, as in torchmetrics.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
import torchmetrics.detection
from numpy.typing import NDArray
from torch import distributed
from torchmetrics.utilities.distributed import gather_all_tensors
from torchvision.ops import box_convert

from boxscore import Detections, Evaluation, GroundTruth, InputError, evaluate
from boxscore.compat.pycocotools import mask as run_lengths
from boxscore.diagnostics import bootstrap_intervals, explain
from boxscore.extensions.data_tools.invalid_rows import (
    Columns,
    Invalid,
    checked,
    kept_rows,
    without_invalid,
)
from boxscore.extensions.diagnostics.bootstrap import BootstrapIntervals
from boxscore.extensions.diagnostics.explaining import Explanation
from boxscore.integrations.torch_columns import (
    check_batch,
    check_kind,
    codes,
    identifier,
    joined,
    optional,
    overlaps,
    warn,
)

_Function = TypeVar("_Function", bound=Callable[..., Any])
_untraced: Callable[[_Function], _Function] = torch.compiler.disable
"""Keeps NumPy's code out of the graphs of ``torch.compile``, which would be rebuilt for every batch."""


class MeanAveragePrecision(torchmetrics.detection.MeanAveragePrecision):  # type: ignore[misc]
    """Mean average precision and recall: a drop-in for torchmetrics' class of this name.

    Parameters, results and errors are those of ``torchmetrics.detection.MeanAveragePrecision``. If
    ``max_detection_thresholds`` lacks 100, ``backend`` selects the first number: -1 with ``"pycocotools"``,
    the value at the largest limit with ``"faster_coco_eval"``. ``invalid`` is as in
    :class:`boxscore.Evaluator`, by default "false_positive".
    """

    full_state_update: bool = False

    def __init__(self, *args: Any, invalid: Invalid = "false_positive", **options: Any) -> None:
        super().__init__(*args, **options)
        self.invalid = checked(invalid)
        for name in ("detection_counts", "groundtruth_counts", "image_ids", "positions"):
            self.add_state(name, default=[], dist_reduce_fx=None)

    # ---------------------------------------------------------------- batches

    @_untraced
    def update(self, preds: Sequence[dict[str, Any]], target: Sequence[dict[str, Any]]) -> None:
        """Add a batch.

        Parameters
        ----------
        preds, target : sequence of mapping of str to Tensor
            One per image, in torchmetrics' form; targets may have an ``image_id``.

        Raises
        ------
        ValueError
            When a batch breaks a rule of torchmetrics; the batch is then dropped completely.
        """
        # Check everything before any state changes, so that a rejected batch leaves no trace.
        check_batch(preds, target, self.iou_type)
        if not preds:
            return
        # Convert both sides to columns; images may have ids.
        state = {f"detection_{key}": value for key, value in self._side(preds).items()}
        state |= {f"groundtruth_{key}": value for key, value in self._side(target).items()}
        state["detection_scores"] = joined([item["scores"] for item in preds])
        check_kind(state["detection_scores"], "scores", floating=True)
        state["groundtruth_crowds"] = optional(target, "iscrowd")
        state["groundtruth_area"] = optional(target, "area")
        state["image_ids"] = [identifier(item.get("image_id")) for item in target]
        # Issue torchmetrics' warning.
        most = self.max_detection_thresholds[-1]
        if self.warn_on_many_detections and state["detection_counts"].max() > most:
            warn(
                f"an image has more than {most} detections: those with lower scores are not evaluated. Give "
                "max_detection_thresholds, or set warn_on_many_detections = False."
            )
        # Append tensors to the lists of the state, which torchmetrics gathers over processes.
        for name, value in state.items():
            getattr(self, name).extend(value if isinstance(value, list) else [value])

    def _side(self, items: Sequence[dict[str, Any]]) -> Columns:
        """Return the columns that predictions and targets share: counts, labels, and boxes or masks."""
        side = {
            "counts": torch.tensor([len(item["labels"]) for item in items]),
            "labels": joined([item["labels"] for item in items]),
        }
        check_kind(side["labels"], "labels", floating=False)
        if "bbox" in self.iou_type:
            boxes = [item["boxes"] for item in items if item["boxes"].numel()] or [torch.zeros(0, 4)]
            for part in boxes:
                if part.shape[1:] != (4,):
                    raise ValueError(f"Expected boxes of shape [N, 4], got {list(part.shape)}")
            side["box"] = joined(boxes, lambda part: box_convert(part, self.box_format, "xywh"))
        if "segm" in self.iou_type:
            side["mask"] = [code for item in items for code in codes(item["masks"])]
        return side

    def merge_state(self, incoming_state: Any) -> None:
        """Add the state of another metric of this class; its images come last, unless they have ids.

        Parameters
        ----------
        incoming_state : MeanAveragePrecision or dict
            The metric, or its ``metric_state``.

        Raises
        ------
        ValueError
            When it is neither.
        """
        if not isinstance(incoming_state, (dict, MeanAveragePrecision)):
            raise ValueError(
                f"Expected a dict or a {type(self).__name__}, got a {type(incoming_state).__name__}"
            )
        state = incoming_state if isinstance(incoming_state, dict) else incoming_state.metric_state
        for name in self._defaults:
            getattr(self, name).extend(state[name])
        self._computed = None
        self._update_count += 1

    # ---------------------------------------------------------------- results

    @_untraced
    def compute(self) -> dict[str, Any]:
        """Return torchmetrics' mapping of names to tensors, the same on every rank."""
        result: dict[str, Any] = {}
        classes = self._classes()
        for iou_type in self.iou_type:
            prefix = "" if len(self.iou_type) == 1 else f"{iou_type}_"
            result |= {f"{prefix}{name}": value for name, value in self._results(iou_type, classes).items()}
        return result | {"classes": torch.tensor(classes, dtype=torch.int32)}

    def evaluation(self, iou_type: str | None = None) -> Evaluation:
        """Return boxscore's evaluation, with every table, diagnostic and report.

        With several ranks, call it on each of them.

        Parameters
        ----------
        iou_type : {"bbox", "segm"}, optional
            By default the metric's first.

        Returns
        -------
        Evaluation
            Per class, regardless of ``average``; undefined is NaN.

        Raises
        ------
        InputError
            When no image was added.
        """
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=self._to_sync):
            made = self._evaluated(iou_type or self.iou_type[0], self._classes())
        if made is None:
            raise InputError("a metric", "have seen an image with objects", got="none")
        return made

    def intervals(self, iou_type: str | None = None, **options: Any) -> BootstrapIntervals:
        """Compute confidence intervals.

        Parameters
        ----------
        iou_type : {"bbox", "segm"}, optional
            By default the metric's first.
        **options
            Options of :func:`boxscore.diagnostics.bootstrap_intervals`.

        Returns
        -------
        BootstrapIntervals
        """
        return bootstrap_intervals(self.evaluation(iou_type), **options)

    def explain(self, last: str = "coco", iou_type: str | None = None, **options: Any) -> Explanation:
        """Split the difference to another tool's AP into the choices that cause it.

        Parameters
        ----------
        last : str, default "coco"
            A tool or protocol.
        iou_type : {"bbox", "segm"}, optional
            By default the metric's first.
        **options
            Options of :func:`boxscore.diagnostics.explain`.

        Returns
        -------
        Explanation
        """
        made = self.evaluation(iou_type)
        return explain(made.ground_truth, made.detections, made.protocol, last, **options)

    def tm_to_coco(self, name: str = "tm_map_input") -> None:
        """Write all batches to two COCO files, like torchmetrics.

        Parameters
        ----------
        name : str
            Prefix of the files ``_preds.json`` and ``_target.json``.
        """
        original = torchmetrics.detection.MeanAveragePrecision(iou_type=self.iou_type)
        for side in ("detection", "groundtruth"):
            counts = torch.cat(getattr(self, f"{side}_counts")).tolist()
            for key in ("labels", "box", "scores", "crowds", "area"):
                if columns := getattr(self, f"{side}_{key}", None):
                    setattr(original, f"{side}_{key}", list(torch.cat(columns).split(counts)))
            if "segm" in self.iou_type:
                codes = iter(getattr(self, f"{side}_mask"))
                setattr(original, f"{side}_mask", [tuple(next(codes) for _ in range(n)) for n in counts])
        original.tm_to_coco(name)

    def _results(self, iou_type: str, classes: list[int]) -> dict[str, Any]:
        """Return the results of one IoU type, by names without its prefix."""
        # List the numbers in torchmetrics' order, with -1 for undefined.
        caps = self.max_detection_thresholds
        made = self._evaluated(iou_type, classes, pooled=self.average == "micro")
        if made is None:
            values = [-1.0] * 12
        else:
            ap, thresholds = made.curves_of().interpolated, np.array(made.protocol.matching.iou_thresholds)
            values = [
                _mean(self._first(made)),
                *(_mean(ap[thresholds == threshold]) for threshold in (0.5, 0.75)),
                *(_mean(made.curves_of(area).interpolated) for area in (1, 2, 3)),
                *(_mean(made.curves_of(0, cap).recall) for cap in (0, 1, 2)),
                *(_mean(made.curves_of(area).recall) for area in (1, 2, 3)),
            ]
        # Build its names, which contain the limits.
        names = ["map", "map_50", "map_75", "map_small", "map_medium", "map_large"]
        names += [*(f"mar_{cap}" for cap in caps), "mar_small", "mar_medium", "mar_large"]
        result: dict[str, Any] = {
            name: torch.tensor([value], dtype=torch.float32)
            for name, value in zip(names, values, strict=True)
        }
        if made is None:
            return result
        # Add overlaps and whole arrays on request.
        if self.extended_summary:
            arrays = {
                name: torch.tensor(np.nan_to_num(array, nan=-1.0)) for name, array in made.arrays().items()
            }
            result |= {"ious": overlaps(made, iou_type, caps[-1]), **arrays}
        # Compute class numbers without pooling.
        each: list[list[float]] = [[-1.0], [-1.0]]
        if self.class_metrics:
            made = made if self.average == "macro" else self._evaluated(iou_type, classes)
            assert made is not None
            grids = (self._first(made), made.curves_of().recall)
            each = [[_mean(grid[..., k]) for k in range(len(made.labels))] for grid in grids]
        for name, of_class in zip(("map_per_class", f"mar_{caps[-1]}_per_class"), each, strict=True):
            result[name] = torch.tensor(of_class, dtype=torch.float32)
        return result

    def _first(self, made: Evaluation) -> NDArray[np.float64]:
        """Return the precision [T, R, K] that the first number averages; empty if pycocotools lacks it."""
        caps = self.max_detection_thresholds
        if self._coco_backend.backend == "faster_coco_eval":
            return made.curves_of().interpolated
        if 100 in caps:
            return made.curves_of(0, caps.index(100)).interpolated
        warn(
            f"map is -1 because max_detection_thresholds {caps} lacks 100, as with pycocotools; "
            f"backend='faster_coco_eval' reads it at {caps[-1]}"
        )
        return np.full_like(made.curves_of().interpolated, np.nan)

    # ---------------------------------------------------------------- evaluation

    def _classes(self) -> list[int]:
        labels = [*self.detection_labels, *self.groundtruth_labels]
        return torch.cat(labels).unique().tolist() if labels else []

    def _evaluated(self, iou_type: str, classes: list[int], *, pooled: bool = False) -> Evaluation | None:
        """Evaluate all batches, pooled as one class on request; None where torchmetrics has -1."""
        # Take the columns of both sides, without repeated images.
        if not self.image_ids:
            return None
        ids, is_new = self._images()
        truth = self._columns("groundtruth", iou_type, ids, is_new)
        found = self._columns("detection", iou_type, ids, is_new)
        # With masks alone, read images from the objects, like torchmetrics.
        if self.iou_type == ("segm",):
            ids = np.unique(truth["image_ids"])
            listed = np.isin(found["image_ids"], ids)
            if not len(ids) or not len(listed):
                return None
            if not listed.all():
                warn(f"{(~listed).sum():,} masks in images without objects are not read, as by torchmetrics")
                found = kept_rows(found, listed)
        # Give all pooled classes the id 0.
        vocabularies: Columns = {"images": ids, "categories": [0] if pooled else classes}
        for side in (truth, found):
            side["category_ids"] *= not pooled
        # Turn the user's parameters into fields of the protocol.
        protocol = {
            "extends": "coco" if iou_type == "bbox" else "coco-segm",
            "name": "torchmetrics",
            "title": f"torchmetrics MeanAveragePrecision ({iou_type})",
            "matching": {
                "iou_thresholds": self.iou_thresholds,
                "max_detections": self.max_detection_thresholds,
            },
            "ap": {"recall_points": self.rec_thresholds},
        }
        return evaluate(
            GroundTruth.from_arrays(**truth, **vocabularies, box_format="xywh", source="targets"),
            Detections.from_arrays(**found, **vocabularies, box_format="xywh", source="predictions"),
            protocol=protocol,
            digest=False,
        )

    def _images(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the id of each image in the order of arrival, and whether it is its first occurrence."""
        if None in self.image_ids:
            order = (
                np.argsort(torch.cat(self.positions).numpy(), kind="stable")
                if self.positions
                else slice(None)
            )
            numbers = np.arange(len(self.image_ids))
            ids = np.empty_like(numbers)
            ids[order] = numbers
            return ids, np.ones(len(ids), dtype=bool)
        first = {identifier: row for row, identifier in reversed(list(enumerate(self.image_ids)))}
        is_new = np.array([first[identifier] == row for row, identifier in enumerate(self.image_ids)])
        if not is_new.all():
            warn(f"{(~is_new).sum():,} images came again and count once: a sampler's repeats, or no reset()?")
        return np.array(self.image_ids), is_new

    def _columns(self, side: str, iou_type: str, ids: NDArray[Any], is_new: NDArray[np.bool_]) -> Columns:
        """Return the columns of one side in the form of ``from_arrays``."""
        # Join tensors and widen them to float64.
        counts = torch.cat(getattr(self, f"{side}_counts")).numpy()
        columns: Columns = {
            "image_ids": np.repeat(ids, counts),
            "category_ids": torch.cat(getattr(self, f"{side}_labels")).numpy().astype(np.int64),
            "boxes": None,
        }
        boxes: Any = (
            torch.cat(getattr(self, f"{side}_box")).double().numpy() if "bbox" in self.iou_type else None
        )
        codes = [{"size": list(size), "counts": runs} for size, runs in getattr(self, f"{side}_mask")]
        if iou_type == "bbox":
            columns["boxes"] = boxes
        else:
            columns["masks"] = codes
        # Replace an area of 0, which means missing, by the area of the mask or the box.
        if side == "groundtruth":
            area = torch.cat(self.groundtruth_area).numpy()
            if "segm" in self.iou_type:
                computed = np.asarray(run_lengths.area(codes) if codes else [], dtype=np.float64)
            else:
                computed = boxes[:, 2] * boxes[:, 3]
            columns["area"] = np.where(area > 0, area, computed)
            columns["crowd"] = torch.cat(self.groundtruth_crowds).numpy() != 0
        else:
            columns["scores"] = torch.cat(self.detection_scores).double().numpy()
        # Drop repeated images, and treat what cannot be scored.
        columns = kept_rows(columns, np.repeat(is_new, counts))
        kind = "target" if side == "groundtruth" else "prediction"
        return without_invalid(columns, columns["image_ids"], invalid=self.invalid, kind=kind)

    # ---------------------------------------------------------------- state

    def _sync_dist(
        self, dist_sync_fn: Callable[..., Any] = gather_all_tensors, process_group: Any = None
    ) -> None:
        """Gather each rank's state as one tensor of bytes: ranks may have different numbers of images."""
        group = process_group or self.process_group
        device = (
            "cuda" if distributed.is_initialized() and distributed.get_backend(group) == "nccl" else "cpu"
        )
        payload = torch.frombuffer(bytearray(pickle.dumps(self.metric_state)), dtype=torch.uint8)
        shares = [
            pickle.loads(part.cpu().numpy().tobytes())
            for part in dist_sync_fn(payload.to(device), group=group)
        ]
        for name in self._defaults:
            setattr(self, name, [value for share in shares for value in share[name]])
        self.positions = [torch.arange(len(share["image_ids"])) for share in shares]

    def _copy_state_dict(self) -> dict[str, Any]:
        """Copy only the lists, since their items never change."""
        return {name: list(values) for name, values in self.metric_state.items()}

    def _apply(self, fn: Callable[..., Any], exclude_state: Sequence[str] = ()) -> Any:
        """Keep every column on the CPU."""
        return super(torchmetrics.detection.MeanAveragePrecision, self)._apply(
            fn, exclude_state=list(self._defaults)
        )

    def _move_list_states_to_cpu(self) -> None:
        """Do nothing: columns are on the CPU already."""


def mean_average_precision(
    preds: Sequence[dict[str, Any]],
    target: Sequence[dict[str, Any]],
    *args: Any,
    warn_on_many_detections: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """Compute mean average precision and recall in one call.

    A drop-in for ``torchmetrics.functional.detection.map.mean_average_precision``.

    Parameters
    ----------
    preds, target : sequence of mapping of str to Tensor
        As in :meth:`MeanAveragePrecision.update`.
    *args, **options
        Parameters of :class:`MeanAveragePrecision`, in its order.
    warn_on_many_detections : bool, default True
        Whether to warn of an image with more detections than the limit.

    Returns
    -------
    dict of str to Tensor
        torchmetrics' mapping.

    Raises
    ------
    ValueError
        When a parameter or the input breaks a rule of torchmetrics.
    """
    metric = MeanAveragePrecision(*args, **options)
    metric.warn_on_many_detections = warn_on_many_detections
    metric.update(preds, target)
    return metric.compute()


def _mean(values: NDArray[np.float64]) -> float:
    """Average the defined values; -1 if all are undefined."""
    defined = values[~np.isnan(values)]
    return float(np.mean(defined)) if defined.size else -1.0
