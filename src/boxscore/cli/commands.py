"""List all commands: their groups, summaries and modules, which are imported lazily.

Conventions
-----------
- A module has a docstring (the help, with examples), ``OPTIONS`` and ``run(arguments)``, which returns the
  exit status. ``"module:TABLE"`` is a table of commands in a module.
- An extension adds a command with a line in this table.
"""

from __future__ import annotations

from collections.abc import Mapping

from boxscore._utils.records import NamedTuple


class Entry(NamedTuple):
    """One command.

    Attributes
    ----------
    module : str
        The module with options and function.
    summary : str
        Text in the list of commands.
    tables : bool
        Whether it loads pandas, pyarrow or matplotlib, which crash if there is little address space.
    """

    module: str
    summary: str
    tables: bool = False


BY_GROUP: Mapping[str, Mapping[str, Entry]] = {
    "getting started": {
        "demo": Entry(
            "boxscore.extensions.data_tools.demo_command",
            "evaluate the bundled samples and show the next commands",
        ),
        "evaluate": Entry(
            "boxscore.cli.evaluate", "compute AP and other metrics of detections against ground truth"
        ),
        "validate": Entry(
            "boxscore.extensions.validation.validate_command", "find errors in the data that a score hides"
        ),
        "report": Entry(
            "boxscore.extensions.pages.report_command",
            "write an HTML report with tables and plots",
            tables=True,
        ),
        "view": Entry(
            "boxscore.extensions.pages.view_command",
            "browse every image and its mistakes in a local web page",
        ),
    },
    "error analysis": {
        "errors": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "AP cost of each error type (TIDE)",
            tables=True,
        ),
        "error-curves": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "COCO error analysis: C75, C50, Loc, Sim, Oth, BG, FN",
            tables=True,
        ),
        "keypoint-errors": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "keypoint errors per joint: jitter, inversion, swap, miss",
            tables=True,
        ),
        "confusion": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "confusion matrix: which class is predicted as which",
            tables=True,
        ),
        "operating-points": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "choose a score threshold",
            tables=True,
        ),
        "slices": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "metrics by size, shape, crowdedness or any column",
            tables=True,
        ),
        "images": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "counts and metrics per image, worst first",
            tables=True,
        ),
        "presence": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "is a class in an image (specificity, true negatives), and how many objects",
            tables=True,
        ),
        "iou": Entry(
            "boxscore.extensions.data_tools.iou_command",
            "IoU, GIoU, DIoU, CIoU of two boxes, or of all pairs in two files",
            tables=True,
        ),
        "suspects": Entry(
            "boxscore.extensions.labels.suspects_command",
            "likely label errors, ranked by confidence and AP cost",
            tables=True,
        ),
        "agreement": Entry(
            "boxscore.extensions.labels.agreement_command",
            "annotator agreement: misses, kappa, alpha, and the highest AP they allow",
            tables=True,
        ),
        "plot": Entry(
            "boxscore.extensions.pages.plot_command",
            "draw one plot: PR curve, F1, confusion matrix, reliability, ...",
            tables=True,
        ),
        "draw": Entry(
            "boxscore.extensions.pages.draw_command",
            "draw boxes on the worst images, or on chosen ones",
            tables=True,
        ),
        "calibration": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "calibration error: is a detection with score 0.8 right in 80% of cases?",
            tables=True,
        ),
        "lrp": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "localization recall precision (LRP) error",
            tables=True,
        ),
        "froc": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "sensitivity at given false positives per image (FROC)",
            tables=True,
        ),
        "ties": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "how much the order of tied scores can change AP",
            tables=True,
        ),
        "explain": Entry(
            "boxscore.extensions.diagnostics.explain_command",
            "why two tools disagree, or which tool gave a number",
            tables=True,
        ),
        "compare-protocols": Entry(
            "boxscore.extensions.diagnostics.compare_protocols_command",
            "the result under every protocol that fits the files",
            tables=True,
        ),
    },
    "comparing detectors": {
        "compare": Entry(
            "boxscore.extensions.decisions.compare_command",
            "is one detector better? paired differences with intervals",
            tables=True,
        ),
        "diff": Entry(
            "boxscore.extensions.parity.diff_command",
            "is an export the same? boxes that differ between two results, and why",
        ),
        "bootstrap": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "bootstrap confidence intervals of every metric",
            tables=True,
        ),
        "epochs": Entry(
            "boxscore.extensions.epochs.epochs_command",
            "the curve of a training run: the best epoch, and which may be as good",
            tables=True,
        ),
        "suite": Entry(
            "boxscore.extensions.suite.suite_command",
            "evaluate many models on many data sets, in one table",
            tables=True,
        ),
        "check": Entry(
            "boxscore.extensions.decisions.check_command",
            "CI gate: minimum metrics, and no regression from a baseline",
        ),
        "history": Entry(
            "boxscore.extensions.decisions.history_command", "table or plot of the runs that check recorded"
        ),
    },
    "postprocessing": {
        "nms": Entry("boxscore.cli.nms", "non-maximum suppression: suppress, rescore or merge boxes"),
        "fuse": Entry(
            "boxscore.extensions.fusion.fuse_command", "fuse the results of several models into one file"
        ),
        "decode": Entry(
            "boxscore.extensions.raw_outputs.decode_command",
            "decode raw output tensors (.npz) of YOLO, DETR, TFLite, ... into detections",
        ),
        "tiles": Entry(
            "boxscore.extensions.tiles.tiles_command",
            "merge detections in tiles of large images; AP on tiles and on images",
        ),
        "sweep": Entry(
            "boxscore.extensions.diagnostics.sweep_command",
            "find the suppression settings with the best metrics",
            tables=True,
        ),
    },
    "files": {
        "stats": Entry(
            "boxscore.extensions.data_tools.stats_command",
            "count the images, objects, classes and box sizes of a data set",
        ),
        "convert": Entry(
            "boxscore.extensions.data_tools.convert_command",
            "convert ground truth or detections; merge, filter, sample, split",
        ),
        "fix": Entry(
            "boxscore.extensions.labels.fix_command",
            "apply the label corrections that a person accepted",
            tables=True,
        ),
        "merge": Entry(
            "boxscore.extensions.large.merge_command",
            "merge parts that were evaluated separately into one result",
        ),
        "formats": Entry("boxscore.extensions.shell.formats_command", "list the file formats"),
    },
    "segmentation maps": {
        "panoptic": Entry(
            "boxscore.extensions.label_maps.panoptic_command",
            "panoptic quality (PQ) of panoptic maps",
        ),
        "semantic": Entry(
            "boxscore.extensions.label_maps.semantic_command",
            "mean IoU and accuracy of semantic label maps",
        ),
    },
    "protocols and configuration": {
        "protocols": Entry(
            "boxscore.extensions.shell.protocols_command", "list the protocols, or print one as TOML"
        ),
        "run": Entry(
            "boxscore.extensions.shell.run_command", "run the evaluation that a TOML file describes"
        ),
    },
}
"""Commands by task, in the order of the help."""

ENTRIES = {name: entry for entries in BY_GROUP.values() for name, entry in entries.items()}
