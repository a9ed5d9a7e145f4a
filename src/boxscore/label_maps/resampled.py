"""Intervals of the metrics of label maps, over resampled images.

Conventions
-----------
An image that is drawn three times counts three times: its counts are multiplied, nothing is matched again.
Below 10 images there is no interval (NaN): none holds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.resampling import (
    LEAST_UNITS,
    Method,
    check_intervals,
    draw_weights,
    interval,
    spread,
)
from boxscore.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True, eq=False)
class MetricIntervals:
    """Intervals of M metrics over resampled images.

    Attributes
    ----------
    metrics : list of str, [M]
    value, low, high, standard_error : ndarray, float64 [M]
        The metric, the ends of its interval, and its standard deviation over the draws.
    draws : ndarray, int64 [M]
        Draws in which it is defined.
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
    """A result of some images whose metrics are known for any weights of them."""

    images: tuple[int | str, ...]

    def _metrics_by_weights(self) -> Callable[[FloatArray], Mapping[str, float]]:
        """Return what computes the metrics with every image counted by its weight [I]."""
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
        """Intervals of the metrics over resampled images.

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
            When an option is out of range, or there are no images.
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
