"""How all plots look, in light and dark; matplotlib's global settings are never touched."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

DPI = 144
WIDTH_IN = 8.0
SMALL, NORMAL, LARGE = 8.5, 9.5, 12.0


@dataclass(frozen=True)
class Theme:
    """Colours of one scheme. `series` are Okabe and Ito's, which colour-blind people can tell apart."""

    name: str
    paper: str
    ink: str
    muted: str
    rule: str
    left: str
    right: str
    accent: str
    alarm: str
    series: tuple[str, ...]


LIGHT = Theme(
    name="light",
    paper="#ffffff",
    ink="#1f2733",
    muted="#677080",
    rule="#e3e7ec",
    left="#3a7fc0",
    right="#dd7a34",
    accent="#3a7fc0",
    alarm="#b3261e",
    series=("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7f00", "#5b5b6b"),
)
DARK = Theme(
    name="dark",
    paper="#1b2029",
    ink="#e8ebf0",
    muted="#98a2b3",
    rule="#303846",
    left="#63a4e0",
    right="#f0964f",
    accent="#63a4e0",
    alarm="#ff8a80",
    series=("#56a8e0", "#f0b429", "#2fbf96", "#e09ac4", "#8fd0f5", "#f07f3c", "#e3d94a", "#b0b0c0"),
)


def new_figure(height_in: float, theme: Theme) -> Figure:
    """Return an empty figure of the common width, on the theme's paper."""
    figure = Figure(figsize=(WIDTH_IN, height_in), dpi=DPI, facecolor=theme.paper, layout="constrained")
    FigureCanvasAgg(figure)
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(w_pad=0.14, h_pad=0.1)
    return figure


def dress(axes: Axes, theme: Theme, *, title: str = "", grid: Literal["x", "y"] = "y") -> None:
    """Give axes their look: no box, faint grid lines, quiet ticks, the title on the left."""
    axes.set_facecolor(theme.paper)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(theme.rule)
    axes.tick_params(colors=theme.muted, labelsize=SMALL, length=0, pad=5)
    axes.tick_params(which="minor", length=0)
    axes.set_axisbelow(True)
    axes.grid(True, axis=grid, color=theme.rule, linewidth=0.8)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_color(theme.muted)
        label.set_fontsize(SMALL)
    if title:
        axes.set_title(title, pad=12, **title_style(theme))


def title_style(theme: Theme) -> dict[str, Any]:
    """Return matplotlib's options for a plot's title."""
    return {"loc": "left", "color": theme.ink, "fontsize": LARGE, "fontweight": "bold"}


def legend(figure: Figure, theme: Theme, handles: Sequence[Artist]) -> None:
    """Put a frameless legend in one row below the plot."""
    figure.legend(
        handles=list(handles),
        loc="outside lower left",
        ncols=max(len(handles), 1),
        frameon=False,
        fontsize=SMALL,
        labelcolor=theme.ink,
        handlelength=1.5,
        columnspacing=1.6,
        borderaxespad=0.6,
        borderpad=0.2,
    )


def png(figure: Figure) -> bytes:
    """Encode the figure as PNG, without the time of writing, so that equal plots are equal files."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
