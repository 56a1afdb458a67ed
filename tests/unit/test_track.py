"""The kinematic tracker: its derivatives against finite differences, its search on masks of a known motion."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from performed import poses, shaken, side_camera, walk_at_30_fps
from tiny_video import walk_prior

from mocap2ctrl.character import Character, load_character
from mocap2ctrl.character.kinematics import evaluation_points, lowest_points, segment_frames
from mocap2ctrl.character.shape import body_shape, capsule_ends, seen_body
from mocap2ctrl.geometry import rotations
from mocap2ctrl.geometry.rasteriser import rasterise
from mocap2ctrl.prior import PosePrior, load_prior
from mocap2ctrl.track.body import reshaped
from mocap2ctrl.track.checkpoint import Checkpoint
from mocap2ctrl.track.descent import FINE, ROUGH, Fitted, Level, descend
from mocap2ctrl.track.energy import belief_at, energy_of, equations
from mocap2ctrl.track.evidence import MIDDLE, Evidence, evidence_of
from mocap2ctrl.track.moves import (
    HELD,
    Move,
    Part,
    alike_moves,
    bridges,
    crossing_moves,
    exchanged,
    held_at_ends,
    improved,
)
from mocap2ctrl.track.outline import outline_equations, softened
from mocap2ctrl.track.path import Followed, bridged, extrapolated, joined, sides_of
from mocap2ctrl.track.path import Path as Poses
from mocap2ctrl.track.start import rough_travel
from mocap2ctrl.track.tracker import Track, TrackConfig, _Search, track
from mocap2ctrl.track.tree import BUILD, FACTORS, GIRTH, points_with_jacobian, tree_of
from mocap2ctrl.types import Array, Camera, MotionClip, Silhouettes

STANDARD = np.ones(FACTORS)
TINY = TrackConfig(candidates=12, headings=8, hypotheses=3, explored=1, finished=2, rounds=2, moves=2, patience=2)


@pytest.fixture(scope="module")
def character() -> Character:
    return load_character()


@pytest.fixture(scope="module")
def prior(character: Character) -> PosePrior:
    return walk_prior(character)


@pytest.fixture(scope="module")
def walk(character: Character) -> MotionClip:
    return walk_at_30_fps(character, 4, 16)


def seen(character: Character, clip: MotionClip, camera: Camera, girth: float = 1.0) -> Silhouettes:
    shape = body_shape(character)
    frames = segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)
    masks = rasterise(capsule_ends(shape, *frames), shape.radii_at(girth), camera)
    return Silhouettes("walk", clip.fps, masks, camera)


@pytest.fixture(scope="module")
def silhouettes(character: Character, walk: MotionClip) -> Silhouettes:
    return seen(character, walk, side_camera(walk))


@pytest.fixture(scope="module")
def evidence(silhouettes: Silhouettes, character: Character, prior: PosePrior) -> Evidence:
    return evidence_of(silhouettes, character, prior)


def joints(character: Character, path: Poses) -> Array:
    return evaluation_points(character, *segment_frames(character, *path))


def test_factors_of_the_body_are_those_of_the_reshaped_character(character: Character, walk: MotionClip):
    body = np.array([1.3, 0.95, 1.06, 1.02, 1.15])
    places = character.evaluation_points
    segment, local = np.array([p.segment for p in places]), np.array([p.at for p in places])
    world, _ = points_with_jacobian(tree_of(character), body, *poses(walk), segment, local, False)
    np.testing.assert_allclose(world, joints(reshaped(character, body), poses(walk)), atol=1e-12)


def test_a_reshaped_character_looks_as_the_tracker_sees_it(character: Character, walk: MotionClip):
    """Girth and build, of the tracker's picture and of the shape with the radii of the reshaped character's trunk."""
    body, camera, frame = np.array([1.2, 1.0, 1.0, 1.0, 1.25]), side_camera(walk), poses(walk).part(3, 4)
    tree, view = tree_of(character), seen_body(character, camera)
    stout = reshaped(character, body)
    shape = body_shape(stout)
    ends = capsule_ends(shape, *segment_frames(stout, *frame))
    for girth in (1.2, 1.1):
        mask = rasterise(ends, shape.radii_at(girth), camera)
        apart, _, _ = outline_equations(
            *(tree, view, body, *frame, view.shift[None], mask.astype(float), np.ones(1, bool), 0.05, 1, False)
        )
        assert (apart[0] < 6.0) == (girth == 1.2)  # of pixels that the outline cuts, and no others


def test_a_stout_build_widens_the_trunk_only(character: Character):
    stout = reshaped(character, np.array([1.0, 1.0, 1.0, 1.0, 1.3]))
    for before, after in zip(character.segments, stout.segments, strict=True):
        wide = 1.3 if before.name in ("pelvis", "abdomen", "chest") else 1.0
        assert [c.radius for c in after.capsules] == pytest.approx([wide * c.radius for c in before.capsules])
    assert stout.mass_kg == character.mass_kg


def test_reshaped_character_stands_on_the_ground(character: Character):
    tall = reshaped(character, np.array([1.2, 1.1, 1.0, 1.05, 1.2]))
    pose = tall.zero_pose()
    frames = segment_frames(tall, pose.root_position, pose.root_orientation, pose.angles)
    assert np.min(lowest_points(tall, *frames)) == pytest.approx(0.0, abs=1e-9)
    assert tall.standing_height_m > 1.05 * character.standing_height_m
    assert tall.mass_kg == character.mass_kg


def test_derivatives_of_points(character: Character, walk: MotionClip):
    path, body = poses(walk).part(0, 2), np.array([1.1, 0.97, 1.03, 1.02, 1.12])
    tree = tree_of(character)
    segment = np.arange(len(character.segments))
    local = np.array([s.tip for s in character.segments])
    _, jacobian = points_with_jacobian(tree, body, *path, segment, local, True)
    size, eps = jacobian.shape[-1] - FACTORS, 1e-6
    for k in range(size + FACTORS):
        step, growth = np.zeros((2, size)), np.zeros(FACTORS)
        if k < size:
            step[:, k] = eps
        else:
            growth[k - size] = eps
        there, back = (
            points_with_jacobian(tree, body + s * growth, *path.moved(s * step), segment, local, False)[0]
            for s in (1.0, -1.0)
        )
        np.testing.assert_allclose(jacobian[..., k], (there - back) / (2 * eps), atol=1e-7)


def test_gradient_of_the_energy(evidence: Evidence, walk: MotionClip):
    window, path, body = (
        evidence.window(0, 4),
        shaken(poses(walk).part(0, 4), 0.06),
        np.array([1.1, 0.97, 1.03, 1.02, 1.12]),
    )
    belief = belief_at(window, path, body)

    def energy(step: Array, growth: Array) -> float:
        return equations(window, path.moved(step), body + growth, belief, MIDDLE, 1, derivatives=False).energy

    here = equations(window, path, body, belief, MIDDLE, 1)
    size, eps = here.gradient.shape[1], 1e-5
    for k in range(size + FACTORS):
        step, growth = np.zeros((4, size)), np.zeros(FACTORS)
        if k < size:
            step[1, k] = eps
        else:
            growth[k - size] = eps
        measured = (energy(step, growth) - energy(-step, -growth)) / (2 * eps)
        found = here.gradient[1, k] if k < size else here.body[k - size]
        assert found == pytest.approx(measured, rel=0.08, abs=1.5), k


def test_matrix_of_the_outline_is_the_curvature_of_a_perfect_fit(character: Character, walk: MotionClip):
    size, tau = (36, 40), 2.0
    matrix = np.array([[42.0, 0, 17.5], [0, 42.0, 15.0], [0, 0, 1]])
    camera = replace(side_camera(walk), size=size, matrix=matrix)
    tree, view, body = tree_of(character), seen_body(character, camera), np.array([1.1, 0.97, 1.03, 1.02, 1.12])
    path = shaken(poses(walk).part(5, 6), 0.2)
    pixels = size[0] * size[1]

    def outline(
        paths: Poses, factors: Array, soft: Array, derivatives: bool, pixel_step: int = 1
    ) -> tuple[Array, Array, Array]:
        seen_frames, shifts = np.ones(paths.frames, bool), np.tile(view.shift, (paths.frames, 1))
        result: tuple[Array, Array, Array] = outline_equations(
            tree, view, factors, *paths, shifts, soft, seen_frames, tau, pixel_step, derivatives
        )
        return result

    # A mask of one pixel u: half the sum of (m - s)^2 is less than that of none by m_u - 1/2.
    one_pixel = np.eye(pixels).reshape(pixels, size[1], size[0])
    same = Poses(*(np.repeat(array, pixels, axis=0) for array in path))
    none = outline(path, body, np.zeros((1, size[1], size[0])), False)[0]
    image = (none - outline(same, body, one_pixel, False)[0] + 0.5).reshape(1, size[1], size[0])
    energy, _, found = outline(path, body, image, True)
    assert energy[0] < 1e-9
    for every in (2, 3):  # a row has other numbers of pixels then
        some = outline(path, body, np.zeros_like(image), False, every)[0]
        assert some[0] == pytest.approx(0.5 * every**2 * np.sum(image[:, ::every, ::every] ** 2))
    coordinates, eps = found.shape[1], 1e-4
    scale = np.sqrt(np.diag(found[0]) + 1e-9)
    for k in range(coordinates):
        step, growth = np.zeros((1, coordinates - FACTORS)), np.zeros(FACTORS)
        if k < coordinates - FACTORS:
            step[0, k] = eps
        else:
            growth[k - coordinates + FACTORS] = eps
        ahead, behind = (outline(path.moved(s * step), body + s * growth, image, True)[1][0] for s in (1.0, -1.0))
        np.testing.assert_allclose(
            (ahead - behind) / (2 * eps) / (scale * scale[k]), found[0, k] / (scale * scale[k]), atol=0.1
        )


def test_energy_is_the_same_with_and_without_derivatives(evidence: Evidence, walk: MotionClip):
    path = shaken(poses(walk), 0.05)
    belief = belief_at(evidence, path, STANDARD)
    with_, without = (equations(evidence, path, STANDARD, belief, MIDDLE, 1, d) for d in (True, False))
    assert with_.parts == pytest.approx(without.parts)


def test_soft_mask_of_a_half_plane():
    distances = np.arange(-6.0, 7.0)[None, None]
    np.testing.assert_allclose(softened(distances, 2.0), 1.0 / (1.0 + np.exp(distances / 2.0)))


def test_descent_finds_the_way_back(evidence: Evidence, character: Character, walk: MotionClip):
    truth, begun = poses(walk), shaken(poses(walk), 0.12)
    fit = descend(evidence, begun, STANDARD, FINE)
    before, after = (
        np.linalg.norm(joints(character, path) - joints(character, truth), axis=-1).mean() for path in (begun, fit.path)
    )
    assert after < 0.045
    assert after < 0.5 * before


def test_frozen_frames_stay(evidence: Evidence, walk: MotionClip):
    begun = shaken(poses(walk), 0.1)
    fit = descend(evidence, begun, STANDARD, ROUGH, frozen=(2, 1))
    np.testing.assert_array_equal(fit.path.angles[:2], begun.angles[:2])
    np.testing.assert_array_equal(fit.path.angles[-1], begun.angles[-1])
    assert np.any(fit.path.angles[2:-1] != begun.angles[2:-1])


@pytest.mark.parametrize("build", [1.0, 1.25])
def test_the_body_is_found(character: Character, prior: PosePrior, walk: MotionClip, build: float):
    """Girth and legs at the sharpness that tracks end with; a stout trunk, whose build is believed last, by softer outlines."""
    person = reshaped(character, np.array([1.0, 1.05, 1.0, 1.0, build]))
    higher = np.array([0, 0, person.standing_height_m - character.standing_height_m])
    lifted = replace(walk, root_position=walk.root_position + higher)
    evidence = evidence_of(seen(person, lifted, side_camera(walk), girth=1.2), character, prior)
    fit = descend(evidence, poses(walk), STANDARD, FINE, fit_body=True)
    assert fit.body[GIRTH] == pytest.approx(1.2, abs=0.04)
    assert fit.body[1] == pytest.approx(1.05, abs=0.02)
    fit = descend(evidence, fit.path, fit.body, (Level(MIDDLE, 1, 8),), fit_body=True)
    assert body_shape(reshaped(character, fit.body)).trunk == pytest.approx(body_shape(person).trunk, abs=0.011)
    assert abs(fit.body[BUILD] - build) < 0.09


def test_moves_that_are_as_they_were_are_not_settled_again(
    evidence: Evidence, character: Character, walk: MotionClip
) -> None:
    """A move at one end of the track leaves those at the other end as they were."""
    sides, truth = sides_of(character), poses(walk)
    long = Poses(*(np.concatenate([array, array[-2::-1]]) for array in truth))
    there_and_back = replace(
        evidence,
        soft={tau: np.concatenate([masks, masks[-2::-1]]) for tau, masks in evidence.soft.items()},
        seen=np.ones(long.frames, bool),
        carried=np.zeros((long.frames, 3)),
    )
    wrong = exchanged(exchanged(long, 0, 4, sides.legs, sides).changed, 26, 29, sides.legs, sides).changed
    fit = descend(there_and_back, wrong, STANDARD, (Level(MIDDLE, 2, 0),))
    known: dict[Part, Fitted] = {}

    def moves(path: Poses) -> list[Move]:
        return [exchanged(path, *span, sides.legs, sides) for span in ((0, 4), (26, 29))]

    with ThreadPoolExecutor(1) as executor:
        better = improved(there_and_back, fit, moves(fit.path), executor, known)
        assert better is not None
        before = dict(known)
        again = improved(there_and_back, better, moves(better.path), executor, known)
        fresh = improved(there_and_back, better, moves(better.path), executor)
    assert len(before) == len(known) == 2
    assert [known[part] is before[part] for part in known if part in before] == [True]
    assert again is not None
    assert fresh is not None
    assert again.energy == fresh.energy < better.energy < fit.energy
    for found in (better, again):
        assert found.energy == pytest.approx(energy_of(there_and_back, found.path, found.body), rel=1e-12)
    np.testing.assert_array_equal(again.path.angles, fresh.path.angles)


def test_limbs_are_held_at_an_end_of_the_track_only(character: Character, walk: MotionClip) -> None:
    legs, path = sides_of(character).legs, poses(walk)
    others = np.setdiff1d(np.arange(path.angles.shape[1]), legs)
    for move, held, source in (
        (Move(0, 9, path), slice(0, HELD), HELD),
        (Move(3, path.frames, path), slice(path.frames - HELD, None), path.frames - HELD - 1),
    ):
        angles = held_at_ends(move, legs).changed.angles
        np.testing.assert_array_equal(angles[held][:, legs], np.tile(path.angles[source, legs], (HELD, 1)))
        np.testing.assert_array_equal(angles[:, others], path.angles[:, others])
        assert np.count_nonzero(np.any(angles != path.angles, axis=1)) == HELD
    np.testing.assert_array_equal(held_at_ends(Move(2, 9, path), legs).changed.angles, path.angles)


def test_legs_are_exchanged_from_an_end_to_where_they_cross(
    evidence: Evidence, character: Character, walk: MotionClip
) -> None:
    """A walk whose legs cross once: either part may be exchanged, as it was or held at its end; or all of it."""
    ends = [p for name in ("ankle", "wrist") for p in character.evaluation_points if p.name.endswith(name)]
    points = (np.array([p.segment for p in ends]), np.array([p.at for p in ends]))
    path = poses(walk)
    moves = crossing_moves(evidence, path, STANDARD, sides_of(character), points)
    legs, arms = sides_of(character).legs, sides_of(character).arms
    found = {
        (m.begin, m.end)
        for m in moves
        if np.array_equal(m.changed.angles[:, arms], path.angles[:, arms])
        and not np.array_equal(m.changed.angles[:, legs], path.angles[:, legs])
    }
    assert found
    for begin, end in found - {(0, path.frames)}:
        same = [m for m in moves if (m.begin, m.end) == (begin, end)]
        held = [m for m in same if len(np.unique(m.changed.angles[begin:end, legs], axis=0)) == end - begin - HELD]
        assert bool(held) == (end - begin > HELD and (begin == 0) != (end == path.frames))


def test_an_arm_does_what_the_other_does_in_intervals(character: Character, walk: MotionClip) -> None:
    sides, path = sides_of(character), poses(walk)
    left = np.array([j for j in sides.arms if character.segments[character.hinge_segment[j]].name.startswith("left")])
    mirrored = sides.exchanged(path.angles, sides.arms)
    covered = np.zeros(path.frames, bool)
    for number, (begin, end, changed) in enumerate(alike_moves(path, sides)):
        arm = left if number % 2 == 0 else np.setdiff1d(sides.arms, left)
        inside = np.zeros(path.angles.shape, bool)
        inside[begin:end, arm] = True
        np.testing.assert_array_equal(changed.angles, np.where(inside, mirrored, path.angles))
        covered[begin:end] = True
    assert covered.all()


def test_exchanging_sides_twice_changes_nothing(character: Character, walk: MotionClip):
    sides = sides_of(character)
    for hinges in sides.groups:
        once = sides.exchanged(walk.angles, hinges)
        assert np.any(once != walk.angles)
        np.testing.assert_allclose(sides.exchanged(once, hinges), walk.angles, atol=1e-15)


def test_extrapolation_keeps_the_travel(walk: MotionClip):
    path = poses(walk)
    straight = path._replace(root_position=np.outer(np.arange(path.frames), [0.04, 0.01, 0.0]))
    more = extrapolated(straight, 5)
    np.testing.assert_allclose(
        np.diff(joined(straight, more).root_position, axis=0), np.tile([0.04, 0.01, 0.0], (16, 1))
    )
    assert more.angles.shape == (5, path.angles.shape[1])


@pytest.mark.parametrize(
    ("a_frame", "after"),
    [pytest.param(0.05, 0.05 * (0.9 + 0.81), id="slows down"), pytest.param(0.3, 0.6, id="spins on")],
)
def test_only_a_somersault_goes_on_turning(walk: MotionClip, a_frame: float, after: float):
    turns = a_frame * np.outer(np.arange(4), [0.0, 1.0, 0.0])
    path = poses(walk).part(0, 4)._replace(root_orientation=rotations.from_rotation_vector(turns))
    last = rotations.multiply(
        extrapolated(path, 2).root_orientation[-1], rotations.conjugate(path.root_orientation[-1])
    )
    np.testing.assert_allclose(rotations.to_rotation_vector(last), [0.0, after, 0.0], atol=1e-12)


@pytest.mark.parametrize("length", [0, 8, 16])
def test_a_bridge_between_two_halves_of_a_somersault_is_the_somersault(walk: MotionClip, length: int):
    """Sixteen frames of it are more than half a turn: the shorter way round would be the wrong one."""
    frames = np.arange(40.0)
    turns = rotations.from_rotation_vector(0.25 * np.outer(frames, [0.0, -1.0, 0.0]))
    thrown = np.column_stack([0.02 * frames, 0.0 * frames, 1.0 + 0.1 * frames - 0.0025 * frames**2])
    path = Poses(thrown, turns, np.outer(0.01 * frames, np.ones(walk.angles.shape[1])))
    way = bridged(path, path, 12, 12 + length)
    assert way.frames == path.frames
    np.testing.assert_allclose(way.root_position, path.root_position, atol=0.022)  # rates are a frame old
    np.testing.assert_allclose(np.abs(np.sum(way.root_orientation * turns, axis=1)), 1.0, atol=1e-9)
    np.testing.assert_allclose(way.angles, path.angles, atol=1e-9)


def test_hypotheses_that_are_right_at_their_ends_are_bridged(character: Character, prior: PosePrior):
    long = walk_at_30_fps(character, 0, 24)
    evidence, truth = evidence_of(seen(character, long, side_camera(long)), character, prior), poses(long)
    lost = 0.4 * np.linspace(0.0, 1.0, 12)[:, None] * np.ones((12, truth.angles.shape[1]))
    first = truth.with_part(12, truth.part(12, 24).with_angles(truth.angles[12:] + lost))
    last = truth.with_part(0, truth.part(0, 12).with_angles(truth.angles[:12] - lost[::-1]))
    fits = [descend(evidence, path, STANDARD, (Level(MIDDLE, 2, 0),)) for path in (first, last)]
    with ThreadPoolExecutor(1) as executor:
        moves = bridges(evidence, STANDARD, [first], [last], executor)
        better = improved(evidence, fits[0], moves, executor)
        assert bridges(evidence.window(0, 5), STANDARD, [first.part(0, 5)], [last.part(0, 5)], executor) == []
    assert len(moves) > 6
    assert better is not None
    energies = [energy_of(evidence, path, STANDARD) for path in (better.path, first, last)]
    assert energies[0] < 0.5 * min(energies[1:])


def test_rough_travel_follows_the_pelvis(silhouettes: Silhouettes, walk: MotionClip):
    error = rough_travel(silhouettes) - walk.root_position
    assert np.max(np.abs(error)) < 0.25


def test_track_from_nothing(silhouettes: Silhouettes, character: Character, prior: PosePrior, walk: MotionClip):
    told: list[float] = []
    config = replace(TINY, candidates=48, headings=12, hypotheses=6, explored=3)
    found = track(silhouettes, character, prior, config=config, on_progress=lambda share, _: told.append(share))
    error = joints(found.character, poses(found.clip)) - joints(character, poses(walk))
    assert np.linalg.norm(error, axis=-1).mean() < 0.12
    assert found.girth == pytest.approx(1.0, abs=0.1)
    assert told == sorted(told)
    assert told[-1] == 1.0


def same(a: Track, b: Track) -> bool:
    return a.energy == b.energy and all(np.array_equal(x, y) for x, y in zip(poses(a.clip), poses(b.clip), strict=True))


def test_workers_do_not_change_the_track(silhouettes: Silhouettes, character: Character, prior: PosePrior):
    one, two = (track(silhouettes, character, prior, config=TINY, workers=workers) for workers in (1, 2))
    assert same(one, two)


def test_track_goes_on_from_its_checkpoint(
    silhouettes: Silhouettes, character: Character, prior: PosePrior, tmp_path: Path
):
    class KilledError(Exception):
        pass

    def kill(share: float, _: str) -> None:
        if share > 0.25:
            raise KilledError

    file, key = tmp_path / "track.npz", b"key"
    config = replace(TINY, look_back_s=0.1, step_s=0.1)  # short, so that hypotheses leave something behind
    whole = track(silhouettes, character, prior, config=config)
    with pytest.raises(KilledError):
        track(silhouettes, character, prior, config=config, checkpoint=file, key=key, on_progress=kill)
    kept = Checkpoint(file, key).hypotheses("forward")
    assert kept is not None
    assert 0 < kept.paths[0].frames < len(silhouettes)
    assert any(kept.past)
    assert same(whole, track(silhouettes, character, prior, config=config, checkpoint=file, key=key))


def test_checkpoints_of_others_and_damaged_ones_are_ignored(walk: MotionClip, tmp_path: Path):
    file = tmp_path / "track.npz"
    Checkpoint(file, b"mine").save("forward", Followed([poses(walk)], [7.5]))
    kept = Checkpoint(file, b"mine").hypotheses("forward")
    assert kept is not None
    assert (len(kept.paths), kept.past) == (1, [7.5])
    assert Checkpoint(file, b"other").hypotheses("forward") is None
    assert Checkpoint(file, b"mine").hypotheses("backward") is None
    file.write_bytes(file.read_bytes()[:100])
    assert Checkpoint(file, b"mine").hypotheses("forward") is None


def test_a_narrow_prior_does_not_overrule_the_silhouettes(character: Character, walk: MotionClip):
    angles = np.zeros((4, len(character.hinges)))
    angles[:, character.hinge_names.index("left_upper_arm.abduction")] = np.radians(110.0)
    upright = np.tile(rotations.IDENTITY_QUATERNION, (4, 1))
    stand = np.tile(character.zero_pose().root_position, (4, 1))
    clip = MotionClip("wave", 30.0, stand, upright, angles)
    turn = np.array([[0, 1.0, 0], [0, 0, -1.0], [-1.0, 0, 0]])  # seen from the front
    camera = replace(side_camera(walk), rotation=cv2.Rodrigues(turn)[0].ravel(), translation=-turn @ [3.2, 0.0, 1.2])
    silhouettes = seen(character, clip, camera)
    priors = [load_prior(name, character) for name in ("everyday", "walk")]
    evidence = evidence_of(silhouettes, character, priors[0])
    fit = descend(evidence, poses(clip), STANDARD, FINE, fit_body=True)
    with ThreadPoolExecutor(1) as executor:
        saved = Checkpoint(None, b"")
        search = _Search(evidence, silhouettes, character, priors[0], TINY, saved, executor, lambda share, what: None)
        found, chosen = search.with_best_prior(fit, priors)
        unrivalled = replace(fit, energy=found.energy - 1e6)
        kept, _ = search.with_best_prior(unrivalled, priors)
    assert kept is unrivalled
    assert chosen is priors[0]
    names = [point.name for point in character.evaluation_points]
    places = joints(character, found.path)
    assert np.all(places[:, names.index("left_wrist"), 2] > places[:, names.index("left_shoulder"), 2])
