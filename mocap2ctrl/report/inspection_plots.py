"""Plots of an inspection: what part of the input is used and how large the person is, the path from above, contacts, errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from mocap2ctrl.report.plots import runs
from mocap2ctrl.report.style import SMALL, Theme, dress, new_figure, png
from mocap2ctrl.types import Array

HALF_IN, ERRORS_IN = (5.2, 3.3), 2.4
"""Width and height of plots that stand beside each other; height of one that stands alone."""
LEAST_SPAN_M = 2.0
"""Side of the smallest piece of ground that is shown."""
ARROW_M = 0.6


@dataclass(frozen=True, eq=False)
class FromAbove:
    """What is drawn on the ground.

    Attributes:
        path_m: (T, 2) the way that was taken.
        soles_m: (N, 2) where feet were seen; may hold NaN.
        heading: direction of the body at first, radians about z from x; None if nobody knows.
        others: further headings that are possible.
        eye_m: (2,) where the camera stands.
        edges: two (2,) directions, the left and right limit of its view.
    """

    path_m: Array
    soles_m: Array | None = None
    heading: float | None = None
    others: Sequence[float] = ()
    eye_m: Array | None = None
    edges: tuple[Array, Array] | None = None


def _half_figure(theme: Theme) -> Figure:
    figure = new_figure(HALF_IN[1], theme)
    figure.set_size_inches(*HALF_IN)
    return figure


def plot_use(
    whole_s: tuple[float, float], times_s: Array, tall_px: Array, theme: Theme, *, name: str = "pixels tall"
) -> bytes:
    """The part of the input that is used, on a line of all its time, above the person's height in pixels.

    Args:
        whole_s: the input's first and last moment.
        times_s: (T,) of the frames that are used.
        tall_px: (T,) NaN where nobody is seen.
        theme: colours.
        name: of the height.
    """
    figure = _half_figure(theme)
    bar, axes = figure.subplots(2, 1, sharex=True, height_ratios=(1.0, 7.0))
    dress(bar, theme, grid="x")
    step = float(times_s[1] - times_s[0]) if len(times_s) > 1 else whole_s[1] - whole_s[0]
    used = (float(times_s[0]), float(times_s[-1]) + step)
    bar.barh(0.0, whole_s[1] - whole_s[0], left=whole_s[0], height=0.8, color=theme.rule)
    bar.barh(0.0, used[1] - used[0], left=used[0], height=0.8, color=theme.accent)
    blind = [(a, b - a) for a, b, gone in runs(times_s, np.isnan(tall_px).astype(int)) if gone]
    bar.broken_barh(blind, (-0.4, 0.8), color=theme.alarm, linewidth=0)
    bar.set_yticks([0.0], ["used"])
    bar.tick_params(axis="y", labelcolor=theme.ink)
    bar.tick_params(axis="x", labelbottom=False)
    bar.set_ylim(-0.6, 0.6)
    dress(axes, theme)
    axes.plot(times_s, tall_px, color=theme.ink, linewidth=2.0)
    axes.set_ylim(0.0, 1.15 * float(np.nanmax(tall_px, initial=1.0)))
    axes.set_ylabel(name)
    axes.set_xlabel("time, s")
    axes.set_xlim(whole_s[0], max(whole_s[1], used[1]))
    return png(figure)


def plot_from_above(ground: FromAbove, theme: Theme) -> bytes:
    """A map of the ground in cells of a metre: the path, where the camera stands and what it sees, which way the body faces."""
    figure = _half_figure(theme)
    axes = figure.add_subplot()
    dress(axes, theme)
    axes.grid(True, axis="both", color=theme.rule, linewidth=0.8)
    axes.set_aspect("equal", adjustable="box")
    if ground.soles_m is not None:
        axes.plot(*ground.soles_m.T, ".", color=theme.muted, markersize=4, alpha=0.6, label="lowest pixels")
    axes.plot(*ground.path_m.T, color=theme.accent, linewidth=2.6, label="the body's path", solid_capstyle="round")
    axes.plot(*ground.path_m[0], "o", color=theme.ink, markersize=7, label="start")
    for heading in ground.others:
        _arrow(axes, ground.path_m[0], heading, theme.muted)
    if ground.heading is not None:
        _arrow(axes, ground.path_m[0], ground.heading, theme.right)
        axes.plot([], [], color=theme.right, linewidth=2.4, label="faces")
    if ground.others:
        axes.plot([], [], color=theme.muted, linewidth=2.4, label="or")
    _draw_camera(axes, ground, theme)
    _metres(axes, ground)
    axes.set_xlabel("x, m")
    axes.set_ylabel("y, m")
    axes.legend(frameon=False, fontsize=SMALL, labelcolor=theme.ink, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return png(figure)


def _arrow(axes: Axes, start_m: Array, heading: float, colour: str) -> None:
    tip = start_m + ARROW_M * np.array([np.cos(heading), np.sin(heading)])
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 2.2, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 14}
    axes.annotate("", xy=(tip[0], tip[1]), xytext=(start_m[0], start_m[1]), arrowprops=style)


def _draw_camera(axes: Axes, ground: FromAbove, theme: Theme) -> None:
    if ground.eye_m is None:
        return
    axes.plot(*ground.eye_m, "s", color=theme.ink, markersize=8, label="camera")
    if ground.edges is None:
        return
    far = 1.15 * float(np.max(np.linalg.norm(ground.path_m - ground.eye_m, axis=1)))
    corners = np.stack([ground.eye_m, *(ground.eye_m + far * edge for edge in ground.edges)])
    axes.fill(*corners.T, color=theme.accent, alpha=0.08, linewidth=0)


def _metres(axes: Axes, ground: FromAbove) -> None:
    """A line each metre, for as long as they can be told apart."""
    parts = [ground.path_m, ground.soles_m, None if ground.eye_m is None else ground.eye_m[None]]
    shown = np.concatenate([part for part in parts if part is not None])
    low, high = np.nanmin(shown, axis=0), np.nanmax(shown, axis=0)
    middle, span = 0.5 * (low + high), max(float((high - low).max()), LEAST_SPAN_M)
    half = 0.5 * span + ARROW_M
    axes.set_xlim(middle[0] - half, middle[0] + half)
    axes.set_ylim(middle[1] - half, middle[1] + half)
    step = next((s for s in (1.0, 2.0, 5.0, 10.0, 20.0) if span / s < 16), 50.0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MultipleLocator(step))


def plot_contacts(times_s: Array, contacts: npt.NDArray[np.bool_], root_m: Array, theme: Theme) -> bytes:
    """When each foot stands, above the pelvis' height and speed.

    Args:
        times_s: (T,).
        contacts: (T, 2) left, right.
        root_m: (T, 3) of the pelvis.
        theme: colours.
    """
    figure = _half_figure(theme)
    bars, axes = figure.subplots(2, 1, sharex=True, height_ratios=(1.0, 2.6))
    dress(bars, theme, grid="x")
    for column, (name, colour) in enumerate((("left foot", theme.left), ("right foot", theme.right))):
        stands = [(a, b - a) for a, b, on in runs(times_s, contacts[:, column].astype(int)) if on]
        bars.broken_barh(stands, (-column - 0.36, 0.72), color=colour, linewidth=0, label=name)
    bars.set_yticks([0.0, -1.0], ["left foot", "right foot"])
    bars.tick_params(axis="y", labelcolor=theme.ink)
    bars.tick_params(axis="x", labelbottom=False)
    bars.set_ylim(-1.6, 0.6)
    dress(axes, theme)
    axes.plot(times_s, root_m[:, 2], color=theme.ink, linewidth=2.0)
    axes.set_ylim(0.0, 1.15 * max(float(root_m[:, 2].max()), 0.5))
    axes.set_ylabel("pelvis' height, m")
    axes.set_xlabel("time, s")
    axes.set_xlim(float(times_s[0]), max(float(times_s[-1]), float(times_s[0]) + 1e-3))
    return png(figure)


def plot_errors(errors_cm: Mapping[str, tuple[float, float]], theme: Theme) -> bytes:
    """Mean and 95th percentile of a distance by joint, centimetres."""
    figure = new_figure(ERRORS_IN, theme)
    axes = figure.add_subplot()
    dress(axes, theme)
    for x, (mean, most) in enumerate(errors_cm.values()):
        names = ("95th percentile", "mean") if x == 0 else ("", "")
        axes.bar(x, most, width=0.62, color=theme.accent, alpha=0.35, linewidth=0, label=names[0])
        axes.bar(x, mean, width=0.62, color=theme.accent, linewidth=0, label=names[1])
    axes.set_xticks(range(len(errors_cm)), [name.replace(" ", "\n") for name in errors_cm])
    axes.tick_params(axis="x", labelcolor=theme.ink, labelsize=0.72 * SMALL)
    axes.set_ylim(0.0, 1.15 * max([most for _, most in errors_cm.values()] + [1.0]))
    axes.set_ylabel("distance, cm")
    axes.legend(frameon=False, fontsize=SMALL, labelcolor=theme.ink, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return png(figure)
