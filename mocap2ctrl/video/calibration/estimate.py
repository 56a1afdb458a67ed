"""The most likely camera of somebody's masks, from heads, feet and what is usual, and how sure it is.

Where somebody stands upright, the feet's pixel, the camera's height and its tilt say where on the ground that is, and the
person's height says where the head must then be seen (as in Lv, Zhao and Nevatia, *Camera calibration from video of a walking
human*, PAMI 2006, here with priors, so that few and level views suffice). Only ratios to the person's height can be seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult, least_squares

from mocap2ctrl.types import Array, Camera, Masks
from mocap2ctrl.video.calibration.ground_view import GroundView
from mocap2ctrl.video.calibration.heads_and_feet import Stances, of_any_posture, stances

USUAL_HEIGHT_M, USUAL_SPREAD = 1.75, 0.05
"""Of people whose height nobody has said, and the standard deviation of its logarithm."""
GIVEN_SPREAD = 0.01
UPRIGHT, UPRIGHT_SPREAD = 0.985, 0.012
"""A walker's silhouette as a share of the body's height: the head sinks in every step, soles and hair make up for some."""

FOCAL, FOCAL_SPREAD = 0.85, 0.2
"""Focal length as a share of the picture's longer side, and the standard deviation of its logarithm: 61 degrees wide, in two of
three videos 51 to 71. Phones' main lenses are 24 to 28 mm in the 35 mm equivalent by their makers' data sheets, which is 64 to
72 degrees along a 4:3 picture, of which video cuts off some for stabilisation. Older and better cameras show less."""
KNOWN_FOCAL_SPREAD = 0.08
"""Where the file says the lens: video's crop remains unknown."""
LENS_M, LENS_SPREAD = 1.4, 0.28
"""The lens's height above the ground, held at the chest or the eyes, or on a tripod, and its logarithm's standard deviation."""
TILT, TILT_SPREAD = np.radians(4.0), np.radians(7.0)
"""Downwards: people aim at the middle of the body, which is below the lens."""
ROLL_SPREAD = np.radians(1.5)
ASTRIDE, ASTRIDE_DEEP = 0.04, 0.09
"""How much nearer the lowest sole is to the camera than the body's middle, as a share of the height: that of somebody who walks by,
and how much is added for somebody who walks to or from the camera. From rendered walks."""
ASTRIDE_SPREAD = 0.3
LEAN, LEAN_SPREAD = 0.015, 0.02
"""How far the head is before the feet, as a share of the height."""

ANY_POSTURE = 0.2
"""Standard deviation of the height that the area stands for, as a share of it, where nobody is upright."""
WALK_M_S, WALK_SPREAD = 1.2, 0.25
"""Speed of a walk, and the standard deviation of its logarithm: comfortable walks of adults are at 1.3 to 1.5 m/s (Bohannon,
*Comfortable and maximum walking speed of adults aged 20-79 years*, Age and Ageing 1997), in rooms and at turns less."""
WALKS_M_S = (0.6, 2.0)
"""Who is slower or faster by a usual lens stands or runs, and nothing is known of the speed."""
VERTICAL, ASIDE = 0.022, 0.06
"""Standard deviations of a window's head, as shares of the height, ..."""
MASK_PX = 0.7
"""... and of a mask's outline."""
OUTLIER = 3.0
"""Standard deviations from which a window counts less and less (Cauchy)."""
MOVING = 0.3
"""Heights of the body a second: who is slower hardly travels."""
STARTS = tuple((focal, height) for focal in (0.7, 1.1) for height in (1.0, 1.7))
STEP = 1e-4
NAME = "estimated"


@dataclass(frozen=True, eq=False)
class EstimatedCamera:
    """A camera and its standard deviations.

    Attributes:
        camera: of pictures of the masks' size.
        view: the same in few numbers.
        spread: of `view`'s numbers; the focal length's is a share of it.
        distance_m, distance_spread_m: of the person from the lens, along the ground.
        windows: how many windows of `WINDOW_S` with somebody upright it rests on.
        covariance: (4, 4) of the focal length's logarithm, the height's, tilt and roll.
    """

    camera: Camera
    view: GroundView
    spread: GroundView
    distance_m: float
    distance_spread_m: float
    windows: int
    covariance: Array

    @property
    def assumed(self) -> bool:
        """Whether nobody upright was seen, so that little but what is usual speaks."""
        return self.windows == 0


def estimated_camera(
    masks: Masks, fps: float, *, height_m: float | None = None, focal: float | None = None
) -> EstimatedCamera:
    """The camera that saw `masks` (T, H, W), of which one holds a pixel.

    Args:
        masks: of one person.
        fps: frames a second.
        height_m: of the person, if it is known.
        focal: focal length as a share of the picture's longer side, if the file says it.
    """
    size = (masks.shape[2], masks.shape[1])
    return camera_of_stances(stances(masks, fps) or of_any_posture(masks), size, height_m=height_m, focal=focal)


def camera_of_stances(
    seen: Stances, size: tuple[int, int], *, height_m: float | None = None, focal: float | None = None
) -> EstimatedCamera:
    """The camera by which people of one height stand where `seen` says, in pictures of this width and height.

    `height_m` and `focal` as in `estimated_camera`.
    """
    problem = _Problem(seen, size, height_m, focal)
    return problem.result(min((problem.solve(*start) for start in STARTS), key=lambda result: float(result.cost)))


class _Problem:
    """Residuals whose squares' half sum is the negative logarithm of the posterior.

    Parameters: logarithms of the focal length and of the lens's height, tilt and roll, then the stride's and the lean's factor.
    """

    def __init__(self, seen: Stances, size: tuple[int, int], height_m: float | None, focal: float | None) -> None:
        self._seen, self._size = seen, size
        self._vertical = VERTICAL if seen.upright else ANY_POSTURE
        self._height_m = USUAL_HEIGHT_M if height_m is None else height_m
        self._height_spread = USUAL_SPREAD if height_m is None else GIVEN_SPREAD
        self._focal = FOCAL if focal is None else focal
        self._focal_spread = FOCAL_SPREAD if focal is None else KNOWN_FOCAL_SPREAD
        self._centre = 0.5 * (np.array(size) - 1.0)
        deep = np.abs(seen.growth) * self._focal * max(size) / seen.tall_px  # heights a second, away or near
        total = np.hypot(np.hypot(deep, seen.aside), MOVING)
        self._astride = (ASTRIDE + ASTRIDE_DEEP * np.hypot(deep, MOVING / 2) / total) * self._height_m
        self._ahead = LEAN * self._height_m * seen.aside / total
        speed = float(np.median(np.hypot(deep, seen.aside))) * self._height_m
        self._walks = WALKS_M_S[0] <= speed <= WALKS_M_S[1]

    def solve(self, focal: float, height_m: float) -> OptimizeResult:
        """The best answer near a lens and a height, from the tilt that puts the feet where the size says."""
        pixels, seen = focal * max(self._size), self._seen
        away = pixels * UPRIGHT * self._height_m / seen.tall_px
        tilt = np.arctan(height_m / away) - np.arctan((seen.feet[:, 1] - self._centre[1]) / pixels)
        start = np.array([np.log(focal), np.log(height_m), np.median(tilt), 0.0, 1.0, 1.0])
        return least_squares(self._residuals, start, x_scale=[0.2, 0.3, 0.1, 0.03, 0.3, 1.0])

    def _view(self, x: Array) -> GroundView:
        return GroundView(float(np.exp(x[0])), float(np.exp(x[1])), float(x[2]), float(x[3]))

    def _residuals(self, x: Array) -> Array:
        seen = self._seen
        off = self._heads(x) - seen.head
        deviation = np.column_stack([ASIDE * seen.tall_px, self._vertical * seen.tall_px])
        scaled = off / np.hypot(deviation, MASK_PX)
        robust = np.sign(scaled) * OUTLIER * np.sqrt(np.log1p((scaled / OUTLIER) ** 2))
        usual = np.array(
            [
                (x[0] - np.log(self._focal)) / self._focal_spread,
                (x[1] - np.log(LENS_M)) / LENS_SPREAD,
                (x[2] - TILT) / TILT_SPREAD,
                x[3] / ROLL_SPREAD,
                (x[4] - 1.0) / ASTRIDE_SPREAD,
                (x[5] - 1.0) * LEAN / LEAN_SPREAD,
                np.log(self._speed(x) / WALK_M_S) / WALK_SPREAD if self._walks else 0.0,
            ]
        )
        return np.concatenate([robust.ravel(), usual])

    def _heads(self, x: Array) -> Array:
        """(N, 2) pixels where the heads should be. Also for feet above the horizon, so that a search finds its way back."""
        view, seen = self._view(x), self._seen
        turn, pixels = view.axes(), view.focal * max(self._size)
        feet = np.column_stack([(seen.feet - self._centre) / pixels, np.ones(len(seen.feet))]) @ turn
        nearness = -feet[:, 2:] / view.height_m  # of the ground there: 1 / depth
        level = feet * (1.0, 1.0, 0.0)
        away = level / np.linalg.norm(level, axis=1, keepdims=True)
        up = x[4] * self._astride[:, None] * away
        up[:, 0] += x[5] * self._ahead
        up[:, 2] += UPRIGHT * self._height_m
        heads = (feet + nearness * up) @ turn.T
        return np.asarray(heads[:, :2] / np.maximum(heads[:, 2:], STEP) * pixels + self._centre)

    def _ground(self, x: Array) -> Array:
        """(N, 2) where on the ground the person is, metres from below the lens: aside, and away."""
        view, seen = self._view(x), self._seen
        feet = np.column_stack([(seen.feet - self._centre) / (view.focal * max(self._size)), np.ones(len(seen.feet))])
        rays = feet @ view.axes()
        level, depth = np.linalg.norm(rays[:, :2], axis=1), view.height_m / np.maximum(-rays[:, 2], STEP)
        return np.asarray(rays[:, :2] * (depth + x[4] * self._astride / level)[:, None])

    def _distance(self, x: Array) -> float:
        """Metres along the ground to the person, in the middle of the windows."""
        return float(np.median(np.linalg.norm(self._ground(x), axis=1)))

    def _speed(self, x: Array) -> float:
        """Mean speed over the ground, m/s."""
        times = self._seen.times_s
        travelled = np.linalg.norm(np.diff(self._ground(x), axis=0), axis=1).sum()
        return float(travelled / (times[-1] - times[0]))

    def result(self, found: OptimizeResult) -> EstimatedCamera:
        """The camera, and by Laplace's approximation how sure it is."""
        covariance = np.linalg.inv(found.jac.T @ found.jac)
        view, distance = self._view(found.x), self._distance(found.x)
        slope = np.array([self._distance(found.x + STEP * unit) - distance for unit in np.eye(len(found.x))]) / STEP
        size2 = self._height_spread**2 + UPRIGHT_SPREAD**2  # scales all lengths alike
        spread = np.sqrt(np.diag(covariance))
        return EstimatedCamera(
            camera=view.camera(self._size, NAME),
            view=view,
            spread=GroundView(
                float(spread[0]), view.height_m * float(np.hypot(spread[1], size2**0.5)), *map(float, spread[2:4])
            ),
            distance_m=distance,
            distance_spread_m=float(np.sqrt(slope @ covariance @ slope + size2 * distance**2)),
            windows=len(self._seen.head) if self._seen.upright else 0,
            covariance=covariance[:4, :4],
        )
