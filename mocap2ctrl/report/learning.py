"""The learning curve: how long a graph resists, iteration by iteration (Liu 2016, Fig. 6). Returns the bytes of a PNG."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.ticker import MaxNLocator

from mocap2ctrl.report.style import LIGHT, Theme, dress, legend, new_figure, png, title_style
from mocap2ctrl.samcon.guided import Iteration


def plot_learning(history: Sequence[Iteration], theme: Theme = LIGHT) -> bytes:
    """Mean time to a fall against iteration, under growing pushes and undisturbed."""
    figure = new_figure(3.5, theme)
    axes = figure.add_subplot()
    dress(axes, theme)
    axes.set_title("Resisting time over the iterations", pad=24, **title_style(theme))
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
    axes.set_ylim(bottom=0.0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("iteration")
    axes.set_ylabel("mean time to a fall, s")
    legend(figure, theme, axes.get_legend_handles_labels()[0])
    return png(figure)
