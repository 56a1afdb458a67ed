"""The body where a video's camera saw it, outlines on borders, and as many pictures as were asked for."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from porch import (
    BLIND,
    FPS,
    GIRTH,
    PICTURE,
    REGION,
    WORKING,
    footage_from,
    motion,
    performer_of,
    seen,
    silhouettes_of,
    track_of,
)

from mocap2ctrl.character.kinematics import segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import ConfigError, Mocap2CtrlError
from mocap2ctrl.geometry.camera import cropped, project
from mocap2ctrl.report.camera import VideoCamera, VirtualCamera
from mocap2ctrl.report.performer import Performer
from mocap2ctrl.report.render import draw_frames
from mocap2ctrl.report.scene import OUTLINE, Footage, Part, Scene, dimmed, draw_outline, footage_of, greyed
from mocap2ctrl.report.video_overlay import overlay_fps, overlay_size, panel_size, video_overlay_frames
from mocap2ctrl.report.video_sheet import SHEET_WIDTH_PX, parts_around, video_sheet, video_strip
from mocap2ctrl.types import Array, Camera, Masks, MotionClip, Silhouettes
from mocap2ctrl.video.silhouettes import LoadedSilhouettes


def iou(first: Masks, second: Masks) -> float:
    return float(np.count_nonzero(first & second) / np.count_nonzero(first | second))


@pytest.fixture(scope="module")
def track(character: Character) -> MotionClip:
    return track_of(character)


@pytest.fixture(scope="module")
def silhouettes(character: Character) -> Silhouettes:
    return silhouettes_of(character)


@pytest.fixture(scope="module")
def footage(character: Character) -> Footage:
    return footage_from(character)


@pytest.fixture(scope="module")
def performer(character: Character) -> Performer:
    return performer_of(character)


@pytest.fixture(scope="module")
def scene(silhouettes: Silhouettes, footage: Footage) -> Scene:
    return Scene(silhouettes, footage)


def drawn(camera: Camera, character: Character, frames: tuple[Array, Array]) -> Masks:
    """Pixels that a drawn body covers, told by drawing it on two backgrounds."""
    white, black = (np.full((camera.size[1], camera.size[0], 3), value, np.uint8) for value in (255, 0))
    for image in (white, black):
        draw_frames(image, VideoCamera(camera), character, *frames, girth=GIRTH, shadow=0.0)
    return np.abs(white.astype(int) - black).max(axis=2) < 128


@pytest.mark.parametrize("size", [(320, 240), (700, 500)])
def test_body_drawn_through_the_videos_camera_covers_its_mask(
    character: Character, track: MotionClip, size: tuple[int, int]
) -> None:
    camera = cropped(PICTURE, 0, 0, 320, 240, size)
    part = track.cut(7, 8)
    frames = segment_frames(character, part.root_position, part.root_orientation, part.angles)
    picture = drawn(camera, character, (frames[0][0], frames[1][0]))
    assert iou(picture, seen(character, part, camera)[0]) > 0.985


def test_video_camera_projects_as_geometry_does() -> None:
    points = np.random.default_rng(3).uniform((-0.5, -0.5, 0.5), (0.5, 0.5, 1.5), (20, 3))
    assert np.allclose(VideoCamera(PICTURE).project(points), project(PICTURE, points))


def test_a_level_camera_draws_the_same_body_as_its_pinhole(character: Character) -> None:
    virtual = VirtualCamera(np.array([0.3, -4.0, 1.1]), np.pi / 2, 0.1, 300.0, (160, 200))
    matrix = [[300.0, 0.0, 79.5], [0.0, 300.0, 99.5], [0.0, 0.0, 1.0]]
    pinhole = Camera("same", (160, 200), matrix, cv2.Rodrigues(virtual.axes)[0][:, 0], -virtual.axes @ virtual.position)
    pose = character.zero_pose()
    frames = segment_frames(character, pose.root_position, pose.root_orientation, pose.angles)
    images = [np.full((200, 160, 3), 180, np.uint8) for _ in range(2)]
    draw_frames(images[0], virtual, character, *frames)
    draw_frames(images[1], VideoCamera(pinhole), character, *frames)
    assert np.abs(images[0].astype(int) - images[1]).max() <= 2


def test_outline_lies_on_the_border_of_the_person(scene: Scene, footage: Footage) -> None:
    part, size = Part(30, 4, 260, 230), (520, 460)
    plain = np.zeros((size[1], size[0], 3), np.uint8)
    draw_outline(plain, scene.distances(7, part, size))
    line = (plain == OUTLINE).all(axis=2)
    person = (scene.picture(7, part, size)[..., 0] > 120).astype(np.uint8)
    border = cv2.distanceTransform(1 - cv2.morphologyEx(person, cv2.MORPH_GRADIENT, np.ones((3, 3))), cv2.DIST_L2, 5)
    pixel = size[0] / part.width * REGION[2] / WORKING.size[0]
    assert line.sum() > 500
    assert border[line].max() < 1.5 * pixel, "farther from the person's border than a pixel and a half of the mask"
    assert border[line].mean() < 0.5 * pixel
    assert iou(scene.distances(7, part, size) < 0, person > 0) > 0.92


def test_a_frame_without_evidence_has_no_outline(scene: Scene) -> None:
    image = scene.picture(BLIND, scene.whole, (320, 240))
    before = image.copy()
    draw_outline(image, scene.distances(BLIND, scene.whole, (320, 240)))
    assert np.array_equal(image, before)


def test_parts_of_a_picture_are_its_pixels(scene: Scene, footage: Footage) -> None:
    part = Part(100, 50, 80, 60)
    assert np.array_equal(scene.picture(3, part, (80, 60)), footage.frames[3, 50:110, 100:180])
    corners = np.array([[100 - 0.5, 50 - 0.5], [180 - 0.5, 110 - 0.5]])
    rays = np.linalg.inv(PICTURE.matrix) @ np.array([*corners.T, [1.0, 1.0]])
    view = scene.view(part, (160, 180))
    assert np.allclose(view.to_pixels(rays.T), [[-0.5, -0.5], [159.5, 179.5]])


def test_boxes_are_those_of_the_person(scene: Scene, footage: Footage) -> None:
    rows, columns = np.nonzero(footage.frames[7, ..., 0] > 120)
    pixel = REGION[2] / WORKING.size[0]
    expected = [columns.min(), rows.min(), columns.max(), rows.max()]
    assert np.abs(scene.boxes[7] - expected).max() < pixel + 1.0
    assert np.isnan(scene.boxes[BLIND]).all()


def test_overlay_has_a_frame_for_each_of_the_video_and_goes_on_in_grey(scene: Scene, performer: Performer) -> None:
    frames = list(video_overlay_frames(scene, performer))
    assert len(frames) == 26
    width, height = overlay_size(PICTURE.size)
    assert frames[0].shape == (height, width, 3)
    panel = panel_size((width, height))
    inner = (slice(40, panel[1]), slice(4, panel[0] - 4))
    colour = [int(np.ptp(frame[inner].astype(int), axis=2).max()) for frame in frames]
    assert min(colour[:16]) > 100
    assert max(colour[16:]) == 0
    assert np.array_equal(frames[20][inner], frames[25][inner]), "the last frame is held"
    right = (slice(40, panel[1]), slice(panel[0] + 4, None))
    assert not np.array_equal(frames[20][right], frames[25][right]), "the body goes on"


def test_overlay_of_masks_shows_them_in_grey(silhouettes: Silhouettes, performer: Performer) -> None:
    scene = Scene(silhouettes)
    first = next(video_overlay_frames(scene, performer))
    panel = panel_size(overlay_size(WORKING.size))
    left = first[40 : panel[1], 4 : panel[0] - 4]
    assert np.ptp(left.astype(int), axis=2).max() < 25
    large = cv2.resize(silhouettes.masks[0].astype(np.uint8), panel, interpolation=cv2.INTER_NEAREST)
    assert iou(left[..., 0] < 198, large[40:, 4 : panel[0] - 4] > 0) > 0.93


@pytest.mark.parametrize("size", [(144, 180), (1920, 1080), (1080, 1920), (4000, 500), (30, 900), (161, 91), (64, 64)])
def test_overlays_are_of_a_pleasant_even_size(size: tuple[int, int]) -> None:
    width, height = overlay_size(size)
    assert width % 4 == 0
    assert height % 2 == 0
    assert width <= 1920
    panel = panel_size((width, height))
    if 0.3 < size[0] / size[1] < 2.0:
        assert height == 540
        assert panel[0] / panel[1] == pytest.approx(size[0] / size[1], rel=0.02)


@pytest.mark.parametrize(("fps", "shown"), [(25.0, 25), (29.97, 29.97), (60.0, 60), (10.0, 20), (8.0, 24)])
def test_overlay_runs_at_the_videos_rate_or_a_multiple(silhouettes: Silhouettes, fps: float, shown: float) -> None:
    assert float(overlay_fps(Scene(replace(silhouettes, fps=fps)))) == pytest.approx(shown, rel=1e-6)


def test_parts_hold_person_and_body_and_stay_inside(scene: Scene, performer: Performer) -> None:
    times = np.linspace(0.0, scene.duration_s, 5)
    parts = parts_around(scene, performer, times)
    assert len({(part.top, part.width, part.height) for part in parts}) == 1
    for part, time_s in zip(parts, times, strict=True):
        assert 0 <= part.left <= 320 - part.width
        assert 0 <= part.top <= 240 - part.height
        person = np.nonzero(scene.footage.frames[scene.frame_at(time_s), ..., 0] > 120)
        assert part.left < person[1].min()
        assert person[1].max() < part.left + part.width
        assert part.top < person[0].min()
    assert parts[-1].left > parts[0].left


def test_parts_of_nobody_are_the_whole_picture(silhouettes: Silhouettes, character: Character) -> None:
    empty = Scene(replace(silhouettes, masks=np.zeros_like(silhouettes.masks)))
    away = Performer(character, GIRTH, motion(character, 0.6, shift=(0.0, -9.0, 0.0)))
    part = parts_around(empty, away, np.array([0.0, 0.2]))[0]
    assert (part.width, part.height) == WORKING.size


def test_sheet_and_strip_have_a_picture_a_moment(scene: Scene, performer: Performer, silhouettes: Silhouettes) -> None:
    def decoded(png: bytes) -> np.ndarray:
        return cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)

    sheet = decoded(video_sheet(scene, performer))
    assert SHEET_WIDTH_PX - 8 <= sheet.shape[1] <= SHEET_WIDTH_PX
    strips = [decoded(video_strip(s, performer, 3)) for s in (scene, Scene(silhouettes))]
    assert strips[0].shape[0] > 3 * 320 > strips[1].shape[0] > 2 * 320
    with pytest.raises(ConfigError, match="1 or more"):
        video_sheet(scene, performer, 0)


def test_dimmed_and_greyed_frames_keep_their_picture(footage: Footage) -> None:
    frame = footage.frames[0]
    assert dimmed(frame).mean() < 0.75 * frame.mean()
    assert np.ptp(greyed(frame), axis=2).max() == 0
    assert len(np.unique(greyed(frame))) == 2


def test_footage_must_be_of_its_camera(silhouettes: Silhouettes, footage: Footage) -> None:
    with pytest.raises(Mocap2CtrlError, match=r"\(16, 240, 100, 3\).*240, 320"):
        Footage(footage.frames[:, :, :100], PICTURE, FPS)
    with pytest.raises(Mocap2CtrlError, match="fps is 0"):
        Footage(footage.frames, PICTURE, 0.0)
    loaded = LoadedSilhouettes(silhouettes, footage.frames, PICTURE, (), ())
    assert footage_of(loaded).camera is PICTURE
    assert footage_of(replace(loaded, frames=None)) is None
