"""The pinhole camera: projection, rays, and the camera of a part of its image at another scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mocap2ctrl.types import Array, Camera


def world_to_camera(camera: Camera) -> Array:
    """(3, 3) rotation matrix R: a world point X is at R X + t in the camera's frame."""
    import cv2  # here, so that workers do without where there is no video

    matrix: Array = np.asarray(cv2.Rodrigues(np.array(camera.rotation))[0], float)
    return matrix


def camera_centre(camera: Camera) -> Array:
    """(3,) the world position of the camera, metres."""
    return np.asarray(-world_to_camera(camera).T @ camera.translation)


def to_camera(camera: Camera, points: npt.ArrayLike) -> Array:
    """World points (..., 3) in the camera's frame: right, down, forward, metres."""
    return np.asarray(np.asarray(points, float) @ world_to_camera(camera).T + camera.translation)


def project(camera: Camera, points: npt.ArrayLike) -> Array:
    """Pixels (..., 2) of world points (..., 3), lens distortion left out; NaN for points that are not before the camera."""
    seen = to_camera(camera, points)
    depth = np.where(seen[..., 2:] > 1e-9, seen[..., 2:], np.nan)
    plane = np.concatenate([seen[..., :2] / depth, np.ones_like(depth)], axis=-1)
    return np.asarray((plane @ camera.matrix.T)[..., :2])


def rays(camera: Camera, pixels: npt.ArrayLike) -> Array:
    """World directions (..., 3) from the camera's centre through pixels (..., 2); their depth in the camera's frame is 1."""
    pixels = np.asarray(pixels, float)
    homogeneous = np.concatenate([pixels, np.ones_like(pixels[..., :1])], axis=-1)
    return np.asarray(homogeneous @ np.linalg.inv(camera.matrix).T @ world_to_camera(camera))


def on_plane(camera: Camera, pixels: npt.ArrayLike, height_m: float = 0.0) -> Array:
    """World points (..., 3) where the rays of pixels (..., 2) meet the plane z = `height_m`; NaN where they do not."""
    centre, direction = camera_centre(camera), rays(camera, pixels)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = (height_m - centre[2]) / direction[..., 2:]
    return np.asarray(centre + np.where(distance > 0, distance, np.nan) * direction)


def undistorted(camera: Camera) -> Camera:
    """The ideal pinhole that takes `camera`'s place once its images are undistorted."""
    return replace(camera, distortions=np.zeros(0), fisheye=False)


def cropped(camera: Camera, left: float, top: float, width: float, height: float, size: tuple[int, int]) -> Camera:
    """The camera of a part of the image, resized.

    Args:
        camera: an ideal pinhole.
        left, top, width, height: the part, in pixels of `camera`; (0, 0) is the outer corner of the first pixel.
        size: width and height of the new images.
    """
    scale = np.array([size[0] / width, size[1] / height])
    matrix = np.array(camera.matrix)
    matrix[:2] *= scale[:, None]
    # Centres of pixels lie half a pixel inside their corners, before and after.
    matrix[:2, 2] = (camera.matrix[:2, 2] + 0.5 - (left, top)) * scale - 0.5
    return replace(camera, size=size, matrix=matrix)
