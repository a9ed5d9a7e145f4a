"""Compute bootstrap intervals of label map results, and merge results.

Conventions
-----------
An image drawn three times counts three times: its counts are multiplied, without matching again. With fewer
than 10 images intervals are NaN, because they would not reach their confidence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.text import html_summary
from boxscore.errors import InputError
from boxscore.extensions.label_maps.images import joined_images, of_images
from boxscore.extensions.weights.resampling import (
    LEAST_UNITS,
    Method,
    check_intervals,
    draw_weights,
    interval,
    spread,
)

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Self


@dataclasses.dataclass(frozen=True, eq=False)
class MetricIntervals:
    """Bootstrap intervals of M metrics.

    Attributes
    ----------
    metrics : list of str, [M]
    value, low, high, standard_error : ndarray, float64 [M]
        The metric, the ends of its interval, and its standard deviation over the resamples.
    draws : ndarray, int64 [M]
        Number of resamples in which the metric is defined.
    """

    metrics: list[str]
    value: FloatArray
    low: FloatArray
    high: FloatArray
    standard_error: FloatArray
    draws: NDArray[np.int64]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per metric."""
        import pandas as pd

        names = ("value", "low", "high", "standard_error", "draws")
        return pd.DataFrame({"metric": self.metrics, **{name: getattr(self, name) for name in names}})


class ResampledImages:
    """A result whose metrics can be computed for any image weights.

    Subclasses are dataclasses of rules, classes, images, and a table with the image of each row.
    """

    rules: Any
    images: tuple[int | str, ...]

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics by name."""
        raise NotImplementedError

    @property
    def signature(self) -> str:
        """All rules in one line."""
        signature: str = self.rules.signature()
        return signature

    @property
    def _title(self) -> str:
        return f"{type(self).__name__} of {of_images(self.images)}"

    @classmethod
    def merge(cls, results: Iterable[Self]) -> Self:
        """Merge results of different images.

        Parameters
        ----------
        results : iterable of results
            Results with the same rules and classes, and with different images.

        Returns
        -------
        PanopticQuality or SemanticIoU
            The type of the results.

        Raises
        ------
        InputError
            When the list is empty, rules or classes differ, or an image occurs twice.
        """
        parts = list(results)
        fields = [[getattr(part, field.name) for field in dataclasses.fields(part)] for part in parts]  # type: ignore[arg-type]
        images, starts = joined_images(parts, [values[:2] for values in fields])
        rules, classes, _, table = fields[0]
        moved = [
            values[-1]._replace(image=values[-1].image + np.int32(start))
            for values, start in zip(fields, starts, strict=True)
        ]
        columns = (np.concatenate(column) for column in zip(*moved, strict=True))
        return cls(rules, classes, images, type(table)(*columns))  # type: ignore[call-arg]

    def __add__(self, other: Self) -> Self:
        return self.merge([self, other]) if isinstance(other, type(self)) else NotImplemented

    def __repr__(self) -> str:
        values = ", ".join(f"{name} {value:.4f}" for name, value in self.metrics.items() if "SQ" not in name)
        return f"{self._title}\n{values}\n{self.signature}"

    def _repr_html_(self) -> str:
        return html_summary(
            f"{type(self).__name__} of {of_images(self.images)}", self.metrics, self.signature
        )

    def _metrics_by_weights(self) -> Callable[[FloatArray], Mapping[str, float]]:
        """Return a function from image weights [I] to metrics."""
        raise NotImplementedError

    def bootstrap_intervals(
        self,
        *,
        resamples: int = 1000,
        confidence: float = 0.95,
        method: Method = "expanded_percentile",
        seed: int = 0,
        progress: bool = False,
    ) -> MetricIntervals:
        """Return bootstrap intervals of the metrics.

        Parameters
        ----------
        resamples : int, default 1000
        confidence : float, default 0.95
        method : {"expanded_percentile", "percentile", "bias_corrected"}, default "expanded_percentile"
        seed : int, default 0
        progress : bool, default False
            Show a progress bar if stderr is a terminal.

        Returns
        -------
        MetricIntervals

        Raises
        ------
        InputError
            When an option is out of range, or the result is empty.
        """
        metrics_of = self._metrics_by_weights()
        check_intervals(confidence, method)
        if not self.images:
            raise InputError("a bootstrap", "have images to draw from", got="none")
        metrics = metrics_of(np.ones(len(self.images)))
        weights = draw_weights(len(self.images), resamples, seed=seed, progress=progress)
        draws = np.array([list(metrics_of(weights_of_draw).values()) for weights_of_draw in weights])
        value = np.array(list(metrics.values()))
        low, high = interval(draws, value, confidence, method, len(self.images))
        if len(self.images) < LEAST_UNITS:
            low, high = np.full_like(low, np.nan), np.full_like(high, np.nan)
        return MetricIntervals(list(metrics), value, low, high, spread(draws), np.isfinite(draws).sum(axis=0))
