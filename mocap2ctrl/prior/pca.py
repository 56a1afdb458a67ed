"""The pose priors themselves: principal components of poses, and the identity for when there should be none.

Vondrak 2012, Eq. 7: a pose is `mean + basis c`, angles are read off by atan2, and coefficients c stay within 4 sigma.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mocap2ctrl.character.kinematics import evaluation_points, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.errors import PriorError
from mocap2ctrl.geometry import rotations
from mocap2ctrl.motion.clips import mirror, resample
from mocap2ctrl.prior.features import ROOT_ANGLES, from_features, pose_angles, to_features
from mocap2ctrl.types import Array, MotionClip, frozen_array

TRAINING_FPS = 30.0
"""Clips are brought to one rate, so that each second of motion counts the same."""

BOUND_SIGMAS = 4.0
"""How far from the mean coefficients may go, in standard deviations (Vondrak §4.1.2)."""

SMALLEST_SIGMA = 1e-6

EXEMPLARS = 160
"""Poses of the training data that a prior keeps, as places where a search may begin."""


class Prior(Protocol):
    """Coordinates for target poses.

    `size` coefficients stand for the root's rotation vector in its heading frame (3,) and the hinge angles (J,), in
    radians; `sigma` (size,) is the spread that each has in the data, `centre` (size,) where it lies on average.
    """

    def __hash__(self) -> int:
        """Priors are values that stay as they are."""

    @property
    def name(self) -> str:
        """What reports call it."""

    @property
    def size(self) -> int:
        """Number of coefficients."""

    @property
    def sigma(self) -> Array:
        """(size,) standard deviations."""

    @property
    def centre(self) -> Array:
        """(size,) means."""

    def encode(self, root_rotation_vector: npt.ArrayLike, angles: npt.ArrayLike) -> Array:
        """Coefficients (..., size) of root rotation vectors (..., 3) and angles (..., J)."""

    def decode(self, coefficients: npt.ArrayLike) -> tuple[Array, Array]:
        """Root rotation vectors (..., 3) and angles (..., J) of coefficients (..., size)."""


@dataclass(frozen=True, eq=False)
class PosePrior:
    """Principal components of poses.

    Attributes:
        name: for reports; `walk`, `all-but-walk`, …
        basis: (F, K) orthonormal columns, F = 2 (3 + J) features.
        mean: (F,) mean features.
        sigma: (K,) standard deviation of each coefficient in the training data.
        explained: (K,) share of the variance that each component explains.
        angle_centre: (3 + J,) middle of each angle's range, radians; decoded angles lie within half a turn of it.
        hinge_names: J names, in order.
        exemplars: (E, 3 + J) angles of poses from the training data that differ as much as possible, radians.
        provenance: the clips inside, the character, the command; plain JSON values.
    """

    name: str
    basis: Array
    mean: Array
    sigma: Array
    explained: Array
    angle_centre: Array
    hinge_names: tuple[str, ...]
    exemplars: Array
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        angles = ROOT_ANGLES + len(self.hinge_names)
        shapes = {
            "basis": (2 * angles, None),
            "mean": (2 * angles,),
            "angle_centre": (angles,),
            "exemplars": (None, angles),
        }
        for name, shape in shapes.items():
            object.__setattr__(self, name, frozen_array(getattr(self, name), shape, name))
        for name in ("sigma", "explained"):
            object.__setattr__(self, name, frozen_array(getattr(self, name), (self.size,), name))

    @property
    def size(self) -> int:
        """Number K of coefficients."""
        return int(self.basis.shape[1])

    @property
    def centre(self) -> Array:
        """(K,) zeros: the mean pose."""
        return np.zeros(self.size)

    def encode(self, root_rotation_vector: npt.ArrayLike, angles: npt.ArrayLike) -> Array:
        """Coefficients (..., K) of root rotation vectors (..., 3) and angles (..., J): the nearest in the subspace."""
        both = np.concatenate([np.asarray(root_rotation_vector, float), np.asarray(angles, float)], axis=-1)
        return np.asarray((to_features(both) - self.mean) @ self.basis)

    def decode(self, coefficients: npt.ArrayLike) -> tuple[Array, Array]:
        """Root rotation vectors (..., 3) and angles (..., J) of coefficients (..., K), by atan2."""
        features = self.mean + np.asarray(coefficients, float) @ self.basis.T
        both = from_features(features, self.angle_centre)
        return both[..., :ROOT_ANGLES], both[..., ROOT_ANGLES:]

    def truncated(self, variance: float) -> PosePrior:
        """The prior with only as many components as explain the share `variance` of what it explains in all."""
        keep = components_for(self.explained / np.sum(self.explained), variance)
        return PosePrior(
            name=self.name,
            basis=self.basis[:, :keep],
            mean=self.mean,
            sigma=self.sigma[:keep],
            explained=self.explained[:keep],
            angle_centre=self.angle_centre,
            hinge_names=self.hinge_names,
            exemplars=self.exemplars,
            provenance={**self.provenance, "variance": float(np.sum(self.explained[:keep]))},
        )


@dataclass(frozen=True, eq=False)
class IdentityPrior:
    """No prior: the coefficients are the root's 3 angles and the J hinge angles themselves, in radians.

    Attributes:
        hinge_count: J.
        sigma: (3 + J,) spread that an optimiser should start from, radians.
        name: for reports.
    """

    hinge_count: int
    sigma: Array
    name: str = "identity"

    def __post_init__(self) -> None:
        spread = np.broadcast_to(np.asarray(self.sigma, float), (ROOT_ANGLES + self.hinge_count,))
        object.__setattr__(self, "sigma", frozen_array(spread, (None,), "sigma"))

    @property
    def size(self) -> int:
        """Number of coefficients, 3 + J."""
        return ROOT_ANGLES + self.hinge_count

    @property
    def centre(self) -> Array:
        """(3 + J,) zeros: upright, in the zero pose."""
        return np.zeros(self.size)

    def encode(self, root_rotation_vector: npt.ArrayLike, angles: npt.ArrayLike) -> Array:
        """The angles (..., 3 + J), root first."""
        return np.concatenate([np.asarray(root_rotation_vector, float), np.asarray(angles, float)], axis=-1)

    def decode(self, coefficients: npt.ArrayLike) -> tuple[Array, Array]:
        """Root rotation vectors (..., 3) and angles (..., J)."""
        both = np.asarray(coefficients, float)
        return both[..., :ROOT_ANGLES], both[..., ROOT_ANGLES:]


def train(
    clips: Sequence[MotionClip],
    character: Character,
    *,
    name: str,
    variance: float = 0.95,
    size: int | None = None,
    mirrored: bool = True,
    provenance: Mapping[str, Any] | None = None,
) -> PosePrior:
    """Principal components of the poses of `clips`.

    Args:
        clips: motions of `character`, at any rate.
        character: whose poses they are.
        name: of the prior.
        variance: share of the variance to keep, in (0, 1].
        size: number of components to keep instead.
        mirrored: learn from each clip's mirror image too.
        provenance: what else to record.

    Raises:
        PriorError: no clips, a share outside (0, 1], or more components than there can be.
    """
    if not clips:
        raise PriorError(f"prior {name!r}: no clips to train from; give at least one motion")
    if not 0.0 < variance <= 1.0:
        raise PriorError(f"prior {name!r}: variance is {variance}; allowed is more than 0, at most 1")
    even = [resample(clip, TRAINING_FPS) for clip in clips]
    even += [mirror(clip, character) for clip in even] if mirrored else []
    poses = np.concatenate([pose_angles(clip) for clip in even])
    features = to_features(poses)
    mean = features.mean(axis=0)
    _, singular, components = np.linalg.svd(features - mean, full_matrices=False)
    share = singular**2 / max(float(np.sum(singular**2)), 1e-30)
    keep = components_for(share, variance) if size is None else size
    if not 1 <= keep <= len(singular):
        raise PriorError(f"prior {name!r}: {keep} components; these clips allow 1 to {len(singular)}")
    lower, upper = character.lower_limits, character.upper_limits
    return PosePrior(
        name=name,
        basis=components[:keep].T,
        mean=mean,
        sigma=np.maximum(singular[:keep] / np.sqrt(len(features)), SMALLEST_SIGMA),
        explained=share[:keep],
        angle_centre=np.concatenate([np.zeros(ROOT_ANGLES), 0.5 * (lower + upper)]),
        hinge_names=character.hinge_names,
        exemplars=poses[spread_out(poses, character, EXEMPLARS)],
        provenance={
            "clips": [_clip_provenance(clip) for clip in clips],
            "mirrored": mirrored,
            "character": character.name,
            "variance": float(np.sum(share[:keep])),
            "poses": len(features),
            **(provenance or {}),
        },
    )


def spread_out(poses: Array, character: Character, count: int) -> npt.NDArray[np.int64]:
    """Indices of up to `count` of the poses (N, 3 + J), each as far as can be from those before it, by its joints' places."""
    orientations = rotations.from_rotation_vector(poses[:, :ROOT_ANGLES])
    frames = segment_frames(character, np.zeros((len(poses), 3)), orientations, poses[:, ROOT_ANGLES:])
    points = evaluation_points(character, *frames)
    chosen, distance = [0], np.linalg.norm(points - points[0], axis=-1).mean(axis=1)
    while len(chosen) < min(count, len(poses)):
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, np.linalg.norm(points - points[chosen[-1]], axis=-1).mean(axis=1))
    return np.array(chosen)


def components_for(share: Array, variance: float) -> int:
    """The least number of components whose shares of the variance add up to `variance`."""
    return min(int(np.searchsorted(np.cumsum(share), variance - 1e-12)) + 1, len(share))


def _clip_provenance(clip: MotionClip) -> dict[str, Any]:
    known = {key: clip.provenance[key] for key in ("file", "sha256") if key in clip.provenance}
    return {"name": clip.name, "seconds": round(clip.duration_s, 4), **known}
