"""What a track is fitted to, and what the tracker believes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.model import Character
from mocap2ctrl.character.shape import SeenBody, seen_body
from mocap2ctrl.geometry.masks import row_spans, signed_distances
from mocap2ctrl.prior.pca import PosePrior
from mocap2ctrl.track.balance import Masses, masses_of
from mocap2ctrl.track.keypoints import SeenPoints, seen_points
from mocap2ctrl.track.outline import softened
from mocap2ctrl.track.path import Sides, sides_of
from mocap2ctrl.track.pose_gaussian import PoseGaussian, pose_gaussian
from mocap2ctrl.track.tree import Tree, tree_of
from mocap2ctrl.types import Array, Silhouettes

FEET = ("foot", "toes")

FAR, MIDDLE, NEAR = SOFTNESS_M = (0.08, 0.05, 0.025)
"""How soft outlines are in the levels of a descent, metres."""

SMALLEST_PX = 0.7


def softness_px(tau_m: float, pixels_per_m: float) -> float:
    """A softness in pixels; never sharper than the pixels are."""
    return max(tau_m * pixels_per_m, SMALLEST_PX)


@dataclass(frozen=True)
class TrackWeights:
    """What the tracker believes; standard deviations.

    Attributes:
        outline_m: how far silhouettes and the body's outline are apart, metres.
        outline_length_m: along the outline, over which that error is one and the same, metres.
        root_acceleration: m/s^2.
        root_turn_acceleration: rad/s^2.
        joint_acceleration: rad/s^2.
        prior: factor on the pose prior's energy; neighbouring frames are not independent evidence.
        limit: beyond joint limits, radians.
        sinking_m: of a foot into the ground.
        contact_height_m: of a foot's lowest point that may be standing, metres.
        contact_speed: of a standing foot's lowest point, m/s.
        girth, length, build: of the body's factors, around 1.
        floating_m: of the lowest sole of who does not fly, metres.
        travel_speed: of the root around its average over two steps, m/s.
        facing_speed: sideways or backwards, m/s.
        symmetry: between the angles of left and right arm, while the legs do the same, radians.
        alike: between the angles of legs that do the same, radians.
        slip_speed: how fast a foot must be to be certainly not standing, m/s.
        balance_m: of the centre of mass from above the line between the feet, metres.
        balance_reach: standard deviations beyond which who stands is rather in the middle of a movement.
        keypoints: factor on the energy of keypoints, whose standard deviations are the landmarks' own.
        keypoints_reach: standard deviations beyond which a keypoint is rather a mistake.
    """

    outline_m: float = 0.04
    outline_length_m: float = 0.1
    root_acceleration: float = 3.0
    root_turn_acceleration: float = 40.0
    joint_acceleration: float = 80.0
    prior: float = 0.6
    limit: float = 0.05
    sinking_m: float = 0.01
    contact_height_m: float = 0.03
    contact_speed: float = 0.15
    slip_speed: float = 1.0
    floating_m: float = 0.03
    travel_speed: float = 0.1
    facing_speed: float = 0.3
    symmetry: float = 0.4
    alike: float = 0.15
    girth: float = 0.2
    length: float = 0.03
    build: float = 0.1
    balance_m: float = 0.1
    balance_reach: float = 3.0
    keypoints: float = 1.5
    keypoints_reach: float = 2.0


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a track is fitted to.

    Attributes:
        tree, view: body and camera.
        fps: frames a second.
        soft: by softness in metres, the softened silhouettes (T, H, W).
        seen: (T,) whether a frame has a silhouette.
        carried: (T, 3) how far the ground has moved by the camera since the first frame, metres.
        pixels_per_m: of the person.
        prior: over poses.
        sides: of the body.
        soles: segments (N,), points (N, 3) and radii (N,) of the soles.
        masses: of the body, and where its feet are.
        weights: how much each counts.
        keypoints: points of the body that were seen; None without.
    """

    tree: Tree
    view: SeenBody
    fps: float
    soft: dict[float, Array]
    seen: npt.NDArray[np.bool_]
    carried: Array
    pixels_per_m: float
    prior: PoseGaussian
    sides: Sides
    soles: tuple[npt.NDArray[np.int64], Array, Array]
    masses: Masses
    weights: TrackWeights = field(default_factory=TrackWeights)
    keypoints: SeenPoints | None = None

    @property
    def shifts(self) -> Array:
        """(T, 3) translation from the world, whose ground rests, to the camera in each frame."""
        return np.asarray(self.view.shift + self.carried @ self.view.turn.T)

    def reversed(self) -> Evidence:
        """The same backwards in time."""
        soft = {tau_m: np.ascontiguousarray(masks[::-1]) for tau_m, masks in self.soft.items()}
        seen, carried = np.ascontiguousarray(self.seen[::-1]), np.ascontiguousarray(self.carried[::-1])
        points = None if self.keypoints is None else self.keypoints.reversed()
        return replace(self, soft=soft, seen=seen, carried=carried, keypoints=points)

    def window(self, begin: int, end: int) -> Evidence:
        """The same for frames `begin` up to `end`."""
        soft = {tau_m: masks[begin:end] for tau_m, masks in self.soft.items()}
        points = None if self.keypoints is None else self.keypoints.window(begin, end)
        return replace(self, soft=soft, seen=self.seen[begin:end], carried=self.carried[begin:end], keypoints=points)

    def outline_factor(self, tau_px: float) -> float:
        """What squared differences of soft masks are multiplied by to be an energy.

        An outline that is off by d makes half a sum of squares of d^2 / (12 tau) for each pixel of its length.
        """
        w = self.weights
        return 6.0 * tau_px / (w.outline_m**2 * w.outline_length_m * self.pixels_per_m**3)


def evidence_of(
    silhouettes: Silhouettes, character: Character, prior: PosePrior, weights: TrackWeights | None = None
) -> Evidence:
    """Sets up the energy of `silhouettes` for `character` under `prior`."""
    seen = np.asarray(silhouettes.masks.any(axis=(1, 2)))
    scale = float(np.median(np.diff(row_spans(silhouettes.masks), axis=1))) / character.height_m
    distances = signed_distances(silhouettes.masks)
    view = seen_body(character, silhouettes.camera)
    return Evidence(
        tree=tree_of(character),
        view=view,
        fps=silhouettes.fps,
        soft={tau_m: softened(distances, softness_px(tau_m, scale)) for tau_m in SOFTNESS_M},
        seen=seen,
        carried=silhouettes.carried(silhouettes.times_s),
        pixels_per_m=scale,
        prior=pose_gaussian(prior),
        sides=sides_of(character),
        soles=_soles(character),
        masses=masses_of(character),
        weights=weights or TrackWeights(),
        keypoints=seen_points(silhouettes.keypoints, character, view, scale, silhouettes.fps),
    )


def _soles(character: Character) -> tuple[npt.NDArray[np.int64], Array, Array]:
    segment, local, radius = [], [], []
    for index, part in enumerate(character.segments):
        if part.name.endswith(FEET):
            for capsule in part.capsules:
                segment += [index, index]
                local += [capsule.start, capsule.end]
                radius += [capsule.radius, capsule.radius]
    return np.array(segment), np.array(local), np.array(radius)
