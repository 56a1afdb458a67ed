"""Pictures of a control graph: its fragments and ways, and how near its skills are to each other, as PNGs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from mocap2ctrl.graph.fragments import ControlGraph
from mocap2ctrl.graph.transitions import Nearness, Transition
from mocap2ctrl.report.style import LIGHT, NORMAL, SMALL, Theme, dress, legend, new_figure, png, title_style
from mocap2ctrl.types import Array

SPACING = 1.0
"""Distance of neighbouring fragments in the plot; everything else follows."""
GAP = 3.5
CLEAR = 2.0
"""How far above or below the rings the first transition passes; the next passes as much further out."""
LEAN = 0.45
"""By what share of its rise the first transition leans inward, and those above it outward, so that their ends stay apart."""

Places = dict[str, tuple[float, float]]


def plot_graph(graph: ControlGraph, theme: Theme = LIGHT) -> bytes:
    """Cycles as rings, side by side, other skills as curves between them; fragments that have learned are filled."""
    places = _places(graph)
    points = np.array([*places.values()])
    low, high = points.min(axis=0) - SPACING, points.max(axis=0) + SPACING
    figure = new_figure(float(np.clip(8.0 * (high[1] - low[1]) / (high[0] - low[0]), 3.0, 10.0)) + 0.8, theme)
    axes = figure.add_subplot()
    dress(axes, theme)
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_title(f"{len(graph.fragments)} control fragments", pad=12, **title_style(theme))
    skills = list(dict.fromkeys(fragment.skill for fragment in graph.fragments.values()))
    colours = {skill: theme.series[i % len(theme.series)] for i, skill in enumerate(skills)}
    size = 0.55 * SPACING * 72.0 * (8.0 - 0.4) / float(high[0] - low[0])
    for name, after in graph.successors.items():
        for other in after:
            _arrow(axes, places[name], places[other], colours[graph.fragments[other].skill], size)
    for name, fragment in graph.fragments.items():
        colour = colours[fragment.skill]
        axes.plot(*places[name], "o", markersize=size, markeredgecolor=colour, markeredgewidth=1.6,
                  markerfacecolor=colour if fragment.policy else theme.paper)  # fmt: skip
        ink = theme.paper if fragment.policy else theme.ink
        axes.annotate(
            name.rpartition("/")[2], places[name], color=ink, fontsize=min(SMALL, 0.5 * size), ha="center", va="center"
        )
    legend(figure, theme, [_entry(graph, skill, colours[skill]) for skill in skills])
    return png(figure)


def _entry(graph: ControlGraph, skill: str, colour: str) -> Line2D:
    """The legend's entry of a skill: its name and how long it lasts."""
    seconds = sum(f.duration_s for f in graph.fragments.values() if f.skill == skill)
    style: dict[str, Any] = {"marker": "o", "linestyle": "none", "color": colour}
    return Line2D([], [], label=f"{skill}, {seconds:.2f} s", **style)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str, size: float) -> None:
    style = {"arrowstyle": "-|>", "color": colour, "shrinkA": 0.55 * size, "shrinkB": 0.55 * size, "linewidth": 1.3}
    axes.annotate("", end, start, arrowprops=style)


def _places(graph: ControlGraph) -> Places:
    """Where to draw each fragment."""
    skills: dict[str, list[str]] = {}
    for name, fragment in graph.fragments.items():
        skills.setdefault(fragment.skill, []).append(name)
    places: Places = {}
    x = 0.0
    for names in skills.values():
        if names[0] in graph.successors[names[-1]]:
            ring = _ring(len(names))
            x += float(-ring[:, 0].min())
            places.update(_placed(names, ring + np.array([x, 0.0])))
            x += float(ring[:, 0].max()) + GAP
    reach = max([SPACING, *(y for _, y in places.values())])
    levels = {1.0: reach, -1.0: -reach}
    left = [names for names in skills.values() if names[0] not in places]
    while left:
        ends = [_ends(names, graph, places) for names in left]
        number = next((i for i, known in enumerate(ends) if known is not None), 0)
        names, known = left.pop(number), ends[number]
        side = -1.0 if known is None or known[0][1] + known[1][1] < 0.0 else 1.0
        levels[side] += side * CLEAR
        if known is None:  # a one-way road
            curve = np.stack([np.arange(len(names)) * SPACING, np.full(len(names), levels[side])], axis=1)
        else:
            rank = round((abs(levels[side]) - reach) / CLEAR)  # the first one leans inward, those above it outward
            curve = _curve(*known, levels[side], len(names), LEAN if rank == 1 else -LEAN * (rank - 1))
        places.update(_placed(names, curve))
    return places


def _placed(names: Sequence[str], points: Array) -> Places:
    return {name: (float(x), float(y)) for name, (x, y) in zip(names, points, strict=True)}


def _ring(count: int) -> Array:
    """(count, 2) evenly on a circle, clockwise from the top."""
    radius = SPACING / (2.0 * float(np.sin(np.pi / max(count, 3))))
    angle = np.pi / 2.0 - 2.0 * np.pi * np.arange(count) / count
    return np.asarray(radius * np.stack([np.cos(angle), np.sin(angle)], axis=1))


def _ends(names: Sequence[str], graph: ControlGraph, places: Places) -> tuple[Array, Array] | None:
    """Where the fragments before and after a chain are drawn, if they are."""
    before = [name for name, after in graph.successors.items() if names[0] in after and name in places]
    after = [name for name in graph.successors[names[-1]] if name in places]
    return (np.array(places[before[0]]), np.array(places[after[0]])) if before and after else None


def _curve(start: Array, end: Array, level: float, count: int, lean: float) -> Array:
    """(count, 2) points, evenly along a Bezier curve from `start` to `end` (2,) that passes near the height `level`.

    It leaves and arrives leaning inward by `lean` of its rise, outward where negative.
    """
    inward = lean * np.sign(end[0] - start[0]) * np.abs(level - np.array([start[1], end[1]]))
    over, down = np.array([start[0] + inward[0], level]), np.array([end[0] - inward[1], level])
    u = np.linspace(0.0, 1.0, 500)[:, None]
    v = 1.0 - u
    curve = v**3 * start + 3.0 * v * v * u * over + 3.0 * v * u * u * down + u**3 * end
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))])
    wanted = length[-1] * np.arange(1, count + 1) / (count + 1)
    return np.stack([np.interp(wanted, length, curve[:, k]) for k in range(2)], axis=1)


def plot_distances(near: Nearness, transitions: Sequence[Transition], theme: Theme = LIGHT) -> bytes:
    """The distance of every moment to every other, dark where they are near, with the transitions as rings."""
    figure = new_figure(7.2, theme)
    axes = figure.add_subplot()
    dress(axes, theme)
    axes.grid(False)
    axes.set_title("How near the skills are to each other", pad=12, **title_style(theme))
    ends = np.cumsum([0, *(len(times) for times in near.times_s)])
    image = axes.imshow(100.0 * near.distances_m, cmap="viridis", interpolation="nearest", origin="lower")
    for end in ends[1:-1]:
        axes.axhline(end - 0.5, color=theme.paper, linewidth=1.2)
        axes.axvline(end - 0.5, color=theme.paper, linewidth=1.2)
    middles = 0.5 * (ends[:-1] + ends[1:]) - 0.5
    names = [f"{name}\n{times[-1]:.2f} s" for name, times in zip(near.skills, near.times_s, strict=True)]
    axes.set_xticks(middles, names, color=theme.ink, fontsize=NORMAL)
    axes.set_yticks(middles, names, color=theme.ink, fontsize=NORMAL, rotation=90, va="center")
    axes.set_ylabel("a transition leaves")
    axes.set_xlabel("and leads to")
    for way in transitions:
        row, column = (
            ends[near.skills.index(skill)]
            + float(np.interp(time, near.times_s[near.skills.index(skill)], _count(near, skill)))
            for skill, time in ((way.source, way.leave_s), (way.target, way.enter_s))
        )
        axes.plot(
            column, row, "o", markersize=11, markerfacecolor="none", markeredgecolor=theme.alarm, markeredgewidth=2.0
        )
    bar = figure.colorbar(image, ax=axes, shrink=0.8)
    bar.set_label("root mean square of joints' distances, cm", color=theme.muted, fontsize=SMALL)
    bar.ax.tick_params(colors=theme.muted, labelsize=SMALL, length=0)
    return png(figure)


def _count(near: Nearness, skill: str) -> Array:
    """Numbers of a skill's moments."""
    return np.arange(len(near.times_s[near.skills.index(skill)]), dtype=float)
