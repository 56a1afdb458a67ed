"""A track that goes backwards, or that does not cover what was seen, is doubted."""

from __future__ import annotations

import numpy as np
import pytest

from mocap2ctrl.character.model import load_character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.track.doubts import facing_aside_deg, track_doubts
from mocap2ctrl.types import MotionClip

FPS = 30.0


def going(facing_deg: float, speed: float = 1.2, seconds: float = 2.0) -> MotionClip:
    """A root that goes along x, sways, and faces aside."""
    times = np.arange(round(seconds * FPS)) / FPS
    position = np.stack([speed * times, 0.02 * np.sin(12.0 * times), np.full(len(times), 0.9)], axis=-1)
    turned = rotations.about_axis([0.0, 0.0, 1.0], np.full(len(times), np.radians(facing_deg)))
    angles = np.zeros((len(times), len(load_character().hinges)))
    return MotionClip("walk", FPS, position, turned, angles)


@pytest.mark.parametrize("facing", [0.0, 30.0, -90.0, 175.0, 190.0])
def test_the_angle_between_facing_and_way(facing: float) -> None:
    expected = abs((facing + 180.0) % 360.0 - 180.0)
    assert facing_aside_deg(going(facing)) == pytest.approx(expected, abs=8.0)
    assert facing_aside_deg(going(facing, speed=0.1)) == 0.0


def test_what_is_told() -> None:
    assert track_doubts(going(20.0), 0.85) == ()
    (backwards,) = track_doubts(going(180.0), 0.85)
    assert "180° away" in backwards
    assert "backwards" in backwards
    assert "sideways" in track_doubts(going(90.0), 0.85)[0]
    assert "0.55 only" in track_doubts(going(0.0), 0.55)[0]
