"""The cost terms of Eq. (8), each a function of rollouts and target; `Objective` weighs and adds them.

Units. Markers are judged by mean squared distances in cm^2, so their root is a distance in cm; silhouettes by the mean of
Eq. (9), 0 to 2; keypoints, of which some are wrong by much, by mean distances in cm. The paper sums over frames and markers
instead; with a fixed window this is the same up to a constant factor, which the weights hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import marker_layout
from mocap2ctrl.character.model import Character
from mocap2ctrl.control.closed_loop import Rollouts
from mocap2ctrl.objective.flight import point_masses, spin
from mocap2ctrl.objective.keypoints import Rays, ray_distances, rays_of
from mocap2ctrl.objective.markers import mean_squared_distances, points_of
from mocap2ctrl.objective.silhouettes import View, silhouette_distances, view_of
from mocap2ctrl.objective.target import MarkerTarget, SilhouetteTarget
from mocap2ctrl.simulation.engine import load_threshold_n
from mocap2ctrl.types import Array

DIVERGED_CM2 = 1e4
"""Cost of a frame that a diverged simulation never reached: markers one metre off. Larger distances are cut there too."""

HORIZON_S = 0.3
"""How far ahead a velocity error is looked at: about half a step of walking."""


@dataclass(frozen=True)
class Weights:
    """The factors lambda of Eq. (8).

    Attributes:
        markers: of the reference's markers, per cm^2; for a video the reference is the track.
        velocity: of the centre of mass's velocity, and in flight of the spin, as the distance that their errors grow to in
            `HORIZON_S`, per cm^2.
        stability: of the pose held past the end, per cm^2.
        prior: of parameters outside their ranges, per spread.
        contact: of each contact change beyond the first between two state changes.
        silhouette: of Eq. (9); without silhouettes it has nothing to weigh.
        keypoints: of the distance of points of the body from where they were seen, per cm; without any it has nothing to weigh.
    """

    markers: float = 1.0
    velocity: float = 1.0
    stability: float = 0.5
    prior: float = 1.0
    contact: float = 0.2
    silhouette: float = 0.0
    keypoints: float = 0.0


@dataclass(frozen=True, eq=False)
class TermValue:
    """One term of a population.

    Attributes:
        name, unit: for logs and plots.
        weight: lambda.
        value: (P,) unweighted.
        per_frame: (P, F) detail over the window, or (P, 0); NaN for frames without evidence.
    """

    name: str
    unit: str
    weight: float
    value: Array
    per_frame: Array


@dataclass(frozen=True, eq=False)
class Objective:
    """Eq. (8), for motion capture and, with silhouettes, for video.

    Attributes:
        character: whose markers and whose shape.
        target: the reference's markers.
        weights: lambda.
        silhouettes: what a camera saw, frame by frame with `target`; None for motion capture.
    """

    character: Character
    target: MarkerTarget
    weights: Weights = field(default_factory=Weights)
    silhouettes: SilhouetteTarget | None = None

    @cached_property
    def view(self) -> View | None:
        """The silhouettes as compiled code takes them."""
        return None if self.silhouettes is None else view_of(self.character, self.silhouettes)

    @cached_property
    def rays(self) -> Rays | None:
        """The keypoints as directions from the camera; None without."""
        seen = self.silhouettes
        if seen is None or seen.keypoints is None:
            return None
        frames = np.minimum(np.arange(len(seen.keypoints)), len(self.target) - 1)
        return rays_of(self.character, seen.camera, seen.keypoints, self.target.com[frames], seen.carried)

    @cached_property
    def _markers(self) -> tuple[npt.NDArray[np.int64], Array]:
        """Segments and places of the character's markers."""
        return marker_layout(self.character)

    @cached_property
    def _masses(self) -> tuple[npt.NDArray[np.int64], Array, Array]:
        """Segments, places and masses (kg) that make the centre of mass."""
        segments = self.character.segments
        return np.arange(len(segments)), np.array([s.com for s in segments]), np.array([s.mass for s in segments])

    @cached_property
    def _load_threshold_n(self) -> float:
        return load_threshold_n(self.character)

    def terms(self, rollouts: Rollouts, penalty: Array, first_frame: int, end_frame: int) -> tuple[TermValue, ...]:
        """All terms over the frames `first_frame` to `end_frame`, both included.

        Args:
            rollouts: recorded at the target's frame rate; frames past the target's end count for stability.
            penalty: (P,) of `ParameterSpec.penalty`.
            first_frame, end_frame: the window, in the target's frames.
        """
        evidence = max(min(end_frame + 1, len(self.target)) - first_frame, 0)
        squared = self.marker_distances(rollouts, first_frame, end_frame)
        masks = self.mask_distances(rollouts, first_frame, end_frame)
        points = self.keypoint_distances(rollouts, first_frame, first_frame + evidence)
        drift = self.predicted_drift(rollouts, first_frame, min(end_frame, len(self.target) - 1))
        beyond = self._held(squared[:, evidence:], masks[:, evidence:])
        squared, masks = squared[:, :evidence], masks[:, :evidence]
        empty = np.empty((len(squared), 0))
        w = self.weights
        return (
            TermValue("markers", "cm^2", w.markers, _mean_over_frames(squared), squared),
            TermValue("velocity", "cm^2", w.velocity, drift.mean(axis=1), drift),
            TermValue(
                "stability", "cm^2" if self.view is None else "1", w.stability, _mean_over_frames(beyond), beyond
            ),
            TermValue("prior", "spreads", w.prior, penalty, empty),
            TermValue("contact", "changes", w.contact, self.extra_contact_changes(rollouts), empty),
            TermValue("silhouette", "1", w.silhouette, _mean_over_evidence(masks), masks),
            TermValue("keypoints", "cm", w.keypoints, _mean_over_evidence(points), points),
        )

    def _held(self, squared: Array, masks: Array) -> Array:
        """(P, F) Eq. (11): for motion capture the markers' distances; for video Eq. (9), and markers, by their own weights."""
        if self.view is None:
            return squared
        return self.weights.silhouette * np.nan_to_num(masks) + self.weights.markers * squared

    def mask_distances(self, rollouts: Rollouts, first_frame: int, end_frame: int) -> Array:
        """(P, F) Eq. (9) of each frame of the window, NaN without evidence; (P, 0) without silhouettes.

        Past the evidence's end the last silhouette is what is compared with (Eq. 11).
        """
        if self.view is None or self.silhouettes is None:
            return np.empty((len(rollouts.positions), 0))
        rows = slice(first_frame - rollouts.first_frame, end_frame - rollouts.first_frame + 1)
        frames = np.arange(first_frame, end_frame + 1)
        frames = np.where(frames < len(self.silhouettes), frames, self.silhouettes.last_seen)
        return silhouette_distances(self.view, rollouts.positions[:, rows], rollouts.orientations[:, rows], frames)

    def keypoint_distances(self, rollouts: Rollouts, first_frame: int, stop_frame: int) -> Array:
        """(P, F) mean distance in cm from the keypoints of each frame before `stop_frame`, NaN without; (P, 0) without any."""
        if self.rays is None:
            return np.empty((len(rollouts.positions), 0))
        rows = slice(first_frame - rollouts.first_frame, stop_frame - rollouts.first_frame)
        frames = np.minimum(np.arange(first_frame, stop_frame), len(self.rays.shares) - 1)
        return ray_distances(self.rays, rollouts.positions[:, rows], rollouts.orientations[:, rows], frames)

    def marker_distances(self, rollouts: Rollouts, first_frame: int, end_frame: int) -> Array:
        """(P, F) mean squared marker distance of each frame of the window, cm^2 (Eq. 10, 11).

        Past the target's end the last frame is the reference.
        """
        squared = 1e4 * mean_squared_distances(*self._markers_and_target(rollouts, first_frame, end_frame))
        return np.minimum(np.where(np.isfinite(squared), squared, DIVERGED_CM2), DIVERGED_CM2)

    def marker_errors(self, rollouts: Rollouts, first_frame: int, end_frame: int) -> Array:
        """(P, F, N, 3) metres from the target's markers to the simulated ones, in the frames of `marker_distances`."""
        markers, target = self._markers_and_target(rollouts, first_frame, end_frame)
        return np.asarray(markers - target)

    def _markers_and_target(self, rollouts: Rollouts, first_frame: int, end_frame: int) -> tuple[Array, Array]:
        """(P, F, N, 3) and (F, N, 3) world positions, metres."""
        rows = slice(first_frame - rollouts.first_frame, end_frame - rollouts.first_frame + 1)
        frames = np.minimum(np.arange(first_frame, end_frame + 1), len(self.target) - 1)
        markers = points_of(rollouts.positions[:, rows], rollouts.orientations[:, rows], *self._markers)
        return markers, self.target.markers[frames]

    def predicted_drift(self, rollouts: Rollouts, first_frame: int, last_frame: int) -> Array:
        """(P, F) squared distance in cm^2 that the velocity error of the centre of mass makes in `HORIZON_S`.

        Ours, not the paper's: a window that ends in the right pose with the wrong momentum is a bad place to freeze a state,
        and only the next windows would tell. Velocities are differences between neighbouring frames.
        """
        squared = 1e4 * np.sum(self.drift_errors(rollouts, first_frame, last_frame) ** 2, axis=-1)
        return np.minimum(np.where(np.isfinite(squared), squared, DIVERGED_CM2), DIVERGED_CM2)

    def drift_errors(self, rollouts: Rollouts, first_frame: int, last_frame: int) -> Array:
        """(P, F, 3) metres that the velocity error of the centre of mass makes in `HORIZON_S`.

        (P, F, 6) with that of the spin, where the reference flies: both are what the whole flight asks for.
        """
        if last_frame <= first_frame:
            return np.zeros((len(rollouts.positions), 1, 3))
        rows = slice(first_frame - rollouts.first_frame, last_frame - rollouts.first_frame + 1)
        segments, places, masses = self._masses
        coms = points_of(rollouts.positions[:, rows], rollouts.orientations[:, rows], segments, places)
        com = np.einsum("...sk,s->...k", coms, masses) / masses.sum()
        error = np.diff(com - self.target.com[first_frame : last_frame + 1], axis=1) * self.target.fps
        if self.target.momentum is not None and self.flies(first_frame, last_frame):
            body, asked = point_masses(self.character), self.target.momentum.between(first_frame, last_frame)
            points = points_of(rollouts.positions[:, rows], rollouts.orientations[:, rows], body.segment, body.local)
            turning = np.where(asked.flying[:, None], spin(points, body, self.target.fps) - asked.spin, 0.0)
            error = np.concatenate([error - asked.velocity, turning], axis=-1)
        return np.asarray(HORIZON_S * error)

    def flies(self, first_frame: int, last_frame: int) -> bool:
        """Whether the reference flies between two of its frames; a video's track is not sure enough of heights to tell."""
        asked = self.target.momentum
        return asked is not None and self.view is None and bool(asked.flying[first_frame:last_frame].any())

    def extra_contact_changes(self, rollouts: Rollouts) -> Array:
        """(P,) contact changes of the feet beyond one between consecutive state changes (E_contact of §5).

        The paper charges 10,000 for each interval with more than one; counting the excess gives a search something to descend.
        """
        loaded = rollouts.load > self._load_threshold_n
        if rollouts.first_frame == 0:  # no step has told yet whether the feet stand
            loaded[:, :1] = loaded[:, 1:2]
        changed = np.any(loaded[:, 1:] != loaded[:, :-1], axis=2)
        # Numbers of the intervals between state changes: a cycle comes to each of its states again and again.
        interval = np.cumsum(np.diff(rollouts.state, axis=1) != 0, axis=1)
        total = np.zeros(len(loaded))
        for number in range(int(interval.max(initial=0)) + 1):
            within = changed & (interval == number)
            total += np.maximum(within.sum(axis=1) - 1, 0)
        return total


def _mean_over_frames(squared: Array) -> Array:
    """(P,) means of (P, F); 0 where the window has no such frames."""
    return np.asarray(squared.mean(axis=1)) if squared.shape[1] else np.zeros(len(squared))


def _mean_over_evidence(distances: Array) -> Array:
    """(P,) means of (P, F) over the frames that are not NaN, which are the same for all; 0 where there is none."""
    seen = ~np.isnan(distances).all(axis=0)
    return _mean_over_frames(distances[:, seen])


def total(terms: tuple[TermValue, ...]) -> Array:
    """(P,) the weighted sum E of Eq. (8), term by term, so that one of value 0 changes no bit."""
    values = np.zeros(len(terms[0].value))
    for term in terms:
        values = values + term.weight * term.value
    return np.asarray(values)
