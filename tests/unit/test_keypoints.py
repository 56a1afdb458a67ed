"""Keypoints laid on silhouettes: the lens, the frames, the person; and what is kept, drawn and told of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from mocap2ctrl.character.kinematics import clip_points
from mocap2ctrl.character.landmarks import LANDMARKS, landmarks_of
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import CaptureError, KeypointsError, Mocap2CtrlError
from mocap2ctrl.evaluation.keypoints import keypoint_error_px
from mocap2ctrl.files import write_arrays
from mocap2ctrl.fit.target_file import Target, load_target, save_target
from mocap2ctrl.geometry.camera import cropped, project, undistorted
from mocap2ctrl.report.keypoints import LEFT, RIGHT, draw_keypoints
from mocap2ctrl.report.scene import Scene
from mocap2ctrl.track.body import reshaped
from mocap2ctrl.track.tree import FACTORS, points_with_jacobian, tree_of
from mocap2ctrl.types import Array, Camera, Keypoints, MotionClip, Silhouettes
from mocap2ctrl.video.keypoints import SourceClock, with_keypoints
from mocap2ctrl.video.keypoints_files import Sighting, Sightings

NAMES = ("left_knee", "right_knee", "head")
LENS = Camera(
    "lens",
    (960, 540),
    [[800.0, 0, 479.5], [0, 810.0, 269.5], [0, 0, 1]],
    [np.pi / 2, 0, 0],
    [0.0, 1.0, 4.0],
    [-0.2, 0.05, 1e-3, -2e-3],
)
WORKING = cropped(undistorted(LENS), 300, 60, 360, 420, (90, 105))
"""A part of its picture, four times smaller, without distortion."""
FRAMES = 6


def points_at(x: float) -> Array:
    """(3, 3) two knees and a head of who stands at `x`."""
    return np.array([[x + 0.1, 0.05, 0.5], [x - 0.1, -0.05, 0.5], [x, 0.0, 1.6]])


def mask_at(x: float) -> np.ndarray:
    """(H, W) a bar where that person is."""
    left, bottom = project(WORKING, [x - 0.2, 0.0, 0.05])
    right, top = project(WORKING, [x + 0.2, 0.0, 1.75])
    mask = np.zeros(WORKING.size[::-1], bool)
    mask[round(top) : round(bottom), round(left) : round(right)] = True
    return mask


@pytest.fixture(scope="module")
def silhouettes() -> Silhouettes:
    """One who walks to the right, from the second second of the video on."""
    masks = np.stack([mask_at(x) for x in place(np.arange(FRAMES))])
    return Silhouettes("bar", 30.0, masks, WORKING, {"start_s": 1.0})


def place(frames: Array) -> Array:
    return -0.3 + 0.1 * np.asarray(frames)


def through_the_lens(points: Array) -> Array:
    """Pixels of the video, by OpenCV's own projection."""
    pixels, _ = cv2.projectPoints(
        points.reshape(-1, 3),
        np.array(LENS.rotation),
        np.array(LENS.translation),
        np.array(LENS.matrix),
        np.array(LENS.distortions),
    )
    return pixels.reshape(*points.shape[:-1], 2)


def seen(*people: Array, confidence: float = 0.8) -> Array:
    """(P, 3, 3) detections of people."""
    return np.array([np.column_stack([through_the_lens(p), np.full(len(p), confidence)]) for p in people]).reshape(
        len(people), -1, 3
    )


def sightings(moments: list[Sighting], normalised: bool = False) -> Sightings:
    return Sightings(Path("clip.json"), "BODY_25", NAMES, tuple(moments), normalised)


def every_frame(rate: float, seconds: float) -> list[Sighting]:
    """Detections of a whole video at `rate`."""
    count = round(seconds * rate)
    return [Sighting(i, "frame", seen(points_at(place((i / rate - 1.0) * 30.0)))) for i in range(count)]


def test_points_go_through_the_lens_and_the_working_region(silhouettes: Silhouettes) -> None:
    found, note = with_keypoints(silhouettes, sightings(every_frame(30.0, 2.0)), LENS, SourceClock(30.0))
    expected = project(WORKING, np.array([points_at(x) for x in place(np.arange(FRAMES))]))
    assert found.keypoints is not None
    np.testing.assert_allclose(found.keypoints.pixels, expected, atol=0.02)
    np.testing.assert_allclose(found.keypoints.confidence, 0.8)
    assert found.keypoints.scale == pytest.approx(4.0)
    assert note == "keypoints: BODY_25, in 6 of 6 frames, 3.0 points each"


def test_shares_of_the_picture_are_pixels_from_its_corner(silhouettes: Silhouettes) -> None:
    shares = [
        m._replace(people=(m.people + np.array([0.5, 0.5, 0.0])) / [960, 540, 1.0]) for m in every_frame(30.0, 2.0)
    ]
    found = [
        with_keypoints(silhouettes, s, LENS, SourceClock(30.0))[0].keypoints
        for s in (sightings(shares, True), sightings(every_frame(30.0, 2.0)))
    ]
    assert found[0] is not None
    assert found[1] is not None
    np.testing.assert_allclose(found[0].pixels, found[1].pixels, atol=1e-6)


@pytest.mark.parametrize("rate", [30.0, 60.0, 29.97])
def test_frames_are_counted_at_the_rate_of_the_video(silhouettes: Silhouettes, rate: float) -> None:
    found, _ = with_keypoints(silhouettes, sightings(every_frame(rate, 2.0)), LENS, SourceClock(rate))
    expected = project(WORKING, np.array([points_at(x) for x in place(np.arange(FRAMES))]))
    assert found.keypoints is not None
    assert np.all(found.keypoints.confidence > 0)
    np.testing.assert_allclose(found.keypoints.pixels, expected, atol=0.02 if rate != 29.97 else 2.0)


def test_frames_of_slow_motion_and_of_uneven_footage_are_told_by_the_file_s_clock() -> None:
    clock = SourceClock(30.0, np.array([0.0, 0.5, 2.0]), slower=8.0)
    assert [clock.real_s(n, "frame") for n in range(3)] == [0.0, 0.0625, 0.25]
    assert clock.real_s(60, "frame") == pytest.approx(2.0 / 8.0)
    assert clock.real_s(2.0, "s") == 0.25


def test_a_click_between_two_silhouettes_goes_to_the_nearest(silhouettes: Silhouettes) -> None:
    at = points_at(place(2.3))
    found, _ = with_keypoints(
        silhouettes, sightings([Sighting(1.0 + 2.3 / 30.0, "s", seen(at, confidence=1.0))]), LENS, SourceClock(30.0)
    )
    assert found.keypoints is not None
    np.testing.assert_array_equal(found.keypoints.confidence.any(axis=1), np.arange(FRAMES) == 2)


def test_of_several_people_the_one_on_the_silhouette_is_taken(silhouettes: Silhouettes) -> None:
    moments = [
        Sighting(
            30 + i,
            "frame",
            seen(points_at(0.9), points_at(place(i)), points_at(-0.9), confidence=0.9)[:: 1 if i % 2 else -1],
        )
        for i in range(FRAMES)
    ]
    found, note = with_keypoints(silhouettes, sightings(moments), LENS, SourceClock(30.0))
    expected = project(WORKING, np.array([points_at(x) for x in place(np.arange(FRAMES))]))
    assert found.keypoints is not None
    np.testing.assert_allclose(found.keypoints.pixels, expected, atol=0.02)
    assert "several people in 6 frames, of whom the one that overlaps the silhouette best is taken" in note


def test_frames_off_the_person_are_left_out_and_counted(silhouettes: Silhouettes) -> None:
    moments = every_frame(30.0, 2.0)
    moments[31] = moments[31]._replace(people=seen(points_at(0.9)))
    found, note = with_keypoints(silhouettes, sightings(moments), LENS, SourceClock(30.0))
    assert found.keypoints is not None
    np.testing.assert_array_equal(found.keypoints.confidence.any(axis=1), np.arange(FRAMES) != 1)
    assert note.endswith("; 1 frames are left out, their points are off the person")


def test_keypoints_of_another_video_are_refused(silhouettes: Silhouettes) -> None:
    moments = [m._replace(people=m.people * [0.5, 0.5, 1.0]) for m in every_frame(30.0, 2.0)]
    with pytest.raises(KeypointsError, match=r"in none of 6 frames are the points on the person .* \(960x540\)"):
        with_keypoints(silhouettes, sightings(moments), LENS, SourceClock(30.0))
    with pytest.raises(KeypointsError, match=r"from 0.00 to 0.47 s; the silhouettes run from 1.00 to 1.17 s"):
        with_keypoints(silhouettes, sightings(every_frame(30.0, 0.5)), LENS, SourceClock(30.0))


def test_without_a_silhouette_a_single_person_is_believed(silhouettes: Silhouettes) -> None:
    masks = np.array(silhouettes.masks)
    masks[2:4] = False
    moments = every_frame(30.0, 2.0)
    moments[33] = moments[33]._replace(people=seen(points_at(0.0), points_at(0.5)))
    found, _ = with_keypoints(replace(silhouettes, masks=masks), sightings(moments), LENS, SourceClock(30.0))
    assert found.keypoints is not None
    np.testing.assert_array_equal(found.keypoints.confidence.any(axis=1), np.arange(FRAMES) != 3)


def test_landmarks_are_on_their_sides_of_the_body(character: Character) -> None:
    marks = landmarks_of(character, LANDMARKS)
    pose = character.zero_pose()
    world = points_with_jacobian(
        tree_of(character),
        np.ones(FACTORS),
        pose.root_position[None],
        pose.root_orientation[None],
        pose.angles[None],
        marks.segment,
        marks.local,
        False,
    )[0][0]
    at = dict(zip(LANDMARKS, world, strict=True))
    for name, point in at.items():
        if name.startswith("left_"):
            mirrored = at[name.replace("left", "right")] * [1, -1, 1]
            np.testing.assert_allclose(point, mirrored, atol=1e-12)
            assert point[1] > 0.0, name
        elif not name.startswith("right_"):
            assert point[1] == pytest.approx(0.0)
    assert at["nose"][0] > at["left_eye"][0] > at["left_ear"][0] > at["left_heel"][0]
    assert at["left_big_toe"][0] > at["left_small_toe"][0] > at["left_ankle"][0]
    assert at["left_big_toe"][1] < at["left_small_toe"][1]
    assert at["head_top"][2] == pytest.approx(character.height_m, abs=0.01)
    assert 0.0 < at["left_heel"][2] < at["left_ankle"][2]


def test_evaluation_points_are_where_the_character_has_them(character: Character) -> None:
    names = tuple(p.name for p in character.evaluation_points)
    marks = landmarks_of(character, names)
    np.testing.assert_array_equal(marks.segment, [p.segment for p in character.evaluation_points])
    np.testing.assert_array_equal(marks.local, [p.at for p in character.evaluation_points])


def test_landmarks_grow_with_the_body(character: Character) -> None:
    """The tracker's factors and the reshaped character say the same of every landmark."""
    body = np.array([1.2, 0.95, 1.06, 1.03, 0.9])
    tall = reshaped(character, body)
    pose = tall.zero_pose()
    poses = pose.root_position[None], pose.root_orientation[None], pose.angles[None]
    worlds = [
        points_with_jacobian(tree_of(who), factors, *poses, *landmarks_of(who, LANDMARKS)[:2], False)[0]
        for who, factors in ((character, body), (tall, np.ones(FACTORS)))
    ]
    np.testing.assert_allclose(worlds[0], worlds[1], atol=1e-9)


def test_there_is_no_landmark_of_another_name(character: Character) -> None:
    with pytest.raises(Mocap2CtrlError, match="no point 'tail' on a body; known are pelvis"):
        landmarks_of(character, ("tail",))


def standing_clip(character: Character) -> MotionClip:
    pose = character.zero_pose()
    return MotionClip(
        "stand",
        30.0,
        np.tile(pose.root_position, (FRAMES, 1)),
        np.tile(pose.root_orientation, (FRAMES, 1)),
        np.tile(pose.angles, (FRAMES, 1)),
    )


def with_points(silhouettes: Silhouettes, character: Character, off_px: float = 0.0) -> Silhouettes:
    """The silhouettes with the character's own joints, moved to the right in the picture."""
    names = tuple(p.name for p in character.evaluation_points)
    pixels = project(WORKING, clip_points(character, standing_clip(character))) + np.array([off_px, 0.0])
    return replace(
        silhouettes, keypoints=Keypoints(names, pixels, np.full(pixels.shape[:2], 0.5), 4.0, {"kind": "BODY_25"})
    )


def test_reprojection_error_is_in_pixels_of_the_video(silhouettes: Silhouettes, character: Character) -> None:
    clip = standing_clip(character)
    assert keypoint_error_px(character, clip, silhouettes) is None
    assert keypoint_error_px(character, clip, with_points(silhouettes, character, 2.0)) == pytest.approx(8.0)


def test_a_capture_keeps_keypoints(tmp_path: Path, silhouettes: Silhouettes, character: Character) -> None:
    clip, given = standing_clip(character), with_points(silhouettes, character)
    points = np.full((FRAMES, len(character.evaluation_points), 3), np.nan)
    for seen_ in (silhouettes, given):
        save_target(tmp_path / "target.npz", Target(clip, points, seen_), character)
        kept = load_target(tmp_path / "target.npz", character, WORKING).silhouettes
        assert kept is not None
        if seen_.keypoints is None:
            assert kept.keypoints is None
            continue
        assert kept.keypoints is not None
        assert (kept.keypoints.names, kept.keypoints.scale) == (seen_.keypoints.names, 4.0)
        assert dict(kept.keypoints.provenance) == {"kind": "BODY_25"}
        np.testing.assert_array_equal(kept.keypoints.pixels, seen_.keypoints.pixels)
        np.testing.assert_array_equal(kept.keypoints.confidence, seen_.keypoints.confidence)


def rewritten(file: Path, **changes: object) -> None:
    with np.load(file) as data:
        entries = {name: data[name] for name in data.files}
    write_arrays(file, {**entries, **{name: np.array(value) for name, value in changes.items()}})


def test_captures_of_the_format_before_still_load(
    tmp_path: Path, silhouettes: Silhouettes, character: Character
) -> None:
    clip = standing_clip(character)
    points = np.full((FRAMES, len(character.evaluation_points), 3), np.nan)
    file = tmp_path / "target.npz"
    save_target(file, Target(clip, points, silhouettes), character)
    rewritten(file, format=2)
    assert load_target(file, character, WORKING).silhouettes is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keypoints_names": ["tail"] * 15}, "holds 'tail'; known are"),
        ({"keypoints_confidence": np.full((FRAMES, 15), 2.0)}, "confidence is outside 0 to 1"),
        ({"keypoints_px": np.zeros((3, 15, 2))}, "pixels has shape"),
    ],
)
def test_damaged_keypoints_are_refused(
    tmp_path: Path, silhouettes: Silhouettes, character: Character, change: dict[str, object], message: str
) -> None:
    points = np.full((FRAMES, len(character.evaluation_points), 3), np.nan)
    file = tmp_path / "target.npz"
    save_target(file, Target(standing_clip(character), points, with_points(silhouettes, character)), character)
    rewritten(file, **change)
    with pytest.raises(CaptureError, match=message):
        load_target(file, character, WORKING)


def test_dots_are_drawn_where_the_points_are(silhouettes: Silhouettes) -> None:
    pixels = np.tile([[20.0, 30.0], [60.0, 30.0], [40.0, 80.0]], (FRAMES, 1, 1))
    confidence = np.tile([1.0, 1.0, 0.0], (FRAMES, 1))
    scene = Scene(replace(silhouettes, keypoints=Keypoints(NAMES, pixels, confidence)))
    image = np.zeros((420, 360, 3), np.uint8)
    draw_keypoints(image, scene, 0, scene.whole, (360, 420))
    for place_px, colour in (((20, 30), LEFT), ((60, 30), RIGHT), ((40, 80), (0, 0, 0))):
        x, y = (round(4 * (v + 0.5) - 0.5) for v in place_px)
        assert tuple(image[y, x]) == colour
    assert np.count_nonzero(image.any(axis=2)) < 200


def test_keypoints_are_of_as_many_frames_as_masks(silhouettes: Silhouettes) -> None:
    with pytest.raises(Mocap2CtrlError, match="keypoints are of 2 frames, the masks of 6"):
        replace(silhouettes, keypoints=Keypoints(("head",), np.zeros((2, 1, 2)), np.zeros((2, 1))))
