"""A window with one frame of a video, in which a user clicks joints."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mocap2ctrl.video.decode import Image

BACKENDS = ("tkagg", "qtagg", "gtk4agg", "gtk3agg", "wxagg", "macosx")
HELP = "left: here · right: cannot be seen · backspace: once more · enter or close: done"


class NoScreenError(Exception):
    """There is no screen, or no toolkit for windows on it."""


class Clicks:
    """The joints that were clicked on a figure, one after the other.

    Attributes:
        pixels: joint to (x, y) of the frame, pixels.
    """

    def __init__(self, figure: Figure, image: Image, names: Sequence[str]) -> None:
        self.pixels: dict[str, tuple[float, float]] = {}
        self.done = not names
        self._names, self._next, self._marks = names, 0, dict[str, Any]()
        self._canvas = figure.canvas
        self._axes = figure.add_axes((0.02, 0.02, 0.96, 0.9))
        self._axes.imshow(image)
        self._axes.set_axis_off()
        self._canvas.mpl_connect("button_press_event", self._on_click)
        self._canvas.mpl_connect("key_press_event", self._on_key)
        self._ask()

    def _ask(self) -> None:
        self.done = self._next >= len(self._names)
        what = "all joints: press enter" if self.done else self._names[self._next].replace("_", " ")
        self._axes.set_title(f"{what}\n{HELP}", fontsize=10)
        self._canvas.draw_idle()

    def _on_click(self, event: Any) -> None:
        if self.done or event.inaxes is not self._axes:
            return
        name = self._names[self._next]
        if event.button == 1:
            self.pixels[name] = (float(event.xdata), float(event.ydata))
            (self._marks[name],) = self._axes.plot(event.xdata, event.ydata, "o", mfc="none", mec="red")
        self._next += 1
        self._ask()

    def _on_key(self, event: Any) -> None:
        if event.key == "backspace" and self._next > 0:
            self._next -= 1
            self.pixels.pop(self._names[self._next], None)
            mark = self._marks.pop(self._names[self._next], None)
            if mark is not None:
                mark.remove()
            self._ask()
        elif event.key == "enter" and self._canvas.manager is not None:
            self._canvas.manager.destroy()


def clicked_joints(image: Image, names: Sequence[str], title: str) -> dict[str, tuple[float, float]]:
    """Shows the frame until its window is closed; returns the pixels of the joints that were clicked.

    Raises:
        NoScreenError: no window can be shown.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 10.0 * image.shape[0] / image.shape[1] / 0.9))
    manager = _window(figure)
    manager.set_window_title(title)
    clicks = Clicks(figure, image, names)
    manager.show()
    manager.start_main_loop()
    return clicks.pixels


def _window(figure: Figure) -> Any:
    """The figure's window, by the first toolkit that works here."""
    for name in BACKENDS:
        try:
            backend = importlib.import_module(f"matplotlib.backends.backend_{name}")
            return backend.FigureCanvas.new_manager(figure, 1)
        except Exception:  # toolkits that are absent, or find no screen, raise what they like
            continue
    raise NoScreenError
