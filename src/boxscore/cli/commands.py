"""List every command: its group, its summary, and the module that is imported when it runs.

Conventions
-----------
- A module has a docstring (the help, with examples), ``OPTIONS`` and ``run(arguments)``, which returns the
  exit status. ``"module:TABLE"`` names a table of commands in a module.
- This table is how an extension adds a command: one line. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """One command.

    Attributes
    ----------
    module : str
        Which has its options and function.
    summary : str
        In the list of commands.
    tables : bool
        Whether it loads pandas, pyarrow or matplotlib, which crash where there is little address space.
    """

    module: str
    summary: str
    tables: bool = False


BY_GROUP: Mapping[str, Mapping[str, Entry]] = {
    "start here": {
        "demo": Entry(
            "boxscore.extensions.data_tools.demo_command",
            "evaluate small samples that come with boxscore, and show what to type next",
        ),
        "evaluate": Entry("boxscore.cli.evaluate", "score detections against ground truth"),
        "validate": Entry(
            "boxscore.extensions.validation.validate_command", "find faults of the data that a score hides"
        ),
        "report": Entry(
            "boxscore.extensions.pages.report_command",
            "write an HTML report, tables and plots of a result",
            tables=True,
        ),
        "view": Entry(
            "boxscore.extensions.pages.view_command",
            "browse every image and its mistakes in a browser, on this machine",
        ),
    },
    "why this score?": {
        "errors": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "what each kind of error costs (TIDE)",
            tables=True,
        ),
        "error-curves": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "COCO's analysis of errors: C75, C50, Loc, Sim, Oth, BG, FN",
            tables=True,
        ),
        "keypoint-errors": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "keypoints: jitter, inversion, swap or miss, of each joint",
            tables=True,
        ),
        "confusion": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "confusion matrix: which classes are predicted as which",
            tables=True,
        ),
        "operating-points": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "which score threshold to use",
            tables=True,
        ),
        "slices": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "scores by size, shape, crowdedness or any column",
            tables=True,
        ),
        "images": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "counts and scores of every image, the worst first",
            tables=True,
        ),
        "iou": Entry(
            "boxscore.extensions.data_tools.iou_command",
            "IoU, GIoU, DIoU, CIoU of two boxes that are typed, or of every pair in two files",
            tables=True,
        ),
        "suspects": Entry(
            "boxscore.extensions.labels.suspects_command",
            "labels that a confident detector contradicts, and what each costs",
            tables=True,
        ),
        "agreement": Entry(
            "boxscore.extensions.labels.agreement_command",
            "how well do annotators agree? misses, classes, kappa, alpha, and the AP they allow",
            tables=True,
        ),
        "draw": Entry(
            "boxscore.extensions.pages.draw_command",
            "draw boxes over the worst images, or over chosen ones",
            tables=True,
        ),
        "calibration": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "are scores probabilities? does 0.8 mean right in 80% of cases?",
            tables=True,
        ),
        "lrp": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "localisation-recall-precision errors",
            tables=True,
        ),
        "froc": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "sensitivity at numbers of false positives per image (FROC)",
            tables=True,
        ),
        "ties": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "how far the order of equal scores could move AP",
            tables=True,
        ),
        "explain": Entry(
            "boxscore.extensions.diagnostics.explain_command",
            "why do two tools give two numbers? which tool gave this number?",
            tables=True,
        ),
        "compare-protocols": Entry(
            "boxscore.extensions.diagnostics.compare_protocols_command",
            "the score of these files under every protocol that fits them",
            tables=True,
        ),
    },
    "which detector is better, and is it good enough?": {
        "compare": Entry(
            "boxscore.extensions.decisions.compare_command",
            "is one detector better than another? paired differences with intervals",
            tables=True,
        ),
        "bootstrap": Entry(
            "boxscore.extensions.diagnostics.commands:DIAGNOSTICS",
            "confidence intervals of every metric, over resampled images",
            tables=True,
        ),
        "suite": Entry(
            "boxscore.extensions.suite.suite_command",
            "many data sets, many models: one table, means, differences, and what failed",
            tables=True,
        ),
        "check": Entry(
            "boxscore.extensions.decisions.check_command",
            "a gate for CI: minimum scores, and no worse than a baseline",
        ),
        "history": Entry(
            "boxscore.extensions.decisions.history_command", "the runs that check recorded: a table, a plot"
        ),
    },
    "raw detections, and those of several models": {
        "nms": Entry(
            "boxscore.cli.nms", "turn raw detections into final ones: suppress, rescore or merge boxes"
        ),
        "fuse": Entry(
            "boxscore.extensions.fusion.fuse_command", "merge the results of several models into one file"
        ),
        "sweep": Entry(
            "boxscore.extensions.diagnostics.sweep_command",
            "which suppression settings score best",
            tables=True,
        ),
    },
    "files": {
        "stats": Entry(
            "boxscore.extensions.data_tools.stats_command",
            "count images, objects, classes and sizes of a data set",
        ),
        "convert": Entry(
            "boxscore.extensions.data_tools.convert_command",
            "write ground truth or detections in another format; merge, filter, sample and split them",
        ),
        "fix": Entry(
            "boxscore.extensions.labels.fix_command",
            "write ground truth with the corrections that a person accepted",
            tables=True,
        ),
        "merge": Entry(
            "boxscore.extensions.large.merge_command",
            "combine parts that were saved separately into one result",
        ),
        "formats": Entry("boxscore.extensions.shell.formats_command", "list the file formats"),
    },
    "label maps": {
        "panoptic": Entry(
            "boxscore.extensions.label_maps.panoptic_command",
            "panoptic quality of id maps and segment tables",
        ),
        "semantic": Entry(
            "boxscore.extensions.label_maps.semantic_command",
            "mean IoU and accuracies of folders of label maps",
        ),
    },
    "the rules": {
        "protocols": Entry(
            "boxscore.extensions.shell.protocols_command", "list the protocols, or print one as TOML"
        ),
        "run": Entry("boxscore.extensions.shell.run_command", "run a configuration file"),
    },
}
"""By task, in the order of the help."""

ENTRIES = {name: entry for entries in BY_GROUP.values() for name, entry in entries.items()}
