"""Keypoints in the energies of tracker and controller: derivatives, closed forms, the same bits without, left and right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from performed import poses, rollouts_of, shaken, side_camera, walk_at_30_fps
from tiny_video import walk_prior

from mocap2ctrl.character.kinematics import clip_frames, points_world
from mocap2ctrl.character.landmarks import LANDMARKS, landmarks_of
from mocap2ctrl.character.model import Character
from mocap2ctrl.character.shape import body_shape, capsule_ends
from mocap2ctrl.control.closed_loop import Rollouts
from mocap2ctrl.fit.batch import weights_of
from mocap2ctrl.fit.config import budget
from mocap2ctrl.fit.judgement import TERMS
from mocap2ctrl.fit.key import keypoint_arrays
from mocap2ctrl.fit.video import track_key
from mocap2ctrl.geometry.camera import project
from mocap2ctrl.geometry.rasteriser import rasterise
from mocap2ctrl.objective.keypoints import WORST_CM
from mocap2ctrl.objective.residuals import residuals
from mocap2ctrl.objective.target import marker_target, silhouette_target
from mocap2ctrl.objective.terms import Objective, TermValue, Weights, total
from mocap2ctrl.prior import PosePrior
from mocap2ctrl.track.energy import belief_at, energy_of, equations
from mocap2ctrl.track.evidence import MIDDLE, Evidence, evidence_of
from mocap2ctrl.track.keypoints import frames_stood_for, point_forces
from mocap2ctrl.track.path import Path as Poses
from mocap2ctrl.track.path import sides_of
from mocap2ctrl.track.start import first_paths
from mocap2ctrl.track.tree import FACTORS
from mocap2ctrl.types import Array, Camera, Keypoints, MotionClip, Silhouettes

STANDARD = np.ones(FACTORS)
BODY = np.array([1.1, 0.97, 1.03, 1.02, 1.12])
NAMES = tuple(name for name in LANDMARKS if name not in ("head", "head_top"))


@pytest.fixture(scope="module")
def prior(character: Character) -> PosePrior:
    return walk_prior(character)


@pytest.fixture(scope="module")
def walk(character: Character) -> MotionClip:
    return walk_at_30_fps(character, 4, 12)


def keypoints_of(character: Character, clip: MotionClip, camera: Camera) -> Keypoints:
    """What a detector without errors says."""
    marks = landmarks_of(character, NAMES)
    positions, orientations = clip_frames(character, clip)
    pixels = project(camera, points_world(positions, orientations, marks.segment, marks.local))
    return Keypoints(NAMES, pixels, np.full(pixels.shape[:2], 0.9))


@pytest.fixture(scope="module")
def plain(character: Character, walk: MotionClip) -> Silhouettes:
    shape, camera = body_shape(character), side_camera(walk, (80, 64), 90.0, (39.5, 24.0))
    masks = rasterise(capsule_ends(shape, *clip_frames(character, walk)), shape.radii, camera)
    return Silhouettes("walk", walk.fps, masks, camera)


@pytest.fixture(scope="module")
def pointed(character: Character, walk: MotionClip, plain: Silhouettes) -> Silhouettes:
    return replace(plain, keypoints=keypoints_of(character, walk, plain.camera))


@pytest.fixture(scope="module")
def evidence(pointed: Silhouettes, character: Character, prior: PosePrior) -> Evidence:
    return evidence_of(pointed, character, prior)


def forces(evidence: Evidence, path: Poses, body: Array, derivatives: bool):
    assert evidence.keypoints is not None
    return point_forces(evidence.keypoints, evidence.tree, evidence.view, body, path, evidence.shifts, 2.0, derivatives)


def test_derivatives_of_the_points_energy(evidence: Evidence, walk: MotionClip) -> None:
    """The gradient is exact: to first order the energy changes by forces times motion, for coordinates and body."""
    window, path = evidence.window(0, 3), shaken(poses(walk).part(0, 3), 0.1)
    here = forces(window, path, BODY, True)
    gradient = np.einsum("tn,tnd->td", here.force, here.jacobian)
    size, eps = gradient.shape[1] - FACTORS, 1e-6
    for k in range(size + FACTORS):
        step, growth = np.zeros((3, size)), np.zeros(FACTORS)
        if k < size:
            step[1, k] = eps
        else:
            growth[k - size] = eps
        there, back = (forces(window, path.moved(s * step), BODY + s * growth, False).energy.sum() for s in (1, -1))
        found = gradient[1, k] if k < size else gradient[:, k].sum()
        assert found == pytest.approx((there - back) / (2 * eps), rel=1e-5, abs=1e-5), k


def test_the_term_enters_energy_gradient_and_matrix(evidence: Evidence, walk: MotionClip) -> None:
    """By as much as its own forces say, and nothing else changes."""
    path = shaken(poses(walk), 0.05)
    belief = belief_at(evidence, path, BODY)
    with_, without = (
        equations(e, path, BODY, belief, MIDDLE, 2) for e in (evidence, replace(evidence, keypoints=None))
    )
    found = forces(evidence, path, BODY, True)
    factor = evidence.weights.keypoints
    assert with_.parts["keypoints"] == pytest.approx(factor * found.energy.sum())
    assert {k: v for k, v in with_.parts.items() if k != "keypoints"} == without.parts
    size = with_.gradient.shape[1]
    pulled = factor * np.einsum("tn,tnd->td", found.force, found.jacobian)
    stiff = factor * np.einsum("tnd,tn,tne->tde", found.jacobian, found.stiffness, found.jacobian)
    np.testing.assert_allclose(with_.gradient - without.gradient, pulled[:, :size], atol=1e-6)
    np.testing.assert_allclose(with_.body - without.body, pulled[:, size:].sum(axis=0), atol=1e-6)
    np.testing.assert_allclose(with_.within - without.within, stiff[:, :size, :size], atol=1e-4)
    np.testing.assert_allclose(with_.corner - without.corner, stiff[:, size:, size:].sum(axis=0), atol=1e-4)


def test_energy_of_one_point_in_closed_form(
    character: Character, walk: MotionClip, pointed: Silhouettes, prior: PosePrior
) -> None:
    """A point that is seen n pixels beside its place costs c r^2 / 2 log(1 + d^2 / (r sigma)^2), n pixels being d metres."""
    seen, n = pointed.keypoints, 3.5
    assert seen is not None
    knee = seen.names.index("left_knee")
    pixels, confidence = np.array(seen.pixels), np.zeros(seen.confidence.shape)
    confidence[2, knee] = 0.7
    pixels[2, knee] += [0.6 * n, -0.8 * n]
    moved = replace(pointed, keypoints=replace(seen, pixels=pixels, confidence=confidence))
    evidence = evidence_of(moved, character, prior)
    alone = 1.0 + 2.0 + 5.0  # it stands for the two frames before it, and five after it
    d, sigma = n / evidence.pixels_per_m, landmarks_of(character, ("left_knee",)).sigma_m[0]
    expected = alone * 0.7 * 0.5 * 4.0 * np.log1p((d / (2.0 * sigma)) ** 2)
    found = forces(evidence, poses(walk), STANDARD, False)
    np.testing.assert_allclose(found.energy, np.where(np.arange(len(walk)) == 2, expected, 0.0), atol=1e-9)


def test_a_few_clicks_stand_for_the_frames_around_them() -> None:
    seen = np.zeros(30, bool)
    seen[[3, 8, 25]] = True
    counts = frames_stood_for(seen, 6.0)
    np.testing.assert_array_equal(counts[seen], [1 + 3 + 2, 1 + 2 + 6, 1 + 6 + 4])
    assert not counts[~seen].any()
    np.testing.assert_array_equal(frames_stood_for(np.ones(5, bool), 6.0), 1.0)


def test_coming_nearer_does_not_pay(evidence: Evidence, walk: MotionClip) -> None:
    """Along its own ray a point costs the same at any depth, and a body whose points are all off does not gain by coming nearer."""
    assert evidence.keypoints is not None
    off = evidence.keypoints.slopes + np.array([0.1, 0.0])
    wrong = replace(evidence, keypoints=evidence.keypoints._replace(slopes=off))
    truth = poses(walk)
    toward = np.array([0.0, -0.05, 0.0])  # the camera stands at negative y
    here, nearer = (
        forces(wrong, truth._replace(root_position=truth.root_position + s * toward), STANDARD, False).energy.sum()
        for s in (0, 1)
    )
    assert nearer == pytest.approx(here, rel=0.01)


def test_without_keypoints_nothing_changes_by_a_bit(
    plain: Silhouettes, pointed: Silhouettes, character: Character, prior: PosePrior, walk: MotionClip
) -> None:
    nothing = replace(
        pointed,
        keypoints=replace(keypoints_of(character, walk, plain.camera), confidence=np.zeros((len(walk), len(NAMES)))),
    )
    path = shaken(poses(walk), 0.05)
    energies = []
    for seen in (plain, nothing):
        evidence = evidence_of(seen, character, prior)
        assert evidence.keypoints is None
        here = equations(evidence, path, BODY, belief_at(evidence, path, BODY), MIDDLE, 2)
        assert "keypoints" not in here.parts
        energies.append((here.energy, here.gradient.tobytes(), here.within.tobytes()))
    assert energies[0] == energies[1]


def test_exchanged_legs_cost(
    evidence: Evidence, plain: Silhouettes, character: Character, prior: PosePrior, walk: MotionClip
) -> None:
    """The outline hardly tells left from right; keypoints do, even where a detector confuses them in a fifth of the frames."""
    sides, truth = sides_of(character), poses(walk)
    swapped = sides.exchanged_in(truth, slice(None), sides.legs)
    assert evidence.keypoints is not None
    names = list(NAMES)
    other = [
        names.index(n.replace("left", "right") if n.startswith("left") else n.replace("right", "left")) for n in names
    ]
    slopes = np.array(evidence.keypoints.slopes)
    slopes[::5] = slopes[::5][:, other]
    confused = replace(evidence, keypoints=evidence.keypoints._replace(slopes=slopes))
    alone, sure, unsure = (
        energy_of(e, swapped, STANDARD) - energy_of(e, truth, STANDARD)
        for e in (evidence_of(plain, character, prior), evidence, confused)
    )
    assert sure > alone + 100.0
    assert unsure > alone + 50.0


def test_reversed_and_cut_evidence_keep_points_with_their_frames(evidence: Evidence, walk: MotionClip) -> None:
    path = shaken(poses(walk), 0.05)
    whole = forces(evidence, path, STANDARD, False).energy
    np.testing.assert_allclose(forces(evidence.reversed(), path.reversed(), STANDARD, False).energy, whole[::-1])
    np.testing.assert_allclose(forces(evidence.window(2, 5), path.part(2, 5), STANDARD, False).energy, whole[2:5])


def test_first_poses_face_as_the_keypoints_say(
    plain: Silhouettes, pointed: Silhouettes, character: Character, prior: PosePrior, walk: MotionClip
) -> None:
    """Seen from the side, the mirror image of a pose has its outline; the first pose that is tried has the right legs."""
    evidence, sides = evidence_of(pointed, character, prior), sides_of(character)
    true = poses(walk).part(0, 1)
    mirrored = sides.exchanged_in(true, slice(None), sides.legs)
    both = np.concatenate([np.zeros((2, 3)), np.concatenate([mirrored.angles, true.angles])], axis=1)
    best, other = first_paths(evidence, plain, character, both, np.zeros(1), 1, 2)
    np.testing.assert_array_equal(best.angles, true.angles)
    np.testing.assert_array_equal(other.angles, mirrored.angles)


def objective_of(character: Character, clip: MotionClip, seen: Silhouettes) -> Objective:
    return Objective(
        character,
        marker_target(character, clip),
        Weights(silhouette=60.0, keypoints=1.0),
        silhouette_target(seen, 1.0, clip.fps),
    )


def terms_of(objective: Objective, rollouts: Rollouts) -> dict[str, TermValue]:
    return {t.name: t for t in objective.terms(rollouts, np.zeros(1), 0, rollouts.positions.shape[1] - 1)}


def test_term_of_the_objective_is_a_mean_distance_in_cm(
    character: Character, walk: MotionClip, pointed: Silhouettes
) -> None:
    """A body that is moved along the picture by 7 cm is about 7 cm from its keypoints; along the rays, hardly at all."""
    objective = objective_of(character, walk, pointed)
    for shift, expected, tolerance in (
        ([0.0, 0.0, 0.0], 0.0, 1e-9),
        ([0.07, 0.0, 0.0], 7.0, 0.4),
        ([0.0, 0.0, 0.07], 7.0, 0.4),
        ([0.0, 0.07, 0.0], 0.0, 1.5),
    ):
        term = terms_of(objective, rollouts_of(character, walk, shift=np.array(shift)))["keypoints"]
        assert (term.unit, term.weight) == ("cm", 1.0)
        assert term.value == pytest.approx([expected], abs=tolerance)
        assert term.per_frame.shape == (1, len(walk))


def test_squares_of_residuals_sum_to_the_cost_of_silhouettes_and_keypoints_too(
    character: Character, walk: MotionClip, pointed: Silhouettes
) -> None:
    """Also past the end of the evidence, where the last mask is to be held, and without keypoints in some frames."""
    assert pointed.keypoints is not None
    confidence = np.array(pointed.keypoints.confidence)
    confidence[3:] = 0.0
    few = replace(pointed, keypoints=replace(pointed.keypoints, confidence=confidence))
    frames = len(walk) - 4
    objective = objective_of(character, walk.cut(0, frames), few)
    rollouts = rollouts_of(character, walk, shift=np.array([0.07, 0.0, 0.02]))
    for end in (frames - 1, len(walk) - 1):
        terms = objective.terms(rollouts, np.zeros(1), 0, end)
        counted = sum(t.weight * t.value for t in terms if t.name not in ("prior", "contact"))
        assert counted[0] > 60.0 * next(t.value[0] for t in terms if t.name == "silhouette") > 1.0
        found = residuals(objective, rollouts, terms, 0, end)
        np.testing.assert_allclose(np.sum(found**2, axis=1), counted, rtol=1e-9)


def test_frames_without_keypoints_do_not_count_and_a_diverged_body_is_the_worst(
    character: Character, walk: MotionClip, pointed: Silhouettes
) -> None:
    assert pointed.keypoints is not None
    confidence = np.array(pointed.keypoints.confidence)
    confidence[3:] = 0.0
    few = replace(pointed, keypoints=replace(pointed.keypoints, confidence=confidence))
    rollouts = rollouts_of(character, walk, shift=np.array([0.07, 0.0, 0.0]))
    term = terms_of(objective_of(character, walk, few), rollouts)["keypoints"]
    assert term.value == pytest.approx([7.0], abs=0.4)
    first = term.per_frame[0, 0]
    assert np.isnan(term.per_frame[0, 3:]).all()
    positions = np.array(rollouts.positions)
    positions[0, 1:] = np.nan
    term = terms_of(objective_of(character, walk, few), replace(rollouts, positions=positions))["keypoints"]
    assert term.value == pytest.approx([(first + 2 * WORST_CM) / 3])


def test_objective_without_keypoints_costs_nothing_and_changes_no_bit(
    character: Character, walk: MotionClip, plain: Silhouettes
) -> None:
    terms = objective_of(character, walk, plain).terms(
        rollouts_of(character, walk, shift=np.array([0.05, 0.01, 0.02])), np.ones(1), 0, len(walk) - 1
    )
    assert tuple(t.name for t in terms) == TERMS
    assert terms[-1].name == "keypoints"
    np.testing.assert_array_equal(terms[-1].value, [0.0])
    assert total(terms).tobytes() == total(terms[:-1]).tobytes()


def test_costs_of_a_search_without_keypoints_have_the_bits_of_six_terms(
    character: Character, walk: MotionClip, plain: Silhouettes, pointed: Silhouettes
) -> None:
    values = np.random.default_rng(3).random((13, len(TERMS))) * 50
    weights = np.array([getattr(Weights(silhouette=60.0), name) for name in TERMS[:-1]])
    alone = np.ascontiguousarray(values[:, :-1]) @ weights
    few, all_ = (weights_of(objective_of(character, walk, seen)) for seen in (plain, pointed))
    np.testing.assert_array_equal(values[:, : len(few)] @ few, alone)
    np.testing.assert_allclose(values[:, : len(all_)] @ all_, alone + values[:, -1])


def test_keypoints_at_another_rate_are_those_of_the_nearest_frame(pointed: Silhouettes) -> None:
    target = silhouette_target(pointed, 1.0, 60.0)
    assert target.keypoints is not None
    assert pointed.keypoints is not None
    assert len(target.keypoints) == len(target)
    np.testing.assert_array_equal(target.keypoints.pixels[::2], pointed.keypoints.pixels)
    with_gaps = replace(pointed, fps=60.0)
    half = silhouette_target(with_gaps, 1.0, 30.0).keypoints
    assert half is not None
    np.testing.assert_array_equal(half.pixels, pointed.keypoints.pixels[::2])


def test_keys_know_keypoints(pointed: Silhouettes, character: Character, prior: PosePrior) -> None:
    assert pointed.keypoints is not None
    assert keypoint_arrays(None) == ()
    moved = replace(pointed, keypoints=replace(pointed.keypoints, pixels=pointed.keypoints.pixels + 1.0))
    less = replace(pointed, keypoints=replace(pointed.keypoints, confidence=0.5 * pointed.keypoints.confidence))
    plain = replace(pointed, keypoints=None)
    keys = {track_key(seen, character, [prior], budget("quick")) for seen in (plain, pointed, moved, less)}
    assert len(keys) == 4
