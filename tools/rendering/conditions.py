"""What changes while the camera runs: its exposure, a cloud before the sun, leaves in the wind; and how noisy its sensor is."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from mocap2ctrl.types import Array
from rendering.scenery import Scene

LIGHTS = ("drift", "cloud")
DRIFT, DRIFT_PERIOD_S = 0.2, 2.6
"""The exposure swings by this share, as an automatic one does."""
CLOUD, CLOUD_WIDTH, CLOUD_SPEED = 0.55, 0.35, 0.6
"""The share of the sun's light that a cloud takes; its soft edge, and its speed a second, in widths of the picture."""
SWAY_HZ, SWAY_WAVES = 0.9, 9.0
"""How often leaves sway, and how many waves there are across the picture."""


@dataclass(frozen=True)
class Conditions:
    """How a shot's surroundings change.

    Attributes:
        light: which of LIGHTS there are.
        sway_px: how far what is not ground sways to each side, pixels.
        noise: of the sensor, times the usual.
    """

    light: tuple[str, ...] = ()
    sway_px: float = 0.0
    noise: float = 1.0

    def exposure(self, time_s: float) -> float:
        """What the exposure is multiplied by."""
        return float(np.exp(DRIFT * np.sin(2 * np.pi * time_s / DRIFT_PERIOD_S))) if "drift" in self.light else 1.0

    def scene_at(self, scene: Scene, time_s: float) -> Scene:
        """The scene in the wind and under the cloud. The person's own sun stays: a cloud's edge is wider than a body."""
        if self.sway_px:
            scene = self._swayed(scene, time_s)
        if "cloud" in self.light:
            across = np.linspace(0.0, 1.0, scene.sun.shape[1])[None, :, None]
            covered = np.clip((CLOUD_SPEED * time_s - across) / CLOUD_WIDTH + 0.5, 0.0, 1.0)
            scene = replace(scene, sun=scene.sun * (1.0 - CLOUD * covered * covered * (3.0 - 2.0 * covered)))
        return scene

    def _swayed(self, scene: Scene, time_s: float) -> Scene:
        height, width = scene.sun.shape[:2]
        y, x = np.mgrid[:height, :width].astype(np.float32)
        leaves = scene.places[..., 2] > 0.5
        phase = 2 * np.pi * (SWAY_HZ * time_s + SWAY_WAVES * (x / width + 0.6 * y / width))
        across = np.asarray(x + leaves * self.sway_px * np.sin(phase), np.float32)
        down = np.asarray(y + leaves * 0.5 * self.sway_px * np.cos(1.3 * phase), np.float32)
        return replace(scene, sun=_moved(scene.sun, across, down), sky=_moved(scene.sky, across, down))


def _moved(image: Array, across: Array, down: Array) -> Array:
    return np.asarray(cv2.remap(image, across, down, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT))
