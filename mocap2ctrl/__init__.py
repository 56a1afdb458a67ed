"""mocap2ctrl: a video or a motion goes in, a physics controller that performs the motion comes out.

import mocap2ctrl

result = mocap2ctrl.fit("walk.mp4", "captures/walk")
capture = mocap2ctrl.load("captures/walk")
evaluation, replay = mocap2ctrl.evaluate(capture)
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "convert",
    "evaluate",
    "export_mjcf",
    "export_motion",
    "fit",
    "inspect",
    "load",
    "load_character",
    "load_motion",
    "push_test",
    "simulate",
]

if TYPE_CHECKING:
    from mocap2ctrl.api import evaluate, export_mjcf, fit, inspect, load, simulate
    from mocap2ctrl.character.model import load_character
    from mocap2ctrl.evaluation.convert import convert
    from mocap2ctrl.evaluation.export import export_motion
    from mocap2ctrl.evaluation.push_test import push_test
    from mocap2ctrl.motion.load import load_motion


def __getattr__(name: str) -> Any:
    """The public API, imported when it is first used: engines and compilers take a second to load."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mocap2ctrl import api

    return getattr(api, name)


class _Package(ModuleType):
    """Keeps `mocap2ctrl.fit` the function: the import system would bind the folder `fit/` here under the same name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
