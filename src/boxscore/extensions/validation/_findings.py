"""What a check reports, and the tables it reads.

Conventions
-----------
- A check never changes a table. Where a fault can be repaired, its ``repair`` returns other tables. These are
  evaluated too: the difference is the effect of the fault on the score.
- Examples name rows by their position in the file.
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

from boxscore._utils.records import NamedTuple, record
from boxscore._utils.text import fixed
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Images
from boxscore.errors import SEVERITIES, BoxscoreWarning, InputError, Severity
from boxscore.evaluation import Evaluation, evaluate
from boxscore.extensions.validation.completion import reaches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow
from boxscore.scoring.summary import summary_total

if TYPE_CHECKING:
    from boxscore.extensions.hints.numbering import InferredClassMap

Kind = Literal["structural", "geometric", "semantic"]
Tables = tuple[GroundTruth, Detections, Protocol]
Repair = Callable[["Context", Detections], Tables]

SURELY_ANOTHER = ("keypoints-without-effect", "masks-without-effect")
"""Codes of findings of detections that were made for another protocol."""

LOW = 0.05
"""Value of the metric below which tables may be numbered differently, and are checked in passing too."""

MOST_EXAMPLES = 5
MOST_NAMED, LONGEST_NAME = 3, 40

MOST_ROWS = {"box": 500_000, "quadrilateral": 20_000, "rotated": 50_000, "mask": 20_000, "keypoints": 50_000}
"""Annotations and detections that may be evaluated again in passing, by what is compared."""

IN_PASSING, ON_A_PAGE, WHEN_ASKED = range(3)
"""How much a check may cost: almost nothing, no second evaluation, or evaluations of repaired tables."""


@record(frozen=True)
class Finding:
    """What a check reports.

    Attributes
    ----------
    code : str
        The check's name, such as ``box-order``; the same in every release.
    kind : {"structural", "geometric", "semantic"}
    severity : {"error", "warning", "note"}
        An error makes the score wrong, a warning probably does, a note is worth knowing.
    count : int
        How many annotations, detections, images or classes are affected.
    message : str
    examples : tuple of str
        The first few, by their position in the file.
    repair : str
        The repair with which the score was computed again; empty without one.
    metric : str
        The first summary metric of the protocol.
    value, repaired : float
        That metric, of the data as given and with ``repair``; NaN where it cannot be computed.
    bound : bool
        Whether ``repaired`` is the most that the metric could be, where it cannot be evaluated.
    repaired_metric : str
        The metric of ``repaired``, where the repair is another protocol: the two numbers are no difference.
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
        """The effect in words, without a full stop; empty without a repair, and of a bound."""
        if not self.repair or self.bound:
            return ""
        as_it_is, repaired = (
            "undefined" if math.isnan(value) else f"{value:.4f}" for value in (self.value, self.repaired)
        )
        other = f"{self.repaired_metric} " if self.repaired_metric else ""
        difference = "" if other or math.isnan(self.effect) else f" ({fixed(self.effect, signed=True)})"
        return f"{self.metric} {as_it_is}; {self.repair}: {other}{repaired}{difference}"


class Renumbered(NamedTuple):
    """Detections by the class map that their boxes show."""

    found: InferredClassMap
    detections: Detections


class RowCheck(NamedTuple):
    """A check that judges rows of a table image by image: counts of disjoint images add up.

    Attributes
    ----------
    code : str
    kind : {"structural", "geometric", "semantic"}
    rows : callable
        Takes the context and a table; returns the rows that are wrong, the worst first, and the most that one
        of them is off, where that is said.
    severity, text : callable
        Take the context, how many rows there are, and the most; the text is the finding's message.
    repair : str
    repaired : callable
        Takes the context, the table and the rows, and returns the repair.
    """

    code: str
    kind: Kind
    rows: Callable[[Context, Any], tuple[NDArray[np.intp], float]]
    severity: Callable[[Context], Severity]
    text: Callable[[Context, int, float], str]
    repair: str
    repaired: Callable[[Context, Any, NDArray[np.intp]], Repair]

    def finding(self, context: Context, table: Any, **otherwise: Any) -> Iterator[Finding]:
        """Check a table; ``otherwise`` is another repair than that of the check."""
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
    """The first metric of repaired tables; its key where the repair is another protocol."""

    value: float
    metric: str = ""


@record(frozen=True, eq=False)
class Context:
    """The aligned tables, how they are scored, and the effort that checks may take.

    ``repairs`` collects the repairs that were too costly to evaluate, by the code of the finding.
    """

    ground_truth: GroundTruth
    detections: Detections | None
    protocol: Protocol
    file_rows: NDArray[Any] | None = None
    """Row in its file of each detection, where some were left out."""
    truth_rows: NDArray[Any] | None = None
    """The same of each annotation."""
    given: Evaluation | None = None
    """The evaluation of the tables, if there is one already."""
    renumbered: Renumbered | None = None
    """The detections by the class map that they need, where they come from a file that was read again."""
    effort: int = WHEN_ASKED
    """Only findings of the last have examples and every effect."""
    measured: bool = True
    """Whether effects are: not where the tables are not all there."""
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
        """What a class is measured by: AP, or F1 where detections are not ranked."""
        return "AP" if self.protocol.matching.scores == "given" else "F1"

    @functools.cached_property
    def value(self) -> float:
        """That metric of the tables; NaN where there is none."""
        return _first_metric(self.evaluation)[0]

    @functools.cached_property
    def per_image(self) -> NDArray[np.intp]:
        """How many detections each image has, [I]."""
        rows = () if self.detections is None else self.detections.image
        return np.bincount(np.asarray(rows, dtype=np.intp), minlength=len(self.ground_truth.images))

    @functools.cached_property
    def objects_per_class(self) -> NDArray[np.intp]:
        """How many annotations each class has, [K]."""
        return np.bincount(self.ground_truth.category, minlength=len(self.ground_truth.categories))

    @functools.cached_property
    def silent_classes(self) -> NDArray[np.bool_]:
        """Whether each class has no detection, [K]."""
        silent = np.ones(len(self.ground_truth.categories), dtype=bool)
        if self.given is not None and self.protocol.matching.per_class:  # matches are in order of classes
            silent = np.diff(self.given.matched.class_starts) == 0
        if silent.any() and self.detections is not None:  # some take no part in matching
            silent[self.detections.category] = False
        return silent

    def is_below(self, bound: float) -> bool:
        """Whether that metric is below a bound; it is not computed where counts show that it is not."""
        if "value" not in self.__dict__ and self.evaluation is not None and reaches(self.evaluation, bound):
            return False
        return self.value < bound

    def repaired_value(self, repaired: Repair) -> float:
        """Return the first metric of repaired tables; NaN where there is none."""
        return self._repaired(repaired).value

    def _repaired(self, repaired: Repair) -> _Measured:
        if self.detections is None or not self.metric:
            return _Measured(math.nan)
        if repaired not in self._repaired_values:
            truth, detections, protocol = repaired(self, self.detections)
            try:
                value, key = _first_metric(quietly(truth, detections, protocol))
            except InputError:  # what another protocol needs is not there: no number, and no reason to stop
                value, key = math.nan, ""
            other = (
                protocol.rows[:1] != self.protocol.rows[:1] or protocol.similarity != self.protocol.similarity
            )
            self._repaired_values[repaired] = _Measured(value, key if other else "")
        return self._repaired_values[repaired]

    @property
    def unread_flags(self) -> list[str]:
        """The flags of annotations that the protocol does not read."""
        rules = self.protocol.ignore
        read = {"crowd": rules.crowd, "difficult": rules.difficult, "ignore": rules.flagged}
        return [name for name, treatment in read.items() if treatment == "count"]

    @property
    def chosen_classes(self) -> bool:
        """Whether the tables hold only some classes of what was given: their absence is then no fault."""
        return self.given is not None and self.given.chosen_classes

    def was_said(self, key: str) -> bool:
        """Whether the evaluation itself has warned of something."""
        return self.given is not None and self.given.once(key, lambda: False)

    def is_file(self, table: BoxTable) -> bool:
        """Whether a table came from one file, which for COCO holds ``x, y, width, height``."""
        return Path(table.source).suffix.lower() == ".json" or Path(table.source).is_file()

    def is_soon(self, protocol: Protocol) -> bool:
        """Whether another evaluation takes a second at most: one in passing, where a fault is known."""
        rows = len(self.ground_truth) + len(self.detections or ())
        return rows <= MOST_ROWS.get(protocol.similarity, 0)

    def was_read(self, table: BoxTable) -> bool:
        """Whether a loader made a table, which then has warned of what it saw."""
        try:
            return self.is_file(table) or Path(table.source).exists()
        except (OSError, ValueError):  # any text may be a source
            return False

    def locate(self, table: BoxTable, row: int) -> str:
        """Name a row by its position in the file."""
        # Name the row by its number in the file: rows of a partition have their numbers in the whole.
        image = table.images.ids.tolist()[table.image[row]]
        rows = self.truth_rows if isinstance(table, GroundTruth) else self.file_rows
        number = row if rows is None else int(rows[row])
        if isinstance(table, GroundTruth):
            name = f"annotation {number} (id {table.ids.tolist()[row]})"
        else:
            name = f"detection {number}"
        if not self.is_file(table):
            name = f"row {number}"
        # Write the box as the file does, so that a search for the numbers finds it.
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

        ``most`` is a bound of the metric, in place of ``repaired``. ``at_once`` evaluates the repair in
        passing too.
        """
        # Examples are looked up only when asked for: locating rows takes longer than counting them.
        finding = Finding(code, kind, severity, int(count), message)
        if self.effort == WHEN_ASKED:
            if table is not None:
                examples = [self.locate(table, int(row)) for row in rows[:MOST_EXAMPLES]]
            finding = dataclasses.replace(finding, examples=tuple(examples[:MOST_EXAMPLES]))
        # Without detections or a metric there is nothing that a repair could change.
        if self.detections is None or not self.metric or not self.measured:
            return finding
        # A bound of the metric needs no evaluation.
        if most is not None:
            return dataclasses.replace(
                finding, repair=repair, metric=self.metric, value=self.value, repaired=most, bound=True
            )
        if repaired is None:
            return finding
        # Keep the repair, and evaluate it now only if that is asked for or costs nothing.
        self.repairs[code] = (repair, repaired)
        known = at_once or self.effort == WHEN_ASKED or repaired in self._repaired_values
        return self.with_effect(finding) if known else finding

    def with_effect(self, finding: Finding) -> Finding:
        """Evaluate the repair of a finding, where it has one."""
        if finding.code not in self.repairs:
            return finding
        repair, repaired = self.repairs[finding.code]
        measured = self._repaired(repaired)
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
    """Return the tables with some annotations alone."""
    return lambda context, detections: (context.ground_truth.take(rows), detections, context.protocol)


def _first_metric(evaluation: Evaluation | None) -> tuple[float, str]:
    """Return the first summary metric of an evaluation and its key; NaN where there is none."""
    row = None if evaluation is None else next(iter(evaluation.protocol.rows), None)
    if evaluation is None or row is None:
        return math.nan, ""
    return summary_total(row, evaluation.protocol, evaluation.curves_of), row.key


def refused(code: str, error: InputError) -> Finding:
    """Make the finding that a file cannot be read."""
    return Finding(code, "structural", "error", 1, f"cannot be loaded: {str(error).rstrip('.')}")


def by_weight(findings: Iterable[Finding]) -> list[Finding]:
    """Order findings: errors first, of one severity those that cost most.

    Of a bound half is counted, of another protocol the distance of the two numbers; what is surely another
    protocol's comes first where its number is not known.
    """

    def weight(finding: Finding) -> tuple[int, float]:
        if finding.code in SURELY_ANOTHER and not finding.repair:
            return SEVERITIES.index(finding.severity), -1.0
        effect = finding.effect / (2 if finding.bound else 1)
        effect = abs(effect) if finding.repaired_metric else effect
        return SEVERITIES.index(finding.severity), -effect if effect > 0 else 0.0

    return sorted(findings, key=weight)


def named(names: Sequence[str], *, longest: int = LONGEST_NAME) -> str:
    """List the first few names, none of them long: ``cat, dog, cow and 2 more``."""
    first = [name if len(name) <= longest else f"{name[: longest - 3]}..." for name in names]
    if len(first) > MOST_NAMED + 1:
        return f"{', '.join(first[:MOST_NAMED])} and {len(first) - MOST_NAMED:,} more"
    return " and ".join([*([", ".join(first[:-1])] if first[1:] else []), first[-1]])


def image_rows(images: Images, rows: NDArray[Any]) -> list[str]:
    """Name a few images."""
    first = rows[:MOST_EXAMPLES]
    return [
        f"image {identifier}" + (f" ({name})" if name else "")
        for identifier, name in zip(
            images.ids[first].tolist(), images.file_names[first].tolist(), strict=True
        )
    ]
