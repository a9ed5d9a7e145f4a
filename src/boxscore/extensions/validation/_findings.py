"""Define findings, and the context of tables that checks read.

Conventions
-----------
- A check never changes a table. If an error can be repaired, its ``repair`` returns other tables, which are
  evaluated too: the difference is the effect of the error on the score.
- Examples identify rows by their position in the file.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import distinct
from boxscore._utils.records import NamedTuple, record
from boxscore._utils.text import fixed
from boxscore.data.alignment import select_rows
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Images
from boxscore.errors import SEVERITIES, BoxscoreWarning, InputError, Severity
from boxscore.evaluation import Evaluation, evaluate
from boxscore.extensions.validation.completion import reaches
from boxscore.protocols.loading import load_protocol
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow
from boxscore.scoring.blocks import HeldValues
from boxscore.scoring.kinds import kind_of
from boxscore.scoring.summary import summary_total, with_values
from boxscore.similarity.registry import similarity_of

if TYPE_CHECKING:
    from boxscore.extensions.hints.numbering import InferredClassMap

Kind = Literal["structural", "geometric", "semantic"]
Tables = tuple[GroundTruth, Detections, Protocol]
Repair = Callable[["Context", Detections], Tables]

SURELY_ANOTHER = ("keypoints-without-effect", "masks-without-effect")
"""Codes of findings that prove that the detections were made for another protocol."""

LOW = 0.05
"""Value of the metric below which quick checks also test whether tables are numbered differently."""

HIGH = 0.5
"""Value of the metric above which quick checks skip the boxes of files."""

NETWORK, SIZES_SWAPPED = PLACED = ("network-coordinates", "image-sizes-swapped")
"""Codes of the findings that boxes are not where their file says."""

BOXES_OF_MASKS = "annotation-box-not-of-mask"
"""Code of the finding that boxes do not enclose their masks."""

SWAP_SIZES = "--swap-image-sizes"
"""Option that exchanges width and height of the images."""

COSTLY = 0.01
"""Minimum rise of the metric by more max detections that quick checks report."""

MUCH = 0.05
"""Minimum rise of the metric by a repair that is reported."""

MOST_EXAMPLES = 5
MOST_NAMED, LONGEST_NAME = 3, 40

MOST_ROWS = {"box": 500_000, "quadrilateral": 20_000, "rotated": 50_000, "mask": 20_000, "keypoints": 50_000}
"""Maximum annotations and detections for another evaluation in a quick check, by the compared shape."""

READ_BY_COCO = ("image", "boxes", "sizes", "scores")
"""Columns of detections that the protocol ``coco`` reads, but for the class."""

IN_PASSING, ON_A_PAGE, WHEN_ASKED = range(3)
"""Allowed effort: almost none, no second evaluation, or evaluations of repaired tables."""


@record(frozen=True)
class Finding:
    """The finding of a check.

    Attributes
    ----------
    code : str
        Name of the check, such as ``box-order``; the same in every release.
    kind : {"structural", "geometric", "semantic"}
    severity : {"error", "warning", "note"}
        An error makes the score wrong, a warning probably does, a note is good to know.
    count : int
        Number of affected annotations, detections, images or classes.
    message : str
    examples : tuple of str
        The first few, by position in the file.
    repair : str
        The repair whose score was computed; empty without one.
    metric : str
        The first summary metric of the protocol.
    value, repaired : float
        That metric for the data as given and with ``repair``; NaN where it cannot be computed.
    bound : bool
        Whether ``repaired`` is an upper bound of the metric, for repairs that cannot be evaluated.
    repaired_metric : str
        The metric of ``repaired`` if the repair is another protocol: the two numbers are then not comparable.
    """

    code: str
    kind: Kind
    severity: Severity
    count: int
    message: str
    examples: tuple[str, ...] = ()
    repair: str = ""
    metric: str = ""
    value: float = float("nan")
    repaired: float = float("nan")
    bound: bool = False
    repaired_metric: str = ""

    @property
    def head(self) -> str:
        """The message up to its first colon or full stop."""
        return re.split(r": |\. ", self.message, maxsplit=1)[0]

    @property
    def effect(self) -> float:
        """Change of the metric by the repair; NaN where it cannot be computed."""
        return self.repaired - self.value

    @property
    def effect_text(self) -> str:
        """Describe the effect, without a full stop; empty without a repair, and for a bound."""
        if not self.repair or self.bound:
            return ""
        as_it_is, repaired = (
            "undefined" if math.isnan(value) else f"{value:.4f}" for value in (self.value, self.repaired)
        )
        condition = f"{self.repair[0].upper()}{self.repair[1:]}"
        if self.repaired_metric:
            now = f"{self.metric} is {as_it_is} now"
            return f"{condition}, {self.repaired_metric} would be {repaired} ({now})"
        if as_it_is == repaired:
            return f"{condition}, {self.metric} would stay {as_it_is}"
        difference = "" if math.isnan(self.effect) else f" ({fixed(self.effect, signed=True)})"
        return f"{condition}, {self.metric} would be {repaired} instead of {as_it_is}{difference}"


class Renumbered(NamedTuple):
    """Detections read with the class map inferred from their boxes."""

    found: InferredClassMap
    detections: Detections


class RowCheck(NamedTuple):
    """A check of single rows, image by image: counts of disjoint images add up.

    Attributes
    ----------
    code : str
    kind : {"structural", "geometric", "semantic"}
    rows : callable
        Function of the context and a table; returns the rows that are wrong, the worst first, and the largest
        deviation, where there is one.
    severity, text : callable
        Functions of the context, the number of rows, and the largest deviation; the text is the message of
        the finding.
    repair : str
    repaired : callable
        Function of the context, the table and the rows; returns the repair.
    """

    code: str
    kind: Kind
    rows: Callable[[Context, Any], tuple[NDArray[np.intp], float]]
    severity: Callable[[Context], Severity]
    text: Callable[[Context, int, float], str]
    repair: str
    repaired: Callable[[Context, Any, NDArray[np.intp]], Repair]

    def finding(self, context: Context, table: Any, **otherwise: Any) -> Iterator[Finding]:
        """Check a table; ``otherwise`` replaces the repair of the check."""
        rows, most = self.rows(context, table)
        if len(rows):
            yield context.finding(
                self.code,
                self.kind,
                self.severity(context),
                len(rows),
                self.text(context, len(rows), most),
                table=table,
                rows=rows,
                **{"repair": self.repair, "repaired": self.repaired(context, table, rows), **otherwise},
            )


class _Measured(NamedTuple):
    """The first metric of repaired tables; its key if the repair is another protocol."""

    value: float
    metric: str = ""


@record(frozen=True, eq=False)
class Context:
    """The aligned tables, the protocol, and the allowed effort of checks.

    ``repairs`` collects repairs that were too costly to evaluate, by the code of the finding.
    """

    ground_truth: GroundTruth
    detections: Detections | None
    protocol: Protocol
    file_rows: NDArray[Any] | None = None
    """Row of each detection in its file, if some were left out."""
    truth_rows: NDArray[Any] | None = None
    """Row of each annotation in its file, if some were left out."""
    given: Evaluation | None = None
    """The evaluation of the tables, if it exists already."""
    renumbered: Renumbered | None = None
    """The detections read again with the class map that they need."""
    effort: int = WHEN_ASKED
    """Only the last level gives findings examples and every effect."""
    measured: bool = True
    """Whether to compute effects: False if the tables are incomplete."""
    repairs: dict[str, tuple[str, Repair]] = dataclasses.field(default_factory=dict)
    _repaired_values: dict[Repair, _Measured] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def evaluation(self) -> Evaluation | None:
        """The evaluation of the tables; None without detections."""
        if self.given is not None or self.detections is None:
            return self.given
        return quietly(self.ground_truth, self.detections, self.protocol)

    @functools.cached_property
    def _row(self) -> SummaryRow | None:
        return next(iter(self.protocol.rows), None)

    @property
    def metric(self) -> str:
        """Key of the protocol's first summary metric; empty without a summary."""
        return "" if self._row is None else self._row.key

    @property
    def measure(self) -> str:
        """Name of the metric per class: AP, or F1 if detections are not ranked."""
        return "AP" if self.protocol.matching.scores == "given" else "F1"

    @functools.cached_property
    def value(self) -> float:
        """Value of that metric for the tables; NaN without one."""
        return _first_metric(self.evaluation)[0]

    @functools.cached_property
    def per_image(self) -> NDArray[np.intp]:
        """Number of detections per image, [I]."""
        rows = () if self.detections is None else self.detections.image
        return np.bincount(np.asarray(rows, dtype=np.intp), minlength=len(self.ground_truth.images))

    @functools.cached_property
    def objects_per_class(self) -> NDArray[np.intp]:
        """Number of annotations per class, [K]."""
        return np.bincount(self.ground_truth.category, minlength=len(self.ground_truth.categories))

    @functools.cached_property
    def silent_classes(self) -> NDArray[np.bool_]:
        """Whether each class lacks detections, [K]."""
        rows = np.empty(0, dtype=np.int32) if self.detections is None else self.detections.category
        silent: NDArray[np.bool_] = np.bincount(rows, minlength=len(self.ground_truth.categories)) == 0
        return silent

    def is_below(self, bound: float) -> bool:
        """Return whether that metric is below a bound; it is not computed if counts prove otherwise."""
        evaluation = self.evaluation
        if "value" not in self.__dict__ and evaluation is not None and not evaluation._is_scored:
            return not reaches(evaluation, bound) and self.value < bound
        return self.value < bound

    def repaired_value(self, repaired: Repair) -> float:
        """Return the first metric of repaired tables; NaN without one."""
        return self._measure_repair(repaired).value

    def is_raised(self, repaired: Repair, by: float) -> bool:
        """Return whether a repair raises the first metric by more than a bound."""
        try:
            return self.repaired_value(repaired) > max(self.value, 0.0) + by
        # A mask does not have the size of its new image.
        except InputError:
            return False

    def _measure_repair(self, repaired: Repair) -> _Measured:
        if self.detections is None or not self.metric:
            return _Measured(math.nan)
        if repaired not in self._repaired_values:
            truth, detections, protocol = repaired(self, self.detections)
            try:
                value, key = self._first_metric_if_renamed(truth, detections, protocol) or _first_metric(
                    quietly(truth, detections, protocol)
                )
            # The other protocol needs missing data: the number is NaN, but this is not an error.
            except InputError:
                value, key = math.nan, ""
            other = (
                protocol.rows[:1] != self.protocol.rows[:1] or protocol.similarity != self.protocol.similarity
            )
            self._repaired_values[repaired] = _Measured(value, key if other else "")
        return self._repaired_values[repaired]

    def _first_metric_if_renamed(
        self, truth: GroundTruth, detections: Detections, protocol: Protocol
    ) -> tuple[float, str] | None:
        """Return the first metric of detections with other classes; None if more or many classes changed.

        Classes never meet in COCO's protocol, so only the changed ones are evaluated again.
        """
        given, result = self.detections, self.evaluation
        assert given is not None
        assert result is not None
        if (
            truth is not self.ground_truth
            or protocol != load_protocol("coco")
            or len(detections) != len(given)
            or not all(
                np.array_equal(getattr(detections, name), getattr(given, name)) for name in READ_BY_COCO
            )
        ):
            return None
        # Evaluate the changed classes, [k]: those that detections left, and those that they have now.
        moved = detections.category != given.category
        classes = distinct(np.append(given.category[moved], detections.category[moved]))
        if 2 * len(classes) > len(truth.categories):
            return None
        some = quietly(*select_rows(truth, detections, classes=classes), protocol)
        # Put their values, [T, R, k], in place of the old ones, [T, R, K], and take the mean as always.
        row = protocol.rows[0]
        kind, at = kind_of(row.metric), protocol.position_of(row)
        old, new = (kind.values_of(one.curves_of(*at), protocol) for one in (result, some))
        if not isinstance(old, HeldValues) or not isinstance(new, HeldValues):
            return None
        values = old.values.copy()
        values[..., classes] = new.values
        curves = with_values(result.curves_of(*at), protocol, row.metric, HeldValues(values))
        return summary_total(row, protocol, lambda *_: curves), row.key

    @property
    def compares_masks(self) -> bool:
        """Whether the protocol compares masks."""
        return "masks" in similarity_of(self.protocol).needed_columns

    @property
    def unread_flags(self) -> list[str]:
        """Return the flags of annotations that the protocol does not read."""
        rules = self.protocol.ignore
        read = {"crowd": rules.crowd, "difficult": rules.difficult, "ignore": rules.flagged}
        return [name for name, treatment in read.items() if treatment == "count"]

    @property
    def chosen_classes(self) -> bool:
        """Return whether the tables hold only selected classes; other missing classes are then not errors."""
        return self.given is not None and self.given._chosen_classes

    def was_said(self, key: str) -> bool:
        """Return whether the evaluation has already warned about something."""
        return self.given is not None and self.given._once(key, lambda: False)

    def is_file(self, table: BoxTable) -> bool:
        """Return whether a table came from one file, which for COCO holds ``x, y, width, height``."""
        return Path(table.source).suffix.lower() == ".json" or Path(table.source).is_file()

    def is_soon(self, protocol: Protocol) -> bool:
        """Return whether another evaluation takes at most a second: quick checks run it for known errors."""
        rows = len(self.ground_truth) + len(self.detections or ())
        return rows <= MOST_ROWS.get(protocol.similarity, 0)

    def was_read(self, table: BoxTable) -> bool:
        """Return whether a loader made a table, and so has already warned about its problems."""
        try:
            return self.is_file(table) or Path(table.source).exists()
        # Any text may be a source.
        except (OSError, ValueError):
            return False

    def locate(self, table: BoxTable, row: int) -> str:
        """Describe a row by its position in the file."""
        # Use the row number in the file; rows of a partition have their number in the whole file.
        image = table.images.ids.tolist()[table.image[row]]
        rows = self.truth_rows if isinstance(table, GroundTruth) else self.file_rows
        number = row if rows is None else int(rows[row])
        if isinstance(table, GroundTruth):
            name = f"annotation {number} (id {table.ids.tolist()[row]})"
        else:
            name = f"detection {number}"
        if not self.is_file(table):
            name = f"row {number}"
        # Write the box as the file does, so that searching for the numbers finds it.
        numbers = table.boxes[row]
        form = "x1,y1,x2,y2"
        if self.is_file(table):
            numbers, form = np.append(numbers[:2], table.sizes[row]), "x,y,w,h"
        box = ", ".join(f"{number:g}" for number in numbers.tolist())
        label = table.categories.labels[table.category[row]]
        return f"{name} of {table.source}: image {image}, class {label}, {form} {box}"

    def finding(
        self,
        code: str,
        kind: Kind,
        severity: Severity,
        count: int,
        message: str,
        *,
        table: BoxTable | None = None,
        rows: Sequence[int] | NDArray[Any] = (),
        examples: Sequence[str] = (),
        repair: str = "",
        repaired: Repair | None = None,
        most: float | None = None,
        at_once: bool = False,
    ) -> Finding:
        """Make a finding; ``rows`` of ``table`` become its examples, ``repaired`` its effect.

        ``most`` is a bound of the metric, in place of ``repaired``. ``at_once`` evaluates the repair in quick
        checks too.
        """
        # Look up examples only on request: locating rows takes longer than counting them.
        finding = Finding(code, kind, severity, int(count), message)
        if self.effort == WHEN_ASKED:
            if table is not None:
                examples = [self.locate(table, int(row)) for row in rows[:MOST_EXAMPLES]]
            finding = dataclasses.replace(finding, examples=tuple(examples[:MOST_EXAMPLES]))
        # Without detections or a metric, a repair cannot change anything.
        if self.detections is None or not self.metric or not self.measured:
            return finding
        # A bound of the metric needs no evaluation.
        if most is not None:
            return dataclasses.replace(
                finding, repair=repair, metric=self.metric, value=self.value, repaired=most, bound=True
            )
        if repaired is None:
            return finding
        # Store the repair, and evaluate it now only if that is requested or cheap.
        self.repairs[code] = (repair, repaired)
        known = at_once or self.effort == WHEN_ASKED or repaired in self._repaired_values
        return self.with_effect(finding) if known else finding

    def with_effect(self, finding: Finding) -> Finding:
        """Evaluate the repair of a finding, if it has one."""
        if finding.code not in self.repairs:
            return finding
        repair, repaired = self.repairs[finding.code]
        measured = self._measure_repair(repaired)
        return dataclasses.replace(
            finding,
            repair=repair,
            metric=self.metric,
            value=self.value,
            repaired=measured.value,
            repaired_metric=measured.metric,
        )


def quietly(ground_truth: GroundTruth, detections: Detections, protocol: Protocol) -> Evaluation:
    """Evaluate without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoxscoreWarning)
        return evaluate(ground_truth, detections, protocol=protocol, digest=False)


def with_truth(rows: NDArray[np.intp]) -> Repair:
    """Return the tables with only some annotations."""
    return lambda context, detections: (context.ground_truth.take(rows), detections, context.protocol)


def with_areas(area: NDArray[np.float64]) -> Repair:
    """Return the tables with other areas of the annotations."""
    return lambda c, detections: (dataclasses.replace(c.ground_truth, area=area), detections, c.protocol)


def _first_metric(evaluation: Evaluation | None) -> tuple[float, str]:
    """Return the first summary metric of an evaluation and its key; NaN without one."""
    row = None if evaluation is None else next(iter(evaluation.protocol.rows), None)
    if evaluation is None or row is None:
        return math.nan, ""
    return evaluation._total(row), row.key


def refused(code: str, error: InputError) -> Finding:
    """Make the finding for a file that cannot be read."""
    return Finding(code, "structural", "error", 1, f"cannot be loaded: {str(error).rstrip('.')}")


def by_weight(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings: errors first, and within a severity by descending effect.

    A bound counts half, another protocol the difference of the two numbers. Findings that prove another
    protocol come first if its number is unknown.
    """

    def weight(finding: Finding) -> tuple[int, float]:
        if finding.code in SURELY_ANOTHER and not finding.repair:
            return SEVERITIES.index(finding.severity), -1.0
        effect = finding.effect / (2 if finding.bound else 1)
        effect = abs(effect) if finding.repaired_metric else effect
        return SEVERITIES.index(finding.severity), -effect if effect > 0 else 0.0

    return sorted(findings, key=weight)


def named(names: Sequence[str], *, longest: int = LONGEST_NAME) -> str:
    """List the first few names, shortened: ``cat, dog, cow and 2 more``."""
    first = [name if len(name) <= longest else f"{name[: longest - 3]}..." for name in names]
    if len(first) > MOST_NAMED + 1:
        return f"{', '.join(first[:MOST_NAMED])} and {len(first) - MOST_NAMED:,} more"
    return " and ".join([*([", ".join(first[:-1])] if first[1:] else []), first[-1]])


def image_rows(images: Images, rows: NDArray[Any]) -> list[str]:
    """Describe a few images."""
    first = rows[:MOST_EXAMPLES]
    return [
        f"image {identifier}" + (f" ({name})" if name else "")
        for identifier, name in zip(
            images.ids[first].tolist(), images.file_names[first].tolist(), strict=True
        )
    ]
