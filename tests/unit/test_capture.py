"""The capture folder: what is written is what is read, and what is damaged is refused with its place."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_fit import needs_walk, tiny_capture, tiny_fit

from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.errors import CaptureError, ConfigError, Mocap2CtrlError
from mocap2ctrl.fit.capture import (
    CHARACTER,
    CONFIG,
    CONTROLLER,
    PRIOR,
    TARGET,
    Capture,
    check_folder,
    load_capture,
    prepare_folder,
    save_inputs,
    save_result,
)
from mocap2ctrl.fit.config import config_from_mapping
from mocap2ctrl.fit.problem import Spreads
from mocap2ctrl.objective.terms import Weights
from mocap2ctrl.prior.pca import PosePrior

pytestmark = needs_walk


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory, character: Character) -> Capture:
    return tiny_fit(tmp_path_factory.mktemp("capture") / "walk", character, seconds=0.3).capture


@pytest.fixture
def folder(fitted: Capture, tmp_path: Path) -> Path:
    """A copy to damage."""
    return shutil.copytree(fitted.folder, tmp_path / "walk")


def test_a_capture_comes_back_as_it_was(fitted: Capture) -> None:
    back = load_capture(fitted.folder)
    assert back.character.description == fitted.character.description
    assert back.config == fitted.config
    assert dict(back.run) == dict(fitted.run)
    assert back.prior.name == "identity"
    for name in ("root_position", "root_orientation", "angles"):
        np.testing.assert_array_equal(getattr(back.reference, name), getattr(fitted.reference, name))
    for name in ("name", "fps", "loop", "ends_standing", "provenance"):
        assert getattr(back.reference, name) == getattr(fitted.reference, name)
    np.testing.assert_array_equal(back.source_points, fitted.source_points)


def test_the_controller_comes_back_to_the_bit(fitted: Capture) -> None:
    ours, back = fitted.finished_controller(), load_capture(fitted.folder).finished_controller()
    assert ours.structure == back.structure
    for a, b in zip(ours.states, back.states, strict=True):
        np.testing.assert_array_equal(a.target.angles, b.target.angles)
        np.testing.assert_array_equal(a.alpha, b.alpha)
        np.testing.assert_array_equal(a.balance, b.balance)
        assert a.exit == b.exit
    np.testing.assert_array_equal(ours.start.joint_velocities, back.start.joint_velocities)


def test_controllers_that_people_have_made_are_kept(folder: Path) -> None:
    """Of those that a fit has written only finished ones are, and only where another takes their place."""
    capture, place = load_capture(folder), folder / CONTROLLER
    ours = capture.finished_controller()

    def saved(alpha: float | None, *, complete: bool) -> Path | None:
        rates = ours.states[0].alpha if alpha is None else np.full_like(ours.states[0].alpha, alpha)
        changed = ours.with_states([replace(ours.states[0], alpha=rates), *ours.states[1:]])
        return save_result(replace(capture, controller=replace(changed, provenance={"complete": complete})))

    assert saved(None, complete=True) is None, "the same again"
    finished = place.read_bytes()
    kept = saved(0.11, complete=False)
    assert kept == folder / "controller.earlier.json"
    assert kept.read_bytes() == finished
    assert saved(0.12, complete=False) is None, "an interrupted fit's own"
    place.write_bytes(edited := place.read_bytes().replace(b"0.12", b"0.13"))
    assert saved(0.14, complete=True) == folder / "controller.earlier-2.json"
    assert (folder / "controller.earlier-2.json").read_bytes() == edited
    assert kept.read_bytes() == finished
    place.write_bytes(b"{garbage")
    assert saved(0.15, complete=True) == folder / "controller.earlier-3.json"


def test_another_body_settings_and_prior_come_back(tmp_path: Path) -> None:
    character = load_character(height_m=1.3)
    capture = tiny_capture(
        tmp_path / "small", character, prior="walk", fps=60.0, weights=Weights(contact=3.0), spreads=Spreads(angle=0.2)
    )
    save_inputs(capture)
    back = load_capture(capture.folder)
    assert back.character.height_m == 1.3
    assert back.config == capture.config
    assert isinstance(back.prior, PosePrior)
    assert isinstance(capture.prior, PosePrior)
    np.testing.assert_array_equal(back.prior.basis, capture.prior.basis)
    assert back.controller is None
    with pytest.raises(CaptureError, match=r"has not ended.*--resume"):
        back.finished_controller()


def test_files_hold_no_pickles(fitted: Capture) -> None:
    with np.load(fitted.folder / TARGET, allow_pickle=False) as data:
        for name in data.files:
            assert data[name].dtype != object, name


class TestPrepareFolder:
    def test_makes_a_new_one_with_its_parents(self, tmp_path: Path) -> None:
        prepare_folder(tmp_path / "a" / "b", resume=False, overwrite=False)
        assert (tmp_path / "a" / "b" / "checkpoint").is_dir()

    def test_takes_an_empty_one(self, tmp_path: Path) -> None:
        prepare_folder(tmp_path, resume=False, overwrite=False)

    def test_refuses_a_capture_and_loses_nothing(self, folder: Path) -> None:
        before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        with pytest.raises(CaptureError, match=r"--resume.*--overwrite"):
            prepare_folder(folder, resume=False, overwrite=False)
        assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before

    def test_overwrites_a_capture_when_told(self, folder: Path) -> None:
        prepare_folder(folder, resume=False, overwrite=True)
        assert [p.name for p in folder.iterdir()] == ["checkpoint"]

    def test_overwrites_the_working_directory_and_what_a_link_points_to(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        link = tmp_path / "link"
        link.symlink_to(folder)
        prepare_folder(link, resume=False, overwrite=True)
        assert link.is_symlink()
        assert [p.name for p in folder.iterdir()] == ["checkpoint"]
        (folder / "config.toml").touch()
        (folder / "target.npz").touch()
        monkeypatch.chdir(folder)
        prepare_folder(Path(), resume=False, overwrite=True)
        assert [p.name for p in folder.iterdir()] == ["checkpoint"]

    @pytest.mark.parametrize(
        "left", [(), ("checkpoint/journal.bin",), ("checkpoint/journal.bin", "prior.npz", ".character.41.part.toml")]
    )
    def test_what_a_fit_that_died_at_once_has_left_is_a_capture(self, tmp_path: Path, left: tuple[str, ...]) -> None:
        prepare_folder(tmp_path, resume=False, overwrite=False)
        for name in left:
            (tmp_path / name).touch()
        with pytest.raises(CaptureError, match=r"--resume.*--overwrite"):
            prepare_folder(tmp_path, resume=False, overwrite=False)
        prepare_folder(tmp_path, resume=True, overwrite=False)
        assert all((tmp_path / name).exists() for name in left)
        prepare_folder(tmp_path, resume=False, overwrite=True)
        assert [p.name for p in tmp_path.iterdir()] == ["checkpoint"]

    @pytest.mark.parametrize("other", ["notes.txt", "checkpoint/epoch_3.pt"])
    def test_somebody_else_s_checkpoint_is_none_of_ours(self, tmp_path: Path, other: str) -> None:
        (tmp_path / "checkpoint").mkdir()
        (tmp_path / other).write_text("theirs")
        with pytest.raises(CaptureError, match="no capture"):
            prepare_folder(tmp_path, resume=False, overwrite=True)
        assert (tmp_path / other).read_text() == "theirs"

    @pytest.mark.parametrize("name", ["notes.txt", "config.toml"])
    def test_never_empties_a_folder_that_is_no_capture(self, tmp_path: Path, name: str) -> None:
        """Other programs call their settings config.toml too."""
        keep = tmp_path / name
        keep.write_text('title = "my website"\n')
        with pytest.raises(CaptureError, match="no capture"):
            prepare_folder(tmp_path, resume=False, overwrite=True)
        assert keep.read_text() == 'title = "my website"\n'

    def test_a_damaged_capture_can_still_be_overwritten(self, folder: Path) -> None:
        (folder / CONFIG).write_text("format = 1\nrun = [")
        prepare_folder(folder, resume=False, overwrite=True)
        assert not (folder / CONFIG).exists()

    def test_refuses_to_resume_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(CaptureError, match="no capture to resume"):
            prepare_folder(tmp_path / "new", resume=True, overwrite=False)

    def test_refuses_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        with pytest.raises(CaptureError, match="is a file"):
            prepare_folder(tmp_path / "file", resume=False, overwrite=True)

    def test_refuses_a_place_where_no_folder_can_be(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        with pytest.raises(CaptureError, match="cannot be made"):
            prepare_folder(tmp_path / "file" / "below", resume=False, overwrite=False)

    def test_refuses_a_name_too_long_and_makes_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(CaptureError, match=r"too long.*another -o"):
            check_folder(tmp_path / "m" / ("a" * 300), resume=False, overwrite=False)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [CHARACTER, TARGET, CONFIG, CONTROLLER])
@pytest.mark.parametrize("damage", ["cut", "empty", "garbage", "missing"])
def test_a_damaged_file_is_named(folder: Path, name: str, damage: str) -> None:
    path = folder / name
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
        if name == CONTROLLER:
            assert load_capture(folder).controller is None
            return
    else:
        half = data[: len(data) // 2]
        if name.endswith(".toml"):
            half = half[: half.rindex(b"=") + 1]  # a file that ends with a line is a whole one
        path.write_bytes({"cut": half, "empty": b"", "garbage": b"\x80\x00\xff" * 99}[damage])
    with pytest.raises(Mocap2CtrlError) as caught:
        load_capture(folder)
    assert name in str(caught.value)


def test_a_damaged_prior_is_named(folder: Path) -> None:
    (folder / PRIOR).write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(Mocap2CtrlError, match=r"prior\.npz"):
        load_capture(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", 99),
        ("fps", -1.0),
        ("fps", np.nan),
        ("angles_rad", np.zeros((3, 3))),
        ("root_position_m", np.full((3, 3), np.nan)),
        ("source_points_m", np.zeros((2, 2, 2))),
        ("source_points_m", np.zeros(5)),
        ("hinge_names", np.array(["a", "b"])),
        ("root_orientation_wxyz", np.zeros((10, 4))),
        ("provenance_json", np.array("{")),
        ("provenance_json", np.array("[1]")),
    ],
)
def test_a_target_with_a_wrong_entry_is_refused(folder: Path, name: str, value: object) -> None:
    with np.load(folder / TARGET) as data:
        arrays = {key: data[key] for key in data.files}
    np.savez(folder / TARGET, **{**arrays, name: value})
    with pytest.raises(CaptureError, match=r"target\.npz"):
        load_capture(folder)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("format = 2", "format = 7", "format"),
        ("generations = 3", 'generations = "many"', "generations"),
        ("generations = 3", "generations = 0", "generations"),
        ("generations = 3", "generatoins = 3", "generatoins"),
        ("fps = 30.0", "fps = 29.0", "fps"),
        ("contact = ", "touch = ", r"weights\.touch"),
        ("contact = 0.2", 'contact = "x"', "contact"),
        ('engine = "mujoco"', "engine = 3", "engine"),
        ("torque_scale = 1.0", 'torque_scale = "strong"', "torque_scale"),
        ("torque_scale = 1.0", "torque_scale = -1.0", "torque_scale"),
        ("torque_scale = 1.0", "cycles = 0.5", "cycles"),
        ("torque_scale = 1.0", 'allow_ground = "maybe"', "allow_ground"),
        ("[run]", "[ran]", "run"),
        ("[fit.spreads]", "[fit.spread]", "spread"),
    ],
)
def test_a_config_with_a_wrong_entry_is_refused(folder: Path, old: str, new: str, says: str) -> None:
    text = (folder / CONFIG).read_text()
    assert old in text
    (folder / CONFIG).write_text(text.replace(old, new))
    with pytest.raises(Mocap2CtrlError, match=rf"config\.toml.*{says}"):
        load_capture(folder)


def test_tables_that_are_no_tables_are_refused() -> None:
    for data in ({"spreads": 3}, {"weights": {"contact": "x"}}, {"weights": [1]}, {"seed": [1]}):
        with pytest.raises(ConfigError):
            config_from_mapping(data)


def test_settings_are_checked(fitted: Capture) -> None:
    for changes in ({"fps": 50.0}, {"method": "magic"}, {"stage_s": 0.0}, {"starts": 0}, {"first_sigma": 0.0}):
        with pytest.raises(ConfigError, match=next(iter(changes))):
            replace(fitted.config, **changes)


def test_a_capture_of_the_last_format_is_read(fitted: Capture, folder: Path) -> None:
    """Before there were silhouettes, the markers' weight was called likelihood."""
    with np.load(folder / TARGET) as data:
        arrays = {key: data[key] for key in data.files}
    np.savez(folder / TARGET, **{**arrays, "format": 1})
    text = (
        (folder / CONFIG).read_text().replace("format = 2", "format = 1").replace("markers = 1.0", "likelihood = 2.0")
    )
    (folder / CONFIG).write_text("".join(line for line in text.splitlines(True) if "silhouette" not in line))
    back = load_capture(folder)
    assert back.config == replace(fitted.config, weights=Weights(markers=2.0))
    assert back.silhouettes is None
    assert back.controller is not None
