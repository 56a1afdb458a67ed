"""The learning curve: how long a graph resists, iteration by iteration (Liu 2016, Fig. 6). Returns the bytes of a PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from mocap2ctrl.report.style import LIGHT, Theme, dress, legend, new_figure, png, title_style
from mocap2ctrl.samcon.guided import Iteration


def plot_learning(histories: Mapping[str, Sequence[Iteration]], theme: Theme = LIGHT) -> bytes:
    """Mean time to a fall against iteration, under growing pushes and undisturbed; of each part of a graph by its name."""
    figure = new_figure(3.5, theme)
    panels = figure.subplots(1, len(histories), sharey=True, squeeze=False)[0]
    for axes, (name, history) in zip(panels, histories.items(), strict=True):
        dress(axes, theme)
        axes.set_title(name or "Resisting time over the iterations", pad=24, **title_style(theme))
        _draw(axes, history, theme)
    panels[0].set_ylim(bottom=0.0)
    panels[0].set_ylabel("mean time to a fall, s")
    legend(figure, theme, panels[0].get_legend_handles_labels()[0])
    return png(figure)


def _draw(axes: Axes, history: Sequence[Iteration], theme: Theme) -> None:
    numbers = [iteration.number for iteration in history]
    for colour, (label, values) in zip(
        theme.series,
        (
            ("under growing pushes", [i.pushed_s for i in history]),
            ("undisturbed", [i.undisturbed_s for i in history]),
        ),
        strict=False,
    ):
        axes.plot(numbers, values, color=colour, marker="o", markersize=4, linewidth=1.8, label=label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("iteration")
