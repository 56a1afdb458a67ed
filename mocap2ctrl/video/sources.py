"""Where the picture of the empty scene comes from: chosen by what the clip shows, or by the user."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from mocap2ctrl.errors import VideoError
from mocap2ctrl.types import Masks
from mocap2ctrl.video.backdrop import plain_backdrop
from mocap2ctrl.video.background import Floats, largest_of_three
from mocap2ctrl.video.decode import Footage
from mocap2ctrl.video.elsewhere import empty_elsewhere
from mocap2ctrl.video.empties import empty_frames, with_who_stands
from mocap2ctrl.video.medians import enlarged, masked_median
from mocap2ctrl.video.plates import plate_beside, read_plate, with_own_pixels
from mocap2ctrl.video.unseen import Unseen, scene_behind

METHODS = ("plate", "empty", "median", "mog2", "key", "motion")
STAYING = 0.85
"""Share of the frames in which one place is covered by the body, from which the person stays on the spot."""
PLAIN = 0.93
"""Share of the pixels beside the person that must lie on a smooth backdrop for it to be one."""
BROKEN = 0.06
"""Share of the height beside which there may be something else on both sides."""
ODD = 0.05
"""Share of the scene without bodies that may differ from a backdrop that was made up."""
RESTLESS_LEVELS, RESTLESS = 24.0, 0.06
"""A scene is restless where so large a share of it is farther than this from its median in a usual frame, grey levels."""
PROBED_FRAMES = 12
AROUND = 0.06
"""How far a body may reach beyond what moves, as a share of the picture's width."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A picture of the empty scene.

    Attributes:
        picture: (H, W, 3) grey levels.
        hidden: (H, W) pixels of which nobody has seen what is behind the body.
        method: one of METHODS.
        reason: what was used and why, a sentence for the user.
        looks: how the colours of person and scene differ in those pixels; None if there is only the picture.
    """

    picture: Floats
    hidden: Masks
    method: str
    reason: str
    looks: Unseen | None = None


def empty_scene(
    footage: Footage, bodies: Masks, video: Path, plate: Path | None, method: str | None, *, several: bool = False
) -> Scene:
    """The best picture of the empty scene that there is.

    Args:
        footage: the clip, in one light.
        bodies: (T, h, w) where bodies move in it, coarsely.
        video: its file, beside which a clean plate may lie.
        plate: a clean plate that the user gave.
        method: one of METHODS to insist on it.
        several: whether people must be told apart: what moves, by which those who are close are one, is not chosen then.

    Raises:
        VideoError: the plate cannot be used, or the method has nothing to work on.
    """
    check_method(method)
    found = plate or plate_beside(video)
    if method == "plate" and found is None:
        raise VideoError(
            f"{video}: no clean plate; give a picture of the empty scene with --background FILE, or put "
            f"{video.stem}.background.png beside the video"
        )
    if found is not None and method in (None, "plate"):
        why = "given with --background" if plate is not None else "found beside the video"
        return _whole(read_plate(found, footage, bodies), "plate", f"background: the clean plate {found}, {why}")
    if method in (None, "empty"):
        stretch = empty_frames(footage.images, bodies, footage.fps, doubted=method is None)
        if stretch is not None:
            return _from_empty_frames(footage, bodies, stretch)
        elsewhere = empty_elsewhere(footage, bodies, video)
        if elsewhere is not None:
            picture, start, end = elsewhere
            where = f"from {start:.2f} to {end:.2f} s of the video, outside of the part that is used"
            return _whole(picture, "empty", f"background: the empty frames {where}")
        if method == "empty":
            raise VideoError(
                f"{video}: no empty frames (nobody leaves or enters through the border); leave the method out, or give "
                f"--background FILE"
            )
    return _from_frames_with_somebody(footage, with_who_stands(bodies, footage.fps), video, method, several)


def check_method(method: str | None) -> None:
    """Refuses what is no method.

    Raises:
        VideoError: says which there are.
    """
    if method is not None and method not in METHODS:
        raise VideoError(f"background method is {method!r}; allowed are {', '.join(METHODS)}")


def _whole(picture: Floats, method: str, reason: str) -> Scene:
    return Scene(picture, np.zeros(picture.shape[:2], bool), method, reason)


def _from_empty_frames(footage: Footage, bodies: Masks, stretch: tuple[int, int]) -> Scene:
    first, last = stretch
    picture, _ = masked_median(footage.images[first:last], None)
    picture, _ = with_own_pixels(picture, footage.images, bodies)
    start, end = (footage.start_s + n / footage.fps for n in (first, last - 1))
    return _whole(
        picture,
        "empty",
        f"background: the empty frames from {start:.2f} to {end:.2f} s of the clip ({last - first} frames)",
    )


def _from_frames_with_somebody(
    footage: Footage, bodies: Masks, video: Path, method: str | None, several: bool
) -> Scene:
    """The median, a mixture, a backdrop or what moves: by how long the body covers a place, and what is around it."""
    covered = float(np.max(np.mean(bodies, axis=0)))
    why = f"there is neither a clean plate nor an empty frame, and the body covers one place for {100 * covered:.0f} % of the clip"
    if method == "key" or (method is None and covered > STAYING):
        backdrop = plain_backdrop(masked_median(footage.images, bodies)[0], _around(bodies, footage))
        seen = f"{100 * backdrop.plain:.0f} % of what is beside the person is one smooth surface"
        odd = _restlessness(backdrop.picture, footage, bodies)
        if method == "key" or (backdrop.plain > PLAIN and backdrop.broken < BROKEN and odd < ODD):
            return _whole(
                backdrop.picture, "key", f"background: a plain backdrop, continued behind the person ({seen}); {why}"
            )
        why += (
            f", before no plain backdrop ({seen}, at {100 * backdrop.broken:.0f} % of the height there is more beside it, and "
            f"{100 * odd:.0f} % differs elsewhere)"
        )
    if several and method is None and covered > STAYING:
        method = "median"
    if method == "motion" or (method is None and covered > STAYING):
        picture, hidden, looks = scene_behind(footage, bodies, video)
        return Scene(
            picture, hidden, "motion", f"background: what is around the moving person, and its colours; {why}", looks
        )
    return _from_median(footage, bodies, method, why)


def _around(bodies: Masks, footage: Footage) -> Masks:
    """(H, W) where the body may be in any frame."""
    height, width = footage.images.shape[1:3]
    reach = 2 * round(AROUND * bodies.shape[2]) + 1
    grown = cv2.dilate(np.any(bodies, axis=0).astype(np.uint8), np.ones((reach, reach), np.uint8))
    return enlarged(grown > 0, (width, height))


def _from_median(footage: Footage, bodies: Masks, method: str | None, why: str) -> Scene:
    """Each pixel's median over the frames in which it is outside of all moving bodies; or a mixture where it is restless."""
    picture, hidden = masked_median(footage.images, bodies)
    restless = _restlessness(picture, footage, bodies)
    if method == "mog2" or (method is None and restless > RESTLESS):
        reason = f"background: a mixture of colours for each pixel, as {100 * restless:.0f} % of the scene moves by itself; {why}"
        return _whole(picture, "mog2", reason)
    if hidden.any():
        levels = np.clip(picture, 0, 255).astype(np.uint8)
        picture = cv2.inpaint(levels, hidden.astype(np.uint8), 3.0, cv2.INPAINT_TELEA).astype(np.float32)
    reason = f"background: each pixel's median over the frames in which nothing moves there; {why}"
    return Scene(picture, hidden, "median", reason)


def _restlessness(picture: Floats, footage: Footage, bodies: Masks) -> float:
    """The share of the scene without bodies that is far from its median, in a usual frame."""
    levels, shares = np.clip(picture, 0, 255).astype(np.uint8), []
    for t in np.unique(np.linspace(0, len(bodies) - 1, PROBED_FRAMES).astype(int)):
        far = largest_of_three(cv2.absdiff(footage.images[t], levels)) > RESTLESS_LEVELS
        free = ~enlarged(bodies[t], far.shape[::-1])
        shares.append(float(np.mean(far[free])) if free.any() else 0.0)
    return float(np.median(shares))
