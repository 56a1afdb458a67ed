"""What can be done with a clip: resample it, mirror it, repeat a cycle, take its velocities."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import Mocap2CtrlError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.types import Array, MotionClip, SimState

SEAM_S = 0.15
"""Time over which a cycle's end is bent into its beginning, seconds."""

SMALLEST_TURN_RAD = np.radians(15.0)
"""A loop whose heading changes by less goes straight on: without this, a walk's 6 degrees of error make a circle."""


@dataclass(frozen=True, eq=False)
class Velocities:
    """Velocities of a clip at each frame.

    Attributes:
        root: (T, 3) world, m/s.
        root_angular: (T, 3) world, rad/s.
        joints: (T, J) rad/s.
    """

    root: Array
    root_angular: Array
    joints: Array


def velocities(clip: MotionClip) -> Velocities:
    """Central differences inside, one-sided at the ends; zero for a single frame."""
    if len(clip) < 2:
        return Velocities(np.zeros((1, 3)), np.zeros((1, 3)), np.zeros(clip.angles.shape))
    return Velocities(
        root=np.gradient(clip.root_position, axis=0) * clip.fps,
        root_angular=rotations.angular_velocity_world(clip.root_orientation, 1.0 / clip.fps),
        joints=np.gradient(clip.angles, axis=0) * clip.fps,
    )


def state(clip: MotionClip, frame: int) -> SimState:
    """Pose and velocities at `frame`: a state to start a simulation from."""
    v = velocities(clip)
    return SimState(clip.pose(frame), v.root[frame], v.root_angular[frame], v.joints[frame])


def resample(clip: MotionClip, fps: float) -> MotionClip:
    """The clip at another rate; starts with the same frame and keeps its duration to within half a frame.

    A loop keeps its last frame exactly, so its rate is the nearest one that divides the period evenly.

    Raises:
        Mocap2CtrlError: `fps` is not positive.
    """
    if not (np.isfinite(fps) and fps > 0):
        raise Mocap2CtrlError(f"fps is {fps}; expected a positive number")
    if fps == clip.fps or len(clip) == 1:
        return replace(clip, fps=fps)
    if clip.loop:
        steps = max(1, round(clip.duration_s * fps))
        return replace(at_times(clip, np.linspace(0.0, clip.duration_s, steps + 1)), fps=steps / clip.duration_s)
    steps = int(np.floor(clip.duration_s * fps + 1e-6))
    return replace(at_times(clip, np.arange(steps + 1) / fps), fps=fps)


def at_times(clip: MotionClip, times_s: Array) -> MotionClip:
    """The clip's poses at the given times (N,) in seconds from its start; its `fps` is left as it is."""
    position = np.clip(np.asarray(times_s) * clip.fps, 0.0, len(clip) - 1.0)
    before = np.minimum(position.astype(int), max(len(clip) - 2, 0))
    after = np.minimum(before + 1, len(clip) - 1)
    share = position - before
    orientation = rotations.slerp(clip.root_orientation[before], clip.root_orientation[after], share)
    mix = share[:, None]
    return replace(
        clip,
        root_position=(1.0 - mix) * clip.root_position[before] + mix * clip.root_position[after],
        root_orientation=rotations.continuous(rotations.normalise(orientation)),
        angles=(1.0 - mix) * clip.angles[before] + mix * clip.angles[after],
    )


def values_at(values: Array, fps: float, times_s: Array) -> Array:
    """(N, ...) values (T, ...), recorded at `fps`, at the given times (N,) in seconds from the first; past the last this one."""
    position = np.minimum(times_s * fps, len(values) - 1.0)
    before = np.minimum(position.astype(int), max(len(values) - 2, 0))
    after = np.minimum(before + 1, len(values) - 1)
    share = (position - before).reshape(-1, *[1] * (values.ndim - 1))
    return np.asarray((1.0 - share) * values[before] + share * values[after])


def mirror(clip: MotionClip, character: Character) -> MotionClip:
    """The clip seen in a mirror: left and right exchanged by the plane y = 0."""
    index, sign = character.mirror_hinges
    return replace(
        clip,
        root_position=clip.root_position * np.array([1.0, -1.0, 1.0]),
        root_orientation=clip.root_orientation * np.array([1.0, -1.0, 1.0, -1.0]),
        angles=sign * clip.angles[:, index],
        provenance={**clip.provenance, "mirrored": not clip.provenance.get("mirrored", False)},
    )


def facing_x(clip: MotionClip, points: Array) -> tuple[MotionClip, Array]:
    """Turn and move clip and points (T, E, 3) so that the first frame faces x above the origin, exactly."""
    turn = rotations.yaw(-rotations.heading(clip.root_orientation[0]))
    start = clip.root_position[0] * np.array([1.0, 1.0, 0.0])
    orientation = rotations.multiply(turn, clip.root_orientation)
    clip = replace(clip, root_position=rotations.rotate(turn, clip.root_position - start), root_orientation=orientation)
    return clip, rotations.rotate(turn, points - start)


def repeat(clip: MotionClip, cycles: int) -> MotionClip:
    """`cycles` periods of a loop, the root's travel and turn carried on, the seam blended.

    Raises:
        Mocap2CtrlError: the clip is no loop, or `cycles` is less than 1.
    """
    if cycles < 1:
        raise Mocap2CtrlError(f"cycles is {cycles}; it must be a whole number from 1")
    if cycles == 1:
        return clip
    if not clip.loop or len(clip) < 3:
        raise Mocap2CtrlError(f"clip {clip.name!r} is not a loop, so it cannot be repeated; use cycles = 1")
    clip = close_loop(clip)
    turn, start, end = cycle_turn(clip), clip.root_position[0], clip.root_position[-1]
    position, orientation, angles = [clip.root_position[:1]], [clip.root_orientation[:1]], [clip.angles[:1]]
    total, origin = rotations.IDENTITY_QUATERNION, start
    for _ in range(cycles):
        position.append(origin + rotations.rotate(total, clip.root_position[1:] - start))
        orientation.append(rotations.multiply(total, clip.root_orientation[1:]))
        angles.append(clip.angles[1:])
        origin = origin + rotations.rotate(total, end - start)
        total = rotations.multiply(turn, total)
    return replace(
        clip,
        root_position=np.concatenate(position),
        root_orientation=rotations.continuous(np.concatenate(orientation)),
        angles=np.concatenate(angles),
        loop=False,
        provenance={**clip.provenance, "cycles": cycles},
    )


def cycle_turn(clip: MotionClip) -> Array:
    """(4,) the change of heading over one cycle; a small one is an imperfect seam and counts as none."""
    change = rotations.multiply(clip.root_orientation[-1], rotations.conjugate(clip.root_orientation[0]))
    turn = float((rotations.heading(change) + np.pi) % (2.0 * np.pi) - np.pi)
    return rotations.yaw(turn if abs(turn) > SMALLEST_TURN_RAD else 0.0)


def carried_on(clip: MotionClip, cycles: int) -> tuple[Array, Array, Array]:
    """Root positions, root orientations and angles of a loop `cycles` periods later, or earlier where negative.

    The frame that this period and the one next to it share is left out.
    """
    turn, start = cycle_turn(clip), clip.root_position[0]
    end = clip.root_position[-1] * np.array([1.0, 1.0, 0.0]) + start * np.array([0.0, 0.0, 1.0])
    position, orientation = clip.root_position, clip.root_orientation
    for _ in range(abs(cycles)):
        if cycles > 0:
            position, orientation = (
                end + rotations.rotate(turn, position - start),
                rotations.multiply(turn, orientation),
            )
        else:
            back = rotations.conjugate(turn)
            position, orientation = (
                start + rotations.rotate(back, position - end),
                rotations.multiply(back, orientation),
            )
    kept = slice(1, None) if cycles > 0 else slice(None, -1)
    return position[kept], orientation[kept], clip.angles[kept]


def close_loop(clip: MotionClip) -> MotionClip:
    """The loop with its last frames bent so that it goes on into the next period: pose and velocity continuous.

    The last pose becomes the first, up to ground travel and heading; ground travel is kept.
    """
    count = min(len(clip), max(2, round(SEAM_S * clip.fps) + 1))
    turn = cycle_turn(clip)
    wanted = rotations.multiply(turn, clip.root_orientation[0])
    gap = rotations.to_rotation_vector(rotations.multiply(wanted, rotations.conjugate(clip.root_orientation[-1])))
    height = np.array([0.0, 0.0, clip.root_position[0, 2] - clip.root_position[-1, 2]])
    first, last = (velocities(clip.cut(i, i + 2)) for i in (0, len(clip) - 2))
    position = _bend(clip, count, height, rotations.rotate(turn, first.root[0]) - last.root[0])
    spin = _bend(clip, count, gap, rotations.rotate(turn, first.root_angular[0]) - last.root_angular[0])
    orientation = rotations.multiply(rotations.from_rotation_vector(spin), clip.root_orientation)
    angles = _bend(clip, count, clip.angles[0] - clip.angles[-1], first.joints[0] - last.joints[0])
    return replace(
        clip,
        root_position=clip.root_position + position,
        root_orientation=rotations.continuous(rotations.normalise(orientation)),
        angles=clip.angles + angles,
    )


def _bend(clip: MotionClip, count: int, gap: Array, velocity: Array) -> Array:
    """(T, N) a cubic over the last `count` frames that ends with the value `gap` (N,) and the slope `velocity` (N,) a second."""
    u = np.zeros((len(clip), 1))
    u[-count:, 0] = np.linspace(0.0, 1.0, count)
    seconds = (count - 1) / clip.fps
    return np.asarray((3.0 - 2.0 * u) * u * u * gap + (u - 1.0) * u * u * seconds * velocity)
