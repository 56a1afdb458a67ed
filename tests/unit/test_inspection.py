"""What an inspection says of footage: the horizon and the grid by closed forms, heights and paths against a known motion."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from porch import BLIND, FPS, PICTURE, REGION, WORKING, footage_from, silhouettes_of, track_of
from test_report_html import parse

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import ConfigError
from mocap2ctrl.geometry.camera import project
from mocap2ctrl.prior.choose import load_prior
from mocap2ctrl.prior.pca import PosePrior
from mocap2ctrl.report.inspection import PAGE, Figure, Inspection
from mocap2ctrl.report.inspection import PICTURE as SHEET
from mocap2ctrl.report.inspection_ground import draw_arrow, draw_grid, draw_horizon, draw_rod, horizon
from mocap2ctrl.report.inspection_person import SeenPerson, seen_person
from mocap2ctrl.report.inspection_pictures import Shown, jpeg, shown
from mocap2ctrl.report.inspection_sheet import WIDTH_PX, decoded, wrapped
from mocap2ctrl.report.inspection_video import Asked, video_inspection
from mocap2ctrl.report.text import text_mask
from mocap2ctrl.track.first_look import FirstPose, facing, first_look
from mocap2ctrl.types import Camera
from mocap2ctrl.video.mask_files import save_masks
from mocap2ctrl.video.silhouettes import LoadedSilhouettes

HOSTILE = '<script>alert("x")</script> & co'
CONTRACT = {"kind", "fps", "frames", "unit", "up", "travels", "usable", "warnings"}
TILT = 0.2


def camera(tilt: float = 0.0, roll: float = 0.0, height_m: float = 1.5) -> Camera:
    """Looks along world y from above the origin, tilted down, then rolled about its view."""
    level = np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])
    down = cv2.Rodrigues(np.array([tilt, 0.0, 0.0]))[0]
    turned = cv2.Rodrigues(np.array([0.0, 0.0, roll]))[0] @ down @ level
    matrix = [[400.0, 0, 299.5], [0, 400.0, 199.5], [0, 0, 1.0]]
    return Camera("c", (600, 400), matrix, cv2.Rodrigues(turned)[0][:, 0], turned @ [0.0, 0.0, -height_m])


def grey() -> np.ndarray:
    return np.full((400, 600, 3), 90, np.uint8)


def test_horizon_of_a_tilted_camera_is_a_level_line_above_the_middle() -> None:
    for tilt in (0.0, TILT):
        ends = horizon(camera(tilt))
        assert ends is not None
        assert np.allclose([end[1] for end in ends], 199.5 - 400.0 * np.tan(tilt))
        assert [end[0] for end in ends] == [0.0, 599.0]


def test_horizon_is_where_far_ground_is_seen() -> None:
    seen_by = camera(TILT, roll=0.1)
    ends = horizon(seen_by)
    assert ends is not None
    far = project(seen_by, np.array([[-4e7, 1e8, 0.0], [4e7, 1e8, 0.0]]))
    slope = (ends[1][1] - ends[0][1]) / 599.0
    assert np.allclose(far[:, 1], ends[0][1] + slope * far[:, 0], atol=1e-3)


def test_a_camera_that_looks_down_has_no_horizon() -> None:
    assert horizon(camera(0.5 * np.pi)) is None


def test_grid_covers_whole_metres_and_nothing_else() -> None:
    image, seen_by = grey(), camera(TILT)
    draw_grid(image, seen_by, np.array([0.0, 4.0]))
    crossing, between = (project(seen_by, [[x, y, 0.0]])[0] for x, y in ((1.0, 4.0), (0.5, 4.5)))
    at = [image[round(v), round(u)].astype(int) for u, v in (crossing, between)]
    assert at[0][2] > 200
    assert np.all(at[1] == 90)
    assert np.all(image[:100] == 90)  # the sky


def test_rod_stands_from_the_foot_to_its_height() -> None:
    image, seen_by = grey(), camera(TILT)
    draw_rod(image, seen_by, np.array([0.3, 4.0]), 1.75, height_px=12)
    for level, white in ((0.02, True), (1.0, True), (1.73, True), (1.85, False)):
        u, v = np.rint(project(seen_by, [[0.3, 4.0, level]])[0]).astype(int)
        assert (image[v, u].min() > 180) == white, level


def test_what_is_behind_the_camera_is_left_out() -> None:
    image, seen_by = grey(), camera(TILT)
    draw_rod(image, seen_by, np.array([0.0, -4.0]), 1.75, height_px=12)
    draw_arrow(image, seen_by, np.array([0.0, -4.0]), 0.0, 0.7)
    assert np.all(image == 90)


def test_a_horizon_outside_of_the_picture_is_named() -> None:
    image = grey()
    draw_horizon(image, camera(0.8), height_px=14)
    assert np.any(image != 90)
    assert np.all(image[100:] == 90)


@pytest.mark.parametrize(
    ("degrees", "words"),
    [
        (0, "right"),
        (180, "left"),
        (90, "away"),
        (-90, "towards us"),
        (45, "right and away"),
        (225, "left and towards us"),
    ],
)
def test_headings_in_words(degrees: float, words: str) -> None:
    assert facing(np.radians(degrees), np.array([1.0, 0, 0]), np.array([0, 1.0, -0.1])) == words


@pytest.fixture(scope="module")
def loaded(character: Character) -> LoadedSilhouettes:
    """The porch's video, without what no camera saw."""
    footage, silhouettes = footage_from(character), silhouettes_of(character)
    silhouettes = replace(silhouettes, provenance={"kind": "video", "method": "plate", "start_s": 0.5})
    notes = (
        "background: a green one",
        "camera: by hand",
        "used: 0.50 to 1.10 s of the video; elsewhere nobody is there",
    )
    return LoadedSilhouettes(silhouettes, footage.frames, PICTURE, notes, ("beware",), footage.frames[0])


@pytest.fixture(scope="module")
def masks_only(loaded: LoadedSilhouettes) -> LoadedSilhouettes:
    silhouettes = replace(loaded.silhouettes, provenance={"kind": "masks", "method": "masks", "start_s": 0.0})
    return replace(loaded, silhouettes=silhouettes, frames=None, background=None)


def measured(loaded: LoadedSilhouettes, start_s: float = 0.5) -> tuple[Shown, SeenPerson]:
    seen = shown(loaded)
    return seen, seen_person(seen.scene, start_s, seen.pixels)


def test_person_is_measured_at_the_depth_of_the_feet(loaded: LoadedSilhouettes, character: Character) -> None:
    _, person = measured(loaded)
    assert np.flatnonzero(np.isnan(person.tall_px)).tolist() == [BLIND]
    assert person.times_s[[0, -1]].tolist() == [0.5, 1.1]
    low, high = person.heights_m
    assert low == pytest.approx(character.height_m, rel=0.06)
    assert high == pytest.approx(character.height_m, rel=0.06)
    truth = track_of(character).root_position[:, :2]
    assert np.allclose(person.path_m, truth, atol=0.25)  # the depth of one sole is not the body's
    assert person.reach_m == pytest.approx(0.3, abs=0.06)


def test_masks_alone_are_measured_alike(loaded: LoadedSilhouettes, masks_only: LoadedSilhouettes) -> None:
    with_frames, without = measured(loaded)[1], measured(masks_only)[1]
    for name in ("tall_px", "tall_m", "path_m", "soles_m"):
        assert np.allclose(getattr(with_frames, name), getattr(without, name), equal_nan=True), name


def test_masks_alone_are_shown_in_the_whole_picture(masks_only: LoadedSilhouettes) -> None:
    seen = shown(masks_only)
    size = (PICTURE.size[0] * 2, PICTURE.size[1] * 2)
    points = np.array([[0.2, 0.1, 1.0], [-0.3, 0.0, 0.2]])
    exact = 2.0 * (project(PICTURE, points) + 0.5) - 0.5
    assert np.allclose(project(seen.camera(seen.whole, size), points), exact, atol=2.0 * REGION[2] / WORKING.size[0])


@pytest.fixture(scope="module")
def poses(loaded: LoadedSilhouettes, character: Character) -> tuple[FirstPose, ...]:
    prior = load_prior("locomotion", character)
    assert isinstance(prior, PosePrior)
    return first_look(loaded.silhouettes, character, prior)


def test_first_look_keeps_the_true_direction_and_its_rivals(poses: tuple[FirstPose, ...], character: Character) -> None:
    energies = [pose.energy for pose in poses]
    assert energies == sorted(energies)
    assert len(poses) > 1
    headings = np.array([pose.heading for pose in poses])
    apart = np.abs((headings[:, None] - headings + np.pi) % (2 * np.pi) - np.pi)
    assert np.all(apart[~np.eye(len(poses), dtype=bool)] > np.radians(40.0))
    assert np.abs((headings + np.pi) % (2 * np.pi) - np.pi).min() < np.radians(45.0)  # it faces x
    best = poses[0].pose.root_position
    assert np.linalg.norm(best - track_of(character).root_position[0]) < 0.3


@pytest.fixture
def inspection(
    loaded: LoadedSilhouettes, poses: tuple[FirstPose, ...], character: Character, tmp_path: Path
) -> Inspection:
    """Of the porch; on disk there are masks only, for the input's duration."""
    file = tmp_path / "porch.npz"
    save_masks(file, "porch", np.ones((40, 20, 20), bool), FPS)
    return video_inspection(Asked(f"{file}:porch", HOSTILE, "mocap2ctrl fit porch.mp4"), loaded, character, poses)


def test_inspection_of_a_video_says_what_was_understood(inspection: Inspection, poses: tuple[FirstPose, ...]) -> None:
    said = json.loads(json.dumps(inspection.summary(), allow_nan=False))
    assert said.keys() >= CONTRACT
    assert (said["kind"], said["frames"], said["fps"], said["unit"], said["up"]) == ("video", 16, FPS, None, None)
    assert (said["usable"], said["error"], said["travels"], said["start_s"]) == (True, None, False, 0.5)
    assert said["method"] == "plate"
    assert said["warnings"] == ["beware"]
    assert said["camera"]["tilt_deg"] == pytest.approx(np.degrees(np.arcsin(0.1 / np.hypot(0.1, 0.995))), abs=0.01)
    assert said["camera"]["source"] == "camera: by hand"
    assert len(said["first_poses"]) == len(poses)
    titles = [figure.title for figure in inspection.figures]
    assert len(titles) == 6
    assert "Background" in titles


def test_page_holds_everything(inspection: Inspection) -> None:
    html = inspection.html()
    page = parse(html)
    assert "script" not in page.tags
    assert all(link.startswith("data:image/") for link in page.links)
    text = " ".join(page.text)
    for words in (HOSTILE, "beware", "camera: by hand", "mocap2ctrl fit porch.mp4", "A green one"):
        assert words.lower() in text.lower()
    assert html.count("<img") == html.count(' alt="') == len(inspection.figures)


def test_picture_holds_all_figures(inspection: Inspection) -> None:
    whole = decoded(inspection.png())
    fewer = decoded(replace(inspection, figures=inspection.figures[:1]).png())
    assert whole.shape[1] == fewer.shape[1] == WIDTH_PX
    assert whole.shape[0] > fewer.shape[0] + 800


def test_a_camera_that_makes_a_giant_is_told(loaded: LoadedSilhouettes, character: Character, tmp_path: Path) -> None:
    save_masks(tmp_path / "m.npz", "m", np.ones((40, 20, 20), bool), FPS)
    asked = Asked(f"{tmp_path / 'm.npz'}:m", "m", None)
    child = character.scaled(height_m=1.1)
    warnings = video_inspection(asked, loaded, child, ()).warnings
    assert any("--height" in warning and "1.10 m" in warning for warning in warnings)


def figure(width: int, height: int, half: bool = False) -> Figure:
    return Figure("a title", "what it shows", "a caption", jpeg(np.zeros((height, width, 3), np.uint8)), half=half)


def tiny(*figures: Figure, error: str | None = None) -> Inspection:
    return Inspection("in.mp4", "in", "video", error, 30.0, 31, figures=figures)


def test_halves_share_a_row_and_tall_pictures_are_bounded() -> None:
    def tall(*figures: Figure) -> int:
        return int(decoded(tiny(*figures).png()).shape[0])

    square, portrait = figure(300, 300, half=True), figure(100, 900, half=True)
    assert tall(square, square) == tall(square)
    assert tall(square, square, square) > tall(square) + 700
    assert tall(portrait) < tall(square) + 200


def test_lines_fit_and_lose_nothing() -> None:
    text = "a caption of some words and/a/path/that/is/longer/than/any/line/can/be.mp4 at its end"
    lines = wrapped(text, 160, 15)
    assert len(lines) > 3
    assert all(text_mask(line, 15, False).shape[1] <= 160 for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_a_refusal_is_on_the_page_and_in_the_summary() -> None:
    seen = tiny(figure(40, 30), error=f"in.mp4: {HOSTILE}")
    assert not seen.usable
    assert seen.summary()["error"] == f"in.mp4: {HOSTILE}"
    assert seen.duration_s == 1.0
    page = parse(seen.html())
    assert HOSTILE in " ".join(page.text)
    assert "script" not in page.tags


def test_nothing_is_replaced_unless_asked(tmp_path: Path) -> None:
    seen = tiny(figure(40, 30))
    assert [file.name for file in seen.write(tmp_path / "look")] == [PAGE, SHEET]
    with pytest.raises(ConfigError, match="exists already; use --overwrite"):
        seen.write(tmp_path / "look")
    seen.write(tmp_path / "look", overwrite=True)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConfigError, match="is a file"):
        seen.write(tmp_path / "file", overwrite=True)
