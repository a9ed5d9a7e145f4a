"""The contenders: each evaluator behind the same five stages.

Goal
----
Every contender does what its own documentation recommends for files on disk, no more and no less, split
where its API can be split. What a stage does lazily is paid by the stage that first needs it.

Conventions
-----------
- Only the standard library is imported here; a contender imports its package in ``import_package``, which is
  timed.
- ``numbers`` returns the twelve COCO numbers in COCO's order, undefined as -1.0.
- ``arrays`` returns precision [T, R, K, A, M], recall [T, K, A, M] and scores [T, R, K, A, M] where the
  package shows them, undefined as -1.0. It is never timed.
- ``threads`` is a limit for everyone: the process is pinned to that many processors, and packages that take a
  number of threads get it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["CONTENDERS", "KEYPOINT_NUMBERS", "NUMBERS", "CommandLine", "Contender"]

NUMBERS = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl")
KEYPOINT_NUMBERS = ("AP", "AP50", "AP75", "APm", "APl", "AR", "AR50", "AR75", "ARm", "ARl")


class Contender:
    """One evaluator; a subclass gives it a name and its stages.

    Parameters
    ----------
    ground_truth, detections : str
        Paths of two COCO files.
    caps : sequence of int
        Detection caps per image and class.
    threads : int
    kind : {"bbox", "segm", "keypoints"}
    """

    name = ""
    package = ""  # the distribution whose version is reported
    peer = True  # False for boxscore itself
    parses_late = False  # reading only fetches bytes: no rival in reading
    reads_together = False  # all is read in the stage that evaluates

    def __init__(
        self, ground_truth: str, detections: str, caps: Sequence[int], threads: int, kind: str = "bbox"
    ) -> None:
        self.kind = kind
        self.ground_truth_path = ground_truth
        self.detections_path = detections
        self.caps = list(caps)
        self.threads = threads
        self.package_module: Any = None
        self.ground_truth: Any = None
        self.detections: Any = None
        self.evaluation: Any = None

    def import_package(self) -> None:
        """Import what the other stages call."""
        raise NotImplementedError

    def read_ground_truth(self) -> None:
        """Read the ground truth file."""
        raise NotImplementedError

    def read_detections(self) -> None:
        """Read the results file."""
        raise NotImplementedError

    def evaluate(self) -> None:
        """Match detections and ground truth."""
        raise NotImplementedError

    def accumulate(self) -> None:
        """Turn the matches into numbers, as far as ``evaluate`` has not."""
        raise NotImplementedError

    def numbers(self) -> list[float]:
        """Return the twelve numbers."""
        return [float(value) for value in self.evaluation.stats]

    def arrays(self) -> dict[str, Any]:
        """Return the arrays behind the numbers; empty where the package does not show them."""
        return {name: self.evaluation.eval[name] for name in ("precision", "recall", "scores")}


class Pycocotools(Contender):
    """The reference: Python loops around C overlaps."""

    name = "pycocotools"
    package = "pycocotools"

    def import_package(self) -> None:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval

        self.package_module = (COCO, COCOeval)

    def read_ground_truth(self) -> None:
        self.ground_truth = self.package_module[0](self.ground_truth_path)

    def read_detections(self) -> None:
        self.detections = self.ground_truth.loadRes(self.detections_path)

    def evaluate(self) -> None:
        self.evaluation = self.package_module[1](self.ground_truth, self.detections, self.kind)
        self.evaluation.params.maxDets = self.caps
        self.evaluation.evaluate()

    def accumulate(self) -> None:
        self.evaluation.accumulate()
        self.evaluation.summarize()


class FasterCocoEval(Pycocotools):
    """C++ loops behind pycocotools' face."""

    name = "faster-coco-eval"
    package = "faster-coco-eval"

    def import_package(self) -> None:
        from faster_coco_eval import COCO, COCOeval_faster

        self.package_module = (COCO, COCOeval_faster)


class Hotcoco(Pycocotools):
    """Rust behind pycocotools' face."""

    name = "hotcoco"
    package = "hotcoco"

    def import_package(self) -> None:
        from hotcoco import COCO, COCOeval

        self.package_module = (COCO, COCOeval)


class UltrafastPycocotools(Pycocotools):
    """Rust behind pycocotools' face; ``evaluate`` also accumulates, ``accumulate`` only hands over."""

    name = "ultrafast-pycocotools"
    package = "ultrafast-pycocotools"

    def import_package(self) -> None:
        from ultrafast_pycocotools import COCO, COCOeval

        self.package_module = (COCO, COCOeval)


class Vernier(Contender):
    """Rust with its own recommended API; ``evaluate`` parses the detections and accumulates too."""

    name = "vernier"
    parses_late = True
    package = "vernier"

    def import_package(self) -> None:
        from vernier import instance

        self.package_module = instance

    def read_ground_truth(self) -> None:
        content = Path(self.ground_truth_path).read_bytes()
        self.ground_truth = self.package_module.CocoDataset.from_json(content)

    def read_detections(self) -> None:
        self.detections = Path(self.detections_path).read_bytes()

    def evaluate(self) -> None:
        evaluator = self.package_module.Evaluator(
            iou=self.package_module.Bbox(), parity_mode="strict", max_dets=tuple(self.caps)
        )
        self.evaluation = evaluator.evaluate(self.ground_truth, self.detections, num_threads=self.threads)

    def accumulate(self) -> None:
        self.evaluation.pretty_lines()

    def arrays(self) -> dict[str, Any]:
        # The recommended call gives only the numbers; this one keeps the grid they are means of.
        grid = self.package_module.evaluate_bbox_grid(
            self.ground_truth,
            self.detections,
            parity_mode="strict",
            max_dets_per_image=self.caps[-1],
            use_cats=True,
            num_threads=self.threads,
        )
        accumulated = grid.accumulate(self.caps)
        return {name: getattr(accumulated, name) for name in ("precision", "recall", "scores")}


class Boxscore(Contender):
    """The Python API with its defaults."""

    name = "boxscore"
    package = "boxscore"
    peer = False

    def import_package(self) -> None:
        import boxscore

        self.package_module = boxscore
        # Names load when they are first used; what the stages use belongs to the import.
        _ = boxscore.load_ground_truth, boxscore.load_detections, boxscore.evaluate

    def read_ground_truth(self) -> None:
        self.ground_truth = self.package_module.load_ground_truth(self.ground_truth_path)

    def read_detections(self) -> None:
        self.detections = self.package_module.load_detections(self.detections_path, self.ground_truth)

    def evaluate(self) -> None:
        self.evaluation = self.package_module.evaluate(
            self.ground_truth,
            self.detections,
            protocol=protocol_of(self.caps, self.ground_truth_path, self.kind),
        )

    def accumulate(self) -> None:
        self.metrics = self.evaluation.metrics

    def numbers(self) -> list[float]:
        return in_coco_order(self.metrics, self.caps, self.kind)

    def arrays(self) -> dict[str, Any]:
        import numpy as np

        return {name: np.nan_to_num(array, nan=-1.0) for name, array in self.evaluation.arrays().items()}


class BoxscorePaths(Boxscore):
    """The Python API with its defaults in one call, as the README shows it."""

    name = "boxscore paths"
    reads_together = True

    def read_ground_truth(self) -> None:
        """Do nothing: ``evaluate`` reads both files."""
        self.ground_truth = self.ground_truth_path

    def read_detections(self) -> None:
        """Do nothing."""
        self.detections = self.detections_path


class CommandLine:
    """boxscore's command line: a whole process, so it has no stages."""

    name = "boxscore command"
    package = "boxscore"
    peer = False
    parses_late = False
    reads_together = False

    @staticmethod
    def arguments(ground_truth: str, detections: str, caps: Sequence[int], kind: str) -> list[str]:
        """Return what follows ``python``."""
        command = ["-m", "boxscore", "evaluate", "--gt", ground_truth, "--dt", detections, "--output", "json"]
        protocol = protocol_of(list(caps), ground_truth, kind)
        return command if protocol == "coco" else [*command, "--protocol", protocol]

    @staticmethod
    def numbers(output: str, caps: Sequence[int], kind: str) -> list[float]:
        """Return the twelve numbers of what it printed; JSON keeps every bit of them."""
        return in_coco_order(json.loads(output)["metrics"], list(caps), kind)


def in_coco_order(metrics: dict[str, float | None], caps: list[int], kind: str) -> list[float]:
    """Order boxscore's metrics as COCO does, undefined (NaN, null) as -1.0.

    boxscore names recalls after their cap; pycocotools keeps the names AR1, AR10 and AR100 in its head.
    """
    keys = (
        []
        if kind == "keypoints"
        else [
            f"AR{caps[['AR1', 'AR10', 'AR100'].index(key)]}" if key[2:].isdigit() and key[:2] == "AR" else key
            for key in NUMBERS
        ]
    )
    values = metrics.values() if kind == "keypoints" else (metrics[key] for key in keys)
    return [-1.0 if value is None or value != value else float(value) for value in values]


def protocol_of(caps: list[int], ground_truth_path: str, kind: str) -> str:
    """Name the protocol, written next to the data when the caps are not COCO's own."""
    if kind != "bbox":
        return f"coco-{kind}"
    if caps == [1, 10, 100]:
        return "coco"
    path = Path(f"{ground_truth_path}.protocol.toml")
    path.write_text(f'extends = "coco"\n\n[matching]\nmax_detections = {caps}\n', encoding="utf-8")
    return str(path)


CONTENDERS: dict[str, type[Contender] | type[CommandLine]] = {
    contender.name: contender
    for contender in (
        Pycocotools,
        FasterCocoEval,
        Hotcoco,
        UltrafastPycocotools,
        Vernier,
        Boxscore,
        BoxscorePaths,
        CommandLine,
    )
}
