"""The cost terms against closed forms, on rollouts made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from performed import rollouts_of

from mocap2ctrl.character.kinematics import marker_layout, points_world, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.control.closed_loop import Rollouts
from mocap2ctrl.geometry import rotations
from mocap2ctrl.objective.residuals import residuals
from mocap2ctrl.objective.target import MarkerTarget, joint_error, marker_target
from mocap2ctrl.objective.terms import DIVERGED_CM2, HORIZON_S, Objective, TermValue, Weights, total
from mocap2ctrl.simulation.engine import load_threshold_n
from mocap2ctrl.types import Array, MotionClip

FRAMES = 12


@pytest.fixture(scope="module")
def clip(character: Character) -> MotionClip:
    """Twelve frames of nonsense within the joint limits, turning and travelling."""
    rng = np.random.default_rng(4)
    low, high = character.lower_limits, character.upper_limits
    turn = rotations.from_rotation_vector(np.cumsum(rng.normal(0, 0.2, (FRAMES, 3)), axis=0))
    return MotionClip(
        "nonsense",
        30.0,
        np.cumsum(rng.normal(0, 0.1, (FRAMES, 3)), axis=0),
        turn,
        low + (high - low) * rng.uniform(0.2, 0.8, (FRAMES, len(low))),
    )


@pytest.fixture(scope="module")
def objective(character: Character, clip: MotionClip) -> Objective:
    return Objective(character, marker_target(character, clip))


def terms_of(
    objective: Objective, rollouts: Rollouts, penalty: float = 0.0, window: tuple[int, int] = (0, FRAMES - 1)
) -> dict[str, TermValue]:
    population = len(rollouts.positions)
    return {t.name: t for t in objective.terms(rollouts, np.full(population, penalty), *window)}


def test_the_reference_itself_costs_nothing(character: Character, clip: MotionClip, objective: Objective) -> None:
    terms = terms_of(objective, rollouts_of(character, clip))
    for term in terms.values():
        assert term.value == pytest.approx([0.0], abs=1e-20)
    assert total(tuple(terms.values())) == pytest.approx([0.0], abs=1e-20)


@pytest.mark.parametrize("displacement", [(0.03, 0.0, 0.0), (0.0, -0.04, 0.03), (0.1, 0.2, -0.2)])
def test_a_displaced_body_costs_the_squared_distance_in_cm(
    character: Character, clip: MotionClip, objective: Objective, displacement: tuple[float, float, float]
) -> None:
    rollouts = rollouts_of(character, clip)
    moved = replace(rollouts, positions=rollouts.positions + np.array(displacement))
    squared_cm = 1e4 * float(np.dot(displacement, displacement))
    markers = terms_of(objective, moved)["markers"]
    assert markers.value == pytest.approx([squared_cm])
    assert markers.per_frame == pytest.approx(np.full((1, FRAMES), squared_cm))
    assert markers.unit == "cm^2"


def test_markers_is_the_mean_over_the_population_s_own_frames(
    character: Character, clip: MotionClip, objective: Objective
) -> None:
    """Each machine has its own value; one displaced frame of twelve counts a twelfth."""
    one = rollouts_of(character, clip)
    positions = np.repeat(one.positions, 3, axis=0)
    positions[1, 5] += np.array([0.0, 0.0, 0.12])
    positions[2] += np.array([0.05, 0.0, 0.0])
    many = replace(
        one,
        positions=positions,
        orientations=np.repeat(one.orientations, 3, axis=0),
        load=np.repeat(one.load, 3, axis=0),
        state=np.repeat(one.state, 3, axis=0),
    )
    assert terms_of(objective, many)["markers"].value == pytest.approx([0.0, 144.0 / FRAMES, 25.0])


def test_moving_the_ground_plane_s_frame_changes_nothing(character: Character, clip: MotionClip) -> None:
    """Turned about the vertical and shifted together, simulation and reference are as far apart as before."""
    turn, shift = rotations.yaw(0.7), np.array([3.0, -2.0, 0.0])
    turned = replace(
        clip,
        root_position=rotations.rotate(turn, clip.root_position) + shift,
        root_orientation=rotations.multiply(turn, clip.root_orientation),
    )
    late = [clip.cut(1), turned.cut(1)]
    costs = [
        Objective(character, marker_target(character, target)).marker_distances(
            rollouts_of(character, simulated), 0, FRAMES - 2
        )
        for target, simulated in zip([clip, turned], late, strict=True)
    ]
    assert costs[0].min() > 1.0
    assert costs[0] == pytest.approx(costs[1], rel=1e-9)


def test_every_hinge_shows(character: Character, objective: Objective, clip: MotionClip) -> None:
    """Three markers a segment see every degree of freedom, twist about a segment's own axis included."""
    for j, name in enumerate(character.hinge_names):
        angles = clip.angles.copy()
        angles[:, j] += 0.05
        cost = terms_of(objective, rollouts_of(character, replace(clip, angles=angles)))["markers"].value[0]
        assert cost > 1e-3, name


def test_three_markers_a_segment_weigh_the_same(character: Character) -> None:
    segment, local = marker_layout(character)
    np.testing.assert_array_equal(np.bincount(segment), np.full(len(character.segments), 3))
    for index, name in enumerate(character.segment_names):
        a, b, c = local[segment == index]
        assert np.linalg.norm(np.cross(b - a, c - a)) > 1e-4, f"{name}: its markers lie on a line"


def test_a_diverged_simulation_costs_the_ceiling_where_it_is_missing(
    character: Character, clip: MotionClip, objective: Objective
) -> None:
    rollouts = rollouts_of(character, clip)
    positions, orientations = rollouts.positions.copy(), rollouts.orientations.copy()
    positions[0, 9:] = np.nan
    orientations[0, 9:] = np.nan
    diverged = replace(rollouts, positions=positions, orientations=orientations, diverged=np.ones(1, dtype=bool))
    term = terms_of(objective, diverged)["markers"]
    assert term.per_frame[0] == pytest.approx([0.0] * 9 + [DIVERGED_CM2] * 3)
    assert term.value == pytest.approx([DIVERGED_CM2 * 3 / FRAMES])


def test_far_markers_cost_no_more_than_a_divergence(
    character: Character, clip: MotionClip, objective: Objective
) -> None:
    """So that diverging early never pays; just below the ceiling the cost is still graded."""
    rollouts = rollouts_of(character, clip)
    costs = [
        terms_of(objective, replace(rollouts, positions=rollouts.positions + np.array([metres, 0.0, 0.0])))[
            "markers"
        ].value[0]
        for metres in (0.98, 0.99, 1.01, 1e3)
    ]
    assert costs == pytest.approx([9604.0, 9801.0, DIVERGED_CM2, DIVERGED_CM2])


def test_a_window_looks_at_its_own_frames_only(character: Character, clip: MotionClip, objective: Objective) -> None:
    """Rollouts that began at frame 4, judged over frames 6 to 9; both ends included."""
    rollouts = rollouts_of(character, clip.cut(4), first_frame=4)
    lift = np.zeros((1, FRAMES - 4, 1, 3))
    lift[0, :, 0, 2] = [9, 9, 0.01, 0.02, 0.03, 0.04, 9, 9]
    term = terms_of(objective, replace(rollouts, positions=rollouts.positions + lift), window=(6, 9))["markers"]
    assert term.per_frame[0] == pytest.approx([1.0, 4.0, 9.0, 16.0])
    assert term.value == pytest.approx([7.5])


def test_past_the_end_the_last_pose_is_to_be_held(character: Character, clip: MotionClip, objective: Objective) -> None:
    """Eq. 11: frames past the evidence count for stability, against the last frame; markers does not see them."""
    held = np.minimum(np.arange(FRAMES + 4), FRAMES - 1)
    longer = replace(
        clip,
        root_position=clip.root_position[held],
        root_orientation=clip.root_orientation[held],
        angles=clip.angles[held],
    )
    rollouts = rollouts_of(character, longer)
    window = (0, FRAMES + 3)
    still = terms_of(objective, rollouts, window=window)
    assert still["stability"].value == pytest.approx([0.0], abs=1e-20)
    sinking = np.zeros((1, FRAMES + 4, 1, 3))
    sinking[0, FRAMES:, 0, 2] = [-0.01, -0.02, -0.03, -0.04]
    moved = terms_of(objective, replace(rollouts, positions=rollouts.positions + sinking), window=window)
    assert moved["stability"].per_frame[0] == pytest.approx([1.0, 4.0, 9.0, 16.0])
    assert moved["stability"].value == pytest.approx([7.5])
    assert moved["markers"].value == pytest.approx([0.0], abs=1e-20)


def test_a_window_wholly_past_the_end_has_no_markers(
    character: Character, clip: MotionClip, objective: Objective
) -> None:
    """When the free states are entered after the evidence's end, only stability speaks; never NaN."""
    last = np.full(4, FRAMES - 1)
    still = replace(
        clip,
        root_position=clip.root_position[last],
        root_orientation=clip.root_orientation[last],
        angles=clip.angles[last],
    )
    rollouts = rollouts_of(character, still, first_frame=FRAMES + 1)
    sunk = replace(rollouts, positions=rollouts.positions - np.array([0.0, 0.0, 0.02]))
    terms = terms_of(objective, sunk, window=(FRAMES + 1, FRAMES + 4))
    assert terms["markers"].value == pytest.approx([0.0])
    assert terms["stability"].per_frame == pytest.approx(np.full((1, 4), 4.0))


@pytest.mark.parametrize("velocity", [(0.5, 0.0, 0.0), (0.1, -0.2, 0.2)])
def test_a_wrong_momentum_costs_the_distance_that_it_grows_to(
    character: Character, clip: MotionClip, objective: Objective, velocity: tuple[float, float, float]
) -> None:
    """A body that drifts away evenly: |v| times the horizon, squared, in cm; a constant displacement costs nothing here."""
    rollouts = rollouts_of(character, clip)
    drift = np.arange(FRAMES)[None, :, None, None] / 30.0 * np.array(velocity)
    drifting = replace(rollouts, positions=rollouts.positions + 0.2 + drift)
    expected = 1e4 * HORIZON_S**2 * float(np.dot(velocity, velocity))
    assert terms_of(objective, drifting)["velocity"].value == pytest.approx([expected])
    still = replace(rollouts, positions=rollouts.positions + 0.2)
    assert terms_of(objective, still)["velocity"].value == pytest.approx([0.0], abs=1e-15)


def test_momentum_is_looked_at_within_the_window_s_evidence_only(
    character: Character, clip: MotionClip, objective: Objective
) -> None:
    """A leap outside frames 6 to 9 costs nothing, one inside does; a window of one frame has no velocity."""
    rollouts = rollouts_of(character, clip.cut(4), first_frame=4)
    outside, inside = np.zeros((2, 1, FRAMES - 4, 1, 1))
    outside[0, 7:] = 0.05
    inside[0, 5:] = 0.05
    costs = [
        terms_of(objective, replace(rollouts, positions=rollouts.positions + leap), window=(6, 9))["velocity"].value[0]
        for leap in (outside, inside)
    ]
    assert costs[0] == pytest.approx(0.0, abs=1e-15)
    assert costs[1] > 1.0
    assert terms_of(objective, rollouts, window=(6, 6))["velocity"].value == pytest.approx([0.0])


def test_a_divergence_costs_the_ceiling_in_momentum_too(
    character: Character, clip: MotionClip, objective: Objective
) -> None:
    rollouts = rollouts_of(character, clip)
    positions = rollouts.positions.copy()
    positions[0, 9:] = np.nan
    term = terms_of(objective, replace(rollouts, positions=positions))["velocity"]
    assert term.per_frame[0] == pytest.approx([0.0] * 8 + [DIVERGED_CM2] * 3)


def contact_rollouts(
    character: Character,
    clip: MotionClip,
    left: str,
    right: str,
    states: str,
    first_frame: int = 1,
) -> Rollouts:
    """Rollouts with feet loaded where the text has `#`, and the state of each frame as a digit."""
    threshold = load_threshold_n(character)
    load = np.array([[1.01 * threshold if c == "#" else 0.99 * threshold for c in foot] for foot in (left, right)]).T
    frames = len(states)
    base = rollouts_of(character, clip.cut(0, frames), first_frame)
    return replace(base, load=load[None], state=np.array([[int(c) for c in states]]))


@pytest.mark.parametrize(
    ("left", "right", "states", "extra"),
    [
        ("########", "########", "00000000", 0),  # standing
        ("####....", "########", "00000000", 0),  # one change
        ("###..###", "########", "00000000", 1),  # lift and land within one state
        ("###..###", "########", "00001111", 0),  # the same with a state for each
        ("#.#.#.#.", "########", "00000000", 6),  # seven changes
        ("#.#.#.#.", "########", "00001111", 5),  # three within the first, four on entering and within the second
        ("###..###", "#####..#", "00000000", 2),  # one lands as the other lifts: one change
        ("##....##", "##....##", "00000000", 1),  # both feet together change once
        ("##....##", "....####", "00000000", 2),
    ],
)
def test_contact_changes_beyond_one_a_state_are_counted(
    character: Character, clip: MotionClip, objective: Objective, left: str, right: str, states: str, extra: int
) -> None:
    rollouts = contact_rollouts(character, clip, left, right, states)
    assert objective.extra_contact_changes(rollouts) == pytest.approx([extra])


def test_the_first_frame_s_unknown_load_is_no_contact_change(
    character: Character, clip: MotionClip, objective: Objective
) -> None:
    """At time 0 no step has told yet whether the feet stand, so loads are recorded as 0."""
    standing = contact_rollouts(character, clip, ".#######", ".#######", "00000000", first_frame=0)
    assert objective.extra_contact_changes(standing) == pytest.approx([0])
    lifting = contact_rollouts(character, clip, ".###....", ".#######", "00000000", first_frame=0)
    assert objective.extra_contact_changes(lifting) == pytest.approx([0])
    later = contact_rollouts(character, clip, ".###....", ".#######", "00000000", first_frame=7)
    assert objective.extra_contact_changes(later) == pytest.approx([1])


def test_terms_are_weighed_and_added(character: Character, clip: MotionClip) -> None:
    weights = Weights(markers=2.0, stability=3.0, prior=5.0, contact=7.0)
    objective = Objective(character, marker_target(character, clip.cut(0, 8)), weights)
    rollouts = contact_rollouts(character, clip, "###..##.", "########", "00000000")
    rollouts = replace(rollouts, positions=rollouts.positions + np.array([0.03, 0.04, 0.0]), first_frame=0)
    terms = objective.terms(rollouts, np.array([1.5]), 0, 7)
    named = {t.name: (t.weight, float(t.value[0])) for t in terms}
    assert named["markers"] == (2.0, pytest.approx(25.0))
    assert named["stability"] == (3.0, 0.0)
    assert named["prior"] == (5.0, 1.5)
    assert named["contact"] == (7.0, 2.0)
    assert total(terms) == pytest.approx([2.0 * 25.0 + 5.0 * 1.5 + 7.0 * 2.0])


def test_penalty_is_what_the_parameters_said(character: Character, clip: MotionClip, objective: Objective) -> None:
    assert terms_of(objective, rollouts_of(character, clip), penalty=2.5)["prior"].value == pytest.approx([2.5])


def test_marker_target_follows_the_segments(character: Character, clip: MotionClip) -> None:
    target = marker_target(character, clip)
    assert isinstance(target, MarkerTarget)
    assert len(target) == FRAMES
    frames = segment_frames(character, clip.root_position, clip.root_orientation, clip.angles)
    np.testing.assert_array_equal(target.markers[:, 0], frames[0][:, 0])
    assert target.markers.shape == (FRAMES, 3 * len(character.segments), 3)
    np.testing.assert_allclose(target.markers, points_world(*frames, *marker_layout(character)))


def test_joint_error_is_a_distance_in_cm() -> None:
    simulated: npt.NDArray[np.float64] = np.zeros((2, 3, 3))
    reference: Array = np.zeros((2, 3, 3))
    reference[1, 2] = [0.03, 0.0, 0.04]
    np.testing.assert_allclose(joint_error(simulated, reference), [[0, 0, 0], [0, 0, 5.0]])


def wanderers(character: Character, clip: MotionClip) -> Rollouts:
    """Three simulations: one near the clip, one that is far off and drifts, one that diverged half-way."""
    one = rollouts_of(character, clip)
    positions, orientations = np.tile(one.positions, (3, 1, 1, 1)), np.tile(one.orientations, (3, 1, 1, 1))
    positions += np.random.default_rng(3).normal(0, 0.02, positions.shape)
    positions[1] += 0.3 * np.arange(len(clip))[:, None, None]
    positions[2, FRAMES // 2 :] = np.nan
    tiled = {name: np.repeat(getattr(one, name), 3, axis=0) for name in ("load", "state", "diverged", "final")}
    return replace(one, positions=positions, orientations=orientations, **tiled)


@pytest.mark.parametrize("window", [(0, FRAMES - 1), (0, FRAMES + 2), (2, 7)])
def test_squares_of_residuals_sum_to_the_cost(character: Character, clip: MotionClip, window: tuple[int, int]) -> None:
    """All but penalties and contacts, under uneven weights, past the end of the evidence, and where simulations diverge."""
    held = MotionClip(
        clip.name,
        clip.fps,
        *(
            np.concatenate([a, a[-1:], a[-1:], a[-1:]])
            for a in (clip.root_position, clip.root_orientation, clip.angles)
        ),
    )
    weighed = Objective(character, marker_target(character, clip), Weights(markers=0.7, velocity=1.3, stability=0.4))
    longer = wanderers(character, clip if window[1] < FRAMES else held)
    said = weighed.terms(longer, np.zeros(3), *window)
    found = residuals(weighed, longer, said, *window)
    terms = {term.name: term for term in said}
    expected = sum(terms[name].weight * terms[name].value for name in ("markers", "velocity", "stability"))
    np.testing.assert_allclose(np.sum(found**2, axis=1), expected, rtol=1e-9)
