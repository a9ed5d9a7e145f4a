"""Define the base classes of diagnostic results: arrays computed once per evaluation, and tables of them."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import unchangeable
from boxscore._utils.lazy import shortcut
from boxscore._utils.text import counted, html_table, short_list
from boxscore.data.class_names import EVERY_CLASS, MEAN
from boxscore.evaluation import Evaluation
from boxscore.scoring.blocks import weighted_mean

if TYPE_CHECKING:
    import pandas as pd

Floats = Any
"""A float64 array of values per class, or one number for all classes together."""

Counts = Any
"""An int64 array of counts per class, or one number for all classes together."""

Options = ParamSpec("Options")
Answer = TypeVar("Answer")
Question = Callable[Concatenate[Evaluation, Options], Answer]

SHOWN_ROWS, SHOWN_COLUMNS = 10, 14


class DiagnosticResult:
    """The result of a diagnostic: attributes hold arrays, and :meth:`to_frame` makes a table.

    Totals over all classes are separate attributes and the rows of :meth:`total_frame`, never a row among the
    classes. Subclasses are frozen dataclasses.
    """

    def to_frame(self) -> pd.DataFrame:
        """Return the result as a DataFrame, with one row per class or per listed entry."""
        raise NotImplementedError

    def terminal_rows(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
        """Return the rows of :meth:`to_frame` that a terminal shows, and a line on the rows left out."""
        return frame, ""

    def _total_rows(self) -> pd.DataFrame | None:
        """Return the table of all classes together, if this result has one."""
        total: Callable[[], pd.DataFrame] | None = getattr(self, "total_frame", None)
        return None if total is None else total()

    def printed_frame(self) -> pd.DataFrame:
        """Return the table that a page or terminal prints: the rows, then the totals."""
        import pandas as pd

        total = self._total_rows()
        rows = self.to_frame()
        return rows if total is None else pd.concat([rows, total], ignore_index=True)

    def _shown(self) -> tuple[str, pd.DataFrame]:
        """Return the text and table of the short form: all rows, or only the totals if there are many."""
        frame, total = self.printed_frame(), self._total_rows()
        name = type(self).__name__
        if total is None or len(frame) <= SHOWN_ROWS:
            return f"{name}, {counted(len(frame), 'row')}", frame
        rest = len(frame) - len(total)
        return f"{name}, all classes together; to_frame() has {counted(rest, 'row')} per class", total

    def __repr__(self) -> str:
        title, frame = self._shown()
        return f"{title}\n{frame.to_string(max_rows=SHOWN_ROWS, max_cols=SHOWN_COLUMNS)}"

    def _repr_html_(self) -> str:
        title, frame = self._shown()
        columns = _shown_columns(frame)
        return f"<div><b>{title}</b>{html_table(columns, most=SHOWN_ROWS)}</div>"

    def plot(self, **options: Any) -> Any:
        """Draw the result with matplotlib; a notebook shows the figure.

        Parameters
        ----------
        **options
            Options of the matching function of :mod:`boxscore.plots`: ``errors``, ``error_curves``,
            ``confusion_matrix``, ``compare`` or ``sweep``. ``ax`` is the axes to draw on.

        Returns
        -------
        matplotlib Figure

        Raises
        ------
        InputError
            When this kind of result cannot be plotted, or an option is out of range.
        MissingDependencyError
            When matplotlib is not installed.
        """
        return shortcut("boxscore.reports.plots", "plot_of")(self, **options)


def _shown_columns(frame: pd.DataFrame) -> dict[str, list[Any]]:
    """Return the columns for a notebook: a named index first; of many columns only the first and the last."""
    import pandas as pd

    # Show only the first and the last of many columns.
    columns = [(str(name), values.astype(object).tolist()) for name, values in frame.items()]
    if len(columns) > SHOWN_COLUMNS:
        half = SHOWN_COLUMNS // 2
        gap = ("\N{HORIZONTAL ELLIPSIS}", [""] * len(frame))
        columns = [*columns[:half], gap, *columns[-half:]]
    # Turn a named index into a column.
    if frame.index.name is not None:
        across = f"{frame.index.name} \\ {frame.columns.name}"
        columns = [(across, frame.index.astype(object).tolist()), *columns]
    made: dict[str, list[Any]] = {}
    for name, values in columns:
        # Avoid a class of the same name.
        while name in made:
            name += " "
        made[name] = [
            None if value is pd.NA else short_list(value) if isinstance(value, list) else value
            for value in values
        ]
    return made


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ClassResult(DiagnosticResult):
    """Values per class, and the same values for all classes together.

    Attributes
    ----------
    classes : list of str, [K]
    per_class : NamedTuple of ndarray, [K, ...]
        Its fields are the columns of the table.
    total : NamedTuple, [...]
        The same fields for all classes together: numbers, or arrays without the class axis.
    """

    classes: list[str]
    per_class: Any
    total: Any

    def to_frame(self) -> pd.DataFrame:
        """Return one row per class, or one per class and entry of the second axis."""
        return self.frame_of(self.classes, self.per_class)

    def total_frame(self) -> pd.DataFrame:
        """Return the same columns for all classes together."""
        return self.frame_of([EVERY_CLASS], self.total)

    def second_axis(self) -> Mapping[str, Any]:
        """Return columns that name the entries of the second axis, if there is one."""
        return {}

    def frame_of(self, classes: Sequence[str], values: Any) -> pd.DataFrame:
        """Build the table of values.

        If they have one axis more than the total, the first axis is the classes.
        """
        import pandas as pd

        columns = {name: np.ravel(column) for name, column in values._asdict().items()}
        size = len(next(iter(columns.values()))) // max(len(classes), 1)
        return pd.DataFrame(
            {
                "class": np.repeat(np.array(classes, dtype=object), size),
                **{name: list(entries) * len(classes) for name, entries in self.second_axis().items()},
                **columns,
            }
        )


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ClassResultWithMean(ClassResult):
    """Values per class, for all classes together, and their mean over classes.

    Attributes
    ----------
    mean : NamedTuple, [...]
        The same fields as ``total``.
    """

    mean: Any

    def total_frame(self) -> pd.DataFrame:
        """Return one row for all classes together and one for the mean over classes."""
        both = self.total._make(map(np.array, zip(self.total, self.mean, strict=True)))
        return self.frame_of([EVERY_CLASS, MEAN], both)


class CurvesByClass(DiagnosticResult):
    """Points of one curve per class, class by class, then the curve of all classes together.

    Subclasses are dataclasses that add the columns of the points.
    """

    classes: list[str]
    bounds: NDArray[np.intp]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per class and distinct score: ``class``, then the columns of the points."""
        names = np.repeat(np.array(self.classes, dtype=object), np.diff(self.bounds[:-1]))
        return self.frame_of(names, slice(self.bounds[-2]))

    def total_frame(self) -> pd.DataFrame:
        """Return one row per distinct score of all classes together."""
        names = np.full(self.bounds[-1] - self.bounds[-2], EVERY_CLASS, dtype=object)
        return self.frame_of(names, slice(self.bounds[-2], None))

    def frame_of(self, classes: NDArray[np.object_], rows: slice) -> pd.DataFrame:
        """Build the table of some rows of the points, with the class of each."""
        raise NotImplementedError


def mean_over_classes(values: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> np.float64:
    """Average values [K] over the classes that define them, with class weights; NaN if no class does."""
    if weights is not None:
        return np.float64(weighted_mean(values, weights))
    defined = ~np.isnan(values)
    count = defined.sum()
    mean: np.float64 = np.where(defined, values, 0.0).sum() / count if count else np.float64(np.nan)
    return mean


def once_per_evaluation(function: Question[Options, Answer]) -> Question[Options, Answer]:
    """Compute a diagnostic once per evaluation and options. Its arrays are shared, so they are read-only."""
    signature = inspect.signature(function)

    def answer(evaluation: Evaluation, *args: Options.args, **kwargs: Options.kwargs) -> Answer:
        bound = signature.bind(evaluation, *args, **kwargs)
        bound.apply_defaults()
        options = list(bound.arguments.items())[1:]
        key = (function.__qualname__, *((name, _hashable(value)) for name, value in options))
        try:
            hash(key)
        # An unhashable option: the function itself rejects it.
        except TypeError:
            return function(evaluation, *args, **kwargs)
        return evaluation._once(key, lambda: unchangeable(function(evaluation, *args, **kwargs)))

    return cast("Question[Options, Answer]", functools.update_wrapper(answer, function))


def _hashable(value: Any) -> Any:
    return (list, tuple(value)) if isinstance(value, list) else (type(value), value)
