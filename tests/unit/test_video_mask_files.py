"""Masks that users bring: taken as they are, or refused with one clear line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from video_scene import write_png

from mocap2ctrl.errors import VideoError
from mocap2ctrl.video.decode import probe
from mocap2ctrl.video.extract import from_masks
from mocap2ctrl.video.mask_files import is_mask_spec, load_masks, natural_order, save_masks

WEIZMANN = Path(__file__).resolve().parents[3] / "shared" / "data" / "silhouettes" / "weizmann_dev_4actors.npz"


def masks(count: int = 6) -> np.ndarray:
    """A block that moves to the right, and one empty mask."""
    result = np.zeros((count, 20, 30), bool)
    for t in range(count):
        result[t, 5:15, 2 + 3 * t : 8 + 3 * t] = True
    result[2] = False
    return result


class TestNpz:
    def test_what_is_saved_is_read_again(self, tmp_path: Path) -> None:
        key = save_masks(tmp_path / "m.npz", "walk", masks(), 12.5)
        found = load_masks(f"{tmp_path / 'm.npz'}:{key}")
        assert (found.name, found.fps) == ("walk", 12.5)
        np.testing.assert_array_equal(found.masks, masks())

    @pytest.mark.parametrize("name", ["fps", "file", "allow_pickle"])
    def test_names_that_numpy_keeps_for_itself(self, tmp_path: Path, name: str) -> None:
        key = save_masks(tmp_path / "m.npz", name, masks(), 25.0)
        np.testing.assert_array_equal(load_masks(f"{tmp_path / 'm.npz'}:{key}").masks, masks())

    @pytest.mark.parametrize(("dtype", "one"), [(np.uint8, 1), (np.uint8, 255), (np.int64, 1), (np.float32, 1.0)])
    def test_numbers_that_mean_yes_and_no(self, tmp_path: Path, dtype: type, one: float) -> None:
        np.savez(tmp_path / "m.npz", a=masks().astype(dtype) * dtype(one))
        np.testing.assert_array_equal(load_masks(tmp_path / "m.npz", 25.0).masks, masks())

    def test_the_files_own_rate_wins(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "m.npz", a=masks(), fps=50.0)
        assert load_masks(tmp_path / "m.npz", 25.0).fps == 50.0

    @pytest.mark.parametrize(
        ("arrays", "key", "says"),
        [
            ({"a": masks(), "b": masks()}, "", r"several arrays.*a, b"),
            ({"a": masks()}, ":c", r"no key 'c'; it has a"),
            ({f"k{i:02}": masks() for i in range(12)}, ":c", r"k00, .*k09 and 2 more"),
            ({"fps": 25.0}, "", r"is empty"),
            ({"a": masks()[0]}, "", r"shape \(20, 30\); expected masks"),
            ({"a": masks()[:0]}, "", r"shape \(0, 20, 30\)"),
            ({"a": masks() * 3.5}, "", r"float64, 2 values from 0 to 3.5; expected bool"),
            ({"a": np.full((3, 20, 30), np.nan)}, "", r"expected bool"),
            ({"a": masks().astype("U4")}, "", r"<U4; expected bool"),
            ({"a": np.zeros((4, 20, 30), bool)}, "", r"no person in any of 4 masks"),
            ({"a": masks(), "fps": [1.0, 2.0]}, "", r"fps has shape \(2,\)"),
            ({"a": masks(), "fps": -3.0}, "", r"fps is -3"),
            ({"a": masks(), "fps": np.nan}, "", r"fps is nan"),
        ],
    )
    def test_refused(self, tmp_path: Path, arrays: dict, key: str, says: str) -> None:
        np.savez(tmp_path / "m.npz", **arrays)
        with pytest.raises(VideoError, match=says) as error:
            load_masks(f"{tmp_path / 'm.npz'}{key}", None if "fps" in arrays else 25.0)
        assert "\n" not in str(error.value)

    def test_a_missing_rate_is_asked_for(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "m.npz", a=masks())
        with pytest.raises(VideoError, match=r"m.npz:a: .*--fps"):
            load_masks(tmp_path / "m.npz")

    def test_a_name_that_is_not_utf8(self, tmp_path: Path) -> None:
        with pytest.raises(VideoError, match="not UTF-8; rename"):
            load_masks(tmp_path / "m\udcff.npz", 25.0)
        with pytest.raises(VideoError, match="not UTF-8; rename"):
            probe(tmp_path / "v\udcff.mp4")

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            (np.ones((6, 20, 30), bool), r"100 % of the picture.*up to 60 %"),
            (np.pad(np.ones((6, 1, 1), bool), ((0, 0), (8, 11), (9, 20))), r"area is 1 px.*30 or more"),
            (np.random.default_rng(1).random((6, 60, 80)) < 0.5, r"noise and no person"),
        ],
    )
    def test_what_cannot_be_a_person(self, tmp_path: Path, given: np.ndarray, says: str) -> None:
        save_masks(tmp_path / "m.npz", "a", given, 25.0)
        with pytest.raises(VideoError, match=says):
            from_masks(tmp_path / "m.npz")

    def test_a_text_file_is_no_npz(self, tmp_path: Path) -> None:
        (tmp_path / "m.npz").write_text("not an archive")
        with pytest.raises(VideoError, match=r"it is no \.npz file") as error:
            load_masks(tmp_path / "m.npz", 25.0)
        assert "pickle" not in str(error.value)

    def test_a_time_range_that_ends_before_it_begins(self, tmp_path: Path) -> None:
        save_masks(tmp_path / "m.npz", "a", masks(), 25.0)
        with pytest.raises(VideoError, match="first number must be less than the second"):
            from_masks(tmp_path / "m.npz", time_range=(0.2, 0.1))

    def test_pickles_stay_closed(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "m.npz", a=np.array([{"x": 1}], object))
        with pytest.raises(VideoError, match="cannot be read as masks"):
            load_masks(f"{tmp_path / 'm.npz'}:a", 25.0)

    def test_a_single_array_is_no_npz(self, tmp_path: Path) -> None:
        np.save(tmp_path / "m.npy", masks())
        (tmp_path / "m.npy").rename(tmp_path / "m.npz")
        with pytest.raises(VideoError, match="single array"):
            load_masks(tmp_path / "m.npz", 25.0)

    @pytest.mark.parametrize("cut", [0, 30, 400])
    def test_damaged(self, tmp_path: Path, cut: int) -> None:
        save_masks(tmp_path / "m.npz", "a", masks(), 25.0)
        data = (tmp_path / "m.npz").read_bytes()
        assert len(data) > 400
        (tmp_path / "m.npz").write_bytes(data[:cut])
        with pytest.raises(VideoError, match=r"m\.npz"):
            load_masks(tmp_path / "m.npz", 25.0)


class TestFolder:
    def test_pngs_in_natural_order(self, tmp_path: Path) -> None:
        for t, mask in enumerate(masks(12)):
            write_png(tmp_path / f"frame{t}.png", mask.astype(np.uint8) * 255)
        found = load_masks(tmp_path, 25.0)
        assert found.name == tmp_path.name
        np.testing.assert_array_equal(found.masks, masks(12))

    def test_natural_order(self) -> None:
        assert sorted(["f10", "f9", "f09b", "F1"], key=natural_order) == ["F1", "f9", "f09b", "f10"]

    def test_refused(self, tmp_path: Path) -> None:
        with pytest.raises(VideoError, match="holds no PNG"):
            load_masks(tmp_path, 25.0)
        write_png(tmp_path / "0.png", masks()[0].astype(np.uint8) * 255)
        write_png(tmp_path / "1.png", np.zeros((20, 31), np.uint8))
        with pytest.raises(VideoError, match=r"1.png: is 31x20 pixels, 0.png is 30x20"):
            load_masks(tmp_path, 25.0)
        (tmp_path / "1.png").write_bytes(b"nothing")
        with pytest.raises(VideoError, match=r"1.png: is not a PNG"):
            load_masks(tmp_path, 25.0)


def test_what_means_masks(tmp_path: Path) -> None:
    assert is_mask_spec(tmp_path)
    assert is_mask_spec("m.npz:walk")
    assert is_mask_spec("no/such/m.NPZ")
    assert not is_mask_spec("walk.mp4")
    assert not is_mask_spec("m.npz/walk.mp4")


class TestFromMasks:
    @pytest.mark.parametrize(
        ("seen", "refused", "warned"), [(1, True, False), (14, True, False), (20, False, True), (26, False, False)]
    )
    def test_masks_that_are_mostly_empty(self, tmp_path: Path, seen: int, refused: bool, warned: bool) -> None:
        masks = np.zeros((30, 40, 60), bool)
        masks[:seen, 10:30, 25:33] = True
        np.savez(tmp_path / "m.npz", walk=masks)
        spec = f"{tmp_path / 'm.npz'}:walk"
        if refused:
            with pytest.raises(VideoError, match=rf"in {seen} of 30 masks, for 0\.\d+ s; at least 0\.5 s"):
                from_masks(spec, fps=30.0)
        else:
            assert any("10 of 30 masks are empty" in told for told in from_masks(spec, fps=30.0).warnings) == warned

    def test_they_are_taken_as_they_are(self, tmp_path: Path) -> None:
        save_masks(tmp_path / "m.npz", "a", masks(), 25.0)
        found = from_masks(tmp_path / "m.npz")
        np.testing.assert_array_equal(found.masks, masks())
        assert (found.fps, found.start_s, found.images, found.person_px) == (25.0, 0.0, None, 10.0)

    def test_a_lower_rate_and_a_range_choose_the_nearest(self, tmp_path: Path) -> None:
        save_masks(tmp_path / "m.npz", "a", masks(8), 60.0)
        np.testing.assert_array_equal(from_masks(tmp_path / "m.npz").masks, masks(8)[::2])
        found = from_masks(tmp_path / "m.npz", fps=60.0, time_range=(0.05, 0.1))
        np.testing.assert_array_equal(found.masks, masks(8)[3:6])
        assert found.warnings == ()
        longer = from_masks(tmp_path / "m.npz", fps=60.0, time_range=(0.05, 2.0))
        np.testing.assert_array_equal(longer.masks, masks(8)[3:])
        assert longer.warnings == ("time range 0.05 to 2 s goes on after the input's end at 0.13 s",)
        with pytest.raises(VideoError, match="can only be reduced"):
            from_masks(tmp_path / "m.npz", fps=120.0)
        with pytest.raises(VideoError, match="time range"):
            from_masks(tmp_path / "m.npz", time_range=(9.0, 10.0))

    def test_a_body_that_leaves_the_picture_is_cut_to_the_usable_range(self, tmp_path: Path) -> None:
        long = np.zeros((20, 20, 30), bool)
        for t in range(20):
            long[t, 5:15, t : t + 12] = True
        save_masks(tmp_path / "m.npz", "a", long, 25.0)
        found = from_masks(tmp_path / "m.npz")
        assert (len(found.masks), found.start_s) == (17, 0.04)
        assert "left" in found.notes[-1]
        assert "right" in found.notes[-1]

    def test_where_nothing_is_usable_all_is_used_with_a_warning(self, tmp_path: Path) -> None:
        feet = np.zeros((20, 20, 30), bool)
        feet[:, 5:, 5:15] = True
        save_masks(tmp_path / "m.npz", "a", feet, 25.0)
        found = from_masks(tmp_path / "m.npz")
        assert len(found.masks) == 20
        assert "bottom" in found.warnings[0]


@pytest.mark.skipif(not WEIZMANN.is_file(), reason=f"needs {WEIZMANN}")
def test_real_masks() -> None:
    found = from_masks(f"{WEIZMANN}:ira_run", fps=25.0)
    assert (len(found.masks), found.start_s) == (48, 0.24)  # of 56: the others touch the border
    assert 60 < found.person_px < 75
    with pytest.raises(VideoError, match=r"denis_bend, .* and 30 more$"):
        load_masks(f"{WEIZMANN}:nobody_walk", 25.0)
