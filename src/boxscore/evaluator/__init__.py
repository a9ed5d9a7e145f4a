"""``Evaluator``: predictions and targets batch by batch, evaluated at the end of an epoch."""

from __future__ import annotations

from boxscore.evaluator.evaluating import Evaluator
from boxscore.evaluator.gathering import gather_with_torch

__all__ = ["Evaluator", "gather_with_torch"]
