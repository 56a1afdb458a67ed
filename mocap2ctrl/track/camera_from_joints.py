"""A camera, and a person's poses, from joints that somebody has pointed at: Vondrak 2012, section 6, "Experiments".

The paper solves "for calibration using an annotation of joint locations in the first frame, assuming a fixed skeleton". Here the
skeleton's pose is solved for too, under the pose prior, and the camera under what is usual for cameras; places of known
position in the world may help. One frame or several.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt
from scipy.optimize import OptimizeResult, least_squares

from mocap2ctrl.character.kinematics import evaluation_points, lowest_points, segment_frames
from mocap2ctrl.character.model import Character
from mocap2ctrl.geometry import rotations
from mocap2ctrl.geometry.camera import project
from mocap2ctrl.prior.pca import PosePrior
from mocap2ctrl.types import Array, Camera
from mocap2ctrl.video.calibration.estimate import (
    FOCAL,
    FOCAL_SPREAD,
    GIVEN_SPREAD,
    KNOWN_FOCAL_SPREAD,
    LENS_M,
    LENS_SPREAD,
    TILT,
    TILT_SPREAD,
    USUAL_SPREAD,
)
from mocap2ctrl.video.calibration.ground_view import GroundView
from mocap2ctrl.video.calibration.points_file import SeenPoints

VARIANCE = 0.85
"""Share of the prior's variance in which poses are looked for: a few joints tell no finer ones apart."""
JOINT_M = 0.03
"""Standard deviation of a joint: of the hand that points at it, and of proportions that are not the character's."""
PLACE_PX = 1.5
GROUND_M = 0.02
"""Of the lowest point of the body, which stands on the ground."""
ROLL_SPREAD = np.radians(3.0)
OUTLIER = 3.0
"""Standard deviations from which a joint counts less and less (Cauchy)."""
HEADINGS, CANDIDATES = 16, 3
TILTS = (0.0, 0.2)
FOCALS = (0.65, 0.85, 1.2)
ROUGH, FINE = 8, 100
STEP = 1e-5
CAMERA, PLACE = 4, 4
"""Numbers of the view; of a person's place and heading."""

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PointedCamera:
    """A camera that explains points.

    Attributes:
        camera: of the video's size, in the world of the known places, else over the world's origin.
        view: the same in few numbers.
        spread: their standard deviations by Laplace's approximation; the focal length's is a share of it.
        joint_errors: (F, E) pixels from each joint to where the camera sees the body's; NaN where none was given.
        place_errors: (M,) pixels of the known places.
        tall_px: (F,) about how tall the person is in each frame.
    """

    camera: Camera
    view: GroundView
    spread: GroundView
    joint_errors: Array
    place_errors: Array
    tall_px: Array


def camera_from_joints(
    points: SeenPoints,
    size: tuple[int, int],
    character: Character,
    prior: PosePrior,
    *,
    focal: float | None = None,
    height_known: bool = False,
) -> PointedCamera:
    """The most likely camera.

    Args:
        points: pixels of joints, of known places, or of both.
        size: width and height of the video.
        character: as tall as the person.
        prior: over poses.
        focal: focal length as a share of the picture's longer side, if the file says it.
        height_known: whether the character's height is the person's, or only the usual one.
    """
    problem = _Problem(points, size, character, prior.truncated(VARIANCE), focal)
    rough = [problem.solve(start, ROUGH) for start in problem.starts()]
    best = min(rough, key=lambda result: float(result.cost))
    return problem.result(problem.solve(best.x, FINE), GIVEN_SPREAD if height_known else USUAL_SPREAD)


class _Problem:
    """Residuals whose squares' half sum is the negative logarithm of the posterior.

    Parameters: logarithms of focal length and height, tilt, roll; with known places also the camera's turn and place; then,
    frame by frame, the root's place and heading, and the prior's coefficients in standard deviations.
    """

    def __init__(
        self, points: SeenPoints, size: tuple[int, int], character: Character, prior: PosePrior, focal: float | None
    ) -> None:
        self._points, self._size, self._character, self._prior = points, size, character, prior
        self._focal = FOCAL if focal is None else focal
        self._focal_spread = FOCAL_SPREAD if focal is None else KNOWN_FOCAL_SPREAD
        self._given = np.isfinite(points.joints[..., 0])
        self._head = CAMERA + (3 if len(points.world) else 0)
        self._each = PLACE + prior.size
        self._scale = np.ones(len(points.joints))
        self._frames = np.arange(len(points.joints))
        self._crowd = self._candidates()
        self._crowd_body = self._body(self._crowd)

    def _split(self, x: Array) -> tuple[Array, Array]:
        return x[: self._head], x[self._head :].reshape(len(self._points.joints), self._each)

    def camera(self, x: Array) -> Camera:
        """The camera of the parameters' first numbers."""
        seen = _view(x).camera(self._size, "calibrated")
        if self._head == CAMERA:
            return seen
        turn = _view(x).axes() @ rotations.to_matrix(rotations.yaw(-x[4]))
        centre = np.array([x[5], x[6], np.exp(x[1])])
        vector = rotations.to_rotation_vector(rotations.from_matrix(turn))
        return Camera(seen.name, seen.size, seen.matrix, vector, -turn @ centre)

    def _body(self, people: Array) -> tuple[Array, Array]:
        """World joints (F, E, 3) and lowest points (F,) of (F, PLACE + K) numbers."""
        tilts, angles = self._prior.decode(people[:, PLACE:] * self._prior.sigma)
        turns = rotations.multiply(rotations.yaw(people[:, 3]), rotations.from_rotation_vector(tilts))
        frames = segment_frames(self._character, people[:, :3], turns, angles)
        return evaluation_points(self._character, *frames), np.min(lowest_points(self._character, *frames), axis=1)

    def _of_people(self, camera: Camera, people: Array, frames: Indices) -> Array:
        """(N, R) residuals of people (N, PLACE + K), each against the joints of one of the frames (N,)."""
        joints, lowest = self._body(people)
        given, scale = self._given[frames][..., None], self._scale[frames][:, None, None]
        off = np.nan_to_num(project(camera, joints), nan=1e6) - np.nan_to_num(self._points.joints[frames])
        off = np.where(given, off, 0.0) / (JOINT_M * scale)
        robust = np.sign(off) * OUTLIER * np.sqrt(np.log1p((off / OUTLIER) ** 2))
        return np.concatenate(
            [robust.reshape(len(people), 2 * given.shape[1]), lowest[:, None] / GROUND_M, people[:, PLACE:]], axis=1
        )

    def _of_camera(self, camera: Camera, x: Array) -> Array:
        """Residuals of what is usual, and of the known places."""
        usual = [
            (x[0] - np.log(self._focal)) / self._focal_spread,
            (x[1] - np.log(LENS_M)) / LENS_SPREAD,
            (x[2] - TILT) / TILT_SPREAD,
            x[3] / ROLL_SPREAD,
        ]
        off = (np.nan_to_num(project(camera, self._points.world), nan=1e6) - self._points.pixels) / PLACE_PX
        return np.concatenate([usual, off.ravel()])

    def _residuals(self, x: Array) -> Array:
        camera, (head, people) = self.camera(x), self._split(x)
        return np.concatenate([self._of_camera(camera, head), self._of_people(camera, people, self._frames).ravel()])

    def _jacobian(self, x: Array) -> Array:
        """Forward differences; a person's numbers change one frame alone, and all people are seen at once."""
        here = self._residuals(x)
        result = np.zeros((len(here), len(x)))
        for column in range(self._head):
            result[:, column] = (self._residuals(x + STEP * np.eye(len(x))[column]) - here) / STEP
        (_, people), count = self._split(x), len(self._frames)
        changed = (people + STEP * np.eye(self._each)[:, None]).reshape(-1, self._each)
        moved = self._of_people(self.camera(x), changed, np.tile(self._frames, self._each))
        first, size = len(here) - moved.shape[1] * count, moved.shape[1]
        slope = (moved.reshape(self._each, count, size) - here[first:].reshape(count, size)) / STEP
        for f in range(count):
            rows, columns = first + f * size, self._head + f * self._each
            result[rows : rows + size, columns : columns + self._each] = slope[:, f].T
        return result

    def solve(self, start: Array, evaluations: int) -> OptimizeResult:
        """Levenberg and Marquardt's answer near `start`."""
        return least_squares(
            self._residuals, start, self._jacobian, x_scale=self._steps(), max_nfev=evaluations, ftol=1e-7
        )

    def _steps(self) -> Array:
        """(N,) how far each parameter may be from where it starts, about."""
        head = [0.2, 0.3, 0.1, 0.05, 0.3, 1.0, 1.0][: self._head]
        return np.array([*head, *([0.5, 0.5, 0.1, 0.3, *([1.0] * self._prior.size)] * len(self._scale))])

    def starts(self) -> list[Array]:
        """Where searches begin: poses of the prior that look like the joints, before cameras of several tilts."""
        if len(self._points.world):
            heads = [self._resection(focal) for focal in FOCALS]
        else:
            heads = [np.array([np.log(self._focal), np.log(LENS_M), tilt, 0.0]) for tilt in TILTS]
        if not len(self._points.joints):
            return heads
        return [self._placed(head, rank) for head in heads for rank in range(CANDIDATES)]

    def _resection(self, focal: float) -> Array:
        """The camera's numbers from the known places alone, for one focal length."""
        matrix = np.array(_view(np.array([np.log(focal), 0.0, 0.0, 0.0])).camera(self._size, "").matrix)
        world = np.ascontiguousarray(self._points.world)
        _, vector, shift = cv2.solvePnP(
            world, np.ascontiguousarray(self._points.pixels), matrix, None, flags=cv2.SOLVEPNP_SQPNP
        )
        turn = np.asarray(cv2.Rodrigues(vector)[0], float)
        x, y, height = -turn.T @ np.asarray(shift, float).ravel()
        yaw, tilt = np.arctan2(-turn[2, 0], turn[2, 1]), np.arcsin(np.clip(-turn[2, 2], -1.0, 1.0))
        roll = np.arctan2(-turn[0, 2], -turn[1, 2])
        return np.array([np.log(focal), np.log(max(height, 0.1)), tilt, roll, yaw, x, y])

    def _placed(self, head: Array, rank: int) -> Array:
        """Parameters with each frame's pose of the prior that comes `rank`-th, put where the joints are."""
        if self._head == CAMERA:
            heights = [self._looks_like(f, head, rank)[1] for f in range(len(self._scale))]
            head = np.array([head[0], np.log(max(float(np.median(heights)), 0.3)), *head[2:]])
        return np.concatenate([head, *(self._looks_like(f, head, rank)[0] for f in range(len(self._scale)))])

    def _looks_like(self, frame: int, head: Array, rank: int) -> tuple[Array, float]:
        """A person's numbers, and the camera's height above the ground that this person stands on.

        As if seen from afar: the pose of the prior, and the heading, whose joints fit best when moved and enlarged.
        """
        given, camera = self._given[frame], self.camera(head)
        turn = np.asarray(cv2.Rodrigues(np.array(camera.rotation))[0], float)
        people, (joints, lowest) = self._crowd, self._crowd_body
        flat = (joints[:, given] @ turn.T)[..., :2]
        pixels = self._points.joints[frame, given]
        centred, target = flat - flat.mean(axis=1, keepdims=True), pixels - pixels.mean(axis=0)
        scale = np.sum(centred * target, axis=(1, 2)) / np.sum(centred**2, axis=(1, 2))
        error = np.sum((scale[:, None, None] * centred - target) ** 2, axis=(1, 2))
        chosen = int(np.argsort(np.where(scale > 0, error, np.inf), kind="stable")[rank])
        self._scale[frame] = max(float(scale[chosen]), 1e-3)
        depth = camera.matrix[0, 0] / self._scale[frame]
        middle = np.append((pixels.mean(axis=0) - camera.matrix[:2, 2]) / camera.matrix[0, 0], 1.0) * depth
        offset = middle @ turn + (people[chosen, :3] - joints[chosen, given].mean(axis=0))  # the root from the lens
        root_m = float(people[chosen, 2] - lowest[chosen])
        centre = np.array([*(head[5:7] if self._head > CAMERA else (0.0, 0.0)), 0.0])
        place = centre + offset
        return np.array([place[0], place[1], root_m, *people[chosen, 3:]]), root_m - float(offset[2])

    def _candidates(self) -> Array:
        """(HEADINGS * E, PLACE + K) people at the world's origin, in the prior's exemplary poses."""
        poses = self._prior.encode(self._prior.exemplars[:, :3], self._prior.exemplars[:, 3:]) / self._prior.sigma
        headings = np.repeat(2.0 * np.pi * np.arange(HEADINGS) / HEADINGS, len(poses))
        place = np.zeros((len(headings), 3))
        return np.column_stack([place, headings, np.tile(poses, (HEADINGS, 1))])

    def result(self, found: OptimizeResult, height_spread: float) -> PointedCamera:
        """The camera with its errors."""
        camera, (_, people) = self.camera(found.x), self._split(found.x)
        covariance = np.linalg.pinv(found.jac.T @ found.jac, hermitian=True)
        spread, view = np.sqrt(np.diag(covariance))[:CAMERA], _view(found.x)
        by_body = 0.0 if len(self._points.world) else height_spread  # measured places give the scale
        seen = project(camera, self._body(people)[0])
        return PointedCamera(
            camera=camera,
            view=view,
            spread=GroundView(
                float(spread[0]),
                view.height_m * float(np.hypot(spread[1], by_body)),
                float(spread[2]),
                float(spread[3]),
            ),
            joint_errors=np.linalg.norm(seen - self._points.joints, axis=-1),
            place_errors=np.linalg.norm(project(camera, self._points.world) - self._points.pixels, axis=-1),
            tall_px=self._scale * self._character.height_m,
        )


def _view(x: Array) -> GroundView:
    return GroundView(float(np.exp(x[0])), float(np.exp(x[1])), float(x[2]), float(x[3]))
