"""Falls of many simulations at once, of controllers that may go on for longer than what they were fitted to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import clip_frames, lowest_points
from mocap2ctrl.control.closed_loop import Rollouts
from mocap2ctrl.evaluation.metrics import FALL_SEGMENTS, LOW_FRACTION, LOW_S, REFERENCE_CLEAR_M, TOUCH_M
from mocap2ctrl.evaluation.surroundings import clearances_in, root_heights_in
from mocap2ctrl.fit.capture import Capture
from mocap2ctrl.simulation.engine import Engine
from mocap2ctrl.types import Array

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FallRule:
    """As `metrics.fall_time`, without the reference's clock.

    Attributes:
        watched: (K,) segments whose touch is a fall: pelvis, trunk, head and hands, but for those that the reference lets touch.
        low_m: a root that is lower above the ground for `LOW_S` has fallen: a share of the reference's lowest.
    """

    watched: npt.NDArray[np.int64]
    low_m: float

    def first_falls(
        self, engine: Engine, rollouts: Rollouts, frame_s: float, low_before: Flags | None = None
    ) -> tuple[Array, Flags]:
        """When each of P simulations falls or diverges, (P,) seconds, infinite if it does not; and where its root was low at last.

        Args:
            engine: that has simulated.
            rollouts: what came of it.
            frame_s: time between their frames.
            low_before: (P, N) whether the root was low in the frames before, as the piece that ends where these begin returned it.
        """
        machines, frames = rollouts.qpos.shape[:2]
        times = np.asarray((rollouts.first_frame + np.arange(frames)) * frame_s, float)
        clearances = clearances_in(
            engine.environment, engine.character, rollouts.positions, rollouts.orientations, times
        )
        touched = np.any(clearances[..., self.watched] < TOUCH_M, axis=-1)
        lost = ~np.isfinite(rollouts.qpos).all(axis=-1)
        low = root_heights_in(engine.environment, rollouts.qpos[..., :3], times) < self.low_m
        length = max(1, round(LOW_S / frame_s))
        before = np.zeros((machines, length - 1), bool) if low_before is None else low_before
        low = np.concatenate([before, low], axis=1)
        lying = np.lib.stride_tricks.sliding_window_view(low, length, axis=1).all(axis=-1)
        fallen = touched | lost | lying
        first = np.where(fallen.any(axis=1), times[fallen.argmax(axis=1)], np.inf)
        return first, low[:, -length:-1]  # without the last frame, which the next piece records again


def fall_rule(capture: Capture) -> FallRule:
    """The rule for a capture's controller."""
    character, reference = capture.character, capture.reference
    lowest = lowest_points(character, *clip_frames(character, reference)).min(axis=0)
    names = character.segment_names
    watched = [i for i, name in enumerate(names) if name in FALL_SEGMENTS and lowest[i] > REFERENCE_CLEAR_M]
    return FallRule(np.array(watched, dtype=int), LOW_FRACTION * float(reference.root_position[:, 2].min()))
