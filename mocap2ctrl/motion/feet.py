"""How well the feet of a retargeted motion stand: slide and height while in contact, before and after they were planted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mocap2ctrl.character.kinematics import segment_frames
from mocap2ctrl.character.model import SIDES, Character
from mocap2ctrl.motion.inverse_kinematics import State
from mocap2ctrl.motion.runs import runs
from mocap2ctrl.motion.soles import sole_heights, sole_middles, soles
from mocap2ctrl.types import Array, Masks


@dataclass(frozen=True)
class Standing:
    """What heels and balls do while they stand, averaged over contacts; None where nothing stands.

    Attributes:
        slide_cm_s: their speed along the ground.
        height_mm: distance of their lowest points from the ground, above or below.
        sinks_mm: how far they are below it, 0 counted where they are not.
    """

    slide_cm_s: float | None
    height_mm: float | None
    sinks_mm: float | None

    def scaled(self, size: float) -> Standing:
        """The same of a body that is `size` times as tall."""
        slide, height, sinks = (v if v is None else size * v for v in (self.slide_cm_s, self.height_mm, self.sinks_mm))
        return Standing(slide, height, sinks)


@dataclass(frozen=True)
class Feet:
    """The feet of a retargeted motion.

    Attributes:
        before, after: they were planted.
        contacts: for the left and the right foot, start and end in seconds of each time that heel or ball stands, from the
            first frame on, or on the clock of the file after `later`.
    """

    before: Standing
    after: Standing
    contacts: tuple[tuple[tuple[float, float], ...], ...]

    def __str__(self) -> str:
        """One sentence; empty where nothing stands."""
        b, a = self.before, self.after
        if b.slide_cm_s is None or a.slide_cm_s is None or b.height_mm is None or a.height_mm is None:
            return ""
        return (
            f"feet that stand: slide {b.slide_cm_s:.1f} → {a.slide_cm_s:.1f} cm/s, "
            f"off the ground {b.height_mm:.1f} → {a.height_mm:.1f} mm"
        )

    def scaled(self, size: float) -> Feet:
        """The same of a body that is `size` times as tall."""
        return Feet(self.before.scaled(size), self.after.scaled(size), self.contacts)

    def later(self, seconds: float) -> Feet:
        """The same with a clock that shows `seconds` at the first frame."""
        contacts = tuple(tuple((start + seconds, end + seconds) for start, end in spans) for spans in self.contacts)
        return Feet(self.before, self.after, contacts)


def feet_of(character: Character, before: State, after: State, standing: Masks, fps: float) -> Feet:
    """Measures the feet of a motion; `standing` (T, 2, 2) says when heel and ball of the left and right foot stand."""
    any_part = np.any(standing, axis=2)
    contacts = tuple(
        tuple((first / fps, (last - 1) / fps) for first, last in runs(any_part[:, side])) for side in range(len(SIDES))
    )
    return Feet(measured(character, before, standing, fps), measured(character, after, standing, fps), contacts)


def measured(character: Character, state: State, standing: Masks, fps: float) -> Standing:
    """Slide and height of the parts of the feet that stand."""
    return standing_of(traces(character, state, fps), standing)


def traces(character: Character, state: State, fps: float) -> tuple[Array, Array]:
    """Heights (T, 2, 2) in metres, and speeds (T - 1, 2, 2) along the ground in m/s, of heel and ball of both feet."""
    positions, orientations = segment_frames(character, *state)
    heights = np.stack([sole_heights(sole, positions, orientations) for sole in soles(character)], axis=1)
    middles = np.stack([sole_middles(sole, positions, orientations) for sole in soles(character)], axis=1)
    return heights, fps * np.linalg.norm(np.diff(middles[..., :2], axis=0), axis=-1)


def standing_of(traced: tuple[Array, Array], standing: Masks) -> Standing:
    """The same of `traces`."""
    heights, speeds = traced
    touching = heights[standing]
    return Standing(
        _mean(100.0 * speeds[standing[1:] & standing[:-1]]),
        _mean(1000.0 * np.abs(touching)),
        _mean(1000.0 * np.maximum(-touching, 0.0)),
    )


def _mean(values: Array) -> float | None:
    return float(np.mean(values)) if len(values) else None
