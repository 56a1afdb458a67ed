"""Every error that mocap2ctrl raises on purpose. A user's mistake is always a `Mocap2CtrlError`; anything else is a bug."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Mocap2CtrlError(Exception):
    """Root of all errors that say what was given, what is allowed and what to do."""


class CharacterError(Mocap2CtrlError):
    """A character description that is incomplete or contradicts itself."""


class MotionFileError(Mocap2CtrlError):
    """A motion file that cannot be read, or whose joints cannot be mapped."""


class JointsError(MotionFileError):
    """Joints that neither names nor shape tell.

    Attributes:
        cause: which joints, of which file, and what it has.
        source: the motion (`motion.source.SourceMotion`).
        found: the joints that were found, by part.
    """

    def __init__(self, cause: str, source: Any, found: Mapping[str, str]) -> None:
        super().__init__(f"{cause}; say which they are: inspect writes a joint map to fill in, --joint-map reads it")
        self.cause = cause
        self.source = source
        self.found = found


class VideoError(Mocap2CtrlError):
    """A video, folder or file of masks that cannot be read or shows no person to follow."""


class CameraError(Mocap2CtrlError):
    """A camera file that is missing, incomplete or contradicts the video."""


class KeypointsError(Mocap2CtrlError):
    """A file of keypoints that cannot be read, or is not of the video that it is given for."""


class PriorError(Mocap2CtrlError):
    """A pose prior that is missing, damaged or made for another character."""


class ControllerFileError(Mocap2CtrlError):
    """A `controller.json` with a wrong name, value or version."""


class CaptureError(Mocap2CtrlError):
    """A capture folder that is missing, incomplete, or would be overwritten."""


class ConfigError(Mocap2CtrlError):
    """An option or setting outside its range."""


class FitError(Mocap2CtrlError):
    """A fit that could not go on, through no fault of its input; what it has is kept."""


class EngineError(Mocap2CtrlError):
    """A physics engine that is not installed or cannot run what was asked."""


class GraphError(Mocap2CtrlError):
    """A control graph that cannot be read, does not hold together, or is for another character."""


def reversed_range(where: str, start_s: float, end_s: float) -> str:
    """What a user is told whose part ends before it begins."""
    return f"{where}: time range {start_s:g} to {end_s:g} s; the first number must be less than the second"


def past_the_end(time_range: tuple[float, float] | None, until_s: float, frame_s: float) -> tuple[str, ...]:
    """What a user is told whose part, if one was given, goes on for more than a frame after the input ends; else nothing."""
    if time_range is None or time_range[1] <= until_s + frame_s:
        return ()
    return (f"time range {time_range[0]:g} to {time_range[1]:g} s goes on after the input's end at {until_s:.2f} s",)


INTERRUPTIONS = (KeyboardInterrupt, ImportError, SystemError)
"""What Ctrl-C may arrive as: a library in C that is interrupted cannot be imported, compiled code has `an exception set`."""


def is_interruption(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
