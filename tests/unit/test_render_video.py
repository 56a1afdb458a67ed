"""The renderer of footage: geometry against closed forms, truth against picture, the same bits for the same seed."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from mocap2ctrl.character.kinematics import evaluation_points, lowest_points, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry.camera import camera_centre, project, to_camera, world_to_camera
from mocap2ctrl.motion.clips import at_times
from mocap2ctrl.motion.npz import read_motion
from mocap2ctrl.types import MotionClip
from mocap2ctrl.video.camera_file import load_camera

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import render_video
from rendering import performer, scenery, solids
from rendering.footage import exact_masks
from rendering.viewpoint import (
    ANY_FIELD_OF_VIEW_DEG,
    ANY_HEIGHT_M,
    ANY_ROLL_DEG,
    MARGIN,
    extent,
    place_camera,
    random_camera,
)

pytest.importorskip("pybullet_data", reason="its clips are the motions")

SIZE = (192, 108)
FRAMES = 3
ARGUMENTS = ["humanoid3d_walk", "--seed", "4", "--time-range", "0.2", "0.27", "--subframes", "1", "--masks"]


@pytest.fixture(scope="module")
def footage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with walk.mp4 and all its files."""
    return rendered(tmp_path_factory.mktemp("footage"))


def rendered(folder: Path, *more: str) -> Path:
    assert render_video.main([*ARGUMENTS, "--size", "{}x{}".format(*SIZE), "-o", str(folder), *more]) == 0
    return folder


def somebody(character: Character, seed: int) -> performer.Performer:
    return performer.draw_performer(character, np.random.default_rng(seed))


def walk(character: Character, seconds: float = 0.5) -> MotionClip:
    return render_video.load_motion("humanoid3d_walk", character, time_range=(0.0, seconds)).clip


def test_same_seed_same_files(footage: Path, tmp_path: Path) -> None:
    rendered(tmp_path)
    names = sorted(path.name for path in footage.iterdir())
    assert names == ["walk.background.jpg", "walk.masks.npz", "walk.mp4", "walk.toml", "walk.truth.npz"]
    assert all((footage / name).read_bytes() == (tmp_path / name).read_bytes() for name in names if "npz" not in name)
    for name in ("walk.truth.npz", "walk.masks.npz"):
        with np.load(footage / name) as first, np.load(tmp_path / name) as second:
            assert all(np.array_equal(first[key], second[key]) for key in first.files)


def test_another_seed_is_another_person_elsewhere(character: Character) -> None:
    first, second = somebody(character, 1), somebody(character, 2)
    assert first.lengths != second.lengths
    assert not np.array_equal(first.colours, second.colours)


def test_joints_of_the_truth_are_inside_the_silhouette(footage: Path) -> None:
    camera = load_camera(footage / "walk.toml")
    with np.load(footage / "walk.truth.npz") as truth, np.load(footage / "walk.masks.npz") as masks:
        pixels = np.rint(project(camera, truth["points_m"])).astype(int)
        inside = [mask[p[:, 1], p[:, 0]] for mask, p in zip(masks["walk"], pixels, strict=True)]
    assert np.shape(inside) == (FRAMES, 15)
    assert np.min(np.sum(inside, axis=1)) >= 14


def test_video_shows_the_person_where_the_silhouette_is_and_the_scene_elsewhere(footage: Path) -> None:
    frames = [f.to_ndarray(format="rgb24").astype(float) for f in av.open(str(footage / "walk.mp4")).decode(video=0)]
    plate = cv2.imread(str(footage / "walk.background.jpg"))[..., ::-1].astype(float)
    with np.load(footage / "walk.masks.npz") as data:
        masks, fps = data["walk"], float(data["fps"])
    assert (len(frames), fps) == (FRAMES, 30.0)
    differs = [np.abs(frame - plate).mean(axis=-1) for frame in frames]
    far = slice(None), slice(0, SIZE[0] // 5)
    assert all(np.median(d[mask]) > 25.0 and np.mean(d[far]) < 8.0 for d, mask in zip(differs, masks, strict=True))


def test_person_fills_the_height_and_stays_off_the_border(footage: Path) -> None:
    with np.load(footage / "walk.masks.npz") as data:
        rows, columns = np.flatnonzero(data["walk"].any(axis=(0, 2))), np.flatnonzero(data["walk"].any(axis=(0, 1)))
    low, high = int(0.03 * SIZE[1]), int(0.97 * SIZE[1])
    assert low <= rows[0] <= 0.1 * SIZE[1]
    assert 0.9 * SIZE[1] <= rows[-1] <= high
    assert columns[0] > 0.03 * SIZE[0]
    assert columns[-1] < 0.97 * SIZE[0]


def test_truth_is_the_standard_characters_clip_at_the_frames(footage: Path, character: Character) -> None:
    truth = read_motion(footage / "walk.truth.npz", character)
    clip = render_video.load_motion("humanoid3d_walk", character, time_range=(0.2, 0.27)).clip
    assert (truth.fps, len(truth), truth.loop) == (30.0, FRAMES, False)
    assert np.allclose(truth.angles, clip.angles)
    points = evaluation_points(
        character, *segment_frames(character, truth.root_position, truth.root_orientation, truth.angles)
    )
    with np.load(footage / "walk.truth.npz") as data:
        distance = np.linalg.norm(data["points_m"] - points, axis=-1)
    assert 0.002 < np.mean(distance) < 0.04


@pytest.mark.parametrize("seed", range(5))
def test_body_differs_within_bounds(character: Character, seed: int) -> None:
    body = somebody(character, seed)
    ratios = [
        np.linalg.norm(theirs.offset) / np.linalg.norm(ours.offset)
        for theirs, ours in zip(body.character.segments[1:], character.segments[1:], strict=True)
    ]
    assert max(abs(ratio - 1.0) for ratio in ratios) < performer.LENGTH_SPREAD + 1e-9
    assert max(abs(ratio - 1.0) for ratio in ratios) > 0.01
    assert max(abs(girth - 1.0) for girth in body.girths.values()) <= performer.GIRTH_SPREAD
    for name, segment in zip(body.character.segment_names, body.character.segments, strict=True):
        if name.startswith("left_"):
            other = body.character.segments[body.character.segment_index(name.replace("left", "right"))]
            assert np.allclose(segment.offset, other.offset * [1, -1, 1])
    pose = body.character.zero_pose()
    standing = MotionClip("standing", 30.0, [pose.root_position], [pose.root_orientation], [pose.angles])
    centres, radii = body.spheres(standing)
    assert np.max(centres[0, :, 2] + radii) - body.lowest_foot(standing)[0] == pytest.approx(1.75, rel=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_feet_stand_where_the_clips_feet_stand(character: Character, seed: int) -> None:
    body, clip = somebody(character, seed), walk(character)
    motion = performer.perform(body, character, clip)
    places = []
    for who, what in ((character, clip), (body.character, motion)):
        places.append(segment_frames(who, what.root_position, what.root_orientation, what.angles))
    feet = [character.segment_index(name) for name in performer.FEET]
    lowest = np.min(lowest_points(character, *places[0])[:, feet], axis=1)
    assert np.allclose(body.lowest_foot(motion), np.maximum(lowest, -performer.DEEPEST_M))
    ankles = [character.segment_index(name) for name in ("left_foot", "right_foot")]
    apart = np.linalg.norm((places[0][0] - places[1][0])[:, ankles, :2], axis=-1)
    assert np.median(apart) < 0.01
    assert np.max(apart) < 0.03


@pytest.mark.parametrize("azimuth", [-90.0, 0.0, 130.0])
def test_camera_is_the_nearest_that_shows_everything(azimuth: float) -> None:
    rng = np.random.default_rng(0)
    centres, radii = rng.uniform([-1.0, -0.4, 0.1], [1.0, 0.4, 1.7], (40, 3)), np.full(40, 0.05)
    camera = place_camera("any", azimuth, centres, radii, SIZE, rng)
    box = extent(camera, centres, radii)
    gaps = np.array([*box[:2], SIZE[0] - box[2], SIZE[1] - box[3]]) / np.array([*SIZE, *SIZE])
    assert np.min(gaps) == pytest.approx(MARGIN, abs=2e-3)
    beside = to_camera(camera, [[0.0, 0.0, 0.9], [0.0, 0.0, 1.9]])
    assert beside[0, 0] == pytest.approx(beside[1, 0])  # level at its sides
    outward = -to_camera(camera, np.zeros(3))[2]
    assert to_camera(camera, [np.cos(np.radians(azimuth)), np.sin(np.radians(azimuth)), 0.0])[2] < -outward


def test_random_cameras_differ_within_bounds_and_show_everything() -> None:
    centres = np.random.default_rng(0).uniform([-1.0, -0.4, 0.1], [1.0, 0.4, 1.7], (40, 3))
    drawn = []
    for seed in range(8):
        camera = random_camera("any", 30.0, centres, np.full(40, 0.05), SIZE, np.random.default_rng(seed))
        box = extent(camera, centres, np.full(40, 0.05))
        assert np.min([*box[:2], SIZE[0] - box[2], SIZE[1] - box[3]]) >= MARGIN * min(SIZE) - 1e-6
        right, down, forward = world_to_camera(camera)
        view = 2.0 * np.degrees(np.arctan(0.5 * SIZE[0] / camera.matrix[0, 0]))
        drawn.append([camera_centre(camera)[2], view, np.degrees(np.arctan2(right[2], -down[2])), forward[2]])
    drawn = np.array(drawn)
    for column, bounds in ((0, ANY_HEIGHT_M), (1, ANY_FIELD_OF_VIEW_DEG)):
        assert np.all((bounds[0] <= drawn[:, column]) & (drawn[:, column] <= bounds[1]))
    assert np.max(np.abs(drawn[:, 2])) < ANY_ROLL_DEG + 1.5  # aiming aside adds some
    assert np.all(np.ptp(drawn, axis=0) > [0.3, 8.0, 0.5, 0.02])


def test_exact_masks_are_the_pictures_own(footage: Path, character: Character) -> None:
    settings = render_video.Settings("humanoid3d_walk", footage, seed=4, time_range=(0.2, 0.27), size=SIZE)
    staged = render_video.stage(settings, character)
    masks = exact_masks(staged.performer, staged.motion, staged.camera, np.arange(FRAMES) / 30.0)
    with np.load(footage / "walk.masks.npz") as data:
        seen = data["walk"]
    overlap = np.sum(masks & seen) / np.sum(masks | seen)
    assert overlap > 0.9  # theirs are of all moments of the shutter


def ball(centre: tuple[float, float, float], radius: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`shape`, `rest` and `kind` of one ball."""
    shape = np.array([[*centre, *centre, radius, radius, 0.01, 0.0, 0.0, 0.0, 1.0, 0.0]])
    return shape, np.array([[1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]]), np.zeros((1, 2), np.int64)


def test_traced_ball_is_where_geometry_says() -> None:
    body, size = ball((4.0, 0.0, 1.0), 0.5), 40
    view = np.array([[0, 0, 1.0], [0, 0, 0], [0, 0, 0], [1.0, 0.2, 0.2], [0, -0.01, 0], [0, 0, -0.01]])
    lists, counts, near, far = np.zeros((9, 1), np.int64), np.zeros(9, np.int64), np.zeros(9), np.zeros(9)
    solids.tile_solids(view, size, size, body[0], lists, counts, near, far)
    depth = np.zeros((size, size))
    solids.depth_map(view, size, size, *body, lists, counts, near, far, depth)
    y, x = np.mgrid[:size, :size]
    direction = view[3] + x[..., None] * view[4] + y[..., None] * view[5]
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    along = direction @ np.array([4.0, 0.0, 0.0])
    inside = 0.25 - (16.0 - along**2)
    hit = depth < solids.FAR
    assert np.array_equal(hit[np.abs(inside) > 0.01], inside[np.abs(inside) > 0.01] > 0.0)
    clear = inside > 0.01
    assert np.allclose(depth[clear], (along - np.sqrt(np.maximum(inside, 0.0)))[clear], atol=0.01)


def test_shadow_lies_where_the_sun_is_hidden() -> None:
    depths = np.full((100, 100), -solids.FAR)
    depths[40:60, 40:60] = 1.0  # a plate of 0.2 m, 1 m above the ground, sun in the zenith
    frame = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [0.0, 0.0, 0.01]])
    points = np.array([[[0.5, 0.5, 0.0], [0.2, 0.5, 0.0], [5.0, 5.0, 0.0], [0.5, 0.5, 2.0]]])
    light, sky = np.zeros((1, 4)), np.zeros((1, 4))
    solids.ground_light(points, np.array([[0.5, 0.5, 0.1, 0.1]]), (depths, frame, 0.02), light, sky)
    assert light[0].tolist() == [0.0, 1.0, 1.0, 1.0]
    assert sky[0, 0] < 0.5
    assert sky[0, 2] > 0.999


def test_conditions_change_the_picture_and_not_the_truth(footage: Path, tmp_path: Path) -> None:
    rendered(tmp_path, "--light", "drift", "cloud", "--noise", "2", "--crf", "34", "--no-plate")
    assert not (tmp_path / "walk.background.jpg").exists()
    with np.load(footage / "walk.masks.npz") as usual, np.load(tmp_path / "walk.masks.npz") as changed:
        assert np.array_equal(usual["walk"], changed["walk"])
    assert (tmp_path / "walk.mp4").read_bytes() != (footage / "walk.mp4").read_bytes()


@pytest.mark.parametrize("kind", scenery.BACKDROPS)
def test_a_backdrop_is_smooth(kind: str, character: Character) -> None:
    camera = load_camera(render_video.VIDEO / "walk.toml")
    scene = scenery.build_scene(kind, camera, 6.0, np.random.default_rng(0))
    levels = (scene.sun + scene.sky)[:, :, 1]
    assert np.abs(np.diff(levels, axis=1)).max() < 0.01 * levels.max()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["humanoid3d_walk", "--view", "above"], "'above'; allowed are side, oblique, frontal"),
        (["no_such_file.bvh"], "no such file"),
        (["humanoid3d_walk", "--seconds", "0.01"], "less than two frames"),
        (["humanoid3d_walk", "--size", "95x54"], "must be even"),
        (["humanoid3d_walk", "--fps", "0"], "whole number from 1"),
        (["humanoid3d_walk", "--light", "disco"], "drift"),
        (["humanoid3d_kick", "--cycles", "2"], "only a loop can be repeated"),
        ([], "no motion given"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert render_video.main([*arguments, "-o", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert says in message
    assert message.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_in_place_is_the_same_motion_on_a_belt(character: Character) -> None:
    """Filmed, the body keeps its place; the truth, over the belt, is that of the same person who travels."""
    settings = render_video.Settings("humanoid3d_walk", Path("x"), seed=4, seconds=1.0, size=SIZE)
    travels = render_video.prepare(settings, character)
    stays = render_video.prepare(replace(settings, in_place=True), character)
    assert not travels.ground_velocity.any()
    way = (travels.truth.root_position[-1] - travels.truth.root_position[0])[:2]
    np.testing.assert_allclose(stays.ground_velocity, -way / travels.truth.duration_s)
    np.testing.assert_array_equal(stays.truth.root_position, travels.truth.root_position)
    np.testing.assert_array_equal(stays.points_m, travels.points_m)
    filmed = at_times(stays.shot.motion, stays.times_s).root_position
    assert np.linalg.norm(filmed[-1, :2] - filmed[0, :2]) < 0.02
    carried = stays.times_s[:, None] * stays.ground_velocity
    np.testing.assert_allclose(
        filmed[:, :2], at_times(travels.shot.motion, stays.times_s).root_position[:, :2] + carried, atol=1e-3
    )
