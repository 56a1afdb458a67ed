"""The people in one frame of a detector's JSON, in the shapes that are met: OpenPose's, and those of MediaPipe's many writers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mocap2ctrl.errors import KeypointsError
from mocap2ctrl.types import Array
from mocap2ctrl.video.keypoints_layouts import MEDIAPIPE_NAMES

PERSON_KEYS = ("pose_keypoints_2d", "pose_keypoints", "body_parts")
"""Of OpenPose, today and in its first versions."""
LANDMARK_KEYS = ("pose_landmarks", "poseLandmarks", "landmarks", "landmark", "keypoints", "pose")
CONFIDENCE_KEYS = ("visibility", "vis", "confidence", "score", "presence")


def people_of(value: Any, where: str) -> list[Array]:
    """(K, 3) x, y and confidence of each person in a frame, 0 where a point is not seen.

    Args:
        value: a frame as JSON holds it: OpenPose's `{"people": [{"pose_keypoints_2d": [x, y, c, …]}]}`; a list of points, or a list
            of people's lists, or a dictionary that has either under one of `LANDMARK_KEYS`; points by MediaPipe's names; nothing.
        where: file and frame, for errors.

    Raises:
        KeypointsError: it is none of these.
    """
    if value is None or value in ([], {}):
        return []
    if isinstance(value, Mapping):
        return _of_mapping(value, where)
    if isinstance(value, list):
        if all(_is_point(point) for point in value):
            return [_checked(np.array([_point(point, where) for point in value]), where)]
        return [person for part in value for person in people_of(part, where)]
    raise KeypointsError(f"{where}: is {str(value)[:40]!r}; expected people or landmarks")


def _of_mapping(value: Mapping[str, Any], where: str) -> list[Array]:
    if "people" in value:
        people = value["people"]
        if not isinstance(people, list):
            raise KeypointsError(f"{where}: people is {str(people)[:40]!r}; expected a list")
        return [_openpose(person, where) for person in people]
    for key in LANDMARK_KEYS:
        if key in value:
            return people_of(value[key], where)
    named = {name.lower(): point for name, point in value.items() if name.lower() in MEDIAPIPE_NAMES}
    if not named:
        raise KeypointsError(f"{where}: has {', '.join(list(value)[:6])}; expected people, landmarks or pose_landmarks")
    points = [_point(named[name], where) if name in named else (0.0, 0.0, 0.0) for name in MEDIAPIPE_NAMES]
    return [_checked(np.array(points), where)]


def _openpose(person: Any, where: str) -> Array:
    numbers = next((person[key] for key in PERSON_KEYS if key in person), None) if isinstance(person, Mapping) else None
    try:
        return _checked(np.array(numbers, float).reshape(-1, 3), where)
    except (TypeError, ValueError) as error:
        raise KeypointsError(f"{where}: a person has no pose_keypoints_2d of x, y and confidence in turn") from error


def _is_point(value: Any) -> bool:
    if isinstance(value, Mapping):
        return "x" in value and "y" in value
    return isinstance(value, list) and 2 <= len(value) <= 5 and not any(isinstance(v, list | dict) for v in value)


def _point(value: Any, where: str) -> tuple[float, float, float]:
    """x, y and confidence; of four numbers the third is a depth."""
    try:
        if isinstance(value, Mapping):
            confidence = next((value[key] for key in CONFIDENCE_KEYS if value.get(key) is not None), 1.0)
            return float(value["x"]), float(value["y"]), float(confidence)
        return (
            float(value[0]),
            float(value[1]),
            float(value[3] if len(value) > 3 else value[2] if len(value) > 2 else 1.0),
        )
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise KeypointsError(f"{where}: a point is {str(value)[:60]}; expected numbers x, y and visibility") from error


def _checked(person: Array, where: str) -> Array:
    """The person with 0 for what is not seen; confidences are cut at 1, which some detectors exceed."""
    seen = np.isfinite(person).all(axis=1) & np.any(person[:, :2] != 0, axis=1) & (person[:, 2] > 0)
    result = np.where(seen[:, None], person, 0.0)
    result[:, 2] = np.minimum(result[:, 2], 1.0)
    return result
