"""Fits from silhouettes: better than their guess, reproducible, resumable from any moment, and blind to the world's heading."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from tiny_fit import needs_walk
from tiny_video import GIRTH, SIDE, new_folder, silhouettes_of, tiny_config, true_track, walk_clip, walk_prior

from mocap2ctrl.character.model import Character
from mocap2ctrl.control.closed_loop import start_vector
from mocap2ctrl.control.controller import Controller
from mocap2ctrl.errors import CaptureError
from mocap2ctrl.fit.capture import CONTROLLER, JOURNAL, TARGET, Capture, load_capture
from mocap2ctrl.fit.config import ASTRAY_CM, FitConfig, budget, growth_weights, video_weights
from mocap2ctrl.fit.problem import Problem, Spreads
from mocap2ctrl.fit.run import FitProgress, evaluation_setup, fit_capture
from mocap2ctrl.fit.video import TRACK_STATE, track_key, tracked_capture, video_capture, video_config
from mocap2ctrl.fit.warm_start import previous_state, reference_of
from mocap2ctrl.geometry import rotations
from mocap2ctrl.geometry.camera import world_to_camera
from mocap2ctrl.motion.clips import resample, state
from mocap2ctrl.objective.terms import Weights, total
from mocap2ctrl.prior.pca import IdentityPrior
from mocap2ctrl.types import Camera, MotionClip, Silhouettes

pytestmark = needs_walk

RUN = {"engine": "mujoco", "torque_scale": 1.0, "command": "a test"}


def capture_of(folder: Path, character: Character, config: FitConfig, fps: float = 30.0) -> Capture:
    """A capture of a walk's beginning whose track is the truth, not yet fitted."""
    clip = walk_clip(character, fps=fps)
    seen = silhouettes_of(character, clip)
    return video_capture(new_folder(folder), seen, true_track(character, clip), config, RUN)


def logged(folder: Path, event: str) -> list[dict[str, object]]:
    entries = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [e for e in entries if e["event"] == event]


@pytest.mark.parametrize(("method", "fps"), [("incremental", 30.0), ("batch", 25.0), ("growth", 30.0)])
def test_a_fit_to_silhouettes_beats_its_guess(tmp_path: Path, character: Character, method: str, fps: float) -> None:
    capture = capture_of(tmp_path / "walk", character, tiny_config(method=method, generations=8), fps)
    seen: list[FitProgress] = []
    outcome = fit_capture(capture, 1, False, seen.append)
    first_stage = logged(capture.folder, "generation")[0]["stage"]
    costs = [float(str(e["cost"])) for e in logged(capture.folder, "generation") if e["stage"] == first_stage]
    assert costs[-1] < costs[0]
    assert all(p.silhouette is not None and 0.0 < p.silhouette < 1.0 for p in seen)
    back = load_capture(capture.folder)
    targets = [s.target.coefficients for s in back.finished_controller().states]
    if method == "growth":
        assert all(t is not None and len(t) == back.target_prior.size for t in targets)
    else:
        assert all(t is None or len(t) == 3 + len(character.hinges) for t in targets)
    assert back.finished_controller().prior == back.target_prior.name
    assert outcome.capture.complete


def test_a_capture_comes_back_with_its_evidence(tmp_path: Path, character: Character) -> None:
    capture = fit_capture(capture_of(tmp_path / "walk", character, tiny_config(generations=1)), 1, False).capture
    back = load_capture(capture.folder)
    assert back.silhouettes is not None
    assert capture.silhouettes is not None
    np.testing.assert_array_equal(back.silhouettes.masks, capture.silhouettes.masks)
    for name in ("matrix", "rotation", "translation"):
        np.testing.assert_array_equal(getattr(back.silhouettes.camera, name), getattr(capture.silhouettes.camera, name))
    assert back.silhouettes.camera.size == SIDE.size
    for name in ("name", "fps", "provenance"):
        assert getattr(back.silhouettes, name) == getattr(capture.silhouettes, name)
    assert back.girth == GIRTH
    assert back.config == capture.config
    assert back.prior.name == "all-but-walk"
    assert isinstance(back.target_prior, IdentityPrior)
    assert back.reference.provenance["sha256"] == "of the video"
    assert not back.reference.ends_standing
    assert np.isnan(back.source_points).all()


def test_workers_do_not_change_a_bit(tmp_path: Path, character: Character) -> None:
    files = []
    for workers in (1, 2):
        capture = capture_of(tmp_path / str(workers), character, tiny_config())
        fit_capture(capture, workers, False)
        files.append([(capture.folder / name).read_bytes() for name in (CONTROLLER, JOURNAL)])
    assert files[0] == files[1]


def turned(clip: MotionClip, silhouettes: Silhouettes, angle: float) -> tuple[MotionClip, Silhouettes]:
    """The same scene in a world whose axes are turned: the camera sees the same."""
    turn = rotations.yaw(angle)
    clip = replace(
        clip,
        root_position=rotations.rotate(turn, clip.root_position),
        root_orientation=rotations.continuous(rotations.multiply(turn, clip.root_orientation)),
    )
    camera = silhouettes.camera
    back = np.array([rotations.rotate(rotations.conjugate(turn), axis) for axis in np.eye(3)]).T
    vector = cv2.Rodrigues(world_to_camera(camera) @ back)[0].reshape(3)
    return clip, replace(silhouettes, camera=Camera("turned", camera.size, camera.matrix, vector, camera.translation))


def guess_cost(folder: Path, character: Character, clip: MotionClip, seen: Silhouettes, *, growth: bool) -> float:
    """E of the first guess over 0.2 s, in the heading frame of the clip's first pose."""
    config = tiny_config(method="growth" if growth else "incremental")
    track = true_track(character, clip)
    capture = video_capture(new_folder(folder), seen, track, config, RUN)
    evaluator = evaluation_setup(capture).evaluator()
    dense = resample(capture.reference, 120.0)
    heading = float(rotations.heading(dense.root_orientation[0]))
    guess = reference_of(dense, heading, character).state("1", 0.0, 0.2)
    if growth:
        guess = previous_state("1", None, guess.target, character)
    controller = Controller((guess,), state(dense, 0), heading, evaluator.prior.name)
    problem = Problem(controller, (0,), True, start_vector(controller.start), 0, 6, Spreads(), "x")
    return float(total(evaluator.terms(problem, [evaluator.spec(problem).mean]))[0])


@pytest.mark.parametrize("growth", [False, True])
def test_which_way_the_person_faces_does_not_matter(tmp_path: Path, character: Character, growth: bool) -> None:
    clip = walk_clip(character, 0.2)
    seen = silhouettes_of(character, clip)
    plain = guess_cost(tmp_path / "plain", character, clip, seen, growth=growth)
    for angle in (1.0, 3.1, -2.0):
        cost = guess_cost(tmp_path / f"{angle}", character, *turned(clip, seen, angle), growth=growth)
        assert cost == pytest.approx(plain, rel=0.02)  # a pixel on an outline may fall to either side


def test_weights_of_a_video_are_its_method_s_unless_given() -> None:
    assert video_config(budget("quick")).weights == video_weights(short=True)
    assert video_config(budget("default")).weights == video_weights() != video_weights(short=True)
    assert video_config(replace(budget("quick"), method="growth")).weights == growth_weights()
    own = replace(budget("quick"), weights=Weights(silhouette=7.0))
    assert video_config(own) == replace(own, astray_cm=ASTRAY_CM)
    own = replace(own, astray_cm=7.0)
    assert video_config(own) is own
    assert growth_weights().markers == growth_weights().velocity == 0.0


class _KilledError(Exception):
    """Stands for a kill: nothing in the package catches it."""


# From silhouettes to controller with the real tracker, cut off wherever it may be.


@pytest.fixture(scope="module")
def seen(character: Character) -> Silhouettes:
    return silhouettes_of(character, walk_clip(character))


def tracked(
    folder: Path, seen: Silhouettes, character: Character, resume: bool, kill: float = 2.0, **settings: int
) -> Capture:
    def on_progress(share: float, what: str) -> None:
        if share >= kill:
            raise _KilledError

    config = tiny_config(**settings)
    return tracked_capture(folder, seen, character, [walk_prior(character)], config, RUN, 2, resume, on_progress)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, character: Character, seen: Silhouettes) -> dict[str, bytes]:
    """Files of a fit that nothing disturbs."""
    folder = new_folder(tmp_path_factory.mktemp("plain") / "walk")
    fit_capture(tracked(folder, seen, character, False), 1, False)
    assert not (folder / TRACK_STATE).exists()
    return files_of(folder)


def files_of(folder: Path) -> dict[str, bytes]:
    names = (CONTROLLER, str(JOURNAL), "character.toml", "camera.toml", "prior.npz")
    contents = {name: (folder / name).read_bytes() for name in names}
    with np.load(folder / TARGET) as data:
        return contents | {name: data[name].tobytes() for name in data.files}


@pytest.mark.parametrize("kill", [0.0, 0.5, 0.7, 0.75, 1.0])
def test_a_fit_killed_while_tracking(
    tmp_path: Path, character: Character, seen: Silhouettes, plain: dict[str, bytes], kill: float
) -> None:
    folder = new_folder(tmp_path / "walk")
    with pytest.raises(_KilledError):
        tracked(folder, seen, character, False, kill)
    with pytest.raises(CaptureError, match=r"target\.npz.*--resume"):
        load_capture(folder)
    assert (folder / TRACK_STATE).exists() == (kill > 0.0)
    fit_capture(tracked(folder, seen, character, True), 1, True)
    assert files_of(folder) == plain


def test_a_fit_killed_while_the_controller_is_fitted(
    tmp_path: Path, character: Character, seen: Silhouettes, plain: dict[str, bytes]
) -> None:
    """The finished track is not sought again."""
    folder = new_folder(tmp_path / "walk")

    def kill(progress: FitProgress) -> None:
        if progress.stage == 2:
            raise _KilledError

    with pytest.raises(_KilledError):
        fit_capture(tracked(folder, seen, character, False), 1, False, kill)
    capture = tracked(folder, seen, character, True, kill=0.0)
    fit_capture(capture, 1, True)
    assert files_of(folder) == plain


def test_another_fit_s_resumption_is_refused_and_changes_nothing(
    tmp_path: Path, character: Character, seen: Silhouettes
) -> None:
    folder = new_folder(tmp_path / "walk")
    with pytest.raises(_KilledError):
        tracked(folder, seen, character, False, 0.5)
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    with pytest.raises(CaptureError, match="other input, settings or version"):
        tracked(folder, seen, character, True, seed=5)
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before


def test_the_key_tells_apart_all_that_a_track_depends_on(character: Character, seen: Silhouettes) -> None:
    prior, config = walk_prior(character), tiny_config()
    priors = [prior]
    masks = np.array(seen.masks)
    masks[0, 0, 0] = True
    keys = [
        track_key(seen, character, priors, config),
        track_key(replace(seen, masks=masks), character, priors, config),
        track_key(replace(seen, fps=25.0), character, priors, config),
        track_key(
            replace(seen, camera=replace(SIDE, translation=np.array([0.0, 0.9, 3.0]))), character, priors, config
        ),
        track_key(seen, character, [replace(prior, sigma=1.1 * prior.sigma)], config),
        track_key(seen, character, priors, replace(config, seed=2)),
        track_key(seen, character, priors, replace(config, tracking=replace(config.tracking, moves=2))),
    ]
    assert len(set(keys)) == len(keys)
    assert track_key(seen, character, priors, replace(config, generations=99)) == keys[0]
