"""A belt as ground: what is seen of a body on ground that moves is what a camera at rest sees of the body, carried along."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from performed import poses, side_camera
from porch import motion
from test_track import TINY
from tiny_video import SIDE, WALK, silhouettes_of, walk_prior

from mocap2ctrl.character.kinematics import clip_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import Mocap2CtrlError
from mocap2ctrl.evaluation.silhouettes import model_masks, silhouette_iou
from mocap2ctrl.files import write_arrays
from mocap2ctrl.fit.config import budget
from mocap2ctrl.fit.target_file import Target, load_target, save_target
from mocap2ctrl.fit.video import track_key
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.clips import resample
from mocap2ctrl.motion.deepmimic import deepmimic_directory
from mocap2ctrl.motion.load import load_motion
from mocap2ctrl.objective.silhouettes import silhouette_distances, view_of
from mocap2ctrl.objective.target import silhouette_target
from mocap2ctrl.report.performer import Performer
from mocap2ctrl.report.scene import Scene
from mocap2ctrl.report.video_facts import camera_facts
from mocap2ctrl.track.energy import belief_at, equations
from mocap2ctrl.track.evidence import MIDDLE, evidence_of
from mocap2ctrl.track.start import first_paths
from mocap2ctrl.track.tracker import track
from mocap2ctrl.track.tree import FACTORS
from mocap2ctrl.types import MotionClip, Silhouettes

BELT = np.array([-1.3, 0.4])
STANDARD = np.ones(FACTORS)


@pytest.fixture(scope="module")
def travelling(character: Character) -> MotionClip:
    """Over the belt."""
    return motion(character, 0.4)


def in_place(clip: MotionClip, velocity: np.ndarray = BELT) -> MotionClip:
    """As the camera sees it."""
    times = np.arange(len(clip)) / clip.fps
    return replace(clip, root_position=clip.root_position + times[:, None] * np.append(velocity, 0.0))


@pytest.fixture(scope="module")
def still(character: Character, travelling: MotionClip) -> Silhouettes:
    """Of who is on the belt, taken for one on ground that rests."""
    return silhouettes_of(character, in_place(travelling), SIDE)


@pytest.fixture(scope="module")
def belted(still: Silhouettes) -> Silhouettes:
    return replace(still, ground_velocity=BELT)


def test_ground_rests_unless_it_is_told_to_move(still: Silhouettes, belted: Silhouettes) -> None:
    assert not still.carried(still.times_s).any()
    np.testing.assert_allclose(belted.carried(np.array([0.0, 2.0])), [[0.0, 0.0, 0.0], [-2.6, 0.8, 0.0]])
    assert not belted.ground_velocity.flags.writeable
    with pytest.raises(Mocap2CtrlError, match="ground_velocity has shape"):
        replace(still, ground_velocity=np.zeros(3))


@pytest.mark.parametrize("backwards", [False, True])
def test_outlines_of_the_tracker(
    character: Character, travelling: MotionClip, still: Silhouettes, belted: Silhouettes, backwards: bool
) -> None:
    """Energy and derivatives of the outline, in windows and backwards in time: the ground is where it was at that frame."""
    prior = walk_prior(character)
    found = []
    for seen, clip in ((still, in_place(travelling)), (belted, travelling)):
        evidence, path = evidence_of(seen, character, prior), poses(clip)
        if backwards:
            evidence, path = evidence.reversed(), path.reversed()
        window, part = evidence.window(3, 8), path.part(3, 8)
        belief = belief_at(window, part, STANDARD)
        silent = replace(window.weights, root_acceleration=1e9, travel_speed=1e9, facing_speed=1e9, contact_speed=1e9)
        found.append(equations(replace(window, weights=silent), part, STANDARD, belief, MIDDLE, 1))
    assert found[0].parts["outline"] > 0.0
    assert found[1].parts["outline"] == pytest.approx(found[0].parts["outline"], rel=1e-9)
    assert found[1].parts["feet"] != pytest.approx(found[0].parts["feet"], rel=0.01)
    outline = [e.gradient[:, 6:] for e in found]
    scale = np.abs(outline[0]).max()
    free = belief.standing.max(axis=1) < 1e-6
    np.testing.assert_allclose(outline[1][free], outline[0][free], atol=1e-6 * scale)


def test_first_poses_go_with_the_belt(character: Character, still: Silhouettes, belted: Silhouettes) -> None:
    """Forwards and backwards: the same poses, at the places where the belt carries them into the same picture."""
    prior = walk_prior(character)
    for order in (1, -1):
        paths = []
        for seen in (still, belted):
            evidence = evidence_of(seen, character, prior)
            evidence = evidence if order > 0 else evidence.reversed()
            turned = replace(seen, masks=seen.masks[::order])
            headings = np.array([0.0, np.pi])
            paths.append(first_paths(evidence, turned, character, prior.exemplars[:4], headings, 5, 2))
        carried = belted.carried(belted.times_s)[::order][:5]
        for rests, moves in zip(*paths, strict=True):
            np.testing.assert_allclose(moves.root_position + carried, rests.root_position, atol=1e-9)
            np.testing.assert_array_equal(moves.angles, rests.angles)


@pytest.mark.parametrize("fps", [25.0, 30.0])
def test_equation_9(
    character: Character, travelling: MotionClip, still: Silhouettes, belted: Silhouettes, fps: float
) -> None:
    found = []
    for seen, clip in ((still, in_place(travelling)), (belted, travelling)):
        view = view_of(character, silhouette_target(seen, 1.0, fps))
        positions, orientations = clip_frames(character, resample(clip, fps))
        frames = np.arange(positions.shape[0])
        found.append(silhouette_distances(view, positions[None], orientations[None], frames))
    np.testing.assert_allclose(found[1], found[0], atol=1e-9)
    assert 0.0 < found[0].mean() < 0.3


def test_overlap(character: Character, travelling: MotionClip, still: Silhouettes, belted: Silhouettes) -> None:
    girth = 1.1
    np.testing.assert_array_equal(model_masks(character, travelling, girth, belted), still.masks)
    assert silhouette_iou(character, travelling, girth, belted) == 1.0
    assert silhouette_iou(character, travelling, girth, still) < 0.7


def test_overlay(character: Character, travelling: MotionClip, belted: Silhouettes) -> None:
    """The body is drawn where it was filmed; once its motion is over it stays there."""
    scene = Scene(belted)
    times = np.array([0.0, 0.2, travelling.duration_s, 9.0])
    positions, _ = Performer(character, 1.0, travelling).frames(scene, times)
    filmed, _ = Performer(character, 1.0, in_place(travelling)).frames(
        Scene(replace(belted, ground_velocity=(0, 0))), times
    )
    np.testing.assert_allclose(positions, filmed, atol=1e-12)
    facts = camera_facts(scene, travelling)
    assert "1.36 m/s" in facts["moving belt"]
    apart = camera_facts(Scene(replace(belted, ground_velocity=(0, 0))), in_place(travelling))
    assert "moving belt" not in apart
    assert facts["distance to the person"] == apart["distance to the person"]


def test_target_file(character: Character, travelling: MotionClip, belted: Silhouettes, tmp_path: Path) -> None:
    """Captures from before belts have ground that rests."""
    file = tmp_path / "target.npz"
    points = np.full((len(travelling), len(character.evaluation_points), 3), np.nan)
    save_target(file, Target(travelling, points, belted, 1.1), character)
    loaded = load_target(file, character, belted.camera).silhouettes
    assert loaded is not None
    np.testing.assert_array_equal(loaded.ground_velocity, BELT)
    with np.load(file) as data:
        write_arrays(file, {name: data[name] for name in data.files if name != "ground_velocity_m_s"})
    old = load_target(file, character, belted.camera).silhouettes
    assert old is not None
    assert not old.ground_velocity.any()


def test_a_track_with_another_belt_is_another(character: Character, still: Silhouettes, belted: Silhouettes) -> None:
    priors = [walk_prior(character)]
    keys = [track_key(seen, character, priors, budget("quick")) for seen in (still, belted, belted)]
    assert keys[0] != keys[1] == keys[2]


@pytest.mark.skipif(deepmimic_directory() is None, reason="DeepMimic's clips come with pybullet")
def test_the_belt_settles_where_a_walker_goes(character: Character) -> None:
    """Tracked from nothing: over the belt the walk goes on as it was performed, and faces where it goes."""
    walk = resample(load_motion(WALK, character).clip, 30.0).cut(4, 16)
    velocity = -(walk.root_position[-1] - walk.root_position[0])[:2] / walk.duration_s
    filmed = in_place(walk, velocity)
    seen = replace(silhouettes_of(character, filmed, side_camera(filmed), 1.0), ground_velocity=velocity)
    config = replace(TINY, candidates=48, headings=12, hypotheses=6, explored=3)
    found = track(seen, character, walk_prior(character), config=config).clip
    gone = (found.root_position[-1] - found.root_position[0])[:2] / found.duration_s
    assert gone @ -velocity / (velocity @ velocity) == pytest.approx(1.0, abs=0.15)
    forward = rotations.rotate(found.root_orientation, np.array([1.0, 0.0, 0.0]))[:, :2]
    assert np.min(forward @ -velocity) > 0.8 * np.linalg.norm(velocity)
