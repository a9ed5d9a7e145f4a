"""What all plots share: importing matplotlib, colours, and names made harmless."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boxscore._utils.text import printable
from boxscore.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "GREY", "axes", "label", "tidy"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette without yellow, which white paper swallows."""

GREY = "#8a929e"
LONGEST = 28
"""Characters of a name in a plot."""

STAND_IN = "\N{WHITE SQUARE}"


def pyplot() -> Any:
    """Import matplotlib.

    Raises
    ------
    MissingDependencyError
    """
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise MissingDependencyError("Plots need matplotlib: pip install 'boxscore[plots]'.") from None
    return plt


def axes(ax: Axes | None, *, size: tuple[float, float] = (5.0, 3.6)) -> tuple[Figure, Axes]:
    """Return the axes that were given and their figure, or new ones."""
    if ax is None:
        return pyplot().subplots(figsize=size, layout="constrained")  # type: ignore[no-any-return]
    figure: Any = ax.get_figure(root=True)
    return figure, ax


def tidy(ax: Axes, *, grid: str | None = "both") -> None:
    """Remove what is not needed to read the plot."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid:
        ax.grid(visible=True, axis=grid, color="#d8dde4", linewidth=0.6)  # type: ignore[arg-type]
        ax.set_axisbelow(True)


def label(text: object, *, longest: int = LONGEST) -> str:
    """Return a name that draws as written: shortened, no mathematics, no glyph that the font lacks."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    name = printable(str(text))
    name = name if len(name) <= longest else f"{name[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"
    if not name.isascii():
        font = get_font(findfont(FontProperties()))
        name = "".join(mark if font.get_char_index(ord(mark)) else STAND_IN for mark in name)
    return name.replace("$", r"\$")
