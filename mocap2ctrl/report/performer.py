"""The simulated body in a scene: the same pinhole sees it that saw the person."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.report.clips import sampled_frames
from mocap2ctrl.report.ground import Image
from mocap2ctrl.report.render import draw_frames
from mocap2ctrl.report.scene import Part, Scene
from mocap2ctrl.types import Array, MotionClip

SHADOW = 0.5
"""Frames hold a shadow already: the person's."""


@dataclass(frozen=True, eq=False)
class Performer:
    """A body in a scene.

    Attributes:
        character: the body.
        girth: of its shape (`BodyShape.radii_at`).
        clip: what it does, from the scene's first moment on.
    """

    character: Character
    girth: float
    clip: MotionClip

    def frames(self, scene: Scene, times_s: Array) -> tuple[Array, Array]:
        """Positions (N, S, 3) and orientations (N, S, 4) of its segments at `times_s` (N,), where the scene's camera sees them."""
        positions, orientations = sampled_frames(self.character, self.clip, times_s)
        carried = scene.silhouettes.carried(np.minimum(times_s, self.clip.duration_s))
        return positions + carried[:, None], orientations

    def draw(self, picture: Image, scene: Scene, part: Part, frames: tuple[Array, Array]) -> None:
        """Draw it with segments at `frames`, (S, 3) and (S, 4), over a picture of `part`, in place."""
        view = scene.view(part, (picture.shape[1], picture.shape[0]))
        draw_frames(picture, view, self.character, *frames, girth=self.girth, shadow=SHADOW)
