"""Check ground truth and detections, as tables or as files."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boxscore._utils.given_paths import files_of, path_of
from boxscore.data.alignment import align
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import BoxscoreWarning, InputError
from boxscore.extensions.validation._findings import Context, Finding, by_weight, refused
from boxscore.extensions.validation.checking import ProtocolLike, check, judging_protocol
from boxscore.extensions.validation.numbering import renumbered_file
from boxscore.formats._format import SIDES
from boxscore.formats.reading import read_ground_truth, read_listed, read_options
from boxscore.formats.registry import open_at
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.registry import needs_of

if TYPE_CHECKING:
    import pandas as pd


def validate(
    ground_truth: GroundTruth, detections: Detections | None = None, *, protocol: ProtocolLike | None = None
) -> list[Finding]:
    """Check ground truth, and detections against it.

    Parameters
    ----------
    ground_truth : GroundTruth
    detections : Detections, optional
    protocol : str, Path, mapping or Protocol, optional
        Decides which flags and max detections apply; effects are measured in its first summary metric. The
        default is ``"coco"``, or ``"scoreless"`` if the detections lack scores.

    Returns
    -------
    list of Finding
        Errors first, and within a severity by descending effect; empty without findings.

    Raises
    ------
    InputError
        When a detection belongs to an image that the ground truth does not have.

    Examples
    --------
    >>> import boxscore
    >>> truth = boxscore.GroundTruth.from_arrays([1, 1], ["cat", "cat"], [[0, 0, 9, 9], [0, 0, 9, 9]])
    >>> [finding.code for finding in validate(truth)]
    ['near-duplicate-annotation']
    """
    if not isinstance(ground_truth, GroundTruth):
        raise InputError("ground_truth", "be a GroundTruth table", got=f"a {type(ground_truth).__name__}")
    if detections is not None:
        with warnings.catch_warnings():
            # Unknown classes become a finding.
            warnings.simplefilter("ignore", BoxscoreWarning)
            detections = align(detections, ground_truth)
    return check(Context(ground_truth, detections, _rules(protocol, detections)))


def validate_files(
    ground_truth: str | Path,
    detections: str | Path | None = None,
    *,
    protocol: ProtocolLike | None = None,
    format: str = "auto",
    image_set: str | Path | None = None,
    options: Mapping[str, Any] | None = None,
    detection_options: Mapping[str, Any] | None = None,
    scoreless: bool = False,
) -> list[Finding]:
    """Check files as :func:`validate` does, and for problems that a loader rejects or resolves.

    Parameters
    ----------
    ground_truth : str or Path
    detections : str or Path, optional
    protocol : str, Path, mapping or Protocol, optional
        As for :func:`validate`.
    format, image_set : optional
        Options of the ground truth, as for :func:`boxscore.load_ground_truth`.
    options, detection_options : mapping, optional
        Further arguments of :func:`boxscore.load_ground_truth` and :func:`boxscore.load_detections`, by name.
    scoreless : bool, default False
        Drop the scores of the detections first.

    Returns
    -------
    list of Finding
        Errors first. A file that cannot be loaded is an error: ``ground-truth-refused`` or
        ``detections-refused``.

    Raises
    ------
    InputError
        When a file is missing, or an option is invalid.
    """
    from boxscore.extensions.validation.files import (
        detection_file_findings,
        ground_truth_file_findings,
        rows_read,
    )

    needs = needs_of(_rules(protocol, None))
    of_truth = read_options(**{"format": format, "image_set": image_set, **(options or {})}, **needs)
    of_detections = read_options(**(detection_options or {}), **needs)
    paths = [path_of(ground_truth)] if detections is None else [path_of(ground_truth), path_of(detections)]
    # Reject a path that does not exist or whose format is unknown.
    opened = [open_at(path, side=side) for path, side in zip(paths, SIDES, strict=False)]
    findings: list[Finding] = []
    if opened[0].format.name == "coco":
        for each in opened[0].files or opened[:1]:
            path = each.path
            if each.unpacked is not None:
                from boxscore.extensions.stores.unpacking import unpacked

                path = unpacked(path)
            findings += ground_truth_file_findings(path)
    # Turn each warning of a reader into a finding instead of printing it.
    with warnings.catch_warnings():
        # Each warning is a finding.
        warnings.simplefilter("ignore", BoxscoreWarning)
        try:
            truth = read_ground_truth(opened[0], of_truth)
        except InputError as error:
            return by_weight([*findings, refused("ground-truth-refused", error)])
        table, rows, renumbered = None, None, None
        # Read a rejected file again in raw form, for more detailed findings.
        if detections is not None:
            try:
                truth, table = read_listed(opened[1], truth, of_detections)
            except InputError as error:
                for file in files_of(paths[1]):
                    findings += detection_file_findings(file, truth)
                findings.append(refused("detections-refused", error))
            else:
                if "class_map" not in of_detections.further:
                    renumbered = renumbered_file(opened[1], truth, of_detections)
                    # The file may have been renumbered.
                    counted = truth.categories.are_positions
                    left_out = table.left_out and not counted
                    rows = rows_read(paths[1], truth, len(table)) if left_out else None
    if scoreless and table is not None:
        table = table.without_scores()
    rules = _rules(protocol, table)
    return by_weight([*findings, *check(Context(truth, table, rules, rows, renumbered=renumbered))])


def _rules(protocol: ProtocolLike | None, detections: Detections | None) -> Protocol:
    """Return the protocol that evaluating the detections would choose."""
    return judging_protocol(protocol, scored=detections is None or detections.scored)


def findings_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """Return findings as a DataFrame.

    Parameters
    ----------
    findings : sequence of Finding

    Returns
    -------
    DataFrame
        ``severity, kind, code, count, message, metric, value, repaired, effect, bound, repair, examples``:
        one row per finding; ``examples`` is a list of strings.
    """
    import pandas as pd

    # The numbers of an effect have their own columns, so that programs can filter by them.
    names = [
        "severity",
        "kind",
        "code",
        "count",
        "message",
        "metric",
        "value",
        "repaired",
        "effect",
        "bound",
        "repair",
    ]
    columns: dict[str, list[Any]] = {name: [getattr(item, name) for item in findings] for name in names}
    columns["examples"] = [list(item.examples) for item in findings]
    return pd.DataFrame(columns)
