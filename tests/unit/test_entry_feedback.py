"""Feedback at the entry of states: the compiled law is the written one, turns with the heading, and holds while the state acts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.control.closed_loop import run, start_vector
from mocap2ctrl.control.controller import Controller, ControlState, Exit, TargetPose, compile_program
from mocap2ctrl.control.entry_feedback import (
    ACTIONS,
    LARGEST_RAD,
    EntryFeedback,
    action_names,
    deviation_size,
    deviations,
    entered_at,
    entry_action,
    feedback_arrays,
    hinge_actions,
    move_targets,
)
from mocap2ctrl.control.law import ACTION, MEMORY_SIZE
from mocap2ctrl.geometry import rotations
from mocap2ctrl.simulation.coordinates import coordinates
from mocap2ctrl.simulation.engine import TIME_STEP_S
from mocap2ctrl.simulation.mujoco import MujocoEngine
from mocap2ctrl.types import Array, SimState


def states(character: Character, count: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    qpos = rng.normal(0.0, 0.3, (count, 7 + len(character.hinges)))
    qpos[:, 3:7] = rotations.from_rotation_vector(rng.normal(0.0, 0.5, (count, 3)))
    return qpos, rng.normal(0.0, 1.0, (count, 6 + len(character.hinges)))


def random_feedback(character: Character, seed: int, heading: float, scale: float) -> EntryFeedback:
    qpos, qvel = states(character, 1, seed)
    gain = np.random.default_rng(seed).normal(0.0, scale, (ACTIONS, deviation_size(len(character.hinges))))
    return entered_at(qpos[0], qvel[0], heading, gain)


def compiled_action(feedback: EntryFeedback, character: Character, heading: float, qpos: Array, qvel: Array) -> Array:
    action = np.empty(ACTIONS)
    entry_action(feedback_arrays([[feedback]], np.array([heading]), character), 0, 0, qpos, qvel, action)
    return action


def test_the_compiled_action_is_gain_times_deviation(character: Character):
    heading = 0.7
    feedback = random_feedback(character, 1, heading, 0.005)
    qpos, qvel = states(character, 5, 2)
    written = deviations(feedback, qpos, qvel, heading) @ feedback.gain.T
    for k in range(5):
        action = compiled_action(feedback, character, heading, qpos[k], qvel[k])
        in_heading = rotations.rotate(rotations.yaw(-heading), action[:3])
        np.testing.assert_allclose(np.concatenate([in_heading, action[3:]]), written[k], atol=1e-12)


def test_where_a_state_was_entered_there_is_no_action_and_far_away_a_bounded_one(character: Character):
    feedback = random_feedback(character, 3, -1.2, 10.0)
    qpos, qvel = states(character, 1, 3)
    np.testing.assert_allclose(compiled_action(feedback, character, -1.2, qpos[0], qvel[0]), 0.0, atol=1e-12)
    far = compiled_action(feedback, character, -1.2, qpos[0] + 0.5, qvel[0])
    assert np.abs(far).max() == LARGEST_RAD


def test_a_body_and_a_heading_that_turn_together_get_an_action_that_turns(character: Character):
    feedback = random_feedback(character, 4, 0.0, 0.005)
    qpos, qvel = (row[0] for row in states(character, 1, 5))
    turn = rotations.yaw(2.0)
    turned, moving = qpos.copy(), qvel.copy()
    turned[3:7], moving[:3] = rotations.multiply(turn, qpos[3:7]), rotations.rotate(turn, qvel[:3])
    before = compiled_action(feedback, character, 0.0, qpos, qvel)
    after = compiled_action(feedback, character, 2.0, turned, moving)
    np.testing.assert_allclose(after[:3], rotations.rotate(turn, before[:3]), atol=1e-12)
    np.testing.assert_allclose(after[3:], before[3:], atol=1e-12)


def test_an_action_turns_the_root_and_moves_the_named_hinges(character: Character):
    arrays = feedback_arrays([[random_feedback(character, 6, 0.0, 0.1)]], np.zeros(1), character)
    action = np.zeros(ACTIONS)
    action[:3] = 0.1, -0.2, 0.3
    action[action_names(character).index("waist.flexion")] = 0.4
    action[action_names(character).index("left_shank.flexion")] = -0.1
    root, angles = rotations.yaw(0.5), np.zeros(len(character.hinges))
    target = rotations.multiply(rotations.from_rotation_vector(action[:3]), root)
    move_targets(arrays, action, root, angles)
    np.testing.assert_allclose(root, target, atol=1e-12)
    moved = {character.hinge_names[j]: angles[j] for j in np.flatnonzero(angles)}
    assert moved == {"abdomen.flexion": 0.2, "chest.flexion": 0.2, "left_shank.flexion": -0.1}
    assert len(action_names(character)) == ACTIONS == 3 + len(hinge_actions(character)[1])


def test_the_action_of_an_entry_holds_until_the_next(engine: MujocoEngine, character: Character, standing: SimState):
    gain = np.zeros((ACTIONS, deviation_size(len(character.hinges))))
    gain[action_names(character).index("left_thigh.flexion"), 0] = 1.0
    qpos, qvel = coordinates(standing)
    feedback = entered_at(qpos, qvel, 0.0, gain)
    target = TargetPose(np.zeros(3), standing.pose.angles)
    alpha = np.full(len(character.groups), 0.1)
    answering = ControlState(
        "1", target, alpha, np.zeros(3), exit=Exit("time", 0.1, "2"), feedback=replace(feedback, height=qpos[2] - 0.2)
    )
    silent = ControlState("2", target, alpha, np.zeros(3), exit=Exit("time", 0.1, "1"))
    program = compile_program([Controller((answering, silent), standing)], character, TIME_STEP_S)
    held, row = [], 3 + hinge_actions(character)[0].index("left_thigh.flexion")
    for step in range(1, 26):
        final = run(engine, program, start_vector(standing), step).final[0]
        held.append(final[len(final) - MEMORY_SIZE + ACTION + row])
    # a step too many or too few would show: the twelve steps of a state, and its successor without feedback
    np.testing.assert_allclose(held[:12], 0.2, atol=1e-12)
    np.testing.assert_array_equal(held[12:24], 0.0)
    assert abs(held[24] - 0.2) < 0.02  # the body has moved a little
    assert held[24] != held[0]
