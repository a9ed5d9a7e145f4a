"""A mutant, and a reader that it attacks."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

__all__ = ["Judged", "Mutant", "Reader"]


class Mutant(NamedTuple):
    """Files, and the command that reads them."""

    files: Mapping[str, bytes]
    """By name in an empty folder, from which the command is run."""
    arguments: tuple[str, ...]
    steps: int = 1
    """How often something was spoilt: of two mutants that show one fault, the one with fewer is kept."""
    compare: bool = True
    """Whether an oracle may be asked what the result is."""
    special: tuple[tuple[str, str], ...] = ()
    """Names of what is no plain file, and what it is: ``fifo``, ``folder``, ``readonly``, ``link:target``."""


class Judged(NamedTuple):
    """What an oracle says of a mutant that was accepted."""

    kind: str
    """``equal``; ``documented``: equal once the differences named are undone; ``differs``; ``laxer``: the
    oracle refuses it; ``unknown``: it cannot say."""
    detail: str = ""


class Reader(NamedTuple):
    """One reader: how its mutants are made, and who says what they mean.

    Attributes
    ----------
    make : callable
        Makes a mutant; the same for the same state of the generator.
    oracle : callable, optional
        Judges what was accepted: the folder, the mutant, what it printed.
    weight : float
        Share of the mutants.
    """

    make: Callable[[random.Random], Mutant]
    oracle: Callable[[Path, Mutant, str], Judged] | None = None
    weight: float = 1.0
