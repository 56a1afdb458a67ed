"""Cameras from heads and feet: closed forms, stated uncertainties, and what is no head and no standing person."""

from __future__ import annotations

from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from mocap2ctrl.geometry.camera import camera_centre, project, world_to_camera
from mocap2ctrl.types import Camera
from mocap2ctrl.video.calibration.estimate import (
    ASTRIDE,
    ASTRIDE_DEEP,
    FOCAL,
    FOCAL_SPREAD,
    LENS_M,
    LENS_SPREAD,
    MASK_PX,
    ROLL_SPREAD,
    TILT,
    TILT_SPREAD,
    UPRIGHT,
    WALKS_M_S,
    camera_of_stances,
    estimated_camera,
)
from mocap2ctrl.video.calibration.ground_view import GroundView
from mocap2ctrl.video.calibration.heads_and_feet import Stances, stances
from mocap2ctrl.video.calibration.metadata import FILM_MM, focal_from_metadata
from mocap2ctrl.video.camera_file import camera_for_size, load_camera
from mocap2ctrl.video.extract import from_video

SIZE = (1280, 720)
HEIGHT_M = 1.75
USUAL = GroundView(FOCAL, LENS_M, TILT, 0.0)


def people(camera: Camera, places: np.ndarray, height_m: float = HEIGHT_M) -> Stances:
    """People who stand still at places (N, 2) on the ground, as long as a window."""
    away = places - camera_centre(camera)[:2]
    away = away / np.linalg.norm(away, axis=1, keepdims=True)
    sole = places - (ASTRIDE + 0.5 * ASTRIDE_DEEP) * height_m * away
    feet = project(camera, np.column_stack([sole, np.zeros(len(places))]))
    head = project(camera, np.column_stack([places, np.full(len(places), UPRIGHT * height_m)]))
    still = np.zeros(len(places))
    return Stances(head, feet, feet[:, 1] - head[:, 1], still, still, np.arange(len(places)) * 0.4)


def ground(rng: np.random.Generator, count: int = 10) -> np.ndarray:
    return rng.uniform([-1.5, 4.0], [1.5, 9.0], (count, 2))


def test_view_is_the_camera_that_it_says() -> None:
    camera = GroundView(0.9, 1.5, 0.2, 0.05).camera(SIZE, "x")
    assert camera_centre(camera) == pytest.approx([0.0, 0.0, 1.5])
    right, _, forward = world_to_camera(camera)
    assert np.arcsin(-forward[2]) == pytest.approx(0.2)
    assert forward[0] == pytest.approx(0.0)
    assert camera.matrix[0, 0] == pytest.approx(0.9 * 1280)
    assert right[2] == pytest.approx(-np.sin(0.05) * np.cos(0.2))  # rolled clockwise: its right side points down
    assert GroundView(0.5, 1.0, 0.0, 0.0).field_of_view_deg((100, 50)) == pytest.approx(90.0)


def test_a_usual_camera_is_found_exactly() -> None:
    seen = people(USUAL.camera(SIZE, "x"), ground(np.random.default_rng(1)))
    assert np.allclose(camera_of_stances(seen, SIZE).view, USUAL, atol=2e-3)


def test_an_unusual_camera_is_found_from_people_near_and_far() -> None:
    view = GroundView(1.25, 2.1, np.radians(16.0), np.radians(3.0))
    seen = people(view.camera(SIZE, "x"), ground(np.random.default_rng(2), 40))
    found = camera_of_stances(seen, SIZE)
    assert found.view.focal == pytest.approx(view.focal, rel=0.15)
    assert np.degrees(found.view.tilt) == pytest.approx(16.0, abs=2.0)
    assert np.degrees(found.view.roll) == pytest.approx(3.0, abs=0.7)
    assert found.view.height_m == pytest.approx(view.height_m, rel=0.05)
    assert found.spread.focal < 0.7 * FOCAL_SPREAD  # people have told what was not known before


def test_spread_is_what_errors_are() -> None:
    """Cameras drawn from what is usual, heads and feet with noise: errors in standard deviations are about normal."""
    rng, off = np.random.default_rng(3), []
    while len(off) < 24:
        view = GroundView(
            FOCAL * float(np.exp(rng.normal(0, FOCAL_SPREAD))),
            LENS_M * float(np.exp(rng.normal(0, LENS_SPREAD))),
            float(rng.normal(TILT, TILT_SPREAD)),
            float(rng.normal(0, ROLL_SPREAD)),
        )
        exact = people(view.camera(SIZE, "x"), ground(rng))
        noise = [rng.normal(0, s, exact.head.shape) * exact.tall_px[:, None] for s in (0.02, 0.004)]
        seen = exact._replace(
            head=exact.head + noise[0] + rng.normal(0, MASK_PX, noise[0].shape), feet=exact.feet + noise[1]
        )
        found = camera_of_stances(seen, SIZE)
        error = np.array(found.view) - np.array(view)
        error[0] /= view.focal
        off.append(error / np.array(found.spread))
    within = np.abs(off)
    assert np.all(np.mean(within < 2.0, axis=0) >= 0.8)
    assert np.all(np.mean(within < 0.5, axis=0) <= 0.75)  # and no larger than need be


def test_length_is_told_by_the_body_alone() -> None:
    seen = people(USUAL.camera(SIZE, "x"), ground(np.random.default_rng(4)))
    small, large = (camera_of_stances(seen, SIZE, height_m=h) for h in (1.5, 2.0))
    assert large.distance_m / small.distance_m == pytest.approx(2.0 / 1.5, rel=0.05)
    unknown = camera_of_stances(seen, SIZE)
    assert unknown.distance_spread_m > camera_of_stances(seen, SIZE, height_m=1.75).distance_spread_m


def test_known_lens_is_believed() -> None:
    seen = people(USUAL.camera(SIZE, "x"), ground(np.random.default_rng(5), 4))
    found = camera_of_stances(seen, SIZE, focal=1.2)
    assert found.view.focal > 1.05
    assert found.spread.focal < 0.08


def body(tall: int = 200, arms: bool = False) -> np.ndarray:
    """(400, 300) a standing figure, its feet in row 349."""
    mask, top, x = np.zeros((400, 300), np.uint8), 350 - tall, 150
    cv2.ellipse(mask, (x, top + round(0.065 * tall)), (round(0.045 * tall), round(0.065 * tall)), 0, 0, 360, 1, -1)
    cv2.rectangle(
        mask, (x - round(0.11 * tall), top + round(0.15 * tall)), (x + round(0.11 * tall), top + tall // 2), 1, -1
    )
    for side in (-1, 1):
        leg = x + side * round(0.07 * tall)
        cv2.rectangle(mask, (leg - round(0.04 * tall), top + tall // 2), (leg + round(0.04 * tall), 349), 1, -1)
        if arms:
            arm = x + side * round(0.13 * tall)
            cv2.rectangle(mask, (arm - 4, top - round(0.15 * tall)), (arm + 4, top + round(0.25 * tall)), 1, -1)
    return mask > 0


@pytest.mark.parametrize("arms", [False, True])
def test_head_is_no_raised_arm(arms: bool) -> None:
    found = stances(np.repeat(body(arms=arms)[None], 20, axis=0), 25.0)
    assert found is not None
    assert found.head[0] == pytest.approx([150.0, 149.5], abs=3.0)
    assert found.feet[0] == pytest.approx([150.0, 349.5], abs=0.6)


def test_who_lies_crouches_or_is_cut_off_does_not_stand() -> None:
    standing, crouching = body(), body(140)
    assert stances(np.stack([standing.T[:300, :300]] * 20), 25.0) is None
    assert stances(np.stack([standing[160:]] * 20), 25.0) is None  # without a head
    both = stances(np.stack([standing] * 20 + [crouching] * 10 + [standing] * 20), 25.0)
    assert both is not None
    assert np.ptp(both.tall_px) < 4.0


def test_nobody_upright_leaves_what_is_usual() -> None:
    found = estimated_camera(np.stack([body().T[:300, :300]] * 20), 25.0)
    assert found.assumed
    assert found.spread.focal == pytest.approx(FOCAL_SPREAD, rel=0.1)
    standing = estimated_camera(np.stack([body()] * 20), 25.0)
    assert not standing.assumed
    assert standing.distance_spread_m < found.distance_spread_m / found.distance_m * standing.distance_m


def test_speed_of_a_walk_tells_depth() -> None:
    """Somebody who walks straight to the camera: how far, only the focal length says, or that people walk so fast."""
    times = np.arange(8) * 0.4
    camera = USUAL.camera(SIZE, "x")
    found = {}
    for speed in (0.9, 1.5):
        assert WALKS_M_S[0] < speed < WALKS_M_S[1]
        seen = people(camera, np.column_stack([0 * times, 8.0 - speed * times]))
        growth = np.gradient(np.log(seen.tall_px), times)
        found[speed] = camera_of_stances(seen._replace(growth=growth), SIZE).view.focal
    assert found[1.5] < FOCAL < found[0.9]


@pytest.mark.parametrize(
    ("tag", "focal"),
    [
        (("com.apple.quicktime.camera.focal_length.35mm_equivalent", "26"), 26 / FILM_MM),
        (("FocalLengthIn35mmFormat", "52.0 mm"), 52 / FILM_MM),
        (("FocalLengthIn35mmFormat", "0"), None),
        (("comment", "26"), None),
    ],
)
def test_lens_in_the_container(tmp_path: Path, tag: tuple[str, str], focal: float | None) -> None:
    path = tmp_path / "v.mov"
    with av.open(str(path), "w", options={"movflags": "use_metadata_tags"}) as container:
        container.metadata.update([tag])
        stream = container.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        container.mux(stream.encode(av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8))))
        container.mux(stream.encode(None))
    assert focal_from_metadata(path) == (None if focal is None else pytest.approx(focal))
    assert focal_from_metadata(tmp_path / "none.mov") is None


DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.mark.parametrize("name", ["denis_walk", "ido_bend", "lyova_jack", "denis_wave2", "ira_pjump"])
def test_real_masks_have_a_camera_that_can_be(name: str) -> None:
    """Nobody has calibrated it; who bends, spreads the limbs or jumps must not be taken for somebody who goes away."""
    file = DATA / "silhouettes" / "weizmann_dev_4actors.npz"
    if not file.is_file():
        pytest.skip(f"needs {file}, which is not shipped")
    with np.load(file) as data:
        found = estimated_camera(data[name], 25.0)
    assert not found.assumed
    assert 0.6 < found.view.focal < 1.2
    assert 0.9 < found.view.height_m < 2.3
    assert 2.5 < found.distance_m < 6.0


def test_real_calibrated_footage() -> None:
    """A camera that looks down from above the head at somebody who leans all the time: the lens is told, the tilt is not."""
    video = DATA / "video" / "pose2sim_cam03_balancing.mp4"
    if not video.is_file():
        pytest.skip(f"needs {video}, which is not shipped")
    seen = from_video(video, fps=15.0)
    size = (seen.masks.shape[2], seen.masks.shape[1])
    true = camera_for_size(load_camera(f"{DATA / 'reference3d' / 'pose2sim_Calib_qualisys.toml'}:cam_03"), size)
    found = estimated_camera(seen.masks, seen.fps)
    assert true.matrix[0, 0] / max(size) == pytest.approx(found.view.focal, rel=2.5 * found.spread.focal)
