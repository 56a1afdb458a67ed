"""Two clips in one clock: frames at any time, joint error, and where the bodies are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character import Character
from mocap2ctrl.character.kinematics import evaluation_points, segment_frames
from mocap2ctrl.motion.clips import at_times
from mocap2ctrl.types import Array, MotionClip

LIMB_GROUPS: dict[str, tuple[str, ...]] = {
    "trunk and head": ("pelvis", "neck", "head"),
    "arms": ("shoulder", "elbow", "wrist"),
    "legs": ("hip", "knee", "ankle"),
}


@dataclass(frozen=True, eq=False)
class JointError:
    """Distance between simulated and reference joint centres, not aligned (DESIGN §10).

    Attributes:
        times_s: (T,) seconds, over the time that both clips cover.
        mean_cm: (T,) over all points.
        groups_cm: (T,) means over each limb group.
    """

    times_s: Array
    mean_cm: Array
    groups_cm: dict[str, Array]

    def at(self, time_s: float) -> float | None:
        """Mean error at a time, centimetres; None past the end of either clip."""
        if time_s > self.times_s[-1] + 1e-9:
            return None
        return float(np.interp(time_s, self.times_s, self.mean_cm))


def sample(clip: MotionClip, times_s: npt.ArrayLike) -> tuple[Array, Array, Array]:
    """Root positions (N, 3), orientations (N, 4) and angles (N, J) at `times_s`; the ends are held."""
    held = at_times(clip, np.asarray(times_s, float))
    return held.root_position, held.root_orientation, held.angles


def sampled_frames(character: Character, clip: MotionClip, times_s: npt.ArrayLike) -> tuple[Array, Array]:
    """World positions (N, S, 3) and orientations (N, S, 4) of all segments at `times_s`."""
    return segment_frames(character, *sample(clip, times_s))


def joint_error(character: Character, reference: MotionClip, simulated: MotionClip) -> JointError:
    """Joint error at the simulated clip's frames, as far as the reference reaches."""
    shared = min(reference.duration_s, simulated.duration_s)
    times = np.arange(int(np.floor(shared * simulated.fps + 1e-6)) + 1) / simulated.fps
    points = [evaluation_points(character, *sampled_frames(character, clip, times)) for clip in (reference, simulated)]
    distance_cm = 100.0 * np.linalg.norm(points[1] - points[0], axis=-1)
    names = [point.name for point in character.evaluation_points]
    groups = {}
    for label, endings in LIMB_GROUPS.items():
        columns = [i for i, name in enumerate(names) if name.endswith(endings)]
        if columns:
            groups[label] = distance_cm[:, columns].mean(axis=1)
    return JointError(times, distance_cm.mean(axis=1), groups)
