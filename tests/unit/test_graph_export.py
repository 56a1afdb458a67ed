"""Making graphs: cutting, symmetry, distances, blended ways, and what can be walked forever."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from graphs import gait, random_fragment, two_skills
from hypothesis import given as drawn
from hypothesis import strategies
from scipy.integrate import cumulative_trapezoid
from scipy.optimize import minimize_scalar

from mocap2ctrl.character.model import Character, load_character
from mocap2ctrl.errors import ConfigError, GraphError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.graph.blend import blend_seconds, blended, passed_s
from mocap2ctrl.graph.build import BuiltGraph, build_graph
from mocap2ctrl.graph.core import beginnings, find_core
from mocap2ctrl.graph.fragments import ControlFragment
from mocap2ctrl.graph.near import cloud_distances, clouds
from mocap2ctrl.graph.pieces import Cut, cut, transition_states
from mocap2ctrl.graph.skills import Skill, make_skill
from mocap2ctrl.graph.symmetry import symmetrised
from mocap2ctrl.graph.transitions import Transition, check_names, given, nearness, proposed, transition, window_length
from mocap2ctrl.motion.clips import mirror
from mocap2ctrl.simulation.pd_gains import pd_gains
from mocap2ctrl.types import Array, MotionClip

TOLERANCE = 1e-9


@drawn(strategies.floats(0.06, 20.0))
def test_pieces_are_about_a_tenth_of_a_second_and_keep_the_duration(seconds: float) -> None:
    division = cut(seconds)
    assert abs(division.seconds - seconds) <= 0.0025 * division.count + TOLERANCE
    if seconds > 0.3:
        assert 0.075 - TOLERANCE <= division.steps * 0.005 <= 0.125 + TOLERANCE
        assert abs(division.seconds / seconds - 1.0) < 0.02


def test_pieces_of_round_durations() -> None:
    assert cut(1.0) == Cut(10, 20)
    assert cut(0.45) == Cut(5, 18)
    assert cut(0.1) == Cut(1, 20)


@pytest.fixture(scope="module")
def body() -> Character:
    return load_character()


@pytest.fixture(scope="module")
def skills(body: Character) -> tuple[Skill, Skill]:
    return two_skills(body)


def test_a_skill_is_its_motion_and_goes_on_beyond_the_period(skills: tuple[Skill, Skill]) -> None:
    walk = skills[0]
    frames = walk.at(walk.clip.times_s)
    np.testing.assert_allclose(frames[0], walk.clip.root_position, atol=TOLERANCE)
    np.testing.assert_allclose(frames[2], walk.clip.angles, atol=TOLERANCE)
    times = np.linspace(0.0, 0.9, 7)
    now, later = walk.at(times), walk.at(times + walk.duration_s)
    np.testing.assert_allclose(later[0] - now[0], [[1.0, 0.0, 0.0]] * 7, atol=1e-4)
    np.testing.assert_allclose(later[2], now[2], atol=1e-3)


def test_splines_are_nearer_the_truth_than_lines(body: Character) -> None:
    clip = gait(body, period_s=1.0)
    between = np.array([0.31, 0.55])
    knee = body.hinge_names.index("left_shank.flexion")
    phase = 2.0 * np.pi * between
    truth = 0.2 + 0.15 * np.sin(phase) + 0.03 * np.cos(2.0 * phase)
    assert np.max(np.abs(make_skill("walk", clip, body).at(between)[2][:, knee] - truth)) < 1e-5


def mirrored_later(skill: Skill, character: Character, times: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Positions and angles now, and mirrored half a period later, with half the travel taken off."""
    now, later = skill.at(times), skill.at(times + 0.5 * skill.duration_s)
    image = mirror(replace(skill.clip, root_position=later[0], root_orientation=later[1], angles=later[2]), character)
    travel = 0.5 * (skill.clip.root_position[-1] - skill.clip.root_position[0])
    return (now[0], now[2]), (image.root_position - travel, image.angles)


def test_a_symmetric_gait_is_its_own_mirror_image(body: Character) -> None:
    crooked = make_skill("walk", gait(body, lean=0.15), body)
    times = np.linspace(0.0, 1.4, 29)
    (_, angles), (_, image) = mirrored_later(crooked, body, times)
    assert np.max(np.abs(angles - image)) > 0.2
    made = symmetrised(crooked, body)
    assert made.symmetric
    assert made.duration_s == pytest.approx(1.0, abs=TOLERANCE)
    (position, angles), (seen, image) = mirrored_later(made, body, times)
    np.testing.assert_allclose(angles, image, atol=1e-4)
    np.testing.assert_allclose(position, seen, atol=1e-4)


def test_a_stride_is_kept_as_it_is_away_from_the_joins(body: Character) -> None:
    """One stride is the recorded one, lean included; the other leans the other way."""
    made = symmetrised(make_skill("walk", gait(body, lean=0.15), body), body)
    bend = made.clip.angles[:, body.hinge_names.index("abdomen.lateral_bend")]
    assert {round(float(np.mean(bend[30:80])) > 0), round(float(np.mean(bend[130:180])) > 0)} == {0, 1}


def test_what_is_symmetric_stays(body: Character) -> None:
    even = make_skill("walk", gait(body), body)
    made = symmetrised(even, body)
    knees = [body.hinge_names.index(f"{side}_shank.flexion") for side in ("left", "right")]
    for skill in (even, made):
        assert np.ptp(skill.clip.angles[:, knees[0]]) == pytest.approx(np.ptp(skill.clip.angles[:, knees[1]]), rel=0.02)
    assert np.ptp(made.clip.angles[:, knees[0]]) == pytest.approx(np.ptp(even.clip.angles[:, knees[0]]), rel=0.02)


def test_no_symmetry_without_a_straight_cycle(body: Character) -> None:
    once = Skill("walk", replace(gait(body), loop=False))
    with pytest.raises(GraphError, match="is no cycle"):
        symmetrised(once, body)
    clip = gait(body)
    turning = rotations.multiply(rotations.yaw(np.linspace(0.0, 1.0, len(clip))), clip.root_orientation)
    with pytest.raises(GraphError, match="turns"):
        symmetrised(make_skill("walk", replace(clip, root_orientation=turning), body), body)


def test_the_distance_of_clouds_does_not_depend_on_where_and_whither(
    skills: tuple[Skill, Skill], body: Character
) -> None:
    walk, run = skills
    turn = rotations.yaw(1.1)
    clip = replace(
        run.clip,
        root_position=rotations.rotate(turn, run.clip.root_position) + np.array([5.0, -3.0, 0.0]),
        root_orientation=rotations.multiply(turn, run.clip.root_orientation),
    )
    times = np.array([0.0, 0.2, 0.5])
    a, b, moved = (clouds(s, body, times, 0.3) for s in (walk, run, Skill("moved", clip)))
    np.testing.assert_allclose(cloud_distances(b, moved).diagonal(), 0.0, atol=1e-6)
    np.testing.assert_allclose(cloud_distances(a, moved), cloud_distances(a, b), atol=1e-6)
    np.testing.assert_allclose(cloud_distances(a, b), cloud_distances(b, a).T, atol=TOLERANCE)
    assert cloud_distances(a, b).min() > 0.01


def test_the_distance_of_clouds_is_the_least_over_all_turns() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 40, 3))

    def turned(angle: float) -> float:
        other = rotations.rotate(rotations.yaw(angle), b)
        shift = (a - other).mean(axis=0) * np.array([1.0, 1.0, 0.0])
        return float(np.sqrt(np.mean(np.sum((a - other - shift) ** 2, axis=1))))

    searched = min(
        (minimize_scalar(turned, bounds=(low, low + 1.0), method="bounded") for low in np.arange(-4.0, 4.0)),
        key=lambda found: found.fun,
    )
    assert cloud_distances(a[None], b[None])[0, 0] == pytest.approx(searched.fun, abs=1e-9)


def test_a_way_is_proposed_where_two_skills_share_a_moment(body: Character) -> None:
    """The second skill is what the first does from 0.8 s on, once."""
    walk = make_skill("walk", gait(body, period_s=1.0), body)
    late = walk.at(np.arange(0.8, 1.9, 0.02))
    clip = replace(walk.clip, fps=50.0, root_position=late[0], root_orientation=late[1], angles=late[2], loop=False)
    once = Skill("once", clip)
    found = proposed((walk, once), nearness((walk, once), body, 0.3), 0.3)
    ways = {(way.source, way.target): way for way in found}
    into, out = ways["walk", "once"], ways["once", "walk"]
    for way, early, then in ((into, into.leave_s, into.enter_s), (out, out.enter_s, out.leave_s)):
        assert (then + 0.8 - early + 0.5) % 1.0 - 0.5 == pytest.approx(0.0, abs=0.021)
        assert way.distance_m < 0.02
    assert into.enter_s < 0.3  # early enough that something is left of it
    assert out.leave_s > 0.5
    pair = two_skills(body)
    near = nearness(pair, body, 0.3)
    assert [(way.source, way.target) for way in proposed(pair, near, 0.3)] == [("walk", "run"), ("run", "walk")]
    assert proposed(pair, near, 0.3, within_m=0.01) == ()


def test_given_moments(skills: tuple[Skill, Skill], body: Character) -> None:
    known = {skill.name: skill for skill in skills}
    way = given(known, body, ("walk:0.5", "run:.2"), 0.3)
    assert (way.source, way.leave_s, way.target, way.enter_s, way.blend_s) == ("walk", 0.5, "run", 0.2, 0.3)
    assert way.arrive_s == pytest.approx(0.2 + 0.3 * 0.7 * (1.0 + 1.0 / 0.7) / 2.0)
    assert 0.0 < way.distance_m < 1.0
    for ends, says in (
        (("walk", "run:0"), "is no moment"),
        (("jump:0", "run:0"), "allowed is NAME:SECONDS with a name of walk, run"),
        (("walk:2", "run:0"), "allows 0 to 1.00 s"),
        (("walk:0", "walk:0.5"), "leads from a skill to itself"),
    ):
        with pytest.raises(ConfigError, match=says):
            given(known, body, ends, 0.3)


def test_names() -> None:
    for names, says in ((["a", "a"], "two skills"), (["a/b"], "cannot be called"), ([""], "cannot be called")):
        with pytest.raises(GraphError, match=says):
            check_names(names)


def test_transition_states_that_are_close_become_one(skills: tuple[Skill, Skill]) -> None:
    walk = skills[0]
    states, index = transition_states(walk, [0.5, 0.98, 0.02, 0.54])
    np.testing.assert_allclose(states, [0.5, 0.98])
    assert index.tolist() == [0, 1, 1, 0]
    states, index = transition_states(replace(walk, symmetric=True), [0.1])
    np.testing.assert_allclose(states, [0.1, 0.6])
    states, index = transition_states(Skill("once", replace(walk.clip, loop=False)), [0.98])
    np.testing.assert_allclose(states, [0.0, 1.0])
    assert index.tolist() == [1]


def test_a_short_motion_can_be_entered_and_left(skills: tuple[Skill, Skill], body: Character) -> None:
    """However short it is, the transition into it ends before the one out of it begins."""
    walk = skills[0]
    for period in (0.5, 0.73, 1.1, 3.0):
        once = Skill("once", replace(gait(body, period_s=period), loop=False))
        blend_s = window_length((walk, once), 0.3)
        assert blend_s == pytest.approx(min(0.3, 0.25 * period))
        ways = proposed((walk, once), nearness((walk, once), body, blend_s), blend_s, within_m=9.0)
        into, out = ways
        assert into.enter_s + blend_s <= out.leave_s + 0.02
        assert "once" in {f.skill for f in build_graph((walk, once), ways, body).graph.fragments.values()}


def test_two_cycles_are_blended_in_step(body: Character) -> None:
    """The same gait slow and fast: in between it is that gait, at the phase that the mixed rates have come to."""
    slow, fast = make_skill("slow", gait(body, period_s=1.2), body), make_skill("fast", gait(body, period_s=0.6), body)
    blend_s, leave_s, count = 0.7, 0.4, 140
    way = transition(slow, leave_s, fast, 0.2, blend_s, 0.0)  # both a third into their cycles
    frames = blended(slow, leave_s, fast, way.arrive_s, blend_s, count)
    u = np.linspace(0.0, 1.0, 8 * count + 1)
    share = 3.0 * u**2 - 2.0 * u**3
    rate = (1.0 - share) / 1.2 + share / 0.6
    turned = 2.0 * np.pi * (leave_s / 1.2 + cumulative_trapezoid(rate, u * blend_s, initial=0.0))[::8]
    knee = body.hinge_names.index("left_shank.flexion")
    np.testing.assert_allclose(frames[2][:, knee], 0.2 + 0.15 * np.sin(turned) + 0.03 * np.cos(2.0 * turned), atol=5e-3)
    np.testing.assert_allclose(frames[0][:, 2], 0.9 + 0.03 * np.cos(2.0 * turned), atol=5e-3)


def test_a_body_speeds_up_evenly_in_a_transition(body: Character) -> None:
    """At 1 and at 3 m/s along other directions of the world: it goes on the way it went, and covers what the speeds add up to."""
    slow, fast = make_skill("slow", gait(body), body), make_skill("fast", gait(body, speed=3.0), body)
    blend_s = blend_seconds(slow, fast, 0.3)
    assert blend_s == pytest.approx(2.0 / 3.0)
    turn = rotations.yaw(2.0)
    clip = fast.clip
    moved = replace(
        clip,
        root_position=rotations.rotate(turn, clip.root_position),
        root_orientation=rotations.multiply(turn, clip.root_orientation),
    )
    frames = blended(slow, 0.0, Skill("fast", moved), passed_s(slow, fast, blend_s)[1], blend_s, 200)
    step_s = blend_s / 200
    speeds = np.diff(frames[0][:, 0]) / step_s
    assert speeds[[0, -1]] == pytest.approx([1.0, 3.0], abs=0.03)
    assert np.max(np.abs(np.diff(speeds))) / step_s < 6.0
    assert frames[0][-1, 0] - frames[0][0, 0] == pytest.approx(2.0 * blend_s, rel=0.01)
    assert np.max(np.abs(frames[0][:, 1])) < 0.08
    assert blend_seconds(slow, Skill("once", replace(clip, loop=False)), 0.3) == 0.3
    assert blend_seconds(slow, make_skill("rocket", gait(body, speed=30.0), body), 0.3) == 1.0


WAYS = (Transition("walk", 0.3, "run", 0.1, 0.4, 0.3, 0.0), Transition("run", 0.1, "walk", 0.5, 0.8, 0.3, 0.0))


@pytest.fixture(scope="module")
def built(skills: tuple[Skill, Skill], body: Character) -> BuiltGraph:
    return build_graph(skills, WAYS, body)


def test_a_graph_of_two_skills(built: BuiltGraph) -> None:
    graph = built.graph
    assert {f.skill for f in graph.fragments.values()} == {"walk", "run", "walk-run", "run-walk"}
    assert graph.successors["walk-run/0"] == ("walk-run/1",)
    branching = [name for name, after in graph.successors.items() if len(after) > 1]
    assert len(branching) == 2
    assert (built.core.dead_ends, built.core.unreachable, built.lost) == ((), (), ())
    for fragment in graph.fragments.values():
        steps = fragment.frame_s * len(fragment.targets) / 0.005
        assert steps == pytest.approx(round(steps), abs=1e-9)
        assert 0.06 <= fragment.duration_s <= 0.14
    walk_s = sum(f.duration_s for f in graph.fragments.values() if f.skill == "walk")
    assert walk_s == pytest.approx(1.0, abs=0.01)


def seam(before: ControlFragment, after: ControlFragment) -> tuple[float, float]:
    """Largest gap of angles, height and tilt between the end of a fragment and the begin of the next; and of joint rates."""
    tilts = [
        rotations.multiply(rotations.yaw(-rotations.heading(q)), q)
        for q in (before.reference_root_orientation[-1], after.reference_root_orientation[0])
    ]
    gaps = [
        np.max(np.abs(before.reference_angles[-1] - after.reference_angles[0])),
        abs(before.reference_root_position[-1, 2] - after.reference_root_position[0, 2]),
        np.linalg.norm(rotations.to_rotation_vector(rotations.multiply(tilts[0], rotations.conjugate(tilts[1])))),
    ]
    rates = [
        np.diff(f.reference_angles[part], axis=0)[0] / 0.005
        for f, part in ((before, slice(-2, None)), (after, slice(2)))
    ]
    return float(max(gaps)), float(np.max(np.abs(rates[0] - rates[1])))


def test_references_go_on_along_every_edge(built: BuiltGraph) -> None:
    """Within a cycle, over its seam, into a transition and out of it: pose and velocity, up to travel and heading."""
    for name, after in built.graph.successors.items():
        for other in after:
            gap, rate = seam(built.graph.fragments[name], built.graph.fragments[other])
            assert gap < 1e-3, (name, other)
            assert rate < 0.4, (name, other)  # of 4 rad/s; at 58 rad/s^2 a step changes it by 0.3


def test_targets_are_ahead_of_the_reference_by_the_servos_damping(built: BuiltGraph, body: Character) -> None:
    servo = pd_gains(body)
    fragment = built.graph.fragments["walk/2"]
    rates = np.diff(fragment.reference_angles, axis=0)[3:8] / 0.005
    ahead = fragment.targets[3:8] - fragment.reference_angles[4:9]
    np.testing.assert_allclose(ahead, servo.damping / servo.stiffness * rates, atol=0.02)
    assert np.max(np.abs(ahead)) > 0.05


@pytest.mark.parametrize("ways", [(), WAYS], ids=["alone", "with transitions"])
def test_a_symmetric_cycle_has_mirrored_fragments(body: Character, ways: tuple[Transition, ...]) -> None:
    """To the last bits, so that one side can be learned for both; and it goes on all the same."""
    walk = symmetrised(make_skill("walk", gait(body, lean=0.1), body), body)
    graph = build_graph([walk, two_skills(body)[1]] if ways else [walk], ways, body).graph
    pieces = [fragment for fragment in graph.fragments.values() if fragment.skill == "walk"]
    half = len(pieces) // 2
    assert len(pieces) % 2 == 0
    index, sign = body.mirror_hinges
    for one, other in zip(pieces[:half], pieces[half:], strict=True):
        np.testing.assert_allclose(sign * one.reference_angles[:, index], other.reference_angles, atol=1e-12)
        np.testing.assert_allclose(sign * one.targets[:, index], other.targets, atol=1e-12)
    for one, other in zip(pieces, [*pieces[1:], pieces[0]], strict=True):
        gap, rate = seam(one, other)
        assert gap < 1e-3
        assert rate < 0.3


def test_ends_that_lead_nowhere_are_left_out_and_told(skills: tuple[Skill, Skill], body: Character) -> None:
    walk = skills[0]
    once = Skill("rise", replace(gait(body, period_s=2.0), loop=False))
    out = Transition("rise", 1.5, "walk", 0.2, 0.5, 0.3, 0.0)
    without = build_graph([walk, once], [out], body)
    assert {f.skill for f in without.graph.fragments.values()} == {"walk"}
    assert set(without.lost) == {"rise", "rise-walk"}
    assert "rise/0" in without.core.unreachable
    assert set(without.core.dead_ends) == {f"rise/{k}" for k in range(15, 20)}
    kept = build_graph([walk, once], [out], body, one_way=["rise"])
    assert kept.lost == ()
    assert beginnings(kept.graph.successors) == ("rise/0",)
    assert kept.graph.successors["rise/14"] == ("rise-walk/0",)
    assert set(kept.core.dead_ends) == set(without.core.dead_ends)


def test_nothing_to_repeat(body: Character) -> None:
    with pytest.raises(GraphError, match="nothing can be repeated"):
        build_graph([Skill("once", replace(gait(body), loop=False))], [], body)


def test_the_core_of_a_made_up_graph(body: Character) -> None:
    rng = np.random.default_rng(0)
    edges = {"in/0": "a/0", "a/0": "a/1 out/0", "a/1": "a/2", "a/2": "a/0", "b/0": "b/0", "out/0": "b/0"}
    fragments = {name: random_fragment(name, body, rng, frames=1) for name in edges}
    core = find_core(fragments, {name: tuple(after.split()) for name, after in edges.items()})
    assert core.kept == ("a/0", "a/1", "a/2")
    assert core.dead_ends == ("b/0", "out/0")
    assert core.unreachable == ("in/0",)
    alone = {name: fragments[name] for name in ("a/0", "a/1")}
    assert find_core(alone, {"a/0": ("a/1",), "a/1": ()}).kept == ()


def test_too_short_and_without_a_cycle(body: Character) -> None:
    clip = replace(gait(body), loop=False)
    with pytest.raises(GraphError, match=r"lasts 0\.06 s"):
        make_skill("walk", clip.cut(0, 4), body)
    with pytest.raises(GraphError, match="has no cycle"):
        make_skill("walk", clip.cut(0, 20), body, cyclic=True)
    assert not make_skill("walk", clip.cut(0, 20), body).cyclic
    assert not make_skill("walk", gait(body), body, cyclic=False).cyclic


def test_a_cycle_in_which_nothing_repeats_is_not_believed(body: Character) -> None:
    """Eight seconds of waving that end as they began, and 0.3 s more."""
    t = np.arange(0.0, 8.3, 0.02)
    angles = np.zeros((len(t), len(body.hinges)))
    angles[:, body.hinge_names.index("left_upper_arm.flexion")] = 1.0 - np.cos(2.0 * np.pi * t / 8.0)
    height = np.tile([0.0, 0.0, body.standing_height_m], (len(t), 1))
    clip = MotionClip("wave", 50.0, height, np.tile([1.0, 0.0, 0.0, 0.0], (len(t), 1)), angles)
    skill = make_skill("wave", clip, body)
    assert not skill.cyclic
    assert "8.0 s of its 8.3 s, of which 0.3 s are seen to repeat" in skill.doubt
    with pytest.raises(GraphError, match=r"'wave': its best cycle is 8\.0 s .* nothing can be repeated"):
        build_graph([skill], [], body)
    assert make_skill("wave", clip, body, cyclic=True).cyclic
    faster = make_skill("wave", replace(clip, fps=100.0), body)
    assert faster.cyclic
    assert not faster.doubt


def test_chains_are_cut_once(built: BuiltGraph) -> None:
    """Numbers run on from stretch to stretch, in the order of time."""
    names = [name for name in built.graph.fragments if name.startswith("walk/")]
    assert names == [f"walk/{k}" for k in range(len(names))]
    starts = [built.graph.fragments[name].reference_root_position[0, 0] for name in names]
    assert all(b > a for a, b in pairwise(starts))
