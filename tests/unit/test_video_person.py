"""One person among several bodies: tracks through crossings, who is meant, what is refused and what is left out."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from video_scene import SIZE, figure, noisy, overlap, painted, room, walk, write_png, write_video

from mocap2ctrl.errors import VideoError
from mocap2ctrl.video.border import usable_range
from mocap2ctrl.video.choice import Clip, PersonAt, person_at
from mocap2ctrl.video.extract import from_video
from mocap2ctrl.video.glance import refuse_visitors
from mocap2ctrl.video.person import find_person, same_person, users_person
from mocap2ctrl.video.tracks import follow

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
FPS = 30.0
CLIP = Clip("v", FPS)


def real(name: str) -> Path:
    path = SHARED / "video" / name
    if not path.is_file():
        pytest.skip(f"needs {path}")
    return path


def walkers(*paths: np.ndarray, scales: tuple[float, ...] = (1.0, 1.0), lowers: tuple[float, ...] = (0.0, 0.0)) -> list:
    """The masks (T, H, W) of each of several people who walk along these columns."""
    return [
        np.stack([figure(x, SIZE, scale, lower) for x in path])
        for path, scale, lower in zip(paths, scales, lowers, strict=False)
    ]


LEFT, RIGHT = np.linspace(25, 55, 40), np.linspace(135, 105, 40)
CROSSING = np.linspace(30, 130, 60)


class TestFollow:
    def test_is_followed_and_noise_elsewhere_is_not(self) -> None:
        (truth,) = walkers(CROSSING)
        masks = truth.copy()
        masks[3:9, 5:15, 5:15] = True
        np.testing.assert_array_equal(find_person(masks, CLIP).masks, truth)

    def test_stays_the_same_one_when_another_part_is_larger_for_a_moment(self) -> None:
        (truth,) = walkers(np.linspace(100, 140, 24))
        masks = truth.copy()
        masks[12, 5:100, 5:40] = True
        np.testing.assert_array_equal(find_person(masks, CLIP).masks, truth)

    def test_a_body_in_two_parts_is_joined(self) -> None:
        (whole,) = walkers(CROSSING)
        masks = whole.copy()
        masks[::2, 68:73] = False
        found = find_person(masks, CLIP)
        assert found.notes == ()
        assert overlap(found.masks, whole) > 0.97

    def test_a_body_that_is_always_torn_is_one_person(self) -> None:
        """Its parts are half a body tall each, and go on below each other."""
        (whole,) = walkers(CROSSING)
        masks = whole.copy()
        masks[:, 66:70] = False
        assert overlap(find_person(masks, CLIP).masks, whole) > 0.97

    def test_a_flash_of_light_is_a_gap_and_no_body(self) -> None:
        (truth,) = walkers(CROSSING)
        masks = truth.copy()
        masks[30:33, :100] = True
        truth[30:33] = False
        np.testing.assert_array_equal(find_person(masks, CLIP).masks, truth)

    def test_people_who_cross_share_a_body_there_and_are_two_again_after(self) -> None:
        first, second = walkers(CROSSING, CROSSING[::-1])
        scene = follow(first | second, FPS)
        assert len(scene.tracks) == 2
        together = {t for t in range(60) if abs(CROSSING[t] - CROSSING[::-1][t]) < 18}
        for track in scene.tracks:
            assert len(track.bodies) == 60
            assert together <= track.shared
            assert len(track.shared) < len(together) + 12

    def test_nobody(self) -> None:
        with pytest.raises(VideoError, match="v: no moving person found"):
            find_person(np.zeros((5, 120, 160), bool), CLIP)

    def test_new_masks_of_the_same_person(self) -> None:
        first, second = walkers(LEFT, RIGHT)
        person = find_person(first | second, CLIP, PersonAt(LEFT[0], 70.0, 0.0))
        wider = first | np.roll(first, 1, 2) | second
        assert overlap(same_person(wider, person, FPS), first | np.roll(first, 1, 2)) == 1.0


class TestSeveral:
    def test_two_people_are_refused_with_places_times_and_what_to_say(self) -> None:
        first, second = walkers(LEFT, RIGHT)
        clip = Clip("v", FPS, start_s=2.0, scale=(4.0, 4.0))
        with pytest.raises(VideoError) as error:
            find_person(first | second, clip)
        said = str(error.value)
        assert "two people are in view from 2.00 to 3.33 s" in said
        assert "--time-range" in said
        choices = [person_at(c) for c in re.findall(r"--person (\S+?),? ", said)]
        assert len(choices) == 2
        found = [find_person(first | second, clip, choice).masks for choice in choices]
        for masks, at in zip(found, choices, strict=True):  # what it says works, and in pixels of the input's picture
            assert at is not None
            assert at.time_s == 2.0
            truth = first if abs(at.x - 4 * LEFT[0]) < 20 else second
            np.testing.assert_array_equal(masks, truth)
        assert not np.array_equal(*found)

    def test_three_are_counted(self) -> None:
        masks = np.logical_or.reduce(walkers(LEFT, RIGHT, np.linspace(70, 90, 40), scales=(1, 1, 1), lowers=(0, 0, 0)))
        with pytest.raises(VideoError, match="v: 3 people are in view"):
            find_person(masks, CLIP)

    def test_a_smaller_one_far_away_is_left_out_and_said(self) -> None:
        first, far = walkers(np.linspace(30, 70, 60), np.linspace(110, 140, 60), scales=(1.0, 0.5), lowers=(0.0, -40.0))
        found = find_person(first | far, CLIP)
        np.testing.assert_array_equal(found.masks, first)
        assert "a smaller body moves from 0.00 to 2.00 s" in found.notes[0]
        assert "--person" in found.notes[0]

    def test_somebody_on_a_roof_is_left_out_and_said(self) -> None:
        """Nearly as large, but with feet where nobody on the same ground would have them."""
        first, above = walkers(CROSSING, 60 + 10 * np.sin(CROSSING / 5), scales=(0.62, 0.55), lowers=(14.0, -50.0))
        found = find_person(first | above, CLIP)
        np.testing.assert_array_equal(found.masks, first)
        assert "another person moves" in found.notes[0]

    def test_a_car_that_the_border_cuts_off_is_no_person(self) -> None:
        (first,) = walkers(CROSSING)
        masks = first.copy()
        for t in range(60):
            masks[t, 0:16, max(0, 4 * t - 120) : 4 * t] = True
        np.testing.assert_array_equal(find_person(masks, CLIP).masks, first)

    def test_what_never_moves_is_no_person(self) -> None:
        first, ghost = walkers(LEFT, np.full(40, 120.0))
        np.testing.assert_array_equal(find_person(first | ghost, CLIP).masks, first)


class TestChosen:
    @pytest.fixture
    def crossing(self) -> tuple[np.ndarray, np.ndarray]:
        first, second = walkers(CROSSING, CROSSING[::-1])
        return first, second

    def test_up_to_where_they_meet(self, crossing: tuple[np.ndarray, np.ndarray]) -> None:
        first, second = crossing
        found = find_person(first | second, CLIP, PersonAt(CROSSING[0], 70.0, 0.0))
        kept = int(np.flatnonzero(found.masks.any(axis=(1, 2)))[-1]) + 1
        assert 20 <= kept <= 28
        np.testing.assert_array_equal(found.masks[:kept], first[:kept])
        assert f"touches this one at {kept / FPS:.2f} s; used up to there" in found.notes[0]
        used = usable_range(found.masks, FPS, 0.0, "v", found.apart)
        assert (used.first, used.last) == (0, kept)
        assert "another person" in used.notes[0]

    def test_after_they_met(self, crossing: tuple[np.ndarray, np.ndarray]) -> None:
        first, second = crossing
        found = find_person(first | second, CLIP, PersonAt(CROSSING[55], 70.0, 55 / FPS))
        kept = int(np.flatnonzero(found.masks.any(axis=(1, 2)))[0])
        assert 32 <= kept <= 40
        np.testing.assert_array_equal(found.masks[kept:], first[kept:])
        assert "used from there on" in found.notes[0]

    def test_without_a_time_it_is_the_first_frame_in_which_the_most_are_seen(self) -> None:
        first, second = walkers(LEFT, RIGHT)
        second[:10] = False
        found = find_person(first | second, CLIP, PersonAt(RIGHT[10], 70.0))
        np.testing.assert_array_equal(found.masks, second)

    @pytest.mark.parametrize(
        ("at", "says"),
        [
            (
                PersonAt(80.0, 5.0, 0.0),
                r"nobody moves at 80,5 \(pixels\) at 0.00 s; seen at that time: \d+,\d+ and \d+,\d+",
            ),
            (PersonAt(80.0, 60.0, 99.0), r"asked for at 99 s; the part that is used runs from 0.00 to"),
        ],
    )
    def test_nobody_there(self, crossing: tuple[np.ndarray, np.ndarray], at: PersonAt, says: str) -> None:
        with pytest.raises(VideoError, match=says):
            find_person(crossing[0] | crossing[1], CLIP, at)

    def test_while_they_touch_nobody_can_be_chosen(self) -> None:
        first, second = walkers(np.linspace(50, 110, 90), np.linspace(110, 50, 90))
        with pytest.raises(VideoError, match=r"touch each other at that time, choose another one with --person X,Y@T"):
            find_person(first | second, CLIP, PersonAt(80.0, 60.0, 45 / FPS))

    def test_too_little_before_they_meet(self) -> None:
        (masks,) = walkers(CROSSING)
        apart = np.arange(60) < 10
        with pytest.raises(
            VideoError, match=r"touches or hides this one from 0.33 to 2.00 s, and less than 0.5 s are left"
        ):
            usable_range(masks, FPS, 0.0, "v", apart)

    @pytest.mark.parametrize(
        ("given", "meant"),
        [("3,4", PersonAt(3, 4)), ("3,4@0.5", PersonAt(3, 4, 0.5)), ((3, 4), PersonAt(3, 4)), (None, None)],
    )
    def test_reading(self, given: object, meant: PersonAt | None) -> None:
        assert person_at(given) == meant  # type: ignore[arg-type]

    @pytest.mark.parametrize("given", ["", "3", "3,4,5,6", "left", "3,4@x", "3,nan", "-1,4", (1.0,)])
    def test_what_is_no_point(self, given: object) -> None:
        with pytest.raises(VideoError, match=r"expected X,Y or X,Y@T"):
            person_at(given)  # type: ignore[arg-type]


class TestUsersMasks:
    def test_parts_far_away_are_kept_and_specks_are_not(self) -> None:
        (body,) = walkers(LEFT)
        masks = body.copy()
        masks[:, 10:22, 140:150] = True  # a hat thrown away
        specks = masks.copy()
        specks[::3, 100:102, 150:152] = True
        np.testing.assert_array_equal(users_person(specks, CLIP).masks, masks)

    def test_two_people(self) -> None:
        first, second = walkers(LEFT, RIGHT)
        with pytest.raises(VideoError, match="two people are in view"):
            users_person(first | second, CLIP)
        np.testing.assert_array_equal(users_person(first | second, CLIP, PersonAt(RIGHT[0], 70.0)).masks, second)

    def test_a_user_says_that_one_who_stands_still_is_a_person(self) -> None:
        first, second = walkers(LEFT, np.full(40, 120.0))
        with pytest.raises(VideoError, match="two people are in view"):
            users_person(first | second, CLIP)

    def test_the_real_masks_hold_one_person_each(self) -> None:
        file = SHARED / "silhouettes" / "weizmann_dev_4actors.npz"
        if not file.is_file():
            pytest.skip(f"needs {file}")
        with np.load(file) as data:
            for name in data.files[::4]:
                found = users_person(data[name], Clip(name, 25.0))
                assert found.notes == ()
                assert overlap(found.masks, data[name]) > 0.98, name


class TestVideos:
    def test_of_two_people_the_chosen_one(self, tmp_path: Path) -> None:
        scene = room()
        first, second = walkers(LEFT, RIGHT)
        images = noisy([painted(painted(scene, a), b) for a, b in zip(first, second, strict=True)])
        video = write_video(tmp_path / "v.mp4", images)
        with pytest.raises(VideoError, match=r"two people are in view .* --person \d+,\d+@\d"):
            from_video(video)
        plate = write_png(tmp_path / "plate.png", scene)
        found = from_video(video, person_at=PersonAt(RIGHT[0], 70.0, 0.0), plate=plate)
        assert overlap(found.masks, second) > 0.85
        assert any("another person moves" in note for note in found.notes)

    def test_who_comes_and_goes_is_told_before_the_long_work(self) -> None:
        visit = np.linspace(-20, 180, 45)
        images, _ = walk([*[None] * 20, *visit, *[None] * 40, *visit[::-1], *[None] * 20])
        with pytest.raises(VideoError, match=r"come and go \(0\.\d+ to 2\.\d+ s, 3\.\d+ to 5\.\d+ s\)"):
            refuse_visitors(np.stack(images), FPS, 0.0, "v")

    def test_who_is_hidden_inside_the_picture_for_a_while_did_not_go(self) -> None:
        """Nobody went through the border, so the glance leaves the decision to the exact masks."""
        path = np.linspace(40, 120, 60)
        images, _ = walk([*[None] * 20, *np.linspace(-20, 40, 20), *path[:20], *[None] * 40, *path[20:]])
        refuse_visitors(np.stack(images), FPS, 0.0, "v")

    @pytest.mark.parametrize(
        "name",
        [
            "run_fence_side.mp4",
            "walk_wall_back_and_forth.mp4",
            "treadmill_run_side.mp4",
            "pose2sim_cam03_balancing.mp4",
        ],
    )
    def test_the_glance_refuses_no_good_footage(self, name: str) -> None:
        from mocap2ctrl.video.decode import read_footage

        footage = read_footage(real(name), fps=10.0)
        refuse_visitors(footage.images, footage.fps, 0.0, name)

    def test_real_footage_of_two_people(self) -> None:
        """The woman in front is to the right of the man."""
        video = real("neg_two_people_cam01.mp4")
        found = from_video(video, fps=10.0, person_at=PersonAt(618, 1520, 0.0))
        assert len(found.masks) >= 5
        rows, columns = np.nonzero(found.masks.any(axis=0))
        assert rows.min() / found.masks.shape[1] > 0.35  # her head; the man's is at 0.17
        assert np.median(columns) / found.masks.shape[2] > 0.5
        assert any("another person moves" in note for note in found.notes)
