"""Share code between plots: the display, importing matplotlib, colors, and safe names."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from boxscore._utils.text import printable
from boxscore.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from typing_extensions import Self

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette without yellow, which is hard to see on white paper."""

GRAY = "#8a929e"
LONGEST = 28
"""Maximum characters of a name in a plot."""

MISSING_GLYPH = "\N{WHITE SQUARE}"


@dataclasses.dataclass
class Display:
    """Base class of plots: subclasses hold arrays, and :meth:`plot` draws them."""

    figure_: Any = dataclasses.field(default=None, init=False)
    ax_: Any = dataclasses.field(default=None, init=False)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given axes or on new ones; set ``figure_`` and ``ax_``."""
        self.figure_, self.ax_ = axes(ax, size=self._size())
        self._draw(self.ax_)
        return self

    def figure(self, ax: Axes | None) -> Figure:
        """Draw, and return the figure."""
        figure: Figure = self.plot(ax).figure_
        if ax is None and is_inline():
            pyplot().close(figure)
        return figure

    def _size(self) -> tuple[float, float]:
        """Return width and height of a new figure, in inches."""
        return 5.0, 3.6

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


def pyplot() -> Any:
    """Import matplotlib, or raise an error that says how to install it."""
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise MissingDependencyError("Plots need matplotlib: pip install 'boxscore[plots]'.") from None
    return plt


def is_inline() -> bool:
    """Return whether a notebook shows open figures at a cell's end, and so a returned figure twice."""
    return "inline" in str(pyplot().get_backend())


def axes(ax: Axes | None, *, size: tuple[float, float]) -> tuple[Figure, Axes]:
    """Return the given axes and their figure, or new ones."""
    if ax is None:
        return pyplot().subplots(figsize=size, layout="constrained")  # type: ignore[no-any-return]
    figure: Any = ax.get_figure(root=True)
    return figure, ax


def tidy(ax: Axes, *, grid: str | None = "both", legend: bool = False) -> None:
    """Remove what is not needed to read the plot; optionally add a legend."""
    if legend:
        # Lines behind the legend must not cross its text.
        ax.legend(fontsize="small", facecolor="white", edgecolor="none", framealpha=0.85)
    ax.spines[["top", "right"]].set_visible(False)
    if grid:
        ax.grid(visible=True, axis=grid, color="#d8dde4", linewidth=0.6)  # type: ignore[arg-type]
        ax.set_axisbelow(True)


def label(text: object, *, longest: int = LONGEST) -> str:
    """Return a name that is drawn as written: shortened, without math, without glyphs that the font lacks."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    name = printable(str(text))
    name = name if len(name) <= longest else f"{name[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"
    if not name.isascii():
        font = get_font(findfont(FontProperties()))
        name = "".join(mark if font.get_char_index(ord(mark)) else MISSING_GLYPH for mark in name)
    return name.replace("$", r"\$")
