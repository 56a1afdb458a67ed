"""Travelling, staying and stepping in place, on drawn people whose feet are known, and on real masks where they are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from mocap2ctrl.errors import ConfigError
from mocap2ctrl.geometry.camera import project
from mocap2ctrl.types import Camera, Masks, Silhouettes
from mocap2ctrl.video.belt import belt_choice, on_belt
from mocap2ctrl.video.foot_slide import foot_slide, slide_at
from mocap2ctrl.video.silhouettes import LoadedSilhouettes
from mocap2ctrl.video.travel import Travel, travel_of

FPS, SECONDS = 30.0, 1.8
STRIDE_S, STANCE = 0.8, 0.6
CAMERA = Camera(
    "side",
    (200, 170),
    [[300.0, 0.0, 99.5], [0.0, 300.0, 70.0], [0.0, 0.0, 1.0]],
    [np.pi / 2.0, 0.0, 0.0],
    [0.0, 1.1, 4.0],
)
"""Level, 1.1 m high, looking along y from 4 m: 75 pixels a metre."""
WEIZMANN = Path(__file__).resolve().parents[3] / "shared" / "data" / "silhouettes" / "weizmann_dev_4actors.npz"

Feet = Callable[[float, int], tuple[float, float]]
"""Of a time and a side (0, 1): how far a foot is ahead of the body and above the ground, metres."""


def on_the_spot(speed: float) -> Feet:
    """Feet that go back steadily while they stand, and come forward through the air."""

    def feet(time_s: float, side: int) -> tuple[float, float]:
        phase = (time_s / STRIDE_S + 0.5 * side) % 1.0
        reach = 0.5 * speed * STRIDE_S * STANCE
        if phase < STANCE:
            return reach * (1.0 - 2.0 * phase / STANCE), 0.0
        swing = (phase - STANCE) / (1.0 - STANCE)
        return -reach * np.cos(np.pi * swing), 0.25 * np.sin(np.pi * swing)

    return feet


def marching(time_s: float, side: int) -> tuple[float, float]:
    lift = max(0.0, np.sin(2.0 * np.pi * (time_s / STRIDE_S + 0.5 * side)))
    return 0.15 * lift, 0.3 * lift


def jumping_jack(time_s: float, side: int) -> tuple[float, float]:
    spread = 0.5 - 0.5 * np.cos(2.0 * np.pi * time_s / STRIDE_S)
    return (1.0 if side else -1.0) * (0.1 + 0.3 * spread), 0.08 * abs(np.sin(2.0 * np.pi * time_s / STRIDE_S))


def standing(time_s: float, side: int) -> tuple[float, float]:
    return 0.1 if side else -0.1, 0.0


def drawn(feet: Feet, velocity: float = 0.0, camera: Camera = CAMERA, start: float = 0.0) -> Silhouettes:
    """A person of boxes in the plane y = 0, who goes with `velocity` from x = `start`."""
    times = np.arange(round(SECONDS * FPS)) / FPS
    masks = np.stack([_picture(feet, t, start + velocity * t, camera) for t in times])
    return Silhouettes("drawn", FPS, masks, camera)


def _picture(feet: Feet, time_s: float, x: float, camera: Camera) -> Masks:
    image = np.zeros(camera.size[::-1], np.uint8)

    def fill(*corners: tuple[float, float]) -> None:
        pixels = project(camera, [(x + a, 0.0, z) for a, z in corners])
        cv2.fillPoly(image, [np.rint(16.0 * pixels).astype(np.int32)], 1, shift=4)

    fill((-0.16, 0.85), (0.16, 0.85), (0.16, 1.45), (-0.16, 1.45))
    fill((-0.1, 1.45), (0.1, 1.45), (0.1, 1.75), (-0.1, 1.75))
    for side in (0, 1):
        ahead, up = feet(time_s, side)
        fill((-0.12, 0.95), (0.12, 0.95), (ahead + 0.05, up + 0.08), (ahead - 0.05, up + 0.08))
        fill((ahead - 0.1, up), (ahead + 0.16, up), (ahead + 0.05, up + 0.1), (ahead - 0.08, up + 0.1))
    return image.astype(bool)


def loaded(silhouettes: Silhouettes) -> LoadedSilhouettes:
    return LoadedSilhouettes(silhouettes, None, silhouettes.camera, (), ())


@pytest.mark.parametrize("speed", [0.8, 1.4, 2.5, -1.4])
def test_the_belt_goes_as_fast_as_the_feet(speed: float) -> None:
    found = travel_of(drawn(on_the_spot(speed)))
    assert (found.kind, found.travels) == ("steps in place", False)
    assert found.ground_velocity[0] == pytest.approx(-speed, rel=0.06)
    assert abs(found.ground_velocity[1]) < 0.1 * abs(speed)
    assert found.speed_m_s == pytest.approx(np.linalg.norm(found.ground_velocity))
    assert f"{found.speed_m_s:.1f} m/s" in found.evidence


def test_the_belt_is_in_the_world_of_its_camera() -> None:
    """The same picture by a camera that is turned about the vertical: the belt is turned as well."""
    turn = cv2.Rodrigues(np.array([0.0, 0.0, 0.7]))[0]
    matrix = cv2.Rodrigues(np.array(CAMERA.rotation))[0] @ turn.T
    seen = drawn(on_the_spot(1.4))
    turned = replace(seen, camera=replace(CAMERA, rotation=cv2.Rodrigues(matrix)[0].ravel()))
    expected = turn[:2, :2] @ travel_of(seen).ground_velocity
    np.testing.assert_allclose(travel_of(turned).ground_velocity, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("feet", "velocity", "kind", "travels"),
    [
        (standing, 0.0, "in place", False),
        (jumping_jack, 0.0, "in place", False),
        (marching, 0.0, "steps in place", False),
        (on_the_spot(0.8), 0.8, "travels", True),
        (standing, 0.5, "travels", True),
    ],
)
def test_who_is_on_no_belt(feet: Feet, velocity: float, kind: str, travels: bool) -> None:
    found = travel_of(drawn(feet, velocity, start=-0.4 * velocity * SECONDS))
    assert (found.kind, found.travels) == (kind, travels)
    assert not found.ground_velocity.any()
    assert found.speed_m_s == pytest.approx(velocity, abs=0.1)


def test_who_drifts_on_a_belt_is_still_on_it() -> None:
    """The feet go back at 1.5 m/s from a body that comes forward at 0.5: the belt makes 1 m/s."""
    found = travel_of(drawn(on_the_spot(1.5), 0.5, start=-0.4))
    assert found.kind == "steps in place"
    assert found.ground_velocity[0] == pytest.approx(-1.0, rel=0.1)


def test_standing_feet_show_that_the_ground_rests() -> None:
    """Also of somebody who travels: soles that stand do not move."""
    slide = foot_slide(drawn(on_the_spot(0.8), 0.8, start=-0.8))
    assert slide is not None
    assert abs(slide.velocity[0]) < 0.1


@pytest.mark.parametrize("frames", [1, 8])
def test_too_little_tells_nothing(frames: int) -> None:
    seen = drawn(standing)
    found = travel_of(replace(seen, masks=seen.masks[:frames]))
    assert (found.kind, found.travels, found.speed_m_s) == ("unknown", None, 0.0)
    empty = replace(seen, masks=np.zeros_like(seen.masks))
    assert travel_of(empty).travels is None
    assert foot_slide(empty) is None


def test_a_belt_is_taken_offered_or_left_out() -> None:
    runs, marches = loaded(drawn(on_the_spot(1.4))), loaded(drawn(marching))
    taken = on_belt(runs, "auto")
    assert taken.silhouettes.ground_velocity[0] == pytest.approx(-1.4, rel=0.06)
    assert "moving belt is taken as ground; --belt none" in taken.notes[-1]
    refused = on_belt(runs, "none")
    assert not refused.silhouettes.ground_velocity.any()
    speed = travel_of(runs.silhouettes).speed_m_s
    assert f"--belt {speed:.1f} if it is a treadmill" in refused.notes[-1]
    offered = on_belt(marches, "auto")
    assert not offered.silhouettes.ground_velocity.any()
    assert "--belt SPEED if it is a treadmill" in offered.notes[-1]
    assert on_belt(loaded(drawn(standing)), "auto").notes == ()


@pytest.mark.parametrize(("speed", "side"), [(1.4, -1.0), (-1.4, 1.0)])
def test_a_belt_of_known_speed_goes_where_the_feet_go(speed: float, side: float) -> None:
    seen = drawn(on_the_spot(speed))
    velocity = slide_at(seen, 1.6)
    assert np.linalg.norm(velocity) == pytest.approx(1.6)
    assert velocity[0] * side > 0.98 * 1.6
    told = on_belt(loaded(seen), 1.6)
    np.testing.assert_array_equal(told.silhouettes.ground_velocity, velocity)
    assert f"1.6 m/s as told, to the {'right' if side > 0 else 'left'}" in told.notes[-1]


def test_a_belt_must_be_auto_none_or_a_speed() -> None:
    assert [belt_choice(said) for said in ("auto", "none", "2.5", 3)] == ["auto", "none", 2.5, 3.0]
    for wrong in ("fast", "0", "-1", "nan", 40.0):
        with pytest.raises(ConfigError, match="allowed are auto, none, or a speed from"):
            belt_choice(wrong)


def test_a_travel_holds_plain_values() -> None:
    found = Travel("in place", 0.0, np.zeros(2), "stays")
    assert not found.ground_velocity.flags.writeable
    assert found.travels is False


@pytest.mark.skipif(not WEIZMANN.is_file(), reason="the Weizmann masks are not beside the project")
def test_real_masks_travel_or_stay() -> None:
    """One actor, all actions, by a camera as of a person of 1.75 m at 8 m."""
    stays = ("bend", "jack", "pjump", "wave1", "wave2")
    with np.load(WEIZMANN) as data:
        for name in (key for key in data.files if key.startswith("ido_")):
            masks = data[name]
            focal, high = 70.0 * 8.0 / 1.75, masks.any(axis=(0, 2)).nonzero()[0].max()
            matrix = [[focal, 0.0, 89.5], [0.0, focal, 71.5], [0.0, 0.0, 1.0]]
            camera = Camera("assumed", (180, 144), matrix, CAMERA.rotation, [0.0, (high - 71.5) * 8.0 / focal, 8.0])
            found = travel_of(Silhouettes(name, 25.0, masks, camera))
            assert found.kind == ("in place" if name.endswith(stays) else "travels"), name
            assert not found.ground_velocity.any()
