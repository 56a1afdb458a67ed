"""The report's plots. Each takes plain values and returns the bytes of a PNG; `files.write_bytes` puts them on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from mocap2ctrl.report.clips import JointError
from mocap2ctrl.report.data import EXIT_KINDS, LogRow, StateRow
from mocap2ctrl.report.style import LIGHT, NORMAL, SMALL, Theme, dress, legend, new_figure, png, title_style
from mocap2ctrl.report.torques import TorqueRow
from mocap2ctrl.types import Array

LOG_DECADES = 4.0
"""Cost terms below the largest by more than this many powers of ten are drawn at the bottom."""


LETTER = 0.012
"""Width of a letter of a stage's name, as a share of the axes."""


def plot_costs(log: Sequence[LogRow], theme: Theme = LIGHT) -> bytes:
    """Weighted cost terms of each search's best against simulations, logarithmic, with the stages' boundaries."""
    figure = new_figure(3.5, theme)
    axes = figure.add_subplot()
    dress(axes, theme)
    axes.set_title("Cost terms over the optimisation", pad=24, **title_style(theme))
    evaluations = np.array([row.evaluations for row in log], float)
    names = list(dict.fromkeys(name for row in log for name, value in row.terms.items() if value != 0.0))
    values = np.array([[row.weights.get(n, np.nan) * row.terms.get(n, np.nan) for n in names] for row in log], float)
    values[~np.isfinite(values)] = np.nan
    total = np.nansum(values, axis=1)
    floor = float(total.max(initial=1e-9)) * 10.0**-LOG_DECADES or 1e-9
    steps: dict[str, Any] = {"where": "post", "solid_capstyle": "round"}
    for column, name in enumerate(names):
        colour = theme.series[column % len(theme.series)]
        axes.step(evaluations, np.maximum(values[:, column], floor), color=colour, linewidth=1.5, label=name, **steps)
    axes.step(evaluations, np.maximum(total, floor), color=theme.ink, linewidth=2.2, label="sum", **steps)
    axes.set_yscale("log")
    axes.set_xlabel("simulations")
    axes.set_ylabel("weight × value, best of each search")
    axes.margins(x=0.01)
    _mark_stages(axes, log, theme)
    legend(figure, theme, axes.get_legend_handles_labels()[0])
    return png(figure)


def _mark_stages(axes: Axes, log: Sequence[LogRow], theme: Theme) -> None:
    """Where stages begin. Names stand where there is room."""
    span = log[-1].evaluations - log[0].evaluations or 1
    room = float(log[0].evaluations)
    for i, row in enumerate(log):
        if i > 0 and row.stage == log[i - 1].stage:
            continue
        x, width = row.evaluations, LETTER * span * len(row.stage)
        axes.axvline(x, color=theme.muted, linewidth=0.8, linestyle=(0, (2, 3)))
        if room <= x <= log[-1].evaluations - width:
            place: dict[str, Any] = {"textcoords": "offset points", "xycoords": ("data", "axes fraction")}
            axes.annotate(row.stage, (x, 1.0), (3, 3), color=theme.muted, fontsize=SMALL, **place)
            room = x + width


def plot_joint_error(error: JointError, theme: Theme = LIGHT, *, name: str = "Joint error") -> bytes:
    """Joint error, or what `name` calls it, over time: over all points, by limb group, and its mean as a number."""
    figure = new_figure(3.0, theme)
    axes = figure.add_subplot()
    mean = float(error.mean_cm.mean())
    dress(axes, theme, title=f"{name}: {mean:.1f} cm on average")
    for (group, values), colour in zip(error.groups_cm.items(), theme.series, strict=False):
        axes.plot(error.times_s, values, color=colour, linewidth=1.3, label=group)
    axes.plot(error.times_s, error.mean_cm, color=theme.ink, linewidth=2.4, label="all joints")
    axes.axhline(mean, color=theme.muted, linewidth=1.0, linestyle=(0, (4, 3)))
    top = max([float(v.max()) for v in error.groups_cm.values()] + [float(error.mean_cm.max()), 0.1])
    axes.set_ylim(0.0, 1.12 * top)
    axes.margins(x=0.0)
    axes.set_xlabel("time, s")
    axes.set_ylabel("distance, cm")
    legend(figure, theme, axes.get_legend_handles_labels()[0])
    return png(figure)


def plot_overlap(times_s: Array, simulated_iou: Array, track_iou: Array, theme: Theme = LIGHT) -> bytes:
    """Intersection over union with the silhouettes over time, of controller and track; gaps where nothing was seen.

    Args:
        times_s: (T,) of the silhouettes.
        simulated_iou, track_iou: (T,), NaN for frames without evidence.
        theme: colours.
    """
    figure = new_figure(3.0, theme)
    axes = figure.add_subplot()
    mean = f"{np.nanmean(simulated_iou):.3f} on average" if np.isfinite(simulated_iou).any() else "nothing seen"
    dress(axes, theme, title=f"Silhouette overlap of the controller: {mean}")
    axes.plot(times_s, track_iou, color=theme.accent, linewidth=1.6, label="track, which the controller follows")
    axes.plot(times_s, simulated_iou, color=theme.ink, linewidth=2.4, label="controller")
    known = np.concatenate([track_iou, simulated_iou, [1.0]])
    lowest = float(np.nanmin(known))
    axes.set_ylim(max(0.0, np.floor(10.0 * lowest - 0.5) / 10.0), 1.0)
    axes.set_xlim(float(times_s[0]), max(float(times_s[-1]), float(times_s[0]) + 1e-3))
    axes.set_xlabel("time, s")
    axes.set_ylabel("intersection over union")
    legend(figure, theme, axes.get_legend_handles_labels()[0][::-1])
    return png(figure)


def plot_timeline(
    times_s: Array,
    state_index: npt.NDArray[np.int64],
    states: Sequence[StateRow],
    *,
    reference_times_s: Array,
    reference_contacts: npt.NDArray[np.bool_],
    simulated_contacts: npt.NDArray[np.bool_],
    reference_name: str = "reference",
    theme: Theme = LIGHT,
) -> bytes:
    """Which state is active when and how it is left, above the feet's contacts of both bodies.

    Args:
        times_s: (T,) of the simulated frames.
        state_index: (T,).
        states: all of them.
        reference_times_s: (R,).
        reference_contacts: (R, 2) left, right.
        simulated_contacts: (T, 2) left, right.
        reference_name: what to call the other body.
        theme: colours.
    """
    figure = new_figure(3.3, theme)
    axes = figure.add_subplot()
    dress(axes, theme, title="States and foot contacts", grid="x")
    colours = dict(zip(EXIT_KINDS, (theme.muted, theme.left, theme.right, theme.rule), strict=True))
    end = float(times_s[-1] + _step(times_s))
    span = max(end, float(reference_times_s[-1]))
    for start, stop, index in runs(times_s, np.asarray(state_index)):
        state = states[index]
        _state_bar(axes, (start, stop), state, colour=colours[state.exit_kind], span=span, theme=theme)
    rows = [
        (f"left, {reference_name}", reference_times_s, reference_contacts[:, 0], theme.left, 0.45),
        ("left, simulated", times_s, simulated_contacts[:, 0], theme.left, 1.0),
        (f"right, {reference_name}", reference_times_s, reference_contacts[:, 1], theme.right, 0.45),
        ("right, simulated", times_s, simulated_contacts[:, 1], theme.right, 1.0),
    ]
    heights = (-1.15, -1.7, -2.45, -3.0)
    for (_, times, contact, colour, alpha), y in zip(rows, heights, strict=True):
        bars = [(a, b - a) for a, b, on in runs(times, np.asarray(contact, int)) if on]
        axes.broken_barh(bars, (y - 0.21, 0.42), color=colour, alpha=alpha, linewidth=0)
    axes.set_yticks([0.0, *heights], ["state", *(row[0] for row in rows)])
    axes.tick_params(axis="y", labelcolor=theme.ink)
    axes.set_ylim(-3.35, 0.6)
    axes.set_xlim(0.0, span)
    axes.set_xlabel("time, s")
    used = [kind for kind in EXIT_KINDS if any(state.exit_kind == kind for state in states)]
    handles = [Patch(facecolor=colours[kind], label=_exit_label(kind)) for kind in used]
    legend(figure, theme, handles)
    return png(figure)


def _exit_label(kind: str) -> str:
    return {"time": "ends after a time", "hold": "holds"}.get(kind, f"ends at {kind}")


def _state_bar(
    axes: Axes, run: tuple[float, float], state: StateRow, *, colour: str, span: float, theme: Theme
) -> None:
    start, stop = run
    axes.barh(0.0, stop - start, left=start, height=0.72, color=colour, edgecolor=theme.paper, linewidth=1.6)
    if stop - start > (0.012 + 0.011 * len(state.name)) * span:
        ink = theme.ink if state.exit_kind == "hold" else theme.paper
        weight: dict[str, Any] = {"fontsize": SMALL, "fontweight": "bold", "ha": "center", "va": "center"}
        axes.text(0.5 * (start + stop), -0.01, state.name, color=ink, **weight)


def _step(times: Array) -> float:
    return float(times[-1] - times[-2]) if len(times) > 1 else 0.01


def runs(times: Array, values: npt.NDArray[np.int64]) -> list[tuple[float, float, int]]:
    """Stretches of equal values as (start, stop, value); a frame lasts until the next one."""
    changes = np.flatnonzero(np.diff(values)) + 1
    firsts, lasts = np.concatenate([[0], changes]), np.concatenate([changes, [len(values)]])
    edges = np.append(times, times[-1] + _step(times))
    return [(float(edges[a]), float(edges[b]), int(values[a])) for a, b in zip(firsts, lasts, strict=True)]


def plot_torques(rows: Sequence[TorqueRow], theme: Theme = LIGHT) -> bytes:
    """Peak and 95th percentile of the torque beside human maximum and bound; one row a movement, logarithmic."""
    figure = new_figure(1.25 + 0.27 * len(rows), theme)
    axes = figure.add_subplot()
    dress(axes, theme, title="Joint torques beside human strength", grid="x")
    low = 1.0
    for y, row in enumerate(rows):
        beyond = row.human is not None and row.peak > row.human
        _torque_bar(axes, y, (low, row.peak), color=theme.accent, alpha=0.35)
        _torque_bar(axes, y, (low, row.percentile_95), color=theme.accent)
        if row.human is not None and beyond:
            _torque_bar(axes, y, (row.human, row.peak), color=theme.paper)
            _torque_bar(axes, y, (row.human, row.peak), color=theme.alarm, alpha=0.5)
            _torque_bar(axes, y, (row.human, row.percentile_95), color=theme.alarm)
        axes.plot([row.bound], [y], marker="|", color=theme.muted, markersize=10, markeredgewidth=1.2)
        if row.human is not None:
            axes.plot([row.human], [y], marker="D", color=theme.ink, markersize=6, markeredgecolor=theme.paper)
        note = "no human value" if row.ratio is None else f"{row.ratio:.0%}"
        at = (row.bound * 1.12, y)
        axes.annotate(note, at, color=theme.alarm if beyond else theme.muted, fontsize=SMALL, va="center")
    axes.set_xscale("log")
    axes.set_xlim(low, 3.2 * max([row.bound for row in rows] + [10.0]))
    axes.set_yticks(range(len(rows)), [row.movement for row in rows])
    axes.tick_params(axis="y", labelcolor=theme.ink, labelsize=NORMAL - 0.5)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("torque, N m (logarithmic); percentages are peak over human maximum")
    legend(figure, theme, _torque_legend(theme))
    return png(figure)


def _torque_bar(axes: Axes, y: float, run: tuple[float, float], *, color: str, alpha: float = 1.0) -> None:
    if run[1] > run[0]:
        axes.barh(y, run[1] - run[0], left=run[0], height=0.62, color=color, alpha=alpha, linewidth=0)


def _torque_legend(theme: Theme) -> list[Patch | Line2D]:
    return [
        Patch(facecolor=theme.accent, label="95th percentile"),
        Patch(facecolor=theme.accent, alpha=0.35, label="peak"),
        Patch(facecolor=theme.alarm, label="beyond human"),
        Line2D([], [], marker="D", color=theme.ink, linestyle="", markersize=5, label="human maximum"),
        Line2D([], [], marker="|", color=theme.muted, linestyle="", markersize=10, label="bound γ"),
    ]
