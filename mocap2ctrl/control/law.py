"""The control law of one state, compiled: exits, balance feedback, pose-difference servos, and the stance hip that holds the root.

Vondrak §4.1.1 and §4.1.3. `Program` is a population of state machines as arrays, `BodyArrays` what the law needs to know of
the character. The law sees generalised coordinates (root position, root quaternion, angles; root velocity in the world, root
angular velocity in the root's frame, joint rates) and returns one target velocity a hinge; an engine turns those into torques.

Departures from the paper, with the experiments in docs/actuation.md:

* Root. Eq. (4), (6) and Algorithm 1 give the root's outside torque back to the *swing* thigh, which diverges on the ground.
  Here the loaded hips hold the root, with no torque from outside: the hip's velocity is chosen so that the pelvis, seen from
  the thigh's present angular velocity, turns as Eq. (4) asks; its torque is bounded and solved together with the contacts.
  In double support each hip does so by its share of the load. Loads are running means over some 0.1 s: with the load itself, a
  foot that bounces changes its hip's task at every touch and bounces the more. In flight the shares fade: no root servo.
* Limits. A servo never asks for a velocity that would take its hinge past its limit within the step; the root's hold did so.
* Balance. The direction of d alone is noise near balance, so the slerp's fraction is theta_3 min(1, |d| / 0.1 m); the printed
  second term of d reads COP - COP, and the centre of mass's velocity stands there, as in Yin 2007.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.compiled import njit
from mocap2ctrl.control.entry_feedback import ACTIONS, NO_FEEDBACK, FeedbackArrays, entry_action, move_targets
from mocap2ctrl.errors import CharacterError
from mocap2ctrl.geometry.compiled_rotations import axis_quaternion, multiply, rotate, rotation_difference
from mocap2ctrl.simulation.engine import load_threshold_n
from mocap2ctrl.types import Array

IntArray = npt.NDArray[np.int64]

EXIT_NEVER, EXIT_TIME, EXIT_LEFT, EXIT_RIGHT = 0, 1, 2, 3
SWING_AUTO, SWING_LEFT, SWING_RIGHT = 0, 1, 2
BALANCE_LENGTH_M = 0.1
MAX_SERVO_VELOCITY = 20.0
"""rad/s: about what the fastest kicks and throws need. Falling, flailing bodies diverge less often than with 40."""

SUPPORT_SMOOTHING = 0.1
"""Share of the present load that enters a foot's running mean in each step: a bouncing foot keeps its hip's role for a while."""

FULL_SUPPORT = 0.5
"""Load, as a fraction of body weight, from which the hips hold the root fully."""

# A controller's memory between steps.
STATE, STATE_TIME, STEP, LOAD, PRESSURE, WAS_LOADED, SUPPORT, ACTION = 0, 1, 2, 3, 5, 11, 13, 15
MEMORY_SIZE = ACTION + ACTIONS


class Program(NamedTuple):
    """P state machines of M states as arrays; the hand-over from controllers to compiled code.

    Attributes:
        root_target: (P, M, 4) target root orientation, world.
        angle_target: (P, M, J) target angles, radians.
        root_alpha: (P, M) fraction of the root's pose difference removed in a step.
        alpha: (P, M, J) the same for each hinge.
        balance: (P, M, 3) theta.
        swing: (M,) SWING_…
        exit_kind: (M,) EXIT_…
        exit_time_s: (P, M) duration for EXIT_TIME, longest duration for contact exits.
        next_state: (M,) where the exit leads.
        feedback: what states make of how they are entered.
    """

    root_target: Array
    angle_target: Array
    root_alpha: Array
    alpha: Array
    balance: Array
    swing: IntArray
    exit_kind: IntArray
    exit_time_s: Array
    next_state: IntArray
    feedback: FeedbackArrays = NO_FEEDBACK

    def of(self, which: IntArray) -> Program:
        """The machines `which` (N,) as copies of their own; one may come several times."""
        return self._replace(
            root_target=self.root_target[which],
            angle_target=self.angle_target[which],
            root_alpha=self.root_alpha[which],
            alpha=self.alpha[which],
            balance=self.balance[which],
            exit_time_s=self.exit_time_s[which],
            feedback=self.feedback.of(which),
        )


class Span(NamedTuple):
    """From where to where P machines are simulated, and what is recorded of it.

    Attributes:
        starts: (P, K) start vectors.
        begin: the earliest step of a start.
        end_step: number of the step at which to stop.
        stride: steps between recorded frames.
        stop_at_state: state before whose first step to stop; -1 for none.
        pushes: (P, N, 7) as `simulation.pushes.push_table` makes them.
        belt: (N, 8) the ground that moves along itself, as `footing.moving_ground` makes it.
        gravity: (end_step - begin, 3) what is felt in each step, m/s^2; (0, 3) where it is the engine's own all the time.
    """

    starts: Array
    begin: int
    end_step: int
    stride: int
    stop_at_state: int
    pushes: Array
    belt: Array
    gravity: Array


class BodyArrays(NamedTuple):
    """What the control law knows of the character.

    Attributes:
        hip_column: (2,) index of each thigh's first hinge.
        hip_axes: (2, 3, 3) axes of its three hinges.
        lower, upper: (J,) joint limits.
        time_step_s: of the simulation.
        load_threshold_n: ground force above which a foot counts as loaded.
        weight_n: body weight.
    """

    hip_column: IntArray
    hip_axes: Array
    lower: Array
    upper: Array
    time_step_s: float
    load_threshold_n: float
    weight_n: float


@lru_cache(maxsize=4)
def body_arrays(character: Character, time_step_s: float) -> BodyArrays:
    """The character's constants for the control law.

    Raises:
        CharacterError: the hips are not three hinges about y, x, z, which the balance feedback inverts.
    """
    columns, axes = [], []
    for side in ("left", "right"):
        segment = character.segments[character.segment_index(f"{side}_thigh")]
        hinges = np.array([hinge.axis for hinge in segment.hinges])
        if hinges.shape != (3, 3) or not np.array_equal(np.abs(hinges), np.eye(3)[[1, 0, 2]]):
            raise CharacterError(
                f"{segment.name}: hinge axes are {hinges.tolist()}; the hips need y, x, z in this order"
            )
        columns.append(character.hinge_names.index(segment.hinges[0].name))
        axes.append(hinges)
    return BodyArrays(
        hip_column=np.array(columns),
        hip_axes=np.array(axes),
        lower=np.array(character.lower_limits),
        upper=np.array(character.upper_limits),
        time_step_s=time_step_s,
        load_threshold_n=load_threshold_n(character),
        weight_n=9.81 * character.mass_kg,
    )


@njit
def advance_state_machine(program, p, memory, body):  # type: ignore[no-untyped-def]
    """Takes the exit of the present state if it is due (§4.1.3): on time, or on a foot's touchdown; standing is none.

    To be called once before each step; a second call changes nothing, so a stopped simulation may be taken up again.
    """
    state = int(memory[STATE])
    kind = program.exit_kind[state]
    leave = False
    if kind != EXIT_NEVER:
        leave = memory[STATE_TIME] >= program.exit_time_s[p, state] - 1e-9
    for side in range(2):
        loaded = memory[LOAD + side] > body.load_threshold_n
        if memory[STEP] == 0.0:  # no step has told yet whether the foot stands
            loaded = True
            memory[WAS_LOADED + side] = 1.0
        if loaded and memory[WAS_LOADED + side] == 0.0 and kind == EXIT_LEFT + side:
            leave = True
        memory[WAS_LOADED + side] = 1.0 if loaded else 0.0
    if leave:
        memory[STATE] = program.next_state[state]
        memory[STATE_TIME] = 0.0


@njit
def enter_state(program, p, memory, qpos, qvel):  # type: ignore[no-untyped-def]
    """Lets a state that has just been entered see the body: its feedback's action goes to `memory`, for as long as it acts."""
    if program.feedback.gain.shape[0] > 0 and memory[STATE_TIME] == 0.0:
        entry_action(program.feedback, p, int(memory[STATE]), qpos, qvel, memory[ACTION : ACTION + ACTIONS])


@njit
def follow_support(memory):  # type: ignore[no-untyped-def]
    """Updates the running means, in `memory`, of the loads on the feet."""
    for side in range(2):
        memory[SUPPORT + side] += SUPPORT_SMOOTHING * (memory[LOAD + side] - memory[SUPPORT + side])


@njit
def support_shares(program, state, memory, body, shares):  # type: ignore[no-untyped-def]
    """Writes each hip's share (2,) in holding the root: its part of the mean load, 0 for a state's named swing leg.

    They add up to 1 from `FULL_SUPPORT` on, and fade to nothing with the load.
    """
    total = 0.0
    for side in range(2):
        shares[side] = 0.0 if program.swing[state] == SWING_LEFT + side else memory[SUPPORT + side]
        total += shares[side]
    full = max(total, FULL_SUPPORT * body.weight_n)
    shares[0] /= full
    shares[1] /= full


@njit
def balance_feedback(program, p, state, memory, body, com, com_velocity, side, root, angles):  # type: ignore[no-untyped-def]
    """Turns the swing thigh's target toward d (§4.1.1): `angles` (J,) are changed in place for the hip of `side`.

    `root` (4,) is the root's target.
    """
    theta = program.balance[p, state]
    if theta[2] <= 0.0:
        return
    load = memory[LOAD] + memory[LOAD + 1]
    d = np.zeros(3)
    for k in range(2):
        pressure = memory[LOAD] * memory[PRESSURE + k] + memory[LOAD + 1] * memory[PRESSURE + 3 + k]
        d[k] = theta[0] * (com[k] - pressure / load) + theta[1] * com_velocity[k]
    length = np.sqrt(d[0] * d[0] + d[1] * d[1])
    if length < 1e-9:
        return
    fraction = theta[2] * min(1.0, length / BALANCE_LENGTH_M)
    d /= length
    column = body.hip_column[side]
    thigh, turned, step = np.empty(4), np.empty(4), np.empty(4)
    thigh[:] = root
    for h in range(3):
        axis_quaternion(body.hip_axes[side, h], angles[column + h], step)
        multiply(thigh, step, turned)
        thigh[:] = turned
    down, leg = np.zeros(3), np.empty(3)
    down[2] = -1.0
    rotate(thigh, down, leg)
    axis = np.empty(3)
    axis[0] = leg[1] * d[2] - leg[2] * d[1]
    axis[1] = leg[2] * d[0] - leg[0] * d[2]
    axis[2] = leg[0] * d[1] - leg[1] * d[0]
    sine = np.sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2])
    if sine < 1e-9:
        return
    angle = np.arctan2(sine, leg[0] * d[0] + leg[1] * d[1] + leg[2] * d[2])
    axis_quaternion(axis / sine, fraction * angle, step)
    multiply(step, thigh, turned)
    inverse = np.empty(4)
    inverse[0] = root[0]
    for k in range(1, 4):
        inverse[k] = -root[k]
    multiply(inverse, turned, thigh)
    hip_angles_of(thigh, body.hip_axes[side], angles[column : column + 3])


@njit
def hip_angles_of(q, axes, out):  # type: ignore[no-untyped-def]
    """Writes the angles (3,) of hinges about +-y, +-x, +-z, in this order, that make the rotation `q` to `out`.

    With the second at +-90 degrees the first and the third turn about one axis; the first then takes all.
    """
    w, x, y, z = q[0], q[1], q[2], q[3]
    sine = min(1.0, max(-1.0, 2.0 * (w * x - y * z)))
    out[1] = axes[1, 0] * np.arcsin(sine)
    if abs(sine) > 1.0 - 1e-12:
        sign = 1.0 if w >= 0.0 else -1.0
        out[0] = axes[0, 1] * 2.0 * np.arctan2(sign * y, sign * w)
        out[2] = 0.0
        return
    out[0] = axes[0, 1] * np.arctan2(2.0 * (x * z + w * y), 1.0 - 2.0 * (x * x + y * y))
    out[2] = axes[2, 2] * np.arctan2(2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z))


@njit
def hip_axes_world(qpos, body, side, out):  # type: ignore[no-untyped-def]
    """Writes the world axes (3, 3), one a row, of the present hip's hinges to `out`."""
    frame, turned, step = np.empty(4), np.empty(4), np.empty(4)
    frame[:] = qpos[3:7]
    column = body.hip_column[side]
    for h in range(3):
        rotate(frame, body.hip_axes[side, h], out[h])
        axis_quaternion(body.hip_axes[side, h], qpos[7 + column + h], step)
        multiply(frame, step, turned)
        frame[:] = turned


@njit
def root_target_velocity(program, p, state, root, qpos, body, out):  # type: ignore[no-untyped-def]
    """Writes the root's wanted world angular velocity (3,), Eq. (4), toward the orientation `root` (4,), to `out`."""
    rotation_difference(qpos[3:7], root, out)
    scale = -program.root_alpha[p, state] / body.time_step_s
    for k in range(3):
        out[k] *= scale


@njit
def stance_hip(qpos, qvel, body, side, share, root_velocity, velocity):  # type: ignore[no-untyped-def]
    """Blends the hip's `velocity` (J,), in place, with the one that turns the pelvis at `root_velocity` (3,).

    With the thigh's present angular velocity w_t, the pelvis turns at w_t - sum(a_i q_i'), so the hip's rates solve
    sum(a_i q_i') = w_t - w_root. The 3 x 3 system is solved by Cramer's rule, damped near the hip's singular pose.
    """
    a = np.empty((3, 3))
    hip_axes_world(qpos, body, side, a)
    column = body.hip_column[side]
    b = np.empty(3)
    rotate(qpos[3:7], qvel[3:6], b)
    for k in range(3):
        b[k] -= root_velocity[k]
        for h in range(3):
            b[k] += a[h, k] * qvel[6 + column + h]
    cross = np.empty((3, 3))
    for h in range(3):
        i, j = (h + 1) % 3, (h + 2) % 3
        cross[h, 0] = a[i, 1] * a[j, 2] - a[i, 2] * a[j, 1]
        cross[h, 1] = a[i, 2] * a[j, 0] - a[i, 0] * a[j, 2]
        cross[h, 2] = a[i, 0] * a[j, 1] - a[i, 1] * a[j, 0]
    det = a[0, 0] * cross[0, 0] + a[0, 1] * cross[0, 1] + a[0, 2] * cross[0, 2]
    inverse = det / (det * det + 1e-3)
    for h in range(3):
        rate = inverse * (cross[h, 0] * b[0] + cross[h, 1] * b[1] + cross[h, 2] * b[2])
        velocity[column + h] = (1.0 - share) * velocity[column + h] + share * rate


@njit
def target_velocities(program, p, memory, body, qpos, qvel, com, com_velocity, hold_root, velocity):  # type: ignore[no-untyped-def]
    """One step of the present state: writes the hinges' target velocities (J,) in rad/s to `velocity`; its time goes on.

    `hold_root` tells whether the loaded hips hold the root; False leaves every hip to its pose servo.
    """
    state = int(memory[STATE])
    joints = velocity.shape[0]
    angles, root = program.angle_target[p, state].copy(), program.root_target[p, state].copy()
    if program.feedback.gain.shape[0] > 0:
        move_targets(program.feedback, memory[ACTION : ACTION + ACTIONS], root, angles)
    shares = np.zeros(2)
    follow_support(memory)
    support_shares(program, state, memory, body, shares)
    if memory[LOAD] + memory[LOAD + 1] > body.load_threshold_n:
        swing = 0 if shares[0] < shares[1] else 1
        if program.swing[state] != SWING_AUTO:
            swing = program.swing[state] - SWING_LEFT
        balance_feedback(program, p, state, memory, body, com, com_velocity, swing, root, angles)
    for j in range(joints):
        target = min(max(angles[j], body.lower[j]), body.upper[j])
        velocity[j] = -program.alpha[p, state, j] * (qpos[7 + j] - target) / body.time_step_s  # Eq. (5)
    if hold_root:
        root_velocity = np.empty(3)
        root_target_velocity(program, p, state, root, qpos, body, root_velocity)
        for side in range(2):
            if shares[side] > 0.0:
                stance_hip(qpos, qvel, body, side, shares[side], root_velocity, velocity)
    for j in range(joints):
        low = max(-MAX_SERVO_VELOCITY, min(0.0, (body.lower[j] - qpos[7 + j]) / body.time_step_s))
        high = min(MAX_SERVO_VELOCITY, max(0.0, (body.upper[j] - qpos[7 + j]) / body.time_step_s))
        velocity[j] = min(max(velocity[j], low), high)  # no muscle pushes a joint past its limit
    memory[STATE_TIME] += body.time_step_s
