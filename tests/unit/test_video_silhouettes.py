"""From a video and a camera to silhouettes: the person, the usable range, the working region; and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from video_scene import SIZE, Image, figure, noisy, overlap, painted, room, walk, write_png, write_video

from mocap2ctrl.errors import CameraError, VideoError
from mocap2ctrl.geometry.camera import camera_centre, on_plane, project, rays, to_camera
from mocap2ctrl.types import Camera
from mocap2ctrl.video.border import usable_range
from mocap2ctrl.video.camera_file import load_camera, save_camera
from mocap2ctrl.video.choice import PersonAt
from mocap2ctrl.video.extract import from_video
from mocap2ctrl.video.mask_files import save_masks
from mocap2ctrl.video.picture import outlined_frames
from mocap2ctrl.video.region import OBJECTIVE_PIXELS, reduced_masks, undistortion, working_region
from mocap2ctrl.video.silhouettes import load_silhouettes

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
FOOTAGE = Path(__file__).resolve().parents[2] / "video"

SIDE = Camera(
    "side",
    SIZE,
    np.array([[200.0, 0, 80], [0, 200, 60], [0, 0, 1]]),
    cv2.Rodrigues(np.array([[-1.0, 0, 0], [0, 0, -1], [0, -1, 0]]))[0][:, 0],
    np.array([0.0, 0.9, 5.0]),
)
"""Looks along -y from 5 m away, 0.9 m high."""


def real(name: str) -> Path:
    path = DATA / "video" / name
    if not path.is_file():
        pytest.skip(f"needs {path}")
    return path


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """A video of somebody who walks from left to right within the picture, and the exact masks."""
    images, masks = walk(np.linspace(35, 125, 30))
    return write_video(tmp_path_factory.mktemp("inside") / "inside.mp4", images), masks


class TestUsableRange:
    @staticmethod
    def masks(*touching: tuple[int, int], count: int = 60, rows: slice = slice(40, 90)) -> np.ndarray:
        """A block inside the picture, which reaches to the left border in some frames."""
        result = np.zeros((count, 120, 160), bool)
        result[:, rows, 60:90] = True
        for first, last in touching:
            result[first:last, rows, 0:90] = True
        return result

    def test_all_of_it(self) -> None:
        found = usable_range(self.masks(), 30.0, 0.0, "v")
        assert (found.first, found.last, found.notes) == (0, 60, ())

    def test_late_and_early(self) -> None:
        found = usable_range(self.masks((0, 10), (50, 60)), 30.0, 2.0, "v")
        assert (found.first, found.last) == (10, 50)
        assert "used: 2.33 to 3.67 s" in found.notes[0]
        assert "left border" in found.notes[0]

    def test_the_longest_of_two(self) -> None:
        assert usable_range(self.masks((20, 24)), 30.0, 0.0, "v").first == 24

    def test_a_touch_of_two_frames_does_not_count(self) -> None:
        assert usable_range(self.masks((20, 22)), 30.0, 0.0, "v").notes == ()

    def test_empty_masks_in_between_are_allowed(self) -> None:
        masks = self.masks()
        masks[20:25] = False
        assert usable_range(masks, 30.0, 0.0, "v").notes == ()

    @pytest.mark.parametrize(
        ("rows", "touching", "says"),
        [
            (slice(40, 120), (), r"v: the body is cut off by the bottom border from 0.00 to 2.00 s \(all the time\)"),
            (slice(0, 90), (), r"top border"),
            (slice(40, 90), ((5, 50),), r"left border from 0.17 to 1.67 s; less than 0.5 s"),
        ],
    )
    def test_cut_off(self, rows: slice, touching: tuple, says: str) -> None:
        with pytest.raises(VideoError, match=says):
            usable_range(self.masks(*touching, rows=rows), 30.0, 0.0, "v")

    def test_people_who_come_and_go(self) -> None:
        masks = self.masks(count=120)
        masks[40:80] = False
        with pytest.raises(VideoError, match=r"come and go \(0.00 to 1.33 s, 2.67 to 4.00 s\).*--time-range"):
            usable_range(masks, 30.0, 0.0, "v")

    def test_a_glimpse(self) -> None:
        masks = self.masks()
        masks[6:] = False
        with pytest.raises(VideoError, match=r"0\.20 s only"):
            usable_range(masks, 30.0, 0.0, "v")


class TestRegion:
    def test_the_working_camera_sees_the_masks(self) -> None:
        """What is at the middle of the figure in one picture is so in the other."""
        large = replace(SIDE, size=(1600, 1200), matrix=np.array([[2000.0, 0, 800], [0, 2000, 600], [0, 0, 1]]))
        masks = np.stack([figure(x, (1600, 1200)) for x in (700, 900)])
        small, camera = working_region(masks, large)
        assert small.shape[1:] == camera.size[::-1]
        assert 0.97 * OBJECTIVE_PIXELS < camera.size[0] * camera.size[1] < 1.03 * OBJECTIVE_PIXELS
        assert small[0, 0].sum() == small[0, :, 0].sum() == 0
        rows, columns = np.nonzero(small[0])
        centre = np.array([columns.mean(), rows.mean()])
        rows, columns = np.nonzero(masks[0])
        np.testing.assert_allclose(project(large, on_ray(camera, centre)), [columns.mean(), rows.mean()], atol=2.0)

    def test_a_small_picture_is_never_enlarged(self) -> None:
        small, camera = working_region(np.stack([figure(80)]), SIDE)
        height, width = small.shape[1:]
        assert (width, height) == camera.size
        assert height < 0.6 * SIZE[1] * 1.25
        np.testing.assert_allclose(camera.matrix[0, 0], SIDE.matrix[0, 0])
        assert small.sum() == figure(80).sum()

    def test_masks_are_reduced_by_area(self) -> None:
        masks = np.zeros((1, 40, 40), bool)
        masks[0, :, :19] = True
        np.testing.assert_array_equal(reduced_masks(masks, (10, 10))[0, 0], [1, 1, 1, 1, 1, 0, 0, 0, 0, 0])

    @pytest.mark.parametrize("fisheye", [False, True])
    def test_undistortion_puts_points_where_the_pinhole_sees_them(self, fisheye: bool) -> None:
        camera = replace(SIDE, distortions=np.array([-0.25, 0.05, 0.0, 0.0]), fisheye=fisheye)
        point = np.array([[0.9, 0.0, 0.5]])
        own = (np.array(camera.rotation), np.array(camera.translation))
        if fisheye:
            seen = cv2.fisheye.projectPoints(
                point[:, None], *own, np.array(camera.matrix), np.array(camera.distortions)
            )[0]
        else:
            seen = cv2.projectPoints(point, *own, np.array(camera.matrix), np.array(camera.distortions))[0]
        picture = np.zeros((1, SIZE[1], SIZE[0]), bool)
        x, y = np.round(seen[0, 0]).astype(int)
        picture[0, y - 2 : y + 3, x - 2 : x + 3] = True
        lens = undistortion(camera)
        rows, columns = np.nonzero(lens.masks(picture)[0])
        assert len(rows) > 5
        np.testing.assert_allclose([columns.mean(), rows.mean()], project(lens.camera, point)[0], atol=1.0)
        assert lens.camera.size[0] > SIZE[0]  # what the lens saw at its borders stays in the picture


def on_ray(camera: Camera, pixel: np.ndarray) -> np.ndarray:
    """A point somewhere on the ray of a pixel."""
    return camera_centre(camera) + 4.0 * rays(camera, pixel)


class TestFromVideo:
    def test_masks_are_right_whatever_the_background_comes_from(self, inside: tuple[Path, np.ndarray]) -> None:
        video, truth = inside
        found = from_video(video)
        assert (found.method, found.fps, len(found.masks)) == ("median", 30.0, 30)
        assert overlap(found.masks, truth) > 0.88
        assert found.person_px == pytest.approx(73, abs=3)
        assert found.images is not None
        assert found.images.shape == (*truth.shape, 3)

    def test_a_plate_shows_somebody_who_hardly_moves(self, tmp_path: Path) -> None:
        images, truth = walk(80 + 2 * np.sin(np.arange(20)))
        video = write_video(tmp_path / "v.mp4", images)
        found = from_video(video, plate=write_png(tmp_path / "empty.png", room()))
        assert found.method == "plate"
        assert overlap(found.masks, truth) > 0.88

    def test_who_enters_and_leaves_is_cut_to_the_usable_range(self, tmp_path: Path) -> None:
        images, truth = walk([*[None] * 8, *np.linspace(-20, 180, 50)])
        found = from_video(write_video(tmp_path / "v.mp4", images))
        assert found.method == "empty"
        first = round(found.start_s * 30)
        assert 10 <= first <= 20
        assert overlap(found.masks, truth[first : first + len(found.masks)]) > 0.88
        assert "left and right border" in found.notes[-1]

    def test_twice_gives_the_same(self, inside: tuple[Path, np.ndarray]) -> None:
        np.testing.assert_array_equal(from_video(inside[0]).masks, from_video(inside[0]).masks)

    def test_a_shaking_picture_is_held_still(self, tmp_path: Path) -> None:
        images, truth = walk(np.linspace(35, 125, 30))
        rng = np.random.default_rng(3)
        moved = [np.roll(i, rng.integers(0, 2, 2), (0, 1)) for i in images]
        found = from_video(write_video(tmp_path / "v.mp4", moved), plate=write_png(tmp_path / "p.png", room()))
        assert any("shakes" in note for note in found.notes)
        assert overlap(found.masks, truth) > 0.85


class TestRefused:
    @staticmethod
    def refusal(folder: Path, images: list[Image], **settings: object) -> str:
        with pytest.raises(VideoError) as error:
            from_video(write_video(folder / "v.mp4", images), **settings)  # type: ignore[arg-type]
        assert "\n" not in str(error.value)
        return str(error.value)

    def test_nobody_moves(self, tmp_path: Path) -> None:
        assert "no moving person" in self.refusal(tmp_path, walk([80.0] * 20)[0])

    def test_somebody_stays_on_the_spot_and_is_told_so_unless_there_is_a_plate(self, tmp_path: Path) -> None:
        rng, scene, images = np.random.default_rng(2), room(), []
        for t in range(45):  # every part of the body moves all the time
            images.append(scene.copy())
            images[-1][figure(80 + t % 3)] = rng.integers(0, 255, 3)
        found = from_video(write_video(tmp_path / "v.mp4", noisy(images)))
        assert found.method in ("key", "motion")
        assert any("covers one place for" in note for note in found.notes)
        found = from_video(tmp_path / "v.mp4", plate=write_png(tmp_path / "plate.png", room()))
        assert len(found.masks) == 45

    def test_feet_cut_off(self, tmp_path: Path) -> None:
        scene = room()
        images = noisy([painted(scene, figure(x, lower=30)) for x in np.linspace(35, 125, 30)])
        assert "bottom border" in self.refusal(tmp_path, images)

    def test_two_people(self, tmp_path: Path) -> None:
        scene, steps = room(), np.linspace(0, 35, 30)
        images = noisy([painted(painted(scene, figure(30 + s)), figure(130 - s)) for s in steps])
        assert "two people are in view" in self.refusal(tmp_path, images)

    def test_a_panning_camera(self, tmp_path: Path) -> None:
        wide = room((300, 120))
        images = noisy([painted(wide[:, 2 * t : 2 * t + 160], figure(80 + t)) for t in range(40)])
        assert "the camera moves" in self.refusal(tmp_path, images)

    def test_a_plate_of_another_scene(self, tmp_path: Path) -> None:
        other = write_png(tmp_path / "other.png", 255 - room(seed=9))
        assert "no clean background" in self.refusal(tmp_path, walk(np.linspace(35, 125, 30))[0], plate=other)

    def test_too_short(self, tmp_path: Path) -> None:
        assert "2 frames" in self.refusal(tmp_path, walk([60.0, 70.0])[0])

    @pytest.mark.parametrize(
        ("name", "says"),
        [
            ("neg_moving_camera_pan_run.mp4", "the camera moves"),
            ("neg_two_people_cam01.mp4", r"two people are in view from 0\.\d+ to 1\.\d+ s, .*--person \d+,\d+@0"),
        ],
    )
    def test_real_footage(self, name: str, says: str) -> None:
        with pytest.raises(VideoError, match=says):
            from_video(real(name), time_range=(0.0, 1.6), fps=10.0)

    def test_real_footage_of_several_people_in_turn(self) -> None:
        with pytest.raises(VideoError, match="come and go"):
            from_video(real("neg_partial_bodies_indoor.mp4"), fps=2.0, time_range=(0.0, 30.0))


class TestLoadSilhouettes:
    def test_a_video_with_its_camera_beside_it(self, inside: tuple[Path, np.ndarray]) -> None:
        video, truth = inside
        save_camera(video.with_suffix(".toml"), replace(SIDE, size=(320, 240), matrix=SIDE.matrix * [[2], [2], [1]]))
        loaded = load_silhouettes(video)
        silhouettes = loaded.silhouettes
        assert len(silhouettes) == 30
        assert silhouettes.masks.shape[:0:-1] == silhouettes.camera.size
        assert loaded.frames is not None
        assert loaded.frames.shape[2:0:-1] == loaded.frames_camera.size
        assert any(str(video.with_suffix(".toml")) in note for note in loaded.notes)
        # The middle of the body is at the same place of the world in the silhouettes and in the exact masks.
        seen = [np.array([c.mean(), r.mean()]) for r, c in map(np.nonzero, silhouettes.masks)]
        exact = [np.array([c.mean(), r.mean()]) for r, c in map(np.nonzero, truth)]
        for pixel, wanted in zip(seen, exact, strict=True):
            np.testing.assert_allclose(
                project(loaded.frames_camera, on_ray(silhouettes.camera, pixel)), wanted, atol=2.0
            )

    def test_a_video_that_is_cut_off_is_told(self, inside: tuple[Path, np.ndarray], tmp_path: Path) -> None:
        cut = tmp_path / "cut.mp4"
        with av.open(str(inside[0])) as source, av.open(str(cut), "w", options={"movflags": "faststart"}) as target:
            stream = target.add_stream_from_template(source.streams.video[0])
            for packet in source.demux(video=0):
                if packet.dts is not None:
                    packet.stream = stream
                    target.mux(packet)
        data = cut.read_bytes()
        cut.write_bytes(data[: int(0.8 * len(data))])
        (warning,) = (w for w in from_video(cut).warnings if "cannot be decoded" in w)
        assert "of 30 frames" in warning
        with pytest.raises(VideoError, match=r"nobody moves at 0,0 .*; \d+ of 30 frames .* cannot be decoded"):
            from_video(cut, person_at=PersonAt(0.0, 0.0))  # a refusal tells it, too
        assert not any("cannot be decoded" in w for w in from_video(inside[0]).warnings)

    def test_without_a_camera_one_is_estimated_and_said(self, tmp_path: Path) -> None:
        masks = walk(np.linspace(35, 125, 30))[1]
        save_masks(tmp_path / "m.npz", "walk", masks, 25.0)
        loaded = load_silhouettes(tmp_path / "m.npz")
        (note,) = (n for n in loaded.notes if n.startswith("camera: estimated from heads and feet: focal length"))
        assert "±" in note
        assert "--height says another" in note
        account = loaded.silhouettes.provenance["camera_estimate"]
        assert account["how"] == "estimated"
        assert loaded.silhouettes.provenance["camera"] == "estimated"
        assert loaded.warnings == ()
        # By the estimate the figure, 72 pixels tall, is about as tall as people are.
        feet = on_plane(loaded.frames_camera, np.array([80.0, 101.5]))
        far = to_camera(loaded.frames_camera, feet)[2]
        assert 72 * far / loaded.frames_camera.matrix[1, 1] == pytest.approx(1.75, rel=0.06)
        taller = load_silhouettes(tmp_path / "m.npz", height_m=1.9)
        assert taller.silhouettes.provenance["camera_estimate"]["distance_m"][0] > account["distance_m"][0]

    def test_somebody_who_never_stands_has_a_camera_that_is_assumed(self, tmp_path: Path) -> None:
        lying = np.zeros((20, 120, 160), bool)
        for t in range(20):
            lying[t, 80:100, 40 + t : 110 + t] = True
        save_masks(tmp_path / "m.npz", "crawl", lying, 25.0)
        loaded = load_silhouettes(tmp_path / "m.npz")
        assert any(note.startswith("camera: assumed") for note in loaded.notes)
        (warning,) = loaded.warnings
        assert "nobody stands upright" in warning
        assert "--camera FILE.toml" in warning

    def test_a_camera_of_another_shape_is_refused_before_the_work(self, inside: tuple[Path, np.ndarray]) -> None:
        with pytest.raises(CameraError, match=r"100x100.*160x120"):
            load_silhouettes(inside[0], replace(SIDE, size=(100, 100)))

    def test_masks(self, tmp_path: Path) -> None:
        masks = walk(np.linspace(35, 125, 12))[1]
        save_masks(tmp_path / "m.npz", "walk", masks, 25.0)
        loaded = load_silhouettes(f"{tmp_path / 'm.npz'}:walk", SIDE)
        assert loaded.frames is None
        assert loaded.silhouettes.fps == 25.0
        assert loaded.silhouettes.masks.sum() == masks.sum()  # cut out, not resized
        assert loaded.silhouettes.provenance["kind"] == "masks"
        with pytest.raises(CameraError, match="the 160x120 of the masks"):
            load_silhouettes(f"{tmp_path / 'm.npz'}:walk", replace(SIDE, size=(100, 100)))
        save_camera(tmp_path / "m.toml", SIDE)
        assert load_silhouettes(f"{tmp_path / 'm.npz'}:walk").silhouettes.camera.name == "side"

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"translation": np.array([0.0, -0.9, 5.0])}, r"0\.9 m below the ground"),
            ({"translation": np.array([0.0, 900.0, 5000.0])}, r"m away; allowed is 0\.5 to 200 m"),
            ({"translation": np.array([0.0, 0.2, 1.2])}, r"m tall; allowed is 0\.5 to 3 m"),
            ({"translation": np.array([0.0, 30.0, 5.0])}, r"m tall; allowed is 0\.5 to 3 m"),
            ({"matrix": np.array([[1.0, 0, 80], [0, 1, 60], [0, 0, 1]])}, r"m away; allowed is 0\.5 to 200 m"),
            ({"matrix": np.array([[200.0, 0, 80], [0, 200, 140], [0, 0, 1]])}, r"no ground under the person in 100 %"),
        ],
    )
    def test_a_camera_that_cannot_be(self, tmp_path: Path, change: dict[str, np.ndarray], says: str) -> None:
        save_masks(tmp_path / "m.npz", "walk", walk(np.linspace(35, 125, 12))[1], 25.0)
        with pytest.raises(CameraError, match=says + ".*check its translation"):
            load_silhouettes(tmp_path / "m.npz", replace(SIDE, **change))

    def test_real_footage_agrees_with_its_motion_capture(self) -> None:
        video, reference = real("pose2sim_cam03_balancing.mp4"), DATA / "reference3d"
        loaded = load_silhouettes(video, f"{reference / 'pose2sim_Calib_qualisys.toml'}:cam_03")
        points = world_points(
            reference / "pose2sim_balancing_multiview_0-100.trc", ["RHip", "LHip", "Neck", "RKnee", "LKnee"]
        )
        masks, camera = loaded.silhouettes.masks, loaded.silhouettes.camera
        pixels = np.round(project(camera, points[::2][: len(masks)])).astype(int)
        hits = [masks[t, y, x] for t, frame in enumerate(pixels) for x, y in frame]
        assert np.mean(hits) > 0.9


def world_points(trc: Path, names: list[str]) -> np.ndarray:
    """(T, len(names), 3) points of a TRC file, y up there, in the world, z up."""
    lines = [line.split("\t") for line in trc.read_text().splitlines()]
    columns = [lines[3].index(name) for name in names]
    rows = [line for line in lines[5:] if len(line) > 60]
    return np.array([[[float(row[c + 2]), float(row[c]), float(row[c + 1])] for c in columns] for row in rows])


def test_shipped_footage_is_segmented() -> None:
    """The sample of this repository: its camera sees the rendered joints inside the silhouettes."""
    video = FOOTAGE / "walk.mp4"
    if not video.is_file():
        pytest.skip(f"needs {video}, which tools/render_video.py --samples makes")
    loaded = load_silhouettes(video, time_range=(0.0, 0.7))
    with np.load(video.with_suffix(".truth.npz"), allow_pickle=False) as truth:
        points = truth["points_m"]
    masks, camera = loaded.silhouettes.masks, loaded.silhouettes.camera
    assert load_camera(video.with_suffix(".toml")).name == camera.name
    first = round(float(loaded.silhouettes.provenance["start_s"]) * loaded.silhouettes.fps)
    pixels = np.round(project(camera, points[first : first + len(masks)])).astype(int)
    inside = [
        0 <= y < masks.shape[1] and 0 <= x < masks.shape[2] and masks[t, y, x]
        for t, f in enumerate(pixels)
        for x, y in f
    ]
    assert np.mean(inside) > 0.85


def test_the_picture_shows_frames_with_outlines() -> None:
    images, masks = walk(np.linspace(35, 125, 12))
    sheet = outlined_frames(masks, np.stack(images), [t / 30 for t in range(12)])
    plain = outlined_frames(np.zeros_like(masks), np.stack(images), [t / 30 for t in range(12)])
    assert sheet.shape == plain.shape
    orange = np.all(sheet == (255, 70, 0), axis=-1)
    assert orange.sum() > 8 * 100
    assert not np.all(plain == (255, 70, 0), axis=-1).any()
    assert outlined_frames(masks[:1], None).ndim == 3
