"""mocap2ctrl: a motion goes in, a physics controller that performs it comes out.

import mocap2ctrl

result = mocap2ctrl.fit("walk.bvh", "captures/walk")
capture = mocap2ctrl.load("captures/walk")
evaluation, replay = mocap2ctrl.evaluate(capture)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["evaluate", "fit", "load", "load_character", "load_motion", "simulate"]

if TYPE_CHECKING:
    from mocap2ctrl.api import evaluate, fit, load, simulate
    from mocap2ctrl.character.model import load_character
    from mocap2ctrl.motion.load import load_motion


def __getattr__(name: str) -> Any:
    """The public API, imported when it is first used: engines and compilers take a second to load."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mocap2ctrl import api

    return getattr(api, name)
