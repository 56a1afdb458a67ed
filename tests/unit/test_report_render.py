"""The renderer draws the body where the camera says it is, and the video holds what was asked for."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from mocap2ctrl.character import Character, load_character
from mocap2ctrl.character.kinematics import centre_of_mass, segment_frames
from mocap2ctrl.errors import ConfigError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.report.camera import VirtualCamera, camera_path, parting
from mocap2ctrl.report.clips import joint_error, sample
from mocap2ctrl.report.contact_sheet import PANEL, contact_sheet
from mocap2ctrl.report.ground import background
from mocap2ctrl.report.overlay import overlay_frames, panels, write_overlay
from mocap2ctrl.report.render import LEFT_COLOUR, RIGHT_COLOUR, _intersect, draw_frames, render
from mocap2ctrl.types import MotionClip, Pose

STRIDE_HZ = 0.9


@pytest.fixture(scope="module")
def character() -> Character:
    return load_character()


def walk(character: Character, seconds: float, fps: float, *, speed: float = 1.2, phase: float = 0.0) -> MotionClip:
    """A walk-like motion made of sines."""
    times = np.arange(round(seconds * fps) + 1) / fps
    swing = 2.0 * np.pi * STRIDE_HZ * times + phase
    angles = np.zeros((len(times), len(character.hinges)))
    for side, offset in (("left", 0.0), ("right", np.pi)):
        angles[:, character.hinge_names.index(f"{side}_thigh.flexion")] = 0.15 + 0.45 * np.sin(swing + offset)
        angles[:, character.hinge_names.index(f"{side}_shank.flexion")] = 0.4 + 0.3 * np.sin(swing + offset + 1.2)
        angles[:, character.hinge_names.index(f"{side}_upper_arm.flexion")] = -0.4 * np.sin(swing + offset)
    height = np.full_like(times, character.standing_height_m)
    position = np.stack([speed * times, 0.0 * times, height], axis=1)
    orientation = np.tile([1.0, 0.0, 0.0, 0.0], (len(times), 1))
    return MotionClip("walk", fps, position, orientation, angles)


def camera_for(character: Character, pose: Pose, size: tuple[int, int] = (200, 240)) -> VirtualCamera:
    root = np.tile(pose.root_position, (2, 1))
    return camera_path(root, root, height_m=character.height_m, extent_m=(0.8, 1.9), fps=30.0, size=size)[0]


def decode(path: Path) -> list[np.ndarray]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def drawn_centroid(character: Character, pose: Pose, camera: VirtualCamera) -> np.ndarray:
    """Mean pixel of the body, told from ground and shadow by drawing it in two ways."""
    frames = segment_frames(character, pose.root_position, pose.root_orientation, pose.angles)
    white, black = (np.full((camera.size[1], camera.size[0], 3), value, np.uint8) for value in (255, 0))
    for image in (white, black):
        draw_frames(image, camera, character, *frames)
    rows, columns = np.nonzero(np.abs(white.astype(int) - black).max(axis=2) < 25)
    return np.array([columns.mean(), rows.mean()])


def projected_com(character: Character, pose: Pose, camera: VirtualCamera) -> np.ndarray:
    frames = segment_frames(character, pose.root_position, pose.root_orientation, pose.angles)
    return camera.project(centre_of_mass(character, *frames))


@pytest.mark.parametrize("turn_deg", [0.0, 70.0, 180.0, 260.0])
def test_drawn_body_lies_around_its_projected_centre_of_mass(character: Character, turn_deg: float) -> None:
    turn = rotations.yaw(np.radians(turn_deg))
    pose = Pose(np.array([2.0, -1.0, 1.0]), turn, character.zero_pose().angles)
    moved = Pose(np.array([2.2, -0.8, 1.25]), turn, pose.angles)
    camera = camera_for(character, pose)
    offsets = [drawn_centroid(character, p, camera) - projected_com(character, p, camera) for p in (pose, moved)]
    # Legs have less mass for their area than the trunk, so the picture's centre is a little lower than the body's.
    assert abs(offsets[0][0]) < 2.5
    assert 0.0 < offsets[0][1] < 0.08 * camera.size[1]
    assert np.allclose(offsets[0], offsets[1], atol=1.6), "the picture must move as the centre of mass does"


def test_projection_agrees_with_the_rays_that_are_drawn(character: Character) -> None:
    pose = character.zero_pose()
    camera = camera_for(character, pose, (201, 241))
    forward = camera.position + 5.0 * camera.axes[2]
    assert np.allclose(camera.project(forward), [100.0, 120.0])
    assert np.allclose(camera.axes @ camera.axes.T, np.eye(3), atol=1e-12)
    assert np.isclose(np.linalg.det(camera.axes), 1.0)
    above = camera.project([pose.root_position, pose.root_position + np.array([0.0, 0.0, 0.5])])
    assert above[1, 1] < above[0, 1]


def test_ray_meets_a_capsule_at_the_closed_form_distance() -> None:
    side = np.array([[-1.0, 0.0, 5.0], [1.0, 0.0, 5.0]])
    ahead = np.array([0.0, 0.0, 1.0], np.float32).reshape(3, 1, 1)
    hit = _intersect(ahead, side, 0.3)
    assert np.isclose(hit.distance, 4.7, atol=1e-4)
    assert np.isclose(hit.along, 0.5, atol=1e-4)
    cap = _intersect(ahead, side + np.array([1.2, 0.0, 0.0]), 0.3)
    assert np.isclose(cap.distance, 5.0 - np.sqrt(0.3**2 - 0.2**2), atol=1e-3)
    assert np.isclose(cap.along, 0.0)
    assert np.isclose(_intersect(ahead, side + np.array([0.0, 0.5, 0.0]), 0.3).inside, 0.3**2 - 0.5**2, atol=1e-4)


def test_left_and_right_limbs_have_their_own_colours(character: Character) -> None:
    pose = character.zero_pose()
    camera = camera_for(character, pose)
    image = render(camera, character, pose)
    for side, colour in (("left", LEFT_COLOUR), ("right", RIGHT_COLOUR)):
        hand = character.segment_index(f"{side}_forearm")
        positions, orientations = segment_frames(character, pose.root_position, pose.root_orientation, pose.angles)
        middle = positions[hand] + rotations.rotate(orientations[hand], 0.5 * character.segments[hand].tip)
        x, y = np.rint(camera.project(middle)).astype(int)
        pixel = image[y, x].astype(float)
        assert np.argmax(pixel) == np.argmax(colour), side


def test_the_nearer_limb_hides_the_farther(character: Character) -> None:
    pose = character.zero_pose()
    image_camera = camera_for(character, pose)
    side = VirtualCamera(np.zeros(3), np.pi / 2, 0.0, image_camera.focal_px, image_camera.size)
    side = side.moved_to(pose.root_position, 4.0)  # from the right, so that the right leg hides the left
    image = render(side, character, pose)
    x, y = np.rint(side.project([0.0, -0.0875, 0.3])).astype(int)
    assert image[y, x, 0] > image[y, x, 2]


def test_shadow_is_under_the_body_and_fades_with_height(character: Character) -> None:
    pose = character.zero_pose()
    high = Pose(pose.root_position + np.array([0.0, 0.0, 1.2]), pose.root_orientation, pose.angles)
    camera = camera_for(character, pose)
    under = np.rint(camera.project([0.12, 0.0, 0.0])).astype(int)
    patch = (slice(under[1] - 1, under[1] + 2), slice(under[0] - 1, under[0] + 2))
    empty = background(camera)[patch].mean()
    assert render(camera, character, high)[patch].mean() <= empty
    assert render(camera, character, pose)[patch].mean() < 0.85 * empty


def test_grid_moves_with_the_camera(character: Character) -> None:
    camera = camera_for(character, character.zero_pose())
    moved = VirtualCamera(
        camera.position + np.array([0.25, 0.0, 0.0]), camera.azimuth, camera.pitch, camera.focal_px, camera.size
    )
    whole = VirtualCamera(
        camera.position + np.array([0.5, 0.0, 0.0]), camera.azimuth, camera.pitch, camera.focal_px, camera.size
    )
    assert np.abs(background(camera).astype(int) - background(moved)).max() > 20
    assert np.abs(background(camera).astype(int) - background(whole)).max() <= 2


def test_camera_follows_without_jumps_and_keeps_both_bodies_in_view(character: Character) -> None:
    reference, simulated = walk(character, 2.0, 30.0), walk(character, 2.0, 30.0, speed=0.9)
    times = np.arange(61) / 30.0
    pair = panels(character, reference, simulated, times, size=(160, 160), fps=30.0)
    steps = np.linalg.norm(np.diff([camera.position for camera in pair.cameras], axis=0), axis=1)
    assert steps.max() < 1.3 * 1.2 / 30.0
    for frame, camera in enumerate(pair.cameras):
        for positions, _ in pair.frames:
            pixel = camera.project(positions[frame])
            assert np.all(np.abs(pixel - 79.5) < 79.5)


def test_video_has_the_frames_size_and_duration_asked_for(character: Character, tmp_path: Path) -> None:
    path = tmp_path / "overlay.mp4"
    said: list[float] = []

    def caption(time_s: float) -> str:
        said.append(time_s)
        return f"state {len(said)}"

    write_overlay(
        path,
        character,
        walk(character, 0.5, 120.0),
        walk(character, 1.0, 25.0),
        fps=20,
        size=(256, 144),
        caption=caption,
    )
    frames = decode(path)
    assert len(frames) == 21
    assert frames[0].shape == (144, 256, 3)
    assert np.allclose(said, np.arange(21) / 20.0)
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert stream.codec_context.name == "h264"
        assert stream.codec_context.pix_fmt == "yuv420p"
        assert float(stream.duration * stream.time_base) == pytest.approx(21 / 20.0)
    head = path.read_bytes()
    assert head.index(b"moov") < head.index(b"mdat"), "the index must come first, so that browsers can start at once"
    assert [p.name for p in tmp_path.iterdir()] == ["overlay.mp4"]


def test_panels_agree_for_equal_clips_and_differ_for_different_ones(character: Character) -> None:
    reference = walk(character, 0.4, 30.0)
    times = np.arange(13) / 30.0
    same = panels(character, reference, walk(character, 0.4, 30.0), times, size=(160, 160), fps=30.0)
    other = panels(character, reference, walk(character, 0.4, 30.0, phase=1.5), times, size=(160, 160), fps=30.0)
    assert np.array_equal(*same.images(6))
    assert np.count_nonzero(np.abs(np.subtract(*(p.astype(int) for p in other.images(6)))).max(axis=2) > 30) > 200


def test_an_ended_reference_holds_its_pose_in_grey(character: Character) -> None:
    reference, simulated = walk(character, 0.3, 30.0, speed=0.0), walk(character, 0.6, 30.0, speed=0.0)
    pair = panels(character, reference, simulated, np.arange(19) / 30.0, size=(160, 160), fps=30.0)
    held = [pair.images(frame)[0].astype(int) for frame in (12, 18)]
    assert np.array_equal(*held)
    colourfulness = [np.ptp(pair.images(frame)[0].astype(int), axis=2).max() for frame in (9, 12)]
    assert colourfulness[1] < 0.5 * colourfulness[0]


@pytest.mark.parametrize(("fps", "size"), [(30, (255, 144)), (30, (256, 143)), (0, (256, 144)), (30, (8, 8))])
def test_impossible_videos_are_refused_before_anything_is_written(
    character: Character, tmp_path: Path, fps: int, size: tuple[int, int]
) -> None:
    clip = walk(character, 0.1, 30.0)
    with pytest.raises(ConfigError, match=r"even|positive whole"):
        write_overlay(tmp_path / "o.mp4", character, clip, clip, fps=fps, size=size)
    assert not list(tmp_path.iterdir())


def test_a_failing_video_leaves_nothing_behind_and_keeps_the_old_one(character: Character, tmp_path: Path) -> None:
    path = tmp_path / "overlay.mp4"
    path.write_bytes(b"old")
    clip = walk(character, 0.3, 30.0)

    def caption(time_s: float) -> str:
        if time_s > 0.1:
            raise RuntimeError("caption failed")
        return ""

    with pytest.raises(RuntimeError, match="caption failed"):
        write_overlay(path, character, clip, clip, size=(128, 72), caption=caption)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["overlay.mp4"]


def test_clips_are_sampled_by_time_and_held_at_their_ends(character: Character) -> None:
    clip = walk(character, 1.0, 50.0)
    position, orientation, angles = sample(clip, [-1.0, 0.31, 0.32, 5.0])
    assert np.allclose(position[0], clip.root_position[0])
    assert np.allclose(angles[1], 0.5 * (clip.angles[15] + clip.angles[16]))
    assert np.allclose(angles[2], clip.angles[16])
    assert np.allclose(position[3], clip.root_position[-1])
    assert np.allclose(np.linalg.norm(orientation, axis=1), 1.0)


def test_joint_error_is_the_distance_of_a_shifted_body(character: Character) -> None:
    clip = walk(character, 0.5, 60.0)
    shifted = MotionClip(
        "s", 60.0, clip.root_position + np.array([0.03, 0.0, 0.04]), clip.root_orientation, clip.angles
    )
    error = joint_error(character, clip, shifted)
    assert np.allclose(error.mean_cm, 5.0)
    assert all(np.allclose(values, 5.0) for values in error.groups_cm.values())
    assert error.at(0.25) == pytest.approx(5.0)
    assert error.at(0.6) is None


def test_a_body_that_leaves_the_picture_is_not_an_error(character: Character) -> None:
    camera = camera_for(character, character.zero_pose())
    far = Pose(np.array([0.0, 300.0, 1.0]), np.array([1.0, 0, 0, 0]), character.zero_pose().angles)
    behind = Pose(camera.position, np.array([1.0, 0, 0, 0]), character.zero_pose().angles)
    for pose in (far, behind):
        assert render(camera, character, pose).shape == (240, 200, 3)


def test_contact_sheet_has_a_column_a_moment(character: Character) -> None:
    clip = walk(character, 1.0, 30.0)
    png = contact_sheet(character, clip, walk(character, 1.2, 30.0, phase=0.4), n=3)
    assert png.startswith(b"\x89PNG")
    width, height = int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
    assert width == 3 * PANEL[0]
    assert height >= 2 * PANEL[1]
    with pytest.raises(ConfigError, match="1 or more"):
        contact_sheet(character, clip, clip, n=0)


def test_frames_are_the_same_in_every_run(character: Character) -> None:
    clip = walk(character, 0.1, 30.0)
    options = {"fps": 30, "size": (128, 72), "labels": ("a", "b")}
    first, second = (list(overlay_frames(character, clip, clip, **options)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_bodies_that_part_keep_a_camera_each() -> None:
    """The walk that a controller performs curves away from its reference: both stay in sight, together while they are near."""
    time = np.linspace(0.0, 1.0, 50)[:, None]
    reference = np.hstack([10.0 * time, np.zeros_like(time), np.ones_like(time)])
    simulated = np.hstack([10.0 * time, 8.0 * time**2, np.ones_like(time)])
    shifts = parting(reference, simulated, 2.0, 0.0)
    middle = 0.5 * (reference + simulated)[:, :2]
    for side, root in enumerate((reference, simulated)):
        away = np.linalg.norm(root[:, :2] - middle - shifts[side], axis=1)
        assert away.max() <= 2.0 + 1e-9
        assert np.linalg.norm(root[-1, :2] - middle[-1]) > 3.0
        assert not shifts[side][:30].any()
