"""Is one detector better than another? Paired differences on one ground truth, with intervals.

Conventions
-----------
- Every draw of images (:mod:`boxscore.diagnostics.bootstrap`) is applied to all results alike, so that an
  image's difficulty cancels: a difference is surer than the intervals of its two sides suggest.
- ``delta`` is other minus first. ``probability`` is the share of draws in which the other is better, half of
  the equal ones counted; ``verdict`` calls a difference real when its interval leaves out 0.
- Many classes are many questions: at 95 % one verdict in twenty between equal detectors is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, get_args

import numpy as np

from boxscore._utils import checks
from boxscore.diagnostics._outcomes import EVERY_CLASS
from boxscore.diagnostics.bootstrap import (
    Method,
    chosen_rows,
    draw_weights,
    interval,
    spread,
    weighted_metrics,
)
from boxscore.diagnostics.ties import decided_by_ties
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["compare"]


def compare(
    evaluations: Mapping[str, Evaluation],
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    method: Method = "bias_corrected",
    seed: int = 0,
    metrics: Sequence[str] | None = None,
    per_class: bool = False,
    progress: bool = False,
) -> pd.DataFrame:
    """Compare the first result with each of the others.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Two or more, by name, of one ground truth under one protocol.
    resamples, confidence, method, seed, metrics, per_class, progress
        As in :func:`~boxscore.diagnostics.bootstrap.bootstrap_intervals`. Area ranges are metrics:
        ``APs`` and so on.

    Returns
    -------
    DataFrame
        One row an other result, class and metric: ``first, other, class, metric, value_first, value_other,
        delta, low, high, standard_error, probability, verdict, decided_by_ties``. ``verdict`` is
        ``better``, ``worse`` (the other, in both) or ``cannot tell``. ``decided_by_ties``, in the rows of
        AP over all classes, says whether another order of equally scored detections could turn
        ``delta`` round; None elsewhere.

    Raises
    ------
    InputError
        When there are fewer than two, or their images, objects, classes or protocols differ.
    """
    import pandas as pd

    checks.one_of(method, get_args(Method), name="method")
    checks.number_between(confidence, 0, 1, name="confidence", open_low=True)
    names, results = list(evaluations), list(evaluations.values())
    _check_comparable(names, results)
    rows = chosen_rows(results[0], metrics)
    scores = [weighted_metrics(result, rows) for result in results]
    images = len(results[0].ground_truth.images)
    draws = np.stack(
        [
            [score(weights) for score in scores]
            for weights in draw_weights(images, resamples, seed=seed, progress=progress)
        ],
        axis=1,
    )  # [results, resamples, rows, K + 1]
    values = np.stack([score(np.ones(images)) for score in scores])
    labels, K = results[0].labels, len(results[0].labels)
    columns = [K, *range(K)] if per_class else [K]
    tables = []
    for i in range(1, len(names)):
        delta, drawn = values[i] - values[0], draws[i] - draws[0]
        low, high = interval(drawn, delta, confidence, method)
        defined = np.maximum(np.isfinite(drawn).sum(axis=0), 1)
        better = ((drawn > 0).sum(axis=0) + 0.5 * (drawn == 0).sum(axis=0)) / defined
        better = np.where(np.isfinite(delta), better, np.nan)
        verdict = np.where(low > 0, "better", np.where(high < 0, "worse", "cannot tell"))
        ties = [
            decided_by_ties(results[0], results[i], row.key) if row.metric == "AP" and k == K else None
            for k in columns
            for row in rows
        ]
        cells = {
            "value_first": values[0],
            "value_other": values[i],
            "delta": delta,
            "low": low,
            "high": high,
            "standard_error": spread(drawn),
            "probability": better,
            "verdict": verdict.astype(object),
        }
        tables.append(
            pd.DataFrame(
                {
                    "first": names[0],
                    "other": names[i],
                    "class": [[*labels, EVERY_CLASS][k] for k in columns for _ in rows],
                    "metric": [row.key for _ in columns for row in rows],
                    **{name: cell[:, columns].T.ravel() for name, cell in cells.items()},
                    "decided_by_ties": pd.Series(ties, dtype=object),
                }
            )
        )
    return pd.concat(tables, ignore_index=True)


def _check_comparable(names: Sequence[str], results: Sequence[Evaluation]) -> None:
    if len(results) < 2:
        raise InputError("a comparison", "have two results or more", got=len(results))
    first = results[0]
    for name, other in zip(names[1:], results[1:], strict=True):
        mine, yours = first.ground_truth, other.ground_truth
        same = (
            mine.images.same_as(yours.images)
            and mine.categories.same_as(yours.categories)
            and np.array_equal(mine.image, yours.image)
            and np.array_equal(mine.boxes, yours.boxes)
        )
        if not same:
            raise InputError(
                "compared results", "be of one ground truth", got=f"{names[0]!r} and {name!r} of two"
            )
        if first.protocol != other.protocol:
            raise InputError(
                "compared results",
                "be of one protocol",
                got=f"{first.protocol.name!r} and {other.protocol.name!r}",
            )
